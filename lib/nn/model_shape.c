/* Shapes: what each operation makes of its input, and the parameters it needs. */
#include <string.h>

#include "nn/model.h"

#include "base/banned.h"

/* A record is a vector [features], a picture [channels, height, width] or a volume
 * [channels, depth, height, width]. */
static bool is_spatial(const struct dpf_shape *s)
{
    return s->rank == 3 || s->rank == 4;
}

/* Depth, height and width, with depth 1 for a picture. */
static void space(const struct dpf_shape *s, int64_t out[3])
{
    out[0] = s->rank == 4 ? (int64_t)s->dim[1] : 1;
    out[1] = (int64_t)s->dim[s->rank - 2];
    out[2] = (int64_t)s->dim[s->rank - 1];
}

static struct dpf_shape with_space(const struct dpf_shape *like, int64_t channels,
                                   const int64_t size[3])
{
    struct dpf_shape s = {.rank = like->rank, .dim = {(uint64_t)channels}};
    for (int d = 0; d < s.rank - 1; d++)
        s.dim[1 + d] = (uint64_t)size[3 - (s.rank - 1) + d];
    return s;
}

static enum dpf_status misfit(const struct dpf_node *node, const struct dpf_node *from,
                              const char *where, const char *what, struct dpf_error *e)
{
    char shape[96];
    dpf_shape_format(&from->shape, shape, sizeof shape);
    return dpf_fail(e, DPF_USAGE, "%s: '%s' (%s) cannot read '%s' of shape %s: %s", where,
                    node->name, dpf_op_name(node->op), from->name, shape, what);
}

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

static enum dpf_status infer_window(struct dpf_node *n, const struct dpf_node *from,
                                    const char *where, struct dpf_error *e)
{
    int64_t in[3], out[3];
    if (!is_spatial(&from->shape))
        return misfit(n, from, where, "it needs channels, height and width", e);
    if (!flatten_depth(n, &from->shape))
        return misfit(n, from, where, "a picture has no depth", e);
    space(&from->shape, in);
    bool up = n->op == DPF_OP_CONV_TRANSPOSE;
    bool pool = n->op == DPF_OP_MAX_POOL || n->op == DPF_OP_AVERAGE_POOL;
    for (int d = 0; d < 3; d++) {
        if (n->pad[d] >= n->kernel[d])
            return misfit(n, from, where, "its padding is not smaller than its kernel",
                          e);
        if (!up && in[d] + 2 * n->pad[d] < n->kernel[d])
            return misfit(n, from, where, "its kernel is larger than the input", e);
        out[d] = up ? (in[d] - 1) * n->stride[d] + n->kernel[d] - 2 * n->pad[d]
                    : (in[d] + 2 * n->pad[d] - n->kernel[d]) / n->stride[d] + 1;
        if (out[d] < 1)
            return misfit(n, from, where, "nothing would be left", e);
    }
    int64_t channels = (int64_t)from->shape.dim[0];
    n->shape = with_space(&from->shape, pool ? channels : n->out, out);
    if (pool)
        return DPF_OK;
    /* A transposed convolution is a convolution the other way round, weights and all. */
    n->parameters[0] = (struct dpf_shape){
        .rank = 5,
        .dim = {(uint64_t)(up ? channels : n->out), (uint64_t)(up ? n->out : channels),
                (uint64_t)n->kernel[0], (uint64_t)n->kernel[1], (uint64_t)n->kernel[2]}};
    n->parameters[1] = (struct dpf_shape){.rank = 1, .dim = {(uint64_t)n->out}};
    n->parameter_count = n->bias ? 2 : 1;
    return DPF_OK;
}

static enum dpf_status infer_dense(struct dpf_node *n, const struct dpf_node *from,
                                   const char *where, struct dpf_error *e)
{
    if (from->shape.rank != 1)
        return misfit(n, from, where, "it needs a vector: put 'flatten' between", e);
    n->shape = (struct dpf_shape){.rank = 1, .dim = {(uint64_t)n->out}};
    uint64_t out = (uint64_t)n->out, in = from->shape.dim[0];
    n->parameters[0] = from->bits /* a set bit adds a row */
                           ? (struct dpf_shape){.rank = 2, .dim = {in, out}}
                           : (struct dpf_shape){.rank = 2, .dim = {out, in}};
    n->parameters[1] = (struct dpf_shape){.rank = 1, .dim = {(uint64_t)n->out}};
    n->parameter_count = n->bias ? 2 : 1;
    return DPF_OK;
}

