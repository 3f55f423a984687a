/* The gradients of a lot: plain ones into each worker's floats, clipped ones, part by
 * part, into the integers of all. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/signals.h"
#include "kernels/mask.h"
#include "nn/engine.h"

#include "base/banned.h"

static bool stopped(struct dpf_worker *w)
{
    return dpf_stop_check(&w->error) != DPF_OK;
}

/* Gradients as they are: one after the other, by position. */
static void plain_job(struct dpf_worker *w, void *context)
{
    const struct dpf_lot *lot = context;
    struct dpf_part part = dpf_worker_part(w, lot->count);
    dpf_worker_begin(w);
    for (int64_t first = part.from; first < part.to; first += part.piece) {
        int64_t n = part.to - first < part.piece ? part.to - first : part.piece;
        if (stopped(w))
            return;
        dpf_worker_forward(w, lot, first, n, true);
        if (lot->energy) {
            dpf_energy_gradients(w, lot, first, n);
            continue;
        }
        dpf_worker_losses(w, lot, lot->rows + first, n, NULL);
        dpf_network_backward(&w->net, n, NULL, DPF_CLIP_NONE, 0);
    }
    dpf_worker_finish(w);
}

/* The terms of n examples of a part into the float sums. */
static void add_terms(struct dpf_worker *w, const struct dpf_lot *lot,
                      const struct dpf_lot_place *places, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        w->rows[i] = lot->rows[places[i].place];
        w->keys[i] = places[i].key;
    }
    dpf_worker_forward_chosen(w, lot, n);
    dpf_worker_losses(w, lot, w->rows, n, NULL);
    w->clipped += dpf_network_backward(&w->net, n, NULL, lot->rule, lot->clip_l2);
}

/* The float sums of a part, on the grid, to the integers of all. Workers start with
 * different shares, so that they seldom wait for each other; integers do not mind. */
static void add_to_integers(struct dpf_worker *w)
{
    struct dpf_engine *g = w->engine;
    const struct dpf_kernels *k = g->kernels;
    size_t span = g->model->span, share = span / DPF_ENGINE_LOCKS + 1;
    for (size_t i = 0; i < DPF_ENGINE_LOCKS; i++) {
        size_t own = (i + (size_t)w->number) % DPF_ENGINE_LOCKS, from = own * share;
        size_t to = from + share < span ? from + share : span;
        if (from >= to)
            continue;
        pthread_mutex_lock(&g->sum_locks[own]);
        k->grid_add(w->context, g->sum_step, to - from, w->net.gradients + from,
                    g->sums + from);
        if (!k->host_memory) /* before another context adds to the same ones */
            dpf_worker_finish(w);
        pthread_mutex_unlock(&g->sum_locks[own]);
    }
}

/* One part of a lot, in equal pieces as far as it goes. */
static void add_part(struct dpf_worker *w, const struct dpf_lot *lot,
                     const struct dpf_lot_part *part)
{
    const struct dpf_engine *g = w->engine;
    int64_t pieces = (part->count + g->microbatch - 1) / g->microbatch;
    int64_t piece = part->single || !g->apart ? 1 : (part->count + pieces - 1) / pieces;
    for (int64_t done = 0; done < part->count && !stopped(w); done += piece) {
        int64_t n = part->count - done < piece ? part->count - done : piece;
        add_terms(w, lot, g->parts.sorted + part->from + done, n);
        if (part->single)
            add_to_integers(w);
    }
    if (!part->single)
        add_to_integers(w);
}

/* Clipped gradients: parts of the lot, to whoever is free. */
static void clipped_job(struct dpf_worker *w, void *context)
{
    struct dpf_engine *g = w->engine;
    size_t i;
    while ((i = atomic_fetch_add(&g->next_part, 1)) < g->parts.count && !stopped(w)) {
        dpf_worker_begin(w);
        add_part(w, context, &g->parts.list[i]);
        g->part_results[i] =
            (struct dpf_lot_result){w->loss_sum, w->correct_sum, w->clipped};
    }
    dpf_worker_finish(w);
}

/* The order of parts is that of the lot's keys, so these sums are the same for any number
 * of threads, too. */
