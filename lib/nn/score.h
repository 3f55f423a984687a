/* How good a network's outputs are, in one pass and without keeping them: accuracy with
 * its uncertainty, what is taken for what, whether the confidence can be believed
 * (privacy noise tends to spoil it before it spoils the accuracy), and Dice for
 * segmentations. All numbers depend on the labels: they are as private as the examples.
 *
 * A position is what carries one label: an example, or a voxel of it. The conventions:
 *  - The predicted class has the highest score; of equal scores the lowest class wins.
 *  - A position with a NaN among its scores has no prediction. It counts as wrong and in
 *    its class's support, stands in no column of the confusion matrix, and is left out of
 *    confidence, NLL, Brier score and calibration error. `not_a_number` counts them.
 *  - A label outside 0 .. classes-1 leaves its position out of everything; `unlabelled`
 *    counts them. An example without any label in range is not counted, nor its loss.
 *  - Precision, recall and F1 are 0 where they are 0/0; look at the support.
 *  - Dice of a class is 2 |P and T| / (|P| + |T|), P the voxels predicted as the class
 * and T those labelled so. `dice` is the mean over the examples where P or T is not empty
 *    (an example that lacks the class in both says nothing about it; a class seen in one
 *    of the two only has 0), `dice_pooled` treats the whole set as one example. Both are
 *    NaN for a class that is nowhere. Their means are over the classes where they are
 *    defined, class 0 included; `dice_foreground` is the mean of `dice` without it.
 *  - Probabilities are the softmax of the scores; an infinite score is taken as a limit.
 *    The Brier score is the squared distance of all of them from the truth (0 to 2).
 *  - Calibration: DPF_SCORE_BINS bins (i/B, (i+1)/B] of the predicted class's
 * probability.
 *  - The interval is Wilson's, 95 %. Voxels of one example are not independent: there the
 *    number of trials is that of examples (Kish's (sum v)^2 / sum v^2 for v voxels each),
 *    the widest the interval can be.
 *  - What has nothing to be computed from is NaN. */
#ifndef DPF_NN_SCORE_H
#define DPF_NN_SCORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/findings.h"
#include "base/status.h"

enum {
    DPF_SCORE_BINS = 15,
    DPF_SCORE_TOP = 5,               /* the k of top-k, if there are more classes */
    DPF_SCORE_MATRIX_CLASSES = 4096, /* no confusion matrix beyond: 128 MiB */
    DPF_SCORE_MAX_CLASSES = 1 << 20,
};

struct dpf_score_class {
    uint64_t support, predicted, hits; /* labelled so, predicted so, both */
    double precision, recall, f1;
    uint64_t dice_examples; /* voxels: where the class was labelled or predicted */
    double dice, dice_pooled;
    /* inner: the example in hand, and the sum over those before it */
    uint64_t here_support, here_predicted, here_hits;
    double dice_sum;
};

struct dpf_score_bin {
    uint64_t count, hits;
    double confidence_sum;
};

struct dpf_score {
    uint64_t classes;
    bool voxels;
    /* Up to date after every dpf_score_add(). */
    uint64_t examples, positions, hits, top_hits, not_a_number, unlabelled;
    struct dpf_score_class *per_class;
    uint64_t *confusion; /* [truth * classes + predicted]; NULL if there are too many */
    struct dpf_score_bin bins[DPF_SCORE_BINS];
    double loss_sum, nll_sum, brier_sum, confidence_sum;
    double squares; /* sum over examples of their positions, squared */
    /* As of the last dpf_score_finish(), as are the numbers of the classes. */
    double loss, accuracy, accuracy_low, accuracy_high;
    double
        top; /* share of labels among the DPF_SCORE_TOP best; NaN without more classes */
    double nll, brier, confidence, ece, mce;
    double dice_mean, dice_pooled_mean, dice_foreground;
};

/* For 1 to DPF_SCORE_MAX_CLASSES classes, else DPF_USAGE. `voxels`: a segmentation, with
 * one label a voxel. On failure there is nothing to release. */
enum dpf_status dpf_score_init(struct dpf_score *s, uint64_t classes, bool voxels,
                               struct dpf_error *e);
void dpf_score_release(struct dpf_score *s);

/* One example: scores[v * classes + l] is the score of class l at position v, before any
 * softmax; one label a position; the loss as the caller defines it. `voxels_per_example`
 * is 1 unless init was told of voxels. Borrows everything; cannot fail. */
void dpf_score_add(struct dpf_score *s, const float *scores, int64_t voxels_per_example,
                   const int32_t *labels, double loss);

/* Compute what follows from the counts. More examples may be added and this be called
 * again. */
void dpf_score_finish(struct dpf_score *s);

/* Table and object as below, for whoever finds out more than this. */
void dpf_score_report(const struct dpf_score *s, const char *const *class_names,
                      struct dpf_findings *f);

/* For people, lines that end in a newline: a summary, a line a class, and the confusion
 * matrix for at most 20 classes. `class_names` (one a class, borrowed) may be NULL, or
 * have NULL entries. After dpf_score_finish(). Memory: out->failed. */
void dpf_score_table(const struct dpf_score *s, const char *const *class_names,
                     struct dpf_text *out);

/* One JSON object on one line without a newline: examples, accuracy, accuracy_low,
 * accuracy_high, loss, top5 (more than 5 classes), nll, brier, ece, mce, confidence,
 * not_a_number, unlabelled; for voxels positions, dice_mean, dice_pooled_mean,
 * dice_foreground; per_class:
 * [{class, support, precision, recall, f1, and dice, dice_pooled for voxels}]; confusion:
 * a row for each true class, or null beyond DPF_SCORE_MATRIX_CLASSES. What is not finite
 * is null. After dpf_score_finish(). Memory: out->failed. */
void dpf_score_json(const struct dpf_score *s, struct dpf_text *out);

#endif
