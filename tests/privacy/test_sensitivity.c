/* Sensitivities of the quadratic form: what is claimed against brute force, what the code
 * does to hostile records, how much noise it adds, and the solver behind it. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "nn/quadratic_solve.h"
#include "privacy/quadratic.h"
#include "privacy/tradeoff.h"
#include "told.h"

#include "base/banned.h"

static uint64_t state;

static double uniform(double lo, double hi)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(state >> 11) * 0x1p-53;
}

/* ------------------------------------------------------------------------ brute force */

enum { MOST = 5 }; /* features and the intercept */

/* What is released of a record, and how far two records are apart in it. */
struct game {
    size_t d;
    bool intercept, classes, other_class; /* else the target is a number */
    bool triangle, full, moments;         /* parts of the L1 distance */
    double norm_squared, weight;          /* L2 instead, if the weight is above 0 */
    bool one_sided, non_negative;         /* add-remove; features from 0 */
};

static size_t size_of(const struct game *g)
{
    return g->d + !g->classes;
}

/* The features, with the 1 of the intercept, put into the ball if there is one. */
static size_t expand(const struct game *g, const double *record, double *x)
{
    size_t n = 0;
    double square = 0, scale = 1;
    if (g->intercept)
        x[n++] = 1;
    for (size_t j = 0; j < g->d; j++) {
        double v = g->non_negative ? fabs(record[j]) : record[j];
        square += v * v;
        x[n++] = v;
    }
    if (g->weight > 0 && square > g->norm_squared)
        scale = sqrt(g->norm_squared / square);
    for (size_t j = 0; j < n; j++)
        x[j] *= scale;
    return n;
}

static double distance(const struct game *g, const double *both)
{
    double x[MOST], u[MOST], l1 = 0, l2 = 0;
    const double *one = both, *other = both + size_of(g);
    size_t n = expand(g, one, x);
    expand(g, other, u);
    double y = g->classes ? 1 : one[g->d], v = g->classes ? 1 : other[g->d];
    if (g->one_sided)
        memset(u, 0, sizeof u);
    for (size_t j = 0; j < n; j++) {
        for (size_t k = j; k < n; k++) {
            double move = x[j] * x[k] - u[j] * u[k];
            l1 += g->triangle || (g->full && j == k) ? fabs(move)
                  : g->full                          ? 2 * fabs(move)
                                                     : 0;
            l2 += (j == k ? 1 : 2) * move * move;
        }
        double first = x[j] * y, second = u[j] * v;
        bool apart = g->classes && g->other_class;
        if (g->moments)
            l1 += apart ? fabs(first) + fabs(second) : fabs(first - second);
        l2 += g->weight * g->weight *
              (apart ? first * first + second * second
                     : (first - second) * (first - second));
    }
    return g->weight > 0 ? sqrt(l2) : l1;
}

/* All points of a grid from -1 to 1 of so many values a coordinate. */
static double on_grid(const struct game *g, int values)
{
    size_t n = 2 * size_of(g);
    int at[2 * (MOST + 1)] = {0};
    double both[2 * (MOST + 1)], most = 0;
    for (;;) {
        for (size_t i = 0; i < n; i++)
            both[i] = -1 + 2. * at[i] / (values - 1);
        most = fmax(most, distance(g, both));
        size_t i = 0;
        while (i < n && ++at[i] == values)
            at[i++] = 0;
        if (i == n)
            return most;
    }
}

/* One coordinate to its best value: a grid, then finer around the best of it. */
static double ascend(const struct game *g, double *both, size_t i, double most)
{
    double centre = both[i], best = both[i], reach = 2, limit = 1;
    if (g->weight > 0)
        limit = 2 * sqrt(g->norm_squared);
    bool target = !g->classes && i % size_of(g) == g->d;
    limit = target ? 1 : limit;
    for (int level = 0; level < 6; level++, reach /= 6, centre = best)
        for (int k = -16; k <= 16; k++) {
            both[i] = fmin(fmax(centre + reach * limit * k / 16, -limit), limit);
            double now = distance(g, both);
            if (now > most) {
                most = now;
                best = both[i];
            }
        }
    both[i] = best;
    return most;
}

static double by_search(const struct game *g, int starts)
{
    size_t n = 2 * size_of(g);
    double both[2 * (MOST + 1)], most = 0;
    for (int start = 0; start < starts; start++) {
        for (size_t i = 0; i < n; i++)
            both[i] = start % 3 ? uniform(-1, 1) : floor(uniform(0, 3)) - 1;
        double now = distance(g, both), before = -1;
        for (int round = 0; round < 60 && now > before + 1e-12; round++) {
            before = now;
            for (size_t i = 0; i < n; i++)
                now = ascend(g, both, i, now);
        }
        most = fmax(most, now);
    }
    return most;
}

static double largest(const struct game *g)
{
    static const int values[] = {0, 9, 9, 5, 3};
    return fmax(on_grid(g, values[g->d]), by_search(g, g->d < 3 ? 60 : 150));
}

/* The upper triangle and the moments of targets in [-1, 1]. */
static void joint_of_numbers(void)
{
    state = 1;
    for (size_t d = 1; d <= 4; d++)
        for (int intercept = 0; intercept < 2; intercept++) {
            struct game g = {
                .d = d, .intercept = intercept, .triangle = true, .moments = true};
            double claimed = dpf_quadratic_l1(d, intercept, false);
            double found = largest(&g), n = (double)d;
            BELOW("found", found, claimed + 1e-9);
            if (intercept) { /* at x = (1, 1..1), y = 1 and x' = (1, 0..0), y' = -1 */
                CU_ASSERT_DOUBLE_EQUAL(claimed, (n + 1) * (n + 4) / 2, 1e-12);
                ABOVE("found on the grid", on_grid(&g, 3), claimed - 1e-6);
            } else {
                CU_ASSERT_DOUBLE_EQUAL(claimed, n * (n + 2) * (n + 2) / (2 * (n + 1)),
                                       1e-12);
                ABOVE("found", found, claimed * 0.99);
            }
        }
}

