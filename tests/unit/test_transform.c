/* What changes, selects, sums up and exports records: scaling, partitions, summaries,
 * .npy files and contact sheets, against direct computation. */
#include <float.h>
#include <math.h>
#include <png.h>

#include "data/npy.h"
#include "data/npy_write.h"
#include "data/partition.h"
#include "data/picture.h"
#include "data/scale.h"
#include "data/summary.h"
#include "random/seeded.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define SHAPE(...)                                                                       \
    (struct dpf_shape)                                                                   \
    {                                                                                    \
        .rank = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), .dim = {           \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

static struct dpf_tensor view(enum dpf_dtype dtype, struct dpf_shape shape, void *data)
{
    struct dpf_tensor t;
    CU_ASSERT_FATAL(dpf_tensor_view(&t, dtype, &shape, data, NULL) == DPF_OK);
    return t;
}

static bool near(double a, double b, double tolerance)
{
    return fabs(a - b) <= tolerance;
}

/* ---- scaling ---- */

static void test_scale_one_pair(void)
{
    float values[] = {-10, 0, 5, 10, 20, 2.5f};
    static const float unit[] = {0, 0, 0.5f, 1, 1, 0.25f};
    struct dpf_tensor x = view(DPF_F32, SHAPE(3, 2), values);
    struct dpf_scale s;
    struct dpf_error e = {0};
    uint64_t clipped = 7;
    double lo = 0, hi = 10;
    CU_ASSERT_FATAL(dpf_scale_from_bounds(&s, &lo, &hi, 1, false, &e) == DPF_OK);
    CU_ASSERT(dpf_scale_apply(&s, &x, &clipped, &e) == DPF_OK);
    CU_ASSERT(clipped == 9 && memcmp(values, unit, sizeof unit) == 0);
    dpf_scale_release(&s);
    float again[] = {-10, 0, 5, 10, 20, 2.5f};
    static const float both[] = {-1, -1, 0, 1, 1, -0.5f};
    x = view(DPF_F32, SHAPE(6), again);
    CU_ASSERT_FATAL(dpf_scale_from_bounds(&s, &lo, &hi, 1, true, &e) == DPF_OK);
    CU_ASSERT(dpf_scale_apply(&s, &x, &clipped, &e) == DPF_OK);
    CU_ASSERT(clipped == 11 && memcmp(again, both, sizeof both) == 0);
    dpf_scale_release(&s);
}

static void test_scale_each_feature(void)
{
    float values[] = {0, 5, 100, 3, 10, -5, 150, 3, 20, 5, 200, 4};
    static const float due[] = {0, 1, 0, 0, 0.5f, 0, 0.5f, 0, 1, 1, 1, 0};
    static const double lo[] = {0, -5, 100, 3}, hi[] = {20, 5, 200, 3};
    struct dpf_tensor x = view(DPF_F32, SHAPE(3, 4), values);
    struct dpf_scale s;
    struct dpf_error e = {0};
    uint64_t clipped = 0;
    CU_ASSERT_FATAL(dpf_scale_from_bounds(&s, lo, hi, 4, false, &e) == DPF_OK);
    CU_ASSERT(dpf_scale_apply(&s, &x, &clipped, &e) == DPF_OK);
    /* the 4 lies outside [3, 3] */
    CU_ASSERT(clipped == 1 && memcmp(values, due, sizeof due) == 0);
    dpf_scale_release(&s);
    static const double mean[] = {1, 2, 0, 0}, deviation[] = {2, 0, 1, 0.5};
    float more[] = {3, 9, -7, 1};
    x = view(DPF_F32, SHAPE(1, 4), more);
    CU_ASSERT_FATAL(dpf_scale_from_moments(&s, mean, deviation, 4, &e) == DPF_OK);
    CU_ASSERT(dpf_scale_apply(&s, &x, &clipped, &e) == DPF_OK);
    CU_ASSERT(more[0] == 1 && more[1] == 0 && more[2] == -7 && more[3] == 2);
    CU_ASSERT(clipped == 1);
    dpf_scale_release(&s);
}

static void test_scale_large(void)
{
    enum { N = 200003 };
    static float values[N];
    struct dpf_tensor x = view(DPF_F32, SHAPE(N), values);
    struct dpf_seeded r;
    struct dpf_scale s;
    uint64_t clipped = 0, outside = 0;
    double lo = -1, hi = 1;
    dpf_seeded_init(&r, "scale", 1, 0);
    for (int i = 0; i < N; i++) {
        values[i] = (float)dpf_seeded_range(&r, -2, 2);
        outside += values[i] < -1 || values[i] > 1;
    }
    CU_ASSERT_FATAL(dpf_scale_from_bounds(&s, &lo, &hi, 1, false, NULL) == DPF_OK);
    CU_ASSERT(dpf_scale_apply(&s, &x, &clipped, NULL) == DPF_OK && clipped == outside);
    int bad = 0;
    for (int i = 0; i < N; i++)
        bad += !(values[i] >= 0 && values[i] <= 1);
    CU_ASSERT(bad == 0);
    dpf_scale_release(&s);
}

/* A value on its bound is not outside: rounding does not count as clipping. */
static void test_scale_on_the_bounds(void)
{
    int spurious = 0, wrong = 0;
    for (int k = 1; k <= 1000; k++) {
        double lo = -k / 7.0, hi = k;
        float values[2] = {(float)hi, (float)k / 2};
        struct dpf_tensor x = view(DPF_F32, SHAPE(2), values);
        struct dpf_scale s;
        uint64_t clipped = 0;
        CU_ASSERT_FATAL(dpf_scale_from_bounds(&s, &lo, &hi, 1, k % 2, NULL) == DPF_OK);
        CU_ASSERT(dpf_scale_apply(&s, &x, &clipped, NULL) == DPF_OK);
        spurious += clipped != 0;
        wrong += !(values[0] <= 1 && values[0] > 0.999999f);
        dpf_scale_release(&s);
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(spurious == 0);
    if (spurious)
        printf("    %d of 1000 values on their bound count as clipped\n", spurious);
}

/* Bounds come from headers, so from strangers: whatever they are, what comes out lies in
 * [0, 1]. */
static void test_scale_hostile_bounds(void)
{
    static const double pairs[][2] = {
        {0, 1e-40},     {-1e300, 1e300}, {0, DBL_MAX},    {-DBL_MAX, DBL_MAX},
        {1e300, 2e300}, {-3e38, -3e38},  {5e-324, 1e-323}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int both = 0; both < 2; both++) {
            float values[] = {0, 1, -1, FLT_MAX, -FLT_MAX, FLT_MIN};
            struct dpf_tensor x = view(DPF_F32, SHAPE(6), values);
            struct dpf_scale s;
            uint64_t clipped = 0;
            /* refused where single precision cannot hold them, else respected */
            enum dpf_status status =
                dpf_scale_from_bounds(&s, &pairs[i][0], &pairs[i][1], 1, both, NULL);
            bool fits = pairs[i][0] >= -FLT_MAX && pairs[i][1] <= FLT_MAX &&
                        !(pairs[i][1] - pairs[i][0] < 1e-38 && pairs[i][0] < pairs[i][1]);
            CU_ASSERT(status == (fits ? DPF_OK : DPF_USAGE));
            if (status != DPF_OK)
                continue;
            CU_ASSERT(dpf_scale_apply(&s, &x, &clipped, NULL) == DPF_OK);
            int outside = 0;
            for (int k = 0; k < 6; k++)
                outside += !(values[k] >= -both && values[k] <= 1);
            if (outside)
                printf("    bounds %g:%g leave %d values outside\n", pairs[i][0],
                       pairs[i][1], outside);
            CU_ASSERT(outside == 0);
            dpf_scale_release(&s);
        }
}

static void test_not_finite(void)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        float values[40] = {0};
        double lo = 0, hi = 1;
        struct dpf_tensor x = view(DPF_F32, SHAPE(4, 10), values);
        struct dpf_scale s;
        struct dpf_moments m;
        struct dpf_error e = {0};
        uint64_t clipped = 0;
        values[37] = odd[i];
        CU_ASSERT_FATAL(dpf_scale_from_bounds(&s, &lo, &hi, 1, false, &e) == DPF_OK);
        CU_ASSERT_FATAL(dpf_moments_init(&m, 10, &e) == DPF_OK);
        CU_ASSERT(refused(dpf_scale_apply(&s, &x, &clipped, &e), DPF_BAD_STREAM, &e,
                          "a value is not finite"));
        CU_ASSERT(strpbrk(e.message, "0123456789") == NULL); /* not where it stands */
        CU_ASSERT(dpf_scale_zscore(&x, &e) == DPF_BAD_STREAM);
        CU_ASSERT(dpf_scale_ball(&x, 1, &e) == DPF_BAD_STREAM);
        CU_ASSERT(dpf_moments_add(&m, &x, &e) == DPF_BAD_STREAM && m.records == 0);
        CU_ASSERT(clipped == 0 && values[0] == 0);
        dpf_scale_release(&s);
        dpf_moments_release(&m);
    }
}

