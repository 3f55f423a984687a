/* Reading a ledger: events become lists of what was spent, one a path. Parts that share
 * no record are alternatives, so a ledger with them has several paths, and the dearest
 * one counts. */
#include "account/ledger.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/decode.h"

#include "base/banned.h"

enum { MAX_PATHS = 64, MAX_GROUP = 1000000 };

static const char parallel[] = "parts without a common record count once, by the dearest "
                               "(parallel composition)";

/* One mechanism as it reaches the records of the source. */
struct entry {
    struct dpf_spending spending;
    enum dpf_relation relation;
    uint64_t group; /* records of this stage that one record of the source became */
    double claimed_epsilon, claimed_delta, proven_delta;
};

struct path {
    struct entry *entries;
    size_t count, capacity;
};

struct reading {
    struct path paths[MAX_PATHS];
    size_t path_count;
    struct dpf_account *account;
    bool unbounded, memory_failed;
};

/* What stages before have done to the neighbouring relation. */
struct context {
    uint64_t group;
    bool needs_add_remove, needs_replace_one; /* else nothing is promised */
};

static void reading_release(struct reading *r)
{
    for (size_t i = 0; i < r->path_count; i++)
        free(r->paths[i].entries);
}

static void add_entry(struct reading *r, struct path *p, const struct entry *entry)
{
    if (dpf_grow(&p->entries, &p->capacity, p->count + 1, sizeof *p->entries))
        p->entries[p->count++] = *entry;
    else
        r->memory_failed = true;
}

/* A sentence, once. */
static void tell(struct dpf_text *t, const char *sentence, size_t size)
{
    if (size == 0 || (t->size >= size && memmem(t->data, t->size, sentence, size)))
        return;
    dpf_text_add(t, t->size ? "; " : "");
    dpf_text_addn(t, sentence, size);
}

static void unbounded(struct reading *r, const char *why, size_t size)
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

static void read_claim(const msgpack_object *o, struct reading *r, struct entry *entry)
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
    if (!(entry->proven_delta >= 0))
        entry->proven_delta = 0;
}

static enum dpf_status read_mechanism(const msgpack_object *o, struct reading *r,
                                      const struct context *c, struct dpf_error *e)
{
    static const char *const kinds[] = {"gaussian", "laplace", "response", "pure", NULL};
    static const char *const parameters[] = {"noise_multiplier", "scale", "epsilon",
                                             "epsilon"};
    struct entry entry = {.group = c->group};
    struct dpf_spending *s = &entry.spending;
    int kind = word_index(dpf_object_get(o, "mechanism"), kinds);
    int relation = word_index(dpf_object_get(o, "relation"), dpf_relation_words);
    if (kind < 0)
        return dpf_fail(e, DPF_PRIVACY,
                        "an event has an unknown mechanism: no epsilon can be stated");
    s->kind = (enum dpf_spending_kind)kind;
    s->choices = 2;
    const msgpack_object *parameter = dpf_object_get(o, parameters[kind]);
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
    if ((c->needs_add_remove && relation == DPF_REPLACE_ONE) ||
        (c->needs_replace_one && relation == DPF_ADD_REMOVE)) {
        static const char why[] =
            "records were selected in a way that is not stable under the relation of a "
            "mechanism (by position under add-remove, by content under replace-one)";
        unbounded(r, why, sizeof why - 1);
    }
    r->account->mechanisms++;
    for (size_t i = 0; i < r->path_count; i++)
        add_entry(r, &r->paths[i], &entry);
    return DPF_OK;
}

/* An event that says why nothing is promised. */
static void read_unprotected(const msgpack_object *o, struct reading *r)
{
    const msgpack_object *why = dpf_object_get(o, "why");
    const char *text = "no mechanism";
    size_t size = strlen(text);
    if (why)
        dpf_object_text(why, &text, &size);
    unbounded(r, text, size);
}

static void narrow_relation(const msgpack_object *o, const char *key, struct context *c)
{
    const msgpack_object *stable = dpf_object_get(o, key);
    bool add_remove = stable && dpf_object_is_string(stable, "add-remove");
    bool replace_one = stable && dpf_object_is_string(stable, "replace-one");
    c->needs_add_remove = c->needs_add_remove || !replace_one;
    c->needs_replace_one = c->needs_replace_one || !add_remove;
}

static enum dpf_status read_events(const msgpack_object *array, struct reading *r,
                                   struct context *c, int depth, struct dpf_error *e);