/* The triangle alone, and with classes. */
static void joint_of_classes(void)
{
    state = 2;
    for (size_t d = 1; d <= 4; d++)
        for (int intercept = 0; intercept < 2; intercept++) {
            double claimed = dpf_quadratic_l1(d, intercept, true);
            double n = (double)d + intercept, triangle = claimed - 2 * n;
            struct game g = {
                .d = d, .intercept = intercept, .classes = true, .triangle = true};
            double found = largest(&g);
            BELOW("triangle", found, triangle + 1e-9);
            ABOVE("triangle", found, triangle * 0.99);
            g.moments = true;
            for (int other = 0; other < 2; other++) {
                g.other_class = other;
                found = largest(&g);
                BELOW("classes", found, claimed + 1e-9);
                if (other)
                    ABOVE("classes", found, claimed * 0.7); /* claimed as a bound */
            }
            g.triangle = false;
            g.other_class = true;
            ABOVE("moments", largest(&g), 2 * n - 1e-9);
        }
}

/* The whole matrix moves by n^2, half of what the paper prints, and the moments by 2n. */
static void apart_in_the_paper(void)
{
    state = 3;
    for (size_t d = 1; d <= 4; d++) {
        double n = (double)d + 1;
        struct game g = {.d = d, .intercept = true, .full = true};
        double found = largest(&g);
        BELOW("matrix", found, n * n + 1e-9);
        ABOVE("matrix", found, n * n * 0.99);
        BELOW("printed", found, 2 * n * n);
        g.full = false;
        g.moments = true;
        found = largest(&g);
        BELOW("moments", found, 2 * n + 1e-9);
        ABOVE("moments", found, 2 * n - 1e-9);
        BELOW("printed, of -2B", 2 * found, 4 * n + 1e-9);
    }
}

static void squares(void)
{
    static const double norms[] = {1, 2, 3.7};
    state = 4;
    for (size_t d = 2; d <= 4; d++)
        for (size_t i = 0; i < COUNT(norms); i++)
            for (int light = 0; light < 2; light++) {
                double w = light ? 0.6 : sqrt(norms[i]);
                struct game g = {.d = d, .norm_squared = norms[i], .weight = w};
                double claimed = dpf_quadratic_l2(norms[i], w, true, false);
                double found = by_search(&g, 60);
                BELOW("replace-one", found, claimed + 1e-9);
                ABOVE("replace-one", found, claimed * 0.99);
                if (!light)
                    CU_ASSERT_DOUBLE_EQUAL(claimed * claimed,
                                           2 * norms[i] * norms[i] +
                                               2 * norms[i] * w * w + pow(w, 4) / 2,
                                           1e-9);
                g.one_sided = true;
                claimed = dpf_quadratic_l2(norms[i], w, false, false);
                found = by_search(&g, 20);
                BELOW("add-remove", found, claimed + 1e-9);
                ABOVE("add-remove", found, claimed * 0.99);
                g.one_sided = false;
                g.classes = true;
                claimed = dpf_quadratic_l2(norms[i], w, true, false);
                for (int other = 0; other < 2; other++) {
                    g.other_class = other;
                    g.non_negative = false;
                    BELOW("classes", by_search(&g, 40), claimed + 1e-9);
                    g.non_negative = true;
                    double tight = dpf_quadratic_l2(norms[i], w, true, true);
                    found = by_search(&g, 40);
                    BELOW("classes, from 0", found, tight + 1e-9);
                    if (other)
                        ABOVE("classes, from 0", found, tight * 0.99);
                }
            }
}

/* The notes' S = 2 for replace-one with |h| <= 1 is for features from 0: two records of
 * one class with signed features are further apart. */