static void test_zscore(void)
{
    enum { ROWS = 50, FEATURES = 37 };
    static float values[ROWS * FEATURES];
    struct dpf_tensor x = view(DPF_F32, SHAPE(ROWS, FEATURES), values);
    struct dpf_seeded r;
    dpf_seeded_init(&r, "zscore", 1, 0);
    for (int i = 0; i < ROWS * FEATURES; i++)
        values[i] = (float)(1000 + 5 * dpf_seeded_normal(&r));
    for (int i = 0; i < FEATURES; i++) {
        values[i] = 0.1f; /* constant records become 0 */
        values[FEATURES + i] = -FLT_MAX;
        values[2 * FEATURES + i] = i % 2 ? FLT_MAX : -FLT_MAX;
    }
    CU_ASSERT(dpf_scale_zscore(&x, NULL) == DPF_OK);
    for (int k = 0; k < ROWS; k++) {
        double sum = 0, square = 0;
        for (int i = 0; i < FEATURES; i++) {
            double v = (double)values[k * FEATURES + i];
            sum += v;
            square += v * v;
        }
        CU_ASSERT(near(sum / FEATURES, 0, 1e-6));
        CU_ASSERT(near(square / FEATURES, k < 2 ? 0 : 1, 1e-5));
        CU_ASSERT(k >= 2 || square == 0);
    }
}

static double norm_of(const float *v, size_t n)
{
    double square = 0;
    for (size_t i = 0; i < n; i++)
        square += (double)v[i] * (double)v[i];
    return sqrt(square);
}

