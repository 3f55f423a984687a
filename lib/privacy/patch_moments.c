#include "privacy/patch_moments.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

/* Another package's cblas.h may be the one that is found; it lacks OpenBLAS's own. */
extern void openblas_set_num_threads(int threads);

size_t dpf_multichoose(size_t n, size_t k)
{
    double all = 1;
    for (size_t i = 0; i < k; i++) /* C(n + i, i + 1) in turn: an integer each time */
        all = all * (double)(n + i) / (double)(i + 1);
    return all > (double)DPF_MOMENTS_MOST ? SIZE_MAX : (size_t)llrint(all);
}

size_t dpf_multichoose_rank(size_t n, size_t k, const size_t *a)
{
    size_t rank = 0, from = 0;
    for (size_t i = 0; i < k; i++) {
        for (size_t v = from; v < a[i]; v++)
            rank += dpf_multichoose(n - v, k - i - 1);
        from = a[i];
    }
    return rank;
}

size_t dpf_patch_picture(const struct dpf_patch_plan *p)
{
    return p->channels * p->height * p->width;
}

size_t dpf_patch_record(const struct dpf_patch_plan *p)
{
    return dpf_patch_picture(p) + p->conditions;
}

/* ----------------------------------------------------------------------------- setup */

static enum dpf_status check_plan(const struct dpf_patch_plan *p, struct dpf_error *e)
{
    size_t variables, most = DPF_MOMENTS_MOST;
    if (p->degree < 2 || p->degree > DPF_MOMENTS_MOST_DEGREE)
        return dpf_fail(e, DPF_USAGE, "a polynomial energy has degree 1 to %d",
                        (int)DPF_MOMENTS_MOST_DEGREE - 1);
    if (p->kernel_height < 1 || p->kernel_width < 1 || p->stride < 1 || p->channels < 1 ||
        p->kernel_height > p->height || p->kernel_width > p->width)
        return dpf_fail(e, DPF_USAGE, "patches of %zux%zu do not fit pictures of %zux%zu",
                        p->kernel_height, p->kernel_width, p->height, p->width);
    if (!dpf_mul_size(p->kernel_height, p->kernel_width, &variables) ||
        !dpf_mul_size(variables, p->channels, &variables) || p->conditions >= most ||
        (variables += p->conditions) >= most ||
        dpf_multichoose(variables + 1, (size_t)p->degree) == SIZE_MAX)
        return dpf_fail(
            e, DPF_USAGE,
            "an energy of degree %d of %zux%zux%zu patches and %zu conditions "
            "has more than %zu coefficients: a smaller kernel, or a smaller "
            "degree",
            p->degree - 1, p->channels, p->kernel_height, p->kernel_width, p->conditions,
            most);
    return DPF_OK;
}

/* dpf_multichoose(n, k) from a table; none of 0. */
static size_t ways(const struct dpf_patch_moments *m, size_t n, size_t k)
{
    return m->ways[k * (m->variables + 1) + n];
}

static void fill_ways(struct dpf_patch_moments *m)
{
    for (size_t k = 0; k <= m->right; k++)
        for (size_t n = 1; n <= m->variables; n++)
            m->ways[k * (m->variables + 1) + n] = dpf_multichoose(n, k);
}

/* Where the moments begin whose first factors are those of a left factor: the others are
 * at least the largest of these. Left factors are ordered by their largest index. */
static void find_starts(struct dpf_patch_moments *m)
{
    size_t a[DPF_MOMENTS_MOST_DEGREE] = {0}, degree = (size_t)m->plan.degree;
    for (size_t i = 0; i < m->left_count; i++) {
        for (size_t k = m->left; k < degree; k++)
            a[k] = a[m->left - 1];
        m->starts[i] = dpf_multichoose_rank(m->variables, degree, a);
        size_t k = 0; /* the next in that order: raise the first index that can rise */
        while (k + 1 < m->left && a[k] == a[k + 1])
            k++;
        a[k]++;
        memset(a, 0, k * sizeof *a);
    }
}

