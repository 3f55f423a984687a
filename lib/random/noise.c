#include "random/noise.h"

#include <math.h>
#include <mpfr.h>
#include <sodium.h>
#include <string.h>

#include "base/banned.h"

/* gcc takes half of a wide vector unless told; clang knows no such attribute. */
#if defined(__clang__)
#define WIDE ""
#else
#define WIDE ",prefer-vector-width=512"
#endif

enum { BLOCK = 256 };

/* ------------------------------------------------------------------ fast, with errors */

/* Where the fast way is good to DPF_NOISE_ERROR: U in [2^-16, 1 - 2^-25]. Below, 64
 * digits are too few for the logarithm; above, the root of a small logarithm magnifies
 * its error. */
static inline __attribute__((always_inline)) bool far_from_ends(uint64_t digits)
{
    return digits >= (uint64_t)1 << 48 && digits < ~(uint64_t)0 << 39;
}

/* The middle of the 2^-64 wide interval that the digits leave open. */
static inline __attribute__((always_inline)) double unit(uint64_t digits)
{
    double high = (double)(int64_t)(digits >> 32),
           low = (double)(int64_t)(uint32_t)digits;
    return high * 0x1p-32 + (low + 0.5) * 0x1p-64;
}

/* -ln u for u in [2^-16, 1]: u = 2^e m, m in [sqrt(1/2), sqrt 2), ln m = 2 atanh(s) with
 * s = (m - 1) / (m + 1), |s| <= 0.1716. Chebyshev's polynomial for atanh(s) = s + s^3
 * p(s^2) is off by 7e-16 of its value at most. */
static inline __attribute__((always_inline)) double minus_log(double u)
{
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    int64_t shifted = (int64_t)(bits - 0x3fe6a09e667f3bcd);
    int64_t e = shifted >> 52;
    bits -= (uint64_t)e << 52;
    double m, p = 0.08310973545088699744;
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1) / (m + 1), q = s * s;
    p = p * q + 0.09070092601246623179;
    p = p * q + 0.1111143123842477031;
    p = p * q + 0.1428571206825817418;
    p = p * q + 0.2000000000560609976;
    p = p * q + 0.3333333333333104022;
    return -((double)e * 0.693147180559945309417 + 2 * (s + s * q * p));
}

/* sin(2 pi t) for t in [-1/4, 1/4]: x = 2 pi t, sin x = x + x^3 p(x^2), likewise; off by
 * 7e-16 at most. */
static inline __attribute__((always_inline)) double sine(double t)
{
    double x = t * 6.283185307179586476925, q = x * x, p = -7.408031343670488297e-13;
    p = p * q + 1.605097064612248634e-10;
    p = p * q - 2.505197288121006033e-8;
    p = p * q + 2.755731805522120442e-6;
    p = p * q - 0.0001984126983646663595;
    p = p * q + 0.008333333333325928254;
    p = p * q - 0.1666666666666664802;
    return x + x * q * p;
}

static inline __attribute__((always_inline)) void normals(const uint64_t *radius,
                                                          const uint64_t *angle,
                                                          size_t count, double *cosines,
                                                          double *sines)
{
    for (size_t i = 0; i < count; i++) {
        double r = sqrt(2 * minus_log(unit(radius[i])));
        /* a turn in [-1/2, 1/2), folded onto where the series holds */
        double t = (double)((int64_t)angle[i] >> 11) * 0x1p-53, size = fabs(t);
        double folded = size > 0.25 ? 0.5 - size : size;
        sines[i] = copysign(r * sine(folded), t);
        cosines[i] = r * sine(0.25 - size);
    }
}

/* Round s times a value, and mark what the error leaves open. */
static inline __attribute__((always_inline)) int64_t
round_one(double value, double s, double shift, uint8_t *open)
{
    const double magic = 0x1.8p52; /* adding it rounds to an integer, ties aside */
    double y = value * s - shift;
    double whole = (y + magic) - magic;
    double margin = s * DPF_NOISE_ERROR + fabs(y) * 0x1p-50;
    *open |= fabs(fabs(y - whole) - 0.5) <= margin;
    return (int64_t)whole;
}

static inline __attribute__((always_inline)) void
gaussian_block(const uint64_t *digits, const double *s, int64_t *out, uint8_t *open)
{
    double values[BLOCK];
    normals(digits, digits + BLOCK / 2, BLOCK / 2, values, values + BLOCK / 2);
    for (size_t i = 0; i < BLOCK / 2; i++)
        open[i] = open[i + BLOCK / 2] = !far_from_ends(digits[i]);
    for (size_t i = 0; i < BLOCK; i++)
        out[i] = round_one(values[i], s[i], 0, &open[i]);
}

