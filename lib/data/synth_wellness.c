/* Invented people who exercise, write to each other and move their friends: the shape of
 * the health social network in the papers on pCDBN, with a rule planted in it. The
 * functions below draw a person's day in their order; the coefficients stand here and are
 * the documentation (datasets/SYNTHETIC.md has the rule).
 *
 * Everything depends on everyone's past, so the whole world is made when a part is opened
 * (254 people at 300 times: 9 MB), from the seed alone. */
#ifdef __clang__ /* GCC knows no such pragma, and -std=c11 means the same to it */
#pragma STDC FP_CONTRACT OFF
#endif

#include "data/synth.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/influence.h"
#include "data/sets.h"
#include "data/synth_common.h"

#include "base/banned.h"

enum {
    PEOPLE = DPF_SYNTH_WELLNESS_PEOPLE,
    TIMES = DPF_SYNTH_WELLNESS_TIMES,
    WEEKS = DPF_SYNTH_WELLNESS_WEEKS,
    LINKS = DPF_SYNTH_WELLNESS_LINKS,
    ATTRIBUTES = DPF_SYNTH_WELLNESS_ATTRIBUTES,
    FRIENDS = DPF_SYNTH_WELLNESS_FRIENDS,
    HISTORY = 4, /* points that the rule looks at */
    NEAR = 9,    /* most links are between people as near as this in a circle */
};

enum attribute {
    COMPETITIONS,
    EXERCISING,
    GOALS_SET,
    GOALS_ACHIEVED,
    DISTANCE,
    SPEED,
    ENCOURAGEMENT, /* messages in the inbox, to PHYSICAL */
    HECKLING = ENCOURAGEMENT + 14,
    PHYSICAL = ENCOURAGEMENT + 19,
    WELLNESS,
    BMI,
    BMI_SLOPE,
    WELLNESS_SLOPE,
};
_Static_assert((int)WELLNESS_SLOPE + 1 == (int)ATTRIBUTES, "the header counts them");

#define MESSAGE(name)                                                                    \
    {                                                                                    \
        "inbox_" name, 0, 8                                                              \
    }
static const struct {
    const char *name;
    double lo, hi;
} attributes[ATTRIBUTES] = {
    {"competitions", 0, 5},
    {"exercising_days", 0, 1},
    {"goals_set", 0, 5},
    {"goals_achieved", 0, 5},
    {"distance", 0, 20},
    {"speed", 0, 12},
    MESSAGE("encouragement"),
    MESSAGE("fitness"),
    MESSAGE("followup"),
    MESSAGE("competition"),
    MESSAGE("games"),
    MESSAGE("personal"),
    MESSAGE("study_protocol"),
    MESSAGE("progress_report"),
    MESSAGE("technique"),
    MESSAGE("social_network"),
    MESSAGE("meetups"),
    MESSAGE("goal"),
    MESSAGE("wellness_meter"),
    MESSAGE("feedback"),
    MESSAGE("heckling"),
    MESSAGE("explanation"),
    MESSAGE("invitation"),
    MESSAGE("notice"),
    MESSAGE("technical_fitness"),
    MESSAGE("physical"),
    {"wellness_score", 0, 100},
    {"bmi", 18, 50},
    {"bmi_slope", -1, 1},
    {"wellness_score_slope", -20, 20},
};

struct person {
    double effort; /* distance in its bounds, 0..1 */
    double mood;   /* slow, 0..1: what others write to her */
    double bmi, wellness;
    unsigned friend_count;
    int friends[FRIENDS];
};

struct world {
    uint64_t seed;
    struct person people[PEOPLE];
    int64_t links[LINKS][2];
    float x[PEOPLE][TIMES][ATTRIBUTES];
    uint8_t y[PEOPLE][TIMES];
};

/* ------------------------------------------------------------------------- friends */

static bool are_friends(const struct person *p, int other)
{
    for (unsigned i = 0; i < p->friend_count; i++)
        if (p->friends[i] == other)
            return true;
    return false;
}

static bool add_link(struct world *w, int count, int a, int b)
{
    struct person *p = &w->people[a], *q = &w->people[b];
    if (a == b || p->friend_count == FRIENDS || q->friend_count == FRIENDS ||
        are_friends(p, b))
        return false;
    p->friends[p->friend_count++] = b;
    q->friends[q->friend_count++] = a;
    w->links[count][0] = a < b ? a : b;
    w->links[count][1] = a < b ? b : a;
    return true;
}

/* A circle first, so that everyone has two friends however few are used; then mostly
 * neighbours in it, and some people from anywhere. */
