/* The release of what votes cost, from outside: all small tables of votes with all their
 * neighbours, divergences by integration, the noise, an attempt to refute the cost of the
 * release, and the theorem that was not used.
 *
 * Rates are in doubt if Chernoff's bound gives what was seen a probability below 1e-6.
 * Seeds are fixed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "privacy/tradeoff.h"
#include "privacy/vote_cost.h"
#include "privacy/vote_smooth.h"

#include "base/banned.h"

enum { CLASSES = 4, TABLES = 1000 };

/* All histograms of so many votes among three or four classes. */
static int32_t tables[TABLES][CLASSES];
static int table_count;

static void list_tables(int teachers, int classes)
{
    table_count = 0;
    for (int a = 0; a <= teachers; a++)
        for (int b = 0; b <= teachers - a; b++)
            for (int c = 0; c <= teachers - a - b; c++) {
                int rest = teachers - a - b - c;
                if (classes == 3 && rest)
                    continue;
                CU_ASSERT_FATAL(table_count < TABLES);
                int32_t *t = tables[table_count++];
                t[0] = a, t[1] = b, t[2] = c, t[3] = rest;
            }
}

/* How many votes have to move to make one of the other. */
static int distance(int one, int other)
{
    int sum = 0;
    for (int i = 0; i < CLASSES; i++)
        sum += abs(tables[one][i] - tables[other][i]);
    return sum / 2;
}

static struct dpf_vote_smooth smooth_of(const struct dpf_vote_plan *vote, double order,
                                        double smoothness, int classes, int teachers)
{
    const struct dpf_vote_smooth_plan plan = {order, smoothness, 1};
    struct dpf_vote_smooth v;
    CU_ASSERT_FATAL(dpf_vote_smooth_init(&v, &plan, vote, (size_t)classes,
                                         (size_t)teachers, NULL) == DPF_OK);
    return v;
}

/* These tables, one a query, in place of all before. */
static void put(struct dpf_vote_smooth *v, const int *which, int queries)
{
    v->count = 0;
    v->queries = 0;
    for (int i = 0; i < queries; i++)
        CU_ASSERT_FATAL(dpf_vote_smooth_add(v, tables[which[i]], NULL) == DPF_OK);
}

static const struct dpf_vote_plan votes[] = {{DPF_VOTE_GNMAX, 0.6, 0, 0},
                                             {DPF_VOTE_GNMAX, 1.5, 0, 0},
                                             {DPF_VOTE_CONFIDENT, 1, 3.3, 1},
                                             {DPF_VOTE_CONFIDENT, 1.5, 8, 2},
                                             {DPF_VOTE_CONFIDENT, 0.8, 4, 0.4}};
enum { VOTES = sizeof votes / sizeof *votes };

/* ------------------------------------------------------------------------- neighbours
 */

/* One vote moves the number that describes a table by no more than is allowed for. */
static void test_moves(void)
{
    static const int sizes[][2] = {{3, 30}, {4, 12}}; /* classes, teachers */
    static const double noises[] = {0.5, 2, 5, 40};
    for (int s = 0; s < 2; s++)
        for (int n = 0; n < 4; n++) {
            const struct dpf_vote_plan vote = {DPF_VOTE_GNMAX, noises[n], 0, 0};
            struct dpf_vote_smooth v = smooth_of(&vote, 3, 0.1, sizes[s][0], sizes[s][1]);
            uint32_t step[TABLES], most = 0;
            list_tables(sizes[s][1], sizes[s][0]);
            for (int i = 0; i < table_count; i++) {
                put(&v, &i, 1);
                step[i] = v.states[0].step;
            }
            for (int i = 0; i < table_count; i++)
                for (int k = 0; k < table_count; k++)
                    if (step[i] > step[k] && distance(i, k) == 1)
                        most = step[i] - step[k] > most ? step[i] - step[k] : most;
            CU_ASSERT(most <= v.reach && most > v.reach / 2);
            dpf_vote_smooth_free(&v);
        }
}