static inline uint64_t sign_of(const uint64_t *signs, size_t i)
{
    return signs[i / 64] >> (i % 64) & 1U;
}

enum { OPEN = 1, AGAIN = 2 }; /* more digits are needed; "minus 0" */

/* floor(tE) with a sign. */
static inline __attribute__((always_inline)) void
laplace_block(const uint64_t *digits, const double *t, int64_t *out, uint8_t *open)
{
    const uint64_t *signs = digits + BLOCK;
    double values[BLOCK];
    for (size_t i = 0; i < BLOCK; i++) {
        values[i] = minus_log(unit(digits[i]));
        open[i] = !far_from_ends(digits[i]);
    }
    for (size_t i = 0; i < BLOCK; i++) /* floor(y) = round(y - 1/2) */
        out[i] = round_one(values[i], t[i], 0.5, &open[i]);
    uint64_t again = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        int64_t minus = -(int64_t)sign_of(signs, i);
        again |= (uint64_t)minus & (uint64_t)(out[i] == 0);
        out[i] = (out[i] ^ minus) - minus;
    }
    for (size_t i = 0; again && i < BLOCK; i++)
        open[i] |= sign_of(signs, i) && out[i] == 0 ? AGAIN : 0;
}

/* The same functions for any machine and for wider vectors. */
#define VERSION(suffix, attribute)                                                       \
    attribute static void gaussian_block_##suffix(                                       \
        const uint64_t *digits, const double *s, int64_t *out, uint8_t *open)            \
    {                                                                                    \
        gaussian_block(digits, s, out, open);                                            \
    }                                                                                    \
    attribute static void laplace_block_##suffix(                                        \
        const uint64_t *digits, const double *t, int64_t *out, uint8_t *open)            \
    {                                                                                    \
        laplace_block(digits, t, out, open);                                             \
    }

VERSION(anywhere, )
#if defined(__x86_64__)
VERSION(avx2, __attribute__((target("avx2,fma"))))
VERSION(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma" WIDE))))
#endif

typedef void block_function(const uint64_t *digits, const double *scales, int64_t *out,
                            uint8_t *open);

static block_function *choose(bool gaussian)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return gaussian ? gaussian_block_avx512 : laplace_block_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return gaussian ? gaussian_block_avx2 : laplace_block_avx2;
#endif
    return gaussian ? gaussian_block_anywhere : laplace_block_anywhere;
}

void dpf_noise_fast_normals(const uint64_t *radius, const uint64_t *angle, size_t count,
                            double *cosines, double *sines)
{
    normals(radius, angle, count, cosines, sines);
}

void dpf_noise_fast_exponentials(const uint64_t *digits, size_t count, double *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = minus_log(unit(digits[i]));
}

/* ------------------------------------------------------------------- exact, slowly */

/* A uniform real of which `bits` digits are known: value / 2^bits, give or take the last
 * one. Digits are added as they are needed. */
struct lazy {
    mpz_t value;
    mpfr_prec_t bits;
};

static void lazy_init(struct lazy *u, uint64_t digits)
{
    mpz_init_set_ui(u->value, digits);
    u->bits = 64;
}

static void lazy_extend(struct lazy *u, struct dpf_random *r, mpfr_prec_t bits)
{
    for (; u->bits < bits; u->bits += 64) {
        mpz_mul_2exp(u->value, u->value, 64);
        mpz_add_ui(u->value, u->value, dpf_random_u64(r));
    }
}

/* [lo, hi] around -ln U, outwards. */
static void lazy_minus_log(struct lazy *u, mpfr_t lo, mpfr_t hi)
{
    mpz_t above;
    mpz_init(above);
    mpz_add_ui(above, u->value, 1);
    mpfr_set_z_2exp(hi, u->value, -u->bits, MPFR_RNDD);
    mpfr_set_z_2exp(lo, above, -u->bits, MPFR_RNDU);
    mpfr_log(hi, hi, MPFR_RNDD);
    mpfr_log(lo, lo, MPFR_RNDU);
    mpfr_neg(hi, hi, MPFR_RNDU);
    mpfr_neg(lo, lo, MPFR_RNDD);
    mpz_clear(above);
}

/* Whether all of [lo, hi], times s, less shift, rounds to one integer; which. */
static bool same_integer(mpfr_t lo, mpfr_t hi, double s, double shift, int64_t *out)
{
    if (mpfr_inf_p(hi))
        return false;
    mpfr_mul_d(lo, lo, s, MPFR_RNDD);
    mpfr_mul_d(hi, hi, s, MPFR_RNDU);
    mpfr_sub_d(lo, lo, shift, MPFR_RNDD);
    mpfr_sub_d(hi, hi, shift, MPFR_RNDU);
    mpfr_round(lo, lo);
    mpfr_round(hi, hi);
    *out = mpfr_get_sj(lo, MPFR_RNDN);
    return mpfr_equal_p(lo, hi) != 0;
}

