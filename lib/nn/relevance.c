#include "nn/relevance.h"

#include <stdlib.h>

#include "base/memory.h"
#include "nn/geometry.h"

#include "base/banned.h"

const char *const dpf_relevance_rules[] = {"epsilon", "alpha-beta", "z-plus", NULL};
const char *const dpf_relevance_origins[] = {"true", "top", "all", NULL};

enum side { PRO, CON };

/* A node whose results are weighted sums of what it reads. */
struct linear {
    const struct dpf_kernels *kernels;
    const struct dpf_node *node, *from;
    int64_t n, in, out, positions; /* in, out: values of a record; positions of results */
    struct dpf_conv conv;
    const float *x, *w, *bias; /* bias may be NULL */
};

/* ---------------------------------------------------------------------------- memory */

enum dpf_status dpf_relevance_init(struct dpf_relevance *r, struct dpf_network *net,
                                   const struct dpf_relevance_plan *plan,
                                   struct dpf_error *e)
{
    const struct dpf_model *m = net->model;
    const struct dpf_kernels *k = net->kernels;
    int64_t most = 1, weights = 1, places = 1;
    *r = (struct dpf_relevance){.plan = *plan, .net = net};
    for (size_t i = 0; i < m->count; i++) {
        const struct dpf_node *node = &m->nodes[i];
        int64_t values = dpf_nn_elements(&node->shape);
        int64_t own =
            node->parameter_count ? dpf_nn_elements(&node->parameters[0]) : (int64_t)1;
        most = values > most ? values : most;
        weights = own > weights ? own : weights;
        if (dpf_nn_positions(&node->shape) > places)
            places = dpf_nn_positions(&node->shape);
    }
    size_t values = (size_t)(most * net->capacity) * sizeof(float);
    size_t spots = (size_t)(places * net->capacity) * sizeof(float);
    bool both_sides = plan->rule != DPF_RELEVANCE_EPSILON;
    bool good = true;
    for (int side = 0; side < (both_sides ? 2 : 1); side++)
        good = good && (r->share[side] = k->alloc(values));
    for (int side = 0; both_sides && side < 2; side++)
        good = good && (r->sum[side] = k->alloc(values));
    for (int side = 0; plan->spread_bias && side < 2; side++)
        good = good && (r->places[side] = k->alloc(spots));
    int64_t ones = most > weights ? most : weights;
    float *host = dpf_calloc((size_t)ones, sizeof *host);
    good = good && host && (r->back = k->alloc(values)) && (r->in = k->alloc(values)) &&
           (r->weights = k->alloc((size_t)weights * sizeof(float))) &&
           (r->bias = k->alloc((size_t)most * sizeof(float))) &&
           (r->ones = k->alloc((size_t)ones * sizeof(float)));
    if (m->nodes[0].bits) {
        size_t in = (size_t)dpf_nn_elements(&m->nodes[0].shape);
        r->bits = dpf_calloc((size_t)net->capacity, (in + 7) / 8);
        r->host = dpf_calloc((size_t)net->capacity * in, sizeof *r->host);
        r->numbers = k->alloc((size_t)net->capacity * in * sizeof *r->numbers);
        good = good && r->bits && r->host && r->numbers;
    }
    if (good) {
        for (int64_t i = 0; i < ones; i++)
            host[i] = 1;
        k->put(r->ones, host, (size_t)ones * sizeof *host);
    } else {
        dpf_relevance_release(r);
    }
    free(host);
    return good ? DPF_OK : dpf_fail_memory(e);
}

void dpf_relevance_release(struct dpf_relevance *r)
{
    if (!r->net)
        return;
    const struct dpf_kernels *k = r->net->kernels;
    for (int side = 0; side < 2; side++) {
        k->release(r->share[side]);
        k->release(r->sum[side]);
        k->release(r->places[side]);
    }
    k->release(r->back);
    k->release(r->in);
    k->release(r->weights);
    k->release(r->bias);
    k->release(r->ones);
    free(r->bits);
    k->release(r->numbers);
    free(r->host);
    *r = (struct dpf_relevance){0};
}

/* --------------------------------------------------------------------- weighted sums */

