#include "nn/network.h"

#include <stdlib.h>

#include "base/memory.h"
#include "nn/geometry.h"

#include "base/banned.h"

const char *const dpf_clip_words[] = {"flat", "layer", "automatic", NULL};

/* --------------------------------------------------------------------------- sharing */

/* Does node i's backward need the value it made itself? Then nobody may overwrite it. */
static bool needs_own_value(enum dpf_op op)
{
    return op == DPF_OP_SIGMOID || op == DPF_OP_TANH || op == DPF_OP_CAP ||
           op == DPF_OP_SOFTMAX || op == DPF_OP_INPUT;
}

static size_t readers_of(const struct dpf_model *m, size_t node)
{
    size_t count = m->output == node;
    for (size_t i = 0; i < m->count; i++)
        for (int d = 0; d < m->nodes[i].input_count; d++)
            count += m->nodes[i].inputs[d] == node;
    return count;
}

/* ReLU and dropout work in place where nobody else reads their input: a pass over memory
 * and a buffer less. What ReLU passes is positive before and after dropout, so ReLU's
 * way back still sees where it cut. Flattening a single channel moves nothing. */
static bool works_in_place(const struct dpf_network *net, size_t i)
{
    const struct dpf_node *n = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[n->inputs[0]];
    bool flat =
        n->op == DPF_OP_FLATTEN && (from->shape.rank < 3 || from->shape.dim[0] == 1 ||
                                    dpf_nn_positions(&from->shape) == 1);
    return (n->op == DPF_OP_RELU || n->op == DPF_OP_DROPOUT || flat) &&
           !needs_own_value(from->op) && readers_of(net->model, n->inputs[0]) == 1;
}

/* ---------------------------------------------------------------------------- memory */

static bool alloc_floats(const struct dpf_kernels *k, int64_t count, float **out)
{
    *out = k->alloc((size_t)(count > 0 ? count : 1) * sizeof **out);
    return *out != NULL;
}

/* Products that are kept should stay in the caches of one core's share. */
enum { KEPT_FLOATS = 4 << 20 };

/* How the gradients of an operation's parameters are measured and added. One that is not
 * named here has no way, and dpf_network_init() refuses to clip it. */
static enum dpf_norm_way way_of(enum dpf_op op, int64_t slots)
{
    switch (op) {
    case DPF_OP_DENSE:
        return DPF_WAY_OUTER;
    case DPF_OP_CONV:
    case DPF_OP_CONV_TRANSPOSE:
        return slots <= KEPT_FLOATS ? DPF_WAY_KEPT : DPF_WAY_AGAIN;
    case DPF_OP_GROUP_NORM:
        return DPF_WAY_SMALL;
    case DPF_OP_INPUT:
    case DPF_OP_MAX_POOL:
    case DPF_OP_AVERAGE_POOL:
    case DPF_OP_RELU:
    case DPF_OP_SIGMOID:
    case DPF_OP_TANH:
    case DPF_OP_CAP:
    case DPF_OP_SOFTMAX:
    case DPF_OP_LRN:
    case DPF_OP_MIN_MAX:
    case DPF_OP_DROPOUT:
    case DPF_OP_FLATTEN:
    case DPF_OP_CONCAT:
    case DPF_OP_UPSAMPLE:
    case DPF_OP_BALL:
        break;
    }
    return DPF_WAY_NONE;
}

static bool alloc_norms(struct dpf_network *net, size_t i)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *n = &net->model->nodes[i];
    struct dpf_layer *l = &net->layers[i];
    bool conv = n->op == DPF_OP_CONV || n->op == DPF_OP_CONV_TRANSPOSE;
    bool good = true;
    if (conv) {
        struct dpf_conv p = dpf_nn_conv_of(n, &net->model->nodes[n->inputs[0]]);
        l->slot = k->conv_slot(&p);
    }
    l->way = way_of(n->op, l->slot * net->capacity);
    if (conv)
        good = alloc_floats(k, l->slot * (l->way == DPF_WAY_KEPT ? net->capacity : 1),
                            &l->slots);
    if (good && l->way != DPF_WAY_OUTER)
        good = alloc_floats(k, 2 * net->capacity * (int64_t)n->shape.dim[0], &l->sums);
    return good;
}

/* Fail closed: parameters whose gradients nobody measures cannot be clipped. */
static enum dpf_status check_ways(const struct dpf_model *m, struct dpf_error *e)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->nodes[i].parameter_count > 0 && way_of(m->nodes[i].op, 0) == DPF_WAY_NONE)
            return dpf_fail(e, DPF_PRIVACY,
                            "the gradients of '%s' cannot be clipped: operation '%s' has "
                            "no norms",
                            m->nodes[i].name, dpf_op_name(m->nodes[i].op));
    return DPF_OK;
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
        l->fused = n->op == DPF_OP_RELU && n->inputs[0] + 1 == i &&
                   net->model->nodes[i - 1].op == DPF_OP_CONV;
        return true;
    }
    if (n->bits) /* stays packed */
        good = (l->value = k->alloc((size_t)(net->capacity * ((record + 7) / 8))));
    else
        good = alloc_floats(k, count, &l->value);
    if ((l->trains && setup->training) || setup->relevance)
        good = good && alloc_floats(k, count, &l->gradient);
    if (n->op == DPF_OP_MAX_POOL)
        good = good && (l->chosen = k->alloc((size_t)count * sizeof *l->chosen));
    if (n->parameter_count && setup->clipping)
        good = good && alloc_norms(net, i);
    return good;
}

