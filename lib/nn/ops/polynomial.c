/* polynomial: a function of one value as a polynomial on [-1, 1] (kernels/expansion.h),
 * of x / scale, cut to that interval. It is how pCDBN writes hidden units' probabilities;
 * the scale is a public constant where the paper divides by a norm of the data. */
#include "nn/ops/op.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    enum dpf_status status =
        dpf_expand(n->function, n->expansion->kind, (int)n->degree, n->coefficients, e);
    return status == DPF_OK ? dpf_shape_same(n, from, where, e)
                            : dpf_error_prefix(e, status, "%s: '%s'", where, n->name);
}

static void forward(const struct dpf_node_run *r)
{
    r->k->polynomial_forward(r->c, (int)r->node->degree, r->node->coefficients,
                             r->node->scale, r->n * dpf_run_record(r), r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    r->k->polynomial_backward(r->c, (int)r->node->degree, r->node->coefficients,
                              r->node->scale, r->n * dpf_run_record(r), r->x, r->dy, dx);
}

const struct dpf_op dpf_op_polynomial = {
    .name = "polynomial",
    .inputs = 1,
    .may = DPF_ATTRIBUTE_DEGREE | DPF_ATTRIBUTE_SCALE | DPF_ATTRIBUTE_FUNCTION |
           DPF_ATTRIBUTE_EXPANSION,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = dpf_relevance_pass,
};
