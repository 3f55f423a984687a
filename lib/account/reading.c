#include "account/reading.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/decode.h"

#include "base/banned.h"

enum { MAX_COPIES = 1000000 };
/* More than any noise can hide: whatever is divided or multiplied by it is out of range,
 * and the cost infinite. */
static const uint64_t MAX_GROUP = 1000000000000000000;

static const char parallel[] =
    "parts without a common record count once, by the dearest "
    "(parallel composition); streams of the same provenance are "
    "of the same data";

/* What stages before have done to the neighbouring relation. */
struct context {
    uint64_t group;
    bool needs_add_remove, needs_replace_one; /* else nothing is promised */
};

static bool add_path(struct dpf_reading *r, const struct dpf_ledger_path *take)
{
    if (!dpf_grow(&r->paths, &r->path_capacity, r->path_count + 1, sizeof *r->paths)) {
        free(take->entries);
        r->memory_failed = true;
        return false;
    }
    r->paths[r->path_count++] = *take;
    return true;
}

bool dpf_reading_begin(struct dpf_reading *r)
{
    const struct dpf_ledger_path empty = {0};
    return add_path(r, &empty);
}

void dpf_reading_release(struct dpf_reading *r)
{
    for (size_t i = 0; i < r->path_count; i++)
        free(r->paths[i].entries);
    free(r->paths);
    r->paths = NULL;
    r->path_count = r->path_capacity = 0;
}

void dpf_reading_add(struct dpf_reading *r, struct dpf_ledger_path *p,
                     const struct dpf_ledger_entry *entry)
{
    if (dpf_grow(&p->entries, &p->capacity, p->count + 1, sizeof *p->entries))
        p->entries[p->count++] = *entry;
    else
        r->memory_failed = true;
}

/* A sentence, once, as it may be shown: it may be a stranger's. */
static void tell(struct dpf_text *t, const char *sentence, size_t size)
{
    enum { MOST = 1000 };
    struct dpf_text shown = {0};
    dpf_text_add_visible(&shown, sentence, size < MOST ? size : MOST);
    dpf_text_add(&shown, size < MOST ? "" : "...");
    if (shown.size && !(t->size && strstr(t->data, shown.data))) {
        dpf_text_add(t, t->size ? "; " : "");
        dpf_text_addn(t, shown.data, shown.size);
    }
    t->failed = t->failed || shown.failed;
    dpf_text_release(&shown);
}

void dpf_reading_unbounded(struct dpf_reading *r, const char *why, size_t size)
{
    r->unbounded = true;
    tell(&r->account->why, why, size);
}

/* -------------------------------------------------------------------------- events */

static int word_index(const msgpack_object *o, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        if (o && dpf_object_is_string(o, words[i]))
            return i;
    return -1;
}

static enum dpf_status malformed(const char *what, struct dpf_error *e)
{
    return dpf_fail(e, DPF_PRIVACY,
                    "an event '%s' is malformed: no epsilon can be stated", what);
}

static void read_claim(const msgpack_object *o, struct dpf_reading *r,
                       struct dpf_ledger_entry *entry)
{
    const msgpack_object *claimed = dpf_object_get(o, "claimed");
    const msgpack_object *proven = dpf_object_get(o, "proven");
    const msgpack_object *source = claimed ? dpf_object_get(claimed, "source") : NULL;
    const msgpack_object *assumes = dpf_object_get(o, "assumes");
    const char *text;
    size_t size;
    entry->claimed_epsilon = entry->claimed_delta = NAN;
    if (claimed && dpf_object_get(claimed, "epsilon"))
        dpf_object_real(dpf_object_get(claimed, "epsilon"), &entry->claimed_epsilon);
    if (claimed && dpf_object_get(claimed, "delta"))
        dpf_object_real(dpf_object_get(claimed, "delta"), &entry->claimed_delta);
    if (proven && dpf_object_get(proven, "delta"))
        dpf_object_real(dpf_object_get(proven, "delta"), &entry->proven_delta);
    if (source && dpf_object_text(source, &text, &size))
        tell(&r->account->source, text, size);
    if (assumes && dpf_object_text(assumes, &text, &size))
        tell(&r->account->assumes, text, size);
    if (proven && dpf_object_get(proven, "why") &&
        dpf_object_text(dpf_object_get(proven, "why"), &text, &size))
        tell(&r->account->why, text, size);
    if (!(entry->proven_delta >= 0))
        entry->proven_delta = 0;
}

