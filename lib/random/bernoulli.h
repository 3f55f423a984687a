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

#endif