/* Two queries of four teachers: all tables, and whatever a teacher may change. */
static void check_datasets(const struct dpf_vote_plan *vote, double smoothness)
{
    enum { TEACHERS = 4, QUERIES = 2, DATASETS = 225 };
    static double cost[DATASETS], bound[DATASETS], reachable[DATASETS][TEACHERS + 1];
    struct dpf_vote_smooth v = smooth_of(vote, 3, smoothness, 3, TEACHERS);
    double most = 0, slack = 1 + 1e-6;
    list_tables(TEACHERS, 3);
    CU_ASSERT_FATAL(table_count * table_count == DATASETS);
    for (int i = 0; i < DATASETS; i++) {
        const int which[QUERIES] = {i % table_count, i / table_count};
        put(&v, which, QUERIES);
        for (int d = 0; d <= TEACHERS; d++)
            reachable[i][d] = dpf_vote_smooth_reachable(&v, (size_t)d);
        cost[i] = reachable[i][0];
        bound[i] = dpf_vote_smooth_log_bound(&v);
    }
    for (int i = 0; i < DATASETS; i++)
        for (int k = 0; k < DATASETS; k++) {
            int one = distance(i % table_count, k % table_count);
            int other = distance(i / table_count, k / table_count);
            int d = one > other ? one : other;
            if (d == 1)
                most = fmax(most, fabs(bound[i] - bound[k]));
            CU_ASSERT(cost[k] <= reachable[i][d] * slack);
            CU_ASSERT(log(cost[k]) - d * smoothness <= bound[i] + 1e-6);
            /* and what is reachable of a neighbour in one move less */
            for (int far = 0; d == 1 && far < TEACHERS; far++)
                CU_ASSERT(reachable[k][far] <= reachable[i][far + 1] * slack);
        }
    CU_ASSERT(most <= v.release.sensitivity_l2);
    CU_ASSERT(most <= smoothness * slack + 1e-9);
    dpf_vote_smooth_free(&v);
}

static void test_datasets(void)
{
    static const double smoothness[] = {0.01, 0.1, 0.5, 2};
    for (int i = 0; i < VOTES; i++)
        for (int k = 0; k < 4; k++)
            check_datasets(&votes[i], smoothness[k]);
}

/* With many teachers the bound has to follow the slope, which is then its sensitivity. */
static void test_slope(void)
{
    const struct dpf_vote_plan vote = {DPF_VOTE_GNMAX, 40, 0, 0};
    struct dpf_vote_smooth v = smooth_of(&vote, 18, 0.01, 3, 250);
    double last = 0, most = 0;
    for (int32_t moved = 0; moved <= 125; moved++) {
        const int32_t counts[3] = {250 - moved, moved, 0};
        v.count = 0;
        v.queries = 0;
        CU_ASSERT_FATAL(dpf_vote_smooth_add(&v, counts, NULL) == DPF_OK);
        double bound = dpf_vote_smooth_log_bound(&v);
        most = moved ? fmax(most, fabs(bound - last)) : 0;
        last = bound;
    }
    CU_ASSERT(most <= 0.01 + 1e-6 && most > 0.0099);
    dpf_vote_smooth_free(&v);
}

/* ------------------------------------------------------------------------ divergences
 */

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* Pr[each class], the last entry that of no answer; by the trapezoid rule. */
static void chances(const struct dpf_vote_plan *vote, const int32_t *counts, int classes,
                    double *p)
{
    double most = 0, passes = 1;
    for (int i = 0; i < classes; i++)
        most = fmax(most, counts[i]);
    if (vote->kind == DPF_VOTE_CONFIDENT)
        passes = normal_cdf((most - vote->threshold) / vote->threshold_noise);
    for (int best = 0; best < classes; best++) {
        p[best] = 0;
        for (double z = -16; z <= 16; z += 0.01) {
            double at = exp(-z * z / 2) / sqrt(2 * M_PI) * 0.01;
            for (int i = 0; i < classes; i++)
                if (i != best)
                    at *= normal_cdf(z + (counts[best] - counts[i]) / vote->noise);
            p[best] += at * passes;
        }
    }
    p[classes] = vote->kind != DPF_VOTE_CONFIDENT
                     ? 0
                     : normal_cdf((vote->threshold - most) / vote->threshold_noise);
}

static double divergence(const double *p, const double *q, int results, double order)
{
    double sum = 0;
    for (int i = 0; i < results; i++)
        sum += p[i] > 0 ? p[i] * pow(p[i] / q[i], order - 1) : 0;
    return log(sum) / (order - 1);
}

