#include "nn/relevance.h"

#include <stdlib.h>

#include "base/memory.h"
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

enum side { PRO, CON };

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
        most = values > most ? values : most;
        for (int d = 0; d < node->parameter_count; d++)
            if (dpf_nn_elements(&node->parameters[d]) > weights)
                weights = dpf_nn_elements(&node->parameters[d]);
        if (dpf_nn_positions(&node->shape) > places)
            places = dpf_nn_positions(&node->shape);
    }
    size_t values = (size_t)(most * net->capacity) * sizeof(float);
    size_t spots = (size_t)(places * net->capacity) * sizeof(float);
    bool both_sides = plan->rule->both_sides;
    bool good = true;
    for (int side = 0; side < (both_sides ? 2 : 1); side++)
        good = good && (r->share[side] = k->alloc(net->context, values));
    for (int side = 0; both_sides && side < 2; side++)
        good = good && (r->sum[side] = k->alloc(net->context, values));
    for (int side = 0; plan->spread_bias && side < 2; side++)
        good = good && (r->places[side] = k->alloc(net->context, spots));
    int64_t ones = most > weights ? most : weights;
    float *host = dpf_calloc((size_t)ones, sizeof *host);
    good = good && host && (r->back = k->alloc(net->context, values)) &&
           (r->in = k->alloc(net->context, values)) &&
           (r->weights = k->alloc(net->context, (size_t)weights * sizeof(float))) &&
           (r->bias = k->alloc(net->context, (size_t)most * sizeof(float))) &&
           (r->ones = k->alloc(net->context, (size_t)ones * sizeof(float)));
    r->output = dpf_calloc((size_t)net->capacity *
                               (size_t)dpf_nn_elements(&m->nodes[m->output].shape),
                           sizeof *r->output);
    good = good && r->output;
    if (m->nodes[0].bits) {
        size_t in = (size_t)dpf_nn_elements(&m->nodes[0].shape);
        r->bits = dpf_calloc((size_t)net->capacity, (in + 7) / 8);
        r->host = dpf_calloc((size_t)net->capacity * in, sizeof *r->host);
        r->numbers =
            k->alloc(net->context, (size_t)net->capacity * in * sizeof *r->numbers);
        good = good && r->bits && r->host && r->numbers;
    }
    if (good) {
        for (int64_t i = 0; i < ones; i++)
            host[i] = 1;
        k->put(net->context, r->ones, host, (size_t)ones * sizeof *host);
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
    struct dpf_context *c = r->net->context;
    for (int side = 0; side < 2; side++) {
        k->release(c, r->share[side]);
        k->release(c, r->sum[side]);
        k->release(c, r->places[side]);
    }
    k->release(c, r->back);
    k->release(c, r->in);
    k->release(c, r->weights);
    k->release(c, r->bias);
    k->release(c, r->ones);
    free(r->bits);
    k->release(c, r->numbers);
    free(r->host);
    free(r->output);
    *r = (struct dpf_relevance){0};
}

/* -------------------------------------------------------------- the share of biases */

void dpf_relevance_bias_shares(struct dpf_relevance *rel, const struct dpf_node_run *r,
                               const float *s, const float *bias)
{
    r->k->gemm(r->c, false, false, r->n * dpf_nn_positions(&r->node->shape), 1,
               r->node->out, 1, s, bias, 0, rel->places[0]);
}

void dpf_relevance_divide(struct dpf_relevance *rel, const struct dpf_node_run *r)
{
    int64_t positions = dpf_nn_positions(&r->node->shape);
    float *share = rel->places[0], *counts = rel->back; /* for each example the same */
    r->k->copy_columns(r->c, r->n, positions, rel->places[1], 0, counts, positions);
    r->k->relevance_share(r->c, r->n * positions, share, counts, 0, share);
}

void dpf_relevance_to_channels(struct dpf_relevance *rel, const struct dpf_node_run *r,
                               float *x)
{
    int64_t channels = (int64_t)r->from->shape.dim[0];
    r->k->gemm(r->c, false, false, r->n * dpf_nn_positions(&r->from->shape), channels, 1,
               1 / (double)channels, rel->places[1], rel->ones, 1, x);
}

