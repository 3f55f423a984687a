/* Losses: one number for each example and its gradient with respect to the network's
 * output, which are scores before any softmax or sigmoid, unless said otherwise. A loss
 * is a row; the table holds the words. Backends compute losses of whole microbatches
 * (`losses` in kernels/table.inc); the function of a row is the truth for one example. */
#ifndef DPF_KERNELS_LOSS_H
#define DPF_KERNELS_LOSS_H

#include <stdbool.h>
#include <stdint.h>

/* What an example's loss needs besides its output. */
struct dpf_loss_target {
    const int32_t *labels; /* one for an example, or one for each voxel */
    const float *values;   /* numbers; `targets` of a row tells how many */
};

enum dpf_loss_targets {
    DPF_TARGET_LABEL,        /* one label; the output is a vector of scores */
    DPF_TARGET_VOXEL_LABELS, /* a label for each position; scores are the channels */
    DPF_TARGET_VALUES,       /* a number for each output */
    DPF_TARGET_COEFFICIENTS, /* two for each output, which is a vector: see taylor2 */
};

struct dpf_loss {
    const char *name;
    enum dpf_loss_targets targets;
    uint64_t most_classes; /* that it can take; 0: any number */
    const char *labelled;  /* COEFFICIENTS: the loss that they expand, for records that
                            * have labels instead */
    /* One example: `classes` scores, for voxels those of each of `voxels` positions.
     * Labels are below `classes`. Returns the loss and writes its gradient. */
    double (*example)(int64_t classes, int64_t voxels, const float *output,
                      const struct dpf_loss_target *target, float *gradient);
};

extern const struct dpf_loss dpf_losses[]; /* ended by a row without a name */

const struct dpf_loss *dpf_loss_find(const char *name); /* NULL: there is none */
/* Whether targets are classes. */
bool dpf_loss_wants_labels(const struct dpf_loss *loss);
/* The loss that records with classes are scored by: itself, or the one it expands. */
const struct dpf_loss *dpf_loss_for_labels(const struct dpf_loss *loss);

#endif
