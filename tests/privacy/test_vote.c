/* Votes of teachers from outside: published and independently computed costs, the
 * probabilities of noisy maxima and of the test by integration against draws, what one
 * teacher can change, and an attempt to refute the stated cost, which has to catch noise
 * that was halved.
 *
 * A rate is in doubt if Chernoff's bound gives what was seen a probability below 1e-6.
 * Seeds are fixed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "privacy/tradeoff.h"
#include "privacy/vote_cost.h"

#include "base/banned.h"

#if defined(__SANITIZE_ADDRESS__)
enum { DRAWS = 60000, FEWER = 1 };
#else
enum { DRAWS = 1000000, FEWER = 5 };
#endif

enum { CLASSES = 10, KINDS = 4, ORDERS = 7 };
static const int32_t histograms[KINDS][CLASSES] = {{250},
                                                   {230, 8, 5, 2, 1, 1, 1, 1, 1, 0},
                                                   {140, 70, 20, 10, 5, 1, 1, 1, 1, 1},
                                                   {60, 55, 50, 30, 20, 10, 10, 5, 5, 5}};
static const double orders[ORDERS] = {2, 4, 8, 16, 32, 64, 128};
static const struct dpf_vote_plan confident = {DPF_VOTE_CONFIDENT, 40, 200, 150};
static const struct dpf_vote_plan laplace = {DPF_VOTE_LNMAX, 20, 0, 0};

static bool near(double a, double b, double tolerance)
{
    bool good = fabs(a - b) <= tolerance * fabs(b);
    if (!good)
        printf("    %.10g, not %.10g\n", a, b);
    return good;
}

/* ------------------------------------------------------------------------------ costs */

static void check_costs(const struct dpf_vote_plan *plan, int histogram, double log_q,
                        const double rdp[ORDERS])
{
    double q = dpf_vote_log_q(plan, histograms[histogram], CLASSES);
    CU_ASSERT(near(q, log_q, 1e-6));
    for (int i = 0; i < ORDERS; i++)
        CU_ASSERT(near(dpf_vote_answer_rdp(plan, q, orders[i]), rdp[i], 1e-6));
}

/* Figures of an independent implementation. */
static void test_costs(void)
{
    static const double unanimous[] = {1.5273573e-5, 1.6669897e-5, 2.0589133e-5,
                                       3.6813507e-5, 2.0345499e-4, 1.0933692e-2,
                                       0.08};
    static const double strong[] = {8.0067797e-5, 8.6628634e-5, 1.0444321e-4,
                                    1.7283734e-4, 7.5537621e-4, 1.8966193e-2,
                                    0.08};
    static const double weak[] = {0.00125, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08};
    static const double wide[] = {2e-4, 4e-4, 8e-4, 1.6e-3, 3.2e-3, 6.4e-3, 1.28e-2};
    static const double by_laplace[] = {2.557363e-5,  2.6964985e-5, 3.0392052e-5,
                                        4.0996326e-5, 9.5785568e-5, 1.0278109e-3,
                                        2.921182e-2};
    static const double weak_laplace[] = {0.01,        0.013770185, 0.015103391,
                                          0.018729444, 0.030385899, 0.056771054,
                                          0.078227181};
    static const double passes[KINDS] = {-0.4611490909, -0.5460043537, -1.065434049,
                                         -1.741119903};
    struct dpf_vote_plan noisy = {DPF_VOTE_GNMAX, 100, 0, 0};
    check_costs(&confident, 0, -10.01922829, unanimous);
    check_costs(&confident, 1, -8.258348776, strong);
    check_costs(&confident, 2, -1.719254276, weak);
    check_costs(&laplace, 0, -9.014921134, by_laplace);
    check_costs(&laplace, 2, -2.765259728, weak_laplace);
    CU_ASSERT(near(dpf_vote_log_q(&laplace, histograms[1], CLASSES), -7.976854109, 1e-6));
    CU_ASSERT(near(dpf_vote_log_q(&noisy, histograms[0], CLASSES), -1.0586, 1e-4));
    for (int k = 0; k < KINDS; k++) {
        double q = dpf_vote_log_q(&noisy, histograms[k], CLASSES);
        double pass = dpf_vote_log_pass(&confident, histograms[k], CLASSES);
        CU_ASSERT(near(pass, passes[k], 1e-6));
        for (int i = 0; i < ORDERS; i++) {
            CU_ASSERT(near(dpf_vote_answer_rdp(&noisy, q, orders[i]), wide[i], 1e-6));
            CU_ASSERT(near(dpf_vote_test_rdp(&confident, pass, orders[i]),
                           orders[i] / (2.0 * 150 * 150), 1e-6));
        }
    }
    for (int i = 0; i < ORDERS; i++) { /* whatever the votes are */
        CU_ASSERT(near(dpf_vote_answer_rdp(&noisy, 0, orders[i]), wide[i], 1e-12));
        CU_ASSERT(near(dpf_vote_test_rdp(&confident, DPF_VOTE_ANY_PASS, orders[i]),
                       orders[i] / (2.0 * 150 * 150), 1e-12));
    }
}

