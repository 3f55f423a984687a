#include "nn/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/signals.h"
#include "nn/geometry.h"

#include "base/banned.h"

/* --------------------------------------------------------------------------- threads */

struct task {
    struct dpf_engine *engine;
    dpf_worker_job *job;
    void *context;
};

static void run_worker(void *argument, int number)
{
    const struct task *t = argument;
    t->job(&t->engine->workers[number], t->context);
}

enum dpf_status dpf_engine_run(struct dpf_engine *g, dpf_worker_job *job, void *context,
                               struct dpf_error *e)
{
    struct task t = {g, job, context};
    for (int i = 0; i < g->threads; i++)
        g->workers[i].error = (struct dpf_error){.status = DPF_OK};
    dpf_thread_pool_run(&g->pool, run_worker, &t);
    for (int i = 0; i < g->threads; i++)
        if (g->workers[i].error.status != DPF_OK)
            return dpf_fail(e, g->workers[i].error.status, "%s",
                            g->workers[i].error.message);
    return DPF_OK;
}

/* ----------------------------------------------------------------------------- setup */

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

/* What a microbatch takes besides the network. */
static bool alloc_microbatch(struct dpf_worker *w)
{
    const struct dpf_engine *g = w->engine;
    const struct dpf_model *m = g->model;
    size_t n = (size_t)g->microbatch, in = (size_t)dpf_nn_elements(&m->nodes[0].shape);
    size_t out = (size_t)dpf_nn_elements(&m->nodes[m->output].shape);
    size_t row = m->nodes[0].bits ? (in + 7) / 8 : in * sizeof(float);
    w->x = dpf_alloc_aligned(n * row);
    w->rows = dpf_calloc(n, sizeof *w->rows);
    w->keys = dpf_calloc(n, sizeof *w->keys);
    w->host_losses = dpf_calloc(n, sizeof *w->host_losses);
    w->host_correct = dpf_calloc(n, sizeof *w->host_correct);
    w->d = g->kernels->alloc(w->context, n * out * sizeof *w->d);
    w->losses = g->kernels->alloc(w->context, n * sizeof *w->losses);
    w->correct = g->kernels->alloc(w->context, n * sizeof *w->correct);
    return w->x && w->rows && w->keys && w->host_losses && w->host_correct && w->d &&
           w->losses && w->correct;
}

static enum dpf_status init_worker(struct dpf_worker *w,
                                   const struct dpf_engine_setup *setup,
                                   struct dpf_error *e)
{
    struct dpf_engine *g = w->engine;
    struct dpf_network_setup net = {.model = g->model,
                                    .kernels = g->kernels,
                                    .context = w->context,
                                    .parameters = g->parameters,
                                    .capacity = g->microbatch,
                                    .training = setup->training,
                                    .clipping = setup->clipping,
                                    .every_value = setup->every_value,
                                    .relevance = setup->relevance};
    enum dpf_status status = dpf_network_init(&w->net, &net, e);
    if (status == DPF_OK)
        status = dpf_random_init(&w->random, e);
    if (status == DPF_OK && !alloc_microbatch(w))
        status = dpf_fail_memory(e);
    return status;
}

static void release_worker(struct dpf_worker *w)
{
    const struct dpf_kernels *k = w->engine->kernels;
    dpf_random_release(&w->random);
    if (w->net.kernels)
        dpf_network_release(&w->net);
    k->release(w->context, w->d);
    k->release(w->context, w->losses);
    k->release(w->context, w->correct);
    k->release(w->context, w->targets);
    dpf_energy_room_release(w);
    free(w->host_targets);
    free(w->host_losses);
    free(w->host_correct);
    free(w->x);
    free(w->rows);
    free(w->keys);
}

static void probe_job(struct dpf_worker *w, void *context)
{
    (void)context;
    dpf_row_probe(&w->net, &w->apart, &w->error);
}

/* Whether examples are computed apart: for all workers the same, since pieces of a part
 * must not depend on who takes it. */
static enum dpf_status probe_workers(struct dpf_engine *g, struct dpf_error *e)
{
    enum dpf_status status = dpf_engine_run(g, probe_job, NULL, e);
    for (int i = 0; i < g->threads; i++)
        g->apart = g->apart && g->workers[i].apart;
    return status;
}

/* Contexts on the device; what its backend says about microbatches; and whether the
 * network fits. */
