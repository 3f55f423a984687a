/* How much a person moves another, from what both did: what stands in place of the TaCPP
 * model in the behaviour model of pCDBN (Phan et al. 2017, Eq. 25 and 26).
 *
 * psi_t(v, u) is the share of the times at which v rose that were followed by a rise of
 * u: of the last N points s up to t, those with a rise of v at s - 1 are counted in
 * `rises`, those of them with a rise of u at s in `followed`, and
 *     psi = (followed + 1) / (rises + 2),
 * Laplace's rule of succession: 1/2 where v never rose, never 0 or 1. The influence on u
 * is the mean of psi over her friends, 1/2 if she has none. */
#ifndef DPF_DATA_INFLUENCE_H
#define DPF_DATA_INFLUENCE_H

#include <stdint.h>

static inline double dpf_influence_psi(uint64_t followed, uint64_t rises)
{
    return ((double)followed + 1) / ((double)rises + 2);
}

#endif
