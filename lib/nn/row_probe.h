/* Whether what a network computes of an example depends on anything but the example.
 *
 * A bound on a clipped gradient says nothing about the other examples: if one more record
 * makes a library take another path through a product, the values of all others change in
 * their last bits, a ReLU flips, and a gradient that is as long as before points
 * elsewhere. So clipped training computes values in microbatches of few sizes, and before
 * a size is used it is tried: with random weights, a random example has to give the same
 * bits in every row, whatever the other rows hold (infinities and NaN among it), as in
 * the first row of the largest microbatch. A size that fails is not used, the next larger
 * one is; if the largest fails, examples are computed one at a time.
 *
 * Claim. With the sizes that dpf_row_probe_size() gives, the values and gradients of an
 * example in a network are a function of its input, its key, its target and the
 * parameters, the same in every row and on every thread. Proof. Kernels are sequences of
 * operations that do not depend on the numbers (no algorithm of the libraries in use
 * branches on them), so a row's result is one fixed expression of the example and, at
 * most, of other rows. Two expressions that differ in the order or grouping of a sum
 * differ on a random example in one of its values with probability near 1, and the trial
 * has many values and is repeated until it has had thousands. An expression with another
 * row in it shows when that row is NaN. What is trusted is the first sentence, of oneDNN
 * and OpenBLAS; what is tried is the machine, the shapes and the builds at hand. */
#ifndef DPF_NN_ROW_PROBE_H
#define DPF_NN_ROW_PROBE_H

#include "nn/network.h"

struct dpf_row_probe {
    struct dpf_network *net; /* borrowed: its values are overwritten */
    unsigned char *state;    /* [capacity + 1]: of each size */
    float *parameters;       /* random, on the backend */
    bool borrowed;           /* they are another probe's */
    void *x;                 /* a microbatch's inputs */
    float *d;                /* its outputs' gradients */
    uint64_t *keys;
    float *rows; /* one node's values or gradients, here */
    float *reference;
    size_t example;  /* floats in a reference: all values and gradients of an example */
    int trials;      /* random examples, each with a reference */
    int64_t quantum; /* sizes are multiples of it, and the capacity */
    bool has_reference;
};

/* `other`, if not NULL: one of a network of the same model, which lives longer and shares
 * its random parameters. */
enum dpf_status dpf_row_probe_init(struct dpf_row_probe *p, struct dpf_network *net,
                                   const struct dpf_row_probe *other,
                                   struct dpf_error *e);
void dpf_row_probe_release(struct dpf_row_probe *p);
/* How many rows to compute for n examples, 1 <= n <= capacity: at least n; or 1, which
 * means one example at a time. Tries a size when it is first asked for, so not between
 * the forward and the backward of a microbatch. */
int64_t dpf_row_probe_size(struct dpf_row_probe *p, int64_t n);

#endif
