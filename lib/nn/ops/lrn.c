/* lrn: local response normalisation over neighbouring channels. */
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    return dpf_shape_is_spatial(&from[0]->shape)
               ? dpf_shape_same(n, from, where, e)
               : dpf_shape_misfit(n, from[0], where,
                                  "it needs channels: 'min-max' is for vectors", e);
}

static struct dpf_lrn lrn_of(const struct dpf_node *n)
{
    return (struct dpf_lrn){(int64_t)n->shape.dim[0],
                            dpf_nn_positions(&n->shape),
                            n->window,
                            n->base,
                            n->alpha,
                            n->beta};
}

static void forward(const struct dpf_node_run *r)
{
    struct dpf_lrn p = lrn_of(r->node);
    r->k->lrn_forward(r->c, &p, r->n, r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    struct dpf_lrn p = lrn_of(r->node);
    r->k->lrn_backward(r->c, &p, r->n, r->x, r->dy, dx);
}

const struct dpf_op dpf_op_lrn = {
    .name = "lrn",
    .inputs = 1,
    .may = DPF_ATTRIBUTE_WINDOW | DPF_ATTRIBUTE_BASE | DPF_ATTRIBUTE_ALPHA |
           DPF_ATTRIBUTE_BETA,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = dpf_relevance_pass,
};
