/* max-pool: the largest value of each window; relevance goes to where it stood. */
#include "nn/ops/window.h"

#include "base/banned.h"

static void forward(const struct dpf_node_run *r)
{
    struct dpf_pool p = dpf_pool_of(r->node, r->from);
    r->k->max_pool_forward(r->c, &p, r->n, r->x, r->y, r->own->places);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    struct dpf_pool p = dpf_pool_of(r->node, r->from);
    r->k->max_pool_backward(r->c, &p, r->n, r->dy, r->own->places, dx);
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    (void)rel; /* the same for all rules */
    backward(r, x);
}

const struct dpf_op dpf_op_max_pool = {
    .name = "max-pool",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_KERNEL,
    .may = DPF_ATTRIBUTE_STRIDE | DPF_ATTRIBUTE_PAD,
    .place_bytes = sizeof(int32_t),
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = dpf_pool_shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
