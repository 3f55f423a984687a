/* Speed of the learning engine: a training step of a network as examples a second: plain,
 * with clipped gradients, or clipped and with the noise of DP-SGD on their sum. One line
 * of JSON a measurement.
 *
 *   engine NETWORK LOT THREADS MICROBATCH plain|clip|dp SECONDS [RECORDS]
 *
 * NETWORK: a named architecture, or one that fits its records, as unet:8=1x48x64x48:3.
 * Further: `engine gemm THREADS` and `engine bits N` measure the machine's rate of
 * products, and packed bits against the same product of floats. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "nn/engine.h"
#include "nn/fitted.h"
#include "nn/ops/op.h"
#include "random/seeded.h"

#include "base/banned.h"

struct bench {
    struct dpf_model model;
    struct dpf_engine engine;
    struct dpf_optimiser optimiser;
    struct dpf_dataset data;
    uint32_t *rows;
};

static void fill_data(struct bench *b, int64_t records)
{
    struct dpf_seeded r;
    const struct dpf_model *m = &b->model;
    const struct dpf_shape *out = &m->nodes[m->output].shape;
    struct dpf_dataset *d = &b->data;
    dpf_seeded_init(&r, "bench", 1, 0);
    d->record = dpf_shape_elements(&m->nodes[0].shape);
    d->dtype = m->nodes[0].bits ? DPF_BITS : DPF_F32;
    d->record_bytes = m->nodes[0].bits ? (d->record + 7) / 8 : d->record * sizeof(float);
    d->rows = (uint64_t)records;
    d->classes = out->dim[0];
    d->positions = dpf_shape_elements(out) / out->dim[0];
    if (out->rank == 1)
        d->positions = 1;
    d->x = dpf_alloc_aligned(d->rows * d->record_bytes);
    d->labels = dpf_calloc(d->rows * d->positions, sizeof *d->labels);
    b->rows = dpf_calloc(d->rows, sizeof *b->rows);
    for (size_t i = 0; i < d->rows * d->record_bytes; i++)
        d->x[i] = (unsigned char)dpf_seeded_u64(&r);
    for (size_t i = 0; !m->nodes[0].bits && i < d->rows * d->record; i++)
        ((float *)(void *)d->x)[i] = (float)dpf_seeded_unit(&r);
    for (size_t i = 0; i < d->rows * d->positions; i++)
        d->labels[i] = (int32_t)dpf_seeded_below(&r, d->classes);
    for (uint32_t i = 0; i < d->rows; i++)
        b->rows[i] = i;
}

/* Multiplications and additions of one example's step: forward, weights' gradients, and
 * values' gradients wherever something before the layer trains. */
static double step_flops(const struct dpf_model *m)
{
    double sum = 0;
    bool trains[DPF_MODEL_MAX_NODES] = {false};
    for (size_t i = 0; i < m->count; i++) {
        const struct dpf_node *n = &m->nodes[i];
        bool before = false;
        for (int d = 0; d < n->input_count; d++)
            before = before || trains[n->inputs[d]];
        trains[i] = before || n->parameter_count > 0;
        if (!n->parameter_count || n->op == &dpf_op_group_norm)
            continue;
        double weights = (double)dpf_shape_elements(&n->parameters[0]);
        const struct dpf_shape *s =
            n->op == &dpf_op_conv_transpose ? &m->nodes[n->inputs[0]].shape : &n->shape;
        double positions = (double)dpf_shape_elements(s) / (double)s->dim[0];
        sum += 2 * weights * positions * (before ? 3 : 2);
    }
    return sum;
}

/* --------------------------------------------------------------------------- products */

struct product {
    int64_t m, n, k;
    float *a, *b, *c;
};

static void *multiply(void *argument)
{
    struct product *p = argument;
    dpf_kernels_cpu()->gemm(NULL, false, false, p->m, p->n, p->k, 1, p->a, p->b, 0, p->c);
    return NULL;
}

/* Each thread its own square product: what the machine gives, in GFLOP/s. */
static int bench_gemm(int64_t threads)
{
    enum { SIDE = 1024, MOST = 64 };
    struct product p[MOST];
    double best = INFINITY;
    if (threads < 1 || threads > MOST)
        return 2;
    for (int t = 0; t < threads; t++) {
        size_t bytes = (size_t)SIDE * SIDE * sizeof(float);
        p[t] = (struct product){SIDE,
                                SIDE,
                                SIDE,
                                dpf_alloc_aligned(bytes),
                                dpf_alloc_aligned(bytes),
                                dpf_alloc_aligned(bytes)};
        for (size_t i = 0; i < (size_t)SIDE * SIDE; i++)
            p[t].a[i] = p[t].b[i] = (float)(i % 7);
    }
    for (int round = 0; round < 20; round++) {
        pthread_t other[MOST];
        double now = dpf_clock_seconds();
        for (int t = 1; t < threads; t++)
            pthread_create(&other[t], NULL, multiply, &p[t]);
        multiply(&p[0]);
        for (int t = 1; t < threads; t++)
            pthread_join(other[t], NULL);
        now = dpf_clock_seconds() - now;
        best = now < best ? now : best;
    }
    printf("{\"gemm\": %lld, \"gflops\": %.1f}\n", (long long)threads,
           2.0 * SIDE * SIDE * SIDE * (double)threads / best / 1e9);
    return 0;
}

