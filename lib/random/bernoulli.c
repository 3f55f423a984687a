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

/* --------------------------------------------------------------- four rates at once */

static const uint64_t even_lanes = 0x5555555555555555;

/* 64 binary digits of p in (0, 1), from digit number `from` on (0: the first behind the
 * point). */
static uint64_t digits_from(double p, int from)
{
    struct expansion x = expand(p);
    int at = from - x.zeros;
    if (at <= -64 || at >= 64)
        return 0;
    return at < 0 ? x.digits >> -at : x.digits << at;
}

void dpf_bernoulli_choice_init(struct dpf_bernoulli_choice *c, const double p[2][2])
{
    memset(c, 0, sizeof *c);
    memcpy(c->p, p, sizeof c->p);
    for (int odd = 0; odd < 2; odd++)
        for (int bit = 0; bit < 2; bit++) {
            uint64_t lanes = odd ? ~even_lanes : even_lanes;
            double rate = p[odd][bit];
            if (rate >= 1)
                c->sure[bit] |= lanes;
            if (!(rate > 0) || rate >= 1)
                continue;
            c->open[bit] |= lanes;
            for (int k = 0; k < DPF_BERNOULLI_DIGITS; k++)
                if (digits_from(rate, k) >> 63)
                    c->digit[k][bit] |= lanes;
            c->next[odd][bit] = digits_from(rate, DPF_BERNOULLI_DIGITS);
        }
}

/* Whether U is below p, given that their first digits are the same. */
static bool below(const struct dpf_bernoulli_choice *c, struct dpf_random *r, int odd,
                  int bit)
{
    uint64_t digits = c->next[odd][bit], drawn = dpf_random_u64(r);
    double p = c->p[odd][bit];
    for (int from = DPF_BERNOULLI_DIGITS; drawn == digits;) {
        from += 64;
        if (from >= expand(p).zeros + 64)
            return false; /* p has no digit left */
        digits = digits_from(p, from);
        drawn = dpf_random_u64(r);
    }
    return drawn < digits;
}

/* The first digits of GROUP words. What is decided becomes the words; `left` has the
 * lanes that are not, and `was` what the words were. */
static inline __attribute__((always_inline)) void
choose_group(const struct dpf_bernoulli_choice *c, struct dpf_random *r, uint64_t *words,
             uint64_t *left, uint64_t *was)
{
    enum { BYTES = GROUP * sizeof(uint64_t) };
    const unsigned char *taken = dpf_random_take(r, DPF_BERNOULLI_DIGITS * BYTES);
    uint64_t bits[GROUP], undecided[GROUP], result[GROUP], drawn[GROUP];
    memcpy(bits, words, BYTES);
    for (int i = 0; i < GROUP; i++) {
        undecided[i] = c->open[0] ^ (bits[i] & (c->open[0] ^ c->open[1]));
        result[i] = c->sure[0] ^ (bits[i] & (c->sure[0] ^ c->sure[1]));
    }
    for (int k = 0; k < DPF_BERNOULLI_DIGITS; k++) {
        const uint64_t zero = c->digit[k][0], flip = c->digit[k][0] ^ c->digit[k][1];
        memcpy(drawn, taken + k * BYTES, BYTES);
        for (int i = 0; i < GROUP; i++) {
            uint64_t digit = zero ^ (bits[i] & flip);
            result[i] |= undecided[i] & ~drawn[i] & digit;
            undecided[i] &= ~(drawn[i] ^ digit);
        }
    }
    memcpy(was, bits, BYTES);
    memcpy(left, undecided, BYTES);
    memcpy(words, result, BYTES);
}

/* A block at a time: all first digits without a branch, then the lanes that are left. */
enum { BLOCK = 64 * GROUP };

static inline __attribute__((always_inline)) void
choose_block(const struct dpf_bernoulli_choice *c, struct dpf_random *r, uint64_t *words,
             size_t count)
{
    uint64_t left[BLOCK], was[BLOCK], rest[GROUP] = {0};
    size_t done = 0;
    for (; done + GROUP <= count; done += GROUP)
        choose_group(c, r, words + done, left + done, was + done);
    if (done < count) {
        memcpy(rest, words + done, (count - done) * sizeof *words);
        choose_group(c, r, rest, left + done, was + done);
        memcpy(words + done, rest, (count - done) * sizeof *words);
    }
    for (size_t i = 0; i < count; i++)
        for (uint64_t open = left[i]; open; open &= open - 1) {
            int lane = __builtin_ctzll(open);
            if (below(c, r, lane & 1, (int)(was[i] >> lane & 1)))
                words[i] |= (uint64_t)1 << lane;
        }
}

static inline __attribute__((always_inline)) void
choose_groups(const struct dpf_bernoulli_choice *c, struct dpf_random *r, uint64_t *words,
              size_t count)
{
    for (size_t done = 0; done < count; done += BLOCK)
        choose_block(c, r, words + done, count - done < BLOCK ? count - done : BLOCK);
}

#if defined(__x86_64__)
#if defined(__clang__)
#define WIDE ""
#else
#define WIDE ",prefer-vector-width=512" /* clang knows no such attribute */
#endif
__attribute__((target("avx2"))) static void
choose_avx2(const struct dpf_bernoulli_choice *c, struct dpf_random *r, uint64_t *words,
            size_t count)
{
    choose_groups(c, r, words, count);
}

__attribute__((target("avx512f" WIDE))) static void
choose_avx512(const struct dpf_bernoulli_choice *c, struct dpf_random *r, uint64_t *words,
              size_t count)
{
    choose_groups(c, r, words, count);
}
#endif

void dpf_bernoulli_choose(const struct dpf_bernoulli_choice *c, struct dpf_random *r,
                          uint64_t *words, size_t count)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        choose_avx512(c, r, words, count);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        choose_avx2(c, r, words, count);
        return;
    }
#endif
    choose_groups(c, r, words, count);
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
