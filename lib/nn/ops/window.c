#include "nn/ops/window.h"

#include <string.h>

#include "nn/geometry.h"

#include "base/banned.h"

/* A picture has no depth: a single number for kernel, stride and pad leaves it alone.
 * False if three different ones were given. */
static bool flatten_depth(struct dpf_node *n, const struct dpf_shape *in)
{
    if (in->rank != 3)
        return true;
    bool deep = (n->kernel[0] != 1 && n->kernel[0] != n->kernel[1]) ||
                (n->stride[0] != 1 && n->stride[0] != n->stride[1]) ||
                (n->pad[0] != 0 && n->pad[0] != n->pad[1]);
    n->kernel[0] = 1;
    n->stride[0] = 1;
    n->pad[0] = 0;
    return !deep;
}

enum dpf_status dpf_window_size(struct dpf_node *n, const struct dpf_node *from, bool up,
                                const int64_t stride[DPF_SPACE], const char *where,
                                int64_t out[DPF_SPACE], struct dpf_error *e)
{
    int64_t in[DPF_SPACE];
    if (n->stride[0] == 0) /* not given */
        memcpy(n->stride, stride, sizeof n->stride);
    if (!dpf_shape_is_spatial(&from->shape))
        return dpf_shape_misfit(n, from, where, "it needs channels, height and width", e);
    if (!flatten_depth(n, &from->shape))
        return dpf_shape_misfit(n, from, where, "a picture has no depth", e);
    dpf_nn_space(&from->shape, in);
    for (int d = 0; d < DPF_SPACE; d++) {
        if (n->pad[d] >= n->kernel[d])
            return dpf_shape_misfit(n, from, where,
                                    "its padding is not smaller than its kernel", e);
        if (!up && in[d] + 2 * n->pad[d] < n->kernel[d])
            return dpf_shape_misfit(n, from, where, "its kernel is larger than the input",
                                    e);
        out[d] = up ? (in[d] - 1) * n->stride[d] + n->kernel[d] - 2 * n->pad[d]
                    : (in[d] + 2 * n->pad[d] - n->kernel[d]) / n->stride[d] + 1;
        if (out[d] < 1)
            return dpf_shape_misfit(n, from, where, "nothing would be left", e);
    }
    return DPF_OK;
}

/* From a node and the shapes of its two ends. */
static struct dpf_conv conv_between(const struct dpf_node *n, const struct dpf_shape *in,
                                    const struct dpf_shape *out)
{
    struct dpf_conv p = {.in_channels = (int64_t)in->dim[0],
                         .out_channels = (int64_t)out->dim[0]};
    dpf_nn_space(in, p.in);
    dpf_nn_space(out, p.out);
    memcpy(p.kernel, n->kernel, sizeof p.kernel);
    memcpy(p.stride, n->stride, sizeof p.stride);
    memcpy(p.pad, n->pad, sizeof p.pad);
    return p;
}

struct dpf_conv dpf_conv_of(const struct dpf_node *n, const struct dpf_node *from)
{
    return conv_between(n, &from->shape, &n->shape);
}

struct dpf_conv dpf_conv_transpose_of(const struct dpf_node *n,
                                      const struct dpf_node *from)
{
    return conv_between(n, &n->shape, &from->shape);
}

struct dpf_conv dpf_conv_single(struct dpf_conv p)
{
    p.in_channels = p.out_channels = 1;
    return p;
}

struct dpf_pool dpf_pool_of(const struct dpf_node *n, const struct dpf_node *from)
{
    struct dpf_pool p = {.channels = (int64_t)from->shape.dim[0]};
    dpf_nn_space(&from->shape, p.in);
    dpf_nn_space(&n->shape, p.out);
    memcpy(p.kernel, n->kernel, sizeof p.kernel);
    memcpy(p.stride, n->stride, sizeof p.stride);
    memcpy(p.pad, n->pad, sizeof p.pad);
    return p;
}

void dpf_conv_parameters(struct dpf_node *n, uint64_t a, uint64_t b)
{
    n->parameters[0] =
        (struct dpf_shape){.rank = 5,
                           .dim = {a, b, (uint64_t)n->kernel[0], (uint64_t)n->kernel[1],
                                   (uint64_t)n->kernel[2]}};
    n->parameters[1] = (struct dpf_shape){.rank = 1, .dim = {(uint64_t)n->out}};
    n->parameter_count = n->bias ? 2 : 1;
}

struct dpf_example_room dpf_conv_room(const struct dpf_node_run *r,
                                      const struct dpf_conv *p)
{
    return (struct dpf_example_room){r->k->conv_kept(r->c, p, r->n),
                                     r->n * dpf_run_channels(r)};
}

void dpf_conv_example_norms(const struct dpf_node_run *r, const struct dpf_conv *p,
                            const float *x, const float *dy)
{
    int64_t channels = dpf_run_channels(r);
    r->k->conv_example_norms(r->c, p, r->n, x, dy, r->own->kept, r->net->squares);
    if (!r->node->bias)
        return;
    r->k->bias_example_sums(r->c, r->n, dpf_nn_positions(&r->node->shape), channels,
                            r->dy, r->own->sums);
    r->k->row_norms(r->c, r->n, channels, r->own->sums, r->net->squares);
}

void dpf_conv_add_clipped(const struct dpf_node_run *r, const struct dpf_conv *p,
                          const float *x, const float *dy)
{
    r->k->conv_add_clipped(r->c, p, r->n, r->net->factors, x, dy, r->own->kept,
                           dpf_run_gradient(r, 0));
    if (r->node->bias)
        r->k->add_scaled_rows(r->c, r->n, dpf_run_channels(r), r->net->factors,
                              r->own->sums, dpf_run_gradient(r, 1));
}

double dpf_conv_window(const struct dpf_node *n)
{
    return (double)(n->kernel[0] * n->kernel[1] * n->kernel[2]);
}

enum dpf_status dpf_pool_shape(struct dpf_node *n, const struct dpf_node *const *from,
                               const char *where, struct dpf_error *e)
{
    int64_t out[DPF_SPACE], stride[DPF_SPACE];
    memcpy(stride, n->kernel, sizeof stride); /* windows side by side */
    enum dpf_status status = dpf_window_size(n, from[0], false, stride, where, out, e);
    if (status == DPF_OK)
        n->shape =
            dpf_shape_with_space(&from[0]->shape, (int64_t)from[0]->shape.dim[0], out);
    return status;
}