static enum dpf_status read_mechanism(const msgpack_object *o, struct dpf_reading *r,
                                      const struct context *c, struct dpf_error *e)
{
    struct dpf_ledger_entry entry = {.group = c->group};
    struct dpf_spending *s = &entry.spending;
    int kind = word_index(dpf_object_get(o, "mechanism"), dpf_mechanism_words);
    int relation = word_index(dpf_object_get(o, "relation"), dpf_relation_words);
    if (kind < 0)
        return dpf_fail(e, DPF_PRIVACY,
                        "an event has an unknown mechanism: no epsilon can be stated");
    s->kind = (enum dpf_spending_kind)kind;
    s->choices = 2;
    const msgpack_object *parameter = dpf_object_get(o, dpf_mechanism_parameters[kind]);
    const msgpack_object *rate = dpf_object_get(o, "rate");
    const msgpack_object *count = dpf_object_get(o, "count");
    const msgpack_object *choices = dpf_object_get(o, "choices");
    if (relation < 0 || !parameter || !dpf_object_real(parameter, &s->parameter) ||
        !rate || !dpf_object_real(rate, &s->rate) || !count ||
        !dpf_object_uint(count, &s->count) ||
        (choices && !dpf_object_uint(choices, &s->choices)))
        return malformed("mechanism", e);
    enum dpf_status status = dpf_spending_check(s, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, DPF_PRIVACY, "an event is impossible");
    if (s->rate < 1 && !dpf_object_is_string(dpf_object_get(o, "sampling"), "poisson"))
        return dpf_fail(e, DPF_PRIVACY,
                        "an event has a sampling rate, but not from Poisson sampling");
    if (s->rate < 1 && relation != DPF_ADD_REMOVE)
        return dpf_fail(e, DPF_PRIVACY,
                        "an event has Poisson sampling under %s: it is understood under "
                        "add-remove only",
                        dpf_relation_words[relation]);
    entry.relation = (enum dpf_relation)relation;
    read_claim(o, r, &entry);
    /* that a record is there at all must not tell of it, locally either */
    if ((c->needs_add_remove && relation != DPF_ADD_REMOVE) ||
        (c->needs_replace_one && relation == DPF_ADD_REMOVE)) {
        static const char why[] =
            "records were selected in a way that is not stable under the relation of a "
            "mechanism (by position under add-remove, by content under replace-one or "
            "local)";
        dpf_reading_unbounded(r, why, sizeof why - 1);
    }
    r->account->mechanisms++;
    r->tells_apart =
        r->tells_apart || dpf_object_get(o, "shows_place") || dpf_object_get(o, "clear");
    for (size_t i = 0; i < r->path_count; i++)
        dpf_reading_add(r, &r->paths[i], &entry);
    return DPF_OK;
}

/* An event that says why nothing is promised. */
static void read_unprotected(const msgpack_object *o, struct dpf_reading *r)
{
    const msgpack_object *why = dpf_object_get(o, "why");
    const char *text = "no mechanism";
    size_t size = strlen(text);
    if (why)
        dpf_object_text(why, &text, &size);
    dpf_reading_unbounded(r, text, size);
}

static void narrow_relation(const msgpack_object *o, const char *key, struct context *c)
{
    const msgpack_object *stable = dpf_object_get(o, key);
    bool add_remove = stable && dpf_object_is_string(stable, "add-remove");
    bool replace_one = stable && dpf_object_is_string(stable, "replace-one");
    c->needs_add_remove = c->needs_add_remove || !replace_one;
    c->needs_replace_one = c->needs_replace_one || !add_remove;
}

static enum dpf_status read_events(const msgpack_object *array, struct dpf_reading *r,
                                   struct context *c, int depth, struct dpf_error *e);

/* The partition that a list of events begins with, but for selections. A branch that used
 * a model has none: the model's records may be those of another branch. */
