#include "nn/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "base/signals.h"
#include "kernels/mask.h"
#include "nn/geometry.h"

#include "base/banned.h"

/* --------------------------------------------------------------------------- threads */

static void *serve(void *argument)
{
    struct dpf_worker *w = argument;
    struct dpf_engine *g = w->engine;
    uint64_t seen = 0;
    pthread_mutex_lock(&g->lock);
    while (true) {
        while (!g->stop && g->round == seen)
            pthread_cond_wait(&g->work, &g->lock);
        if (g->stop)
            break;
        seen = g->round;
        pthread_mutex_unlock(&g->lock);
        g->job(w, g->context);
        pthread_mutex_lock(&g->lock);
        if (--g->busy == 0)
            pthread_cond_signal(&g->done);
    }
    pthread_mutex_unlock(&g->lock);
    g->kernels->end_thread();
    return NULL;
}

/* Let every worker do the job; the first is the caller's own thread. */
enum dpf_status dpf_engine_run(struct dpf_engine *g, dpf_worker_job *job, void *context,
                               struct dpf_error *e)
{
    for (int i = 0; i < g->threads; i++)
        g->workers[i].error = (struct dpf_error){.status = DPF_OK};
    pthread_mutex_lock(&g->lock);
    g->job = job;
    g->context = context;
    g->busy = g->threads - 1;
    g->round++;
    pthread_cond_broadcast(&g->work);
    pthread_mutex_unlock(&g->lock);
    job(&g->workers[0], context);
    pthread_mutex_lock(&g->lock);
    while (g->busy > 0)
        pthread_cond_wait(&g->done, &g->lock);
    pthread_mutex_unlock(&g->lock);
    for (int i = 0; i < g->threads; i++)
        if (g->workers[i].error.status != DPF_OK)
            return dpf_fail(e, g->workers[i].error.status, "%s",
                            g->workers[i].error.message);
    return DPF_OK;
}

/* ----------------------------------------------------------------------------- setup */

/* A microbatch's values should stay in a core's cache, but its weights have to be read
 * for each one: large dense layers want more examples at a time. */
static int64_t good_microbatch(const struct dpf_model *m)
{
    size_t example = dpf_network_example_bytes(m), values = 8 << 20;
    size_t by_values = values / (example ? example : 1);
    size_t by_weights = m->span * sizeof(float) / (example ? example : 1);
    size_t n = by_values > by_weights ? by_values : by_weights;
    return n < 1 ? 1 : n > 256 ? 256 : (int64_t)n;
}

/* Before anything is allocated: the system would promise more than it has. */
static bool fits_memory(const struct dpf_engine *g, const struct dpf_engine_setup *setup)
{
    double threads = g->threads, span = (double)g->model->span * sizeof(float);
    double values = (double)dpf_network_example_bytes(g->model) * (double)g->microbatch;
    double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    /* relevance: gradients of all nodes, and buffers as large as the largest of them */
    values *= setup->relevance ? 3 : 1;
    /* clipping: sums as integers, and the weights of a probe */
    double copies = !setup->training ? 1 : threads + (setup->clipping ? 6 : 3);
    return copies * span + threads * values < 0.9 * have;
}

static enum dpf_status init_worker(struct dpf_engine *g, int i,
                                   const struct dpf_engine_setup *setup,
                                   struct dpf_error *e)
{
    struct dpf_worker *w = &g->workers[i];
    const struct dpf_model *m = g->model;
    size_t in = (size_t)dpf_nn_elements(&m->nodes[0].shape);
    size_t out = (size_t)dpf_nn_elements(&m->nodes[m->output].shape);
    size_t row = m->nodes[0].bits ? (in + 7) / 8 : in * sizeof(float);
    w->engine = g;
    w->number = i;
    enum dpf_status status =
        dpf_network_init(&w->net,
                         &(struct dpf_network_setup){.model = m,
                                                     .kernels = g->kernels,
                                                     .parameters = g->parameters,
                                                     .capacity = g->microbatch,
                                                     .training = setup->training,
                                                     .clipping = setup->clipping,
                                                     .every_value = setup->every_value,
                                                     .relevance = setup->relevance},
                         e);
    if (status != DPF_OK)
        return status;
    status = dpf_random_init(&w->random, e);
    if (status != DPF_OK)
        return status;
    w->x = dpf_alloc_aligned((size_t)g->microbatch * row);
    w->rows = dpf_calloc((size_t)g->microbatch, sizeof *w->rows);
    w->keys = dpf_calloc((size_t)g->microbatch, sizeof *w->keys);
    w->output = dpf_calloc((size_t)g->microbatch * out, sizeof *w->output);
    w->d = dpf_calloc((size_t)g->microbatch * out, sizeof *w->d);
    if (!w->x || !w->rows || !w->keys || !w->output || !w->d)
        return dpf_fail_memory(e);
    if (i > 0 && dpf_thread_start(&w->thread, serve, w) != 0)
        return dpf_fail(e, DPF_SYSTEM, "cannot start thread %d of %d", i + 1, g->threads);
    w->started = i > 0;
    return DPF_OK;
}

