#include "privacy/laplace.h"

#include <math.h>

#include "privacy/grid.h"
#include "random/noise.h"

#include "base/banned.h"

/* Steps in a scale: so many that rounding (a step a value and part) adds 2^-16 to the
 * sensitivity at most, as far as 2^30 allows; fewer are faster to draw. */
static int steps_log2(const struct dpf_laplace_query *query, double epsilon)
{
    double rounded = (double)query->parts * (double)query->values / epsilon;
    double wanted = 16 + ceil(log2(fmax(rounded, 1)));
    return wanted < 20 ? 20 : wanted > 30 ? 30 : (int)wanted;
}

enum dpf_status dpf_laplace_init(struct dpf_laplace *l,
                                 const struct dpf_laplace_query *query, double epsilon,
                                 struct dpf_error *e)
{
    double plain = query->sensitivity_l1 / epsilon;
    if (!(epsilon > 0) || !isfinite(epsilon))
        return dpf_fail(e, DPF_USAGE, "epsilon is a positive number, not '%g'", epsilon);
    if (!(query->sensitivity_l1 > 0) || !isfinite(plain) || !(plain > 1e-290))
        return dpf_fail(e, DPF_USAGE,
                        "a sensitivity is a positive number that noise can be drawn for, "
                        "not '%g'",
                        query->sensitivity_l1);
    double step = dpf_grid_choose(query->parts, plain, steps_log2(query, epsilon),
                                  query->least_step, query->exact_step);
    if (isnan(step))
        return dpf_fail(e, DPF_USAGE, "the step of a grid is a positive number");
    /* a hair more than S before the floor: the quotient itself is rounded */
    double steps = floor(query->sensitivity_l1 / step * (1 + 0x1p-50)) +
                   (double)query->parts * (double)query->values;
    double t = steps / epsilon * (1 + 0x1p-50);
    *l = (struct dpf_laplace){.epsilon = steps / t * (1 + 0x1p-51),
                              .sensitivity_l1 = steps * step,
                              .scale = t * step,
                              .step = step};
    if (l->epsilon > epsilon)
        l->epsilon = epsilon;
    if (steps < 1 || !(t <= ldexp(1, DPF_NOISE_MAX_LOG2)) || !isfinite(l->scale) ||
        !isfinite(l->sensitivity_l1))
        return dpf_fail(e, DPF_USAGE, "noise of scale %g does not fit a grid of %g",
                        plain, step);
    return DPF_OK;
}

void dpf_laplace_add(const struct dpf_laplace *l, struct dpf_random *r, int64_t *sums,
                     size_t count)
{
    enum { BLOCK = 1024 };
    int64_t noise[BLOCK];
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t left = count - done < BLOCK ? count - done : BLOCK;
        dpf_noise_laplace(r, l->scale / l->step, noise, left);
        for (size_t i = 0; i < left; i++)
            sums[done + i] += noise[i];
    }
}
