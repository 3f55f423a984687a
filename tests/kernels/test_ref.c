/* The reference kernels: every gradient against finite differences in double precision,
 * single against double precision, per-example norms against single examples, layouts
 * against examples worked out by hand, and sentinels around every buffer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "kernels/ref/ref64.h"
#include "random/seeded.h"

#include "base/banned.h"

static const struct dpf_kernels64 *const k = &dpf_kernels_ref64;
static const double sentinel = 1234.5;
enum { GUARD = 8 };

/* ------------------------------------------------------------------------ buffers */

/* Values between guards. All live until the end of a test. */
static double *kept[256];
static size_t kept_sizes[256], kept_count;
static struct dpf_seeded source;

static double *buffer(size_t count)
{
    double *b = dpf_calloc(count + 2 * GUARD, sizeof *b);
    if (!b || kept_count == 256)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < GUARD; i++)
        b[i] = b[GUARD + count + i] = sentinel;
    kept[kept_count] = b;
    kept_sizes[kept_count++] = count;
    return b + GUARD;
}

static double *noise(size_t count)
{
    double *b = buffer(count);
    for (size_t i = 0; i < count; i++)
        b[i] = dpf_seeded_normal(&source);
    return b;
}

static double *copy(const double *from, size_t count)
{
    double *b = buffer(count);
    memcpy(b, from, count * sizeof *b);
    return b;
}

static void start(void)
{
    dpf_seeded_init(&source, "test kernels", 1, 0);
}

static void finish(void)
{
    for (size_t i = 0; i < kept_count; i++) {
        int broken = 0;
        for (size_t j = 0; j < GUARD; j++)
            broken +=
                kept[i][j] != sentinel || kept[i][GUARD + kept_sizes[i] + j] != sentinel;
        CU_ASSERT(broken == 0);
        free(kept[i]);
    }
    kept_count = 0;
}

static double dot(const double *a, const double *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Value by value, to rounding. */
static void same(const double *got, const double *want, size_t count)
{
    double worst = 0;
    for (size_t i = 0; i < count; i++)
        worst = fmax(worst, fabs(got[i] - want[i]) / fmax(1, fabs(want[i])));
    if (worst > 1e-10)
        printf("    off by %g\n", worst);
    CU_ASSERT(worst <= 1e-10);
    CU_ASSERT(isfinite(dot(got, got, count)));
}

/* ------------------------------------------------------------- finite differences */

struct check {
    void (*forward)(const struct check *c); /* from the inputs to y */
    const void *shape;
    int64_t n;
    double *x, *w, *b, *y;
    size_t y_count;
    double *dy; /* the loss is sum dy y, so its gradient with respect to y is dy */
    int function;
};

static double loss(const struct check *c)
{
    c->forward(c);
    return dot(c->y, c->dy, c->y_count);
}

/* Compare an analytic gradient with the slope of the loss, value by value. */
static void compare(const struct check *c, double *values, const double *gradient,
                    size_t count)
{
    const double h = 1e-5;
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double old = values[i];
        values[i] = old + h;
        double above = loss(c);
        values[i] = old - h;
        double below = loss(c);
        values[i] = old;
        double slope = (above - below) / (2 * h);
        double off = fabs(slope - gradient[i]) / fmax(1, fabs(slope));
        worst = off <= worst || isnan(worst) ? worst : off; /* NaN stays */
    }
    if (!(worst <= 1e-7))
        printf("    gradient off by %g\n", worst);
    CU_ASSERT(worst <= 1e-7);
}

/* -------------------------------------------------------------------- convolution */

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t pad_both)
{
    return (in + pad_both - kernel) / stride + 1;
}

static struct dpf_conv conv(int64_t ci, int64_t co, const int64_t in[3],
                            const int64_t kernel[3], int64_t stride, int64_t pad)
{
    struct dpf_conv p = {.in_channels = ci, .out_channels = co};
    for (int d = 0; d < 3; d++) {
        bool flat = in[d] == 1 && kernel[d] == 1;
        p.in[d] = in[d];
        p.kernel[d] = kernel[d];
        p.stride[d] = flat ? 1 : stride;
        p.pad[d] = flat ? 0 : pad;
        p.out[d] = out_size(in[d], kernel[d], p.stride[d], 2 * p.pad[d]);
    }
    return p;
}

static size_t box(const int64_t s[3])
{
    return (size_t)(s[0] * s[1] * s[2]);
}

static void conv_forward(const struct check *c)
{
    k->conv_forward(NULL, c->shape, c->n, c->x, c->w, c->b, false, c->y);
}

static const struct {
    int64_t ci, co, in[3], kernel[3], stride, pad, n;
} conv_cases[] = {
    {1, 1, {1, 5, 5}, {1, 3, 3}, 1, 0, 1}, {2, 3, {1, 7, 5}, {1, 3, 2}, 2, 1, 3},
    {3, 2, {1, 4, 9}, {1, 1, 5}, 3, 2, 2}, {2, 2, {4, 5, 3}, {3, 2, 3}, 1, 1, 2},
    {1, 4, {5, 4, 6}, {2, 3, 2}, 2, 0, 1}, {2, 1, {1, 1, 7}, {1, 1, 3}, 1, 1, 2},
};
enum { CONV_CASES = sizeof conv_cases / sizeof *conv_cases };

static struct dpf_conv conv_case(size_t i)
{
    return conv(conv_cases[i].ci, conv_cases[i].co, conv_cases[i].in,
                conv_cases[i].kernel, conv_cases[i].stride, conv_cases[i].pad);
}