/* y = x w, without the bias. */
static void sum_up(const struct linear *l, const float *x, const float *w, float *y)
{
    const struct dpf_kernels *k = l->kernels;
    if (l->node->op == DPF_OP_CONV)
        k->conv_forward(&l->conv, l->n, x, w, NULL, false, y);
    else if (l->node->op == DPF_OP_CONV_TRANSPOSE)
        k->conv_backward_data(&l->conv, l->n, x, w, y);
    else /* rows of weights belong to bits, where these are read */
        k->gemm(false, !l->from->bits, l->n, l->out, l->in, 1, x, w, 0, y);
}

/* x = s w', the same sums backwards. */
static void hand_back(const struct linear *l, const float *s, const float *w, float *x)
{
    const struct dpf_kernels *k = l->kernels;
    if (l->node->op == DPF_OP_CONV)
        k->conv_backward_data(&l->conv, l->n, s, w, x);
    else if (l->node->op == DPF_OP_CONV_TRANSPOSE)
        k->conv_forward(&l->conv, l->n, s, w, NULL, false, x);
    else
        k->gemm(false, l->from->bits, l->n, l->in, l->out, 1, s, w, 0, x);
}

/* The bias's share of every result, in equal parts to the values that the result is made
 * of: a convolution's at the border is made of fewer. x grows. */
static void spread_bias(struct dpf_relevance *r, const struct linear *l, const float *s,
                        const float *bias, float *x)
{
    const struct dpf_kernels *k = l->kernels;
    bool up = l->node->op == DPF_OP_CONV_TRANSPOSE;
    int64_t channels = (int64_t)l->from->shape.dim[0], p = l->positions;
    if (l->node->op == DPF_OP_DENSE) {
        k->gemm(false, false, l->n, 1, l->out, 1, s, bias, 0, r->places[0]);
        k->gemm(false, false, l->n, l->in, 1, 1 / (double)l->in, r->places[0], r->ones, 1,
                x);
        return;
    }
    struct dpf_conv one = l->conv; /* its geometry, with a single channel at both ends */
    one.in_channels = one.out_channels = 1;
    float *share = r->places[0], *count = r->places[1];
    k->gemm(false, false, l->n * p, 1, l->node->out, 1, s, bias, 0, share);
    if (up)
        k->conv_backward_data(&one, 1, r->ones, r->ones, count);
    else
        k->conv_forward(&one, 1, r->ones, r->ones, NULL, false, count);
    for (int64_t e = 0; e < l->n; e++)
        k->relevance_share(p, share + e * p, count, 0, share + e * p);
    if (up)
        k->conv_forward(&one, l->n, share, r->ones, NULL, false, count);
    else
        k->conv_backward_data(&one, l->n, share, r->ones, count);
    k->gemm(false, false, l->n * dpf_nn_positions(&l->from->shape), channels, 1,
            1 / (double)channels, count, r->ones, 1, x);
}

static void epsilon_rule(struct dpf_relevance *r, const struct linear *l,
                         const struct dpf_layer *own, float *x)
{
    const struct dpf_kernels *k = l->kernels;
    k->relevance_share(l->n * l->out, own->gradient, own->value, r->plan.mu, r->share[0]);
    hand_back(l, r->share[0], l->w, x);
    k->multiply(l->n * l->in, l->x, x);
    if (l->bias && r->plan.spread_bias)
        spread_bias(r, l, r->share[0], l->bias, x);
}

/* Whether a node's values cannot be negative, whatever the input. */
static bool non_negative(const struct dpf_model *m, size_t i)
{
    const struct dpf_node *node = &m->nodes[i];
    bool all = true;
    switch (node->op) {
    case DPF_OP_RELU:
    case DPF_OP_SIGMOID:
    case DPF_OP_CAP:
    case DPF_OP_SOFTMAX:
    case DPF_OP_MIN_MAX:
        return true;
    case DPF_OP_MAX_POOL:
    case DPF_OP_AVERAGE_POOL:
    case DPF_OP_LRN:
    case DPF_OP_DROPOUT:
    case DPF_OP_FLATTEN:
    case DPF_OP_CONCAT:
    case DPF_OP_UPSAMPLE:
        for (int d = 0; d < node->input_count; d++)
            all = all && non_negative(m, node->inputs[d]);
        return all;
    case DPF_OP_INPUT:
        return node->bits;
    case DPF_OP_DENSE:
    case DPF_OP_CONV:
    case DPF_OP_CONV_TRANSPOSE:
    case DPF_OP_TANH:
    case DPF_OP_GROUP_NORM:
    case DPF_OP_BALL:
        break;
    }
    return false;
}

