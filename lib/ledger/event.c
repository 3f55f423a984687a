/* Reading events: one row a kind. */
#include "ledger/event.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#include "base/banned.h"

bool dpf_span_is(struct dpf_span s, const char *word)
{
    return s.text && strlen(word) == s.size && memcmp(s.text, word, s.size) == 0;
}

bool dpf_span_same(struct dpf_span a, struct dpf_span b)
{
    return a.text && b.text && a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

static struct dpf_span text_of(const msgpack_object *o, const char *key)
{
    const msgpack_object *value = o ? dpf_object_get(o, key) : NULL;
    struct dpf_span s = {NULL, 0};
    if (!value || !dpf_object_text(value, &s.text, &s.size))
        return (struct dpf_span){NULL, 0};
    return s;
}

static double real_of(const msgpack_object *o, const char *key, double otherwise)
{
    const msgpack_object *value = o ? dpf_object_get(o, key) : NULL;
    double number;
    return value && dpf_object_real(value, &number) ? number : otherwise;
}

static bool whole_of(const msgpack_object *o, const char *key, uint64_t *number)
{
    const msgpack_object *value = dpf_object_get(o, key);
    return value && dpf_object_uint(value, number);
}

static bool is_true(const msgpack_object *o, const char *key)
{
    const msgpack_object *value = dpf_object_get(o, key);
    return value && value->type == MSGPACK_OBJECT_BOOLEAN && value->via.boolean;
}

static int word_index(struct dpf_span s, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (dpf_span_is(s, words[i]))
            return i;
    return -1;
}

static const struct dpf_spending_kind *kind_of(struct dpf_span name)
{
    const struct dpf_spending_kind *const *kind = dpf_spending_kinds;
    while (*kind && !dpf_span_is(name, (*kind)->name))
        kind++;
    return *kind;
}

static enum dpf_status malformed(const char *what, struct dpf_error *e)
{
    return dpf_fail(e, DPF_PRIVACY,
                    "an event '%s' is malformed: no epsilon can be stated", what);
}

/* ---------------------------------------------------------------------------- kinds */

static void read_statements(const msgpack_object *o, struct dpf_event *v)
{
    const msgpack_object *claimed = dpf_object_get(o, "claimed");
    const msgpack_object *proven = dpf_object_get(o, "proven");
    v->claimed_epsilon = real_of(claimed, "epsilon", NAN);
    v->claimed_delta = real_of(claimed, "delta", NAN);
    v->proven_delta = real_of(proven, "delta", 0);
    if (!(v->proven_delta >= 0))
        v->proven_delta = 0;
    v->claim = text_of(claimed, "source");
    v->differs = text_of(proven, "why");
    v->assumes = text_of(o, "assumes");
    v->release = text_of(o, "release");
}

static enum dpf_status read_mechanism(const msgpack_object *o, struct dpf_event *v,
                                      struct dpf_error *e)
{
    struct dpf_spending *s = &v->spending;
    int relation = word_index(text_of(o, "relation"), dpf_relation_words);
    s->kind = kind_of(text_of(o, "mechanism"));
    if (!s->kind)
        return dpf_fail(e, DPF_PRIVACY,
                        "an event has an unknown mechanism: no epsilon can be stated");
    s->choices = 2;
    s->parameter = real_of(o, s->kind->key, NAN);
    s->rate = real_of(o, "rate", NAN);
    if (relation < 0 || isnan(s->parameter) || isnan(s->rate) ||
        !whole_of(o, "count", &s->count) ||
        (dpf_object_get(o, "choices") && !whole_of(o, "choices", &s->choices)))
        return malformed("mechanism", e);
    v->relation = (enum dpf_relation)relation;
    v->mechanism = s->kind->name;
    v->method = text_of(o, "method");
    v->poisson = dpf_span_is(text_of(o, "sampling"), "poisson");
    v->shows_place = dpf_object_get(o, "shows_place") != NULL;
    v->tells_count = dpf_object_get(o, "tells_count") != NULL;
    v->clear = dpf_object_get(o, "clear") != NULL;
    read_statements(o, v);
    return DPF_OK;
}

static enum dpf_status read_why(const msgpack_object *o, struct dpf_event *v,
                                struct dpf_error *e)
{
    (void)e;
    v->why = text_of(o, "why");
    return DPF_OK;
}

static enum dpf_status read_source(const msgpack_object *o, struct dpf_event *v,
                                   struct dpf_error *e)
{
    (void)e;
    v->name = text_of(o, "name");
    v->digest = text_of(o, "digest");
    v->set = text_of(o, "set");
    v->part_name = text_of(o, "part");
    return DPF_OK;
}

/* `stability`, or the word of streams before it: that relation, without a factor. */
static enum dpf_status read_stability(const msgpack_object *o, const char *kind,
                                      const char *word, uint64_t otherwise,
                                      struct dpf_event *v, struct dpf_error *e)
{
    const msgpack_object *map = dpf_object_get(o, "stability");
    struct dpf_stability *s = &v->stability;
    v->count_private = dpf_object_get(o, "count_private") != NULL;
    if (!map) {
        int relation = word_index(text_of(o, word), dpf_relation_words);
        s->add_remove = relation == DPF_ADD_REMOVE ? otherwise : 0;
        s->replace_one = relation == DPF_REPLACE_ONE ? otherwise : 0;
        v->count_private = dpf_span_is(text_of(o, "by"), "label") ||
                           dpf_span_is(text_of(o, "by"), "content");
        return DPF_OK;
    }
    if (map->type != MSGPACK_OBJECT_MAP ||
        (dpf_object_get(map, "add-remove") &&
         (!whole_of(map, "add-remove", &s->add_remove) || s->add_remove < 1)) ||
        (dpf_object_get(map, "replace-one") &&
         (!whole_of(map, "replace-one", &s->replace_one) || s->replace_one < 1)) ||
        s->add_remove > DPF_MAX_STABILITY || s->replace_one > DPF_MAX_STABILITY)
        return malformed(kind, e);
    return DPF_OK;
}

static enum dpf_status read_selection(const msgpack_object *o, struct dpf_event *v,
                                      struct dpf_error *e)
{
    return read_stability(o, "selection", "stable_under", 1, v, e);
}

static enum dpf_status read_partition(const msgpack_object *o, struct dpf_event *v,
                                      struct dpf_error *e)
{
    int relation = word_index(text_of(o, "disjoint_under"), dpf_relation_words);
    v->disjoint[0] = relation == DPF_ADD_REMOVE;
    v->disjoint[1] = relation == DPF_REPLACE_ONE;
    v->cut = text_of(o, "cut");
    v->by_person = dpf_span_is(text_of(o, "by"), "person");
    if (!whole_of(o, "parts", &v->parts) || !whole_of(o, "part", &v->part) ||
        v->part >= v->parts)
        v->cut = (struct dpf_span){NULL, 0}; /* a part of nothing */
    return read_stability(o, "partition", "disjoint_under", 1, v, e);
}

static enum dpf_status read_augmentation(const msgpack_object *o, struct dpf_event *v,
                                         struct dpf_error *e)
{
    struct dpf_stability *s = &v->stability;
    if (!whole_of(o, "copies", &v->copies) || v->copies < 1 ||
        v->copies > DPF_MAX_STABILITY)
        return malformed("augmentation", e);
    enum dpf_status status =
        read_stability(o, "augmentation", "stable_under", v->copies, v, e);
    /* fewer than there are copies is no stability */
    if (status == DPF_OK && ((s->add_remove && s->add_remove < v->copies) ||
                             (s->replace_one && s->replace_one < v->copies)))
        return malformed("augmentation", e);
    return status;
}

/* A unit that is not known is refused: a stability in it means nothing here. */
static enum dpf_status read_windows(const msgpack_object *o, struct dpf_event *v,
                                    struct dpf_error *e)
{
    const struct dpf_stability *s = &v->stability;
    if (!dpf_span_is(text_of(o, "unit"), "person") || !dpf_object_get(o, "stability") ||
        !whole_of(o, "ends", &v->ends) || !whole_of(o, "friends", &v->friends) ||
        v->ends < 1 || v->ends > DPF_MAX_STABILITY || v->friends > DPF_MAX_STABILITY)
        return malformed("windows", e);
    v->first = real_of(o, "first", NAN);
    v->last = real_of(o, "last", NAN);
    enum dpf_status status = read_stability(o, "windows", "", 0, v, e);
    /* less than the construction has is no stability */
    if (status == DPF_OK &&
        ((s->add_remove && s->add_remove < v->ends * (1 + 2 * v->friends)) ||
         (s->replace_one && s->replace_one < v->ends * (1 + v->friends))))
        return malformed("windows", e);
    return status;
}

static enum dpf_status read_randomised(const msgpack_object *o, struct dpf_event *v,
                                       struct dpf_error *e)
{
    (void)e;
    v->method = text_of(o, "method");
    return DPF_OK;
}

static enum dpf_status read_nothing(const msgpack_object *o, struct dpf_event *v,
                                    struct dpf_error *e)
{
    (void)o;
    (void)v;
    (void)e;
    return DPF_OK;
}

static enum dpf_status read_model(const msgpack_object *o, struct dpf_event *v,
                                  struct dpf_error *e)
{
    struct dpf_span data = text_of(o, "data");
    v->data = dpf_span_is(data, "public")      ? DPF_PUBLIC
              : dpf_span_is(data, "protected") ? DPF_PROTECTED
                                               : DPF_PRIVATE;
    v->events = dpf_object_get(o, "events");
    return v->events && v->events->type == MSGPACK_OBJECT_ARRAY ? DPF_OK
                                                                : malformed("model", e);
}

static enum dpf_status read_merge(const msgpack_object *o, struct dpf_event *v,
                                  struct dpf_error *e)
{
    v->branches = dpf_object_get(o, "branches");
    v->distinct_owners = is_true(o, "distinct_owners");
    if (!v->branches || v->branches->type != MSGPACK_OBJECT_ARRAY ||
        v->branches->via.array.size == 0)
        return malformed("merge", e);
    for (uint32_t i = 0; i < v->branches->via.array.size; i++)
        if (v->branches->via.array.ptr[i].type != MSGPACK_OBJECT_ARRAY)
            return malformed("merge", e);
    return DPF_OK;
}

/* An array with one value of this type for each branch; NULL: none. */
static bool goes_with(const msgpack_object *array, const msgpack_object *branches,
                      msgpack_object_type type)
{
    bool good = !array || (array->type == MSGPACK_OBJECT_ARRAY &&
                           array->via.array.size == branches->via.array.size);
    for (uint32_t i = 0; good && array && i < array->via.array.size; i++)
        good = array->via.array.ptr[i].type == type;
    return good;
}

static enum dpf_status read_teachers(const msgpack_object *o, struct dpf_event *v,
                                     struct dpf_error *e)
{
    if (read_merge(o, v, NULL) != DPF_OK)
        return malformed("teachers", e);
    v->names = dpf_object_get(o, "names");
    v->ids = dpf_object_get(o, "ids");
    return goes_with(v->names, v->branches, MSGPACK_OBJECT_STR) &&
                   goes_with(v->ids, v->branches, MSGPACK_OBJECT_POSITIVE_INTEGER) &&
                   !v->names == !v->ids
               ? DPF_OK
               : malformed("teachers", e);
}

static const struct {
    const char *name;
    enum dpf_status (*read)(const msgpack_object *o, struct dpf_event *v,
                            struct dpf_error *e);
} kinds[DPF_EVENT_KINDS] = {
    [DPF_EVENT_MECHANISM] = {"mechanism", read_mechanism},
    [DPF_EVENT_NONE] = {"none", read_why},
    [DPF_EVENT_SEED] = {"insecure-seed", read_why},
    [DPF_EVENT_SOURCE] = {"source", read_source},
    [DPF_EVENT_SELECTION] = {"selection", read_selection},
    [DPF_EVENT_PARTITION] = {"partition", read_partition},
    [DPF_EVENT_AUGMENTATION] = {"augmentation", read_augmentation},
    [DPF_EVENT_WINDOWS] = {"windows", read_windows},
    [DPF_EVENT_MIXING] = {"mixing", read_nothing},
    [DPF_EVENT_RANDOMISED] = {"randomised", read_randomised},
    [DPF_EVENT_MODEL] = {"model", read_model},
    [DPF_EVENT_MERGE] = {"merge", read_merge},
    [DPF_EVENT_TEACHERS] = {"teachers", read_teachers},
};

const char *dpf_event_word(enum dpf_event_kind kind)
{
    return kinds[kind].name;
}

enum dpf_status dpf_event_read(const msgpack_object *o, struct dpf_event *v,
                               struct dpf_error *e)
{
    struct dpf_span kind =
        o->type == MSGPACK_OBJECT_MAP ? text_of(o, "event") : (struct dpf_span){NULL, 0};
    *v = (struct dpf_event){.claimed_epsilon = NAN, .claimed_delta = NAN};
    for (int i = 0; i < DPF_EVENT_KINDS; i++)
        if (dpf_span_is(kind, kinds[i].name)) {
            v->kind = (enum dpf_event_kind)i;
            return kinds[i].read(o, v, e);
        }
    struct dpf_text shown = {0};
    dpf_text_add_visible(&shown, kind.text ? kind.text : "",
                         kind.size < 40 ? kind.size : 40);
    dpf_fail(e, DPF_PRIVACY,
             "the ledger has an unknown event '%s': no epsilon can be stated",
             dpf_text_get(&shown));
    dpf_text_release(&shown);
    return DPF_PRIVACY;
}

/* ---------------------------------------------------------------------------- lists */

void dpf_event_list_release(struct dpf_event_list *l)
{
    if (l->zone)
        msgpack_zone_free(l->zone);
    *l = (struct dpf_event_list){.zone = NULL};
}

/* The header keeps events encoded, one after the other. */
enum dpf_status dpf_event_list_init(struct dpf_event_list *l, const struct dpf_values *v,
                                    struct dpf_error *e)
{
    size_t at = 0;
    *l = (struct dpf_event_list){.zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE)};
    if (!l->zone)
        return dpf_fail_memory(e);
    l->array.type = MSGPACK_OBJECT_ARRAY;
    l->array.via.array.ptr =
        v->count > v->bytes.size /* each takes a byte at least */
            ? NULL
            : msgpack_zone_malloc(l->zone, (v->count + 1) * sizeof(msgpack_object));
    enum dpf_status status = l->array.via.array.ptr ? DPF_OK : malformed("list", e);
    for (uint32_t i = 0; status == DPF_OK && i < v->count; i++) {
        size_t before = at;
        msgpack_unpack_return r =
            msgpack_unpack((const char *)v->bytes.data, v->bytes.size, &at, l->zone,
                           &l->array.via.array.ptr[i]);
        if ((r != MSGPACK_UNPACK_SUCCESS && r != MSGPACK_UNPACK_EXTRA_BYTES) ||
            at <= before)
            status = malformed("list", e);
        else
            l->array.via.array.size = i + 1;
    }
    if (status != DPF_OK)
        dpf_event_list_release(l);
    return status;
}

