#include "stage/training_privacy.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

/* Steps with the same noise. With Poisson lots each is a sampled Gaussian; an epoch of
 * disjoint lots is one Gaussian of half the multiplier (see nn/training.h). */
struct schedule {
    struct dpf_spending *list;
    size_t count;
};

struct shape {
    const struct dpf_training_plan *plan;
    double rate;
    int64_t steps_per_epoch;
};

static struct shape shape_of(const struct dpf_training_plan *plan, int64_t population)
{
    return (struct shape){plan, fmin((double)plan->lot / (double)population, 1),
                          (population + plan->lot - 1) / plan->lot};
}

static bool is_poisson(const struct dpf_training_plan *plan)
{
    return plan->sampling == DPF_SAMPLE_POISSON;
}

/* What `steps` steps spend; equal epochs are one entry. */
static enum dpf_status schedule_init(struct schedule *s, const struct shape *shape,
                                     int64_t steps, struct dpf_error *e)
{
    const struct dpf_training_plan *plan = shape->plan;
    size_t capacity = 0;
    *s = (struct schedule){0};
    for (int64_t epoch = 0; steps > 0; epoch++, steps -= shape->steps_per_epoch) {
        int64_t taken = steps < shape->steps_per_epoch ? steps : shape->steps_per_epoch;
        double multiplier = dpf_training_multiplier(plan, epoch);
        struct dpf_spending one = {.kind = DPF_SPEND_GAUSSIAN,
                                   .parameter =
                                       is_poisson(plan) ? multiplier : multiplier / 2,
                                   .rate = is_poisson(plan) ? shape->rate : 1,
                                   .count = is_poisson(plan) ? (uint64_t)taken : 1};
        if (s->count && s->list[s->count - 1].parameter == one.parameter) {
            s->list[s->count - 1].count += one.count;
            continue;
        }
        if (!dpf_grow(&s->list, &capacity, s->count + 1, sizeof *s->list)) {
            free(s->list);
            return dpf_fail_memory(e);
        }
        s->list[s->count++] = one;
    }
    return DPF_OK;
}

static double schedule_cost(const struct shape *shape, int64_t steps, double delta)
{
    struct schedule s;
    double epsilon = INFINITY;
    if (schedule_init(&s, shape, steps, NULL) != DPF_OK)
        return INFINITY;
    if (dpf_compose_epsilon(DPF_METHOD_BEST, s.list, s.count, delta, &epsilon, NULL,
                            NULL) != DPF_OK)
        epsilon = INFINITY;
    free(s.list);
    return epsilon;
}

/* ------------------------------------------------------------------------- budgets */

/* What earlier stages left of the budget, by basic composition. */
static enum dpf_status remaining(const struct dpf_training_budget *budget,
                                 const struct dpf_header *spent,
                                 struct dpf_training_budget *left, struct dpf_error *e)
{
    struct dpf_account before;
    struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    struct dpf_header ledger = *spent;
    ledger.is_private = false; /* the records are: the training is their mechanism */
    *left = *budget;
    enum dpf_status status = dpf_account_ledger(&before, &ledger, &request, e);
    if (status != DPF_OK)
        return status;
    left->epsilon -= before.proven.epsilon;
    left->delta -= before.proven.delta;
    dpf_account_release(&before);
    return left->epsilon > 0 && left->delta > 0
               ? DPF_OK
               : dpf_fail(e, DPF_PRIVACY,
                          "the budget of epsilon %g at delta %g is spent already",
                          budget->epsilon, budget->delta);
}

static enum dpf_status least_noise(struct dpf_training_plan *plan,
                                   const struct shape *shape,
                                   const struct dpf_training_budget *left,
                                   struct dpf_error *e)
{
    struct schedule s;
    plan->noise.multiplier = 1;
    enum dpf_status status =
        schedule_init(&s, shape, plan->epochs * shape->steps_per_epoch, e);
    if (status != DPF_OK)
        return status;
    status = dpf_solve_parameter(DPF_METHOD_BEST, s.list, s.count, 0, left->epsilon,
                                 left->delta, e);
    plan->noise.multiplier = s.list[0].parameter * (is_poisson(plan) ? 1 : 2);
    free(s.list);
    return status;
}

