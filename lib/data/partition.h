/* Which records belong to which part. Decisions are deterministic from a seed and never
 * look at other records' values.
 *
 * By index: record i's part depends on i alone, parts are balanced and sizes exact. Two
 * data sets that differ in the value of one record then differ in one part
 * (replace-one); but adding or removing a record shifts all later ones.
 * By content: a record's part depends on its own bytes, so add-remove neighbours differ
 * in one part; sizes are only balanced on average. */
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
    bool by_content;
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
/* How many records will be kept, if that is known beforehand. */
bool dpf_partition_size(struct dpf_partition *p, uint64_t *size);
/* The relation under which data sets that differ in one record still differ in at most
 * one record, of at most one part: "replace-one" by index (adding one shifts all later
 * ones), "add-remove" by content or label (a replaced record may change its part). */
const char *dpf_partition_relation(const struct dpf_partition *p);
void dpf_partition_release(struct dpf_partition *p);

#endif
