#include "nn/network.h"

#include <stdlib.h>

#include "base/memory.h"
#include "nn/geometry.h"

#include "base/banned.h"

/* -------------------------------------------------------------------------- memory */

static bool alloc_floats(const struct dpf_kernels *k, int64_t count, float **out)
{
    *out = k->alloc((size_t)count * sizeof **out);
    return *out != NULL;
}

static bool alloc_layer(struct dpf_network *net, size_t i)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *n = &net->model->nodes[i];
    struct dpf_layer *l = &net->layers[i];
    int64_t count = net->capacity * dpf_nn_elements(&n->shape);
    bool good = true;
    l->trains = n->parameter_count > 0;
    for (int d = 0; d < n->input_count; d++)
        l->trains = l->trains || net->layers[n->inputs[d]].trains;
    if (n->bits) /* stays packed */
        l->value =
            k->alloc((size_t)(net->capacity * ((dpf_nn_elements(&n->shape) + 7) / 8)));
    else
        good = alloc_floats(k, count, &l->value);
    good = good && l->value;
    if (l->trains)
        good = good && alloc_floats(k, count, &l->gradient);
    if (n->op == DPF_OP_MAX_POOL)
        good = good && (l->chosen = k->alloc((size_t)count * sizeof *l->chosen));
    for (int d = 0; d < n->parameter_count; d++)
        good = good &&
               alloc_floats(k, dpf_nn_elements(&n->parameters[d]), &l->parameters[d]) &&
               alloc_floats(k, dpf_nn_elements(&n->parameters[d]), &l->gradients[d]);
    return good;
}

enum dpf_status dpf_network_init(struct dpf_network *net, const struct dpf_model *model,
                                 const struct dpf_kernels *kernels, int64_t capacity,
                                 struct dpf_error *e)
{
    int64_t largest = 0, widest = 0;
    *net = (struct dpf_network){.model = model, .kernels = kernels, .capacity = capacity};
    for (size_t i = 0; i < model->count; i++) {
        const struct dpf_node *n = &model->nodes[i];
        if (n->op == DPF_OP_BALL || (n->op == DPF_OP_SOFTMAX && n->shape.rank != 1))
            return dpf_fail(e, DPF_UNAVAILABLE, "backend '%s' cannot run '%s' (%s)",
                            kernels->name, n->name, dpf_op_name(n->op));
        largest =
            dpf_nn_elements(&n->shape) > largest ? dpf_nn_elements(&n->shape) : largest;
        widest = (int64_t)n->shape.dim[0] > widest ? (int64_t)n->shape.dim[0] : widest;
    }
    net->layers = dpf_calloc(model->count, sizeof *net->layers);
    net->host = dpf_calloc((size_t)capacity, sizeof *net->host);
    bool good = net->layers && net->host &&
                alloc_floats(kernels, capacity * largest, &net->scratch) &&
                alloc_floats(kernels, capacity * widest, &net->sums) &&
                alloc_floats(kernels, capacity, &net->squares) &&
                alloc_floats(kernels, capacity, &net->factors);
    for (size_t i = 0; good && i < model->count; i++)
        good = alloc_layer(net, i);
    if (!good) {
        dpf_network_release(net);
        return dpf_fail_memory(e);
    }
    dpf_network_zero_gradients(net);
    return DPF_OK;
}

void dpf_network_release(struct dpf_network *net)
{
    const struct dpf_kernels *k = net->kernels;
    for (size_t i = 0; net->layers && i < net->model->count; i++) {
        struct dpf_layer *l = &net->layers[i];
        k->release(l->value);
        k->release(l->gradient);
        k->release(l->chosen);
        for (int d = 0; d < DPF_NODE_PARAMETERS; d++) {
            k->release(l->parameters[d]);
            k->release(l->gradients[d]);
        }
    }
    if (k) {
        k->release(net->scratch);
        k->release(net->sums);
        k->release(net->squares);
        k->release(net->factors);
    }
    free(net->layers);
    free(net->host);
    *net = (struct dpf_network){0};
}

void dpf_network_clear(const struct dpf_kernels *k, float *x, int64_t count)
{
    static const float none[1024];
    for (int64_t i = 0; i < count; i += 1024)
        k->put(x + i, none, (size_t)(count - i < 1024 ? count - i : 1024) * sizeof *x);
}

void dpf_network_zero_gradients(struct dpf_network *net)
{
    for (size_t i = 0; i < net->model->count; i++)
        for (int d = 0; d < net->model->nodes[i].parameter_count; d++)
            dpf_network_clear(net->kernels, net->layers[i].gradients[d],
                              dpf_nn_elements(&net->model->nodes[i].parameters[d]));
}

/* ------------------------------------------------------------------------- forward */