/* What is said of a table covers what can be told of it and of any neighbour. */
static void check_divergences(const struct dpf_vote_plan *vote, int teachers,
                              double order, bool *gains)
{
    static double p[TABLES][CLASSES + 1];
    const double smoothness = 0.3;
    struct dpf_vote_smooth v = smooth_of(vote, order, smoothness, 3, teachers);
    list_tables(teachers, 3);
    for (int i = 0; i < table_count; i++)
        chances(vote, tables[i], 3, p[i]);
    for (int i = 0; i < table_count; i++) {
        put(&v, &i, 1);
        double cost = dpf_vote_smooth_reachable(&v, 0), tolerance = 1e-9;
        double bound = exp(dpf_vote_smooth_log_bound(&v) + smoothness);
        *gains = *gains || cost < v.dearest / 3;
        for (int k = 0; k < table_count; k++) {
            if (distance(i, k) != 1)
                continue;
            CU_ASSERT(divergence(p[i], p[k], 4, order) <= cost + tolerance);
            CU_ASSERT(divergence(p[k], p[i], 4, order) <= bound + tolerance);
        }
    }
    dpf_vote_smooth_free(&v);
}

static void test_divergences(void)
{
    static const double orders[] = {1.5, 2, 3, 6.5};
    bool gains[VOTES] = {false};
    for (int i = 0; i < VOTES; i++)
        for (int k = 0; k < 4; k++)
            check_divergences(&votes[i], 9, orders[k], &gains[i]);
    CU_ASSERT(gains[0] && gains[1]); /* votes that agree cost less than any */
}

/* Close to the paper's own figures, which are of one direction, and never below them. */
static void test_paper(void)
{
    static const int32_t counts[][10] = {{250},
                                         {230, 8, 5, 2, 1, 1, 1, 1, 1, 0},
                                         {140, 70, 20, 10, 5, 1, 1, 1, 1, 1},
                                         {60, 55, 50, 30, 20, 10, 10, 5, 5, 5}};
    static const double orders[] = {2, 8, 16, 32, 64};
    const struct dpf_vote_plan vote = {DPF_VOTE_GNMAX, 40, 0, 0};
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 5; k++) {
            struct dpf_vote_smooth v = smooth_of(&vote, orders[k], 0.1, 10, 250);
            CU_ASSERT_FATAL(dpf_vote_smooth_add(&v, counts[i], NULL) == DPF_OK);
            double cost = dpf_vote_smooth_reachable(&v, 0);
            double paper = dpf_vote_answer_rdp(
                &vote, dpf_vote_log_q(&vote, counts[i], 10), orders[k]);
            CU_ASSERT(cost >= paper * (1 - 1e-9) || cost >= v.dearest * (1 - 1e-9));
            CU_ASSERT(cost <= paper * 1.05);
            dpf_vote_smooth_free(&v);
        }
}

/* Theorem 23 of Papernot et al. 2018, for two neighbours that it is about: smooth
 * sensitivities e^b and 1, values that differ by 1. */
