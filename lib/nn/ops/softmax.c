/* softmax: over the classes, a vector's values or a voxel's channels. */
#include "nn/ops/op.h"

#include "base/banned.h"

static void forward(const struct dpf_node_run *r)
{
    int64_t classes = dpf_run_channels(r);
    r->k->softmax_forward(r->c, r->n * dpf_run_record(r) / classes, classes, r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    int64_t classes = dpf_run_channels(r);
    r->k->softmax_backward(r->c, r->n * dpf_run_record(r) / classes, classes, r->y, r->dy,
                           dx);
}

const struct dpf_op dpf_op_softmax = {
    .name = "softmax",
    .inputs = 1,
    .keeps_value = true,
    .sign = DPF_SIGN_NOT_NEGATIVE,
    .shape = dpf_shape_same,
    .forward = forward,
    .backward = backward,
    .relevance = dpf_relevance_pass,
};
