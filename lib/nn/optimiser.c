#include "nn/optimiser.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/words.h"

#include "base/banned.h"

static double linear_left(double done)
{
    return 1 - done;
}

static double cosine_left(double done)
{
    return (1 + cos(3.141592653589793 * done)) / 2;
}

const struct dpf_schedule dpf_schedules[] = {
    {"constant", NULL},
    {"linear", linear_left},
    {"cosine", cosine_left},
    {NULL, NULL},
};

const struct dpf_schedule *dpf_schedule_find(const char *name)
{
    return DPF_FIND(dpf_schedules, name);
}

struct dpf_optimiser dpf_optimiser_defaults(const struct dpf_step_kind *kind, double rate)
{
    return (struct dpf_optimiser){.kind = kind,
                                  .rate = rate,
                                  .momentum = 0.9,
                                  .decay1 = kind->decay1,
                                  .decay2 = kind->decay2,
                                  .epsilon = kind->epsilon};
}

enum dpf_status dpf_optimiser_init(struct dpf_optimiser *o,
                                   const struct dpf_kernels *kernels,
                                   struct dpf_context *context, size_t count,
                                   struct dpf_error *e)
{
    size_t bytes = (count + 1) * sizeof *o->first;
    o->step = 0;
    o->count = count;
    o->kernels = kernels;
    o->context = context;
    o->first = kernels->alloc(context, bytes);
    o->second = kernels->alloc(context, bytes);
    if (!o->first || !o->second) {
        dpf_optimiser_release(o);
        return dpf_fail_memory(e);
    }
    kernels->clear(context, o->first, (int64_t)count);
    kernels->clear(context, o->second, (int64_t)count);
    return kernels->finish(context, e); /* other contexts read them */
}

void dpf_optimiser_release(struct dpf_optimiser *o)
{
    if (!o->kernels)
        return;
    o->kernels->release(o->context, o->first);
    o->kernels->release(o->context, o->second);
    o->first = o->second = NULL;
    o->kernels = NULL;
}

void dpf_optimiser_get(const struct dpf_optimiser *o, float *first, float *second)
{
    o->kernels->get(o->context, first, o->first, o->count * sizeof *first);
    o->kernels->get(o->context, second, o->second, o->count * sizeof *second);
}

void dpf_optimiser_put(struct dpf_optimiser *o, const float *first, const float *second)
{
    o->kernels->put(o->context, o->first, first, o->count * sizeof *first);
    o->kernels->put(o->context, o->second, second, o->count * sizeof *second);
}

/* The rate after so many steps. */
static double rate_after(const struct dpf_optimiser *o, uint64_t steps)
{
    if (!o->schedule || !o->schedule->left || o->schedule_steps == 0)
        return o->rate;
    double done = fmin((double)steps / (double)o->schedule_steps, 1);
    return o->final_rate + (o->rate - o->final_rate) * o->schedule->left(done);
}

double dpf_optimiser_rate(const struct dpf_optimiser *o)
{
    return rate_after(o, o->step);
}

void dpf_optimiser_begin(struct dpf_optimiser *o, double divisor)
{
    double rate = rate_after(o, o->step), t = (double)++o->step;
    o->now = (struct dpf_step){.kind = o->kind,
                               .scale = (float)(1 / divisor),
                               .rate = (float)rate,
                               .momentum = (float)o->momentum,
                               .keep1 = (float)o->decay1,
                               .new1 = (float)(1 - o->decay1),
                               .keep2 = (float)o->decay2,
                               .new2 = (float)(1 - o->decay2),
                               .scale2 = 1,
                               .epsilon = (float)o->epsilon,
                               .l1 = (float)o->l1,
                               .l2 = (float)o->l2};
    if (o->kind->corrects_bias) {
        o->now.rate = (float)(rate / (1 - pow(o->decay1, t)));
        o->now.scale2 = (float)(1 / (1 - pow(o->decay2, t)));
    }
}

void dpf_optimiser_update(const struct dpf_optimiser *o, struct dpf_context *context,
                          size_t offset, size_t count, float *parameters, float *gradient)
{
    o->kernels->optimise(context, &o->now, count, parameters, gradient, o->first + offset,
                         o->second + offset);
}
