#include "privacy/adaptive.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "privacy/grid.h"
#include "privacy/record_bounds.h"
#include "random/noise.h"

#include "base/banned.h"

/* Steps in a scale, and in the width of a value, where both can be had. */
enum { STEPS_LOG2 = 24, WIDTH_LOG2 = 12, MOST_LOG2 = 34 };

/* The least share of a value, of the largest one: what has no relevance at all still gets
 * noise that numbers can hold. */
static const double LEAST_SHARE = 0x1p-20;

enum dpf_status dpf_adaptive_init(struct dpf_adaptive *a, size_t values,
                                  const double *widths, const double *scales,
                                  struct dpf_error *e)
{
    *a = (struct dpf_adaptive){.values = values};
    a->step = dpf_calloc(values + 1, sizeof *a->step);
    a->per_step = dpf_calloc(values + 1, sizeof *a->per_step);
    a->scale = dpf_calloc(values + 1, sizeof *a->scale);
    a->cost = dpf_calloc(values + 1, sizeof *a->cost);
    if (!a->step || !a->per_step || !a->scale || !a->cost) {
        dpf_adaptive_release(a);
        return dpf_fail_memory(e);
    }
    for (size_t j = 0; j < values; j++) {
        double width = widths[j], scale = scales[j];
        if (!(width >= 0) || !isfinite(width) || !(scale > 1e-250) || !(scale < 1e250)) {
            dpf_adaptive_release(a);
            return dpf_fail(e, DPF_USAGE, "noise of scale %g does not fit values %g wide",
                            scale, width);
        }
        /* fine enough for the noise, and for the value as far as the noise allows */
        double step = ldexp(dpf_grid_floor_power(scale), -STEPS_LOG2);
        double fine = ldexp(dpf_grid_floor_power(fmax(width, 1e-250)), -WIDTH_LOG2);
        double finest = ldexp(dpf_grid_floor_power(scale), -MOST_LOG2);
        a->step[j] = fmin(step, fmax(fine, finest));
        a->per_step[j] = 1 / a->step[j]; /* of a power of two: exact */
        a->scale[j] = scale / a->step[j];
        double steps = floor(width / a->step[j] * (1 + 0x1p-50)) + 1;
        a->cost[j] = steps / a->scale[j] * (1 + 0x1p-50);
    }
    return DPF_OK;
}

double dpf_adaptive_epsilon(const struct dpf_adaptive *a, size_t from, size_t to)
{
    double sum = 0;
    for (size_t j = from; j < to; j++)
        sum += a->cost[j];
    return sum * (1 + (double)(to - from) * 0x1p-50); /* the sum itself was rounded */
}

double dpf_adaptive_sensitivity(const struct dpf_adaptive *a, size_t from, size_t to)
{
    double sum = 0;
    for (size_t j = from; j < to; j++)
        sum += a->cost[j] * a->scale[j] * a->step[j];
    return sum * (1 + (double)(to - from) * 0x1p-50);
}

void dpf_adaptive_release(struct dpf_adaptive *a)
{
    free(a->step);
    free(a->per_step);
    free(a->scale);
    free(a->cost);
    *a = (struct dpf_adaptive){0};
}

void dpf_adaptive_draw(const struct dpf_adaptive *a, struct dpf_random *r, size_t records,
                       int64_t *noise)
{
    dpf_noise_laplace_each(r, a->scale, a->values, noise, records * a->values);
}

/* One pass over a record: into its bounds, onto the grid, noise, back to a number. What
 * is no number becomes the middle. Compiled for several machines: it is as long as the
 * noise otherwise. */
static inline __attribute__((always_inline)) uint64_t
add_all(const struct dpf_adaptive *a, const struct dpf_adaptive_part *p,
        const int64_t *noise, const float *record, float *out)
{
    const double *step = a->step + p->from, *per_step = a->per_step + p->from;
    const double *lo = p->lo, *hi = p->hi;
    int64_t clipped = 0;
    for (size_t j = 0; j < p->count; j++) {
        double v = (double)record[j];
        double held = v < lo[j] ? lo[j] : v > hi[j] ? hi[j] : v;
        clipped += held != v;
        held = held == held ? held : dpf_record_middle(lo[j], hi[j]);
        double whole = dpf_grid_nearest(held, per_step[j]) + (double)noise[j];
        out[j] = (float)(whole * step[j]);
    }
    return (uint64_t)clipped;
}

#define VERSION(suffix, attribute)                                                       \
    attribute static uint64_t add_##suffix(                                              \
        const struct dpf_adaptive *a, const struct dpf_adaptive_part *p,                 \
        const int64_t *noise, const float *record, float *out)                           \
    {                                                                                    \
        return add_all(a, p, noise, record, out);                                        \
    }

VERSION(anywhere, )
#if defined(__x86_64__)
VERSION(avx2, __attribute__((target("avx2,fma"))))
VERSION(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))))
#endif

uint64_t dpf_adaptive_add(const struct dpf_adaptive *a, const struct dpf_adaptive_part *p,
                          const int64_t *noise, const float *record, float *out)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw"))
        return add_avx512(a, p, noise, record, out);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return add_avx2(a, p, noise, record, out);
#endif
    return add_anywhere(a, p, noise, record, out);
}

/* Shares of `power` of the relevance, `total` in sum. */
static void share_out(const double *relevance, size_t values, double power, double total,
                      double *share)
{
    double sum = 0, most = 0;
    for (size_t j = 0; j < values; j++) {
        share[j] = isfinite(relevance[j]) ? pow(fabs(relevance[j]), power) : 0;
        most = fmax(most, share[j]);
    }
    for (size_t j = 0; j < values; j++) {
        share[j] = most > 0 ? fmax(share[j] / most, LEAST_SHARE) : 1;
        sum += share[j];
    }
    for (size_t j = 0; j < values; j++)
        share[j] *= total / sum;
}

void dpf_share_by_relevance(const double *relevance, size_t values, double *beta)
{
    share_out(relevance, values, 1, (double)values, beta);
}

void dpf_share_by_cube_root(const double *relevance, size_t values, double *share)
{
    share_out(relevance, values, 1.0 / 3, 1, share);
}