/* [lo, hi] around r sin(turn) or r cos(turn): the value in the middle of the turn's
 * interval and its slope, at most 2 pi a turn, bound it. */
static void times_wave(struct lazy *turn, bool cosine, mpfr_t lo, mpfr_t hi)
{
    mpfr_prec_t precision = mpfr_get_prec(lo);
    mpfr_t angle, wave, spread;
    mpfr_inits2(precision, angle, wave, spread, (mpfr_ptr)0);
    mpfr_const_pi(angle, MPFR_RNDN);
    mpfr_mul_2ui(angle, angle, 1, MPFR_RNDN);
    mpfr_set_z_2exp(wave, turn->value, -turn->bits, MPFR_RNDN);
    mpfr_mul(angle, angle, wave, MPFR_RNDN);
    if (cosine)
        mpfr_cos(wave, angle, MPFR_RNDN);
    else
        mpfr_sin(wave, angle, MPFR_RNDN);
    /* 2 pi 2^-bits for the digits to come, 2^(6 - precision) for the rounding of angle */
    mpfr_set_ui_2exp(spread, 7, -turn->bits, MPFR_RNDU);
    mpfr_add_d(spread, spread, ldexp(1, (int)(6 - precision)), MPFR_RNDU);
    mpfr_mul(spread, spread, hi, MPFR_RNDU);
    bool negative = mpfr_sgn(wave) < 0;
    mpfr_mul(lo, lo, wave, MPFR_RNDN);
    mpfr_mul(hi, hi, wave, MPFR_RNDN);
    if (negative)
        mpfr_swap(lo, hi);
    /* twice: the products above were rounded to nearest, which is far less */
    mpfr_mul_2ui(spread, spread, 1, MPFR_RNDU);
    mpfr_sub(lo, lo, spread, MPFR_RNDD);
    mpfr_add(hi, hi, spread, MPFR_RNDU);
    mpfr_clears(angle, wave, spread, (mpfr_ptr)0);
}

/* Both values of a pair: they share their digits, also those that are drawn here. */
static void exact_pair(struct dpf_random *r, uint64_t radius, uint64_t angle, double s,
                       int64_t *cosine, int64_t *sine_out)
{
    struct lazy u, turn;
    bool done = false;
    lazy_init(&u, radius);
    /* the fast way reads the angle as a signed number: half a turn on is the same set,
     * and -1/2 .. 1/2 is 0 .. 1 with the upper half turned once */
    lazy_init(&turn, angle);
    for (mpfr_prec_t bits = 128; !done; bits *= 2) {
        mpfr_t lo, hi, a, b;
        mpfr_inits2(bits + 64, lo, hi, a, b, (mpfr_ptr)0);
        lazy_extend(&u, r, bits);
        lazy_extend(&turn, r, bits);
        lazy_minus_log(&u, lo, hi);
        mpfr_mul_2ui(lo, lo, 1, MPFR_RNDD);
        mpfr_mul_2ui(hi, hi, 1, MPFR_RNDU);
        if (mpfr_sgn(lo) < 0)
            mpfr_set_zero(lo, 1);
        mpfr_sqrt(lo, lo, MPFR_RNDD);
        mpfr_sqrt(hi, hi, MPFR_RNDU);
        mpfr_set(a, lo, MPFR_RNDD);
        mpfr_set(b, hi, MPFR_RNDU);
        done = !mpfr_inf_p(hi);
        if (done) {
            times_wave(&turn, true, a, b);
            done = same_integer(a, b, s, 0, cosine);
        }
        if (done) {
            times_wave(&turn, false, lo, hi);
            done = same_integer(lo, hi, s, 0, sine_out);
        }
        mpfr_clears(lo, hi, a, b, (mpfr_ptr)0);
    }
    mpz_clears(u.value, turn.value, (mpz_ptr)0);
}

static int64_t exact_exponential(struct dpf_random *r, uint64_t digits, double t)
{
    struct lazy u;
    int64_t result;
    bool done = false;
    lazy_init(&u, digits);
    for (mpfr_prec_t bits = 128; !done; bits *= 2) {
        mpfr_t lo, hi;
        mpfr_inits2(bits + 64, lo, hi, (mpfr_ptr)0);
        lazy_extend(&u, r, bits);
        lazy_minus_log(&u, lo, hi);
        done = same_integer(lo, hi, t, 0.5, &result);
        mpfr_clears(lo, hi, (mpfr_ptr)0);
    }
    mpz_clear(u.value);
    return result;
}

