/* noise: Gaussian noise of deviation sigma on each value of a training pass, a function
 * of the example's key and the node's number alone (kernels/mask.h). It teaches a decoder
 * to live with noise; it protects nothing, and no ledger counts it. */
#include "nn/ops/op.h"

#include "base/banned.h"

static void forward(const struct dpf_node_run *r)
{
    int64_t record = dpf_run_record(r), all = r->n * record;
    if (r->training)
        r->k->noise(r->c, r->n, record, r->node->sigma, r->net->keys, r->i, r->x, r->y);
    else
        r->k->copy_columns(r->c, 1, all, r->x, all, r->y, all);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    int64_t all = r->n * dpf_run_record(r);
    r->k->copy_columns(r->c, 1, all, r->dy, all, dx, all);
}

const struct dpf_op dpf_op_noise = {
    .name = "noise",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_SIGMA,
    .shape = dpf_shape_same,
    .forward = forward,
    .backward = backward,
    .relevance = dpf_relevance_pass,
};
