/* Backward: gradients of values first, then norms, then gradients of parameters. */
#include <math.h>
#include <string.h>

#include "nn/geometry.h"
#include "nn/network.h"

#include "base/banned.h"

/* --------------------------------------------------------------- gradients of values */

/* Operations without parameters. */
static void plain_gradient(struct dpf_network *net, size_t i, int which, int64_t n,
                           float *dx)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[which]];
    const struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[which]].value, *dy = l->gradient;
    int64_t record = dpf_nn_elements(&node->shape), all = n * record;
    int64_t channels = (int64_t)node->shape.dim[0];
    int64_t in[DPF_SPACE], factor[DPF_SPACE] = {1, node->factor, node->factor};
    struct dpf_pool pool;
    struct dpf_lrn lrn;
    switch (node->op) {
    case DPF_OP_INPUT:
    case DPF_OP_DENSE:
    case DPF_OP_CONV:
    case DPF_OP_CONV_TRANSPOSE:
    case DPF_OP_GROUP_NORM:
        break; /* not plain: input_gradient() does them */
    case DPF_OP_MAX_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->max_pool_backward(&pool, n, dy, l->chosen, dx);
        break;
    case DPF_OP_AVERAGE_POOL:
        pool = dpf_nn_pool_of(node, from);
        k->average_pool_backward(&pool, n, dy, dx);
        break;
    case DPF_OP_LRN:
        lrn = dpf_nn_lrn_of(node);
        k->lrn_backward(&lrn, n, x, dy, dx);
        break;
    case DPF_OP_RELU:
    case DPF_OP_SIGMOID:
    case DPF_OP_TANH:
    case DPF_OP_CAP:
        k->unary_backward(dpf_nn_unary_of(node->op), all, l->value, dy, dx);
        break;
    case DPF_OP_SOFTMAX:
        k->softmax_backward(all / channels, channels, l->value, dy, dx);
        break;
    case DPF_OP_MIN_MAX:
        k->min_max_backward(n, record, x, dy, dx);
        break;
    case DPF_OP_BALL:
        k->ball_backward(n, record, x, dy, dx);
        break;
    case DPF_OP_UPSAMPLE:
        dpf_nn_space(&from->shape, in);
        factor[0] = node->shape.rank == 4 ? node->factor : 1;
        k->upsample_backward(n, channels, in, factor, dy, dx);
        break;
    case DPF_OP_CONCAT: {
        int64_t part = (int64_t)from->shape.dim[0];
        int64_t at = which ? (int64_t)net->model->nodes[node->inputs[0]].shape.dim[0] : 0;
        k->copy_columns(all / channels, part, dy + at, channels, dx, part);
        break;
    }
    case DPF_OP_DROPOUT: /* only a training pass is followed by a backward one */
        k->dropout(n, record, node->rate, net->keys, i, dy, dx);
        break;
    case DPF_OP_FLATTEN:
        if (dx != dy)
            k->to_channels_last(n, (int64_t)from->shape.dim[0],
                                dpf_nn_positions(&from->shape), dy, dx);
        break;
    }
}

/* The gradient of input number `which` of node i, into dx. */
static void input_gradient(struct dpf_network *net, size_t i, int which, int64_t n,
                           float *dx)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[which]];
    const float *dy = net->layers[i].gradient, *w = dpf_network_parameter(net, i, 0);
    if (node->op == DPF_OP_DENSE) {
        k->dense_backward_data(n, dpf_nn_elements(&from->shape), node->out, dy, w, dx);
    } else if (node->op == DPF_OP_CONV) {
        struct dpf_conv conv = dpf_nn_conv_of(node, from);
        k->conv_backward_data(&conv, n, dy, w, dx);
    } else if (node->op == DPF_OP_CONV_TRANSPOSE) {
        struct dpf_conv conv = dpf_nn_conv_of(node, from);
        k->conv_forward(&conv, n, dy, w, NULL, false, dx);
    } else if (node->op == DPF_OP_GROUP_NORM) {
        struct dpf_group_norm norm = dpf_nn_group_norm_of(node);
        k->group_norm_backward(&norm, n, net->layers[node->inputs[which]].value, w, dy,
                               dx, NULL, NULL);
    } else {
        plain_gradient(net, i, which, n, dx);
    }
}

