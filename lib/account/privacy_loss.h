/* The privacy loss of one use of a mechanism, as a distribution on a grid that never
 * makes it look smaller.
 *
 * The loss is ln(P(o) / Q(o)) for an output o drawn from P; the pair (P, Q) is that of
 * privacy/spending.h. The real line is cut into buckets with ends on the grid. What P and
 * Q have in a bucket is divided between its two ends so that both keep their mass.
 *
 * Claim. The discretised pair dominates the true one.
 * Proof. Within a bucket, the ratio P / Q lies between the ratios at the ends. Splitting
 * a mass with ratio r into masses with ratios r1 <= r <= r2 and the same totals is undone
 * by forgetting which of the two it was: the true pair is a post-processing of the
 * discretised one. (Doroshenko et al. 2022 call it connect-the-dots.) What lies beyond
 * the buckets is treated as an infinite loss. Reversing both pairs keeps the relation, so
 * one discretisation serves both directions. */
#ifndef DPF_ACCOUNT_PRIVACY_LOSS_H
#define DPF_ACCOUNT_PRIVACY_LOSS_H

#include "privacy/spending.h"

enum { DPF_LOSS_LIMIT = 600 }; /* e^600 is still a double */

/* One end of a bucket: the loss is `index` steps, with these masses of P and Q. */
struct dpf_privacy_loss_point {
    int64_t index;
    double p, q;
};

struct dpf_privacy_loss {
    double step;
    struct dpf_privacy_loss_point *points; /* by rising index */
    size_t count;
    double p_infinite; /* P's mass where Q has none */
    double q_infinite; /* Q's mass where P has none: the reversed pair's infinite loss */
};

/* Buckets are `step` wide near `centre` and grow to a hundredth of the distance from it.
 * What is cut off at the ends is less than `tail`. DPF_USAGE if a loss that is more
 * likely than that is above DPF_LOSS_LIMIT. */
enum dpf_status dpf_privacy_loss_init(struct dpf_privacy_loss *l,
                                      const struct dpf_spending *s, double step,
                                      double centre, double tail, struct dpf_error *e);
void dpf_privacy_loss_release(struct dpf_privacy_loss *l);
/* Exchange P and Q. */
void dpf_privacy_loss_reverse(struct dpf_privacy_loss *l);

/* ln of the sum of p e^(tilt loss) over the finite losses, with its first and second
 * derivative by `tilt`. For tilt = alpha - 1 >= 0 it is (alpha - 1) times an upper bound
 * on the Renyi divergence of order alpha, if no loss is infinite. */
double dpf_privacy_loss_log_moment(const struct dpf_privacy_loss *l, double tilt,
                                   double *mean, double *variance);

#endif