/* ------------------------------------------------------------------------- standing */

static bool has_answers(const msgpack_object *events, int depth)
{
    bool found = depth > DPF_MAX_EVENT_DEPTH;
    for (uint32_t i = 0; !found && i < events->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&events->via.array.ptr[i], &v, NULL) != DPF_OK)
            return true;
        found = v.kind == DPF_EVENT_TEACHERS && v.names;
        for (uint32_t k = 0; !found && v.branches && k < v.branches->via.array.size; k++)
            found = has_answers(&v.branches->via.array.ptr[k], depth + 1);
    }
    return found;
}

enum dpf_status dpf_ledger_refuse_answers(const struct dpf_values *events,
                                          struct dpf_error *e)
{
    struct dpf_event_list list;
    enum dpf_status status = dpf_event_list_init(&list, events, e);
    if (status != DPF_OK)
        return status;
    if (has_answers(&list.array, 0))
        status = dpf_fail(e, DPF_PRIVACY,
                          "these are answers of teachers, each of whom has many: "
                          "'aggregate' releases them");
    dpf_event_list_release(&list);
    return status;
}

void dpf_standing_protect(struct dpf_header *h)
{
    h->is_private = false;
    h->is_protected = true;
}

void dpf_standing_join(struct dpf_header *into, const struct dpf_header *other)
{
    into->is_private = into->is_private || other->is_private;
    into->is_protected = !into->is_private && (into->is_protected || other->is_protected);
}