static void add_up_parts(const struct dpf_engine *g, struct dpf_lot_result *result)
{
    *result = (struct dpf_lot_result){0};
    for (size_t i = 0; i < g->parts.count; i++) {
        result->loss += g->part_results[i].loss;
        result->correct += g->part_results[i].correct;
        result->clipped += g->part_results[i].clipped;
    }
}

static enum dpf_status clipped_gradients(struct dpf_engine *g, const struct dpf_lot *lot,
                                         struct dpf_lot_result *result,
                                         struct dpf_error *e)
{
    double step = dpf_lot_sum_step(lot->clip_l2);
    if (!(lot->clip_l2 >= DPF_LOT_LEAST_CLIP && lot->clip_l2 <= DPF_LOT_MOST_CLIP))
        return dpf_fail(e, DPF_USAGE, "a clip norm lies between %g and %g, not '%g'",
                        DPF_LOT_LEAST_CLIP, DPF_LOT_MOST_CLIP, lot->clip_l2);
    if (g->plain)
        return dpf_fail(e, DPF_PRIVACY,
                        "clipped gradients cannot be added to plain ones: update first");
    if (g->summed + lot->count > DPF_LOT_MOST || lot->expected < 1 ||
        lot->expected > UINT32_MAX || (g->sum_step != 0 && g->sum_step != step) ||
        !g->sums)
        return dpf_fail(e, DPF_USAGE, "gradients of this lot cannot be clipped");
    g->sum_step = step;
    g->summed += lot->count;
    enum dpf_status status = dpf_lot_parts_cut(&g->parts, lot->keys, lot->count,
                                               dpf_lot_parts_planned(lot->expected), e);
    if (status != DPF_OK)
        return status;
    if (!dpf_grow(&g->part_results, &g->part_results_capacity, g->parts.count + 1,
                  sizeof *g->part_results))
        return dpf_fail_memory(e);
    memset(g->part_results, 0, (g->parts.count + 1) * sizeof *g->part_results);
    atomic_store(&g->next_part, 0);
    struct dpf_lot copy = *lot;
    status = dpf_engine_run(g, clipped_job, &copy, e);
    add_up_parts(g, result);
    return status;
}

/* Keys for whoever brought none: of seed, step and place. */
static bool make_keys(struct dpf_engine *g, struct dpf_lot *lot)
{
    if (!dpf_grow(&g->keys, &g->keys_capacity, (size_t)lot->count + 1, sizeof *g->keys))
        return false;
    uint64_t stream = dpf_mask_key(lot->seed, lot->step);
    for (int64_t i = 0; i < lot->count; i++)
        g->keys[i] = dpf_mask_key(stream, (uint64_t)i);
    lot->keys = g->keys;
    return true;
}

enum dpf_status dpf_engine_gradients(struct dpf_engine *g, const struct dpf_lot *lot,
                                     struct dpf_lot_result *result, struct dpf_error *e)
{
    struct dpf_lot copy = *lot;
    *result = (struct dpf_lot_result){0};
    if (!lot->loss && !lot->energy)
        return dpf_fail(e, DPF_USAGE, "gradients need a loss");
    if (lot->energy && (lot->rule != DPF_CLIP_NONE ||
                        (lot->energy->chains && lot->count > lot->energy->chain_count)))
        return dpf_fail(e, DPF_USAGE,
                        "gradients of an energy are not clipped, and a lot "
                        "has a chain for each example");
    if (g->failed)
        return dpf_fail(e, DPF_SYSTEM, "an update of this engine has failed before");
    if (!copy.keys && !make_keys(g, &copy))
        return dpf_fail_memory(e);
    if (lot->rule != DPF_CLIP_NONE)
        return clipped_gradients(g, &copy, result, e);
    if (g->sum_step != 0)
        return dpf_fail(e, DPF_PRIVACY,
                        "plain gradients cannot be added to clipped ones: update first");
    g->plain = true;
    enum dpf_status status = dpf_engine_run(g, plain_job, &copy, e);
    dpf_engine_add_up(g, result);
    return status;
}

double dpf_engine_sums(struct dpf_engine *g, int64_t *sums)
{
    g->kernels->get(g->workers[0].context, sums, g->sums, g->model->span * sizeof *sums);
    return g->sum_step;
}
