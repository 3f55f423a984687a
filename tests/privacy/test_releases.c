/* Bounds of records and the scales of AdLM: what is claimed against brute force in long
 * double, hostile records, the formulas of the paper and of the notes on it. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "privacy/adlm.h"
#include "privacy/laplace.h"
#include "privacy/record_bounds.h"
#include "random/seeded.h"
#include "told.h"

#include "base/banned.h"

/* Long records whose widths have no exact sum: never below the true one. */
static void test_long_records(void)
{
    static const size_t lengths[] = {1, 889, 900, 4096, 300000};
    static const double widths[] = {0.1, 1.0 / 3, 1e-3, 7e-150};
    for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++) {
            struct dpf_record_bounds b;
            size_t count = lengths[n];
            CU_ASSERT_FATAL(dpf_record_bounds_init(&b, count, NULL) == DPF_OK);
            for (size_t i = 0; i < count; i++)
                b.hi[i] = widths[w];
            long double l1 = (long double)count * (long double)widths[w];
            long double l2 = sqrtl((long double)count) * (long double)widths[w];
            for (int replace = 0; replace < 2; replace++) {
                double one = dpf_record_sensitivity(&b, false, replace);
                double two = dpf_record_sensitivity(&b, true, replace);
                CU_ASSERT((long double)one >= l1 && (long double)one < l1 * (1 + 1e-9L));
                CU_ASSERT((long double)two >= l2 && (long double)two < l2 * (1 + 1e-9L));
            }
            for (size_t i = 0; i < count; i++)
                b.hi[i] = 1e-170; /* its square is 0 */
            CU_ASSERT(isinf(dpf_record_sensitivity(&b, true, true)));
            dpf_record_bounds_release(&b);
        }
}

const char dpf_suite[] = "releases";

enum { D = 5 };
static const double lows[D] = {0, -1, -0.3, 2, 0.1}, highs[D] = {1, 1, 0.1, 7, 0.1};

static struct dpf_record_bounds box(const double *lo, const double *hi, size_t values)
{
    struct dpf_record_bounds b;
    CU_ASSERT_FATAL(dpf_record_bounds_init(&b, values, NULL) == DPF_OK);
    for (size_t i = 0; i < values; i++) {
        b.lo[i] = lo[i];
        b.hi[i] = hi[i];
    }
    return b;
}

/* The farthest pair of corners, or corner and nothing. */
static long double farthest(const double *lo, const double *hi, int values, bool l2,
                            bool replace)
{
    long double most = 0;
    for (unsigned a = 0; a < 1u << values; a++)
        for (unsigned b = 0; b < (replace ? 1u << values : 1); b++) {
            long double sum = 0;
            for (int i = 0; i < values; i++) {
                long double one = (long double)(a >> i & 1 ? hi[i] : lo[i]);
                long double two = (long double)(b >> i & 1 ? hi[i] : lo[i]);
                long double apart = fabsl(one - (replace ? two : 0));
                sum += l2 ? apart * apart : apart;
            }
            most = fmaxl(most, l2 ? sqrtl(sum) : sum);
        }
    return most;
}

static void test_box(void)
{
    struct dpf_record_bounds b = box(lows, highs, D);
    for (int i = 0; i < 4; i++) {
        bool l2 = i & 1, replace = i >> 1;
        double told_ = dpf_record_sensitivity(&b, l2, replace);
        double due = (double)farthest(lows, highs, D, l2, replace);
        ABOVE("sensitivity", told_, due);
        BELOW("sensitivity", told_, due * (1 + 1e-12));
    }
    CU_ASSERT(dpf_record_largest(&b) == 7);
    /* values fit 2^37 steps, and no power of two less would do */
    CU_ASSERT(7 / dpf_record_least_step(&b) < 0x1p37);
    CU_ASSERT(7 / dpf_record_least_step(&b) >= 0x1p36);
    dpf_record_bounds_release(&b);
}

/* Widths whose sum is rounded, as many values as the claim is for. */
static void test_many_values(void)
{
    enum { MANY = 880 };
    static double lo[MANY], hi[MANY];
    struct dpf_seeded random;
    dpf_seeded_init(&random, "test-releases", 1, 0);
    for (int trial = 0; trial < 200; trial++) {
        long double l1 = 0, squares = 0;
        for (int i = 0; i < MANY; i++) {
            lo[i] = -fabs(dpf_seeded_normal(&random)) / 3;
            hi[i] = fabs(dpf_seeded_normal(&random)) * pow(2, trial % 40);
            long double width = (long double)hi[i] - (long double)lo[i];
            l1 += width;
            squares += width * width;
        }
        struct dpf_record_bounds b = box(lo, hi, MANY);
        CU_ASSERT((long double)dpf_record_sensitivity(&b, false, true) >= l1);
        CU_ASSERT((long double)dpf_record_sensitivity(&b, true, true) >= sqrtl(squares));
        dpf_record_bounds_release(&b);
    }
}

static const float hostile[] = {NAN,  INFINITY, -INFINITY, FLT_MAX, -FLT_MAX,
                                0,    -0.0F,    1e-45F,    0.5F,    -0.3F,
                                0.1F, 7,        7.00001F,  1};
