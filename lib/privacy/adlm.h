/* The Adaptive Laplace Mechanism (AdLM, Phan et al. 2017) as far as it spends privacy:
 * the epsilon of released relevances, the scales of the noise on features and on the
 * coefficients of the loss, and what these scales cost. ILM is the same without
 * relevance.
 *
 * Claim (relevance). Let each record's relevances lie in declared intervals ([0,1] each,
 * as relevance-lrp makes them, by a network that does not depend on these records), and
 * let the sum over all records get Laplace noise for the L1 sensitivity S under
 * replace-one (privacy/record_bounds.h; d for [0,1]^d) at dpf_adlm_relevance_epsilon().
 * Then the sum, and the mean, is that epsilon-DP under replace-one.
 * Proof. privacy/laplace.h. Replacing a record does not change how many there are, so the
 * division by |D| is post-processing. The paper prints Delta_R = 2d/|D| for the mean, the
 * noise of half the epsilon: it is drawn as printed, claimed at epsilon, proven at half.
 *
 * Claim (features, paper; noise for each record by itself). Value j of a record is
 * clipped to [lo_j, hi_j], gets noise of scale 2 d |h_0| / (B beta_j e2) and is released
 * once; so are, for each of M classes, the coefficients 1/2 - y and 1/8 of the loss, with
 * scale M (|h_k| + |h_k|^2 / 4) / (B e3). This is local DP with
 *   dpf_adlm_feature_epsilon() + dpf_adlm_label_epsilon().
 * Proof. privacy/adaptive.h for each part: widths hi_j - lo_j, for all d values at once;
 * and for the coefficients: another class moves 1/2 - y by 1 for two classes and nothing
 * else (1/8 is the same for every record), so two terms of width 1 and one scale count.
 * Rounding to the grid is in the cost D_j / t_j. The paper's e2 and e3 are claimed: it
 * counts a lot's noise for the sum of its records, but a sum of B draws is not Laplace
 * noise of that scale, and the network reads each record. Where several records share one
 * draw, their differences leave without noise: nothing is proven.
 *
 * Claim (features, sound). Value j gets noise of scale (hi_j - lo_j) / (share_j e2), the
 * shares being 1 in sum; the class is told by M-ary randomised response at e3. This is
 * (e2 + e3)-local DP, as dpf_adlm_feature_epsilon() + dpf_adlm_label_epsilon() state it.
 * Proof. The same; without rounding the cost of value j is share_j e2, and the scale is
 * 2^-10 larger for what the grid adds. The stated cost is computed from the grid as it
 * is.
 *
 * Relevance, and so beta and the shares, is public: it is from public records, or it was
 * released and paid for. Clipping makes what is no number the middle of its interval. A
 * limit on noisy values is post-processing. */
#ifndef DPF_PRIVACY_ADLM_H
#define DPF_PRIVACY_ADLM_H

#include "privacy/adaptive.h"
#include "privacy/record_bounds.h"
#include "privacy/response.h"

/* What the noise on a sum of relevances is made for. */
double dpf_adlm_relevance_epsilon(double epsilon, bool paper);

/* All of it public. */
struct dpf_adlm_plan {
    const struct dpf_record_bounds *bounds; /* borrowed; a box */
    const double *relevance;                /* borrowed, of each value; NULL: ILM */
    size_t classes;                         /* M */
    double epsilon, label_epsilon;          /* e2, e3 */
    bool paper;
    double neurons; /* paper: |h_0| */
    double lot;     /* paper: B */
    double hidden;  /* paper: |h_k| */
};

struct dpf_adlm {
    struct dpf_adlm_plan plan;
    size_t noisy; /* values with noise: the features', then (paper) 2 M coefficients */
    struct dpf_adaptive noise;
    struct dpf_response response; /* sound */
};

enum dpf_status dpf_adlm_init(struct dpf_adlm *a, const struct dpf_adlm_plan *plan,
                              struct dpf_error *e);
void dpf_adlm_release(struct dpf_adlm *a);
/* What is proven of the features, and of the class. */
double dpf_adlm_feature_epsilon(const struct dpf_adlm *a);
double dpf_adlm_label_epsilon(const struct dpf_adlm *a);

/* The coefficients of the expansion of the logistic cross-entropy at 0, without noise:
 * 1/2 - y (k = 0) and 1/8 (k = 1) of a class. */
float dpf_adlm_coefficient(bool is_truth, size_t k);
/* The same with the noise that was drawn for a record (paper). */
float dpf_adlm_noisy_coefficient(const struct dpf_adlm *a, size_t class_number,
                                 bool is_truth, size_t k, const int64_t *noise);

#endif
