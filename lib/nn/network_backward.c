/* Backward: gradients of values first, then norms, then gradients of parameters. */
#include <math.h>
#include <string.h>

#include "nn/geometry.h"
#include "nn/network.h"

#include "base/banned.h"

/* ----------------------------------------------------------------- gradients of values
 */

/* The gradient of input number `which` of node i, into dx. */
static void input_gradient(struct dpf_network *net, size_t i, int which, int64_t n,
                           float *dx)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[which]];
    const struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[which]].value, *dy = l->gradient;
    int64_t record = dpf_nn_elements(&node->shape), all = n * record;
    struct dpf_conv conv;
    struct dpf_pool pool;
    struct dpf_lrn lrn;
    struct dpf_group_norm norm;
    int64_t in[DPF_SPACE], factor[DPF_SPACE] = {1, node->factor, node->factor};
    switch (node->op) {
    case DPF_OP_DENSE:
        k->gemm(false, false, n, dpf_nn_elements(&from->shape), node->out, 1, dy,
                l->parameters[0], 0, dx);
        break;
    case DPF_OP_CONV:
        conv = dpf_nn_conv_of(node, from);
        k->conv_backward_data(&conv, n, dy, l->parameters[0], dx);
        break;
    case DPF_OP_CONV_TRANSPOSE:
        conv = dpf_nn_conv_of(node, from);
        k->conv_forward(&conv, n, dy, l->parameters[0], NULL, dx);
        break;
    case DPF_OP_MAX_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->max_pool_backward(&pool, n, dy, l->chosen, dx);
        break;
    case DPF_OP_AVERAGE_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->average_pool_backward(&pool, n, dy, dx);
        break;
    case DPF_OP_RELU:
    case DPF_OP_SIGMOID:
    case DPF_OP_TANH:
        k->unary_backward(dpf_nn_unary_of(node->op), all, l->value, dy, dx);
        break;
    case DPF_OP_SOFTMAX:
        k->softmax_backward(n, record, l->value, dy, dx);
        break;
    case DPF_OP_LRN:
        lrn = dpf_nn_lrn_of(node);
        k->lrn_backward(&lrn, n, x, dy, dx);
        break;
    case DPF_OP_MIN_MAX:
        k->min_max_backward(n, record, x, dy, dx);
        break;
    case DPF_OP_GROUP_NORM:
        norm = dpf_nn_group_norm_of(node);
        k->group_norm_backward(&norm, n, x, l->parameters[0], dy, dx, NULL, NULL);
        break;
    case DPF_OP_UPSAMPLE:
        dpf_nn_space(&from->shape, in);
        factor[0] = node->shape.rank == 4 ? node->factor : 1;
        k->upsample_backward(n * (int64_t)node->shape.dim[0], in, factor, dy, dx);
        break;
    case DPF_OP_CONCAT: {
        int64_t part = dpf_nn_elements(&from->shape);
        int64_t at =
            which ? dpf_nn_elements(&net->model->nodes[node->inputs[0]].shape) : 0;
        k->copy_columns(n, part, dy + at, record, dx, part);
        break;
    }
    case DPF_OP_DROPOUT: /* only a training pass is followed by a backward one */
        k->dropout(all, node->rate, net->seed, net->step * DPF_MODEL_MAX_NODES + i, dy,
                   dx);
        break;
    case DPF_OP_FLATTEN:
        k->copy_columns(1, all, dy, all, dx, all);
        break;
    case DPF_OP_INPUT:
    case DPF_OP_BALL:
        break;
    }
}

/* From the output to the first node with parameters. A node that several read gets the
 * sum of what they say. */
static void value_gradients(struct dpf_network *net, int64_t n, const float *d_output)
{
    const struct dpf_model *m = net->model;
    struct dpf_layer *last = &net->layers[m->output];
    for (size_t i = 0; i < m->count; i++)
        net->layers[i].filled = false;
    if (!last->trains)
        return;
    net->kernels->put(last->gradient, d_output,
                      (size_t)(n * dpf_nn_elements(&m->nodes[m->output].shape)) *
                          sizeof *d_output);
    last->filled = true;
    for (size_t i = m->output + 1; i-- > 0;) {
        const struct dpf_node *node = &m->nodes[i];
        for (int d = 0; net->layers[i].filled && d < node->input_count; d++) {
            struct dpf_layer *to = &net->layers[node->inputs[d]];
            if (!to->trains)
                continue;
            input_gradient(net, i, d, n, to->filled ? net->scratch : to->gradient);
            if (to->filled)
                net->kernels->add(n * dpf_nn_elements(&m->nodes[node->inputs[d]].shape),
                                  net->scratch, to->gradient);
            to->filled = true;
        }
    }
}

/* -------------------------------------------------------------------------- parameters
 */

