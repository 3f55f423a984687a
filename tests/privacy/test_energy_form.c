/* The polynomial energy that is released with noise: what one record adds, against brute
 * force over all pairs of small records and in exact integers; moments against plain
 * loops; coefficients against the energy itself; the size of the noise; what the paper's
 * variant may claim; hostile records and hostile streams. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "exchange/energy_stream.h"
#include "harness.h"
#include "privacy/energy_form.h"
#include "privacy/grid.h"
#include "privacy/tradeoff.h"
#include "random/seeded.h"
#include "told.h"

#include "base/banned.h"

const char dpf_suite[] = "energy form";

enum { DEGREE = DPF_MOMENTS_MOST_DEGREE, MOST_VALUES = 784 };

static struct dpf_seeded dice;

static const float hostile[] = {
    0,          1,         0.5F,    0.3F,       -0.0F,  NAN,     -NAN,
    INFINITY,   -INFINITY, 1e38F,   -1e38F,     1e-38F, -1e-38F, FLT_MAX,
    -FLT_MAX,   1e-45F,    -1e-45F, 1.0000001F, 7,      -0.25F,  0.99999994F,
    0.9999981F, 0.25F,     FLT_MIN, 2,          0.75F,  0.125F,  1.5F};

static float within(float v)
{
    return !(v >= 0) ? 0 : v > 1 ? 1 : v;
}

/* ------------------------------------------------------------------------ geometries */

struct shape {
    size_t channels, height, width, kernel_height, kernel_width, stride, conditions;
};
static const struct shape shapes[] = {
    {1, 1, 1, 1, 1, 1, 0}, {1, 1, 3, 1, 3, 1, 0}, {1, 1, 5, 1, 2, 2, 0},
    {1, 2, 2, 2, 2, 1, 0}, {1, 4, 5, 2, 1, 1, 0}, {2, 3, 3, 1, 2, 1, 0},
    {3, 2, 2, 1, 1, 1, 0}, {1, 7, 7, 2, 2, 3, 0}, {2, 4, 4, 1, 1, 4, 0},
    {1, 6, 6, 1, 1, 1, 0}, {2, 1, 2, 1, 1, 1, 0}, {1, 1, 3, 1, 1, 1, 2},
    {1, 3, 2, 2, 1, 1, 1}};

static struct dpf_patch_plan patches_of(const struct shape *s, int degree)
{
    return (struct dpf_patch_plan){.channels = s->channels,
                                   .height = s->height,
                                   .width = s->width,
                                   .kernel_height = s->kernel_height,
                                   .kernel_width = s->kernel_width,
                                   .stride = s->stride,
                                   .conditions = s->conditions,
                                   .degree = degree};
}

static size_t values_of(const struct dpf_patch_plan *p)
{
    return p->channels * p->height * p->width + p->conditions;
}

/* alpha_l = 1 / (l + 1), signs in turn, none of l = 2. */
static struct dpf_energy_plan plan_of(enum dpf_energy_variant variant,
                                      const struct shape *s, int degree)
{
    struct dpf_energy_plan plan = {.variant = variant,
                                   .patches = patches_of(s, degree),
                                   .epsilon = 1,
                                   .delta = variant == DPF_ENERGY_GAUSSIAN ? 1e-6 : 0};
    for (int l = 0; l < degree; l++)
        plan.alpha[l] = l == 2 ? 0 : (l % 2 ? -1. : 1.) / (l + 1);
    return plan;
}

/* ------------------------------------------------------------------- moments, plainly */

/* One value of the patch at a position, 0 being the constant; in steps. */
static int64_t patch_value(const struct dpf_patch_moments *m, const float *record,
                           size_t position, size_t at)
{
    const struct dpf_patch_plan *p = &m->plan;
    if (at == 0)
        return (int64_t)1 << m->bits;
    size_t window = p->kernel_height * p->kernel_width, inside = (at - 1) % window;
    size_t y = position / m->columns * p->stride + inside / p->kernel_width;
    size_t x = position % m->columns * p->stride + inside % p->kernel_width;
    size_t channel = (at - 1) / window;
    size_t from = channel < p->channels
                      ? (channel * p->height + y) * p->width + x
                      : values_of(p) - p->conditions + at - 1 - p->channels * window;
    float v = within(record[from]);
    return llrint(ldexp((double)v, m->bits));
}

/* All sorted tuples in lexicographic order; `take` gets each. */
static size_t each_tuple(size_t variables, int degree, size_t *a, int filled,
                         void (*take)(void *context, size_t number, const size_t *a),
                         void *context, size_t number)
{
    if (filled == degree) {
        take(context, number, a);
        return number + 1;
    }
    for (size_t v = filled ? a[filled - 1] : 0; v < variables; v++) {
        a[filled] = v;
        number = each_tuple(variables, degree, a, filled + 1, take, context, number);
    }
    return number;
}

struct moment_check {
    const struct dpf_patch_moments *m;
    const float *record;
    const double *got;
    size_t wrong;
};

static void check_moment(void *context, size_t number, const size_t *a)
{
    struct moment_check *c = context;
    int64_t sum = 0;
    for (size_t i = 0; i < c->m->positions; i++) {
        int64_t product = 1;
        for (int k = 0; k < c->m->plan.degree; k++)
            product *= patch_value(c->m, c->record, i, a[k]);
        sum += product;
    }
    c->wrong += (double)sum != c->got[number] || sum < 0 || sum >= (int64_t)1 << 53;
}

static void hostile_record(float *record, size_t values, int trial)
{
    for (size_t i = 0; i < values; i++)
        record[i] = trial == 0   ? 0
                    : trial == 1 ? 1
                    : trial == 2 ? 0.7F
                    : trial == 3 ? hostile[i % COUNT(hostile)]
                    : trial == 4 ? (float)dpf_seeded_unit(&dice)
                                 : hostile[dpf_seeded_below(&dice, COUNT(hostile))];
}

