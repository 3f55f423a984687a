/* What `visible=1` adds to a dense layer or a convolution that learns as an energy model
 * (nn/energy.h): a bias c of what it reads, and, if the node has a second input, the
 * conditions u of each example, biases that depend on them: b + B u and c + A u, one
 * number for each channel, the same at all its positions.
 *
 * The node's value has B u; c and A have no other gradient than that of the energy. The
 * gradient of B is, for an example, the product of s, the gradient of its value summed
 * over positions, and u: what a dense layer of input u and gradient s would have. */
#ifndef DPF_NN_OPS_VISIBLE_H
#define DPF_NN_OPS_VISIBLE_H

#include "nn/ops/op.h"

/* One side of the machine: its units, and the parameter that u is weighed with. */
struct dpf_side {
    int parameter;
    int64_t channels, positions;
};
struct dpf_side dpf_hidden_side(const struct dpf_node_run *r);
struct dpf_side dpf_visible_side(const struct dpf_node_run *r);

/* The parameters that `visible=1` and conditions add to the node. DPF_USAGE if its inputs
 * do not fit. */
enum dpf_status dpf_visible_parameters(struct dpf_node *n,
                                       const struct dpf_node *const *from,
                                       const char *where, struct dpf_error *e);
/* Conditions of the examples; NULL if the node reads none. */
const float *dpf_run_conditions(const struct dpf_node_run *r);
/* y, the units of one side, grows by the part of their biases that depends on u, and the
 * gradient of the weights of u by what `dy` gives it. Without conditions they do nothing.
 */
void dpf_conditions_add(const struct dpf_node_run *r, struct dpf_side side, float *y);
void dpf_conditions_gradient(const struct dpf_node_run *r, struct dpf_side side,
                             const float *dy);

/* As operations see B: y = u w' at all positions; its way back, x = s w, s summed over
 * positions; and the norms of examples' gradients, `sums` being those of the value's. */
void dpf_conditions_sums(const struct dpf_node_run *r, const float *u, const float *w,
                         float *y);
void dpf_conditions_back(const struct dpf_node_run *r, const float *s, const float *w,
                         float *x);
void dpf_conditions_norms(const struct dpf_node_run *r, const float *sums);
/* The gradient of B from such sums, scaled or not. */
void dpf_conditions_outer(const struct dpf_node_run *r, struct dpf_side side,
                          const float *sums);

#endif
