#include "account/branches.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "ledger/lineage.h"

#include "base/banned.h"

static int by_part(const void *a, const void *b)
{
    const struct dpf_event *x = ((const struct dpf_origin *)a)->cuts;
    const struct dpf_event *y = ((const struct dpf_origin *)b)->cuts;
    return (x->part > y->part) - (x->part < y->part);
}

/* Whether they are different parts of one cut, which is seen at once however many they
 * are. Sorts them. */
static bool of_one_cut(struct dpf_origin *all, uint32_t count)
{
    bool good = count > 0;
    qsort(all, count, sizeof *all, by_part);
    for (uint32_t i = 1; good && i < count; i++) {
        const struct dpf_event *x = all[i - 1].cuts, *y = all[i].cuts;
        good = dpf_span_same(x->cut, y->cut) && x->parts == y->parts && x->part < y->part;
    }
    return good;
}

static bool pairs_disjoint(const struct dpf_origin *all, uint32_t count)
{
    enum { MOST_PARTS = 1024 }; /* they are compared two by two */
    bool good = count <= MOST_PARTS;
    for (uint32_t i = 0; good && i < count; i++)
        for (uint32_t k = 0; good && k < i; k++)
            good = dpf_origins_share(&all[i], &all[k]) == DPF_SHARE_NONE;
    return good;
}

/* Whether neighbours by this relation differ in one of the branches only: they are
 * different parts of one partition of one source, made before anything else but
 * selections that leave neighbours neighbours. */
bool dpf_branches_disjoint(const msgpack_object *branches, int side)
{
    uint32_t count = branches->via.array.size;
    struct dpf_origin *all = dpf_calloc((size_t)count + 1, sizeof *all);
    bool good = all != NULL;
    for (uint32_t i = 0; good && i < count; i++)
        good = dpf_lineage_parts(&branches->via.array.ptr[i], side, &all[i]);
    good = good && (of_one_cut(all, count) || pairs_disjoint(all, count));
    free(all);
    return good;
}

/* A source of a branch. */
struct sent {
    struct dpf_origin origin;
    uint32_t branch;
};
struct sent_list {
    struct sent *list;
    size_t count, capacity;
    bool failed; /* memory, or what cannot be read */
};

static void add_sent(struct sent_list *l, const struct dpf_origin *o, uint32_t branch)
{
    if (!dpf_grow(&l->list, &l->capacity, l->count + 1, sizeof *l->list))
        l->failed = true;
    else
        l->list[l->count++] = (struct sent){*o, branch};
}

/* All sources of a list of events, in whatever it is made of. */
static void add_sources(struct sent_list *l, const msgpack_object *events,
                        uint32_t branch, int depth)
{
    l->failed = l->failed || depth > DPF_MAX_EVENT_DEPTH;
    for (uint32_t i = 0; !l->failed && i < events->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&events->via.array.ptr[i], &v, NULL) != DPF_OK) {
            l->failed = true;
            return;
        }
        if (v.kind == DPF_EVENT_SOURCE && v.digest.text)
            add_sent(l,
                     &(struct dpf_origin){
                         .digest = v.digest, .set = v.set, .part_name = v.part_name},
                     branch);
        if (v.events && v.data != DPF_PUBLIC)
            add_sources(l, v.events, branch, depth + 1);
        for (uint32_t k = 0; v.branches && k < v.branches->via.array.size; k++)
            add_sources(l, &v.branches->via.array.ptr[k], branch, depth + 1);
    }
}

/* What sources have in common that may share records: the set of the catalogue that they
 * are parts of, else their content. */
static const struct dpf_span *kin(const struct sent *s)
{
    return s->origin.set.text ? &s->origin.set : &s->origin.digest;
}

