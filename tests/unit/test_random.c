/* Seeded streams: reproducible, independent, and distributed as they say. Seeds are
 * fixed, so a test that passes once passes always; the levels (alpha = 1e-6) say how far
 * from the distribution a wrong generator would have to stay to slip through. */
#include "random/seeded.h"

#include <math.h>

#include "stream_fixture.h"

#include "base/banned.h"

enum { DRAWS = 1 << 17 };

static const double z_level = 4.7534;  /* standard normal, 1 - 1e-6 */
static const double ks_level = 2.6934; /* sqrt(ln(2 / 1e-6) / 2) */

/* Upper quantile of chi-square at 1e-6 (Wilson and Hilferty). */
static double chi_level(double freedom)
{
    double a = 2 / (9 * freedom);
    return freedom * pow(1 - a + z_level * sqrt(a), 3);
}

static double chi_square(const uint64_t *counts, size_t bins, double draws)
{
    double expected = draws / (double)bins, sum = 0;
    for (size_t i = 0; i < bins; i++)
        sum += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    return sum;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double uniform_cdf(double x)
{
    return x;
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* sqrt(n) times the largest distance of the sample from the distribution. */
static double kolmogorov(double *sample, size_t n, double (*cdf)(double))
{
    double worst = 0;
    qsort(sample, n, sizeof *sample, compare);
    for (size_t i = 0; i < n; i++) {
        double f = cdf(sample[i]);
        worst =
            fmax(worst, fmax(f - (double)i / (double)n, (double)(i + 1) / (double)n - f));
    }
    return worst * sqrt((double)n);
}

static void test_reproducible(void)
{
    struct dpf_seeded a, b;
    dpf_seeded_init(&a, "split", 42, 7);
    dpf_seeded_init(&b, "split", 42, 7);
    uint64_t first = 0;
    for (int i = 0; i < 1000; i++) {
        uint64_t x = dpf_seeded_u64(&a);
        CU_ASSERT(x == dpf_seeded_u64(&b));
        if (i == 0)
            first = x;
        else
            CU_ASSERT(x != first);
    }
    /* The stream itself is a promise to users: data sets are named by their seed. */
    dpf_seeded_init(&a, "synth-digits", 1, 0);
    uint64_t one = dpf_seeded_u64(&a);
    dpf_seeded_init(&a, "synth-digits", 1, 0);
    CU_ASSERT(one == dpf_seeded_u64(&a));
}

static void test_streams_differ(void)
{
    static const struct {
        const char *purpose;
        uint64_t seed, index;
    } streams[] = {{"a", 1, 0},          {"b", 1, 0},          {"a", 2, 0},
                   {"a", 1, 1},          {"", 1, 0},           {"a", 1ull << 63, 0},
                   {"a", 1, 1ull << 63}, {"a", 1ull << 32, 0}, {"a", 1, 1ull << 32}};
    enum { COUNT = sizeof streams / sizeof *streams, LENGTH = 4096 };
    static uint64_t values[COUNT][LENGTH];
    for (int s = 0; s < COUNT; s++) {
        struct dpf_seeded r;
        dpf_seeded_init(&r, streams[s].purpose, streams[s].seed, streams[s].index);
        for (int i = 0; i < LENGTH; i++)
            values[s][i] = dpf_seeded_u64(&r);
    }
    for (int s = 0; s < COUNT; s++)
        for (int t = s + 1; t < COUNT; t++) {
            double same = 0, bits = 64.0 * LENGTH;
            for (int i = 0; i < LENGTH; i++)
                same += __builtin_popcountll(~(values[s][i] ^ values[t][i]));
            CU_ASSERT(fabs(same - bits / 2) < (z_level + 1) * sqrt(bits) / 2);
        }
}

static void check_below(uint64_t n, size_t bins, const char *purpose)
{
    static uint64_t counts[1000];
    struct dpf_seeded r;
    memset(counts, 0, sizeof counts);
    dpf_seeded_init(&r, purpose, n, 0);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t x = dpf_seeded_below(&r, n);
        CU_ASSERT_FATAL(x < n);
        counts[n <= bins ? x : x / (n / bins + (n % bins != 0))]++;
    }
    double chi = chi_square(counts, bins, DRAWS);
    CU_ASSERT(chi < chi_level((double)bins - 1));
}

static void test_below(void)
{
    struct dpf_seeded r;
    check_below(2, 2, "below");
    check_below(7, 7, "below");
    check_below(1000, 1000, "below");
    /* The remainder alone would fall twice as often into the first third here. */
    check_below(3ull << 62, 3, "below");
    check_below(1ull << 63, 16, "below");
    dpf_seeded_init(&r, "below", 0, 0);
    for (int i = 0; i < 100; i++)
        CU_ASSERT(dpf_seeded_below(&r, 1) == 0);
}

static void test_unit(void)
{
    static double sample[DRAWS];
    static uint64_t counts[256];
    struct dpf_seeded r;
    double lowest = 1, highest = 0;
    memset(counts, 0, sizeof counts);
    dpf_seeded_init(&r, "unit", 5, 0);
    for (int i = 0; i < DRAWS; i++) {
        sample[i] = dpf_seeded_unit(&r);
        CU_ASSERT_FATAL(sample[i] >= 0 && sample[i] < 1);
        lowest = fmin(lowest, sample[i]);
        highest = fmax(highest, sample[i]);
        /* the last bits of the 53 count as well */
        counts[(uint64_t)(sample[i] * 0x1p53) & 255]++;
    }
    CU_ASSERT(lowest < 14.0 / DRAWS && highest > 1 - 14.0 / DRAWS);
    CU_ASSERT(chi_square(counts, 256, DRAWS) < chi_level(255));
    CU_ASSERT(kolmogorov(sample, DRAWS, uniform_cdf) < ks_level);
}

static void test_range(void)
{
    struct dpf_seeded r;
    double sum = 0;
    dpf_seeded_init(&r, "range", 5, 0);
    for (int i = 0; i < DRAWS; i++) {
        double x = dpf_seeded_range(&r, -3, 5);
        CU_ASSERT_FATAL(x >= -3 && x < 5);
        sum += x;
    }
    CU_ASSERT(fabs(sum / DRAWS - 1) < z_level * 8 / sqrt(12.0 * DRAWS));
    /* The upper end stays out where the numbers between are few, too. */
    double top = nextafter(1, 2);
    int outside = 0;
    for (int i = 0; i < 1000; i++)
        outside += dpf_seeded_range(&r, 1, top) >= top;
    CU_ASSERT(outside == 0);
}

static void test_normal(void)
{
    static double sample[DRAWS];
    struct dpf_seeded r;
    double power[5] = {0};
    dpf_seeded_init(&r, "normal", 5, 0);
    for (int i = 0; i < DRAWS; i++) {
        double x = sample[i] = dpf_seeded_normal(&r);
        CU_ASSERT_FATAL(isfinite(x));
        power[1] += x;
        power[2] += x * x;
        power[3] += x * x * x;
        power[4] += x * x * x * x;
    }
    /* Variances of the first four powers: 1, 2, 15, 96. */
    CU_ASSERT(fabs(power[1] / DRAWS) < z_level * sqrt(1.0 / DRAWS));
    CU_ASSERT(fabs(power[2] / DRAWS - 1) < z_level * sqrt(2.0 / DRAWS));
    CU_ASSERT(fabs(power[3] / DRAWS) < z_level * sqrt(15.0 / DRAWS));
    CU_ASSERT(fabs(power[4] / DRAWS - 3) < z_level * sqrt(96.0 / DRAWS));
    CU_ASSERT(kolmogorov(sample, DRAWS, normal_cdf) < ks_level);
}

/* Neighbours in a stream, and first draws of neighbouring indices, do not know of each
 * other. */
static void test_uncorrelated(void)
{
    struct dpf_seeded r;
    double along = 0, across = 0, before = 0;
    dpf_seeded_init(&r, "pairs", 9, 0);
    double last = dpf_seeded_unit(&r) - 0.5;
    for (int i = 0; i < DRAWS; i++) {
        double x = dpf_seeded_unit(&r) - 0.5;
        along += x * last;
        last = x;
    }
    for (int i = 0; i < DRAWS; i++) {
        dpf_seeded_init(&r, "pairs", 9, (uint64_t)i);
        double x = dpf_seeded_unit(&r) - 0.5;
        across += x * before;
        before = x;
    }
    CU_ASSERT(fabs(along) < z_level / 12 * sqrt(DRAWS));
    CU_ASSERT(fabs(across) < z_level / 12 * sqrt(DRAWS));
}

const char dpf_suite[] = "random";

const struct dpf_test dpf_tests[] = {
    {"the same seed gives the same stream", test_reproducible},
    {"purposes, seeds and indices give other streams", test_streams_differ},
    {"below is uniform and unbiased", test_below},
    {"unit lies in [0, 1) and is uniform", test_unit},
    {"range lies in [lo, hi)", test_range},
    {"normal: moments and Kolmogorov-Smirnov", test_normal},
    {"no correlation along or across streams", test_uncorrelated},
    {0},
};
