/* Numbers as strings of bits (LATENT, Eq. 5 and Fig. 4): a sign, `whole` bits before the
 * point and `fraction` bits behind it, most significant first, so that a randomiser can
 * work on bits and a network can be trained on them.
 *
 * |x| is cut off behind the last bit, as the floor of Eq. 5 has it (which counts k from
 * -m to n, one bit too many: the whole part ends at 2^(n-1)). What does not fit
 * saturates, never wraps: a large value turned small would be a lie about the record.
 * Values on the grid come back exactly. */
#ifndef DPF_DATA_BINARY_H
#define DPF_DATA_BINARY_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DPF_BINARY_MAX_BITS = 16 }; /* of one value */

struct dpf_binary {
    int whole, fraction;
};

/* DPF_USAGE if there are more than DPF_BINARY_MAX_BITS with the sign. */
enum dpf_status dpf_binary_check(const struct dpf_binary *b, struct dpf_error *e);
/* Bits of one value, the sign among them. */
int dpf_binary_bits(const struct dpf_binary *b);
/* Bytes of `count` values: packed, bit i is bit i % 8 of byte i / 8. */
size_t dpf_binary_bytes(const struct dpf_binary *b, size_t count);
/* The largest value that fits. */
double dpf_binary_largest(const struct dpf_binary *b);

/* `bits` has dpf_binary_bytes() of room; unused bits of its last byte become 0. Returns
 * how many values did not fit; what is no number counts as such and becomes 0. */
uint64_t dpf_binary_encode(const struct dpf_binary *b, const float *x, size_t count,
                           uint8_t *bits);
/* Each bit of `count` encoded values as -1 or 1. */
void dpf_binary_signs(const struct dpf_binary *b, const uint8_t *bits, size_t count,
                      float *signs);
void dpf_binary_decode(const struct dpf_binary *b, const uint8_t *bits, size_t count,
                       float *x);

#endif