/* What of the sums has one sign: values and weights of the same sign, or of different
 * ones, and the bias of that sign. */
static void sum_side(struct dpf_relevance *r, const struct linear *l, enum side side,
                     int signs)
{
    const struct dpf_kernels *k = l->kernels;
    int64_t weights = dpf_nn_elements(&l->node->parameters[0]);
    for (int sign = 0; sign < signs; sign++) {
        k->take_part(sign != 0, l->n * l->in, l->x, r->in);
        k->take_part((sign != 0) != (side == CON), weights, l->w, r->weights);
        sum_up(l, r->in, r->weights, sign == 0 ? r->sum[side] : r->share[0]);
        if (sign != 0)
            k->add(l->n * l->out, r->share[0], r->sum[side]);
    }
    if (!l->bias)
        return;
    k->take_part(side == CON, l->node->out, l->bias, r->bias);
    k->add_bias(l->n * l->out / l->node->out, l->node->out, r->bias, r->sum[side]);
}

static void alpha_beta_rule(struct dpf_relevance *r, const struct linear *l,
                            const struct dpf_layer *own, bool both_signs, float *x)
{
    const struct dpf_kernels *k = l->kernels;
    int64_t weights = dpf_nn_elements(&l->node->parameters[0]), in = l->n * l->in;
    double alpha = r->plan.rule == DPF_RELEVANCE_Z_PLUS ? 1 : r->plan.alpha;
    int signs = both_signs ? 2 : 1;
    sum_side(r, l, PRO, signs);
    sum_side(r, l, CON, signs);
    k->relevance_split(l->n * l->out, alpha, alpha - 1, own->gradient, r->sum[PRO],
                       r->sum[CON], r->share[PRO], r->share[CON]);
    k->clear(x, in);
    for (int sign = 0; sign < signs; sign++) {
        k->take_part(sign != 0, in, l->x, r->in);
        for (int side = 0; side < 2; side++) {
            k->take_part((sign != 0) != (side == CON), weights, l->w, r->weights);
            hand_back(l, r->share[side], r->weights, r->back);
            k->multiply(in, r->in, r->back);
            k->add(in, r->back, x);
        }
    }
    for (int side = 0; l->bias && r->plan.spread_bias && side < 2; side++) {
        k->take_part(side == CON, l->node->out, l->bias, r->bias);
        spread_bias(r, l, r->share[side], r->bias, x);
    }
}

/* Packed bits as numbers. */
static const float *unpack(struct dpf_relevance *r, int64_t n)
{
    struct dpf_network *net = r->net;
    int64_t in = dpf_nn_elements(&net->model->nodes[0].shape), row = (in + 7) / 8;
    net->kernels->get(r->bits, net->layers[0].value, (size_t)(n * row));
    for (int64_t e = 0; e < n; e++)
        for (int64_t i = 0; i < in; i++)
            r->host[e * in + i] =
                (float)(r->bits[e * row + i / 8] >> (unsigned)(i % 8) & 1U);
    net->kernels->put(r->numbers, r->host, (size_t)(n * in) * sizeof *r->host);
    return r->numbers;
}

static void linear_relevance(struct dpf_relevance *r, size_t i, int64_t n, float *x)
{
    struct dpf_network *net = r->net;
    const struct dpf_node *node = &net->model->nodes[i];
    size_t from = node->inputs[0];
    struct linear l = {.kernels = net->kernels,
                       .node = node,
                       .from = &net->model->nodes[from],
                       .n = n,
                       .out = dpf_nn_elements(&node->shape),
                       .positions = dpf_nn_positions(&node->shape),
                       .x = net->layers[from].value,
                       .w = dpf_network_parameter(net, i, 0),
                       .bias = node->bias ? dpf_network_parameter(net, i, 1) : NULL};
    l.in = dpf_nn_elements(&l.from->shape);
    if (node->op != DPF_OP_DENSE)
        l.conv = dpf_nn_conv_of(node, l.from);
    if (l.from->bits)
        l.x = unpack(r, n);
    if (r->plan.rule == DPF_RELEVANCE_EPSILON)
        epsilon_rule(r, &l, &net->layers[i], x);
    else
        alpha_beta_rule(r, &l, &net->layers[i], !non_negative(net->model, from), x);
}

/* ----------------------------------------------------------------------- other nodes */

