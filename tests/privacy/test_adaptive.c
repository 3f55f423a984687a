/* Laplace noise with a scale for each value: what it costs against every pair of inputs
 * and outputs of a small grid, what its integers are distributed as, and how budgets are
 * shared out. */
#include "privacy/adaptive.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "privacy/grid.h"
#include "random/seeded.h"

#include "base/banned.h"

const char dpf_suite[] = "adaptive";

static const double z_level = 4.8916; /* two-sided normal, 1e-6 */

/* log of the probability of integer k under the discrete Laplace law of scale t. */
static double log_mass(double k, double t)
{
    double q = exp(-1 / t);
    return log1p(-q) - log1p(q) - fabs(k) / t;
}

/* The largest ratio of probabilities of one output over all inputs in an interval: inputs
 * on a fine mesh, outputs far to both sides. */
static double brute_force(double lo, double hi, double step, double t)
{
    double worst = 0;
    for (int i = 0; i <= 400; i++)
        for (int j = 0; j <= 400; j++) {
            double u = lo + (hi - lo) * i / 400, v = lo + (hi - lo) * j / 400;
            double a = rint(u / step), b = rint(v / step);
            for (int side = -1; side <= 1; side++) {
                double out = side * 1e7;
                worst = fmax(worst, log_mass(out - a, t) - log_mass(out - b, t));
            }
        }
    return worst;
}

static void test_cost(void)
{
    static const double widths[] = {1, 0.3, 2, 1, 1e-3, 255};
    static const double scales[] = {7, 0.01, 1e5, 0.5, 3, 100};
    struct dpf_adaptive a;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_adaptive_init(&a, 6, widths, scales, &e) == DPF_OK);
    double sum = 0;
    for (int j = 0; j < 6; j++) {
        /* the noise is of the scale asked for, the grid fine beside it and the value */
        CU_ASSERT(fabs(a.scale[j] * a.step[j] / scales[j] - 1) < 1e-12);
        CU_ASSERT(a.step[j] <= scales[j] * 0x1p-23);
        CU_ASSERT(a.cost[j] >= widths[j] / scales[j]);
        CU_ASSERT(a.cost[j] <= widths[j] / scales[j] * 1.001 + 1e-6);
        double offset = 0.37 * widths[j]; /* wherever the interval lies */
        CU_ASSERT(a.cost[j] >=
                  brute_force(-offset, widths[j] - offset, a.step[j], a.scale[j]) - 1e-9);
        sum += a.cost[j];
    }
    CU_ASSERT(dpf_adaptive_epsilon(&a, 0, 6) >= sum);
    CU_ASSERT(dpf_adaptive_epsilon(&a, 0, 6) <= sum * (1 + 1e-12));
    CU_ASSERT(dpf_adaptive_epsilon(&a, 2, 4) >= a.cost[2] + a.cost[3]);
    dpf_adaptive_release(&a);
    /* the lemma on coarse grids: where rounding counts, the bound is tight to a step */
    for (double step = 0.5; step > 0.01; step /= 2) {
        double bound = (floor(1 / step) + 1) * step;
        double found = 0;
        for (int k = 0; k < 16; k++)
            found = fmax(found, brute_force(k * 0.03, 1 + k * 0.03, step, 1 / step));
        CU_ASSERT(found <= bound + 1e-9);
        CU_ASSERT(found >= bound - step - 1e-9);
    }
}

static void test_refusals(void)
{
    struct dpf_adaptive a;
    struct dpf_error e = {0};
    static const double good = 1, bad[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        CU_ASSERT(dpf_adaptive_init(&a, 1, &good, &bad[i], &e) == DPF_USAGE);
        if (i > 0)
            CU_ASSERT(dpf_adaptive_init(&a, 1, &bad[i], &good, &e) == DPF_USAGE);
    }
}