/* Bits to floats, eight at a time from a table: what a float product needs first. */
static void unpack(int64_t bytes, const uint8_t *bits, float *x)
{
    static float eight[256][8];
    for (int b = 0; b < 256; b++)
        for (int i = 0; i < 8; i++)
            eight[b][i] = (float)(b >> i & 1);
    for (int64_t i = 0; i < bytes; i++)
        memcpy(x + 8 * i, eight[bits[i]], sizeof eight[0]);
}

/* LATENT's first layer, 92,160 x 128: packed bits, and the same bits as floats. */
static int bench_bits(int64_t n)
{
    enum { COLUMNS = 92160, UNITS = 128, BYTES = COLUMNS / 8 };
    const struct dpf_kernels *k = dpf_kernels_cpu();
    uint8_t *bits = dpf_alloc_aligned((size_t)n * BYTES);
    float *x = dpf_alloc_aligned((size_t)n * COLUMNS * sizeof *x);
    float *w = dpf_alloc_aligned((size_t)COLUMNS * UNITS * sizeof *w);
    float *dw = dpf_alloc_aligned((size_t)COLUMNS * UNITS * sizeof *dw);
    float *y = dpf_alloc_aligned((size_t)n * UNITS * sizeof *y);
    double best[5] = {INFINITY, INFINITY, INFINITY, INFINITY, INFINITY};
    struct dpf_seeded r;
    struct dpf_context *at;
    if (k->open(0, &at, NULL) != DPF_OK)
        return 1;
    dpf_seeded_init(&r, "bench bits", 1, 0);
    for (int64_t i = 0; i < n * BYTES; i++)
        bits[i] = (uint8_t)dpf_seeded_u64(&r);
    for (int64_t i = 0; i < COLUMNS * UNITS; i++)
        w[i] = dw[i] = (float)(i % 13) * 0.01f;
    for (int round = 0; round < 5; round++)
        for (int way = 4; way >= 0; way--) {
            double now = dpf_clock_seconds();
            if (way == 4)
                unpack(n * BYTES, bits, x);
            else if (way == 0)
                k->dense_bits_forward(at, n, COLUMNS, UNITS, bits, w, NULL, y);
            else if (way == 1)
                k->gemm(at, false, false, n, UNITS, COLUMNS, 1, x, w, 0, y);
            else if (way == 2)
                k->dense_bits_backward_weights(at, n, COLUMNS, UNITS, bits, y, dw, NULL);
            else
                k->gemm(at, true, false, COLUMNS, UNITS, n, 1, x, y, 1, dw);
            now = dpf_clock_seconds() - now;
            best[way] = now < best[way] ? now : best[way];
        }
    printf("{\"bits\": %lld, \"forward_ms\": %.2f, \"float_forward_ms\": %.2f, "
           "\"forward_ratio\": %.2f, \"unpack_ms\": %.2f, \"gradient_ms\": %.2f, "
           "\"float_gradient_ms\": %.2f, "
           "\"gradient_ratio\": %.2f}\n",
           (long long)n, best[0] * 1e3, best[1] * 1e3, best[1] / best[0], best[4] * 1e3,
           best[2] * 1e3, best[3] * 1e3, best[3] / best[2]);
    k->close(at);
    free(bits);
    free(x);
    free(w);
    free(dw);
    free(y);
    return 0;
}

