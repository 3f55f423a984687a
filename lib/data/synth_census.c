/* A table of invented adults. Each attribute is drawn given those before it, in the order
 * of the functions below; the coefficients stand here and are the documentation. */
#ifdef __clang__ /* GCC knows no such pragma, and -std=c11 means the same to it */
#pragma STDC FP_CONTRACT OFF
#endif

#include "data/synth.h"

#include <math.h>

#include "data/sets.h"
#include "data/synth_common.h"

#include "base/banned.h"

static const double income_top = 400000;

enum feature {
    AGE,
    SEX, /* 1: female */
    MARRIED,
    EDUCATION, /* about years of school */
    DISABILITY,
    FOREIGN_BORN,
    HOURS, /* worked a week */
    RESIDENCE_YEARS,
    OWNER, /* of the dwelling */
    FAMILY_SIZE,
    CHILDREN, /* at home */
    AUTOMOBILES,
    FEATURES,
};
_Static_assert((int)FEATURES == (int)DPF_SYNTH_CENSUS_FEATURES, "the header counts them");

static const struct {
    const char *name;
    double lo, hi;
} features[FEATURES] = {
    [AGE] = {"age", 16, 95},
    [SEX] = {"sex", 0, 1},
    [MARRIED] = {"married", 0, 1},
    [EDUCATION] = {"education", 0, 17},
    [DISABILITY] = {"disability", 0, 1},
    [FOREIGN_BORN] = {"foreign_born", 0, 1},
    [HOURS] = {"hours", 0, 99},
    [RESIDENCE_YEARS] = {"residence_years", 0, 95},
    [OWNER] = {"owner", 0, 1},
    [FAMILY_SIZE] = {"family_size", 1, 16},
    [CHILDREN] = {"children", 0, 9},
    [AUTOMOBILES] = {"automobiles", 0, 6},
};

/* Round to a whole number inside the feature's bounds. */
static void person_set(double *p, enum feature f, double value)
{
    p[f] = dpf_synth_clamp(floor(value + .5), features[f].lo, features[f].hi);
}

static double draw_chance(struct dpf_seeded *r, double probability)
{
    return dpf_seeded_unit(r) < probability;
}

static double draw_poisson(struct dpf_seeded *r, double mean)
{
    double limit = exp(-mean), product = dpf_seeded_unit(r);
    int count = 0;
    while (product > limit) {
        product *= dpf_seeded_unit(r);
        count++;
    }
    return count;
}

/* Age, sex, where born, schooling, health: what does not depend on a household. */
static void draw_person(double *p, struct dpf_seeded *r)
{
    bool old = draw_chance(r, .18);
    double u = dpf_seeded_unit(r), v = dpf_seeded_unit(r);
    person_set(p, AGE, old ? 65 + 31 * (u < v ? u : v) : 16 + 49 * u);
    person_set(p, SEX, draw_chance(r, .51));
    person_set(p, FOREIGN_BORN, draw_chance(r, .15));
    double school =
        13.2 - .025 * (p[AGE] - 45) - 1.2 * p[FOREIGN_BORN] + 2.6 * dpf_seeded_normal(r);
    double most = p[AGE] - 5; /* nobody of 16 has finished college */
    person_set(p, EDUCATION, school < most ? school : most);
    double ill = .03 + .005 * fmax(p[AGE] - 40, 0) - .006 * (p[EDUCATION] - 12);
    person_set(p, DISABILITY, draw_chance(r, dpf_synth_clamp(ill, .01, .6)));
}

static void draw_household(double *p, struct dpf_seeded *r)
{
    double age = p[AGE];
    double marry = dpf_synth_clamp(.045 * (age - 18), 0, .65) - .012 * fmax(age - 70, 0) -
                   .10 * p[DISABILITY];
    person_set(p, MARRIED, draw_chance(r, dpf_synth_clamp(marry, 0, 1)));
    double fertile = age < 38 ? (age - 17) / 21 : (62 - age) / 24;
    double mean = (p[MARRIED] ? 1.7 : .45) * dpf_synth_clamp(fertile, 0, 1);
    person_set(p, CHILDREN, draw_poisson(r, mean));
    double others = draw_poisson(r, age < 24 ? 1.9 : .25 + .35 * p[FOREIGN_BORN]);
    person_set(p, FAMILY_SIZE, 1 + p[MARRIED] + p[CHILDREN] + others);
}