static void probe_job(struct dpf_worker *w, void *context)
{
    (void)context;
    dpf_row_probe(&w->net, &w->apart, &w->error);
}

enum dpf_status dpf_engine_init(struct dpf_engine *g,
                                const struct dpf_engine_setup *setup, struct dpf_error *e)
{
    *g = (struct dpf_engine){
        .model = setup->model,
        .kernels = setup->kernels,
        .threads = setup->threads ? setup->threads : dpf_processors(),
        .microbatch =
            setup->microbatch ? setup->microbatch : good_microbatch(setup->model)};
    if (setup->clipping && g->microbatch > DPF_LOT_PART_MOST) /* no part is larger */
        g->microbatch = DPF_LOT_PART_MOST;
    if (!fits_memory(g, setup)) {
        enum dpf_status status =
            dpf_fail(e, DPF_USAGE,
                     "the network is too large for this machine's memory with "
                     "microbatches of %lld on %d threads",
                     (long long)g->microbatch, g->threads);
        *g = (struct dpf_engine){0};
        return status;
    }
    pthread_mutex_init(&g->lock, NULL);
    for (int i = 0; i < DPF_ENGINE_LOCKS; i++)
        pthread_mutex_init(&g->sum_locks[i], NULL);
    pthread_cond_init(&g->work, NULL);
    pthread_cond_init(&g->done, NULL);
    g->workers = dpf_calloc((size_t)g->threads, sizeof *g->workers);
    g->parameters = g->kernels->alloc((g->model->span + 1) * sizeof *g->parameters);
    bool sums = setup->training && setup->clipping;
    g->sums = sums ? dpf_calloc(g->model->span + 1, sizeof *g->sums) : NULL;
    enum dpf_status status =
        g->workers && g->parameters && (g->sums || !sums) ? DPF_OK : dpf_fail_memory(e);
    if (status == DPF_OK) /* for this thread, which is the first worker */
        status = dpf_signals_leave_stack(e);
    if (status == DPF_OK)
        g->kernels->clear(g->parameters, (int64_t)g->model->span);
    for (int i = 0; status == DPF_OK && i < g->threads; i++)
        status = init_worker(g, i, setup, e);
    if (status == DPF_OK && sums)
        status = dpf_engine_run(g, probe_job, NULL, e);
    /* for all workers the same: pieces of a part must not depend on who takes it */
    g->apart = true;
    for (int i = 0; status == DPF_OK && i < g->threads; i++)
        g->apart = g->apart && (!sums || g->workers[i].apart);
    if (status != DPF_OK)
        dpf_engine_release(g);
    return status;
}

void dpf_engine_release(struct dpf_engine *g)
{
    if (!g->kernels)
        return;
    pthread_mutex_lock(&g->lock);
    g->stop = true;
    pthread_cond_broadcast(&g->work);
    pthread_mutex_unlock(&g->lock);
    for (int i = 0; g->workers && i < g->threads; i++) {
        struct dpf_worker *w = &g->workers[i];
        dpf_random_release(&w->random);
        if (w->started)
            pthread_join(w->thread, NULL);
        if (w->net.kernels)
            dpf_network_release(&w->net);
        free(w->x);
        free(w->rows);
        free(w->keys);
        free(w->output);
        free(w->d);
    }
    g->kernels->release(g->parameters);
    g->kernels->end_thread();
    free(g->workers);
    free(g->keys);
    free(g->sums);
    free(g->part_results);
    dpf_lot_parts_release(&g->parts);
    pthread_cond_destroy(&g->work);
    pthread_cond_destroy(&g->done);
    pthread_mutex_destroy(&g->lock);
    for (int i = 0; i < DPF_ENGINE_LOCKS; i++)
        pthread_mutex_destroy(&g->sum_locks[i]);
    *g = (struct dpf_engine){0};
}

void dpf_engine_put(struct dpf_engine *g, const float *parameters)
{
    g->kernels->put(g->parameters, parameters, g->model->span * sizeof *parameters);
}

void dpf_engine_get(struct dpf_engine *g, float *parameters)
{
    g->kernels->get(parameters, g->parameters, g->model->span * sizeof *parameters);
}

/* ------------------------------------------------------------------------------ lots */

