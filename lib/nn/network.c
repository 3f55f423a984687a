#include "nn/network.h"

#include <stdlib.h>

#include "base/memory.h"
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

const struct dpf_clip_choice dpf_clip_choices[] = {
    {"flat", DPF_CLIP_FLAT},
    {"layer", DPF_CLIP_LAYER},
    {"automatic", DPF_CLIP_AUTOMATIC},
    {NULL, DPF_CLIP_NONE},
};

/* --------------------------------------------------------------------------- sharing */

static size_t readers_of(const struct dpf_model *m, size_t node)
{
    size_t count = m->output == node;
    for (size_t i = 0; i < m->count; i++)
        for (int d = 0; d < m->nodes[i].input_count; d++)
            count += m->nodes[i].inputs[d] == node;
    return count;
}

/* Where nobody else reads its input, an operation may work in place: a pass over memory
 * and a buffer less. */
static bool works_in_place(const struct dpf_network *net, size_t i)
{
    const struct dpf_node *n = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[n->inputs[0]];
    bool flat = from->shape.rank < 3 || from->shape.dim[0] == 1 ||
                dpf_nn_positions(&from->shape) == 1;
    bool able = n->op->in_place == DPF_IN_PLACE ||
                (n->op->in_place == DPF_IN_PLACE_IF_FLAT && flat);
    return able && !from->op->keeps_value && readers_of(net->model, n->inputs[0]) == 1;
}

/* ---------------------------------------------------------------------------- memory */

static bool alloc_floats(const struct dpf_network *net, int64_t count, float **out)
{
    *out =
        net->kernels->alloc(net->context, (size_t)(count > 0 ? count : 1) * sizeof **out);
    return *out != NULL;
}

/* What lies between the norms of examples' gradients and their sum. */
static bool alloc_room(struct dpf_network *net, size_t i)
{
    struct dpf_layer *l = &net->layers[i];
    struct dpf_node_run r = dpf_node_run_of(net, i, 0, net->capacity);
    struct dpf_example_room room = r.node->op->parameters->room(&r);
    return (room.kept == 0 || alloc_floats(net, room.kept, &l->kept)) &&
           (room.sums == 0 || alloc_floats(net, room.sums, &l->sums));
}

/* Channels of what conditions shift: hidden units or visible ones. */
static int64_t shifted_channels(const struct dpf_node *n)
{
    int64_t hidden = dpf_nn_elements(&n->parameters[1]),
            visible = dpf_nn_elements(&n->parameters[2]);
    return hidden > visible ? hidden : visible;
}

static bool alloc_layer(struct dpf_network *net, size_t i,
                        const struct dpf_network_setup *setup)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *n = &net->model->nodes[i];
    struct dpf_layer *l = &net->layers[i], *from = &net->layers[n->inputs[0]];
    int64_t record = dpf_nn_elements(&n->shape), count = net->capacity * record;
    bool good = true;
    l->trains = n->parameter_count > 0;
    for (int d = 0; d < n->input_count; d++)
        l->trains = l->trains || net->layers[n->inputs[d]].trains;
    l->value_is_shared = i > 0 && !setup->every_value && works_in_place(net, i);
    if (l->value_is_shared) {
        l->value = from->value;
        l->gradient = from->gradient;
        l->absorbed = n->inputs[0] + 1 == i &&
                      net->model->nodes[i - 1].op->absorbs == n->op &&
                      net->model->nodes[i - 1].input_count == 1;
        return true;
    }
    if (n->bits) /* stays packed */
        good = (l->value =
                    k->alloc(net->context, (size_t)(net->capacity * ((record + 7) / 8))));
    else
        good = alloc_floats(net, count, &l->value);
    if ((l->trains && setup->training) || setup->relevance)
        good = good && alloc_floats(net, count, &l->gradient);
    if (n->op->place_bytes)
        good = good &&
               (l->places = k->alloc(net->context, (size_t)count * n->op->place_bytes));
    if (n->parameter_count > DPF_CONDITION)
        good = good && alloc_floats(net, net->capacity * shifted_channels(n), &l->shifts);
    if (n->parameter_count && setup->clipping)
        good = good && alloc_room(net, i);
    return good;
}

