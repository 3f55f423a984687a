#include "data/scale.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

/* The compiler vectorises these loops; the widest set the machine has is chosen when the
 * program is loaded. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                   \
    !defined(__SANITIZE_ADDRESS__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORISED
#endif

static bool scale_alloc(struct dpf_scale *s, size_t count)
{
    *s = (struct dpf_scale){.count = count};
    s->offset = dpf_calloc(count, sizeof *s->offset);
    s->factor = dpf_calloc(count, sizeof *s->factor);
    s->in_lo = dpf_calloc(count, sizeof *s->in_lo);
    s->in_hi = dpf_calloc(count, sizeof *s->in_hi);
    return s->offset && s->factor && s->in_lo && s->in_hi;
}

enum dpf_status dpf_scale_from_bounds(struct dpf_scale *s, const double *lo,
                                      const double *hi, size_t count, bool both_signs,
                                      struct dpf_error *e)
{
    if (!scale_alloc(s, count)) {
        dpf_scale_release(s);
        return dpf_fail_memory(e);
    }
    s->clip = true;
    s->lo = both_signs ? -1 : 0;
    s->hi = 1;
    for (size_t i = 0; i < count; i++) {
        s->offset[i] = (float)(both_signs ? lo[i] + (hi[i] - lo[i]) / 2 : lo[i]);
        s->factor[i] =
            hi[i] > lo[i] ? (float)((both_signs ? 2 : 1) / (hi[i] - lo[i])) : 0;
        s->in_lo[i] = (float)lo[i];
        s->in_hi[i] = (float)hi[i];
        if (!isfinite(s->in_lo[i]) || !isfinite(s->in_hi[i]) || !isfinite(s->factor[i])) {
            dpf_scale_release(s);
            return dpf_fail(e, DPF_USAGE, "bounds do not fit single precision");
        }
    }
    return DPF_OK;
}

enum dpf_status dpf_scale_from_moments(struct dpf_scale *s, const double *mean,
                                       const double *deviation, size_t count,
                                       struct dpf_error *e)
{
    if (!scale_alloc(s, count)) {
        dpf_scale_release(s);
        return dpf_fail_memory(e);
    }
    for (size_t i = 0; i < count; i++) {
        s->offset[i] = (float)mean[i];
        s->factor[i] = deviation[i] > 0 ? (float)(1 / deviation[i]) : 0;
    }
    return DPF_OK;
}

void dpf_scale_release(struct dpf_scale *s)
{
    free(s->offset);
    free(s->factor);
    free(s->in_lo);
    free(s->in_hi);
    *s = (struct dpf_scale){0};
}

/* Non-zero if any of n floats is infinite or not a number: its exponent is all ones. */
VECTORISED
static uint32_t any_not_finite(const float *x, size_t n)
{
    uint32_t bad = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bad |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return bad;
}

/* Returns how many lay outside [in_lo, in_hi] (n is small enough for 32 bits). What an
 * overflow makes of a far value still ends inside: comparisons with NaN choose `lo`. */
VECTORISED
static uint32_t affine_clip(float *x, size_t n, float offset, float factor, float in_lo,
                            float in_hi, float lo, float hi)
{
    uint32_t clipped = 0;
    for (size_t i = 0; i < n; i++) {
        float v = (x[i] - offset) * factor;
        float w = v > lo ? v : lo;
        clipped += (uint32_t)(x[i] < in_lo) + (uint32_t)(x[i] > in_hi);
        x[i] = w < hi ? w : hi;
    }
    return clipped;
}

VECTORISED
static void affine(float *x, size_t n, float offset, float factor)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (x[i] - offset) * factor;
}

/* The same with one scale a feature. */
VECTORISED
static uint32_t affine_clip_each(float *x, const struct dpf_scale *s)
{
    uint32_t clipped = 0;
    for (size_t i = 0; i < s->count; i++) {
        float v = (x[i] - s->offset[i]) * s->factor[i];
        float w = v > s->lo ? v : s->lo;
        clipped += (uint32_t)(x[i] < s->in_lo[i]) + (uint32_t)(x[i] > s->in_hi[i]);
        x[i] = w < s->hi ? w : s->hi;
    }
    return clipped;
}

VECTORISED
static void affine_each(float *x, const struct dpf_scale *s)
{
    for (size_t i = 0; i < s->count; i++)
        x[i] = (x[i] - s->offset[i]) * s->factor[i];
}

static enum dpf_status require_finite(const struct dpf_tensor *x, struct dpf_error *e)
{
    if (any_not_finite(x->data, x->bytes / sizeof(float)))
        return dpf_fail(e, DPF_BAD_STREAM, "a value is not finite");
    return DPF_OK;
}