static void test_ball(void)
{
    enum { ROWS = 500, FEATURES = 61 };
    static float values[ROWS * FEATURES], before[ROWS * FEATURES];
    static const double radii[] = {1, 1e-3, 0.1, 3.7, 1e10, 1e-20};
    struct dpf_tensor x = view(DPF_F32, SHAPE(ROWS, FEATURES), values);
    struct dpf_seeded r;
    dpf_seeded_init(&r, "ball", 1, 0);
    for (size_t t = 0; t < sizeof radii / sizeof *radii; t++) {
        for (int k = 0; k < ROWS; k++) {
            double size = radii[t] * pow(10, dpf_seeded_range(&r, -2, 3)) / 8;
            for (int i = 0; i < FEATURES; i++)
                values[k * FEATURES + i] = (float)(size * dpf_seeded_normal(&r));
        }
        memcpy(before, values, sizeof before);
        CU_ASSERT(dpf_scale_ball(&x, radii[t], NULL) == DPF_OK);
        int above = 0, touched = 0, short_of = 0;
        for (int k = 0; k < ROWS; k++) {
            float *v = values + k * FEATURES, *w = before + k * FEATURES;
            double norm = norm_of(v, FEATURES), old = norm_of(w, FEATURES);
            above += norm > radii[t];
            touched += old <= radii[t] && memcmp(v, w, sizeof *v * FEATURES) != 0;
            short_of += old > radii[t] && norm < radii[t] * (1 - 1e-5);
        }
        CU_ASSERT(above == 0 && touched == 0 && short_of == 0);
    }
    float huge[] = {FLT_MAX, FLT_MAX, 0, 0, 3, 4};
    x = view(DPF_F32, SHAPE(3, 2), huge);
    CU_ASSERT(dpf_scale_ball(&x, 1, NULL) == DPF_OK);
    CU_ASSERT(norm_of(huge, 2) <= 1 && norm_of(huge, 2) > 0.9999 && huge[2] == 0);
    CU_ASSERT(near((double)huge[4], 0.6, 1e-6) && near((double)huge[5], 0.8, 1e-6));
}

static int tiny_ball(void *context)
{
    float values[4] = {1, 1, 1, 1};
    struct dpf_shape shape = SHAPE(1, 4);
    struct dpf_tensor x;
    if (dpf_tensor_view(&x, DPF_F32, &shape, values, NULL) != DPF_OK ||
        dpf_scale_ball(&x, *(double *)context, NULL) != DPF_OK)
        return 1;
    return norm_of(values, 4) <= *(double *)context ? 0 : 2;
}

/* Where floats are coarse (subnormal), shrinking still comes to an end. */
static void test_tiny_ball(void)
{
    static double radii[] = {1e-40, 1e-44, 2.5e-45, 2e-45, 1e-45, 1e-46, 0};
    for (size_t i = 0; i < sizeof radii / sizeof *radii; i++) {
        int result = in_child(tiny_ball, &radii[i], 500);
        if (result)
            printf("    radius %g: %d\n", radii[i], result);
        CU_ASSERT(result == 0);
    }
}

static void test_moments(void)
{
    enum { ROWS = 400, FEATURES = 3 };
    static float values[ROWS * FEATURES];
    struct dpf_seeded r;
    struct dpf_moments m;
    dpf_seeded_init(&r, "moments", 1, 0);
    for (int i = 0; i < ROWS * FEATURES; i++)
        values[i] = i % FEATURES == 2 ? 5 : (float)(1e6 + dpf_seeded_normal(&r));
    CU_ASSERT_FATAL(dpf_moments_init(&m, FEATURES, NULL) == DPF_OK);
    struct dpf_tensor one = view(DPF_F32, SHAPE(100, FEATURES), values);
    struct dpf_tensor two = view(DPF_F32, SHAPE(300, FEATURES), values + 300);
    CU_ASSERT(dpf_moments_add(&m, &one, NULL) == DPF_OK);
    CU_ASSERT(dpf_moments_add(&m, &two, NULL) == DPF_OK && m.records == ROWS);
    dpf_moments_finish(&m);
    for (int f = 0; f < FEATURES; f++) {
        double sum = 0, square = 0, lo = INFINITY, hi = -INFINITY;
        for (int k = 0; k < ROWS; k++) {
            double v = (double)values[k * FEATURES + f];
            sum += v;
            lo = fmin(lo, v);
            hi = fmax(hi, v);
        }
        for (int k = 0; k < ROWS; k++)
            square += pow((double)values[k * FEATURES + f] - sum / ROWS, 2);
        CU_ASSERT(near(m.mean[f], sum / ROWS, 1e-6) && m.lo[f] == lo && m.hi[f] == hi);
        CU_ASSERT(near(m.square[f], sqrt(square / ROWS), 1e-6));
    }
    CU_ASSERT(m.square[2] == 0);
    dpf_moments_release(&m);
}

/* ---- partitions ---- */

static struct dpf_header numbered_header(void)
{
    struct dpf_header h = {0};
    struct dpf_shape scalar = {0};
    CU_ASSERT_FATAL(dpf_header_add_field(&h, "n", DPF_I64, &scalar) != NULL);
    CU_ASSERT_FATAL(dpf_header_add_field(&h, "y", DPF_U8, &scalar) != NULL);
    return h;
}

/* Which of `n` records (content: from `content`, or their index) are kept. */
static enum dpf_status choose(struct dpf_partition *p, const int64_t *content, uint64_t n,
                              bool *keep, struct dpf_error *e)
{
    struct dpf_header h = numbered_header();
    uint64_t done = 0, step = 1;
    enum dpf_status status = dpf_partition_start(p, e);
    while (status == DPF_OK && done < n) { /* batches of all sizes */
        struct dpf_batch b;
        uint64_t rows = step < n - done ? step : n - done;
        CU_ASSERT_FATAL(dpf_batch_init(&b, &h, rows, NULL) == DPF_OK);
        for (uint64_t i = 0; i < rows; i++) {
            ((int64_t *)b.tensor[0].data)[i] =
                content ? content[done + i] : (int64_t)(done + i);
            ((uint8_t *)b.tensor[1].data)[i] = (uint8_t)((done + i) % 10);
        }
        status = dpf_partition_choose(p, &h, &b, keep + done, e);
        done += rows;
        step = step * 2 + 1;
        dpf_batch_release(&b);
    }
    dpf_header_release(&h);
    return status;
}

static uint64_t count(const bool *keep, uint64_t n)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < n; i++)
        kept += keep[i];
    return kept;
}

enum { MOST = 5000 };

