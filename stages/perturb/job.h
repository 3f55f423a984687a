/* Everything between the options of `perturb` and its releases. */
#ifndef DPF_STAGE_PERTURB_JOB_H
#define DPF_STAGE_PERTURB_JOB_H

#include "account/ledger.h"
#include "features.h"
#include "privacy/quadratic.h"

extern const char *const dpf_release_words[];   /* "records", "sum", ... */
extern const char *const dpf_perturb_words[];   /* "laplace", "gaussian" */
extern const char *const dpf_quadratic_words[]; /* the variants of the quadratic form */
extern const char *const dpf_central_words[];   /* "add-remove", "replace-one" */

struct dpf_perturb_job {
    /* what the user asked for */
    const char *release, *mechanism, *variant, *relation, *field, *target;
    double epsilon, delta, clip_l1, clip_l2; /* 0: not given */
    bool only, no_intercept, non_private;
    int64_t seed; /* below 0: the operating system's randomness */
    /* what it takes */
    int x, y; /* numbers of the fields; y -1: none */
    size_t values;
    double *lo, *hi; /* a pair for each value; or none, and records are clipped to */
    double radius;   /* this norm: L2 for Gaussian noise, L1 for Laplace */
    double *row;     /* a record */
    struct dpf_random random;
    struct dpf_laplace laplace;
    struct dpf_gaussian gaussian;
    struct dpf_quadratic quadratic;
    struct dpf_features_job features;
    int64_t *sums;
    uint64_t clipped, records;
    struct dpf_mechanism_event event;
};

enum dpf_status dpf_perturb_job_check(const struct dpf_perturb_job *j,
                                      const struct dpf_stage *s, struct dpf_error *e);
/* Find the fields, work out sensitivity and noise from what the header declares, write
 * the event. */
enum dpf_status dpf_perturb_job_open(struct dpf_perturb_job *j, struct dpf_stage *s,
                                     struct dpf_error *e);
/* Records become noisy in place; of others, sums are taken. */
enum dpf_status dpf_perturb_job_take(struct dpf_perturb_job *j, struct dpf_stage *s,
                                     struct dpf_batch *b, struct dpf_error *e);
/* Send the noisy sums, and say how much was clipped. */
enum dpf_status dpf_perturb_job_finish(struct dpf_perturb_job *j, struct dpf_stage *s,
                                       struct dpf_error *e);
void dpf_perturb_job_release(struct dpf_perturb_job *j);

#endif
