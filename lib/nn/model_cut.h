/* The part of a network behind one of its nodes: a decoder behind its code. */
#ifndef DPF_NN_MODEL_CUT_H
#define DPF_NN_MODEL_CUT_H

#include "nn/model.h"

/* `rest` reads what node `from` of `m` gives, and has the nodes that need nothing else;
 * *take_parameters is theirs, of `parameters`, on the heap. DPF_USAGE if there is no such
 * node, or the output needs more than it. */
enum dpf_status dpf_model_cut(const struct dpf_model *m, const float *parameters,
                              const char *from, struct dpf_model *rest,
                              float **take_parameters, struct dpf_error *e);

#endif
