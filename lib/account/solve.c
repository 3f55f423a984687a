/* Inverses of the accountants. A cheap guess (Chernoff's bound on the same losses) does
 * the searching; the method itself is computed a few times, and what is returned was
 * checked with it. */
#include <math.h>

#include "account/compose.h"
#include "account/pld.h"

#include "base/banned.h"

enum variable { PARAMETER, COUNT, RATE };

struct problem {
    enum dpf_method method;
    struct dpf_spending *list;
    size_t count, which;
    enum variable variable;
    double delta;
    bool larger_is_private; /* the cost falls as the variable grows */
};

static void set(const struct problem *p, double x)
{
    struct dpf_spending *s = &p->list[p->which];
    if (p->variable == PARAMETER)
        s->parameter = x;
    else if (p->variable == RATE)
        s->rate = x;
    else
        s->count = (uint64_t)fmax(x, 1);
}

static double cost(const struct problem *p, double x, bool roughly)
{
    double epsilon = INFINITY;
    set(p, x);
    enum dpf_status status =
        roughly ? dpf_pld_epsilon_roughly(p->list, p->count, p->delta, &epsilon, NULL)
                : dpf_compose_epsilon(p->method, p->list, p->count, p->delta, &epsilon,
                                      NULL, NULL);
    return status == DPF_OK ? epsilon : INFINITY;
}

/* The last x on the private side of [lo, hi] at which the cost is within the target,
 * to the relative precision given, by halving the logarithm. Both ends were tried. */
static double halve(const struct problem *p, double inside, double outside,
                    double epsilon, double precision, bool roughly)
{
    for (int i = 0; i < 100 && fabs(log(outside / inside)) > precision; i++) {
        double middle = sqrt(inside * outside);
        if (p->variable == COUNT)
            middle = floor(middle);
        if (middle == inside || middle == outside)
            break;
        if (cost(p, middle, roughly) <= epsilon)
            inside = middle;
        else
            outside = middle;
    }
    return inside;
}

/* A guess: the rough cost is searched for the target times how much too large it is. */
static double guess_at(const struct problem *p, double epsilon, const double limits[2])
{
    double x, ratio = 1.25;
    double inside = p->larger_is_private ? limits[1] : limits[0];
    double outside = p->larger_is_private ? limits[0] : limits[1];
    x = halve(p, inside, outside, epsilon * ratio, 1e-3, true);
    double true_cost = cost(p, x, false), rough = cost(p, x, true);
    if (isfinite(true_cost) && true_cost > 0 && isfinite(rough))
        ratio = rough / true_cost;
    return halve(p, inside, outside, epsilon * ratio, 1e-5, true);
}

/* A point that was tried. */
struct trial {
    double x, cost;
};

static struct trial try_at(const struct problem *p, double x, const double limits[2])
{
    x = fmin(fmax(x, limits[0]), limits[1]);
    if (p->variable == COUNT)
        x = floor(x);
    return (struct trial){x, cost(p, x, false)};
}

/* From the guess towards the target by the slope in logarithms, until there is a trial on
 * either side; `step` is how far to go beyond. False if no x is private enough. */
static bool bracket(const struct problem *p, struct trial t, double epsilon,
                    const double limits[2], struct trial *inside, struct trial *outside)
{
    double factor = 1.002;
    bool have_inside = false, have_outside = false;
    *inside = *outside = t;
    for (int i = 0; i < 200; i++, factor *= factor < 4 ? factor : 1) {
        bool in = t.cost <= epsilon;
        have_inside = have_inside || in;
        have_outside = have_outside || !in;
        *(in ? inside : outside) = t;
        if (have_inside && have_outside)
            return true;
        double worst = p->larger_is_private ? limits[0] : limits[1];
        double safest = p->larger_is_private ? limits[1] : limits[0];
        if (t.x == (in ? worst : safest)) {
            *outside = t;
            return in;
        }
        /* cost goes about as 1/x for noise, as x for rates, as its root for counts */
        double power = p->variable == PARAMETER && p->larger_is_private ? -1
                       : p->variable == COUNT                           ? 2
                                                                        : 1;
        double ratio = isfinite(t.cost) && t.cost > 0 ? epsilon / t.cost : 0.01;
        double away = in == p->larger_is_private ? 1 / factor : factor;
        struct trial next = try_at(p, t.x * pow(ratio, power) * away, limits);
        if (next.x == t.x) /* whole numbers: one further */
            next = try_at(p, t.x + (in ? 1 : -1), limits);
        t = next;
    }
    return have_inside;
}