/* 300 queries whose votes are spread more and more. */
static void test_run(void)
{
    struct dpf_vote_total total = {.rdp = {0}};
    double answers = 0;
    int order = 0;
    for (int i = 0; i < 300; i++) {
        int32_t counts[CLASSES] = {250 - 3 * (i % 60)};
        int32_t rest = 250 - counts[0];
        for (int k = 1; k < CLASSES; k++)
            counts[k] = rest / 9;
        counts[1] += rest % 9;
        double pass = dpf_vote_log_pass(&confident, counts, CLASSES);
        dpf_vote_total_add(&total, &confident,
                           dpf_vote_log_q(&confident, counts, CLASSES), pass, 1,
                           exp(pass));
        answers += exp(pass);
    }
    CU_ASSERT(near(dpf_vote_total_epsilon(&total, 1e-5, &order), 1.43546008, 1e-6));
    CU_ASSERT(order == 18);
    CU_ASSERT(near(answers, 121.308, 1e-5));
}

/* ---------------------------------------------------------------------- probabilities */

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

static double laplace_cdf(double x)
{
    return x < 0 ? 0.5 * exp(x) : 1 - 0.5 * exp(-x);
}

/* Pr[class `best` has the most], by the trapezoid rule over its own noise. */
static double chance(const struct dpf_vote_plan *plan, const int32_t *counts, int classes,
                     int best)
{
    bool normal = plan->kind != DPF_VOTE_LNMAX;
    double total = 0, step = normal ? 0.002 : 0.0005, reach = normal ? 9 : 30;
    for (double z = -reach; z <= reach; z += step) {
        double p = normal ? exp(-z * z / 2) / sqrt(2 * M_PI) : 0.5 * exp(-fabs(z));
        for (int i = 0; i < classes; i++) {
            double ahead = z + (counts[best] - counts[i]) / plan->noise;
            if (i != best)
                p *= normal ? normal_cdf(ahead) : laplace_cdf(ahead);
        }
        total += p * step;
    }
    return total;
}

static bool plausible(double k, double n, double p)
{
    double a = k > 0 ? k * log(k / (n * p)) : 0;
    double b = k < n ? (n - k) * (log((n - k) / n) - log1p(-p)) : 0;
    bool good = a + b <= log(2 / 1e-6);
    if (!good)
        printf("    %g of %g, not at a rate of %g\n", k, n, p);
    return good;
}

static void test_chances(void)
{
    static const int32_t tables[][4] = {{3, 1, 0, 0}, {2, 2, 1, 0}};
    static const struct dpf_vote_plan plans[] = {{DPF_VOTE_GNMAX, 1.5, 0, 0},
                                                 {DPF_VOTE_GNMAX, 4, 0, 0},
                                                 {DPF_VOTE_LNMAX, 2, 0, 0}};
    struct dpf_error e = {0};
    struct dpf_random r;
    dpf_random_init_insecure(&r, "test-vote", 1, 0);
    for (size_t p = 0; p < sizeof plans / sizeof *plans; p++)
        for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
            struct dpf_vote v;
            double seen[4] = {0}, sum = 0;
            CU_ASSERT_FATAL(dpf_vote_init(&v, &plans[p], 4, &e) == DPF_OK);
            for (int i = 0; i < DRAWS; i++)
                seen[dpf_vote_answer(&v, &r, tables[t])]++;
            for (int k = 0; k < 4; k++) {
                double due = chance(&plans[p], tables[t], 4, k);
                sum += due;
                CU_ASSERT(plausible(seen[k], DRAWS, due));
            }
            CU_ASSERT(near(sum, 1, 1e-5));
            dpf_vote_release(&v);
        }
    dpf_random_release(&r);
}

