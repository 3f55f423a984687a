/* Ledgers of streams that are read as one. */
#include <string.h>

#include "base/text.h"
#include "wire/stream.h"

#include "base/banned.h"

/* A map without one of its keys, as text to compare. */
static void add_without(struct dpf_text *t, const msgpack_object *map, const char *key)
{
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        if (dpf_object_is_string(&map->via.map.ptr[i].key, key))
            continue;
        dpf_object_to_json(&map->via.map.ptr[i].key, t);
        dpf_text_add(t, ":");
        dpf_object_to_json(&map->via.map.ptr[i].val, t);
        dpf_text_add(t, ",");
    }
}

/* The provenance as text, but for which part each split kept. */
static bool describe(const struct dpf_values *provenance, uint32_t count,
                     struct dpf_text *t)
{
    msgpack_unpacked one;
    size_t at = 0;
    bool good = count <= provenance->count;
    msgpack_unpacked_init(&one);
    for (uint32_t i = 0; good && i < count; i++) {
        good =
            msgpack_unpack_next(&one, (const char *)provenance->bytes.data,
                                provenance->bytes.size, &at) == MSGPACK_UNPACK_SUCCESS &&
            one.data.type == MSGPACK_OBJECT_MAP;
        if (!good)
            break;
        const msgpack_object *options = dpf_object_get(&one.data, "options");
        bool split = dpf_object_is_string(dpf_object_get(&one.data, "stage"), "split") &&
                     options && options->type == MSGPACK_OBJECT_MAP;
        add_without(t, &one.data, split ? "options" : "");
        if (split)
            add_without(t, options, "part");
        dpf_text_add(t, "\n");
    }
    msgpack_unpacked_destroy(&one);
    return good && !t->failed;
}

/* Whether two streams were made in the same way from the same data, but for which part of
 * it they kept. The first one's provenance stands at the front of what was merged. */
static bool same_source(const struct dpf_values *merged, const struct dpf_values *other)
{
    struct dpf_text a = {0}, b = {0};
    bool same = other->count > 0 && describe(merged, other->count, &a) &&
                describe(other, other->count, &b) &&
                strcmp(dpf_text_get(&a), dpf_text_get(&b)) == 0;
    dpf_text_release(&a);
    dpf_text_release(&b);
    return same;
}

void dpf_ledger_add_branch(struct dpf_values *branches, const struct dpf_values *events)
{
    msgpack_packer p = dpf_values_packer(branches);
    msgpack_pack_array(&p, events->count);
    dpf_buffer_append(&branches->bytes, events->bytes.data, events->bytes.size);
    branches->count++;
}

static void add_truth(msgpack_packer *p, const char *key, bool value)
{
    dpf_pack_string(p, key);
    if (value)
        msgpack_pack_true(p);
    else
        msgpack_pack_false(p);
}

enum dpf_status dpf_ledger_write_merge(struct dpf_values *events,
                                       const struct dpf_values *branches,
                                       bool same_source, bool distinct_owners,
                                       struct dpf_error *e)
{
    dpf_values_release(events);
    msgpack_packer p = dpf_values_packer(events);
    msgpack_pack_map(&p, distinct_owners ? 4 : 3);
    dpf_pack_string(&p, "event");
    dpf_pack_string(&p, "merge");
    add_truth(&p, "same_source", same_source);
    if (distinct_owners)
        add_truth(&p, "distinct_owners", true);
    dpf_pack_string(&p, "branches");
    msgpack_pack_array(&p, branches->count);
    dpf_buffer_append(&events->bytes, branches->bytes.data, branches->bytes.size);
    events->count = 1;
    return dpf_buffer_ok(&events->bytes) && dpf_buffer_ok(&branches->bytes)
               ? DPF_OK
               : dpf_fail_memory(e);
}

static bool mentions_partition(const struct dpf_values *events)
{
    return events->bytes.size &&
           memmem(events->bytes.data, events->bytes.size, "partition", 9) != NULL;
}

enum dpf_status dpf_ledger_merge(struct dpf_header *into, const struct dpf_header *other,
                                 struct dpf_error *e)
{
    bool first = into->branches.count == 0;
    bool same = same_source(&into->provenance, &other->provenance) &&
                (first || into->branches_alike);
    dpf_values_append(&into->provenance, &other->provenance);
    /* Records that are private may stand in several of the streams: what is done to all
     * of them later has to know. Of what came out of mechanisms only the costs add up,
     * unless its parts had no record in common. */
    if (first && !into->is_private && !mentions_partition(&into->events) &&
        !mentions_partition(&other->events)) {
        dpf_values_append(&into->events, &other->events);
        return DPF_OK;
    }
    if (first)
        dpf_ledger_add_branch(&into->branches, &into->events);
    dpf_ledger_add_branch(&into->branches, &other->events);
    into->branches_alike = same;
    return dpf_ledger_write_merge(&into->events, &into->branches, same, false, e);
}
