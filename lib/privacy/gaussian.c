#include "privacy/gaussian.h"

#include <math.h>

#include "privacy/grid.h"
#include "privacy/tradeoff.h"
#include "random/noise.h"

#include "base/banned.h"

/* Steps in a deviation, at least: fine enough that rounding 10^9 values adds less than a
 * hundredth, coarse enough that the fast sampler is almost always enough. */
enum { STEPS_LOG2 = 23 };

enum dpf_status dpf_gaussian_init(struct dpf_gaussian *g,
                                  const struct dpf_gaussian_query *query,
                                  double noise_multiplier, struct dpf_error *e)
{
    const double up = 1 + 0x1p-50;
    double plain = noise_multiplier * query->sensitivity_l2;
    if (!(noise_multiplier > 0) || !isfinite(noise_multiplier))
        return dpf_fail(e, DPF_USAGE, "a noise multiplier is a positive number");
    if (!(query->sensitivity_l2 > 0) || !isfinite(plain) || !(plain > 1e-290))
        return dpf_fail(e, DPF_USAGE,
                        "a sensitivity is a positive number that noise can be drawn for, "
                        "not '%g'",
                        query->sensitivity_l2);
    double step = dpf_grid_choose(query->parts, plain, STEPS_LOG2, query->least_step,
                                  query->exact_step);
    if (isnan(step))
        return dpf_fail(e, DPF_USAGE, "the step of a grid is a positive number");
    double rounding = query->parts * sqrt((double)query->values) * step;
    *g = (struct dpf_gaussian){.noise_multiplier = noise_multiplier,
                               .sensitivity_l2 = (query->sensitivity_l2 + rounding) * up,
                               .step = step};
    g->noise_stddev = noise_multiplier * g->sensitivity_l2 * up;
    if (g->noise_stddev / step > ldexp(1, DPF_NOISE_MAX_LOG2))
        return dpf_fail(e, DPF_USAGE, "noise of deviation %g does not fit a grid of %g",
                        g->noise_stddev, step);
    return DPF_OK;
}

enum dpf_status dpf_gaussian_init_epsilon(struct dpf_gaussian *g,
                                          const struct dpf_gaussian_query *query,
                                          double epsilon, double delta,
                                          struct dpf_error *e)
{
    if (!(epsilon > 0) || !isfinite(epsilon))
        return dpf_fail(e, DPF_USAGE, "epsilon is a positive number, not '%g'", epsilon);
    if (!(delta > 0) || !(delta < 1))
        return dpf_fail(e, DPF_USAGE, "delta lies between 0 and 1, not '%g'", delta);
    return dpf_gaussian_init(g, query, 1 / dpf_gdp_mu(epsilon, delta) * (1 + 0x1p-50), e);
}

void dpf_gaussian_add(const struct dpf_gaussian *g, struct dpf_random *r, double share,
                      int64_t *sums, size_t count)
{
    enum { BLOCK = 1024 };
    int64_t noise[BLOCK];
    double s = g->noise_stddev / g->step * share * (1 + 0x1p-50);
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t left = count - done < BLOCK ? count - done : BLOCK;
        dpf_noise_gaussian(r, s, noise, left);
        for (size_t i = 0; i < left; i++)
            sums[done + i] += noise[i];
    }
}
