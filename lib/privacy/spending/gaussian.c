/* Gaussian noise.
 *
 * Claim. N(1, s^2) and N(0, s^2), s = noise deviation / L2 sensitivity, dominate the
 * mechanism, and are dominated by it: a pair of neighbours that differ by the whole
 * sensitivity in one direction is this pair, and all others are less far apart. For k
 * records at once the sensitivity is k times as large.
 * With Poisson sampling it has at whole orders, log-sum-exp over j = 0..alpha,
 *   (alpha - 1) r = ln sum C(alpha, j) (1-q)^(alpha-j) q^j e^(j(j-1) / 2s^2)
 * (Mironov, Talwar and Zhang 2019), which is the larger of the two directions; between
 * them E[r^alpha], r = (1-q) + q e^((2x-1)/2s^2), x normal, is integrated by the
 * trapezoid rule, whose error for such functions falls exponentially in the number of
 * points. */
#include <math.h>

#include "privacy/spending.h"
#include "privacy/tradeoff.h"

#include "base/banned.h"

static double largest_loss(const struct dpf_spending *s, double tail)
{
    double z = sqrt(-2 * log(tail)); /* Phi(-z) < tail */
    return (z + 0.5 / s->parameter) / s->parameter;
}

static double loss_scale(const struct dpf_spending *s)
{
    return 1 / s->parameter;
}

/* Phi between two points, in units of the deviation, on the side where it is small. */
static double normal_mass(double from, double to)
{
    if (from > 0)
        return 0.5 * (erfc(from * M_SQRT1_2) - erfc(to * M_SQRT1_2));
    return 0.5 * (erfc(-to * M_SQRT1_2) - erfc(-from * M_SQRT1_2));
}

/* The loss is (2x - 1) / 2s^2 at x. */
static void masses(const struct dpf_spending *s, double from, double to, double *p,
                   double *q)
{
    double c = s->parameter, a = c * from + 0.5 / c, b = c * to + 0.5 / c;
    *q = normal_mass(a, b);
    *p = normal_mass(a - 1 / c, b - 1 / c);
}

static double epsilon(const struct dpf_spending *s, double delta)
{
    return dpf_gdp_epsilon(1 / s->parameter, delta);
}

static double variance(const struct dpf_spending *s)
{
    return s->parameter * s->parameter;
}

static void for_group(struct dpf_spending *s, double k)
{
    s->parameter /= k;
}

/* ------------------------------------------------------------------ Renyi divergence */

static double add_logs(double a, double b)
{
    double larger = fmax(a, b);
    return isinf(larger) ? larger : larger + log1p(exp(fmin(a, b) - larger));
}

/* ln(1 + e^x), upwards. */
static double log_one_plus(double x)
{
    return (x > 30 ? x + exp(-x) : log1p(exp(x))) * (1 + 1e-11);
}

/* ln(e^x - 1) for x > 0. */
static double log_less_one(double x)
{
    return x > 1 ? x + log1p(-exp(-x)) : log(expm1(x));
}

/* For whole alpha: ln(1 + sum over j of the binomial's weight times
 * (e^(j(j-1)/2s^2) - 1)). All terms are above 0, so that a small divergence is as exact
 * as a large one. */
static double moment_at_whole(double s, double q, int alpha)
{
    double total = -INFINITY;
    for (int j = 2; j <= alpha; j++) {
        double weight = lgamma(alpha + 1) - lgamma(j + 1) - lgamma(alpha - j + 1) +
                        (alpha - j) * log1p(-q) + j * log(q);
        total = add_logs(total, weight + log_less_one((double)j * (j - 1) / (2 * s * s)));
    }
    return log_one_plus(total);
}

/* The same for any alpha > 1, by the trapezoid rule on E[r^a - 1 - a(r - 1)], r being the
 * ratio of the pair, whose mean is 1. The singularities of the integrand lie s^2 pi off
 * the real line, and its normal factor has width s. */
static double moment_at_any(double s, double q, double alpha)
{
    double step = fmin(s / 12, s * s / 3), from = -40 * s, to = alpha + 40 * s;
    double total = -INFINITY;
    if ((to - from) / step > 1e5) /* next to no noise: whole orders have to do */
        return INFINITY;
    for (double x = from; x <= to; x += step) {
        double v = (2 * x - 1) / (2 * s * s);
        double ratio = v > 30 ? v + log(q + (1 - q) * exp(-v)) : log1p(q * expm1(v));
        double power = alpha * ratio;
        double excess = power < 30 ? expm1(power) - alpha * expm1(ratio) : 0;
        double term = power < 30 ? (excess > 0 ? log(excess) : -INFINITY) : power;
        total = add_logs(total, term - x * x / (2 * s * s));
    }
    return log_one_plus(total + log(step / (s * sqrt(2 * M_PI))));
}

static double log_moment(const struct dpf_spending *s, double alpha)
{
    if (s->rate == 1)
        return alpha * (alpha - 1) / (2 * s->parameter * s->parameter);
    return alpha == floor(alpha) ? moment_at_whole(s->parameter, s->rate, (int)alpha)
                                 : moment_at_any(s->parameter, s->rate, alpha);
}

const struct dpf_spending_kind dpf_spending_gaussian = {
    .name = "gaussian",
    .key = "noise_multiplier",
    .parameter = "noise multiplier",
    .least = 1e-4,
    .is_noise = true,
    .is_unbounded = true,
    .question = {"gaussian", "sigma=S[,q=Q][,steps=T]",
                 "Gaussian noise of S sensitivities, Poisson rate Q, T times; no stream "
                 "is read",
                 "sigma"},
    .largest_loss = largest_loss,
    .loss_scale = loss_scale,
    .masses = masses,
    .epsilon = epsilon,
    .log_moment = log_moment,
    .gaussian_variance = variance,
    .for_group = for_group,
};
