#include <math.h>
#include <stdbool.h>

#include "kernels/step.h"

#include "base/words.h"

#include "base/banned.h"

static void sgd(const struct dpf_step *s, size_t count, float *restrict w,
                const float *restrict g, float *restrict m, float *restrict v)
{
    (void)m; /* it has no moments */
    (void)v;
    for (size_t i = 0; i < count; i++)
        w[i] -= s->rate * g[i];
}

static void momentum(const struct dpf_step *s, size_t count, float *restrict w,
                     const float *restrict g, float *restrict m, float *restrict v)
{
    (void)v; /* it has one moment */
    for (size_t i = 0; i < count; i++) {
        m[i] = s->momentum * m[i] + g[i];
        w[i] -= s->rate * m[i];
    }
}

/* Momentum that looks one step ahead, as Sutskever et al. 2013 write Nesterov's method.
 */
static void nesterov(const struct dpf_step *s, size_t count, float *restrict w,
                     const float *restrict g, float *restrict m, float *restrict v)
{
    (void)v; /* it has one moment */
    for (size_t i = 0; i < count; i++) {
        m[i] = s->momentum * m[i] + g[i];
        w[i] -= s->rate * (g[i] + s->momentum * m[i]);
    }
}

/* Kingma and Ba 2015, Algorithm 1. */
static void adam(const struct dpf_step *s, size_t count, float *restrict w,
                 const float *restrict g, float *restrict m, float *restrict v)
{
    for (size_t i = 0; i < count; i++) {
        m[i] = s->keep1 * m[i] + s->new1 * g[i];
        v[i] = s->keep2 * v[i] + s->new2 * g[i] * g[i];
        w[i] -= s->rate * m[i] / (sqrtf(v[i] * s->scale2) + s->epsilon);
    }
}

/* Zeiler 2012: m averages squared changes, v squared gradients. */
static void adadelta(const struct dpf_step *s, size_t count, float *restrict w,
                     const float *restrict g, float *restrict m, float *restrict v)
{
    for (size_t i = 0; i < count; i++) {
        v[i] = s->keep1 * v[i] + s->new1 * g[i] * g[i];
        float delta = sqrtf(m[i] + s->epsilon) / sqrtf(v[i] + s->epsilon) * g[i];
        m[i] = s->keep1 * m[i] + s->new1 * delta * delta;
        w[i] -= s->rate * delta;
    }
}

const struct dpf_step_kind dpf_step_kinds[] = {
    {"sgd", 0.9, 0.999, 1e-8, false, sgd},
    {"momentum", 0.9, 0.999, 1e-8, false, momentum},
    {"adam", 0.9, 0.999, 1e-8, true, adam},
    {"adadelta", 0.95, 0.999, 1e-6, false, adadelta},
    {"nesterov", 0.9, 0.999, 1e-8, false, nesterov},
    {NULL, 0, 0, 0, false, NULL},
};

const struct dpf_step_kind *dpf_step_kind_find(const char *name)
{
    return DPF_FIND(dpf_step_kinds, name);
}
