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

bool dpf_rdp_is_known(const struct dpf_spending_kind *kind)
{
    return kind->log_moment || (kind->masses && !kind->is_unbounded);
}

static double one_use(const struct source *from, size_t i, double alpha)
{
    const struct dpf_spending *s = &from->list[i];
    if (s->kind->log_moment)
        return s->kind->log_moment(s, alpha);
    struct dpf_privacy_loss reversed = from->losses[i];
    double there = dpf_privacy_loss_log_moment(&reversed, alpha - 1, NULL, NULL);
    dpf_privacy_loss_reverse(&reversed); /* in place, */
    double back = dpf_privacy_loss_log_moment(&reversed, alpha - 1, NULL, NULL);
    dpf_privacy_loss_reverse(&reversed); /* and back */
    return fmax(there, back);
}

static void source_release(struct source *s)
{
    for (size_t i = 0; s->losses && i < s->count; i++)
        dpf_privacy_loss_release(&s->losses[i]);
    free(s->losses);
}

/* The discretised pair leaves infinite losses out of its moments: it will do only where
 * losses have a largest. */
static enum dpf_status loss_init(struct dpf_privacy_loss *l, const struct dpf_spending *s,
                                 struct dpf_error *e)
{
    if (!dpf_rdp_is_known(s->kind))
        return dpf_fail(e, DPF_USAGE,
                        "no Renyi divergence is known for the mechanism '%s'",
                        s->kind->name);
    return s->kind->log_moment
               ? DPF_OK
               : dpf_privacy_loss_init(l, s, dpf_spending_scale(s) / 1000, 0, 1e-290, e);
}

static enum dpf_status source_init(struct source *s, const struct dpf_spending *list,
                                   size_t count, struct dpf_error *e)
{
    *s = (struct source){list, count, dpf_calloc(count + 1, sizeof *s->losses)};
    enum dpf_status status = s->losses ? DPF_OK : dpf_fail_memory(e);
    for (size_t i = 0; status == DPF_OK && i < count; i++)
        status = loss_init(&s->losses[i], &list[i], e);
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