static void forward_dense(struct dpf_network *net, const struct dpf_node *n,
                          const struct dpf_node *from, struct dpf_layer *l,
                          const float *x, int64_t count)
{
    const struct dpf_kernels *k = net->kernels;
    int64_t in = dpf_nn_elements(&from->shape);
    if (from->bits) {
        k->dense_bits_forward(count, in, n->out, (const uint8_t *)(const void *)x,
                              l->parameters[0], n->bias ? l->parameters[1] : NULL,
                              l->value);
        return;
    }
    k->gemm(false, true, count, n->out, in, 1, x, l->parameters[0], 0, l->value);
    if (n->bias)
        k->add_bias(count, n->out, 1, l->parameters[1], l->value);
}

static void forward_conv(struct dpf_network *net, const struct dpf_node *n,
                         const struct dpf_node *from, struct dpf_layer *l, const float *x,
                         int64_t count)
{
    const struct dpf_kernels *k = net->kernels;
    struct dpf_conv p = dpf_nn_conv_of(n, from);
    const float *bias = n->bias ? l->parameters[1] : NULL;
    if (n->op == DPF_OP_CONV) {
        k->conv_forward(&p, count, x, l->parameters[0], bias, l->value);
        return;
    }
    k->conv_backward_data(&p, count, x, l->parameters[0], l->value);
    if (bias)
        k->add_bias(count, n->out, dpf_nn_positions(&n->shape), bias, l->value);
}

/* Both inputs' channels, one behind the other. */
static void forward_concat(struct dpf_network *net, const struct dpf_node *n,
                           struct dpf_layer *l, int64_t count)
{
    int64_t whole = dpf_nn_elements(&n->shape), at = 0;
    for (int d = 0; d < n->input_count; d++) {
        int64_t part = dpf_nn_elements(&net->model->nodes[n->inputs[d]].shape);
        net->kernels->copy_columns(count, part, net->layers[n->inputs[d]].value, part,
                                   l->value + at, whole);
        at += part;
    }
}

static void forward_node(struct dpf_network *net, size_t i, int64_t n, bool training)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[0]].value;
    int64_t record = dpf_nn_elements(&node->shape), all = n * record;
    struct dpf_pool pool;
    struct dpf_lrn lrn;
    struct dpf_group_norm norm;
    int64_t in[DPF_SPACE], factor[DPF_SPACE] = {1, node->factor, node->factor};
    switch (node->op) {
    case DPF_OP_DENSE:
        forward_dense(net, node, from, l, x, n);
        break;
    case DPF_OP_CONV:
    case DPF_OP_CONV_TRANSPOSE:
        forward_conv(net, node, from, l, x, n);
        break;
    case DPF_OP_MAX_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->max_pool_forward(&pool, n, x, l->value, l->chosen);
        break;
    case DPF_OP_AVERAGE_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->average_pool_forward(&pool, n, x, l->value);
        break;
    case DPF_OP_RELU:
    case DPF_OP_SIGMOID:
    case DPF_OP_TANH:
        k->unary_forward(dpf_nn_unary_of(node->op), all, x, l->value);
        break;
    case DPF_OP_SOFTMAX:
        k->softmax_forward(n, record, x, l->value);
        break;
    case DPF_OP_LRN:
        lrn = dpf_nn_lrn_of(node);
        k->lrn_forward(&lrn, n, x, l->value);
        break;
    case DPF_OP_MIN_MAX:
        k->min_max_forward(n, record, x, l->value);
        break;
    case DPF_OP_GROUP_NORM:
        norm = dpf_nn_group_norm_of(node);
        k->group_norm_forward(&norm, n, x, l->parameters[0], l->parameters[1], l->value);
        break;
    case DPF_OP_UPSAMPLE:
        dpf_nn_space(&from->shape, in);
        factor[0] = node->shape.rank == 4 ? node->factor : 1;
        k->upsample_forward(n * (int64_t)node->shape.dim[0], in, factor, x, l->value);
        break;
    case DPF_OP_CONCAT:
        forward_concat(net, node, l, n);
        break;
    case DPF_OP_DROPOUT:
        if (training) {
            k->dropout(all, node->rate, net->seed, net->step * DPF_MODEL_MAX_NODES + i, x,
                       l->value);
            break;
        }
        k->copy_columns(1, all, x, all, l->value, all);
        break;
    case DPF_OP_FLATTEN:
        k->copy_columns(1, all, x, all, l->value, all);
        break;
    case DPF_OP_INPUT:
    case DPF_OP_BALL:
        break;
    }
}

void dpf_network_forward(struct dpf_network *net, int64_t n, const void *x, bool training)
{
    const struct dpf_node *input = &net->model->nodes[0];
    int64_t record = dpf_nn_elements(&input->shape);
    size_t bytes = input->bits ? (size_t)(n * ((record + 7) / 8))
                               : (size_t)(n * record) * sizeof(float);
    net->step += training;
    net->kernels->put(net->layers[0].value, x, bytes);
    for (size_t i = 1; i < net->model->count; i++)
        forward_node(net, i, n, training);
}

const float *dpf_network_output(const struct dpf_network *net)
{
    return net->layers[net->model->output].value;
}
