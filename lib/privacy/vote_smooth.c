#include "privacy/vote_smooth.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "privacy/grid.h"
#include "privacy/tradeoff.h"

#include "base/banned.h"

/* Of the claim: what rounding may add to the sensitivity, the least cost of a query, the
 * error of x. */
static const double ALLOWANCE = 2e-5, LEAST_COST = 1e-8, SLACK = 1e-5;
/* Steps of x: this many to a vote, unless that is too many in all. */
enum { STEPS_A_VOTE = 8, MOST_STEPS = 1 << 16 };

static double add_logs(double a, double b)
{
    double larger = fmax(a, b);
    return isinf(larger) ? larger : larger + log1p(exp(fmin(a, b) - larger));
}

static double scale_of(const struct dpf_vote_smooth *v)
{
    return M_SQRT2 * v->vote.noise;
}

/* ---------------------------------------------------------------------------- tables */

/* The cost of GNMax if another answer than the likeliest has at most this probability. */
static double answer_cost(double log_q, double variance, double order)
{
    double otherwise = order / variance;
    double m2 = sqrt(variance * fmax(-log_q, 0)), m1 = m2 + 1;
    double e1 = m1 / variance, e2 = m2 / variance;
    if (m2 <= 1 || m1 <= order || log_q + e2 >= 0)
        return otherwise;
    double a = log1p(-exp(log_q)) - log1p(-exp((log_q + e2) * (1 - 1 / m2)));
    double b = e1 - log_q / (m1 - 1);
    double first = (order - 1) * a, others = (order - 1) * b;
    if (log1p(-(order - 1) / (m1 - 1)) + others >= first)
        first += log1p(-exp(log_q)); /* the sum grows with q all the same */
    double moment = add_logs(first, log_q + others);
    return fmin(otherwise, moment / (order - 1) * (1 + 1e-9) + 1e-14);
}

/* For x from each step on; falling, whatever rounding does. */
static void fill_answers(struct dpf_vote_smooth *v)
{
    double variance = v->vote.noise * v->vote.noise, others = (double)v->classes - 1;
    for (size_t k = v->steps; k-- > 0;) {
        double x = (double)k * v->unit - 2 * SLACK;
        double log_q = log(others) + dpf_log_normal_cdf(-x / scale_of(v));
        double cost = answer_cost(log_q, variance, v->plan.order);
        v->answer[k] = k + 1 < v->steps ? fmax(cost, v->answer[k + 1]) : cost;
    }
}

/* ln p^a p'^(1-a) of two logs, upwards. */
static double one_result(double log_p, double other, double order)
{
    return order * log_p - (order - 1) * other -
           4e-15 * order * (log_p + other); /* logs are below 0 */
}

/* The test as it runs: on a grid, where the threshold is rounded up, and rounded noise
 * reaches it half a step before. */
static void fill_tests(struct dpf_vote_smooth *v)
{
    const double grid = 0x1p20, order = v->plan.order;
    double threshold = (ceil(v->vote.threshold * grid) - 0.5) / grid;
    for (size_t most = 0; most <= v->teachers; most++) {
        double at = ((double)most - threshold) / v->vote.threshold_noise;
        v->pass[most] = v->vote.kind == DPF_VOTE_CONFIDENT ? -INFINITY : 0;
        v->fail[most] = -INFINITY;
        for (int move = -1; v->vote.kind == DPF_VOTE_CONFIDENT && move <= 1; move++) {
            double to = at + move / v->vote.threshold_noise;
            v->pass[most] =
                fmax(v->pass[most],
                     one_result(dpf_log_normal_cdf(at), dpf_log_normal_cdf(to), order));
            v->fail[most] =
                fmax(v->fail[most],
                     one_result(dpf_log_normal_cdf(-at), dpf_log_normal_cdf(-to), order));
        }
    }
}

static enum dpf_status check(const struct dpf_vote_smooth_plan *plan,
                             const struct dpf_vote_plan *vote, struct dpf_error *e)
{
    if (vote->kind == DPF_VOTE_LNMAX)
        return dpf_fail(e, DPF_USAGE,
                        "the cost of 'lnmax' cannot be published, that of 'gnmax' and "
                        "'confident' can");
    if (!(plan->order >= 1.5 && plan->order <= 1000))
        return dpf_fail(e, DPF_USAGE,
                        "the order of a published cost lies from 1.5 to 1000, not at "
                        "'%g'",
                        plan->order);
    if (!(plan->smoothness >= 1e-3 && plan->smoothness <= 10))
        return dpf_fail(e, DPF_USAGE,
                        "the smoothness of a published cost lies from 0.001 to 10, not "
                        "at '%g'",
                        plan->smoothness);
    return DPF_OK;
}

