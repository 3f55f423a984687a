#include "account/reading.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/branches.h"
#include "base/memory.h"
#include "ledger/lineage.h"
#include "privacy/spending.h"

#include "base/banned.h"

/* More than any noise can hide: whatever is divided or multiplied by it is out of range,
 * and the cost infinite. */
static const uint64_t MAX_GROUP = 1000000000000000000;

static const char parallel[] =
    "parts of one source without a common record count once, by the dearest (parallel "
    "composition)";

/* What stages before have done to neighbours by add-remove [0] and by replace-one [1]. */
struct context {
    uint64_t group[2];
    bool unstable[2]; /* nothing is promised */
    bool chosen;      /* records were selected, divided or copied */
    bool spent;       /* a mechanism saw records */
    bool windows;     /* records are windows of people's rows; some of them */
    bool plain;       /* records are none; some of them */
    bool answers;     /* records are answers of teachers; the two above are of theirs */
};

/* What a mechanism's relation asks for. That a record is there at all must not tell of
 * it, locally either. */
static int side_of(enum dpf_relation relation)
{
    return relation == DPF_ADD_REMOVE ? 0 : 1;
}

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

/* Add a sentence once, escaped: it may come from another party. */
static void tell(struct dpf_text *t, const char *between, const char *sentence,
                 size_t size)
{
    enum { MOST = 1000 };
    struct dpf_text shown = {0};
    dpf_text_add_visible(&shown, sentence, size < MOST ? size : MOST);
    dpf_text_add(&shown, size < MOST ? "" : "...");
    if (shown.size && !(t->size && strstr(t->data, shown.data))) {
        dpf_text_add(t, t->size ? between : "");
        dpf_text_addn(t, shown.data, shown.size);
    }
    t->failed = t->failed || shown.failed;
    dpf_text_release(&shown);
}

void dpf_reading_unbounded(struct dpf_reading *r, const char *why, size_t size)
{
    r->unbounded = true;
    tell(&r->account->why, "; ", why, size);
}

void dpf_reading_assume(struct dpf_reading *r, const char *what, size_t size)
{
    tell(&r->account->assumes, "\n", what, size);
}

/* -------------------------------------------------------------------------- events */

static enum dpf_status read_events(const msgpack_object *array, struct dpf_reading *r,
                                   struct context *c, int depth, struct dpf_error *e);

static void tell_span(struct dpf_text *t, struct dpf_span s)
{
    if (s.text)
        tell(t, "; ", s.text, s.size);
}

/* Why one record, or person, is more than one here. */
static void tell_group(struct dpf_reading *r, const struct context *c, uint64_t group)
{
    char why[200];
    int size;
    if (group <= 1)
        return;
    if (group == MAX_GROUP)
        size = snprintf(why, sizeof why, "one record changes all too many others");
    else if (c->windows && !c->answers && r->unit == DPF_UNIT_PERSON)
        size = snprintf(why, sizeof why,
                        "one person changes up to %llu of the windows that a mechanism "
                        "saw (her own, and those of her friends): they count as a group",
                        (unsigned long long)group);
    else
        size = snprintf(why, sizeof why,
                        "one record changes up to %llu of those that a mechanism "
                        "saw (copies, or a choice by position): they count as a "
                        "group",
                        (unsigned long long)group);
    tell(&r->account->why, "; ", why, (size_t)size);
}

static bool same_spending(const struct dpf_ledger_entry *x,
                          const struct dpf_ledger_entry *y)
{
    return x->spending.kind == y->spending.kind &&
           x->spending.parameter == y->spending.parameter &&
           x->spending.choices == y->spending.choices &&
           x->spending.rate == y->spending.rate &&
           x->spending.count == y->spending.count && x->relation == y->relation;
}

/* A draw that the path has already counts once; see the claim. */
static void add_draw(struct dpf_reading *r, struct dpf_ledger_path *p,
                     const struct dpf_ledger_entry *entry)
{
    for (size_t i = 0; entry->release[0] && i < p->count; i++) {
        struct dpf_ledger_entry *before = &p->entries[i];
        if (strcmp(before->release, entry->release) != 0 || !same_spending(before, entry))
            continue;
        before->group = before->group > entry->group ? before->group : entry->group;
        return;
    }
    dpf_reading_add(r, p, entry);
}