static void parameter_gradients(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[0]].value;
    float *dw = l->gradients[0], *db = node->bias ? l->gradients[1] : NULL;
    int64_t in = dpf_nn_elements(&from->shape);
    if (node->op == DPF_OP_GROUP_NORM) {
        struct dpf_group_norm p = dpf_nn_group_norm_of(node);
        k->group_norm_backward(&p, n, x, l->parameters[0], l->gradient, NULL,
                               l->gradients[0], l->gradients[1]);
    } else if (node->op == DPF_OP_DENSE && from->bits) {
        k->dense_bits_backward_weights(n, in, node->out, (const uint8_t *)(const void *)x,
                                       l->gradient, dw, db);
    } else if (node->op == DPF_OP_DENSE) {
        k->gemm(true, false, node->out, in, n, 1, l->gradient, x, 1, dw);
        if (db)
            k->sum_bias(n, node->out, 1, l->gradient, db);
    } else if (node->op == DPF_OP_CONV) {
        struct dpf_conv p = dpf_nn_conv_of(node, from);
        k->conv_backward_weights(&p, n, x, l->gradient, dw, db);
    } else { /* transposed: the gradient is its input, the input its gradient */
        struct dpf_conv p = dpf_nn_conv_of(node, from);
        k->conv_backward_weights(&p, n, l->gradient, x, dw, NULL);
        if (db)
            k->sum_bias(n, node->out, dpf_nn_positions(&node->shape), l->gradient, db);
    }
}

/* Squared norms of vectors [n, width] that stand in net->sums. */
static void add_sum_norms(struct dpf_network *net, int64_t n, int64_t width)
{
    /* dense_example_norms without inputs counts the bias alone: the sum of squares */
    net->kernels->dense_example_norms(n, 0, width, true, net->sums, net->sums,
                                      net->squares);
}

/* squares[e] grows by the squared norm of example e's gradient of node i's parameters. */
static void add_norms(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[0]].value;
    int64_t record = dpf_nn_elements(&node->shape), in = dpf_nn_elements(&from->shape);
    int64_t channels = (int64_t)node->shape.dim[0];
    if (node->op == DPF_OP_DENSE) {
        if (from->bits)
            k->dense_bits_example_norms(n, in, node->out, node->bias,
                                        (const uint8_t *)(const void *)x, l->gradient,
                                        net->squares);
        else
            k->dense_example_norms(n, in, node->out, node->bias, x, l->gradient,
                                   net->squares);
        return;
    }
    if (node->op == DPF_OP_CONV) {
        struct dpf_conv p = dpf_nn_conv_of(node, from);
        k->conv_example_norms(&p, n, node->bias, x, l->gradient, net->squares);
        return;
    }
    /* What is left has parameters a channel: small enough to be written down. */
    int parts = node->op == DPF_OP_GROUP_NORM ? 2 : node->bias ? 1 : 0;
    if (node->op == DPF_OP_CONV_TRANSPOSE) {
        struct dpf_conv p = dpf_nn_conv_of(node, from);
        k->conv_example_norms(&p, n, false, l->gradient, x, net->squares);
    }
    for (int part = 0; part < parts; part++) {
        dpf_network_clear(k, net->sums, n * channels);
        for (int64_t e = 0; e < n; e++) {
            float *own = net->sums + e * channels;
            struct dpf_group_norm p = dpf_nn_group_norm_of(node);
            if (node->op == DPF_OP_GROUP_NORM)
                k->group_norm_backward(&p, 1, x + e * in, l->parameters[0],
                                       l->gradient + e * record, NULL, part ? NULL : own,
                                       part ? own : NULL);
            else
                k->sum_bias(1, channels, record / channels, l->gradient + e * record,
                            own);
        }
        add_sum_norms(net, n, channels);
    }
}

/* -------------------------------------------------------------------------- clipping */

/* Factors min(1, clip / norm) from the squares; how many are below 1. A gradient without
 * a finite norm is left out: no factor would bring it to the promised norm. */
static int64_t make_factors(struct dpf_network *net, int64_t n, double clip_l2)
{
    int64_t clipped = 0;
    net->kernels->get(net->host, net->squares, (size_t)n * sizeof *net->host);
    for (int64_t e = 0; e < n; e++) {
        double norm = sqrt((double)net->host[e]);
        double factor = norm <= clip_l2 ? 1 : isfinite(norm) ? clip_l2 / norm : 0;
        clipped += factor < 1;
        net->host[e] = (float)factor;
    }
    net->kernels->put(net->factors, net->host, (size_t)n * sizeof *net->host);
    return clipped;
}

static void scale_layer(struct dpf_network *net, size_t i, int64_t n)
{
    net->kernels->scale_rows(n, dpf_nn_elements(&net->model->nodes[i].shape),
                             net->factors, net->layers[i].gradient);
}

static bool has_gradient(const struct dpf_network *net, size_t i)
{
    return net->model->nodes[i].parameter_count > 0 && net->layers[i].filled;
}

int64_t dpf_network_backward(struct dpf_network *net, int64_t n, const float *d_output,
                             enum dpf_clip_rule rule, double clip_l2)
{
    int64_t clipped = 0;
    value_gradients(net, n, d_output);
    if (rule == DPF_CLIP_FLAT) {
        dpf_network_clear(net->kernels, net->squares, n);
        for (size_t i = 0; i < net->model->count; i++)
            if (has_gradient(net, i))
                add_norms(net, i, n);
        clipped = make_factors(net, n, clip_l2);
    }
    for (size_t i = 0; i < net->model->count; i++) {
        if (!has_gradient(net, i))
            continue;
        if (rule == DPF_CLIP_LAYER) {
            dpf_network_clear(net->kernels, net->squares, n);
            add_norms(net, i, n);
            clipped += make_factors(net, n, clip_l2);
        }
        if (rule != DPF_CLIP_NONE)
            scale_layer(net, i, n);
        parameter_gradients(net, i, n);
    }
    return clipped;
}