static void draw_work(double *p, struct dpf_seeded *r)
{
    double age = p[AGE], chance = age < 18   ? .30
                                  : age < 65 ? .80
                                             : .42 - .013 * (age - 65);
    chance += .012 * (p[EDUCATION] - 12) - .40 * p[DISABILITY] -
              .05 * p[SEX] * fmin(p[CHILDREN], 3);
    bool works = draw_chance(r, dpf_synth_clamp(chance, .01, .97));
    double hours = 41 - 4 * p[SEX] -
                   (age < 22   ? 14
                    : age < 65 ? 0
                               : 9) -
                   4 * p[DISABILITY] + 9 * dpf_seeded_normal(r);
    person_set(p, HOURS, works ? fmax(hours, 1) : 0);
}

static void draw_home(double *p, struct dpf_seeded *r)
{
    double age = p[AGE], years = -(2.5 + .20 * (age - 16)) * log(1 - dpf_seeded_unit(r));
    person_set(p, RESIDENCE_YEARS, years < age ? floor(years) : age);
    double own = .25 + .007 * (age - 20) + .20 * p[MARRIED] + .02 * (p[EDUCATION] - 12) +
                 .006 * p[RESIDENCE_YEARS] - .10 * p[FOREIGN_BORN];
    person_set(p, OWNER, draw_chance(r, dpf_synth_clamp(own, .03, .93)));
    double cars = .45 + .55 * p[MARRIED] + .35 * p[OWNER] + .010 * p[HOURS] +
                  .10 * (p[FAMILY_SIZE] - 1) - .25 * p[DISABILITY];
    person_set(p, AUTOMOBILES, draw_poisson(r, fmax(cars, .1)));
}

/* Log-normal, with zeros; whole dollars, and top-coded as published tables are. */
static double draw_income(const double *p, struct dpf_seeded *r)
{
    double age = p[AGE], school = p[EDUCATION] - 12, scale, noise = dpf_seeded_normal(r);
    double none = p[HOURS] > 0 ? .01 : age < 65 ? .55 : .06;
    bool zero = draw_chance(r, none);
    if (p[HOURS] > 0) {
        double prime = (fmin(age, 62) - 48) / 30;
        scale = 10.62 + .095 * school + .85 * log(p[HOURS] / 40) - .75 * prime * prime -
                .22 * p[SEX] + .10 * p[MARRIED] - .08 * p[FOREIGN_BORN] -
                .18 * p[DISABILITY] + .12 * p[OWNER] + .04 * p[AUTOMOBILES] + .50 * noise;
    } else {
        scale = (age < 65 ? 9.0 : 9.8) + .08 * school + .15 * p[OWNER] + .60 * noise;
    }
    return zero ? 0 : dpf_synth_clamp(floor(exp(scale) + .5), 0, income_top);
}

static void make_person(struct dpf_synth *s, uint64_t index, void *x, void *y)
{
    struct dpf_seeded r;
    double p[FEATURES] = {0};
    float *out = x;
    dpf_seeded_init(&r, "synth-census", s->seed, index);
    draw_person(p, &r);
    draw_household(p, &r);
    draw_work(p, &r);
    draw_home(p, &r);
    *(float *)y = (float)draw_income(p, &r);
    for (int i = 0; i < FEATURES; i++)
        out[i] = (float)p[i];
}

/* A name and a pair of bounds for each feature, in place of the pair for all. */
static enum dpf_status declare_features(struct dpf_field *f, struct dpf_error *e)
{
    enum dpf_status status = dpf_field_declare_features(f, FEATURES, e);
    for (int i = 0; status == DPF_OK && i < FEATURES; i++) {
        f->bounds.lo[i] = features[i].lo;
        f->bounds.hi[i] = features[i].hi;
        status = dpf_field_name_feature(f, features[i].name, e);
    }
    return status;
}

enum dpf_status dpf_synth_census_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e)
{
    const struct dpf_shape person = {1, {FEATURES}}, scalar = {0};
    struct dpf_synth *s = NULL;
    enum dpf_status status = dpf_synth_new(seed, first, count, make_person, 0, &s, e);
    if (status != DPF_OK)
        return status;
    status = dpf_synth_add_field(s, "x", DPF_F32, &person, 0, 0, 1, e);
    if (status == DPF_OK)
        status = declare_features(&s->source.header.fields[0], e);
    if (status == DPF_OK)
        status = dpf_synth_add_field(s, "y", DPF_F32, &scalar, 0, 0, income_top, e);
    return dpf_synth_give(s, status, take);
}

static enum dpf_status open_census(const struct dpf_load_request *q,
                                   const struct dpf_part *part, struct dpf_source **take,
                                   struct dpf_error *e)
{
    return dpf_synth_census_open(q->seed, part->first, part->count, take, e);
}

const struct dpf_data_set dpf_set_synth_census = {
    .train = 10000,
    .test = 2000,
    .fields = "x f32 12, y f32",
    .from = "generated",
    .is_generated = true,
    .takes = DPF_TAKES("count", "seed"),
    .open = open_census,
};