/* ----------------------------------------------------------------------------- rules */

/* The weights of the input in hand. */
static const float *weights_of(const struct dpf_node_run *r)
{
    return dpf_run_parameter(r, dpf_run_weights(r));
}

static int64_t weight_count(const struct dpf_node_run *r)
{
    return dpf_nn_elements(&r->node->parameters[dpf_run_weights(r)]);
}

static const float *bias_of(const struct dpf_node_run *r)
{
    return r->node->bias ? dpf_run_parameter(r, 1) : NULL;
}

/* The bias is spread over the first input: conditions have a share of their own. */
static bool takes_bias(const struct dpf_relevance *rel, const struct dpf_node_run *r)
{
    return bias_of(r) && rel->plan.spread_bias && r->which == 0;
}

static void epsilon_rule(struct dpf_relevance *rel, const struct dpf_node_run *r,
                         const float *values, float *x)
{
    const struct dpf_op_linear *op = r->node->op->linear;
    r->k->relevance_share(r->c, r->n * dpf_run_record(r), r->dy, r->y, rel->plan.mu,
                          rel->share[0]);
    op->back(r, rel->share[0], weights_of(r), x);
    r->k->multiply(r->c, r->n * dpf_run_input(r), values, x);
    if (takes_bias(rel, r))
        op->spread_bias(rel, r, rel->share[0], bias_of(r), x);
}

/* Whether a node's values cannot be negative, whatever the input. */
static bool non_negative(const struct dpf_model *m, size_t i)
{
    const struct dpf_node *node = &m->nodes[i];
    bool all = node->op->sign == DPF_SIGN_OF_INPUTS;
    for (int d = 0; all && d < node->input_count; d++)
        all = non_negative(m, node->inputs[d]);
    return all || node->op->sign == DPF_SIGN_NOT_NEGATIVE || node->bits;
}

/* How many signs there are among the values of the input in hand. */
static int signs_of(const struct dpf_node_run *r)
{
    return non_negative(r->net->model, r->node->inputs[r->which]) ? 1 : 2;
}

/* What of the sums has one sign, of the input in hand: values and weights of the same
 * sign, or of different ones. The first input starts the sums, another adds to them. */
static void add_side(struct dpf_relevance *rel, const struct dpf_node_run *r,
                     const float *values, enum side side)
{
    const struct dpf_kernels *k = r->k;
    for (int sign = 0; sign < signs_of(r); sign++) {
        bool starts = sign == 0 && r->which == 0;
        k->take_part(r->c, sign != 0, r->n * dpf_run_input(r), values, rel->in);
        k->take_part(r->c, (sign != 0) != (side == CON), weight_count(r), weights_of(r),
                     rel->weights);
        r->node->op->linear->sums(r, rel->in, rel->weights,
                                  starts ? rel->sum[side] : rel->share[0]);
        if (!starts)
            k->add(r->c, r->n * dpf_run_record(r), rel->share[0], rel->sum[side]);
    }
}

/* The same of all inputs, and the bias of that sign. */
static void sum_side(struct dpf_relevance *rel, const struct dpf_node_run *r,
                     const float *values, enum side side)
{
    int64_t out = r->node->out;
    for (int d = 0; d < r->node->input_count; d++) {
        struct dpf_node_run one = dpf_node_run_of(r->net, r->i, d, r->n);
        add_side(rel, &one, d == r->which ? values : one.x, side);
    }
    if (!bias_of(r))
        return;
    r->k->take_part(r->c, side == CON, out, bias_of(r), rel->bias);
    r->k->add_bias(r->c, r->n * dpf_run_record(r) / out, out, rel->bias, rel->sum[side]);
}

