/* Which records belong to which part. Decisions are deterministic from a seed and never
 * look at other records' values.
 *
 * Claim. Let two data sets differ in one record. After the choice of a part they differ
 * in at most as many records as dpf_partition_keeps() says: counted as records added and
 * removed if one of the two has a record more (add-remove), as records replaced if one
 * record has another value (replace-one).
 * - By index: record i's part depends on i alone, in shuffled blocks; parts are balanced
 *   and sizes exact. replace-one: 1, in one part only. add-remove: no bound, all later
 *   records move to other places.
 * - By order: parts are contiguous, the first (n mod K) of the K parts one record longer;
 *   or the first round(F n) records and the rest. replace-one: 1, in one part only.
 *   add-remove: 2, in every part. Proof. Remove record i of n. Of K parts, exactly one is
 *   one record shorter afterwards, say part s: the borders up to its first are where they
 *   were, those from its last on are one less, as places in the shorter set. A place p
 *   there is record p of the larger set if p < i, else record p + 1. So a part in front
 *   of s keeps its places: its records are the same if i is behind it; if i is in it, it
 *   loses i and gains the record behind its end; if i is before it, it loses its first
 *   and gains one at its end. A part behind s keeps its size with all places one less:
 *   the same if i is before it; if i is in it, it loses i and gains the one before its
 *   start; if i is behind, it gains that one and loses its last. Part s loses one record
 *   and gains none. At most one lost and one gained in each case. Of a share, the border
 *   t = round(F n) stays or is one less, and the same holds on both its sides.
 * - By person: the same, but the part depends on the field `person` alone. All rows of a
 *   person are in one part, so of two tables that differ in the rows of one person, the
 *   parts differ in her rows alone, in one part; what `window` says of a person holds.
 * - By content, or label: a record's part depends on its own bytes. add-remove: 1, in one
 *   part only. replace-one: no bound, a replaced record may change its part, and sizes
 *   differ then. Sizes are only balanced on average, and tell what records say. */
#ifndef DPF_DATA_PARTITION_H
#define DPF_DATA_PARTITION_H

#include "base/status.h"
#include "wire/batch.h"

enum dpf_partition_rule {
    DPF_PART_FRACTION, /* a random share of the records, or the rest of them */
    DPF_PART_OF,       /* part `part` of `parts` */
    DPF_PART_CLASS,    /* the records of some classes */
};

struct dpf_partition {
    enum dpf_partition_rule rule;
    bool by_content, by_order; /* neither: by index */
    bool by_person;            /* with by_content: the content of the field `person` */
    uint64_t seed;
    double fraction;
    bool rest;
    uint64_t parts, part;
    const char *class_field;
    uint64_t class_count; /* how many labels are listed */
    uint64_t classes[64];
    bool total_known;
    uint64_t total;
    /* running state */
    uint64_t index;       /* of the next record */
    uint64_t block_start; /* selection happens within blocks */
    uint64_t block_size, block_need;
    uint64_t *order; /* permutation of the current block of `parts` records */
};

enum { DPF_PARTITION_MAX_PARTS = 1 << 20 };

/* Check and start; fill the public members first. */
enum dpf_status dpf_partition_start(struct dpf_partition *p, struct dpf_error *e);
/* keep[i] for each record of a batch. */
enum dpf_status dpf_partition_choose(struct dpf_partition *p, const struct dpf_header *h,
                                     struct dpf_batch *b, bool *keep,
                                     struct dpf_error *e);
/* The part of each of `rows` records, if they are cut into `parts` by index: the same as
 * DPF_PART_OF chooses, one by one. */
enum dpf_status dpf_partition_assign(uint64_t parts, uint64_t seed, uint64_t rows,
                                     uint32_t *part_of, struct dpf_error *e);
/* How many records will be kept, if that is known beforehand. */
bool dpf_partition_size(struct dpf_partition *p, uint64_t *size);
/* Records in which neighbours differ afterwards; 0: no bound. */
struct dpf_partition_keeps {
    uint64_t add_remove, replace_one;
    bool own; /* each record decides for itself: neighbours by add-remove differ in one
               * part, and the number of records tells what they say. Else those by
               * replace-one do, and the number depends on the number before. */
};
struct dpf_partition_keeps dpf_partition_keeps(const struct dpf_partition *p);
void dpf_partition_release(struct dpf_partition *p);

#endif
