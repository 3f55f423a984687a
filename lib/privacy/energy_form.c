#include "privacy/energy_form.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "privacy/grid.h"

#include "base/banned.h"

enum { BOUND_BITS = 24, SUM_BITS = 36 };

static int top_of(const struct dpf_energy_plan *p) /* L */
{
    return p->patches.degree - 1;
}

/* ----------------------------------------------------------------------------- setup */

/* Coefficients of degree l + 1. */
static size_t block(const struct dpf_energy_form *f, int l)
{
    return f->plan.alpha[l] == 0 ? 0
                                 : dpf_multichoose(f->moments.variables, (size_t)l + 1);
}

/* A record of ones has every moment 1 as a mean over positions. */
static double largest_norm(const struct dpf_energy_form *f, bool l2)
{
    double count = (double)f->moments.count;
    return l2 ? sqrt(count) : count;
}

/* The grid: as many steps in the bound as leave room for squares, and for the noise. */
static void choose_grid(struct dpf_energy_form *f, int bound_bits)
{
    const struct dpf_patch_moments *m = &f->moments;
    double unit = (double)m->positions * ldexp(1, m->bits * m->plan.degree);
    double whole = f->clip * unit; /* the bound in steps of moments */
    int shift = (int)ceil(log2(whole)) - bound_bits;
    f->shift = shift > 0 ? shift : 0;
    f->bound = floor(ldexp(whole, -f->shift));
}

static enum dpf_status init_noise(struct dpf_energy_form *f, struct dpf_error *e)
{
    const struct dpf_energy_plan *p = &f->plan;
    bool l2 = p->variant == DPF_ENERGY_GAUSSIAN;
    enum dpf_status status = DPF_USAGE;
    f->clip = p->clip > 0 ? fmin(p->clip, largest_norm(f, l2)) : largest_norm(f, l2);
    for (int bits = BOUND_BITS; status != DPF_OK && bits >= 8; bits -= 4) {
        struct dpf_error *say = bits - 4 < 8 ? e : NULL;
        choose_grid(f, bits);
        double apart = f->bound * (!p->replace_one ? 1
                                   : l2            ? M_SQRT2 * (1 + 0x1p-50)
                                                   : 2);
        apart *= p->group ? (double)p->group : 1; /* a person's records, one by one */
        const struct dpf_laplace_query laplace = {.sensitivity_l1 = apart,
                                                  .exact_step = 1};
        const struct dpf_gaussian_query gaussian = {.sensitivity_l2 = apart,
                                                    .exact_step = 1};
        if (f->bound < 1)
            return dpf_fail(e, DPF_USAGE, "a clip norm of %g is below the grid of values",
                            f->clip);
        status = l2 ? dpf_gaussian_init_epsilon(&f->gaussian, &gaussian, p->epsilon,
                                                p->delta, say)
                    : dpf_laplace_init(&f->laplace, &laplace, p->epsilon, say);
    }
    return status;
}

enum dpf_status dpf_energy_form_init(struct dpf_energy_form *f,
                                     const struct dpf_energy_plan *plan,
                                     struct dpf_error *e)
{
    *f = (struct dpf_energy_form){.plan = *plan};
    enum dpf_status status = dpf_patch_moments_init(&f->moments, &plan->patches, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_patch_moments *m = &f->moments;
    bool cut = plan->variant == DPF_ENERGY_SOUND || plan->variant == DPF_ENERGY_GAUSSIAN;
    int most = (int)ceil(log2((double)m->positions)) + m->bits * m->plan.degree;
    f->shift = most > SUM_BITS ? most - SUM_BITS : 0; /* sums of 2^25 records fit */
    for (int l = 0; l <= top_of(plan); l++)
        f->coefficients += block(f, l);
    if (f->coefficients == 0)
        status = dpf_fail(e, DPF_USAGE, "the expansion has no coefficient that is not 0");
    else if (cut)
        status = init_noise(f, e);
    f->sums = status == DPF_OK ? dpf_calloc(m->count, sizeof *f->sums) : NULL;
    if (status == DPF_OK && !f->sums)
        status = dpf_fail_memory(e);
    if (status != DPF_OK)
        dpf_energy_form_release(f);
    return status;
}

void dpf_energy_form_release(struct dpf_energy_form *f)
{
    dpf_patch_moments_release(&f->moments);
    free(f->sums);
    f->sums = NULL;
}

enum dpf_status dpf_energy_worker_init(struct dpf_energy_worker *w,
                                       const struct dpf_energy_form *f,
                                       struct dpf_error *e)
{
    *w =
        (struct dpf_energy_worker){.sums = dpf_calloc(f->moments.count, sizeof *w->sums)};
    return w->sums ? dpf_patch_room_init(&w->room, &f->moments, e) : dpf_fail_memory(e);
}

void dpf_energy_worker_release(struct dpf_energy_worker *w)
{
    dpf_patch_room_release(&w->room);
    free(w->sums);
    w->sums = NULL;
}

/* --------------------------------------------------------------------------- one record
 */

static double norm_of(const double *v, size_t count, bool l2)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += l2 ? v[i] * v[i] : v[i];
    return l2 ? sqrt(sum) : sum;
}