enum dpf_status dpf_scale_apply(const struct dpf_scale *s, struct dpf_tensor *x,
                                uint64_t *clipped, struct dpf_error *e)
{
    float *values = x->data;
    size_t n = x->bytes / sizeof(float);
    enum dpf_status status = require_finite(x, e);
    if (status != DPF_OK)
        return status;
    if (s->count == 1) {
        enum { BLOCK = 1 << 16 };
        if (!s->clip)
            affine(values, n, s->offset[0], s->factor[0]);
        for (size_t i = 0; s->clip && i < n; i += BLOCK)
            *clipped +=
                affine_clip(values + i, n - i < BLOCK ? n - i : BLOCK, s->offset[0],
                            s->factor[0], s->in_lo[0], s->in_hi[0], s->lo, s->hi);
        return s->clip ? DPF_OK : require_finite(x, e);
    }
    for (size_t i = 0; i + s->count <= n; i += s->count) {
        if (s->clip)
            *clipped += affine_clip_each(values + i, s);
        else
            affine_each(values + i, s);
    }
    return s->clip ? DPF_OK : require_finite(x, e);
}

enum dpf_status dpf_scale_zscore(struct dpf_tensor *x, struct dpf_error *e)
{
    enum dpf_status status = require_finite(x, e);
    if (status != DPF_OK)
        return status;
    uint64_t rows = dpf_tensor_rows(x);
    size_t n = dpf_tensor_row_bytes(x) / sizeof(float);
    for (uint64_t r = 0; r < rows; r++) {
        float *v = (float *)x->data + r * n;
        double sum = 0, square = 0;
        for (size_t i = 0; i < n; i++)
            sum += (double)v[i];
        double mean = n ? sum / (double)n : 0;
        for (size_t i = 0; i < n; i++)
            square += ((double)v[i] - mean) * ((double)v[i] - mean);
        double deviation = n ? sqrt(square / (double)n) : 0;
        double inverse = deviation > 0 ? 1 / deviation : 0;
        for (size_t i = 0; i < n; i++)
            v[i] = (float)(((double)v[i] - mean) * inverse);
    }
    return DPF_OK;
}

enum dpf_status dpf_scale_ball(struct dpf_tensor *x, double radius, struct dpf_error *e)
{
    enum dpf_status status = require_finite(x, e);
    if (status != DPF_OK)
        return status;
    uint64_t rows = dpf_tensor_rows(x);
    size_t n = dpf_tensor_row_bytes(x) / sizeof(float);
    for (uint64_t r = 0; r < rows; r++) {
        float *v = (float *)x->data + r * n;
        /* Rounding to float may leave the norm a hair above: shrink until it is not.
         * Where floats are too coarse for the radius, nothing of the record is left. */
        for (int turn = 0;; turn++) {
            double square = 0;
            for (size_t i = 0; i < n; i++)
                square += (double)v[i] * (double)v[i];
            double norm = sqrt(square);
            if (norm <= radius)
                break;
            double factor = turn < 8 ? radius / norm * (1 - 1e-7) : 0;
            for (size_t i = 0; i < n; i++)
                v[i] = (float)((double)v[i] * factor);
        }
    }
    return DPF_OK;
}

enum dpf_status dpf_scaling_weigh(struct dpf_scaling *s, const double *relevance,
                                  size_t features, double power, struct dpf_error *e)
{
    double most = 0;
    s->weights = dpf_calloc(features + 1, sizeof *s->weights);
    if (!s->weights)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < features; i++)
        most = isfinite(relevance[i]) ? fmax(most, fabs(relevance[i])) : most;
    if (!(most > 0))
        return dpf_fail(e, DPF_USAGE, "no feature has any relevance");
    for (size_t i = 0; i < features; i++)
        s->weights[i] =
            isfinite(relevance[i]) ? (float)pow(fabs(relevance[i]) / most, power) : 0.0F;
    return DPF_OK;
}

void dpf_scaling_release(struct dpf_scaling *s)
{
    dpf_scale_release(&s->scale);
    free(s->weights);
    s->weights = NULL;
}

static void apply_weights(const float *weights, struct dpf_tensor *x)
{
    size_t n = dpf_tensor_row_bytes(x) / sizeof(float);
    float *v = x->data;
    for (uint64_t row = 0; row < dpf_tensor_rows(x); row++, v += n)
        for (size_t i = 0; i < n; i++)
            v[i] *= weights[i];
}

