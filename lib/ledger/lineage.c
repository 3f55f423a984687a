#include "ledger/lineage.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

/* Sources of a stream, each with the parts that were taken of it. */
struct origins {
    struct dpf_origin *list;
    size_t count, capacity;
    bool unknown; /* not all of them could be read */
};

static void add_word(struct dpf_text *t, struct dpf_span word)
{
    struct dpf_text shown = {0};
    dpf_text_add_visible(&shown, word.text ? word.text : "?", word.text ? word.size : 1);
    for (const char *at = t->size ? t->data : NULL; at; at = strchr(at, ',')) {
        at += strspn(at, ", ");
        if (strncmp(at, dpf_text_get(&shown), shown.size) == 0 &&
            (at[shown.size] == '\0' || at[shown.size] == ','))
            shown.size = 0;
    }
    if (shown.size) {
        dpf_text_add(t, t->size ? ", " : "");
        dpf_text_addn(t, shown.data, shown.size);
    }
    dpf_text_release(&shown);
}

static void add_origin(struct origins *all, const struct dpf_event *v)
{
    if (!dpf_grow(&all->list, &all->capacity, all->count + 1, sizeof *all->list)) {
        all->unknown = true;
        return;
    }
    all->list[all->count++] = (struct dpf_origin){
        .name = v->name, .digest = v->digest, .set = v->set, .part_name = v->part_name};
}

/* A part of all that is in the list so far. */
static void add_cut(struct origins *all, size_t from, const struct dpf_event *v)
{
    for (size_t i = from; i < all->count; i++) {
        struct dpf_origin *o = &all->list[i];
        if (!o->closed && v->cut.text && o->cut_count < DPF_MAX_CUTS)
            o->cuts[o->cut_count++] = *v;
    }
}

static void read_list(const msgpack_object *array, struct origins *all, bool learned,
                      struct dpf_text *methods, int depth);

static void close_origins(struct origins *all, size_t from)
{
    for (size_t i = from; i < all->count; i++)
        all->list[i].closed = true;
}

/* A person has rows in every part, unless it is one of persons, so no other part keeps
 * windows apart, before or behind. */
static void add_windows(struct origins *all, size_t from, const struct dpf_event *v)
{
    for (size_t i = from; i < all->count; i++) {
        struct dpf_origin *o = &all->list[i];
        size_t kept = 0;
        for (size_t k = 0; k < o->cut_count; k++)
            if (o->cuts[k].by_person)
                o->cuts[kept++] = o->cuts[k];
        o->cut_count = kept;
        o->closed = o->windowed = true;
        o->first = v->first;
        o->last = v->last;
    }
}

/* Windows of other times are not those that were learnt from; but they are of the same
 * people, so they are not held out either. */
static enum dpf_membership membership(const struct dpf_origin *scored,
                                      const struct dpf_origin *learned)
{
    switch (dpf_origins_share(scored, learned)) {
    case DPF_SHARE_NONE:
        return DPF_HELD_OUT;
    case DPF_SHARE_UNKNOWN:
        return DPF_UNKNOWN;
    case DPF_SHARE_SOME:
        break;
    }
    bool apart = scored->windowed && learned->windowed &&
                 (scored->last < learned->first || learned->last < scored->first);
    return apart ? DPF_UNKNOWN : DPF_SEEN;
}

static void read_model(const msgpack_object *events, struct origins *all, int depth)
{
    size_t from = all->count;
    read_list(events, all, true, NULL, depth + 1);
    close_origins(all, from);
}

/* Whether a record may be there twice, in two of these. */
static bool may_repeat(const struct origins *all, size_t from)
{
    enum { MOST = 256 }; /* they are compared two by two */
    bool found = all->count - from > MOST;
    for (size_t i = from; !found && i < all->count; i++)
        for (size_t k = from; !found && k < i; k++)
            found = dpf_origins_share(&all->list[i], &all->list[k]) != DPF_SHARE_NONE;
    return found;
}

/* `learned`: of all that went into a model, models before it included. Else of the
 * records alone, and how they were randomised. */
static void read_list(const msgpack_object *array, struct origins *all, bool learned,
                      struct dpf_text *methods, int depth)
{
    size_t from = all->count;
    all->unknown = all->unknown || depth > DPF_MAX_EVENT_DEPTH;
    for (uint32_t i = 0; !all->unknown && i < array->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&array->via.array.ptr[i], &v, NULL) != DPF_OK) {
            all->unknown = true;
            return;
        }
        if (v.kind == DPF_EVENT_SOURCE)
            add_origin(all, &v);
        else if (v.kind == DPF_EVENT_PARTITION)
            add_cut(all, from, &v);
        else if (v.kind == DPF_EVENT_WINDOWS)
            add_windows(all, from, &v);
        else if (v.kind == DPF_EVENT_AUGMENTATION && v.copies > 1)
            close_origins(all, from);
        else if (v.kind == DPF_EVENT_MODEL && learned)
            read_model(v.events, all, depth);
        else if (v.kind == DPF_EVENT_TEACHERS) {
            for (uint32_t k = 0; learned && k < v.branches->via.array.size; k++)
                read_model(&v.branches->via.array.ptr[k], all, depth);
            continue;
        } else if (methods &&
                   (v.kind == DPF_EVENT_RANDOMISED ||
                    (v.kind == DPF_EVENT_MECHANISM && v.relation == DPF_LOCAL)))
            add_word(methods, v.method.text || !v.mechanism
                                  ? v.method
                                  : (struct dpf_span){v.mechanism, strlen(v.mechanism)});
        size_t merged = all->count;
        for (uint32_t k = 0; v.branches && k < v.branches->via.array.size; k++)
            read_list(&v.branches->via.array.ptr[k], all, learned, methods, depth + 1);
        if (v.branches && may_repeat(all, merged))
            close_origins(all, merged);
    }
}

