/* A model's parameters by name, as others know them: NODE.weight and NODE.bias in the
 * shapes of PyTorch's layers. What stands in model frames and safetensors files; inside,
 * all parameters are one vector. */
#ifndef DPF_NN_WEIGHTS_H
#define DPF_NN_WEIGHTS_H

#include "nn/model.h"
#include "nn/safetensors.h"
#include "wire/decode.h"
#include "wire/encode.h"

/* The vector [model->span] as named tensors, into an empty list. */
enum dpf_status dpf_weights_export(const struct dpf_model *m, const float *parameters,
                                   struct dpf_safetensors *out, struct dpf_error *e);
/* Named tensors into the vector. Every parameter must be there with its shape, and
 * nothing else: DPF_BAD_STREAM names the tensor and both shapes. `name` is for messages.
 */
enum dpf_status dpf_weights_import(const struct dpf_model *m,
                                   const struct dpf_safetensors *from, const char *name,
                                   float *parameters, struct dpf_error *e);

/* A model frame: {"text", "parameters": {name: tensor}, ...}. Begin it with `more` keys
 * to be added by the caller after this call. `weights` must stay until it was sent. */
void dpf_weights_encode(struct dpf_encoder *enc, const struct dpf_model *m,
                        const struct dpf_safetensors *weights, unsigned more);
/* Read a model frame: parse its text, allocate *take_parameters (free with free()). */
enum dpf_status dpf_weights_decode(const msgpack_object *frame, struct dpf_model *m,
                                   float **take_parameters, struct dpf_error *e);

#endif