/* From the output to the first node with parameters. A node that several read gets the
 * sum of what they say. */
void dpf_network_value_gradients(struct dpf_network *net, int64_t n,
                                 const float *d_output)
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

/* ---------------------------------------------------------------------- all examples */

/* Gradients of node i's parameters, from its gradient as it stands. */
static void parameter_gradients(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    const float *x = net->layers[node->inputs[0]].value, *dy = net->layers[i].gradient;
    float *dw = dpf_network_gradient(net, i, 0), *db = dpf_network_gradient(net, i, 1);
    int64_t in = dpf_nn_elements(&from->shape);
    if (node->op == DPF_OP_GROUP_NORM) {
        struct dpf_group_norm p = dpf_nn_group_norm_of(node);
        k->group_norm_backward(&p, n, x, dpf_network_parameter(net, i, 0), dy, NULL, dw,
                               db);
    } else if (node->op == DPF_OP_DENSE && from->bits) {
        k->dense_bits_backward_weights(n, in, node->out, (const uint8_t *)(const void *)x,
                                       dy, dw, db);
    } else if (node->op == DPF_OP_DENSE) {
        k->gemm(true, false, node->out, in, n, 1, dy, x, 1, dw);
        if (db)
            k->sum_bias(n, node->out, dy, db);
    } else if (node->op == DPF_OP_CONV) {
        struct dpf_conv p = dpf_nn_conv_of(node, from);
        k->conv_backward_weights(&p, n, x, dy, dw, db);
    } else if (node->op == DPF_OP_CONV_TRANSPOSE) { /* its two sides are exchanged */
        struct dpf_conv p = dpf_nn_conv_of(node, from);
        k->conv_backward_weights(&p, n, dy, x, dw, NULL);
        if (db)
            k->sum_bias(n * dpf_nn_positions(&node->shape), node->out, dy, db);
    }
}

/* ------------------------------------------------------------------- single examples */

/* Examples' gradients of a bias, or of scale and shift: small, so they are written down,
 * [n, channels] each, one part behind the other. How many parts. */
static int small_gradients(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    struct dpf_layer *l = &net->layers[i];
    int64_t channels = (int64_t)node->shape.dim[0],
            record = dpf_nn_elements(&node->shape);
    bool norm = node->op == DPF_OP_GROUP_NORM;
    if (!norm && !node->bias)
        return 0;
    k->clear(l->sums, (norm ? 2 : 1) * n * channels);
    for (int64_t e = 0; e < n; e++) {
        const float *dy = l->gradient + e * record;
        float *own = l->sums + e * channels;
        if (norm) {
            struct dpf_group_norm p = dpf_nn_group_norm_of(node);
            k->group_norm_backward(&p, 1, net->layers[node->inputs[0]].value + e * record,
                                   dpf_network_parameter(net, i, 0), dy, NULL, own,
                                   own + n * channels);
        } else {
            k->sum_bias(record / channels, channels, dy, own);
        }
    }
    return norm ? 2 : 1;
}

/* A convolution, and the two sides whose products are its weights' gradients: a
 * transposed one has them exchanged. */
struct products {
    struct dpf_conv shape;
    const float *x, *dy;
    int64_t x_step, dy_step; /* from one example to the next */
};

