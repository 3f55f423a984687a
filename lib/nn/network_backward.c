/* Backward: gradients of values first, then norms, then gradients of parameters. */
#include <math.h>
#include <string.h>

#include "nn/geometry.h"
#include "nn/network.h"

#include "base/banned.h"

/* Of norms that were measured on one computation of a gradient and hold for another. */
static const double REMEASURED = 0x1p-8;

/* --------------------------------------------------------------- gradients of values */

/* Operations without parameters and windows. */
static void simple_gradient(struct dpf_network *net, size_t i, int which, int64_t n,
                            uint64_t first, float *dx)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[which]];
    const struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[which]].value, *dy = l->gradient;
    int64_t record = dpf_nn_elements(&node->shape), all = n * record;
    int64_t channels = (int64_t)node->shape.dim[0];
    int64_t in[DPF_SPACE], factor[DPF_SPACE] = {1, node->factor, node->factor};
    switch (node->op) {
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
        k->dropout(n, record, node->rate, net->seed,
                   dpf_network_mask_stream(net, i, first), dy, dx);
        break;
    case DPF_OP_FLATTEN:
        if (dx != dy)
            k->to_channels_last(n, (int64_t)from->shape.dim[0],
                                dpf_nn_positions(&from->shape), dy, dx);
        break;
    default:
        break;
    }
}

/* The gradient of input number `which` of node i, into dx. */
static void input_gradient(struct dpf_network *net, size_t i, int which, int64_t n,
                           uint64_t first, float *dx)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[which]];
    const struct dpf_layer *l = &net->layers[i];
    const float *x = net->layers[node->inputs[which]].value, *dy = l->gradient;
    const float *w = dpf_network_parameter(net, i, 0);
    struct dpf_conv conv;
    struct dpf_pool pool;
    struct dpf_lrn lrn;
    struct dpf_group_norm norm;
    switch (node->op) {
    case DPF_OP_DENSE:
        k->gemm(false, false, n, dpf_nn_elements(&from->shape), node->out, 1, dy, w, 0,
                dx);
        break;
    case DPF_OP_CONV:
        conv = dpf_nn_conv_of(node, from);
        k->conv_backward_data(&conv, n, dy, w, dx);
        break;
    case DPF_OP_CONV_TRANSPOSE:
        conv = dpf_nn_conv_of(node, from);
        k->conv_forward(&conv, n, dy, w, NULL, false, dx);
        break;
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
    case DPF_OP_GROUP_NORM:
        norm = dpf_nn_group_norm_of(node);
        k->group_norm_backward(&norm, n, x, w, dy, dx, NULL, NULL);
        break;
    default:
        simple_gradient(net, i, which, n, first, dx);
    }
}

/* From the output to the first node with parameters. A node that several read gets the
 * sum of what they say. */