static const msgpack_object *first_partition(const msgpack_object *events)
{
    for (uint32_t i = 0; i < events->via.array.size; i++)
        if (dpf_object_is_string(dpf_object_get(&events->via.array.ptr[i], "event"),
                                 "model"))
            return NULL;
    for (uint32_t i = 0; i < events->via.array.size; i++) {
        const msgpack_object *o = &events->via.array.ptr[i];
        if (dpf_object_is_string(dpf_object_get(o, "event"), "partition"))
            return o;
        if (!dpf_object_is_string(dpf_object_get(o, "event"), "selection"))
            return NULL;
    }
    return NULL;
}

/* Whether the branches are different parts of one partition of one source, made before
 * anything else but selections was done: then no record is in two of them. */
static bool are_disjoint(const msgpack_object *merge, const msgpack_object *branches)
{
    const msgpack_object *same = dpf_object_get(merge, "same_source"), *first = NULL;
    if (!same || same->type != MSGPACK_OBJECT_BOOLEAN || !same->via.boolean)
        return false;
    for (uint32_t i = 0; i < branches->via.array.size; i++) {
        const msgpack_object *b = &branches->via.array.ptr[i];
        const msgpack_object *cut =
            b->type == MSGPACK_OBJECT_ARRAY ? first_partition(b) : NULL;
        uint64_t parts, part, parts0, other;
        if (!cut || !dpf_object_get(cut, "parts") || !dpf_object_get(cut, "part") ||
            !dpf_object_uint(dpf_object_get(cut, "parts"), &parts) ||
            !dpf_object_uint(dpf_object_get(cut, "part"), &part) || part >= parts)
            return false;
        first = first ? first : cut;
        if (!dpf_object_uint(dpf_object_get(first, "parts"), &parts0) || parts != parts0)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (!dpf_object_uint(
                    dpf_object_get(first_partition(&branches->via.array.ptr[j]), "part"),
                    &other) ||
                other == part)
                return false;
    }
    return true;
}

static void copy_path(struct dpf_reading *to, const struct dpf_ledger_path *from)
{
    struct dpf_ledger_path copy = {0};
    if (from->count &&
        !dpf_grow(&copy.entries, &copy.capacity, from->count, sizeof *copy.entries)) {
        to->memory_failed = true;
        return;
    }
    if (from->count)
        memcpy(copy.entries, from->entries, from->count * sizeof *copy.entries);
    copy.count = from->count;
    add_path(to, &copy);
}

/* What one branch has done, added to what the others did: a record is in one of them, or
 * perhaps in each. */
static void join_context(struct context *all, const struct context *one, bool disjoint)
{
    uint64_t sum = all->group + one->group;
    uint64_t larger = all->group > one->group ? all->group : one->group;
    all->group = disjoint ? larger : sum < MAX_GROUP ? sum : MAX_GROUP;
    all->needs_add_remove = all->needs_add_remove || one->needs_add_remove;
    all->needs_replace_one = all->needs_replace_one || one->needs_replace_one;
}

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_path(const struct dpf_ledger_path *a, const struct dpf_ledger_path *b)
{
    bool same = a->count == b->count;
    for (size_t i = 0; same && i < a->count; i++) {
        const struct dpf_ledger_entry *x = &a->entries[i], *y = &b->entries[i];
        same = x->spending.kind == y->spending.kind &&
               x->spending.parameter == y->spending.parameter &&
               x->spending.choices == y->spending.choices &&
               x->spending.rate == y->spending.rate &&
               x->spending.count == y->spending.count && x->relation == y->relation &&
               x->group == y->group &&
               same_number(x->claimed_epsilon, y->claimed_epsilon) &&
               same_number(x->claimed_delta, y->claimed_delta) &&
               same_number(x->proven_delta, y->proven_delta);
    }
    return same;
}

/* Add a path, unless one that costs the same is there: a thousand owners who did the same
 * are one. False if there are too many. */
static bool keep_path(struct dpf_reading *r, struct dpf_ledger_path *take)
{
    for (size_t i = 0; i < r->path_count; i++)
        if (same_path(&r->paths[i], take)) {
            free(take->entries);
            return true;
        }
    if (r->path_count == DPF_MAX_PATHS) {
        free(take->entries);
        return false;
    }
    add_path(r, take);
    return true;
}

