/* Choosing one of several candidates by their scores.
 *
 * Scores are integers (multiples of a public step, privacy/grid.h) with sensitivity D: no
 * score changes by more than D between neighbours. Let t = 2 D / epsilon, or D / epsilon
 * if all scores change in the same direction ("monotone").
 *
 * Claim. Both are epsilon-DP.
 * - exponential: candidate i with probability proportional to exp(score_i / t) (McSherry
 *   and Talwar 2007). Drawn by rejection: a candidate uniformly, kept with probability
 *   exp(-(largest - score_i) / t). The result has exactly that distribution.
 * - noisy max: the candidate with the largest score plus exponential noise of scale t
 *   (Ding et al. 2021); never worse in expectation than the exponential mechanism. Drawn
 *   as permute-and-flip, which has the same distribution (McKenna and Sheldon 2020): in
 *   random order, the first that is kept with that probability.
 * A draw with probability e^(-k/t) for an integer k is floor(tE) >= k, exact by
 * random/noise.h. */
#ifndef DPF_PRIVACY_SELECTION_H
#define DPF_PRIVACY_SELECTION_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "random/secure.h"

struct dpf_selection {
    double epsilon;
    double scale; /* t */
};

enum dpf_status dpf_selection_init(struct dpf_selection *s, double epsilon,
                                   double sensitivity, bool monotone,
                                   struct dpf_error *e);
/* The number of the chosen one of `count` > 0 candidates. */
size_t dpf_select_exponential(const struct dpf_selection *s, struct dpf_random *r,
                              const int64_t *scores, size_t count);
size_t dpf_select_noisy_max(const struct dpf_selection *s, struct dpf_random *r,
                            const int64_t *scores, size_t count);

#endif