static void signed_features_of_one_class(void)
{
    state = 5;
    struct game g = {.d = 2, .norm_squared = 1, .weight = 1, .classes = true};
    double found = by_search(&g, 60);
    ABOVE("signed", found, 2.12);
    BELOW("signed", found, dpf_quadratic_l2(1, 1, true, false) + 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(dpf_quadratic_l2(1, 1, true, false), sqrt(4.5), 1e-12);
    g.other_class = g.non_negative = true;
    found = by_search(&g, 60);
    CU_ASSERT_DOUBLE_EQUAL(found, 2, 1e-3);
    CU_ASSERT_DOUBLE_EQUAL(dpf_quadratic_l2(1, 1, true, true), 2, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(dpf_quadratic_l2(1, 1, false, false), sqrt(2), 1e-12);
}

/* ---------------------------------------------------------------------------- the code
 */

/* The integers so far, without noise. */
struct sums {
    int64_t a[64], b[64];
};

static struct sums sums_of(const struct dpf_quadratic *q)
{
    struct sums s = {{0}, {0}};
    CU_ASSERT_FATAL(q->n * q->n <= 64 && q->n * q->plan.outputs <= 64);
    for (size_t j = 0; j < q->n; j++)
        for (size_t k = j; k < q->n; k++) /* the lower triangle means nothing */
            s.a[j * q->n + k] = q->a[j * q->n + k] + (int64_t)q->block_a[j * q->n + k];
    for (size_t i = 0; i < q->n * q->plan.outputs; i++)
        s.b[i] = q->b[i] + (int64_t)q->block_b[i];
    return s;
}

static struct sums sums_of_records(const struct dpf_quadratic_plan *plan, const float *x,
                                   const float *y, const int32_t *labels, size_t count,
                                   uint64_t *clipped)
{
    struct dpf_quadratic q;
    struct dpf_error e = {0};
    enum dpf_status status = dpf_quadratic_init(&q, plan, &e);
    if (status != DPF_OK)
        printf("    %s\n", e.message);
    CU_ASSERT_FATAL(status == DPF_OK);
    dpf_quadratic_add(&q, x, y, labels, count);
    struct sums s = sums_of(&q);
    if (clipped)
        *clipped = q.clipped;
    dpf_quadratic_release(&q);
    return s;
}

/* Values that a stranger may send. */
static float hostile(void)
{
    static const float strange[] = {NAN,   INFINITY, -INFINITY, 3e38f, -3e38f, 1.0000001f,
                                    -1.5f, 1e-40f,   -0.0f,     1,     -1,     0.5f};
    double pick = uniform(0, 2 * COUNT(strange));
    return pick < COUNT(strange) ? strange[(size_t)pick] : (float)uniform(-1.2, 1.2);
}

static double l1_apart(const struct sums *s, const struct sums *t, double step, bool full,
                       size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < 64; i++) {
        double twice = full && i / n != i % n ? 2 : 1;
        sum += twice * fabs((double)(s->a[i] - t->a[i])) * step;
    }
    return sum;
}

static double b_apart(const struct sums *s, const struct sums *t, double step)
{
    double sum = 0;
    for (size_t i = 0; i < 64; i++)
        sum += fabs((double)(s->b[i] - t->b[i])) * step;
    return sum;
}

/* Neighbours of hostile records, through the code: within what the noise is made for. */
static void neighbours_in_a_box(void)
{
    state = 6;
    for (int turn = 0; turn < 3000; turn++) {
        enum { RECORDS = 3, FEATURES = 3 };
        struct dpf_quadratic_plan plan = {.variant = turn % 2 ? DPF_QUADRATIC_SOUND
                                                              : DPF_QUADRATIC_PAPER,
                                          .features = 1 + (size_t)turn % FEATURES,
                                          .intercept = turn / 2 % 2,
                                          .classes = turn / 4 % 2,
                                          .outputs = turn / 4 % 2 ? 3 : 1,
                                          .non_negative = turn / 8 % 2,
                                          .epsilon = turn / 16 % 2 ? 1 : 1e-7};
        float x[RECORDS * FEATURES], y[RECORDS];
        int32_t labels[RECORDS];
        size_t d = plan.features, n = d + plan.intercept;
        for (size_t i = 0; i < COUNT(x); i++)
            x[i] = hostile();
        for (size_t i = 0; i < RECORDS; i++) {
            y[i] = hostile();
            labels[i] = (int32_t)uniform(0, 3);
        }
        struct sums before = sums_of_records(&plan, x, y, labels, RECORDS, NULL);
        for (size_t j = 0; j < d; j++)
            x[d + j] = hostile(); /* record 1 */
        y[1] = hostile();
        labels[1] = (int32_t)uniform(0, 3);
        struct sums after = sums_of_records(&plan, x, y, labels, RECORDS, NULL);
        struct dpf_quadratic q;
        CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
        double step = q.laplace_a.step;
        CU_ASSERT_DOUBLE_EQUAL(step, ldexp(1, -2 * q.bits), 0);
        bool paper = plan.variant == DPF_QUADRATIC_PAPER;
        double a = l1_apart(&before, &after, step, paper, n);
        double b = b_apart(&before, &after, step);
        if (paper) {
            BELOW("matrix", a, (double)(n * n));
            BELOW("moments", b, 2. * (double)n);
        } else {
            BELOW("joint", a + b, dpf_quadratic_l1(d, plan.intercept, plan.classes));
        }
        /* and what that costs */
        double cost = a / q.laplace_a.scale + b / q.laplace_b.scale;
        BELOW("cost", cost, q.proven_epsilon);
        BELOW("proven", q.proven_epsilon, plan.epsilon);
        dpf_quadratic_release(&q);
    }
}

/* The head of pCDBN: neighbours of hostile records through the code cost no more than is
 * proven, the noise is the printed one, and the bound on B is reached. */
static void taylor_head(void)
{
    state = 11;
    for (int turn = 0; turn < 3000; turn++) {
        enum { RECORDS = 3, FEATURES = 3 };
        size_t classes = 2 + (size_t)turn % 4;
        struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_PAPER,
                                          .taylor = true,
                                          .features = 1 + (size_t)turn % FEATURES,
                                          .intercept = turn / 2 % 2,
                                          .classes = true,
                                          .outputs = classes,
                                          .non_negative = turn / 8 % 2,
                                          .epsilon = turn / 16 % 2 ? 1 : 1e-5};
        float x[RECORDS * FEATURES];
        int32_t labels[RECORDS];
        size_t d = plan.features, n = d + plan.intercept;
        bool ends = turn % 3 == 0; /* as far apart as can be, or anything */
        for (size_t i = 0; i < COUNT(x); i++)
            x[i] = hostile();
        for (size_t i = 0; i < RECORDS; i++)
            labels[i] = (int32_t)uniform(0, (double)classes);
        for (size_t j = 0; ends && j < d; j++)
            x[d + j] = 1;
        struct sums before = sums_of_records(&plan, x, NULL, labels, RECORDS, NULL);
        for (size_t j = 0; j < d; j++)
            x[d + j] = ends ? (plan.non_negative ? 0 : -1) : hostile();
        if (!ends)
            labels[1] = (int32_t)uniform(0, (double)classes);
        struct sums after = sums_of_records(&plan, x, NULL, labels, RECORDS, NULL);
        struct dpf_quadratic q;
        CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
        double step = q.laplace_a.step, size = (double)n + (double)(n * n) / 4;
        double a = l1_apart(&before, &after, step, true, n);
        double b = b_apart(&before, &after, step);
        double most = (double)n * (plan.non_negative ? fmax((double)classes, 4)
                                                     : 2 * (double)classes);
        BELOW("matrix", a, (double)(n * n));
        BELOW("moments", b, most);
        if (ends && !plan.intercept && (!plan.non_negative || classes >= 4))
            SAME("reached", b, most);
        BELOW("cost", a / q.laplace_a.scale + b / q.laplace_b.scale, q.proven_epsilon);
        NEAR("noise on A", q.laplace_a.scale, 8 * size / plan.epsilon, 1e-6);
        NEAR("noise on B", q.laplace_b.scale, 2 * size / plan.epsilon, 1e-6);
        dpf_quadratic_release(&q);
    }
}