static void test_passing(void)
{
    static const struct dpf_vote_plan plan = {DPF_VOTE_CONFIDENT, 3, 6, 2.5};
    static const int32_t tables[][3] = {{6, 1, 0}, {3, 3, 1}, {9, 0, 0}, {0, 2, 1}};
    struct dpf_error e = {0};
    struct dpf_random r;
    struct dpf_vote v;
    dpf_random_init_insecure(&r, "test-vote", 2, 0);
    CU_ASSERT_FATAL(dpf_vote_init(&v, &plan, 3, &e) == DPF_OK);
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
        double passed = 0, most = 0;
        for (int k = 0; k < 3; k++)
            most = fmax(most, tables[t][k]);
        for (int i = 0; i < DRAWS; i++)
            passed += dpf_vote_passes(&v, &r, tables[t]);
        CU_ASSERT(plausible(passed, DRAWS, normal_cdf((most - 6) / 2.5)));
    }
    dpf_vote_release(&v);
    dpf_random_release(&r);
}

/* ------------------------------------------------------------------------ sensitivity */

/* All votes of all teachers, and every other vote of each. */
static void test_one_teacher(void)
{
    enum { TEACHERS = 5, FEW = 3 };
    int all = 1;
    double most1 = 0, most2 = 0, most = 0;
    for (int i = 0; i < TEACHERS; i++)
        all *= FEW;
    for (int votes = 0; votes < all; votes++)
        for (int teacher = 0; teacher < TEACHERS; teacher++)
            for (int other = 0; other < FEW; other++) {
                int32_t a[FEW] = {0}, b[FEW] = {0};
                double l1 = 0, l2 = 0, top[2] = {0, 0};
                for (int i = 0, rest = votes; i < TEACHERS; i++, rest /= FEW) {
                    a[rest % FEW]++;
                    b[i == teacher ? other : rest % FEW]++;
                }
                for (int k = 0; k < FEW; k++) {
                    l1 += fabs((double)a[k] - b[k]);
                    l2 += ((double)a[k] - b[k]) * ((double)a[k] - b[k]);
                    top[0] = fmax(top[0], a[k]);
                    top[1] = fmax(top[1], b[k]);
                }
                most1 = fmax(most1, l1);
                most2 = fmax(most2, sqrt(l2));
                most = fmax(most, fabs(top[0] - top[1]));
            }
    struct dpf_vote v;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_vote_init(&v, &confident, FEW, &e) == DPF_OK);
    CU_ASSERT(most2 <= v.maximum.sensitivity_l2 && near(most2, sqrt(2), 1e-12));
    CU_ASSERT(most <= v.test.sensitivity_l2 && most == 1);
    CU_ASSERT(v.maximum.noise_stddev >= 40 && v.test.noise_stddev >= 150);
    CU_ASSERT(v.maximum.noise_multiplier <= 40 / sqrt(2));
    dpf_vote_release(&v);
    CU_ASSERT_FATAL(dpf_vote_init(&v, &laplace, FEW, &e) == DPF_OK);
    CU_ASSERT(most1 <= v.laplace.sensitivity_l1 && most1 == 2);
    CU_ASSERT(v.laplace.scale >= 20 && v.laplace.epsilon >= 2.0 / 20 * (1 - 1e-9));
    dpf_vote_release(&v);
}

/* ------------------------------------------------------------------------- refutation */

/* The largest ln((lower bound of p - delta) / upper bound of q) over answers, from rates
 * on neighbouring tables; bounds by Chernoff at 1e-6 for all of them together. */
static double bound(double k, double n, bool lower)
{
    double from = lower ? 0 : k / n, to = lower ? k / n : 1;
    for (int i = 0; i < 100; i++) {
        double p = (from + to) / 2;
        double a = k > 0 ? k * log(k / (n * p)) : 0;
        double b = k < n ? (n - k) * (log((n - k) / n) - log1p(-p)) : 0;
        bool out = a + b > log(16 / 1e-6);
        if (out == lower)
            from = p;
        else
            to = p;
    }
    return lower ? from : to;
}

