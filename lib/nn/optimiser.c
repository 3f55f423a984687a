#include "nn/optimiser.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

const char *const dpf_optimiser_words[] = {"sgd", "momentum", "adam", "adadelta", NULL};
const char *const dpf_schedule_words[] = {"constant", "linear", "cosine", NULL};

struct dpf_optimiser dpf_optimiser_defaults(enum dpf_optimiser_kind kind, double rate)
{
    return (struct dpf_optimiser){.kind = kind,
                                  .rate = rate,
                                  .momentum = 0.9,
                                  .decay1 = kind == DPF_ADADELTA ? 0.95 : 0.9,
                                  .decay2 = 0.999,
                                  .epsilon = kind == DPF_ADADELTA ? 1e-6 : 1e-8};
}

enum dpf_status dpf_optimiser_init(struct dpf_optimiser *o, size_t count,
                                   struct dpf_error *e)
{
    o->step = 0;
    o->count = count;
    o->first = dpf_calloc(count, sizeof *o->first);
    o->second = dpf_calloc(count, sizeof *o->second);
    if (o->first && o->second)
        return DPF_OK;
    dpf_optimiser_release(o);
    return dpf_fail_memory(e);
}

void dpf_optimiser_release(struct dpf_optimiser *o)
{
    free(o->first);
    free(o->second);
    o->first = o->second = NULL;
}

double dpf_optimiser_rate(const struct dpf_optimiser *o)
{
    if (o->schedule == DPF_RATE_CONSTANT || o->schedule_steps == 0)
        return o->rate;
    double done = fmin((double)o->step / (double)o->schedule_steps, 1);
    double left = o->schedule == DPF_RATE_LINEAR
                      ? 1 - done
                      : (1 + cos(3.141592653589793 * done)) / 2;
    return o->final_rate + (o->rate - o->final_rate) * left;
}

void dpf_optimiser_begin(struct dpf_optimiser *o)
{
    o->step++;
}

/* What one step needs, worked out once for all parameters. */
struct constants {
    float rate, momentum, keep1, new1, keep2, new2, scale2, epsilon;
};

static struct constants constants_of(const struct dpf_optimiser *o)
{
    /* The schedule counts steps from 0, `step` counts from 1. */
    struct dpf_optimiser before = *o;
    before.step--;
    double rate = dpf_optimiser_rate(&before), t = (double)o->step;
    struct constants c = {.rate = (float)rate,
                          .momentum = (float)o->momentum,
                          .keep1 = (float)o->decay1,
                          .new1 = (float)(1 - o->decay1),
                          .keep2 = (float)o->decay2,
                          .new2 = (float)(1 - o->decay2),
                          .scale2 = 1,
                          .epsilon = (float)o->epsilon};
    if (o->kind == DPF_ADAM) {
        c.rate = (float)(rate / (1 - pow(o->decay1, t)));
        c.scale2 = (float)(1 / (1 - pow(o->decay2, t)));
    }
    return c;
}

/* Kingma and Ba 2015, Algorithm 1. */
static void adam(const struct constants *c, size_t count, float *restrict w,
                 const float *restrict g, float *restrict m, float *restrict v)
{
    for (size_t i = 0; i < count; i++) {
        m[i] = c->keep1 * m[i] + c->new1 * g[i];
        v[i] = c->keep2 * v[i] + c->new2 * g[i] * g[i];
        w[i] -= c->rate * m[i] / (sqrtf(v[i] * c->scale2) + c->epsilon);
    }
}

/* Zeiler 2012: m averages squared changes, v squared gradients. */
static void adadelta(const struct constants *c, size_t count, float *restrict w,
                     const float *restrict g, float *restrict m, float *restrict v)
{
    for (size_t i = 0; i < count; i++) {
        v[i] = c->keep1 * v[i] + c->new1 * g[i] * g[i];
        float delta = sqrtf(m[i] + c->epsilon) / sqrtf(v[i] + c->epsilon) * g[i];
        m[i] = c->keep1 * m[i] + c->new1 * delta * delta;
        w[i] -= c->rate * delta;
    }
}

static void momentum(const struct constants *c, size_t count, float *restrict w,
                     const float *restrict g, float *restrict m)
{
    for (size_t i = 0; i < count; i++) {
        m[i] = c->momentum * m[i] + g[i];
        w[i] -= c->rate * m[i];
    }
}

void dpf_optimiser_update(const struct dpf_optimiser *o, size_t offset, size_t count,
                          float *parameters, float *gradient)
{
    struct constants c = constants_of(o);
    float l1 = (float)o->l1, l2 = (float)o->l2;
    float *m = o->first + offset, *v = o->second + offset;
    for (size_t i = 0; l2 > 0 && i < count; i++)
        gradient[i] += l2 * parameters[i];
    for (size_t i = 0; l1 > 0 && i < count; i++)
        gradient[i] += parameters[i] > 0 ? l1 : parameters[i] < 0 ? -l1 : 0;
    switch (o->kind) {
    case DPF_SGD:
        for (size_t i = 0; i < count; i++)
            parameters[i] -= c.rate * gradient[i];
        break;
    case DPF_MOMENTUM:
        momentum(&c, count, parameters, gradient, m);
        break;
    case DPF_ADAM:
        adam(&c, count, parameters, gradient, m, v);
        break;
    case DPF_ADADELTA:
        adadelta(&c, count, parameters, gradient, m, v);
        break;
    }
}
