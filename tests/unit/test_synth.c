/* The synthetic data sets: the same bytes however they are read, values where the header
 * says, and something in them to learn. */
#include "data/synth.h"

#include <string.h>

#include "base/digest.h"
#include "harness.h"

#include "base/banned.h"

typedef enum dpf_status (*open_function)(uint64_t seed, uint64_t first, uint64_t count,
                                         struct dpf_source **take, struct dpf_error *e);

static enum dpf_status open_volumes(uint64_t seed, uint64_t first, uint64_t count,
                                    struct dpf_source **take, struct dpf_error *e)
{
    return dpf_synth_tumour_open(seed, first, count, 2, 16, take, e);
}

static const open_function generators[] = {dpf_synth_digits_open, dpf_synth_census_open,
                                           open_volumes, dpf_synth_glyphs_open,
                                           dpf_synth_leaves_open};
enum { GENERATORS = sizeof generators / sizeof generators[0] };

/* Both fields of all records, one record behind the other. */
struct table {
    struct dpf_buffer x, y;
    uint64_t rows;
};

static void table_release(struct table *t)
{
    dpf_buffer_release(&t->x);
    dpf_buffer_release(&t->y);
}

/* Read a source to its end and destroy it. */
static struct table table_read(struct dpf_source *take_source, uint64_t batch)
{
    struct table t = {0};
    struct dpf_batch b;
    struct dpf_error e;
    uint64_t rows;
    do {
        CU_ASSERT_FATAL(dpf_source_next(take_source, &b, batch, &e) == DPF_OK);
        rows = b.rows;
        dpf_buffer_append(&t.x, b.tensor[0].data, b.tensor[0].bytes);
        dpf_buffer_append(&t.y, b.tensor[1].data, b.tensor[1].bytes);
        t.rows += rows;
        dpf_batch_release(&b);
    } while (rows);
    CU_ASSERT_FATAL(dpf_buffer_ok(&t.x) && dpf_buffer_ok(&t.y));
    CU_ASSERT(t.rows == take_source->header.records);
    dpf_source_destroy(&take_source);
    return t;
}

static struct table table_make(open_function open, uint64_t seed, uint64_t first,
                               uint64_t count, uint64_t batch)
{
    struct dpf_source *s = NULL;
    struct dpf_error e;
    CU_ASSERT_FATAL(open(seed, first, count, &s, &e) == DPF_OK);
    return table_read(s, batch);
}

/* Are the records of `part` those of `whole` from row `from` on? */
static bool table_has(const struct table *whole, const struct table *part, uint64_t from)
{
    size_t x = whole->x.size / whole->rows, y = whole->y.size / whole->rows;
    return from + part->rows <= whole->rows && part->x.size == part->rows * x &&
           part->y.size == part->rows * y &&
           memcmp(whole->x.data + from * x, part->x.data, part->x.size) == 0 &&
           memcmp(whole->y.data + from * y, part->y.data, part->y.size) == 0;
}

static void test_records_do_not_depend_on_reading(void)
{
    for (int g = 0; g < GENERATORS; g++) {
        struct table whole = table_make(generators[g], 7, 0, 30, 30);
        struct table small = table_make(generators[g], 7, 0, 30, 7);
        struct table fewer = table_make(generators[g], 7, 0, 11, 4);
        struct table later = table_make(generators[g], 7, 19, 11, 64);
        CU_ASSERT(table_has(&whole, &small, 0));
        CU_ASSERT(table_has(&whole, &fewer, 0));
        CU_ASSERT(table_has(&whole, &later, 19));
        table_release(&whole);
        table_release(&small);
        table_release(&fewer);
        table_release(&later);
    }
}

static void test_seeds_and_records_differ(void)
{
    for (int g = 0; g < GENERATORS; g++) {
        struct table one = table_make(generators[g], 7, 0, 10, 10);
        struct table other = table_make(generators[g], 8, 0, 10, 10);
        size_t row = one.x.size / one.rows;
        CU_ASSERT(memcmp(one.x.data, other.x.data, one.x.size) != 0);
        for (size_t i = 1; i < 10; i++)
            CU_ASSERT(memcmp(one.x.data, one.x.data + i * row, row) != 0);
        table_release(&one);
        table_release(&other);
    }
}

