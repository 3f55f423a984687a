/* Where training starts: named ways to draw the first weights. The draws come from a
 * public seed and say nothing about anyone's data. */
#ifndef DPF_NN_INITIALISE_H
#define DPF_NN_INITIALISE_H

#include "nn/model.h"

/* One way. What an operation does not draw (group normalisation: scale 1, shift 0) is
 * the same for all; biases are 0, unless told otherwise. */
struct dpf_initialiser {
    const char *name;
    /* Standard deviation of the weights, by how many inputs an output adds up and how
     * many outputs an input reaches; NULL: nothing is drawn. */
    double (*deviation)(double in, double out);
    bool uniform;  /* else normal */
    bool as_torch; /* biases are drawn, and fans counted, as PyTorch's layers do */
    /* Change what was drawn: filters without a mean, edges, mirror images. Or NULL. */
    void (*arrange)(const struct dpf_model *m, const struct dpf_node *n,
                    float *parameters);
};
extern const struct dpf_initialiser dpf_initialisers[]; /* ended by one without a name */
/* Fill [model->span]. Each tensor has its own stream of the seed, so adding a layer does
 * not change the others. False for an unknown name. */
bool dpf_initialise(const struct dpf_model *m, const char *name, uint64_t seed,
                    float *parameters);

#endif