enum { HOSTILE = sizeof hostile / sizeof *hostile };

static void test_hostile_records(void)
{
    struct dpf_record_bounds b = box(lows, highs, D), ball = box(lows, highs, D);
    uint64_t clipped = 0;
    for (int l2 = 0; l2 < 2; l2++)
        for (int i = 0; i < HOSTILE * HOSTILE; i++) {
            float record[D];
            double out[D];
            for (int j = 0; j < D; j++)
                record[j] = hostile[(j % 2 ? i / HOSTILE : i + j / 2) % HOSTILE];
            clipped += dpf_record_clip(&b, record, out);
            for (int j = 0; j < D; j++)
                CU_ASSERT(out[j] >= lows[j] && out[j] <= highs[j]);
            for (int j = 0; j < D; j++)
                ball.lo[j] = ball.hi[j] = 0;
            ball.radius = 0.7;
            ball.norm = l2 ? DPF_NORM_L2 : DPF_NORM_L1;
            dpf_record_clip(&ball, record, out);
            long double norm = 0;
            for (int j = 0; j < D; j++)
                norm += l2 ? (long double)out[j] * (long double)out[j]
                           : fabsl((long double)out[j]);
            CU_ASSERT((l2 ? sqrtl(norm) : norm) <= 0.7L);
        }
    CU_ASSERT(clipped > 0);
    CU_ASSERT(dpf_record_sensitivity(&ball, true, false) == 0.7);
    CU_ASSERT(dpf_record_sensitivity(&ball, true, true) == 1.4);
    dpf_record_bounds_release(&b);
    dpf_record_bounds_release(&ball);
}

/* Bounds at the ends of what a double holds. */
static void test_extreme_bounds(void)
{
    enum { LONG = 1000 };
    static double same[LONG];
    same[0] = 2.7e-162; /* constants: no width, but a record may be there or not */
    for (int i = 1; i < LONG; i++)
        same[i] = 1.57e-162;
    struct dpf_record_bounds constant = box(same, same, LONG);
    CU_ASSERT(isinf(dpf_record_sensitivity(&constant, true, false)));
    CU_ASSERT(dpf_record_sensitivity(&constant, true, true) == 0);
    CU_ASSERT(dpf_record_sensitivity(&constant, false, false) >=
              999 * 1.57e-162 + 2.7e-162);
    dpf_record_bounds_release(&constant);

    double lo[2] = {1e308, -1.7e308}, hi[2] = {1.7e308, -1e308}, out[2];
    struct dpf_record_bounds far = box(lo, hi, 2);
    CU_ASSERT(dpf_record_clip(&far, (float[2]){NAN, NAN}, out) == 2);
    for (int i = 0; i < 2; i++)
        CU_ASSERT(out[i] >= lo[i] && out[i] <= hi[i]);
    dpf_record_bounds_release(&far);

    struct dpf_laplace l;
    struct dpf_error e;
    const struct dpf_laplace_query query = {
        .sensitivity_l1 = 1.6e296, .values = 60, .parts = 1, .least_step = 1e270};
    enum dpf_status status = dpf_laplace_init(&l, &query, 1e-9, &e);
    CU_ASSERT(status == DPF_USAGE || (isfinite(l.scale) && isfinite(l.sensitivity_l1)));
    for (double power = 200; power < 309; power += 0.5)
        for (double epsilon = 1e-9; epsilon < 10; epsilon *= 1000) {
            struct dpf_laplace_query at = query;
            at.sensitivity_l1 = pow(10, power);
            if (dpf_laplace_init(&l, &at, epsilon, &e) != DPF_OK)
                continue;
            CU_ASSERT(isfinite(l.scale) && isfinite(l.sensitivity_l1));
            CU_ASSERT(l.scale * epsilon * (1 + 1e-12) >= at.sensitivity_l1);
        }
}

/* ----------------------------------------------------------------------------- AdLM */

static const double zeros[D] = {0}, ones[D] = {1, 1, 1, 1, 1};
static const double relevance[D] = {0.9, 0.2, -0.5, 0.1, 0.4};

static struct dpf_adlm_plan plan_of(const struct dpf_record_bounds *b, bool paper,
                                    bool adaptive)
{
    return (struct dpf_adlm_plan){.bounds = b,
                                  .relevance = adaptive ? relevance : NULL,
                                  .classes = 3,
                                  .epsilon = 0.6,
                                  .label_epsilon = 1.2,
                                  .paper = paper,
                                  .neurons = 4,
                                  .lot = 50,
                                  .hidden = 25};
}

/* The scales as printed; and the cost, as the notes have it: B e2 sum beta_j / Delta_h0
 * for the features in [0,1], 2 B e3 / Delta_F for the class. */