static void test_conv_gradients(void)
{
    start();
    for (size_t i = 0; i < CONV_CASES; i++) {
        struct dpf_conv p = conv_case(i);
        int64_t n = conv_cases[i].n;
        size_t xs = (size_t)(n * p.in_channels) * box(p.in);
        size_t ws = (size_t)(p.out_channels * p.in_channels) * box(p.kernel);
        size_t ys = (size_t)(n * p.out_channels) * box(p.out);
        size_t bs = (size_t)p.out_channels;
        struct check c = {.forward = conv_forward, .shape = &p, .n = n, .y_count = ys};
        c.x = noise(xs), c.w = noise(ws), c.b = noise(bs), c.y = buffer(ys);
        c.dy = noise(ys);
        double *dx = buffer(xs), *dw = buffer(ws), *db = buffer(bs);
        k->conv_backward_data(NULL, &p, n, c.dy, c.w, dx);
        k->conv_backward_weights(NULL, &p, n, c.x, c.dy, dw, db);
        compare(&c, c.x, dx, xs);
        compare(&c, c.w, dw, ws);
        compare(&c, c.b, db, bs);
        /* parameters' gradients add up */
        double *twice = copy(dw, ws);
        k->conv_backward_weights(NULL, &p, n, c.x, c.dy, twice, NULL);
        CU_ASSERT(fabs(dot(twice, twice, ws) - 4 * dot(dw, dw, ws)) <
                  1e-9 * dot(dw, dw, ws) + 1e-12);
    }
    finish();
}

static void test_conv_by_hand(void)
{
    /* 1x1x3x3 picture, 2x2 kernel: worked out on paper */
    const double x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[4] = {1, 0, 0, -1}, b[1] = {10};
    const double want[4] = {6, 6, 6, 6};
    struct dpf_conv p = conv(1, 1, (int64_t[]){1, 3, 3}, (int64_t[]){1, 2, 2}, 1, 0);
    double y[4];
    k->conv_forward(NULL, &p, 1, x, w, b, false, y);
    CU_ASSERT(memcmp(y, want, sizeof y) == 0);
}

/* Two channels in and out: a layout with channels in another place gives other numbers.
 */
static void test_conv_channels_by_hand(void)
{
    /* three positions: (1, 10), (2, 20), (3, 30) */
    const double x[6] = {1, 10, 2, 20, 3, 30};
    /* w[0] = first channel here minus second channel to the right, w[1] = 2 * first
     * channel to the right; [out, in, kernel] */
    const double w[8] = {1, 0, 0, -1, 0, 2, 0, 0}, b[2] = {25, -5};
    const double want[4] = {1 - 20 + 25, 4 - 5, 2 - 30 + 25, 6 - 5};
    const double cut_off[4] = {6, 0, 0, 1};
    const double dy[4] = {1, 2, 3, 4};
    const double want_dx[6] = {1, 0, 3 + 4, -1, 8, -3};
    const double want_dw[8] = {1 + 6, 2 + 9,  10 + 60, 20 + 90,
                               2 + 8, 4 + 12, 20 + 80, 40 + 120};
    struct dpf_conv p = conv(2, 2, (int64_t[]){1, 1, 3}, (int64_t[]){1, 1, 2}, 1, 0);
    double y[4], dx[6], dw[8] = {0}, db[2] = {1, 1};
    /* only the width is convolved */
    CU_ASSERT(p.out[0] == 1 && p.out[1] == 1 && p.out[2] == 2);
    k->conv_forward(NULL, &p, 1, x, w, b, false, y);
    CU_ASSERT(memcmp(y, want, sizeof y) == 0);
    k->conv_forward(NULL, &p, 1, x, w, b, true, y);
    CU_ASSERT(memcmp(y, cut_off, sizeof y) == 0);
    k->conv_forward(NULL, &p, 1, x, w, NULL, true, y);
    CU_ASSERT(y[0] == 0 && y[1] == 4 && y[2] == 0 && y[3] == 6);
    k->conv_backward_data(NULL, &p, 1, dy, w, dx);
    CU_ASSERT(memcmp(dx, want_dx, sizeof dx) == 0);
    k->conv_backward_weights(NULL, &p, 1, x, dy, dw, db);
    CU_ASSERT(memcmp(dw, want_dw, sizeof dw) == 0 && db[0] == 5 && db[1] == 7);
}

/* ReLU behind the sum and the bias; what is not a number stays so. */
static void test_conv_relu(void)
{
    start();
    for (size_t i = 0; i < CONV_CASES; i++) {
        struct dpf_conv p = conv_case(i);
        size_t xs = (size_t)(2 * p.in_channels) * box(p.in);
        size_t ws = (size_t)(p.out_channels * p.in_channels) * box(p.kernel);
        size_t ys = (size_t)(2 * p.out_channels) * box(p.out);
        double *x = noise(xs), *w = noise(ws), *b = noise((size_t)p.out_channels);
        double *plain = buffer(ys), *y = buffer(ys);
        k->conv_forward(NULL, &p, 2, x, w, b, false, plain);
        k->conv_forward(NULL, &p, 2, x, w, b, true, y);
        for (size_t j = 0; j < ys; j++)
            CU_ASSERT(y[j] == fmax(plain[j], 0));
        b[0] = NAN;
        k->conv_forward(NULL, &p, 2, x, w, b, true, y);
        CU_ASSERT(isnan(y[0]));
    }
    finish();
}

