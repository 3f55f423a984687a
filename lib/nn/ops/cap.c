/* cap: cut to [0,1]; with lrn before it, Eq. 22 of the AdLM paper. */
#include "nn/ops/unary.h"

#include "base/banned.h"

DPF_UNARY_OP(CAP)

const struct dpf_op dpf_op_cap = {
    .name = "cap", .keeps_value = true, .sign = DPF_SIGN_NOT_NEGATIVE, DPF_UNARY_ROW};