/* Integers whose norm is at most the bound, in place; false: the record adds nothing.
 * 2^-shift is exact, so every step here is one rounding at most. */
static bool cut_record(const struct dpf_energy_form *f, double *v)
{
    size_t count = f->moments.count;
    bool l2 = f->plan.variant == DPF_ENERGY_GAUSSIAN;
    double less = ldexp(1, -f->shift), sum = 0;
    for (size_t i = 0; i < count; i++)
        v[i] = floor(v[i] * less);
    double norm = norm_of(v, count, l2), most = f->bound * (1 - 1e-9);
    double factor = norm > most ? most / norm * (1 - 1e-9) : 1;
    for (size_t i = 0; factor < 1 && i < count; i++)
        v[i] = floor(v[i] * factor);
    for (size_t i = 0; i < count; i++)
        sum += l2 ? v[i] * v[i] : v[i];
    return sum <= (l2 ? f->bound * f->bound : f->bound);
}

/* Half of what Eq. 15 is for this record; its values' sum, in steps. */
static double printed_size(const struct dpf_energy_form *f, const double *patches,
                           double visible)
{
    const struct dpf_patch_moments *m = &f->moments;
    double size = ldexp(visible, -m->bits);
    for (size_t i = 0; i < m->positions; i++) {
        double s = 0, power = 1;
        for (size_t j = 0; j < m->variables; j++)
            s += patches[i * m->variables + j];
        s = ldexp(s, -m->bits);
        for (int l = 0; l <= top_of(&f->plan); l++)
            size += fabs(f->plan.alpha[l]) * (power *= s);
    }
    return size;
}

/* The sum of the values, in steps; exact. */
static double visible_sum(const struct dpf_energy_form *f, const float *record)
{
    const struct dpf_patch_plan *p = &f->plan.patches;
    double scale = ldexp(1, f->moments.bits), sum = 0;
    for (size_t i = 0; i < dpf_patch_picture(p); i++) {
        double v = (double)record[i];
        sum += v >= 0 ? rint(fmin(v, 1) * scale) : 0;
    }
    return sum;
}

void dpf_energy_add(const struct dpf_energy_form *f, struct dpf_energy_worker *w,
                    const float *records, size_t count)
{
    const struct dpf_patch_plan *p = &f->plan.patches;
    size_t values = dpf_patch_record(p);
    bool cut =
        f->plan.variant == DPF_ENERGY_SOUND || f->plan.variant == DPF_ENERGY_GAUSSIAN;
    double *v = w->room.moments;
    for (size_t n = 0; n < count; n++) {
        const float *record = records + n * values;
        w->clipped += dpf_patch_moments_of(&f->moments, record, &w->room) > 0;
        if (!cut) {
            double visible = visible_sum(f, record);
            w->visible += visible;
            w->largest = fmax(w->largest, printed_size(f, w->room.patches, visible));
        } else if (!cut_record(f, v)) {
            continue;
        }
        double less = cut ? 1 : ldexp(1, -f->shift);
        for (size_t i = 0; i < f->moments.count; i++)
            w->sums[i] += (int64_t)(v[i] * less);
    }
}

void dpf_energy_join(struct dpf_energy_form *f, struct dpf_energy_worker *w)
{
    for (size_t i = 0; i < f->moments.count; i++)
        f->sums[i] += w->sums[i];
    f->visible += w->visible;
    f->largest = fmax(f->largest, w->largest);
    f->clipped += w->clipped;
    memset(w->sums, 0, f->moments.count * sizeof *w->sums);
    w->visible = w->largest = 0;
    w->clipped = 0;
}

/* ------------------------------------------------------------------------ coefficients
 */

double dpf_energy_unit(const struct dpf_energy_form *f)
{
    return ldexp(1, f->shift - f->moments.bits * f->moments.plan.degree);
}

/* The next tuple a_1 <= ... <= a_k of numbers below n in lexicographic order. */
static void next_tuple(size_t *a, size_t k, size_t n)
{
    size_t i = k;
    while (i > 1 && a[i - 1] == n - 1)
        i--;
    a[i - 1]++;
    for (size_t j = i; j < k; j++)
        a[j] = a[i - 1];
}

