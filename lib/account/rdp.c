#include "account/rdp.h"

#include <math.h>
#include <stdlib.h>

#include "account/privacy_loss.h"
#include "base/memory.h"

#include "base/banned.h"

/* Something that makes a divergence of any order quickly. */
struct source {
    const struct dpf_spending *list;
    size_t count;
    struct dpf_privacy_loss *losses; /* of what has no closed form */
};

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

/* (alpha - 1) times the divergence of one use, for whole alpha: ln(1 + sum over j of the
 * binomial's weight times (e^(j(j-1)/2s^2) - 1)). All terms are above 0, so that a small
 * divergence is as exact as a large one. */
static double gaussian_whole(double s, double q, int alpha)
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
static double gaussian_any(double s, double q, double alpha)
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

static double one_use(const struct source *from, size_t i, double alpha)
{
    const struct dpf_spending *s = &from->list[i];
    if (s->kind != DPF_SPEND_GAUSSIAN) {
        struct dpf_privacy_loss reversed = from->losses[i];
        double there = dpf_privacy_loss_log_moment(&reversed, alpha - 1, NULL, NULL);
        dpf_privacy_loss_reverse(&reversed); /* in place, */
        double back = dpf_privacy_loss_log_moment(&reversed, alpha - 1, NULL, NULL);
        dpf_privacy_loss_reverse(&reversed); /* and back */
        return fmax(there, back);
    }
    if (s->rate == 1)
        return alpha * (alpha - 1) / (2 * s->parameter * s->parameter);
    return alpha == floor(alpha) ? gaussian_whole(s->parameter, s->rate, (int)alpha)
                                 : gaussian_any(s->parameter, s->rate, alpha);
}

static void source_release(struct source *s)
{
    for (size_t i = 0; s->losses && i < s->count; i++)
        dpf_privacy_loss_release(&s->losses[i]);
    free(s->losses);
}

static enum dpf_status source_init(struct source *s, const struct dpf_spending *list,
                                   size_t count, struct dpf_error *e)
{
    *s = (struct source){list, count, dpf_calloc(count + 1, sizeof *s->losses)};
    enum dpf_status status = s->losses ? DPF_OK : dpf_fail_memory(e);
    for (size_t i = 0; status == DPF_OK && i < count; i++)
        if (list[i].kind != DPF_SPEND_GAUSSIAN)
            status =
                dpf_privacy_loss_init(&s->losses[i], &list[i],
                                      dpf_spending_scale(&list[i]) / 1000, 0, 1e-290, e);
    if (status != DPF_OK)
        source_release(s);
    return status;
}

static double divergence(const struct source *s, double alpha)
{
    double total = 0;
    for (size_t i = 0; i < s->count; i++)
        total += (double)s->list[i].count * fmax(one_use(s, i, alpha), 0);
    return total / (alpha - 1);
}

enum dpf_status dpf_rdp_divergence(const struct dpf_spending *list, size_t count,
                                   double alpha, double *result, struct dpf_error *e)
{
    struct source s;
    enum dpf_status status = source_init(&s, list, count, e);
    if (status != DPF_OK)
        return status;
    *result = divergence(&s, alpha);
    source_release(&s);
    return DPF_OK;
}

/* 1.1, 1.2 .. 10.9; then whole ones. */
static double fractional_order(int i)
{
    double alpha = 1 + (i + 1) / 10.;
    return fabs(alpha - nearbyint(alpha)) < 1e-9 ? nearbyint(alpha) : alpha;
}

enum { FRACTIONAL = 99 };

static double improved(double r, double alpha, double delta)
{
    return r + log1p(-1 / alpha) - (log(delta) + log(alpha)) / (alpha - 1);
}

static double plain(double r, double alpha, double delta)
{
    return r - log(delta) / (alpha - 1);
}

/* The best conversion over the fractional orders, 11 .. last, and `more` powers of two.
 */
static enum dpf_status search(const struct dpf_spending *list, size_t count, double delta,
                              int last, int more,
                              double (*convert)(double, double, double), double *epsilon,
                              double *order, struct dpf_error *e)
{
    struct source s;
    enum dpf_status status = source_init(&s, list, count, e);
    *epsilon = INFINITY;
    if (status != DPF_OK)
        return status;
    for (int i = 0; i < FRACTIONAL + last - 10 + more; i++) {
        int whole = i - FRACTIONAL + 11;
        double alpha = i < FRACTIONAL  ? fractional_order(i)
                       : whole <= last ? whole
                                       : ldexp(128, whole - last - 1);
        double one = convert(divergence(&s, alpha), alpha, delta);
        if (one < *epsilon && order)
            *order = alpha;
        *epsilon = fmin(*epsilon, one);
    }
    source_release(&s);
    *epsilon = fmax(*epsilon, 0) * (1 + 1e-12);
    return DPF_OK;
}

enum dpf_status dpf_rdp_epsilon(const struct dpf_spending *list, size_t count,
                                double delta, double *epsilon, double *order,
                                struct dpf_error *e)
{
    return search(list, count, delta, 63, 4, improved, epsilon, order, e);
}

enum dpf_status dpf_moments_epsilon(const struct dpf_spending *list, size_t count,
                                    double delta, double *epsilon, struct dpf_error *e)
{
    return search(list, count, delta, DPF_MOMENTS_MAX_ORDER, 0, plain, epsilon, NULL, e);
}