static void draw_links(struct world *w)
{
    struct dpf_seeded r;
    int count = 0;
    dpf_seeded_init(&r, "synth-wellness links", w->seed, 0);
    for (; count < PEOPLE; count++)
        add_link(w, count, count, (count + 1) % PEOPLE);
    while (count < LINKS) {
        int a = (int)dpf_seeded_below(&r, PEOPLE);
        bool near = dpf_seeded_unit(&r) < .85;
        int b = near ? (a + 1 + (int)dpf_seeded_below(&r, NEAR)) % PEOPLE
                     : (int)dpf_seeded_below(&r, PEOPLE);
        count += add_link(w, count, a, b);
    }
}

/* ------------------------------------------------------------------------ the rule */

static double scaled(const struct world *w, int u, int t, int attribute)
{
    double lo = attributes[attribute].lo, hi = attributes[attribute].hi;
    return ((double)w->x[u][t][attribute] - lo) / (hi - lo);
}

static double psi(const struct world *w, int v, int u, int t)
{
    uint64_t rises = 0, followed = 0;
    for (int s = t - HISTORY + 1; s <= t; s++) {
        rises += w->y[v][s - 1];
        followed += w->y[v][s - 1] && w->y[u][s];
    }
    return dpf_influence_psi(followed, rises);
}

static double influence(const struct world *w, int u, int t)
{
    const struct person *p = &w->people[u];
    double sum = 0;
    for (unsigned i = 0; i < p->friend_count; i++)
        sum += psi(w, p->friends[i], u, t);
    return sum / p->friend_count;
}

/* Above 0: an increase at t + 1 is likely. */
static double inclination(const struct world *w, int u, int t)
{
    double habit = 0, written = 0;
    for (int s = t - HISTORY + 1; s <= t; s++) {
        habit += scaled(w, u, s, EXERCISING) / HISTORY;
        written += (scaled(w, u, s, ENCOURAGEMENT) - scaled(w, u, s, HECKLING)) / HISTORY;
    }
    double now = scaled(w, u, t, DISTANCE);
    double trend = now - scaled(w, u, t - HISTORY + 1, DISTANCE);
    return DPF_SYNTH_WELLNESS_LEVEL * (.5 - now) + DPF_SYNTH_WELLNESS_TREND * trend +
           DPF_SYNTH_WELLNESS_HABIT * (habit - .5) +
           DPF_SYNTH_WELLNESS_WRITTEN * written +
           DPF_SYNTH_WELLNESS_FRIENDSHIP * (influence(w, u, t) - .5);
}

static bool draw_increase(const struct world *w, int u, int t, struct dpf_seeded *r)
{
    double chance = .5;
    if (t > HISTORY)
        chance = inclination(w, u, t - 1) > 0 ? DPF_SYNTH_WELLNESS_ACCURACY
                                              : 1 - DPF_SYNTH_WELLNESS_ACCURACY;
    return t > 0 && dpf_seeded_unit(r) < chance;
}

/* ---------------------------------------------------------------------- a day's row */

static void set(float *x, int attribute, double value)
{
    x[attribute] =
        (float)dpf_synth_clamp(value, attributes[attribute].lo, attributes[attribute].hi);
}

static void set_whole(float *x, int attribute, double value)
{
    set(x, attribute, floor(value + .5));
}

static void draw_behaviour(struct person *p, float *x, struct dpf_seeded *r)
{
    double goals = floor(1 + 3 * p->mood + .8 * dpf_synth_bell(r) + .5);
    set_whole(x, COMPETITIONS, 2.5 * p->mood + .8 * dpf_synth_bell(r));
    set(x, EXERCISING, dpf_seeded_unit(r) < .1 + .8 * p->effort);
    set(x, GOALS_SET, goals);
    set_whole(x, GOALS_ACHIEVED, goals * p->effort);
    set(x, DISTANCE, 20 * p->effort);
    set(x, SPEED, 3 + 5 * p->effort + .4 * dpf_synth_bell(r));
}

static void draw_inbox(struct person *p, float *x, struct dpf_seeded *r)
{
    for (int k = ENCOURAGEMENT; k <= PHYSICAL; k++) {
        double mean = k == ENCOURAGEMENT ? 8 * p->mood
                      : k == HECKLING    ? 8 * (1 - p->mood)
                                         : .5 + .1 * (k - ENCOURAGEMENT) + p->mood;
        set_whole(x, k, mean + .9 * dpf_synth_bell(r));
    }
}