static struct products products_of(const struct dpf_network *net, size_t i)
{
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    const float *value = net->layers[node->inputs[0]].value;
    const float *gradient = net->layers[i].gradient;
    int64_t in = dpf_nn_elements(&from->shape), out = dpf_nn_elements(&node->shape);
    struct dpf_conv p = dpf_nn_conv_of(node, from);
    return node->op == DPF_OP_CONV_TRANSPOSE
               ? (struct products){p, gradient, value, out, in}
               : (struct products){p, value, gradient, in, out};
}

/* Example e's gradient of a convolution's weights, where the layer keeps it or in its one
 * slot. Always one example at a time: the same call gives the same bits again. */
static float *example_slot(struct dpf_network *net, size_t i, const struct products *p,
                           int64_t e)
{
    const struct dpf_layer *l = &net->layers[i];
    float *slot = l->slots + (l->way == DPF_WAY_KEPT ? e * l->slot : 0);
    net->kernels->conv_example_gradients(&p->shape, 1, p->x + e * p->x_step,
                                         p->dy + e * p->dy_step, slot);
    return slot;
}

/* squares[e] grows by the squared norm of example e's gradient of node i's parameters. */
static void add_norms(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[0]].value;
    int64_t in = dpf_nn_elements(&from->shape), channels = (int64_t)node->shape.dim[0];
    switch (l->way) {
    case DPF_WAY_NONE:
        return; /* no parameters: dpf_network_init() has seen to it */
    case DPF_WAY_OUTER:
        if (from->bits)
            k->dense_bits_example_norms(n, in, node->out, node->bias,
                                        (const uint8_t *)(const void *)x, l->gradient,
                                        net->squares);
        else
            k->dense_example_norms(n, in, node->out, node->bias, x, l->gradient,
                                   net->squares);
        return;
    case DPF_WAY_KEPT:
    case DPF_WAY_AGAIN: {
        struct products p = products_of(net, i);
        /* one after the other, so that the norm finds the gradient still in a cache */
        for (int64_t e = 0; e < n; e++)
            k->row_norms(1, l->slot, example_slot(net, i, &p, e), net->squares + e);
        break;
    }
    case DPF_WAY_SMALL:
        break;
    }
    int parts = small_gradients(net, i, n);
    for (int part = 0; part < parts; part++)
        k->row_norms(n, channels, l->sums + part * n * channels, net->squares);
}

/* The examples' gradients of a convolution's weights, each times its factor. */
static void add_products(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_layer *l = &net->layers[i];
    struct products p = products_of(net, i);
    float *dw = dpf_network_gradient(net, i, 0);
    if (l->way == DPF_WAY_KEPT) {
        k->conv_add_slots(&p.shape, n, net->factors, l->slots, dw);
        return;
    }
    for (int64_t e = 0; e < n; e++)
        if (net->host_factors[e] != 0)
            k->conv_add_slots(&p.shape, 1, net->factors + e, example_slot(net, i, &p, e),
                              dw);
}

/* Add what add_norms has measured, each example times its factor. */
static void add_clipped(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    struct dpf_layer *l = &net->layers[i];
    int64_t channels = (int64_t)node->shape.dim[0];
    int first = 0; /* of the parameters that are written down for each example */
    switch (l->way) {
    case DPF_WAY_NONE:
        return;
    case DPF_WAY_OUTER:
        k->scale_rows(n, dpf_nn_elements(&node->shape), net->factors, l->gradient);
        parameter_gradients(net, i, n);
        return;
    case DPF_WAY_KEPT:
    case DPF_WAY_AGAIN:
        add_products(net, i, n);
        first = 1;
        break;
    case DPF_WAY_SMALL:
        break;
    }
    for (int part = first; part < node->parameter_count; part++)
        k->add_scaled_rows(n, channels, net->factors,
                           l->sums + (part - first) * n * channels,
                           dpf_network_gradient(net, i, part));
}

/* --------------------------------------------------------------------------- clipping */

/* Take examples out of the sums altogether: 0 times what is not finite would be NaN, so
 * what their layers read is cleared as well. */
