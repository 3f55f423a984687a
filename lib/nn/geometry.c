#include "nn/geometry.h"

#include <string.h>

#include "base/banned.h"

int64_t dpf_nn_elements(const struct dpf_shape *s)
{
    return (int64_t)dpf_shape_elements(s);
}

void dpf_nn_space(const struct dpf_shape *s, int64_t out[DPF_SPACE])
{
    out[0] = s->rank == 4 ? (int64_t)s->dim[1] : 1;
    out[1] = s->rank >= 3 ? (int64_t)s->dim[s->rank - 2] : 1;
    out[2] = s->rank >= 3 ? (int64_t)s->dim[s->rank - 1] : 1;
}

int64_t dpf_nn_positions(const struct dpf_shape *s)
{
    int64_t size[DPF_SPACE];
    dpf_nn_space(s, size);
    return size[0] * size[1] * size[2];
}

struct dpf_conv dpf_nn_conv_of(const struct dpf_node *n, const struct dpf_node *from)
{
    bool up = n->op == DPF_OP_CONV_TRANSPOSE;
    const struct dpf_shape *in = up ? &n->shape : &from->shape;
    const struct dpf_shape *out = up ? &from->shape : &n->shape;
    struct dpf_conv p = {.in_channels = (int64_t)in->dim[0],
                         .out_channels = (int64_t)out->dim[0]};
    dpf_nn_space(in, p.in);
    dpf_nn_space(out, p.out);
    memcpy(p.kernel, n->kernel, sizeof p.kernel);
    memcpy(p.stride, n->stride, sizeof p.stride);
    memcpy(p.pad, n->pad, sizeof p.pad);
    return p;
}

struct dpf_pool dpf_nn_pool_of(const struct dpf_node *n, const struct dpf_node *from)
{
    struct dpf_pool p = {.channels = (int64_t)from->shape.dim[0]};
    dpf_nn_space(&from->shape, p.in);
    dpf_nn_space(&n->shape, p.out);
    memcpy(p.kernel, n->kernel, sizeof p.kernel);
    memcpy(p.stride, n->stride, sizeof p.stride);
    memcpy(p.pad, n->pad, sizeof p.pad);
    return p;
}

struct dpf_lrn dpf_nn_lrn_of(const struct dpf_node *n)
{
    return (struct dpf_lrn){(int64_t)n->shape.dim[0],
                            dpf_nn_positions(&n->shape),
                            n->window,
                            n->base,
                            n->alpha,
                            n->beta};
}

struct dpf_group_norm dpf_nn_group_norm_of(const struct dpf_node *n)
{
    return (struct dpf_group_norm){(int64_t)n->shape.dim[0], dpf_nn_positions(&n->shape),
                                   n->groups, n->epsilon};
}

enum dpf_unary dpf_nn_unary_of(enum dpf_op op)
{
    return op == DPF_OP_RELU      ? DPF_RELU
           : op == DPF_OP_CAP     ? DPF_CAP
           : op == DPF_OP_SIGMOID ? DPF_SIGMOID
                                  : DPF_TANH;
}