struct output_shape {
    int64_t classes, voxels, count;
};

static struct output_shape output_of(const struct dpf_model *m, enum dpf_loss loss)
{
    const struct dpf_shape *s = &m->nodes[m->output].shape;
    int64_t all = dpf_nn_elements(s), channels = (int64_t)s->dim[0];
    bool voxels = loss == DPF_LOSS_VOXEL || loss == DPF_LOSS_DICE;
    return (struct output_shape){voxels ? channels : all, voxels ? all / channels : 1,
                                 all};
}

static int64_t count_correct(const struct output_shape *s, const float *scores,
                             const int32_t *labels)
{
    int64_t correct = 0;
    for (int64_t v = 0; v < s->voxels; v++, scores += s->classes) {
        int64_t best = 0;
        for (int64_t l = 1; l < s->classes; l++)
            best = scores[l] > scores[best] ? l : best;
        correct += best == labels[v];
    }
    return correct;
}

/* Losses of n examples whose outputs stand in w->output; gradients into w->d. */
static void take_losses(struct dpf_worker *w, const struct dpf_lot *lot,
                        const uint32_t *rows, int64_t n, double *losses)
{
    struct output_shape s = output_of(w->net.model, lot->loss);
    for (int64_t e = 0; e < n; e++) {
        struct dpf_loss_target t = dpf_dataset_target(lot->data, rows[e]);
        const float *z = w->output + e * s.count;
        double loss =
            dpf_loss_example(lot->loss, s.classes, s.voxels, z, &t, w->d + e * s.count);
        /* With clipping, an example without a finite gradient is left out of the sum;
         * that it is there must not stop the others either. */
        if (lot->rule == DPF_CLIP_NONE || isfinite(loss))
            w->loss += loss;
        if (losses)
            losses[e] = loss;
        if (t.labels)
            w->correct += count_correct(&s, z, t.labels);
    }
}

/* Outputs of what stands in w->x into w->output. */
static void forward(struct dpf_worker *w, int64_t n, bool training, const uint64_t *keys)
{
    const struct dpf_model *m = w->net.model;
    int64_t out = dpf_nn_elements(&m->nodes[m->output].shape);
    dpf_network_forward(&w->net, n, w->x, training, keys);
    w->net.kernels->get(w->output, dpf_network_output(&w->net),
                        (size_t)(n * out) * sizeof *w->output);
}

/* Forward of one microbatch. */
void dpf_worker_forward(struct dpf_worker *w, const struct dpf_lot *lot, int64_t first,
                        int64_t n, bool training)
{
    dpf_dataset_gather(lot->data, lot->rows + first, n, w->x);
    forward(w, n, training, lot->keys ? lot->keys + first : NULL);
}

/* A worker's part of a lot, and how many of its examples are taken at a time: equal
 * parts, in equal pieces as far as it goes. */
struct dpf_part dpf_worker_part(const struct dpf_worker *w, int64_t count)
{
    const struct dpf_engine *g = w->engine;
    int64_t share = (count + g->threads - 1) / g->threads;
    int64_t pieces = (share + g->microbatch - 1) / g->microbatch;
    struct dpf_part p = {.from = w->number * share,
                         .piece = pieces ? (share + pieces - 1) / pieces : 1};
    p.from = p.from < count ? p.from : count;
    p.to = p.from + share < count ? p.from + share : count;
    return p;
}

static bool stopped(struct dpf_worker *w)
{
    if (dpf_stop_requested())
        dpf_fail_after_peer(&w->error, DPF_SYSTEM, "interrupted by signal %d",
                            dpf_stop_signal());
    return dpf_stop_requested();
}

/* Gradients as they are: one after the other, by position. */
static void plain_job(struct dpf_worker *w, void *context)
{
    const struct dpf_lot *lot = context;
    struct dpf_part part = dpf_worker_part(w, lot->count);
    w->loss = 0;
    w->correct = w->clipped = 0;
    for (int64_t first = part.from; first < part.to; first += part.piece) {
        int64_t n = part.to - first < part.piece ? part.to - first : part.piece;
        if (stopped(w))
            return;
        dpf_worker_forward(w, lot, first, n, true);
        take_losses(w, lot, lot->rows + first, n, NULL);
        dpf_network_backward(&w->net, n, w->d, DPF_CLIP_NONE, 0);
    }
    w->net.kernels->finish(&w->error);
}

/* The terms of n examples of a part into the float sums. */
static void add_terms(struct dpf_worker *w, const struct dpf_lot *lot,
                      const struct dpf_lot_place *places, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        w->rows[i] = lot->rows[places[i].place];
        w->keys[i] = places[i].key;
    }
    dpf_dataset_gather(lot->data, w->rows, n, w->x);
    forward(w, n, true, w->keys);
    take_losses(w, lot, w->rows, n, NULL);
    w->clipped += dpf_network_backward(&w->net, n, w->d, lot->rule, lot->clip_l2);
}