/* What is kept are the gradients of single examples. */
static void test_conv_norms(void)
{
    start();
    for (size_t i = 0; i < CONV_CASES; i++) {
        struct dpf_conv p = conv_case(i);
        enum { N = 3 };
        size_t xs = (size_t)p.in_channels * box(p.in), bs = (size_t)p.out_channels;
        size_t ws = bs * (size_t)p.in_channels * box(p.kernel), ys = bs * box(p.out);
        size_t slot = (size_t)k->conv_kept(NULL, &p, 1);
        double *x = noise(N * xs), *dy = noise(N * ys), *slots = buffer(N * slot);
        double *norms = noise(N), *before = copy(norms, N);
        double *factor = noise(N), *all = buffer(ws), *sum = buffer(ws);
        double *got = noise(ws), *want = copy(got, ws);
        CU_ASSERT_FATAL(slot >= ws);
        k->conv_example_norms(NULL, &p, N, x, dy, slots, norms);
        for (size_t e = 0; e < N; e++) {
            double *dw = buffer(ws);
            k->conv_backward_weights(NULL, &p, 1, x + e * xs, dy + e * ys, dw, NULL);
            double norm = before[e] + dot(dw, dw, ws);
            CU_ASSERT(norms[e] >= norm && norms[e] < norm + 1e-5 * (norm - before[e]));
            for (size_t j = 0; j < ws; j++) {
                sum[j] += dw[j];
                want[j] += factor[e] * dw[j];
            }
        }
        k->conv_backward_weights(NULL, &p, N, x, dy, all, NULL);
        same(all, sum, ws);
        k->conv_add_clipped(NULL, &p, N, factor, x, dy, slots, got);
        same(got, want, ws);
        /* a factor of 0 takes an example out, whatever stands in its slot */
        for (size_t j = 0; j < slot; j++)
            slots[slot + j] = NAN;
        k->conv_backward_weights(NULL, &p, 1, x, dy, want, NULL);
        k->conv_backward_weights(NULL, &p, 1, x + 2 * xs, dy + 2 * ys, want, NULL);
        k->conv_add_clipped(NULL, &p, N, (const double[]){1, 0, 1}, x, dy, slots, got);
        same(got, want, ws);
    }
    finish();
}

/* An example without a finite gradient must not look like a short one. */
static void test_norms_not_finite(void)
{
    const double x[8] = {1, NAN, 2, 3, 1, 2, 3, 4}, dy[6] = {1, -1, 1, 1, 0, 0};
    double square[2] = {0, 5};
    k->row_norms(NULL, 2, 4, x, square);
    CU_ASSERT(isnan(square[0]) && square[1] >= 5 + 30 && square[1] < 35 + 1e-4);
    k->dense_example_norms(NULL, 2, 4, 3, true, x, dy, square);
    CU_ASSERT(isnan(square[0]) && square[1] >= 35 + 31 && square[1] < 66 + 2e-4);
}

/* ------------------------------------------------------------------------ pooling */

static void max_forward(const struct check *c)
{
    int32_t *chosen = dpf_calloc(c->y_count, sizeof *chosen);
    k->max_pool_forward(NULL, c->shape, c->n, c->x, c->y, chosen);
    free(chosen);
}

static void average_forward(const struct check *c)
{
    k->average_pool_forward(NULL, c->shape, c->n, c->x, c->y);
}

static void test_pool_gradients(void)
{
    start();
    for (size_t i = 0; i < CONV_CASES; i++) {
        struct dpf_conv g = conv_case(i);
        struct dpf_pool p = {.channels = g.in_channels};
        memcpy(p.in, g.in, sizeof p.in);
        memcpy(p.out, g.out, sizeof p.out);
        memcpy(p.kernel, g.kernel, sizeof p.kernel);
        memcpy(p.stride, g.stride, sizeof p.stride);
        memcpy(p.pad, g.pad, sizeof p.pad);
        size_t xs = (size_t)(2 * p.channels) * box(p.in);
        size_t ys = (size_t)(2 * p.channels) * box(p.out);
        struct check c = {.shape = &p, .n = 2, .y_count = ys};
        c.x = noise(xs), c.y = buffer(ys), c.dy = noise(ys);
        double *dx = buffer(xs);
        int32_t *chosen = dpf_calloc(ys, sizeof *chosen);
        k->max_pool_forward(NULL, &p, 2, c.x, c.y, chosen);
        k->max_pool_backward(NULL, &p, 2, c.dy, chosen, dx);
        c.forward = max_forward;
        compare(&c, c.x, dx, xs);
        k->average_pool_backward(NULL, &p, 2, c.dy, dx);
        c.forward = average_forward;
        compare(&c, c.x, dx, xs);
        free(chosen);
    }
    finish();
}

/* Two channels whose maxima stand at different places. */
static void test_pool_by_hand(void)
{
    struct dpf_pool p = {.channels = 2,
                         .in = {1, 2, 2},
                         .out = {1, 1, 2},
                         .kernel = {1, 2, 2},
                         .stride = {1, 1, 1},
                         .pad = {0, 0, 0}};
    /* (1, 8) (2, 7) / (3, 6) (-4, 5); the second window is cut off on the right */
    const double x[8] = {1, 8, 2, 7, 3, 6, -4, 5}, dy[4] = {1, 2, 4, 8};
    const double maxima[4] = {3, 8, 2, 7}, means[4] = {0.5, 6.5, -1, 6};
    const double max_dx[8] = {0, 2, 4, 8, 1, 0, 0, 0};
    const double mean_dx[8] = {0.25, 0.5, 2.25, 4.5, 0.25, 0.5, 2.25, 4.5};
    const int32_t places[4] = {2, 0, 1, 1};
    double y[4], dx[8];
    int32_t chosen[4];
    k->max_pool_forward(NULL, &p, 1, x, y, chosen);
    CU_ASSERT(memcmp(y, maxima, sizeof y) == 0);
    CU_ASSERT(memcmp(chosen, places, sizeof chosen) == 0);
    k->max_pool_backward(NULL, &p, 1, dy, chosen, dx);
    CU_ASSERT(memcmp(dx, max_dx, sizeof dx) == 0);
    k->average_pool_forward(NULL, &p, 1, x, y);
    CU_ASSERT(memcmp(y, means, sizeof y) == 0);
    k->average_pool_backward(NULL, &p, 1, dy, dx);
    CU_ASSERT(memcmp(dx, mean_dx, sizeof dx) == 0);
}

/* --------------------------------------------------------------- dense and packed */

