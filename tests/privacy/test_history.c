/* Windows of people's rows: their values against plain loops, and in how many of them two
 * tables differ that differ in one person, by brute force. */
#include "data/history.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "privacy/energy_form.h"
#include "privacy/quadratic.h"
#include "random/seeded.h"

#include "base/banned.h"

enum { PEOPLE = 5, TIMES = 7, WIDTH = 2, MOST_LINKS = 10, MOST_WINDOWS = 200 };
static const int64_t numbers[PEOPLE] = {-4, 0, 3, 1000, INT64_MAX};

struct table {
    bool there[PEOPLE][TIMES];
    float x[PEOPLE][TIMES][WIDTH];
    uint8_t y[PEOPLE][TIMES];
    int links[MOST_LINKS][2];
    int link_count;
};

/* Everything about a window, as bytes. */
struct window {
    float x[WIDTH * TIMES + WIDTH + 1];
    float y;
};
struct windows {
    struct window all[MOST_WINDOWS];
    int count;
};

static void draw_person(struct table *t, int u, struct dpf_seeded *r)
{
    double share = dpf_seeded_unit(r) < .5 ? 1 : .7;
    memset(t->there[u], 0, sizeof t->there[u]);
    t->there[u][dpf_seeded_below(r, TIMES)] = true; /* one row at least */
    for (int s = 0; s < TIMES; s++) {
        t->there[u][s] = t->there[u][s] || dpf_seeded_unit(r) < share;
        for (int i = 0; i < WIDTH; i++)
            t->x[u][s][i] = (float)dpf_seeded_unit(r);
        t->y[u][s] = dpf_seeded_unit(r) < .5;
    }
}

static void draw_links(struct table *t, struct dpf_seeded *r)
{
    for (int a = 0; a < PEOPLE; a++)
        for (int b = 0; b < a; b++)
            if (dpf_seeded_unit(r) < .6) {
                int *link = t->links[t->link_count++];
                bool turn = dpf_seeded_unit(r) < .5;
                link[0] = turn ? a : b;
                link[1] = turn ? b : a;
            }
    for (int i = t->link_count - 1; i > 0; i--) { /* in any order */
        int k = (int)dpf_seeded_below(r, (uint64_t)i + 1), other[2];
        memcpy(other, t->links[k], sizeof other);
        memcpy(t->links[k], t->links[i], sizeof other);
        memcpy(t->links[i], other, sizeof other);
    }
}

static struct table draw_table(struct dpf_seeded *r)
{
    struct table t = {.link_count = 0};
    for (int u = 0; u < PEOPLE; u++)
        draw_person(&t, u, r);
    draw_links(&t, r);
    return t;
}

static struct dpf_history_rule draw_rule(struct dpf_seeded *r)
{
    int64_t first = (int64_t)dpf_seeded_below(r, TIMES);
    return (struct dpf_history_rule){
        .length = 1 + dpf_seeded_below(r, 3),
        .first = first,
        .last = first + (int64_t)dpf_seeded_below(r, (uint64_t)(TIMES - first)),
        .every = 1 + (int64_t)dpf_seeded_below(r, 3),
        .next = dpf_seeded_unit(r) < .5,
        .missing = (enum dpf_history_missing)dpf_seeded_below(r, 3),
        .friends = dpf_seeded_below(r, 4),
        .attributes = WIDTH,
        .rise = dpf_seeded_unit(r) < .3 ? (int64_t)dpf_seeded_below(r, WIDTH) : -1};
}

/* ------------------------------------------------------------------- what the code makes
 */

static enum dpf_status add_row(struct dpf_history *h, int64_t person, int64_t time,
                               float *x, uint8_t *y)
{
    const struct dpf_shape one = {1, {1}}, row = {2, {1, WIDTH}};
    struct dpf_tensor p, s, v, l;
    struct dpf_error e;
    CU_ASSERT_FATAL(dpf_tensor_view(&p, DPF_I64, &one, &person, &e) == DPF_OK &&
                    dpf_tensor_view(&s, DPF_I64, &one, &time, &e) == DPF_OK &&
                    dpf_tensor_view(&v, DPF_F32, &row, x, &e) == DPF_OK &&
                    dpf_tensor_view(&l, DPF_U8, &one, y, &e) == DPF_OK);
    return dpf_history_add(h, &p, &s, &v, &l, &e);
}

