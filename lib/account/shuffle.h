/* Amplification by shuffling: the guarantee of local mechanisms when the messages of many
 * people are shuffled before anyone sees them.
 *
 * Claim. If each of n records passes through the same e0-local randomiser, nothing
 * travels with a message that tells whose it is, and a trusted shuffler hides the order,
 * the shuffled messages are (e, d)-DP under replace-one for any d in (0, 1] with e0 <=
 * ln(n / (16 ln(2 / d))) and e the logarithm of 1 + (e^e0 - 1) / (e^e0 + 1) (8 sqrt(e^e0
 * ln(4 / d)) / sqrt(n) + 8 e^e0 / n). Proof: Feldman, McMillan and Talwar 2021,
 * Theorem 3.1 (hiding among the clones). */
#ifndef DPF_ACCOUNT_SHUFFLE_H
#define DPF_ACCOUNT_SHUFFLE_H

#include <stdint.h>

/* Rounded up; e0 itself where the theorem does not apply or gives no less. */
double dpf_shuffled_epsilon(double local_epsilon, uint64_t messages, double delta);

#endif
