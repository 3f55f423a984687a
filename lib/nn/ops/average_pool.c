/* average-pool: the mean of what lies inside the picture; relevance in proportion. */
#include "nn/ops/window.h"
#include "nn/relevance.h"

#include "base/banned.h"

static void forward(const struct dpf_node_run *r)
{
    struct dpf_pool p = dpf_pool_of(r->node, r->from);
    r->k->average_pool_forward(r->c, &p, r->n, r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    struct dpf_pool p = dpf_pool_of(r->node, r->from);
    r->k->average_pool_backward(r->c, &p, r->n, r->dy, dx);
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    struct dpf_pool p = dpf_pool_of(r->node, r->from);
    r->k->relevance_share(r->c, r->n * dpf_run_record(r), r->dy, r->y, rel->plan.mu,
                          rel->share[0]);
    r->k->average_pool_backward(r->c, &p, r->n, rel->share[0], x);
    r->k->multiply(r->c, r->n * dpf_run_input(r), r->x, x);
}

const struct dpf_op dpf_op_average_pool = {
    .name = "average-pool",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_KERNEL,
    .may = DPF_ATTRIBUTE_STRIDE | DPF_ATTRIBUTE_PAD,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = dpf_pool_shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