enum dpf_status dpf_network_init(struct dpf_network *net,
                                 const struct dpf_network_setup *setup,
                                 struct dpf_error *e)
{
    const struct dpf_kernels *k = setup->kernels;
    const struct dpf_model *m = setup->model;
    int64_t largest = 0;
    enum dpf_status status = setup->clipping ? check_ways(m, e) : DPF_OK;
    if (status != DPF_OK) {
        *net = (struct dpf_network){0};
        return status;
    }
    *net = (struct dpf_network){.model = m,
                                .kernels = k,
                                .capacity = setup->capacity,
                                .parameters = setup->parameters};
    for (size_t i = 0; i < m->count; i++)
        if ((!m->nodes[i].bits || setup->relevance) &&
            dpf_nn_elements(&m->nodes[i].shape) > largest)
            largest = dpf_nn_elements(&m->nodes[i].shape); /* bits stay packed, else */
    net->layers = dpf_calloc(m->count, sizeof *net->layers);
    net->host_squares = dpf_calloc((size_t)net->capacity, sizeof *net->host_squares);
    net->host_factors = dpf_calloc((size_t)net->capacity, sizeof *net->host_factors);
    net->squares = k->alloc((size_t)net->capacity * sizeof *net->squares);
    bool good = net->layers && net->host_squares && net->host_factors && net->squares &&
                alloc_floats(k, net->capacity * largest, &net->scratch) &&
                alloc_floats(k, net->capacity, &net->factors);
    if (good && setup->training)
        good = alloc_floats(k, (int64_t)m->span, &net->gradients);
    for (size_t i = 0; good && i < m->count; i++)
        good = alloc_layer(net, i, setup);
    if (!good) {
        dpf_network_release(net);
        return dpf_fail_memory(e);
    }
    if (net->gradients)
        dpf_network_zero_gradients(net);
    return k->finish(e);
}

void dpf_network_release(struct dpf_network *net)
{
    const struct dpf_kernels *k = net->kernels;
    for (size_t i = 0; net->layers && i < net->model->count; i++) {
        struct dpf_layer *l = &net->layers[i];
        if (l->value_is_shared)
            continue;
        k->release(l->value);
        k->release(l->gradient);
        k->release(l->chosen);
        k->release(l->slots);
        k->release(l->sums);
    }
    if (k) {
        k->release(net->gradients);
        k->release(net->scratch);
        k->release(net->squares);
        k->release(net->factors);
    }
    free(net->layers);
    free(net->host_squares);
    free(net->host_factors);
    *net = (struct dpf_network){0};
}

size_t dpf_network_example_bytes(const struct dpf_model *m)
{
    size_t floats = 0;
    for (size_t i = 0; i < m->count; i++)
        if (!m->nodes[i].bits && m->nodes[i].op != DPF_OP_RELU &&
            m->nodes[i].op != DPF_OP_DROPOUT)
            floats += 2 * dpf_shape_elements(&m->nodes[i].shape);
    return floats * sizeof(float);
}

void dpf_network_zero_gradients(struct dpf_network *net)
{
    net->kernels->clear(net->gradients, (int64_t)net->model->span);
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

static void forward_dense(struct dpf_network *net, size_t i, const float *x,
                          int64_t count)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *n = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[n->inputs[0]];
    const float *w = dpf_network_parameter(net, i, 0);
    const float *bias = dpf_network_parameter(net, i, 1);
    float *y = net->layers[i].value;
    int64_t in = dpf_nn_elements(&from->shape);
    if (from->bits) {
        k->dense_bits_forward(count, in, n->out, (const uint8_t *)(const void *)x, w,
                              bias, y);
        return;
    }
    k->dense_forward(count, in, n->out, x, w, bias, y);
}

static void forward_conv(struct dpf_network *net, size_t i, const float *x, int64_t count)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *n = &net->model->nodes[i];
    struct dpf_conv p = dpf_nn_conv_of(n, &net->model->nodes[n->inputs[0]]);
    const float *w = dpf_network_parameter(net, i, 0);
    const float *bias = dpf_network_parameter(net, i, 1);
    float *y = net->layers[i].value;
    if (n->op == DPF_OP_CONV) {
        bool relu = i + 1 < net->model->count && net->layers[i + 1].fused;
        k->conv_forward(&p, count, x, w, bias, relu, y);
        return;
    }
    k->conv_backward_data(&p, count, x, w, y);
    if (bias)
        k->add_bias(count * dpf_nn_positions(&n->shape), n->out, bias, y);
}