static void test_theorem_23(void)
{
    const double a = 20, b = 0.02, s = 1, wide = s * exp(b);
    double stated =
        a * exp(2 * b) / (s * s) + (a * b - 0.5 * log(1 - 2 * a * b)) / (a - 1);
    double sum = 0, step = 1e-3;
    for (double x = -200; x <= 200; x += step) {
        double p = -x * x / (2 * wide * wide) - log(wide);
        double q = -(x - 1) * (x - 1) / (2 * s * s) - log(s);
        sum += exp(a * p - (a - 1) * q - 700) / sqrt(2 * M_PI) * step;
    }
    double truth = (log(sum) + 700) / (a - 1);
    CU_ASSERT_DOUBLE_EQUAL(stated, 20.8801, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(truth, 44.5, 0.3);
    CU_ASSERT(truth > 2 * stated);
}

/* ------------------------------------------------------------------------------- noise
 */

static bool plausible(double k, double n, double p)
{
    double a = k > 0 ? k * log(k / (n * p)) : 0;
    double b = k < n ? (n - k) * (log((n - k) / n) - log1p(-p)) : 0;
    return a + b <= log(2 / 1e-6);
}

/* Thirty queries of ten teachers. */
static struct dpf_vote_smooth some_votes(double multiplier)
{
    static const struct dpf_vote_plan vote = {DPF_VOTE_CONFIDENT, 1.5, 6, 2};
    const struct dpf_vote_smooth_plan plan = {3, 0.2, multiplier};
    struct dpf_vote_smooth v;
    CU_ASSERT_FATAL(dpf_vote_smooth_init(&v, &plan, &vote, 3, 10, NULL) == DPF_OK);
    for (int32_t i = 0; i < 30; i++) {
        const int32_t counts[3] = {10 - i % 3, i % 3, 0};
        CU_ASSERT_FATAL(dpf_vote_smooth_add(&v, counts, NULL) == DPF_OK);
    }
    return v;
}

/* Of the size that was promised; and the figure that is stated is too small as seldom as
 * is promised. */
static void test_noise(void)
{
    enum { DRAWS = 100000 };
    struct dpf_vote_smooth v = some_votes(2);
    struct dpf_random r;
    double mean = 0, square = 0, low = 0, failure = 0.01;
    double centre = dpf_vote_smooth_log_bound(&v), sd = v.release.noise_stddev;
    CU_ASSERT(sd >= 2 * 0.2 && sd < 2 * 0.2 * 1.001);
    dpf_random_init_insecure(&r, "vote-smooth", 1, 0);
    for (int i = 0; i < DRAWS; i++) {
        double y = dpf_vote_smooth_release(&v, &r), z = (y - centre) / sd;
        mean += z / DRAWS;
        square += z * z / DRAWS;
        low += dpf_vote_smooth_rdp(&v, y, failure) < exp(centre + v.plan.smoothness);
    }
    CU_ASSERT(fabs(mean) < 4.9 / sqrt(DRAWS));
    CU_ASSERT(fabs(square - 1) < 4.9 * sqrt(2.0 / DRAWS));
    CU_ASSERT(plausible(low, DRAWS, failure));
    /* what votes can cost at most is never exceeded */
    CU_ASSERT(dpf_vote_smooth_rdp(&v, 100, 0.5) <= 30 * v.dearest * (1 + 1e-8));
    double epsilon = dpf_vote_smooth_epsilon(&v, centre, 1e-3);
    double parts = dpf_vote_smooth_rdp(&v, centre, 5e-4) + 3.0 / 8 + log(2000) / 2;
    CU_ASSERT_DOUBLE_EQUAL(epsilon, parts, 1e-9);
    dpf_random_release(&r);
    dpf_vote_smooth_free(&v);
}

/* What it is for: many answers on which teachers agree. At the median of the noise the
 * figure is below the cost of any votes, which is exact. */
static void test_agreement(void)
{
    enum { QUERIES = 1000 };
    const struct dpf_vote_plan vote = {DPF_VOTE_GNMAX, 40, 0, 0};
    const struct dpf_vote_smooth_plan plan = {8, 0.05, 3};
    struct dpf_vote_smooth v;
    CU_ASSERT_FATAL(dpf_vote_smooth_init(&v, &plan, &vote, 10, 250, NULL) == DPF_OK);
    for (int32_t i = 0; i < QUERIES; i++) {
        const int32_t counts[10] = {240 - i % 10, i % 10, 10};
        CU_ASSERT_FATAL(dpf_vote_smooth_add(&v, counts, NULL) == DPF_OK);
    }
    double y = dpf_vote_smooth_log_bound(&v);
    double any = dpf_gdp_epsilon(sqrt(2.0 * QUERIES) / 40, 1e-5);
    double found = dpf_vote_smooth_epsilon(&v, y, 1e-5);
    if (!(found < 0.8 * any))
        printf("    %g, against %g for any votes\n", found, any);
    CU_ASSERT(found < 0.8 * any);
    dpf_vote_smooth_free(&v);
}

/* Two worlds whose bounds differ by all that is allowed for: a threshold tells them apart
 * no better than noise of the stated size lets it, and better if it is halved. */
static double advantage(double multiplier, double share, double delta)
{
    enum { DRAWS = 100000 };
    const struct dpf_vote_plan vote = {DPF_VOTE_GNMAX, 40, 0, 0};
    const struct dpf_vote_smooth_plan plan = {18, 0.01, multiplier};
    static const int32_t counts[2][3] = {{235, 15, 0}, {234, 16, 0}};
    double seen[2] = {0}, limit = 0, error = 4.9 / sqrt(DRAWS);
    struct dpf_random r;
    dpf_random_init_insecure(&r, "vote-smooth", 2, (uint64_t)(share * 2));
    for (int world = 0; world < 2; world++) {
        struct dpf_vote_smooth v;
        CU_ASSERT_FATAL(dpf_vote_smooth_init(&v, &plan, &vote, 3, 250, NULL) == DPF_OK);
        CU_ASSERT_FATAL(dpf_vote_smooth_add(&v, counts[world], NULL) == DPF_OK);
        double bound = dpf_vote_smooth_log_bound(&v);
        v.release.noise_stddev *= share;
        CU_ASSERT(world == 0 || bound > limit - 3 * v.release.noise_stddev + 0.0099);
        limit = world ? limit : bound + 3 * v.release.noise_stddev;
        for (int i = 0; i < DRAWS; i++) {
            int64_t y = llrint(bound / v.release.step);
            dpf_gaussian_add(&v.release, &r, 1, &y, 1);
            seen[world] += (double)y * v.release.step > limit;
        }
        dpf_vote_smooth_free(&v);
    }
    dpf_random_release(&r);
    double p = seen[1] / DRAWS, q = seen[0] / DRAWS;
    p -= error * sqrt(p * (1 - p)) + 1e-4;
    q += error * sqrt(q * (1 - q)) + 1e-4;
    return log((p - delta) / q);
}

static void test_refutation(void)
{
    double delta = 1e-3, stated = dpf_gdp_epsilon(1 / 0.8, delta);
    CU_ASSERT(advantage(0.8, 1, delta) <= stated);
    CU_ASSERT(advantage(0.8, 0.5, delta) > stated);
}

static void test_refusals(void)
{
    static const struct dpf_vote_plan laplace = {DPF_VOTE_LNMAX, 1, 0, 0};
    static const struct dpf_vote_smooth_plan good = {10, 0.1, 2};
    static const struct dpf_vote_smooth_plan bad[] = {
        {1, 0.1, 2}, {NAN, 0.1, 2}, {INFINITY, 0.1, 2}, {10, 0, 2},     {10, NAN, 2},
        {10, 11, 2}, {10, 0.1, 0},  {10, 0.1, NAN},     {10, 0.1, -1.0}};
    struct dpf_vote_smooth v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT(dpf_vote_smooth_init(&v, &bad[i], votes, 3, 9, NULL) == DPF_USAGE);
        dpf_vote_smooth_free(&v);
    }
    CU_ASSERT(dpf_vote_smooth_init(&v, &good, &laplace, 3, 9, NULL) == DPF_USAGE);
    dpf_vote_smooth_free(&v);
    CU_ASSERT(dpf_vote_smooth_init(&v, &good, votes, 3, 0, NULL) == DPF_USAGE);
    dpf_vote_smooth_free(&v);
    CU_ASSERT(dpf_vote_smooth_init(&v, &good, votes, 3, 9, NULL) == DPF_OK);
    CU_ASSERT(dpf_vote_smooth_add(&v, (const int32_t[3]){10, 0, 0}, NULL) ==
              DPF_BAD_STREAM);
    dpf_vote_smooth_free(&v);
}

const char dpf_suite[] = "vote-smooth";
const struct dpf_test dpf_tests[] = {
    {"one vote moves a table's number by no more than its reach", test_moves},
    {"all tables of two queries, all neighbours", test_datasets},
    {"along the steepest tables the sensitivity is used up", test_slope},
    {"divergences by integration are below the bound", test_divergences},
    {"costs are close to the paper's and not below them", test_paper},
    {"the paper's cost of Gaussian noise by smooth sensitivity is too small",
     test_theorem_23},
    {"the noise, and how often the figure is too small", test_noise},
    {"where teachers agree the figure is smaller than that of any votes", test_agreement},
    {"the cost of the release is not refuted; with half of the noise it is",
     test_refutation},
    {"impossible orders, smoothness and noise are refused", test_refusals},
    {NULL, NULL},
};