enum dpf_status dpf_network_init(struct dpf_network *net,
                                 const struct dpf_network_setup *setup,
                                 struct dpf_error *e)
{
    const struct dpf_kernels *k = setup->kernels;
    const struct dpf_model *m = setup->model;
    int64_t largest = 0;
    *net = (struct dpf_network){.model = m,
                                .kernels = k,
                                .context = setup->context,
                                .capacity = setup->capacity,
                                .computed = m->count,
                                .parameters = setup->parameters};
    for (size_t i = 0; i < m->count; i++)
        if ((!m->nodes[i].bits || setup->relevance) &&
            dpf_nn_elements(&m->nodes[i].shape) > largest)
            largest = dpf_nn_elements(&m->nodes[i].shape); /* bits stay packed, else */
    net->layers = dpf_calloc(m->count, sizeof *net->layers);
    net->zeros = dpf_calloc((size_t)net->capacity, sizeof *net->zeros);
    net->squares = k->alloc(net->context, (size_t)net->capacity * sizeof *net->squares);
    bool good = net->layers && net->zeros && net->squares &&
                alloc_floats(net, net->capacity * largest, &net->scratch) &&
                alloc_floats(net, net->capacity, &net->factors);
    if (good && setup->training)
        good = alloc_floats(net, (int64_t)m->span, &net->gradients);
    for (size_t i = 0; good && i < m->count; i++)
        good = alloc_layer(net, i, setup);
    if (!good) {
        dpf_network_release(net);
        return dpf_fail_memory(e);
    }
    if (net->gradients)
        dpf_network_zero_gradients(net);
    return k->finish(net->context, e);
}

void dpf_network_release(struct dpf_network *net)
{
    const struct dpf_kernels *k = net->kernels;
    struct dpf_context *c = net->context;
    for (size_t i = 0; net->layers && i < net->model->count; i++) {
        struct dpf_layer *l = &net->layers[i];
        if (l->value_is_shared)
            continue;
        k->release(c, l->value);
        k->release(c, l->gradient);
        k->release(c, l->places);
        k->release(c, l->kept);
        k->release(c, l->sums);
        k->release(c, l->shifts);
    }
    if (k) {
        k->release(c, net->gradients);
        k->release(c, net->scratch);
        k->release(c, net->squares);
        k->release(c, net->factors);
    }
    free(net->layers);
    free(net->zeros);
    *net = (struct dpf_network){0};
}

size_t dpf_network_example_bytes(const struct dpf_model *m)
{
    size_t floats = 0;
    for (size_t i = 0; i < m->count; i++)
        if (!m->nodes[i].bits && m->nodes[i].op->in_place != DPF_IN_PLACE)
            floats += 2 * dpf_shape_elements(&m->nodes[i].shape);
    return floats * sizeof(float);
}

void dpf_network_zero_gradients(struct dpf_network *net)
{
    net->kernels->clear(net->context, net->gradients, (int64_t)net->model->span);
}

const float *dpf_network_parameter(const struct dpf_network *net, size_t i, int k)
{
    return k < net->model->nodes[i].parameter_count
               ? net->parameters + net->model->nodes[i].offset[k]
               : NULL;
}

float *dpf_network_gradient(const struct dpf_network *net, size_t i, int k)
{
    return k < net->model->nodes[i].parameter_count
               ? net->gradients + net->model->nodes[i].offset[k]
               : NULL;
}

/* -------------------------------------------------------------------------- forward */

void dpf_network_forward(struct dpf_network *net, int64_t n, const void *x, bool training,
                         const uint64_t *keys)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *input = &net->model->nodes[0];
    int64_t record = dpf_nn_elements(&input->shape);
    bool turn = input->shape.rank >= 3 && input->shape.dim[0] > 1;
    size_t bytes = input->bits ? (size_t)(n * ((record + 7) / 8))
                               : (size_t)(n * record) * sizeof(float);
    net->keys = keys;
    k->put(net->context, turn ? net->scratch : net->layers[0].value, x, bytes);
    if (turn)
        k->to_channels_last(net->context, n, (int64_t)input->shape.dim[0],
                            dpf_nn_positions(&input->shape), net->scratch,
                            net->layers[0].value);
    for (size_t i = 1; i < net->computed; i++) {
        struct dpf_node_run r = dpf_node_run_of(net, i, 0, n);
        r.training = training;
        r.node->op->forward(&r);
    }
}

const float *dpf_network_output(const struct dpf_network *net)
{
    return net->layers[net->model->output].value;
}

static void read_values(struct dpf_network *net, size_t node, int64_t n,
                        const float *value, float *host)
{
    const struct dpf_node *from = &net->model->nodes[node];
    if (from->shape.rank >= 3 && from->shape.dim[0] > 1) {
        net->kernels->to_channels_first(net->context, n, (int64_t)from->shape.dim[0],
                                        dpf_nn_positions(&from->shape), value,
                                        net->scratch);
        value = net->scratch;
    }
    net->kernels->get(net->context, host, value,
                      (size_t)(n * dpf_nn_elements(&from->shape)) * sizeof *host);
}

void dpf_network_read(struct dpf_network *net, size_t node, int64_t n, float *host)
{
    read_values(net, node, n, net->layers[node].value, host);
}

void dpf_network_read_relevance(struct dpf_network *net, size_t node, int64_t n,
                                float *host)
{
    read_values(net, node, n, net->layers[node].gradient, host);
}
