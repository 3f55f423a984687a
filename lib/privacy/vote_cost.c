#include "privacy/vote_cost.h"

#include <math.h>

#include "privacy/tradeoff.h"

#include "base/banned.h"

static size_t most_voted(const int32_t *counts, size_t classes)
{
    size_t best = 0;
    for (size_t i = 1; i < classes; i++)
        best = counts[i] > counts[best] ? i : best;
    return best;
}

static double add_logs(double a, double b)
{
    double larger = fmax(a, b);
    return isinf(larger) ? larger : larger + log1p(exp(fmin(a, b) - larger));
}

double dpf_vote_log_q(const struct dpf_vote_plan *plan, const int32_t *counts,
                      size_t classes)
{
    size_t best = most_voted(counts, classes);
    double total = -INFINITY;
    for (size_t i = 0; i < classes; i++) {
        double ahead = ((double)counts[best] - counts[i]) / plan->noise;
        if (i == best)
            continue;
        total = add_logs(total, plan->kind == DPF_VOTE_LNMAX
                                    ? log((2 + ahead) / 4) - ahead
                                    : dpf_log_normal_cdf(-ahead * M_SQRT1_2));
    }
    return fmin(total, 0);
}

double dpf_vote_log_pass(const struct dpf_vote_plan *plan, const int32_t *counts,
                         size_t classes)
{
    double most = (double)counts[most_voted(counts, classes)];
    return plan->kind == DPF_VOTE_CONFIDENT
               ? dpf_log_normal_cdf((most - plan->threshold) / plan->threshold_noise)
               : 0;
}

/* Theorem 6 of Papernot et al. 2018 for a mechanism whose cost at any order a is
 * a / variance; `otherwise` where it says nothing. */
static double gaussian_rdp(double log_q, double variance, double order)
{
    double otherwise = order / variance;
    double m2 = sqrt(variance * -log_q), m1 = m2 + 1;
    double e1 = m1 / variance, e2 = m2 / variance;
    if (!(log_q < 0) || m2 <= 1 || m1 <= order || log_q + e2 >= 0)
        return otherwise;
    if (isinf(log_q))
        return 0;
    /* q is in the range where the bound grows with it */
    double limit = (m2 - 1) * e2 - m2 * (log1p(1 / (m1 - 1)) + log1p(1 / (m2 - 1)));
    if (log_q > limit)
        return otherwise;
    double log_rest = log1p(-exp(log_q));
    double log_a = log_rest - log1p(-exp((log_q + e2) * (1 - 1 / m2)));
    double log_b = e1 - log_q / (m1 - 1);
    double moment = add_logs(log_rest + (order - 1) * log_a, log_q + (order - 1) * log_b);
    return fmin(otherwise, moment / (order - 1));
}

/* Theorem 3 of Papernot et al. 2017 for a mechanism that is e-DP. */
static double pure_rdp(double log_q, double e, double order)
{
    double otherwise = fmin(e, order * e * e / 2);
    if (!(log_q < 0) || log_q >= log(expm1(e) / expm1(2 * e)))
        return otherwise;
    if (isinf(log_q))
        return 0;
    double log_rest = log1p(-exp(log_q));
    double log_a = log_rest - log1p(-exp(log_q + e));
    double moment = add_logs(log_rest + (order - 1) * log_a, log_q + (order - 1) * e);
    return fmin(otherwise, moment / (order - 1));
}

double dpf_vote_answer_rdp(const struct dpf_vote_plan *plan, double log_q, double order)
{
    return plan->kind == DPF_VOTE_LNMAX
               ? pure_rdp(log_q, 2 / plan->noise, order)
               : gaussian_rdp(log_q, plan->noise * plan->noise, order);
}

double dpf_vote_test_rdp(const struct dpf_vote_plan *plan, double log_pass, double order)
{
    double fail = log_pass < 0 ? log1p(-exp(log_pass)) : -INFINITY;
    double variance = 2 * plan->threshold_noise * plan->threshold_noise;
    return plan->kind == DPF_VOTE_CONFIDENT
               ? gaussian_rdp(fmin(log_pass, fail), variance, order)
               : 0;
}

void dpf_vote_total_add(struct dpf_vote_total *t, const struct dpf_vote_plan *plan,
                        double log_q, double log_pass, double tests, double answers)
{
    for (int order = 2; order <= DPF_VOTE_TOP_ORDER; order++) {
        if (tests > 0)
            t->rdp[order] += tests * dpf_vote_test_rdp(plan, log_pass, order);
        t->rdp[order] += answers * dpf_vote_answer_rdp(plan, log_q, order);
    }
}

double dpf_vote_total_epsilon(const struct dpf_vote_total *t, double delta, int *order)
{
    double least = INFINITY;
    for (int a = 2; a <= DPF_VOTE_TOP_ORDER; a++) {
        double epsilon = t->rdp[a] + log(1 / delta) / (a - 1);
        if (epsilon < least && order)
            *order = a;
        least = fmin(least, epsilon);
    }
    return least;
}
