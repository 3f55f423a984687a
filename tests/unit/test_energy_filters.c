/* Filters from polynomial energies: the polynomial and its gradient against plain loops,
 * and what each way to filters ends with on moments that are known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "nn/energy_filters.h"

#include "base/banned.h"

const char dpf_suite[] = "energy filters";

static uint64_t state = 7;

static double uniform(double lo, double hi)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(state >> 11) * 0x1p-53;
}

enum { PATCHES = 40, VALUES = 4, Q = VALUES + 1, MOST = 5000 };

static double patches[PATCHES][Q];

static void draw_patches(void)
{
    for (int i = 0; i < PATCHES; i++) {
        double common = uniform(0, 1);
        patches[i][0] = 1;
        for (int j = 1; j < Q; j++)
            patches[i][j] = j < 3 ? common * uniform(0.5, 1) : uniform(0, 0.4);
    }
}

/* The energy as it is meant: a sum over patches. */
static double direct(const double *alpha, int degree, const double *w)
{
    double energy = 0;
    for (int i = 0; i < PATCHES; i++) {
        double x = 0, sum = 0;
        for (int j = 0; j < Q; j++)
            x += w[j] * patches[i][j];
        for (int l = 0; l <= degree; l++)
            sum += alpha[l] * pow(x, l);
        energy -= x * sum;
    }
    return energy;
}

/* Coefficients by counting: each ordered tuple adds to that of its sorted indexes. */
static size_t coefficients_of(const double *alpha, int degree, double *out)
{
    size_t all = 0;
    for (int l = 0; l <= degree; l++) {
        int k = l + 1, total = (int)pow(Q, k);
        if (alpha[l] == 0)
            continue;
        for (int sorted = 0; sorted < total; sorted++) {
            int a[6], good = 1;
            for (int i = 0, rest = sorted; i < k; i++, rest /= Q)
                a[k - 1 - i] = rest % Q;
            for (int i = 1; i < k; i++)
                good = good && a[i - 1] <= a[i];
            if (!good)
                continue;
            double moment = 0, ways = 0;
            for (int other = 0; other < total; other++) {
                int left[Q] = {0};
                for (int i = 0, rest = other; i < k; i++, rest /= Q)
                    left[rest % Q]++;
                for (int i = 0; i < k; i++)
                    left[a[i]]--;
                int same = 1;
                for (int j = 0; j < Q; j++)
                    same = same && left[j] == 0;
                ways += same;
            }
            for (int i = 0; i < PATCHES; i++) {
                double product = 1;
                for (int j = 0; j < k; j++)
                    product *= patches[i][a[j]];
                moment += product;
            }
            CU_ASSERT_FATAL(all < MOST);
            out[all++] = -alpha[l] * ways * moment;
        }
    }
    return all;
}

static const double sigmoid3[] = {0.5, 0.2499, 0, -0.0208};
static const double full[] = {0.3, -0.7, 0.25, 0.125};

static void test_polynomial(void)
{
    static double c[MOST];
    const double *const alphas[] = {sigmoid3, full};
    draw_patches();
    for (int which = 0; which < 2; which++)
        for (int degree = 1; degree <= 3; degree += which ? 1 : 2) {
            struct dpf_energy_polynomial p = {.variables = Q,
                                              .degree = degree,
                                              .expansion = alphas[which],
                                              .coefficients = c};
            coefficients_of(alphas[which], degree, c);
            for (int t = 0; t < 20; t++) {
                double w[Q], gradient[Q];
                for (int j = 0; j < Q; j++)
                    w[j] = t == 0 ? 0 : uniform(-1, 1);
                double energy = dpf_energy_at(&p, w, gradient);
                CU_ASSERT_DOUBLE_EQUAL(energy, direct(alphas[which], degree, w), 1e-9);
                for (int j = 0; j < Q; j++) {
                    double kept = w[j], step = 1e-5;
                    w[j] = kept + step;
                    double above = dpf_energy_at(&p, w, NULL);
                    w[j] = kept - step;
                    double below = dpf_energy_at(&p, w, NULL);
                    w[j] = kept;
                    CU_ASSERT_DOUBLE_EQUAL(gradient[j], (above - below) / (2 * step),
                                           1e-6);
                }
            }
        }
}

