/* From gradients to the next parameters. Gradients are means over a lot, noise included;
 * what happens here is post-processing and costs no privacy. The arithmetic of a step is
 * kernels/step.h's, its moments are memory of the backend. */
#ifndef DPF_NN_OPTIMISER_H
#define DPF_NN_OPTIMISER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/kernels.h"

/* How the rate goes from its first to its final value. */
struct dpf_schedule {
    const char *name;
    double (*left)(double done); /* shares of the way, 0 to 1; NULL: it stays */
};
extern const struct dpf_schedule dpf_schedules[]; /* ended by a row without a name */
const struct dpf_schedule *dpf_schedule_find(const char *name);

struct dpf_optimiser {
    const struct dpf_step_kind *kind;
    double rate;
    double momentum;       /* of `momentum`: 0.9 */
    double decay1, decay2; /* of adam: 0.9, 0.999; decay1 of adadelta is rho, 0.95 */
    double epsilon;
    double l1, l2;                       /* penalties, added to the gradient */
    const struct dpf_schedule *schedule; /* NULL: the rate stays */
    double final_rate;                   /* where the schedule ends */
    uint64_t schedule_steps;             /* and after how many steps; it stays there */
    /* state */
    uint64_t step;
    size_t count;
    const struct dpf_kernels *kernels; /* borrowed, as is the context */
    struct dpf_context *context;
    float *first, *second; /* moments, one of each a parameter, on the backend */
    struct dpf_step now;   /* what the step in hand needs */
};

/* The customary values for a kind; set what you want to change, then init. */
struct dpf_optimiser dpf_optimiser_defaults(const struct dpf_step_kind *kind,
                                            double rate);
/* Allocate the state for `count` parameters, on a backend. */
enum dpf_status dpf_optimiser_init(struct dpf_optimiser *o,
                                   const struct dpf_kernels *kernels,
                                   struct dpf_context *context, size_t count,
                                   struct dpf_error *e);
void dpf_optimiser_release(struct dpf_optimiser *o);
/* The moments to and from host memory, [count] each. */
void dpf_optimiser_get(const struct dpf_optimiser *o, float *first, float *second);
void dpf_optimiser_put(struct dpf_optimiser *o, const float *first, const float *second);
/* The rate of the step that comes next. */
double dpf_optimiser_rate(const struct dpf_optimiser *o);
/* Start a step whose gradients are to be divided by `divisor`; then hand over the
 * parameters in pieces, each at its offset and each once, from any thread, with a context
 * of that thread's. The gradient may be overwritten. */
void dpf_optimiser_begin(struct dpf_optimiser *o, double divisor);
void dpf_optimiser_update(const struct dpf_optimiser *o, struct dpf_context *context,
                          size_t offset, size_t count, float *parameters,
                          float *gradient);

#endif