static enum dpf_status take_mechanism(const struct dpf_event *v, struct dpf_reading *r,
                                      struct context *c, struct dpf_error *e)
{
    static const char unstable[] =
        "records were selected in a way that is not stable under the relation of a "
        "mechanism (by position under add-remove, by content under replace-one or local)";
    static const char counted[] =
        "the number of records is public: the sampling rate tells it (to remove this: "
        "'train --population N' with a public N)";
    static const char no_person[] =
        "windows were made of people's rows, but how many of them one person changes has "
        "no bound under the relation of a mechanism (rows were chosen before, or windows "
        "with missing days left out)";
    int side = side_of(v->relation);
    struct dpf_ledger_entry entry = {.spending = v->spending,
                                     .relation = v->relation,
                                     .group = c->group[side],
                                     .claimed_epsilon = v->claimed_epsilon,
                                     .claimed_delta = v->claimed_delta,
                                     .proven_delta = v->proven_delta};
    if (v->release.size == DPF_RELEASE_NAME)
        memcpy(entry.release, v->release.text, DPF_RELEASE_NAME);
    enum dpf_status status = dpf_spending_check(&v->spending, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, DPF_PRIVACY, "an event is impossible");
    if (v->spending.rate < 1 && !v->poisson)
        return dpf_fail(e, DPF_PRIVACY,
                        "an event has a sampling rate, but not from Poisson sampling");
    if (v->spending.rate < 1 && v->relation != DPF_ADD_REMOVE)
        return dpf_fail(e, DPF_PRIVACY,
                        "an event has Poisson sampling under %s: it is understood under "
                        "add-remove only",
                        dpf_relation_words[v->relation]);
    tell_span(&r->account->source, v->claim);
    tell_span(&r->account->why, v->differs);
    if (v->assumes.text)
        dpf_reading_assume(r, v->assumes.text, v->assumes.size);
    if (v->tells_count)
        dpf_reading_assume(r, counted, sizeof counted - 1);
    if (c->unstable[side] && c->windows && r->unit == DPF_UNIT_PERSON)
        dpf_reading_unbounded(r, no_person, sizeof no_person - 1);
    else if (c->unstable[side])
        dpf_reading_unbounded(r, unstable, sizeof unstable - 1);
    else
        tell_group(r, c, entry.group);
    c->spent = true;
    r->account->has_records = r->account->has_records || c->plain;
    r->used_windows = r->used_windows || c->windows;
    r->account->mechanisms++;
    r->tells_apart = r->tells_apart || v->shows_place || v->clear;
    for (size_t i = 0; i < r->path_count; i++)
        add_draw(r, &r->paths[i], &entry);
    return DPF_OK;
}

/* An event that says why nothing is promised. */
static void take_unprotected(const struct dpf_event *v, struct dpf_reading *r)
{
    static const char otherwise[] = "no mechanism";
    if (v->why.text)
        dpf_reading_unbounded(r, v->why.text, v->why.size);
    else
        dpf_reading_unbounded(r, otherwise, sizeof otherwise - 1);
}

/* Stabilities multiply. */
static void take_stability(const struct dpf_event *v, struct context *c)
{
    const uint64_t by[2] = {v->stability.add_remove, v->stability.replace_one};
    c->chosen = c->chosen || !v->by_person;
    for (int i = 0; i < 2; i++) {
        c->unstable[i] = c->unstable[i] || by[i] == 0;
        if (by[i] > 0)
            c->group[i] =
                c->group[i] < MAX_GROUP / by[i] ? c->group[i] * by[i] : MAX_GROUP;
    }
}

