#include "nn/energy_filters.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "privacy/patch_moments.h"
#include "random/seeded.h"

#include "base/banned.h"

const struct dpf_filter_choice dpf_filter_choices[] = {
    {"descent", DPF_FILTERS_DESCENT},
    {"orthogonal", DPF_FILTERS_ORTHOGONAL},
    {"components", DPF_FILTERS_COMPONENTS},
    {NULL, DPF_FILTERS_DESCENT},
};

/* ------------------------------------------------------------------------ polynomial */

/* All monomials of degree k, in lexicographic order of their indexes. For a_1 <= ... <=
 * a_k, `before` holds the products of the first factors: only those behind an index that
 * changed are made anew. */
struct monomials {
    size_t degree, variables;
    size_t a[DPF_MOMENTS_MOST_DEGREE];
    double before[DPF_MOMENTS_MOST_DEGREE + 1];
};

static void products_from(struct monomials *m, size_t from, const double *w)
{
    for (size_t i = from; i < m->degree; i++)
        m->before[i + 1] = m->before[i] * w[m->a[i]];
}

static void begin_monomials(struct monomials *m, size_t degree, size_t variables,
                            const double *w)
{
    *m = (struct monomials){.degree = degree, .variables = variables, .before = {1}};
    products_from(m, 0, w);
}

static void next_monomial(struct monomials *m, const double *w)
{
    size_t i = m->degree;
    while (i > 1 && m->a[i - 1] == m->variables - 1)
        i--;
    m->a[i - 1]++;
    for (size_t j = i; j < m->degree; j++)
        m->a[j] = m->a[i - 1];
    products_from(m, i - 1, w);
}

static size_t block_of(const struct dpf_energy_polynomial *p, int l)
{
    return p->expansion[l] == 0 ? 0 : dpf_multichoose(p->variables, (size_t)l + 1);
}

double dpf_energy_at(const struct dpf_energy_polynomial *p, const double *w,
                     double *gradient)
{
    const double *c = p->coefficients;
    double energy = 0;
    if (gradient)
        memset(gradient, 0, p->variables * sizeof *gradient);
    for (int l = 0; l <= p->degree; l++) {
        struct monomials m;
        size_t count = block_of(p, l), k = (size_t)l + 1;
        begin_monomials(&m, k, p->variables, w);
        for (size_t i = 0; i < count; i++) {
            double behind = *c++;
            energy += behind * m.before[k];
            for (size_t j = k; gradient && j-- > 0; behind *= w[m.a[j]])
                gradient[m.a[j]] += behind * m.before[j];
            if (i + 1 < count)
                next_monomial(&m, w);
        }
    }
    return energy;
}

/* How many patches there are, with noise: the moment of the constant alone. */
static double patches_of(const struct dpf_energy_polynomial *p)
{
    int l = 0;
    while (l < p->degree && p->expansion[l] == 0)
        l++;
    double patches = fabs(p->coefficients[0] / p->expansion[l]);
    return patches > 1 ? patches : 1;
}

/* -------------------------------------------------------------------------- descent */

/* Random filters of the largest norm, without a bias. */
static void draw_starts(const struct dpf_filter_plan *plan, size_t variables, double *w)
{
    for (size_t f = 0; f < plan->filters; f++) {
        struct dpf_seeded r;
        double *filter = w + f * variables;
        dpf_seeded_init(&r, "energy-filters", plan->seed, f);
        filter[0] = 0;
        for (size_t i = 1; i < variables; i++)
            filter[i] = dpf_seeded_normal(&r);
        cblas_dscal((int)variables, plan->radius / cblas_dnrm2((int)variables, filter, 1),
                    filter, 1);
    }
}

static void hold(double *filter, size_t variables, double radius)
{
    double norm = cblas_dnrm2((int)variables, filter, 1);
    if (norm > radius)
        cblas_dscal((int)variables, radius / norm, filter, 1);
}

/* Filters from number f on that are orthogonal to those before them, biases apart. A
 * patch has `most` directions: those behind them are turned signs. */
static void set_apart(const struct dpf_filter_plan *plan, size_t variables, double *w)
{
    size_t most = variables - 1;
    int n = (int)most;
    for (size_t f = 0; f < plan->filters; f++) {
        double *filter = w + f * variables, *weights = filter + 1;
        if (f >= most) {
            for (size_t i = 0; i < variables; i++)
                filter[i] = (f / most % 2 ? -1 : 1) * w[f % most * variables + i];
            continue;
        }
        for (int twice = 0; twice < 2; twice++) /* once loses digits */
            for (size_t g = 0; g < f; g++) {
                const double *other = w + g * variables + 1;
                double square = cblas_ddot(n, other, 1, other, 1);
                if (square > 0)
                    cblas_daxpy(n, -cblas_ddot(n, other, 1, weights, 1) / square, other,
                                1, weights, 1);
            }
        double norm = cblas_dnrm2(n, weights, 1);
        if (norm > 0)
            cblas_dscal(n, plan->radius / norm, weights, 1);
        hold(filter, variables, plan->radius);
    }
}