static enum dpf_status open_device(struct dpf_engine *g,
                                   const struct dpf_engine_setup *setup,
                                   struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (int i = 0; status == DPF_OK && i < g->threads; i++) {
        g->workers[i] = (struct dpf_worker){.engine = g, .number = i};
        status = g->kernels->open(setup->device, &g->workers[i].context, e);
    }
    if (status != DPF_OK)
        return status;
    if (!g->microbatch)
        g->microbatch = g->kernels->microbatch(g->workers[0].context,
                                               dpf_network_example_bytes(g->model),
                                               g->model->span * sizeof(float));
    if (setup->clipping && g->microbatch > DPF_LOT_PART_MOST) /* no part is larger */
        g->microbatch = DPF_LOT_PART_MOST;
    return fits_memory(g, setup)
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE,
                          "the network is too large for this machine's memory with "
                          "microbatches of %lld on %d threads",
                          (long long)g->microbatch, g->threads);
}

/* The parameters, and the sums of clipped gradients, both 0. */
static enum dpf_status alloc_vectors(struct dpf_engine *g, bool sums, struct dpf_error *e)
{
    struct dpf_context *c = g->workers[0].context;
    size_t span = g->model->span;
    g->parameters = g->kernels->alloc(c, (span + 1) * sizeof *g->parameters);
    g->sums = sums ? g->kernels->alloc(c, (span + 1) * sizeof *g->sums) : NULL;
    if (!g->parameters || (sums && !g->sums))
        return dpf_fail_memory(e);
    g->kernels->clear(c, g->parameters, (int64_t)span);
    if (sums) /* an integer 0 is two float zeros */
        g->kernels->clear(c, (float *)(void *)g->sums, 2 * (int64_t)span);
    return DPF_OK;
}

enum dpf_status dpf_engine_init(struct dpf_engine *g,
                                const struct dpf_engine_setup *setup, struct dpf_error *e)
{
    *g =
        (struct dpf_engine){.model = setup->model,
                            .kernels = setup->kernels,
                            .reduction = setup->reduction,
                            .threads = setup->threads ? setup->threads : dpf_processors(),
                            .microbatch = setup->microbatch,
                            .apart = true};
    for (int i = 0; i < DPF_ENGINE_LOCKS; i++)
        pthread_mutex_init(&g->sum_locks[i], NULL);
    bool sums = setup->training && setup->clipping;
    g->workers = dpf_calloc((size_t)g->threads, sizeof *g->workers);
    enum dpf_status status = g->workers ? open_device(g, setup, e) : dpf_fail_memory(e);
    if (status == DPF_OK)
        status = alloc_vectors(g, sums, e);
    if (status == DPF_OK) /* for this thread, which is the first worker */
        status = dpf_signals_leave_stack(e);
    for (int i = 0; status == DPF_OK && i < g->threads; i++)
        status = init_worker(&g->workers[i], setup, e);
    if (status == DPF_OK)
        status = dpf_thread_pool_init(&g->pool, g->threads, e);
    if (status == DPF_OK && sums)
        status = probe_workers(g, e);
    if (status != DPF_OK)
        dpf_engine_release(g);
    return status;
}

void dpf_engine_release(struct dpf_engine *g)
{
    if (!g->kernels)
        return;
    dpf_thread_pool_release(&g->pool);
    if (g->workers && g->workers[0].context) {
        g->kernels->release(g->workers[0].context, g->parameters);
        g->kernels->release(g->workers[0].context, g->sums);
    }
    for (int i = 0; g->workers && i < g->threads; i++)
        if (g->workers[i].context) {
            release_worker(&g->workers[i]);
            g->kernels->close(g->workers[i].context);
        }
    free(g->workers);
    free(g->keys);
    free(g->part_results);
    dpf_lot_parts_release(&g->parts);
    for (int i = 0; i < DPF_ENGINE_LOCKS; i++)
        pthread_mutex_destroy(&g->sum_locks[i]);
    *g = (struct dpf_engine){0};
}

void dpf_engine_put(struct dpf_engine *g, const float *parameters)
{
    g->kernels->put(g->workers[0].context, g->parameters, parameters,
                    g->model->span * sizeof *parameters);
    g->kernels->finish(g->workers[0].context, NULL); /* other contexts read them */
}

void dpf_engine_get(struct dpf_engine *g, float *parameters)
{
    g->kernels->get(g->workers[0].context, parameters, g->parameters,
                    g->model->span * sizeof *parameters);
}

/* ------------------------------------------------------------------------ microbatches
 */

static void forward(struct dpf_worker *w, const struct dpf_lot *lot, const uint32_t *rows,
                    int64_t n, bool training, const uint64_t *keys)
{
    dpf_dataset_gather(lot->data, rows, n, w->x);
    w->net.computed = lot->energy ? lot->energy->node : w->net.model->count;
    dpf_network_forward(&w->net, n, w->x, training, keys);
}

void dpf_worker_forward(struct dpf_worker *w, const struct dpf_lot *lot, int64_t first,
                        int64_t n, bool training)
{
    forward(w, lot, lot->rows + first, n, training, lot->keys ? lot->keys + first : NULL);
}