/* From rows to windows, see the claim. */
static void take_windows(const struct dpf_event *v, struct dpf_reading *r,
                         struct context *c)
{
    static const char rows[] = "a mechanism saw rows of people before they became "
                               "windows: a person has any number of rows";
    const struct context fresh = {.group = {1, 1}};
    bool whole = !c->chosen && !c->windows;
    if (c->spent)
        dpf_reading_unbounded(r, rows, sizeof rows - 1);
    if (r->unit == DPF_UNIT_WINDOW) {
        *c = fresh;
    } else { /* parts by person are no stable parts of rows, but of persons */
        c->unstable[0] = c->unstable[1] = !whole;
        take_stability(v, c);
    }
    c->windows = true;
    c->plain = false;
    r->tells_apart = true; /* a person has many of them */
    r->account->has_windows = true;
    r->account->has_friends = r->account->has_friends || v->friends > 0;
}

/* Whether a list of events, or a branch inside it, spends under this kind of relation. */
static bool spends_under(const msgpack_object *events, int side, int depth)
{
    bool found = depth > DPF_MAX_EVENT_DEPTH;
    for (uint32_t i = 0; !found && i < events->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&events->via.array.ptr[i], &v, NULL) != DPF_OK)
            return true;
        found = v.kind == DPF_EVENT_MECHANISM && side_of(v.relation) == side;
        if (v.events)
            found = found || spends_under(v.events, side, depth + 1);
        for (uint32_t k = 0; !found && v.branches && k < v.branches->via.array.size; k++)
            found = spends_under(&v.branches->via.array.ptr[k], side, depth + 1);
    }
    return found;
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
static void join_context(struct context *all, const struct context *one,
                         const bool disjoint[2])
{
    for (int i = 0; i < 2; i++) {
        uint64_t sum = all->group[i] + one->group[i];
        uint64_t larger = all->group[i] > one->group[i] ? all->group[i] : one->group[i];
        all->group[i] = disjoint[i] ? larger : sum < MAX_GROUP ? sum : MAX_GROUP;
        all->unstable[i] = all->unstable[i] || one->unstable[i];
    }
    all->chosen = all->chosen || one->chosen;
    all->spent = all->spent || one->spent;
    all->windows = all->windows || one->windows;
    all->plain = all->plain || one->plain;
    all->answers = all->answers || one->answers;
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
        same = same_spending(x, y) && x->group == y->group &&
               same_number(x->claimed_epsilon, y->claimed_epsilon) &&
               same_number(x->claimed_delta, y->claimed_delta) &&
               same_number(x->proven_delta, y->proven_delta);
    }
    return same;
}

/* One path stands for two now: names that only one of them has would count a draw of the
 * other's as one that was counted already. */
static void forget_names(struct dpf_ledger_path *kept,
                         const struct dpf_ledger_path *other)
{
    for (size_t i = 0; i < kept->count; i++)
        if (strcmp(kept->entries[i].release, other->entries[i].release) != 0)
            kept->entries[i].release[0] = '\0';
}

/* Add a path, unless one that costs the same is there: a thousand owners who did the same
 * are one. False if there are too many. */
