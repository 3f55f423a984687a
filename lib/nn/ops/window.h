/* What slides over pictures and volumes: sizes of convolutions and poolings. */
#ifndef DPF_NN_OPS_WINDOW_H
#define DPF_NN_OPS_WINDOW_H

#include "nn/ops/op.h"

/* Check kernel, stride and padding against the input and work out the size of the result;
 * `up` for a transposed convolution. A stride that is not given becomes `stride`'s. */
enum dpf_status dpf_window_size(struct dpf_node *n, const struct dpf_node *from, bool up,
                                const int64_t stride[DPF_SPACE], const char *where,
                                int64_t out[DPF_SPACE], struct dpf_error *e);

/* The convolution behind a node; the other way round for a transposed one. */
struct dpf_conv dpf_conv_of(const struct dpf_node *n, const struct dpf_node *from);
struct dpf_conv dpf_conv_transpose_of(const struct dpf_node *n,
                                      const struct dpf_node *from);
/* A convolution of the same geometry with a single channel at both ends. */
struct dpf_conv dpf_conv_single(struct dpf_conv p);
struct dpf_pool dpf_pool_of(const struct dpf_node *n, const struct dpf_node *from);

/* Both kinds of convolutions have the same parameters: weights [a, b, kernel], a bias for
 * each output channel. */
void dpf_conv_parameters(struct dpf_node *n, uint64_t a, uint64_t b);
/* Clipping of both kinds. `x` and `dy` are the two sides whose products are the gradients
 * of the weights: a transposed one has them exchanged. Gradients of the bias are written
 * down for each example. */
struct dpf_example_room dpf_conv_room(const struct dpf_node_run *r,
                                      const struct dpf_conv *p);
void dpf_conv_example_norms(const struct dpf_node_run *r, const struct dpf_conv *p,
                            const float *x, const float *dy);
void dpf_conv_add_clipped(const struct dpf_node_run *r, const struct dpf_conv *p,
                          const float *x, const float *dy);
/* The window of the weights, a number of inputs for each of their channels. */
double dpf_conv_window(const struct dpf_node *n);

/* Shape of a pooling. */
enum dpf_status dpf_pool_shape(struct dpf_node *n, const struct dpf_node *const *from,
                               const char *where, struct dpf_error *e);

#endif
