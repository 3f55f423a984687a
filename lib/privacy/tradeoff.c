#include "privacy/tradeoff.h"

#include <math.h>
#include <stdbool.h>

#include "base/banned.h"

double dpf_log_normal_cdf(double x)
{
    if (x > -37)
        return log(0.5 * erfc(-x * M_SQRT1_2));
    /* Mills' ratio; at -37 the series is good to 1e-13 of the value */
    double q = 1 / (x * x);
    double series = 1 - q * (1 - 3 * q * (1 - 5 * q * (1 - 7 * q * (1 - 9 * q))));
    return -0.5 * x * x - log(-x * sqrt(2 * M_PI)) + log(series);
}

/* By what share exp(dpf_log_normal_cdf(x)) and its product with e^epsilon may be wrong: a
 * relative error of the argument counts x^2 fold, one of the exponent |exponent| fold. */
static double error_of(double x, double epsilon)
{
    return 4e-15 + 1e-15 * fmin(x * x + epsilon, 1e6);
}

double dpf_gdp_delta(double mu, double epsilon)
{
    if (mu <= 0)
        return epsilon < 0 ? -expm1(epsilon) : 0;
    if (isinf(epsilon) && epsilon > 0)
        return isinf(mu) ? 1 : 0;
    if (isinf(mu))
        return 1;
    double a = -epsilon / mu + mu / 2, b = -epsilon / mu - mu / 2;
    double first = exp(dpf_log_normal_cdf(a));
    double second = exp(epsilon + dpf_log_normal_cdf(b));
    double delta = first - second;
    delta += error_of(a, 0) * first + error_of(b, fabs(epsilon)) * second + 0x1p-1000;
    return delta < 0 ? 0 : delta > 1 ? 1 : delta;
}

/* The least x in [lo, hi], to a relative 1e-13 upwards, from which on `good` holds. */
static double least(bool (*good)(double x, const double *c), const double *c, double lo,
                    double hi)
{
    for (int i = 0; i < 200 && hi - lo > 1e-13 * hi; i++) {
        double middle = lo + (hi - lo) / 2;
        if (good(middle, c))
            hi = middle;
        else
            lo = middle;
    }
    return hi;
}

static bool epsilon_suffices(double epsilon, const double *c)
{
    return dpf_gdp_delta(c[0], epsilon) <= c[1];
}

double dpf_gdp_epsilon(double mu, double delta)
{
    const double c[] = {mu, delta};
    double hi = 1;
    if (epsilon_suffices(0, c))
        return 0;
    while (!epsilon_suffices(hi, c) && hi < 1e300)
        hi *= 2;
    return hi < 1e300 ? least(epsilon_suffices, c, 0, hi) : INFINITY;
}

static bool noise_suffices(double noise, const double *c)
{
    return dpf_gdp_delta(1 / noise, c[0]) <= c[1];
}

double dpf_gdp_mu(double epsilon, double delta)
{
    const double c[] = {epsilon, delta};
    double lo = 0, hi = 1;
    while (!noise_suffices(hi, c) && hi < 1e300) {
        lo = hi;
        hi *= 2;
    }
    return 1 / least(noise_suffices, c, lo, hi);
}
