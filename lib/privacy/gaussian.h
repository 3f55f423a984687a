/* The Gaussian mechanism on a grid.
 *
 * Claim. Let f take data sets to vectors of k reals with L2 sensitivity S under some
 * neighbouring relation, and let each of p partial sums of f be rounded to multiples of
 * `step` before they are added as integers. Then releasing
 *   step * (integers + round(N(0, (m S')^2) / step)),  S' = S + p sqrt(k) step,
 * is (1/m)-GDP under that relation, m being the noise multiplier.
 * Proof. Rounding moves each of k coordinates of each of p parts by at most step / 2, for
 * either neighbour: the rounded sums differ by at most S + 2 p sqrt(k) step / 2 = S' in
 * L2. For integers v, v + round(z) = round(v + z): the release is a function of the
 * integers plus continuous N(0, (m S' / step)^2) noise, whose sensitivity is S' / step,
 * so the claim is that of privacy/tradeoff.h and post-processing. random/noise.h draws
 * round(z) exactly. The multiplier and the deviation are doubles; the deviation is
 * rounded up. */
#ifndef DPF_PRIVACY_GAUSSIAN_H
#define DPF_PRIVACY_GAUSSIAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "random/secure.h"

struct dpf_gaussian {
    double noise_multiplier; /* m: deviation over sensitivity, all an accountant needs */
    double sensitivity_l2;   /* S', rounding included */
    double noise_stddev;     /* m S' */
    double step;             /* of the grid */
};

/* What is to be protected, all of it public. */
struct dpf_gaussian_query {
    double sensitivity_l2; /* S */
    size_t values;         /* k */
    unsigned parts;        /* p; 0: the values are multiples of exact_step already */
    double exact_step;     /* if parts is 0 */
    double least_step;     /* else: no finer, so that sums of many values fit integers */
};

/* DPF_USAGE for parameters that are no positive finite numbers, or so large that the grid
 * cannot hold them. */
enum dpf_status dpf_gaussian_init(struct dpf_gaussian *g,
                                  const struct dpf_gaussian_query *query,
                                  double noise_multiplier, struct dpf_error *e);
/* The same for one release that is to be (epsilon, delta)-DP. */
enum dpf_status dpf_gaussian_init_epsilon(struct dpf_gaussian *g,
                                          const struct dpf_gaussian_query *query,
                                          double epsilon, double delta,
                                          struct dpf_error *e);
/* Add noise to `count` of the rounded sums, each times its `share` of the deviation (1
 * unless the query's values were weighted: a value that was multiplied by w for the
 * sensitivity but is held without it has the share 1 / w). */
void dpf_gaussian_add(const struct dpf_gaussian *g, struct dpf_random *r, double share,
                      int64_t *sums, size_t count);

#endif
