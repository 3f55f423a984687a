/* One bit of many: whoever holds k bits tells one of them, by randomised response, and
 * says which.
 *
 * Claim. Telling the place j, uniform among k, and bit j kept with probability
 * p = e^e / (1 + e^e), is e-local DP for any two strings of k bits, however many of them
 * differ. Proof: the place does not depend on the string, and given the place the answer
 * is randomised response on one bit (privacy/response.h).
 *
 * With the bits read as -1 and 1, k (2 answer - 1) / (2p - 1) at place j and 0 elsewhere
 * has the string as its mean. Its variance is about (k / (2p - 1))^2 at one place in k:
 * few bits, or many records. */
#ifndef DPF_PRIVACY_SAMPLED_BIT_H
#define DPF_PRIVACY_SAMPLED_BIT_H

#include "privacy/response.h"

struct dpf_sampled_bit {
    uint64_t bits;
    struct dpf_response response;
};

enum dpf_status dpf_sampled_bit_init(struct dpf_sampled_bit *m, double epsilon,
                                     uint64_t bits, struct dpf_error *e);
/* The place and the answer for packed bits (bit i is bit i % 8 of byte i / 8). */
void dpf_sampled_bit_draw(const struct dpf_sampled_bit *m, struct dpf_random *r,
                          const uint8_t *bits, uint64_t *place, bool *answer);
/* The value of the estimate at the place that was told; elsewhere it is 0. */
double dpf_sampled_bit_estimate(const struct dpf_sampled_bit *m, bool answer);

#endif
