#ifdef __clang__ /* GCC knows no such pragma, and -std=c11 means the same to it */
#pragma STDC FP_CONTRACT OFF
#endif

#include "data/history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/influence.h"

#include "base/banned.h"

/* A person at a time; her values are h->x + at * attributes. */
struct row {
    int64_t person, time;
    size_t at;
    bool rose;
};

/* One direction of a link that is used; or, before they are chosen, a link. */
struct link {
    int64_t person, friend;
};

/* Rows of one person, rows[from] to rows[to - 1]. */
struct span {
    size_t from, to;
};

struct dpf_history {
    struct dpf_history_rule rule;
    struct row *rows;
    size_t row_count, row_capacity;
    float *x;
    size_t x_capacity;
    struct link *links; /* as given */
    size_t link_count, link_capacity;
    struct link *used; /* both directions, by person and friend */
    size_t used_count;
    /* the next window: whose, rows of her friends (none of those without), and when */
    struct span person;
    struct span *friends;
    size_t friend_count;
    uint64_t end;
    struct dpf_history_counts counts;
};

/* ------------------------------------------------------------------- numbers of a rule
 */

uint64_t dpf_history_ends(const struct dpf_history_rule *r)
{
    return ((uint64_t)r->last - (uint64_t)r->first) / (uint64_t)r->every + 1;
}

size_t dpf_history_values(const struct dpf_history_rule *r)
{
    return r->attributes * (r->length + 1) + 1;
}

struct dpf_history_keeps dpf_history_keeps(const struct dpf_history_rule *r)
{
    uint64_t own = dpf_history_ends(r), others = own;
    bool fits = own <= DPF_HISTORY_MAX_ENDS &&
                !__builtin_mul_overflow(own, r->friends, &others) &&
                others <= UINT64_MAX / 4;
    struct dpf_history_keeps keeps = {0};
    if (fits) {
        keeps.add_remove = own + 2 * others;
        keeps.replace_one = r->missing == DPF_MISSING_DROP ? 0 : own + others;
    }
    return keeps;
}

/* ---------------------------------------------------------------------------- filling */

enum dpf_status dpf_history_new(const struct dpf_history_rule *rule,
                                struct dpf_history **take, struct dpf_error *e)
{
    *take = dpf_calloc(1, sizeof **take);
    if (!*take)
        return dpf_fail_memory(e);
    (*take)->rule = *rule;
    return DPF_OK;
}

void dpf_history_destroy(struct dpf_history **h)
{
    if (!*h)
        return;
    free((*h)->rows);
    free((*h)->x);
    free((*h)->links);
    free((*h)->used);
    free((*h)->friends);
    free(*h);
    *h = NULL;
}

bool dpf_history_whole(const struct dpf_tensor *t, uint64_t i, int64_t *value)
{
    switch (t->dtype) {
    case DPF_U8:
        *value = ((const uint8_t *)t->data)[i];
        return true;
    case DPF_I32:
        *value = ((const int32_t *)t->data)[i];
        return true;
    case DPF_I64:
        *value = ((const int64_t *)t->data)[i];
        return true;
    case DPF_F32:
    case DPF_F64:
    case DPF_BITS:
    case DPF_DTYPE_COUNT:
        break;
    }
    return false;
}

static enum dpf_status make_room(struct dpf_history *h, uint64_t rows,
                                 struct dpf_error *e)
{
    size_t each = sizeof *h->rows + h->rule.attributes * sizeof *h->x;
    if (rows > DPF_HISTORY_MAX_BYTES / each - h->row_count)
        return dpf_fail(e, DPF_BAD_STREAM, "the table needs more than %llu GiB of memory",
                        DPF_HISTORY_MAX_BYTES >> 30);
    size_t all = h->row_count + (size_t)rows;
    return dpf_grow(&h->rows, &h->row_capacity, all, sizeof *h->rows) &&
                   dpf_grow(&h->x, &h->x_capacity, all * h->rule.attributes, sizeof *h->x)
               ? DPF_OK
               : dpf_fail_memory(e);
}

static bool all_finite(const float *x, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count; i++)
        good = good && isfinite(x[i]);
    return good;
}

enum dpf_status dpf_history_add(struct dpf_history *h, const struct dpf_tensor *person,
                                const struct dpf_tensor *time, const struct dpf_tensor *x,
                                const struct dpf_tensor *y, struct dpf_error *e)
{
    struct dpf_tensor values;
    uint64_t count = dpf_tensor_rows(x);
    enum dpf_status status = make_room(h, count, e);
    if (status == DPF_OK)
        status = dpf_tensor_to_f32(x, &values, e);
    if (status != DPF_OK)
        return status;
    size_t elements = (size_t)count * h->rule.attributes;
    if (elements)
        memcpy(h->x + h->row_count * h->rule.attributes, values.data,
               elements * sizeof *h->x);
    if (!all_finite(values.data, elements))
        status = dpf_fail(e, DPF_BAD_STREAM, "a value is not finite");
    dpf_tensor_release(&values);
    for (uint64_t i = 0; status == DPF_OK && i < count; i++) {
        struct row *row = &h->rows[h->row_count];
        int64_t rose = 0;
        *row = (struct row){.at = h->row_count};
        if (!dpf_history_whole(person, i, &row->person) ||
            !dpf_history_whole(time, i, &row->time) ||
            (y && (!dpf_history_whole(y, i, &rose) || rose < 0 || rose > 1)))
            return dpf_fail(e, DPF_BAD_STREAM,
                            "a person, a time or a label is not a whole number, or a "
                            "label is not 0 or 1");
        row->rose = rose == 1;
        h->row_count++;
    }
    return status;
}