static size_t wrong_moments(const struct shape *s, int degree)
{
    struct dpf_patch_moments m;
    struct dpf_patch_room room;
    struct dpf_patch_plan plan = patches_of(s, degree);
    float record[MOST_VALUES];
    size_t a[DEGREE], wrong = 0;
    CU_ASSERT_FATAL(dpf_patch_moments_init(&m, &plan, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_patch_room_init(&room, &m, NULL) == DPF_OK);
    /* no sum over positions leaves the integers that doubles hold */
    CU_ASSERT((double)m.positions * ldexp(1, m.bits * degree) < 0x1p53);
    for (int trial = 0; trial < 8; trial++) {
        hostile_record(record, values_of(&plan), trial);
        uint64_t outside = 0;
        for (size_t i = 0; i < values_of(&plan); i++)
            outside += !(record[i] >= 0 && record[i] <= 1);
        CU_ASSERT(dpf_patch_moments_of(&m, record, &room) == outside);
        struct moment_check c = {&m, record, room.moments, 0};
        CU_ASSERT(each_tuple(m.variables, degree, a, 0, check_moment, &c, 0) == m.count);
        wrong += c.wrong;
    }
    dpf_patch_room_release(&room);
    dpf_patch_moments_release(&m);
    return wrong;
}

static void test_moments(void)
{
    static const struct shape large[] = {{1, 28, 28, 5, 5, 1, 0},
                                         {3, 16, 16, 3, 3, 1, 0}};
    dpf_seeded_init(&dice, "test-energy-form", 1, 0);
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int degree = 2; degree <= 8; degree++)
            CU_ASSERT(wrong_moments(&shapes[i], degree) == 0);
    for (int degree = 9; degree <= DEGREE; degree++)
        CU_ASSERT(wrong_moments(&shapes[2], degree) == 0);
    for (size_t i = 0; i < COUNT(large); i++)
        for (int degree = 2; degree <= 3; degree++)
            CU_ASSERT(wrong_moments(&large[i], degree) == 0);
}

/* ------------------------------------------------------------- what one record adds */

/* The integers that records add to empty sums. */
static void integers_of(const struct dpf_energy_form *f, struct dpf_energy_worker *w,
                        const float *records, size_t count, int64_t *out)
{
    memset(w->sums, 0, f->moments.count * sizeof *w->sums);
    dpf_energy_add(f, w, records, count);
    memcpy(out, w->sums, f->moments.count * sizeof *out);
}

static uint64_t distance(const int64_t *a, const int64_t *b, size_t count, bool l2)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t one = a[i] - (b ? b[i] : 0);
        sum += l2 ? (uint64_t)(one * one) : (uint64_t)llabs(one);
    }
    return sum;
}

/* What two outputs cost at most, as the noise is: the epsilon of Laplace noise, the mu of
 * Gaussian noise. `apart` is an L1 norm, or the square of an L2 norm. */
static long double cost_of(const struct dpf_energy_form *f, uint64_t apart)
{
    bool l2 = f->plan.variant == DPF_ENERGY_GAUSSIAN;
    return l2 ? sqrtl((long double)apart) / (long double)f->gaussian.noise_stddev
              : (long double)apart / (long double)f->laplace.scale;
}

static long double cost_proven(const struct dpf_energy_form *f)
{
    return f->plan.variant == DPF_ENERGY_GAUSSIAN
               ? 1 / (long double)f->gaussian.noise_multiplier
               : (long double)f->laplace.epsilon;
}

static const float few[] = {0, 0.26F, 0.5F, 1};
enum { FEW = COUNT(few), PAIRED = 4 };

/* All records of a few values each, and all pairs of them. Returns the largest cost as a
 * part of the proven one. */
static double all_pairs(const struct dpf_energy_plan *plan)
{
    struct dpf_energy_form f;
    struct dpf_energy_worker w;
    size_t values = values_of(&plan->patches), records = 1, wrong = 0;
    uint64_t farthest = 0, most = 0;
    CU_ASSERT_FATAL(dpf_energy_form_init(&f, plan, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_energy_worker_init(&w, &f, NULL) == DPF_OK);
    bool l2 = plan->variant == DPF_ENERGY_GAUSSIAN;
    for (size_t i = 0; i < values; i++)
        records *= values > PAIRED ? 2 : FEW;
    int64_t *all = calloc(records * f.moments.count, sizeof *all);
    CU_ASSERT_FATAL(all != NULL);
    for (size_t n = 0; n < records; n++) {
        float record[MOST_VALUES];
        for (size_t i = 0, rest = n; i < values; i++, rest /= FEW)
            record[i] = values > PAIRED ? (float)(n >> i & 1) : few[rest % FEW];
        integers_of(&f, &w, record, 1, all + n * f.moments.count);
        for (size_t i = 0; i < f.moments.count; i++)
            wrong += all[n * f.moments.count + i] < 0;
    }
    for (size_t i = 0; i < records; i++) {
        const int64_t *one = all + i * f.moments.count;
        uint64_t alone = distance(one, NULL, f.moments.count, l2);
        most = alone > most ? alone : most;
        for (size_t j = 0; plan->replace_one && j < i; j++) {
            uint64_t d = distance(one, all + j * f.moments.count, f.moments.count, l2);
            farthest = d > farthest ? d : farthest;
        }
    }
    CU_ASSERT(wrong == 0);
    BELOW("norm", l2 ? sqrt((double)most) : (double)most, f.bound);
    BELOW("bound", f.bound, 0x1p25);
    long double cost = cost_of(&f, plan->replace_one ? farthest : most);
    double part = (double)(cost / cost_proven(&f));
    free(all);
    dpf_energy_worker_release(&w);
    dpf_energy_form_release(&f);
    return part;
}

static void test_all_pairs(void)
{
    static const double clips[] = {0, 1e30, 1, 0.05, 1e-3};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int degree = 2; degree <= 5 && shapes[i].height < 7; degree++)
            for (int which = 0; which < 4; which++)
                for (size_t c = 0; c < COUNT(clips); c++) {
                    struct dpf_energy_plan plan =
                        plan_of(which & 1 ? DPF_ENERGY_GAUSSIAN : DPF_ENERGY_SOUND,
                                &shapes[i], degree);
                    if (values_of(&plan.patches) > 9)
                        continue;
                    plan.replace_one = which & 2;
                    plan.clip = clips[c];
                    double part = all_pairs(&plan);
                    BELOW("cost", part, 1);
                    if (!plan.replace_one) /* a record of ones has the largest norm */
                        ABOVE("cost", part, 0.99);
                }
}

/* The largest degree, on vectors and pictures of a value. */
static void test_all_pairs_of_largest_degree(void)
{
    static const size_t small[] = {0, 2, 6};
    for (size_t i = 0; i < COUNT(small); i++)
        for (int degree = 6; degree <= DEGREE; degree++)
            for (int which = 0; which < 4; which++) {
                struct dpf_energy_plan plan =
                    plan_of(which & 1 ? DPF_ENERGY_GAUSSIAN : DPF_ENERGY_SOUND,
                            &shapes[small[i]], degree);
                if (values_of(&plan.patches) > 5)
                    continue;
                plan.replace_one = which & 2;
                BELOW("cost", all_pairs(&plan), 1);
            }
}

/* What is below the bound is the record's moments themselves, in steps; what is cut is
 * never more than they are. */
