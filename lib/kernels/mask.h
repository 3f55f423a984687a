/* Which values dropout keeps, and what noise adds: a hash of seed, row and place instead
 * of a generator's state, so that every backend, batch size and number of threads drops
 * the same ones. No proof counts on the hash: that an example's mask is a function of its
 * own key, drawn for it alone, is all that privacy needs (privacy/lot_sum.h). */
#ifndef DPF_KERNELS_MASK_H
#define DPF_KERNELS_MASK_H

#include <math.h>
#include <stdint.h>

/* One row's key (the finaliser of SplitMix64, twice). */
static inline uint64_t dpf_mask_key(uint64_t seed, uint64_t stream)
{
    uint64_t z = seed * 0x9e3779b97f4a7c15u + stream;
    for (int round = 0; round < 2; round++) {
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        z ^= z >> 31;
    }
    return z;
}

/* 32 bits for place i of a row. */
static inline uint32_t dpf_mask_draw(uint64_t key, uint32_t i)
{
    uint32_t z = i * 0x9e3779b9u + (uint32_t)key;
    z = (z ^ z >> 16) * 0x7feb352du;
    z = (z ^ z >> 15 ^ (uint32_t)(key >> 32)) * 0x846ca68bu;
    return z ^ z >> 16;
}

/* A standard normal number for place i of a row (Box and Muller). */
static inline double dpf_mask_normal(uint64_t key, uint32_t i)
{
    double u = ((double)dpf_mask_draw(key, 2 * i) + 0.5) / 4294967296.0;
    double v = (double)dpf_mask_draw(key, 2 * i + 1) / 4294967296.0;
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Draws below this are dropped. */
static inline uint32_t dpf_mask_threshold(double rate)
{
    return (uint32_t)(rate * 4294967296.0);
}

#endif