/* A named architecture, or ARCH=SHAPE:CLASSES, one that fits its records. */
static enum dpf_status parse_network(struct dpf_model *m, char *name, struct dpf_error *e)
{
    const char *text = dpf_architecture(name);
    char *shape = strchr(name, '='), *classes = shape ? strchr(shape, ':') : NULL;
    struct dpf_field x = {.name = "x", .dtype = DPF_F32}, y = {.name = "y"};
    int64_t number = 0;
    if (text)
        return dpf_model_parse(m, text, strlen(text), name, e);
    if (!classes || !dpf_parse_int(classes + 1, &number) || number < 2)
        return dpf_fail(e, DPF_USAGE, "there is no network '%s'", name);
    *shape++ = *classes = '\0';
    for (char *rest = NULL, *word = strtok_r(shape, "x", &rest); word;
         word = strtok_r(NULL, "x", &rest)) {
        int64_t size;
        if (x.shape.rank == DPF_MAX_RANK || !dpf_parse_int(word, &size) || size < 1)
            return dpf_fail(e, DPF_USAGE, "'%s' is no size", word);
        x.shape.dim[x.shape.rank++] = (uint64_t)size;
    }
    y.classes = (uint64_t)number;
    return dpf_model_fit(m, name, &x, &y, e);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    int64_t number;
    if (argc == 3 && strcmp(argv[1], "gemm") == 0 && dpf_parse_int(argv[2], &number))
        return bench_gemm(number);
    if (argc == 3 && strcmp(argv[1], "bits") == 0 && dpf_parse_int(argv[2], &number))
        return bench_bits(number);
    struct dpf_error e = {0};
    struct dpf_seeded r;
    struct rusage usage;
    if (argc != 7 && argc != 8)
        return 2;
    char name[128];
    int64_t lot, micro, threads;
    double limit;
    if (!dpf_parse_int(argv[2], &lot) || !dpf_parse_int(argv[3], &threads) ||
        !dpf_parse_int(argv[4], &micro) || !dpf_parse_real(argv[6], &limit) ||
        (argc == 8 && !dpf_parse_int(argv[7], &number)))
        return 2;
    int64_t records = argc == 8 && number > lot ? number : lot;
    bool dp = strcmp(argv[5], "plain") != 0, noise = strcmp(argv[5], "dp") == 0;
    snprintf(name, sizeof name, "%s", argv[1]);
    if (parse_network(&b.model, name, &e) != DPF_OK) {
        fprintf(stderr, "engine: %s\n", e.message);
        return 2;
    }
    struct dpf_engine_setup setup = {.model = &b.model,
                                     .kernels = dpf_kernels_cpu(),
                                     .threads = (int)threads,
                                     .microbatch = micro,
                                     .training = true,
                                     .clipping = dp};
    b.optimiser = dpf_optimiser_defaults(dpf_step_kind_find("momentum"), 1e-6);
    if (dpf_engine_init(&b.engine, &setup, &e) != DPF_OK ||
        dpf_optimiser_init(&b.optimiser, setup.kernels, b.engine.workers[0].context,
                           b.model.span, &e) != DPF_OK)
        return 1;
    struct dpf_gaussian mechanism;
    struct dpf_gaussian_query query = {.sensitivity_l2 = 1,
                                       .values = b.model.span,
                                       .parts = 1,
                                       .least_step = dpf_lot_sum_step(1)};
    struct dpf_lot_noise draw = {.mechanism = &mechanism};
    if (dpf_gaussian_init(&mechanism, &query, 1, &e) != DPF_OK)
        return 1;
    float *start = dpf_calloc(b.model.span, sizeof *start);
    dpf_seeded_init(&r, "bench weights", 1, 0);
    for (size_t i = 0; i < b.model.span; i++)
        start[i] = (float)(0.05 * dpf_seeded_normal(&r));
    dpf_engine_put(&b.engine, start);
    fill_data(&b, records);
    bool voxels = b.data.positions > 1;
    struct dpf_lot work = {.data = &b.data,
                           .rows = b.rows,
                           .count = lot,
                           .loss = dpf_loss_find(voxels ? "voxel" : "cross-entropy"),
                           .rule = dp ? DPF_CLIP_FLAT : DPF_CLIP_NONE,
                           .clip_l2 = 1,
                           .expected = lot};
    double best = INFINITY, began = dpf_clock_seconds();
    for (int i = 0; i < 3 || dpf_clock_seconds() - began < limit; i++) {
        struct dpf_lot_result result;
        work.step = (uint64_t)i;
        double now = dpf_clock_seconds();
        dpf_engine_gradients(&b.engine, &work, &result, &e);
        dpf_engine_update(&b.engine, &b.optimiser, (double)lot, noise ? &draw : NULL, &e);
        double took = dpf_clock_seconds() - now;
        best = took < best ? took : best;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"net\": \"%s\", \"lot\": %lld, \"threads\": %d, \"microbatch\": %lld, "
           "\"mode\": \"%s\", \"step_ms\": %.3f, \"examples_per_s\": %.0f, \"gflops\": "
           "%.1f, \"rss_mb\": %.0f}\n",
           argv[1], (long long)lot, b.engine.threads, (long long)b.engine.microbatch,
           argv[5], best * 1e3, (double)lot / best,
           step_flops(&b.model) * (double)lot / best / 1e9,
           (double)usage.ru_maxrss / 1024);
    dpf_optimiser_release(&b.optimiser);
    dpf_engine_release(&b.engine);
    dpf_dataset_release(&b.data);
    dpf_model_release(&b.model);
    free(b.rows);
    free(start);
    return e.status == DPF_OK ? 0 : 1;
}
