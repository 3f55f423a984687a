/* dense: y = x w' + b. Over packed bits, a set bit adds a row of weights.
 *
 * Clipping. An example's gradient of w is the outer product of the float rows dy and x,
 * and that of b is dy: the norm is a product of norms, taken in double and rounded up by
 * the backend. The sum is one product of all rows, those of dy scaled first, each number
 * off by at most a 2^-24th of itself, or gone (scale_rows in kernels/table.inc).
 * Conditions (nn/ops/visible.h) are more values of x in this. */
#include "nn/geometry.h"
#include "nn/ops/visible.h"
#include "nn/relevance.h"

#include "base/banned.h"

static enum dpf_status shape(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e)
{
    if (from[0]->shape.rank != 1)
        return dpf_shape_misfit(n, from[0], where,
                                "it needs a vector: put 'flatten' between", e);
    uint64_t out = (uint64_t)n->out, in = from[0]->shape.dim[0];
    n->shape = (struct dpf_shape){.rank = 1, .dim = {out}};
    n->parameters[0] = from[0]->bits ? (struct dpf_shape){.rank = 2, .dim = {in, out}}
                                     : (struct dpf_shape){.rank = 2, .dim = {out, in}};
    n->parameters[1] = (struct dpf_shape){.rank = 1, .dim = {out}};
    n->parameter_count = n->bias ? 2 : 1;
    return dpf_visible_parameters(n, from, where, e);
}

static const uint8_t *bits_of(const struct dpf_node_run *r)
{
    return (const uint8_t *)(const void *)r->x;
}

static void forward(const struct dpf_node_run *r)
{
    const float *w = dpf_run_parameter(r, 0), *b = dpf_run_parameter(r, 1);
    int64_t in = dpf_run_input(r), out = r->node->out;
    if (r->from->bits)
        r->k->dense_bits_forward(r->c, r->n, in, out, bits_of(r), w, b, r->y);
    else
        r->k->dense_forward(r->c, r->n, in, out, r->x, w, b, r->y);
    dpf_conditions_add(r, dpf_hidden_side(r), r->y);
}

static void backward(const struct dpf_node_run *r, float *dx)
{
    r->k->dense_backward_data(r->c, r->n, dpf_run_input(r), r->node->out, r->dy,
                              dpf_run_parameter(r, dpf_run_weights(r)), dx);
}

static void gradients(const struct dpf_node_run *r)
{
    float *dw = dpf_run_gradient(r, 0), *db = dpf_run_gradient(r, 1);
    int64_t in = dpf_run_input(r), out = r->node->out;
    if (r->from->bits) {
        r->k->dense_bits_backward_weights(r->c, r->n, in, out, bits_of(r), r->dy, dw, db);
        return;
    }
    r->k->gemm(r->c, true, false, out, in, r->n, 1, r->dy, r->x, 1, dw);
    if (db)
        r->k->sum_bias(r->c, r->n, out, r->dy, db);
    dpf_conditions_gradient(r, dpf_hidden_side(r), r->dy);
}

static struct dpf_example_room room(const struct dpf_node_run *r)
{
    (void)r; /* nothing is written down */
    return (struct dpf_example_room){0, 0};
}

static void example_norms(const struct dpf_node_run *r)
{
    int64_t in = dpf_run_input(r), out = r->node->out;
    bool bias = r->node->bias;
    if (r->from->bits)
        r->k->dense_bits_example_norms(r->c, r->n, in, out, bias, bits_of(r), r->dy,
                                       r->net->squares);
    else
        r->k->dense_example_norms(r->c, r->n, in, out, bias, r->x, r->dy,
                                  r->net->squares);
    dpf_conditions_norms(r, r->dy);
}

static void add_clipped(const struct dpf_node_run *r)
{
    r->k->scale_rows(r->c, r->n, r->node->out, r->net->factors, r->dy);
    gradients(r);
}

/* Over packed bits the weights stand the other way round. */
static void fans(const struct dpf_node *n, double *in, double *out)
{
    const struct dpf_shape *s = &n->parameters[0];
    *out = (double)n->out;
    *in = (double)(dpf_shape_elements(s) / (uint64_t)n->out);
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
    r->k->gemm(r->c, false, !r->from->bits, r->n, r->node->out, dpf_run_input(r), 1, x, w,
               0, y);
}

static void back(const struct dpf_node_run *r, const float *s, const float *w, float *x)
{
    r->k->gemm(r->c, false, r->from->bits, r->n, dpf_run_input(r), r->node->out, 1, s, w,
               0, x);
}

static void spread_bias(struct dpf_relevance *rel, const struct dpf_node_run *r,
                        const float *s, const float *bias, float *x)
{
    int64_t in = dpf_run_input(r), out = r->node->out;
    r->k->gemm(r->c, false, false, r->n, 1, out, 1, s, bias, 0, rel->places[0]);
    r->k->gemm(r->c, false, false, r->n, in, 1, 1 / (double)in, rel->places[0], rel->ones,
               1, x);
}

static const struct dpf_op_linear linear = {sums, back, spread_bias};

const struct dpf_op dpf_op_dense = {
    .name = "dense",
    .inputs = 1,
    .more = 1,
    .needs = DPF_ATTRIBUTE_OUT,
    .may = DPF_ATTRIBUTE_BIAS | DPF_ATTRIBUTE_VISIBLE,
    .reads_bits = true,
    .shape = shape,
    .forward = forward,
    .backward = backward,
    .parameters = &parameters,
    .relevance = dpf_relevance_linear,
    .linear = &linear,
};