void dpf_worker_forward_chosen(struct dpf_worker *w, const struct dpf_lot *lot, int64_t n)
{
    forward(w, lot, w->rows, n, true, w->keys);
}

/* Room for so many labels or values, here and on the backend. */
static bool make_target_room(struct dpf_worker *w, size_t count)
{
    enum { BYTES = 4 }; /* of a label, and of a value */
    const struct dpf_kernels *k = w->engine->kernels;
    if (count <= w->targets_capacity)
        return true;
    k->release(w->context, w->targets);
    free(w->host_targets);
    w->targets = k->alloc(w->context, count * BYTES);
    w->host_targets = dpf_calloc(count, BYTES);
    bool good = w->targets && w->host_targets;
    w->targets_capacity = good ? count : 0;
    return good;
}

struct output_shape {
    int64_t classes, voxels;
};

static struct output_shape output_of(const struct dpf_model *m, const struct dpf_loss *l)
{
    const struct dpf_shape *s = &m->nodes[m->output].shape;
    int64_t all = dpf_nn_elements(s), channels = (int64_t)s->dim[0];
    bool voxels = l->targets == DPF_TARGET_VOXEL_LABELS;
    return (struct output_shape){voxels ? channels : all, voxels ? all / channels : 1};
}

void dpf_worker_losses(struct dpf_worker *w, const struct dpf_lot *lot,
                       const uint32_t *rows, int64_t n, double *losses)
{
    const struct dpf_kernels *k = w->engine->kernels;
    const struct dpf_dataset *data = lot->data;
    struct output_shape s = output_of(w->net.model, lot->loss);
    float *d = dpf_network_output_gradient(&w->net);
    size_t targets = (size_t)n * data->positions, count = (size_t)n;
    if (lot->energy) {
        dpf_energy_losses(w, lot, n);
        return;
    }
    if (!make_target_room(w, targets)) {
        dpf_fail_memory(&w->error);
        return;
    }
    dpf_dataset_targets(data, rows, n, w->host_targets);
    k->put(w->context, w->targets, w->host_targets, targets * sizeof(float));
    k->losses(w->context, lot->loss, n, s.classes, s.voxels, dpf_network_output(&w->net),
              data->labels ? w->targets : NULL, data->values ? w->targets : NULL,
              d ? d : w->d, w->losses, w->correct);
    k->get(w->context, w->host_losses, w->losses, count * sizeof *w->losses);
    k->get(w->context, w->host_correct, w->correct, count * sizeof *w->correct);
    for (int64_t e = 0; e < n; e++) {
        /* With clipping, an example without a finite gradient is left out of the sum;
         * that it is there must not stop the others either. */
        if (lot->rule == DPF_CLIP_NONE || isfinite(w->host_losses[e]))
            w->loss_sum += w->host_losses[e];
        w->correct_sum += w->host_correct[e];
    }
    if (losses)
        memcpy(losses, w->host_losses, count * sizeof *losses);
}

/* Equal parts, in equal pieces as far as it goes. */
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

void dpf_worker_begin(struct dpf_worker *w)
{
    w->loss_sum = 0;
    w->correct_sum = w->clipped = 0;
}

void dpf_worker_finish(struct dpf_worker *w)
{
    struct dpf_error e = {0};
    enum dpf_status status = w->engine->kernels->finish(w->context, &e);
    if (w->error.status == DPF_OK && status != DPF_OK)
        w->error = e;
}

void dpf_engine_add_up(const struct dpf_engine *g, struct dpf_lot_result *result)
{
    *result = (struct dpf_lot_result){0};
    for (int i = 0; i < g->threads; i++) {
        result->loss += g->workers[i].loss_sum;
        result->correct += g->workers[i].correct_sum;
        result->clipped += g->workers[i].clipped;
    }
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
    dpf_worker_begin(w);
    for (int64_t first = part.from; first < part.to; first += part.piece) {
        int64_t n = part.to - first < part.piece ? part.to - first : part.piece;
        dpf_worker_forward(w, v->lot, first, n, false);
        if (want->losses || want->result)
            dpf_worker_losses(w, v->lot, v->lot->rows + first, n,
                              want->losses ? want->losses + first : NULL);
        if (want->values)
            dpf_network_read(&w->net, want->node, n, want->values + first * record);
    }
    dpf_worker_finish(w);
}

enum dpf_status dpf_engine_values(struct dpf_engine *g, const struct dpf_lot *lot,
                                  const struct dpf_lot_values *want, struct dpf_error *e)
{
    struct values v = {lot, want};
    if ((want->losses || want->result) && !lot->loss && !lot->energy)
        return dpf_fail(e, DPF_USAGE, "losses need to be told which");
    enum dpf_status status = dpf_engine_run(g, values_job, &v, e);
    if (want->result)
        dpf_engine_add_up(g, want->result);
    return status;
}
