/* The operations, and what several of them share. */
#include <string.h>

#include "base/words.h"
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

extern const struct dpf_op dpf_op_leaky_relu, dpf_op_noise, dpf_op_reshape,
    dpf_op_sigmoid, dpf_op_tanh, dpf_op_cap, dpf_op_softmax, dpf_op_lrn, dpf_op_min_max,
    dpf_op_dropout, dpf_op_concat, dpf_op_upsample, dpf_op_ball, dpf_op_polynomial,
    dpf_op_slice;

const struct dpf_op *const dpf_ops[] = {
    &dpf_op_dense,        &dpf_op_conv,       &dpf_op_conv_transpose, &dpf_op_max_pool,
    &dpf_op_average_pool, &dpf_op_relu,       &dpf_op_leaky_relu,     &dpf_op_sigmoid,
    &dpf_op_tanh,         &dpf_op_cap,        &dpf_op_softmax,        &dpf_op_lrn,
    &dpf_op_min_max,      &dpf_op_group_norm, &dpf_op_dropout,        &dpf_op_noise,
    &dpf_op_flatten,      &dpf_op_reshape,    &dpf_op_slice,          &dpf_op_concat,
    &dpf_op_upsample,     &dpf_op_ball,       &dpf_op_polynomial,     NULL,
};

const struct dpf_op *dpf_op_find(const char *name)
{
    for (const struct dpf_op *const *op = dpf_ops; *op; op++)
        if (strcmp((*op)->name, name) == 0)
            return *op;
    return NULL;
}

const char *dpf_op_nearest(const char *name)
{
    const char *names[sizeof dpf_ops / sizeof *dpf_ops];
    size_t count = 0;
    for (; dpf_ops[count]; count++)
        names[count] = dpf_ops[count]->name;
    names[count] = NULL;
    return DPF_NEAREST(names, name);
}

enum dpf_status dpf_op_check(const struct dpf_op *op, bool has_parameters,
                             struct dpf_error *e)
{
    const struct dpf_op_parameters *p = op->parameters;
    const char *lacks =
        !op->shape                                             ? "shape"
        : !op->forward                                         ? "forward"
        : !op->backward                                        ? "backward"
        : !op->relevance                                       ? "relevance"
        : op->relevance == dpf_relevance_linear && !op->linear ? "weighted sums"
        : op->linear &&
                (!op->linear->sums || !op->linear->back || !op->linear->spread_bias)
            ? "weighted sums, forwards, backwards or of its bias"
        : !has_parameters   ? NULL
        : !p                ? "clipping of its parameters' gradients"
        : !p->gradients     ? "gradients of its parameters"
        : !p->room          ? "room for examples' gradients"
        : !p->example_norms ? "norms of examples' gradients"
        : !p->add_clipped   ? "sums of clipped gradients"
                            : NULL;
    return lacks ? dpf_fail(e, DPF_USAGE, "operation '%s' has no %s", op->name, lacks)
                 : DPF_OK;
}

/* --------------------------------------------------------------------------- at work */

struct dpf_node_run dpf_node_run_of(struct dpf_network *net, size_t i, int which,
                                    int64_t n)
{
    const struct dpf_node *node = &net->model->nodes[i];
    size_t from = node->inputs[which];
    return (struct dpf_node_run){.k = net->kernels,
                                 .c = net->context,
                                 .net = net,
                                 .i = i,
                                 .which = which,
                                 .n = n,
                                 .node = node,
                                 .from = &net->model->nodes[from],
                                 .own = &net->layers[i],
                                 .x = net->layers[from].value,
                                 .y = net->layers[i].value,
                                 .dy = net->layers[i].gradient};
}

const float *dpf_run_parameter(const struct dpf_node_run *r, int k)
{
    return dpf_network_parameter(r->net, r->i, k);
}

float *dpf_run_gradient(const struct dpf_node_run *r, int k)
{
    return dpf_network_gradient(r->net, r->i, k);
}

int dpf_run_weights(const struct dpf_node_run *r)
{
    return r->which == 0 ? 0 : DPF_CONDITION;
}

int64_t dpf_run_record(const struct dpf_node_run *r)
{
    return dpf_nn_elements(&r->node->shape);
}

int64_t dpf_run_input(const struct dpf_node_run *r)
{
    return dpf_nn_elements(&r->from->shape);
}

int64_t dpf_run_channels(const struct dpf_node_run *r)
{
    return (int64_t)r->node->shape.dim[0];
}

void dpf_relevance_pass(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    int64_t all = r->n * dpf_run_record(r);
    (void)rel; /* no rule has a say */
    r->k->copy_columns(r->c, 1, all, r->dy, all, x, all);
}

/* --------------------------------------------------------------------------- shapes */

enum dpf_status dpf_shape_same(struct dpf_node *n, const struct dpf_node *const *from,
                               const char *where, struct dpf_error *e)
{
    (void)where; /* every shape fits */
    (void)e;
    n->shape = from[0]->shape;
    return DPF_OK;
}

enum dpf_status dpf_shape_misfit(const struct dpf_node *n, const struct dpf_node *from,
                                 const char *where, const char *what, struct dpf_error *e)
{
    char shape[96];
    dpf_shape_format(&from->shape, shape, sizeof shape);
    return dpf_fail(e, DPF_USAGE, "%s: '%s' (%s) cannot read '%s' of shape %s: %s", where,
                    n->name, n->op->name, from->name, shape, what);
}

bool dpf_shape_is_spatial(const struct dpf_shape *s)
{
    return s->rank == 3 || s->rank == 4;
}

struct dpf_shape dpf_shape_with_space(const struct dpf_shape *like, int64_t channels,
                                      const int64_t size[DPF_SPACE])
{
    struct dpf_shape s = {.rank = like->rank, .dim = {(uint64_t)channels}};
    for (int d = 0; d < s.rank - 1; d++)
        s.dim[1 + d] = (uint64_t)size[DPF_SPACE - (s.rank - 1) + d];
    return s;
}
