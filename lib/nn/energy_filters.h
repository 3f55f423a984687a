/* Filters from the released coefficients of a polynomial energy (privacy/energy_form.h,
 * exchange/energy_stream.h). All of it is post-processing: nothing here reads a record,
 * so any number of steps costs nothing.
 *
 * The energy of one filter w = (b, w_1, ..., w_p), its bias in front, is a polynomial
 * E(w): the same for every filter. It is not bounded below, so filters are held to a norm
 * of at most `radius`, which the paper leaves open. Three ways to a set of filters:
 *
 * - descent: what pCDBN prints. Gradient descent from random starts, each filter for
 *   itself. With many steps all of them end where the energy is least.
 * - orthogonal: the same, but after each step filters are made orthogonal again, so that
 *   they stay apart. At most as many as a patch has values; more repeat with the opposite
 *   sign.
 * - components: from the moments of degree two alone. Eigenvectors of the covariance of
 *   patches, the largest first, each with both signs, and a bias that takes the mean
 * away: where the energy of degree one is least among orthogonal filters without a
 * constant.
 */
#ifndef DPF_NN_ENERGY_FILTERS_H
#define DPF_NN_ENERGY_FILTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct dpf_energy_polynomial {
    size_t variables;        /* p + 1 */
    int degree;              /* L: monomials have degree 1 to L + 1 */
    const double *expansion; /* [L + 1]; blocks of those that are 0 are left out */
    const double *coefficients;
    double noise; /* deviation of the noise on a moment; paper: on a coefficient */
};

enum dpf_filter_method {
    DPF_FILTERS_DESCENT,
    DPF_FILTERS_ORTHOGONAL,
    DPF_FILTERS_COMPONENTS,
};
struct dpf_filter_choice {
    const char *name;
    enum dpf_filter_method method;
};
extern const struct dpf_filter_choice dpf_filter_choices[]; /* ended without a name */

struct dpf_filter_plan {
    enum dpf_filter_method method;
    size_t filters;
    double radius;
    /* descent, orthogonal */
    int64_t steps;
    double rate, l1;
    /* components: each is divided by its deviation to this power */
    double whiten;
    uint64_t seed; /* of the starts; public */
};

struct dpf_filter_outcome {
    double first, last; /* mean energy of the filters, per patch; descent, orthogonal */
    double share;       /* components: of the patches' variance */
    size_t noisy;       /* components: those whose variance is below that of the noise */
};

/* E(w), and its gradient unless that is NULL. */
double dpf_energy_at(const struct dpf_energy_polynomial *p, const double *w,
                     double *gradient);

/* w is [filters, p + 1], biases in front; the plan's draws are from its seed. DPF_USAGE
 * if the polynomial has no moments of the kind that the method needs; DPF_SYSTEM without
 * memory. */
enum dpf_status dpf_energy_filters(const struct dpf_energy_polynomial *p,
                                   const struct dpf_filter_plan *plan, double *w,
                                   struct dpf_filter_outcome *outcome,
                                   struct dpf_error *e);

#endif
