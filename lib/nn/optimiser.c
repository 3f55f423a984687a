#include "nn/optimiser.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

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

/* One parameter: m and v are its state. Returns what is subtracted. */
static double change(const struct dpf_optimiser *o, double rate, double g, float *m,
                     float *v)
{
    double first = (double)*m, second = (double)*v, t = (double)o->step, delta;
    switch (o->kind) {
    case DPF_SGD:
        return rate * g;
    case DPF_MOMENTUM:
        first = o->momentum * first + g;
        *m = (float)first;
        return rate * first;
    case DPF_ADAM: /* Kingma and Ba 2015, Algorithm 1 */
        first = o->decay1 * first + (1 - o->decay1) * g;
        second = o->decay2 * second + (1 - o->decay2) * g * g;
        *m = (float)first;
        *v = (float)second;
        return rate * (first / (1 - pow(o->decay1, t))) /
               (sqrt(second / (1 - pow(o->decay2, t))) + o->epsilon);
    case DPF_ADADELTA: /* Zeiler 2012: m averages squared changes, v squared gradients */
        second = o->decay1 * second + (1 - o->decay1) * g * g;
        delta = sqrt(first + o->epsilon) / sqrt(second + o->epsilon) * g;
        first = o->decay1 * first + (1 - o->decay1) * delta * delta;
        *m = (float)first;
        *v = (float)second;
        return rate * delta;
    }
    return 0;
}

void dpf_optimiser_update(struct dpf_optimiser *o, size_t offset, size_t count,
                          float *parameters, const float *gradient)
{
    /* The schedule counts steps from 0, `step` counts from 1. */
    struct dpf_optimiser before = *o;
    before.step--;
    double rate = dpf_optimiser_rate(&before);
    for (size_t i = 0; i < count; i++) {
        double w = (double)parameters[i];
        double g = (double)gradient[i] + o->l2 * w + o->l1 * (w > 0 ? 1 : w < 0 ? -1 : 0);
        double d = change(o, rate, g, &o->first[offset + i], &o->second[offset + i]);
        parameters[i] = (float)(w - d);
    }
}