enum dpf_status dpf_patch_moments_init(struct dpf_patch_moments *m,
                                       const struct dpf_patch_plan *plan,
                                       struct dpf_error *e)
{
    enum { MOST_BITS = 18, EXACT_BITS = 53 };
    const struct dpf_patch_plan *p = plan;
    enum dpf_status status = check_plan(p, e);
    if (status != DPF_OK)
        return status;
    *m = (struct dpf_patch_moments){
        .plan = *p,
        .variables = 1 + p->channels * p->kernel_height * p->kernel_width + p->conditions,
        .rows = (p->height - p->kernel_height) / p->stride + 1,
        .columns = (p->width - p->kernel_width) / p->stride + 1,
        .left = (size_t)p->degree / 2,
        .right = (size_t)p->degree - (size_t)p->degree / 2};
    m->positions = m->rows * m->columns;
    m->count = dpf_multichoose(m->variables, (size_t)p->degree);
    m->left_count = dpf_multichoose(m->variables, m->left);
    m->right_count = dpf_multichoose(m->variables, m->right);
    int bits = (EXACT_BITS - (int)ceil(log2((double)m->positions + 1))) / p->degree;
    m->bits = bits < MOST_BITS ? bits : MOST_BITS;
    if (m->bits < 2)
        return dpf_fail(e, DPF_USAGE,
                        "moments of degree %d over %zu positions are too large to be "
                        "exact: a larger stride, or a smaller degree",
                        p->degree, m->positions);
    m->starts = dpf_calloc(m->left_count + 1, sizeof *m->starts);
    m->ways = dpf_calloc((m->right + 1) * (m->variables + 1), sizeof *m->ways);
    if (!m->starts || !m->ways) {
        dpf_patch_moments_release(m);
        return dpf_fail_memory(e);
    }
    find_starts(m);
    fill_ways(m);
    return DPF_OK;
}

void dpf_patch_moments_release(struct dpf_patch_moments *m)
{
    free(m->starts);
    free(m->ways);
    m->starts = m->ways = NULL;
}

enum dpf_status dpf_patch_room_init(struct dpf_patch_room *r,
                                    const struct dpf_patch_moments *m,
                                    struct dpf_error *e)
{
    size_t product = m->plan.degree == 2 ? m->variables * m->variables
                                         : m->left_count * m->right_count;
    *r = (struct dpf_patch_room){
        .patches = dpf_calloc(m->positions * m->variables, sizeof *r->patches),
        .left = dpf_calloc(m->positions * m->left_count, sizeof *r->left),
        .right = dpf_calloc(m->positions * m->right_count, sizeof *r->right),
        .products = dpf_calloc(product, sizeof *r->products),
        .moments = dpf_calloc(m->count, sizeof *r->moments)};
    openblas_set_num_threads(1); /* threads have rooms of their own */
    if (r->patches && r->left && r->right && r->products && r->moments)
        return DPF_OK;
    dpf_patch_room_release(r);
    return dpf_fail_memory(e);
}

void dpf_patch_room_release(struct dpf_patch_room *r)
{
    free(r->patches);
    free(r->left);
    free(r->right);
    free(r->products);
    free(r->moments);
    *r = (struct dpf_patch_room){NULL};
}

/* ------------------------------------------------------------------------- one record */

/* A value within [0, 1] on the grid. */
static double to_grid(float value, double scale, uint64_t *clipped)
{
    double v = (double)value;
    bool inside = v >= 0 && v <= 1;
    *clipped += !inside;
    return inside ? rint(v * scale) : v > 1 ? scale : 0;
}

