/* Models in streams: a stream without records whose `model` frame holds a network and its
 * parameters, with the provenance and ledger of what it was made from. `train` and
 * `solve` write it, whoever takes --model reads it; a checkpoint is such a stream with
 * the state of training in the same frame. */
#ifndef DPF_EXCHANGE_MODEL_STREAM_H
#define DPF_EXCHANGE_MODEL_STREAM_H

#include "nn/fitted.h"
#include "nn/weights.h"
#include "stage/stage.h"

struct dpf_model_stream {
    struct dpf_header header;
    struct dpf_model model;
    float *parameters; /* [model.span] */
};

/* Read a whole stream with one model. `on_frame`, if not NULL, sees the model's frame
 * while it is there. Release after success only. */
enum dpf_status dpf_model_stream_read(struct dpf_model_stream *m, const char *endpoint,
                                      enum dpf_status (*on_frame)(void *context,
                                                                  const msgpack_object *f,
                                                                  struct dpf_error *e),
                                      void *context, struct dpf_error *e);
void dpf_model_stream_release(struct dpf_model_stream *m);

/* A network from --arch: the name of an architecture, or a file with its text. */
enum dpf_status dpf_model_from_option(struct dpf_model *m, const char *arch,
                                      struct dpf_error *e);

/* The names of the architectures, for the help of stages that take --arch. */
void dpf_architecture_table(struct dpf_text *out);

/* The first weights of m->model, which has none yet: those of a file (safetensors), whose
 * standing the stage takes over, or drawn from a seed by the initialiser of this name. */
enum dpf_status dpf_model_stream_first_weights(struct dpf_model_stream *m,
                                               struct dpf_stage *s, const char *file,
                                               const char *init, uint64_t seed,
                                               struct dpf_error *e);

/* Begin a model frame in `enc` (see dpf_weights_encode). `weights` is filled, and must be
 * released by the caller after the frame was sent. */
enum dpf_status dpf_model_stream_encode(struct dpf_encoder *enc,
                                        const struct dpf_model *m,
                                        const float *parameters, unsigned more,
                                        struct dpf_safetensors *weights,
                                        struct dpf_error *e);

/* The end of a stage that makes a model: send the deferred header and the model, and
 * write the weights to `export_file` (safetensors) unless it is NULL. */
enum dpf_status dpf_model_stream_write(struct dpf_stage *s,
                                       const struct dpf_model_stream *m,
                                       const char *export_file, struct dpf_error *e);

/* Take over what a model's stream says about its making: its provenance goes before the
 * stage's own, its events into one event "model" (they are of other records than those at
 * hand), and what comes of private data stays private. */
void dpf_stage_adopt_model(struct dpf_stage *s, const struct dpf_header *model);
/* The provenance alone. */
void dpf_stage_adopt_provenance(struct dpf_stage *s, const struct dpf_values *model);
/* The same for weights from a file. Unless the file says that they are of public data,
 * they count as made of private data without a mechanism. */
void dpf_stage_adopt_weights(struct dpf_stage *s, const struct dpf_safetensors *file);
/* Note in a file's metadata whether the weights are of public or private data. */
enum dpf_status dpf_stage_describe_weights(const struct dpf_stage *s,
                                           struct dpf_safetensors *file,
                                           struct dpf_error *e);

#endif
