/* A model with memory: values and gradients on a backend, forward and backward.
 *
 * Private training needs each example's gradient clipped before they are added. Writing
 * the gradients of a whole lot down would take as many times the memory of the
 * parameters. Here the gradients of all values are computed first; then each layer gives
 * the norms of its part of every example's gradient in the cheapest of three ways:
 *
 * - dense layers: the gradient is an outer product, so its norm is a product of norms;
 * - convolutions whose products of a microbatch fit in a cache keep them: nothing is
 *   computed twice, and the clipped sum is a weighted sum of what is there;
 * - others take the norm from Gram matrices ("ghost norm"), or from products that are
 *   not kept, whichever costs less, and make the clipped sum by scaling the rows of the
 *   gradient of their output.
 *
 * What is measured and what is added are float computations of the same gradient, in
 * different orders for the first and the last way. The norms of the last way carry a
 * bound on what that can do where large terms cancel; what rounding does to the sum over
 * examples, a mechanism whose sensitivity is clip_l2 has to allow for.
 *
 * Several networks may share one vector of parameters, each on a thread of its own. */
#ifndef DPF_NN_NETWORK_H
#define DPF_NN_NETWORK_H

#include "kernels/kernels.h"
#include "nn/model.h"

enum dpf_clip_rule {
    DPF_CLIP_NONE,
    DPF_CLIP_FLAT,      /* the whole gradient of an example to norm clip_l2 */
    DPF_CLIP_LAYER,     /* each layer's part to norm clip_l2: L layers, clip_l2 sqrt(L) */
    DPF_CLIP_AUTOMATIC, /* scaled to almost clip_l2, short ones too (Bu et al. 2022) */
};

/* How a layer gets the norms of its examples' gradients. */
enum dpf_norm_way { DPF_NORM_OUTER, DPF_NORM_KEPT, DPF_NORM_GHOST, DPF_NORM_DIRECT };

struct dpf_layer {
    float *value, *gradient; /* [capacity, shape]; gradient only where one is needed, and
                              * the place of relevance for nn/relevance.h */
    bool value_is_shared;    /* in place of the only input's value and gradient */
    bool fused;              /* a ReLU that the convolution before it has done */
    int32_t *chosen;         /* max-pool */
    float *slots;            /* KEPT: examples' gradients of the weights */
    float *sums;             /* examples' gradients of a bias, or of scale and shift */
    int64_t slot;            /* numbers in one of the slots */
    enum dpf_norm_way way;
    bool trains; /* it or a node before it has parameters */
    bool filled; /* gradient holds something of this backward */
};

struct dpf_network {
    const struct dpf_model *model;
    const struct dpf_kernels *kernels;
    int64_t capacity; /* examples in a microbatch */
    struct dpf_layer *layers;
    const float *parameters;  /* [model->span], borrowed, on the backend */
    float *gradients;         /* [model->span], sums over examples, on the backend */
    float *scratch;           /* as large as the largest value */
    float *squares, *factors; /* per example, on the backend */
    float *host;              /* two per example, here */
    bool remeasured;     /* a layer's norms are not those of the sums that are added */
    uint64_t seed, step; /* of dropout */
};

struct dpf_network_setup {
    const struct dpf_model *model;     /* borrowed */
    const struct dpf_kernels *kernels; /* borrowed */
    const float *parameters;           /* borrowed: [model->span], on the backend */
    int64_t capacity;                  /* examples in a microbatch */
    bool training;                     /* memory for gradients too */
    bool clipping;                     /* and for the norms of examples */
    bool every_value; /* each node's value can be read; else some are overwritten */
    bool relevance;   /* memory for every node's relevance; with every_value */
};

enum dpf_status dpf_network_init(struct dpf_network *net,
                                 const struct dpf_network_setup *setup,
                                 struct dpf_error *e);
void dpf_network_release(struct dpf_network *net);

/* Values of n examples; x is host memory (floats, channels first; or packed bits). While
 * training, dropout acts: `first` is the number of the first example in its lot, and with
 * net->step it decides what is dropped. */
void dpf_network_forward(struct dpf_network *net, int64_t n, const void *x, bool training,
                         uint64_t first);
/* The output node's values, on the backend, channels last. */
const float *dpf_network_output(const struct dpf_network *net);
/* A node's values of n examples into host memory, channels first. */
void dpf_network_read(struct dpf_network *net, size_t node, int64_t n, float *host);
/* The same of its relevance. */
void dpf_network_read_relevance(struct dpf_network *net, size_t node, int64_t n,
                                float *host);
/* Add the gradients of n examples to net->gradients, each clipped by `rule`.
 * d_output: the loss's gradient, host memory, channels last. After the forward of the
 * same examples. Returns how many examples were clipped (of all their layers, for
 * DPF_CLIP_LAYER). */
int64_t dpf_network_backward(struct dpf_network *net, int64_t n, uint64_t first,
                             const float *d_output, enum dpf_clip_rule rule,
                             double clip_l2);
void dpf_network_zero_gradients(struct dpf_network *net);
/* Bytes that a network of this setup takes, an example more, without parameters. */
size_t dpf_network_example_bytes(const struct dpf_model *model);

/* Inside: where node i's parameter k and its gradient stand. */
const float *dpf_network_parameter(const struct dpf_network *net, size_t i, int k);
float *dpf_network_gradient(const struct dpf_network *net, size_t i, int k);
/* Inside: which dropout mask the examples of node i have. */
uint64_t dpf_network_mask_stream(const struct dpf_network *net, size_t i, uint64_t first);

#endif
