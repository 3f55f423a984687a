/* Attributes of a node, "key=value" in a network's text: each with its name, its bounds
 * and its place in the node, in one table. An operation says which it needs and which it
 * may have. */
#ifndef DPF_NN_OPS_ATTRIBUTES_H
#define DPF_NN_OPS_ATTRIBUTES_H

#include "nn/model.h"

enum dpf_attribute {
    DPF_ATTRIBUTE_OUT = 1 << 0,
    DPF_ATTRIBUTE_KERNEL = 1 << 1,
    DPF_ATTRIBUTE_STRIDE = 1 << 2,
    DPF_ATTRIBUTE_PAD = 1 << 3,
    DPF_ATTRIBUTE_BIAS = 1 << 4,
    DPF_ATTRIBUTE_GROUPS = 1 << 5,
    DPF_ATTRIBUTE_WINDOW = 1 << 6,
    DPF_ATTRIBUTE_FACTOR = 1 << 7,
    DPF_ATTRIBUTE_RATE = 1 << 8,
    DPF_ATTRIBUTE_EPSILON = 1 << 9,
    DPF_ATTRIBUTE_ALPHA = 1 << 10,
    DPF_ATTRIBUTE_BETA = 1 << 11,
    DPF_ATTRIBUTE_BASE = 1 << 12,
    DPF_ATTRIBUTE_SIGMA = 1 << 13,
    DPF_ATTRIBUTE_SHAPE = 1 << 14,
    DPF_ATTRIBUTE_VISIBLE = 1 << 15,
    DPF_ATTRIBUTE_DEGREE = 1 << 16,
    DPF_ATTRIBUTE_SCALE = 1 << 17,
    DPF_ATTRIBUTE_FUNCTION = 1 << 18,
    DPF_ATTRIBUTE_EXPANSION = 1 << 19,
    DPF_ATTRIBUTE_FROM = 1 << 20,
    DPF_ATTRIBUTE_COUNT = 1 << 21,
};

/* "1x28x28": one to four numbers from 1 to 2^30. */
bool dpf_parse_dimensions(const char *text, struct dpf_shape *shape);
/* What they are where a text does not give them. A stride of 0 is not given: it depends
 * on the operation. */
void dpf_attributes_default(struct dpf_node *n);
/* Set one; *given grows. False: unknown, given before, or out of bounds. */
bool dpf_attribute_set(struct dpf_node *n, const char *key, const char *value,
                       unsigned *given);

#endif
