/* Reading the answers of teachers: who, to which query, once each. */
#include <stdlib.h>
#include <string.h>

#include "account/reading.h"
#include "aggregate.h"
#include "ledger/source.h"

#include "base/banned.h"

/* The event that stands for all teachers in what is released. */
static enum dpf_status describe(struct dpf_aggregate *v, struct dpf_stage *s,
                                struct dpf_error *e)
{
    struct dpf_event_list list;
    struct dpf_event seen;
    const struct dpf_teachers_event event = {.branches = &v->answers.branches,
                                             .distinct_owners = v->distinct_owners};
    dpf_values_release(&s->out.events);
    dpf_values_append(&s->out.events, &v->answers.asked);
    dpf_ledger_add_teachers(&s->out.events, s->info->name, &event);
    enum dpf_status status = dpf_event_list_init(&list, &s->out.events, e);
    if (status != DPF_OK)
        return status;
    status = dpf_event_read(&list.array.via.array.ptr[list.array.via.array.size - 1],
                            &seen, e);
    if (status == DPF_OK && s->in.is_private &&
        !dpf_reading_teachers_apart(&seen, DPF_REPLACE_ONE))
        status = dpf_fail(
            e, DPF_PRIVACY,
            v->distinct_owners
                ? "teachers share records, as their ledgers show: one person would "
                  "change several answers"
                : "the ledgers do not show that teachers were trained on different "
                  "records: cut one source with 'train --teachers' or 'split', or give "
                  "'--distinct-owners' if no person has records with two of them");
    dpf_event_list_release(&list);
    return status;
}

/* The first teacher whose id another one has. */
static const char *twice(const struct dpf_answers *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (dpf_answers_find(a, a->teachers[i].id) < i)
            return a->teachers[i].name;
    return NULL;
}

enum dpf_status dpf_answers_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    enum dpf_status status = dpf_answers_read(&v->answers, &s->in, e);
    if (status != DPF_OK)
        return status;
    if (!s->in.is_private && !s->in.is_protected &&
        (!dpf_ledger_sources_published(&v->answers.branches) ||
         !dpf_ledger_sources_published(&v->answers.asked)))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the answers are said to be public, and their ledger names "
                        "records that are private, or unknown because they came from a "
                        "pipe: load public records from files");
    if (v->answers.votes != (v->vote != NULL))
        return dpf_fail(e, DPF_BAD_STREAM,
                        v->vote ? "these teachers give codes, not votes: use '--codes'"
                                : "these teachers give votes, not codes: use '--vote'");
    if (v->codes && v->answers.values > DPF_CODE_MAX_VALUES)
        return dpf_fail(e, DPF_BAD_STREAM, "codes have at most %d values, not %llu",
                        DPF_CODE_MAX_VALUES, (unsigned long long)v->answers.values);
    if (v->vote && (v->answers.values < 2 || v->answers.values > DPF_VOTE_MAX_CLASSES))
        return dpf_fail(e, DPF_BAD_STREAM, "votes are among 2 to %d classes, not %llu",
                        DPF_VOTE_MAX_CLASSES, (unsigned long long)v->answers.values);
    const char *again = twice(&v->answers);
    if (again)
        return dpf_fail(e, DPF_BAD_STREAM, "teacher '%s' is there twice", again);
    if (v->answers.count != (size_t)v->teachers)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "there are answers of %zu teachers, not of %lld: the %s '%s'",
                        v->answers.count, (long long)v->teachers,
                        v->answers.count > 1 ? "last one is" : "only one is",
                        v->answers.teachers[v->answers.count - 1].name);
    status = describe(v, s, e);
    s->out_deferred = true;
    s->drops_others = true;
    if (status == DPF_OK && v->codes) /* any noise: it is the cut that counts here */
        status = dpf_code_mean_init(&v->mean, v->answers.values, v->answers.count,
                                    v->norm, 1, e);
    return status == DPF_OK
               ? dpf_tallies_open(&v->tallies, v->answers.count, v->answers.values,
                                  v->codes ? sizeof(int64_t) : sizeof(int32_t), e)
               : status;
}

/* How many rows from `from` on, and before `end`, are of one teacher and of successive
 * queries. */
static uint64_t run_length(const int64_t *query, const int64_t *ids, uint64_t from,
                           uint64_t end)
{
    uint64_t n = 1;
    while (from + n < end && ids[from + n] == ids[from] &&
           query[2 * (from + n)] == query[2 * from] + (int64_t)n)
        n++;
    return n;
}

/* The first teacher who has answered a query, or has not; or the number of teachers. */
static size_t first_of(const struct dpf_tally *one, size_t teachers, bool has_answered)
{
    size_t k = 0;
    while (k < teachers && (one->answered[k / 8] >> k % 8 & 1) != has_answered)
        k++;
    return k;
}

/* Mark a run of answers as given, by teacher number `teacher` to the queries in memory.
 * A run that does not go through is refused with its first wrong answer. */
