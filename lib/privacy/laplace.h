/* The Laplace mechanism on a grid.
 *
 * Claim. Let f take data sets to vectors of k reals with L1 sensitivity S under some
 * neighbouring relation, and let each of p partial sums of f be rounded to multiples of
 * `step` before they are added as integers. Adding independent discrete Laplace noise of
 * scale t >= S' / epsilon to each integer, with S' = floor(S / step) + p k (an integer),
 * is epsilon-DP under that relation.
 * Proof. The integers of neighbours differ by at most S / step + p k in L1, and by an
 * integer. Noise z has probability proportional to exp(-|z|_1 / t), so the ratio of the
 * probabilities of any output is at most exp(S' / t) <= e^epsilon by the triangle
 * inequality (Dwork et al. 2006; Ghosh et al. 2009). random/noise.h draws z exactly. */
#ifndef DPF_PRIVACY_LAPLACE_H
#define DPF_PRIVACY_LAPLACE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "random/secure.h"

struct dpf_laplace {
    double epsilon;        /* S' / t, rounded up: what was asked for, or a little less */
    double sensitivity_l1; /* S' step */
    double scale;          /* t step */
    double step;
};

struct dpf_laplace_query {
    double sensitivity_l1; /* S */
    size_t values;         /* k */
    unsigned parts;        /* p; 0: the values are multiples of exact_step already */
    double exact_step;     /* if parts is 0 */
    double least_step;     /* else: no finer, so that sums of many values fit integers */
};

enum dpf_status dpf_laplace_init(struct dpf_laplace *l,
                                 const struct dpf_laplace_query *query, double epsilon,
                                 struct dpf_error *e);
/* Add noise to `count` of the rounded sums. */
void dpf_laplace_add(const struct dpf_laplace *l, struct dpf_random *r, int64_t *sums,
                     size_t count);

#endif