static void draw_body(struct person *p, float *x, struct dpf_seeded *r)
{
    double bmi = .2 * (.5 - p->effort) + .02 * dpf_synth_bell(r);
    double wellness = .1 * (100 * p->effort - p->wellness) + dpf_synth_bell(r);
    p->bmi = dpf_synth_clamp(p->bmi + bmi, 18, 50);
    p->wellness = dpf_synth_clamp(p->wellness + wellness, 0, 100);
    set(x, WELLNESS, p->wellness);
    set(x, BMI, p->bmi);
    set(x, BMI_SLOPE, bmi);
    set(x, WELLNESS_SLOPE, wellness);
}

static void draw_day(struct world *w, int u, int t)
{
    struct person *p = &w->people[u];
    struct dpf_seeded r;
    dpf_seeded_init(&r, "synth-wellness", w->seed, (uint64_t)t * PEOPLE + (uint64_t)u);
    if (t == 0) {
        p->effort = dpf_seeded_range(&r, .2, .8);
        p->mood = dpf_seeded_range(&r, .2, .8);
        p->bmi = dpf_seeded_range(&r, 26, 40);
        p->wellness = dpf_seeded_range(&r, 30, 70);
    }
    bool up = draw_increase(w, u, t, &r);
    double step = dpf_seeded_range(&r, .10, .30);
    if (t > 0) {
        p->effort = up ? p->effort + step * (1 - p->effort) : p->effort * (1 - step);
        p->mood = dpf_synth_clamp(
            p->mood + .06 * (.5 - p->mood) + .06 * dpf_synth_bell(&r), 0, 1);
    }
    w->y[u][t] = up;
    draw_behaviour(p, w->x[u][t], &r);
    draw_inbox(p, w->x[u][t], &r);
    draw_body(p, w->x[u][t], &r);
}

static struct world *make_world(uint64_t seed)
{
    struct world *w = dpf_calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->seed = seed;
    draw_links(w);
    for (int t = 0; t < TIMES; t++)
        for (int u = 0; u < PEOPLE; u++)
            draw_day(w, u, t);
    return w;
}

/* ----------------------------------------------------------------------- the parts */

struct wellness {
    struct dpf_source source; /* first, because the operations cast back */
    struct world *world;
    uint64_t next;
    /* Write record `index` at `row` of the batch. */
    void (*put)(const struct world *w, struct dpf_batch *b, uint64_t row, uint64_t index);
};

static void put_keys(struct dpf_batch *b, uint64_t row, uint64_t person, uint64_t time)
{
    ((int64_t *)b->tensor[0].data)[row] = (int64_t)person;
    ((int64_t *)b->tensor[1].data)[row] = (int64_t)time;
}

static void put_day(const struct world *w, struct dpf_batch *b, uint64_t row,
                    uint64_t index)
{
    uint64_t u = index / TIMES, t = index % TIMES;
    put_keys(b, row, u, t);
    memcpy((float *)b->tensor[2].data + row * ATTRIBUTES, w->x[u][t], sizeof w->x[u][t]);
    ((uint8_t *)b->tensor[3].data)[row] = w->y[u][t];
}

/* The mean of a week of 7 or 8 points. */
static float week_mean(const struct world *w, uint64_t u, uint64_t week, int attribute)
{
    uint64_t from = week * TIMES / WEEKS, to = (week + 1) * TIMES / WEEKS;
    double sum = 0;
    for (uint64_t t = from; t < to; t++)
        sum += (double)w->x[u][t][attribute];
    return (float)(sum / (double)(to - from));
}

static void put_week(const struct world *w, struct dpf_batch *b, uint64_t row,
                     uint64_t index)
{
    uint64_t u = index / WEEKS, week = index % WEEKS;
    float *x = (float *)b->tensor[2].data + row * ATTRIBUTES;
    put_keys(b, row, u, week);
    for (int i = 0; i < ATTRIBUTES; i++)
        x[i] = week_mean(w, u, week, i);
    ((uint8_t *)b->tensor[3].data)[row] =
        week > 0 && x[DISTANCE] > week_mean(w, u, week - 1, DISTANCE);
}

static void put_link(const struct world *w, struct dpf_batch *b, uint64_t row,
                     uint64_t index)
{
    memcpy((int64_t *)b->tensor[0].data + 2 * row, w->links[index],
           sizeof w->links[index]);
}