/* ------------------------------------------------------------------------ questions */

/* Does a step of such a kind leave every row where it was, as it was loaded? */
static bool keeps_rows(enum dpf_event_kind kind)
{
    switch (kind) {
    case DPF_EVENT_MECHANISM:
    case DPF_EVENT_SELECTION:
    case DPF_EVENT_PARTITION:
    case DPF_EVENT_AUGMENTATION:
    case DPF_EVENT_WINDOWS:
    case DPF_EVENT_TEACHERS:
    case DPF_EVENT_MIXING:
        return false;
    case DPF_EVENT_NONE: /* says itself that nothing is promised */
    case DPF_EVENT_SEED:
    case DPF_EVENT_SOURCE:
    case DPF_EVENT_RANDOMISED:
    case DPF_EVENT_MODEL: /* of other records: it has its own account */
    case DPF_EVENT_MERGE: /* its branches are looked at */
        return true;
    case DPF_EVENT_KINDS:
        break;
    }
    return false;
}

static bool rows_are_whole(const msgpack_object *array, bool by_person, int depth)
{
    bool whole = depth <= DPF_MAX_EVENT_DEPTH;
    for (uint32_t i = 0; whole && i < array->via.array.size; i++) {
        struct dpf_event v;
        whole = dpf_event_read(&array->via.array.ptr[i], &v, NULL) == DPF_OK &&
                (keeps_rows(v.kind) || (by_person && v.by_person));
        for (uint32_t k = 0; whole && v.branches && k < v.branches->via.array.size; k++)
            whole = rows_are_whole(&v.branches->via.array.ptr[k], by_person, depth + 1);
    }
    return whole;
}