/* Its minimum is that of the expanded cross-entropy, which is written out here. */
static void taylor_minimum(void)
{
    enum { RECORDS = 200, FEATURES = 3, CLASSES = 3, N = FEATURES + 1 };
    const struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_PLAIN,
                                            .taylor = true,
                                            .features = FEATURES,
                                            .intercept = true,
                                            .classes = true,
                                            .outputs = CLASSES};
    static float x[RECORDS * FEATURES];
    int32_t labels[RECORDS];
    double a[N * N], b[N * CLASSES], w[N * CLASSES];
    struct dpf_quadratic_outcome outcome;
    struct dpf_quadratic_repair repair = {.none = true};
    struct dpf_quadratic q;
    state = 12;
    for (size_t i = 0; i < RECORDS; i++) {
        labels[i] = (int32_t)uniform(0, CLASSES);
        for (size_t j = 0; j < FEATURES; j++)
            x[i * FEATURES + j] =
                (float)(0.5 * uniform(0, 1) + (j == (size_t)labels[i] ? 0.4 : 0));
    }
    CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
    dpf_quadratic_add(&q, x, NULL, labels, RECORDS);
    dpf_quadratic_release_noisy(&q, NULL, a, b);
    const struct dpf_quadratic_form form = {.n = N, .outputs = CLASSES, .a = a, .b = b};
    CU_ASSERT_FATAL(dpf_quadratic_solve(&form, &repair, w, &outcome, NULL) == DPF_OK);
    for (size_t k = 0; k < CLASSES; k++)
        for (size_t j = 0; j < N; j++) { /* the gradient of (1/2 - y) z + z^2 / 8 is 0 */
            double gradient = 0;
            for (size_t i = 0; i < RECORDS; i++) {
                double z = w[k], y = labels[i] == (int32_t)k;
                for (size_t m = 0; m < FEATURES; m++)
                    z += w[(m + 1) * CLASSES + k] * (double)x[i * FEATURES + m];
                gradient += (0.5 - y + z / 4) * (j ? (double)x[i * FEATURES + j - 1] : 1);
            }
            CU_ASSERT_DOUBLE_EQUAL(gradient, 0, 1e-3); /* values are on a grid */
        }
    dpf_quadratic_release(&q);
}

static void worst_case_through_the_code(void)
{
    const float one[] = {1, 1}, zero[] = {0, 0}, up = 1, down = -1;
    struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_SOUND,
                                      .features = 2,
                                      .intercept = true,
                                      .outputs = 1,
                                      .epsilon = 1};
    struct dpf_quadratic q;
    CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
    struct sums s = sums_of_records(&plan, one, &up, NULL, 1, NULL);
    struct sums t = sums_of_records(&plan, zero, &down, NULL, 1, NULL);
    double all =
        l1_apart(&s, &t, q.laplace_a.step, false, 3) + b_apart(&s, &t, q.laplace_a.step);
    CU_ASSERT_DOUBLE_EQUAL(all, 9, 0);
    CU_ASSERT_DOUBLE_EQUAL(q.sensitivity, 9, 0);
    ABOVE("scale", q.laplace_a.scale, 9.);
    BELOW("scale", q.laplace_a.scale, 9 * (1 + 1e-9));
    dpf_quadratic_release(&q);
}

/* The L2 distance of the weighted integers. */
static double l2_apart(const struct dpf_quadratic *q, const struct sums *s,
                       const struct sums *t)
{
    double sum = 0;
    for (size_t j = 0; j < q->n; j++)
        for (size_t k = j; k < q->n; k++) {
            double move = (double)(s->a[j * q->n + k] - t->a[j * q->n + k]);
            sum += (j == k ? 1 : 2) * move * move;
        }
    for (size_t i = 0; i < q->n * q->plan.outputs; i++)
        sum += pow(q->weight * (double)(s->b[i] - t->b[i]), 2);
    return sqrt(sum) * ldexp(1, -2 * q->bits);
}

static void neighbours_in_a_ball(void)
{
    static const double radii[] = {0, 1, 0.3, 7};
    double most = 0;
    state = 7;
    for (int turn = 0; turn < 6000; turn++) {
        enum { RECORDS = 3, FEATURES = 3 };
        struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_GAUSSIAN,
                                          .features = 1 + (size_t)turn % FEATURES,
                                          .intercept = turn / 2 % 2,
                                          .classes = turn / 4 % 2,
                                          .outputs = turn / 4 % 2 ? 3 : 1,
                                          .non_negative = turn / 8 % 2,
                                          .replace_one = turn / 16 % 2,
                                          .radius = radii[turn / 32 % COUNT(radii)],
                                          .epsilon = turn / 128 % 2 ? 1 : 1e-4,
                                          .delta = 1e-6};
        float x[RECORDS * FEATURES], y[RECORDS];
        int32_t labels[RECORDS];
        size_t d = plan.features;
        float scale = plan.radius > 0 ? (float)plan.radius : 1;
        for (size_t i = 0; i < COUNT(x); i++)
            x[i] = scale * hostile();
        for (size_t i = 0; i < RECORDS; i++) {
            y[i] = hostile();
            labels[i] = (int32_t)uniform(0, 3);
        }
        struct sums before = sums_of_records(&plan, x, y, labels, RECORDS, NULL);
        for (size_t j = 0; j < d; j++)
            x[2 * d + j] = scale * hostile(); /* the last record */
        y[2] = hostile();
        labels[2] = (int32_t)uniform(0, 3);
        struct sums after = sums_of_records(
            &plan, x, y, labels, plan.replace_one ? RECORDS : RECORDS - 1, NULL);
        struct dpf_quadratic q;
        CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
        double apart = l2_apart(&q, &before, &after);
        BELOW("apart", apart, q.sensitivity);
        most = fmax(most, apart / q.sensitivity);
        ABOVE("sensitivity", q.gaussian.sensitivity_l2, q.sensitivity);
        ABOVE("deviation", q.gaussian.noise_stddev,
              q.gaussian.noise_multiplier * q.sensitivity);
        BELOW("epsilon", dpf_gdp_epsilon(1 / q.gaussian.noise_multiplier, plan.delta),
              plan.epsilon * (1 + 1e-9));
        dpf_quadratic_release(&q);
    }
    ABOVE("came near", most, 0.9);
}

/* A row's squares never leave the ball, however its values are rounded. */
static void rows_stay_in_the_ball(void)
{
    static const double radii[] = {1, 0.3, 2, 1e-3, 1e4};
    state = 8;
    for (int turn = 0; turn < 5000; turn++) {
        struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_GAUSSIAN,
                                          .features = 1 + (size_t)turn % 7,
                                          .intercept = turn / 2 % 2,
                                          .outputs = 1,
                                          .radius = radii[turn % COUNT(radii)],
                                          .epsilon = turn % 3 ? 1 : 1e-4,
                                          .delta = 1e-6};
        float x[7], y = 1;
        double norm = 0;
        for (size_t j = 0; j < plan.features; j++) {
            x[j] = (float)uniform(-1, 1);
            norm += (double)x[j] * (double)x[j];
        }
        /* on the sphere, up to a float's rounding, or well outside */
        for (size_t j = 0; j < plan.features; j++)
            x[j] = (float)((double)x[j] * plan.radius / sqrt(norm) * (turn % 4 ? 1 : 3));
        if (turn % 50 == 0)
            x[0] = hostile();
        struct dpf_quadratic q;
        uint64_t clipped;
        struct sums s = sums_of_records(&plan, x, &y, NULL, 1, &clipped);
        CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
        int64_t squares_sum = 0;
        for (size_t j = plan.intercept; j < q.n; j++)
            squares_sum += s.a[j * q.n + j];
        double ball = plan.radius / q.unit * ldexp(1, q.bits);
        BELOW("squares", (double)squares_sum, ball * ball);
        if (turn % 50) {
            CU_ASSERT_EQUAL(clipped, turn % 4 == 0);
            if (ball > 1000)
                ABOVE("squares", (double)squares_sum, ball * ball * 0.98);
        }
        if (plan.intercept)
            BELOW("intercept", (double)s.a[0], pow(ldexp(1, q.bits) / q.unit, 2));
        dpf_quadratic_release(&q);
    }
}