static enum dpf_status mark(struct dpf_aggregate *v, const int64_t *query, uint64_t n,
                            size_t teacher, struct dpf_error *e)
{
    const struct dpf_tallies t = v->tallies; /* a copy: no store below changes it */
    unsigned char bit = (unsigned char)(1U << teacher % 8);
    const char *name = v->answers.teachers[teacher].name;
    for (uint64_t i = 0; i < n; i++, query += 2) {
        struct dpf_tally one = dpf_tallies_at(&t, i);
        if (one.answered[teacher / 8] & bit)
            return dpf_fail(e, DPF_BAD_STREAM, "teacher '%s' answers query %lld twice",
                            name, (long long)query[0]);
        if (*one.answers == 0)
            *one.digest = query[1];
        else if (*one.digest != query[1])
            return dpf_fail(
                e, DPF_BAD_STREAM,
                "teachers '%s' and '%s' answer different inputs as query %lld",
                v->answers.teachers[first_of(&one, v->answers.count, true)].name, name,
                (long long)query[0]);
        one.answered[teacher / 8] |= bit;
        ++*one.answers;
    }
    return DPF_OK;
}

/* Add the values of a run. Votes were found to be below the number of classes when the
 * batch was read. */
static void add_values(struct dpf_aggregate *v, const struct dpf_tensor *values,
                       uint64_t row, uint64_t n)
{
    const struct dpf_tallies t = v->tallies; /* a copy, as above */
    if (v->codes) {
        const float *code = (const float *)values->data + row * v->answers.values;
        for (uint64_t i = 0; i < n; i++, code += v->answers.values)
            dpf_code_add(&v->mean, code, dpf_tallies_at(&t, i).sums);
    } else if (values->dtype == DPF_U8) {
        const uint8_t *vote = (const uint8_t *)values->data + row;
        for (uint64_t i = 0; i < n; i++)
            dpf_tallies_at(&t, i).counts[vote[i]]++;
    } else {
        for (uint64_t i = 0; i < n; i++)
            dpf_tallies_at(&t, i).counts[(uint64_t)dpf_tensor_get(values, row + i)]++;
    }
}

enum dpf_status dpf_answers_batch(struct dpf_stage *s, struct dpf_batch *b,
                                  struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    const int64_t *query = b->tensor[v->answers.at[DPF_ANSWER_QUERY]].data;
    const int64_t *ids = b->tensor[v->answers.at[DPF_ANSWER_TEACHER]].data;
    const struct dpf_tensor *values = &b->tensor[v->answers.at[DPF_ANSWER_VALUE]];
    size_t teacher = 0;
    enum dpf_status status = DPF_OK;
    for (uint64_t row = 0, n; status == DPF_OK && row < b->rows; row += n) {
        if (query[2 * row] < 0 ||
            query[2 * row] > DPF_TALLIES_MAX_QUERIES - (int64_t)DPF_MAX_BATCH_ROWS)
            return dpf_fail(e, DPF_BAD_STREAM, "an answer is to query %lld",
                            (long long)query[2 * row]);
        if (v->answers.teachers[teacher].id != (uint64_t)ids[row])
            teacher = dpf_answers_find(&v->answers, (uint64_t)ids[row]);
        if (teacher == v->answers.count)
            return dpf_fail(e, DPF_BAD_STREAM,
                            "an answer to query %lld is of a teacher who is not in the "
                            "ledger",
                            (long long)query[2 * row]);
        n = run_length(query, ids, row,
                       row + dpf_tallies_most(&v->tallies, b->rows - row));
        status = dpf_tallies_load(&v->tallies, (uint64_t)query[2 * row], n, e);
        if (status == DPF_OK)
            status = mark(v, query + 2 * row, n, teacher, e);
        if (status == DPF_OK)
            add_values(v, values, row, n);
        dpf_tallies_changed(&v->tallies);
    }
    dpf_batch_truncate(b, 0);
    return status;
}

/* Who is at fault, those who answered or those who did not, is not ours to say: both are
 * named, and how many they are. */
static enum dpf_status fail_incomplete(const struct dpf_aggregate *v, uint64_t query,
                                       struct dpf_tally one, struct dpf_error *e)
{
    size_t teachers = v->answers.count;
    if (*one.answers == teachers)
        return DPF_OK;
    size_t missing = first_of(&one, teachers, false);
    size_t there = first_of(&one, teachers, true);
    if (there == teachers)
        return dpf_fail(e, DPF_BAD_STREAM, "no teacher has answered query %llu",
                        (unsigned long long)query);
    return dpf_fail(e, DPF_BAD_STREAM,
                    "teacher '%s' has not answered query %llu; %llu of %zu teachers "
                    "have, '%s' among them",
                    v->answers.teachers[missing].name, (unsigned long long)query,
                    (unsigned long long)*one.answers, teachers,
                    v->answers.teachers[there].name);
}

enum dpf_status dpf_answers_complete(struct dpf_aggregate *v, struct dpf_error *e)
{
    struct dpf_tallies *t = &v->tallies;
    uint64_t all = t->queries;
    enum dpf_status status =
        all ? DPF_OK : dpf_fail(e, DPF_BAD_STREAM, "the teachers have answered nothing");
    for (uint64_t from = 0, n; status == DPF_OK && from < all; from += n) {
        n = dpf_tallies_most(t, all - from);
        status = dpf_tallies_load(t, from, n, e);
        for (uint64_t i = 0; status == DPF_OK && i < n; i++)
            status = fail_incomplete(v, from + i, dpf_tallies_at(t, i), e);
    }
    return status;
}