bool dpf_ledger_rows_are_whole(const struct dpf_values *events, bool by_person)
{
    struct dpf_event_list list;
    if (dpf_event_list_init(&list, events, NULL) != DPF_OK)
        return false;
    bool whole = rows_are_whole(&list.array, by_person, 0);
    dpf_event_list_release(&list);
    return whole;
}

/* What an event makes of one person's windows (0: there are none yet); 0: no number. */
static uint64_t group_after(uint64_t group, const struct dpf_event *v, bool add_remove)
{
    uint64_t steps = add_remove ? v->stability.add_remove : v->stability.replace_one;
    switch (v->kind) {
    case DPF_EVENT_WINDOWS:
        return group ? 0 : steps;
    case DPF_EVENT_SELECTION:
    case DPF_EVENT_PARTITION:
    case DPF_EVENT_AUGMENTATION:
        return steps && group <= DPF_MAX_STABILITY / steps ? group * steps : 0;
    case DPF_EVENT_SOURCE:
    case DPF_EVENT_SEED:
    case DPF_EVENT_NONE:
    case DPF_EVENT_RANDOMISED:
    case DPF_EVENT_MECHANISM:
    case DPF_EVENT_MODEL:
        return group;
    case DPF_EVENT_MERGE:
    case DPF_EVENT_TEACHERS:
    case DPF_EVENT_MIXING:
    case DPF_EVENT_KINDS:
        break;
    }
    return 0;
}