static enum dpf_status infer_concat(struct dpf_node *n, const struct dpf_node *a,
                                    const struct dpf_node *b, const char *where,
                                    struct dpf_error *e)
{
    bool same = a->shape.rank == b->shape.rank;
    for (int d = 1; same && d < a->shape.rank; d++)
        same = a->shape.dim[d] == b->shape.dim[d];
    if (!same) {
        char left[96], right[96];
        dpf_shape_format(&a->shape, left, sizeof left);
        dpf_shape_format(&b->shape, right, sizeof right);
        return dpf_fail(e, DPF_USAGE,
                        "%s: '%s' cannot join '%s' of shape %s and '%s' of shape %s",
                        where, n->name, a->name, left, b->name, right);
    }
    n->shape = a->shape;
    n->shape.dim[0] += b->shape.dim[0];
    return DPF_OK;
}

static enum dpf_status infer_group_norm(struct dpf_node *n, const struct dpf_node *from,
                                        const char *where, struct dpf_error *e)
{
    uint64_t channels = from->shape.dim[0];
    if (channels % (uint64_t)n->groups != 0)
        return misfit(n, from, where, "its groups do not divide the channels", e);
    n->shape = from->shape;
    n->parameters[0] = n->parameters[1] =
        (struct dpf_shape){.rank = 1, .dim = {channels}};
    n->parameter_count = 2;
    return DPF_OK;
}

static enum dpf_status infer(struct dpf_node *n, const struct dpf_node *nodes,
                             const char *where, struct dpf_error *e)
{
    const struct dpf_node *from = &nodes[n->inputs[0]];
    int64_t size[3];
    switch (n->op) {
    case DPF_OP_DENSE:
        return infer_dense(n, from, where, e);
    case DPF_OP_CONV:
    case DPF_OP_CONV_TRANSPOSE:
    case DPF_OP_MAX_POOL:
    case DPF_OP_AVERAGE_POOL:
        return infer_window(n, from, where, e);
    case DPF_OP_CONCAT:
        return infer_concat(n, from, &nodes[n->inputs[1]], where, e);
    case DPF_OP_GROUP_NORM:
        return infer_group_norm(n, from, where, e);
    case DPF_OP_FLATTEN:
        n->shape =
            (struct dpf_shape){.rank = 1, .dim = {dpf_shape_elements(&from->shape)}};
        return DPF_OK;
    case DPF_OP_UPSAMPLE:
        if (!is_spatial(&from->shape))
            return misfit(n, from, where, "it needs channels, height and width", e);
        space(&from->shape, size);
        for (int d = from->shape.rank == 4 ? 0 : 1; d < 3; d++)
            size[d] *= n->factor;
        n->shape = with_space(&from->shape, (int64_t)from->shape.dim[0], size);
        return DPF_OK;
    case DPF_OP_LRN:
        if (!is_spatial(&from->shape))
            return misfit(n, from, where, "it needs channels: 'min-max' is for vectors",
                          e);
        break;
    case DPF_OP_SOFTMAX: /* over the classes: a vector's values, or a voxel's channels */
        break;
    case DPF_OP_MIN_MAX:
        if (from->shape.rank != 1)
            return misfit(n, from, where, "it needs a vector", e);
        break;
    case DPF_OP_BALL:
        if (from->shape.rank != 1 || from->shape.dim[0] < 2)
            return misfit(n, from, where, "it needs a vector of at least two", e);
        n->shape = (struct dpf_shape){.rank = 1, .dim = {from->shape.dim[0] - 1}};
        return DPF_OK;
    case DPF_OP_INPUT:
    case DPF_OP_RELU:
    case DPF_OP_SIGMOID:
    case DPF_OP_TANH:
    case DPF_OP_CAP:
    case DPF_OP_DROPOUT:
        break;
    }
    n->shape = from->shape;
    return DPF_OK;
}

enum dpf_status dpf_node_infer(struct dpf_node *node, const struct dpf_node *nodes,
                               const char *where, struct dpf_error *e)
{
    for (int i = 0; i < node->input_count; i++)
        if (nodes[node->inputs[i]].bits && node->op != DPF_OP_DENSE)
            return misfit(node, &nodes[node->inputs[i]], where,
                          "packed bits are for 'dense' only", e);
    enum dpf_status status = infer(node, nodes, where, e);
    size_t bytes;
    if (status != DPF_OK)
        return status;
    bool fits = dpf_shape_bytes(DPF_F32, &node->shape, &bytes);
    for (int i = 0; i < node->parameter_count; i++)
        fits = fits && dpf_shape_bytes(DPF_F32, &node->parameters[i], &bytes);
    if (!fits)
        return dpf_fail(e, DPF_USAGE, "%s: '%s' would be larger than 2^32-1 bytes", where,
                        node->name);
    return DPF_OK;
}
