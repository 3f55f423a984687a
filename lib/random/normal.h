/* Many standard normals quickly, from a seeded ChaCha20 stream: for first weights, tests
 * and benchmarks. Never for privacy: they are floats, with the gaps and patterns that
 * attacks on noise exploit (Mironov 2012). */
#ifndef DPF_RANDOM_NORMAL_H
#define DPF_RANDOM_NORMAL_H

#include <stddef.h>
#include <stdint.h>

/* `count` draws of stream `index` of a seed. */
void dpf_normal_fill(uint64_t seed, uint64_t index, size_t count, float *out);

#endif
