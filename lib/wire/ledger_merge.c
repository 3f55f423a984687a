/* Ledgers of streams that are read as one. */
#include <string.h>

#include "wire/stream.h"

#include "base/banned.h"

/* Where value number i of a list of encoded values stands. */
static bool slice(const struct dpf_values *v, uint32_t i, const unsigned char **data,
                  size_t *size)
{
    size_t at = 0, from = 0;
    msgpack_unpacked one;
    msgpack_unpacked_init(&one);
    bool good = i < v->count;
    for (uint32_t k = 0; good && k <= i; k++) {
        from = at;
        good = msgpack_unpack_next(&one, (const char *)v->bytes.data, v->bytes.size,
                                   &at) == MSGPACK_UNPACK_SUCCESS;
    }
    msgpack_unpacked_destroy(&one);
    *data = v->bytes.data + from;
    *size = at - from;
    return good;
}

static bool is_split(const unsigned char *data, size_t size)
{
    msgpack_unpacked one;
    size_t at = 0;
    msgpack_unpacked_init(&one);
    bool is = msgpack_unpack_next(&one, (const char *)data, size, &at) ==
                  MSGPACK_UNPACK_SUCCESS &&
              dpf_object_is_string(dpf_object_get(&one.data, "stage"), "split");
    msgpack_unpacked_destroy(&one);
    return is;
}

/* Whether two streams were made in the same way from the same data, but for how their
 * records were divided. */
static bool same_source(const struct dpf_values *a, const struct dpf_values *b)
{
    if (a->count != b->count || a->count == 0)
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const unsigned char *one, *other;
        size_t one_size, other_size;
        if (!slice(a, i, &one, &one_size) || !slice(b, i, &other, &other_size))
            return false;
        bool same = one_size == other_size && memcmp(one, other, one_size) == 0;
        if (!same && !(is_split(one, one_size) && is_split(other, other_size)))
            return false;
    }
    return true;
}

static void add_branch(struct dpf_values *branches, const struct dpf_values *events)
{
    msgpack_packer p = dpf_values_packer(branches);
    msgpack_pack_array(&p, events->count);
    dpf_buffer_append(&branches->bytes, events->bytes.data, events->bytes.size);
    branches->count++;
}

static bool mentions_partition(const struct dpf_values *events)
{
    return events->bytes.size &&
           memmem(events->bytes.data, events->bytes.size, "partition", 9) != NULL;
}

enum dpf_status dpf_ledger_merge(struct dpf_header *into, const struct dpf_header *other,
                                 struct dpf_error *e)
{
    /* The first stream's provenance stands at the front of what was merged so far. */
    struct dpf_values first = into->provenance;
    first.count =
        other->provenance.count < first.count ? other->provenance.count : first.count;
    bool parts = mentions_partition(&into->events) || mentions_partition(&other->events);
    bool together =
        (into->branches.count > 0 || parts) && same_source(&first, &other->provenance);
    dpf_values_append(&into->provenance, &other->provenance);
    if (!together) {
        dpf_values_release(&into->branches); /* what was merged so far stays one event */
        dpf_values_append(&into->events, &other->events);
        return DPF_OK;
    }
    if (into->branches.count == 0)
        add_branch(&into->branches, &into->events);
    add_branch(&into->branches, &other->events);
    dpf_values_release(&into->events);
    msgpack_packer p = dpf_values_packer(&into->events);
    msgpack_pack_map(&p, 2);
    dpf_pack_string(&p, "event");
    dpf_pack_string(&p, "merge");
    dpf_pack_string(&p, "branches");
    msgpack_pack_array(&p, into->branches.count);
    dpf_buffer_append(&into->events.bytes, into->branches.bytes.data,
                      into->branches.bytes.size);
    into->events.count = 1;
    return dpf_buffer_ok(&into->events.bytes) && dpf_buffer_ok(&into->branches.bytes)
               ? DPF_OK
               : dpf_fail_memory(e);
}