static void check_bounds(const struct dpf_field *f, const struct dpf_tensor *t)
{
    uint64_t n = dpf_shape_elements(&t->shape), bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        double value = dpf_tensor_get(t, i);
        size_t pair = f->bounds.count ? i % f->bounds.count : 0;
        double lo = f->classes ? 0 : f->bounds.lo[pair];
        double hi = f->classes ? (double)f->classes - 1 : f->bounds.hi[pair];
        bad += !(value >= lo && value <= hi);
    }
    CU_ASSERT_EQUAL(bad, 0);
}

static void test_values_are_in_declared_bounds(void)
{
    static const uint64_t counts[GENERATORS] = {500, 20000, 12, 2000, 50};
    for (int g = 0; g < GENERATORS; g++) {
        struct dpf_source *s = NULL;
        struct dpf_batch b;
        struct dpf_error e;
        CU_ASSERT_FATAL(generators[g](3, 100, counts[g], &s, &e) == DPF_OK);
        CU_ASSERT_FATAL(s->header.field_count == 2);
        CU_ASSERT(s->header.has_records && s->header.records == counts[g]);
        CU_ASSERT(!s->header.is_private);
        CU_ASSERT_FATAL(dpf_source_next(s, &b, counts[g], &e) == DPF_OK);
        CU_ASSERT(b.rows == counts[g]);
        for (int f = 0; f < 2; f++) {
            CU_ASSERT((s->header.fields[f].classes > 0) ^
                      (s->header.fields[f].bounds.count > 0));
            check_bounds(&s->header.fields[f], &b.tensor[f]);
        }
        dpf_batch_release(&b);
        dpf_source_destroy(&s);
    }
}

