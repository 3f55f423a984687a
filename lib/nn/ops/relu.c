/* relu: works in place. What it passes is positive before and after a dropout that works
 * in its place, so its backward still sees where it cut. */
#include "nn/ops/op.h"

#include "base/banned.h"

static void forward(const struct dpf_node_run *r)
{
    if (!r->own->absorbed) /* else the convolution before it has done it */
        r->k->unary_forward(r->c, DPF_RELU, r->n * dpf_run_record(r), r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    r->k->unary_backward(r->c, DPF_RELU, r->n * dpf_run_record(r), r->x, r->y, r->dy, dx);
}

const struct dpf_op dpf_op_relu = {
    .name = "relu",
    .inputs = 1,
    .in_place = DPF_IN_PLACE,
    .sign = DPF_SIGN_NOT_NEGATIVE,
    .shape = dpf_shape_same,
    .forward = forward,
    .backward = backward,
    .relevance = dpf_relevance_pass,
};
