#include "account/training.h"

#include <math.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"

#include "base/banned.h"

/* Steps with the same noise, as the Claim says. */
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

/* By how many sensitivities of its sum neighbours can change a lot: one example more or
 * less, or one in the place of another. */
static double lot_change(const struct dpf_training_plan *plan)
{
    return is_poisson(plan) ? 1 : 2;
}

/* So many steps of an epoch, at least one. */
static struct dpf_spending epoch_spending(const struct shape *shape, int64_t epoch,
                                          int64_t steps)
{
    const struct dpf_training_plan *plan = shape->plan;
    double multiplier = dpf_training_multiplier(plan, epoch);
    return (struct dpf_spending){.kind = &dpf_spending_gaussian,
                                 .parameter = multiplier / lot_change(plan),
                                 .rate = is_poisson(plan) ? shape->rate : 1,
                                 .count = is_poisson(plan) ? (uint64_t)steps : 1};
}

/* What `steps` steps spend; equal epochs are one entry. */
static enum dpf_status schedule_init(struct schedule *s, const struct shape *shape,
                                     int64_t steps, struct dpf_error *e)
{
    size_t capacity = 0;
    *s = (struct schedule){0};
    for (int64_t epoch = 0; steps > 0; epoch++, steps -= shape->steps_per_epoch) {
        int64_t taken = steps < shape->steps_per_epoch ? steps : shape->steps_per_epoch;
        struct dpf_spending one = epoch_spending(shape, epoch, taken);
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

static double schedule_cost(const struct shape *shape, enum dpf_method method,
                            int64_t steps, double delta)
{
    struct schedule s;
    double epsilon = INFINITY;
    if (schedule_init(&s, shape, steps, NULL) != DPF_OK)
        return INFINITY;
    if (dpf_compose_epsilon(method, s.list, s.count, delta, &epsilon, NULL, NULL) !=
        DPF_OK)
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
    plan->noise.multiplier = s.list[0].parameter * lot_change(plan);
    free(s.list);
    return status;
}

static enum dpf_status last_step(struct dpf_training_plan *plan,
                                 const struct shape *shape,
                                 const struct dpf_training_budget *left,
                                 struct dpf_error *e)
{
    int64_t good = 0, bad = plan->epochs * shape->steps_per_epoch;
    if (schedule_cost(shape, DPF_METHOD_BEST, bad, left->delta) <= left->epsilon)
        return DPF_OK; /* all of them fit */
    while (bad - good > 1) {
        int64_t middle = good + (bad - good) / 2;
        if (schedule_cost(shape, DPF_METHOD_BEST, middle, left->delta) <= left->epsilon)
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

static int64_t steps_planned(const struct dpf_training *t)
{
    int64_t all = t->plan.epochs * t->steps_per_epoch, most = t->plan.noise.max_steps;
    return most && most < all ? most : all;
}

/* The statement of the paper: the moments accountant, which takes every lot for a Poisson
 * sample, as Abadi et al. do for lots that they shuffle. */
static double claim(const struct shape *shape, int64_t steps, double delta)
{
    struct dpf_training_plan sampled = *shape->plan;
    struct shape as_sampled = *shape;
    sampled.sampling = DPF_SAMPLE_POISSON;
    if (sampled.noise.claimed_share > 0) {
        sampled.noise.multiplier *= sampled.noise.claimed_share;
        sampled.noise.final_multiplier *= sampled.noise.claimed_share;
    }
    as_sampled.plan = &sampled;
    return schedule_cost(&as_sampled, DPF_METHOD_MOMENTS, steps, delta);
}

/* One entry of the schedule, from an epoch on. The statements of the whole stand with the
 * first. */
static struct dpf_mechanism_event
event_of(const struct dpf_training *t, const struct dpf_spending *spending, int64_t epoch)
{
    bool poisson = is_poisson(&t->plan);
    return (struct dpf_mechanism_event){
        .spending = *spending,
        .sampling = dpf_sampling_name(t->plan.sampling),
        .norm = "l2",
        .sensitivity = dpf_training_sensitivity(t, epoch) * lot_change(&t->plan),
        .relation = poisson ? DPF_ADD_REMOVE : DPF_REPLACE_ONE,
        .tells_count = poisson && !t->plan.noise.population,
        .claimed =
            {0, 0,
             t->plan.noise.claimed_share > 0
                 ? "moments accountant for sampled lots, with one layer's clip norm "
                   "for that of all"
                 : "Abadi et al. 2016, moments accountant for sampled lots"},
        .proven = {0, 0,
                   poisson ? "sampled Gaussian, privacy loss distribution"
                           : "Gaussian on disjoint lots, no amplification"}};
}

static enum dpf_status describe_steps(const struct dpf_training *t, int64_t steps,
                                      double delta, const char *stage,
                                      struct dpf_header *h, struct dpf_error *e)
{
    struct shape shape = shape_of(&t->plan, t->population);
    struct schedule s;
    enum dpf_status status = schedule_init(&s, &shape, steps, e);
    if (status != DPF_OK)
        return status;
    int64_t epoch = 0;
    for (size_t i = 0; i < s.count; i++) {
        struct dpf_mechanism_event event = event_of(t, &s.list[i], epoch);
        if (i == 0) {
            event.claimed.epsilon = claim(&shape, steps, delta);
            event.proven.epsilon = schedule_cost(&shape, DPF_METHOD_BEST, steps, delta);
            event.claimed.delta = event.proven.delta = delta;
        }
        dpf_ledger_add_mechanism(&h->events, stage, &event);
        epoch += is_poisson(&t->plan) ? (int64_t)s.list[i].count / shape.steps_per_epoch
                                      : (int64_t)s.list[i].count;
    }
    free(s.list);
    dpf_standing_protect(h);
    return dpf_buffer_ok(&h->events.bytes) ? DPF_OK : dpf_fail_memory(e);
}

enum dpf_status dpf_training_describe(const struct dpf_training *t, double delta,
                                      const char *stage, struct dpf_header *h,
                                      struct dpf_error *e)
{
    return describe_steps(t, steps_taken(t), delta, stage, h, e);
}

/* The account of a ledger with some steps. */
static enum dpf_status account_with(const struct dpf_training *t, int64_t steps,
                                    double delta, const struct dpf_header *ledger,
                                    struct dpf_account *account, struct dpf_error *e)
{
    struct dpf_header h = {0};
    struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    enum dpf_status status = dpf_header_copy(&h, ledger, e);
    if (status == DPF_OK)
        status = describe_steps(t, steps, delta, "train", &h, e);
    if (status == DPF_OK)
        status = dpf_account_ledger(account, &h, &request, e);
    dpf_header_release(&h);
    return status;
}

double dpf_training_cost(const struct dpf_training *t, double delta,
                         const struct dpf_header *ledger)
{
    struct dpf_account account;
    if (steps_taken(t) == 0)
        return 0;
    if (account_with(t, steps_taken(t), delta, ledger, &account, NULL) != DPF_OK)
        return INFINITY;
    double epsilon = account.proven.epsilon;
    dpf_account_release(&account);
    return epsilon;
}

enum dpf_status dpf_training_foresee(const struct dpf_training *t,
                                     const struct dpf_training_budget *budget,
                                     const struct dpf_header *ledger, struct dpf_error *e)
{
    struct dpf_account account;
    struct dpf_text cost = {0};
    enum dpf_status status =
        account_with(t, steps_planned(t), budget->delta, ledger, &account, e);
    if (status != DPF_OK)
        return status;
    dpf_text_add_epsilon(&cost, account.proven.epsilon);
    if (budget->epsilon > 0 && account.proven.epsilon > budget->epsilon * (1 + 1e-9))
        status = dpf_fail(e, DPF_PRIVACY, "the ledger would state epsilon %s, not %g%s%s",
                          dpf_text_get(&cost), budget->epsilon,
                          account.why.size ? ": " : "", dpf_text_get(&account.why));
    else if (isinf(account.proven.epsilon))
        dpf_notice("no epsilon will be proven: %s", dpf_text_get(&account.why));
    dpf_text_release(&cost);
    dpf_account_release(&account);
    return status;
}
