/* The state of a training in a file, to go on from: a model's stream with the state in
 * the same frame, and with what it belongs to, so that nothing else goes on from it. */
#ifndef DPF_STAGE_TRAIN_CHECKPOINT_H
#define DPF_STAGE_TRAIN_CHECKPOINT_H

#include "run.h"

/* What a checkpoint belongs to, so that it is never continued by something else. */
struct dpf_checkpoint_identity {
    char network[DPF_FINGERPRINT_HEX + 1], data[DPF_FINGERPRINT_HEX + 1],
        start[DPF_FINGERPRINT_HEX + 1];
    const char *settings;         /* in words, so that a refusal can name what differs */
    uint64_t threads, microbatch; /* another number gives other rounding */
};

struct dpf_checkpoint {
    struct dpf_header header; /* of what the model is being made from */
    double delta;             /* noise: what the steps so far are stated for */
    const char *stage;
    int lock;  /* the open file of the lock; -1: none */
    bool held; /* the lock is ours */
    struct dpf_training *training;
    const char *path;
    struct dpf_checkpoint_identity id;
    float *parameters;
};

/* Take the file for this training alone, and go on from it if it is there. What the
 * header in s->out says is what checkpoints will say. Release also after a failure. */
enum dpf_status dpf_checkpoint_open(struct dpf_checkpoint *c,
                                    const struct dpf_training_run *run,
                                    const struct dpf_stage *s, struct dpf_error *e);
/* Whole under its name or not at all, and never with numbers that are not finite: those
 * would be no state to go on from. */
enum dpf_status dpf_checkpoint_save(struct dpf_checkpoint *c, struct dpf_error *e);
void dpf_checkpoint_release(struct dpf_checkpoint *c);

#endif