/* One step of all filters; their mean energy before it. */
static double descend(const struct dpf_energy_polynomial *p,
                      const struct dpf_filter_plan *plan, double patches, double *w,
                      double *gradient)
{
    double energy = 0;
    for (size_t f = 0; f < plan->filters; f++) {
        double *filter = w + f * p->variables;
        energy += dpf_energy_at(p, filter, gradient) / patches;
        for (size_t i = 0; i < p->variables; i++) {
            double sign = filter[i] > 0 ? 1 : filter[i] < 0 ? -1 : 0;
            filter[i] -= plan->rate * (gradient[i] / patches + plan->l1 * sign);
        }
        hold(filter, p->variables, plan->radius);
    }
    if (plan->method == DPF_FILTERS_ORTHOGONAL)
        set_apart(plan, p->variables, w);
    return energy / (double)plan->filters;
}

static enum dpf_status by_descent(const struct dpf_energy_polynomial *p,
                                  const struct dpf_filter_plan *plan, double *w,
                                  struct dpf_filter_outcome *o, struct dpf_error *e)
{
    double patches = patches_of(p), sum = 0;
    double *gradient = dpf_calloc(p->variables, sizeof *gradient);
    if (!gradient)
        return dpf_fail_memory(e);
    draw_starts(plan, p->variables, w);
    if (plan->method == DPF_FILTERS_ORTHOGONAL)
        set_apart(plan, p->variables, w);
    for (int64_t step = 0; step < plan->steps; step++) {
        double energy = descend(p, plan, patches, w, gradient);
        o->first = step == 0 ? energy : o->first;
    }
    for (size_t f = 0; f < plan->filters; f++)
        sum += dpf_energy_at(p, w + f * p->variables, NULL) / patches;
    o->last = sum / (double)plan->filters;
    free(gradient);
    return DPF_OK;
}

/* ----------------------------------------------------------------------- components */

/* The mean patch and the upper triangle of the covariance, from the block of degree two:
 * its coefficients are - alpha_1 / Z times the moments, twice that off the diagonal. */
static enum dpf_status covariance(const struct dpf_energy_polynomial *p, double *mean,
                                  double *c, double *patches, struct dpf_error *e)
{
    size_t q = p->variables, n = q - 1;
    if (p->degree < 1 || p->expansion[1] == 0)
        return dpf_fail(e, DPF_USAGE,
                        "the energy has no monomials of degree two, which components "
                        "are of: another function or expansion");
    const double *second = p->coefficients + block_of(p, 0);
    double unit = -1 / p->expansion[1];
    *patches = fmax(second[0] * unit, 1);
    for (size_t j = 0; j < n; j++)
        mean[j] = second[j + 1] * unit / 2 / *patches;
    second += q;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            double moment = *second++ * unit / (i == j ? 1 : 2);
            c[i * n + j] = moment / *patches - mean[i] * mean[j];
        }
    return DPF_OK;
}

/* Noise of deviation s on a symmetric matrix of n rows has eigenvalues up to 2 s sqrt(n):
 * what is below is taken for that, so that whitening cannot blow it up. */
static double noise_edge(const struct dpf_energy_polynomial *p, double patches)
{
    return 2 * p->noise * sqrt((double)p->variables) / patches;
}

static enum dpf_status by_components(const struct dpf_energy_polynomial *p,
                                     const struct dpf_filter_plan *plan, double *w,
                                     struct dpf_filter_outcome *o, struct dpf_error *e)
{
    size_t q = p->variables, n = q - 1;
    double patches = 1, all = 0, kept = 0;
    double *mean = dpf_calloc(2 * n + n * n, sizeof *mean);
    double *variance = mean + n, *c = variance + n;
    if (!mean)
        return dpf_fail_memory(e);
    enum dpf_status status = covariance(p, mean, c, &patches, e);
    /* row-major: column i of the result is eigenvector i, the largest last */
    if (status == DPF_OK && LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'U', (lapack_int)n, c,
                                           (lapack_int)n, variance) != 0)
        status = dpf_fail(e, DPF_SYSTEM, "LAPACK cannot find the eigenvalues");
    double edge = noise_edge(p, patches), least = fmax(edge, 1e-12);
    for (size_t i = 0; status == DPF_OK && i < n; i++)
        all += fmax(variance[i], 0);
    for (size_t f = 0; status == DPF_OK && f < plan->filters; f++) {
        size_t column = n - 1 - f / 2 % n;
        double *filter = w + f * q, shift = 0;
        double scale = plan->radius * (f % 2 ? -1 : 1) *
                       pow(fmax(variance[column], least), -0.5 * plan->whiten);
        for (size_t i = 0; i < n; i++) {
            filter[i + 1] = scale * c[i * n + column];
            shift += filter[i + 1] * mean[i];
        }
        filter[0] = -shift;
        kept += f % 2 ? 0 : fmax(variance[column], 0);
        o->noisy += variance[column] < edge;
    }
    o->share = all > 0 ? fmin(kept / all, 1) : 0;
    free(mean);
    return status;
}

enum dpf_status dpf_energy_filters(const struct dpf_energy_polynomial *p,
                                   const struct dpf_filter_plan *plan, double *w,
                                   struct dpf_filter_outcome *outcome,
                                   struct dpf_error *e)
{
    *outcome = (struct dpf_filter_outcome){0};
    switch (plan->method) {
    case DPF_FILTERS_DESCENT:
    case DPF_FILTERS_ORTHOGONAL:
        return by_descent(p, plan, w, outcome, e);
    case DPF_FILTERS_COMPONENTS:
        return by_components(p, plan, w, outcome, e);
    }
    return DPF_OK;
}