/* k! over the factorials of how often each index stands in a sorted tuple. */
static double orders(const size_t *a, size_t k)
{
    double ways = 1;
    size_t run = 0;
    for (size_t i = 0; i < k; i++) {
        run = i > 0 && a[i] == a[i - 1] ? run + 1 : 1;
        ways = ways * (double)(i + 1) / (double)run;
    }
    return ways;
}

/* Coefficients from sums of moments. A monomial of a lower degree is one of the highest
 * with the constant as further factors, in front. */
static void make_coefficients(const struct dpf_energy_form *f, const int64_t *sums,
                              double *out)
{
    const struct dpf_patch_moments *m = &f->moments;
    size_t degree = (size_t)m->plan.degree;
    double unit = dpf_energy_unit(f);
    for (int l = 0; l <= top_of(&f->plan); l++) {
        size_t a[DPF_MOMENTS_MOST_DEGREE] = {0}, k = (size_t)l + 1;
        size_t *own = a + (degree - k);
        for (size_t i = block(f, l); i > 0; i--) {
            size_t at = k == degree ? block(f, l) - i
                                    : dpf_multichoose_rank(m->variables, degree, a);
            *out++ = -f->plan.alpha[l] * orders(own, k) * unit * (double)sums[at];
            if (i > 1)
                next_tuple(own, k, m->variables);
        }
    }
}

/* Noise on each coefficient, and on that of c, by Eq. 15. */
static enum dpf_status add_printed_noise(struct dpf_energy_form *f, struct dpf_random *r,
                                         double *coefficients, double *visible,
                                         struct dpf_error *e)
{
    const struct dpf_energy_plan *p = &f->plan;
    const struct dpf_patch_moments *m = &f->moments;
    double all = (double)dpf_patch_picture(&p->patches), q = (double)m->variables;
    for (int l = 0; l <= top_of(p); l++)
        all += (double)m->positions * fabs(p->alpha[l]) * pow(q, l + 1);
    /* without a record there is nothing to measure: then what ones would give */
    double size = f->largest > 0 ? 2 * f->largest : 2 * all;
    const struct dpf_laplace_query query = {
        .sensitivity_l1 = size, .values = f->coefficients + 1, .parts = 1};
    enum dpf_status status = dpf_laplace_init(&f->laplace, &query, p->epsilon, e);
    int64_t *noise = dpf_calloc(f->coefficients + 1, sizeof *noise);
    if (status == DPF_OK && !noise)
        status = dpf_fail_memory(e);
    if (status == DPF_OK) {
        f->public_epsilon = (all + f->laplace.step * (double)(f->coefficients + 1)) /
                            f->laplace.scale * (1 + 0x1p-24);
        for (size_t i = 0; i <= f->coefficients; i++)
            noise[i] = dpf_grid_round(i < f->coefficients ? coefficients[i] : *visible,
                                      f->laplace.step);
        dpf_laplace_add(&f->laplace, r, noise, f->coefficients + 1);
        for (size_t i = 0; i < f->coefficients; i++)
            coefficients[i] = (double)noise[i] * f->laplace.step;
        *visible = (double)noise[f->coefficients] * f->laplace.step;
    }
    free(noise);
    return status;
}

enum dpf_status dpf_energy_release_noisy(struct dpf_energy_form *f, struct dpf_random *r,
                                         double *coefficients, double *visible,
                                         struct dpf_error *e)
{
    if (f->plan.variant == DPF_ENERGY_SOUND)
        dpf_laplace_add(&f->laplace, r, f->sums, f->moments.count);
    else if (f->plan.variant == DPF_ENERGY_GAUSSIAN)
        dpf_gaussian_add(&f->gaussian, r, 1, f->sums, f->moments.count);
    make_coefficients(f, f->sums, coefficients);
    *visible = -ldexp(f->visible, -f->moments.bits);
    return f->plan.variant == DPF_ENERGY_PAPER
               ? add_printed_noise(f, r, coefficients, visible, e)
               : DPF_OK;
}

double dpf_energy_noise(const struct dpf_energy_form *f)
{
    double unit = dpf_energy_unit(f);
    return f->plan.variant == DPF_ENERGY_PAPER      ? f->laplace.scale * sqrt(2)
           : f->plan.variant == DPF_ENERGY_SOUND    ? f->laplace.scale * sqrt(2) * unit
           : f->plan.variant == DPF_ENERGY_GAUSSIAN ? f->gaussian.noise_stddev * unit
                                                    : 0;
}
