/* Training with public records that have no labels (semi-supervised), for students of
 * PATE: FixMatch (Sohn et al. 2020).
 *
 * Each step takes a lot of labelled examples and several lots of unlabelled ones. What
 * the network says about a slightly changed unlabelled picture, if it is sure enough, is
 * the label of a strongly changed version of the same picture. */
#ifndef DPF_STAGE_TRAIN_STUDENT_H
#define DPF_STAGE_TRAIN_STUDENT_H

#include "train.h"

/* Read v->unlabelled, train on it and on v->data, send header and model. */
enum dpf_status dpf_train_student(struct dpf_train *v, struct dpf_stage *s,
                                  struct dpf_error *e);

#endif
