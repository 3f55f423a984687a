/* A model with memory: values, gradients and parameters on a backend, forward and
 * backward.
 *
 * Private training needs each example's gradient clipped before they are added. Writing B
 * gradients down would take B times the memory of the parameters; instead the gradients
 * of all activations are computed first, the norm of each example's parameter gradient is
 * taken from them layer by layer, the rows of the activation gradients are scaled by the
 * clipping factors, and then the ordinary products give the clipped sum in one pass. */
#ifndef DPF_NN_NETWORK_H
#define DPF_NN_NETWORK_H

#include "kernels/kernels.h"
#include "nn/model.h"

enum dpf_clip_rule {
    DPF_CLIP_NONE,
    DPF_CLIP_FLAT,  /* the whole gradient of an example to norm clip_l2 */
    DPF_CLIP_LAYER, /* each layer's part of it to norm clip_l2 */
};

struct dpf_layer {
    float *value, *gradient; /* [capacity, shape]; gradient only where one is needed */
    int32_t *chosen;         /* max-pool */
    float *parameters[DPF_NODE_PARAMETERS];
    float *gradients[DPF_NODE_PARAMETERS]; /* of the parameters: sums over examples */
    bool trains;                           /* it or a node before it has parameters */
    bool filled;                           /* gradient holds something of this backward */
};

struct dpf_network {
    const struct dpf_model *model;
    const struct dpf_kernels *kernels;
    int64_t capacity; /* examples in a microbatch */
    struct dpf_layer *layers;
    float *scratch;           /* as large as the largest value */
    float *sums;              /* per example and channel, for small parameters */
    float *squares, *factors; /* per example, on the backend */
    float *host;              /* per example, here */
    uint64_t seed, step;      /* of dropout */
};

/* Allocate for microbatches of `capacity` examples. The model is borrowed. Parameters are
 * not initialised. */
enum dpf_status dpf_network_init(struct dpf_network *net, const struct dpf_model *model,
                                 const struct dpf_kernels *kernels, int64_t capacity,
                                 struct dpf_error *e);
void dpf_network_release(struct dpf_network *net);

/* Values of n examples; x is host memory (floats, or packed bits). Dropout only acts
 * while training. */
void dpf_network_forward(struct dpf_network *net, int64_t n, const void *x,
                         bool training);
/* The output node's values, on the backend. */
const float *dpf_network_output(const struct dpf_network *net);
/* Add the gradients of n examples to the parameters' gradients, each clipped by `rule`.
 * d_output: the loss's gradient, host memory. After the forward of the same examples.
 * Returns how many examples were clipped (of all their layers, for DPF_CLIP_LAYER). */
int64_t dpf_network_backward(struct dpf_network *net, int64_t n, const float *d_output,
                             enum dpf_clip_rule rule, double clip_l2);
void dpf_network_zero_gradients(struct dpf_network *net);
/* Zeros into a backend's memory. */
void dpf_network_clear(const struct dpf_kernels *k, float *x, int64_t count);

#endif
