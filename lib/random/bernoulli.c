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

/* GROUP words side by side, as vector code: a digit of U for each of their lanes is drawn
 * while any of them is undecided. */
enum { GROUP = 8 };

static inline __attribute__((always_inline)) void
group(struct dpf_random *r, const struct expansion *x, uint64_t result[GROUP])
{
    uint64_t undecided[GROUP], drawn[GROUP], left = 1, digits = x->digits;
    for (int i = 0; i < GROUP; i++) {
        undecided[i] = ~(uint64_t)0;
        result[i] = 0;
    }
    for (int zeros = x->zeros; (zeros > 0 || digits) && left; zeros--) {
        uint64_t one = 0; /* all ones where p's digit is 1 */
        if (zeros <= 0) {
            one = 0 - (digits >> 63);
            digits <<= 1;
        }
        memcpy(drawn, dpf_random_take(r, sizeof drawn), sizeof drawn);
        left = 0;
        for (int i = 0; i < GROUP; i++) {
            result[i] |= undecided[i] & ~drawn[i] & one; /* U has 0 where p has 1 */
            undecided[i] &= drawn[i] ^ ~one;             /* U's digit is p's */
            left |= undecided[i];
        }
    } /* all digits alike: U >= p */
}

static inline __attribute__((always_inline)) void
groups(struct dpf_random *r, const struct expansion *x, uint64_t *words, size_t count)
{
    uint64_t result[GROUP];
    for (size_t done = 0; done < count; done += GROUP) {
        size_t left = count - done < GROUP ? count - done : GROUP;
        group(r, x, result);
        memcpy(words + done, result, left * sizeof *words);
    }
}

static void groups_anywhere(struct dpf_random *r, const struct expansion *x,
                            uint64_t *words, size_t count)
{
    groups(r, x, words, count);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void groups_avx2(struct dpf_random *r,
                                                        const struct expansion *x,
                                                        uint64_t *words, size_t count)
{
    groups(r, x, words, count);
}
#endif

void dpf_bernoulli_words(struct dpf_random *r, double p, uint64_t *words, size_t count)
{
    if (!(p > 0) || p >= 1) {
        memset(words, p >= 1 ? 0xff : 0, count * sizeof *words);
        return;
    }
    struct expansion x = expand(p);
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        groups_avx2(r, &x, words, count);
        return;
    }
#endif
    groups_anywhere(r, &x, words, count);
}

bool dpf_bernoulli(struct dpf_random *r, double p)
{
    if (!(p > 0) || p >= 1)
        return p >= 1;
    /* one lane: the comparison of 64 digits decides */
    struct expansion x = expand(p);
    for (int i = 0; i < x.zeros; i++)
        if (dpf_random_u64(r) >> 63)
            return false;
    return dpf_random_u64(r) < x.digits;
}