static void check_cut(const struct dpf_energy_form *f, struct dpf_energy_worker *w,
                      const float *record, const int64_t *sums)
{
    bool l2 = f->plan.variant == DPF_ENERGY_GAUSSIAN;
    double norm = 0;
    dpf_patch_moments_of(&f->moments, record, &w->room);
    double *v = w->room.moments;
    for (size_t i = 0; i < f->moments.count; i++) {
        v[i] = floor(ldexp(v[i], -f->shift));
        norm += l2 ? v[i] * v[i] : v[i];
    }
    bool whole = (l2 ? sqrt(norm) : norm) < f->bound * (1 - 2e-9);
    size_t wrong = 0;
    for (size_t i = 0; i < f->moments.count; i++)
        wrong += whole ? (double)sums[i] != v[i] : (double)sums[i] > v[i];
    CU_ASSERT(wrong == 0);
}

/* Larger pictures, hostile records, every clip and epsilon that is accepted: the bound
 * holds, and integers stay where they are exact. */
static void hold_bound(const struct dpf_energy_plan *plan)
{
    struct dpf_energy_form f;
    struct dpf_energy_worker w;
    struct dpf_error e;
    float record[MOST_VALUES];
    enum dpf_status status = dpf_energy_form_init(&f, plan, &e);
    bool l2 = plan->variant == DPF_ENERGY_GAUSSIAN;
    if (status != DPF_OK) {
        CU_ASSERT(status == DPF_USAGE && f.sums == NULL);
        return;
    }
    CU_ASSERT_FATAL(dpf_energy_worker_init(&w, &f, NULL) == DPF_OK);
    int64_t *sums = calloc(f.moments.count, sizeof *sums);
    CU_ASSERT_FATAL(sums != NULL);
    CU_ASSERT(f.shift >= 0 && f.bound >= 1 && f.bound == floor(f.bound));
    BELOW("bound", f.bound, 0x1p25);
    double scale = l2 ? f.gaussian.noise_stddev : f.laplace.scale;
    BELOW("noise", scale, 0x1p36);
    for (int trial = 0; trial < 8; trial++) {
        hostile_record(record, values_of(&plan->patches), trial);
        integers_of(&f, &w, record, 1, sums);
        uint64_t norm = distance(sums, NULL, f.moments.count, l2);
        BELOW("norm", (double)norm, l2 ? f.bound * f.bound : f.bound);
        check_cut(&f, &w, record, sums);
        /* two records with no moment in common */
        long double apart = (long double)f.bound * (!plan->replace_one ? 1
                                                    : l2               ? sqrtl(2)
                                                                       : 2);
        CU_ASSERT(apart / (long double)scale <= cost_proven(&f));
    }
    free(sums);
    dpf_energy_worker_release(&w);
    dpf_energy_form_release(&f);
}

static void test_hostile_records(void)
{
    static const double clips[] = {0, 1e-30, 1e-12, 1e-9, 1e-6, 1e-3, 0.3, 1, 10, 1e30};
    static const double epsilons[] = {1e-9, 1e-6, 1e-3, 1, 1e3, 1e6};
    dpf_seeded_init(&dice, "test-energy-form", 2, 0);
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int degree = 2; degree <= 6; degree++)
            for (int which = 0; which < 4; which++)
                for (size_t k = 0; k < COUNT(clips) * COUNT(epsilons); k++) {
                    struct dpf_energy_plan plan =
                        plan_of(which & 1 ? DPF_ENERGY_GAUSSIAN : DPF_ENERGY_SOUND,
                                &shapes[i], degree);
                    plan.replace_one = which & 2;
                    plan.clip = clips[k % COUNT(clips)];
                    plan.epsilon = epsilons[k / COUNT(clips)];
                    if (degree > 4 && plan.epsilon != 1)
                        continue;
                    hold_bound(&plan);
                }
}

/* 2^25 records of ones fit 64 bits, with the noise, whatever the variant. */
static void test_largest_sums(void)
{
    static const struct shape large[] = {{1, 1, 1, 1, 1, 1, 0},
                                         {1, 3000, 3000, 1, 1, 1, 0},
                                         {1, 65536, 32768, 2, 2, 1, 0}};
    for (size_t i = 0; i < COUNT(large); i++)
        for (int degree = 2; degree <= DEGREE; degree++)
            for (int v = DPF_ENERGY_PAPER; v <= DPF_ENERGY_PLAIN; v++) {
                struct dpf_energy_form f;
                struct dpf_energy_plan plan =
                    plan_of((enum dpf_energy_variant)v, &large[i], degree);
                if (dpf_energy_form_init(&f, &plan, NULL) != DPF_OK)
                    continue;
                bool cut = v == DPF_ENERGY_SOUND || v == DPF_ENERGY_GAUSSIAN;
                double whole = (double)f.moments.positions *
                               ldexp(1, f.moments.bits * degree - f.shift);
                CU_ASSERT(f.moments.bits >= 2);
                BELOW("a moment", cut ? f.bound : whole, 0x1p36);
                dpf_energy_form_release(&f);
            }
}

/* ------------------------------------------------------------------ order and threads */

struct crowd {
    const struct dpf_energy_form *form;
    struct dpf_energy_worker *workers;
    const float *records;
    const size_t *order;
    size_t count, workers_count;
};

static void take_turn(void *context, int number)
{
    const struct crowd *c = context;
    size_t values = values_of(&c->form->plan.patches);
    for (size_t i = (size_t)number; i < c->count; i += c->workers_count)
        dpf_energy_add(c->form, &c->workers[number], c->records + c->order[i] * values,
                       1);
}

enum { CROWD = 300 };

static void sum_crowd(struct dpf_energy_form *f, const float *records, int threads,
                      bool backwards)
{
    struct dpf_energy_worker workers[8];
    struct dpf_thread_pool pool;
    size_t order[CROWD];
    for (size_t i = 0; i < CROWD; i++)
        order[i] = backwards ? CROWD - 1 - i : i;
    for (int i = 0; i < threads; i++)
        CU_ASSERT_FATAL(dpf_energy_worker_init(&workers[i], f, NULL) == DPF_OK);
    struct crowd c = {f, workers, records, order, CROWD, (size_t)threads};
    CU_ASSERT_FATAL(dpf_thread_pool_init(&pool, threads, NULL) == DPF_OK);
    dpf_thread_pool_run(&pool, take_turn, &c);
    dpf_thread_pool_release(&pool);
    for (int i = 0; i < threads; i++) {
        int from = backwards ? threads - 1 - i : i;
        dpf_energy_join(f, &workers[from]);
        dpf_energy_worker_release(&workers[from]);
    }
}