uint64_t dpf_ledger_group(const struct dpf_values *events, enum dpf_relation relation)
{
    struct dpf_event_list list;
    uint64_t group = 0;
    bool windows = false, good = dpf_event_list_init(&list, events, NULL) == DPF_OK;
    if (!good)
        return 0;
    for (uint32_t i = 0; good && i < list.array.via.array.size; i++) {
        struct dpf_event v;
        good = dpf_event_read(&list.array.via.array.ptr[i], &v, NULL) == DPF_OK;
        bool first = good && !windows && v.kind == DPF_EVENT_WINDOWS;
        if (first || windows) {
            windows = true;
            group = good ? group_after(group, &v, relation == DPF_ADD_REMOVE) : 0;
            good = group > 0;
        } else {
            good = good && keeps_rows(v.kind) && !v.branches;
        }
    }
    dpf_event_list_release(&list);
    return good ? group : 0;
}

static bool count_is_private(const msgpack_object *array, int depth)
{
    bool found = depth > DPF_MAX_EVENT_DEPTH;
    for (uint32_t i = 0; !found && i < array->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&array->via.array.ptr[i], &v, NULL) != DPF_OK)
            return true; /* what it says is not known */
        found = v.count_private;
        if (v.kind ==
            DPF_EVENT_TEACHERS) /* they answer, however many records they have */
            continue;
        for (uint32_t k = 0; !found && v.branches && k < v.branches->via.array.size; k++)
            found = count_is_private(&v.branches->via.array.ptr[k], depth + 1);
    }
    return found;
}

bool dpf_ledger_count_is_private(const struct dpf_values *events)
{
    struct dpf_event_list list;
    if (dpf_event_list_init(&list, events, NULL) != DPF_OK)
        return true;
    bool found = count_is_private(&list.array, 0);
    dpf_event_list_release(&list);
    return found;
}