/* Each path so far goes on through each branch. *fits is false, and nothing has changed,
 * if that makes more paths than can be kept. */
static enum dpf_status read_alternatives(const msgpack_object *branches,
                                         struct dpf_reading *r, struct context *c,
                                         int depth, bool *fits, struct dpf_error *e)
{
    struct dpf_reading after = {.account = r->account,
                                .unbounded = r->unbounded,
                                .tells_apart = r->tells_apart,
                                .memory_failed = r->memory_failed};
    struct context all = {0};
    enum dpf_status status = DPF_OK;
    *fits = true;
    for (uint32_t b = 0; status == DPF_OK && *fits && b < branches->via.array.size; b++) {
        struct dpf_reading one = {.account = r->account};
        struct context own = *c;
        for (size_t i = 0; i < r->path_count; i++)
            copy_path(&one, &r->paths[i]);
        status = read_events(&branches->via.array.ptr[b], &one, &own, depth + 1, e);
        join_context(&all, &own, true);
        after.unbounded = after.unbounded || one.unbounded;
        after.tells_apart = after.tells_apart || one.tells_apart;
        after.memory_failed = after.memory_failed || one.memory_failed;
        for (size_t i = 0; i < one.path_count; i++)
            *fits = keep_path(&after, &one.paths[i]) && *fits;
        free(one.paths); /* its paths are the other's now, or gone */
    }
    if (!*fits) {
        dpf_reading_release(&after);
        return status;
    }
    dpf_reading_release(r);
    *r = after;
    *c = all;
    return status;
}

/* Whether a list of events, or a branch inside it, used a model of records that are not
 * public: they may be those of another owner. */
static bool uses_model(const msgpack_object *events, int depth)
{
    bool found = false;
    if (events->type != MSGPACK_OBJECT_ARRAY || depth > 16)
        return false;
    for (uint32_t i = 0; !found && i < events->via.array.size; i++) {
        const msgpack_object *o = &events->via.array.ptr[i];
        const msgpack_object *kind = dpf_object_get(o, "event");
        const msgpack_object *data = dpf_object_get(o, "data");
        const msgpack_object *branches = dpf_object_get(o, "branches");
        found = kind && dpf_object_is_string(kind, "model") &&
                !(data && dpf_object_is_string(data, "public"));
        for (uint32_t k = 0;
             !found && branches && branches->type == MSGPACK_OBJECT_ARRAY &&
             k < branches->via.array.size;
             k++)
            found = uses_model(&branches->via.array.ptr[k], depth + 1);
    }
    return found;
}

static enum dpf_status read_merge(const msgpack_object *o, struct dpf_reading *r,
                                  struct context *c, int depth, struct dpf_error *e)
{
    static const char owners[] = "no person's record is held by two owners";
    const msgpack_object *branches = dpf_object_get(o, "branches");
    const msgpack_object *distinct = dpf_object_get(o, "distinct_owners");
    struct context all = {0};
    if (!branches || branches->type != MSGPACK_OBJECT_ARRAY ||
        branches->via.array.size == 0)
        return malformed("merge", e);
    bool by_owner =
        distinct && distinct->type == MSGPACK_OBJECT_BOOLEAN && distinct->via.boolean;
    for (uint32_t i = 0; by_owner && i < branches->via.array.size; i++)
        by_owner = !uses_model(&branches->via.array.ptr[i], 0);
    enum { MOST_PARTS = 256 }; /* they are compared two by two */
    bool disjoint =
        by_owner || (branches->via.array.size <= MOST_PARTS && are_disjoint(o, branches));
    enum dpf_status status = DPF_OK;
    if (disjoint) {
        bool fits;
        tell(&r->account->assumes, by_owner ? owners : parallel,
             by_owner ? sizeof owners - 1 : sizeof parallel - 1);
        status = read_alternatives(branches, r, c, depth, &fits, e);
        if (fits)
            return status;
    }
    for (uint32_t i = 0; status == DPF_OK && i < branches->via.array.size; i++) {
        struct context own = *c;
        status = read_events(&branches->via.array.ptr[i], r, &own, depth + 1, e);
        join_context(&all, &own, disjoint);
    }
    *c = all;
    return status;
}

