/* sigmoid: 1 / (1 + e^-x). */
#include "nn/ops/unary.h"

#include "base/banned.h"

DPF_UNARY_OP(SIGMOID)

const struct dpf_op dpf_op_sigmoid = {
    .name = "sigmoid", .keeps_value = true, .sign = DPF_SIGN_NOT_NEGATIVE, DPF_UNARY_ROW};
