/* Energy models: restricted Boltzmann machines, dense and convolutional, learned by
 * contrastive divergence.
 *
 * A node with weights W, a bias b and a visible bias c (`visible=1`) is such a machine.
 * Its visible units v are the node's input, its hidden ones h have the node's shape, all
 * of them 0 or 1, and
 *
 *     E(v, h) = - sum h (W * v) - sum b h - sum c v
 *
 * where W * v is what the node computes without its bias: a product, or a convolution
 * whose filters, hidden biases (one a channel) and visible biases (one a channel of the
 * input) are shared by all positions (pCDBN, Eqs. 4 to 7). Given the other side all units
 * are independent: P(h = 1 | v) = sigmoid(W * v + b) and P(v = 1 | h) = sigmoid(W' * h +
 * c), W' being the way back. Inputs between 0 and 1 are taken for probabilities.
 *
 * With a second input u, the conditions of an example, the machine is conditional and its
 * biases are dynamic (Eqs. 23 to 26; nn/ops/visible.h):
 *
 *     E(v, h | u) = - sum h (W * v) - sum (b + B u) h - sum (c + A u) v
 *
 * u is never sampled; everything below is of v given u. The paper's eta_k and eta, which
 * weigh the influence of friends, are the columns of B and A that belong to its value.
 *
 * Contrastive divergence of k steps (Hinton 2002) takes, in place of the gradient of the
 * log-likelihood, that of F(v-) - F(v) at fixed v-, where F(v) = - sum c v - sum log(1 +
 * e^(W * v + b)) is the free energy and v- comes from k steps of Gibbs sampling that
 * start at v; with persistent chains (Tieleman 2008) where the sampling of the step
 * before ended. A chain belongs to a place in the lot: with conditions it goes on under
 * those of the example that stands there now.
 *
 * Draws are a function of an example's key, the node and the number of the draw, as those
 * of dropout. */
#ifndef DPF_NN_ENERGY_H
#define DPF_NN_ENERGY_H

#include "kernels/kernels.h"
#include "nn/model.h"

struct dpf_worker;
struct dpf_lot;

struct dpf_energy {
    size_t node;
    int64_t steps; /* of Gibbs sampling, at least 1 */
    float *chains; /* persistent: [chain_count, visible units], on the host; else NULL */
    int64_t chain_count; /* as many as a lot has examples */
};

/* The node of this name; NULL: the only one with a visible bias. DPF_USAGE if there is no
 * such node. */
enum dpf_status dpf_energy_find(const struct dpf_model *m, const char *name, size_t *node,
                                struct dpf_error *e);
/* Chains that have not started: probabilities of 1/2. DPF_SYSTEM without memory. */
enum dpf_status dpf_energy_chains(struct dpf_energy *energy, const struct dpf_model *m,
                                  int64_t count, struct dpf_error *e);
void dpf_energy_release(struct dpf_energy *energy);

/* Memory of a worker for it, on the backend. */
struct dpf_energy_room {
    float *hidden, *sample, *visible, *minus;
};
bool dpf_energy_room_init(struct dpf_worker *w, size_t node);
void dpf_energy_room_release(struct dpf_worker *w);

/* After the forward of n examples of a lot, from number `first` on: add their gradients
 * to the worker's, and half the squared distance between each and its reconstruction to
 * its loss. */
void dpf_energy_gradients(struct dpf_worker *w, const struct dpf_lot *lot, int64_t first,
                          int64_t n);
/* The same distance without draws: the reconstruction from the hidden units'
 * probabilities. */
void dpf_energy_losses(struct dpf_worker *w, const struct dpf_lot *lot, int64_t n);

#endif
