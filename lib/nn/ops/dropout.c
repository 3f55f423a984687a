/* dropout: each value is dropped with a probability, by a mask that is a function of the
 * example's key and the node's number alone (kernels/mask.h). Only a training pass drops;
 * only a training pass is followed by a backward one. */
#include "nn/ops/op.h"

#include "base/banned.h"

static void forward(const struct dpf_node_run *r)
{
    int64_t record = dpf_run_record(r), all = r->n * record;
    if (r->training)
        r->k->dropout(r->c, r->n, record, r->node->rate, r->net->keys, r->i, r->x, r->y);
    else if (r->x != r->y)
        r->k->copy_columns(r->c, 1, all, r->x, all, r->y, all);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    r->k->dropout(r->c, r->n, dpf_run_record(r), r->node->rate, r->net->keys, r->i, r->dy,
                  dx);
}

const struct dpf_op dpf_op_dropout = {
    .name = "dropout",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_RATE,
    .in_place = DPF_IN_PLACE,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = dpf_shape_same,
    .forward = forward,
    .backward = backward,
    .relevance = dpf_relevance_pass,
};