static enum dpf_status wellness_fill(struct dpf_source *source, struct dpf_batch *b,
                                     uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    struct wellness *s = (struct wellness *)source;
    uint64_t left = source->header.records - s->next, rows = want < left ? want : left;
    (void)e;
    for (uint64_t i = 0; i < rows; i++)
        s->put(s->world, b, i, s->next++);
    *filled = rows;
    return DPF_OK;
}

static void wellness_destroy(struct dpf_source *source)
{
    struct wellness *s = (struct wellness *)source;
    free(s->world);
    free(s);
}

static enum dpf_status add_bounded(struct dpf_header *h, const char *name,
                                   enum dpf_dtype dtype, const struct dpf_shape *shape,
                                   double hi, struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_add_field(h, name, dtype, shape);
    return f ? dpf_field_set_bounds(f, 0, hi, e) : dpf_fail_memory(e);
}

static enum dpf_status add_table(struct dpf_header *h, uint64_t times,
                                 struct dpf_error *e)
{
    const struct dpf_shape scalar = {0}, row = {1, {ATTRIBUTES}};
    enum dpf_status status = add_bounded(h, "person", DPF_I64, &scalar, PEOPLE - 1, e);
    if (status == DPF_OK)
        status = add_bounded(h, "time", DPF_I64, &scalar, (double)(times - 1), e);
    struct dpf_field *x =
        status == DPF_OK ? dpf_header_add_field(h, "x", DPF_F32, &row) : NULL;
    if (x)
        status = dpf_field_declare_features(x, ATTRIBUTES, e);
    for (size_t i = 0; x && status == DPF_OK && i < ATTRIBUTES; i++) {
        x->bounds.lo[i] = attributes[i].lo;
        x->bounds.hi[i] = attributes[i].hi;
        status = dpf_field_name_feature(x, attributes[i].name, e);
    }
    struct dpf_field *y =
        status == DPF_OK ? dpf_header_add_field(h, "y", DPF_U8, &scalar) : NULL;
    if (y)
        y->classes = 2;
    return status;
}

static enum dpf_status declare(struct wellness *s, enum dpf_synth_wellness_part part,
                               struct dpf_error *e)
{
    const struct dpf_shape pair = {1, {2}};
    struct dpf_header *h = &s->source.header;
    h->has_records = true;
    switch (part) {
    case DPF_SYNTH_WELLNESS_DAILY:
        h->records = (uint64_t)PEOPLE * TIMES;
        s->put = put_day;
        return add_table(h, TIMES, e);
    case DPF_SYNTH_WELLNESS_WEEKLY:
        h->records = (uint64_t)PEOPLE * WEEKS;
        s->put = put_week;
        return add_table(h, WEEKS, e);
    case DPF_SYNTH_WELLNESS_FRIEND_LINKS:
        h->records = LINKS;
        s->put = put_link;
        return add_bounded(h, "link", DPF_I64, &pair, PEOPLE - 1, e);
    }
    return dpf_fail(e, DPF_USAGE, "there is no such part");
}

enum dpf_status dpf_synth_wellness_open(uint64_t seed, enum dpf_synth_wellness_part part,
                                        struct dpf_source **take, struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {.fill = wellness_fill,
                                              .destroy = wellness_destroy};
    struct wellness *s = dpf_calloc(1, sizeof *s);
    if (!s)
        return dpf_fail_memory(e);
    s->source.ops = &ops;
    s->world = make_world(seed);
    enum dpf_status status = s->world ? declare(s, part, e) : dpf_fail_memory(e);
    struct dpf_source *source = &s->source;
    if (status == DPF_OK)
        *take = source;
    else
        dpf_source_destroy(&source);
    return status;
}

static const char *const parts[] = {[DPF_SYNTH_WELLNESS_DAILY] = "daily",
                                    [DPF_SYNTH_WELLNESS_WEEKLY] = "weekly",
                                    [DPF_SYNTH_WELLNESS_FRIEND_LINKS] = "links",
                                    NULL};

static enum dpf_status open_wellness(const struct dpf_load_request *q,
                                     const struct dpf_part *part,
                                     struct dpf_source **take, struct dpf_error *e)
{
    int which = 0;
    while (strcmp(parts[which], part->name) != 0)
        which++;
    return dpf_synth_wellness_open(q->seed, (enum dpf_synth_wellness_part)which, take, e);
}

const struct dpf_data_set dpf_set_synth_wellness = {
    .train = PEOPLE * TIMES,
    .views = parts,
    .fields = ":daily :weekly x f32 30, :links",
    .from = "generated",
    .is_generated = true,
    .takes = DPF_TAKES("seed"),
    .open = open_wellness,
};
