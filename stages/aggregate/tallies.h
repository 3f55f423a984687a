/* The sums of all teachers' answers to each query, in a file without a name: memory does
 * not grow with the number of queries, and nothing is released before all answers were
 * seen and found in order. */
#ifndef DPF_STAGE_TALLIES_H
#define DPF_STAGE_TALLIES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A query in the file: a digest, how many have answered, who has, the sums. */
struct dpf_tally {
    int64_t *digest;
    uint64_t *answers;
    unsigned char *answered; /* a bit for each teacher */
    int32_t *counts;         /* [values], of votes */
    int64_t *sums;           /* the same place: [values], of codes */
};

struct dpf_tallies {
    int fd; /* -1: not open */
    size_t teachers, values;
    size_t bytes;     /* of a query in the file */
    uint64_t queries; /* seen so far: the highest number and 1 */
    unsigned char *block;
    size_t block_capacity;
    uint64_t first, count; /* the queries in `block`; 0: none */
    bool changed;          /* since they were read */
};

enum { DPF_TALLIES_MAX_QUERIES = 1 << 30, DPF_TALLIES_MEMORY = 4 << 20 };

/* Values are counts of 4 bytes, or sums of 8. */
enum dpf_status dpf_tallies_open(struct dpf_tallies *t, size_t teachers, size_t values,
                                 size_t value_bytes, struct dpf_error *e);
void dpf_tallies_release(struct dpf_tallies *t);
/* How many of `wanted` queries to bring into memory at once: what fits in
 * DPF_TALLIES_MEMORY, at least one. */
uint64_t dpf_tallies_most(const struct dpf_tallies *t, uint64_t wanted);
/* Bring the queries [first, first + count) into memory; those that nobody has answered
 * are zeros. Every loop over queries comes by here: DPF_SYSTEM if the program was told to
 * stop. */
enum dpf_status dpf_tallies_load(struct dpf_tallies *t, uint64_t first, uint64_t count,
                                 struct dpf_error *e);
/* In the file the bits end at a multiple of 8 bytes. */
static inline size_t dpf_tallies_bits_bytes(const struct dpf_tallies *t)
{
    return (t->teachers + 63) / 64 * 8;
}
/* Query number i of those in memory. Inline: it is called for every answer. */
static inline struct dpf_tally dpf_tallies_at(const struct dpf_tallies *t, uint64_t i)
{
    uint64_t *at = (void *)(t->block + i * t->bytes);
    unsigned char *bits = (unsigned char *)(at + 2);
    void *values = bits + dpf_tallies_bits_bytes(t);
    return (struct dpf_tally){(int64_t *)(void *)at, at + 1, bits, values, values};
}
/* What is in memory differs from the file now: it is written back before other queries
 * come. */
void dpf_tallies_changed(struct dpf_tallies *t);
/* What is in memory is no tally any more: it is not written back, nor taken for one. */
void dpf_tallies_drop(struct dpf_tallies *t);

#endif
