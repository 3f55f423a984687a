#include "nn/energy.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/engine.h"
#include "nn/geometry.h"
#include "nn/ops/visible.h"

#include "base/banned.h"

/* ----------------------------------------------------------------------------- setup */

enum dpf_status dpf_energy_find(const struct dpf_model *m, const char *name, size_t *node,
                                struct dpf_error *e)
{
    size_t found = 0;
    for (size_t i = 0; i < m->count; i++)
        if (m->nodes[i].visible && (!name || strcmp(m->nodes[i].name, name) == 0)) {
            *node = i;
            found++;
        }
    if (found == 1)
        return DPF_OK;
    return name ? dpf_fail(e, DPF_USAGE, "the network has no node '%s' with 'visible=1'",
                           name)
           : found
               ? dpf_fail(e, DPF_USAGE,
                          "the network has %zu nodes with 'visible=1': say which", found)
               : dpf_fail(e, DPF_USAGE, "the network has no node with 'visible=1'");
}

static int64_t visible_of(const struct dpf_model *m, size_t node)
{
    return dpf_nn_elements(&m->nodes[m->nodes[node].inputs[0]].shape);
}

enum dpf_status dpf_energy_chains(struct dpf_energy *energy, const struct dpf_model *m,
                                  int64_t count, struct dpf_error *e)
{
    size_t units = (size_t)(count * visible_of(m, energy->node));
    energy->chains = dpf_calloc(units, sizeof *energy->chains);
    energy->chain_count = count;
    for (size_t i = 0; energy->chains && i < units; i++)
        energy->chains[i] = 0.5F;
    return energy->chains ? DPF_OK : dpf_fail_memory(e);
}

void dpf_energy_release(struct dpf_energy *energy)
{
    free(energy->chains);
    energy->chains = NULL;
}

static float *alloc_values(const struct dpf_worker *w, int64_t record)
{
    return w->net.kernels->alloc(w->context,
                                 (size_t)(w->net.capacity * record) * sizeof(float));
}

bool dpf_energy_room_init(struct dpf_worker *w, size_t node)
{
    const struct dpf_model *m = w->net.model;
    int64_t hidden = dpf_nn_elements(&m->nodes[node].shape),
            visible = visible_of(m, node);
    float minus[64];
    if (w->energy.minus)
        return true;
    w->energy = (struct dpf_energy_room){alloc_values(w, hidden), alloc_values(w, hidden),
                                         alloc_values(w, visible), alloc_values(w, 1)};
    if (!w->energy.hidden || !w->energy.sample || !w->energy.visible || !w->energy.minus)
        return false;
    for (size_t i = 0; i < sizeof minus / sizeof *minus; i++)
        minus[i] = -1;
    for (int64_t i = 0; i < w->net.capacity;
         i += (int64_t)(sizeof minus / sizeof *minus)) {
        int64_t left = w->net.capacity - i,
                most = (int64_t)(sizeof minus / sizeof *minus);
        w->net.kernels->put(w->context, w->energy.minus + i, minus,
                            (size_t)(left < most ? left : most) * sizeof *minus);
    }
    return true;
}

void dpf_energy_room_release(struct dpf_worker *w)
{
    const struct dpf_kernels *k = w->engine->kernels;
    k->release(w->context, w->energy.hidden);
    k->release(w->context, w->energy.sample);
    k->release(w->context, w->energy.visible);
    k->release(w->context, w->energy.minus);
    w->energy = (struct dpf_energy_room){NULL};
}

/* -------------------------------------------------------------------------- sampling */

/* The machine at work on n examples. */
struct machine {
    struct dpf_worker *w;
    struct dpf_node_run run; /* of the node: run.x are the examples' visible units */
    int64_t hidden, visible, channels; /* of the visible units; with one bias each */
    const uint64_t *keys;
    uint64_t draws; /* so far */
};

static struct machine machine_of(struct dpf_worker *w, size_t node, int64_t n,
                                 const uint64_t *keys)
{
    struct dpf_node_run r = dpf_node_run_of(&w->net, node, 0, n);
    return (struct machine){.w = w,
                            .run = r,
                            .hidden = dpf_run_record(&r),
                            .visible = dpf_run_input(&r),
                            .channels = (int64_t)r.from->shape.dim[0],
                            .keys = keys};
}

/* Probabilities of the hidden units, given these visible ones. */
static void hide(const struct machine *m, const float *visible, float *hidden)
{
    const struct dpf_node_run *r = &m->run;
    int64_t channels = (int64_t)r->node->shape.dim[0];
    r->node->op->linear->sums(r, visible, dpf_run_parameter(r, 0), hidden);
    r->k->add_bias(r->c, r->n * m->hidden / channels, channels, dpf_run_parameter(r, 1),
                   hidden);
    dpf_conditions_add(r, dpf_hidden_side(r), hidden);
    r->k->unary_forward(r->c, DPF_SIGMOID, r->n * m->hidden, hidden, hidden);
}

