/* From the noisy coefficients of a quadratic form to a model: a dense layer that
 * minimises it. */
#ifndef DPF_STAGE_SOLVE_JOB_H
#define DPF_STAGE_SOLVE_JOB_H

#include "stage/model_stream.h"

extern const char *const dpf_solve_job_words[]; /* "quadratic" */
extern const char *const dpf_repair_words[];    /* "ridge", "none" */

struct dpf_solve_job {
    const char *repair;
    double ridge;
    struct dpf_model_stream result;
};

/* Check the header: it has to be that of a quadratic form. */
enum dpf_status dpf_solve_job_open(struct dpf_solve_job *j, struct dpf_stage *s,
                                   struct dpf_error *e);
/* The one record: solve it into j->result. */
enum dpf_status dpf_solve_job_take(struct dpf_solve_job *j, struct dpf_stage *s,
                                   struct dpf_batch *b, struct dpf_error *e);
/* Whether a form came at all. */
enum dpf_status dpf_solve_job_finish(const struct dpf_solve_job *j, struct dpf_stage *s,
                                     struct dpf_error *e);
void dpf_solve_job_release(struct dpf_solve_job *j);

#endif