/* False position on logarithms, to one part in 100,000. A whole number is found when its
 * neighbour is on the other side, so neighbours are asked in turn. */
static double narrow(const struct problem *p, struct trial inside, struct trial outside,
                     double epsilon, const double limits[2])
{
    bool last_in = true;
    for (int i = 0; i < 60 && fabs(log(outside.x / inside.x)) > 1e-5; i++) {
        double a = log(inside.cost / epsilon), b = log(outside.cost / epsilon);
        double share = isfinite(a) && isfinite(b) && b > a ? -a / (b - a) : 0.5;
        share = i % 3 == 2 ? 0.5 : fmin(fmax(share, 0.02), 0.98);
        double x = inside.x * pow(outside.x / inside.x, share);
        if (p->variable == COUNT && i % 2 == 1)
            x = last_in ? inside.x + 1 : outside.x - 1;
        struct trial t = try_at(p, x, limits);
        if (t.x == inside.x || t.x == outside.x)
            t = try_at(p, (inside.x + outside.x) / 2, limits);
        if (t.x == inside.x || t.x == outside.x)
            break;
        last_in = t.cost <= epsilon;
        *(last_in ? &inside : &outside) = t;
    }
    return inside.x;
}

static enum dpf_status solve(struct problem *p, double epsilon, const double limits[2],
                             const char *what, struct dpf_error *e)
{
    if (!(epsilon > 0) || !isfinite(epsilon))
        return dpf_fail(e, DPF_USAGE, "epsilon is a positive number, not '%g'", epsilon);
    if (!(p->delta >= 0) || !(p->delta < 1))
        return dpf_fail(e, DPF_USAGE, "delta is at least 0 and below 1, not '%g'",
                        p->delta);
    set(p, p->variable == COUNT ? 1 : 0.5);
    for (size_t i = 0; i < p->count; i++) {
        enum dpf_status status = dpf_spending_check(&p->list[i], e);
        if (status != DPF_OK)
            return status;
    }
    enum dpf_status applies = dpf_method_check(p->method, p->list, p->count, p->delta, e);
    if (applies != DPF_OK)
        return applies;
    struct trial inside, outside;
    double x = p->delta > 0 ? guess_at(p, epsilon, limits) : sqrt(limits[0] * limits[1]);
    if (!bracket(p, try_at(p, x, limits), epsilon, limits, &inside, &outside))
        return dpf_fail(e, DPF_PRIVACY, "no %s brings the cost down to epsilon %g", what,
                        epsilon);
    set(p, narrow(p, inside, outside, epsilon, limits));
    return DPF_OK;
}

enum dpf_status dpf_solve_parameter(enum dpf_method method, struct dpf_spending *list,
                                    size_t count, size_t which, double epsilon,
                                    double delta, struct dpf_error *e)
{
    const double limits[2] = {0.02, 1e6};
    bool noise = list[which].kind && list[which].kind->is_noise; /* else refused */
    struct problem p = {method, list, count, which, PARAMETER, delta, noise};
    return solve(&p, epsilon, limits, noise ? "noise" : "epsilon of a use", e);
}

enum dpf_status dpf_solve_count(enum dpf_method method, struct dpf_spending *list,
                                size_t count, size_t which, double epsilon, double delta,
                                struct dpf_error *e)
{
    const double limits[2] = {1, 1e9};
    struct problem p = {method, list, count, which, COUNT, delta, false};
    return solve(&p, epsilon, limits, "number of steps", e);
}

enum dpf_status dpf_solve_rate(enum dpf_method method, struct dpf_spending *list,
                               size_t count, size_t which, double epsilon, double delta,
                               struct dpf_error *e)
{
    const double limits[2] = {1e-9, 1};
    struct problem p = {method, list, count, which, RATE, delta, false};
    return solve(&p, epsilon, limits, "sampling rate", e);
}