/* A model of other records: what they paid, and whether they paid at all. */
static enum dpf_status read_model(const msgpack_object *o, struct dpf_reading *r,
                                  int depth, struct dpf_error *e)
{
    const msgpack_object *events = dpf_object_get(o, "events");
    const msgpack_object *data = dpf_object_get(o, "data");
    struct context fresh = {.group = 1};
    uint64_t before = r->account->mechanisms;
    bool is_public = data && dpf_object_is_string(data, "public");
    bool is_protected = data && dpf_object_is_string(data, "protected");
    enum dpf_status status =
        events ? read_events(events, r, &fresh, depth + 1, e) : malformed("model", e);
    if (status == DPF_OK && !is_public &&
        !(is_protected && r->account->mechanisms > before)) {
        static const char why[] = "a model of private records was used, made without a "
                                  "mechanism";
        dpf_reading_unbounded(r, why, sizeof why - 1);
    }
    return status;
}

static enum dpf_status read_event(const msgpack_object *o, struct dpf_reading *r,
                                  struct context *c, int depth, struct dpf_error *e)
{
    const msgpack_object *kind = dpf_object_get(o, "event");
    uint64_t copies;
    const char *text = "";
    size_t size = 0;
    if (kind && dpf_object_is_string(kind, "mechanism"))
        return read_mechanism(o, r, c, e);
    if (kind && (dpf_object_is_string(kind, "none") ||
                 dpf_object_is_string(kind, "insecure-seed"))) {
        read_unprotected(o, r);
        return DPF_OK;
    }
    if (kind && dpf_object_is_string(kind, "mixing")) {
        r->tells_apart = true;
        return DPF_OK;
    }
    if (kind && dpf_object_is_string(kind, "selection")) {
        narrow_relation(o, "stable_under", c);
        return DPF_OK;
    }
    if (kind && dpf_object_is_string(kind, "partition")) {
        narrow_relation(o, "disjoint_under", c);
        return DPF_OK;
    }
    if (kind && dpf_object_is_string(kind, "augmentation")) {
        if (!dpf_object_get(o, "copies") ||
            !dpf_object_uint(dpf_object_get(o, "copies"), &copies) || copies < 1 ||
            copies > MAX_COPIES)
            return malformed("augmentation", e);
        c->group = c->group < MAX_GROUP / copies ? c->group * copies : MAX_GROUP;
        narrow_relation(o, "stable_under", c);
        return DPF_OK;
    }
    if (kind && dpf_object_is_string(kind, "model"))
        return read_model(o, r, depth, e);
    if (kind && dpf_object_is_string(kind, "merge"))
        return read_merge(o, r, c, depth, e);
    if (kind)
        dpf_object_text(kind, &text, &size);
    return dpf_fail(e, DPF_PRIVACY,
                    "the ledger has an unknown event '%.*s': no epsilon can be stated",
                    (int)(size < 40 ? size : 40), text);
}

static enum dpf_status read_events(const msgpack_object *array, struct dpf_reading *r,
                                   struct context *c, int depth, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (array->type != MSGPACK_OBJECT_ARRAY || depth > 16)
        return malformed("list", e);
    for (uint32_t i = 0; status == DPF_OK && i < array->via.array.size; i++)
        status = read_event(&array->via.array.ptr[i], r, c, depth, e);
    return status;
}

/* The header keeps events encoded, one after the other. */
enum dpf_status dpf_reading_take(struct dpf_reading *r, const struct dpf_values *events,
                                 struct dpf_error *e)
{
    msgpack_unpacked one;
    struct context c = {.group = 1};
    enum dpf_status status = DPF_OK;
    size_t at = 0;
    msgpack_unpacked_init(&one);
    for (uint32_t i = 0; status == DPF_OK && i < events->count; i++) {
        if (msgpack_unpack_next(&one, (const char *)events->bytes.data,
                                events->bytes.size, &at) != MSGPACK_UNPACK_SUCCESS)
            status = malformed("list", e);
        else
            status = read_event(&one.data, r, &c, 0, e);
    }
    msgpack_unpacked_destroy(&one);
    return status;
}