static void check_parts(uint64_t n, uint64_t parts, bool by_content)
{
    static bool keep[MOST];
    static unsigned char owners[MOST];
    uint64_t least = n, most = 0;
    memset(owners, 0, sizeof owners);
    for (uint64_t part = 0; part < parts; part++) {
        struct dpf_partition p = {.rule = DPF_PART_OF,
                                  .parts = parts,
                                  .part = part,
                                  .seed = 3,
                                  .total_known = true,
                                  .total = n,
                                  .by_content = by_content};
        uint64_t promised = 0;
        CU_ASSERT_FATAL(choose(&p, NULL, n, keep, NULL) == DPF_OK);
        uint64_t kept = count(keep, n);
        CU_ASSERT(dpf_partition_size(&p, &promised) == !by_content);
        CU_ASSERT(by_content || promised == kept);
        least = kept < least ? kept : least;
        most = kept > most ? kept : most;
        for (uint64_t i = 0; i < n; i++)
            owners[i] += keep[i];
        dpf_partition_release(&p);
    }
    for (uint64_t i = 0; i < n; i++)
        CU_ASSERT_FATAL(owners[i] == 1); /* disjoint and complete */
    CU_ASSERT(by_content || most - least <= 1);
}

static void test_parts(void)
{
    static const uint64_t sizes[][2] = {{0, 3},     {1, 1},     {1, 5},
                                        {10, 3},    {100, 7},   {99, 100},
                                        {1000, 10}, {5000, 13}, {4097, 64}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_parts(sizes[i][0], sizes[i][1], false);
        check_parts(sizes[i][0], sizes[i][1], true);
    }
}

static void test_parts_are_shuffled(void)
{
    static bool one[MOST], two[MOST], again[MOST];
    struct dpf_partition p = {.rule = DPF_PART_OF, .parts = 10, .part = 4, .seed = 1};
    CU_ASSERT_FATAL(choose(&p, NULL, MOST, one, NULL) == DPF_OK);
    dpf_partition_release(&p);
    CU_ASSERT_FATAL(choose(&p, NULL, MOST, again, NULL) == DPF_OK);
    dpf_partition_release(&p);
    CU_ASSERT(memcmp(one, again, sizeof one) == 0); /* the same seed, the same part */
    p.seed = 2;
    CU_ASSERT_FATAL(choose(&p, NULL, MOST, two, NULL) == DPF_OK);
    dpf_partition_release(&p);
    uint64_t common = 0, places[10] = {0};
    for (int i = 0; i < MOST; i++) {
        common += one[i] && two[i];
        places[i % 10] += one[i];
    }
    CU_ASSERT(common > 20 && common < 90); /* 50 by chance */
    for (int i = 0; i < 10; i++)
        CU_ASSERT(places[i] > 15 && places[i] < 90);
}

static void test_fraction(void)
{
    static const double shares[] = {0, 0.1, 0.25, 1.0 / 3, 0.5, 0.9, 1};
    static const uint64_t sizes[] = {0, 1, 2, 7, 100, 999, 5000};
    static bool keep[MOST], rest[MOST];
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
            for (int known = 0; known < 2; known++) {
                uint64_t n = sizes[k], size = 0, other = 0;
                struct dpf_partition p = {.rule = DPF_PART_FRACTION,
                                          .fraction = shares[s],
                                          .seed = 5,
                                          .total_known = known,
                                          .total = n};
                struct dpf_partition q = p;
                q.rest = true;
                CU_ASSERT_FATAL(choose(&p, NULL, n, keep, NULL) == DPF_OK);
                CU_ASSERT_FATAL(choose(&q, NULL, n, rest, NULL) == DPF_OK);
                for (uint64_t i = 0; i < n; i++)
                    CU_ASSERT_FATAL(keep[i] != rest[i]);
                CU_ASSERT(dpf_partition_size(&p, &size) == known);
                CU_ASSERT(dpf_partition_size(&q, &other) == known);
                if (known) {
                    CU_ASSERT(size == (uint64_t)llround(shares[s] * (double)n));
                    CU_ASSERT(size == count(keep, n) && size + other == n);
                }
                dpf_partition_release(&p);
                dpf_partition_release(&q);
            }
    /* Every place has the same chance: the two halves get their share. */
    struct dpf_partition p = {
        .rule = DPF_PART_FRACTION, .fraction = 0.2, .total_known = true, .total = MOST};
    CU_ASSERT_FATAL(choose(&p, NULL, MOST, keep, NULL) == DPF_OK);
    uint64_t first = count(keep, MOST / 2);
    CU_ASSERT(count(keep, MOST) == 1000 && first > 400 && first < 600);
}

/* In order: parts are contiguous. Remove any record of any small set, and each part loses
 * at most one record and gains at most one; replace one, and one part differs. */
static void check_order(struct dpf_partition p, uint64_t n)
{
    bool larger[32], smaller[32];
    struct dpf_partition q = p;
    uint64_t size = 0;
    p.by_order = q.by_order = p.total_known = q.total_known = true;
    p.total = n;
    q.total = n - 1;
    CU_ASSERT_FATAL(choose(&p, NULL, n, larger, NULL) == DPF_OK);
    CU_ASSERT_FATAL(choose(&q, NULL, n - 1, smaller, NULL) == DPF_OK);
    CU_ASSERT(dpf_partition_size(&p, &size) && size == count(larger, n));
    for (uint64_t i = 2; i < n; i++) /* no gap */
        CU_ASSERT(!(larger[i] && !larger[i - 1] && count(larger, i) > 0));
    for (uint64_t removed = 0; removed < n; removed++) {
        int lost = 0, gained = 0;
        for (uint64_t i = 0; i < n; i++) {
            bool after = i != removed && smaller[i - (i > removed)];
            lost += larger[i] && !after;
            gained += !larger[i] && after;
        }
        CU_ASSERT(lost <= 1 && gained <= 1);
    }
    CU_ASSERT(dpf_partition_keeps(&p).add_remove == 2);
    CU_ASSERT(dpf_partition_keeps(&p).replace_one == 1 && !dpf_partition_keeps(&p).own);
    dpf_partition_release(&p);
    dpf_partition_release(&q);
}

