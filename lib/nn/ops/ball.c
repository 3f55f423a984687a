/* ball: l + 1 numbers onto the unit ball of dimension l (Autoencoded PATE); the first is
 * the radius of all others, which take its relevance. */
#include "nn/ops/op.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    if (from[0]->shape.rank != 1 || from[0]->shape.dim[0] < 2)
        return dpf_shape_misfit(n, from[0], where, "it needs a vector of at least two",
                                e);
    n->shape = (struct dpf_shape){.rank = 1, .dim = {from[0]->shape.dim[0] - 1}};
    return DPF_OK;
}

static void forward(const struct dpf_node_run *r)
{
    r->k->ball_forward(r->c, r->n, dpf_run_record(r), r->x, r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    r->k->ball_backward(r->c, r->n, dpf_run_record(r), r->x, r->dy, dx);
}

static void relevance(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x)
{
    int64_t l = dpf_run_record(r);
    (void)rel; /* the same for all rules */
    r->k->clear(r->c, x, r->n * (l + 1));
    r->k->copy_columns(r->c, r->n, l, r->dy, l, x + 1, l + 1);
}

const struct dpf_op dpf_op_ball = {
    .name = "ball",
    .inputs = 1,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .relevance = relevance,
};