/* The partition that a list of events begins with, but for selections. */
static const msgpack_object *first_partition(const msgpack_object *events)
{
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

static bool copy_path(struct path *to, const struct path *from)
{
    *to = (struct path){0};
    if (from->count == 0)
        return true;
    if (!dpf_grow(&to->entries, &to->capacity, from->count, sizeof *to->entries))
        return false;
    memcpy(to->entries, from->entries, from->count * sizeof *to->entries);
    to->count = from->count;
    return true;
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

/* Each path so far goes on through each branch. */
static enum dpf_status read_alternatives(const msgpack_object *branches,
                                         struct reading *r, struct context *c, int depth,
                                         struct dpf_error *e)
{
    struct reading before = *r, after = {.account = r->account};
    struct context all = {0};
    enum dpf_status status = DPF_OK;
    for (uint32_t b = 0; status == DPF_OK && b < branches->via.array.size; b++) {
        struct reading one = {.account = r->account};
        struct context own = *c;
        for (size_t i = 0; i < before.path_count; i++)
            if (copy_path(&one.paths[i], &before.paths[i]))
                one.path_count++;
            else
                after.memory_failed = true;
        status = read_events(&branches->via.array.ptr[b], &one, &own, depth + 1, e);
        join_context(&all, &own, true);
        after.unbounded = after.unbounded || one.unbounded;
        after.memory_failed = after.memory_failed || one.memory_failed;
        for (size_t i = 0; i < one.path_count; i++)
            after.paths[after.path_count++] = one.paths[i];
    }
    after.unbounded = after.unbounded || before.unbounded;
    after.memory_failed = after.memory_failed || before.memory_failed;
    reading_release(&before);
    *r = after;
    *c = all;
    return status;
}

static enum dpf_status read_merge(const msgpack_object *o, struct reading *r,
                                  struct context *c, int depth, struct dpf_error *e)
{
    const msgpack_object *branches = dpf_object_get(o, "branches");
    struct context all = {0};
    if (!branches || branches->type != MSGPACK_OBJECT_ARRAY ||
        branches->via.array.size == 0)
        return malformed("merge", e);
    bool disjoint = are_disjoint(o, branches);
    if (disjoint)
        tell(&r->account->assumes, parallel, sizeof parallel - 1);
    if (disjoint && branches->via.array.size * r->path_count <= MAX_PATHS)
        return read_alternatives(branches, r, c, depth, e);
    enum dpf_status status = DPF_OK;
    for (uint32_t i = 0; status == DPF_OK && i < branches->via.array.size; i++) {
        struct context own = *c;
        status = read_events(&branches->via.array.ptr[i], r, &own, depth + 1, e);
        join_context(&all, &own, disjoint);
    }
    *c = all;
    return status;
}

/* A model of other records: what they paid, and whether they paid at all. */
static enum dpf_status read_model(const msgpack_object *o, struct reading *r, int depth,
                                  struct dpf_error *e)
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
        unbounded(r, why, sizeof why - 1);
    }
    return status;
}

static enum dpf_status read_event(const msgpack_object *o, struct reading *r,
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
            copies > MAX_GROUP)
            return malformed("augmentation", e);
        c->group = c->group * copies < MAX_GROUP ? c->group * copies : MAX_GROUP;
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