static void test_gemm(void)
{
    start();
    enum { M = 3, N = 5, K = 4 };
    double *a = noise(M * K), *b = noise(K * N), *c = noise(M * N);
    double *at = buffer(M * K), *bt = buffer(K * N);
    for (int i = 0; i < M; i++)
        for (int l = 0; l < K; l++)
            at[l * M + i] = a[i * K + l];
    for (int l = 0; l < K; l++)
        for (int j = 0; j < N; j++)
            bt[j * K + l] = b[l * N + j];
    for (int way = 0; way < 4; way++) {
        double *got = copy(c, M * N);
        k->gemm(NULL, way & 1, way & 2, M, N, K, 2, way & 1 ? at : a, way & 2 ? bt : b,
                0.5, got);
        for (int i = 0; i < M; i++)
            for (int j = 0; j < N; j++) {
                double want = 0.5 * c[i * N + j];
                for (int l = 0; l < K; l++)
                    want += 2 * a[i * K + l] * b[l * N + j];
                CU_ASSERT_DOUBLE_EQUAL(got[i * N + j], want, 1e-12);
            }
    }
    /* beta 0 does not read what may be NaN */
    c[0] = NAN;
    k->gemm(NULL, false, false, M, N, K, 1, a, b, 0, c);
    CU_ASSERT(isfinite(c[0]));
    /* an empty sum is 0 */
    k->gemm(NULL, false, true, M, N, 0, 1, a, b, 2, c);
    CU_ASSERT_DOUBLE_EQUAL(c[1], 2 * dot(a, (double[]){b[1], b[6], b[11], b[16]}, K),
                           1e-12);
    finish();
}

static void test_dense_norms(void)
{
    start();
    enum { N = 4, IN = 7, OUT = 3 };
    double *x = noise(N * IN), *dy = noise(N * OUT), *square = buffer(N);
    k->dense_example_norms(NULL, N, IN, OUT, true, x, dy, square);
    for (int e = 0; e < N; e++) {
        double *dw = buffer(OUT * IN);
        k->gemm(NULL, true, false, OUT, IN, 1, 1, dy + e * OUT, x + e * IN, 0, dw);
        double norm = dot(dw, dw, OUT * IN) + dot(dy + e * OUT, dy + e * OUT, OUT);
        CU_ASSERT(square[e] >= norm && square[e] < norm * (1 + 2e-6));
    }
    finish();
}

static void test_packed_bits(void)
{
    start();
    enum { N = 3, COLUMNS = 21, UNITS = 4, ROW = (COLUMNS + 7) / 8 };
    uint8_t bits[N * ROW];
    double *x = buffer(N * COLUMNS), *w = noise(UNITS * COLUMNS), *b = noise(UNITS);
    double *y = buffer(N * UNITS), *want = buffer(N * UNITS), *dy = noise(N * UNITS);
    double *dw = buffer(UNITS * COLUMNS), *due = buffer(UNITS * COLUMNS),
           *db = buffer(UNITS);
    for (int i = 0; i < N * ROW; i++)
        bits[i] = (uint8_t)dpf_seeded_u64(&source); /* also the unused ones at the end */
    for (int i = 0; i < N; i++)
        for (int j = 0; j < COLUMNS; j++)
            x[i * COLUMNS + j] = bits[i * ROW + j / 8] >> (j % 8) & 1;
    k->dense_bits_forward(NULL, N, COLUMNS, UNITS, bits, w, b, y);
    k->gemm(NULL, false, false, N, UNITS, COLUMNS, 1, x, w, 0, want);
    for (int i = 0; i < N * UNITS; i++)
        CU_ASSERT_DOUBLE_EQUAL(y[i], want[i] + b[i % UNITS], 1e-12);
    k->dense_bits_backward_weights(NULL, N, COLUMNS, UNITS, bits, dy, dw, db);
    k->gemm(NULL, true, false, COLUMNS, UNITS, N, 1, x, dy, 0, due);
    for (int i = 0; i < UNITS * COLUMNS; i++)
        CU_ASSERT_DOUBLE_EQUAL(dw[i], due[i], 1e-12);
    for (int u = 0; u < UNITS; u++)
        CU_ASSERT_DOUBLE_EQUAL(db[u], dy[u] + dy[UNITS + u] + dy[2 * UNITS + u], 1e-12);
    for (int bias = 0; bias < 2; bias++) {
        double *square = noise(N), *norms = copy(square, N);
        k->dense_bits_example_norms(NULL, N, COLUMNS, UNITS, bias, bits, dy, square);
        k->dense_example_norms(NULL, N, COLUMNS, UNITS, bias, x, dy, norms);
        same(square, norms, N);
    }
    finish();
}

/* ----------------------------------------------------- functions and normalisations */

static void unary_forward(const struct check *c)
{
    k->unary_forward(NULL, (enum dpf_unary)c->function, (int64_t)c->y_count, c->x, c->y);
}

static void softmax_forward(const struct check *c)
{
    k->softmax_forward(NULL, c->n, (int64_t)c->y_count / c->n, c->x, c->y);
}

static void test_function_gradients(void)
{
    start();
    enum { COUNT = 30 };
    for (int f = 0; f < DPF_UNARY_COUNT; f++) {
        struct check c = {.forward = unary_forward, .y_count = COUNT, .function = f};
        c.x = noise(COUNT), c.y = buffer(COUNT), c.dy = noise(COUNT);
        double *dx = buffer(COUNT);
        unary_forward(&c);
        k->unary_backward(NULL, (enum dpf_unary)f, COUNT, c.x, c.y, c.dy, dx);
        compare(&c, c.x, dx, COUNT);
    }
    struct check c = {.forward = softmax_forward, .y_count = COUNT, .n = 3};
    c.x = noise(COUNT), c.y = buffer(COUNT), c.dy = noise(COUNT);
    double *dx = buffer(COUNT);
    softmax_forward(&c);
    for (int r = 0; r < 3; r++) {
        double sum = 0;
        for (int i = 0; i < COUNT / 3; i++)
            sum += c.y[r * COUNT / 3 + i];
        CU_ASSERT_DOUBLE_EQUAL(sum, 1, 1e-12);
    }
    k->softmax_backward(NULL, 3, COUNT / 3, c.y, c.dy, dx);
    compare(&c, c.x, dx, COUNT);
    /* far values do not overflow */
    const double far[2] = {1000, -1000};
    double y[2];
    k->softmax_forward(NULL, 1, 2, far, y);
    CU_ASSERT(y[0] == 1 && y[1] == 0);
    /* what is not a number goes through ReLU as it is */
    const double odd[4] = {NAN, -1, -0.0, 2};
    double cut_off[4];
    k->unary_forward(NULL, DPF_RELU, 4, odd, cut_off);
    CU_ASSERT(isnan(cut_off[0]) && cut_off[1] == 0 && cut_off[2] == 0 && cut_off[3] == 2);
    finish();
}

