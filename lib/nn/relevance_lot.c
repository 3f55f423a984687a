/* Relevance of a lot's examples, on all threads. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "nn/geometry.h"
#include "nn/relevance.h"

#include "base/banned.h"

const struct dpf_relevance_origin dpf_relevance_origins[] = {
    {"true", DPF_FROM_TRUE},
    {"top", DPF_FROM_TOP},
    {"all", DPF_FROM_ALL},
    {NULL, DPF_FROM_TRUE},
};

struct job {
    const struct dpf_lot *lot;
    struct dpf_relevance *workers;
    float *out;
};

/* What is to be explained, at each position: the scores of some classes. Into r->output.
 */
static void choose_outputs(struct dpf_worker *w, struct dpf_relevance *r,
                           const struct dpf_lot *lot, int64_t first, int64_t n)
{
    const struct dpf_model *m = w->net.model;
    const struct dpf_shape *s = &m->nodes[m->output].shape;
    int64_t all = dpf_nn_elements(s), classes = (int64_t)s->dim[0];
    w->engine->kernels->get(w->context, r->output, dpf_network_output(&w->net),
                            (size_t)(n * all) * sizeof *r->output);
    for (int64_t e = 0; e < n && r->plan.from != DPF_FROM_ALL; e++) {
        float *z = r->output + e * all;
        struct dpf_loss_target t = {0};
        if (r->plan.from == DPF_FROM_TRUE)
            t = dpf_dataset_target(lot->data, lot->rows[first + e]);
        for (int64_t v = 0; v < all / classes; v++, z += classes) {
            int64_t one = t.labels ? t.labels[v] : 0;
            for (int64_t l = 1; !t.labels && l < classes; l++)
                one = z[l] > z[one] ? l : one;
            for (int64_t l = 0; l < classes; l++)
                z[l] = l == one ? z[l] : 0;
        }
    }
}

/* A record onto [0,1]. What is no number counts as 0, so that the promised bounds hold.
 */
static void onto_unit(float *r, int64_t count)
{
    float lo = INFINITY, hi = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        r[i] = isfinite(r[i]) ? r[i] : 0;
        lo = r[i] < lo ? r[i] : lo;
        hi = r[i] > hi ? r[i] : hi;
    }
    double span = (double)hi - (double)lo;
    for (int64_t i = 0; i < count; i++)
        r[i] = span > 0 ? (float)(((double)r[i] - (double)lo) / span) : 0;
}

static void relevance_job(struct dpf_worker *w, void *context)
{
    const struct job *job = context;
    struct dpf_relevance *r = &job->workers[w->number];
    struct dpf_part part = dpf_worker_part(w, job->lot->count);
    int64_t record = dpf_nn_elements(&w->net.model->nodes[r->plan.node].shape);
    for (int64_t first = part.from; first < part.to; first += part.piece) {
        int64_t n = part.to - first < part.piece ? part.to - first : part.piece;
        float *out = job->out + first * record;
        dpf_worker_forward(w, job->lot, first, n, false);
        choose_outputs(w, r, job->lot, first, n);
        dpf_relevance_propagate(r, n, r->output);
        dpf_network_read_relevance(&w->net, r->plan.node, n, out);
        for (int64_t e = 0; r->plan.unit && e < n; e++)
            onto_unit(out + e * record, record);
    }
    dpf_worker_finish(w);
}

enum dpf_status dpf_engine_relevance_init(struct dpf_engine_relevance *r,
                                          struct dpf_engine *g,
                                          const struct dpf_relevance_plan *plan,
                                          struct dpf_error *e)
{
    *r = (struct dpf_engine_relevance){.engine = g};
    r->workers = dpf_calloc((size_t)g->threads, sizeof *r->workers);
    enum dpf_status status = r->workers ? DPF_OK : dpf_fail_memory(e);
    for (int i = 0; status == DPF_OK && i < g->threads; i++)
        status = dpf_relevance_init(&r->workers[i], &g->workers[i].net, plan, e);
    if (status != DPF_OK)
        dpf_engine_relevance_release(r);
    return status;
}

void dpf_engine_relevance_release(struct dpf_engine_relevance *r)
{
    for (int i = 0; r->workers && i < r->engine->threads; i++)
        dpf_relevance_release(&r->workers[i]);
    free(r->workers);
    *r = (struct dpf_engine_relevance){0};
}

enum dpf_status dpf_engine_relevance(struct dpf_engine_relevance *r,
                                     const struct dpf_lot *lot, float *out,
                                     struct dpf_error *e)
{
    struct job job = {lot, r->workers, out};
    return dpf_engine_run(r->engine, relevance_job, &job, e);
}
