/* Everything between the options of `normalize` and the scaled records. */
#ifndef DPF_STAGE_NORMALIZE_JOB_H
#define DPF_STAGE_NORMALIZE_JOB_H

#include "data/scale.h"
#include "exchange/spool.h"
#include "stage/stage.h"

struct dpf_normalize_job {
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

enum dpf_status dpf_normalize_check(const struct dpf_normalize_job *j,
                                    const struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_normalize_open(struct dpf_normalize_job *j, struct dpf_stage *s,
                                   struct dpf_error *e);
/* Scale a batch in place, or put it aside until all were seen. */
enum dpf_status dpf_normalize_take(struct dpf_normalize_job *j, struct dpf_stage *s,
                                   struct dpf_batch *b, struct dpf_error *e);
enum dpf_status dpf_normalize_finish(struct dpf_normalize_job *j, struct dpf_stage *s,
                                     struct dpf_error *e);
void dpf_normalize_release(struct dpf_normalize_job *j);

#endif