static double dot(const double *a, const double *b)
{
    double sum = 0;
    for (int j = 1; j < Q; j++)
        sum += a[j] * b[j];
    return sum;
}

/* What all ways have in common: norms, and no filter that is not finite. */
static void solve(const struct dpf_energy_polynomial *p, struct dpf_filter_plan *plan,
                  double *w, struct dpf_filter_outcome *o)
{
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_energy_filters(p, plan, w, o, &e) == DPF_OK);
    for (size_t f = 0; f < plan->filters; f++) {
        CU_ASSERT(isfinite(w[f * Q]));
        CU_ASSERT(sqrt(dot(w + f * Q, w + f * Q)) <= plan->radius * (1 + 1e-12));
    }
}

static void test_descent(void)
{
    enum { FILTERS = 3 };
    static double c[MOST];
    double w[FILTERS * Q], at_start[FILTERS * Q];
    struct dpf_filter_outcome o, none;
    struct dpf_energy_polynomial p = {
        .variables = Q, .degree = 3, .expansion = sigmoid3, .coefficients = c};
    struct dpf_filter_plan plan = {.method = DPF_FILTERS_DESCENT,
                                   .filters = FILTERS,
                                   .radius = 2,
                                   .steps = 400,
                                   .rate = 0.5,
                                   .seed = 3};
    draw_patches();
    coefficients_of(sigmoid3, 3, c);
    solve(&p, &plan, w, &o);
    CU_ASSERT(o.last < o.first);
    for (size_t f = 1; f < FILTERS; f++) /* one least place for all, as printed */
        for (int j = 0; j < Q; j++)
            CU_ASSERT_DOUBLE_EQUAL(w[f * Q + (size_t)j], w[j], 1e-3);
    plan.steps = 0;
    solve(&p, &plan, at_start, &none);
    CU_ASSERT(memcmp(at_start, w, sizeof w) != 0);
    plan.l1 = 10; /* stronger than the energy: filters stay about 0 */
    plan.steps = 2000;
    plan.rate = 1e-3;
    solve(&p, &plan, w, &o);
    CU_ASSERT(sqrt(dot(w, w)) < 0.1);
}

static void test_orthogonal(void)
{
    enum { FILTERS = 2 * VALUES + 1 }; /* more than there are directions */
    static double c[MOST];
    double w[FILTERS * Q];
    struct dpf_filter_outcome o;
    struct dpf_energy_polynomial p = {
        .variables = Q, .degree = 1, .expansion = sigmoid3, .coefficients = c};
    struct dpf_filter_plan plan = {.method = DPF_FILTERS_ORTHOGONAL,
                                   .filters = FILTERS,
                                   .radius = 1.5,
                                   .steps = 100,
                                   .rate = 0.5};
    draw_patches();
    coefficients_of(sigmoid3, 1, c);
    solve(&p, &plan, w, &o);
    for (size_t f = 0; f < VALUES; f++)
        for (size_t g = 0; g < f; g++)
            CU_ASSERT_DOUBLE_EQUAL(dot(w + f * Q, w + g * Q), 0, 1e-9);
    for (int j = 0; j < Q; j++) {
        CU_ASSERT_EQUAL(w[VALUES * Q + j], -w[j]);
        CU_ASSERT_EQUAL(w[2 * VALUES * Q + j], w[j]);
    }
}

