/* concat: the channels of both inputs, one behind the other. */
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    const struct dpf_node *a = from[0], *b = from[1];
    bool same = a->shape.rank == b->shape.rank;
    for (int d = 1; same && d < a->shape.rank; d++)
        same = a->shape.dim[d] == b->shape.dim[d];
    if (!same) {
        char left[96], right[96];
        dpf_shape_format(&a->shape, left, sizeof left);
        dpf_shape_format(&b->shape, right, sizeof right);
        return dpf_fail(e, DPF_USAGE,
                        "%s: '%s' cannot join '%s' of shape %s and '%s' of shape %s",
                        where, n->name, a->name, left, b->name, right);
    }
    n->shape = a->shape;
    n->shape.dim[0] += b->shape.dim[0];
    return DPF_OK;
}

static int64_t channels_of(const struct dpf_node_run *r, int which)
{
    return (int64_t)r->net->model->nodes[r->node->inputs[which]].shape.dim[0];
}

static void forward(const struct dpf_node_run *r)
{
    int64_t rows = r->n * dpf_nn_positions(&r->node->shape), at = 0;
    for (int d = 0; d < r->node->input_count; d++) {
        int64_t part = channels_of(r, d);
        r->k->copy_columns(r->c, rows, part, r->net->layers[r->node->inputs[d]].value,
                           part, r->y + at, dpf_run_channels(r));
        at += part;
    }
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    int64_t channels = dpf_run_channels(r), part = channels_of(r, r->which);
    int64_t at = r->which ? channels_of(r, 0) : 0;
    r->k->copy_columns(r->c, r->n * dpf_run_record(r) / channels, part, r->dy + at,
                       channels, dx, part);
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    (void)rel; /* the same for all rules */
    backward(r, x);
}

const struct dpf_op dpf_op_concat = {
    .name = "concat",
    .inputs = 2,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
