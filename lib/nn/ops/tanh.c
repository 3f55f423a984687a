/* tanh: the hyperbolic tangent. */
#include "nn/ops/unary.h"

#include "base/banned.h"

DPF_UNARY_OP(TANH)

const struct dpf_op dpf_op_tanh = {.name = "tanh", .keeps_value = true, DPF_UNARY_ROW};