static void hostile_values_are_clipped(void)
{
    const float x[] = {NAN, INFINITY, -INFINITY, 2, -2, 0.5f}, y[] = {NAN, 9};
    struct dpf_quadratic_plan plan = {
        .variant = DPF_QUADRATIC_PLAIN, .features = 3, .outputs = 1};
    uint64_t clipped;
    double unit = 0x1p36;
    struct sums s = sums_of_records(&plan, x, y, NULL, 2, &clipped);
    CU_ASSERT_EQUAL(clipped, 7);
    /* records (0, 1, -1), 0 and (1, -1, 0.5), 1 */
    static const double a[] = {1, -1, 0.5, 0, 2, -1.5, 0, 0, 1.25}, b[] = {1, -1, 0.5};
    for (int i = 0; i < 9; i++)
        CU_ASSERT_DOUBLE_EQUAL((double)s.a[i] / unit, a[i], 0);
    for (int i = 0; i < 3; i++)
        CU_ASSERT_DOUBLE_EQUAL((double)s.b[i] / unit, b[i], 0);
    /* in a ball a bad value takes its record with it */
    plan.radius = 1;
    s = sums_of_records(&plan, x, y, NULL, 1, &clipped);
    CU_ASSERT_EQUAL(clipped, 2); /* x and y */
    for (int i = 0; i < 9; i++)
        CU_ASSERT_EQUAL(s.a[i], 0);
    /* too large to be squared as a float */
    const float large[] = {3e38f, 0, -3e38f};
    s = sums_of_records(&plan, large, y + 1, NULL, 1, &clipped);
    CU_ASSERT_EQUAL(clipped, 2);
    CU_ASSERT_DOUBLE_EQUAL((double)s.a[0] / unit, 0.5, 1e-4);
    CU_ASSERT_DOUBLE_EQUAL((double)s.a[2] / unit, -0.5, 1e-4);
    BELOW("ball", (double)(s.a[0] + s.a[4] + s.a[8]), unit);
}

/* Negative values where there are none are outside the bounds like any others. */
static void negative_values_are_counted(void)
{
    const float x[] = {-0.5f, 0.5f}, y = 0;
    struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_PLAIN,
                                      .features = 2,
                                      .outputs = 1,
                                      .non_negative = true};
    uint64_t clipped;
    for (int ball = 0; ball < 2; ball++) {
        plan.radius = ball;
        struct sums s = sums_of_records(&plan, x, &y, NULL, 1, &clipped);
        CU_ASSERT_EQUAL(s.a[0], 0);
        CU_ASSERT_EQUAL(s.a[1], 0);
        CU_ASSERT(s.a[3] > 0);
        CU_ASSERT(told(clipped == 1, ball ? "ball" : "box", (double)clipped, 1));
    }
}

/* Order and division into calls do not change a bit. */
static void sums_do_not_depend_on_order(void)
{
    enum { RECORDS = 500001, FEATURES = 3 }; /* sums above 2^53 */
    static const size_t chunks[] = {RECORDS, 3, 511, 512, 513, 40000};
    float *x = malloc(RECORDS * FEATURES * sizeof *x), *y = malloc(RECORDS * sizeof *y);
    float *turned = malloc(RECORDS * FEATURES * sizeof *x);
    float *turned_y = malloc(RECORDS * sizeof *y);
    CU_ASSERT_FATAL(x && y && turned && turned_y);
    state = 9;
    for (int ball = 0; ball < 2; ball++) {
        struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_PLAIN,
                                          .features = FEATURES,
                                          .intercept = true,
                                          .outputs = 1,
                                          .radius = ball};
        for (size_t i = 0; i < RECORDS; i++) {
            y[i] = hostile();
            turned_y[RECORDS - 1 - i] = y[i];
            for (size_t j = 0; j < FEATURES; j++) {
                x[i * FEATURES + j] = hostile();
                turned[(RECORDS - 1 - i) * FEATURES + j] = x[i * FEATURES + j];
            }
        }
        struct sums due = sums_of_records(&plan, x, y, NULL, RECORDS, NULL);
        struct sums again = sums_of_records(&plan, turned, turned_y, NULL, RECORDS, NULL);
        CU_ASSERT(memcmp(&due, &again, sizeof due) == 0);
        CU_ASSERT_EQUAL(due.a[0], (int64_t)RECORDS << 36);
        for (size_t c = 0; c < COUNT(chunks); c++) {
            struct dpf_quadratic q;
            CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
            for (size_t done = 0; done < RECORDS; done += chunks[c]) {
                size_t left = RECORDS - done < chunks[c] ? RECORDS - done : chunks[c];
                dpf_quadratic_add(&q, x + done * FEATURES, y + done, NULL, left);
            }
            again = sums_of(&q);
            CU_ASSERT(memcmp(&due, &again, sizeof due) == 0);
            dpf_quadratic_release(&q);
        }
    }
    free(x);
    free(y);
    free(turned);
    free(turned_y);
}

