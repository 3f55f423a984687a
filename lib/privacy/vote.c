#include "privacy/vote.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

/* Counts in units of 2^-20: ties of noisy counts are rare, and counts of as many teachers
 * as there may be, with noise, are far below 2^62. */
enum { STEP_LOG2 = 20 };

/* Values that are drawn at a time, at least. */
enum { AHEAD = 1024 };

const struct dpf_vote_choice dpf_vote_choices[] = {
    {"lnmax", DPF_VOTE_LNMAX},
    {"gnmax", DPF_VOTE_GNMAX},
    {"confident", DPF_VOTE_CONFIDENT},
    {NULL, DPF_VOTE_LNMAX},
};

/* Noise beyond this does not fit the grid, and would leave nothing of a vote. */
static const double MAX_NOISE = 65536, MIN_NOISE = 1e-3;

static enum dpf_status check_noise(double noise, const char *what, struct dpf_error *e)
{
    return noise >= MIN_NOISE && noise < MAX_NOISE
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE, "%s lies between %g and %g votes, not at '%g'",
                          what, MIN_NOISE, MAX_NOISE, noise);
}

/* Values are multiples of the step already: nothing is rounded. */
static enum dpf_status init_gaussian(struct dpf_gaussian *g, double noise,
                                     double sensitivity, size_t values,
                                     struct dpf_error *e)
{
    const struct dpf_gaussian_query query = {.sensitivity_l2 = sensitivity,
                                             .values = values,
                                             .exact_step = ldexp(1, -STEP_LOG2)};
    return dpf_gaussian_init(g, &query, noise / sensitivity, e);
}

/* Room for a whole number of queries; nothing is drawn yet. */
static bool init_noise(struct dpf_vote_noise *n, size_t values)
{
    n->size = (AHEAD + values - 1) / values * values;
    n->used = n->size;
    n->values = dpf_calloc(n->size, sizeof *n->values);
    return n->values != NULL;
}

static void release_noise(struct dpf_vote_noise *n)
{
    if (n->values)
        sodium_memzero(n->values, n->size * sizeof *n->values);
    free(n->values);
}

/* Noise for the next `count` values: each draw is used once. */
static const int64_t *next_noise(struct dpf_vote *v, struct dpf_vote_noise *n,
                                 struct dpf_random *r, size_t count)
{
    if (n->used == n->size) {
        memset(n->values, 0, n->size * sizeof *n->values);
        if (n == &v->of_test)
            dpf_gaussian_add(&v->test, r, 1, n->values, n->size);
        else if (v->plan.kind == DPF_VOTE_LNMAX)
            dpf_laplace_add(&v->laplace, r, n->values, n->size);
        else
            dpf_gaussian_add(&v->maximum, r, 1, n->values, n->size);
        n->used = 0;
    }
    const int64_t *at = n->values + n->used;
    n->used += count;
    return at;
}

enum dpf_status dpf_vote_init(struct dpf_vote *v, const struct dpf_vote_plan *plan,
                              size_t classes, struct dpf_error *e)
{
    const double two = M_SQRT2 * (1 + 0x1p-50); /* the root of 2, upwards */
    *v = (struct dpf_vote){.plan = *plan, .classes = classes};
    if (classes < 2 || classes > DPF_VOTE_MAX_CLASSES)
        return dpf_fail(e, DPF_USAGE, "a vote is among 2 to %d classes, not %zu",
                        (int)DPF_VOTE_MAX_CLASSES, classes);
    enum dpf_status status = check_noise(plan->noise, "the noise", e);
    if (status == DPF_OK && plan->kind == DPF_VOTE_CONFIDENT)
        status = check_noise(plan->threshold_noise, "the noise of the test", e);
    if (status == DPF_OK && plan->kind == DPF_VOTE_CONFIDENT &&
        !(fabs(plan->threshold) <= DPF_VOTE_MAX_TEACHERS))
        status = dpf_fail(e, DPF_USAGE, "'%g' is no number of votes", plan->threshold);
    if (status == DPF_OK && plan->kind == DPF_VOTE_LNMAX) {
        const struct dpf_laplace_query query = {
            .sensitivity_l1 = 2, .values = classes, .exact_step = ldexp(1, -STEP_LOG2)};
        status = dpf_laplace_init(&v->laplace, &query, 2 / plan->noise, e);
    }
    if (status == DPF_OK && plan->kind != DPF_VOTE_LNMAX)
        status = init_gaussian(&v->maximum, plan->noise, two, classes, e);
    if (status == DPF_OK && plan->kind == DPF_VOTE_CONFIDENT)
        status = init_gaussian(&v->test, plan->threshold_noise, 1, 1, e);
    if (status == DPF_OK &&
        (!init_noise(&v->of_counts, classes) ||
         (plan->kind == DPF_VOTE_CONFIDENT && !init_noise(&v->of_test, 1))))
        status = dpf_fail_memory(e);
    return status;
}

void dpf_vote_release(struct dpf_vote *v)
{
    release_noise(&v->of_counts);
    release_noise(&v->of_test);
    *v = (struct dpf_vote){.classes = 0};
}

bool dpf_vote_passes(struct dpf_vote *v, struct dpf_random *r, const int32_t *counts)
{
    int64_t most = counts[0];
    if (v->plan.kind != DPF_VOTE_CONFIDENT)
        return true;
    for (size_t i = 1; i < v->classes; i++)
        most = counts[i] > most ? counts[i] : most;
    most = most * ((int64_t)1 << STEP_LOG2) + *next_noise(v, &v->of_test, r, 1);
    return (double)most >= ldexp(v->plan.threshold, STEP_LOG2);
}

size_t dpf_vote_answer(struct dpf_vote *v, struct dpf_random *r, const int32_t *counts)
{
    const int64_t *noise = next_noise(v, &v->of_counts, r, v->classes);
    size_t best = 0;
    int64_t most = INT64_MIN;
    for (size_t i = 0; i < v->classes; i++) {
        int64_t noisy = (int64_t)counts[i] * ((int64_t)1 << STEP_LOG2) + noise[i];
        if (noisy > most) {
            most = noisy;
            best = i;
        }
    }
    return best;
}