/* Against the covariance by plain loops: each filter is one of its eigenvectors. */
static void test_components(void)
{
    enum { FILTERS = 2 * VALUES };
    static double c[MOST];
    double w[FILTERS * Q], mean[Q] = {0}, before = INFINITY, all = 0;
    struct dpf_filter_outcome o;
    struct dpf_energy_polynomial p = {
        .variables = Q, .degree = 3, .expansion = sigmoid3, .coefficients = c};
    struct dpf_filter_plan plan = {
        .method = DPF_FILTERS_COMPONENTS, .filters = FILTERS, .radius = 1};
    draw_patches();
    coefficients_of(sigmoid3, 3, c);
    solve(&p, &plan, w, &o);
    for (int i = 0; i < PATCHES; i++)
        for (int j = 0; j < Q; j++)
            mean[j] += patches[i][j] / PATCHES;
    for (size_t f = 0; f < FILTERS; f++) {
        const double *v = w + f * Q;
        double centre = v[0], image[Q] = {0};
        for (int j = 1; j < Q; j++)
            centre += v[j] * mean[j];
        CU_ASSERT_DOUBLE_EQUAL(centre, 0, 1e-12); /* the bias takes the mean away */
        for (int i = 0; i < PATCHES; i++) {
            double x = 0;
            for (int j = 1; j < Q; j++)
                x += v[j] * (patches[i][j] - mean[j]);
            for (int j = 1; j < Q; j++)
                image[j] += x * (patches[i][j] - mean[j]) / PATCHES;
        }
        double variance = dot(image, v);
        for (int j = 1; j < Q; j++)
            CU_ASSERT_DOUBLE_EQUAL(image[j], variance * v[j], 1e-10);
        CU_ASSERT(variance <= before + 1e-12);
        before = variance;
        all += f % 2 ? 0 : variance;
        if (f % 2)
            for (int j = 0; j < Q; j++)
                CU_ASSERT_EQUAL(v[j], -v[j - Q]);
    }
    CU_ASSERT_DOUBLE_EQUAL(o.share, 1, 1e-12);
    CU_ASSERT_EQUAL(o.noisy, 0);
    p.noise = 1e9; /* everything is below it; whitening must stay finite */
    plan.whiten = 1;
    plan.radius = 1;
    struct dpf_error e = {0};
    CU_ASSERT(dpf_energy_filters(&p, &plan, w, &o, &e) == DPF_OK);
    CU_ASSERT_EQUAL(o.noisy, FILTERS);
    for (size_t i = 0; i < FILTERS * Q; i++)
        CU_ASSERT(isfinite(w[i]));
}

/* The Gaussian's expansion is even: no monomials of degree two. */
static void test_refusals(void)
{
    static const double even[] = {0.9, 0, -0.4};
    static double c[MOST];
    double w[2 * Q];
    struct dpf_error e = {0};
    struct dpf_filter_outcome o;
    struct dpf_energy_polynomial p = {
        .variables = Q, .degree = 2, .expansion = even, .coefficients = c};
    struct dpf_filter_plan plan = {
        .method = DPF_FILTERS_COMPONENTS, .filters = 2, .radius = 1};
    draw_patches();
    coefficients_of(even, 2, c);
    CU_ASSERT(dpf_energy_filters(&p, &plan, w, &o, &e) == DPF_USAGE);
    CU_ASSERT(strstr(e.message, "degree two") != NULL);
    plan.method = DPF_FILTERS_DESCENT;
    plan.steps = 3;
    plan.rate = 0.1;
    CU_ASSERT(dpf_energy_filters(&p, &plan, w, &o, &e) == DPF_OK);
}

const struct dpf_test dpf_tests[] = {
    {"the polynomial and its gradient are those of a sum over patches", test_polynomial},
    {"descent as printed: every filter ends at the same place", test_descent},
    {"orthogonal filters stay apart, more than there are directions repeat",
     test_orthogonal},
    {"components are eigenvectors of the covariance", test_components},
    {"an energy without monomials of degree two has no components", test_refusals},
    {NULL, NULL},
};
