#include "account/compose.h"

#include <math.h>

#include "account/pld.h"
#include "account/rdp.h"
#include "privacy/tradeoff.h"

#include "base/banned.h"

/* The first mechanism whose losses have no largest, or NULL. */
static const struct dpf_spending *find_unbounded(const struct dpf_spending *list,
                                                 size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].kind->is_unbounded)
            return &list[i];
    return NULL;
}

static double all_uses(const struct dpf_spending *list, size_t count)
{
    double uses = 0;
    for (size_t i = 0; i < count; i++)
        uses += (double)list[i].count;
    return uses;
}

/* --------------------------------------------------------------------- basic, strong */

/* One use as (epsilon, delta): the epsilon, for its share of delta. */
static double one_epsilon(const struct dpf_spending *s, double delta)
{
    if (!s->kind->is_unbounded)
        return dpf_spending_pure_epsilon(s);
    /* sampling makes d of the whole out of d / q of the sample */
    double full = s->kind->epsilon(s, fmin(delta / s->rate, 0.999999));
    return full > 700 ? full : log1p(s->rate * expm1(full)) * (1 + 1e-13);
}

static double basic(const struct dpf_spending *list, size_t count, double delta)
{
    double total = 0, share = delta / all_uses(list, count);
    for (size_t i = 0; i < count; i++)
        total += (double)list[i].count * one_epsilon(&list[i], share);
    /* one use costs what it costs; products and sums are rounded */
    return all_uses(list, count) == 1 ? total : total * (1 + 1e-15 * (double)(count + 1));
}

static enum dpf_status basic_epsilon(const struct dpf_spending *list, size_t count,
                                     double delta, double *epsilon, struct dpf_error *e)
{
    (void)e;
    *epsilon = basic(list, count, delta);
    return DPF_OK;
}

static double strong_formula(double e, double k, double slack)
{
    return e * sqrt(2 * k * log(1 / slack)) + k * e * expm1(e);
}

static enum dpf_status strong_epsilon(const struct dpf_spending *s, size_t count,
                                      double delta, double *epsilon, struct dpf_error *e)
{
    double best = INFINITY, k = (double)s->count;
    (void)count, (void)e;
    for (int i = 1; i < 20; i++) {
        double slack = delta * (s->kind->is_unbounded ? i / 20. : 1);
        double share = (delta - slack) / k;
        best = fmin(best, strong_formula(one_epsilon(s, share), k, slack));
    }
    *epsilon = best * (1 + 1e-13);
    return DPF_OK;
}

double dpf_strong_linear_epsilon(const struct dpf_spending *s, double delta)
{
    double best = INFINITY, k = (double)s->count;
    if (s->kind != &dpf_spending_gaussian)
        return NAN;
    for (int i = 1; i < 200; i++) {
        double slack = delta * i / 200, share = (delta - slack) / (k * s->rate);
        double full = sqrt(2 * log(1.25 / share)) / s->parameter;
        best = fmin(best, strong_formula(s->rate * full, k, slack));
    }
    return best;
}

/* -------------------------------------------------------------------------- GDP, RDP */

static double gdp_mu(const struct dpf_spending *list, size_t count)
{
    double square = 0;
    for (size_t i = 0; i < count; i++)
        square += (double)list[i].count / list[i].kind->gaussian_variance(&list[i]);
    return sqrt(square) * (1 + 1e-15);
}

static enum dpf_status gdp_epsilon(const struct dpf_spending *list, size_t count,
                                   double delta, double *epsilon, struct dpf_error *e)
{
    (void)e;
    *epsilon = dpf_gdp_epsilon(gdp_mu(list, count), delta);
    return DPF_OK;
}

static enum dpf_status rdp_epsilon(const struct dpf_spending *list, size_t count,
                                   double delta, double *epsilon, struct dpf_error *e)
{
    return dpf_rdp_epsilon(list, count, delta, epsilon, NULL, e);
}

/* ---------------------------------------------------------------------- the methods */

static enum dpf_status check_known(const struct dpf_spending *s, bool known,
                                   const char *what, struct dpf_error *e)
{
    return known ? DPF_OK
                 : dpf_fail(e, DPF_USAGE, "no %s is known for the mechanism '%s'", what,
                            s->kind->name);
}

static enum dpf_status check_basic(const struct dpf_spending *s, struct dpf_error *e)
{
    return check_known(s, !s->kind->is_unbounded || s->kind->epsilon,
                       "epsilon of one use", e);
}

static enum dpf_status check_loss(const struct dpf_spending *s, struct dpf_error *e)
{
    return !s->kind->is_unbounded && dpf_spending_pure_epsilon(s) > 500
               ? dpf_fail(e, DPF_USAGE, "a single loss is above 500")
               : DPF_OK;
}

static enum dpf_status check_rdp(const struct dpf_spending *s, struct dpf_error *e)
{
    enum dpf_status status =
        check_known(s, dpf_rdp_is_known(s->kind), "Renyi divergence", e);
    return status == DPF_OK ? check_loss(s, e) : status;
}

static enum dpf_status check_pld(const struct dpf_spending *s, struct dpf_error *e)
{
    enum dpf_status status =
        check_known(s, s->kind->masses, "privacy loss distribution", e);
    return status == DPF_OK ? check_loss(s, e) : status;
}

static enum dpf_status check_gdp(const struct dpf_spending *s, struct dpf_error *e)
{
    return s->kind->gaussian_variance && s->rate == 1
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE,
                          "it is exact for Gaussians without sampling only");
}