/* ------------------------------------------------------------------------------- bulk */

/* Whether a block has a draw that is still open: seldom, so it is asked for all at once.
 */
static inline bool any_open(const uint8_t open[BLOCK])
{
    uint64_t all = 0, eight;
    for (size_t i = 0; i < BLOCK; i += sizeof eight) {
        memcpy(&eight, open + i, sizeof eight);
        all |= eight;
    }
    return all != 0;
}

void dpf_noise_gaussian(struct dpf_random *r, double s, int64_t *out, size_t count)
{
    block_function *block = choose(true);
    uint64_t digits[BLOCK];
    double scales[BLOCK];
    int64_t values[BLOCK];
    uint8_t open[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        scales[i] = s;
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t left = count - done < BLOCK ? count - done : BLOCK;
        dpf_random_bytes(r, digits, sizeof digits);
        block(digits, scales, values, open);
        size_t pairs = any_open(open) ? BLOCK / 2 : 0;
        for (size_t i = 0; i < pairs; i++)
            if (open[i] | open[i + BLOCK / 2])
                exact_pair(r, digits[i], digits[i + BLOCK / 2], s, &values[i],
                           &values[i + BLOCK / 2]);
        memcpy(out + done, values, left * sizeof *out);
    }
    mpfr_free_cache(); /* this thread's */
    sodium_memzero(digits, sizeof digits);
    sodium_memzero(values, sizeof values);
}

int64_t dpf_noise_geometric(struct dpf_random *r, double t)
{
    uint64_t digits = dpf_random_u64(r);
    double value = minus_log(unit(digits));
    uint8_t open = !far_from_ends(digits);
    int64_t result = round_one(value, t, 0.5, &open);
    return open ? exact_exponential(r, digits, t) : result;
}

/* Discrete Laplace from a sign and floor(tE), where "minus 0" is drawn again: k and -k
 * then have (1 - q) q^|k| / (1 + q), q = e^(-1/t). */
static int64_t laplace_again(struct dpf_random *r, double t)
{
    while (true) {
        uint64_t sign = dpf_random_u64(r) >> 63;
        int64_t size = dpf_noise_geometric(r, t);
        if (size != 0 || sign == 0)
            return sign ? -size : size;
    }
}

/* A block of them; count <= BLOCK. */
static void draw_laplace(block_function *block, struct dpf_random *r, const double *t,
                         int64_t *out, size_t count)
{
    uint64_t digits[BLOCK + BLOCK / 64];
    int64_t part[BLOCK], *values = count < BLOCK ? part : out;
    uint8_t open[BLOCK];
    dpf_random_bytes(r, digits, sizeof digits);
    block(digits, t, values, open);
    size_t draws = any_open(open) ? count : 0;
    for (size_t i = 0; i < draws; i++) {
        bool minus = sign_of(digits + BLOCK, i);
        if (open[i] & OPEN) {
            int64_t size = exact_exponential(r, digits[i], t[i]);
            values[i] = minus ? -size : size;
        }
        if (minus && values[i] == 0)
            values[i] = laplace_again(r, t[i]);
    }
    if (count < BLOCK) {
        memcpy(out, part, count * sizeof *out);
        sodium_memzero(part, sizeof part);
    }
    sodium_memzero(digits, sizeof digits);
}

void dpf_noise_laplace(struct dpf_random *r, double t, int64_t *out, size_t count)
{
    block_function *block = choose(false);
    double scales[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        scales[i] = t;
    for (size_t done = 0; done < count; done += BLOCK)
        draw_laplace(block, r, scales, out + done,
                     count - done < BLOCK ? count - done : BLOCK);
    mpfr_free_cache(); /* this thread's */
}

void dpf_noise_laplace_each(struct dpf_random *r, const double *t, size_t period,
                            int64_t *out, size_t count)
{
    block_function *block = choose(false);
    double scales[BLOCK];
    size_t at = 0;
    for (size_t done = 0; done < count; done += BLOCK, at = (at + BLOCK) % period) {
        bool wraps = at + BLOCK > period;
        for (size_t i = 0, from = at; wraps && i < BLOCK; i++) {
            scales[i] = t[from];
            from = from + 1 == period ? 0 : from + 1;
        }
        draw_laplace(block, r, wraps ? scales : t + at, out + done,
                     count - done < BLOCK ? count - done : BLOCK);
    }
    mpfr_free_cache(); /* this thread's */
}