static void drop_examples(struct dpf_network *net, int64_t n)
{
    float *keep = net->scratch; /* as large as the largest value of all examples */
    float *host = net->host_factors;
    for (int64_t e = 0; e < n; e++)
        host[e] = host[e] != 0;
    net->kernels->put(keep, host, (size_t)n * sizeof *host);
    for (size_t i = 0; i < net->model->count; i++) {
        size_t from = net->model->nodes[i].inputs[0];
        if (net->model->nodes[i].parameter_count && !net->model->nodes[from].bits)
            net->kernels->scale_rows(n, dpf_nn_elements(&net->model->nodes[from].shape),
                                     keep, net->layers[from].value);
    }
    net->kernels->get(host, net->factors, (size_t)n * sizeof *host);
}

/* The largest float that is not above `limit / norm`, or 1 for short ones. */
static float factor_for(double norm, enum dpf_clip_rule rule, double limit)
{
    /* Automatic clipping: clip / (norm + 0.01), the stabiliser of Bu et al. 2022. */
    const double stabiliser = 0.01;
    if (!isfinite(norm)) /* no factor would bring it to the promised norm */
        return 0;
    if (rule != DPF_CLIP_AUTOMATIC && norm <= limit)
        return 1;
    double exact = limit / (rule == DPF_CLIP_AUTOMATIC ? norm + stabiliser : norm);
    float factor = (float)(exact * (1 - 0x1p-50));
    return (double)factor > exact ? nextafterf(factor, 0) : factor;
}

/* Factors from the squares; how many gradients are cut down. */
static int64_t make_factors(struct dpf_network *net, int64_t n, enum dpf_clip_rule rule,
                            double clip_l2)
{
    int64_t clipped = 0, dropped = 0;
    net->kernels->get(net->host_squares, net->squares,
                      (size_t)n * sizeof *net->host_squares);
    for (int64_t e = 0; e < n; e++) {
        /* squares of up to 1,024 layers were added: off by less than a 2^-40th */
        double norm = sqrt(net->host_squares[e]) * (1 + 0x1p-40);
        float factor = factor_for(norm, rule, clip_l2);
        net->host_factors[e] = factor;
        dropped += factor == 0;
        clipped += factor < 1 && norm != 0;
    }
    net->kernels->put(net->factors, net->host_factors,
                      (size_t)n * sizeof *net->host_factors);
    if (dropped)
        drop_examples(net, n);
    return clipped;
}

static bool has_gradient(const struct dpf_network *net, size_t i)
{
    return net->model->nodes[i].parameter_count > 0 && net->layers[i].filled;
}

static void clear_squares(struct dpf_network *net, int64_t n)
{
    for (int64_t e = 0; e < n; e++)
        net->host_squares[e] = 0;
    net->kernels->put(net->squares, net->host_squares,
                      (size_t)n * sizeof *net->host_squares);
}

int64_t dpf_network_backward(struct dpf_network *net, int64_t n, const float *d_output,
                             enum dpf_clip_rule rule, double clip_l2)
{
    int64_t clipped = 0;
    bool whole = rule == DPF_CLIP_FLAT || rule == DPF_CLIP_AUTOMATIC;
    dpf_network_value_gradients(net, n, d_output);
    if (whole) {
        clear_squares(net, n);
        for (size_t i = 0; i < net->model->count; i++)
            if (has_gradient(net, i))
                add_norms(net, i, n);
        clipped = make_factors(net, n, rule, clip_l2);
    }
    for (size_t i = 0; i < net->model->count; i++) {
        if (!has_gradient(net, i))
            continue;
        if (rule == DPF_CLIP_NONE) {
            parameter_gradients(net, i, n);
            continue;
        }
        if (rule == DPF_CLIP_LAYER) {
            clear_squares(net, n);
            add_norms(net, i, n);
            clipped += make_factors(net, n, rule, clip_l2);
        }
        add_clipped(net, i, n);
    }
    return clipped;
}
