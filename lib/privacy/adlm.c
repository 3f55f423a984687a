#include "privacy/adlm.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

double dpf_adlm_relevance_epsilon(double epsilon, bool paper)
{
    return paper ? epsilon / 2 : epsilon;
}

/* Algorithm 1, lines 9 to 13: (1/B) Lap(Delta_h0 / (beta_j epsilon_2)), Delta_h0 =
 * 2 d |h_0|. (Line 14 adds noise to the bias, too, which is a constant before training
 * and learned in it: it tells of nobody, and gets none here.) Or what each value costs,
 * in proportion to the cube root of its relevance. */
static void feature_scales(const struct dpf_adlm_plan *p, const double *widths,
                           double *scales)
{
    size_t values = p->bounds->values;
    double d = (double)values;
    for (size_t i = 0; i < values; i++)
        scales[i] = p->paper ? 1 : 1 / d;
    if (p->relevance && p->paper)
        dpf_share_by_relevance(p->relevance, values, scales);
    else if (p->relevance)
        dpf_share_by_cube_root(p->relevance, values, scales);
    for (size_t i = 0; i < values; i++) {
        double share = scales[i] * p->epsilon;
        scales[i] = p->paper ? 2 * d * p->neurons / (share * p->lot)
                             /* a hair more: the grid rounds widths up */
                             : fmax(widths[i], 1e-200) / share * (1 + 0x1p-10);
    }
}

/* Lines 17 to 19: (1/B) Lap(Delta_F / epsilon_3), Delta_F = M (|h_k| + |h_k|^2 / 4). The
 * constant of the expansion is no coefficient of anything that is learned, and is left
 * out. */
static double coefficient_scale(const struct dpf_adlm_plan *p)
{
    return (double)p->classes * (p->hidden + p->hidden * p->hidden / 4) /
           (p->label_epsilon * p->lot);
}

enum dpf_status dpf_adlm_init(struct dpf_adlm *a, const struct dpf_adlm_plan *plan,
                              struct dpf_error *e)
{
    size_t values = plan->bounds->values;
    *a = (struct dpf_adlm){.plan = *plan,
                           .noisy = values + (plan->paper ? 2 * plan->classes : 0)};
    double *widths = dpf_calloc(2 * a->noisy, sizeof *widths);
    double *scales = widths ? widths + a->noisy : NULL;
    if (!widths)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < values; i++)
        widths[i] = plan->bounds->hi[i] - plan->bounds->lo[i];
    feature_scales(plan, widths, scales);
    for (size_t i = values; i < a->noisy; i++) {
        widths[i] = 1; /* 1/2 - y; 1/8 is the same for all, but costs nothing more */
        scales[i] = coefficient_scale(plan);
    }
    enum dpf_status status = dpf_adaptive_init(&a->noise, a->noisy, widths, scales, e);
    if (status == DPF_OK && !plan->paper)
        status = dpf_response_init(&a->response, plan->label_epsilon, plan->classes, e);
    free(widths);
    return status;
}

void dpf_adlm_release(struct dpf_adlm *a)
{
    dpf_adaptive_release(&a->noise);
}

double dpf_adlm_feature_epsilon(const struct dpf_adlm *a)
{
    return dpf_adaptive_epsilon(&a->noise, 0, a->plan.bounds->values);
}

double dpf_adlm_label_epsilon(const struct dpf_adlm *a)
{
    size_t first = a->plan.bounds->values;
    /* another class changes two of the coefficients, which all cost the same */
    return a->plan.paper ? dpf_adaptive_epsilon(&a->noise, first, first + 2)
                         : a->response.epsilon;
}

float dpf_adlm_coefficient(bool is_truth, size_t k)
{
    return k ? 0.125F : is_truth ? -0.5F : 0.5F;
}

float dpf_adlm_noisy_coefficient(const struct dpf_adlm *a, size_t class_number,
                                 bool is_truth, size_t k, const int64_t *noise)
{
    static const double widest[2] = {-1, 1};
    size_t at = a->plan.bounds->values + 2 * class_number + k;
    const struct dpf_adaptive_part one = {at, 1, &widest[0], &widest[1]};
    float value = dpf_adlm_coefficient(is_truth, k);
    dpf_adaptive_add(&a->noise, &one, noise + at, &value, &value);
    return value;
}
