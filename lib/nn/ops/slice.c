/* slice: some values of a vector, one behind the other, so that a record can hold what
 * several nodes read apart. */
#include "nn/ops/op.h"

#include "base/banned.h"

/* The attributes bound both numbers, so their sum does not overflow. */
static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    const struct dpf_shape *in = &from[0]->shape;
    if (in->rank != 1 || (uint64_t)(n->first + n->count) > in->dim[0])
        return dpf_shape_misfit(
            n, from[0], where,
            "it needs a vector with at least as many values as 'from' and 'count' add up "
            "to",
            e);
    n->shape = (struct dpf_shape){.rank = 1, .dim = {(uint64_t)n->count}};
    return DPF_OK;
}

static void forward(const struct dpf_node_run *r)
{
    r->k->copy_columns(r->c, r->n, r->node->count, r->x + r->node->first,
                       dpf_run_input(r), r->y, r->node->count);
}

/* What was left out has no gradient. */
static void backward(const struct dpf_node_run *r, float *dx)
{
    r->k->clear(r->c, dx, r->n * dpf_run_input(r));
    r->k->copy_columns(r->c, r->n, r->node->count, r->dy, r->node->count,
                       dx + r->node->first, dpf_run_input(r));
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    (void)rel; /* the same for all rules */
    backward(r, x);
}

const struct dpf_op dpf_op_slice = {
    .name = "slice",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_FROM | DPF_ATTRIBUTE_COUNT,
    .sign = DPF_SIGN_OF_INPUTS,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
