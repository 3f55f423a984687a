#include "privacy/response.h"

#include <math.h>

#include "base/banned.h"

enum dpf_status dpf_response_init(struct dpf_response *m, double epsilon,
                                  uint64_t choices, struct dpf_error *e)
{
    if (!(epsilon >= 1e-9) || !(epsilon <= 36))
        return dpf_fail(e, DPF_USAGE,
                        "the epsilon of randomised response is 1e-9 to 36, not '%g'",
                        epsilon);
    if (choices < 2)
        return dpf_fail(e, DPF_USAGE, "randomised response has at least 2 answers");
    double others = (double)(choices - 1);
    /* e^e / (e^e + M - 1), less a few units of its last place */
    double keep = 1 / (1 + others * exp(-epsilon)) * (1 - 0x1p-50);
    /* of this p, upwards: each logarithm is good to a few units of its last place */
    double a = log(keep), b = log(others), c = log1p(-keep);
    double actual = a + b - c + 1e-15 * (1 - a + b - c);
    *m = (struct dpf_response){choices, keep, fmin(actual, epsilon)};
    return DPF_OK;
}

uint64_t dpf_response_draw(const struct dpf_response *m, struct dpf_random *r,
                           uint64_t truth)
{
    if (dpf_bernoulli(r, m->keep))
        return truth;
    uint64_t other = dpf_random_below(r, m->choices - 1);
    return other + (other >= truth);
}

enum dpf_status dpf_bits_rates(enum dpf_bit_method method, double epsilon, uint64_t bits,
                               double alpha, struct dpf_bit_rates rates[2],
                               struct dpf_error *e)
{
    double t = epsilon / (double)(bits ? bits : 1);
    if (!(epsilon > 0) || !isfinite(epsilon) || bits < 1)
        return dpf_fail(e, DPF_USAGE, "epsilon is a positive number, not '%g'", epsilon);
    if ((method == DPF_BITS_MOUE || method == DPF_BITS_UER) &&
        (!(alpha > 0) || !isfinite(alpha)))
        return dpf_fail(e, DPF_USAGE, "alpha is a positive number, not '%g'", alpha);
    struct dpf_bit_rates even = {0}, odd;
    switch (method) {
    case DPF_BITS_RR:
        even = (struct dpf_bit_rates){1 / (1 + exp(-t)), 1 / (1 + exp(t))};
        break;
    case DPF_BITS_UE:
        even = (struct dpf_bit_rates){1 / (1 + exp(-epsilon / 2)),
                                      1 / (1 + exp(epsilon / 2))};
        break;
    case DPF_BITS_OUE:
        even = (struct dpf_bit_rates){0.5, 1 / (1 + exp(epsilon))};
        break;
    case DPF_BITS_MOUE:
        even = (struct dpf_bit_rates){1 / (1 + alpha), 1 / (1 + alpha * exp(t))};
        break;
    case DPF_BITS_UER:
        even = (struct dpf_bit_rates){alpha / (1 + alpha), 1 / (1 + alpha * exp(t))};
        break;
    }
    odd = even;
    if (method == DPF_BITS_UER)
        odd.one = 1 / (1 + alpha * alpha * alpha);
    rates[0] = even;
    rates[1] = odd;
    return DPF_OK;
}

double dpf_bit_epsilon(const struct dpf_bit_rates *rates)
{
    double p = rates->one, q = rates->zero;
    if (p == q)
        return 0;
    double ones = fabs(log(p / q)), zeros = fabs(log1p(-p) - log1p(-q));
    return fmax(ones, zeros) * (1 + 1e-14) + 1e-14;
}

double dpf_bits_epsilon(const struct dpf_bit_rates rates[2], uint64_t differ_even,
                        uint64_t differ_odd)
{
    return ((double)differ_even * dpf_bit_epsilon(&rates[0]) +
            (double)differ_odd * dpf_bit_epsilon(&rates[1])) *
           (1 + 1e-15);
}

double dpf_one_hot_epsilon(const struct dpf_bit_rates *rates)
{
    double p = rates->one, q = rates->zero;
    if (p == q)
        return 0;
    double ones = fabs(log(p / q)), zeros = fabs(log1p(-p) - log1p(-q));
    return (ones + zeros) * (1 + 1e-14) + 1e-14;
}

void dpf_bit_randomiser_init(struct dpf_bit_randomiser *m,
                             const struct dpf_bit_rates rates[2])
{
    const double p[2][2] = {{rates[0].zero, rates[0].one}, {rates[1].zero, rates[1].one}};
    m->rates[0] = rates[0];
    m->rates[1] = rates[1];
    dpf_bernoulli_choice_init(&m->choice, p);
}

void dpf_bits_randomise(const struct dpf_bit_randomiser *m, struct dpf_random *r,
                        uint64_t *words, size_t count)
{
    dpf_bernoulli_choose(&m->choice, r, words, count);
}
