/* min-max: a record onto [0,1] by its own minimum and maximum, the dense form of lrn in
 * the AdLM paper. */
#include "nn/ops/op.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    return from[0]->shape.rank == 1
               ? dpf_shape_same(n, from, where, e)
               : dpf_shape_misfit(n, from[0], where, "it needs a vector", e);
}

static void forward(const struct dpf_node_run *r)
{
    r->k->min_max_forward(r->c, r->n, dpf_run_record(r), r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    r->k->min_max_backward(r->c, r->n, dpf_run_record(r), r->x, r->dy, dx);
}

const struct dpf_op dpf_op_min_max = {
    .name = "min-max",
    .inputs = 1,
    .sign = DPF_SIGN_NOT_NEGATIVE,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = dpf_relevance_pass,
};
