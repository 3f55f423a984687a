/* One step of an optimiser: what it does to each parameter, given its gradient and two
 * moments. A kind of optimiser is a row with its customary settings and its function in
 * host memory; the table holds the words. Backends take steps on whole vectors
 * (`optimise` in kernels/table.inc); the function of a row is the truth. */
#ifndef DPF_KERNELS_STEP_H
#define DPF_KERNELS_STEP_H

#include <stdbool.h>
#include <stddef.h>

struct dpf_step;

struct dpf_step_kind {
    const char *name;
    double decay1, decay2, epsilon; /* customary; decay1 of adadelta is rho */
    bool corrects_bias;             /* rate and second moment by the number of the step */
    void (*host)(const struct dpf_step *s, size_t count, float *restrict w,
                 const float *restrict g, float *restrict m, float *restrict v);
};

extern const struct dpf_step_kind dpf_step_kinds[]; /* ended by a row without a name */
const struct dpf_step_kind *dpf_step_kind_find(const char *name);

/* What one step needs, worked out once for all parameters. */
struct dpf_step {
    const struct dpf_step_kind *kind;
    float scale; /* of the gradient, before all else */
    float rate, momentum, keep1, new1, keep2, new2, scale2, epsilon;
    float l1, l2; /* penalties, added to the gradient */
};

#endif
