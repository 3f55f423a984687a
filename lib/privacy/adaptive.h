/* Laplace noise with a scale of its own for each value of a record.
 *
 * Claim. Let value j of a record lie in an interval of width w_j, be rounded to a
 * multiple of step_j, and get independent discrete Laplace noise of t_j steps. Then any
 * two records give any output with probabilities within a factor of e^epsilon, epsilon =
 * sum over j of D_j / t_j with D_j = floor(w_j / step_j) + 1: local differential privacy.
 * If at most c of the values can differ between two records, the c largest terms do.
 * Proof. Rounded values differ by at most w_j / step_j + 1 steps, and by an integer; the
 * noise on value j has probability proportional to exp(-|z| / t_j), so its factor is at
 * most exp(D_j / t_j), and the noise is independent. */
#ifndef DPF_PRIVACY_ADAPTIVE_H
#define DPF_PRIVACY_ADAPTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "random/secure.h"

struct dpf_adaptive {
    size_t values;
    double *step;     /* [values] */
    double *per_step; /* 1 / step */
    double *scale;    /* in steps */
    double *cost;     /* D_j / t_j, rounded up */
};

/* Noise of scale scales[j] on value j, which lies in an interval widths[j] wide. */
enum dpf_status dpf_adaptive_init(struct dpf_adaptive *a, size_t values,
                                  const double *widths, const double *scales,
                                  struct dpf_error *e);
void dpf_adaptive_release(struct dpf_adaptive *a);
/* What values [from, to) cost together, rounded up. */
double dpf_adaptive_epsilon(const struct dpf_adaptive *a, size_t from, size_t to);
/* How far two records can be apart there in L1, after rounding to the grid: sum D_j
 * step_j, rounded up. */
double dpf_adaptive_sensitivity(const struct dpf_adaptive *a, size_t from, size_t to);
/* Draw noise for so many records, one behind the other. */
void dpf_adaptive_draw(const struct dpf_adaptive *a, struct dpf_random *r, size_t records,
                       int64_t *noise);
/* Values [from, from + count) of the mechanism, and what bounds them. */
struct dpf_adaptive_part {
    size_t from, count;
    const double *lo, *hi; /* [count] */
};
/* Those values of a record, within their bounds and with their noise; how many had been
 * outside. */
uint64_t dpf_adaptive_add(const struct dpf_adaptive *a, const struct dpf_adaptive_part *p,
                          const int64_t *noise, const float *record, float *out);

/* Shares of a budget. AdLM, Eq. 16: in proportion to |relevance|, `values` in sum. */
void dpf_share_by_relevance(const double *relevance, size_t values, double *beta);
/* In proportion to |relevance|^(1/3), 1 in sum: with noise of scale width / epsilon_j,
 * this minimises sum R_j Var_j = sum 2 R_j / epsilon_j^2 for a given sum of epsilon_j (by
 * Lagrange: R_j / epsilon_j^3 is the same for all). */
void dpf_share_by_cube_root(const double *relevance, size_t values, double *share);

#endif
