/* From gradients to the next parameters, in host memory. Gradients are means over a lot,
 * noise included; what happens here is post-processing and costs no privacy. */
#ifndef DPF_NN_OPTIMISER_H
#define DPF_NN_OPTIMISER_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum dpf_optimiser_kind { DPF_SGD, DPF_MOMENTUM, DPF_ADAM, DPF_ADADELTA };
enum dpf_schedule { DPF_RATE_CONSTANT, DPF_RATE_LINEAR, DPF_RATE_COSINE };

extern const char *const dpf_optimiser_words[]; /* their names, ended by NULL */
extern const char *const dpf_schedule_words[];

struct dpf_optimiser {
    enum dpf_optimiser_kind kind;
    double rate;
    double momentum;       /* MOMENTUM: 0.9 */
    double decay1, decay2; /* ADAM: 0.9, 0.999; ADADELTA: decay1 is rho, 0.95 */
    double epsilon;        /* ADAM: 1e-8; ADADELTA: 1e-6 */
    double l1, l2;         /* penalties, added to the gradient */
    enum dpf_schedule schedule;
    double final_rate;       /* LINEAR, COSINE: where the rate ends */
    uint64_t schedule_steps; /* and after how many steps; it stays there */
    /* state */
    uint64_t step;
    size_t count;
    float *first, *second; /* moments, one of each a parameter */
};

/* The customary values for a kind; set what you want to change, then init. */
struct dpf_optimiser dpf_optimiser_defaults(enum dpf_optimiser_kind kind, double rate);
/* Allocate the state for `count` parameters. */
enum dpf_status dpf_optimiser_init(struct dpf_optimiser *o, size_t count,
                                   struct dpf_error *e);
void dpf_optimiser_release(struct dpf_optimiser *o);
/* The rate of the step that comes next. */
double dpf_optimiser_rate(const struct dpf_optimiser *o);
/* Start a step; then hand over the parameters in pieces, each at its offset and each
 * once, from any thread. Penalties are added to `gradient`. */
void dpf_optimiser_begin(struct dpf_optimiser *o);
void dpf_optimiser_update(const struct dpf_optimiser *o, size_t offset, size_t count,
                          float *parameters, float *gradient);

#endif
