#include "random/bernoulli.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

/* p in (0, 1) is 2^-zeros times a fraction whose first 64 digits are `digits`, the first
 * of them 1. There are no others: a double has 53. */
struct expansion {
    int zeros;
    uint64_t digits;
};

static struct expansion expand(double p)
{
    int exponent;
    double m = frexp(p, &exponent); /* p = m 2^exponent, m in [1/2, 1) */
    return (struct expansion){.zeros = -exponent, .digits = (uint64_t)ldexp(m, 64)};
}

static inline uint64_t word(struct dpf_random *r, const struct expansion *x)
{
    uint64_t undecided = ~(uint64_t)0, result = 0;
    for (int i = 0; i < x->zeros && undecided; i++)
        undecided &= ~dpf_random_u64(r); /* U has 1 where p has 0: not below */
    for (uint64_t digits = x->digits; digits && undecided; digits <<= 1) {
        uint64_t drawn = dpf_random_u64(r);
        if (digits >> 63) {
            result |= undecided & ~drawn;
            undecided &= drawn;
        } else {
            undecided &= ~drawn;
        }
    }
    return result; /* all digits alike: U >= p */
}

void dpf_bernoulli_words(struct dpf_random *r, double p, uint64_t *words, size_t count)
{
    if (!(p > 0) || p >= 1) {
        memset(words, p >= 1 ? 0xff : 0, count * sizeof *words);
        return;
    }
    struct expansion x = expand(p);
    for (size_t i = 0; i < count; i++)
        words[i] = word(r, &x);
}

bool dpf_bernoulli(struct dpf_random *r, double p)
{
    if (!(p > 0) || p >= 1)
        return p >= 1;
    /* one lane: at the first digit where U has 0, p decides if it has 1 */
    struct expansion x = expand(p);
    for (int i = 0; i < x.zeros; i++)
        if (dpf_random_u64(r) >> 63)
            return false;
    return dpf_random_u64(r) < x.digits;
}
