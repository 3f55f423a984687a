/* Where training starts: named ways to draw the first weights. The draws come from a
 * public seed and say nothing about anyone's data. */
#ifndef DPF_NN_INITIALISE_H
#define DPF_NN_INITIALISE_H

#include "nn/model.h"

/* Names, ended by NULL: he-normal, he-uniform, xavier-normal, xavier-uniform,
 * lecun-normal, torch (uniform in +-1/sqrt(inputs), biases too, as PyTorch's layers
 * start), zero, oriented (edges of several directions), he-centred (he-normal, each
 * filter less its mean). Biases are 0 (but for torch); group normalisation starts at
 * scale 1, shift 0. */
extern const char *const dpf_initialisers[];
/* Fill [model->span]. Each tensor has its own stream of the seed, so adding a layer does
 * not change the others. False for an unknown name. */
bool dpf_initialise(const struct dpf_model *m, const char *name, uint64_t seed,
                    float *parameters);

#endif