static uint64_t cut_patches(const struct dpf_patch_moments *m, const float *record,
                            double *out)
{
    const struct dpf_patch_plan *p = &m->plan;
    double scale = ldexp(1, m->bits);
    uint64_t clipped = 0, ignored = 0;
    const float *conditions = record + dpf_patch_picture(p);
    for (size_t i = 0; i < dpf_patch_record(p); i++)
        to_grid(record[i], scale, &clipped);
    for (size_t y = 0; y < m->rows; y++)
        for (size_t x = 0; x < m->columns; x++) {
            *out++ = scale;
            for (size_t c = 0; c < p->channels; c++)
                for (size_t i = 0; i < p->kernel_height; i++) {
                    const float *row = record +
                                       (c * p->height + y * p->stride + i) * p->width +
                                       x * p->stride;
                    for (size_t j = 0; j < p->kernel_width; j++)
                        *out++ = to_grid(row[j], scale, &ignored);
                }
            for (size_t c = 0; c < p->conditions; c++)
                *out++ = to_grid(conditions[c], scale, &ignored);
        }
    return clipped;
}

/* All products of `degree` of the q values, those with the largest index last: the
 * products with index j as the largest are j times all products of one factor less whose
 * indexes are at most j, which come first. From one degree to the next, in place from the
 * end on. */
static void raise_left(const struct dpf_patch_moments *m, const double *u, double *out)
{
    memcpy(out, u, m->variables * sizeof *out);
    for (size_t d = 2; d <= m->left; d++)
        for (size_t j = m->variables; j-- > 0;) {
            size_t below = ways(m, j + 1, d - 1), at = ways(m, j, d);
            for (size_t i = below; i-- > 0;)
                out[at + i] = out[i] * u[j];
        }
}

/* The same in lexicographic order: index i times all products of one factor less whose
 * indexes are at least i, which come last. */
static void raise_right(const struct dpf_patch_moments *m, const double *u, double *out)
{
    size_t q = m->variables;
    double *end = out + m->right_count;
    memcpy(end - q, u, q * sizeof *out);
    for (size_t d = 2; d <= m->right; d++) {
        double *at = end - ways(m, q, d);
        for (size_t i = 0; i < q; i++) {
            size_t n = ways(m, q - i, d - 1);
            const double *less = end - n;
            for (size_t k = 0; k < n; k++)
                at[k] = less[k] * u[i];
            at += n;
        }
    }
}

/* Degree 2: the upper triangle of one product. */
static void second_moments(const struct dpf_patch_moments *m, struct dpf_patch_room *r)
{
    size_t q = m->variables;
    double *out = r->moments;
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)q, (int)m->positions, 1,
                r->patches, (int)q, 0, r->products, (int)q);
    for (size_t i = 0; i < q; i++, out += q - i + 1)
        memcpy(out, r->products + i * q + i, (q - i) * sizeof *out);
}

/* Left factors whose largest index is j, times right factors from index j on. */
static void higher_moments(const struct dpf_patch_moments *m, struct dpf_patch_room *r)
{
    size_t q = m->variables, first = 0;
    for (size_t i = 0; i < m->positions; i++) {
        const double *u = r->patches + i * q;
        raise_left(m, u, r->left + i * m->left_count);
        raise_right(m, u, r->right + i * m->right_count);
    }
    for (size_t j = 0; j < q; j++) {
        size_t lefts = ways(m, j + 1, m->left - 1), rights = ways(m, q - j, m->right);
        cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)lefts, (int)rights,
                    (int)m->positions, 1, r->left + first, (int)m->left_count,
                    r->right + (m->right_count - rights), (int)m->right_count, 0,
                    r->products, (int)rights);
        for (size_t i = 0; i < lefts; i++)
            memcpy(r->moments + m->starts[first + i], r->products + i * rights,
                   rights * sizeof *r->moments);
        first += lefts;
    }
}

uint64_t dpf_patch_moments_of(const struct dpf_patch_moments *m, const float *record,
                              struct dpf_patch_room *room)
{
    uint64_t clipped = cut_patches(m, record, room->patches);
    if (m->plan.degree == 2)
        second_moments(m, room);
    else
        higher_moments(m, room);
    return clipped;
}