/* Both inputs' channels, one behind the other. */
static void forward_concat(struct dpf_network *net, size_t i, int64_t count)
{
    const struct dpf_node *n = &net->model->nodes[i];
    int64_t whole = (int64_t)n->shape.dim[0], at = 0;
    for (int d = 0; d < n->input_count; d++) {
        int64_t part = (int64_t)net->model->nodes[n->inputs[d]].shape.dim[0];
        net->kernels->copy_columns(count * dpf_nn_positions(&n->shape), part,
                                   net->layers[n->inputs[d]].value, part,
                                   net->layers[i].value + at, whole);
        at += part;
    }
}

/* Operations without parameters. */
static void forward_plain(struct dpf_network *net, size_t i, int64_t n, bool training)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[0]].value;
    int64_t record = dpf_nn_elements(&node->shape), all = n * record;
    int64_t channels = (int64_t)node->shape.dim[0], in[DPF_SPACE];
    int64_t factor[DPF_SPACE] = {1, node->factor, node->factor};
    struct dpf_pool pool;
    struct dpf_lrn lrn;
    switch (node->op) {
    case DPF_OP_INPUT:
    case DPF_OP_DENSE:
    case DPF_OP_CONV:
    case DPF_OP_CONV_TRANSPOSE:
    case DPF_OP_GROUP_NORM:
        break; /* not plain: forward_node() does them */
    case DPF_OP_MAX_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->max_pool_forward(&pool, n, x, l->value, l->chosen);
        break;
    case DPF_OP_AVERAGE_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->average_pool_forward(&pool, n, x, l->value);
        break;
    case DPF_OP_LRN:
        lrn = dpf_nn_lrn_of(node);
        k->lrn_forward(&lrn, n, x, l->value);
        break;
    case DPF_OP_CONCAT:
        forward_concat(net, i, n);
        break;
    case DPF_OP_RELU:
        if (!l->fused)
            k->unary_forward(DPF_RELU, all, x, l->value);
        break;
    case DPF_OP_SIGMOID:
    case DPF_OP_TANH:
    case DPF_OP_CAP:
        k->unary_forward(dpf_nn_unary_of(node->op), all, x, l->value);
        break;
    case DPF_OP_SOFTMAX:
        k->softmax_forward(all / channels, channels, x, l->value);
        break;
    case DPF_OP_MIN_MAX:
        k->min_max_forward(n, record, x, l->value);
        break;
    case DPF_OP_BALL:
        k->ball_forward(n, record, x, l->value);
        break;
    case DPF_OP_UPSAMPLE:
        dpf_nn_space(&from->shape, in);
        factor[0] = node->shape.rank == 4 ? node->factor : 1;
        k->upsample_forward(n, channels, in, factor, x, l->value);
        break;
    case DPF_OP_DROPOUT:
        if (training)
            k->dropout(n, record, node->rate, net->keys, i, x, l->value);
        else if (x != l->value)
            k->copy_columns(1, all, x, all, l->value, all);
        break;
    case DPF_OP_FLATTEN:
        if (x != l->value)
            k->to_channels_first(n, (int64_t)from->shape.dim[0],
                                 dpf_nn_positions(&from->shape), x, l->value);
        break;
    }
}

static void forward_node(struct dpf_network *net, size_t i, int64_t n, bool training)
{
    const struct dpf_node *node = &net->model->nodes[i];
    const float *x = net->layers[node->inputs[0]].value;
    struct dpf_group_norm norm;
    if (node->op == DPF_OP_DENSE) {
        forward_dense(net, i, x, n);
    } else if (node->op == DPF_OP_CONV || node->op == DPF_OP_CONV_TRANSPOSE) {
        forward_conv(net, i, x, n);
    } else if (node->op == DPF_OP_GROUP_NORM) {
        norm = dpf_nn_group_norm_of(node);
        net->kernels->group_norm_forward(&norm, n, x, dpf_network_parameter(net, i, 0),
                                         dpf_network_parameter(net, i, 1),
                                         net->layers[i].value);
    } else {
        forward_plain(net, i, n, training);
    }
}

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
    k->put(turn ? net->scratch : net->layers[0].value, x, bytes);
    if (turn)
        k->to_channels_last(n, (int64_t)input->shape.dim[0],
                            dpf_nn_positions(&input->shape), net->scratch,
                            net->layers[0].value);
    for (size_t i = 1; i < net->model->count; i++)
        forward_node(net, i, n, training);
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
        net->kernels->to_channels_first(n, (int64_t)from->shape.dim[0],
                                        dpf_nn_positions(&from->shape), value,
                                        net->scratch);
        value = net->scratch;
    }
    net->kernels->get(host, value,
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