/* The grid of x: beyond 12 t an answer costs less than is told apart. */
static void choose_steps(struct dpf_vote_smooth *v)
{
    double last = fmin((double)v->teachers, 12 * scale_of(v));
    v->unit = fmax(1. / STEPS_A_VOTE, last / (MOST_STEPS - 1));
    v->steps = (size_t)(last / v->unit) + 1;
    v->reach = (size_t)((2 + 2 * SLACK) / v->unit) + 1;
}

enum dpf_status dpf_vote_smooth_init(struct dpf_vote_smooth *v,
                                     const struct dpf_vote_smooth_plan *plan,
                                     const struct dpf_vote_plan *vote, size_t classes,
                                     size_t teachers, struct dpf_error *e)
{
    struct dpf_vote check_vote;
    *v = (struct dpf_vote_smooth){
        .plan = *plan, .vote = *vote, .classes = classes, .teachers = teachers};
    enum dpf_status status = dpf_vote_init(&check_vote, vote, classes, e);
    dpf_vote_release(&check_vote);
    if (status == DPF_OK)
        status = check(plan, vote, e);
    if (status == DPF_OK && (teachers < 1 || teachers > DPF_VOTE_MAX_TEACHERS))
        status = dpf_fail(e, DPF_USAGE, "there are 1 to %d teachers, not %zu",
                          (int)DPF_VOTE_MAX_TEACHERS, teachers);
    const struct dpf_gaussian_query query = {
        .sensitivity_l2 = plan->smoothness + ALLOWANCE, .values = 1, .parts = 1};
    if (status == DPF_OK)
        status = dpf_gaussian_init(&v->release, &query, plan->noise_multiplier, e);
    if (status != DPF_OK)
        return status;
    choose_steps(v);
    v->dearest = plan->order / (vote->noise * vote->noise);
    if (vote->kind == DPF_VOTE_CONFIDENT)
        v->dearest += plan->order / (2 * vote->threshold_noise * vote->threshold_noise);
    v->dearest = fmax(v->dearest, LEAST_COST);
    v->answer = dpf_calloc(v->steps, sizeof *v->answer);
    v->pass = dpf_calloc(2 * (teachers + 1), sizeof *v->pass);
    if (!v->answer || !v->pass)
        return dpf_fail_memory(e);
    v->fail = v->pass + teachers + 1;
    fill_answers(v);
    fill_tests(v);
    return DPF_OK;
}

void dpf_vote_smooth_free(struct dpf_vote_smooth *v)
{
    free(v->answer);
    free(v->pass);
    free(v->states);
    *v = (struct dpf_vote_smooth){.queries = 0};
}

/* ----------------------------------------------------------------------------- votes */