static void test_order(void)
{
    static const double shares[] = {0, 0.1, 0.25, 1.0 / 3, 0.5, 0.62, 0.9, 1};
    for (uint64_t n = 1; n <= 24; n++) {
        for (uint64_t parts = 1; parts <= 9; parts++)
            for (uint64_t part = 0; part < parts; part++)
                check_order((struct dpf_partition){.rule = DPF_PART_OF,
                                                   .parts = parts,
                                                   .part = part},
                            n);
        for (size_t i = 0; i < 2 * sizeof shares / sizeof *shares; i++)
            check_order((struct dpf_partition){.rule = DPF_PART_FRACTION,
                                               .fraction = shares[i / 2],
                                               .rest = i % 2},
                        n);
    }
    struct dpf_partition p = {.rule = DPF_PART_OF, .parts = 2, .by_order = true};
    struct dpf_error e = {0};
    CU_ASSERT(dpf_partition_start(&p, &e) == DPF_USAGE);
    CU_ASSERT(strstr(e.message, "how many") != NULL);
    /* the others, as they always were */
    p.by_order = false;
    CU_ASSERT(dpf_partition_keeps(&p).add_remove == 0);
    p.by_content = true;
    CU_ASSERT(dpf_partition_keeps(&p).add_remove == 1 && dpf_partition_keeps(&p).own);
    CU_ASSERT(dpf_partition_keeps(&p).replace_one == 0);
}

/* By content, a record's fate does not depend on the others. */
static void test_by_content(void)
{
    enum { N = 2000, GONE = 700 };
    static int64_t content[N];
    static bool all[N], fewer[N];
    for (int rule = 0; rule < 2; rule++) {
        struct dpf_partition p = {.rule = rule ? DPF_PART_OF : DPF_PART_FRACTION,
                                  .by_content = true,
                                  .seed = 9,
                                  .fraction = 0.3,
                                  .parts = 4,
                                  .part = 2};
        for (int i = 0; i < N; i++)
            content[i] = i * 17;
        CU_ASSERT_FATAL(choose(&p, content, N, all, NULL) == DPF_OK);
        dpf_partition_release(&p);
        memmove(content + GONE, content + GONE + 1, (N - GONE - 1) * sizeof *content);
        /* y is i % 10, and part of the content: keep it with its record */
        struct dpf_header h = numbered_header();
        struct dpf_batch b;
        CU_ASSERT_FATAL(dpf_batch_init(&b, &h, N - 1, NULL) == DPF_OK);
        for (int i = 0; i < N - 1; i++) {
            ((int64_t *)b.tensor[0].data)[i] = content[i];
            ((uint8_t *)b.tensor[1].data)[i] = (uint8_t)((i < GONE ? i : i + 1) % 10);
        }
        CU_ASSERT_FATAL(dpf_partition_start(&p, NULL) == DPF_OK);
        CU_ASSERT_FATAL(dpf_partition_choose(&p, &h, &b, fewer, NULL) == DPF_OK);
        for (int i = 0; i < N - 1; i++)
            CU_ASSERT(fewer[i] == all[i < GONE ? i : i + 1]);
        double share = (double)count(all, N) / N, due = rule ? 0.25 : 0.3;
        CU_ASSERT(near(share, due, 0.05));
        dpf_partition_release(&p);
        dpf_batch_release(&b);
        dpf_header_release(&h);
    }
    struct dpf_partition p = {
        .rule = DPF_PART_FRACTION, .by_content = true, .fraction = 0.3};
    struct dpf_partition q = p;
    q.rest = true;
    CU_ASSERT(choose(&p, NULL, N, all, NULL) == DPF_OK);
    CU_ASSERT(choose(&q, NULL, N, fewer, NULL) == DPF_OK);
    for (int i = 0; i < N; i++)
        CU_ASSERT(all[i] != fewer[i]);
}

static void test_classes(void)
{
    static bool keep[100];
    struct dpf_error e = {0};
    uint64_t size;
    struct dpf_partition p = {.rule = DPF_PART_CLASS,
                              .class_field = "y",
                              .class_count = 2,
                              .classes = {3, 7},
                              .total_known = true,
                              .total = 100};
    CU_ASSERT_FATAL(choose(&p, NULL, 100, keep, &e) == DPF_OK);
    for (int i = 0; i < 100; i++)
        CU_ASSERT(keep[i] == (i % 10 == 3 || i % 10 == 7));
    CU_ASSERT(!dpf_partition_size(&p, &size));
    p.class_field = "z";
    CU_ASSERT(refused(choose(&p, NULL, 100, keep, &e), DPF_BAD_STREAM, &e,
                      "the stream has no field 'z'"));
    p = (struct dpf_partition){.rule = DPF_PART_OF, .parts = 3, .part = 3};
    CU_ASSERT(
        refused(dpf_partition_start(&p, &e), DPF_USAGE, &e, "part 3 of 3 does not"));
    p = (struct dpf_partition){.rule = DPF_PART_OF, .parts = 0, .part = 0};
    CU_ASSERT(dpf_partition_start(&p, &e) == DPF_USAGE);
    p = (struct dpf_partition){.rule = DPF_PART_OF, .parts = DPF_PARTITION_MAX_PARTS + 1};
    CU_ASSERT(dpf_partition_start(&p, &e) == DPF_USAGE);
}

/* ---- summaries ---- */

