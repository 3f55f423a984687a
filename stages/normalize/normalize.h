/* Scaling the records of a stream: what `normalize` was asked for, and the callbacks that
 * do it. */
#ifndef DPF_STAGE_NORMALIZE_H
#define DPF_STAGE_NORMALIZE_H

#include "data/scale.h"
#include "exchange/spool.h"
#include "stage/stage.h"

struct dpf_normalize {
    /* what the user asked for */
    struct dpf_range unit;
    bool zscore, declared, both_signs, non_private;
    double ball, power;
    int64_t lot_mean;
    const char *bounds, *fit, *field, *relevance;
    /* what it takes */
    int x; /* the field's number */
    struct dpf_scaling scaling;
    struct dpf_moments moments;
    struct dpf_lot_means means;
    struct dpf_spool spool;
};

/* Do the options go together? */
enum dpf_status dpf_normalize_options(struct dpf_stage *s, struct dpf_error *e);
/* Choose the scale, and declare what the scaled field may be relied on for. */
enum dpf_status dpf_normalize_open(struct dpf_stage *s, struct dpf_error *e);
/* Scale a batch in place, or put it aside until all were seen. */
enum dpf_status dpf_normalize_batch(struct dpf_stage *s, struct dpf_batch *b,
                                    struct dpf_error *e);
/* Scale and send what was put aside. */
enum dpf_status dpf_normalize_close(struct dpf_stage *s, struct dpf_error *e);
void dpf_normalize_release(struct dpf_stage *s);

#endif