/* Rows go in by time or by person, forwards or backwards: the order must not matter. */
static struct windows make_windows(struct table *t, const struct dpf_history_rule *rule,
                                   int order)
{
    struct windows w = {.count = 0};
    struct dpf_history *h;
    struct dpf_error e;
    CU_ASSERT_FATAL(dpf_history_new(rule, &h, &e) == DPF_OK);
    for (int i = 0; i < PEOPLE * TIMES; i++) {
        int k = order & 1 ? PEOPLE * TIMES - 1 - i : i;
        int u = order & 2 ? k % PEOPLE : k / TIMES,
            s = order & 2 ? k / PEOPLE : k % TIMES;
        if (t->there[u][s])
            CU_ASSERT_FATAL(add_row(h, numbers[u], s, t->x[u][s], &t->y[u][s]) == DPF_OK);
    }
    for (int i = 0; i < t->link_count; i++)
        CU_ASSERT_FATAL(dpf_history_link(h, numbers[t->links[i][0]],
                                         numbers[t->links[i][1]], &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_history_close(h, &e) == DPF_OK);
    uint8_t y;
    while (dpf_history_window(h, w.all[w.count].x, &y)) {
        w.all[w.count].y = y;
        CU_ASSERT_FATAL(++w.count < MOST_WINDOWS);
    }
    dpf_history_destroy(&h);
    return w;
}

/* ----------------------------------------------------------------------- plain loops */

static bool is_there(const struct table *t, int u, int64_t s)
{
    return s >= 0 && s < TIMES && t->there[u][s];
}

static int label(const struct table *t, const struct dpf_history_rule *r, int u,
                 int64_t s)
{
    if (!is_there(t, u, s))
        return 0;
    if (r->rise < 0)
        return t->y[u][s];
    return is_there(t, u, s - 1) && t->x[u][s][r->rise] > t->x[u][s - 1][r->rise];
}

static float value(const struct table *t, const struct dpf_history_rule *r, int u,
                   int64_t s, size_t i)
{
    if (r->missing == DPF_MISSING_PREVIOUS)
        while (s >= 0 && !is_there(t, u, s))
            s--;
    return is_there(t, u, s) ? t->x[u][s][i] : 0;
}

static void find_friends(const struct table *t, uint64_t most,
                         bool friends[PEOPLE][PEOPLE])
{
    uint64_t used[PEOPLE] = {0};
    memset(friends, 0, PEOPLE * sizeof *friends);
    for (int i = 0; i < t->link_count; i++) {
        int a = t->links[i][0], b = t->links[i][1];
        if (used[a] < most && used[b] < most) {
            used[a]++;
            used[b]++;
            friends[a][b] = friends[b][a] = true;
        }
    }
}

static double mean_psi(const struct table *t, const struct dpf_history_rule *r,
                       const bool *friends, int u, int64_t newest)
{
    double sum = 0;
    int count = 0;
    for (int v = 0; v < PEOPLE; v++) {
        double above = 1, below = 2;
        for (int64_t s = newest; friends[v] && s > newest - (int64_t)r->length; s--)
            if (label(t, r, v, s - 1)) {
                below++;
                above += label(t, r, u, s);
            }
        sum += friends[v] ? above / below : 0;
        count += friends[v];
    }
    return count ? sum / count : .5;
}

static bool plain_window(const struct table *t, const struct dpf_history_rule *r,
                         const bool *friends, int u, int64_t end, struct window *w)
{
    int64_t newest = r->next ? end : end - 1, labelled = r->next ? end + 1 : end;
    int64_t n = (int64_t)r->length;
    float *x = w->x;
    for (size_t i = 0; i < WIDTH; i++)
        for (int64_t s = newest - n + 1; s <= newest; s++)
            *x++ = value(t, r, u, s, i);
    for (size_t i = 0; i < WIDTH; i++)
        *x++ = value(t, r, u, end, i);
    *x = (float)mean_psi(t, r, friends, u, newest);
    w->y = (float)label(t, r, u, labelled);
    bool whole = is_there(t, u, labelled) && is_there(t, u, end);
    for (int64_t s = newest - n + 1; s <= newest; s++)
        whole = whole && is_there(t, u, s);
    return whole || r->missing != DPF_MISSING_DROP;
}

static struct windows plain_windows(const struct table *t,
                                    const struct dpf_history_rule *r)
{
    struct windows w = {.count = 0};
    bool friends[PEOPLE][PEOPLE];
    find_friends(t, r->friends, friends);
    for (int u = 0; u < PEOPLE; u++) {
        bool anywhere = false;
        for (int s = 0; s < TIMES; s++)
            anywhere = anywhere || t->there[u][s];
        for (int64_t end = r->first; anywhere && end <= r->last; end += r->every) {
            memset(&w.all[w.count], 0, sizeof w.all[w.count]);
            w.count += plain_window(t, r, friends[u], u, end, &w.all[w.count]);
        }
    }
    return w;
}

static void windows_are_those_of_plain_loops(void)
{
    struct dpf_seeded r;
    int made = 0;
    dpf_seeded_init(&r, "test history", 1, 0);
    for (int i = 0; i < 3000; i++) {
        struct table t = draw_table(&r);
        struct dpf_history_rule rule = draw_rule(&r);
        struct windows got = make_windows(&t, &rule, i % 4);
        struct windows want = plain_windows(&t, &rule);
        CU_ASSERT_EQUAL_FATAL(got.count, want.count);
        made += got.count;
        CU_ASSERT_FATAL(memcmp(got.all, want.all, (size_t)got.count * sizeof *got.all) ==
                        0);
    }
    CU_ASSERT(made > 10000);
}

/* ------------------------------------------------------------------------- neighbours */

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct window));
}

