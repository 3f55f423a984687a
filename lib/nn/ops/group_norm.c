/* group-norm: channels in groups to mean 0 and variance 1, then a scale and a shift for
 * each channel. Clipping: both gradients are small and written down for each example. */
#include "nn/geometry.h"
#include "nn/ops/op.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    uint64_t channels = from[0]->shape.dim[0];
    if (channels % (uint64_t)n->groups != 0)
        return dpf_shape_misfit(n, from[0], where,
                                "its groups do not divide the channels", e);
    n->shape = from[0]->shape;
    n->parameters[0] = n->parameters[1] =
        (struct dpf_shape){.rank = 1, .dim = {channels}};
    n->parameter_count = 2;
    return DPF_OK;
}

static struct dpf_group_norm norm_of(const struct dpf_node *n)
{
    return (struct dpf_group_norm){(int64_t)n->shape.dim[0], dpf_nn_positions(&n->shape),
                                   n->groups, n->epsilon};
}

static void forward(const struct dpf_node_run *r)
{
    struct dpf_group_norm p = norm_of(r->node);
    r->k->group_norm_forward(r->c, &p, r->n, r->x, dpf_run_parameter(r, 0),
                             dpf_run_parameter(r, 1), r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    struct dpf_group_norm p = norm_of(r->node);
    r->k->group_norm_backward(r->c, &p, r->n, r->x, dpf_run_parameter(r, 0), r->dy, dx,
                              NULL, NULL);
}

static void gradients(const struct dpf_node_run *r)
{
    struct dpf_group_norm p = norm_of(r->node);
    r->k->group_norm_backward(r->c, &p, r->n, r->x, dpf_run_parameter(r, 0), r->dy, NULL,
                              dpf_run_gradient(r, 0), dpf_run_gradient(r, 1));
}

static struct dpf_example_room room(const struct dpf_node_run *r)
{
    return (struct dpf_example_room){0, 2 * r->n * dpf_run_channels(r)};
}

static void example_norms(const struct dpf_node_run *r)
{
    struct dpf_group_norm p = norm_of(r->node);
    float *sums = r->own->sums;
    r->k->group_norm_example_sums(r->c, &p, r->n, r->x, dpf_run_parameter(r, 0), r->dy,
                                  sums);
    for (int part = 0; part < 2; part++, sums += r->n * p.channels)
        r->k->row_norms(r->c, r->n, p.channels, sums, r->net->squares);
}

static void add_clipped(const struct dpf_node_run *r)
{
    int64_t channels = dpf_run_channels(r);
    for (int part = 0; part < 2; part++)
        r->k->add_scaled_rows(r->c, r->n, channels, r->net->factors,
                              r->own->sums + part * r->n * channels,
                              dpf_run_gradient(r, part));
}

static const struct dpf_op_parameters parameters = {
    .gradients = gradients,
    .room = room,
    .example_norms = example_norms,
    .add_clipped = add_clipped,
    .start = 1, /* the scale; shifts are 0 */
};

const struct dpf_op dpf_op_group_norm = {
    .name = "group-norm",
    .inputs = 1,
    .needs = DPF_ATTRIBUTE_GROUPS,
    .may = DPF_ATTRIBUTE_EPSILON,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .parameters = &parameters,
    .relevance = dpf_relevance_pass,
};