static const double quintic[] = {0.5, 0.3, -0.2, 0.7, 0.1, -0.4};

static void polynomial_forward(const struct check *c)
{
    k->polynomial_forward(NULL, 5, quintic, 1.5, (int64_t)c->y_count, c->x, c->y);
}

static void test_polynomial_gradients(void)
{
    start();
    enum { COUNT = 30 };
    struct check c = {.forward = polynomial_forward, .y_count = COUNT};
    c.x = noise(COUNT), c.y = buffer(COUNT), c.dy = noise(COUNT);
    double *dx = buffer(COUNT);
    for (int i = 0; i < COUNT; i++) /* away from the ends of the interval */
        c.x[i] = fabs(fabs(c.x[i]) - 1.5) < 0.01 ? 0.3 : c.x[i];
    polynomial_forward(&c);
    for (int i = 0; i < COUNT; i++) {
        double t = fmax(-1, fmin(1, c.x[i] / 1.5));
        CU_ASSERT_DOUBLE_EQUAL(c.y[i],
                               0.5 + 0.3 * t - 0.2 * t * t + 0.7 * pow(t, 3) +
                                   0.1 * pow(t, 4) - 0.4 * pow(t, 5),
                               1e-13);
    }
    k->polynomial_backward(NULL, 5, quintic, 1.5, COUNT, c.x, c.dy, dx);
    compare(&c, c.x, dx, COUNT);
    finish();
}

static void lrn_forward(const struct check *c)
{
    k->lrn_forward(NULL, c->shape, c->n, c->x, c->y);
}

static void group_forward(const struct check *c)
{
    k->group_norm_forward(NULL, c->shape, c->n, c->x, c->w, c->b, c->y);
}

static void test_normalisation_gradients(void)
{
    start();
    static const struct dpf_lrn lrns[] = {
        {7, 3, 5, 2, 1e-4, 0.75}, {4, 2, 3, 1, 0.5, 0.75}, {5, 1, 4, 1, 0.3, 1}};
    for (size_t i = 0; i < 3; i++) {
        size_t count = (size_t)(2 * lrns[i].channels * lrns[i].positions);
        struct check c = {.forward = lrn_forward, .shape = &lrns[i], .n = 2};
        c.y_count = count, c.x = noise(count), c.y = buffer(count), c.dy = noise(count);
        double *dx = buffer(count);
        k->lrn_backward(NULL, &lrns[i], 2, c.x, c.dy, dx);
        compare(&c, c.x, dx, count);
    }
    static const struct dpf_group_norm norms[] = {
        {6, 5, 3, 1e-5}, {4, 1, 1, 1e-3}, {3, 4, 3, 1e-5}};
    for (size_t i = 0; i < 3; i++) {
        const struct dpf_group_norm *p = &norms[i];
        size_t channels = (size_t)p->channels,
               count = 2 * channels * (size_t)p->positions;
        struct check c = {.forward = group_forward, .shape = p, .n = 2, .y_count = count};
        c.x = noise(count), c.w = noise(channels), c.b = noise(channels);
        c.y = buffer(count), c.dy = noise(count);
        double *dx = buffer(count), *dw = buffer(channels), *db = buffer(channels);
        k->group_norm_backward(NULL, p, 2, c.x, c.w, c.dy, dx, dw, db);
        compare(&c, c.x, dx, count);
        compare(&c, c.w, dw, channels);
        compare(&c, c.b, db, channels);
    }
    finish();
}

/* Channels lie side by side: neighbours of LRN, members of a group. */
static void test_normalisation_by_hand(void)
{
    /* two positions of two channels; a window of 2 holds a channel and the one before */
    const double x[4] = {1, 2, 3, 4};
    const double want[4] = {1 / (1.0 + 1), 2 / (1.0 + 5), 3 / (1.0 + 9), 4 / (1.0 + 25)};
    struct dpf_lrn lrn = {2, 2, 2, 1, 1, 1};
    double y[4];
    k->lrn_forward(NULL, &lrn, 1, x, y);
    same(y, want, 4);
    /* a group a channel: 1 3 and 2 4; one group: 1 2 3 4 */
    const double scale[2] = {1, 10}, shift[2] = {0, 100};
    const double single[4] = {-1, 90, 1, 110};
    struct dpf_group_norm norm = {2, 2, 2, 0};
    k->group_norm_forward(NULL, &norm, 1, x, scale, shift, y);
    same(y, single, 4);
    double s = 1 / sqrt(1.25);
    const double both[4] = {-1.5 * s, 100 - 5 * s, 0.5 * s, 100 + 15 * s};
    norm.groups = 1;
    k->group_norm_forward(NULL, &norm, 1, x, scale, shift, y);
    same(y, both, 4);
}

/* ------------------------------------------------------------- scaling and copying */

static void min_max_forward(const struct check *c)
{
    k->min_max_forward(NULL, c->n, (int64_t)c->y_count / c->n, c->x, c->y);
}

struct blocks {
    int64_t channels, in[DPF_SPACE], factor[DPF_SPACE];
};

static void ball_forward(const struct check *c)
{
    k->ball_forward(NULL, c->n, (int64_t)c->y_count / c->n, c->x, c->y);
}