/* Windows of one that the other lacks, each as often as it is there. */
static void compare(struct windows *a, struct windows *b, int *only_a, int *only_b)
{
    int i = 0, k = 0;
    qsort(a->all, (size_t)a->count, sizeof *a->all, by_bytes);
    qsort(b->all, (size_t)b->count, sizeof *b->all, by_bytes);
    *only_a = *only_b = 0;
    while (i < a->count || k < b->count) {
        int order = i == a->count   ? 1
                    : k == b->count ? -1
                                    : by_bytes(&a->all[i], &b->all[k]);
        *only_a += order < 0;
        *only_b += order > 0;
        i += order <= 0;
        k += order >= 0;
    }
}

struct reached {
    int all, removed, replaced; /* tables, and those at the bound, with friends */
};

static void check_removed(struct table *t, const struct dpf_history_rule *rule, int u,
                          struct reached *seen)
{
    struct dpf_history_keeps keeps = dpf_history_keeps(rule);
    struct table without = *t;
    int gone, come;
    memset(without.there[u], 0, sizeof without.there[u]);
    struct windows a = make_windows(t, rule, 0), b = make_windows(&without, rule, 3);
    compare(&a, &b, &gone, &come);
    CU_ASSERT_FATAL((uint64_t)(gone + come) <= keeps.add_remove);
    seen->removed += rule->friends > 1 && (uint64_t)(gone + come) == keeps.add_remove;
}

static void check_replaced(struct table *t, const struct dpf_history_rule *rule, int u,
                           struct dpf_seeded *r, struct reached *seen)
{
    struct dpf_history_keeps keeps = dpf_history_keeps(rule);
    struct table other = *t;
    int gone, come;
    draw_person(&other, u, r);
    struct windows a = make_windows(t, rule, 1), b = make_windows(&other, rule, 2);
    if (rule->missing == DPF_MISSING_DROP) {
        CU_ASSERT(keeps.replace_one == 0);
        return;
    }
    compare(&a, &b, &gone, &come);
    CU_ASSERT_FATAL(a.count == b.count && gone == come);
    CU_ASSERT_FATAL((uint64_t)gone <= keeps.replace_one);
    seen->replaced += rule->friends > 1 && (uint64_t)gone == keeps.replace_one;
}

static void one_person_changes_no_more_than_the_event_says(void)
{
    struct reached seen = {0};
    struct dpf_seeded r;
    dpf_seeded_init(&r, "test history", 2, 0);
    for (int i = 0; i < 4000; i++) {
        struct table t = draw_table(&r);
        struct dpf_history_rule rule = draw_rule(&r);
        int u = (int)dpf_seeded_below(&r, PEOPLE);
        check_removed(&t, &rule, u, &seen);
        check_replaced(&t, &rule, u, &r, &seen);
    }
    /* and no smaller number would do */
    CU_ASSERT(seen.removed > 0);
    CU_ASSERT(seen.replaced > 0);
}

/* --------------------------------------------------- integers that get a person's noise
 */

enum { MOST_VALUES = 64 };

/* Values within [0, 1], many of them at an end. */
static void round_some(struct table *t, struct dpf_seeded *r)
{
    for (int u = 0; u < PEOPLE; u++)
        for (int s = 0; s < TIMES; s++)
            for (int i = 0; i < WIDTH; i++)
                if (dpf_seeded_unit(r) < .7)
                    t->x[u][s][i] = t->x[u][s][i] < .5f ? 0 : 1;
}