static void check_summary(double *values, uint64_t n)
{
    struct dpf_summary s = {0};
    uint64_t bars[20], mass = 0, bins = 0;
    double sum = 0, square = 0, lo = INFINITY, hi = -INFINITY;
    struct dpf_tensor t = view(DPF_F64, SHAPE(n), values);
    dpf_summary_add(&s, &t);
    for (uint64_t i = 0; i < n; i++) {
        sum += values[i];
        lo = fmin(lo, values[i]);
        hi = fmax(hi, values[i]);
    }
    double mean = sum / (double)n, scale = fmax(fabs(lo), fabs(hi));
    for (uint64_t i = 0; i < n; i++)
        square += (values[i] - mean) * (values[i] - mean);
    CU_ASSERT(s.count == n && s.not_finite == 0 && s.lo == lo && s.hi == hi);
    CU_ASSERT(near(dpf_summary_mean(&s), mean, 1e-9 * scale));
    CU_ASSERT(near(dpf_summary_deviation(&s), sqrt(square / (double)n), 1e-6 * scale));
    dpf_summary_histogram(&s, bars, 20);
    for (int i = 0; i < 20; i++)
        mass += bars[i];
    for (int i = 0; i < DPF_SUMMARY_BINS; i++)
        bins += s.bins[i];
    CU_ASSERT(mass == n && bins == n);
    CU_ASSERT(s.start <= lo && s.start + DPF_SUMMARY_BINS * s.width > hi);
    /* Values lie in the bin that covers them. */
    for (int i = 0; i < DPF_SUMMARY_BINS; i++) {
        uint64_t inside = 0;
        for (uint64_t k = 0; k < n; k++)
            inside += values[k] >= s.start + i * s.width &&
                      values[k] < s.start + (i + 1) * s.width;
        CU_ASSERT(inside == s.bins[i]);
    }
}

static void test_summary(void)
{
    enum { N = 3000 };
    static double values[N];
    struct dpf_seeded r;
    dpf_seeded_init(&r, "summary", 1, 0);
    for (int i = 0; i < N; i++)
        values[i] = dpf_seeded_normal(&r);
    check_summary(values, N);
    for (int i = 0; i < N; i++)
        values[i] = dpf_seeded_below(&r, 2);
    check_summary(values, N);
    for (int i = 0; i < N; i++)
        values[i] = ldexp(1, (int)dpf_seeded_below(&r, 60) - 30) *
                    (dpf_seeded_below(&r, 2) ? 1 : -1);
    check_summary(values, N);
    for (int i = 0; i < N; i++)
        values[i] = -42;
    check_summary(values, N);
    for (int i = 0; i < N; i++)
        values[i] = i;
    check_summary(values, N);
    struct dpf_summary s = {0};
    uint64_t bars[10];
    CU_ASSERT(dpf_summary_deviation(&s) == 0);
    dpf_summary_histogram(&s, bars, 10);
    CU_ASSERT(bars[0] == 0 && bars[9] == 0);
    float odd[] = {NAN, 1, INFINITY, 3, -INFINITY};
    struct dpf_tensor t = view(DPF_F32, SHAPE(5), odd);
    dpf_summary_add(&s, &t);
    CU_ASSERT(s.count == 2 && s.not_finite == 3 && dpf_summary_mean(&s) == 2 &&
              s.lo == 1 && s.hi == 3);
}

static int extreme_summary(void *context)
{
    double *values = context;
    struct dpf_summary guard[3] = {{0}, {0}, {0}};
    struct dpf_shape shape = SHAPE(2);
    struct dpf_tensor t;
    uint64_t mass = 0;
    if (dpf_tensor_view(&t, DPF_F64, &shape, values, NULL) != DPF_OK)
        return 1;
    dpf_summary_add(&guard[1], &t);
    for (int i = 0; i < DPF_SUMMARY_BINS; i++)
        mass += guard[1].bins[i];
    return mass == 2 ? 0 : 2;
}

/* The largest numbers there are have a place in the histogram, too. */
static void test_summary_extremes(void)
{
    static double pairs[][2] = {{-DBL_MAX, DBL_MAX}, {DBL_MAX, -DBL_MAX}, {0, DBL_MAX},
                                {5e-324, DBL_MAX},   {-1e308, 1e308},     {1, -DBL_MAX}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        int result = in_child(extreme_summary, pairs[i], 2000);
        if (result)
            printf("    %g and %g: %d\n", pairs[i][0], pairs[i][1], result);
        CU_ASSERT(result == 0);
    }
}

/* ---- npy files ---- */

static struct dpf_field field_of(enum dpf_dtype dtype, struct dpf_shape shape)
{
    return (struct dpf_field){.name = "x", .dtype = dtype, .shape = shape};
}

static void test_npy_written(void)
{
    double one[] = {1, 2, 3, 4}, two[] = {5, 6};
    struct dpf_field f = field_of(DPF_F64, SHAPE(2));
    struct dpf_tensor a = view(DPF_F64, SHAPE(2, 2), one);
    struct dpf_tensor b = view(DPF_F64, SHAPE(1, 2), two);
    struct dpf_npy_writer w;
    struct dpf_error e = {0};
    char *data;
    size_t size;
    folder_begin();
    const char *path = in_folder("x.npy");
    CU_ASSERT_FATAL(dpf_npy_writer_open(&w, path, &f, &e) == DPF_OK);
    CU_ASSERT(dpf_npy_writer_add(&w, &a, &e) == DPF_OK);
    CU_ASSERT(dpf_npy_writer_add(&w, &b, &e) == DPF_OK && !there(path));
    CU_ASSERT(dpf_npy_writer_finish(&w, &e) == DPF_OK && there(path));
    CU_ASSERT(!there(in_folder("x.npy.part")));
    CU_ASSERT_FATAL(dpf_read_file(path, 1000, &data, &size, &e) == DPF_OK);
    CU_ASSERT_FATAL(size == 256 + 48);
    CU_ASSERT(memcmp(data, "\x93NUMPY\1\0\366\0", 10) == 0 && data[255] == '\n');
    CU_ASSERT(memcmp(data + 256, one, 32) == 0 && memcmp(data + 288, two, 16) == 0);
    CU_ASSERT(strncmp(data + 10,
                      "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2,), }",
                      60) == 0);
    free(data);
    struct dpf_source *s;
    struct dpf_batch batch;
    CU_ASSERT_FATAL(dpf_npy_open(path, 0, &s, &e) == DPF_OK);
    CU_ASSERT(s->header.records == 3 && s->header.fields[0].dtype == DPF_F64);
    CU_ASSERT_FATAL(dpf_source_next(s, &batch, 10, &e) == DPF_OK);
    for (uint64_t i = 0; i < 6; i++)
        CU_ASSERT(dpf_tensor_get(&batch.tensor[0], i) == (double)i + 1);
    dpf_batch_release(&batch);
    dpf_source_destroy(&s);
    folder_end();
}