/* The sums are the sum of what each record adds alone. */
static void test_threads(void)
{
    static const int threads[] = {1, 2, 7};
    static const struct shape s = {1, 8, 8, 3, 3, 1, 0};
    static float records[CROWD * 64];
    dpf_seeded_init(&dice, "test-energy-form", 3, 0);
    for (size_t i = 0; i < CROWD; i++)
        hostile_record(records + i * 64, 64, (int)(i % 8));
    for (int v = DPF_ENERGY_PAPER; v <= DPF_ENERGY_PLAIN; v++)
        for (int degree = 2; degree <= 4; degree++) {
            struct dpf_energy_plan plan = plan_of((enum dpf_energy_variant)v, &s, degree);
            struct dpf_energy_form alone;
            struct dpf_energy_worker w;
            plan.clip = v == DPF_ENERGY_SOUND || v == DPF_ENERGY_GAUSSIAN ? 5 : 0;
            CU_ASSERT_FATAL(dpf_energy_form_init(&alone, &plan, NULL) == DPF_OK);
            CU_ASSERT_FATAL(dpf_energy_worker_init(&w, &alone, NULL) == DPF_OK);
            size_t bytes = alone.moments.count * sizeof *alone.sums;
            for (size_t i = 0; i < CROWD; i++) {
                dpf_energy_add(&alone, &w, records + i * 64, 1);
                dpf_energy_join(&alone, &w);
            }
            for (size_t i = 0; i < 2 * COUNT(threads); i++) {
                struct dpf_energy_form f;
                CU_ASSERT_FATAL(dpf_energy_form_init(&f, &plan, NULL) == DPF_OK);
                sum_crowd(&f, records, threads[i / 2], i % 2);
                CU_ASSERT(memcmp(f.sums, alone.sums, bytes) == 0);
                CU_ASSERT(f.visible == alone.visible && f.largest == alone.largest &&
                          f.clipped == alone.clipped);
                dpf_energy_form_release(&f);
            }
            dpf_energy_worker_release(&w);
            dpf_energy_form_release(&alone);
        }
}

/* ------------------------------------------------------------ coefficients and energy */

