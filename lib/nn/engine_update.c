/* From the sums of a lot to a step of the optimiser, with noise between them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/engine.h"
#include "privacy/grid.h"

#include "base/banned.h"

enum { BLOCK = 1024 }; /* of parameters: stays in a cache on the way */

struct update {
    const struct dpf_optimiser *optimiser;
    const struct dpf_lot_noise *noise;
    float scale;
};

/* Which stream a block's noise comes from: the worker's own, or one that a seed names and
 * that is the same for any number of workers. */
static struct dpf_random *noise_stream(struct dpf_worker *w,
                                       const struct dpf_lot_noise *n, size_t from,
                                       struct dpf_random *seeded)
{
    size_t blocks = w->engine->model->span / BLOCK + 1;
    if (!n->insecure)
        return &w->random;
    dpf_random_init_insecure(seeded, "noise", n->seed, n->step * blocks + from / BLOCK);
    return seeded;
}

/* The integers into `out`, and cleared; with noise, if there is to be some, on its own
 * grid. */
static void add_integers(struct dpf_worker *w, const struct dpf_lot_noise *n, size_t from,
                         size_t count, float *out)
{
    const struct dpf_engine *g = w->engine;
    double step = g->sum_step;
    int64_t *sums = g->sums + from;
    struct dpf_random seeded;
    if (n) {
        step = n->mechanism->step;
        int shift = ilogb(step) - ilogb(g->sum_step); /* at least 0, see dpf_lot_noise */
        for (size_t j = 0; j < count; j++)
            sums[j] = dpf_grid_coarsen(sums[j], shift);
        dpf_gaussian_add(n->mechanism, noise_stream(w, n, from, &seeded), 1, sums, count);
    }
    for (size_t j = 0; j < count; j++) {
        out[j] = (float)((double)sums[j] * step);
        sums[j] = 0;
    }
}

/* 0 times what is not finite is not 0. A loop that becomes vector code. */
static enum dpf_status check_finite(const float *x, size_t count, struct dpf_error *e)
{
    float spoilt = 0;
    for (size_t i = 0; i < count; i++)
        spoilt += x[i] * 0;
    return spoilt == 0
               ? DPF_OK
               : dpf_fail(e, DPF_SYSTEM,
                          "a parameter is not a finite number: try a lower '--rate'");
}

/* parts[0] becomes the sum of all: of floats, or of clipped gradients. */
static void add_parts(struct dpf_worker *w, const struct update *u, size_t from,
                      size_t count, float *const *parts, int part_count)
{
    if (w->engine->sum_step != 0) {
        add_integers(w, u->noise, from, count, parts[0]);
        return;
    }
    for (int i = 1; i < part_count; i++)
        for (size_t j = 0; j < count; j++)
            parts[0][j] += parts[i][j];
}

/* One worker's share of the vector: add up all workers' sums, step, clear. */
static void update_job(struct dpf_worker *w, void *context)
{
    const struct update *u = context;
    struct dpf_engine *g = w->engine;
    size_t span = g->model->span, threads = (size_t)g->threads;
    size_t share = (span / threads + BLOCK) / BLOCK * BLOCK;
    size_t from = (size_t)w->number * share,
           to = from + share < span ? from + share : span;
    for (; from < to; from += BLOCK) {
        size_t count = to - from < BLOCK ? to - from : BLOCK;
        float *parts[1024]; /* --threads is at most that */
        for (size_t i = 0; i < threads; i++)
            parts[i] = g->workers[i].net.gradients + from;
        add_parts(w, u, from, count, parts, g->threads);
        for (size_t j = 0; j < count; j++)
            parts[0][j] *= u->scale;
        dpf_optimiser_update(u->optimiser, from, count, g->parameters + from, parts[0]);
        for (size_t i = 0; i < (g->sum_step == 0 ? threads : 1); i++)
            memset(parts[i], 0, count * sizeof *parts[i]);
        if (w->error.status == DPF_OK)
            w->error.status = check_finite(g->parameters + from, count, &w->error);
    }
}

/* A device's parameters and sums go through the host. */
static enum dpf_status update_through_host(struct dpf_engine *g, struct update *u,
                                           struct dpf_error *e)
{
    size_t span = g->model->span, threads = (size_t)g->threads;
    float *host = dpf_calloc((threads + 1) * span + 1, sizeof *host);
    float *sums = host ? host + span : NULL;
    if (!host)
        return dpf_fail_memory(e);
    dpf_engine_get(g, host);
    for (size_t i = 0; i < threads; i++) {
        g->kernels->get(sums + i * span, g->workers[i].net.gradients,
                        span * sizeof *sums);
        dpf_network_zero_gradients(&g->workers[i].net);
    }
    for (size_t from = 0; from < span; from += BLOCK) {
        size_t count = span - from < BLOCK ? span - from : BLOCK;
        float *parts[1024];
        for (size_t i = 0; i < threads; i++)
            parts[i] = sums + i * span + from;
        add_parts(&g->workers[0], u, from, count, parts, g->threads);
    }
    for (size_t j = 0; j < span; j++)
        sums[j] *= u->scale;
    dpf_optimiser_update(u->optimiser, 0, span, host, sums);
    dpf_engine_put(g, host);
    enum dpf_status status = check_finite(host, span, e);
    free(host);
    return status == DPF_OK ? g->kernels->finish(e) : status;
}

enum dpf_status dpf_engine_update(struct dpf_engine *g, struct dpf_optimiser *o,
                                  double divisor, const struct dpf_lot_noise *noise,
                                  struct dpf_error *e)
{
    struct update u = {o, noise, (float)(1 / divisor)};
    /* Noise goes on clipped sums: without any, a lot may have been empty. */
    if (noise && g->sum_step == 0)
        g->sum_step = noise->mechanism->step;
    if (noise && (!g->sums || !(noise->mechanism->step >= g->sum_step)))
        return dpf_fail(e, DPF_PRIVACY, "noise needs clipped gradients on a finer grid");
    dpf_optimiser_begin(o);
    enum dpf_status status = g->kernels->host_memory
                                 ? dpf_engine_run(g, update_job, &u, e)
                                 : update_through_host(g, &u, e);
    g->sum_step = 0;
    return status;
}