const struct dpf_method_row dpf_methods[] = {
    [DPF_METHOD_BASIC] = {"basic", check_basic, basic_epsilon},
    [DPF_METHOD_STRONG] = {"strong", check_basic, strong_epsilon},
    [DPF_METHOD_MOMENTS] = {"moments", check_rdp, dpf_moments_epsilon},
    [DPF_METHOD_RDP] = {"rdp", check_rdp, rdp_epsilon},
    [DPF_METHOD_PLD] = {"pld", check_pld, dpf_pld_epsilon},
    [DPF_METHOD_GDP] = {"gdp", check_gdp, gdp_epsilon},
    [DPF_METHOD_BEST] = {"best", NULL, NULL}, /* best() chooses one of the others */
    {NULL, NULL, NULL},
};

static enum dpf_status check_delta(enum dpf_method method,
                                   const struct dpf_spending *list, size_t count,
                                   double delta, struct dpf_error *e)
{
    const struct dpf_spending *unbounded = find_unbounded(list, count);
    bool free_of_delta = method == DPF_METHOD_BASIC || method == DPF_METHOD_BEST;
    if (delta > 0 || (free_of_delta && !unbounded))
        return DPF_OK;
    return method == DPF_METHOD_BEST
               ? dpf_fail(e, DPF_USAGE, "the mechanism '%s' needs a delta above 0",
                          unbounded->kind->name)
               : dpf_fail(e, DPF_USAGE, "it needs a delta above 0");
}

enum dpf_status dpf_method_check(enum dpf_method method, const struct dpf_spending *list,
                                 size_t count, double delta, struct dpf_error *e)
{
    const struct dpf_method_row *row = &dpf_methods[method];
    enum dpf_status status = check_delta(method, list, count, delta, e);
    if (status == DPF_OK && method == DPF_METHOD_STRONG && count > 1)
        status = dpf_fail(e, DPF_USAGE, "it is for one mechanism, used several times");
    for (size_t i = 0; status == DPF_OK && row->check && i < count; i++)
        status = row->check(&list[i], e);
    return status == DPF_OK
               ? DPF_OK
               : dpf_error_prefix(e, status, "method '%s' does not apply", row->name);
}

/* The exact one where there is one; else PLD, which is the tightest but where it cannot
 * be had or has to be coarse (RDP then), or basic composition, which wins for what is
 * pure.
 */
static enum dpf_status best(const struct dpf_spending *list, size_t count, double delta,
                            double *epsilon, enum dpf_method *used)
{
    static const enum dpf_method order[] = {DPF_METHOD_GDP, DPF_METHOD_PLD,
                                            DPF_METHOD_RDP, DPF_METHOD_BASIC};
    bool coarse = all_uses(list, count) > 1e6; /* for PLD's grid */
    *epsilon = INFINITY;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        double one;
        if ((order[i] == DPF_METHOD_RDP && isfinite(*epsilon) && !coarse) ||
            dpf_method_check(order[i], list, count, delta, NULL) != DPF_OK ||
            dpf_methods[order[i]].epsilon(list, count, delta, &one, NULL) != DPF_OK)
            continue;
        if (one < *epsilon) {
            *epsilon = one;
            *used = order[i];
        }
        if (order[i] == DPF_METHOD_GDP && isfinite(one))
            break;
    }
    return DPF_OK;
}

static enum dpf_status check_list(const struct dpf_spending *list, size_t count,
                                  struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; status == DPF_OK && i < count; i++)
        status = dpf_spending_check(&list[i], e);
    return status;
}

enum dpf_status dpf_compose_epsilon(enum dpf_method method,
                                    const struct dpf_spending *list, size_t count,
                                    double delta, double *epsilon, enum dpf_method *used,
                                    struct dpf_error *e)
{
    enum dpf_method ignored;
    used = used ? used : &ignored;
    *used = method == DPF_METHOD_BEST ? DPF_METHOD_BASIC : method;
    *epsilon = 0;
    if (!(delta >= 0) || !(delta < 1))
        return dpf_fail(e, DPF_USAGE, "delta is at least 0 and below 1, not '%g'", delta);
    enum dpf_status status = check_list(list, count, e);
    if (status != DPF_OK || count == 0)
        return status;
    status = dpf_method_check(method, list, count, delta, e);
    if (status != DPF_OK)
        return status;
    return method == DPF_METHOD_BEST
               ? best(list, count, delta, epsilon, used)
               : dpf_methods[method].epsilon(list, count, delta, epsilon, e);
}

enum dpf_status dpf_compose_delta(const struct dpf_spending *list, size_t count,
                                  double epsilon, double *delta, struct dpf_error *e)
{
    double pure;
    *delta = 0;
    if (!(epsilon >= 0))
        return dpf_fail(e, DPF_USAGE, "epsilon is at least 0, not '%g'", epsilon);
    enum dpf_status status = check_list(list, count, e);
    if (status != DPF_OK || count == 0)
        return status;
    if (!find_unbounded(list, count) && (pure = basic(list, count, 0)) <= epsilon)
        return DPF_OK;
    if (dpf_method_check(DPF_METHOD_GDP, list, count, 0.5, NULL) == DPF_OK) {
        *delta = dpf_gdp_delta(gdp_mu(list, count), epsilon);
        return DPF_OK;
    }
    return dpf_pld_delta(list, count, epsilon, delta, e);
}
