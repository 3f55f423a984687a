/* From nodes to the kernels' descriptions of them: what forward and backward share. */
#ifndef DPF_NN_GEOMETRY_H
#define DPF_NN_GEOMETRY_H

#include "kernels/kernels.h"
#include "nn/model.h"

int64_t dpf_nn_elements(const struct dpf_shape *s);
/* Depth, height and width; 1 where there is none. And their product. */
void dpf_nn_space(const struct dpf_shape *s, int64_t out[DPF_SPACE]);
int64_t dpf_nn_positions(const struct dpf_shape *s);
/* The convolution behind a node; a transposed one has its ends exchanged. */
struct dpf_conv dpf_nn_conv_of(const struct dpf_node *n, const struct dpf_node *from);
struct dpf_pool dpf_nn_pool_of(const struct dpf_node *n, const struct dpf_node *from);
struct dpf_lrn dpf_nn_lrn_of(const struct dpf_node *n);
struct dpf_group_norm dpf_nn_group_norm_of(const struct dpf_node *n);
enum dpf_unary dpf_nn_unary_of(enum dpf_op op);

#endif