/* Per value: mean 0, mean size t, and the share of values beyond t ln 2 is 1/2. */
static void test_noise(void)
{
    enum { VALUES = 5, RECORDS = 40000 };
    static const double widths[VALUES] = {1, 1, 1, 1, 1};
    static const double scales[VALUES] = {0.01, 1, 7, 223, 174222};
    static int64_t noise[VALUES * RECORDS];
    struct dpf_adaptive a;
    struct dpf_random r;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_adaptive_init(&a, VALUES, widths, scales, &e) == DPF_OK);
    dpf_random_init_insecure(&r, "adaptive", 1, 0);
    dpf_adaptive_draw(&a, &r, RECORDS, noise);
    for (int j = 0; j < VALUES; j++) {
        double sum = 0, size = 0, beyond = 0, crossed = 0;
        for (int i = 0; i < RECORDS; i++) {
            double v = (double)noise[i * VALUES + j] / a.scale[j];
            double other = (double)noise[i * VALUES + (j + 1) % VALUES];
            sum += v;
            size += fabs(v);
            beyond += fabs(v) > log(2);
            crossed += v * other > 0;
        }
        CU_ASSERT(fabs(sum) < z_level * sqrt(2.0 * RECORDS));
        CU_ASSERT(fabs(size - RECORDS) < z_level * sqrt(RECORDS));
        CU_ASSERT(fabs(beyond - RECORDS / 2) < z_level * sqrt(RECORDS / 4));
        CU_ASSERT(fabs(crossed - RECORDS / 2) < z_level * sqrt(RECORDS / 4));
    }
    /* a record and its noise, to the precision of floats; what lies outside is held */
    float record[VALUES] = {0.25F, 1, -3, 7, NAN}, out[VALUES];
    static const double held[VALUES] = {0.25, 1, 0, 1, 0.5};
    static const double lo[VALUES] = {0}, hi[VALUES] = {1, 1, 1, 1, 1};
    const struct dpf_adaptive_part all = {0, VALUES, lo, hi};
    CU_ASSERT(dpf_adaptive_add(&a, &all, noise, record, out) == 3);
    for (int j = 0; j < VALUES; j++) {
        double due = held[j] + (double)noise[j] * a.step[j];
        CU_ASSERT(fabs((double)out[j] - due) <= a.step[j] + 1e-6 * fabs(due));
    }
    dpf_adaptive_release(&a);
    dpf_random_release(&r);
}

static void test_shares(void)
{
    enum { D = 7 };
    static const double relevance[D] = {0.1, -0.4, 0, 2, 0.001, NAN, 0.5};
    double beta[D], share[D], sum = 0, total = 0;
    dpf_share_by_relevance(relevance, D, beta);
    for (int j = 0; j < D; j++)
        sum += beta[j];
    CU_ASSERT(fabs(sum - D) < 1e-9); /* Eq. 16: sum beta = d */
    CU_ASSERT(fabs(beta[1] / beta[0] - 4) < 1e-9);
    CU_ASSERT(beta[2] > 0 && beta[2] < 1e-5 && beta[5] == beta[2]);
    dpf_share_by_cube_root(relevance, D, share);
    for (int j = 0; j < D; j++)
        total += share[j];
    CU_ASSERT(fabs(total - 1) < 1e-12);
    /* no other split of the budget has a smaller sum of R_j / share_j^2 */
    double best = 0;
    for (int j = 0; j < D; j++)
        best += isnan(relevance[j]) ? 0 : fabs(relevance[j]) / (share[j] * share[j]);
    struct dpf_seeded random;
    dpf_seeded_init(&random, "shares", 0, 0);
    for (int trial = 0; trial < 2000; trial++) {
        double moved[D], all = 0, cost = 0;
        for (int j = 0; j < D; j++)
            all += moved[j] = share[j] * exp(0.3 * dpf_seeded_normal(&random));
        for (int j = 0; j < D; j++)
            cost += isnan(relevance[j]) ? 0 : fabs(relevance[j]) / pow(moved[j] / all, 2);
        CU_ASSERT(cost >= best * (1 - 1e-3)); /* the least share of 0 costs a hair */
    }
    static const double nothing[3] = {0, 0, 0};
    dpf_share_by_relevance(nothing, 3, beta);
    CU_ASSERT(beta[0] == 1 && beta[1] == 1 && beta[2] == 1);
}

const struct dpf_test dpf_tests[] = {
    {"the cost is that of the worst pair of inputs", test_cost},
    {"scales and widths that are none", test_refusals},
    {"each value has noise of its own scale", test_noise},
    {"budgets by relevance, and by its cube root, which is best", test_shares},
    {NULL, NULL},
};