/* Records added, then released; room for the coefficients, for free(). */
static double *release_of(struct dpf_energy_form *f, const struct dpf_energy_plan *plan,
                          const float *records, size_t count, uint64_t seed,
                          double *visible)
{
    struct dpf_energy_worker w;
    struct dpf_random r;
    CU_ASSERT_FATAL(dpf_energy_form_init(f, plan, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_energy_worker_init(&w, f, NULL) == DPF_OK);
    double *c = calloc(f->coefficients, sizeof *c);
    CU_ASSERT_FATAL(c != NULL);
    dpf_energy_add(f, &w, records, count);
    dpf_energy_join(f, &w);
    dpf_random_init_insecure(&r, "test-energy-form", seed, 0);
    CU_ASSERT(dpf_energy_release_noisy(f, &r, c, visible, NULL) == DPF_OK);
    dpf_random_release(&r);
    dpf_energy_worker_release(&w);
    return c;
}

struct polynomial {
    const double *coefficients, *w;
    int degree;
    long double sum;
};

static void add_monomial(void *context, size_t number, const size_t *a)
{
    struct polynomial *p = context;
    long double product = (long double)p->coefficients[number];
    for (int k = 0; k < p->degree; k++)
        product *= (long double)p->w[a[k]];
    p->sum += product;
}

/* The polynomial at w, from its coefficients as a reader of the stream has them. */
static long double polynomial_at(const struct dpf_energy_form *f, const double *c,
                                 const double *w)
{
    long double sum = 0;
    for (int l = 0; l < f->plan.patches.degree; l++) {
        size_t a[DEGREE];
        struct polynomial p = {c, w, l + 1, 0};
        if (f->plan.alpha[l] == 0)
            continue;
        c += each_tuple(f->moments.variables, l + 1, a, 0, add_monomial, &p, 0);
        sum += p.sum;
    }
    return sum;
}

/* - sum over records and positions of sum_l alpha_l (w.u)^(l+1); *size is the sum without
 * signs. */
static long double energy_at(const struct dpf_energy_form *f, const float *records,
                             size_t count, const double *w, long double *size)
{
    size_t values = values_of(&f->plan.patches);
    long double sum = 0;
    *size = 0;
    for (size_t n = 0; n < count; n++)
        for (size_t i = 0; i < f->moments.positions; i++) {
            long double x = 0, less = 0, power = 1, bare = 1;
            for (size_t j = 0; j < f->moments.variables; j++) {
                long double u = ldexpl(
                    (long double)patch_value(&f->moments, records + n * values, i, j),
                    -f->moments.bits);
                x += (long double)w[j] * u;
                less += fabsl((long double)w[j] * u);
            }
            for (int l = 0; l < f->plan.patches.degree; l++) {
                long double alpha = (long double)f->plan.alpha[l];
                sum -= alpha * (power *= x);
                *size += fabsl(alpha) * (bare *= less);
            }
        }
    return sum;
}

static void test_coefficients_are_the_energy(void)
{
    enum { RECORDS = 5 };
    dpf_seeded_init(&dice, "test-energy-form", 4, 0);
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (int degree = 2; degree <= 8; degree++) {
            struct dpf_energy_plan plan = plan_of(DPF_ENERGY_PLAIN, &shapes[i], degree);
            struct dpf_energy_form f;
            float records[RECORDS * MOST_VALUES];
            double visible, w[16];
            long double size, seen = 0;
            size_t values = values_of(&plan.patches);
            for (int n = 0; n < RECORDS; n++)
                hostile_record(records + (size_t)n * values, values, n + 1);
            double *c = release_of(&f, &plan, records, RECORDS, 1, &visible);
            CU_ASSERT_FATAL(f.moments.variables <= COUNT(w));
            for (int trial = 0; trial < 5; trial++) {
                for (size_t j = 0; j < f.moments.variables; j++)
                    w[j] = dpf_seeded_normal(&dice);
                long double due = energy_at(&f, records, RECORDS, w, &size);
                long double got = polynomial_at(&f, c, w);
                BELOW("off", (double)(fabsl(got - due) / size), 1e-9);
                if (f.shift == 0) /* nothing was cut off */
                    BELOW("off", (double)(fabsl(got - due) / size), 1e-15);
            }
            for (size_t j = 0; j < RECORDS * values; j++) /* conditions are not seen */
                if (j % values < values - plan.patches.conditions)
                    seen += ldexpl((long double)llrint(
                                       ldexp((double)within(records[j]), f.moments.bits)),
                                   -f.moments.bits);
            SAME("visible", visible, -(double)seen);
            free(c);
            dpf_energy_form_release(&f);
        }
}

/* ------------------------------------------------------------------------------ noise */

struct processed {
    const struct dpf_energy_form *f;
    const double *coefficients;
    int l;
    size_t wrong;
};

/* A coefficient from the noisy sums by its definition. */
static void check_coefficient(void *context, size_t number, const size_t *a)
{
    struct processed *p = context;
    size_t full[DEGREE] = {0}, degree = (size_t)p->f->plan.patches.degree;
    size_t k = (size_t)p->l + 1, run = 0;
    double ways = 1;
    memcpy(full + (degree - k), a, k * sizeof *a);
    for (size_t i = 0; i < k; i++) {
        run = i > 0 && a[i] == a[i - 1] ? run + 1 : 1;
        ways = ways * (double)(i + 1) / (double)run;
    }
    size_t at = dpf_multichoose_rank(p->f->moments.variables, degree, full);
    double due =
        -p->f->plan.alpha[p->l] * ways * dpf_energy_unit(p->f) * (double)p->f->sums[at];
    p->wrong += fabs(p->coefficients[number] - due) > 1e-15 * fabs(due);
}

/* Coefficients are made of the noisy integers alone. */
static void test_post_processing(void)
{
    static const struct shape s = {1, 4, 4, 2, 2, 1, 0};
    for (int v = DPF_ENERGY_SOUND; v <= DPF_ENERGY_GAUSSIAN; v++)
        for (int degree = 2; degree <= 5; degree++) {
            struct dpf_energy_plan plan = plan_of((enum dpf_energy_variant)v, &s, degree);
            struct dpf_energy_form f, g;
            float none[16] = {0}, ones[16];
            double visible, other;
            for (int i = 0; i < 16; i++)
                ones[i] = 1;
            double *c = release_of(&f, &plan, ones, 1, 7, &visible);
            const double *from = c;
            for (int l = 0; l < degree; l++) {
                size_t a[DEGREE];
                struct processed p = {&f, from, l, 0};
                if (plan.alpha[l] == 0)
                    continue;
                from += each_tuple(f.moments.variables, l + 1, a, 0, check_coefficient,
                                   &p, 0);
                CU_ASSERT(p.wrong == 0);
            }
            CU_ASSERT((size_t)(from - c) == f.coefficients && visible == 0);
            /* what else there is of records changes nothing */
            CU_ASSERT_FATAL(dpf_energy_form_init(&g, &plan, NULL) == DPF_OK);
            struct dpf_energy_worker w;
            struct dpf_random r;
            CU_ASSERT_FATAL(dpf_energy_worker_init(&w, &g, NULL) == DPF_OK);
            dpf_energy_add(&g, &w, none, 1);
            dpf_energy_add(&g, &w, ones, 1);
            for (size_t i = 0; i < g.moments.count; i++)
                w.sums[i] = 0;
            dpf_energy_join(&g, &w);
            dpf_energy_add(&g, &w, ones, 1);
            dpf_energy_join(&g, &w);
            g.largest = 1e9;
            dpf_random_init_insecure(&r, "test-energy-form", 7, 0);
            double *d = calloc(g.coefficients, sizeof *d);
            CU_ASSERT_FATAL(d != NULL);
            CU_ASSERT(dpf_energy_release_noisy(&g, &r, d, &other, NULL) == DPF_OK);
            CU_ASSERT(memcmp(c, d, g.coefficients * sizeof *c) == 0 && other == visible);
            dpf_energy_worker_release(&w);
            dpf_energy_form_release(&g);
            dpf_energy_form_release(&f);
            free(c);
            free(d);
        }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double laplace_cdf(double z)
{
    return z < 0 ? exp(z) / 2 : 1 - exp(-z) / 2;
}

static double normal_cdf(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

/* Draws over their scale against a distribution, each test at a level of 1e-6: the
 * largest distance of the distributions (Dvoretzky, Kiefer, Wolfowitz and Massart), and
 * the mean size. A scale that is off by 2 % fails. */
static void judge(double *z, size_t count, bool normal)
{
    const double quantile = 4.8917; /* of a normal variable, on both sides */
    double far = 0, size = 0, n = (double)count;
    qsort(z, count, sizeof *z, by_size);
    for (size_t i = 0; i < count; i++) {
        double at = normal ? normal_cdf(z[i]) : laplace_cdf(z[i]);
        far = fmax(far, fmax(fabs(at - (double)i / n), fabs(at - (double)(i + 1) / n)));
        size += (normal ? z[i] * z[i] : fabs(z[i])) / n;
    }
    BELOW("distance", far, sqrt(log(2 / 1e-6) / (2 * n)));
    BELOW("size", fabs(size - 1), quantile * sqrt((normal ? 2 : 1) / n));
}

enum { DRAWS = 120000 };

/* The noise of many releases of the same records, in units of `scale` steps. */
static void draw_noise(const struct dpf_energy_plan *plan, double scale, double *z)
{
    static const float record[9] = {0, 1, 0.3F, 0.5F, 0.9F, 1, 0, 0.1F, 0.6F};
    size_t done = 0;
    for (uint64_t seed = 0; done < DRAWS; seed++) {
        struct dpf_energy_form f;
        struct dpf_energy_worker w;
        double visible, *c = release_of(&f, plan, record, 1, seed, &visible);
        CU_ASSERT_FATAL(dpf_energy_worker_init(&w, &f, NULL) == DPF_OK);
        dpf_energy_add(&f, &w, record, 1);
        for (size_t i = 0; i < f.moments.count && done < DRAWS; i++)
            z[done++] = (double)(f.sums[i] - w.sums[i]) / scale;
        dpf_energy_worker_release(&w);
        dpf_energy_form_release(&f);
        free(c);
    }
}

static void test_noise(void)
{
    static const struct shape s = {1, 3, 3, 2, 2, 1, 0};
    static double z[DRAWS];
    for (int which = 0; which < 4; which++) {
        bool l2 = which & 1;
        struct dpf_energy_plan plan =
            plan_of(l2 ? DPF_ENERGY_GAUSSIAN : DPF_ENERGY_SOUND, &s, 5);
        struct dpf_energy_form f;
        plan.epsilon = 0.7;
        plan.replace_one = which & 2;
        plan.clip = which == 2 ? 3 : 0;
        CU_ASSERT_FATAL(dpf_energy_form_init(&f, &plan, NULL) == DPF_OK);
        double apart = f.bound * (!plan.replace_one ? 1 : l2 ? sqrt(2) : 2);
        double due = l2 ? apart / dpf_gdp_mu(0.7, 1e-6) : apart / 0.7;
        SAME("stated", dpf_energy_noise(&f),
             due * (l2 ? 1 : sqrt(2)) * dpf_energy_unit(&f));
        /* the bound is that of a record's means over positions */
        double unit = dpf_energy_unit(&f) / (double)f.moments.positions;
        double norm = plan.clip > 0 ? plan.clip
                      : l2          ? sqrt((double)f.moments.count)
                                    : (double)f.moments.count;
        NEAR("bound", f.bound * unit, norm, 1e-6);
        draw_noise(&plan, due, z);
        judge(z, DRAWS, l2);
        dpf_energy_form_release(&f);
    }
}

/* ------------------------------------------------------------------- the paper's own */

/* Half of Eq. 15 for one record as it is printed: for each position the bias, then each
 * weight. */
static long double printed_half(const struct dpf_energy_form *f, const float *record)
{
    const struct dpf_patch_moments *m = &f->moments;
    long double sum = 0;
    for (size_t i = 0; i < m->positions; i++) {
        long double patch = 0;
        for (size_t j = 1; j < m->variables; j++)
            patch += ldexpl((long double)patch_value(m, record, i, j), -m->bits);
        for (int l = 0; l < m->plan.degree; l++) {
            long double power = powl(patch + 1, l);
            long double inner = power;
            for (size_t j = 1; j < m->variables; j++)
                inner +=
                    power * ldexpl((long double)patch_value(m, record, i, j), -m->bits);
            sum += fabsl((long double)f->plan.alpha[l]) * inner;
        }
    }
    for (size_t i = 0; i < values_of(&m->plan) - m->plan.conditions; i++)
        sum += ldexpl((long double)llrint(ldexp((double)within(record[i]), m->bits)),
                      -m->bits);
    return sum;
}

static void nth_record(size_t n, size_t values, float *record)
{
    static const float levels[3] = {0, 0.5F, 1};
    for (size_t i = 0; i < values; i++, n /= 3)
        record[i] = levels[n % 3];
}

/* All data sets of two records and their neighbours by replacement: rounded coefficients
 * are no farther apart than public_epsilon says for the scale, and Lemma 2 holds for data
 * sets that have both records in them. */
static void lemma_for(const struct shape *s, int degree, double epsilon)
{
    enum { PAIRS = 81 };
    struct dpf_energy_plan plain = plan_of(DPF_ENERGY_PLAIN, s, degree), paper = plain;
    size_t values = values_of(&plain.patches), records = 1;
    struct dpf_energy_form f[PAIRS], printed;
    double *c[PAIRS], visible[PAIRS], ignored, farthest = 0;
    paper.variant = DPF_ENERGY_PAPER;
    paper.epsilon = epsilon;
    for (size_t i = 0; i < values; i++)
        records *= 3;
    CU_ASSERT_FATAL(records <= PAIRS);
    for (size_t n = 0; n < records; n++) {
        float both[2 * MOST_VALUES]; /* one record stays */
        nth_record(records / 2, values, both);
        nth_record(n, values, both + values);
        c[n] = release_of(&f[n], &plain, both, 2, 1, &visible[n]);
    }
    for (size_t n = 0; n < records; n++) {
        float both[2 * MOST_VALUES];
        nth_record(records / 2, values, both);
        nth_record(n, values, both + values);
        double *noisy = release_of(&printed, &paper, both, 2, n, &ignored);
        double step = printed.laplace.step;
        double size = 2 * (double)fmaxl(printed_half(&printed, both),
                                        printed_half(&printed, both + values));
        NEAR("scale", printed.laplace.scale,
             (size + step * (double)(f->coefficients + 1)) / epsilon, 1e-5);
        for (size_t k = 0; k < records; k++) {
            double real = fabs(visible[n] - visible[k]), rounded = 0;
            for (size_t i = 0; i <= f->coefficients; i++) {
                double a = i < f->coefficients ? c[n][i] : visible[n];
                double b = i < f->coefficients ? c[k][i] : visible[k];
                real += i < f->coefficients ? fabs(a - b) : 0;
                rounded +=
                    step *
                    fabs((double)(dpf_grid_round(a, step) - dpf_grid_round(b, step)));
            }
            farthest = fmax(farthest, rounded / step);
            BELOW("public epsilon", rounded / printed.laplace.scale,
                  printed.public_epsilon);
            float other[MOST_VALUES];
            nth_record(k, values, other);
            BELOW("Lemma 2", real,
                  fmax(size, 2 * (double)printed_half(&printed, other)) * (1 + 1e-12));
        }
        dpf_energy_form_release(&printed);
        free(noisy);
    }
    CU_ASSERT(farthest > 0);
    for (size_t n = 0; n < records; n++) {
        dpf_energy_form_release(&f[n]);
        free(c[n]);
    }
}

static void test_printed_sensitivity(void)
{
    static const struct shape small[] = {{1, 1, 3, 1, 3, 1, 0},
                                         {1, 1, 4, 1, 2, 1, 0},
                                         {1, 2, 2, 1, 1, 1, 0},
                                         {2, 1, 2, 1, 1, 1, 0}};
    for (size_t i = 0; i < COUNT(small); i++)
        for (int degree = 2; degree <= 6; degree++)
            for (double epsilon = 1e-3; epsilon < 1e7; epsilon *= 1e3)
                lemma_for(&small[i], degree, epsilon);
}

/* public_epsilon is no more than it has to be: zeros against ones, which differ in all
 * coefficients but that of the constant. */
static void test_public_epsilon(void)
{
    static const struct shape s = {1, 3, 3, 2, 2, 1, 0};
    for (int degree = 2; degree <= 6; degree++) {
        struct dpf_energy_plan plan = plan_of(DPF_ENERGY_PLAIN, &s, degree);
        struct dpf_energy_form f, g, h;
        float zeros[9] = {0}, ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        double a, b, z, constant = 0, apart;
        double *none = release_of(&f, &plan, zeros, 1, 1, &a);
        double *all = release_of(&g, &plan, ones, 1, 1, &b);
        plan.variant = DPF_ENERGY_PAPER;
        double *noisy = release_of(&h, &plan, ones, 1, 1, &z);
        apart = fabs(a - b);
        for (size_t i = 0; i < f.coefficients; i++)
            apart += fabs(none[i] - all[i]);
        for (int l = 0; l < degree; l++)
            constant += (double)f.moments.positions * fabs(plan.alpha[l]);
        ABOVE("public epsilon", h.public_epsilon, (apart + constant) / h.laplace.scale);
        NEAR("public epsilon", h.public_epsilon, (apart + constant) / h.laplace.scale,
             1e-4);
        /* with ones among the records the scale is twice what it has to be */
        BELOW("public epsilon", h.public_epsilon, 0.51);
        dpf_energy_form_release(&f);
        dpf_energy_form_release(&g);
        dpf_energy_form_release(&h);
        free(none);
        free(all);
        free(noisy);
    }
}

/* Why nothing is proven for it: neighbours have noise of another scale, and it may be too
 * small for the neighbour. */
static void test_local_scale(void)
{
    static const struct shape s = {1, 3, 3, 2, 2, 1, 0};
    struct dpf_energy_plan plan = plan_of(DPF_ENERGY_PAPER, &s, 4);
    float zeros[18] = {0}, one[18] = {0};
    struct dpf_energy_form f, g;
    double visible;
    for (int i = 9; i < 18; i++)
        one[i] = 1;
    free(release_of(&f, &plan, zeros, 2, 1, &visible));
    free(release_of(&g, &plan, one, 2, 1, &visible));
    ABOVE("scale", g.laplace.scale, 10 * f.laplace.scale);
    ABOVE("public epsilon", f.public_epsilon, 10 * plan.epsilon);
    dpf_energy_form_release(&f);
    dpf_energy_form_release(&g);
    /* without a record it is that of ones: nothing was measured */
    free(release_of(&f, &plan, zeros, 0, 1, &visible));
    BELOW("public epsilon", f.public_epsilon, 0.51);
    dpf_energy_form_release(&f);
}

/* The coefficients of a data set whose other records have the sums `others`. */
static void release_large(struct dpf_energy_form *f, const struct dpf_energy_plan *plan,
                          const int64_t *others, const float *record, double *c,
                          double *visible)
{
    struct dpf_energy_worker w;
    struct dpf_random r;
    CU_ASSERT_FATAL(dpf_energy_form_init(f, plan, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_energy_worker_init(&w, f, NULL) == DPF_OK);
    dpf_energy_add(f, &w, record, 1);
    for (size_t i = 0; i < f->moments.count; i++)
        w.sums[i] += others[i];
    dpf_energy_join(f, &w);
    dpf_random_init_insecure(&r, "test-energy-form", 1, 0);
    CU_ASSERT(dpf_energy_release_noisy(f, &r, c, visible, NULL) == DPF_OK);
    dpf_random_release(&r);
    dpf_energy_worker_release(&w);
}

/* As many records as there may be: doubles round the coefficients of such sums, and
 * public_epsilon counts that. */
static void test_many_records(void)
{
    static const struct shape s = {1, 1, 2, 1, 1, 1, 0};
    static const float zeros[2] = {0, 0}, ones[2] = {1, 1};
    enum { MOMENTS = 6, COEFFICIENTS = 17 };
    dpf_seeded_init(&dice, "test-energy-form", 6, 0);
    for (int trial = 0; trial < 20000; trial++) {
        struct dpf_energy_plan plan = plan_of(DPF_ENERGY_PLAIN, &s, 5);
        struct dpf_energy_form f, g, h;
        double a[COEFFICIENTS], b[COEFFICIENTS], noisy[COEFFICIENTS], x, y, z, apart;
        int64_t others[MOMENTS];
        for (size_t i = 0; i < MOMENTS; i++)
            others[i] = (int64_t)(dpf_seeded_u64(&dice) >> 3);
        for (int l = 0; l < 5; l++)
            plan.alpha[l] = l == 2 ? 0 : dpf_seeded_range(&dice, -1, 1);
        release_large(&f, &plan, others, zeros, a, &x);
        release_large(&g, &plan, others, ones, b, &y);
        plan.variant = DPF_ENERGY_PAPER;
        plan.epsilon = pow(10, dpf_seeded_range(&dice, -3, 3));
        release_large(&h, &plan, others, ones, noisy, &z);
        CU_ASSERT_FATAL(f.moments.count == MOMENTS && f.coefficients <= COEFFICIENTS);
        double step = h.laplace.step;
        apart = fabs((double)(dpf_grid_round(x, step) - dpf_grid_round(y, step)));
        for (size_t i = 0; i < f.coefficients; i++)
            apart +=
                fabs((double)(dpf_grid_round(a[i], step) - dpf_grid_round(b[i], step)));
        BELOW("public epsilon", apart * step / h.laplace.scale, h.public_epsilon);
        dpf_energy_form_release(&f);
        dpf_energy_form_release(&g);
        dpf_energy_form_release(&h);
    }
}

/* --------------------------------------------------------------------------- refusals */

static void test_refusals(void)
{
    static const struct shape good = {1, 4, 4, 2, 2, 1, 0};
    struct dpf_energy_plan plans[16];
    struct dpf_energy_form f;
    struct dpf_error e;
    size_t n = 0;
    for (size_t i = 0; i < COUNT(plans); i++)
        plans[i] = plan_of(i % 2 ? DPF_ENERGY_GAUSSIAN : DPF_ENERGY_SOUND, &good, 3);
    plans[n++].patches.degree = 1;
    plans[n++].patches.degree = DEGREE + 1;
    plans[n++].patches.kernel_height = 5;
    plans[n++].patches.kernel_width = 0;
    plans[n++].patches.stride = 0;
    plans[n++].patches.channels = 0;
    plans[n++].patches.channels = SIZE_MAX;
    plans[n].patches.height = plans[n].patches.kernel_height = (size_t)1 << 40;
    n++;
    memset(plans[n++].alpha, 0, sizeof plans[0].alpha);
    plans[n++].epsilon = 0;
    plans[n++].epsilon = NAN;
    plans[n].variant = DPF_ENERGY_SOUND;
    plans[n++].epsilon = 1e-12;
    plans[n++].clip = 1e-30;
    plans[n++].delta = 1;
    plans[n].variant = DPF_ENERGY_GAUSSIAN;
    plans[n++].delta = NAN;
    plans[n].patches.channels = plans[n].patches.height = 64; /* too many moments */
    plans[n++].patches.kernel_height = 64;
    CU_ASSERT(n == COUNT(plans));
    for (size_t i = 0; i < n; i++) {
        CU_ASSERT(told(dpf_energy_form_init(&f, &plans[i], &e) == DPF_USAGE, "plan",
                       (double)i, 2));
        dpf_energy_form_release(&f); /* there is nothing, and no harm in it */
    }
}

/* ---------------------------------------------------------------------------- streams */

enum { KERNEL = 5, LENGTH = KERNEL + KERNEL * (KERNEL + 1) / 2 }; /* of a 2x2 patch */

static void begin_stream(struct dpf_header *h, struct dpf_batch *b,
                         struct dpf_energy_record *r, size_t count, uint64_t rows)
{
    *h = (struct dpf_header){0};
    CU_ASSERT_FATAL(dpf_energy_declare(h, count, 1, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_batch_init(b, h, rows, NULL) == DPF_OK);
    *r = (struct dpf_energy_record){.coefficients = b->tensor[0].data,
                                    .expansion = b->tensor[1].data,
                                    .patch = b->tensor[2].data,
                                    .conditions = b->tensor[3].data,
                                    .visible = b->tensor[4].data,
                                    .noise = b->tensor[5].data};
    if (rows == 0)
        return;
    memset(r->coefficients, 0, count * sizeof *r->coefficients);
    r->expansion[0] = r->expansion[1] = 0.5;
    r->patch[0] = 1;
    r->patch[1] = r->patch[2] = 2;
    *r->visible = *r->noise = 0;
    *r->conditions = 0;
}

/* What is done to a good record; false: there is no such number. */
static bool spoil(struct dpf_energy_record *r, int how)
{
    switch (how) {
    case 0:
        return true; /* nothing: it is read */
    case 1:
        r->coefficients[LENGTH - 1] = NAN;
        return true;
    case 2:
        r->coefficients[0] = -INFINITY;
        return true;
    case 3:
        r->expansion[1] = NAN;
        return true;
    case 4:
        r->expansion[0] = INFINITY;
        return true;
    case 5:
        r->expansion[0] = 0; /* then there are fewer */
        return true;
    case 6:
        r->patch[0] = 0;
        return true;
    case 7:
        r->patch[1] = -2;
        r->patch[2] = -2;
        return true;
    case 8:
        r->patch[0] = INT64_MAX;
        return true;
    case 9:
        r->patch[0] = r->patch[1] = r->patch[2] = 1 << 22;
        return true;
    case 10:
        r->patch[2] = 3;
        return true;
    case 11:
        *r->visible = INFINITY;
        return true;
    case 12:
        *r->visible = NAN;
        return true;
    case 13:
        *r->noise = -1;
        return true;
    case 14:
        *r->noise = NAN;
        return true;
    case 15:
        *r->noise = INFINITY;
        return true;
    case 16:
        r->patch[0] = INT64_MIN;
        return true;
    case 17:
        r->patch[1] = 1 << 11; /* moments beyond all counts */
        r->patch[2] = 1 << 11;
        return true;
    case 18:
        *r->conditions = -1;
        return true;
    case 19:
        *r->conditions = 1;
        return true;
    case 20:
        *r->conditions = INT64_MAX;
        return true;
    }
    return false;
}

static void test_hostile_streams(void)
{
    struct dpf_header h;
    struct dpf_batch b;
    struct dpf_energy_record r, got;
    struct dpf_error e;
    bool more = true;
    for (int how = 0; more; how++) {
        begin_stream(&h, &b, &r, LENGTH, 1);
        more = spoil(&r, how);
        CU_ASSERT(dpf_energy_expect(&h, &e) == DPF_OK);
        enum dpf_status status = dpf_energy_read(&b, &h, &got, &e);
        bool good = status == (more && how > 0 ? DPF_BAD_STREAM : DPF_OK);
        CU_ASSERT(told(good, "read a spoilt one", how, -1));
        dpf_batch_release(&b);
        dpf_header_release(&h);
    }
    for (uint64_t rows = 0; rows < 3; rows += 2) {
        begin_stream(&h, &b, &r, LENGTH, rows);
        CU_ASSERT(dpf_energy_read(&b, &h, &got, &e) == DPF_BAD_STREAM);
        dpf_batch_release(&b);
        dpf_header_release(&h);
    }
    static const size_t counts[] = {1, LENGTH - 1, LENGTH + 1, 3 * LENGTH};
    for (size_t i = 0; i < COUNT(counts); i++) {
        begin_stream(&h, &b, &r, counts[i], 1);
        CU_ASSERT(dpf_energy_read(&b, &h, &got, &e) == DPF_BAD_STREAM);
        dpf_batch_release(&b);
        dpf_header_release(&h);
    }
    /* an expansion of zeros has no coefficients: there is no polynomial */
    begin_stream(&h, &b, &r, 1, 1);
    b.tensor[0].shape.dim[1] = 0;
    r.expansion[0] = r.expansion[1] = 0;
    CU_ASSERT(dpf_energy_read(&b, &h, &got, &e) == DPF_BAD_STREAM);
    dpf_batch_release(&b);
    dpf_header_release(&h);
}

static void test_hostile_headers(void)
{
    static const char *const names[] = {"coefficients", "expansion", "patch", "visible",
                                        "noise"};
    struct dpf_error e;
    for (size_t i = 0; i < COUNT(names); i++)
        for (int how = 0; how < 4; how++) {
            struct dpf_header h = {0};
            CU_ASSERT_FATAL(dpf_energy_declare(&h, LENGTH, 1, NULL) == DPF_OK);
            struct dpf_field *f = dpf_header_field(&h, names[i]);
            CU_ASSERT_FATAL(f != NULL);
            if (how == 0)
                f->dtype = DPF_F32;
            else if (how == 1)
                f->shape = (struct dpf_shape){2, {1, 2}};
            else if (how == 2)
                f->name[0] = 'z';
            else
                f->shape = (struct dpf_shape){i < 3, {i == 0 ? LENGTH : 1}};
            bool fine = how == 3 && (i == 0 || i > 2);
            CU_ASSERT(dpf_energy_expect(&h, &e) == (fine ? DPF_OK : DPF_BAD_STREAM));
            dpf_header_release(&h);
        }
    struct dpf_header h = {0};
    CU_ASSERT_FATAL(dpf_energy_declare(&h, LENGTH, DEGREE, NULL) == DPF_OK);
    CU_ASSERT(dpf_energy_expect(&h, &e) == DPF_BAD_STREAM); /* too high a degree */
    dpf_header_release(&h);
}

const struct dpf_test dpf_tests[] = {
    {"moments are those of plain loops", test_moments},
    {"one record, and all pairs of small ones", test_all_pairs},
    {"the same up to the largest degree", test_all_pairs_of_largest_degree},
    {"hostile records, every clip and epsilon", test_hostile_records},
    {"the largest sums fit their integers", test_largest_sums},
    {"threads and the order of records change nothing", test_threads},
    {"coefficients are those of the energy", test_coefficients_are_the_energy},
    {"coefficients are made of noisy integers alone", test_post_processing},
    {"the noise has the size that is stated", test_noise},
    {"as printed: the scale, and what it would prove", test_printed_sensitivity},
    {"as printed: what a public scale costs is no less", test_public_epsilon},
    {"as printed: the scale tells of the records", test_local_scale},
    {"as printed: sums of as many records as there may be", test_many_records},
    {"plans that are none are refused", test_refusals},
    {"hostile streams are refused", test_hostile_streams},
    {"hostile headers are refused", test_hostile_headers},
    {NULL, NULL},
};