static bool keep_path(struct dpf_reading *r, struct dpf_ledger_path *take)
{
    for (size_t i = 0; i < r->path_count; i++)
        if (same_path(&r->paths[i], take)) {
            forget_names(&r->paths[i], take);
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
                                         const bool disjoint[2], int depth, bool *fits,
                                         struct dpf_error *e)
{
    struct dpf_reading after = {.account = r->account,
                                .unbounded = r->unbounded,
                                .unit = r->unit,
                                .replaces = r->replaces,
                                .from_ledger = r->from_ledger,
                                .used_windows = r->used_windows,
                                .tells_apart = r->tells_apart,
                                .memory_failed = r->memory_failed};
    struct context all = {0};
    enum dpf_status status = DPF_OK;
    *fits = true;
    for (uint32_t b = 0; status == DPF_OK && *fits && b < branches->via.array.size; b++) {
        struct dpf_reading one = {
            .account = r->account, .unit = r->unit, .replaces = r->replaces};
        struct context own = *c;
        for (size_t i = 0; i < r->path_count; i++)
            copy_path(&one, &r->paths[i]);
        status = read_events(&branches->via.array.ptr[b], &one, &own, depth + 1, e);
        join_context(&all, &own, disjoint);
        after.unbounded = after.unbounded || one.unbounded;
        after.used_windows = after.used_windows || one.used_windows;
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

/* Whether teachers learned from windows, from records that are none, or from both, as
 * what cannot be read may be. */
static void look_at_records(const msgpack_object *events, struct dpf_reading *r,
                            struct context *c, int depth)
{
    struct context own = {.plain = true, .windows = depth > DPF_MAX_EVENT_DEPTH};
    for (uint32_t i = 0; !own.windows && i < events->via.array.size; i++) {
        struct dpf_event v;
        if (dpf_event_read(&events->via.array.ptr[i], &v, NULL) != DPF_OK) {
            own.windows = true;
            break;
        }
        if (v.branches)
            own.plain = false;
        for (uint32_t k = 0; v.branches && k < v.branches->via.array.size; k++)
            look_at_records(&v.branches->via.array.ptr[k], r, &own, depth + 1);
        if (v.kind == DPF_EVENT_WINDOWS) {
            own = (struct context){.windows = true};
            r->account->has_windows = true;
            r->account->has_friends = r->account->has_friends || v.friends > 0;
        }
    }
    c->windows = c->windows || own.windows;
    c->plain = c->plain || own.plain;
}

/* Teachers: see the claim. */
bool dpf_reading_teachers_apart(const struct dpf_event *v, enum dpf_relation relation)
{
    return v->branches->via.array.size == 1 || dpf_branches_of_owners(v) ||
           dpf_branches_disjoint(v->branches, side_of(relation));
}

static void take_teachers(const struct dpf_event *v, struct dpf_reading *r,
                          struct context *c, int depth)
{
    static const char owners[] =
        "no person's record is held by two teachers (to remove this: add up the costs of "
        "as many as hold it)";
    static const char shared[] =
        "the ledger does not show that teachers were trained on different records: one "
        "record may change all their answers";
    uint64_t teachers = v->branches->via.array.size;
    for (int i = 0; i < 2; i++) {
        enum dpf_relation relation = i ? DPF_REPLACE_ONE : DPF_ADD_REMOVE;
        bool apart = dpf_reading_teachers_apart(v, relation) &&
                     (i || !r->replaces || teachers == 1);
        c->group[i] = apart ? 1 : teachers;
        c->unstable[i] = v->names != NULL; /* a teacher has as many records as queries */
    }
    c->chosen = c->answers = true; /* answers are no rows of people */
    c->windows = c->plain = false;
    for (uint32_t k = 0; k < teachers; k++)
        look_at_records(&v->branches->via.array.ptr[k], r, c, depth + 1);
    if (c->group[1] > 1)
        tell(&r->account->why, "; ", shared, sizeof shared - 1);
    else if (teachers > 1 && dpf_branches_of_owners(v) &&
             !dpf_branches_disjoint(v->branches, 1))
        dpf_reading_assume(r, owners, sizeof owners - 1);
    r->tells_apart = true;
}

static enum dpf_status take_merge(const struct dpf_event *v, struct dpf_reading *r,
                                  struct context *c, int depth, struct dpf_error *e)
{
    static const char owners[] =
        "no person's record is held by two owners (to remove this: add their costs up)";
    const msgpack_object *branches = v->branches;
    struct context all = {.group = {0, 0}};
    bool by_owner = dpf_branches_of_owners(v);
    bool apart[2], spends = false;
    for (int i = 0; i < 2; i++) {
        apart[i] =
            by_owner || ((i || !r->replaces) && dpf_branches_disjoint(branches, i));
        for (uint32_t k = 0; !apart[i] && !spends && k < branches->via.array.size; k++)
            spends = spends_under(&branches->via.array.ptr[k], i, 0);
    }
    enum dpf_status status = DPF_OK;
    if (!spends && (apart[0] || apart[1])) { /* whatever was spent, on one of them only */
        bool fits;
        if (by_owner)
            dpf_reading_assume(r, owners, sizeof owners - 1);
        else
            tell(&r->account->why, "; ", parallel, sizeof parallel - 1);
        status = read_alternatives(branches, r, c, apart, depth, &fits, e);
        if (fits)
            return status;
    }
    r->tells_apart = true; /* a person may have a message in each */
    for (uint32_t i = 0; status == DPF_OK && i < branches->via.array.size; i++) {
        struct context own = *c;
        status = read_events(&branches->via.array.ptr[i], r, &own, depth + 1, e);
        join_context(&all, &own, apart);
    }
    *c = all;
    return status;
}

/* A model of other records: what they paid, and whether they paid at all. */
static enum dpf_status take_model(const struct dpf_event *v, struct dpf_reading *r,
                                  int depth, struct dpf_error *e)
{
    static const char why[] = "a model of private records was used, made without a "
                              "mechanism";
    struct context fresh = {.group = {1, 1}, .plain = true};
    uint64_t before = r->account->mechanisms;
    enum dpf_status status = read_events(v->events, r, &fresh, depth + 1, e);
    /* its records may be of the same people, and were not hidden among these messages */
    r->tells_apart = r->tells_apart || r->account->mechanisms > before;
    if (status == DPF_OK && v->data != DPF_PUBLIC &&
        !(v->data == DPF_PROTECTED && r->account->mechanisms > before))
        dpf_reading_unbounded(r, why, sizeof why - 1);
    return status;
}

static enum dpf_status take_event(const struct dpf_event *v, struct dpf_reading *r,
                                  struct context *c, int depth, struct dpf_error *e)
{
    switch (v->kind) {
    case DPF_EVENT_MECHANISM:
        return take_mechanism(v, r, c, e);
    case DPF_EVENT_NONE:
    case DPF_EVENT_SEED:
        take_unprotected(v, r);
        return DPF_OK;
    case DPF_EVENT_AUGMENTATION: /* copies of messages are more than one a person */
        r->tells_apart = r->tells_apart || r->account->mechanisms > 0;
        take_stability(v, c);
        return DPF_OK;
    case DPF_EVENT_SELECTION:
    case DPF_EVENT_PARTITION:
        take_stability(v, c);
        return DPF_OK;
    case DPF_EVENT_WINDOWS:
        take_windows(v, r, c);
        return DPF_OK;
    case DPF_EVENT_MIXING:
        c->chosen = true; /* no record stands for itself any more */
        r->tells_apart = true;
        return DPF_OK;
    case DPF_EVENT_SOURCE:
    case DPF_EVENT_RANDOMISED:
        return DPF_OK;
    case DPF_EVENT_MODEL:
        return take_model(v, r, depth, e);
    case DPF_EVENT_MERGE:
        return take_merge(v, r, c, depth, e);
    case DPF_EVENT_TEACHERS:
        take_teachers(v, r, c, depth);
        return DPF_OK;
    case DPF_EVENT_KINDS:
        break;
    }
    return dpf_fail(e, DPF_PRIVACY, "an event cannot be accounted for");
}

static enum dpf_status read_events(const msgpack_object *array, struct dpf_reading *r,
                                   struct context *c, int depth, struct dpf_error *e)
{
    enum dpf_status status = depth > DPF_MAX_EVENT_DEPTH
                                 ? dpf_fail(e, DPF_PRIVACY,
                                            "the ledger is nested more than %d deep: no "
                                            "epsilon can be stated",
                                            (int)DPF_MAX_EVENT_DEPTH)
                                 : DPF_OK;
    for (uint32_t i = 0; status == DPF_OK && i < array->via.array.size; i++) {
        struct dpf_event v;
        status = dpf_event_read(&array->via.array.ptr[i], &v, e);
        if (status == DPF_OK)
            status = take_event(&v, r, c, depth, e);
    }
    return status;
}

enum dpf_status dpf_reading_take(struct dpf_reading *r, const struct dpf_values *events,
                                 struct dpf_error *e)
{
    struct dpf_event_list list;
    struct context c = {.group = {1, 1}, .plain = true};
    enum dpf_status status = dpf_event_list_init(&list, events, e);
    if (status != DPF_OK)
        return status;
    status = read_events(&list.array, r, &c, 0, e);
    dpf_event_list_release(&list);
    return status;
}