static void test_npy_dtypes(void)
{
    static const char *const due[] = {"'|u1', 'fortran_order': False, 'shape': (1, 3,)",
                                      "'<i4', 'fortran_order': False, 'shape': (1, 3,)",
                                      "'<i8', 'fortran_order': False, 'shape': (1, 3,)",
                                      "'<f4', 'fortran_order': False, 'shape': (1, 3,)",
                                      "'<f8', 'fortran_order': False, 'shape': (1, 3,)",
                                      "'|u1', 'fortran_order': False, 'shape': (1, 1,)"};
    uint64_t zeros[3] = {0};
    folder_begin();
    for (int d = 0; d < DPF_DTYPE_COUNT; d++) {
        struct dpf_field f = field_of((enum dpf_dtype)d, SHAPE(3));
        struct dpf_tensor t = view((enum dpf_dtype)d, SHAPE(1, 3), zeros);
        struct dpf_npy_writer w;
        char *data;
        size_t size;
        CU_ASSERT_FATAL(dpf_npy_writer_open(&w, in_folder("d"), &f, NULL) == DPF_OK);
        CU_ASSERT(dpf_npy_writer_add(&w, &t, NULL) == DPF_OK);
        CU_ASSERT(dpf_npy_writer_finish(&w, NULL) == DPF_OK);
        CU_ASSERT_FATAL(dpf_read_file(in_folder("d"), 1000, &data, &size, NULL) ==
                        DPF_OK);
        CU_ASSERT(strstr(data + 10, due[d]) != NULL && size == 256 + t.bytes);
        free(data);
    }
    struct dpf_field scalar = field_of(DPF_U8, (struct dpf_shape){0});
    struct dpf_npy_writer w;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_npy_writer_open(&w, in_folder("gone"), &scalar, &e) == DPF_OK);
    CU_ASSERT(there(in_folder("gone.part")));
    dpf_npy_writer_abort(&w);
    CU_ASSERT(!there(in_folder("gone")) && !there(in_folder("gone.part")));
    CU_ASSERT(dpf_npy_writer_open(&w, in_folder("no/x"), &scalar, &e) == DPF_SYSTEM);
    dpf_npy_writer_abort(&w);
    /* The longest header there is. */
    struct dpf_field wide = field_of(DPF_F64, SHAPE(1, 1, 1, 1, 1, 1, 4294967295ull / 8));
    CU_ASSERT(dpf_npy_writer_open(&w, in_folder("wide"), &wide, &e) == DPF_OK);
    dpf_npy_writer_abort(&w);
    folder_end();
}

/* ---- pictures ---- */

static png_bytep read_png(const char *path, png_image *image)
{
    *image = (png_image){.version = PNG_IMAGE_VERSION};
    CU_ASSERT_FATAL(png_image_begin_read_from_file(image, path));
    image->format = PNG_FORMAT_RGB;
    png_bytep pixels = malloc(PNG_IMAGE_SIZE(*image));
    CU_ASSERT_FATAL(pixels != NULL);
    CU_ASSERT_FATAL(png_image_finish_read(image, NULL, pixels, 0, NULL));
    return pixels;
}

static void test_sheet(void)
{
    /* Four records of 32x32: all 0, all 1, all 0.5, all NaN; classes 0, 1, 1, 9. */
    enum { SIDE = 32, RECORD = SIDE * SIDE, CELL = 2 * SIDE + 2 };
    static float values[4 * RECORD];
    struct dpf_shape record = SHAPE(SIDE, SIDE);
    struct dpf_sheet *s;
    struct dpf_error e = {0};
    png_image image;
    for (int i = 0; i < RECORD; i++) {
        values[RECORD + i] = 1;
        values[2 * RECORD + i] = 0.5f;
        values[3 * RECORD + i] = NAN;
    }
    struct dpf_tensor x = view(DPF_F32, SHAPE(4, SIDE, SIDE), values);
    folder_begin();
    CU_ASSERT_FATAL(dpf_sheet_new(&s, &record, 3, &e) == DPF_OK);
    dpf_sheet_add(s, &x, 0, 0);
    dpf_sheet_add(s, &x, 1, 1);
    dpf_sheet_add(s, &x, 2, 1);
    dpf_sheet_add(s, &x, 3, 9); /* no such row: ignored */
    CU_ASSERT(!dpf_sheet_full(s));
    const char *path = in_folder("x.png");
    CU_ASSERT(dpf_sheet_write(s, path, &e) == DPF_OK && !there(in_folder("x.png.part")));
    png_bytep pixels = read_png(path, &image);
    /* as large as what is on it: two rows, two columns */
    CU_ASSERT_FATAL(image.width == 2 * CELL + 2 && image.height == 2 * CELL + 2);
    size_t stride = 3 * image.width;
    CU_ASSERT(pixels[0] == 48);                                     /* the gap */
    CU_ASSERT(pixels[5 * stride + 3 * 5] == 0);                     /* row 0: 0 */
    CU_ASSERT(pixels[(CELL + 5) * stride + 3 * 5] == 255);          /* row 1: 1 */
    CU_ASSERT(pixels[(CELL + 5) * stride + 3 * (CELL + 5)] == 128); /* and 0.5 */
    CU_ASSERT(pixels[5 * stride + 3 * (CELL + 5)] == 48);           /* row 0: no more */
    free(pixels);
    for (int i = 0; i < 40; i++)
        dpf_sheet_add(s, &x, 3, (uint64_t)i % 3);
    CU_ASSERT(dpf_sheet_full(s));
    CU_ASSERT(dpf_sheet_write(s, path, &e) == DPF_OK);
    free(read_png(path, &image));
    CU_ASSERT(image.width == 10 * CELL + 2 && image.height == 3 * CELL + 2);
    CU_ASSERT(dpf_sheet_write(s, in_folder("no/x.png"), &e) == DPF_SYSTEM);
    dpf_sheet_destroy(&s);
    CU_ASSERT(s == NULL);
    dpf_sheet_destroy(&s);
    folder_end();
}

