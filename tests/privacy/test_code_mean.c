/* The mean of codes from outside: the paper's figures, what one teacher can change at the
 * ends of floats, the noise that is added, an attempt to refute the stated cost. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "privacy/code_mean.h"
#include "privacy/tradeoff.h"
#include "random/seeded.h"

#include "base/banned.h"

/* (8, 1e-3), 80 queries, 8 teachers, radius 1. */
static void test_calibration(void)
{
    double paper = dpf_code_paper_multiplier(8, 80, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(paper * 2 / 8, 1.28256, 5e-6);
    CU_ASSERT_DOUBLE_EQUAL(dpf_code_paper_epsilon(paper, 80, 1e-3), 8, 1e-9);
    /* what it really spends, and what would do */
    CU_ASSERT_DOUBLE_EQUAL(dpf_gdp_epsilon(sqrt(80) / paper, 1e-3), 6.337, 1e-3);
    double exact = dpf_code_multiplier(8, 1, 1.07334);
    CU_ASSERT_DOUBLE_EQUAL(dpf_gdp_epsilon(sqrt(80) / exact, 1e-3), 8, 2e-4);
    struct dpf_code_mean m;
    CU_ASSERT_FATAL(dpf_code_mean_init(&m, 3, 8, 1, exact, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(dpf_code_noise(&m), 1.07334, 1e-9);
    CU_ASSERT(m.noise.sensitivity_l2 >= 2 && m.noise.sensitivity_l2 <= 2 + 1e-12);
}

/* What one teacher adds, exactly: no longer than the radius, 2^20 steps, and not much
 * shorter where it was longer. */
static void check_cut(const struct dpf_code_mean *m, const float *code, bool long_one)
{
    int64_t *sums = calloc(m->values, sizeof *sums);
    uint64_t square = 0;
    CU_ASSERT_FATAL(sums != NULL);
    dpf_code_add(m, code, sums);
    for (size_t i = 0; i < m->values; i++) {
        CU_ASSERT(llabs(sums[i]) <= 1 << 20); /* so that squares of 2^16 fit */
        square += (uint64_t)(sums[i] * sums[i]);
    }
    CU_ASSERT(square <= 1ull << 40);
    double slack = 2 * sqrt((double)m->values) + 1;
    CU_ASSERT(!long_one || sqrt((double)square) >= 0x1p20 - slack);
    free(sums);
}

static void test_sensitivity(void)
{
    static const double sizes[] = {0,        1e-45, 1e-38, 1e-20, 0.5,  1 - 1e-7, 1,
                                   1 + 1e-7, 3,     1e10,  1e20,  1e38, 3.4e38};
    static const double radii[] = {1e-6, 0.1, 1, 7.3, 1e6};
    static const size_t lengths[] = {1, 2, 3, 100, 4097, DPF_CODE_MAX_VALUES};
    struct dpf_seeded r;
    float *code = calloc(DPF_CODE_MAX_VALUES, sizeof *code);
    CU_ASSERT_FATAL(code != NULL);
    dpf_seeded_init(&r, "test code", 1, 0);
    for (size_t k = 0; k < sizeof radii / sizeof *radii; k++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
            struct dpf_code_mean m;
            CU_ASSERT_FATAL(dpf_code_mean_init(&m, lengths[l], 3, radii[k], 2, NULL) ==
                            DPF_OK);
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                for (int kind = 0; kind < 4; kind++) {
                    double most = 0;
                    for (size_t i = 0; i < lengths[l]; i++) {
                        double v = kind == 0   ? 1
                                   : kind == 1 ? i == 0
                                   : kind == 2 ? dpf_seeded_normal(&r) / 6
                                               : (i % 2 ? 1 : -1e-6);
                        code[i] = (float)fmax(fmin(v * sizes[s], 3.4e38), -3.4e38);
                        most = fmax(most, fabs((double)code[i]));
                    }
                    check_cut(&m, code, most > radii[k]);
                }
        }
    /* what is not finite counts as nothing */
    struct dpf_code_mean m;
    CU_ASSERT_FATAL(dpf_code_mean_init(&m, 3, 3, 1, 2, NULL) == DPF_OK);
    static const float bad[][3] = {{NAN, 0, 0}, {0, INFINITY, 0}, {0, 1, -INFINITY}};
    for (int i = 0; i < 3; i++) {
        int64_t sums[3] = {1, 2, 3};
        dpf_code_add(&m, bad[i], sums);
        CU_ASSERT(sums[0] == 1 && sums[1] == 2 && sums[2] == 3);
    }
    free(code);
}

/* Every answer made of these values in place of every other: the sums differ by no more
 * than two radii, exactly, and by all of it for opposite answers. */
static void test_replacements(void)
{
    enum { LENGTH = 3, VALUES = 15, CODES = VALUES * VALUES * VALUES };
    static const float values[VALUES] = {0,        -0.0F,    1e-45F, -1e-45F,  1.1e-38F,
                                         0.3F,     -0.7F,    1,      -1,       1e38F,
                                         3.40e38F, -3.4e38F, NAN,    INFINITY, -INFINITY};
    static const double radii[] = {1e-6, 1, 7.3, 1e6};
    static int32_t added[CODES][LENGTH];
    struct dpf_code_mean m;
    for (size_t k = 0; k < sizeof radii / sizeof *radii; k++) {
        CU_ASSERT_FATAL(dpf_code_mean_init(&m, LENGTH, 3, radii[k], 2, NULL) == DPF_OK);
        for (int i = 0; i < CODES; i++) {
            const float code[LENGTH] = {values[i % VALUES], values[i / VALUES % VALUES],
                                        values[i / VALUES / VALUES]};
            int64_t sums[LENGTH] = {1ll << 40, -(1ll << 40), 5}; /* of other teachers */
            dpf_code_add(&m, code, sums);
            added[i][0] = (int32_t)(sums[0] - (1ll << 40));
            added[i][1] = (int32_t)(sums[1] + (1ll << 40));
            added[i][2] = (int32_t)(sums[2] - 5);
        }
        int64_t most = 0;
        for (int i = 0; i < CODES; i++)
            for (int j = 0; j < i; j++) {
                int64_t square = 0;
                for (int l = 0; l < LENGTH; l++) {
                    int64_t d = (int64_t)added[i][l] - added[j][l];
                    square += d * d;
                }
                most = square > most ? square : most;
            }
        CU_ASSERT(most <= 1ll << 42 && most > (1ll << 42) - (1ll << 24));
        CU_ASSERT(ldexp(sqrt((double)most), -20) * radii[k] <= m.noise.sensitivity_l2);
    }
}

/* Maps of probabilities, as `teacher-infer --scores` sends them, are no longer than the
 * root of their V places, and two of them differ by at most sqrt(2V): the distance is
 * convex, so it is largest where every place is sure of one class. All such pairs. */
static void test_probability_maps(void)
{
    enum { MOST_VALUES = 9 };
    for (int places = 1; places <= 3; places++)
        for (int classes = 2; classes <= 3; classes++) {
            size_t values = (size_t)(places * classes);
            int maps = (int)(pow(classes, places) + 0.5);
            double radius = sqrt(places), most = 0;
            struct dpf_code_mean m;
            CU_ASSERT_FATAL(dpf_code_mean_init(&m, values, 3, radius, 2, NULL) == DPF_OK);
            for (int pair = 0; pair < maps * maps; pair++) {
                int64_t sums[2][MOST_VALUES] = {{0}};
                double square = 0;
                for (int side = 0; side < 2; side++) {
                    float map[MOST_VALUES] = {0};
                    int rest = side ? pair / maps : pair % maps;
                    for (int i = 0; i < places; i++, rest /= classes)
                        map[rest % classes * places + i] = 1;
                    dpf_code_add(&m, map, sums[side]);
                }
                for (size_t i = 0; i < values; i++) {
                    double d = (double)(sums[0][i] - sums[1][i]) * m.noise.step;
                    square += d * d;
                }
                most = fmax(most, square);
            }
            double bound = sqrt(2.0 * places);
            CU_ASSERT(sqrt(most) <= bound && sqrt(most) > bound - 1e-4);
            CU_ASSERT(bound <= m.noise.sensitivity_l2); /* more than that is paid for */
        }
}

/* Two worlds: one teacher says e, or -e. The mean's first value is 0 and its noise known;
 * a threshold between them tells them apart as well as noise of the stated size lets it,
 * and better if it is halved. A Gaussian bound of 4.9 deviations: alpha 1e-6. */
static double advantage(double multiplier, double stated_delta, uint64_t seed)
{
    enum { TRIES = 40000, TEACHERS = 4 };
    struct dpf_code_mean m;
    struct dpf_random r;
    double seen[2] = {0, 0};
    dpf_random_init_insecure(&r, "test-code", seed, 0);
    CU_ASSERT_FATAL(dpf_code_mean_init(&m, 2, TEACHERS, 1, multiplier, NULL) == DPF_OK);
    for (int i = 0; i < TRIES; i++)
        for (int world = 0; world < 2; world++) {
            int64_t sums[2] = {0};
            float mean[2];
            for (int t = 0; t < TEACHERS; t++)
                dpf_code_add(
                    &m, t ? (float[]){0.3F, -0.9F} : (float[]){world ? 5.0F : -5.0F, 0},
                    sums);
            dpf_code_release(&m, &r, sums, mean);
            seen[world] += mean[0] > 0.9F / TEACHERS;
        }
    dpf_random_release(&r);
    double p = seen[1] / TRIES, q = seen[0] / TRIES, slack = 4.9 * 0.5 / sqrt(TRIES);
    return log((p - slack - stated_delta) / (q + slack));
}

static void test_refutation(void)
{
    double delta = 1e-3, stated = dpf_gdp_epsilon(1 / 0.8, delta);
    CU_ASSERT(advantage(0.8, delta, 1) <= stated);
    double low = dpf_gdp_epsilon(1 / 2.4, delta);
    CU_ASSERT(advantage(2.4, delta, 2) <= low);
    CU_ASSERT(advantage(1.2, delta, 3) > low - 0.9); /* it has some power */
    CU_ASSERT(advantage(0.6, delta, 4) > low);       /* a quarter of the noise */
}

static void test_refusals(void)
{
    struct dpf_code_mean m;
    CU_ASSERT(dpf_code_mean_init(&m, 0, 1, 1, 1, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, DPF_CODE_MAX_VALUES + 1, 1, 1, 1, NULL) ==
              DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, 1, 0, 1, 1, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, 1, 1, 0, 1, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, 1, 1, NAN, 1, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, 1, 1, INFINITY, 1, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, 1, 1, 1, 0, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, 1, 1, 1, NAN, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_code_mean_init(&m, 1, 1, 1, INFINITY, NULL) == DPF_USAGE);
}

const char dpf_suite[] = "code-mean";
const struct dpf_test dpf_tests[] = {
    {"the paper's noise and the exact one", test_calibration},
    {"no code is longer than the radius, at the ends of floats", test_sensitivity},
    {"every answer in place of every other", test_replacements},
    {"maps of probabilities in place of others", test_probability_maps},
    {"noise that was reduced is refuted", test_refutation},
    {"parameters that are none are refused", test_refusals},
    {0},
};