static enum dpf_status read_events(const msgpack_object *array, struct reading *r,
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
static enum dpf_status read_ledger(const struct dpf_values *events, struct reading *r,
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

/* ----------------------------------------------------------------- one path's cost */

/* The relation of all, or DPF_PRIVACY with the conversion. */
static enum dpf_status common_relation(const struct reading *r,
                                       const struct dpf_account_request *request,
                                       enum dpf_relation *relation, struct dpf_error *e)
{
    bool seen[3] = {false};
    for (size_t i = 0; i < r->path_count; i++)
        for (size_t j = 0; j < r->paths[i].count; j++)
            seen[r->paths[i].entries[j].relation] = true;
    *relation = seen[DPF_LOCAL] && !seen[DPF_ADD_REMOVE] && !seen[DPF_REPLACE_ONE]
                    ? DPF_LOCAL
                : seen[DPF_REPLACE_ONE] || seen[DPF_LOCAL] ? DPF_REPLACE_ONE
                                                           : DPF_ADD_REMOVE;
    bool mixed = seen[DPF_ADD_REMOVE] && (seen[DPF_REPLACE_ONE] || seen[DPF_LOCAL]);
    if (request->convert && request->relation == DPF_REPLACE_ONE) {
        *relation = DPF_REPLACE_ONE;
        return DPF_OK;
    }
    if (request->convert && request->relation != *relation)
        return dpf_fail(e, DPF_PRIVACY,
                        "a guarantee under %s says nothing about %s: only '--relation "
                        "replace-one' can be converted to",
                        dpf_relation_words[*relation],
                        dpf_relation_words[request->relation]);
    return mixed ? dpf_fail(e, DPF_PRIVACY,
                            "the ledger mixes add-remove with replace-one events: "
                            "'--relation replace-one' takes all under replace-one (a "
                            "replaced record is one removed and one added)")
                 : DPF_OK;
}

/* k records at once: what is known per mechanism; what is not is a lump. */
static bool for_group(struct dpf_spending *s, double k)
{
    if (k == 1)
        return true;
    if (s->rate < 1)
        return false;
    if (s->kind == DPF_SPEND_GAUSSIAN || s->kind == DPF_SPEND_LAPLACE) {
        s->parameter /= k;
        return true;
    }
    s->kind = DPF_SPEND_PURE;
    s->parameter *= k;
    return true;
}

/* Group privacy: (e, d) for one record is (ke, d (e^ke - 1) / (e^e - 1)) for k. */
static enum dpf_status lump_epsilon(enum dpf_method method,
                                    const struct dpf_spending *list, size_t count,
                                    double k, double delta, double *epsilon,
                                    enum dpf_method *used, struct dpf_error *e)
{
    double one = 0, share = delta / k, needed = INFINITY;
    enum dpf_status status = DPF_OK;
    for (int i = 0; status == DPF_OK && needed > delta && i < 60; i++) {
        status = dpf_compose_epsilon(method, list, count, share, &one, used, e);
        if (k * one > 700)
            break; /* e^ke is beyond all numbers: so is what is left of delta */
        double factor = one > 0 ? expm1(k * one) / expm1(one) : k;
        needed = share * factor;
        share = delta / factor * 0.9;
    }
    *epsilon = needed <= delta ? k * one : INFINITY;
    return status;
}

/* Mechanisms with a known form for groups compose; the others compose among themselves
 * and are lumped; each side has half of delta. */
static enum dpf_status path_epsilon(const struct path *p, enum dpf_relation relation,
                                    const struct dpf_account_request *request,
                                    double delta, double *epsilon,
                                    enum dpf_method *method, struct dpf_error *e)
{
    struct dpf_spending *known = dpf_calloc(2 * p->count + 1, sizeof *known);
    struct dpf_spending *lump = known ? known + p->count : NULL;
    size_t known_count = 0, lump_count = 0;
    double largest = 1, more = 0;
    if (!known)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < p->count; i++) {
        const struct entry *x = &p->entries[i];
        struct dpf_spending s = x->spending;
        bool pair = relation == DPF_REPLACE_ONE && x->relation == DPF_ADD_REMOVE;
        double k = (double)x->group * (pair ? 2 : 1);
        if (for_group(&s, k)) {
            known[known_count++] = s;
            if (dpf_spending_check(&s, NULL) != DPF_OK) { /* no noise is left */
                free(known);
                *epsilon = INFINITY;
                return DPF_OK;
            }
        } else {
            lump[lump_count++] = s;
            largest = fmax(largest, k);
        }
    }
    double share = known_count && lump_count ? delta / 2 : delta;
    enum dpf_status status = dpf_compose_epsilon(request->method, known, known_count,
                                                 share, epsilon, method, e);
    if (status == DPF_OK && lump_count)
        status = lump_epsilon(request->method, lump, lump_count, largest, share, &more,
                              method, e);
    *epsilon += more;
    free(known);
    return status;
}

/* --------------------------------------------------------------------- the account */

static void sum_claims(struct dpf_account *a, const struct reading *r)
{
    a->has_claim = a->mechanisms > 0;
    for (size_t i = 0; i < r->path_count; i++) {
        double epsilon = 0, delta = 0;
        for (size_t j = 0; j < r->paths[i].count; j++) {
            epsilon += r->paths[i].entries[j].claimed_epsilon;
            delta += r->paths[i].entries[j].claimed_delta;
        }
        a->has_claim = a->has_claim && !isnan(epsilon);
        a->claimed.epsilon = fmax(a->claimed.epsilon, epsilon);
        a->claimed.delta = fmax(a->claimed.delta, isnan(delta) ? 0 : delta);
    }
}

static double stated_delta(const struct reading *r)
{
    double most = 0;
    for (size_t i = 0; i < r->path_count; i++) {
        double sum = 0;
        for (size_t j = 0; j < r->paths[i].count; j++)
            sum += r->paths[i].entries[j].proven_delta;
        most = fmax(most, sum);
    }
    return most;
}

static enum dpf_status finish(struct dpf_account *a, struct reading *r,
                              const struct dpf_account_request *request,
                              struct dpf_error *e)
{
    if (r->memory_failed)
        return dpf_fail_memory(e);
    enum dpf_status status = common_relation(r, request, &a->relation, e);
    a->proven.delta = isnan(request->delta) ? stated_delta(r) : request->delta;
    if (status == DPF_OK && isnan(request->delta) && !(a->proven.delta < 1))
        status = dpf_fail(e, DPF_PRIVACY,
                          "the events state deltas of 1 and more: give '--delta'");
    for (size_t i = 0; status == DPF_OK && !r->unbounded && i < r->path_count; i++) {
        double epsilon = 0;
        enum dpf_method method = DPF_METHOD_BASIC;
        status = path_epsilon(&r->paths[i], a->relation, request, a->proven.delta,
                              &epsilon, &method, e);
        if (i == 0 || epsilon > a->proven.epsilon) {
            a->proven.epsilon = epsilon;
            a->method = method;
        }
    }
    if (r->unbounded)
        a->proven.epsilon = INFINITY;
    if (isinf(a->proven.epsilon) && a->why.size == 0)
        dpf_text_add(&a->why, "no finite bound: groups of records are too large for the "
                              "noise, or the method has none");
    sum_claims(a, r);
    a->claimed.source = dpf_text_get(&a->source);
    a->proven.source = dpf_text_get(&a->why);
    return status;
}

/* A reading with one empty path, to be finished and freed by account_for(). */
static struct reading *begin_reading(struct dpf_account *a, struct dpf_error *e)
{
    struct reading *r = dpf_calloc(1, sizeof *r);
    *a = (struct dpf_account){0};
    if (!r) {
        dpf_fail_memory(e);
        return NULL;
    }
    r->account = a;
    r->path_count = 1;
    return r;
}

static enum dpf_status account_for(struct reading *take_r, enum dpf_status status,
                                   const struct dpf_account_request *request,
                                   struct dpf_error *e)
{
    struct dpf_account *a = take_r->account;
    if (status == DPF_OK)
        status = finish(a, take_r, request, e);
    reading_release(take_r);
    free(take_r);
    if (status != DPF_OK)
        dpf_account_release(a);
    return status;
}

enum dpf_status dpf_account_ledger(struct dpf_account *a, const struct dpf_header *h,
                                   const struct dpf_account_request *request,
                                   struct dpf_error *e)
{
    struct reading *r = begin_reading(a, e);
    if (!r)
        return DPF_SYSTEM;
    if (h->is_private) {
        static const char why[] =
            "the stream holds private records, or something made of "
            "them without a mechanism";
        unbounded(r, why, sizeof why - 1);
    }
    enum dpf_status status = read_ledger(&h->events, r, e);
    if (status == DPF_OK && h->is_protected && a->mechanisms == 0) {
        static const char why[] = "the stream says that it is protected, but its ledger "
                                  "names no mechanism";
        unbounded(r, why, sizeof why - 1);
    }
    return account_for(r, status, request, e);
}

enum dpf_status dpf_account_list(struct dpf_account *a, const struct dpf_spending *list,
                                 size_t count, enum dpf_relation relation,
                                 const struct dpf_account_request *request,
                                 struct dpf_error *e)
{
    struct reading *r = begin_reading(a, e);
    if (!r)
        return DPF_SYSTEM;
    a->mechanisms = count;
    for (size_t i = 0; i < count; i++) {
        struct entry entry = {.spending = list[i],
                              .relation = relation,
                              .group = 1,
                              .claimed_epsilon = NAN,
                              .claimed_delta = NAN};
        add_entry(r, &r->paths[0], &entry);
    }
    return account_for(r, DPF_OK, request, e);
}

void dpf_account_release(struct dpf_account *a)
{
    dpf_text_release(&a->source);
    dpf_text_release(&a->why);
    dpf_text_release(&a->assumes);
    *a = (struct dpf_account){0};
}
