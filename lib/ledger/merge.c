#include "ledger/merge.h"

#include "base/banned.h"

void dpf_ledger_add_branch(struct dpf_values *branches, const struct dpf_values *events)
{
    msgpack_packer p = dpf_values_packer(branches);
    msgpack_pack_array(&p, events->count);
    dpf_buffer_append(&branches->bytes, events->bytes.data, events->bytes.size);
    branches->count++;
}

enum dpf_status dpf_ledger_write_merge(struct dpf_values *events,
                                       const struct dpf_values *branches,
                                       bool distinct_owners, struct dpf_error *e)
{
    dpf_values_release(events);
    msgpack_packer p = dpf_values_packer(events);
    msgpack_pack_map(&p, distinct_owners ? 3 : 2);
    dpf_pack_string(&p, "event");
    dpf_pack_string(&p, dpf_event_word(DPF_EVENT_MERGE));
    if (distinct_owners) {
        dpf_pack_string(&p, "distinct_owners");
        msgpack_pack_true(&p);
    }
    dpf_pack_string(&p, "branches");
    msgpack_pack_array(&p, branches->count);
    dpf_buffer_append(&events->bytes, branches->bytes.data, branches->bytes.size);
    events->count = 1;
    return dpf_buffer_ok(&events->bytes) && dpf_buffer_ok(&branches->bytes)
               ? DPF_OK
               : dpf_fail_memory(e);
}

/* Whether parts were taken anywhere in a list. */
static bool divides(const msgpack_object *array, int depth)
{
    bool found = depth > DPF_MAX_EVENT_DEPTH;
    for (uint32_t i = 0; !found && i < array->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&array->via.array.ptr[i], &v, NULL) != DPF_OK)
            return true;
        found = v.kind == DPF_EVENT_PARTITION;
        for (uint32_t k = 0; !found && v.branches && k < v.branches->via.array.size; k++)
            found = divides(&v.branches->via.array.ptr[k], depth + 1);
    }
    return found;
}

/* A list as one branch; or as several, if all that it says is that those were merged: a
 * chain of merges would nest too deep to be read. A merge of parts stays what it is,
 * since they may count once. */
static void add_branches(struct dpf_values *branches, const struct dpf_values *events)
{
    struct dpf_event_list list;
    struct dpf_event v;
    bool good = dpf_event_list_init(&list, events, NULL) == DPF_OK;
    if (good && list.array.via.array.size == 1 &&
        dpf_event_read(&list.array.via.array.ptr[0], &v, NULL) == DPF_OK &&
        v.kind == DPF_EVENT_MERGE && !v.distinct_owners && !divides(&list.array, 0))
        for (uint32_t i = 0; i < v.branches->via.array.size; i++)
            dpf_values_append_object(branches, &v.branches->via.array.ptr[i]);
    else
        dpf_ledger_add_branch(branches, events);
    if (good)
        dpf_event_list_release(&list);
}

/* What was done to the one was not done to the other, so each keeps a list of its own.
 * Whether they share records is for the reader of the ledger to tell, from the lists. */
enum dpf_status dpf_ledger_merge(struct dpf_header *into, const struct dpf_header *other,
                                 struct dpf_error *e)
{
    dpf_standing_join(into, other);
    dpf_values_append(&into->provenance, &other->provenance);
    if (!into->is_private && into->branches.count == 0 && into->events.count == 0 &&
        other->events.count == 0)
        return DPF_OK; /* nothing that anybody would have to know */
    if (into->branches.count == 0)
        add_branches(&into->branches, &into->events);
    add_branches(&into->branches, &other->events);
    return dpf_ledger_write_merge(&into->events, &into->branches, false, e);
}