static void pool_relevance(struct dpf_relevance *r, size_t i, int64_t n, float *x)
{
    const struct dpf_network *net = r->net;
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[0]];
    const struct dpf_layer *own = &net->layers[i];
    struct dpf_pool pool = dpf_nn_pool_of(node, from);
    if (node->op == DPF_OP_MAX_POOL) {
        k->max_pool_backward(&pool, n, own->gradient, own->chosen, x);
        return;
    }
    k->relevance_share(n * dpf_nn_elements(&node->shape), own->gradient, own->value,
                       r->plan.mu, r->share[0]);
    k->average_pool_backward(&pool, n, r->share[0], x);
    k->multiply(n * dpf_nn_elements(&from->shape), net->layers[node->inputs[0]].value, x);
}

/* Relevance of input number `which` of node i, into x. */
static void input_relevance(struct dpf_relevance *r, size_t i, int which, int64_t n,
                            float *x)
{
    const struct dpf_network *net = r->net;
    const struct dpf_kernels *k = net->kernels;
    const struct dpf_node *node = &net->model->nodes[i];
    const struct dpf_node *from = &net->model->nodes[node->inputs[which]];
    const float *own = net->layers[i].gradient;
    int64_t all = n * dpf_nn_elements(&node->shape);
    int64_t channels = (int64_t)node->shape.dim[0], part = (int64_t)from->shape.dim[0];
    int64_t in[DPF_SPACE], factor[DPF_SPACE] = {1, node->factor, node->factor};
    switch (node->op) {
    case DPF_OP_DENSE:
    case DPF_OP_CONV:
    case DPF_OP_CONV_TRANSPOSE:
        linear_relevance(r, i, n, x);
        break;
    case DPF_OP_MAX_POOL:
    case DPF_OP_AVERAGE_POOL:
        pool_relevance(r, i, n, x);
        break;
    case DPF_OP_UPSAMPLE:
        dpf_nn_space(&from->shape, in);
        factor[0] = node->shape.rank == 4 ? node->factor : 1;
        k->upsample_backward(n, channels, in, factor, own, x);
        break;
    case DPF_OP_CONCAT:
        k->copy_columns(all / channels, part, own + (which ? channels - part : 0),
                        channels, x, part);
        break;
    case DPF_OP_FLATTEN:
        k->to_channels_last(n, part, dpf_nn_positions(&from->shape), own, x);
        break;
    case DPF_OP_BALL: /* the first value is the radius of all others */
        k->clear(x, n * (channels + 1));
        k->copy_columns(n, channels, own, channels, x + 1, channels + 1);
        break;
    case DPF_OP_INPUT:
        break;
    case DPF_OP_RELU:
    case DPF_OP_SIGMOID:
    case DPF_OP_TANH:
    case DPF_OP_CAP:
    case DPF_OP_SOFTMAX:
    case DPF_OP_LRN:
    case DPF_OP_MIN_MAX:
    case DPF_OP_GROUP_NORM:
    case DPF_OP_DROPOUT: /* value by value */
        k->copy_columns(1, all, own, all, x, all);
        break;
    }
}

void dpf_relevance_propagate(struct dpf_relevance *r, int64_t n, const float *output)
{
    struct dpf_network *net = r->net;
    const struct dpf_model *m = net->model;
    struct dpf_layer *last = &net->layers[m->output];
    for (size_t i = 0; i < m->count; i++)
        net->layers[i].filled = false;
    net->kernels->put(last->gradient, output,
                      (size_t)(n * dpf_nn_elements(&m->nodes[m->output].shape)) *
                          sizeof *output);
    last->filled = true;
    for (size_t i = m->output; i > r->plan.node; i--)
        for (int d = 0; net->layers[i].filled && d < m->nodes[i].input_count; d++) {
            struct dpf_layer *to = &net->layers[m->nodes[i].inputs[d]];
            int64_t count = n * dpf_nn_elements(&m->nodes[m->nodes[i].inputs[d]].shape);
            input_relevance(r, i, d, n, to->filled ? net->scratch : to->gradient);
            if (to->filled)
                net->kernels->add(count, net->scratch, to->gradient);
            to->filled = true;
        }
    if (!net->layers[r->plan.node].filled) /* the output does not depend on it */
        net->kernels->clear(net->layers[r->plan.node].gradient,
                            n * dpf_nn_elements(&m->nodes[r->plan.node].shape));
}
