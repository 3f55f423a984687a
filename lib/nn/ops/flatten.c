/* flatten: a picture or volume as a vector, channels first as everywhere outside. */
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    (void)where; /* every shape fits */
    (void)e;
    n->shape =
        (struct dpf_shape){.rank = 1, .dim = {dpf_shape_elements(&from[0]->shape)}};
    return DPF_OK;
}

static void forward(const struct dpf_node_run *r)
{
    if (r->x != r->y)
        r->k->to_channels_first(r->c, r->n, (int64_t)r->from->shape.dim[0],
                                dpf_nn_positions(&r->from->shape), r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    if (dx != r->dy)
        r->k->to_channels_last(r->c, r->n, (int64_t)r->from->shape.dim[0],
                               dpf_nn_positions(&r->from->shape), r->dy, dx);
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    (void)rel; /* the same for all rules */
    backward(r, x);
}

const struct dpf_op dpf_op_flatten = {
    .name = "flatten",
    .inputs = 1,
    .in_place = DPF_IN_PLACE_IF_FLAT,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
