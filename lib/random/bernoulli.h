/* Bits that are 1 with probability p exactly, 64 at a time.
 *
 * A uniform real U is below p if, at the first binary digit where the two differ, U has 0
 * and p has 1. Digit by digit, half of the undecided lanes are decided, so eight words
 * take about ten times eight random ones whatever p is, and nothing is rounded: a double
 * is a finite binary fraction. */
#ifndef DPF_RANDOM_BERNOULLI_H
#define DPF_RANDOM_BERNOULLI_H

#include "random/secure.h"

/* `count` words of 64 independent bits, each 1 with probability p in [0, 1]. */
void dpf_bernoulli_words(struct dpf_random *r, double p, uint64_t *words, size_t count);
/* One draw. */
bool dpf_bernoulli(struct dpf_random *r, double p);

/* Bits that are each replaced by a draw whose rate depends on the bit and on whether its
 * place is even or odd: p[place % 2][bit]. One comparison with U serves all four rates,
 * since the digits of p may differ from lane to lane: all lanes compare their first
 * digits together, and the few that are still undecided go on one by one. */
enum { DPF_BERNOULLI_DIGITS = 7 };
struct dpf_bernoulli_choice {
    double p[2][2];
    uint64_t sure[2];                        /* [bit]: lanes whose p is 1 */
    uint64_t open[2];                        /* lanes whose p lies between 0 and 1 */
    uint64_t digit[DPF_BERNOULLI_DIGITS][2]; /* [bit]: lanes whose p has a 1 there */
    uint64_t next[2][2];                     /* 64 further digits of each p */
};
void dpf_bernoulli_choice_init(struct dpf_bernoulli_choice *c, const double p[2][2]);
/* In place; bit i is bit i % 64 of word i / 64. */
void dpf_bernoulli_choose(const struct dpf_bernoulli_choice *c, struct dpf_random *r,
                          uint64_t *words, size_t count);

#endif