void dpf_lineage_read(struct dpf_lineage *l, const struct dpf_header *model,
                      const struct dpf_header *records)
{
    struct origins learned = {0}, scored = {0};
    struct dpf_event_list of_model = {.zone = NULL}, of_records = {.zone = NULL};
    *l = (struct dpf_lineage){.membership = DPF_UNKNOWN};
    if (dpf_event_list_init(&of_model, &model->events, NULL) == DPF_OK &&
        dpf_event_list_init(&of_records, &records->events, NULL) == DPF_OK) {
        read_list(&of_model.array, &learned, true, NULL, 0);
        read_list(&of_records.array, &scored, false, &l->randomised, 0);
        l->membership = DPF_HELD_OUT;
    }
    if (learned.unknown || scored.unknown || !learned.count || !scored.count)
        l->membership = DPF_UNKNOWN;
    for (size_t i = 0; i < learned.count; i++)
        add_word(&l->trained_on, learned.list[i].name);
    for (size_t i = 0; i < scored.count; i++) {
        add_word(&l->records, scored.list[i].name);
        for (size_t k = 0; k < learned.count && l->membership != DPF_SEEN; k++) {
            enum dpf_membership m = membership(&scored.list[i], &learned.list[k]);
            if (m != DPF_HELD_OUT)
                l->membership = m;
        }
    }
    free(learned.list);
    free(scored.list);
    dpf_event_list_release(&of_model);
    dpf_event_list_release(&of_records);
}

bool dpf_lineage_parts(const msgpack_object *events, int relation, struct dpf_origin *o)
{
    bool before = true, found = false;
    uint64_t group = 1;
    *o = (struct dpf_origin){.cut_count = 0};
    for (uint32_t i = 0; i < events->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&events->via.array.ptr[i], &v, NULL) != DPF_OK ||
            (v.kind == DPF_EVENT_MODEL && v.data != DPF_PUBLIC) ||
            v.kind == DPF_EVENT_MERGE || v.kind == DPF_EVENT_TEACHERS ||
            v.kind == DPF_EVENT_WINDOWS || /* a person has rows in every part */
            (v.kind == DPF_EVENT_SOURCE && found))
            return false;
        found = found || v.kind == DPF_EVENT_SOURCE;
        if (v.kind == DPF_EVENT_SOURCE)
            o->digest = v.digest;
        bool divides = v.kind == DPF_EVENT_PARTITION;
        before = before && (divides || v.kind == DPF_EVENT_SOURCE ||
                            v.kind == DPF_EVENT_SELECTION || v.kind == DPF_EVENT_MODEL);
        if (before && divides && v.cut.text && group == 1 && v.disjoint[relation] &&
            o->cut_count < DPF_MAX_CUTS)
            o->cuts[o->cut_count++] = v;
        if (before && v.kind != DPF_EVENT_SOURCE && v.kind != DPF_EVENT_MODEL)
            group *= relation ? v.stability.replace_one : v.stability.add_remove;
        before = before && group == 1;
    }
    return o->cut_count > 0;
}

void dpf_lineage_release(struct dpf_lineage *l)
{
    dpf_text_release(&l->records);
    dpf_text_release(&l->trained_on);
    dpf_text_release(&l->randomised);
}

static void add_member(struct dpf_text *members, const char *key,
                       const struct dpf_text *value)
{
    dpf_text_add_key(members, key);
    if (value->size)
        dpf_text_add_json(members, value->data, value->size);
    else
        dpf_text_add(members, "null");
}

void dpf_lineage_report(const struct dpf_lineage *l, struct dpf_findings *f)
{
    enum { NAME_COLUMNS = 18 };
    static const struct {
        const char *words, *is_held_out;
    } memberships[] = {[DPF_HELD_OUT] = {"held out", "true"},
                       [DPF_SEEN] = {"trained on", "false"},
                       [DPF_UNKNOWN] = {"unknown", "null"}};
    dpf_findings_add_row(f, NAME_COLUMNS, "records", "%s, %s",
                         l->records.size ? l->records.data : "of an unnamed source",
                         memberships[l->membership].words);
    dpf_findings_add_row(f, NAME_COLUMNS, "inputs", "%s%s",
                         l->randomised.size ? "randomised by " : "not randomised",
                         dpf_text_get(&l->randomised));
    add_member(&f->members, "records", &l->records);
    add_member(&f->members, "trained_on", &l->trained_on);
    dpf_text_add_key(&f->members, "held_out");
    dpf_text_add(&f->members, memberships[l->membership].is_held_out);
    add_member(&f->members, "inputs_randomised", &l->randomised);
}
