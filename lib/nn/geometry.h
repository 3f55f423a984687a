/* Sizes of a record: what operations and engine ask of a shape. */
#ifndef DPF_NN_GEOMETRY_H
#define DPF_NN_GEOMETRY_H

#include "kernels/kernels.h"
#include "nn/model.h"

int64_t dpf_nn_elements(const struct dpf_shape *s);
/* Depth, height and width; 1 where there is none. And their product. */
void dpf_nn_space(const struct dpf_shape *s, int64_t out[DPF_SPACE]);
int64_t dpf_nn_positions(const struct dpf_shape *s);

#endif
