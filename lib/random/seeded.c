#include "random/seeded.h"

#include <math.h>
#include <sodium.h>
#include <string.h>

#include "base/banned.h"

void dpf_seeded_init(struct dpf_seeded *r, const char *purpose, uint64_t seed,
                     uint64_t index)
{
    *r = (struct dpf_seeded){.index = index, .used = sizeof r->bytes};
    crypto_generichash(r->key, sizeof r->key, (const unsigned char *)purpose,
                       strlen(purpose), NULL, 0);
    unsigned char both[32 + sizeof seed];
    memcpy(both, r->key, 32);
    memcpy(both + 32, &seed, sizeof seed);
    crypto_generichash(r->key, sizeof r->key, both, sizeof both, NULL, 0);
}

static void refill(struct dpf_seeded *r)
{
    unsigned char nonce[crypto_stream_chacha20_NONCEBYTES];
    memcpy(nonce, &r->index, sizeof nonce);
    memset(r->bytes, 0, sizeof r->bytes);
    crypto_stream_chacha20_xor_ic(r->bytes, r->bytes, sizeof r->bytes, nonce, r->block,
                                  r->key);
    r->block += sizeof r->bytes / 64;
    r->used = 0;
}

uint64_t dpf_seeded_u64(struct dpf_seeded *r)
{
    uint64_t value;
    if (r->used + sizeof value > sizeof r->bytes)
        refill(r);
    memcpy(&value, r->bytes + r->used, sizeof value);
    r->used += sizeof value;
    return value;
}

uint64_t dpf_seeded_below(struct dpf_seeded *r, uint64_t n)
{
    uint64_t reject = (0 - n) % n; /* 2^64 mod n values at the bottom are redrawn */
    uint64_t draw;
    do
        draw = dpf_seeded_u64(r);
    while (draw < reject);
    return draw % n;
}

double dpf_seeded_unit(struct dpf_seeded *r)
{
    return (double)(dpf_seeded_u64(r) >> 11) * 0x1p-53;
}

double dpf_seeded_range(struct dpf_seeded *r, double lo, double hi)
{
    double value = lo + (hi - lo) * dpf_seeded_unit(r);
    return value < hi ? value : nextafter(hi, lo); /* rounding may reach the end */
}

double dpf_seeded_normal(struct dpf_seeded *r)
{
    double u = 1 - dpf_seeded_unit(r), v = dpf_seeded_unit(r);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

uint64_t dpf_random_seed(void)
{
    uint64_t seed;
    randombytes_buf(&seed, sizeof seed);
    return seed >> 1;
}