/* Those of a quadratic form, each as often as its noise counts it. */
static void add_to_form(const struct windows *w, size_t values, struct dpf_quadratic *q,
                        double sign, double *sums)
{
    bool l2 = q->plan.variant == DPF_QUADRATIC_GAUSSIAN;
    struct dpf_quadratic own;
    CU_ASSERT_FATAL(dpf_quadratic_init(&own, &q->plan, NULL) == DPF_OK);
    for (int i = 0; i < w->count; i++) {
        int32_t label = (int32_t)w->all[i].y;
        dpf_quadratic_add(&own, w->all[i].x, NULL, &label, 1);
    }
    size_t n = values + 1;
    for (size_t j = 0; j < n; j++)
        for (size_t k = j; k < n; k++)
            *sums++ += sign * (l2 && k > j ? M_SQRT2 : 1) *
                       ((double)own.a[j * n + k] + own.block_a[j * n + k]);
    for (size_t j = 0; j < n * 2; j++)
        *sums++ += sign * (l2 ? q->weight : 1) * ((double)own.b[j] + own.block_b[j]);
    dpf_quadratic_release(&own);
}

static double norm_of(const double *v, size_t count, bool l2)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += l2 ? v[i] * v[i] : fabs(v[i]);
    return l2 ? sqrt(sum) : sum;
}

/* How far two tables' integers are apart, as a share of what noise is for. */
static double form_apart(const struct windows *a, const struct windows *b, size_t values,
                         bool l2, bool replace, uint64_t group)
{
    const struct dpf_quadratic_plan plan = {.variant = l2 ? DPF_QUADRATIC_GAUSSIAN
                                                          : DPF_QUADRATIC_SOUND,
                                            .features = values,
                                            .intercept = true,
                                            .outputs = 2,
                                            .classes = true,
                                            .replace_one = replace,
                                            .non_negative = true,
                                            .epsilon = 1,
                                            .delta = 1e-6,
                                            .group = group};
    double sums[MOST_VALUES * MOST_VALUES] = {0};
    struct dpf_quadratic q;
    CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
    add_to_form(a, values, &q, 1, sums);
    add_to_form(b, values, &q, -1, sums);
    double apart =
        norm_of(sums, sizeof sums / sizeof *sums, l2) / ldexp(q.sensitivity, 2 * q.bits);
    dpf_quadratic_release(&q);
    return apart;
}

static void add_energies(const struct windows *w, struct dpf_energy_form *f)
{
    struct dpf_energy_worker worker;
    CU_ASSERT_FATAL(dpf_energy_worker_init(&worker, f, NULL) == DPF_OK);
    for (int i = 0; i < w->count; i++)
        dpf_energy_add(f, &worker, w->all[i].x, 1);
    dpf_energy_join(f, &worker);
    dpf_energy_worker_release(&worker);
}

static double energy_apart(const struct windows *a, const struct windows *b,
                           size_t values, bool l2, bool replace, uint64_t group,
                           double clip)
{
    const struct dpf_energy_plan plan = {.variant =
                                             l2 ? DPF_ENERGY_GAUSSIAN : DPF_ENERGY_SOUND,
                                         .patches = {.channels = 1,
                                                     .height = 1,
                                                     .width = values,
                                                     .kernel_height = 1,
                                                     .kernel_width = values,
                                                     .stride = 1,
                                                     .degree = 2},
                                         .alpha = {.5, .25},
                                         .epsilon = 1,
                                         .delta = 1e-6,
                                         .replace_one = replace,
                                         .group = group,
                                         .clip = clip};
    double sums[MOST_VALUES * MOST_VALUES] = {0};
    struct dpf_energy_form f, g;
    CU_ASSERT_FATAL(dpf_energy_form_init(&f, &plan, NULL) == DPF_OK &&
                    dpf_energy_form_init(&g, &plan, NULL) == DPF_OK);
    add_energies(a, &f);
    add_energies(b, &g);
    for (size_t i = 0; i < f.moments.count; i++)
        sums[i] = (double)(f.sums[i] - g.sums[i]);
    double noise_for = l2 ? f.gaussian.sensitivity_l2 : f.laplace.sensitivity_l1;
    dpf_energy_form_release(&f);
    dpf_energy_form_release(&g);
    return norm_of(sums, sizeof sums / sizeof *sums, l2) / noise_for;
}

/* `perturb --unit person`, on tables that differ in one person, with and without a clip
 * norm that all records are above. */
