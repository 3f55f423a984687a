/* The cpu backend against the reference, operation by operation. The measure is the
 * largest difference to the reference in double precision, divided by the largest value
 * of the reference's result (or by 1 where a handful of values may all have cancelled
 * out); it may be 1e-5. Every buffer lies between guards, of NaN (a read beyond an end
 * spoils the result) or of a number (an addition beyond it spoils the guard). Layers are
 * compiled for any machine and for this one; both are tested. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "kernels/cpu/cpu.h"
#include "kernels/ref/ref64.h"
#include "random/seeded.h"

#include "base/banned.h"

static const struct dpf_kernels64 *const ref = &dpf_kernels_ref64;
static struct dpf_kernels tables[2]; /* as the network gets it; layers for any machine */
static const struct dpf_kernels *cpu;
static _Thread_local struct dpf_context *at; /* where this thread computes */
static const double tolerance = 1e-5;

/* ------------------------------------------------------------------------- buffers */

enum { GUARD = 16, MOST = 32, MOST_FAILURES = 12, MOST_ROWS = 128 };

/* The same values twice, each between guards. */
struct both {
    float *f;
    double *d;
};

static struct {
    float *f_memory;
    double *d_memory;
    struct both at;
    size_t f_count, d_count;
    bool filled; /* with values that must be the same */
} live[MOST];
static size_t live_count;
static struct dpf_seeded source;
static size_t skew; /* floats that buffers are off their alignment, as parameters are */
static float guard;
static int failures;
static char label[256];

/* What the next comparison is of. */
__attribute__((format(printf, 1, 2))) static void describe(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(label, sizeof label, format, list);
    va_end(list);
}

static void complain(const char *operation, const char *what, double value)
{
    if (failures++ < MOST_FAILURES)
        printf("    %s [%s, skew %zu]: %s %g\n", operation, label, skew, what, value);
}

/* Buffers of two lengths, for slots, whose size and order are each backend's own. */
static struct both uneven(size_t f_count, size_t d_count)
{
    size_t f_all = f_count + 2 * GUARD + skew, d_all = d_count + 2 * GUARD;
    float *f = dpf_alloc_aligned(f_all * sizeof *f);
    double *d = dpf_alloc_aligned(d_all * sizeof *d);
    if (!f || !d || live_count == MOST)
        exit(EXIT_FAILURE);
    for (size_t i = 0; i < f_all; i++)
        f[i] = i < GUARD + skew || i >= GUARD + skew + f_count ? guard : NAN;
    for (size_t i = 0; i < d_all; i++)
        d[i] = 0;
    live[live_count].f_memory = f;
    live[live_count].d_memory = d;
    live[live_count].at = (struct both){f + GUARD + skew, d + GUARD};
    live[live_count].f_count = f_count;
    live[live_count].d_count = d_count;
    live[live_count].filled = false;
    return live[live_count++].at;
}

/* For a result: NaN on one side and not on the other, so that what is not written is
 * noticed. */
static struct both empty(int64_t count)
{
    return uneven((size_t)count, (size_t)count);
}

static void set(struct both b, int64_t i, double value)
{
    b.f[i] = (float)value;
    b.d[i] = (double)b.f[i];
}

