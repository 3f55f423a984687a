#include "data/binary.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

/* Values at a time. Eight values take as many bytes as one value has bits, so a block
 * ends with a byte whatever that number is. */
enum { BLOCK = 64 };

enum dpf_status dpf_binary_check(const struct dpf_binary *b, struct dpf_error *e)
{
    if (b->whole < 0 || b->fraction < 0 || b->whole + b->fraction < 1 ||
        dpf_binary_bits(b) > DPF_BINARY_MAX_BITS)
        return dpf_fail(e, DPF_USAGE,
                        "a value has 1 to %d bits besides its sign, not %d + %d",
                        DPF_BINARY_MAX_BITS - 1, b->whole, b->fraction);
    return DPF_OK;
}

int dpf_binary_bits(const struct dpf_binary *b)
{
    return b->whole + b->fraction + 1;
}

size_t dpf_binary_bytes(const struct dpf_binary *b, size_t count)
{
    return (count * (size_t)dpf_binary_bits(b) + 7) / 8;
}

double dpf_binary_largest(const struct dpf_binary *b)
{
    return ldexp(1, b->whole) - ldexp(1, -b->fraction);
}

static inline __attribute__((always_inline)) uint16_t reversed(uint16_t v)
{
    v = (uint16_t)((v >> 1 & 0x5555) | (v & 0x5555) << 1);
    v = (uint16_t)((v >> 2 & 0x3333) | (v & 0x3333) << 2);
    v = (uint16_t)((v >> 4 & 0x0f0f) | (v & 0x0f0f) << 4);
    return (uint16_t)(v >> 8 | v << 8);
}

/* A value's bits, the first one lowest: sign, then the magnitude from its top on.
 * Positive floats are ordered like their bits: comparisons of whole numbers are all it
 * takes, which vector units do side by side. */
static inline __attribute__((always_inline)) uint64_t
encode_block(const struct dpf_binary *b, const float *x, uint16_t code[BLOCK])
{
    enum { INFINITE = 0x7f800000 };
    const int magnitude = b->whole + b->fraction, shift = 15 - magnitude;
    const float scale = ldexpf(1, b->fraction);
    const float end = ldexpf(1, magnitude), last = end - 1;
    int32_t end_bits, last_bits, size_bits[BLOCK], negative[BLOCK], cut[BLOCK];
    float size[BLOCK];
    uint32_t misfits = 0;
    memcpy(&end_bits, &end, sizeof end);
    memcpy(&last_bits, &last, sizeof last);
    for (int i = 0; i < BLOCK; i++)
        size[i] = fabsf(x[i]) * scale; /* a power of two: exact, or too large anyway */
    memcpy(size_bits, size, sizeof size);
    for (int i = 0; i < BLOCK; i++) {
        int32_t own = size_bits[i];
        int32_t full = own > INFINITE ? 0 : last_bits; /* what is no number becomes 0 */
        size_bits[i] = own < end_bits ? own : full;
        misfits += own >= end_bits;
    }
    memcpy(size, size_bits, sizeof size);
    memcpy(negative, x, sizeof negative);
    for (int i = 0; i < BLOCK; i++) {
        int32_t bits = negative[i]; /* below 0: the sign, but neither -0 nor no number */
        negative[i] =
            bits < 0 && (bits & 0x7fffffff) != 0 && (bits & 0x7fffffff) <= INFINITE;
        cut[i] = (int32_t)size[i];
    }
    for (int i = 0; i < BLOCK; i++)
        code[i] = (uint16_t)(reversed((uint16_t)cut[i]) >> shift | negative[i]);
    return misfits;
}

/* Four codes of `width` bits side by side. */
static inline __attribute__((always_inline)) uint64_t join(const uint16_t *code,
                                                           int width)
{
    const uint64_t low = 0x0000ffff0000ffff;
    uint64_t v;
    memcpy(&v, code, sizeof v);
    v = (v & low) | (v >> 16 & low) << width;
    return (v & 0xffffffff) | v >> 32 << 2 * width;
}

static inline __attribute__((always_inline)) void
pack_block(int width, const uint16_t code[BLOCK], uint8_t *bits)
{
    uint8_t room[2 * BLOCK + 16];
    for (int i = 0; i < BLOCK; i += 8) {
        uint64_t first = join(code + i, width), second = join(code + i + 4, width);
        uint64_t pair[2] = {first, second};
        if (width < 16) {
            pair[0] = first | second << 4 * width;
            pair[1] = second >> (64 - 4 * width);
        }
        memcpy(room + i / 8 * width, pair,
               sizeof pair); /* the next one covers the rest */
    }
    memcpy(bits, room, (size_t)(BLOCK / 8 * width));
}

static inline __attribute__((always_inline)) uint64_t
encode_all(const struct dpf_binary *b, const float *x, size_t count, uint8_t *bits)
{
    const int width = dpf_binary_bits(b);
    const size_t block_bytes = (size_t)(BLOCK / 8 * width);
    uint16_t code[BLOCK];
    uint64_t misfits = 0;
    size_t done = 0;
    for (; done + BLOCK <= count; done += BLOCK, bits += block_bytes) {
        misfits += encode_block(b, x + done, code);
        pack_block(width, code, bits);
    }
    if (done < count) {
        float rest[BLOCK] = {0};
        uint8_t last[BLOCK * 2];
        memcpy(rest, x + done, (count - done) * sizeof *x);
        misfits += encode_block(b, rest, code);
        pack_block(width, code, last);
        memcpy(bits, last, dpf_binary_bytes(b, count - done));
    }
    return misfits;
}

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512bw,avx512vl"))) static uint64_t
encode_avx512(const struct dpf_binary *b, const float *x, size_t count, uint8_t *bits)
{
    return encode_all(b, x, count, bits);
}

__attribute__((target("avx2"))) static uint64_t
encode_avx2(const struct dpf_binary *b, const float *x, size_t count, uint8_t *bits)
{
    return encode_all(b, x, count, bits);
}
#endif

uint64_t dpf_binary_encode(const struct dpf_binary *b, const float *x, size_t count,
                           uint8_t *bits)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return encode_avx512(b, x, count, bits);
    if (__builtin_cpu_supports("avx2"))
        return encode_avx2(b, x, count, bits);
#endif
    return encode_all(b, x, count, bits);
}

void dpf_binary_decode(const struct dpf_binary *b, const uint8_t *bits, size_t count,
                       float *x)
{
    const int width = dpf_binary_bits(b);
    for (size_t i = 0; i < count; i++) {
        uint32_t magnitude = 0;
        size_t at = i * (size_t)width;
        for (int k = 1; k < width; k++)
            magnitude =
                magnitude << 1 | (bits[(at + (size_t)k) / 8] >> (at + (size_t)k) % 8 & 1);
        float size = ldexpf((float)magnitude, -b->fraction);
        x[i] = bits[at / 8] >> at % 8 & 1 ? -size : size;
    }
}

void dpf_binary_signs(const struct dpf_binary *b, const uint8_t *bits, size_t count,
                      float *signs)
{
    size_t all = count * (size_t)dpf_binary_bits(b);
    for (size_t i = 0; i < all; i++)
        signs[i] = bits[i / 8] >> i % 8 & 1 ? 1 : -1;
}
