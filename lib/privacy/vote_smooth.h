/* A release of what the votes of an ensemble have cost, by smooth sensitivity.
 *
 * Where teachers agree, GNMax costs less than its worst case (Papernot et al. 2018). That
 * cost is computed from the votes and is private; this releases an upper bound of it.
 *
 * Claim. Let D be all teachers' votes on N queries, and let neighbours differ in all that
 * one teacher says (replace-one). With the noise multiplier M, the order a and the
 * smoothness b,
 * (1) releasing y is (1/M)-GDP under replace-one;
 * (2) with probability 1 - f, u = dpf_vote_smooth_rdp(v, y, f) is an upper bound of the
 *   Renyi divergence of order a of all answers and tests, between D and each of its
 *   neighbours, in both directions;
 * (3) so, with probability 1 - f, answers and y together are, for D and each neighbour,
 *   (epsilon, d)-indistinguishable, epsilon = u + a / 2M^2 + ln(1/d) / (a - 1).
 * (2) and (3) are about the D at hand. They are no differential privacy, which is about
 * all D: that has the cost of vote.h and of (1), together.
 *
 * Proof of (1). x(n) of a histogram n with c classes is defined by
 * (c-1) Q(x/t) = sum over i of Q((n_max - n_i)/t), t = sqrt 2 s, s the
 * votes' noise, Q the normal tail. When one vote moves, each difference moves by at
 * most 2. Q(Q^-1(u) - 2/t) is concave in u (it is the power of a test between two
 * normals), so by Jensen's inequality x moves by at most 2 while the first class stays; x
 * is the maximum over classes of what it would be with that class first (q is the least
 * there), so by at most 2 in any case. Votes are described by k = floor(x / unit), which
 * is computed with an error of less than 1e-5 in x, so that k moves by at most `reach`,
 * and by their largest count, which moves by at most 1. cost_d(n) is the largest cost of
 * a query over all that can be reached by d moves, k within d reach and the count within
 * d, in public tables. It is at most cost_(d+1) of every neighbour. A_d is its sum over
 * queries, of each of which a replaced teacher moves one vote, and F = max over d of
 * e^(-b d) A_d. So F(D') <= e^b F(D): ln F has sensitivity b, and Gaussian noise is added
 * to it (privacy/gaussian.h). Distances end at `depth`: at the number of teachers, beyond
 * which A_d stays as it is, or where e^(-b d) times the largest possible A_d is below the
 * least possible F. Rounding: tables are doubles, fixed by public numbers, and maxima
 * over nested windows of them are exact. A cost is the logarithm of a sum of two
 * exponentials with an error below 1e-14 or 1e-14 of it; it is held above 1e-8, so its
 * relative error is below 1e-6, and that of products and sums below 1e-9. ALLOWANCE,
 * 2e-5, is added to b.
 *
 * Proof of (2). Let P and P' be the answers to one query on D and D', p = P(not the first
 * class) and e_a = a / s^2 the cost of GNMax at order a. For any m1 > order, m2 > 1:
 * - by Hoelder, sum over other classes of P^a P'^(1-a) <= p B^(a-1), B = e^(e_m1)
 *   p^(-1/(m1-1)), which grows with p;
 * - P'(other classes) <= w = (p e^(e_m2))^(1-1/m2), so the first class adds
 *   (1-p)^a (1-w)^(1-a) <= A^(a-1), A = (1-p) / (1-w). A grows with p: that is (with c =
 *   e^(e_m2 g), g = 1-1/m2) c (g p^(g-1) + (1-g) p^g) >= 1, and the sum in brackets is at
 *   least 1 by the inequality of weighted means.
 * So ln(A^(a-1) + p B^(a-1)) / (a-1) bounds the divergence for every bound of p, without
 * the conditions of the paper's Theorem 6. Its first term may have the factor 1 - p, as
 * in the paper, if h B^(a-1) >= A^(a-1) there, h = 1 - (a-1)/(m1-1): p B^(a-1) has the
 * derivative h B^(a-1), which falls with p while A grows, so the sum grows up to there.
 *   p is at most (c-1) Q((x - 1e-5)/t): counts are rounded to a grid, which moves a
 * difference by 2^-20 at most. With a test that is passed with probability r by D and r'
 * by D', the step's divergence is at most
 * ln(r^a r'^(1-a) e^((a-1) answer) + (1-r)^a (1-r')^(1-a)) / (a-1), r' at counts that
 * differ by at most 1. Steps add up by adaptive composition, and a query that is not
 * asked any more (--answers) adds nothing. So A_0, and with it F, is at least the
 * divergence; with D' first it is at most F(D') <= e^b F(D). Last, y lies below ln F by
 * more than the noise's quantile and a step of the grid with a probability below f.
 * Proof of (3). Adaptive composition, and Markov's inequality (Mironov 2017,
 * Proposition 3).
 *
 * The paper releases the cost itself with Gaussian noise in proportion to its smooth
 * sensitivity (Theorem 23). That is not done here: the cost that the theorem states, a
 * e^2b / s^2 + (a b - ln(1 - 2 a b) / 2) / (a - 1), is below the divergence that it
 * should bound. Take two neighbours whose smooth sensitivities are e^b and 1 and whose
 * values differ by 1: N(0, e^2b s^2) and N(1, s^2) have the divergence a / (2 s^2 (1 - (a
 * - 1) (e^2b - 1))) + ..., 44.5 and not 20.9 at a = 20, b = 0.02, s = 1
 * (tests/privacy/test_vote_smooth.c). */
