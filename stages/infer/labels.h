/* Classes instead of scores: the highest one at each position. */
#ifndef DPF_STAGE_INFER_LABELS_H
#define DPF_STAGE_INFER_LABELS_H

#include "base/status.h"
#include "tensor/tensor.h"

/* Scores of shape [classes, ...] leave labels of shape [...]. */
struct dpf_shape dpf_labels_shape(const struct dpf_shape *scores);
/* Replace the scores of `rows` records by u8 labels; of equal scores the lowest wins. */
enum dpf_status dpf_scores_to_labels(const struct dpf_shape *scores, uint64_t rows,
                                     struct dpf_tensor *values, struct dpf_error *e);

#endif
