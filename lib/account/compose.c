#include "account/compose.h"

#include <math.h>

#include "account/pld.h"
#include "account/rdp.h"
#include "privacy/tradeoff.h"

#include "base/banned.h"

const char *const dpf_method_words[] = {"basic", "strong", "moments", "rdp",
                                        "pld",   "gdp",    "best",    NULL};

static bool has_gaussian(const struct dpf_spending *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].kind == DPF_SPEND_GAUSSIAN)
            return true;
    return false;
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
    if (s->kind != DPF_SPEND_GAUSSIAN)
        return dpf_spending_pure_epsilon(s);
    /* sampling makes d of the whole out of d / q of the sample */
    double full = dpf_gdp_epsilon(1 / s->parameter, fmin(delta / s->rate, 0.999999));
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

static double strong_formula(double e, double k, double slack)
{
    return e * sqrt(2 * k * log(1 / slack)) + k * e * expm1(e);
}

static double strong(const struct dpf_spending *s, double delta)
{
    double best = INFINITY, k = (double)s->count;
    for (int i = 1; i < 20; i++) {
        double slack = delta * (s->kind == DPF_SPEND_GAUSSIAN ? i / 20. : 1);
        double share = (delta - slack) / k;
        best = fmin(best, strong_formula(one_epsilon(s, share), k, slack));
    }
    return best * (1 + 1e-13);
}

double dpf_strong_linear_epsilon(const struct dpf_spending *s, double delta)
{
    double best = INFINITY, k = (double)s->count;
    if (s->kind != DPF_SPEND_GAUSSIAN)
        return NAN;
    for (int i = 1; i < 200; i++) {
        double slack = delta * i / 200, share = (delta - slack) / (k * s->rate);
        double full = sqrt(2 * log(1.25 / share)) / s->parameter;
        best = fmin(best, strong_formula(s->rate * full, k, slack));
    }
    return best;
}

/* ------------------------------------------------------------------------- methods */

const char *dpf_method_objection(enum dpf_method method, const struct dpf_spending *list,
                                 size_t count, double delta)
{
    bool gaussian = has_gaussian(list, count);
    if (method == DPF_METHOD_BEST)
        return !(delta > 0) && gaussian ? "Gaussian noise needs a delta above 0" : NULL;
    if (!(delta > 0) && (gaussian || method != DPF_METHOD_BASIC))
        return "it needs a delta above 0";
    if (method == DPF_METHOD_STRONG && count > 1)
        return "it is for one mechanism, used several times";
    for (size_t i = 0; method == DPF_METHOD_GDP && i < count; i++)
        if (list[i].kind != DPF_SPEND_GAUSSIAN || list[i].rate < 1)
            return "it is exact for Gaussians without sampling only";
    for (size_t i = 0; i < count; i++)
        if (method >= DPF_METHOD_MOMENTS && method <= DPF_METHOD_PLD &&
            list[i].kind != DPF_SPEND_GAUSSIAN &&
            dpf_spending_pure_epsilon(&list[i]) > 500)
            return "a single loss is above 500";
    return NULL;
}

static double gdp_mu(const struct dpf_spending *list, size_t count)
{
    double square = 0;
    for (size_t i = 0; i < count; i++)
        square += (double)list[i].count / (list[i].parameter * list[i].parameter);
    return sqrt(square) * (1 + 1e-15);
}

static enum dpf_status by_method(enum dpf_method method, const struct dpf_spending *list,
                                 size_t count, double delta, double *epsilon,
                                 struct dpf_error *e)
{
    switch (method) {
    case DPF_METHOD_BASIC:
        *epsilon = basic(list, count, delta);
        return DPF_OK;
    case DPF_METHOD_STRONG:
        *epsilon = strong(&list[0], delta);
        return DPF_OK;
    case DPF_METHOD_MOMENTS:
        return dpf_moments_epsilon(list, count, delta, epsilon, e);
    case DPF_METHOD_RDP:
        return dpf_rdp_epsilon(list, count, delta, epsilon, NULL, e);
    case DPF_METHOD_PLD:
        return dpf_pld_epsilon(list, count, delta, epsilon, e);
    case DPF_METHOD_GDP:
        *epsilon = dpf_gdp_epsilon(gdp_mu(list, count), delta);
        return DPF_OK;
    case DPF_METHOD_BEST: /* best() chooses one of the others */
        break;
    }
    return dpf_fail(e, DPF_USAGE, "there is no such method of composition");
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
            dpf_method_objection(order[i], list, count, delta) ||
            by_method(order[i], list, count, delta, &one, NULL) != DPF_OK)
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
    const char *objection = dpf_method_objection(method, list, count, delta);
    if (objection)
        return dpf_fail(e, DPF_USAGE, "method '%s' does not apply: %s",
                        dpf_method_words[method], objection);
    return method == DPF_METHOD_BEST ? best(list, count, delta, epsilon, used)
                                     : by_method(method, list, count, delta, epsilon, e);
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
    if (!has_gaussian(list, count) && (pure = basic(list, count, 0)) <= epsilon)
        return DPF_OK;
    if (!dpf_method_objection(DPF_METHOD_GDP, list, count, 0.5)) {
        *delta = dpf_gdp_delta(gdp_mu(list, count), epsilon);
        return DPF_OK;
    }
    return dpf_pld_delta(list, count, epsilon, delta, e);
}
