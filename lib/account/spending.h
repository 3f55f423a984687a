/* What a mechanism spends: the few numbers that decide its privacy, apart from what it
 * was used for. Accountants work on lists of these, all under one neighbouring relation.
 *
 * Claim. Each kind names a pair of distributions (P1, Q) that dominates the mechanism's
 * outputs on neighbours (Zhu, Dong and Wang 2022, Definition 7): for every epsilon the
 * hockey-stick divergence of the pair is at least that of the mechanism.
 * - gaussian: N(1, s^2) and N(0, s^2), s = noise deviation / L2 sensitivity. Exact.
 * - laplace: Lap(1, b) and Lap(0, b), b = scale / L1 sensitivity. Exact for continuous
 *   noise on one number. Not for the discrete Laplace, which has a little more mass at
 * its largest loss (1 / (1 + e^(-1/t)) instead of 1/2): perturb enters that as pure.
 * - response: M-ary randomised response of epsilon e. Exact.
 * - pure: any e-DP mechanism; randomised response of two answers dominates it (Kairouz,
 *   Oh and Viswanath 2015, Theorem 3.3 and its proof).
 * With Poisson sampling of rate q under add-remove, (1 - q) Q + q P1 and Q dominate
 * removal, and the reversed pair addition (Zhu, Dong and Wang 2022, Theorem 11). */
#ifndef DPF_ACCOUNT_SPENDING_H
#define DPF_ACCOUNT_SPENDING_H

#include "base/status.h"
#include "ledger/event.h"

/* DPF_USAGE names the number that is out of range. */
enum dpf_status dpf_spending_check(const struct dpf_spending *s, struct dpf_error *e);
/* The epsilon of one use without delta; infinity for a Gaussian. */
double dpf_spending_pure_epsilon(const struct dpf_spending *s);

#endif