/* Without noise, the coefficients themselves, in units of x. */
static void plain_release(void)
{
    static const double radii[] = {0, 1, 0.25, 3};
    for (size_t r = 0; r < COUNT(radii); r++)
        for (int intercept = 0; intercept < 2; intercept++) {
            enum { RECORDS = 40, FEATURES = 3, CLASSES = 4, MOST_N = FEATURES + 1 };
            struct dpf_quadratic_plan plan = {.variant = DPF_QUADRATIC_PLAIN,
                                              .features = FEATURES,
                                              .intercept = intercept,
                                              .classes = true,
                                              .outputs = CLASSES,
                                              .radius = radii[r]};
            float x[RECORDS * FEATURES];
            int32_t labels[RECORDS];
            double due_a[MOST_N * MOST_N] = {0}, due_b[MOST_N * CLASSES] = {0};
            double a[MOST_N * MOST_N], b[MOST_N * CLASSES];
            double unit = radii[r] > 0 ? radii[r] : 1;
            size_t n = FEATURES + (size_t)intercept;
            state = 10;
            for (size_t i = 0; i < RECORDS; i++) {
                double row[MOST_N] = {1, 0, 0, 0};
                labels[i] = (int32_t)uniform(0, CLASSES);
                for (size_t j = 0; j < FEATURES; j++) {
                    x[i * FEATURES + j] = (float)uniform(-unit / 2, unit / 2);
                    row[j + (size_t)intercept] = (double)x[i * FEATURES + j];
                }
                for (size_t j = 0; j < n; j++) {
                    for (size_t k = 0; k < n; k++)
                        due_a[j * n + k] += row[j] * row[k];
                    due_b[j * CLASSES + (size_t)labels[i]] += row[j];
                }
            }
            struct dpf_quadratic q;
            struct dpf_random random;
            dpf_random_init_insecure(&random, "test", 1, 1);
            CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
            dpf_quadratic_add(&q, x, NULL, labels, RECORDS);
            dpf_quadratic_release_noisy(&q, &random, a, b);
            double slack = RECORDS * fmax(unit, 1) * fmax(unit, 1) * 2e-5;
            for (size_t i = 0; i < n * n; i++)
                CU_ASSERT_DOUBLE_EQUAL(a[i], due_a[i], slack);
            for (size_t i = 0; i < n * CLASSES; i++)
                CU_ASSERT_DOUBLE_EQUAL(b[i], due_b[i], slack);
            /* it is gone afterwards */
            dpf_quadratic_release_noisy(&q, &random, a, b);
            for (size_t i = 0; i < n * n; i++)
                CU_ASSERT_DOUBLE_EQUAL(a[i], 0, 0);
            for (size_t i = 0; i < n * CLASSES; i++)
                CU_ASSERT_DOUBLE_EQUAL(b[i], 0, 0);
            dpf_quadratic_release(&q);
            dpf_random_release(&random);
        }
}

/* ------------------------------------------------------------------------------- noise
 */

/* Sums of squares of so many draws, and of what they should be. */
struct spread {
    double sum, square;
    size_t count;
};

static void count_in(struct spread *s, double value)
{
    s->sum += value;
    s->square += value * value;
    s->count++;
}

/* `kurtosis` of the noise decides how much an empirical variance varies; five deviations
 * are a chance of 1e-6. */
static void check_spread(const char *what, const struct spread *s, double deviation,
                         double kurtosis)
{
    double n = (double)s->count, ratio = s->square / n / (deviation * deviation);
    double slack = 5 * sqrt((kurtosis - 1) / n);
    BELOW(what, fabs(ratio - 1), slack);
    BELOW(what, fabs(s->sum / n) / deviation, 5 / sqrt(n));
}

static void noise_is_as_stated(void)
{
    enum { FEATURES = 3, CLASSES = 2, RELEASES = 1500, N = FEATURES + 1 };
    static const double radii[] = {0, 2, 0.5};
    struct dpf_random random;
    dpf_random_init_insecure(&random, "test", 3, 1);
    for (int variant = 0; variant < 3; variant++)
        for (size_t r = 0; r < (variant == DPF_QUADRATIC_GAUSSIAN ? COUNT(radii) : 1);
             r++) {
            struct dpf_quadratic_plan plan = {.variant =
                                                  (enum dpf_quadratic_variant)variant,
                                              .features = FEATURES,
                                              .intercept = true,
                                              .classes = true,
                                              .outputs = CLASSES,
                                              .radius = radii[r],
                                              .replace_one = true,
                                              .epsilon = 0.7,
                                              .delta = 1e-6};
            struct dpf_quadratic q;
            struct spread diagonal = {0}, off = {0}, moments = {0};
            double a[N * N], b[N * CLASSES], cross = 0;
            CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, NULL) == DPF_OK);
            for (int release = 0; release < RELEASES; release++) {
                dpf_quadratic_release_noisy(&q, &random, a, b);
                for (size_t j = 0; j < N; j++)
                    for (size_t k = j; k < N; k++) {
                        CU_ASSERT(a[j * N + k] == a[k * N + j]);
                        count_in(j == k ? &diagonal : &off, a[j * N + k]);
                    }
                for (size_t i = 0; i < N * CLASSES; i++)
                    count_in(&moments, b[i]);
                cross += a[1] * a[2] + a[0] * b[0]; /* no noise is used twice */
            }
            bool normal = variant == DPF_QUADRATIC_GAUSSIAN;
            bool paper = variant == DPF_QUADRATIC_PAPER;
            double noise_a = dpf_quadratic_noise_a(&q),
                   noise_b = dpf_quadratic_noise_b(&q);
            /* the mean of two Laplace draws off the paper's diagonal; the Gaussian's
             * off-diagonal entries stand for two */
            check_spread("off the diagonal", &off, noise_a, normal ? 3 : paper ? 4.5 : 6);
            check_spread("diagonal", &diagonal,
                         noise_a * (variant == DPF_QUADRATIC_SOUND ? 1 : M_SQRT2),
                         normal ? 3 : 6);
            check_spread("moments", &moments, noise_b, normal ? 3 : 6);
            BELOW("independent",
                  fabs(cross) / (noise_a * noise_a + M_SQRT2 * noise_a * noise_b),
                  5 * sqrt(RELEASES));
            /* and as large as the claim asks for */
            double n = N, e = 0.7, whole = 2 * n * n + 4 * n;
            if (paper) {
                CU_ASSERT_DOUBLE_EQUAL(noise_a, whole / e, 1e-6 * whole);
                CU_ASSERT_DOUBLE_EQUAL(noise_b, M_SQRT2 * whole / 2 / e, 1e-6 * whole);
                CU_ASSERT_DOUBLE_EQUAL(q.claimed_epsilon, e, 0);
                CU_ASSERT_DOUBLE_EQUAL(q.proven_epsilon,
                                       e * (n * n + 4 * n) / (2 * n * n + 4 * n), 1e-9);
            } else if (!normal) {
                double joint = dpf_quadratic_l1(FEATURES, true, true);
                ABOVE("sound", noise_a, M_SQRT2 * joint / e);
                BELOW("sound", noise_a, M_SQRT2 * joint / e * (1 + 1e-6));
                BELOW("proven", q.proven_epsilon, e);
            } else {
                double ball = radii[r] > 0 ? radii[r] * radii[r] : FEATURES;
                double square = ball + 1, w = sqrt(square);
                double s = dpf_quadratic_l2(square, w, true, false);
                double m = 1 / dpf_gdp_mu(e, 1e-6);
                /* in units of x the form does not know about the unit */
                CU_ASSERT_DOUBLE_EQUAL(noise_a / (m * s * M_SQRT1_2), 1, 1e-6);
                ABOVE("gaussian", noise_a, m * s * M_SQRT1_2 * (1 - 1e-12));
            }
            dpf_quadratic_release(&q);
        }
    dpf_random_release(&random);
}

