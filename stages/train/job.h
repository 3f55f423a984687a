/* Everything between a stage's options and a trained model: the network and its first
 * weights, the records, engine, optimiser and plan. */
#ifndef DPF_STAGE_TRAINING_JOB_H
#define DPF_STAGE_TRAINING_JOB_H

#include "exchange/model_stream.h"
#include "run.h"

struct dpf_training_job {
    /* what the user asked for */
    const char *arch, *model, *weights, *export_file, *x, *y, *loss, *optimiser_kind;
    const char *init, *schedule, *sampling, *clip, *backend, *checkpoint, *curve;
    const char *watch, *history;
    double rate, momentum, final_rate, l1, l2, clip_l2, validation, checkpoint_seconds;
    double noise_multiplier, final_noise_multiplier, final_clip_l2, target_epsilon, delta;
    int64_t population;
    const char *solve; /* refused: it is a stage of its own */
    int64_t epochs, lot, microbatch, threads, patience, seed, schedule_epochs;
    /* what it takes */
    struct dpf_model_stream start; /* the network, and the weights if there are some */
    struct dpf_dataset data, watched;
    struct dpf_dataset_need need, watched_need;
    struct dpf_engine engine;
    struct dpf_optimiser optimiser;
    struct dpf_training training;
};

/* Do the options go together? DPF_USAGE names the one that does not. */
enum dpf_status dpf_training_job_check(const struct dpf_training_job *j,
                                       const struct dpf_stage *s, struct dpf_error *e);
/* Read the model to start from, and check the stream's fields against the network. */
enum dpf_status dpf_training_job_open(struct dpf_training_job *j, struct dpf_stage *s,
                                      struct dpf_error *e);
/* All records are in j->data: train. The result stands in j->start. */
enum dpf_status dpf_training_job_run(struct dpf_training_job *j, struct dpf_stage *s,
                                     struct dpf_error *e);
/* Send header and model; write the files asked for. */
enum dpf_status dpf_training_job_emit(struct dpf_training_job *j, struct dpf_stage *s,
                                      struct dpf_error *e);
void dpf_training_job_release(struct dpf_training_job *j);

#endif
