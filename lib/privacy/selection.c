#include "privacy/selection.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "random/noise.h"

#include "base/banned.h"

enum dpf_status dpf_selection_init(struct dpf_selection *s, double epsilon,
                                   double sensitivity, bool monotone, struct dpf_error *e)
{
    if (!(epsilon > 0) || !isfinite(epsilon))
        return dpf_fail(e, DPF_USAGE, "epsilon is a positive number, not '%g'", epsilon);
    if (!(sensitivity > 0) || !isfinite(sensitivity))
        return dpf_fail(e, DPF_USAGE, "a sensitivity is a positive number");
    double t = (monotone ? 1 : 2) * sensitivity / epsilon * (1 + 0x1p-50);
    if (t > ldexp(1, DPF_NOISE_MAX_LOG2) || t < 1e-6)
        return dpf_fail(e, DPF_USAGE,
                        "the scores need another grid step: the noise would be %g", t);
    *s = (struct dpf_selection){epsilon, t};
    return DPF_OK;
}

static int64_t largest_of(const int64_t *scores, size_t count)
{
    int64_t largest = scores[0];
    for (size_t i = 1; i < count; i++)
        largest = scores[i] > largest ? scores[i] : largest;
    return largest;
}

/* Whether a candidate is kept: with probability e^-(largest - score)/t. */
static bool keep(const struct dpf_selection *s, struct dpf_random *r, int64_t largest,
                 int64_t score)
{
    uint64_t below =
        (uint64_t)largest - (uint64_t)score; /* of any two, without overflow */
    return below == 0 || (uint64_t)dpf_noise_geometric(r, s->scale) >= below;
}

size_t dpf_select_exponential(const struct dpf_selection *s, struct dpf_random *r,
                              const int64_t *scores, size_t count)
{
    int64_t largest = largest_of(scores, count);
    size_t i;
    do
        i = (size_t)dpf_random_below(r, count);
    while (!keep(s, r, largest, scores[i]));
    return i;
}

/* Permute and flip. The largest is always kept when it is asked, so the loop ends. */
size_t dpf_select_noisy_max(const struct dpf_selection *s, struct dpf_random *r,
                            const int64_t *scores, size_t count)
{
    size_t order[64], *list = order;
    size_t *more = count > 64 ? dpf_calloc(count, sizeof *more) : NULL;
    if (count > 64 && !more) /* no memory for an order: the other mechanism needs none */
        return dpf_select_exponential(s, r, scores, count);
    list = more ? more : order;
    int64_t largest = largest_of(scores, count);
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++)
        list[i] = i;
    for (size_t i = 0; i < count; i++) { /* Fisher and Yates, as far as it is needed */
        size_t j = i + (size_t)dpf_random_below(r, count - i);
        chosen = list[j];
        list[j] = list[i];
        if (keep(s, r, largest, scores[chosen]))
            break;
    }
    free(more);
    return chosen;
}