static void test_paper_scales(void)
{
    struct dpf_record_bounds b = box(zeros, ones, D);
    const double delta_h0 = 2 * D * 4.0, delta_f = 3 * (25 + 25 * 25 / 4.0);
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        struct dpf_adlm a;
        struct dpf_adlm_plan plan = plan_of(&b, true, adaptive);
        CU_ASSERT_FATAL(dpf_adlm_init(&a, &plan, NULL) == DPF_OK);
        CU_ASSERT(a.noisy == D + 6);
        for (int j = 0; j < D; j++) {
            double beta = adaptive ? D * fabs(relevance[j]) / 2.1 : 1;
            SAME("scale of a feature", a.noise.scale[j] * a.noise.step[j],
                 delta_h0 / (beta * 0.6) / 50);
        }
        for (size_t j = D; j < a.noisy; j++)
            SAME("scale of a coefficient", a.noise.scale[j] * a.noise.step[j],
                 delta_f / 1.2 / 50);
        double features = 50 * 0.6 * D / delta_h0, label = 2 * 50 * 1.2 / delta_f;
        NEAR("features", dpf_adlm_feature_epsilon(&a), features, 1e-3);
        ABOVE("features", dpf_adlm_feature_epsilon(&a), features);
        NEAR("class", dpf_adlm_label_epsilon(&a), label, 1e-3);
        ABOVE("class", dpf_adlm_label_epsilon(&a), label);
        dpf_adlm_release(&a);
    }
    dpf_record_bounds_release(&b);
}

static void test_sound_scales(void)
{
    struct dpf_record_bounds b = box(lows, highs, D);
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        struct dpf_adlm a;
        struct dpf_adlm_plan plan = plan_of(&b, false, adaptive);
        double sum = 0;
        for (int j = 0; j < D; j++)
            sum += adaptive ? cbrt(fabs(relevance[j])) : 1;
        CU_ASSERT_FATAL(dpf_adlm_init(&a, &plan, NULL) == DPF_OK);
        CU_ASSERT(a.noisy == D);
        for (int j = 0; j < D - 1; j++) /* the last has no width */
            NEAR("scale of a feature", a.noise.scale[j] * a.noise.step[j],
                 (highs[j] - lows[j]) * sum /
                     ((adaptive ? cbrt(fabs(relevance[j])) : 1) * 0.6),
                 1.1e-3);
        BELOW("features", dpf_adlm_feature_epsilon(&a), 0.6);
        ABOVE("features", dpf_adlm_feature_epsilon(&a), 0.6 * 4 / D * 0.9);
        BELOW("class", dpf_adlm_label_epsilon(&a), 1.2);
        ABOVE("class", dpf_adlm_label_epsilon(&a), 1.2 * (1 - 1e-12));
        dpf_adlm_release(&a);
    }
    dpf_record_bounds_release(&b);
}

/* Two classes differ in two coefficients, by no more steps than a cost counts. */
static void test_coefficients(void)
{
    struct dpf_record_bounds b = box(zeros, ones, D);
    struct dpf_adlm a;
    struct dpf_adlm_plan plan = plan_of(&b, true, true);
    CU_ASSERT_FATAL(dpf_adlm_init(&a, &plan, NULL) == DPF_OK);
    int64_t none[D + 6] = {0};
    for (size_t one = 0; one < 3; one++)
        for (size_t other = 0; other < 3; other++) {
            double cost = 0;
            for (size_t l = 0; l < 3; l++)
                for (size_t k = 0; k < 2; k++) {
                    size_t at = D + 2 * l + k;
                    double x =
                        (double)dpf_adlm_noisy_coefficient(&a, l, l == one, k, none);
                    double y =
                        (double)dpf_adlm_noisy_coefficient(&a, l, l == other, k, none);
                    cost += fabs(x - y) / a.noise.step[at] / a.noise.scale[at];
                    CU_ASSERT(k == 0 || x == y);
                }
            BELOW("cost", cost, dpf_adlm_label_epsilon(&a));
            CU_ASSERT((cost > 0) == (one != other));
        }
    CU_ASSERT(dpf_adlm_coefficient(true, 0) == -0.5F);
    CU_ASSERT(dpf_adlm_coefficient(false, 0) == 0.5F);
    CU_ASSERT(dpf_adlm_coefficient(true, 1) == 0.125F);
    dpf_adlm_release(&a);
    dpf_record_bounds_release(&b);
}

static void test_relevance(void)
{
    CU_ASSERT(dpf_adlm_relevance_epsilon(0.8, true) == 0.4); /* 2d/|D| is twice d/|D| */
    CU_ASSERT(dpf_adlm_relevance_epsilon(0.8, false) == 0.8);
}

const struct dpf_test dpf_tests[] = {
    {"bounds: long records, widths without an exact sum", test_long_records},
    {"a box: sensitivities, by its corners", test_box},
    {"a box of many values: rounded upwards", test_many_values},
    {"hostile records are within their bounds", test_hostile_records},
    {"bounds at the ends of what a double holds", test_extreme_bounds},
    {"AdLM as printed: scales and costs", test_paper_scales},
    {"AdLM, sound: scales and costs", test_sound_scales},
    {"AdLM: what another class changes", test_coefficients},
    {"AdLM: the epsilon of relevances", test_relevance},
    {NULL, NULL},
};
