/* ChaCha20 (Bernstein 2008), sixteen blocks side by side: each vector holds one word of
 * all of them. libsodium's is written for AVX2 and single streams; this one is twice as
 * fast with AVX-512 and as fast without (tests/bench/RESULTS.md), and a test holds it
 * against libsodium's word by word. */
#include <string.h>

#include "random/secure.h"

#include "base/banned.h"

/* gcc takes half of a wide vector unless told; clang knows no such attribute. */
#if defined(__clang__)
#define WIDE ""
#else
#define WIDE ",prefer-vector-width=512"
#endif

enum { LANES = DPF_RANDOM_BLOCKS, ROUNDS = 20 };
typedef uint32_t lanes __attribute__((vector_size(LANES * sizeof(uint32_t))));

#define ROTATE(x, n) ((x) << (n) | (x) >> (32 - (n)))
#define QUARTER(a, b, c, d)                                                              \
    do {                                                                                 \
        x[a] += x[b], x[d] = ROTATE(x[d] ^ x[a], 16);                                    \
        x[c] += x[d], x[b] = ROTATE(x[b] ^ x[c], 12);                                    \
        x[a] += x[b], x[d] = ROTATE(x[d] ^ x[a], 8);                                     \
        x[c] += x[d], x[b] = ROTATE(x[b] ^ x[c], 7);                                     \
    } while (0)

static inline __attribute__((always_inline)) void
words(const unsigned char key[32], uint64_t nonce, uint64_t first, uint32_t *out)
{
    static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    uint32_t start[16];
    lanes x[16], begin[16];
    memcpy(start, constants, 16);
    memcpy(start + 4, key, 32);
    memcpy(start + 14, &nonce, 8);
    start[12] = start[13] = 0;
    for (int w = 0; w < 16; w++)
        begin[w] = start[w] - (lanes){0};
    for (int b = 0; b < LANES; b++) {
        begin[12][b] = (uint32_t)(first + (uint64_t)b);
        begin[13][b] = (uint32_t)((first + (uint64_t)b) >> 32);
    }
    for (int w = 0; w < 16; w++)
        x[w] = begin[w];
    for (int round = 0; round < ROUNDS; round += 2) {
        QUARTER(0, 4, 8, 12);
        QUARTER(1, 5, 9, 13);
        QUARTER(2, 6, 10, 14);
        QUARTER(3, 7, 11, 15);
        QUARTER(0, 5, 10, 15);
        QUARTER(1, 6, 11, 12);
        QUARTER(2, 7, 8, 13);
        QUARTER(3, 4, 9, 14);
    }
    for (int w = 0; w < 16; w++) {
        lanes sum = x[w] + begin[w];
        memcpy(out + w * LANES, &sum, sizeof sum);
    }
}

static void words_anywhere(const unsigned char key[32], uint64_t nonce, uint64_t first,
                           uint32_t *out)
{
    words(key, nonce, first, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void
words_avx2(const unsigned char key[32], uint64_t nonce, uint64_t first, uint32_t *out)
{
    words(key, nonce, first, out);
}

__attribute__((target("avx512f" WIDE))) static void
words_avx512(const unsigned char key[32], uint64_t nonce, uint64_t first, uint32_t *out)
{
    words(key, nonce, first, out);
}
#endif

void dpf_chacha20_words(const unsigned char key[32], uint64_t nonce, uint64_t first,
                        uint32_t out[256])
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f")) {
        words_avx512(key, nonce, first, out);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        words_avx2(key, nonce, first, out);
        return;
    }
#endif
    words_anywhere(key, nonce, first, out);
}
