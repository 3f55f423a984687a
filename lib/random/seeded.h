/* Reproducible pseudo-random streams for generators and splits.
 *
 * Never for privacy: the noise of mechanisms comes from the operating system. Here a
 * 64-bit seed and a 64-bit index name a ChaCha20 stream, so record i of a generated data
 * set is the same however many records are made, in whatever order or batch. */
#ifndef DPF_RANDOM_SEEDED_H
#define DPF_RANDOM_SEEDED_H

#include <stddef.h>
#include <stdint.h>

struct dpf_seeded {
    unsigned char key[32];
    uint64_t index;
    uint32_t block; /* next ChaCha20 block */
    size_t used;    /* bytes used of `bytes` */
    unsigned char bytes[256];
};

/* `purpose` separates streams of one seed ("split", "synth-digits"). */
void dpf_seeded_init(struct dpf_seeded *r, const char *purpose, uint64_t seed,
                     uint64_t index);
uint64_t dpf_seeded_u64(struct dpf_seeded *r);
/* Uniform in [0, n) without bias; n > 0. */
uint64_t dpf_seeded_below(struct dpf_seeded *r, uint64_t n);
/* Uniform in [0, 1) with 53 bits; uniform in [lo, hi). */
double dpf_seeded_unit(struct dpf_seeded *r);
double dpf_seeded_range(struct dpf_seeded *r, double lo, double hi);
/* Standard normal. */
double dpf_seeded_normal(struct dpf_seeded *r);

/* A seed from the operating system, below 2^63, where nobody chose one. */
uint64_t dpf_random_seed(void);

#endif
