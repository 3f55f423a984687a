#include "kernels/host.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

int64_t dpf_host_microbatch(struct dpf_context *context, size_t example_bytes,
                            size_t parameter_bytes)
{
    (void)context;
    size_t values = 8 << 20, example = example_bytes ? example_bytes : 1;
    size_t by_values = values / example, by_weights = parameter_bytes / example;
    size_t n = by_values > by_weights ? by_values : by_weights;
    return n < 1 ? 1 : n > 256 ? 256 : (int64_t)n;
}

/* ---------------------------------------------------------------------------- losses */

static int32_t count_correct(int64_t classes, int64_t voxels, const float *scores,
                             const int32_t *labels)
{
    int32_t correct = 0;
    for (int64_t v = 0; v < voxels; v++, scores += classes) {
        int64_t best = 0;
        for (int64_t l = 1; l < classes; l++)
            best = scores[l] > scores[best] ? l : best;
        correct += best == labels[v];
    }
    return correct;
}

void dpf_host_losses(struct dpf_context *context, const struct dpf_loss *loss, int64_t n,
                     int64_t classes, int64_t voxels, const float *z,
                     const int32_t *labels, const float *values, float *dz,
                     double *loss_of, int32_t *correct)
{
    int64_t positions = voxels, outputs = classes * voxels;
    int64_t targets = loss->targets == DPF_TARGET_COEFFICIENTS ? 2 * outputs : outputs;
    (void)context;
    for (int64_t e = 0; e < n; e++, z += outputs, dz += outputs) {
        struct dpf_loss_target t = {labels ? labels + e * positions : NULL,
                                    values ? values + e * targets : NULL};
        loss_of[e] = loss->example(classes, voxels, z, &t, dz);
        correct[e] = labels ? count_correct(classes, voxels, z, t.labels) : 0;
    }
}

/* -------------------------------------------------------------------------- clipping */

/* The largest float that is not above `limit / norm`, or 1 for short ones. */
static float factor_for(double norm, bool automatic, double limit)
{
    /* Automatic clipping: clip / (norm + 0.01), the stabiliser of Bu et al. 2022. */
    const double stabiliser = 0.01;
    if (!isfinite(norm)) /* no factor would bring it to the promised norm */
        return 0;
    if (!automatic && norm <= limit)
        return 1;
    double exact = limit / (automatic ? norm + stabiliser : norm);
    float factor = (float)(exact * (1 - 0x1p-50));
    return (double)factor > exact ? nextafterf(factor, 0) : factor;
}

void dpf_host_clip_factors(struct dpf_context *context, int64_t n, bool automatic,
                           double limit, const double *square, float *factor, float *keep,
                           int64_t counts[2])
{
    (void)context;
    counts[0] = counts[1] = 0;
    for (int64_t e = 0; e < n; e++) {
        /* squares of up to 1,024 layers were added: off by less than a 2^-40th */
        double norm = sqrt(square[e]) * (1 + 0x1p-40);
        factor[e] = factor_for(norm, automatic, limit);
        keep[e] = factor[e] != 0;
        counts[0] += factor[e] < 1 && norm != 0;
        counts[1] += factor[e] == 0;
    }
}

/* ------------------------------------------------------------------------------ sums */

/* Adding 1.5 2^52 rounds to an integer that stands in the low bits of the double. */
static inline __attribute__((always_inline)) void add_all(double per_step, float *part,
                                                          int64_t *sums, size_t count)
{
    const double limit = 0x1p50, magic = 0x1.8p52;
    for (size_t j = 0; j < count; j++) {
        double v = (double)part[j] * per_step;
        v = v == v ? v : 0;
        v = v < limit ? v : limit;
        v = v > -limit ? v : -limit;
        double placed = v + magic;
        int64_t bits, base;
        memcpy(&bits, &placed, sizeof bits);
        memcpy(&base, &magic, sizeof base);
        sums[j] += bits - base;
        part[j] = 0;
    }
}

#define VERSION(suffix, attribute)                                                       \
    attribute static void add_##suffix(double per_step, float *restrict part,            \
                                       int64_t *restrict sums, size_t count)             \
    {                                                                                    \
        add_all(per_step, part, sums, count);                                            \
    }

VERSION(anywhere, )
#if defined(__x86_64__)
VERSION(avx2, __attribute__((target("avx2,fma"))))
VERSION(avx512, __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,fma"))))
#endif

void dpf_host_grid_add(struct dpf_context *context, double step, size_t count,
                       float *part, int64_t *sums)
{
    (void)context;
    double per_step = 1 / step; /* of a power of two: exact */
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw")) {
        add_avx512(per_step, part, sums, count);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        add_avx2(per_step, part, sums, count);
        return;
    }
#endif
    add_anywhere(per_step, part, sums, count);
}

/* ----------------------------------------------------------------------------- steps */

void dpf_host_optimise(struct dpf_context *context, const struct dpf_step *step,
                       size_t count, float *w, float *g, float *m, float *v)
{
    float scale = step->scale, l1 = step->l1, l2 = step->l2;
    (void)context;
    for (size_t i = 0; i < count; i++)
        g[i] *= scale;
    for (size_t i = 0; l2 > 0 && i < count; i++)
        g[i] += l2 * w[i];
    for (size_t i = 0; l1 > 0 && i < count; i++)
        g[i] += w[i] > 0 ? l1 : w[i] < 0 ? -l1 : 0;
    step->kind->host(step, count, w, g, m, v);
}

/* 0 times what is not finite is not 0. A loop that becomes vector code. */
bool dpf_host_all_finite(struct dpf_context *context, size_t count, const float *x)
{
    float spoilt = 0;
    (void)context;
    for (size_t i = 0; i < count; i++)
        spoilt += x[i] * 0;
    return spoilt == 0;
}
