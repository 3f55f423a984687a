/* Running a training from a stage: checkpoints, notices a person can follow, progress for
 * the runner. */
#ifndef DPF_STAGE_TRAINING_RUN_H
#define DPF_STAGE_TRAINING_RUN_H

#include "nn/training.h"
#include "stage/stage.h"

struct dpf_training_run {
    struct dpf_training *training; /* borrowed */
    const char *checkpoint;        /* file, or NULL */
    double checkpoint_seconds;     /* between two of them, besides the end of an epoch */
    const char *settings;          /* all that shapes the result: "NAME VALUE" lines */
    bool given_start;              /* the first weights were given, not drawn */
    double delta; /* noise: what epsilons are told and stated for; 0: no noise */
};

/* Go on from the checkpoint if there is one, train to the end, leaving checkpoints on the
 * way, also when told to stop. A checkpoint of another network, other data, another start
 * or other options is DPF_USAGE, and so is one that another training is using.
 * Checkpoints carry the ledger and provenance in s->out and, with noise, the events of
 * the steps so far. */
enum dpf_status dpf_train_run(struct dpf_stage *s, const struct dpf_training_run *run,
                              struct dpf_error *e);

#endif
