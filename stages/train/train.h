/* From the options of `train` to a trained model. */
#ifndef DPF_STAGE_TRAIN_H
#define DPF_STAGE_TRAIN_H

#include "copies.h"
#include "exchange/model_stream.h"
#include "run.h"

struct dpf_train {
    /* what the user asked for */
    const char *arch, *model, *weights, *export_file, *x, *y, *loss, *optimiser_kind;
    const char *init, *schedule, *sampling, *clip, *noise_unit, *backend, *checkpoint,
        *curve;
    const char *watch, *history;
    double rate, momentum, final_rate, l1, l2, clip_l2, validation, checkpoint_seconds;
    double noise_multiplier, final_noise_multiplier, final_clip_l2, target_epsilon, delta;
    int64_t population;
    const char *solve; /* refused: it is a stage of its own */
    int64_t epochs, lot, microbatch, threads, patience, seed, schedule_epochs;
    struct dpf_copies copies; /* of a teacher's records; how a student's are changed */
    const char *unlabelled;   /* public records for a student, or NULL */
    double confidence;        /* from which on a student believes itself */
    const char *energy_node;  /* learn this node's energy, or NULL */
    int64_t gibbs;            /* steps of its chains */
    bool persistent;          /* chains go on from step to step */
    int64_t teachers; /* networks, each of another part of the records; 0: one of all */
    /* what it takes */
    const struct dpf_kernels *kernels;
    struct dpf_model_stream start; /* the network, and the weights if there are some */
    struct dpf_dataset data, watched;
    struct dpf_dataset_need need, watched_need;
    struct dpf_energy energy;
    struct dpf_engine engine;
    struct dpf_optimiser optimiser;
    struct dpf_training training;
};

bool dpf_train_is_noisy(const struct dpf_train *v);
/* All records are in v->data: read those to watch, choose the noise, make the engine, the
 * first weights, the optimiser and the training. */
enum dpf_status dpf_train_prepare(struct dpf_train *v, struct dpf_stage *s,
                                  struct dpf_error *e);

/* The plan and the optimiser that the options ask for. */
struct dpf_training_plan dpf_train_plan(const struct dpf_train *v, uint64_t seed);
enum dpf_status dpf_train_optimiser(const struct dpf_train *v,
                                    const struct dpf_engine *engine,
                                    struct dpf_optimiser *o, struct dpf_error *e);

/* The callbacks. Options: do they go together? Open: read the model to start from, and
 * check the stream's fields against the network. Close: train, send header and model,
 * write the files that were asked for. */
enum dpf_status dpf_train_options(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_train_fingerprint(struct dpf_stage *s, struct dpf_fingerprint *f,
                                      struct dpf_error *e);
enum dpf_status dpf_train_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_train_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e);
enum dpf_status dpf_train_close(struct dpf_stage *s, struct dpf_error *e);
void dpf_train_release(struct dpf_stage *s);

#endif
