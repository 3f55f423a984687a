/* Losses: one number an example and its gradient with respect to the network's output, in
 * host memory. Outputs are scores before any softmax or sigmoid, unless said otherwise.
 */
#ifndef DPF_NN_LOSS_H
#define DPF_NN_LOSS_H

#include <stdint.h>

enum dpf_loss {
    DPF_LOSS_CROSS_ENTROPY, /* softmax; target: one label an example */
    DPF_LOSS_LOGISTIC, /* one logistic cross-entropy a class, summed; target: label */
    DPF_LOSS_TAYLOR,   /* its second-order Taylor form, target: coefficients */
    DPF_LOSS_SQUARED,  /* half the squared distance; target: values */
    DPF_LOSS_VOXEL,    /* softmax over channels at each voxel, mean; target: labels */
    DPF_LOSS_DICE,     /* 1 - mean soft Dice over classes; target: labels */
};

extern const char *const dpf_loss_words[]; /* their names, ended by NULL */

/* What an example's loss needs besides its output. */
struct dpf_loss_target {
    const int32_t *labels; /* CROSS_ENTROPY and LOGISTIC: one; VOXEL, DICE: one a voxel */
    const float *values;   /* SQUARED: one an output; TAYLOR: two a class, see below */
};

enum { DPF_LOSS_MAX_DICE = 256 }; /* classes */

/* One example: `classes` scores (for VOXEL and DICE, those of each of `voxels`
 * positions). Labels must be below `classes`. Returns the loss and writes its gradient.
 *
 * TAYLOR: sum over classes of log 2 + c1 z + c2 z^2. Without noise c1 = 1/2 - y and
 * c2 = 1/8 (y is 1 for the true class, else 0), the expansion of the logistic
 * cross-entropy at 0; values[2 l] is c1 and values[2 l + 1] is c2 of class l. */
double dpf_loss_example(enum dpf_loss loss, int64_t classes, int64_t voxels,
                        const float *output, const struct dpf_loss_target *target,
                        float *gradient);

#endif
