/* conv: a cross-correlation over pictures or volumes.
 *
 * Clipping. The backend computes each example's gradient of the weights by itself, keeps
 * it or computes it again by the same call on the same numbers, so what is added is what
 * was measured. Gradients of the bias are written down for each example; with conditions
 * u (nn/ops/visible.h), that of their weights is the outer product of these floats and u,
 * so norms and sums are those of a dense layer (ops/dense.c). */
#include "nn/geometry.h"
#include "nn/ops/visible.h"
#include "nn/ops/window.h"
#include "nn/relevance.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    static const int64_t one[DPF_SPACE] = {1, 1, 1};
    int64_t out[DPF_SPACE];
    enum dpf_status status = dpf_window_size(n, from[0], false, one, where, out, e);
    if (status != DPF_OK)
        return status;
    n->shape = dpf_shape_with_space(&from[0]->shape, n->out, out);
    dpf_conv_parameters(n, (uint64_t)n->out, from[0]->shape.dim[0]);
    return dpf_visible_parameters(n, from, where, e);
}

static void forward(const struct dpf_node_run *r)
{
    const struct dpf_network *net = r->net;
    struct dpf_conv p = dpf_conv_of(r->node, r->from);
    bool relu = r->i + 1 < net->model->count && net->layers[r->i + 1].absorbed;
    r->k->conv_forward(r->c, &p, r->n, r->x, dpf_run_parameter(r, 0),
                       dpf_run_parameter(r, 1), relu, r->y);
    dpf_conditions_add(r, dpf_hidden_side(r), r->y);
}

/* The input in hand backwards: a picture, or conditions. */
static void back(const struct dpf_node_run *r, const float *s, const float *w, float *x)
{
    if (r->which != 0) {
        dpf_conditions_back(r, s, w, x);
        return;
    }
    struct dpf_conv p = dpf_conv_of(r->node, r->from);
    r->k->conv_backward_data(r->c, &p, r->n, s, w, x);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    back(r, r->dy, dpf_run_parameter(r, dpf_run_weights(r)), dx);
}

static void gradients(const struct dpf_node_run *r)
{
    struct dpf_conv p = dpf_conv_of(r->node, r->from);
    r->k->conv_backward_weights(r->c, &p, r->n, r->x, r->dy, dpf_run_gradient(r, 0),
                                dpf_run_gradient(r, 1));
    dpf_conditions_gradient(r, dpf_hidden_side(r), r->dy);
}

static struct dpf_example_room room(const struct dpf_node_run *r)
{
    struct dpf_conv p = dpf_conv_of(r->node, r->from);
    return dpf_conv_room(r, &p);
}

static void example_norms(const struct dpf_node_run *r)
{
    struct dpf_conv p = dpf_conv_of(r->node, r->from);
    dpf_conv_example_norms(r, &p, r->x, r->dy);
    dpf_conditions_norms(r, r->own->sums);
}

static void add_clipped(const struct dpf_node_run *r)
{
    struct dpf_conv p = dpf_conv_of(r->node, r->from);
    dpf_conv_add_clipped(r, &p, r->x, r->dy);
    if (!dpf_run_conditions(r))
        return;
    r->k->scale_rows(r->c, r->n, dpf_run_channels(r), r->net->factors, r->own->sums);
    dpf_conditions_outer(r, dpf_hidden_side(r), r->own->sums);
}

static void fans(const struct dpf_node *n, double *in, double *out)
{
    *in = (double)n->parameters[0].dim[1] * dpf_conv_window(n);
    *out = (double)n->parameters[0].dim[0] * dpf_conv_window(n);
}

static const struct dpf_op_parameters parameters = {
    .gradients = gradients,
    .room = room,
    .example_norms = example_norms,
    .add_clipped = add_clipped,
    .fans = fans,
};

static void sums(const struct dpf_node_run *r, const float *x, const float *w, float *y)
{
    if (r->which != 0) {
        dpf_conditions_sums(r, x, w, y);
        return;
    }
    struct dpf_conv p = dpf_conv_of(r->node, r->from);
    r->k->conv_forward(r->c, &p, r->n, x, w, NULL, false, y);
}

/* A result at the border is made of fewer values. */
static void spread_bias(struct dpf_relevance *rel, const struct dpf_node_run *r,
                        const float *s, const float *bias, float *x)
{
    struct dpf_conv one = dpf_conv_single(dpf_conv_of(r->node, r->from));
    float *share = rel->places[0], *count = rel->places[1];
    dpf_relevance_bias_shares(rel, r, s, bias);
    r->k->conv_forward(r->c, &one, 1, rel->ones, rel->ones, NULL, false, count);
    dpf_relevance_divide(rel, r);
    r->k->conv_backward_data(r->c, &one, r->n, share, rel->ones, count);
    dpf_relevance_to_channels(rel, r, x);
}

static const struct dpf_op_linear linear = {sums, back, spread_bias};

const struct dpf_op dpf_op_conv = {
    .name = "conv",
    .inputs = 1,
    .more = 1,
    .needs = DPF_ATTRIBUTE_OUT | DPF_ATTRIBUTE_KERNEL,
    .may = DPF_ATTRIBUTE_STRIDE | DPF_ATTRIBUTE_PAD | DPF_ATTRIBUTE_BIAS |
           DPF_ATTRIBUTE_VISIBLE,
    .absorbs = &dpf_op_relu,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .parameters = &parameters,
    .relevance = dpf_relevance_linear,
    .linear = &linear,
};