static void test_sheet_colour(void)
{
    unsigned char values[3 * 4] = {255, 255, 255, 255, 0, 0, 0, 0, 128, 128, 128, 128};
    struct dpf_shape record = SHAPE(3, 2, 2);
    struct dpf_tensor x = view(DPF_U8, SHAPE(1, 3, 2, 2), values);
    struct dpf_sheet *s;
    png_image image;
    folder_begin();
    CU_ASSERT_FATAL(dpf_sheet_new(&s, &record, 0, NULL) == DPF_OK);
    for (int i = 0; i < 100; i++) {
        CU_ASSERT(!dpf_sheet_full(s));
        dpf_sheet_add(s, &x, 0, UINT64_MAX);
    }
    CU_ASSERT(dpf_sheet_full(s));
    dpf_sheet_add(s, &x, 0, UINT64_MAX);
    CU_ASSERT(dpf_sheet_write(s, in_folder("c.png"), NULL) == DPF_OK);
    png_bytep pixels = read_png(in_folder("c.png"), &image);
    png_bytep p = pixels + 3 * (5 * image.width + 5);
    CU_ASSERT(p[0] == 255 && p[1] == 0 && p[2] == 128);
    free(pixels);
    dpf_sheet_destroy(&s);
    folder_end();
}

static void test_sheet_shapes(void)
{
    const struct dpf_shape good[] = {SHAPE(8, 8),    SHAPE(1, 8, 8),    SHAPE(3, 8, 8),
                                     SHAPE(5, 8, 8), SHAPE(2, 4, 8, 8), SHAPE(512, 512)};
    const struct dpf_shape bad[] = {{0},
                                    SHAPE(64),
                                    SHAPE(0, 8),
                                    SHAPE(8, 513),
                                    SHAPE(17, 4, 8, 8),
                                    SHAPE(1, 1, 1, 8, 8),
                                    SHAPE(1ull << 40, 1ull << 40)};
    struct dpf_sheet *s;
    struct dpf_error e = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CU_ASSERT(dpf_sheet_can_draw(&good[i]));
        CU_ASSERT_FATAL(dpf_sheet_new(&s, &good[i], 2, &e) == DPF_OK);
        dpf_sheet_destroy(&s);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT(!dpf_sheet_can_draw(&bad[i]));
        CU_ASSERT(refused(dpf_sheet_new(&s, &bad[i], 2, &e), DPF_USAGE, &e, "pictures"));
    }
    /* The middle slice of a volume is what is drawn. */
    float volume[3 * 4] = {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0};
    struct dpf_shape record = SHAPE(1, 3, 2, 2);
    struct dpf_tensor x = view(DPF_F32, SHAPE(1, 1, 3, 2, 2), volume);
    float black[3 * 4] = {0};
    struct dpf_tensor y = view(DPF_F32, SHAPE(1, 1, 3, 2, 2), black);
    png_image image;
    folder_begin();
    CU_ASSERT_FATAL(dpf_sheet_new(&s, &record, 0, &e) == DPF_OK);
    dpf_sheet_add(s, &x, 0, UINT64_MAX);
    dpf_sheet_add(s, &y, 0, UINT64_MAX);
    CU_ASSERT(dpf_sheet_write(s, in_folder("v.png"), &e) == DPF_OK);
    png_bytep pixels = read_png(in_folder("v.png"), &image);
    CU_ASSERT(pixels[3 * (5 * image.width + 5)] == 255);
    CU_ASSERT(pixels[3 * (5 * image.width + 5 + 66)] == 0);
    free(pixels);
    dpf_sheet_destroy(&s);
    folder_end();
}

const char dpf_suite[] = "transform";

const struct dpf_test dpf_tests[] = {
    {"scale: one pair of bounds", test_scale_one_pair},
    {"scale: bounds and moments for each feature", test_scale_each_feature},
    {"scale: many values, exact counts", test_scale_large},
    {"scale: a value on its bound is inside", test_scale_on_the_bounds},
    {"scale: hostile bounds", test_scale_hostile_bounds},
    {"scale: NaN and infinity are refused", test_not_finite},
    {"scale: z-scores", test_zscore},
    {"scale: no norm above the radius", test_ball},
    {"scale: the smallest balls", test_tiny_ball},
    {"scale: moments", test_moments},
    {"parts are disjoint, complete, of promised size", test_parts},
    {"parts are shuffled and reproducible", test_parts_are_shuffled},
    {"a fraction and its rest", test_fraction},
    {"in order: one record more moves two of each part", test_order},
    {"by content: others do not matter", test_by_content},
    {"classes, and parts that do not exist", test_classes},
    {"summary and histogram", test_summary},
    {"summary of the largest numbers", test_summary_extremes},
    {"npy files are written", test_npy_written},
    {"npy: every dtype, and nothing half", test_npy_dtypes},
    {"contact sheet: rows, shades, gaps", test_sheet},
    {"contact sheet in colour", test_sheet_colour},
    {"contact sheet: shapes and slices", test_sheet_shapes},
    {0},
};