static void test_census_declares_its_features(void)
{
    struct dpf_source *s = NULL;
    struct dpf_header copy;
    struct dpf_error e;
    CU_ASSERT_FATAL(dpf_synth_census_open(1, 0, 5, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_header_copy(&copy, &s->header, &e) == DPF_OK);
    struct dpf_field *x = dpf_header_field(&copy, "x");
    CU_ASSERT_FATAL(x && x->feature_count == DPF_SYNTH_CENSUS_FEATURES &&
                    x->bounds.count == DPF_SYNTH_CENSUS_FEATURES);
    CU_ASSERT_STRING_EQUAL(x->features[0], "age");
    CU_ASSERT(x->bounds.lo[0] == 16 && x->bounds.hi[0] == 95);
    struct dpf_field *y = dpf_header_field(&copy, "y");
    CU_ASSERT_FATAL(y && y->shape.rank == 0 && y->bounds.count == 1);
    CU_ASSERT(y->bounds.lo[0] == 0 && y->bounds.hi[0] == 400000);
    dpf_header_release(&copy);
    dpf_source_destroy(&s);
}

static void test_bad_requests_are_refused(void)
{
    struct dpf_source *s = NULL;
    struct dpf_error e;
    CU_ASSERT(dpf_synth_digits_open(1, 2, UINT64_MAX - 1, &s, &e) == DPF_USAGE);
    CU_ASSERT(dpf_synth_tumour_open(1, 0, 1, 0, 32, &s, &e) == DPF_USAGE);
    CU_ASSERT(dpf_synth_tumour_open(1, 0, 1, 5, 32, &s, &e) == DPF_USAGE);
    CU_ASSERT(dpf_synth_tumour_open(1, 0, 1, 4, 15, &s, &e) == DPF_USAGE);
    CU_ASSERT(dpf_synth_tumour_open(1, 0, 1, 4, 129, &s, &e) == DPF_USAGE);
    CU_ASSERT_PTR_NULL(s);
    struct table none = table_make(dpf_synth_digits_open, 1, 9, 0, 4);
    CU_ASSERT(none.rows == 0);
    table_release(&none);
}

enum { PIXELS = DPF_SYNTH_DIGIT_SIDE * DPF_SYNTH_DIGIT_SIDE, DIGITS = 10 };

static void digit_means(const struct table *t, double mean[DIGITS][PIXELS])
{
    double count[DIGITS] = {0};
    memset(mean, 0, sizeof(double[DIGITS][PIXELS]));
    for (uint64_t i = 0; i < t->rows; i++) {
        int label = t->y.data[i];
        count[label]++;
        for (int k = 0; k < PIXELS; k++)
            mean[label][k] += t->x.data[i * PIXELS + k];
    }
    for (int label = 0; label < DIGITS; label++) {
        /* Labels are uniform: 300 of 3,000 each, give or take six deviations. */
        CU_ASSERT(count[label] > 200 && count[label] < 400);
        for (int k = 0; k < PIXELS; k++)
            mean[label][k] /= count[label];
    }
}

static int nearest_mean(const unsigned char *image, double mean[DIGITS][PIXELS])
{
    int best = 0;
    double least = 1e300;
    for (int label = 0; label < DIGITS; label++) {
        double square = 0;
        for (int k = 0; k < PIXELS; k++)
            square += (image[k] - mean[label][k]) * (image[k] - mean[label][k]);
        if (square < least) {
            least = square;
            best = label;
        }
    }
    return best;
}

static void test_digits_can_be_told_apart(void)
{
    static double mean[DIGITS][PIXELS];
    struct table train = table_make(dpf_synth_digits_open, 1, 0, 3000, 256);
    struct table test = table_make(dpf_synth_digits_open, 1, 60000, 1000, 256);
    int right = 0;
    digit_means(&train, mean);
    for (uint64_t i = 0; i < test.rows; i++)
        right += nearest_mean(test.x.data + i * PIXELS, mean) == test.y.data[i];
    CU_ASSERT(right > 600);
    table_release(&train);
    table_release(&test);
}

static void test_digits_are_white_on_a_black_border(void)
{
    enum { SIDE = DPF_SYNTH_DIGIT_SIDE };
    struct table t = table_make(dpf_synth_digits_open, 2, 0, 1000, 100);
    int border = 0, dim = 0;
    for (uint64_t i = 0; i < t.rows; i++) {
        const unsigned char *image = t.x.data + i * PIXELS;
        int top = 0;
        for (int k = 0; k < PIXELS; k++) {
            int row = k / SIDE, column = k % SIDE;
            if (row == 0 || column == 0 || row == SIDE - 1 || column == SIDE - 1)
                border += image[k];
            top = image[k] > top ? image[k] : top;
        }
        dim += top < 180;
    }
    CU_ASSERT_EQUAL(border, 0);
    CU_ASSERT_EQUAL(dim, 0);
    table_release(&t);
}

/* Four in ten are digits; every one of the 200 classes occurs, and pictures of one differ
 * less from each other than from those of the others. */
static void test_glyphs_have_classes(void)
{
    enum { CLASSES = 200, RECORDS = 6000 };
    static double mean[CLASSES][PIXELS];
    static double count[CLASSES];
    struct table t = table_make(dpf_synth_glyphs_open, 1, 0, RECORDS, 256);
    int digits = 0, near = 0, empty = 0;
    for (uint64_t i = 0; i < t.rows; i++) {
        int label = t.y.data[i], ink = 0;
        digits += label < DIGITS;
        count[label]++;
        for (int k = 0; k < PIXELS; k++) {
            mean[label][k] += t.x.data[i * PIXELS + k];
            ink += t.x.data[i * PIXELS + k];
        }
        empty += ink < 2000;
    }
    CU_ASSERT_EQUAL(empty, 0);
    CU_ASSERT(digits > RECORDS * 2 / 5 - 230 && digits < RECORDS * 2 / 5 + 230);
    for (int c = 0; c < CLASSES; c++) {
        CU_ASSERT(count[c] > 0);
        for (int k = 0; k < PIXELS; k++)
            mean[c][k] /= count[c];
    }
    for (uint64_t i = 0; i < 500; i++) {
        int own = t.y.data[i], other = (own + 97) % CLASSES;
        double a = 0, b = 0;
        for (int k = 0; k < PIXELS; k++) {
            double v = t.x.data[i * PIXELS + k];
            a += (v - mean[own][k]) * (v - mean[own][k]);
            b += (v - mean[other][k]) * (v - mean[other][k]);
        }
        near += a < b;
    }
    CU_ASSERT(near > 450);
    table_release(&t);
}

/* Large leaves have fewer edges than small ones, and nothing is left bare. */
static void test_leaves_have_edges(void)
{
    enum { SIDE = 32, VALUES = 3 * SIDE * SIDE };
    struct table t = table_make(dpf_synth_leaves_open, 1, 0, 200, 64);
    double edges[2] = {0}, count[2] = {0};
    for (uint64_t i = 0; i < t.rows; i++) {
        const unsigned char *image = t.x.data + i * VALUES;
        int large = t.y.data[i] & 1;
        count[large]++;
        for (int k = 0; k + 1 < VALUES; k++)
            if (k % SIDE + 1 < SIDE)
                edges[large] += image[k] > image[k + 1] ? image[k] - image[k + 1]
                                                        : image[k + 1] - image[k];
    }
    CU_ASSERT(count[0] > 50 && count[1] > 50);
    CU_ASSERT(edges[0] / count[0] > 1.2 * edges[1] / count[1]);
    CU_ASSERT(edges[1] / count[1] > VALUES * 2);
    table_release(&t);
}

enum { TERMS = DPF_SYNTH_CENSUS_FEATURES + 1 };

/* The share of the variance that the best linear fit explains: normal equations, by
 * elimination. What remains below the eliminated features in the last column is the
 * residual, so no coefficient is needed. */
static double linear_fit_r2(const struct table *t, const struct dpf_bounds *bounds)
{
    static double a[TERMS + 1][TERMS + 1];
    const float *x = (const float *)t->x.data, *y = (const float *)t->y.data;
    double variance = 0;
    memset(a, 0, sizeof a);
    for (uint64_t i = 0; i < t->rows; i++) {
        double row[TERMS + 1] = {1, [TERMS] = y[i] / 200000 - 1};
        for (size_t k = 0; k < bounds->count; k++)
            row[k + 1] = 2 * (x[i * bounds->count + k] - bounds->lo[k]) /
                             (bounds->hi[k] - bounds->lo[k]) -
                         1;
        for (int p = 0; p <= TERMS; p++)
            for (int q = 0; q <= TERMS; q++)
                a[p][q] += row[p] * row[q];
    }
    for (int p = 0; p < TERMS; p++) {
        for (int q = p + 1; q <= TERMS; q++) {
            double factor = a[q][p] / a[p][p];
            for (int k = p; k <= TERMS; k++)
                a[q][k] -= factor * a[p][k];
        }
        if (p == 0) /* only the constant is eliminated yet */
            variance = a[TERMS][TERMS];
    }
    return 1 - a[TERMS][TERMS] / variance;
}

static void test_census_has_a_linear_part(void)
{
    struct dpf_source *s = NULL;
    struct dpf_header header;
    struct dpf_error e;
    CU_ASSERT_FATAL(dpf_synth_census_open(1, 0, 20000, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_header_copy(&header, &s->header, &e) == DPF_OK);
    struct table t = table_read(s, 999);
    double r2 = linear_fit_r2(&t, &header.fields[0].bounds);
    CU_ASSERT(r2 > .38 && r2 < .48); /* 0.432 on 200,000 records */
    int zero = 0;
    for (uint64_t i = 0; i < t.rows; i++)
        zero += ((const float *)t.y.data)[i] == 0;
    CU_ASSERT(zero > 1600 && zero < 3200);
    table_release(&t);
    dpf_header_release(&header);
}

/* Voxels of class 3 with a neighbour along an axis that is outside the tumour. */
static uint64_t naked_core(const unsigned char *mask, size_t n)
{
    uint64_t naked = 0;
    for (size_t i = 0; i < n * n * n; i++) {
        if (mask[i] != 3)
            continue;
        /* The brain stays clear of the volume's faces, so neighbours exist. */
        naked += !mask[i - 1] || !mask[i + 1] || !mask[i - n] || !mask[i + n] ||
                 !mask[i - n * n] || !mask[i + n * n];
    }
    return naked;
}

static void test_tumours_are_nested(void)
{
    enum { SIDE = 64, RECORDS = 8, VOXELS = SIDE * SIDE * SIDE };
    struct dpf_source *s = NULL;
    struct dpf_error e;
    int with = 0;
    CU_ASSERT_FATAL(dpf_synth_tumour_open(1, 0, RECORDS, 1, SIDE, &s, &e) == DPF_OK);
    struct table t = table_read(s, 3);
    for (int r = 0; r < RECORDS; r++) {
        const unsigned char *mask = t.y.data + (size_t)r * VOXELS;
        const float *x = (const float *)t.x.data + (size_t)r * VOXELS;
        int count[4] = {0}, brain = 0, outside = 0;
        for (int i = 0; i < VOXELS; i++) {
            count[mask[i]]++;
            brain += x[i] > 0;
            outside += mask[i] && x[i] == 0;
        }
        CU_ASSERT(brain > VOXELS / 8 && brain < VOXELS / 2);
        CU_ASSERT_EQUAL(outside, 0);
        CU_ASSERT_EQUAL(naked_core(mask, SIDE), 0);
        CU_ASSERT(count[1] == 0 || (count[1] > count[3] && count[2] && count[3]));
        CU_ASSERT(count[1] > 0 || (count[2] == 0 && count[3] == 0));
        with += count[3] > 0;
    }
    CU_ASSERT(with > 0 && with < RECORDS);
    table_release(&t);
}

/* The contrast agent shows in T1gd (2) and not in T1 (1); edema shows in FLAIR (0). */
static void test_channels_show_tissues_differently(void)
{
    enum { SIDE = 32, VOXELS = SIDE * SIDE * SIDE, CHANNELS = DPF_SYNTH_MAX_CHANNELS };
    struct dpf_source *s = NULL, *fewer = NULL;
    struct dpf_error e;
    double sum[4][CHANNELS] = {{0}}, count[4] = {0};
    CU_ASSERT_FATAL(dpf_synth_tumour_open(1, 1, 2, CHANNELS, SIDE, &s, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_synth_tumour_open(1, 1, 1, 2, SIDE, &fewer, &e) == DPF_OK);
    struct table t = table_read(s, 1), two = table_read(fewer, 1);
    CU_ASSERT(memcmp(t.x.data, two.x.data, two.x.size) == 0);
    CU_ASSERT(memcmp(t.y.data, two.y.data, two.y.size) == 0);
    for (int r = 0; r < 2; r++) {
        const float *x = (const float *)t.x.data + (size_t)r * CHANNELS * VOXELS;
        for (int i = 0; i < VOXELS; i++) {
            int class = t.y.data[(size_t)r * VOXELS + i];
            if (x[i] == 0)
                continue; /* outside the brain */
            count[class]++;
            for (int c = 0; c < CHANNELS; c++)
                sum[class][c] += x[c * VOXELS + i];
        }
    }
    for (int k = 0; k < 4; k++)
        CU_ASSERT_FATAL(count[k] > 0);
    CU_ASSERT(sum[3][2] / count[3] > sum[3][1] / count[3] + .2);
    CU_ASSERT(sum[1][0] / count[1] > sum[0][0] / count[0] + .1);
    CU_ASSERT(sum[2][1] / count[2] < sum[0][1] / count[0] - .1);
    table_release(&t);
    table_release(&two);
}

static void check_sum(const struct dpf_buffer *x, const struct dpf_buffer *y,
                      const char *expected)
{
    char text[DPF_CHECKSUM_TEXT];
    struct dpf_checksum *c = dpf_checksum_new();
    CU_ASSERT_FATAL(c != NULL);
    dpf_checksum_update(c, x->data, x->size);
    dpf_checksum_update(c, y->data, y->size);
    dpf_checksum_text(c, text);
    CU_ASSERT_STRING_EQUAL(text, expected);
    dpf_checksum_destroy(&c);
}

/* Who changes a generator on purpose changes these and datasets/SYNTHETIC.md. */
static void test_bytes_are_those_recorded(void)
{
    static const char *const expected[GENERATORS] = {
        "xxh128:b5b3103368f67e53e0e23b7cdee55b14",
        "xxh128:a7f7296337e4548cd35be93ec377e282",
        "xxh128:9a58e98b9f81bef8e5004d856d0f5c2e",
        "xxh128:cfaaa86200941e66989f1fa2fa253ea5",
        "xxh128:adee70a1a8444c1f88bcd6c5e5d3977a",
    };
    static const uint64_t counts[GENERATORS] = {100, 1000, 4, 100, 10};
    for (int g = 0; g < GENERATORS; g++) {
        struct table t = table_make(generators[g], 1, 0, counts[g], counts[g]);
        check_sum(&t.x, &t.y, expected[g]);
        table_release(&t);
    }
}

const char dpf_suite[] = "synth";
const struct dpf_test dpf_tests[] = {
    {"records do not depend on reading", test_records_do_not_depend_on_reading},
    {"seeds and records differ", test_seeds_and_records_differ},
    {"values are in declared bounds", test_values_are_in_declared_bounds},
    {"census declares its features", test_census_declares_its_features},
    {"bad requests are refused", test_bad_requests_are_refused},
    {"digits can be told apart", test_digits_can_be_told_apart},
    {"digits are white on a black border", test_digits_are_white_on_a_black_border},
    {"glyphs: 200 classes that differ", test_glyphs_have_classes},
    {"leaves: large ones have fewer edges", test_leaves_have_edges},
    {"census has a linear part", test_census_has_a_linear_part},
    {"tumours are nested", test_tumours_are_nested},
    {"channels show tissues differently", test_channels_show_tissues_differently},
    {"bytes are those recorded", test_bytes_are_those_recorded},
    {0},
};
