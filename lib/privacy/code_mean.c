#include "privacy/code_mean.h"

#include <math.h>

#include "base/banned.h"

/* The radius in steps. */
enum { RADIUS_LOG2 = 20 };

enum dpf_status dpf_code_mean_init(struct dpf_code_mean *m, size_t values,
                                   size_t teachers, double radius,
                                   double noise_multiplier, struct dpf_error *e)
{
    *m = (struct dpf_code_mean){.values = values, .teachers = teachers, .radius = radius};
    if (values < 1 || values > DPF_CODE_MAX_VALUES)
        return dpf_fail(e, DPF_USAGE, "a code has 1 to %d values, not %zu",
                        (int)DPF_CODE_MAX_VALUES, values);
    if (teachers < 1 || teachers > DPF_CODE_MAX_TEACHERS)
        return dpf_fail(e, DPF_USAGE, "there are 1 to %d teachers, not %zu",
                        (int)DPF_CODE_MAX_TEACHERS, teachers);
    if (!(radius >= 1e-6 && radius <= 1e6))
        return dpf_fail(e, DPF_USAGE, "codes have a norm from 1e-6 to 1e6, not '%g'",
                        radius);
    const struct dpf_gaussian_query query = {.sensitivity_l2 = 2 * radius,
                                             .values = values,
                                             .exact_step = ldexp(radius, -RADIUS_LOG2)};
    return dpf_gaussian_init(&m->noise, &query, noise_multiplier, e);
}

double dpf_code_multiplier(size_t teachers, double radius, double noise_of_mean)
{
    return noise_of_mean * (double)teachers / (2 * radius);
}

double dpf_code_noise(const struct dpf_code_mean *m)
{
    return m->noise.noise_stddev / (double)m->teachers;
}

/* Of finite entries, in doubles: only their size matters here, the integers decide. */
static double norm_of(const float *code, size_t values)
{
    double square = 0;
    for (size_t i = 0; i < values; i++)
        square += (double)code[i] * (double)code[i];
    return sqrt(square);
}

static uint64_t square_of(const float *code, size_t values, double scale)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < values; i++) {
        int64_t v = (int64_t)((double)code[i] * scale);
        sum += (uint64_t)(v * v);
    }
    return sum;
}

void dpf_code_add(const struct dpf_code_mean *m, const float *code, int64_t *sums)
{
    const uint64_t most = 1ull << (2 * RADIUS_LOG2);
    for (size_t i = 0; i < m->values; i++)
        if (!isfinite(code[i]))
            return;
    double norm = norm_of(code, m->values);
    double scale = ldexp(1, RADIUS_LOG2) / fmax(norm, m->radius);
    while (square_of(code, m->values, scale) > most)
        scale *= 1 - 0x1p-30;
    for (size_t i = 0; i < m->values; i++)
        sums[i] += (int64_t)((double)code[i] * scale);
}

void dpf_code_release(const struct dpf_code_mean *m, struct dpf_random *r, int64_t *sums,
                      float *mean)
{
    dpf_gaussian_add(&m->noise, r, 1, sums, m->values);
    for (size_t i = 0; i < m->values; i++)
        mean[i] = (float)((double)sums[i] * m->noise.step / (double)m->teachers);
}

double dpf_code_paper_epsilon(double noise_multiplier, double queries, double delta)
{
    double a = queries / (2 * noise_multiplier * noise_multiplier);
    return a + 2 * sqrt(a * -log(delta));
}

/* sqrt a = epsilon / (sqrt(log 1/delta + epsilon) + sqrt(log 1/delta)). */
double dpf_code_paper_multiplier(double epsilon, double queries, double delta)
{
    double l = -log(delta);
    return sqrt(queries / 2) * (sqrt(l + epsilon) + sqrt(l)) / epsilon;
}