static int by_kin(const void *a, const void *b)
{
    const struct dpf_span *x = kin(a), *y = kin(b);
    size_t size = x->size < y->size ? x->size : y->size;
    int order = size ? memcmp(x->text, y->text, size) : 0;
    return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Whether sources [from, to), which are one and the same or parts of one set, went to two
 * branches that neither a cut nor the catalogue keeps apart. */
static bool is_shared(struct sent *list, size_t from, size_t to)
{
    enum { MOST = 1024 };
    bool one = true, shared = false;
    for (size_t i = from + 1; i < to; i++)
        one = one && list[i].branch == list[from].branch;
    if (one)
        return false;
    if (to - from > MOST)
        return true;
    for (size_t i = from; !shared && i < to; i++)
        for (size_t k = i + 1; !shared && k < to; k++)
            shared =
                list[i].branch != list[k].branch &&
                dpf_origins_share(&list[i].origin, &list[k].origin) != DPF_SHARE_NONE;
    return shared;
}

/* Which part of which set its one source is, as far as the catalogue knows. */
static void find_set(const msgpack_object *events, struct dpf_origin *o)
{
    struct dpf_event v;
    for (uint32_t i = 0; i < events->via.array.size; i++)
        if (dpf_event_read(&events->via.array.ptr[i], &v, NULL) == DPF_OK &&
            v.kind == DPF_EVENT_SOURCE) {
            o->set = v.set;
            o->part_name = v.part_name;
        }
}

/* Whether the ledger itself shows that two of the branches are of the same records,
 * whoever sent them: a source is in both, in a merge too, and no cut that was made of it
 * before anything else keeps them apart. */
static bool sent_twice(const msgpack_object *branches)
{
    struct sent_list l = {.list = NULL};
    for (uint32_t i = 0; i < branches->via.array.size; i++) {
        struct dpf_origin o;
        if (dpf_lineage_parts(&branches->via.array.ptr[i], 1, &o) && o.digest.text) {
            find_set(&branches->via.array.ptr[i], &o);
            add_sent(&l, &o, i);
        } else {
            add_sources(&l, &branches->via.array.ptr[i], i, 0);
        }
    }
    bool twice = l.failed;
    if (l.count > 1)
        qsort(l.list, l.count, sizeof *l.list, by_kin);
    for (size_t from = 0, to; !twice && from < l.count; from = to) {
        for (to = from + 1;
             to < l.count && dpf_span_same(*kin(&l.list[from]), *kin(&l.list[to]));)
            to++;
        twice = is_shared(l.list, from, to);
    }
    free(l.list);
    return twice;
}

/* Whether a list of events, or a branch inside it, used a model of records that are not
 * public: they may be those of another owner. Or was cut, from a source that cannot be
 * recognised, behind a statistic of all its records: the other part may be another
 * owner's. */
static bool uses_others(const msgpack_object *events, int depth)
{
    bool found = depth > DPF_MAX_EVENT_DEPTH, mixed = false;
    for (uint32_t i = 0; !found && i < events->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&events->via.array.ptr[i], &v, NULL) != DPF_OK)
            return true;
        mixed = mixed || v.kind == DPF_EVENT_NONE || v.kind == DPF_EVENT_MIXING;
        found = v.kind == DPF_EVENT_TEACHERS ||
                (v.kind == DPF_EVENT_MODEL && v.data != DPF_PUBLIC) ||
                (v.kind == DPF_EVENT_PARTITION && mixed && !v.cut.text);
        for (uint32_t k = 0; !found && v.branches && k < v.branches->via.array.size; k++)
            found = uses_others(&v.branches->via.array.ptr[k], depth + 1);
    }
    return found;
}

/* Whether somebody's word that branches are of different owners can be taken: the ledger
 * does not say otherwise. */
bool dpf_branches_of_owners(const struct dpf_event *v)
{
    const msgpack_object *branches = v->branches;
    bool good = v->distinct_owners;
    for (uint32_t i = 0; good && i < branches->via.array.size; i++)
        good = !uses_others(&branches->via.array.ptr[i], 0);
    return good && !sent_twice(branches);
}
