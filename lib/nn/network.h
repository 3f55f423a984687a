/* A model with memory: values and gradients on a backend, forward and backward.
 *
 * Private training needs each example's gradient clipped before they are added. Writing
 * the gradients of a whole lot down would take as many times the memory of the
 * parameters. Here the gradients of all values are computed first; then each layer gives
 * the norms of its part of every example's gradient, and what was measured is added:
 *
 * - dense layers: the gradient is an outer product of two rows of floats, so its norm is
 *   a product of norms, and the sum is a product of the rows, one of them scaled;
 * - convolutions keep the gradients of a microbatch or compute them again for the sum, by
 *   the same call on the same numbers, so the same bits: the backend knows what is
 * faster;
 * - biases, scales and shifts are written down for each example.
 *
 * Which of these an operation does stands in its file, nn/ops/.
 *
 * Claim. With a clip rule, dpf_network_backward() adds to net->gradients, for each
 * example, a term t that is a function of its numbers in this network alone, in the sense
 * of privacy/lot_sum.h, with |t| <= clip_l2 (1 + 2^-22) (for DPF_CLIP_LAYER: each layer's
 * part). Proof. Norms are in double and never below the true ones (kernels/kernels.h),
 * and their sum over layers, its root and the quotient with clip_l2 are rounded against
 * the example: factor * norm <= clip_l2. Without rounding the terms are the products of
 * factor and what was measured. In dense layers a row is scaled first, each number off by
 * at most a 2^-24th of itself, or gone (scale_rows). An example whose norm is not finite
 * has the term 0, and what its layers read is cleared, so that no 0 meets an infinity.
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

/* The rules that can be chosen, with their names; ended by a row without one. */
struct dpf_clip_choice {
    const char *name;
    enum dpf_clip_rule rule;
};
extern const struct dpf_clip_choice dpf_clip_choices[];

struct dpf_layer {
    float *value, *gradient; /* [capacity, shape]; gradient only where one is needed, and
                              * the place of relevance for nn/relevance.h */
    bool value_is_shared;    /* in place of the only input's value and gradient */
    bool absorbed;           /* the node before it has done it (dpf_op.absorbs) */
    void *places;            /* what forward leaves for backward (dpf_op.place_bytes) */
    float *kept, *sums;      /* between norms and sums (dpf_example_room) */
    float *shifts; /* a number for each channel, for conditions (ops/visible.h) */
    bool trains;   /* it or a node before it has parameters */
    bool filled;   /* gradient holds something of this backward */
};

struct dpf_network {
    const struct dpf_model *model;
    const struct dpf_kernels *kernels;
    struct dpf_context *context; /* borrowed */
    int64_t capacity;            /* examples in a microbatch */
    size_t computed;             /* forward ends before this node; all of them at first */
    struct dpf_layer *layers;
    const float *parameters; /* [model->span], borrowed, on the backend */
    float *gradients;        /* [model->span], sums over examples, on the backend */
    float *scratch;          /* as large as the largest value */
    double *squares;         /* per example, on the backend */
    float *factors;          /* per example, on the backend */
    double *zeros;           /* per example, here: what squares start from */
    const uint64_t *keys;    /* of the examples in hand, for dropout; borrowed */
};

struct dpf_network_setup {
    const struct dpf_model *model;     /* borrowed */
    const struct dpf_kernels *kernels; /* borrowed */
    struct dpf_context *context;       /* borrowed: where it computes */
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
 * training, dropout acts, and each example's key decides what it drops; keys are borrowed
 * until the backward has been done. Without training they may be NULL. */
void dpf_network_forward(struct dpf_network *net, int64_t n, const void *x, bool training,
                         const uint64_t *keys);
/* The output node's values, on the backend, channels last. */
const float *dpf_network_output(const struct dpf_network *net);
/* A node's values of n examples into host memory, channels first. */
void dpf_network_read(struct dpf_network *net, size_t node, int64_t n, float *host);
/* The same of its relevance. */
void dpf_network_read_relevance(struct dpf_network *net, size_t node, int64_t n,
                                float *host);
/* Where the gradient of the output's values belongs, on the backend, channels last; NULL
 * if nothing of it would be used: no parameters, or not set up for training. */
float *dpf_network_output_gradient(struct dpf_network *net);
/* Add the gradients of n examples to net->gradients, each clipped by `rule`. d_output:
 * the loss's gradient, host memory, channels last; NULL: it stands where it belongs.
 * After the forward of the same examples. Returns how many examples were clipped (of all
 * their layers, for DPF_CLIP_LAYER). */
int64_t dpf_network_backward(struct dpf_network *net, int64_t n, const float *d_output,
                             enum dpf_clip_rule rule, double clip_l2);
/* Its first half: the gradients of all values, up to the first node with parameters. */
void dpf_network_value_gradients(struct dpf_network *net, int64_t n,
                                 const float *d_output);
void dpf_network_zero_gradients(struct dpf_network *net);
/* Bytes that a network of this setup takes, an example more, without parameters. */
size_t dpf_network_example_bytes(const struct dpf_model *model);

/* Inside: where node i's parameter k and its gradient stand. */
const float *dpf_network_parameter(const struct dpf_network *net, size_t i, int k);
float *dpf_network_gradient(const struct dpf_network *net, size_t i, int k);

#endif
