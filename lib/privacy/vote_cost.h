/* What an ensemble's answers cost by Renyi divergence, as the papers on PATE reckon it:
 * independent of the votes, and, where teachers agree, from the votes themselves.
 *
 * A cost that is computed from votes is as private as the votes. It may be shown to who
 * holds the teachers' records; it must not leave with the answers. privacy/vote_smooth.h
 * releases a bound of it.
 *
 * Claim. For a query with the histogram n of votes, most votes for class i*:
 * - Pr[GNMax with noise s does not answer i*] <= q = sum over i of erfc((n_i* - n_i) /
 * 2s) / 2 (Papernot et al. 2018, Proposition 7). Its cost at order a is at most a / s^2,
 * and by Theorem 6 there, with orders m1 = m2 + 1 and m2 = s sqrt(-ln q), where its
 *   conditions hold, at most ln((1 - q) A^(a-1) + q B^(a-1)) / (a - 1).
 * - Pr[LNMax with scale b does not answer i*] <= sum over i of (2 + d_i) / (4 e^d_i), d_i
 * = (n_i* - n_i) / b (Papernot et al. 2017, Lemma 4); its cost is at most e^2 a / 2 with
 * e = 2 / b, e, and the bound of Theorem 3 there.
 * - the test answers with probability Phi((n_i* - T) / s1); its cost is at most a / 2
 * s1^2, and the bound of Theorem 6 for the less likely of its two results. */
#ifndef DPF_PRIVACY_VOTE_COST_H
#define DPF_PRIVACY_VOTE_COST_H

#include <math.h>

#include "privacy/vote.h"

/* The log of the bound on the probability of another answer than that of most votes. */
double dpf_vote_log_q(const struct dpf_vote_plan *plan, const int32_t *counts,
                      size_t classes);
/* The log of the probability that the test is passed. */
double dpf_vote_log_pass(const struct dpf_vote_plan *plan, const int32_t *counts,
                         size_t classes);
/* The cost of one answer at an order above 1, given log q; with log q = 0 that of any
 * votes. */
double dpf_vote_answer_rdp(const struct dpf_vote_plan *plan, double log_q, double order);
/* The cost of one test, given the log of the probability that it is passed; with
 * DPF_VOTE_ANY_PASS that of any votes. */
#define DPF_VOTE_ANY_PASS (-M_LN2)
double dpf_vote_test_rdp(const struct dpf_vote_plan *plan, double log_pass, double order);

/* A sum of costs at every whole order from 2 to DPF_VOTE_TOP_ORDER. */
enum { DPF_VOTE_TOP_ORDER = 199 };
struct dpf_vote_total {
    double rdp[DPF_VOTE_TOP_ORDER + 1];
};
/* Add `tests` tests and `answers` answers of one histogram: whole numbers, or the
 * expected number of answers. */
void dpf_vote_total_add(struct dpf_vote_total *t, const struct dpf_vote_plan *plan,
                        double log_q, double log_pass, double tests, double answers);
/* min over orders of rdp + ln(1 / delta) / (order - 1) (Mironov 2017), as the papers
 * state it; *order, unless NULL, is the one. */
double dpf_vote_total_epsilon(const struct dpf_vote_total *t, double delta, int *order);

#endif
