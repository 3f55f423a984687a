/* Models that are solved for, not trained: from the noisy coefficients of a quadratic
 * form a dense layer that minimises it, from records their principal components. */
#ifndef DPF_STAGE_SOLVE_JOB_H
#define DPF_STAGE_SOLVE_JOB_H

#include "exchange/model_stream.h"
#include "nn/components.h"

extern const char *const dpf_solve_job_words[]; /* "quadratic", "components" */
extern const char *const dpf_repair_words[];    /* "ridge", "none" */

struct dpf_solve_job {
    const char *what, *field, *repair, *prior;
    double ridge, whiten, prior_weight;
    int64_t component_count; /* 0: not given */
    int x;                   /* number of the records' field */
    struct dpf_components components;
    struct dpf_model_stream result;
};

/* Do the options go together? */
enum dpf_status dpf_solve_job_check(const struct dpf_solve_job *j,
                                    const struct dpf_stage *s, struct dpf_error *e);
/* Check the header: it has to be that of a quadratic form, or of records of numbers. */
enum dpf_status dpf_solve_job_open(struct dpf_solve_job *j, struct dpf_stage *s,
                                   struct dpf_error *e);
/* The one record: solve it into j->result. Or records: take them in. */
enum dpf_status dpf_solve_job_take(struct dpf_solve_job *j, struct dpf_stage *s,
                                   struct dpf_batch *b, struct dpf_error *e);
/* Components: solve for them. Or whether a form came at all. */
enum dpf_status dpf_solve_job_finish(struct dpf_solve_job *j, struct dpf_stage *s,
                                     struct dpf_error *e);
void dpf_solve_job_release(struct dpf_solve_job *j);

#endif
