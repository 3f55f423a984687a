#include "nn/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "base/signals.h"
#include "nn/geometry.h"
#include "privacy/grid.h"

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
    return (setup->training ? threads + 3 : 1) * span + threads * values < 0.9 * have;
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
    w->output = dpf_calloc((size_t)g->microbatch * out, sizeof *w->output);
    w->d = dpf_calloc((size_t)g->microbatch * out, sizeof *w->d);
    if (!w->x || !w->output || !w->d)
        return dpf_fail_memory(e);
    if (i > 0 && dpf_thread_start(&w->thread, serve, w) != 0)
        return dpf_fail(e, DPF_SYSTEM, "cannot start thread %d of %d", i + 1, g->threads);
    w->started = i > 0;
    return DPF_OK;
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
    pthread_cond_init(&g->work, NULL);
    pthread_cond_init(&g->done, NULL);
    g->workers = dpf_calloc((size_t)g->threads, sizeof *g->workers);
    g->parameters = g->kernels->alloc((g->model->span + 1) * sizeof *g->parameters);
    enum dpf_status status = g->workers && g->parameters ? DPF_OK : dpf_fail_memory(e);
    if (status == DPF_OK) /* for this thread, which is the first worker */
        status = dpf_signals_leave_stack(e);
    if (status == DPF_OK)
        g->kernels->clear(g->parameters, (int64_t)g->model->span);
    for (int i = 0; status == DPF_OK && i < g->threads; i++)
        status = init_worker(g, i, setup, e);
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
        free(w->output);
        free(w->d);
    }
    g->kernels->release(g->parameters);
    g->kernels->end_thread();
    free(g->workers);
    pthread_cond_destroy(&g->work);
    pthread_cond_destroy(&g->done);
    pthread_mutex_destroy(&g->lock);
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
static void take_losses(struct dpf_worker *w, const struct dpf_lot *lot, int64_t first,
                        int64_t n, double *losses)
{
    struct output_shape s = output_of(w->net.model, lot->loss);
    for (int64_t e = 0; e < n; e++) {
        struct dpf_loss_target t = dpf_dataset_target(lot->data, lot->rows[first + e]);
        const float *z = w->output + e * s.count;
        double loss =
            dpf_loss_example(lot->loss, s.classes, s.voxels, z, &t, w->d + e * s.count);
        /* With clipping, an example without a finite gradient is left out of the sum;
         * that it is there must not stop the others either. */
        if (lot->rule == DPF_CLIP_NONE || isfinite(loss))
            w->loss += loss;
        if (losses)
            losses[first + e] = loss;
        if (t.labels)
            w->correct += count_correct(&s, z, t.labels);
    }
}

/* Forward of one microbatch; its outputs into w->output. */
void dpf_worker_forward(struct dpf_worker *w, const struct dpf_lot *lot, int64_t first,
                        int64_t n, bool training)
{
    const struct dpf_model *m = w->net.model;
    int64_t out = dpf_nn_elements(&m->nodes[m->output].shape);
    dpf_dataset_gather(lot->data, lot->rows + first, n, w->x);
    dpf_network_forward(&w->net, n, w->x, training, (uint64_t)first);
    w->net.kernels->get(w->output, dpf_network_output(&w->net),
                        (size_t)(n * out) * sizeof *w->output);
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

static void gradients_job(struct dpf_worker *w, void *context)
{
    const struct dpf_lot *lot = context;
    struct dpf_part part = dpf_worker_part(w, lot->count);
    w->loss = 0;
    w->correct = w->clipped = 0;
    w->net.seed = lot->seed;
    w->net.step = lot->step;
    for (int64_t first = part.from; first < part.to; first += part.piece) {
        int64_t n = part.to - first < part.piece ? part.to - first : part.piece;
        if (dpf_stop_requested()) {
            dpf_fail_after_peer(&w->error, DPF_SYSTEM, "interrupted by signal %d",
                                dpf_stop_signal());
            return;
        }
        dpf_worker_forward(w, lot, first, n, true);
        take_losses(w, lot, first, n, NULL);
        w->clipped += dpf_network_backward(&w->net, n, (uint64_t)first, w->d, lot->rule,
                                           lot->clip_l2);
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

enum dpf_status dpf_engine_gradients(struct dpf_engine *g, const struct dpf_lot *lot,
                                     struct dpf_lot_result *result, struct dpf_error *e)
{
    struct dpf_lot copy = *lot;
    enum dpf_status status = dpf_engine_run(g, gradients_job, &copy, e);
    add_up(g, result);
    return status;
}

/* --------------------------------------------------------------------------- updates */

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

/* parts[0], plus the other parts, plus noise: all on the grid. */
static void add_private(struct dpf_worker *w, const struct dpf_lot_noise *n, size_t from,
                        size_t count, float *const *parts, int part_count)
{
    double per_step = 1 / n->mechanism->step;
    int64_t sums[BLOCK];
    double exact[BLOCK] = {0};
    struct dpf_random seeded;
    for (int i = 0; i < part_count; i++)
        for (size_t j = 0; j < count; j++)
            exact[j] += dpf_grid_nearest((double)parts[i][j], per_step);
    for (size_t j = 0; j < count; j++)
        sums[j] = (int64_t)exact[j];
    dpf_gaussian_add(n->mechanism, noise_stream(w, n, from, &seeded), 1, sums, count);
    for (size_t j = 0; j < count; j++)
        parts[0][j] = (float)((double)sums[j] * n->mechanism->step);
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

/* parts[0] becomes the sum of all, with noise if there is to be some. */
static void add_parts(struct dpf_worker *w, const struct update *u, size_t from,
                      size_t count, float *const *parts, int part_count)
{
    if (u->noise) {
        add_private(w, u->noise, from, count, parts, part_count);
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
        for (size_t i = 0; i < threads; i++)
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
    dpf_optimiser_begin(o);
    return g->kernels->host_memory ? dpf_engine_run(g, update_job, &u, e)
                                   : update_through_host(g, &u, e);
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
            take_losses(w, v->lot, first, n, want->losses);
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
