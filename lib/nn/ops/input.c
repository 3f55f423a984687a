/* What the network reads: numbers, or packed bits. It stands on a line of its own, not in
 * the table of what a line can compute. */
#include "nn/ops/op.h"

#include "base/banned.h"

const struct dpf_op dpf_op_input = {.name = "input", .keeps_value = true};
