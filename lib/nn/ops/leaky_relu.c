/* leaky-relu: a hundredth of what is negative. It works in place: its sign is that of
 * what it read, and a dropout in its place changes no sign where it lets a gradient
 * through. */
#include "nn/ops/unary.h"

#include "base/banned.h"

DPF_UNARY_OP(LEAKY_RELU)

const struct dpf_op dpf_op_leaky_relu = {
    .name = "leaky-relu", .in_place = DPF_IN_PLACE, DPF_UNARY_ROW};
