#include "data/partition.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "random/seeded.h"

#include "base/banned.h"

enum { UNKNOWN_TOTAL_BLOCK = 1024 };

enum dpf_status dpf_partition_start(struct dpf_partition *p, struct dpf_error *e)
{
    if (p->by_order && !p->total_known)
        return dpf_fail(e, DPF_USAGE,
                        "'--by order' needs to know how many records there are, and the "
                        "stream does not say");
    p->index = p->block_start = p->block_size = p->block_need = 0;
    p->order = NULL;
    if (p->rule == DPF_PART_OF) {
        if (p->parts < 1 || p->parts > DPF_PARTITION_MAX_PARTS || p->part >= p->parts)
            return dpf_fail(e, DPF_USAGE, "part %llu of %llu does not exist",
                            (unsigned long long)p->part, (unsigned long long)p->parts);
        p->order = dpf_calloc(p->parts, sizeof *p->order);
        if (!p->order)
            return dpf_fail_memory(e);
    }
    return DPF_OK;
}

void dpf_partition_release(struct dpf_partition *p)
{
    free(p->order);
    p->order = NULL;
}

/* A random order of the parts for one block of `parts` records (Fisher and Yates). */
static void shuffle_block(struct dpf_partition *p, uint64_t block)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "split parts", p->seed, block);
    for (uint64_t i = 0; i < p->parts; i++)
        p->order[i] = i;
    for (uint64_t i = p->parts; i > 1; i--) {
        uint64_t j = dpf_seeded_below(&r, i), kept = p->order[i - 1];
        p->order[i - 1] = p->order[j];
        p->order[j] = kept;
    }
}

/* Records of the share up to position `end`: rounding is shared out, so that the two
 * sides of a split always add up. */
static uint64_t share(const struct dpf_partition *p, uint64_t end)
{
    return (uint64_t)llround(p->fraction * (double)end);
}

/* Selection sampling (Knuth, Algorithm S) within blocks: exact counts, one pass. The
 * block is the whole data set where its size is known. */
static bool in_fraction(struct dpf_partition *p)
{
    if (p->index == p->block_start + p->block_size) {
        p->block_start = p->index;
        p->block_size = p->total_known ? p->total : UNKNOWN_TOTAL_BLOCK;
        if (p->block_size == 0)
            p->block_size = 1;
        p->block_need =
            share(p, p->block_start + p->block_size) - share(p, p->block_start);
    }
    struct dpf_seeded r;
    dpf_seeded_init(&r, "split fraction", p->seed, p->index);
    uint64_t left = p->block_start + p->block_size - p->index;
    bool taken = dpf_seeded_below(&r, left) < p->block_need;
    p->block_need -= taken;
    return taken;
}

static bool in_part(struct dpf_partition *p)
{
    uint64_t place = p->index % p->parts;
    if (place == 0)
        shuffle_block(p, p->index / p->parts);
    return p->order[place] == p->part;
}

/* The first of the contiguous part `part`; the end of the last one is the total. */
static uint64_t border(const struct dpf_partition *p, uint64_t part)
{
    uint64_t whole = p->total / p->parts, over = p->total % p->parts;
    return part * whole + (part < over ? part : over);
}

static bool in_order(const struct dpf_partition *p)
{
    if (p->rule == DPF_PART_OF)
        return p->index >= border(p, p->part) && p->index < border(p, p->part + 1);
    return (p->index < share(p, p->total)) != p->rest;
}

/* A keyed 64-bit hash of all bytes of one record, or of one field alone. */
static uint64_t record_hash(const struct dpf_partition *p, const struct dpf_batch *b,
                            const struct dpf_tensor *only, uint64_t row)
{
    unsigned char out[16];
    unsigned char key[32] = "dpflow split by content";
    memcpy(key + 24, &p->seed, sizeof p->seed);
    crypto_generichash_state state;
    crypto_generichash_init(&state, key, sizeof key, sizeof out);
    for (int i = 0; i < b->count; i++) {
        if (only && only != &b->tensor[i])
            continue;
        size_t bytes = dpf_tensor_row_bytes(&b->tensor[i]);
        crypto_generichash_update(
            &state, (const unsigned char *)b->tensor[i].data + row * bytes, bytes);
    }
    crypto_generichash_final(&state, out, sizeof out);
    uint64_t hash;
    memcpy(&hash, out, sizeof hash);
    return hash;
}

static bool chosen_by_content(const struct dpf_partition *p, uint64_t hash)
{
    if (p->rule == DPF_PART_OF)
        return hash % p->parts == p->part;
    return ((double)(hash >> 11) * 0x1p-53 < p->fraction) != p->rest;
}

static bool listed(const struct dpf_partition *p, double label)
{
    for (uint64_t i = 0; i < p->class_count; i++)
        if ((double)p->classes[i] == label)
            return true;
    return false;
}

enum dpf_status dpf_partition_choose(struct dpf_partition *p, const struct dpf_header *h,
                                     struct dpf_batch *b, bool *keep, struct dpf_error *e)
{
    struct dpf_tensor *labels = NULL, *person = NULL;
    if (p->by_person && !(person = dpf_batch_field(b, h, "person", e)))
        return DPF_BAD_STREAM;
    if (p->rule == DPF_PART_CLASS && !(labels = dpf_batch_field(b, h, p->class_field, e)))
        return DPF_BAD_STREAM;
    for (uint64_t i = 0; i < b->rows; i++, p->index++) {
        if (labels)
            keep[i] = listed(p, dpf_tensor_get(labels, i));
        else if (p->by_content)
            keep[i] = chosen_by_content(p, record_hash(p, b, person, i));
        else if (p->by_order)
            keep[i] = in_order(p);
        else if (p->rule == DPF_PART_OF)
            keep[i] = in_part(p);
        else
            keep[i] = in_fraction(p) != p->rest;
    }
    return DPF_OK;
}

enum dpf_status dpf_partition_assign(uint64_t parts, uint64_t seed, uint64_t rows,
                                     uint32_t *part_of, struct dpf_error *e)
{
    struct dpf_partition p = {.rule = DPF_PART_OF, .parts = parts, .seed = seed};
    enum dpf_status status = dpf_partition_start(&p, e);
    for (uint64_t i = 0; status == DPF_OK && i < rows; i++) {
        if (i % parts == 0)
            shuffle_block(&p, i / parts);
        part_of[i] = (uint32_t)p.order[i % parts];
    }
    dpf_partition_release(&p);
    return status;
}

bool dpf_partition_size(struct dpf_partition *p, uint64_t *size)
{
    if (!p->total_known || p->by_content || p->rule == DPF_PART_CLASS)
        return false;
    if (p->rule == DPF_PART_FRACTION) {
        uint64_t taken = share(p, p->total);
        *size = p->rest ? p->total - taken : taken;
        return true;
    }
    if (p->by_order) {
        *size = border(p, p->part + 1) - border(p, p->part);
        return true;
    }
    uint64_t whole = p->total / p->parts, over = p->total % p->parts;
    *size = whole;
    shuffle_block(p, whole);
    for (uint64_t i = 0; i < over; i++)
        *size += p->order[i] == p->part;
    return true;
}

struct dpf_partition_keeps dpf_partition_keeps(const struct dpf_partition *p)
{
    if (p->by_content || p->rule == DPF_PART_CLASS)
        return (struct dpf_partition_keeps){.add_remove = 1, .own = true};
    return (struct dpf_partition_keeps){.add_remove = p->by_order ? 2 : 0,
                                        .replace_one = 1};
}
