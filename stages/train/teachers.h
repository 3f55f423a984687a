/* Many models at once, each of another part of the records. */
#ifndef DPF_STAGE_TRAIN_TEACHERS_H
#define DPF_STAGE_TRAIN_TEACHERS_H

#include "train.h"

/* All records are in v->data: train v->teachers networks, and send header and models. */
enum dpf_status dpf_train_teachers(struct dpf_train *v, struct dpf_stage *s,
                                   struct dpf_error *e);

#endif