/* k: the last step that is not beyond x. */
static size_t step_of(const struct dpf_vote_smooth *v, const int32_t *counts, size_t best)
{
    double log_mean = -INFINITY, scale = scale_of(v);
    size_t low = 0, high = v->steps - 1;
    for (size_t i = 0; i < v->classes; i++)
        if (i != best)
            log_mean =
                add_logs(log_mean,
                         dpf_log_normal_cdf(-((double)counts[best] - counts[i]) / scale));
    log_mean -= log((double)v->classes - 1);
    while (low < high) {
        size_t middle = (low + high + 1) / 2;
        if (dpf_log_normal_cdf(-(double)middle * v->unit / scale) >= log_mean)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

enum dpf_status dpf_vote_smooth_add(struct dpf_vote_smooth *v, const int32_t *counts,
                                    struct dpf_error *e)
{
    size_t best = 0;
    for (size_t i = 1; i < v->classes; i++)
        best = counts[i] > counts[best] ? i : best;
    if (v->queries >= DPF_VOTE_SMOOTH_MAX_QUERIES)
        return dpf_fail(e, DPF_USAGE, "the cost of at most %d queries can be published",
                        (int)DPF_VOTE_SMOOTH_MAX_QUERIES);
    if (counts[best] < 0 || (size_t)counts[best] > v->teachers)
        return dpf_fail(e, DPF_BAD_STREAM, "there are %d votes of %zu teachers",
                        counts[best], v->teachers);
    if (!dpf_grow(&v->states, &v->capacity, v->count + 1, sizeof *v->states))
        return dpf_fail_memory(e);
    v->states[v->count++] =
        (struct dpf_vote_state){.step = (uint32_t)step_of(v, counts, best),
                                .most = (uint32_t)counts[best],
                                .queries = 1};
    v->queries++;
    return DPF_OK;
}

/* ----------------------------------------------------------------------------- bound */

static int compare(const void *a, const void *b)
{
    const struct dpf_vote_state *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return (x->most > y->most) - (x->most < y->most);
}

/* One entry for equal ones, in an order that does not depend on that of the queries. */
static void merge_states(struct dpf_vote_smooth *v)
{
    size_t kept = 0;
    if (v->count)
        qsort(v->states, v->count, sizeof *v->states, compare);
    for (size_t i = 0; i < v->count; i++)
        if (kept && compare(&v->states[kept - 1], &v->states[i]) == 0)
            v->states[kept - 1].queries += v->states[i].queries;
        else
            v->states[kept++] = v->states[i];
    v->count = kept;
}

/* Make the window of counts that can be reached one wider. */
static void widen(const struct dpf_vote_smooth *v, struct dpf_vote_state *s,
                  size_t distance)
{
    if (distance == 0)
        s->pass = s->fail = -INFINITY;
    if (s->most + distance <= v->teachers) {
        s->pass = fmax(s->pass, v->pass[s->most + distance]);
        s->fail = fmax(s->fail, v->fail[s->most + distance]);
    }
    if (s->most >= distance) {
        s->pass = fmax(s->pass, v->pass[s->most - distance]);
        s->fail = fmax(s->fail, v->fail[s->most - distance]);
    }
}

/* The cost of all queries; their windows have to be those of this distance. */
static double sum_costs(const struct dpf_vote_smooth *v, size_t distance)
{
    double total = 0, power = v->plan.order - 1;
    for (size_t i = 0; i < v->count; i++) {
        const struct dpf_vote_state *s = &v->states[i];
        size_t far = distance * v->reach;
        double answer = v->answer[s->step > far ? s->step - far : 0];
        double cost = add_logs(s->pass + power * answer, s->fail) / power;
        total += (double)s->queries * fmin(fmax(cost, LEAST_COST), v->dearest);
    }
    return total;
}

static double widen_all(struct dpf_vote_smooth *v, size_t distance)
{
    for (size_t i = 0; i < v->count; i++)
        widen(v, &v->states[i], distance);
    return sum_costs(v, distance);
}

double dpf_vote_smooth_reachable(struct dpf_vote_smooth *v, size_t distance)
{
    double sum = 0;
    merge_states(v);
    for (size_t d = 0; d <= distance; d++)
        sum = widen_all(v, d);
    return sum;
}

double dpf_vote_smooth_log_bound(struct dpf_vote_smooth *v)
{
    double b = v->plan.smoothness, bound = 0;
    double depth = fmin((double)v->teachers, ceil(log(v->dearest / LEAST_COST) / b) + 1);
    merge_states(v);
    for (size_t d = 0; (double)d <= depth; d++)
        bound = fmax(bound, exp(-b * (double)d) * widen_all(v, d));
    return log(bound);
}

/* --------------------------------------------------------------------------- release */

double dpf_vote_smooth_release(struct dpf_vote_smooth *v, struct dpf_random *r)
{
    int64_t y = dpf_grid_round(dpf_vote_smooth_log_bound(v), v->release.step);
    dpf_gaussian_add(&v->release, r, 1, &y, 1);
    return (double)y * v->release.step;
}

/* The z with Q(z) = failure, upwards. */
static double quantile(double failure)
{
    double low = 0, high = 40;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        if (dpf_log_normal_cdf(-middle) > log(failure))
            low = middle;
        else
            high = middle;
    }
    return high + 1e-9;
}

double dpf_vote_smooth_margin(const struct dpf_vote_smooth *v, double failure)
{
    return exp(quantile(failure) * v->release.noise_stddev + v->release.step +
               v->plan.smoothness + ALLOWANCE);
}

double dpf_vote_smooth_rdp(const struct dpf_vote_smooth *v, double y, double failure)
{
    return fmin(exp(y) * dpf_vote_smooth_margin(v, failure),
                (double)v->queries * v->dearest) *
           (1 + 1e-9);
}

double dpf_vote_smooth_epsilon(const struct dpf_vote_smooth *v, double y, double delta)
{
    double m = v->release.noise_multiplier, order = v->plan.order;
    return dpf_vote_smooth_rdp(v, y, delta / 2) + order / (2 * m * m) +
           log(2 / delta) / (order - 1);
}