static void bad_plans_are_refused(void)
{
    static const double epsilons[] = {0, -1, NAN, INFINITY}, deltas[] = {0, 1, -1, NAN};
    for (int variant = 0; variant < 3; variant++) {
        const struct dpf_quadratic_plan good = {.variant =
                                                    (enum dpf_quadratic_variant)variant,
                                                .features = 3,
                                                .outputs = 1,
                                                .epsilon = 1,
                                                .delta = 1e-6};
        struct dpf_quadratic_plan plan = good;
        struct dpf_quadratic q;
        struct dpf_error e;
        CU_ASSERT_FATAL(dpf_quadratic_init(&q, &plan, &e) == DPF_OK);
        dpf_quadratic_release(&q);
        dpf_quadratic_release(&q); /* twice does no harm */
        for (size_t i = 0; i < COUNT(epsilons); i++) {
            plan.epsilon = epsilons[i];
            CU_ASSERT(dpf_quadratic_init(&q, &plan, &e) == DPF_USAGE);
        }
        plan = good;
        for (size_t i = 0; variant == DPF_QUADRATIC_GAUSSIAN && i < COUNT(deltas); i++) {
            plan.delta = deltas[i];
            CU_ASSERT(dpf_quadratic_init(&q, &plan, &e) == DPF_USAGE);
        }
        plan = good;
        plan.features = 0;
        CU_ASSERT(dpf_quadratic_init(&q, &plan, &e) == DPF_USAGE);
        plan = good;
        plan.outputs = 0;
        CU_ASSERT(dpf_quadratic_init(&q, &plan, &e) == DPF_USAGE);
        plan = good;
        plan.features = (size_t)-1;
        plan.intercept = true;
        CU_ASSERT(dpf_quadratic_init(&q, &plan, &e) == DPF_USAGE);
        plan = good; /* noise that no grid can hold */
        plan.epsilon = 1e-12;
        plan.delta = 1e-30;
        CU_ASSERT(dpf_quadratic_init(&q, &plan, &e) == DPF_USAGE);
    }
}

/* ------------------------------------------------------------------------------ solver
 */

enum { N = 6, OUTPUTS = 3 };

/* An orthogonal matrix: rows of a rotated basis, by Gram and Schmidt. */
static void orthogonal(double q[N][N])
{
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < N; k++)
            q[i][k] = uniform(-1, 1);
        for (int turn = 0; turn < 2; turn++)
            for (int j = 0; j < i; j++) {
                double dot = 0;
                for (int k = 0; k < N; k++)
                    dot += q[i][k] * q[j][k];
                for (int k = 0; k < N; k++)
                    q[i][k] -= dot * q[j][k];
            }
        double square = 0;
        for (int k = 0; k < N; k++)
            square += q[i][k] * q[i][k];
        for (int k = 0; k < N; k++)
            q[i][k] /= sqrt(square);
    }
}

/* A form with these curvatures, and what is due if direction i is taken `gain[i]` times
 * its moment. */
static void make_form(const double *curvatures, const double *gains, double *a, double *b,
                      double *w)
{
    double q[N][N];
    orthogonal(q);
    memset(a, 0, N * N * sizeof *a);
    memset(w, 0, N * OUTPUTS * sizeof *w);
    for (int i = 0; i < N * OUTPUTS; i++)
        b[i] = uniform(-3, 3);
    for (int d = 0; d < N; d++)
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++)
                a[i * N + j] += curvatures[d] * q[d][i] * q[d][j];
            for (int o = 0; o < OUTPUTS; o++)
                for (int j = 0; j < N; j++)
                    w[i * OUTPUTS + o] +=
                        gains[d] * q[d][i] * q[d][j] * b[j * OUTPUTS + o];
        }
}