static enum dpf_status last_step(struct dpf_training_plan *plan,
                                 const struct shape *shape,
                                 const struct dpf_training_budget *left,
                                 struct dpf_error *e)
{
    int64_t good = 0, bad = plan->epochs * shape->steps_per_epoch;
    if (schedule_cost(shape, bad, left->delta) <= left->epsilon)
        return DPF_OK; /* all of them fit */
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (schedule_cost(shape, middle, left->delta) <= left->epsilon)
            good = middle;
        else
            bad = middle;
    }
    plan->noise.max_steps = good;
    return good > 0 ? DPF_OK
                    : dpf_fail(e, DPF_PRIVACY,
                               "a single step with noise multiplier %g costs more than "
                               "epsilon %g at delta %g",
                               plan->noise.multiplier, left->epsilon, left->delta);
}

enum dpf_status dpf_training_plan_noise(struct dpf_training_plan *plan, int64_t examples,
                                        const struct dpf_training_budget *budget,
                                        const struct dpf_header *spent,
                                        struct dpf_error *e)
{
    struct dpf_training_budget left;
    struct shape shape =
        shape_of(plan, plan->noise.population ? plan->noise.population : examples);
    if (budget->epsilon == 0)
        return DPF_OK;
    enum dpf_status status = remaining(budget, spent, &left, e);
    if (status != DPF_OK)
        return status;
    return plan->noise.multiplier == 0 ? least_noise(plan, &shape, &left, e)
                                       : last_step(plan, &shape, &left, e);
}

/* ---------------------------------------------------------------------------- cost */

static int64_t steps_taken(const struct dpf_training *t)
{
    return t->epoch * t->steps_per_epoch + t->step;
}

double dpf_training_cost(const struct dpf_training *t, double delta)
{
    struct shape shape = shape_of(&t->plan, t->population);
    int64_t steps = steps_taken(t);
    return steps ? schedule_cost(&shape, steps, delta) : 0;
}

/* The statement of the paper: the moments accountant, which takes every lot for a Poisson
 * sample, as Abadi et al. do for lots that they shuffle. */
static double claim(const struct shape *shape, int64_t steps, double delta)
{
    struct dpf_training_plan sampled = *shape->plan;
    struct shape as_sampled = *shape;
    struct schedule s;
    double epsilon = INFINITY;
    sampled.sampling = DPF_SAMPLE_POISSON;
    as_sampled.plan = &sampled;
    if (schedule_init(&s, &as_sampled, steps, NULL) != DPF_OK)
        return INFINITY;
    if (dpf_compose_epsilon(DPF_METHOD_MOMENTS, s.list, s.count, delta, &epsilon, NULL,
                            NULL) != DPF_OK)
        epsilon = INFINITY;
    free(s.list);
    return epsilon;
}

enum dpf_status dpf_training_describe(const struct dpf_training *t, double delta,
                                      const char *stage, struct dpf_header *h,
                                      struct dpf_error *e)
{
    struct shape shape = shape_of(&t->plan, t->population);
    struct schedule s;
    int64_t steps = steps_taken(t);
    bool poisson = is_poisson(&t->plan);
    double claimed = claim(&shape, steps, delta), proven = dpf_training_cost(t, delta);
    enum dpf_status status = schedule_init(&s, &shape, steps, e);
    if (status != DPF_OK)
        return status;
    for (size_t i = 0; i < s.count; i++) {
        /* several entries share the cost of the whole; the first one carries it */
        struct dpf_mechanism_event event = {
            .spending = s.list[i],
            .sampling = poisson ? "poisson" : "shuffle",
            .norm = "l2",
            .sensitivity = t->mechanism.sensitivity_l2 * (poisson ? 1 : 2),
            .relation = poisson ? DPF_ADD_REMOVE : DPF_REPLACE_ONE,
            .assumes =
                t->plan.noise.population || !poisson
                    ? "rounding of float gradients stays within its allowance"
                    : "rounding of float gradients stays within its allowance; the "
                      "number of records is public",
            .claimed = {i ? 0 : claimed, i ? 0 : delta,
                        "Abadi et al. 2016, moments accountant for sampled lots"},
            .proven = {i ? 0 : proven, i ? 0 : delta,
                       poisson ? "sampled Gaussian, privacy loss distribution"
                               : "Gaussian on disjoint lots, no amplification"}};
        dpf_ledger_add_mechanism(&h->events, stage, &event);
    }
    free(s.list);
    h->is_private = false;
    h->is_protected = true;
    return dpf_buffer_ok(&h->events.bytes) ? DPF_OK : dpf_fail_memory(e);
}
