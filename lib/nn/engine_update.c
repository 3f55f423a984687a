/* From the sums of a lot to the next parameters: reduce over ranks, noise, one step of
 * the optimiser, share (nn/reduction.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/engine.h"
#include "privacy/grid.h"

#include "base/banned.h"

enum { BLOCK = DPF_REDUCTION_BLOCK }; /* of parameters: stays in a cache on the way */

struct update {
    const struct dpf_optimiser *optimiser;
    const struct dpf_lot_noise *noise;
    struct dpf_slice slice;
    bool reduced; /* plain sums of all workers are in the first one's already */
};

/* Which stream a block's noise comes from: the worker's own, or one that a seed names and
 * that is the same for any number of workers and ranks. */
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

/* A block of integers into `out`, and cleared; with noise, if there is to be some, on its
 * own grid. Host memory. */
static void release_integers(struct dpf_worker *w, const struct dpf_lot_noise *n,
                             size_t from, size_t count, int64_t *sums, float *out)
{
    const struct dpf_engine *g = w->engine;
    double step = g->sum_step;
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

/* The gradient of a block into the first worker's floats: from the integers, by way of
 * the host where noise is drawn. */
static void gradient_from_integers(struct dpf_worker *w, const struct update *u,
                                   size_t from, size_t count)
{
    struct dpf_engine *g = w->engine;
    const struct dpf_kernels *k = g->kernels;
    float *gradient = g->workers[0].net.gradients + from, host[BLOCK];
    int64_t sums[BLOCK];
    if (k->host_memory) {
        release_integers(w, u->noise, from, count, g->sums + from, gradient);
        return;
    }
    k->get(w->context, sums, g->sums + from, count * sizeof *sums);
    release_integers(w, u->noise, from, count, sums, host);
    k->put(w->context, g->sums + from, sums, count * sizeof *sums);
    k->put(w->context, gradient, host, count * sizeof *host);
}

/* All workers' plain sums of a block into the first one's. */
static void add_workers(struct dpf_worker *w, size_t from, size_t count)
{
    struct dpf_engine *g = w->engine;
    for (int i = 1; i < g->threads; i++) {
        float *own = g->workers[i].net.gradients + from;
        g->kernels->add(w->context, (int64_t)count, own,
                        g->workers[0].net.gradients + from);
        g->kernels->clear(w->context, own, (int64_t)count);
    }
}

/* A worker's share of a slice, in whole blocks. */
static struct dpf_slice share_of(const struct dpf_worker *w, struct dpf_slice s)
{
    size_t threads = (size_t)w->engine->threads, count = s.to - s.from;
    size_t share = (count / threads + BLOCK) / BLOCK * BLOCK;
    size_t from = s.from + (size_t)w->number * share;
    from = from < s.to ? from : s.to;
    return (struct dpf_slice){from, from + share < s.to ? from + share : s.to};
}

static size_t block_of(struct dpf_slice s, size_t from)
{
    return s.to - from < BLOCK ? s.to - from : BLOCK;
}

static void add_workers_job(struct dpf_worker *w, void *context)
{
    const struct update *u = context;
    struct dpf_slice own = share_of(w, u->slice);
    for (size_t from = own.from; from < own.to; from += BLOCK)
        add_workers(w, from, block_of(own, from));
    dpf_worker_finish(w);
}

/* One worker's share: the gradient, a step, and the sums cleared. */
static void update_job(struct dpf_worker *w, void *context)
{
    const struct update *u = context;
    struct dpf_engine *g = w->engine;
    const struct dpf_kernels *k = g->kernels;
    struct dpf_slice own = share_of(w, u->slice);
    bool finite = true;
    for (size_t from = own.from; from < own.to; from += BLOCK) {
        size_t count = block_of(own, from);
        float *gradient = g->workers[0].net.gradients + from;
        if (g->sum_step != 0)
            gradient_from_integers(w, u, from, count);
        else if (!u->reduced)
            add_workers(w, from, count);
        dpf_optimiser_update(u->optimiser, w->context, from, count, g->parameters + from,
                             gradient);
        k->clear(w->context, gradient, (int64_t)count);
        finite = k->all_finite(w->context, count, g->parameters + from) && finite;
    }
    if (!finite)
        dpf_fail(&w->error, DPF_SYSTEM,
                 "a parameter is not a finite number: try a lower '--rate'");
    dpf_worker_finish(w);
}

/* The sums of all ranks; u->slice becomes this one's. */
static enum dpf_status reduce(struct dpf_engine *g, struct update *u, struct dpf_error *e)
{
    const struct dpf_reduction *r = g->reduction;
    struct dpf_context *c = g->workers[0].context;
    size_t span = g->model->span;
    if (!r)
        return DPF_OK;
    if (g->sum_step != 0)
        return r->reduce_integers(r->state, g->kernels, c, g->sums, span, &u->slice, e);
    enum dpf_status status = dpf_engine_run(g, add_workers_job, u, e);
    u->reduced = true;
    return status == DPF_OK
               ? r->reduce_floats(r->state, g->kernels, c, g->workers[0].net.gradients,
                                  span, &u->slice, e)
               : status;
}

enum dpf_status dpf_engine_update(struct dpf_engine *g, struct dpf_optimiser *o,
                                  double divisor, const struct dpf_lot_noise *noise,
                                  struct dpf_error *e)
{
    struct update u = {o, noise, {0, g->model->span}, false};
    if (g->failed)
        return dpf_fail(e, DPF_SYSTEM, "an update of this engine has failed before");
    /* Noise goes on clipped sums: without any, a lot may have been empty. Other ranks
     * would not know of which step it then is. */
    if (noise && g->sum_step == 0 && !g->reduction)
        g->sum_step = noise->mechanism->step;
    if (noise && (!g->sums || g->plain || g->sum_step == 0 ||
                  !(noise->mechanism->step >= g->sum_step)))
        return dpf_fail(e, DPF_PRIVACY, "noise needs clipped gradients on a finer grid");
    dpf_optimiser_begin(o, divisor);
    enum dpf_status status = reduce(g, &u, e);
    if (status == DPF_OK)
        status = dpf_engine_run(g, update_job, &u, e);
    if (status == DPF_OK && g->reduction)
        status =
            g->reduction->share(g->reduction->state, g->kernels, g->workers[0].context,
                                g->parameters, g->model->span, u.slice, e);
    if (status == DPF_OK) /* other contexts read what was shared */
        status = g->kernels->finish(g->workers[0].context, e);
    g->sum_step = 0;
    g->summed = 0;
    g->plain = false;
    g->failed = status != DPF_OK;
    return status;
}