/* Probabilities of the visible units, given these hidden ones. */
static void show(const struct machine *m, const float *hidden, float *visible)
{
    const struct dpf_node_run *r = &m->run;
    r->node->op->linear->back(r, hidden, dpf_run_parameter(r, 0), visible);
    r->k->add_bias(r->c, r->n * m->visible / m->channels, m->channels,
                   dpf_run_parameter(r, 2), visible);
    dpf_conditions_add(r, dpf_visible_side(r), visible);
    r->k->unary_forward(r->c, DPF_SIGMOID, r->n * m->visible, visible, visible);
}

/* Every draw of an example has a number of its own, apart from those of its dropouts. */
static void sample(struct machine *m, int64_t units, const float *p, float *out)
{
    enum { BEHIND_NODES = DPF_MODEL_MAX_NODES };
    uint64_t layer = (m->draws++ + 1) * BEHIND_NODES + m->run.i;
    m->run.k->bernoulli(m->run.c, m->run.n, units, m->keys, layer, p, out);
}

/* Half the squared distance of each example from its reconstruction. */
static void add_distances(const struct machine *m, const float *reconstruction)
{
    struct dpf_worker *w = m->w;
    const struct dpf_kernels *k = m->run.k;
    k->losses(m->run.c, dpf_loss_find("squared"), m->run.n, m->visible, 1, reconstruction,
              NULL, m->run.x, w->net.scratch, w->losses, w->correct);
    k->get(m->run.c, w->host_losses, w->losses, (size_t)m->run.n * sizeof *w->losses);
    for (int64_t e = 0; e < m->run.n; e++)
        w->loss_sum += w->host_losses[e];
}

/* --------------------------------------------------------------------------- learning */

/* The gradient of the energy of visible units v and hidden units h, by W, b and B, times
 * the sign that h has. */
static void add_products(const struct machine *m, const float *v, float *h)
{
    struct dpf_node_run r = m->run;
    r.x = v;
    r.dy = h;
    r.node->op->parameters->gradients(&r);
}

/* The same of visible units, by c and A, with the sign that v has. */
static void add_visible(const struct machine *m, const float *v)
{
    const struct dpf_node_run *r = &m->run;
    r->k->sum_bias(r->c, r->n * m->visible / m->channels, m->channels, v,
                   dpf_run_gradient(r, 2));
    dpf_conditions_gradient(r, dpf_visible_side(r), v);
}

/* v- into w->energy.visible, and its hidden units' probabilities into w->energy.sample.
 * The distance from the first reconstruction is the examples' loss. */
static void run_chain(struct machine *m, const struct dpf_energy *energy, int64_t first)
{
    struct dpf_energy_room *room = &m->w->energy;
    const struct dpf_kernels *k = m->run.k;
    size_t bytes = (size_t)(m->run.n * m->visible) * sizeof(float);
    float *chain = energy->chains ? energy->chains + first * m->visible : NULL;
    if (chain) {
        k->put(m->run.c, room->visible, chain, bytes);
        hide(m, room->visible, room->sample);
    } else {
        k->copy_columns(m->run.c, 1, m->run.n * m->hidden, room->hidden,
                        m->run.n * m->hidden, room->sample, m->run.n * m->hidden);
    }
    for (int64_t step = 0; step < energy->steps; step++) {
        sample(m, m->hidden, room->sample, room->sample);
        show(m, room->sample, room->visible);
        if (step == 0 && !chain)
            add_distances(m, room->visible);
        sample(m, m->visible, room->visible, room->visible);
        hide(m, room->visible, room->sample);
    }
    if (chain)
        k->get(m->run.c, chain, room->visible, bytes);
}

void dpf_energy_gradients(struct dpf_worker *w, const struct dpf_lot *lot, int64_t first,
                          int64_t n)
{
    const struct dpf_kernels *k = w->net.kernels;
    if (!dpf_energy_room_init(w, lot->energy->node)) {
        dpf_fail_memory(&w->error);
        return;
    }
    struct machine m = machine_of(w, lot->energy->node, n, lot->keys + first);
    struct dpf_energy_room *room = &w->energy;
    hide(&m, m.run.x, room->hidden);
    if (lot->energy->chains) {
        show(&m, room->hidden, room->visible);
        add_distances(&m, room->visible);
    }
    run_chain(&m, lot->energy, first);
    add_products(&m, room->visible, room->sample);
    add_visible(&m, room->visible);
    k->scale_rows(w->context, n, m.hidden, room->minus, room->hidden);
    add_products(&m, m.run.x, room->hidden);
    k->copy_columns(w->context, 1, n * m.visible, m.run.x, n * m.visible, room->visible,
                    n * m.visible);
    k->scale_rows(w->context, n, m.visible, room->minus, room->visible);
    add_visible(&m, room->visible);
}

void dpf_energy_losses(struct dpf_worker *w, const struct dpf_lot *lot, int64_t n)
{
    if (!dpf_energy_room_init(w, lot->energy->node)) {
        dpf_fail_memory(&w->error);
        return;
    }
    struct machine m = machine_of(w, lot->energy->node, n, NULL);
    hide(&m, m.run.x, w->energy.hidden);
    show(&m, w->energy.hidden, w->energy.visible);
    add_distances(&m, w->energy.visible);
}