static void share_sides(struct dpf_relevance *rel, const struct dpf_node_run *r,
                        const float *values, double alpha, float *x)
{
    const struct dpf_kernels *k = r->k;
    const struct dpf_op_linear *op = r->node->op->linear;
    int64_t in = r->n * dpf_run_input(r);
    sum_side(rel, r, values, PRO);
    sum_side(rel, r, values, CON);
    k->relevance_split(r->c, r->n * dpf_run_record(r), alpha, alpha - 1, r->dy,
                       rel->sum[PRO], rel->sum[CON], rel->share[PRO], rel->share[CON]);
    k->clear(r->c, x, in);
    for (int sign = 0; sign < signs_of(r); sign++) {
        k->take_part(r->c, sign != 0, in, values, rel->in);
        for (int side = 0; side < 2; side++) {
            k->take_part(r->c, (sign != 0) != (side == CON), weight_count(r),
                         weights_of(r), rel->weights);
            op->back(r, rel->share[side], rel->weights, rel->back);
            k->multiply(r->c, in, rel->in, rel->back);
            k->add(r->c, in, rel->back, x);
        }
    }
    for (int side = 0; takes_bias(rel, r) && side < 2; side++) {
        k->take_part(r->c, side == CON, r->node->out, bias_of(r), rel->bias);
        op->spread_bias(rel, r, rel->share[side], rel->bias, x);
    }
}

static void alpha_beta_rule(struct dpf_relevance *rel, const struct dpf_node_run *r,
                            const float *values, float *x)
{
    share_sides(rel, r, values, rel->plan.alpha, x);
}

static void z_plus_rule(struct dpf_relevance *rel, const struct dpf_node_run *r,
                        const float *values, float *x)
{
    share_sides(rel, r, values, 1, x);
}

const struct dpf_relevance_rule dpf_relevance_rules[] = {
    {"epsilon", false, false, epsilon_rule},
    {"alpha-beta", true, true, alpha_beta_rule},
    {"z-plus", true, false, z_plus_rule},
    {NULL, false, false, NULL},
};

/* Packed bits as numbers. */
static const float *unpack(struct dpf_relevance *r, int64_t n)
{
    struct dpf_network *net = r->net;
    int64_t in = dpf_nn_elements(&net->model->nodes[0].shape), row = (in + 7) / 8;
    net->kernels->get(net->context, r->bits, net->layers[0].value, (size_t)(n * row));
    for (int64_t e = 0; e < n; e++)
        for (int64_t i = 0; i < in; i++)
            r->host[e * in + i] =
                (float)(r->bits[e * row + i / 8] >> (unsigned)(i % 8) & 1U);
    net->kernels->put(net->context, r->numbers, r->host,
                      (size_t)(n * in) * sizeof *r->host);
    return r->numbers;
}

void dpf_relevance_linear(struct dpf_relevance *rel, const struct dpf_node_run *r,
                          float *x)
{
    rel->plan.rule->share(rel, r, r->from->bits ? unpack(rel, r->n) : r->x, x);
}

/* ------------------------------------------------------------------------- the way back
 */

void dpf_relevance_propagate(struct dpf_relevance *r, int64_t n, const float *output)
{
    struct dpf_network *net = r->net;
    const struct dpf_model *m = net->model;
    struct dpf_layer *last = &net->layers[m->output];
    for (size_t i = 0; i < m->count; i++)
        net->layers[i].filled = false;
    net->kernels->put(net->context, last->gradient, output,
                      (size_t)(n * dpf_nn_elements(&m->nodes[m->output].shape)) *
                          sizeof *output);
    last->filled = true;
    for (size_t i = m->output; i > r->plan.node; i--)
        for (int d = 0; net->layers[i].filled && d < m->nodes[i].input_count; d++) {
            struct dpf_layer *to = &net->layers[m->nodes[i].inputs[d]];
            struct dpf_node_run run = dpf_node_run_of(net, i, d, n);
            m->nodes[i].op->relevance(r, &run, to->filled ? net->scratch : to->gradient);
            if (to->filled)
                net->kernels->add(net->context, n * dpf_run_input(&run), net->scratch,
                                  to->gradient);
            to->filled = true;
        }
    if (!net->layers[r->plan.node].filled) /* the output does not depend on it */
        net->kernels->clear(net->context, net->layers[r->plan.node].gradient,
                            n * dpf_nn_elements(&m->nodes[r->plan.node].shape));
}
