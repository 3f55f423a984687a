#include "nn/ops/visible.h"

#include "nn/geometry.h"

#include "base/banned.h"

enum dpf_status dpf_visible_parameters(struct dpf_node *n,
                                       const struct dpf_node *const *from,
                                       const char *where, struct dpf_error *e)
{
    const struct dpf_node *v = from[0], *u = n->input_count > 1 ? from[1] : NULL;
    if (!n->visible)
        return u ? dpf_shape_misfit(n, u, where,
                                    "only with 'visible=1' has it conditions", e)
                 : DPF_OK;
    if (!n->bias || v->bits)
        return dpf_shape_misfit(n, v, where,
                                "'visible=1' needs numbers, and a bias beside it", e);
    n->parameters[2] = (struct dpf_shape){.rank = 1, .dim = {v->shape.dim[0]}};
    n->parameter_count = 3;
    if (!u)
        return DPF_OK;
    if (u->shape.rank != 1 || u->bits)
        return dpf_shape_misfit(n, u, where, "conditions are a vector of numbers", e);
    n->parameters[DPF_CONDITION] =
        (struct dpf_shape){.rank = 2, .dim = {(uint64_t)n->out, u->shape.dim[0]}};
    n->parameters[DPF_VISIBLE_CONDITION] =
        (struct dpf_shape){.rank = 2, .dim = {v->shape.dim[0], u->shape.dim[0]}};
    n->parameter_count = 5;
    return DPF_OK;
}

/* ----------------------------------------------------------------------------- sides */

static const struct dpf_node *input_of(const struct dpf_node_run *r, int which)
{
    return &r->net->model->nodes[r->node->inputs[which]];
}

static struct dpf_side side_of(int parameter, const struct dpf_shape *units)
{
    return (struct dpf_side){parameter, (int64_t)units->dim[0], dpf_nn_positions(units)};
}

struct dpf_side dpf_hidden_side(const struct dpf_node_run *r)
{
    return side_of(DPF_CONDITION, &r->node->shape);
}

struct dpf_side dpf_visible_side(const struct dpf_node_run *r)
{
    return side_of(DPF_VISIBLE_CONDITION, &input_of(r, 0)->shape);
}

const float *dpf_run_conditions(const struct dpf_node_run *r)
{
    return r->node->input_count > 1 ? r->net->layers[r->node->inputs[1]].value : NULL;
}

static int64_t count_of(const struct dpf_node_run *r)
{
    return dpf_nn_elements(&input_of(r, 1)->shape);
}

/* ------------------------------------------------------------------------ dynamic biases
 */

/* y grows by u w', a number for each channel, at all positions of it. */
static void add_shifts(const struct dpf_node_run *r, struct dpf_side side, const float *u,
                       const float *w, float *y)
{
    float *shifts = r->own->shifts;
    r->k->dense_forward(r->c, r->n, count_of(r), side.channels, u, w, NULL, shifts);
    if (side.positions == 1) {
        r->k->add(r->c, r->n * side.channels, shifts, y);
        return;
    }
    for (int64_t i = 0; i < r->n; i++)
        r->k->add_bias(r->c, side.positions, side.channels, shifts + i * side.channels,
                       y + i * side.positions * side.channels);
}

void dpf_conditions_add(const struct dpf_node_run *r, struct dpf_side side, float *y)
{
    const float *u = dpf_run_conditions(r);
    if (u)
        add_shifts(r, side, u, dpf_run_parameter(r, side.parameter), y);
}

void dpf_conditions_sums(const struct dpf_node_run *r, const float *u, const float *w,
                         float *y)
{
    r->k->clear(r->c, y, r->n * dpf_run_record(r));
    add_shifts(r, dpf_hidden_side(r), u, w, y);
}

/* ------------------------------------------------------------------------- the way back
 */

/* Each example's sums over positions. */
static const float *sums_of(const struct dpf_node_run *r, struct dpf_side side,
                            const float *dy)
{
    if (side.positions == 1)
        return dy;
    r->k->bias_example_sums(r->c, r->n, side.positions, side.channels, dy,
                            r->own->shifts);
    return r->own->shifts;
}

void dpf_conditions_back(const struct dpf_node_run *r, const float *s, const float *w,
                         float *x)
{
    struct dpf_side side = dpf_hidden_side(r);
    r->k->dense_backward_data(r->c, r->n, count_of(r), side.channels, sums_of(r, side, s),
                              w, x);
}

void dpf_conditions_outer(const struct dpf_node_run *r, struct dpf_side side,
                          const float *sums)
{
    r->k->gemm(r->c, true, false, side.channels, count_of(r), r->n, 1, sums,
               dpf_run_conditions(r), 1, dpf_run_gradient(r, side.parameter));
}

void dpf_conditions_gradient(const struct dpf_node_run *r, struct dpf_side side,
                             const float *dy)
{
    if (dpf_run_conditions(r))
        dpf_conditions_outer(r, side, sums_of(r, side, dy));
}

void dpf_conditions_norms(const struct dpf_node_run *r, const float *sums)
{
    const float *u = dpf_run_conditions(r);
    if (u)
        r->k->dense_example_norms(r->c, r->n, count_of(r), r->node->out, false, u, sums,
                                  r->net->squares);
}