static struct both noise(int64_t count)
{
    struct both b = uneven((size_t)count, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        set(b, i, dpf_seeded_normal(&source));
    live[live_count - 1].filled = true;
    return b;
}

static void release(void)
{
    for (size_t i = 0; i < live_count; i++) {
        free(live[i].f_memory);
        free(live[i].d_memory);
    }
    live_count = 0;
}

/* ---------------------------------------------------------------------- comparisons */

static void check_guards(const char *operation, size_t b)
{
    const float *values = live[b].at.f;
    int broken = 0;
    for (const float *p = live[b].f_memory; p < values; p++)
        broken += memcmp(p, &guard, sizeof guard) != 0;
    for (size_t i = 0; i < GUARD; i++)
        broken += memcmp(values + live[b].f_count + i, &guard, sizeof guard) != 0;
    if (broken)
        complain(operation, "guards overwritten:", broken);
}

/* The measure of the first `count` values; NaN and infinities must be the same ones. */
static double difference(const float *got, const double *want, size_t count)
{
    enum { HANDFUL = 8 };
    double largest = count < HANDFUL ? 1 : 0, worst = 0;
    for (size_t i = 0; i < count; i++) {
        double g = (double)got[i];
        if (isnan(want[i]) ? !isnan(g) : isinf(want[i]) ? g != want[i] : !isfinite(g))
            return INFINITY;
        if (isfinite(want[i])) {
            largest = fmax(largest, fabs(want[i]));
            worst = fmax(worst, fabs(g - want[i]));
        }
    }
    return worst == 0 ? 0 : worst / largest;
}

/* After an operation that has filled or changed `result`: all guards are whole, all
 * values the same in both precisions. So inputs were left alone as well. */
static void settle(const char *operation, struct both result)
{
    struct dpf_error e = {0};
    for (size_t b = 0; b < live_count; b++) {
        check_guards(operation, b);
        live[b].filled = live[b].filled || live[b].at.f == result.f;
        if (!live[b].filled)
            continue;
        double off = difference(live[b].at.f, live[b].at.d, live[b].f_count);
        if (!(off <= tolerance))
            complain(operation, "off by", off);
    }
    if (cpu->finish(at, &e) != DPF_OK)
        complain(operation, e.message, 0);
}

/* Values that both have come to are equal from here on: what builds on them is not
 * charged with their rounding. */
static void even_out(struct both b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        b.d[i] = (double)b.f[i];
}

/* Squared norms: the backends' own may be above the reference's, by less than a 2^-12th.
 */
static void settle_squares(const char *operation, const double *got, const double *want,
                           int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (isfinite(want[i]) != isfinite(got[i]) ||
            (isfinite(want[i]) &&
             !(got[i] >= want[i] * (1 - 1e-5) && got[i] <= want[i] * (1 + 0x1p-12))))
            complain(operation, "the ratio to the reference is", got[i] / want[i]);
}

static void begin(void)
{
    dpf_seeded_init(&source, "test cpu kernels", 1, 0);
    failures = 0;
    skew = 0;
    guard = NAN;
    tables[0] = tables[1] = *dpf_kernels_cpu();
    dpf_cpu_add_layers_base(&tables[1]);
    tables[1].name = "cpu, any machine";
    cpu = &tables[0];
    CU_ASSERT_FATAL(cpu->open(0, &at, NULL) == DPF_OK);
}

static void end(void)
{
    release();
    dpf_kernels_cpu()->close(at);
    if (failures > MOST_FAILURES)
        printf("    %d differences in all\n", failures);
    CU_ASSERT(failures == 0);
}

static int64_t below(int64_t n)
{
    return (int64_t)dpf_seeded_below(&source, (uint64_t)n);
}

/* Another alignment and guard for the buffers to come. */
static void vary(void)
{
    skew = (size_t)below(4);
    guard = below(2) ? NAN : 1234.5f;
}

#define EACH_TABLE   for (cpu = tables; cpu < tables + 2; cpu++)
#define COUNT(array) ((int64_t)(sizeof(array) / sizeof *(array)))

/* --------------------------------------------------------------------- convolutions */

static const int64_t channels_of[] = {1, 2, 3, 7, 8, 9, 16, 31, 32, 33};

static int64_t box(const int64_t s[DPF_SPACE])
{
    return s[0] * s[1] * s[2];
}

static void describe_conv(const struct dpf_conv *p, int64_t n)
{
    char text[DPF_SPACE][64];
    for (int d = 0; d < DPF_SPACE; d++)
        snprintf(text[d], sizeof text[d],
                 "%" PRId64 ":k%" PRId64 "s%" PRId64 "p%" PRId64 ":%" PRId64, p->in[d],
                 p->kernel[d], p->stride[d], p->pad[d], p->out[d]);
    describe("n %" PRId64 ", channels %" PRId64 " to %" PRId64 ", in:kernel:out %s %s %s",
             n, p->in_channels, p->out_channels, text[0], text[1], text[2]);
}

static void set_space(struct dpf_conv *p, int d, int64_t in, int64_t kernel,
                      int64_t stride, int64_t pad)
{
    p->in[d] = in;
    p->kernel[d] = kernel;
    p->stride[d] = stride;
    p->pad[d] = pad;
    p->out[d] = (in + 2 * pad - kernel) / stride + 1;
}

/* A shape with kernels of 1 to 5, strides of 1 to 3, any padding that a model may have,
 * and few outputs, so that the reference is done in time. */
static struct dpf_conv any_conv(int64_t in, int64_t out, bool flat)
{
    struct dpf_conv p = {.in_channels = in, .out_channels = out};
    for (int d = 0; d < DPF_SPACE; d++) {
        int64_t kernel = 1 + below(flat ? 5 : 3), stride = 1 + below(3);
        int64_t pad = below(kernel), least = kernel > 2 * pad ? kernel - 2 * pad : 1;
        if (flat && d == 0)
            set_space(&p, d, 1, 1, 1, 0);
        else
            set_space(&p, d, least + below(flat ? 4 : 3) * stride, kernel, stride, pad);
    }
    return p;
}

/* The weights' gradients of single examples, kept or computed twice; at last example
 * `out` gets the factor 0, whatever its gradient is. */
static void check_clipped(const struct dpf_conv *p, int64_t n, struct both x,
                          struct both dy, int64_t weights, int64_t out)
{
    int64_t kept = cpu->conv_kept(at, p, n), d_kept = ref->conv_kept(NULL, p, n);
    struct both room = uneven((size_t)kept, (size_t)d_kept);
    struct both factor = noise(n), dw = noise(weights);
    for (int twice = 0; twice < 2; twice++) {
        double got[MOST_ROWS] = {0}, want[MOST_ROWS] = {0};
        float *own = twice ? NULL : room.f;
        set(factor, out, 0.5);
        cpu->conv_example_norms(at, p, n, x.f, dy.f, own, got);
        ref->conv_example_norms(NULL, p, n, x.d, dy.d, room.d, want);
        settle_squares("conv_example_norms", got, want, n);
        if (isfinite(want[out])) {
            cpu->conv_add_clipped(at, p, n, factor.f, x.f, dy.f, own, dw.f);
            ref->conv_add_clipped(NULL, p, n, factor.d, x.d, dy.d, room.d, dw.d);
            settle("conv_add_clipped", dw);
        }
        set(factor, out, 0);
        for (int64_t i = 0; own && i < kept / n; i++)
            own[out * (kept / n) + i] = NAN;
        cpu->conv_add_clipped(at, p, n, factor.f, x.f, dy.f, own, dw.f);
        ref->conv_add_clipped(NULL, p, n, factor.d, x.d, dy.d, room.d, dw.d);
        settle("conv_add_clipped without one", dw);
    }
}

/* Gradients of a bias for each example. */
static void check_bias_sums(const struct dpf_conv *p, int64_t n, struct both dy)
{
    struct both sums = empty(n * p->out_channels);
    cpu->bias_example_sums(at, n, box(p->out), p->out_channels, dy.f, sums.f);
    ref->bias_example_sums(NULL, n, box(p->out), p->out_channels, dy.d, sums.d);
    settle("bias_example_sums", sums);
}

static void check_conv(const struct dpf_conv *p, int64_t n)
{
    int64_t weights = p->out_channels * p->in_channels * box(p->kernel);
    int64_t xs = n * p->in_channels * box(p->in), ys = n * p->out_channels * box(p->out);
    struct both x = noise(xs), w = noise(weights), b = noise(p->out_channels);
    struct both dy = noise(ys);
    describe_conv(p, n);
    for (int way = 0; way < 3; way++) {
        bool bias = way != 1, relu = way == 2;
        struct both y = empty(ys);
        cpu->conv_forward(at, p, n, x.f, w.f, bias ? b.f : NULL, relu, y.f);
        ref->conv_forward(NULL, p, n, x.d, w.d, bias ? b.d : NULL, relu, y.d);
        settle(relu ? "conv_forward with relu" : "conv_forward", y);
    }
    struct both dx = empty(xs), dw = noise(weights), db = noise(p->out_channels);
    cpu->conv_backward_data(at, p, n, dy.f, w.f, dx.f);
    ref->conv_backward_data(NULL, p, n, dy.d, w.d, dx.d);
    settle("conv_backward_data", dx);
    cpu->conv_backward_weights(at, p, n, x.f, dy.f, dw.f, db.f);
    ref->conv_backward_weights(NULL, p, n, x.d, dy.d, dw.d, db.d);
    settle("conv_backward_weights", dw);
    check_clipped(p, n, x, dy, weights, n / 2);
    check_bias_sums(p, n, dy);
    release();
}

static void test_conv_channels(void)
{
    begin();
    for (int64_t i = 0; i < COUNT(channels_of); i++)
        for (int64_t j = 0; j < COUNT(channels_of); j++)
            for (int flat = 0; flat < 2; flat++) {
                struct dpf_conv p = any_conv(channels_of[i], channels_of[j], flat);
                vary();
                check_conv(&p, 1 + 2 * below(2));
            }
    end();
}

/* Every kernel with every stride and padding, few channels. */
static void test_conv_geometries(void)
{
    begin();
    for (int64_t kernel = 1; kernel <= 5; kernel++)
        for (int64_t stride = 1; stride <= 3; stride++)
            for (int64_t pad = 0; pad < kernel; pad++) {
                struct dpf_conv p = {.in_channels = channels_of[below(6)],
                                     .out_channels = channels_of[below(6)]};
                set_space(&p, 0, 1, 1, 1, 0);
                set_space(&p, 1, 7, kernel, stride, pad);
                set_space(&p, 2, 6, kernel, stride, pad);
                vary();
                check_conv(&p, 1 + below(3));
            }
    end();
}

/* Layers of the networks in the tree, and volumes. */
static void test_conv_of_networks(void)
{
    static const struct {
        int64_t in_channels, out_channels, in[3], kernel[3], stride[3], pad[3], n;
    } cases[] = {
        {1, 16, {1, 28, 28}, {1, 8, 8}, {1, 2, 2}, {0, 3, 3}, 1},
        {16, 32, {1, 13, 13}, {1, 4, 4}, {1, 2, 2}, {0, 0, 0}, 1},
        {3, 32, {1, 12, 12}, {1, 5, 5}, {1, 1, 1}, {0, 2, 2}, 1},
        {32, 64, {1, 6, 6}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, 3},
        {64, 10, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 7},
        {1, 8, {8, 9, 7}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 2},
        {8, 4, {4, 4, 4}, {2, 2, 2}, {2, 2, 2}, {0, 0, 0}, 3},
        {4, 8, {3, 5, 5}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, 2},
        {4, 8, {1, 5, 5}, {3, 3, 3}, {1, 1, 1}, {1, 1, 1}, 2},
        {2, 3, {1, 1, 50}, {1, 1, 5}, {1, 1, 2}, {0, 0, 4}, 41},
    };
    begin();
    for (int64_t i = 0; i < COUNT(cases); i++) {
        struct dpf_conv p = {
            cases[i].in_channels, cases[i].out_channels, {0}, {0}, {0}, {0}, {0}};
        for (int d = 0; d < DPF_SPACE; d++)
            set_space(&p, d, cases[i].in[d], cases[i].kernel[d], cases[i].stride[d],
                      cases[i].pad[d]);
        vary();
        check_conv(&p, cases[i].n);
    }
    end();
}

/* One example's values that are not numbers reach no other example: padding of channels
 * to whole vectors must not multiply a neighbour by 0. */
static void test_conv_apart(void)
{
    begin();
    for (int64_t i = 0; i < 2 * COUNT(channels_of); i++) {
        struct dpf_conv p = {.in_channels = channels_of[i / 2],
                             .out_channels = channels_of[below(COUNT(channels_of))]};
        for (int d = 0; d < DPF_SPACE; d++)
            if (i % 2 == 0 && d == 0)
                set_space(&p, d, 1, 1, 1, 0);
            else
                set_space(&p, d, i % 2 ? 3 : 5, 3, 1, 1);
        int64_t weights = p.out_channels * p.in_channels * box(p.kernel);
        int64_t xs = p.in_channels * box(p.in), ys = p.out_channels * box(p.out);
        vary();
        struct both x = noise(3 * xs), w = noise(weights), y = empty(3 * ys);
        struct both dy = noise(3 * ys), dx = empty(3 * xs);
        describe_conv(&p, 3);
        for (int64_t j = 0; j < xs; j++)
            set(x, xs + j, (double)NAN);
        for (int64_t j = 0; j < ys; j++)
            set(dy, ys + j, (double)NAN);
        cpu->conv_forward(at, &p, 3, x.f, w.f, NULL, false, y.f);
        ref->conv_forward(NULL, &p, 3, x.d, w.d, NULL, false, y.d);
        settle("conv_forward with NaN", y);
        cpu->conv_backward_data(at, &p, 3, dy.f, w.f, dx.f);
        ref->conv_backward_data(NULL, &p, 3, dy.d, w.d, dx.d);
        settle("conv_backward_data with NaN", dx);
        check_clipped(&p, 3, x, dy, weights, 1);
        release();
    }
    end();
}

/* What is not a number is not cut off to 0. */
static void test_conv_relu_nan(void)
{
    begin();
    for (int64_t i = 0; i < COUNT(channels_of); i++) {
        struct dpf_conv p = {.in_channels = channels_of[i],
                             .out_channels = channels_of[below(COUNT(channels_of))]};
        set_space(&p, 0, 1, 1, 1, 0);
        set_space(&p, 1, 6, 3, 1, 1);
        set_space(&p, 2, 7, 3, 1, 1);
        int64_t ys = p.out_channels * box(p.out);
        struct both x = noise(p.in_channels * box(p.in)), y = empty(ys);
        struct both w = noise(p.out_channels * p.in_channels * box(p.kernel));
        describe_conv(&p, 1);
        set(x, 3, (double)NAN);
        cpu->conv_forward(at, &p, 1, x.f, w.f, NULL, true, y.f);
        ref->conv_forward(NULL, &p, 1, x.d, w.d, NULL, true, y.d);
        settle("conv_forward with relu of NaN", y);
        release();
    }
    end();
}

/* A gradient that is not finite must not seem short: clipping would let it pass. */
static void test_norms_not_finite(void)
{
    static const float bad[] = {NAN, INFINITY};
    begin();
    struct dpf_conv p = {.in_channels = 3, .out_channels = 2};
    set_space(&p, 0, 1, 1, 1, 0);
    set_space(&p, 1, 5, 3, 1, 1);
    set_space(&p, 2, 5, 3, 1, 1);
    int64_t xs = p.in_channels * box(p.in), ys = p.out_channels * box(p.out);
    for (int64_t way = 0; way < 2 * COUNT(bad); way++)
        EACH_TABLE
        {
            double square[4] = {0};
            float value = bad[way / 2];
            struct both x = noise(xs), dy = noise(ys);
            describe("%s, %g %s", cpu->name, (double)value, way % 2 ? "in dy" : "in x");
            for (int64_t i = 0; i < (way % 2 ? ys : xs); i++)
                (way % 2 ? dy : x).f[i] *= value;
            cpu->conv_example_norms(at, &p, 1, x.f, dy.f, NULL, &square[0]);
            cpu->dense_example_norms(at, 1, xs, ys, true, x.f, dy.f, &square[1]);
            cpu->row_norms(at, 1, way % 2 ? ys : xs, (way % 2 ? dy : x).f, &square[2]);
            cpu->dense_bits_example_norms(at, 1, 8, ys, true, (const uint8_t *)"\x7f",
                                          dy.f, &square[3]);
            static const char *const names[] = {"conv_example_norms",
                                                "dense_example_norms", "row_norms",
                                                "dense_bits_example_norms"};
            for (int i = 0; i < 3 + (int)(way % 2); i++)
                if (isfinite(square[i]))
                    complain(names[i], "an endless gradient has the square", square[i]);
            release();
        }
    end();
}

/* Never below the true norm, whatever the numbers; never far above. The true one in
 * numbers with 64 digits and a range in which nothing of this underflows. */
static void test_norms_from_above(void)
{
    enum { MOST_COLUMNS = 3000, TRIALS = 400 };
    static float x[MOST_COLUMNS], dy[MOST_COLUMNS];
    begin();
    for (int trial = 0; trial < TRIALS; trial++)
        EACH_TABLE
        {
            int64_t columns = 1 + below(MOST_COLUMNS), out = 1 + below(300);
            int wide = (int)below(3), exponent = (int)below(230) - 120;
            double row = 0, dense = 0, bits = 0;
            long double xx = 0, dd = 0;
            for (int64_t i = 0; i < columns; i++) {
                int own = wide == 2 ? (int)below(250) - 140 : exponent;
                x[i] = wide == 0 ? ldexpf(1, exponent)
                                 : ldexpf((float)dpf_seeded_normal(&source), own);
                xx += (long double)x[i] * x[i];
            }
            for (int64_t i = 0; i < out; i++) {
                dy[i] = ldexpf((float)dpf_seeded_normal(&source), -exponent);
                dd += (long double)dy[i] * dy[i];
            }
            cpu->row_norms(at, 1, columns, x, &row);
            cpu->dense_example_norms(at, 1, columns, out, true, x, dy, &dense);
            cpu->dense_bits_example_norms(at, 1, 8, out, false, (const uint8_t *)"\xff",
                                          dy, &bits);
            const double got[] = {row, dense, bits};
            const long double due[] = {xx, (xx + 1) * dd, 8 * dd};
            describe("%s, %" PRId64 " of 2^%d, kind %d", cpu->name, columns, exponent,
                     wide);
            for (int i = 0; i < 3; i++)
                if (!(got[i] >= due[i] && got[i] <= due[i] * (1 + 0x1p-12L)))
                    complain("norms from above", "the ratio is",
                             (double)(got[i] / due[i]));
        }
    /* zeros, and nothing else, have the norm 0 */
    double none = 0, least = 0;
    cpu = &tables[0];
    cpu->row_norms(at, 1, 8, (const float[8]){0}, &none);
    cpu->row_norms(at, 1, 8, (const float[8]){0, 0, 0x1p-149f}, &least);
    CU_ASSERT(none == 0 && least >= 0x1p-298);
    end();
}

/* ------------------------------------------------------------------------- products */

static void check_gemm(int64_t m, int64_t n, int64_t k, double alpha, double beta)
{
    struct both a = noise(m * k), b = noise(k * n);
    for (int way = 0; way < 4; way++) {
        struct both c = beta == 0 ? empty(m * n) : noise(m * n);
        bool ta = way & 1, tb = way & 2;
        describe("%" PRId64 " x %" PRId64 " x %" PRId64 ", alpha %g, beta %g, way %d", m,
                 n, k, alpha, beta, way);
        cpu->gemm(at, ta, tb, m, n, k, alpha, a.f, b.f, beta, c.f);
        ref->gemm(NULL, ta, tb, m, n, k, alpha, a.d, b.d, beta, c.d);
        settle("gemm", c);
    }
    release();
}

static void test_gemm(void)
{
    static const int64_t sizes[] = {1, 2, 3, 8, 17, 33, 100};
    static const double factors[][2] = {{1, 0}, {1, 1}, {2, 0.5}, {-1, -3}};
    begin();
    for (int64_t m = 0; m < COUNT(sizes); m++)
        for (int64_t n = 0; n < COUNT(sizes); n++)
            for (int64_t k = 0; k < COUNT(sizes); k++) {
                const double *f = factors[below(COUNT(factors))];
                vary();
                check_gemm(sizes[m], sizes[n], sizes[k], f[0], f[1]);
            }
    for (int64_t i = 0; i < COUNT(factors); i++) {
        check_gemm(3, 5, 0, factors[i][0], factors[i][1]);
        check_gemm(1, 1, 0, factors[i][0], factors[i][1]);
        check_gemm(0, 5, 4, factors[i][0], factors[i][1]);
        check_gemm(3, 0, 4, factors[i][0], factors[i][1]);
    }
    end();
}

/* Packed rows, with the memory ending where they end. */
static void check_bits(int64_t n, int64_t columns, int64_t units)
{
    int64_t bytes = (columns + 7) / 8;
    uint8_t *bits = dpf_calloc((size_t)(n * bytes), 1);
    struct both w = noise(columns * units), b = noise(units), y = empty(n * units);
    struct both dy = noise(n * units), dw = noise(columns * units), db = noise(units);
    describe("%s, n %" PRId64 ", columns %" PRId64 ", units %" PRId64, cpu->name, n,
             columns, units);
    for (int64_t i = 0; i < n * bytes; i++)
        bits[i] = (uint8_t)dpf_seeded_u64(&source); /* also the unused ones at the end */
    bool bias = n % 2;
    cpu->dense_bits_forward(at, n, columns, units, bits, w.f, bias ? b.f : NULL, y.f);
    ref->dense_bits_forward(NULL, n, columns, units, bits, w.d, bias ? b.d : NULL, y.d);
    settle("dense_bits_forward", y);
    cpu->dense_bits_backward_weights(at, n, columns, units, bits, dy.f, dw.f,
                                     bias ? db.f : NULL);
    ref->dense_bits_backward_weights(NULL, n, columns, units, bits, dy.d, dw.d,
                                     bias ? db.d : NULL);
    settle("dense_bits_backward_weights", dw);
    double got[MOST_ROWS] = {0}, want[MOST_ROWS] = {0};
    cpu->dense_bits_example_norms(at, n, columns, units, bias, bits, dy.f, got);
    ref->dense_bits_example_norms(NULL, n, columns, units, bias, bits, dy.d, want);
    settle_squares("dense_bits_example_norms", got, want, n);
    free(bits);
    release();
}

/* Dense layers against the reference; and examples apart: the bits of each row are those
 * of the row alone, whatever the others hold. */
static void check_dense(int64_t n, int64_t in, int64_t out, bool bias)
{
    struct both x = noise(n * in), w = noise(in * out), b = noise(out);
    struct both y = empty(n * out), dy = noise(n * out), dx = empty(n * in);
    describe("n %" PRId64 ", in %" PRId64 ", out %" PRId64, n, in, out);
    cpu->dense_forward(at, n, in, out, x.f, w.f, bias ? b.f : NULL, y.f);
    ref->dense_forward(NULL, n, in, out, x.d, w.d, bias ? b.d : NULL, y.d);
    settle("dense_forward", y);
    cpu->dense_backward_data(at, n, in, out, dy.f, w.f, dx.f);
    ref->dense_backward_data(NULL, n, in, out, dy.d, w.d, dx.d);
    settle("dense_backward_data", dx);
    int64_t bad = below(n);
    for (int64_t i = 0; i < in; i++)
        x.f[bad * in + i] = NAN;
    for (int64_t i = 0; i < out; i++)
        dy.f[bad * out + i] = INFINITY;
    cpu->dense_forward(at, n, in, out, x.f, w.f, bias ? b.f : NULL, y.f);
    cpu->dense_backward_data(at, n, in, out, dy.f, w.f, dx.f);
    struct both one = empty(out), back = empty(in);
    for (int64_t r = 0; r < n; r++) {
        cpu->dense_forward(at, 1, in, out, x.f + r * in, w.f, bias ? b.f : NULL, one.f);
        cpu->dense_backward_data(at, 1, in, out, dy.f + r * out, w.f, back.f);
        if (r != bad && (memcmp(one.f, y.f + r * out, (size_t)out * sizeof *one.f) != 0 ||
                         memcmp(back.f, dx.f + r * in, (size_t)in * sizeof *back.f) != 0))
            complain("dense layer", "other bits than alone in row", (double)r);
    }
    release();
}

static void test_dense(void)
{
    static const int64_t sizes[] = {1,  2,  3,  7,  8,   9,   15,  16,  17,  31,
                                    33, 47, 48, 49, 100, 255, 256, 257, 300, 1000};
    begin();
    for (int64_t i = 0; i < COUNT(sizes); i++)
        for (int64_t j = 0; j < COUNT(sizes); j++) {
            vary();
            check_dense(1 + below(sizes[i] * sizes[j] > 20000 ? 9 : 30), sizes[i],
                        sizes[j], (i + j) % 2);
        }
    end();
}

/* Convolutions: each example as alone. */
static void test_conv_alone(void)
{
    begin();
    for (int trial = 0; trial < 60; trial++) {
        struct dpf_conv p = any_conv(channels_of[below(COUNT(channels_of))],
                                     channels_of[below(COUNT(channels_of))], trial % 2);
        int64_t n = 2 + below(12),
                weights = p.out_channels * p.in_channels * box(p.kernel);
        int64_t xs = p.in_channels * box(p.in), ys = p.out_channels * box(p.out);
        bool relu = trial % 3 == 0;
        vary();
        struct both x = noise(n * xs), w = noise(weights), b = noise(p.out_channels);
        struct both y = empty(n * ys), dy = noise(n * ys), dx = empty(n * xs);
        struct both one = empty(ys), back = empty(xs);
        describe_conv(&p, n);
        cpu->conv_forward(at, &p, n, x.f, w.f, b.f, relu, y.f);
        cpu->conv_backward_data(at, &p, n, dy.f, w.f, dx.f);
        for (int64_t e = 0; e < n; e++) {
            cpu->conv_forward(at, &p, 1, x.f + e * xs, w.f, b.f, relu, one.f);
            cpu->conv_backward_data(at, &p, 1, dy.f + e * ys, w.f, back.f);
            if (memcmp(one.f, y.f + e * ys, (size_t)ys * sizeof *one.f) != 0 ||
                memcmp(back.f, dx.f + e * xs, (size_t)xs * sizeof *back.f) != 0)
                complain("convolution", "other bits than alone in example", (double)e);
        }
        release();
    }
    end();
}

static void test_bits(void)
{
    static const int64_t columns[] = {1,  5,  7,  8,  9,   39,   40,   41,
                                      64, 79, 80, 92, 600, 1023, 1024, 1025};
    static const int64_t units[] = {1, 7, 8, 31, 32, 33, 64, 100};
    static const int64_t ns[] = {1, 2, 8, 39, 40, 41, 100};
    begin();
    EACH_TABLE
    for (int64_t c = 0; c < COUNT(columns); c++)
        for (int64_t u = 0; u < COUNT(units); u++) {
            /* long rows are dear to the reference: one batch size for each */
            for (int64_t i = 0; i < (columns[c] < 100 ? COUNT(ns) : 1); i++) {
                vary();
                check_bits(columns[c] < 100 ? ns[i] : ns[below(COUNT(ns))], columns[c],
                           units[u]);
            }
        }
    end();
}

static void test_rows(void)
{
    static const int64_t columns[] = {1,   3,   8,    63,   64,   65,
                                      511, 513, 2047, 2048, 2049, 5000};
    static const int64_t rows[] = {1, 2, 7, 40};
    begin();
    EACH_TABLE
    for (int64_t i = 0; i < COUNT(columns); i++)
        for (int64_t j = 0; j < COUNT(rows); j++) {
            int64_t r = rows[j], c = columns[i], out = 1 + below(20);
            vary();
            struct both x = noise(r * c), factor = noise(r), y = noise(c);
            struct both dy = noise(r * out);
            double got[MOST_ROWS] = {0}, want[MOST_ROWS] = {0};
            describe("%s, %" PRId64 " rows of %" PRId64 ", out %" PRId64, cpu->name, r, c,
                     out);
            cpu->row_norms(at, r, c, x.f, got);
            ref->row_norms(NULL, r, c, x.d, want);
            settle_squares("row_norms", got, want, r);
            cpu->dense_example_norms(at, r, c, out, j % 2, x.f, dy.f, got);
            ref->dense_example_norms(NULL, r, c, out, j % 2, x.d, dy.d, want);
            settle_squares("dense_example_norms", got, want, r); /* they have grown */
            /* a row that is out may hold anything; factors of 1 are not special */
            set(factor, r / 2, 1);
            set(factor, r - 1, 0);
            for (int64_t k = 0; k < c; k++)
                set(x, (r - 1) * c + k, k % 2 ? (double)NAN : (double)INFINITY);
            cpu->add_scaled_rows(at, r, c, factor.f, x.f, y.f);
            ref->add_scaled_rows(NULL, r, c, factor.d, x.d, y.d);
            settle("add_scaled_rows", y);
            cpu->scale_rows(at, r, c, factor.f, x.f);
            ref->scale_rows(NULL, r, c, factor.d, x.d);
            settle("scale_rows", x);
            release();
        }
    end();
}

/* Divisors keep away from 0, or are 0. */
static void test_relevance(void)
{
    static const int64_t counts[] = {1, 3, 8, 65, 1000, 4097};
    begin();
    EACH_TABLE
    for (int64_t i = 0; i < COUNT(counts); i++) {
        int64_t n = counts[i];
        vary();
        struct both x = noise(n), y = noise(n), z = noise(n), part = noise(n);
        struct both share = noise(n), pro = noise(n), con = noise(n), other = noise(n);
        describe("%s, %" PRId64 " values", cpu->name, n);
        for (int64_t k = 0; k < n; k++) {
            double size = 0.5 + (double)below(100) / 50;
            set(z, k, k % 7 == 0 ? 0 : k % 2 ? size : -size);
            set(pro, k, k % 5 == 0 ? 0 : size);
            set(con, k, k % 3 == 0 ? 0 : -size);
        }
        cpu->multiply(at, n, x.f, y.f);
        ref->multiply(NULL, n, x.d, y.d);
        settle("multiply", y);
        for (int negative = 0; negative < 2; negative++) {
            cpu->take_part(at, negative, n, x.f, part.f);
            ref->take_part(NULL, negative, n, x.d, part.d);
            settle("take_part", part);
        }
        for (int stable = 0; stable < 2; stable++) {
            cpu->relevance_share(at, n, x.f, z.f, stable * 0.25, share.f);
            ref->relevance_share(NULL, n, x.d, z.d, stable * 0.25, share.d);
            settle("relevance_share", share);
        }
        cpu->relevance_split(at, n, 2, 1, x.f, pro.f, con.f, share.f, other.f);
        ref->relevance_split(NULL, n, 2, 1, x.d, pro.d, con.d, share.d, other.d);
        settle("relevance_split, for", share);
        settle("relevance_split, against", other);
        release();
    }
    end();
}

static void test_bias_and_sums(void)
{
    static const int64_t rows[] = {1, 2, 17, 255, 256, 257, 1000};
    begin();
    EACH_TABLE
    for (int64_t i = 0; i < COUNT(rows); i++)
        for (int64_t j = 0; j < COUNT(channels_of) + 3; j++) {
            int64_t c =
                j < COUNT(channels_of) ? channels_of[j] : 63 + j - COUNT(channels_of);
            vary();
            struct both b = noise(c), y = noise(rows[i] * c), db = noise(c);
            struct both x = noise(rows[i] * c), gone = noise(rows[i] * c);
            describe("%s, %" PRId64 " rows of %" PRId64, cpu->name, rows[i], c);
            cpu->add_bias(at, rows[i], c, b.f, y.f);
            ref->add_bias(NULL, rows[i], c, b.d, y.d);
            settle("add_bias", y);
            cpu->sum_bias(at, rows[i], c, y.f, db.f);
            ref->sum_bias(NULL, rows[i], c, y.d, db.d);
            settle("sum_bias", db);
            cpu->add(at, rows[i] * c, x.f, y.f);
            ref->add(NULL, rows[i] * c, x.d, y.d);
            settle("add", y);
            set(gone, 0, (double)NAN);
            cpu->clear(at, gone.f, rows[i] * c - 1);
            ref->clear(NULL, gone.d, rows[i] * c - 1);
            settle("clear", gone);
            release();
        }
    end();
}

/* -------------------------------------------------------------------------- layouts */

static void check_layouts(int64_t n, int64_t channels, int64_t positions)
{
    int64_t count = n * channels * positions;
    struct both x = noise(count), y = empty(count), back = empty(count);
    describe("%s, n %" PRId64 ", channels %" PRId64 ", positions %" PRId64, cpu->name, n,
             channels, positions);
    cpu->to_channels_last(at, n, channels, positions, x.f, y.f);
    ref->to_channels_last(NULL, n, channels, positions, x.d, y.d);
    settle("to_channels_last", y);
    cpu->to_channels_first(at, n, channels, positions, y.f, back.f);
    ref->to_channels_first(NULL, n, channels, positions, y.d, back.d);
    settle("to_channels_first", back);
    if (memcmp(back.f, x.f, (size_t)count * sizeof *x.f) != 0)
        complain("to_channels_first", "does not undo to_channels_last", 0);
    release();
}

static void check_columns(int64_t rows, int64_t columns, int64_t x_more, int64_t y_more)
{
    int64_t from = columns + x_more, to = columns + y_more;
    struct both x = noise(rows * from), y = noise(rows * to);
    describe("%s, %" PRId64 " rows, %" PRId64 " columns of %" PRId64 " to %" PRId64,
             cpu->name, rows, columns, from, to);
    cpu->copy_columns(at, rows, columns, x.f + x_more / 2, from, y.f + y_more / 2, to);
    ref->copy_columns(NULL, rows, columns, x.d + x_more / 2, from, y.d + y_more / 2, to);
    settle("copy_columns", y);
    release();
}

static void test_layouts(void)
{
    static const int64_t positions[] = {1, 2, 15, 16, 17, 49, 100};
    begin();
    EACH_TABLE
    for (int64_t c = 0; c < COUNT(channels_of); c++)
        for (int64_t i = 0; i < COUNT(positions); i++) {
            vary();
            check_layouts(1 + 2 * below(2), channels_of[c], positions[i]);
            check_columns(positions[i], channels_of[c], below(4), below(4));
            check_columns(positions[i], channels_of[c], 0, 0);
        }
    end();
}

static void test_upsample(void)
{
    begin();
    EACH_TABLE
    for (int64_t c = 0; c < COUNT(channels_of); c++)
        for (int i = 0; i < 6; i++) {
            bool flat = i < 3;
            int64_t n = 1 + 2 * below(2), channels = channels_of[c];
            const int64_t in[] = {flat ? 1 : 1 + below(4), 1 + below(5), 1 + below(5)};
            const int64_t factor[] = {flat ? 1 : 1 + below(3), 1 + below(3),
                                      1 + below(4)};
            int64_t xs = n * channels * box(in), ys = xs * box(factor);
            vary();
            struct both x = noise(xs), y = empty(ys), dy = noise(ys), dx = empty(xs);
            describe("%s, n %" PRId64 ", channels %" PRId64 ", in %" PRId64 " %" PRId64
                     " %" PRId64 ", factors %" PRId64 " %" PRId64 " %" PRId64,
                     cpu->name, n, channels, in[0], in[1], in[2], factor[0], factor[1],
                     factor[2]);
            cpu->upsample_forward(at, n, channels, in, factor, x.f, y.f);
            ref->upsample_forward(NULL, n, channels, in, factor, x.d, y.d);
            settle("upsample_forward", y);
            cpu->upsample_backward(at, n, channels, in, factor, dy.f, dx.f);
            ref->upsample_backward(NULL, n, channels, in, factor, dy.d, dx.d);
            settle("upsample_backward", dx);
            release();
        }
    end();
}

/* -------------------------------------------------------------------------- pooling */

static void check_pool(const struct dpf_conv *g, int64_t n, bool ties)
{
    struct dpf_pool p = {.channels = g->in_channels};
    memcpy(p.in, g->in, sizeof p.in);
    memcpy(p.out, g->out, sizeof p.out);
    memcpy(p.kernel, g->kernel, sizeof p.kernel);
    memcpy(p.stride, g->stride, sizeof p.stride);
    memcpy(p.pad, g->pad, sizeof p.pad);
    int64_t xs = n * p.channels * box(p.in), ys = n * p.channels * box(p.out);
    struct both x = noise(xs), y = empty(ys), mean = empty(ys), dy = noise(ys);
    struct both dx = empty(xs), mean_dx = empty(xs);
    int32_t *got = dpf_calloc((size_t)ys, sizeof *got);
    int32_t *want = dpf_calloc((size_t)ys, sizeof *want);
    for (int64_t i = 0; ties && i < xs; i++) /* the first of equals, as after ReLU */
        set(x, i, fmax(0, rint(x.d[i])));
    describe_conv(g, n);
    cpu->max_pool_forward(at, &p, n, x.f, y.f, got);
    ref->max_pool_forward(NULL, &p, n, x.d, y.d, want);
    settle("max_pool_forward", y);
    if (memcmp(got, want, (size_t)ys * sizeof *got) != 0)
        complain("max_pool_forward", "chose other places", 0);
    cpu->max_pool_backward(at, &p, n, dy.f, want, dx.f);
    ref->max_pool_backward(NULL, &p, n, dy.d, want, dx.d);
    settle("max_pool_backward", dx);
    cpu->average_pool_forward(at, &p, n, x.f, mean.f);
    ref->average_pool_forward(NULL, &p, n, x.d, mean.d);
    settle("average_pool_forward", mean);
    cpu->average_pool_backward(at, &p, n, dy.f, mean_dx.f);
    ref->average_pool_backward(NULL, &p, n, dy.d, mean_dx.d);
    settle("average_pool_backward", mean_dx);
    free(got);
    free(want);
    release();
}

static void test_pools(void)
{
    begin();
    EACH_TABLE
    for (int64_t c = 0; c < COUNT(channels_of); c++)
        for (int i = 0; i < 40; i++) {
            struct dpf_conv p = any_conv(channels_of[c], channels_of[c], i % 2);
            /* windows may also be cut off at the end, or lie outside altogether */
            for (int d = i % 2; d < DPF_SPACE; d++)
                p.out[d] += i % 5 == 4 ? below(3) : 0;
            for (int d = 0; d < DPF_SPACE && i % 4 == 3; d++) /* side by side */
                p.stride[d] = p.kernel[d];
            vary();
            check_pool(&p, 1 + 2 * below(2), i % 3 == 0);
        }
    end();
}

/* Windows side by side that cover everything: nothing clears the gradient first. */
static void test_pools_side_by_side(void)
{
    begin();
    EACH_TABLE
    for (int64_t kernel = 1; kernel <= 4; kernel++)
        for (int64_t in = kernel; in <= 9; in++)
            for (int64_t more = 0; more < 2; more++) {
                struct dpf_conv p = {.in_channels = channels_of[below(10)]};
                p.out_channels = p.in_channels;
                set_space(&p, 0, 1, 1, 1, 0);
                set_space(&p, 1, in, kernel, kernel, 0);
                set_space(&p, 2, 10 - in + kernel, kernel, kernel, 0);
                p.out[1] += more, p.out[2] += more;
                vary();
                check_pool(&p, 3, in % 2);
            }
    end();
}

/* -------------------------------------------------------------- functions, dropout */

static void check_unary(enum dpf_unary f, int64_t count, bool in_place)
{
    static const double odd[] = {0, -0.0, 100, -100, 1e-6, -1e-6, 1e30, -1e30, 9, -9};
    struct both x = noise(count), y = in_place ? x : empty(count), dy = noise(count);
    struct both dx = in_place ? dy : empty(count);
    for (int64_t i = 0; i < count; i++)
        if (i % 3 == 0)
            set(x, i, odd[i / 3 % COUNT(odd)]);
    if (count > 5) {
        set(x, 4, (double)NAN);
        set(x, 5, (double)INFINITY);
    }
    if (f == DPF_RELU) /* relative to the largest, the others would not be seen */
        for (int64_t i = 0; i < count; i++)
            set(x, i, fabs(x.d[i]) > 1e10 ? -1 : x.d[i]);
    describe("%s, function %d, count %" PRId64 "%s", cpu->name, (int)f, count,
             in_place ? ", in place" : "");
    cpu->unary_forward(at, f, count, x.f, y.f);
    ref->unary_forward(NULL, f, count, x.d, y.d);
    settle("unary_forward", y);
    even_out(y, count);
    /* in place, the input is gone: what works so reads the output alone */
    cpu->unary_backward(at, f, count, x.f, y.f, dy.f, dx.f);
    ref->unary_backward(NULL, f, count, x.d, y.d, dy.d, dx.d);
    settle("unary_backward", dx);
    release();
}

static void test_unary(void)
{
    begin();
    EACH_TABLE
    for (int f = 0; f < DPF_UNARY_COUNT; f++)
        for (int64_t count = 1; count < 1200; count += count < 40 ? 1 : 211)
            for (int in_place = 0; in_place < 2; in_place++) {
                vary();
                check_unary((enum dpf_unary)f, count, in_place);
            }
    end();
}

static void test_polynomial(void)
{
    static const double scales[] = {0.25, 1, 7};
    begin();
    EACH_TABLE
    for (int degree = 0; degree <= 9; degree++)
        for (int64_t i = 0; i < COUNT(scales) * 4; i++) {
            int64_t count = i % 4 == 3 ? 2500 : 1 + below(60);
            double c[10];
            vary();
            struct both x = noise(count), y = empty(count), dy = noise(count);
            struct both dx = empty(count);
            for (int j = 0; j <= degree; j++)
                c[j] = 2 * dpf_seeded_normal(&source);
            for (int64_t j = 0; j < count; j++) /* not where rounding decides the cut */
                if (fabs(fabs(x.d[j]) / scales[i / 4] - 1) < 1e-4)
                    set(x, j, 0);
            describe("%s, degree %d, scale %g, count %" PRId64, cpu->name, degree,
                     scales[i / 4], count);
            cpu->polynomial_forward(at, degree, c, scales[i / 4], count, x.f, y.f);
            ref->polynomial_forward(NULL, degree, c, scales[i / 4], count, x.d, y.d);
            settle("polynomial_forward", y);
            cpu->polynomial_backward(at, degree, c, scales[i / 4], count, x.f, dy.f,
                                     dx.f);
            ref->polynomial_backward(NULL, degree, c, scales[i / 4], count, x.d, dy.d,
                                     dx.d);
            settle("polynomial_backward", dx);
            release();
        }
    end();
}

static void test_softmax(void)
{
    static const int64_t classes[] = {1, 2, 3, 7, 8, 9, 10, 31, 33, 100, 1000};
    static const double scales[] = {1, 0.01, 50, 1000};
    begin();
    EACH_TABLE
    for (int64_t i = 0; i < COUNT(classes); i++)
        for (int64_t s = 0; s < COUNT(scales); s++) {
            int64_t n = 1 + 2 * below(4), c = classes[i], count = n * c;
            vary();
            struct both x = noise(count), y = empty(count), dy = noise(count);
            struct both dx = empty(count);
            describe("%s, n %" PRId64 ", classes %" PRId64 ", values %g", cpu->name, n, c,
                     scales[s]);
            for (int64_t j = 0; j < count; j++)
                set(x, j, x.d[j] * scales[s]);
            cpu->softmax_forward(at, n, c, x.f, y.f);
            ref->softmax_forward(NULL, n, c, x.d, y.d);
            settle("softmax_forward", y);
            for (int64_t j = 0; j < count; j++) /* sure of one class, the slope is 0 */
                set(y, j, fmax(y.d[j], 0.01) / (1 + 0.01 * (double)c));
            cpu->softmax_backward(at, n, c, y.f, dy.f, dx.f);
            ref->softmax_backward(NULL, n, c, y.d, dy.d, dx.d);
            settle("softmax_backward", dx);
            release();
        }
    end();
}

static void test_dropout(void)
{
    static const double rates[] = {0, 0.1, 0.25, 0.5, 0.9, 0.999};
    static const int64_t columns[] = {1, 2, 7, 8, 9, 33, 100, 1000};
    begin();
    EACH_TABLE
    for (int64_t r = 0; r < COUNT(rates); r++)
        for (int64_t i = 0; i < 2 * COUNT(columns); i++) {
            int64_t c = columns[i / 2], rows = 1 + 2 * below(4), count = rows * c;
            uint64_t keys[8], layer = dpf_seeded_u64(&source);
            for (int j = 0; j < 8; j++)
                keys[j] = dpf_seeded_u64(&source);
            vary();
            struct both x = noise(count), y = i % 2 ? x : empty(count);
            describe("%s, %" PRId64 " rows of %" PRId64 ", rate %g%s", cpu->name, rows, c,
                     rates[r], i % 2 ? ", in place" : "");
            cpu->dropout(at, rows, c, rates[r], keys, layer, x.f, y.f);
            ref->dropout(NULL, rows, c, rates[r], keys, layer, x.d, y.d);
            settle("dropout", y);
            for (int64_t j = 0; j < count; j++)
                if ((y.f[j] == 0) != (y.d[j] == 0))
                    complain("dropout", "another mask at", (double)j);
            release();
        }
    end();
}

/* Probabilities as they are, 0 and 1 among them: the same draws as ref's. */
static void test_bernoulli(void)
{
    begin();
    EACH_TABLE
    for (int64_t i = 0; i < 40; i++) {
        int64_t c = 1 + below(700), rows = 1 + below(8), count = rows * c;
        uint64_t keys[8], layer = dpf_seeded_u64(&source);
        for (int j = 0; j < 8; j++)
            keys[j] = dpf_seeded_u64(&source);
        vary();
        struct both x = noise(count), y = i % 2 ? x : empty(count);
        describe("%s, %" PRId64 " rows of %" PRId64, cpu->name, rows, c);
        for (int64_t j = 0; j < count; j++)
            set(x, j, fmin(fmax(fabs(x.d[j]) * 2 - 0.1, 0), 1));
        cpu->bernoulli(at, rows, c, keys, layer, x.f, y.f);
        ref->bernoulli(NULL, rows, c, keys, layer, x.d, y.d);
        settle("bernoulli", y);
        for (int64_t j = 0; j < count; j++)
            if (y.f[j] != 0 && y.f[j] != 1)
                complain("bernoulli", "neither 0 nor 1 at", (double)j);
        release();
    }
    end();
}

/* --------------------------------------------------------------------- normalisation */

static void check_lrn(const struct dpf_lrn *p, int64_t n, double scale)
{
    int64_t count = n * p->positions * p->channels;
    struct both x = noise(count), y = empty(count), dy = noise(count), dx = empty(count);
    describe("%s, n %" PRId64 ", channels %" PRId64 ", positions %" PRId64
             ", window %" PRId64 ", bias %g, alpha %g, beta %g",
             cpu->name, n, p->channels, p->positions, p->window, p->bias, p->alpha,
             p->beta);
    for (int64_t i = 0; i < count; i++)
        set(x, i, x.d[i] * scale);
    cpu->lrn_forward(at, p, n, x.f, y.f);
    ref->lrn_forward(NULL, p, n, x.d, y.d);
    settle("lrn_forward", y);
    cpu->lrn_backward(at, p, n, x.f, dy.f, dx.f);
    ref->lrn_backward(NULL, p, n, x.d, dy.d, dx.d);
    settle("lrn_backward", dx);
    release();
}

static void test_lrn(void)
{
    static const double betas[] = {0.75, 0.5, 1, 0.6, 2};
    begin();
    EACH_TABLE
    for (int64_t c = 0; c < COUNT(channels_of); c++)
        for (int64_t window = 1; window <= 9; window++) {
            double beta = window % 2 ? 0.75 : betas[below(COUNT(betas))];
            struct dpf_lrn p = {channels_of[c], 1 + below(9),          window,
                                1 + below(2),   below(2) ? 0.5 : 1e-4, beta};
            vary();
            check_lrn(&p, 1 + 2 * below(2), 1 + 9 * (double)below(2));
            p.window = channels_of[c] + below(12); /* also wider than the channels */
            check_lrn(&p, 1, 1);
        }
    end();
}

static void check_group_norm(const struct dpf_group_norm *p, int64_t n, double offset)
{
    int64_t c = p->channels, count = n * p->positions * c;
    struct both x = noise(count), scale = noise(c), shift = noise(c), y = empty(count);
    struct both dy = noise(count), dx = empty(count), dscale = noise(c);
    struct both dshift = noise(c), only = empty(count), more = noise(c);
    describe("%s, n %" PRId64 ", channels %" PRId64 ", positions %" PRId64
             ", groups %" PRId64 ", epsilon %g, values about %g",
             cpu->name, n, c, p->positions, p->groups, p->epsilon, offset);
    for (int64_t i = 0; i < count; i++)
        set(x, i, x.d[i] + offset);
    cpu->group_norm_forward(at, p, n, x.f, scale.f, shift.f, y.f);
    ref->group_norm_forward(NULL, p, n, x.d, scale.d, shift.d, y.d);
    settle("group_norm_forward", y);
    cpu->group_norm_backward(at, p, n, x.f, scale.f, dy.f, dx.f, dscale.f, dshift.f);
    ref->group_norm_backward(NULL, p, n, x.d, scale.d, dy.d, dx.d, dscale.d, dshift.d);
    settle("group_norm_backward", dx);
    cpu->group_norm_backward(at, p, n, x.f, scale.f, dy.f, only.f, NULL, NULL);
    ref->group_norm_backward(NULL, p, n, x.d, scale.d, dy.d, only.d, NULL, NULL);
    settle("group_norm_backward of data", only);
    cpu->group_norm_backward(at, p, n, x.f, scale.f, dy.f, NULL, more.f, NULL);
    ref->group_norm_backward(NULL, p, n, x.d, scale.d, dy.d, NULL, more.d, NULL);
    settle("group_norm_backward of scales", more);
    release();
}

static void test_group_norm(void)
{
    static const int64_t positions[] = {1, 4, 9, 100};
    begin();
    EACH_TABLE
    for (int64_t c = 0; c < COUNT(channels_of); c++)
        for (int64_t groups = 1; groups <= channels_of[c]; groups++)
            for (int64_t i = 0; i < COUNT(positions); i++) {
                struct dpf_group_norm p = {channels_of[c], positions[i], groups, 1e-5};
                /* a single value is its own mean: nothing is left but rounding */
                if (p.channels % groups || p.channels / groups * p.positions < 4)
                    continue;
                vary();
                check_group_norm(&p, 1 + 2 * below(2), 0);
                check_group_norm(&p, 1, 10);
            }
    end();
}

static void test_ball(void)
{
    static const int64_t lengths[] = {1, 2, 3, 7, 8, 33, 100};
    begin();
    EACH_TABLE
    for (int64_t i = 0; i < COUNT(lengths); i++) {
        int64_t n = 3 + 2 * below(3), l = lengths[i];
        vary();
        struct both x = noise(n * (l + 1)), y = empty(n * l), dy = noise(n * l);
        struct both dx = empty(n * (l + 1));
        describe("%s, n %" PRId64 ", values %" PRId64, cpu->name, n, l);
        for (int64_t j = 1; j <= l; j++) /* the first one is the zero vector */
            set(x, j, 0);
        cpu->ball_forward(at, n, l, x.f, y.f);
        ref->ball_forward(NULL, n, l, x.d, y.d);
        settle("ball_forward", y);
        cpu->ball_backward(at, n, l, x.f, dy.f, dx.f);
        ref->ball_backward(NULL, n, l, x.d, dy.d, dx.d);
        settle("ball_backward", dx);
        release();
    }
    end();
}

static void test_min_max(void)
{
    static const int64_t lengths[] = {1, 2, 3, 7, 8, 33, 100};
    begin();
    EACH_TABLE
    for (int64_t i = 0; i < COUNT(lengths); i++) {
        int64_t n = 3 + 2 * below(3), c = lengths[i];
        vary();
        struct both x = noise(n * c), y = empty(n * c), dy = noise(n * c);
        struct both dx = empty(n * c);
        describe("%s, n %" PRId64 ", values %" PRId64, cpu->name, n, c);
        for (int64_t j = 0; j < c; j++) /* the first one is constant */
            set(x, j, 3);
        cpu->min_max_forward(at, n, c, x.f, y.f);
        ref->min_max_forward(NULL, n, c, x.d, y.d);
        settle("min_max_forward", y);
        cpu->min_max_backward(at, n, c, x.f, dy.f, dx.f);
        ref->min_max_backward(NULL, n, c, x.d, dy.d, dx.d);
        settle("min_max_backward", dx);
        release();
    }
    end();
}

/* --------------------------------------------------------------- memory and threads */

static void test_memory(void)
{
    const float host[3] = {1, 2, 3};
    float back[3] = {0};
    begin();
    void *memory = cpu->alloc(at, sizeof host);
    CU_ASSERT_PTR_NOT_NULL_FATAL(memory);
    cpu->put(at, memory, host, sizeof host);
    cpu->get(at, back, memory, sizeof back);
    CU_ASSERT(memcmp(back, host, sizeof host) == 0);
    cpu->release(at, memory);
    CU_ASSERT(strcmp(dpf_kernels_cpu()->name, "cpu") == 0 && cpu->host_memory);
    CU_ASSERT(cpu->finish(at, NULL) == DPF_OK);
    end();
}

enum { SHAPES = 5, ROUNDS = 300, BATCH = 3 };

/* Convolutions of a few shapes; what comes out goes one behind the other into `out`. */
struct job {
    struct dpf_conv shapes[SHAPES];
    struct both x[SHAPES], w[SHAPES], dy[SHAPES];
    float *want;
    size_t count;
};

struct worker {
    const struct job *job;
    pthread_barrier_t *start;
    int first; /* shape to begin with */
    int wrong; /* rounds */
};

/* Forward and both ways back of shape i into `out`; how many values. */
static size_t run_shape(const struct job *job, size_t i, float *out)
{
    const struct dpf_conv *p = &job->shapes[i];
    size_t ys = (size_t)(BATCH * p->out_channels * box(p->out));
    size_t xs = (size_t)(BATCH * p->in_channels * box(p->in));
    size_t ws = (size_t)(p->out_channels * p->in_channels * box(p->kernel));
    if (out) {
        memset(out, 0, (ys + xs + ws) * sizeof *out);
        cpu->conv_forward(at, p, BATCH, job->x[i].f, job->w[i].f, NULL, i % 2, out);
        cpu->conv_backward_data(at, p, BATCH, job->dy[i].f, job->w[i].f, out + ys);
        cpu->conv_backward_weights(at, p, BATCH, job->x[i].f, job->dy[i].f, out + ys + xs,
                                   NULL);
    }
    return ys + xs + ws;
}

static void *work(void *argument)
{
    struct worker *w = argument;
    float *out = dpf_calloc(w->job->count, sizeof *out);
    w->wrong += cpu->open(0, &at, NULL) != DPF_OK;
    pthread_barrier_wait(w->start);
    for (int round = 0; out && round < ROUNDS; round++) {
        size_t places[SHAPES + 1] = {0};
        for (size_t i = 0; i < SHAPES; i++)
            places[i + 1] = places[i] + run_shape(w->job, i, NULL);
        for (size_t i = 0; i < SHAPES; i++) {
            size_t own = (i + (size_t)w->first) % SHAPES;
            run_shape(w->job, own, out + places[own]);
        }
        w->wrong += memcmp(out, w->job->want, w->job->count * sizeof *out) != 0;
    }
    w->wrong += !out || cpu->finish(at, NULL) != DPF_OK;
    cpu->close(at);
    free(out);
    return NULL;
}

static void prepare(struct job *job)
{
    for (size_t i = 0; i < SHAPES; i++) {
        struct dpf_conv *p = &job->shapes[i];
        *p = any_conv(channels_of[2 + i], channels_of[9 - i], i % 2);
        job->x[i] = noise(BATCH * p->in_channels * box(p->in));
        job->dy[i] = noise(BATCH * p->out_channels * box(p->out));
        job->w[i] = noise(p->out_channels * p->in_channels * box(p->kernel));
        job->count += run_shape(job, i, NULL);
    }
    job->want = dpf_calloc(job->count, sizeof *job->want);
    size_t place = 0;
    for (size_t i = 0; job->want && i < SHAPES; i++)
        place += run_shape(job, i, job->want + place);
}

/* Side by side, in different orders, with plans and scratch of their own. */
static void test_threads(void)
{
    struct job job = {0};
    pthread_barrier_t start;
    pthread_t threads[2];
    struct worker workers[2] = {{&job, &start, 0, 0}, {&job, &start, 2, 0}};
    begin();
    prepare(&job);
    CU_ASSERT_PTR_NOT_NULL_FATAL(job.want);
    CU_ASSERT_FATAL(pthread_barrier_init(&start, NULL, 2) == 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT_FATAL(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
    for (int i = 0; i < 2; i++)
        CU_ASSERT(pthread_join(threads[i], NULL) == 0);
    CU_ASSERT(workers[0].wrong == 0 && workers[1].wrong == 0);
    /* this thread's plans are still there after the others' end */
    float *again = dpf_calloc(job.count, sizeof *again);
    size_t place = 0;
    for (size_t i = 0; again && i < SHAPES; i++)
        place += run_shape(&job, i, again + place);
    CU_ASSERT(again && memcmp(again, job.want, job.count * sizeof *again) == 0);
    pthread_barrier_destroy(&start);
    free(again);
    free(job.want);
    end();
}

const char dpf_suite[] = "cpu";
const struct dpf_test dpf_tests[] = {
    {"convolution: channels from 1 to 33", test_conv_channels},
    {"convolution: kernels, strides, paddings", test_conv_geometries},
    {"convolution: layers of networks", test_conv_of_networks},
    {"convolution: examples stay apart", test_conv_apart},
    {"convolution: ReLU of what is not a number", test_conv_relu_nan},
    {"norms of what is not finite are not finite", test_norms_not_finite},
    {"norms: never below the true ones", test_norms_from_above},
    {"convolution: the bits of an example alone", test_conv_alone},
    {"products: all transposes, also empty", test_gemm},
    {"dense layers, and the bits of a row alone", test_dense},
    {"packed bits", test_bits},
    {"rows: norms and factors", test_rows},
    {"bias, sums, clearing", test_bias_and_sums},
    {"relevance: parts, products and shares", test_relevance},
    {"channels last and first, joined channels", test_layouts},
    {"upsampling", test_upsample},
    {"pooling: overlapping, cut off, outside", test_pools},
    {"pooling: side by side", test_pools_side_by_side},
    {"functions, also in place and not finite", test_unary},
    {"softmax", test_softmax},
    {"dropout: the same masks, also in place", test_dropout},
    {"bernoulli: the same draws, also in place", test_bernoulli},
    {"polynomials", test_polynomial},
    {"local response normalisation", test_lrn},
    {"group normalisation", test_group_norm},
    {"unit ball", test_ball},
    {"min-max", test_min_max},
    {"memory", test_memory},
    {"two threads side by side", test_threads},
    {0},
};
