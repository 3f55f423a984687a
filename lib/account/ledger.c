/* From what was spent to what it comes to. */
#include "account/ledger.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/reading.h"
#include "base/memory.h"
#include "base/signals.h"

#include "base/banned.h"

/* ----------------------------------------------------------------- one path's cost */

/* The relation of all, or DPF_PRIVACY with the conversion. */
static enum dpf_status common_relation(const struct dpf_reading *r,
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
                        "a guarantee under %s implies none under %s: the only conversion "
                        "is to '--relation replace-one'",
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
    if (s->rate < 1 || !s->kind->for_group)
        return false;
    s->kind->for_group(s, k);
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
static enum dpf_status path_epsilon(const struct dpf_ledger_path *p,
                                    enum dpf_relation relation,
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
        const struct dpf_ledger_entry *x = &p->entries[i];
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

static void sum_claims(struct dpf_account *a, const struct dpf_reading *r)
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

static double stated_delta(const struct dpf_reading *r)
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

/* What holds of every ledger, and is never in it. */
static void assume_always(struct dpf_reading *r, const struct dpf_account *a)
{
    static const char person[] =
        "each person has one record (to remove this: join a person's records into one "
        "before 'load')";
    static const char once[] =
        "nothing else is released from these records: a re-run, a sweep or another "
        "continuation of a checkpoint costs again (to remove this: give every release to "
        "one 'account -i A -i B')";
    static const char word[] = "declared bounds, '--public' and the ledgers of input "
                               "streams are true (to remove "
                               "this: check them with those who wrote them)";
    static const char number[] =
        "the number of records is public, as it is under %s (to remove this: a mechanism "
        "under add-remove)";
    char text[sizeof number + 32];
    static const char numbers[] =
        "all rows of a person, and no one else's, have her number (to remove this: join "
        "the rows of those who are one before 'load')";
    static const char links[] = "who is linked to whom is public, and the order of the "
                                "links too (to remove this: "
                                "'window' without '--links')";
    static const char who[] = "who is in the table is public, as it is under "
                              "replace-one (to remove this: a mechanism under "
                              "add-remove)";
    bool windows = a->mechanisms && a->has_windows && r->unit == DPF_UNIT_PERSON;
    if (a->mechanisms && (a->has_records || !windows))
        dpf_reading_assume(r, person, sizeof person - 1);
    if (windows)
        dpf_reading_assume(r, numbers, sizeof numbers - 1);
    if (windows && a->has_friends)
        dpf_reading_assume(r, links, sizeof links - 1);
    if (windows && a->relation != DPF_ADD_REMOVE)
        dpf_reading_assume(r, who, sizeof who - 1);
    if (a->mechanisms) {
        dpf_reading_assume(r, once, sizeof once - 1);
    }
    dpf_reading_assume(r, word, sizeof word - 1);
    if (a->mechanisms && a->relation != DPF_ADD_REMOVE) {
        int size = snprintf(text, sizeof text, number, dpf_relation_words[a->relation]);
        dpf_reading_assume(r, text, (size_t)size);
    }
}

/* Windows and records that are none: see the claim on persons in account/reading.h. Where
 * only these were used, the cost is of a record, whatever windows there are beside it. */
static void check_people(struct dpf_account *a, struct dpf_reading *r)
{
    static const char both[] =
        "one mechanism saw windows of people's rows, another one records that are no "
        "windows: how many of these a person has is not known (give them to 'account' "
        "apart)";
    if (a->has_records && !r->used_windows)
        a->has_windows = false;
    if (r->unit == DPF_UNIT_PERSON && r->used_windows && a->has_records)
        dpf_reading_unbounded(r, both, sizeof both - 1);
}

/* A ledger may come from anyone: what would take hours to compose is refused. */
static enum dpf_status check_size(const struct dpf_reading *r, struct dpf_error *e)
{
    enum { MOST_ENTRIES = 1 << 14 };
    size_t all = 0;
    for (size_t i = 0; i < r->path_count; i++)
        all += r->paths[i].count;
    return all <= MOST_ENTRIES
               ? DPF_OK
               : dpf_fail(e, DPF_PRIVACY,
                          "the ledger has %zu mechanisms to compose, %d at most can be",
                          all, (int)MOST_ENTRIES);
}

static enum dpf_status finish(struct dpf_account *a, struct dpf_reading *r,
                              const struct dpf_account_request *request,
                              struct dpf_error *e)
{
    if (r->memory_failed)
        return dpf_fail_memory(e);
    check_people(a, r);
    enum dpf_status status = common_relation(r, request, &a->relation, e);
    a->proven.delta = isnan(request->delta) ? stated_delta(r) : request->delta;
    if (status == DPF_OK && isnan(request->delta) && !(a->proven.delta < 1))
        status = dpf_fail(e, DPF_PRIVACY,
                          "the events state deltas of 1 and more: give '--delta'");
    if (status == DPF_OK && !r->unbounded)
        status = check_size(r, e);
    for (size_t i = 0; status == DPF_OK && !r->unbounded && i < r->path_count; i++) {
        double epsilon = 0;
        enum dpf_method method = DPF_METHOD_BASIC;
        status = dpf_stop_check(e);
        if (status != DPF_OK)
            return status;
        status = path_epsilon(&r->paths[i], a->relation, request, a->proven.delta,
                              &epsilon, &method, e);
        if (i == 0 || epsilon > a->proven.epsilon) {
            a->proven.epsilon = epsilon;
            a->method = method;
        }
    }
    if (r->unbounded)
        a->proven.epsilon = INFINITY;
    if (isinf(a->proven.epsilon) && !r->unbounded)
        dpf_text_addf(&a->why,
                      "%sno finite bound: groups of records are too large for the noise, "
                      "or the method has none",
                      a->why.size ? "; " : "");
    sum_claims(a, r);
    if (isinf(a->proven.epsilon))
        dpf_text_release(&a->assumes); /* nothing is promised, whatever holds */
    else if (r->from_ledger)
        assume_always(r, a);
    a->alike = r->path_count == 1 && a->relation == DPF_LOCAL && !r->tells_apart;
    for (size_t i = 0; a->alike && i < r->paths[0].count; i++)
        a->alike = r->paths[0].entries[i].group == 1;
    a->claimed.source = dpf_text_get(&a->source);
    a->proven.source = dpf_text_get(&a->why);
    return status;
}

/* A reading with one empty path, to be finished and freed by account_for(). */
static struct dpf_reading *begin_reading(struct dpf_account *a, struct dpf_error *e)
{
    struct dpf_reading *r = dpf_calloc(1, sizeof *r);
    *a = (struct dpf_account){0};
    if (!r) {
        dpf_fail_memory(e);
        return NULL;
    }
    r->account = a;
    if (dpf_reading_begin(r))
        return r;
    free(r);
    dpf_fail_memory(e);
    return NULL;
}

static enum dpf_status account_for(struct dpf_reading *take_r, enum dpf_status status,
                                   const struct dpf_account_request *request,
                                   struct dpf_error *e)
{
    struct dpf_account *a = take_r->account;
    if (status == DPF_OK)
        status = finish(a, take_r, request, e);
    dpf_reading_release(take_r);
    free(take_r);
    if (status != DPF_OK)
        dpf_account_release(a);
    return status;
}

static enum dpf_status account_by(struct dpf_account *a, const struct dpf_header *h,
                                  const struct dpf_account_request *request,
                                  enum dpf_account_unit unit, struct dpf_error *e)
{
    struct dpf_reading *r = begin_reading(a, e);
    if (!r)
        return DPF_SYSTEM;
    if (h->is_private) {
        static const char why[] =
            "the stream holds private records, or something made of "
            "them without a mechanism";
        dpf_reading_unbounded(r, why, sizeof why - 1);
    }
    r->unit = unit;
    r->replaces = request->convert && request->relation == DPF_REPLACE_ONE;
    enum dpf_status status = dpf_reading_take(r, &h->events, e);
    if (status == DPF_OK && h->is_protected && a->mechanisms == 0) {
        static const char why[] = "the stream says that it is protected, but its ledger "
                                  "names no mechanism";
        dpf_reading_unbounded(r, why, sizeof why - 1);
    }
    r->from_ledger = true;
    return account_for(r, status, request, e);
}

enum dpf_status dpf_account_ledger(struct dpf_account *a, const struct dpf_header *h,
                                   const struct dpf_account_request *request,
                                   struct dpf_error *e)
{
    struct dpf_account window;
    enum dpf_status status = account_by(a, h, request, DPF_UNIT_PERSON, e);
    if (status != DPF_OK || !a->has_windows)
        return status;
    status = account_by(&window, h, request, DPF_UNIT_WINDOW, e);
    if (status != DPF_OK) {
        dpf_account_release(a);
        return status;
    }
    a->per_window = window.proven;
    a->window_method = window.method;
    a->window_why = window.why; /* the text moves */
    window.why = (struct dpf_text){0};
    a->per_window.source = dpf_text_get(&a->window_why);
    dpf_account_release(&window);
    return DPF_OK;
}

enum dpf_status dpf_account_list(struct dpf_account *a, const struct dpf_spending *list,
                                 size_t count, enum dpf_relation relation,
                                 const struct dpf_account_request *request,
                                 struct dpf_error *e)
{
    struct dpf_reading *r = begin_reading(a, e);
    if (!r)
        return DPF_SYSTEM;
    a->mechanisms = count;
    for (size_t i = 0; i < count; i++) {
        struct dpf_ledger_entry entry = {.spending = list[i],
                                         .relation = relation,
                                         .group = 1,
                                         .claimed_epsilon = NAN,
                                         .claimed_delta = NAN};
        dpf_reading_add(r, &r->paths[0], &entry);
    }
    return account_for(r, DPF_OK, request, e);
}

void dpf_account_release(struct dpf_account *a)
{
    dpf_text_release(&a->source);
    dpf_text_release(&a->why);
    dpf_text_release(&a->assumes);
    dpf_text_release(&a->window_why);
    *a = (struct dpf_account){0};
}

enum dpf_status dpf_account_check_release(const struct dpf_header *h,
                                          const struct dpf_guarantee *budget,
                                          struct dpf_error *e)
{
    const struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    struct dpf_account a;
    struct dpf_text cost = {0};
    if (h->is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "the stream holds private records: they leave their owner only "
                        "after 'randomize' or 'perturb'");
    if (!h->is_protected)
        return DPF_OK;
    enum dpf_status status = dpf_account_ledger(&a, h, &request, e);
    if (status != DPF_OK)
        return status;
    dpf_text_add_epsilon(&cost, a.proven.epsilon);
    if (!isfinite(a.proven.epsilon))
        status =
            dpf_fail(e, DPF_PRIVACY, "no finite epsilon is proven for the stream: %s",
                     dpf_text_get(&a.why));
    else if (budget &&
             (a.proven.epsilon > budget->epsilon || a.proven.delta > budget->delta))
        status =
            dpf_fail(e, DPF_PRIVACY,
                     "the proven cost, epsilon %s at delta %g, is above the owner's "
                     "budget of (%g, %g)",
                     dpf_text_get(&cost), a.proven.delta, budget->epsilon, budget->delta);
    dpf_text_release(&cost);
    dpf_account_release(&a);
    return status;
}