static void test_ball(void)
{
    start();
    enum { N = 3 };
    for (int l = 1; l <= 7; l += 3) {
        size_t xs = (size_t)(N * (l + 1)), ys = (size_t)(N * l);
        struct check c = {.forward = ball_forward, .n = N, .y_count = ys};
        c.x = noise(xs), c.y = buffer(ys), c.dy = noise(ys);
        double *dx = buffer(xs);
        k->ball_backward(NULL, N, l, c.x, c.dy, dx);
        compare(&c, c.x, dx, xs);
        ball_forward(&c);
        for (int e = 0; e < N; e++) { /* the direction stays, the radius is x_0's */
            const double *x = c.x + e * (l + 1), *y = c.y + e * l;
            double t = sqrt(8 / acos(-1)), r = pow(1 + exp(-t * x[0]), -1.0 / l);
            double length = sqrt(dot(x + 1, x + 1, (size_t)l));
            for (int j = 0; j < l; j++)
                CU_ASSERT_DOUBLE_EQUAL(y[j], r * x[j + 1] / length, 1e-12);
        }
    }
    /* 3 4 has length 5; x_0 = 0 halves the volume; the zero vector stays */
    const double x[6] = {0, 3, 4, 1, 0, 0}, dy[4] = {1, 1, 1, 1};
    double y[4], dx[6] = {7, 7, 7, 7, 7, 7};
    k->ball_forward(NULL, 2, 2, x, y);
    CU_ASSERT_DOUBLE_EQUAL(y[0], 0.6 * sqrt(0.5), 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(y[1], 0.8 * sqrt(0.5), 1e-12);
    CU_ASSERT(y[2] == 0 && y[3] == 0);
    k->ball_backward(NULL, 2, 2, x, dy, dx);
    CU_ASSERT(dx[3] == 0 && dx[4] == 0 && dx[5] == 0);
    finish();
}

static void upsample_forward(const struct check *c)
{
    const struct blocks *b = c->shape;
    k->upsample_forward(NULL, c->n, b->channels, b->in, b->factor, c->x, c->y);
}

static void test_min_max(void)
{
    start();
    enum { N = 3, COUNT = 7 };
    struct check c = {.forward = min_max_forward, .n = N, .y_count = N * COUNT};
    c.x = noise(N * COUNT), c.y = buffer(N * COUNT), c.dy = noise(N * COUNT);
    double *dx = buffer(N * COUNT);
    k->min_max_backward(NULL, N, COUNT, c.x, c.dy, dx);
    compare(&c, c.x, dx, N * COUNT);
    double lowest = 1, highest = 0;
    min_max_forward(&c);
    for (int i = 0; i < N * COUNT; i++) {
        lowest = fmin(lowest, c.y[i]);
        highest = fmax(highest, c.y[i]);
    }
    CU_ASSERT(lowest == 0 && highest == 1);
    const double same[3] = {4, 4, 4};
    double y[3] = {1, 1, 1}, d[3] = {1, 1, 1};
    k->min_max_forward(NULL, 1, 3, same, y);
    k->min_max_backward(NULL, 1, 3, same, same, d);
    CU_ASSERT(y[0] == 0 && y[2] == 0 && d[0] == 0 && d[2] == 0);
    finish();
}

static void test_upsample(void)
{
    start();
    static const struct blocks cases[] = {
        {1, {1, 2, 3}, {1, 2, 2}}, {2, {2, 1, 3}, {3, 1, 2}}, {3, {1, 1, 1}, {2, 2, 2}}};
    for (size_t i = 0; i < 3; i++) {
        const struct blocks *b = &cases[i];
        size_t xs = 2 * (size_t)b->channels * box(b->in), ys = xs * box(b->factor);
        struct check c = {.forward = upsample_forward, .shape = b, .n = 2};
        c.y_count = ys, c.x = noise(xs), c.y = buffer(ys), c.dy = noise(ys);
        double *dx = buffer(xs);
        k->upsample_backward(NULL, 2, b->channels, b->in, b->factor, c.dy, dx);
        compare(&c, c.x, dx, xs);
    }
    /* two channels: (1 10) (2 20) becomes twice (1 10) (1 10) (2 20) (2 20) */
    const double x[4] = {1, 10, 2, 20};
    const double want[16] = {1, 10, 1, 10, 2, 20, 2, 20, 1, 10, 1, 10, 2, 20, 2, 20};
    double y[16];
    k->upsample_forward(NULL, 1, 2, (int64_t[]){1, 1, 2}, (int64_t[]){1, 2, 2}, x, y);
    CU_ASSERT(memcmp(y, want, sizeof y) == 0);
    finish();
}

static void test_dropout(void)
{
    start();
    enum { ROWS = 100, COLUMNS = 200, COUNT = ROWS * COLUMNS };
    double *x = buffer(COUNT), *y = buffer(COUNT), *again = buffer(COUNT);
    double *other = buffer(COUNT);
    for (int i = 0; i < COUNT; i++)
        x[i] = 1;
    uint64_t keys[ROWS];
    for (int i = 0; i < ROWS; i++)
        keys[i] = (uint64_t)i;
    k->dropout(NULL, ROWS, COLUMNS, 0.3, keys, 1, x, y);
    k->dropout(NULL, ROWS, COLUMNS, 0.3, keys, 1, x, again);
    k->dropout(NULL, ROWS, COLUMNS, 0.3, keys, 2, x, other);
    int left = 0, wrong = 0, differ = 0, rows_differ = 0;
    for (int i = 0; i < COUNT; i++) {
        left += y[i] != 0;
        wrong += y[i] != 0 && fabs(y[i] - 1 / 0.7) > 1e-12;
        differ += y[i] != other[i];
        rows_differ += i >= COLUMNS && y[i] != y[i - COLUMNS];
    }
    CU_ASSERT(wrong == 0 && memcmp(y, again, COUNT * sizeof *y) == 0);
    CU_ASSERT(differ > COUNT / 4 && rows_differ > COUNT / 4);
    /* within 4.9 standard deviations: alpha 1e-6 */
    CU_ASSERT(fabs(left - 0.7 * COUNT) < 4.9 * sqrt(COUNT * 0.21));
    /* a row's mask goes by its key, not by its place in a batch; in place as well */
    memcpy(again, x, 2 * COLUMNS * sizeof *x);
    k->dropout(NULL, 2, COLUMNS, 0.3, keys + 7, 1, again, again);
    CU_ASSERT(memcmp(again, y + 7 * COLUMNS, 2 * COLUMNS * sizeof *y) == 0);
    /* nothing is dropped at a rate of 0 */
    k->dropout(NULL, ROWS, COLUMNS, 0, keys, 1, x, other);
    CU_ASSERT(memcmp(other, x, COUNT * sizeof *x) == 0);
    finish();
}

/* Mean 0, deviation sigma, fourth moment 3 (4.9 standard deviations: alpha 1e-6); the
 * same numbers for the same key, others for others; the tails are there. */
static void test_noise(void)
{
    start();
    enum { ROWS = 100, COLUMNS = 1000, COUNT = ROWS * COLUMNS };
    double *x = buffer(COUNT), *y = buffer(COUNT), *again = buffer(COUNT);
    uint64_t keys[ROWS];
    for (int i = 0; i < COUNT; i++)
        x[i] = i % 7;
    for (int i = 0; i < ROWS; i++)
        keys[i] = (uint64_t)i;
    k->noise(NULL, ROWS, COLUMNS, 2, keys, 3, x, y);
    double sum = 0, square = 0, fourth = 0, largest = 0;
    for (int i = 0; i < COUNT; i++) {
        double z = (y[i] - x[i]) / 2;
        sum += z;
        square += z * z;
        fourth += z * z * z * z;
        largest = fmax(largest, fabs(z));
    }
    CU_ASSERT(fabs(sum) < 4.9 * sqrt(COUNT));
    CU_ASSERT(fabs(square - COUNT) < 4.9 * sqrt(2.0 * COUNT));
    CU_ASSERT(fabs(fourth - 3.0 * COUNT) < 4.9 * sqrt(96.0 * COUNT));
    CU_ASSERT(largest > 3.7 && largest < 7);
    k->noise(NULL, 2, COLUMNS, 2, keys + 7, 3, x + 7 * COLUMNS, again);
    CU_ASSERT(memcmp(again, y + 7 * COLUMNS, 2 * COLUMNS * sizeof *y) == 0);
    CU_ASSERT(memcmp(again, again + COLUMNS, COLUMNS * sizeof *y) != 0);
    k->noise(NULL, ROWS, COLUMNS, 2, keys, 4, x, again);
    CU_ASSERT(memcmp(again, y, COLUMNS * sizeof *y) != 0);
    k->noise(NULL, ROWS, COLUMNS, 0, keys, 3, x, again);
    CU_ASSERT(memcmp(again, x, COUNT * sizeof *x) == 0);
    finish();
}

/* [n, channels, positions] and [n, positions, channels]. */
static void test_layouts(void)
{
    start();
    const double first[12] = {1, 2, 3, 10, 20, 30, -1, -2, -3, -10, -20, -30};
    const double last[12] = {1, 10, 2, 20, 3, 30, -1, -10, -2, -20, -3, -30};
    double y[12];
    k->to_channels_last(NULL, 2, 2, 3, first, y);
    CU_ASSERT(memcmp(y, last, sizeof y) == 0);
    k->to_channels_first(NULL, 2, 2, 3, last, y);
    CU_ASSERT(memcmp(y, first, sizeof y) == 0);
    double *x = noise(3 * 5 * 7), *turned = buffer(3 * 5 * 7), *back = buffer(3 * 5 * 7);
    k->to_channels_last(NULL, 3, 5, 7, x, turned);
    CU_ASSERT(turned[1] == x[7] && turned[5] == x[1] && turned[35 + 2] == x[35 + 14]);
    k->to_channels_first(NULL, 3, 5, 7, turned, back);
    CU_ASSERT(memcmp(back, x, 3 * 5 * 7 * sizeof *x) == 0);
    finish();
}

static void test_bias_and_copies(void)
{
    const double b[2] = {10, 20}, x[4] = {1, 2, 3, 4};
    double y[6] = {0, 1, 2, 3, 4, 5}, db[2] = {1, 1}, joined[6] = {0};
    const double biased[6] = {10, 21, 12, 23, 14, 25};
    k->add_bias(NULL, 3, 2, b, y);
    CU_ASSERT(memcmp(y, biased, sizeof y) == 0);
    k->sum_bias(NULL, 3, 2, y, db);
    CU_ASSERT(db[0] == 37 && db[1] == 70);
    k->add(NULL, 6, y, y);
    CU_ASSERT(y[0] == 20 && y[5] == 50);
    /* rows of two into rows of three, behind the first */
    k->copy_columns(NULL, 2, 2, x, 2, joined + 1, 3);
    CU_ASSERT(joined[0] == 0 && joined[1] == 1 && joined[2] == 2 && joined[3] == 0 &&
              joined[4] == 3 && joined[5] == 4);
    y[1] = NAN;
    k->clear(NULL, y, 5);
    CU_ASSERT(y[0] == 0 && y[1] == 0 && y[4] == 0 && y[5] == 50);
}

/* Clipping: a factor of 0 takes a row out, whatever stands in it. */
static void test_scaled_rows(void)
{
    double x[6] = {1, 2, NAN, INFINITY, 3, 4}, y[2] = {10, 20};
    const double factor[3] = {2, 0, -1};
    k->add_scaled_rows(NULL, 3, 2, factor, x, y);
    CU_ASSERT(y[0] == 10 + 2 - 3 && y[1] == 20 + 4 - 4);
    k->scale_rows(NULL, 3, 2, factor, x);
    const double want[6] = {2, 4, 0, 0, -3, -4};
    CU_ASSERT(memcmp(x, want, sizeof x) == 0);
    double square[3] = {1, 1, 1};
    k->row_norms(NULL, 3, 2, x, square);
    CU_ASSERT(fabs(square[0] - 21) < 1e-4 && square[1] == 1 &&
              fabs(square[2] - 26) < 1e-4);
    /* products of less than a normal number are none */
    double tiny[2] = {1e-30, 1};
    k->scale_rows(NULL, 1, 2, (const double[]){1e-10}, tiny);
    CU_ASSERT(tiny[0] == 0 && tiny[1] == 1e-10);
}

/* By hand: 0 where there is nothing to divide by; alone, one side takes everything. */
static void test_relevance(void)
{
    const double r[4] = {6, 6, 6, 6}, z[4] = {2, -2, 0, 0.5};
    const double pro[4] = {3, 3, 0, 0}, con[4] = {-2, 0, -2, 0};
    double share[4], other[4], x[4] = {1, -2, 3, 0};
    k->relevance_share(NULL, 4, r, z, 0, share);
    CU_ASSERT(share[0] == 3 && share[1] == -3 && share[2] == 0 && share[3] == 12);
    k->relevance_share(NULL, 4, r, z, 1, share);
    CU_ASSERT(share[0] == 2 && share[1] == -2 && share[2] == 6 && share[3] == 4);
    k->relevance_split(NULL, 4, 2, 1, r, pro, con, share, other);
    CU_ASSERT(share[0] == 4 && share[1] == 2 && share[2] == 0 && share[3] == 0);
    CU_ASSERT(other[0] == 3 && other[1] == 0 && other[2] == -3 && other[3] == 0);
    /* whatever the rule, what is handed on adds up to r: 4 * 3 + 3 * -2, 2 * 3, -3 * -2
     */
    for (int i = 0; i < 3; i++)
        CU_ASSERT(share[i] * pro[i] + other[i] * con[i] == 6);
    k->take_part(NULL, true, 4, x, share);
    k->take_part(NULL, false, 4, x, other);
    CU_ASSERT(share[0] == 0 && share[1] == -2 && share[2] == 0 && share[3] == 0);
    CU_ASSERT(other[0] == 1 && other[1] == 0 && other[2] == 3 && other[3] == 0);
    k->multiply(NULL, 4, z, x);
    CU_ASSERT(x[0] == 2 && x[1] == 4 && x[2] == 0 && x[3] == 0);
}

/* The single-precision table is the same source: it must agree to its precision. */
static void test_single_precision(void)
{
    start();
    struct dpf_conv p = conv_case(1);
    enum { N = 3 };
    size_t xs = (size_t)(N * p.in_channels) * box(p.in);
    size_t ws = (size_t)(p.out_channels * p.in_channels) * box(p.kernel);
    size_t ys = (size_t)(N * p.out_channels) * box(p.out);
    double *x = noise(xs), *w = noise(ws), *b = noise((size_t)p.out_channels),
           *y = buffer(ys);
    float *all = dpf_calloc(xs + ws + ys + 8, sizeof *all);
    float *fx = all, *fw = fx + xs, *fy = fw + ws, *fb = fy + ys;
    for (size_t i = 0; i < xs; i++)
        fx[i] = (float)x[i];
    for (size_t i = 0; i < ws; i++)
        fw[i] = (float)w[i];
    for (int64_t i = 0; i < p.out_channels; i++)
        fb[i] = (float)b[i];
    k->conv_forward(NULL, &p, N, x, w, b, true, y);
    dpf_kernels_ref.conv_forward(NULL, &p, N, fx, fw, fb, true, fy);
    for (size_t i = 0; i < ys; i++)
        CU_ASSERT_DOUBLE_EQUAL((double)fy[i], y[i], 1e-5 * (1 + fabs(y[i])));
    const float factor[2] = {2, -1};
    float rows[6] = {1, 2, 3, 4, 5, 6};
    dpf_kernels_ref.scale_rows(NULL, 2, 3, factor, rows);
    CU_ASSERT(rows[0] == 2 && rows[2] == 6 && rows[3] == -4 && rows[5] == -6);
    free(all);
    finish();
}

const char dpf_suite[] = "ref";
const struct dpf_test dpf_tests[] = {
    {"convolution: gradients by finite differences", test_conv_gradients},
    {"convolution: worked out by hand", test_conv_by_hand},
    {"convolution: two channels by hand", test_conv_channels_by_hand},
    {"convolution: ReLU at once", test_conv_relu},
    {"convolution: norms and clipped sums of single examples", test_conv_norms},
    {"norms of what is not finite are not finite", test_norms_not_finite},
    {"pooling: gradients by finite differences", test_pool_gradients},
    {"pooling: two channels by hand", test_pool_by_hand},
    {"products: four ways to transpose", test_gemm},
    {"dense: norms of single examples", test_dense_norms},
    {"packed bits are the numbers 0 and 1", test_packed_bits},
    {"functions: gradients by finite differences", test_function_gradients},
    {"polynomials and their slopes", test_polynomial_gradients},
    {"normalisations: gradients by finite differences", test_normalisation_gradients},
    {"normalisations: two channels by hand", test_normalisation_by_hand},
    {"min-max: gradient, range, constant records", test_min_max},
    {"unit ball: gradient, radius, zero", test_ball},
    {"upsampling: gradient and blocks", test_upsample},
    {"dropout: reproducible, at its rate", test_dropout},
    {"noise: normal, reproducible by key", test_noise},
    {"channels last and first", test_layouts},
    {"bias, sums and joined channels", test_bias_and_copies},
    {"rows with factors, 0 among them", test_scaled_rows},
    {"relevance: parts, products and shares", test_relevance},
    {"single precision agrees", test_single_precision},
    {0},
};