enum dpf_status dpf_history_link(struct dpf_history *h, int64_t a, int64_t b,
                                 struct dpf_error *e)
{
    if (a == b)
        return dpf_fail(e, DPF_BAD_STREAM, "a link is between a person and herself");
    if (!dpf_grow(&h->links, &h->link_capacity, h->link_count + 1, sizeof *h->links))
        return dpf_fail_memory(e);
    h->links[h->link_count++] = a < b ? (struct link){a, b} : (struct link){b, a};
    return DPF_OK;
}

/* ---------------------------------------------------------------------------- closing */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_link(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    int order = by_number(&x->person, &y->person);
    return order ? order : by_number(&x->friend, &y->friend);
}

static int by_row(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int order = by_number(&x->person, &y->person);
    return order ? order : by_number(&x->time, &y->time);
}

/* The first of these, in order, that is not below the key. */
static size_t first_from(const void *key, const void *all, size_t count, size_t size,
                         int (*compare)(const void *, const void *))
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (compare((const char *)all + middle * size, key) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static bool have_twin(const struct link *sorted, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (by_link(&sorted[i - 1], &sorted[i]) == 0)
            return true;
    return false;
}

/* How many links everyone uses. */
struct degrees {
    int64_t *people; /* in order, some of them several times: the first stands for all */
    uint64_t *used;
    size_t count;
};

static uint64_t *degree_of(const struct degrees *d, int64_t person)
{
    return &d->used[first_from(&person, d->people, d->count, sizeof person, by_number)];
}

static void use_links(struct dpf_history *h, const struct degrees *d)
{
    for (size_t i = 0; i < h->link_count; i++) {
        struct link l = h->links[i];
        uint64_t *a = degree_of(d, l.person), *b = degree_of(d, l.friend);
        if (*a >= h->rule.friends || *b >= h->rule.friends)
            continue;
        ++*a;
        ++*b;
        h->used[h->used_count++] = l;
        h->used[h->used_count++] = (struct link){l.friend, l.person};
    }
}

/* In their order, each while both its ends have fewer than F: from the links alone, so
 * that who is in the table changes nothing. */
static enum dpf_status choose_links(struct dpf_history *h, struct dpf_error *e)
{
    size_t n = h->link_count;
    struct degrees d = {.people = dpf_calloc(2 * n + 1, sizeof *d.people),
                        .used = dpf_calloc(2 * n + 1, sizeof *d.used),
                        .count = 2 * n};
    enum dpf_status status = DPF_OK;
    h->used = dpf_calloc(2 * n + 1, sizeof *h->used);
    h->friends = dpf_calloc(2 * n + 1, sizeof *h->friends);
    if (d.people && d.used && h->used && h->friends) {
        for (size_t i = 0; i < n; i++) {
            d.people[2 * i] = h->links[i].person;
            d.people[2 * i + 1] = h->links[i].friend;
            h->used[i] = h->links[i];
        }
        qsort(d.people, d.count, sizeof *d.people, by_number);
        qsort(h->used, n, sizeof *h->used, by_link);
        if (have_twin(h->used, n))
            status = dpf_fail(e, DPF_BAD_STREAM, "a link is there twice");
        use_links(h, &d);
        qsort(h->used, h->used_count, sizeof *h->used, by_link);
    } else {
        status = dpf_fail_memory(e);
    }
    free(d.people);
    free(d.used);
    return status;
}

static const float *values_of(const struct dpf_history *h, const struct row *row)
{
    return h->x + row->at * h->rule.attributes;
}

/* A rise is one from the time just before, of the same person. */
static void find_rises(struct dpf_history *h)
{
    for (size_t i = 0; i < h->row_count; i++) {
        struct row *row = &h->rows[i];
        const struct row *before = i ? row - 1 : NULL;
        row->rose = before && before->person == row->person &&
                    before->time + 1 == row->time &&
                    values_of(h, row)[h->rule.rise] > values_of(h, before)[h->rule.rise];
    }
}

/* The people's rows stand together. */
static struct span rows_from(const struct dpf_history *h, size_t from)
{
    struct span s = {from, from};
    while (s.to < h->row_count && h->rows[s.to].person == h->rows[from].person)
        s.to++;
    return s;
}

static struct span rows_of(const struct dpf_history *h, int64_t person)
{
    const struct row key = {.person = person, .time = INT64_MIN};
    size_t at = first_from(&key, h->rows, h->row_count, sizeof key, by_row);
    struct span none = {at, at};
    return at < h->row_count && h->rows[at].person == person ? rows_from(h, at) : none;
}

/* The person whose rows begin here, and her friends in the order of their numbers. */
static void start_person(struct dpf_history *h, size_t from)
{
    h->person = rows_from(h, from);
    h->end = 0;
    h->friend_count = 0;
    if (from == h->row_count)
        return;
    const struct link key = {h->rows[from].person, INT64_MIN};
    size_t at = first_from(&key, h->used, h->used_count, sizeof key, by_link);
    for (; at < h->used_count && h->used[at].person == key.person; at++)
        h->friends[h->friend_count++] = rows_of(h, h->used[at].friend);
    h->counts.people++;
}

enum dpf_status dpf_history_close(struct dpf_history *h, struct dpf_error *e)
{
    enum dpf_status status = choose_links(h, e);
    if (h->row_count)
        qsort(h->rows, h->row_count, sizeof *h->rows, by_row);
    for (size_t i = 1; status == DPF_OK && i < h->row_count; i++)
        if (by_row(&h->rows[i - 1], &h->rows[i]) == 0)
            status = dpf_fail(e, DPF_BAD_STREAM, "a person has two rows at one time");
    if (h->rule.rise >= 0)
        find_rises(h);
    if (status == DPF_OK)
        start_person(h, 0);
    return status;
}

/* ---------------------------------------------------------------------------- windows */

/* The last row of these that is not after `time`, or NULL. */
static const struct row *find_last(const struct dpf_history *h, struct span s,
                                   int64_t time)
{
    const struct row key = {.person = h->rows[s.from].person, .time = time};
    size_t at =
        s.from + first_from(&key, h->rows + s.from, s.to - s.from, sizeof key, by_row);
    if (at < s.to && h->rows[at].time == time)
        return &h->rows[at];
    return at > s.from ? &h->rows[at - 1] : NULL;
}

static const struct row *find(const struct dpf_history *h, struct span s, int64_t time)
{
    const struct row *row = s.to > s.from ? find_last(h, s, time) : NULL;
    return row && row->time == time ? row : NULL;
}

static bool rose(const struct dpf_history *h, struct span s, int64_t time)
{
    const struct row *row = find(h, s, time);
    return row && row->rose;
}

static double psi(const struct dpf_history *h, struct span of_friend, struct span own,
                  int64_t t)
{
    uint64_t rises = 0, followed = 0;
    for (int64_t s = t - (int64_t)h->rule.length + 1; s <= t; s++)
        if (rose(h, of_friend, s - 1)) {
            rises++;
            followed += rose(h, own, s);
        }
    return dpf_influence_psi(followed, rises);
}

static double influence(const struct dpf_history *h, int64_t t)
{
    double sum = 0;
    for (size_t i = 0; i < h->friend_count; i++)
        sum += psi(h, h->friends[i], h->person, t);
    return h->friend_count ? sum / (double)h->friend_count : .5;
}

/* Values at a time into every `stride`-th place of x. */
static void put_point(const struct dpf_history *h, int64_t time, float *x, size_t stride)
{
    bool carried = h->rule.missing == DPF_MISSING_PREVIOUS;
    const struct row *row =
        carried ? find_last(h, h->person, time) : find(h, h->person, time);
    for (size_t i = 0; i < h->rule.attributes; i++)
        x[i * stride] = row ? values_of(h, row)[i] : 0;
}

/* Of the times of a window with its label, which follow each other, those without a row.
 */
static uint64_t count_missing(struct dpf_history *h, int64_t labelled)
{
    uint64_t missing = 0;
    for (int64_t s = labelled - (int64_t)h->rule.length; s <= labelled; s++)
        missing += !find(h, h->person, s);
    h->counts.points += h->rule.length + 1;
    h->counts.missing += missing;
    return missing;
}

static bool make_window(struct dpf_history *h, int64_t t, float *x, uint8_t *y)
{
    const struct dpf_history_rule *r = &h->rule;
    int64_t labelled = r->next ? t + 1 : t, newest = labelled - 1;
    float *now = x + r->attributes * r->length;
    if (count_missing(h, labelled) && r->missing == DPF_MISSING_DROP)
        return false;
    for (size_t i = 0; i < r->length; i++)
        put_point(h, newest - (int64_t)(r->length - 1 - i), x + i, r->length);
    put_point(h, t, now, 1);
    now[r->attributes] = (float)influence(h, newest);
    *y = rose(h, h->person, labelled);
    return true;
}

bool dpf_history_window(struct dpf_history *h, float *x, uint8_t *y)
{
    uint64_t ends = dpf_history_ends(&h->rule);
    while (h->person.from < h->row_count) {
        while (h->end < ends) {
            int64_t t = h->rule.first + (int64_t)h->end++ * h->rule.every;
            if (make_window(h, t, x, y))
                return true;
            h->counts.dropped++;
        }
        start_person(h, h->person.to);
    }
    return false;
}

struct dpf_history_counts dpf_history_count(const struct dpf_history *h)
{
    return h->counts;
}