static double refute(const struct dpf_vote_plan *plan, const int32_t *one,
                     const int32_t *other, int classes, double delta, uint64_t seed)
{
    struct dpf_error e = {0};
    struct dpf_random r;
    struct dpf_vote v;
    double seen[2][4] = {{0}}, most = 0;
    dpf_random_init_insecure(&r, "test-vote", seed, 0);
    CU_ASSERT_FATAL(dpf_vote_init(&v, plan, (size_t)classes, &e) == DPF_OK);
    const int draws = DRAWS / FEWER;
    for (int i = 0; i < draws; i++)
        for (int k = 0; k < 2; k++) {
            const int32_t *counts = k ? other : one;
            if (plan->kind == DPF_VOTE_CONFIDENT)
                seen[k][dpf_vote_passes(&v, &r, counts)]++;
            else
                seen[k][dpf_vote_answer(&v, &r, counts)]++;
        }
    for (int i = 0; i < classes; i++)
        for (int k = 0; k < 2; k++) {
            double p = bound(seen[k][i], draws, true) - delta;
            double q = bound(seen[1 - k][i], draws, false);
            most = p > 0 ? fmax(most, log(p / q)) : most;
        }
    dpf_vote_release(&v);
    dpf_random_release(&r);
    return most;
}

static void test_refutation(void)
{
    /* two classes and many teachers: nothing hides one vote but the noise */
    static const int32_t one[2] = {3, 5}, other[2] = {4, 4};
    static const double delta = 1e-3;
    const struct dpf_vote_plan gaussian = {DPF_VOTE_GNMAX, 1, 0, 0};
    const struct dpf_vote_plan halved = {DPF_VOTE_GNMAX, 0.4, 0, 0};
    double stated = dpf_gdp_epsilon(sqrt(2) / gaussian.noise, delta);
    CU_ASSERT(refute(&gaussian, one, other, 2, delta, 3) <= stated);
    CU_ASSERT(refute(&halved, one, other, 2, delta, 4) > stated);
    const struct dpf_vote_plan exponential = {DPF_VOTE_LNMAX, 2, 0, 0};
    const struct dpf_vote_plan sharper = {DPF_VOTE_LNMAX, 1, 0, 0};
    static const int32_t far[2] = {0, 4}, near_by[2] = {1, 3};
    CU_ASSERT(refute(&exponential, far, near_by, 2, 0, 5) <= 1);
    CU_ASSERT(refute(&sharper, far, near_by, 2, 0, 6) > 1);
    const struct dpf_vote_plan test = {DPF_VOTE_CONFIDENT, 1, 6.4, 0.8};
    const struct dpf_vote_plan loose = {DPF_VOTE_CONFIDENT, 1, 6.4, 0.4};
    double tested = dpf_gdp_epsilon(1 / test.threshold_noise, delta);
    static const int32_t lower[2] = {5, 3}, upper[2] = {6, 2};
    CU_ASSERT(refute(&test, lower, upper, 2, delta, 7) <= tested);
    CU_ASSERT(refute(&loose, lower, upper, 2, delta, 8) > tested);
}

static void test_refusals(void)
{
    static const struct dpf_vote_plan bad[] = {
        {DPF_VOTE_GNMAX, 0, 0, 0},        {DPF_VOTE_GNMAX, -1, 0, 0},
        {DPF_VOTE_GNMAX, INFINITY, 0, 0}, {DPF_VOTE_GNMAX, NAN, 0, 0},
        {DPF_VOTE_LNMAX, 1e6, 0, 0},      {DPF_VOTE_CONFIDENT, 1, 1, 0},
        {DPF_VOTE_CONFIDENT, 1, NAN, 1},  {DPF_VOTE_CONFIDENT, 1, INFINITY, 1}};
    struct dpf_error e = {0};
    struct dpf_vote v;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT(dpf_vote_init(&v, &bad[i], 3, &e) == DPF_USAGE);
        dpf_vote_release(&v);
    }
    CU_ASSERT(dpf_vote_init(&v, &laplace, 1, &e) == DPF_USAGE);
    dpf_vote_release(&v);
    CU_ASSERT(dpf_vote_init(&v, &laplace, DPF_VOTE_MAX_CLASSES + 1, &e) == DPF_USAGE);
    dpf_vote_release(&v);
}

const char dpf_suite[] = "vote";
const struct dpf_test dpf_tests[] = {
    {"costs are those of an independent implementation", test_costs},
    {"a whole run costs what it should", test_run},
    {"noisy maxima have the probabilities of their integrals", test_chances},
    {"so has the test", test_passing},
    {"what one teacher can change, by trying everything", test_one_teacher},
    {"the stated cost is not refuted; that of half the noise is", test_refutation},
    {"impossible noise, thresholds and classes are refused", test_refusals},
    {NULL, NULL},
};