#ifndef DPF_PRIVACY_VOTE_SMOOTH_H
#define DPF_PRIVACY_VOTE_SMOOTH_H

#include "privacy/vote.h"

/* All of it public. */
struct dpf_vote_smooth_plan {
    double order;      /* a, of the divergences */
    double smoothness; /* b: at most this much may the logarithm of the bound change */
    double noise_multiplier;
};

/* Queries that are described by the same numbers. */
struct dpf_vote_state {
    uint32_t step, most; /* k; the largest count */
    uint64_t queries;
    double pass, fail; /* logs, of what the test adds, over all that can be reached */
};

struct dpf_vote_smooth {
    struct dpf_vote_smooth_plan plan;
    struct dpf_vote_plan vote;
    size_t classes, teachers;
    struct dpf_gaussian release; /* of ln F */
    double unit, dearest;        /* of x; the largest cost of a query */
    size_t steps, reach;
    double *answer;      /* [steps]: the cost of an answer, falling */
    double *pass, *fail; /* [teachers + 1]: logs of what each result of a test adds */
    struct dpf_vote_state *states;
    size_t count, capacity;
    uint64_t queries;
};

enum { DPF_VOTE_SMOOTH_MAX_QUERIES = 1 << 22 };

/* DPF_USAGE for numbers that are out of range, and for other noise than Gaussian. */
enum dpf_status dpf_vote_smooth_init(struct dpf_vote_smooth *v,
                                     const struct dpf_vote_smooth_plan *plan,
                                     const struct dpf_vote_plan *vote, size_t classes,
                                     size_t teachers, struct dpf_error *e);
void dpf_vote_smooth_free(struct dpf_vote_smooth *v);

/* Take the votes on one more query, one of each teacher. */
enum dpf_status dpf_vote_smooth_add(struct dpf_vote_smooth *v, const int32_t *counts,
                                    struct dpf_error *e);
/* A_d, of all queries that were added: the most that they can cost after `distance`
 * teachers have changed; and ln F. Both are as private as the votes. */
double dpf_vote_smooth_reachable(struct dpf_vote_smooth *v, size_t distance);
double dpf_vote_smooth_log_bound(struct dpf_vote_smooth *v);
/* ln F with noise: y. */
double dpf_vote_smooth_release(struct dpf_vote_smooth *v, struct dpf_random *r);
/* From y alone: u, never above the cost of any votes; the epsilon of (3) with half of
 * delta as p and half as d. */
double dpf_vote_smooth_rdp(const struct dpf_vote_smooth *v, double y, double failure);
double dpf_vote_smooth_epsilon(const struct dpf_vote_smooth *v, double y, double delta);
/* How many times as large as F the bound u is at the median of the noise. */
double dpf_vote_smooth_margin(const struct dpf_vote_smooth *v, double failure);

#endif
