/* reshape: a vector as a picture or volume of the same number of values, channels first
 * as everywhere outside: the way back from `flatten`. */
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

/* The attribute is the shape. */
static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    return from[0]->shape.rank != 1 ||
                   dpf_shape_elements(&n->shape) != from[0]->shape.dim[0]
               ? dpf_shape_misfit(n, from[0], where,
                                  "it needs a vector with as many values as its shape", e)
               : DPF_OK;
}

static void forward(const struct dpf_node_run *r)
{
    if (r->x != r->y)
        r->k->to_channels_last(r->c, r->n, dpf_run_channels(r),
                               dpf_nn_positions(&r->node->shape), r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    if (dx != r->dy)
        r->k->to_channels_first(r->c, r->n, dpf_run_channels(r),
                                dpf_nn_positions(&r->node->shape), r->dy, dx);
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    (void)rel; /* the same for all rules */
    backward(r, x);
}

const struct dpf_op dpf_op_reshape = {
    .name = "reshape",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_SHAPE,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
