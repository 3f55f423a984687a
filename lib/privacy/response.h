/* Randomised response: a person's own answer, changed with known probability before it
 * leaves their hands.
 *
 * Claim (M-ary). Keeping the true one of M answers with probability p and giving each
 * other one with probability (1 - p) / (M - 1) is e-local DP with
 * e = ln(p (M - 1) / (1 - p)), for p >= 1 / M. Proof: the largest ratio of two
 * probabilities of one answer. p is rounded down to a double, so e is at most what was
 * asked for, and draws are exact (random/bernoulli.h).
 *
 * Claim (bits). A bit that becomes 1 with probability p if it was 1 and q if it was 0
 * costs max(|ln(p / q)|, |ln((1 - p) / (1 - q))|), and a string of independently
 * randomised bits the sum over the bits that can differ between two inputs. Proof: the
 * probability of an output is a product over bits, and each factor's ratio reaches its
 * maximum for one of its two values. That holds for any p and q: whatever a paper claims
 * for its own, dpf_bits_epsilon() is what its bits cost.
 *
 * Claim (one-hot). If exactly one bit of every input is 1, two inputs differ in two bits,
 * one that falls from 1 to 0 and one that rises, and the cost is |ln(p / q)| +
 * |ln((1 - p) / (1 - q))|: the two factors reach their maxima for different outputs of
 * one bit, which two bits can have at once. */
#ifndef DPF_PRIVACY_RESPONSE_H
#define DPF_PRIVACY_RESPONSE_H

#include "base/status.h"
#include "random/bernoulli.h"

struct dpf_response {
    uint64_t choices;
    double keep;    /* p */
    double epsilon; /* of this p, rounded up; at most what was asked for */
};

enum dpf_status dpf_response_init(struct dpf_response *m, double epsilon,
                                  uint64_t choices, struct dpf_error *e);
/* The answer to give for a true one below `choices`. */
uint64_t dpf_response_draw(const struct dpf_response *m, struct dpf_random *r,
                           uint64_t truth);

/* How one bit is randomised. */
struct dpf_bit_rates {
    double one;  /* Pr[1 | 1] */
    double zero; /* Pr[1 | 0] */
};

/* The methods of the LATENT notes. `epsilon` is what the method's paper claims for a
 * whole input of `bits` bits (rr, moue, uer: t = epsilon / bits a bit) or for a one-hot
 * input (ue: t = epsilon / 2 a bit; oue). */
enum dpf_bit_method {
    DPF_BITS_RR,   /* keep with e^t / (1 + e^t) */
    DPF_BITS_UE,   /* the same, for one-hot inputs */
    DPF_BITS_OUE,  /* Pr[1|1] = 1/2, Pr[1|0] = 1 / (1 + e^epsilon) */
    DPF_BITS_MOUE, /* Pr[1|1] = 1 / (1 + alpha), Pr[1|0] = 1 / (1 + alpha e^t) */
    DPF_BITS_UER,  /* even: alpha / (1 + alpha); odd: 1 / (1 + alpha^3); Pr[0|0] =
                    * alpha e^t / (1 + alpha e^t) for both */
};

/* The rates of bits at even and odd positions. */
enum dpf_status dpf_bits_rates(enum dpf_bit_method method, double epsilon, uint64_t bits,
                               double alpha, struct dpf_bit_rates rates[2],
                               struct dpf_error *e);
/* What one bit costs, rounded up; infinite where a rate is 0 or 1. */
double dpf_bit_epsilon(const struct dpf_bit_rates *rates);
/* What a string costs if `differ` of its bits at each parity can differ. */
double dpf_bits_epsilon(const struct dpf_bit_rates rates[2], uint64_t differ_even,
                        uint64_t differ_odd);
/* What a one-hot input costs whose bits all have these rates, rounded up. */
double dpf_one_hot_epsilon(const struct dpf_bit_rates *rates);

/* Rates made ready for drawing. */
struct dpf_bit_randomiser {
    struct dpf_bit_rates rates[2];
    struct dpf_bernoulli_choice choice;
};
void dpf_bit_randomiser_init(struct dpf_bit_randomiser *m,
                             const struct dpf_bit_rates rates[2]);
/* Randomise packed bits (bit i is bit i % 64 of word i / 64) in place. */
void dpf_bits_randomise(const struct dpf_bit_randomiser *m, struct dpf_random *r,
                        uint64_t *words, size_t count);

#endif