static void noise_for_a_person_covers_what_she_changes(void)
{
    struct dpf_seeded r;
    double largest = 0;
    dpf_seeded_init(&r, "test history", 3, 0);
    for (int i = 0; i < 600; i++) {
        struct table t = draw_table(&r), other;
        struct dpf_history_rule rule = draw_rule(&r);
        struct dpf_history_keeps keeps = dpf_history_keeps(&rule);
        int u = (int)dpf_seeded_below(&r, PEOPLE);
        bool replace = i & 1, l2 = i & 2;
        uint64_t group = replace ? keeps.replace_one : keeps.add_remove;
        size_t values = dpf_history_values(&rule);
        if (group == 0)
            continue; /* none: perturb refuses it */
        round_some(&t, &r);
        other = t;
        draw_person(&other, u, &r);
        if (!replace)
            memset(other.there[u], 0, sizeof other.there[u]);
        struct windows a = make_windows(&t, &rule, 0), b = make_windows(&other, &rule, 0);
        double form = l2 || replace ? form_apart(&a, &b, values, l2, replace, group) : 0;
        double cut = energy_apart(&a, &b, values, l2, replace, group, .3);
        largest = fmax(largest, energy_apart(&a, &b, values, l2, replace, group, 0));
        largest = fmax(largest, fmax(form, cut));
        CU_ASSERT_FATAL(largest <= 1 + 1e-9);
    }
    CU_ASSERT(largest > .9); /* and no noise for fewer windows would do */
}

static void the_numbers_are_those_of_the_claim(void)
{
    struct dpf_history_rule r = {.length = 4,
                                 .first = 4,
                                 .last = 298,
                                 .every = 1,
                                 .friends = 16,
                                 .attributes = 30};
    CU_ASSERT(dpf_history_ends(&r) == 295 && dpf_history_values(&r) == 151);
    CU_ASSERT(dpf_history_keeps(&r).add_remove == 295 + 2 * 16 * 295);
    CU_ASSERT(dpf_history_keeps(&r).replace_one == 295 + 16 * 295);
    r.every = 4;
    r.friends = 0;
    CU_ASSERT(dpf_history_keeps(&r).add_remove == 74);
    r.missing = DPF_MISSING_DROP;
    CU_ASSERT(dpf_history_keeps(&r).replace_one == 0);
    CU_ASSERT(dpf_history_keeps(&r).add_remove == 74);
}

/* ---------------------------------------------------------------------------- strangers
 */

static bool refused(const int64_t (*rows)[2], int count, const int64_t (*links)[2],
                    int link_count, float x, uint8_t y, const char *pattern)
{
    const struct dpf_history_rule rule = {
        .length = 2, .every = 1, .friends = 3, .attributes = WIDTH, .rise = -1};
    float values[WIDTH] = {x, 1};
    struct dpf_history *h;
    struct dpf_error e = {.status = DPF_OK};
    enum dpf_status status = dpf_history_new(&rule, &h, &e);
    for (int i = 0; status == DPF_OK && i < count; i++)
        status = add_row(h, rows[i][0], rows[i][1], values, &y);
    for (int i = 0; status == DPF_OK && i < link_count; i++)
        status = dpf_history_link(h, links[i][0], links[i][1], &e);
    if (status == DPF_OK)
        status = dpf_history_close(h, &e);
    dpf_history_destroy(&h);
    return status == DPF_BAD_STREAM && (!*pattern || strstr(e.message, pattern) != NULL);
}

static void bad_tables_are_refused(void)
{
    static const int64_t good[][2] = {{1, 1}, {1, INT64_MAX}, {2, INT64_MIN}};
    static const int64_t twice[][2] = {{1, 1}, {2, 1}, {1, 1}};
    static const int64_t self[][2] = {{5, 5}}, again[][2] = {{1, 2}, {3, 4}, {2, 1}};
    CU_ASSERT(!refused(good, 3, again, 2, 1, 1, ""));
    CU_ASSERT(refused(twice, 3, NULL, 0, 1, 1, "two rows at one time"));
    CU_ASSERT(refused(good, 3, self, 1, 1, 1, "herself"));
    CU_ASSERT(refused(good, 3, again, 3, 1, 1, "there twice"));
    CU_ASSERT(refused(good, 3, NULL, 0, NAN, 1, ""));
    CU_ASSERT(refused(good, 3, NULL, 0, INFINITY, 1, ""));
    CU_ASSERT(refused(good, 3, NULL, 0, 1, 2, ""));
}

const char dpf_suite[] = "history";
const struct dpf_test dpf_tests[] = {
    {"windows are those of plain loops", windows_are_those_of_plain_loops},
    {"one person changes no more windows than the event says, and as many",
     one_person_changes_no_more_than_the_event_says},
    {"noise for a person covers what she changes",
     noise_for_a_person_covers_what_she_changes},
    {"the numbers are those of the claim", the_numbers_are_those_of_the_claim},
    {"bad tables are refused", bad_tables_are_refused},
    {NULL, NULL},
};