static void value_gradients(struct dpf_network *net, int64_t n, uint64_t first,
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
            input_gradient(net, i, d, n, first, to->filled ? net->scratch : to->gradient);
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
    } else { /* transposed: the gradient is its input, the input its gradient */
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

/* Gradients that are not kept are computed a second time for the sum, in another order,
 * and where large terms cancel the two may differ by more than their size: by 2 P 2^-24 B
 * for sums over P positions, B = sum |patch| |dy| <= sqrt(K) |x| |dy| for kernels of K
 * places. (a + b)^2 <= (1 + h) a^2 + (1 + 1/h) b^2: the second term is added here, the
 * first is left to make_factors(). */
static void allow_for_rounding(struct dpf_network *net, const struct dpf_conv *p,
                               int64_t n, const float *x, int64_t xs, const float *dy,
                               int64_t ys)
{
    const struct dpf_kernels *k = net->kernels;
    double positions = (double)(p->out[0] * p->out[1] * p->out[2]);
    double places = (double)(p->kernel[0] * p->kernel[1] * p->kernel[2]);
    double share = 2 * positions * 0x1p-24;
    float *own = net->host, *other = net->host + net->capacity;
    size_t bytes = (size_t)n * sizeof *own;
    k->clear(net->factors, n);
    k->row_norms(n, xs, x, net->factors);
    k->get(own, net->factors, bytes);
    k->clear(net->factors, n);
    k->row_norms(n, ys, dy, net->factors);
    k->get(other, net->factors, bytes);
    for (int64_t e = 0; e < n; e++)
        other[e] *=
            (float)(share * share * places * (1 + 1 / REMEASURED) * 1.01) * own[e];
    k->get(own, net->squares, bytes);
    for (int64_t e = 0; e < n; e++)
        own[e] += other[e];
    k->put(net->squares, own, bytes);
}

static void conv_norms(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    struct dpf_layer *l = &net->layers[i];
    struct dpf_conv p = dpf_nn_conv_of(node, from);
    bool up = node->op == DPF_OP_CONV_TRANSPOSE;
    const float *value = net->layers[node->inputs[0]].value;
    const float *x = up ? l->gradient : value, *dy = up ? value : l->gradient;
    int64_t xs = dpf_nn_elements(up ? &node->shape : &from->shape);
    int64_t ys = dpf_nn_elements(up ? &from->shape : &node->shape);
    if (l->way == DPF_NORM_GHOST) {
        k->conv_ghost_norms(&p, n, x, dy, net->squares);
        return;
    }
    /* One after the other, so that the norm finds the gradient still in a cache. */
    for (int64_t e = 0; e < n; e++) {
        float *slot = l->slots + (l->way == DPF_NORM_KEPT ? e * l->slot : 0);
        k->conv_example_gradients(&p, 1, x + e * xs, dy + e * ys, slot);
        k->row_norms(1, l->slot, slot, net->squares + e);
    }
    if (l->way == DPF_NORM_DIRECT)
        allow_for_rounding(net, &p, n, x, xs, dy, ys);
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
    if (node->op == DPF_OP_DENSE && from->bits) {
        k->dense_bits_example_norms(n, in, node->out, node->bias,
                                    (const uint8_t *)(const void *)x, l->gradient,
                                    net->squares);
        return;
    }
    if (node->op == DPF_OP_DENSE) {
        k->dense_example_norms(n, in, node->out, node->bias, x, l->gradient,
                               net->squares);
        return;
    }
    if (node->op != DPF_OP_GROUP_NORM)
        conv_norms(net, i, n);
    int parts = small_gradients(net, i, n);
    for (int part = 0; part < parts; part++)
        k->row_norms(n, channels, l->sums + part * n * channels, net->squares);
}

/* Add what add_norms has measured, each example times its factor. */
static void add_clipped(struct dpf_network *net, size_t i, int64_t n)
{
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    struct dpf_layer *l = &net->layers[i];
    int64_t channels = (int64_t)node->shape.dim[0];
    bool norm = node->op == DPF_OP_GROUP_NORM;
    bool kept = node->op != DPF_OP_DENSE && (norm || l->way == DPF_NORM_KEPT);
    if (!kept) {
        k->scale_rows(n, dpf_nn_elements(&node->shape), net->factors, l->gradient);
        parameter_gradients(net, i, n);
        return;
    }
    if (!norm) {
        struct dpf_conv p = dpf_nn_conv_of(node, &net->model->nodes[node->inputs[0]]);
        k->conv_add_slots(&p, n, net->factors, l->slots, dpf_network_gradient(net, i, 0));
    }
    for (int part = norm ? 0 : 1; part < node->parameter_count; part++)
        k->add_scaled_rows(n, channels, net->factors,
                           l->sums + (norm ? part : 0) * n * channels,
                           dpf_network_gradient(net, i, part));
}

/* --------------------------------------------------------------------------- clipping */

/* Take examples out of the sums altogether: 0 times what is not finite would be NaN, so
 * what their layers read is cleared as well. */
static void drop_examples(struct dpf_network *net, int64_t n)
{
    for (int64_t e = 0; e < n; e++)
        net->host[e] = net->host[e] != 0;
    net->kernels->put(net->squares, net->host, (size_t)n * sizeof *net->host);
    for (size_t i = 0; i < net->model->count; i++) {
        size_t from = net->model->nodes[i].inputs[0];
        if (net->model->nodes[i].parameter_count && !net->model->nodes[from].bits)
            net->kernels->scale_rows(n, dpf_nn_elements(&net->model->nodes[from].shape),
                                     net->squares, net->layers[from].value);
    }
}

/* Factors from the squares; how many gradients are cut down. A gradient without a finite
 * norm is left out: no factor would bring it to the promised norm. */
static int64_t make_factors(struct dpf_network *net, int64_t n, enum dpf_clip_rule rule,
                            double clip_l2)
{
    /* Automatic clipping: clip / (norm + 0.01), the stabiliser of Bu et al. 2022. */
    const double stabiliser = 0.01;
    int64_t clipped = 0, dropped = 0;
    net->kernels->get(net->host, net->squares, (size_t)n * sizeof *net->host);
    for (int64_t e = 0; e < n; e++) {
        double norm = sqrt((double)net->host[e] * (net->remeasured ? 1 + REMEASURED : 1));
        double factor = rule == DPF_CLIP_AUTOMATIC ? clip_l2 / (norm + stabiliser)
                        : norm <= clip_l2          ? 1
                                                   : clip_l2 / norm;
        if (!isfinite(norm)) {
            factor = 0;
            dropped++;
        }
        clipped += factor * norm < norm;
        net->host[e] = (float)factor;
        if ((double)net->host[e] > factor) /* never round towards more than was allowed */
            net->host[e] = nextafterf(net->host[e], 0);
    }
    net->kernels->put(net->factors, net->host, (size_t)n * sizeof *net->host);
    if (dropped)
        drop_examples(net, n);
    return clipped + dropped;
}

static bool has_gradient(const struct dpf_network *net, size_t i)
{
    return net->model->nodes[i].parameter_count > 0 && net->layers[i].filled;
}

int64_t dpf_network_backward(struct dpf_network *net, int64_t n, uint64_t first,
                             const float *d_output, enum dpf_clip_rule rule,
                             double clip_l2)
{
    int64_t clipped = 0;
    bool whole = rule == DPF_CLIP_FLAT || rule == DPF_CLIP_AUTOMATIC;
    value_gradients(net, n, first, d_output);
    if (whole) {
        net->kernels->clear(net->squares, n);
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
            net->kernels->clear(net->squares, n);
            add_norms(net, i, n);
            clipped += make_factors(net, n, rule, clip_l2);
        }
        add_clipped(net, i, n);
    }
    return clipped;
}