/* One share of the float sums of a part, by way of the host if need be. */
static void add_share(struct dpf_worker *w, size_t from, size_t to)
{
    struct dpf_engine *g = w->engine;
    enum { CHUNK = 4096 };
    float host[CHUNK];
    if (g->kernels->host_memory) {
        dpf_lot_sum_add(g->sum_step, w->net.gradients + from, g->sums + from, to - from);
        return;
    }
    for (; from < to; from += CHUNK) {
        size_t count = to - from < CHUNK ? to - from : CHUNK;
        g->kernels->get(host, w->net.gradients + from, count * sizeof *host);
        dpf_lot_sum_add(g->sum_step, host, g->sums + from, count);
    }
}

/* The float sums of a part, on the grid, to the integers of all. Workers start with
 * different shares, so that they seldom wait for each other; integers do not mind. */
static void add_to_integers(struct dpf_worker *w)
{
    struct dpf_engine *g = w->engine;
    size_t span = g->model->span, share = span / DPF_ENGINE_LOCKS + 1;
    for (size_t i = 0; i < DPF_ENGINE_LOCKS; i++) {
        size_t own = (i + (size_t)w->number) % DPF_ENGINE_LOCKS, from = own * share;
        size_t to = from + share < span ? from + share : span;
        if (from >= to)
            continue;
        pthread_mutex_lock(&g->sum_locks[own]);
        add_share(w, from, to);
        pthread_mutex_unlock(&g->sum_locks[own]);
    }
    if (!g->kernels->host_memory)
        dpf_network_zero_gradients(&w->net);
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
        w->loss = 0;
        w->correct = w->clipped = 0;
        add_part(w, context, &g->parts.list[i]);
        g->part_results[i] = (struct dpf_lot_result){w->loss, w->correct, w->clipped};
    }
    w->net.kernels->finish(&w->error);
}

static void add_up(const struct dpf_engine *g, struct dpf_lot_result *result)
{
    *result = (struct dpf_lot_result){0};
    for (int i = 0; i < g->threads; i++) {
        result->loss += g->workers[i].loss;
        result->correct += g->workers[i].correct;
        result->clipped += g->workers[i].clipped;
    }
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
    if (lot->count > DPF_LOT_MOST || lot->expected < 1 || lot->expected > UINT32_MAX ||
        (g->sum_step != 0 && g->sum_step != step) || !g->sums)
        return dpf_fail(e, DPF_USAGE, "gradients of this lot cannot be clipped");
    g->sum_step = step;
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
    if (!copy.keys && !make_keys(g, &copy))
        return dpf_fail_memory(e);
    if (lot->rule != DPF_CLIP_NONE)
        return clipped_gradients(g, &copy, result, e);
    enum dpf_status status = dpf_engine_run(g, plain_job, &copy, e);
    add_up(g, result);
    return status;
}

double dpf_engine_sums(const struct dpf_engine *g, int64_t *sums)
{
    memcpy(sums, g->sums, g->model->span * sizeof *sums);
    return g->sum_step;
}

/* ---------------------------------------------------------------------------- values */

struct values {
    const struct dpf_lot *lot;
    const struct dpf_lot_values *want;
};

static void values_job(struct dpf_worker *w, void *context)
{
    const struct values *v = context;
    const struct dpf_lot_values *want = v->want;
    struct dpf_part part = dpf_worker_part(w, v->lot->count);
    int64_t record = dpf_nn_elements(&w->net.model->nodes[want->node].shape);
    w->loss = 0;
    w->correct = w->clipped = 0;
    for (int64_t first = part.from; first < part.to; first += part.piece) {
        int64_t n = part.to - first < part.piece ? part.to - first : part.piece;
        dpf_worker_forward(w, v->lot, first, n, false);
        if (want->losses || want->result)
            take_losses(w, v->lot, v->lot->rows + first, n,
                        want->losses ? want->losses + first : NULL);
        if (want->values)
            dpf_network_read(&w->net, want->node, n, want->values + first * record);
    }
    w->net.kernels->finish(&w->error);
}

enum dpf_status dpf_engine_values(struct dpf_engine *g, const struct dpf_lot *lot,
                                  const struct dpf_lot_values *want, struct dpf_error *e)
{
    struct values v = {lot, want};
    enum dpf_status status = dpf_engine_run(g, values_job, &v, e);
    if (want->result)
        add_up(g, want->result);
    return status;
}
