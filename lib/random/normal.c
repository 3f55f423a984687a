#include "random/normal.h"

#include <math.h>
#include <sodium.h>
#include <string.h>

#include "base/banned.h"

enum { BLOCK = 1024 };

/* ln x for normal x > 0: x = 2^e m with m in [2/3, 4/3), a polynomial in m - 1. Without a
 * branch, so that the loop becomes vector code; about 1e-6 exact. */
static inline __attribute__((always_inline)) float fast_log(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t e = (int32_t)(bits - 0x3f2aaaabu) >> 23;
    bits -= (uint32_t)e << 23;
    memcpy(&x, &bits, sizeof x);
    float f = x - 1;
    float p = -0.13031f;
    p = p * f + 0.14208f;
    p = p * f - 0.12180f;
    p = p * f + 0.13963f;
    p = p * f - 0.16681f;
    p = p * f + 0.20012f;
    p = p * f - 0.25f;
    p = p * f + 0.333332f;
    p = p * f - 0.5f;
    return (float)e * 0.69314718f + (f + f * f * p);
}

/* sin(2 pi t) for t in [-1/4, 1/4]. */
static inline __attribute__((always_inline)) float fast_sine(float t)
{
    float s = t * t;
    float p = 39.7067f;
    p = p * s - 76.5797f;
    p = p * s + 81.6019f;
    p = p * s - 41.3416f;
    p = p * s + 6.2831852f;
    return p * t;
}

/* Box and Muller: two uniforms make two normals. The halves of a block are the partners:
 * side by side they would be in each other's way in a vector. */
static inline __attribute__((always_inline)) void transform(const uint32_t *bits,
                                                            float *out)
{
    const uint32_t *other = bits + BLOCK / 2;
    float *cosines = out + BLOCK / 2;
    for (size_t i = 0; i < BLOCK / 2; i++) {
        float u = ((float)(int32_t)(bits[i] >> 8) + 0.5f) * 0x1p-24f;
        /* an angle in [-1/2, 1/2), folded onto where the polynomial holds */
        float t = (float)(int32_t)other[i] * 0x1p-32f, size = fabsf(t);
        float radius = sqrtf(-2 * fast_log(u));
        float folded = copysignf(size > 0.25f ? 0.5f - size : size, t);
        out[i] = radius * fast_sine(folded);
        cosines[i] = radius * fast_sine(0.25f - size);
    }
}

static void transform_anywhere(const uint32_t *bits, float *out)
{
    transform(bits, out);
}

#if defined(__x86_64__)
/* The same numbers (nothing is fused), eight at a time. */
__attribute__((target("avx2"))) static void transform_avx2(const uint32_t *bits,
                                                           float *out)
{
    transform(bits, out);
}
#endif

void dpf_normal_fill(uint64_t seed, uint64_t index, size_t count, float *out)
{
    unsigned char key[crypto_stream_chacha20_KEYBYTES] = {0};
    unsigned char nonce[crypto_stream_chacha20_NONCEBYTES] = {0};
    static const unsigned char zeros[BLOCK * sizeof(uint32_t)];
    uint32_t bits[BLOCK];
    float last[BLOCK];
    void (*convert)(const uint32_t *, float *) = transform_anywhere;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        convert = transform_avx2;
#endif
    if (sodium_init() < 0) /* picks this machine's fastest ChaCha20 */
        return;
    memcpy(key, &seed, sizeof seed);
    memcpy(nonce, &index, sizeof index);
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t left = count - done < BLOCK ? count - done : BLOCK;
        crypto_stream_chacha20_xor_ic((unsigned char *)bits, zeros, sizeof bits, nonce,
                                      done * sizeof(uint32_t) / 64, key);
        convert(bits, left == BLOCK ? out + done : last);
        if (left < BLOCK)
            memcpy(out + done, last, left * sizeof *out);
    }
}