enum dpf_status dpf_scaling_apply(struct dpf_scaling *s, struct dpf_tensor *x,
                                  struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (s->scale.count)
        status = dpf_scale_apply(&s->scale, x, &s->clipped, e);
    if (status == DPF_OK && s->zscore)
        status = dpf_scale_zscore(x, e);
    if (status == DPF_OK && s->weights)
        apply_weights(s->weights, x);
    if (status == DPF_OK && s->ball_l2 > 0)
        status = dpf_scale_ball(x, s->ball_l2, e);
    return status;
}

enum dpf_status dpf_moments_init(struct dpf_moments *m, size_t features,
                                 struct dpf_error *e)
{
    *m = (struct dpf_moments){.features = features};
    m->lo = dpf_calloc(features, sizeof *m->lo);
    m->hi = dpf_calloc(features, sizeof *m->hi);
    m->mean = dpf_calloc(features, sizeof *m->mean);
    m->square = dpf_calloc(features, sizeof *m->square);
    if (m->lo && m->hi && m->mean && m->square)
        return DPF_OK;
    dpf_moments_release(m);
    return dpf_fail_memory(e);
}

enum dpf_status dpf_moments_add(struct dpf_moments *m, const struct dpf_tensor *x,
                                struct dpf_error *e)
{
    enum dpf_status status = require_finite(x, e);
    if (status != DPF_OK)
        return status;
    uint64_t rows = dpf_tensor_rows(x);
    const float *v = x->data;
    for (uint64_t r = 0; r < rows; r++, v += m->features) {
        m->records++;
        for (size_t i = 0; i < m->features; i++) {
            double value = (double)v[i], delta = value - m->mean[i];
            m->lo[i] = m->records == 1 || value < m->lo[i] ? value : m->lo[i];
            m->hi[i] = m->records == 1 || value > m->hi[i] ? value : m->hi[i];
            m->mean[i] += delta / (double)m->records;
            m->square[i] += delta * (value - m->mean[i]);
        }
    }
    return DPF_OK;
}

void dpf_moments_finish(struct dpf_moments *m)
{
    for (size_t i = 0; i < m->features; i++)
        m->square[i] = m->records ? sqrt(m->square[i] / (double)m->records) : 0;
}

void dpf_moments_release(struct dpf_moments *m)
{
    free(m->lo);
    free(m->hi);
    free(m->mean);
    free(m->square);
    *m = (struct dpf_moments){0};
}

enum dpf_status dpf_scale_from_fit(struct dpf_scale *s, const struct dpf_moments *m,
                                   bool unit, bool both_signs, struct dpf_error *e)
{
    return unit ? dpf_scale_from_bounds(s, m->lo, m->hi, m->features, both_signs, e)
                : dpf_scale_from_moments(s, m->mean, m->square, m->features, e);
}

/* ------------------------------------------------------------------------------- lots */

void dpf_lot_means_init(struct dpf_lot_means *m, size_t features, uint64_t lot)
{
    *m = (struct dpf_lot_means){.features = features, .lot = lot};
}

enum dpf_status dpf_lot_means_add(struct dpf_lot_means *m, const struct dpf_tensor *x,
                                  struct dpf_error *e)
{
    const float *v = x->data;
    for (uint64_t row = 0; row < dpf_tensor_rows(x); row++, m->records++) {
        size_t at = (size_t)(m->records / m->lot) * m->features;
        if (m->records % m->lot == 0) {
            if (!dpf_grow(&m->sums, &m->capacity, at + m->features, sizeof *m->sums))
                return dpf_fail_memory(e);
            memset(m->sums + at, 0, m->features * sizeof *m->sums);
        }
        for (size_t i = 0; i < m->features; i++)
            m->sums[at + i] += (double)*v++;
    }
    return DPF_OK;
}

void dpf_lot_means_finish(struct dpf_lot_means *m)
{
    for (uint64_t first = 0; first < m->records; first += m->lot) {
        uint64_t count = m->records - first < m->lot ? m->records - first : m->lot;
        double *sums = m->sums + (size_t)(first / m->lot) * m->features;
        for (size_t i = 0; i < m->features; i++)
            sums[i] /= (double)count;
    }
    m->records = 0;
}

void dpf_lot_means_subtract(struct dpf_lot_means *m, struct dpf_tensor *x)
{
    float *v = x->data;
    for (uint64_t row = 0; row < dpf_tensor_rows(x); row++, m->records++) {
        const double *mean = m->sums + (size_t)(m->records / m->lot) * m->features;
        for (size_t i = 0; i < m->features; i++, v++)
            *v = (float)((double)*v - mean[i]);
    }
}

void dpf_lot_means_release(struct dpf_lot_means *m)
{
    free(m->sums);
    *m = (struct dpf_lot_means){0};
}
