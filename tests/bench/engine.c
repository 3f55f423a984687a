/* Speed of the learning engine: a training step of a network, plain and private, as
 * examples a second. One line of JSON a measurement.
 *
 *   engine NETWORK LOT THREADS MICROBATCH plain|clip|dp SECONDS */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "nn/engine.h"
#include "random/seeded.h"

#include "base/banned.h"

struct bench {
    struct dpf_model model;
    struct dpf_engine engine;
    struct dpf_optimiser optimiser;
    struct dpf_dataset data;
    uint32_t *rows;
    float *noise;
};

static void fill_data(struct bench *b, int64_t lot)
{
    struct dpf_seeded r;
    const struct dpf_model *m = &b->model;
    const struct dpf_shape *out = &m->nodes[m->output].shape;
    struct dpf_dataset *d = &b->data;
    dpf_seeded_init(&r, "bench", 1, 0);
    d->record = dpf_shape_elements(&m->nodes[0].shape);
    d->dtype = m->nodes[0].bits ? DPF_BITS : DPF_F32;
    d->record_bytes = m->nodes[0].bits ? (d->record + 7) / 8 : d->record * sizeof(float);
    d->rows = (uint64_t)lot;
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

int main(int argc, char **argv)
{
    struct bench b = {0};
    struct dpf_error e = {0};
    struct dpf_seeded r;
    struct rusage usage;
    if (argc != 7)
        return 2;
    const char *text = dpf_architecture(argv[1]);
    int64_t lot, micro, threads;
    double limit;
    if (!dpf_parse_int(argv[2], &lot) || !dpf_parse_int(argv[3], &threads) ||
        !dpf_parse_int(argv[4], &micro) || !dpf_parse_real(argv[6], &limit))
        return 2;
    bool dp = strcmp(argv[5], "plain") != 0, noise = strcmp(argv[5], "dp") == 0;
    if (!text || dpf_model_parse(&b.model, text, strlen(text), argv[1], &e) != DPF_OK)
        return 2;
    struct dpf_engine_setup setup = {.model = &b.model,
                                     .kernels = dpf_kernels_cpu(),
                                     .threads = (int)threads,
                                     .microbatch = micro,
                                     .training = true,
                                     .clipping = dp};
    b.optimiser = dpf_optimiser_defaults(DPF_MOMENTUM, 1e-6);
    if (dpf_engine_init(&b.engine, &setup, &e) != DPF_OK ||
        dpf_optimiser_init(&b.optimiser, b.model.span, &e) != DPF_OK)
        return 1;
    b.noise = dpf_calloc(b.model.span, sizeof *b.noise);
    float *start = dpf_calloc(b.model.span, sizeof *start);
    dpf_seeded_init(&r, "bench weights", 1, 0);
    for (size_t i = 0; i < b.model.span; i++)
        start[i] = (float)(0.05 * dpf_seeded_normal(&r));
    dpf_engine_put(&b.engine, start);
    fill_data(&b, lot);
    bool voxels = b.data.positions > 1;
    struct dpf_lot work = {.data = &b.data,
                           .rows = b.rows,
                           .count = lot,
                           .loss = voxels ? DPF_LOSS_VOXEL : DPF_LOSS_CROSS_ENTROPY,
                           .rule = dp ? DPF_CLIP_FLAT : DPF_CLIP_NONE,
                           .clip_l2 = 1};
    double best = INFINITY, began = dpf_clock_seconds();
    for (int i = 0; i < 3 || dpf_clock_seconds() - began < limit; i++) {
        struct dpf_lot_result result;
        double now = dpf_clock_seconds();
        dpf_engine_gradients(&b.engine, &work, &result, &e);
        dpf_engine_update(&b.engine, &b.optimiser, (double)lot, noise ? b.noise : NULL,
                          &e);
        double took = dpf_clock_seconds() - now;
        best = took < best ? took : best;
    }
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"net\": \"%s\", \"lot\": %lld, \"threads\": %d, \"microbatch\": %lld, "
           "\"mode\": \"%s\", \"step_ms\": %.3f, \"examples_per_s\": %.0f, \"rss_mb\": "
           "%.0f}\n",
           argv[1], (long long)lot, b.engine.threads, (long long)b.engine.microbatch,
           argv[5], best * 1e3, (double)lot / best, (double)usage.ru_maxrss / 1024);
    dpf_engine_release(&b.engine);
    dpf_optimiser_release(&b.optimiser);
    dpf_dataset_release(&b.data);
    dpf_model_release(&b.model);
    free(b.rows);
    free(b.noise);
    free(start);
    return e.status == DPF_OK ? 0 : 1;
}