static void solve_well_conditioned(void)
{
    state = 11;
    for (int turn = 0; turn < 50; turn++) {
        double curvatures[N], gains[N], a[N * N], b[N * OUTPUTS], due[N * OUTPUTS];
        double w[N * OUTPUTS];
        for (int i = 0; i < N; i++) {
            curvatures[i] = exp(uniform(-3, 6));
            gains[i] = 1 / curvatures[i];
        }
        make_form(curvatures, gains, a, b, due);
        struct dpf_quadratic_form form = {N, OUTPUTS, a, b, 0.5};
        struct dpf_quadratic_repair repair = {.none = turn % 2};
        struct dpf_quadratic_outcome outcome;
        CU_ASSERT_FATAL(dpf_quadratic_solve(&form, &repair, w, &outcome, NULL) == DPF_OK);
        CU_ASSERT_EQUAL(outcome.dropped, 0);
        CU_ASSERT_DOUBLE_EQUAL(outcome.ridge, 0, 0);
        for (int i = 0; i < N * OUTPUTS; i++)
            CU_ASSERT_DOUBLE_EQUAL(w[i], due[i], 1e-9 * (1 + fabs(due[i])));
        /* the gradient is 0 there */
        for (int i = 0; i < N; i++)
            for (int o = 0; o < OUTPUTS; o++) {
                double gradient = -b[i * OUTPUTS + o];
                for (int j = 0; j < N; j++)
                    gradient += a[i * N + j] * w[j * OUTPUTS + o];
                CU_ASSERT_DOUBLE_EQUAL(gradient, 0, 1e-9);
            }
    }
    /* the smallest form */
    double one = 4, two = 2, w;
    struct dpf_quadratic_form form = {1, 1, &one, &two, 0};
    struct dpf_quadratic_repair repair = {.none = true};
    struct dpf_quadratic_outcome outcome;
    CU_ASSERT_FATAL(dpf_quadratic_solve(&form, &repair, &w, &outcome, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(w, 0.5, 1e-15);
}

/* Directions without a minimum are left out; a ridge lifts those that it can. */
static void solve_indefinite(void)
{
    static const double curvatures[N] = {-3, -0.5, 0, 0.25, 2, 10};
    static const struct {
        double ridge;
        size_t dropped;
    } cases[] = {{0, 3}, {1e-3, 2}, {0.5, 1}, {2, 0}};
    state = 12;
    for (size_t c = 0; c < COUNT(cases); c++) {
        /* 2 * noise * sqrt(n) = 2: a ridge of 1 is 2 */
        double a[N * N], b[N * OUTPUTS], due[N * OUTPUTS], w[N * OUTPUTS], gains[N];
        double noise = 1 / sqrt(N), ridge = cases[c].ridge * 2;
        for (int i = 0; i < N; i++) {
            double value = curvatures[i] + ridge;
            gains[i] = value > 1e-9 ? 1 / value : 0;
        }
        make_form(curvatures, gains, a, b, due);
        struct dpf_quadratic_form form = {N, OUTPUTS, a, b, noise};
        struct dpf_quadratic_repair repair = {.ridge = cases[c].ridge};
        struct dpf_quadratic_outcome outcome;
        CU_ASSERT_FATAL(dpf_quadratic_solve(&form, &repair, w, &outcome, NULL) == DPF_OK);
        CU_ASSERT_DOUBLE_EQUAL(outcome.smallest, -3, 1e-9);
        CU_ASSERT_DOUBLE_EQUAL(outcome.ridge, ridge, 1e-12);
        CU_ASSERT(told(outcome.dropped == cases[c].dropped, "dropped",
                       (double)outcome.dropped, (double)cases[c].dropped));
        for (int i = 0; i < N * OUTPUTS; i++) {
            CU_ASSERT(isfinite(w[i]));
            CU_ASSERT_DOUBLE_EQUAL(w[i], due[i], 1e-6 * (1 + fabs(due[i])));
        }
    }
}

/* As it is: the saddle point, and a word about it. */
static void solve_without_repair(void)
{
    static const double curvatures[N] = {-3, -0.5, -0.01, 0.25, 2, 10};
    double a[N * N], b[N * OUTPUTS], due[N * OUTPUTS], w[N * OUTPUTS], gains[N];
    for (int i = 0; i < N; i++)
        gains[i] = 1 / curvatures[i];
    state = 13;
    make_form(curvatures, gains, a, b, due);
    struct dpf_quadratic_form form = {N, OUTPUTS, a, b, 1};
    struct dpf_quadratic_repair repair = {.none = true, .ridge = 5};
    struct dpf_quadratic_outcome outcome;
    CU_ASSERT_FATAL(dpf_quadratic_solve(&form, &repair, w, &outcome, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(outcome.smallest, -3, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(outcome.ridge, 0, 0);
    CU_ASSERT_EQUAL(outcome.dropped, 0);
    for (int i = 0; i < N * OUTPUTS; i++)
        CU_ASSERT_DOUBLE_EQUAL(w[i], due[i], 1e-8 * (1 + fabs(due[i])));
}

static void solve_nothing_and_nonsense(void)
{
    double a[N * N] = {0}, b[N * OUTPUTS], w[N * OUTPUTS];
    for (int i = 0; i < N * OUTPUTS; i++)
        b[i] = i;
    for (int none = 0; none < 2; none++) {
        struct dpf_quadratic_form form = {N, OUTPUTS, a, b, 0};
        struct dpf_quadratic_repair repair = {.none = none, .ridge = 1};
        struct dpf_quadratic_outcome outcome;
        CU_ASSERT_FATAL(dpf_quadratic_solve(&form, &repair, w, &outcome, NULL) == DPF_OK);
        CU_ASSERT_EQUAL(outcome.dropped, N);
        for (int i = 0; i < N * OUTPUTS; i++)
            CU_ASSERT_DOUBLE_EQUAL(w[i], 0, 0);
        double noisy[N * N] = {0};
        noisy[1] = noisy[N] = NAN;
        form.a = noisy;
        struct dpf_error e = {0};
        CU_ASSERT(dpf_quadratic_solve(&form, &repair, w, &outcome, &e) == DPF_SYSTEM);
        CU_ASSERT(e.message[0] != '\0');
    }
}

const char dpf_suite[] = "sensitivity";
const struct dpf_test dpf_tests[] = {
    {"triangle and moments of numbers, brute force", joint_of_numbers},
    {"triangle and moments of classes, brute force", joint_of_classes},
    {"the paper's matrix and moments, brute force", apart_in_the_paper},
    {"L2 with and without replacement, brute force", squares},
    {"signed features of one class exceed S = 2", signed_features_of_one_class},
    {"neighbours in a box, through the code", neighbours_in_a_box},
    {"the head of pCDBN: no record costs more than is proven", taylor_head},
    {"the head of pCDBN: its minimum is that of the expanded cross-entropy",
     taylor_minimum},
    {"the worst case, through the code", worst_case_through_the_code},
    {"neighbours in a ball, through the code", neighbours_in_a_ball},
    {"rounded rows stay in the ball", rows_stay_in_the_ball},
    {"hostile values are clipped and counted", hostile_values_are_clipped},
    {"negative values are clipped and counted", negative_values_are_counted},
    {"order and calls do not change the sums", sums_do_not_depend_on_order},
    {"released without noise, once", plain_release},
    {"the noise is as stated", noise_is_as_stated},
    {"bad plans are refused", bad_plans_are_refused},
    {"solver: well-conditioned forms", solve_well_conditioned},
    {"solver: indefinite forms are repaired", solve_indefinite},
    {"solver: no repair", solve_without_repair},
    {"solver: nothing, and nonsense", solve_nothing_and_nonsense},
    {NULL, NULL},
};
