/* upsample: every position becomes a block of equal values. */
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

/* A picture has no depth to grow in. */
static void factors_of(const struct dpf_node *n, int rank, int64_t factor[DPF_SPACE])
{
    factor[0] = rank == 4 ? n->factor : 1;
    factor[1] = factor[2] = n->factor;
}

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    const struct dpf_shape *in = &from[0]->shape;
    int64_t size[DPF_SPACE], factor[DPF_SPACE];
    if (!dpf_shape_is_spatial(in))
        return dpf_shape_misfit(n, from[0], where, "it needs channels, height and width",
                                e);
    dpf_nn_space(in, size);
    factors_of(n, in->rank, factor);
    for (int d = 0; d < DPF_SPACE; d++)
        size[d] *= factor[d];
    n->shape = dpf_shape_with_space(in, (int64_t)in->dim[0], size);
    return DPF_OK;
}

static void forward(const struct dpf_node_run *r)
{
    int64_t in[DPF_SPACE], factor[DPF_SPACE];
    dpf_nn_space(&r->from->shape, in);
    factors_of(r->node, r->node->shape.rank, factor);
    r->k->upsample_forward(r->c, r->n, dpf_run_channels(r), in, factor, r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    int64_t in[DPF_SPACE], factor[DPF_SPACE];
    dpf_nn_space(&r->from->shape, in);
    factors_of(r->node, r->node->shape.rank, factor);
    r->k->upsample_backward(r->c, r->n, dpf_run_channels(r), in, factor, r->dy, dx);
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    (void)rel; /* the same for all rules */
    backward(r, x);
}

const struct dpf_op dpf_op_upsample = {
    .name = "upsample",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_FACTOR,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
