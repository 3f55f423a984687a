/* The releases of the Adaptive Laplace Mechanism (AdLM; ILM without relevance) in
 * `perturb`: a relevance for each feature, and records whose features and loss
 * coefficients carry noise, once. */
#ifndef DPF_STAGE_FEATURES_JOB_H
#define DPF_STAGE_FEATURES_JOB_H

#include "account/ledger.h"
#include "base/parallel.h"
#include "privacy/adaptive.h"
#include "privacy/response.h"
#include "stage/stage.h"

extern const char *const dpf_draw_words[];        /* "record", "lot", "stream" */
extern const char *const dpf_coefficient_words[]; /* "all", "first" */

struct dpf_features_job {
    /* what the user asked for */
    const char *relevance, *draw, *coefficients;
    double epsilon, label_epsilon, limit, neurons; /* 0: not given */
    int64_t lot, hidden;
    bool paper, plain;
    /* what it takes */
    int x, y;
    size_t values, classes;
    double *weights; /* the relevance of each value; or NULL */
    double *lo, *hi; /* borrowed: a pair for each value */
    size_t noisy;    /* values that get noise: the features', and the coefficients' */
    struct dpf_adaptive noise;
    struct dpf_response response;
    int64_t *shared; /* the noise of a lot, where it is shared */
    int threads;
    struct dpf_crew crew;
    struct dpf_features_worker *workers;
    uint64_t records;
    int64_t seed; /* below 0: the operating system's randomness */
};

/* The options that only this release has. */
enum dpf_status dpf_features_check(const struct dpf_features_job *j,
                                   const struct dpf_stage *s, struct dpf_error *e);
/* Work out the noise from the header and the relevance; declare what leaves: x, and y,
 * which holds the coefficients of the loss (paper) or a randomised class (sound). */
enum dpf_status dpf_features_open(struct dpf_features_job *j, struct dpf_stage *s,
                                  struct dpf_error *e);
/* The events of a private stream. */
void dpf_features_describe(const struct dpf_features_job *j, struct dpf_stage *s);
/* A batch becomes what leaves: x and y, with noise. */
enum dpf_status dpf_features_take(struct dpf_features_job *j, struct dpf_batch *b,
                                  struct dpf_error *e);
/* Values that were outside their bounds. */
uint64_t dpf_features_clipped(const struct dpf_features_job *j);
void dpf_features_release(struct dpf_features_job *j);

#endif
