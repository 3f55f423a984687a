/* Operations that are one function of each value: all of kernels/unary.h's. */
#ifndef DPF_NN_OPS_UNARY_H
#define DPF_NN_OPS_UNARY_H

#include "nn/ops/op.h"

/* The forward and backward of function DPF_`function`, for a row's initialiser. */
#define DPF_UNARY_OP(function)                                                           \
    static void forward(const struct dpf_node_run *r)                                    \
    {                                                                                    \
        r->k->unary_forward(r->c, DPF_##function, r->n *dpf_run_record(r), r->x, r->y);  \
    }                                                                                    \
    static void backward(const struct dpf_node_run *r, float *dx)                        \
    {                                                                                    \
        r->k->unary_backward(r->c, DPF_##function, r->n *dpf_run_record(r), r->x, r->y,  \
                             r->dy, dx);                                                 \
    }
#define DPF_UNARY_ROW                                                                    \
    .inputs = 1, .shape = dpf_shape_same, .forward = forward, .backward = backward,      \
    .relevance = dpf_relevance_pass

#endif
