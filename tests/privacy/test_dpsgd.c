/* DP-SGD: what is clipped, what a lot is, what noise is added, and what is stated of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/training.h"
#include "base/memory.h"
#include "harness.h"
#include "nn/initialise.h"
#include "nn/training.h"
#include "random/seeded.h"

struct rig {
    struct dpf_model model;
    struct dpf_engine engine;
    struct dpf_optimiser optimiser;
    struct dpf_dataset data;
    uint32_t *rows;
};

/* `alike`: all examples almost the same, so that gradients add up instead of cancelling.
 */
static void begin(struct rig *g, const char *text, int64_t records, bool alike)
{
    struct dpf_seeded r;
    struct dpf_dataset *d = &g->data;
    *g = (struct rig){0};
    CU_ASSERT_FATAL(dpf_model_parse(&g->model, text, strlen(text), "test", NULL) ==
                    DPF_OK);
    struct dpf_engine_setup setup = {.model = &g->model,
                                     .kernels = dpf_kernels_cpu(),
                                     .threads = 2,
                                     .training = true,
                                     .clipping = true};
    CU_ASSERT_FATAL(dpf_engine_init(&g->engine, &setup, NULL) == DPF_OK);
    float *start = dpf_calloc(g->model.span, sizeof *start);
    CU_ASSERT_FATAL(start && dpf_initialise(&g->model, "torch", 3, start));
    dpf_engine_put(&g->engine, start);
    free(start);
    g->optimiser = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.1);
    CU_ASSERT_FATAL(dpf_optimiser_init(&g->optimiser, &dpf_kernels_ref, NULL,
                                       g->model.span, NULL) == DPF_OK);
    d->record = dpf_shape_elements(&g->model.nodes[0].shape);
    d->dtype = DPF_F32;
    d->record_bytes = d->record * sizeof(float);
    d->rows = (uint64_t)records;
    d->classes = 10;
    d->positions = 1;
    d->x = dpf_alloc_aligned(d->rows * d->record_bytes);
    d->labels = dpf_calloc(d->rows, sizeof *d->labels);
    g->rows = dpf_calloc(d->rows, sizeof *g->rows);
    CU_ASSERT_FATAL(d->x && d->labels && g->rows);
    dpf_seeded_init(&r, "dpsgd", 1, 0);
    float *x = (float *)(void *)d->x;
    for (size_t i = 0; i < d->rows; i++) {
        for (size_t j = 0; j < d->record; j++)
            x[i * d->record + j] =
                (float)(alike && i ? (double)x[j] + 0.1 * dpf_seeded_unit(&r)
                                   : dpf_seeded_unit(&r));
        d->labels[i] = alike ? 3 : (int32_t)dpf_seeded_below(&r, 10);
        g->rows[i] = (uint32_t)i;
    }
}

static void end(struct rig *g)
{
    dpf_engine_release(&g->engine);
    dpf_optimiser_release(&g->optimiser);
    dpf_dataset_release(&g->data);
    dpf_model_release(&g->model);
    free(g->rows);
}

/* The integers of a lot; heap. The key of row i is keys[i]. */
static int64_t *lot_sum(struct rig *g, int64_t from, int64_t count, double clip,
                        const uint64_t *keys)
{
    struct dpf_lot lot = {.data = &g->data,
                          .rows = g->rows + from,
                          .count = count,
                          .loss = dpf_loss_find("cross-entropy"),
                          .rule = DPF_CLIP_FLAT,
                          .clip_l2 = clip,
                          .expected = 256,
                          .keys = keys + from};
    struct dpf_lot_result result;
    int64_t *sum = dpf_calloc(g->model.span, sizeof *sum);
    struct dpf_optimiser still = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0);
    CU_ASSERT_FATAL(sum &&
                    dpf_engine_gradients(&g->engine, &lot, &result, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_sums(&g->engine, sum) == dpf_lot_sum_step(clip));
    CU_ASSERT_FATAL(dpf_optimiser_init(&still, &dpf_kernels_ref, NULL, g->model.span,
                                       NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_update(&g->engine, &still, 1, NULL, NULL) == DPF_OK);
    dpf_optimiser_release(&still);
    return sum;
}

/* Without its first example, the sum moves by its clipped gradient and what rounding in
 * one part can do, whatever the size of the lot. tests/privacy/test_judge.c tries to
 * refute it in earnest. */
static void check_sensitivity(const char *architecture, int64_t lot, bool alike)
{
    struct rig g;
    double moved = 0, norm = 0, clip = 0.1, step = dpf_lot_sum_step(clip);
    begin(&g, dpf_architecture(architecture), lot, alike);
    uint64_t *keys = dpf_calloc((size_t)lot, sizeof *keys);
    struct dpf_seeded r;
    CU_ASSERT_FATAL(keys != NULL);
    dpf_seeded_init(&r, "keys", 1, 0);
    for (int64_t i = 0; i < lot; i++)
        keys[i] = dpf_seeded_u64(&r);
    int64_t *with = lot_sum(&g, 0, lot, clip, keys);
    int64_t *without = lot_sum(&g, 1, lot - 1, clip, keys);
    int64_t *own = lot_sum(&g, 0, 1, clip, keys);
    for (size_t i = 0; i < g.model.span; i++) {
        double difference = (double)(with[i] - without[i]) * step;
        moved += difference * difference;
        norm += (double)own[i] * step * ((double)own[i] * step);
    }
    CU_ASSERT(sqrt(moved) <= clip * (1 + dpf_lot_sum_margin(g.model.span)));
    CU_ASSERT(fabs(sqrt(norm) - clip) <= 1e-4 * clip); /* it was clipped */
    free(keys);
    free(with);
    free(without);
    free(own);
    end(&g);
}

static void test_sensitivity(void)
{
    static const char *const nets[] = {"tiny", "dpsgd-digits", "dpsgd-mnist",
                                       "abadi-mnist"};
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        check_sensitivity(nets[i], 257, false);
        check_sensitivity(nets[i], 257, true);
        check_sensitivity(nets[i], 2048, true);
    }
    check_sensitivity("adlm-mnist", 256, true);
}

static struct dpf_training_plan plan_of(double multiplier, enum dpf_sampling sampling)
{
    return (struct dpf_training_plan){.epochs = 4,
                                      .lot = 50,
                                      .sampling = sampling,
                                      .loss = dpf_loss_find("cross-entropy"),
                                      .rule = DPF_CLIP_FLAT,
                                      .clip_l2 = 0.5,
                                      .seed = 5,
                                      .noise = {.multiplier = multiplier}};
}

/* With a rate of 0 gradient, parameters move by rate times noise over the lot: its
 * deviation is the multiplier times the enlarged clip norm. */
static void test_noise_deviation(void)
{
    struct rig g;
    struct dpf_training t;
    struct dpf_training_plan plan = plan_of(200, DPF_SAMPLE_POISSON);
    const struct dpf_epoch_report *report;
    begin(&g, dpf_architecture("dpsgd-mnist"), 500, false);
    size_t span = g.model.span;
    float *before = dpf_calloc(span, sizeof *before),
          *after = dpf_calloc(span, sizeof *after);
    CU_ASSERT_FATAL(
        dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, NULL) == DPF_OK);
    dpf_engine_get(&g.engine, before);
    CU_ASSERT(dpf_training_step(&t, &report, NULL) == DPF_OK);
    dpf_engine_get(&g.engine, after);
    double sum = 0, square = 0, n = (double)span;
    double deviation = 0.1 * 200 * 0.5 * (1 + dpf_lot_sum_margin(span)) / 50;
    for (size_t i = 0; i < span; i++) {
        double z = (double)(after[i] - before[i]) / deviation;
        sum += z;
        square += z * z;
    }
    /* the clipped sum adds (50 * 0.5 / (200 * 0.5))^2 / span at most; 5 sigma and a bit
     */
    CU_ASSERT(fabs(sum / sqrt(n)) < 5.1);
    CU_ASSERT(fabs(square - n) < 5.1 * sqrt(2 * n) + 1);
    CU_ASSERT(t.mechanism.sensitivity_l2 >= 0.5 * (1 + dpf_lot_sum_margin(span)));
    free(before);
    free(after);
    dpf_training_release(&t);
    end(&g);
}

/* Lots of every size come, an empty one too, and their draws are not the seed's. */
static void test_lots(void)
{
    struct rig g;
    struct dpf_training a, b;
    struct dpf_training_plan plan = plan_of(1, DPF_SAMPLE_POISSON);
    const struct dpf_epoch_report *report;
    plan.lot = 1;
    plan.epochs = 2;
    begin(&g, dpf_architecture("tiny"), 60, false);
    CU_ASSERT_FATAL(
        dpf_training_init(&a, &plan, &g.engine, &g.optimiser, &g.data, NULL) == DPF_OK);
    CU_ASSERT_FATAL(
        dpf_training_init(&b, &plan, &g.engine, &g.optimiser, &g.data, NULL) == DPF_OK);
    int empty = 0, differ = 0;
    for (int i = 0; i < 60; i++) {
        int64_t had_a = a.seen, had_b = b.seen;
        CU_ASSERT(dpf_training_step(&a, &report, NULL) == DPF_OK);
        CU_ASSERT(dpf_training_step(&b, &report, NULL) == DPF_OK);
        empty += a.seen == had_a;
        differ += (a.seen - had_a) != (b.seen - had_b);
    }
    CU_ASSERT(empty > 5 && differ > 5); /* e^-1 of 60 are empty */
    dpf_training_release(&a);
    dpf_training_release(&b);
    end(&g);
}

/* The plan's population, not the number that came, makes rate, steps and divisor. */
static void test_population(void)
{
    struct rig g;
    struct dpf_training t;
    struct dpf_training_plan plan = plan_of(1, DPF_SAMPLE_POISSON);
    plan.noise.population = 1000;
    begin(&g, dpf_architecture("tiny"), 60, false);
    CU_ASSERT_FATAL(
        dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, NULL) == DPF_OK);
    CU_ASSERT(t.steps_per_epoch == 20 && dpf_training_sampling_rate(&t) == 0.05);
    dpf_training_release(&t);
    plan.sampling = DPF_SAMPLE_SHUFFLE;
    CU_ASSERT(dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, NULL) ==
              DPF_USAGE);
    plan = plan_of(1, DPF_SAMPLE_POISSON);
    plan.validation = 0.2;
    CU_ASSERT(dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, NULL) ==
              DPF_PRIVACY);
    plan = plan_of(1, DPF_SAMPLE_POISSON);
    plan.rule = DPF_CLIP_NONE;
    CU_ASSERT(dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, NULL) ==
              DPF_PRIVACY);
    end(&g);
}

/* A record whose values are not finite, or huge, changes a step by no more than any
 * other: the step is taken, and the parameters stay finite. */
static void test_hostile_record(void)
{
    struct rig g;
    struct dpf_training t;
    struct dpf_training_plan plan = plan_of(1, DPF_SAMPLE_POISSON);
    const struct dpf_epoch_report *report;
    plan.lot = 60;
    begin(&g, dpf_architecture("tiny"), 60, false);
    float *x = (float *)(void *)g.data.x;
    const float bad[] = {NAN, INFINITY, -INFINITY, 3e38f, 1e30f};
    for (int i = 0; i < 5; i++)
        x[(size_t)i * g.data.record + 3] = bad[i];
    CU_ASSERT_FATAL(
        dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, NULL) == DPF_OK);
    for (int i = 0; i < 4; i++)
        CU_ASSERT(dpf_training_step(&t, &report, NULL) == DPF_OK);
    float *after = dpf_calloc(g.model.span, sizeof *after);
    dpf_engine_get(&g.engine, after);
    for (size_t i = 0; i < g.model.span; i++)
        CU_ASSERT(fabs((double)after[i]) < 100);
    free(after);
    dpf_training_release(&t);
    end(&g);
}

/* ---- budgets and statements ---- */

static void test_target(void)
{
    struct dpf_training_budget budget = {2, 1e-5};
    struct dpf_header spent = {.is_private = true};
    struct dpf_training_plan plan = plan_of(0, DPF_SAMPLE_POISSON);
    CU_ASSERT(dpf_training_plan_noise(&plan, 5000, &budget, &spent, NULL) == DPF_OK);
    struct dpf_spending s = {.kind = &dpf_spending_gaussian,
                             .parameter = plan.noise.multiplier,
                             .rate = 0.01,
                             .count = 400};
    double epsilon;
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_PLD, &s, 1, 1e-5, &epsilon, NULL, NULL) ==
              DPF_OK);
    CU_ASSERT(epsilon <= 2 && epsilon > 1.999);
    /* shuffled: four Gaussians of half the multiplier */
    plan = plan_of(0, DPF_SAMPLE_SHUFFLE);
    CU_ASSERT(dpf_training_plan_noise(&plan, 5000, &budget, &spent, NULL) == DPF_OK);
    s = (struct dpf_spending){.kind = &dpf_spending_gaussian,
                              .parameter = plan.noise.multiplier / 2,
                              .rate = 1,
                              .count = 4};
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_GDP, &s, 1, 1e-5, &epsilon, NULL, NULL) ==
              DPF_OK);
    CU_ASSERT(epsilon <= 2 && epsilon > 1.999);
}

/* With noise given, the last step is the last that fits. */
static void test_last_step(void)
{
    struct dpf_training_budget budget = {1, 1e-5};
    struct dpf_header spent = {.is_private = true};
    struct dpf_training_plan plan = plan_of(0.8, DPF_SAMPLE_POISSON);
    double fits, exceeds;
    CU_ASSERT(dpf_training_plan_noise(&plan, 5000, &budget, &spent, NULL) == DPF_OK);
    int64_t last = plan.noise.max_steps;
    struct dpf_spending s = {.kind = &dpf_spending_gaussian,
                             .parameter = 0.8,
                             .rate = 0.01,
                             .count = (uint64_t)last};
    CU_ASSERT(last > 0 && last < 400);
    dpf_compose_epsilon(DPF_METHOD_BEST, &s, 1, 1e-5, &fits, NULL, NULL);
    s.count++;
    dpf_compose_epsilon(DPF_METHOD_BEST, &s, 1, 1e-5, &exceeds, NULL, NULL);
    CU_ASSERT(fits <= 1 && exceeds > 1);
    budget.epsilon = 0.01;
    plan = plan_of(0.8, DPF_SAMPLE_POISSON);
    CU_ASSERT(dpf_training_plan_noise(&plan, 5000, &budget, &spent, NULL) == DPF_PRIVACY);
    budget.epsilon = 1000;
    plan = plan_of(0.8, DPF_SAMPLE_POISSON);
    CU_ASSERT(dpf_training_plan_noise(&plan, 5000, &budget, &spent, NULL) == DPF_OK &&
              plan.noise.max_steps == 0);
}

/* What was spent before counts. */
static void test_spent(void)
{
    struct dpf_training_budget budget = {2, 1e-5};
    struct dpf_header spent = {.is_private = true};
    struct dpf_training_plan plan = plan_of(0, DPF_SAMPLE_POISSON), fresh = plan;
    struct dpf_mechanism_event event = {
        .spending = {.kind = &dpf_spending_pure, .parameter = 1, .rate = 1, .count = 1},
        .sampling = "none",
        .claimed = {1, 0, "test"},
        .proven = {1, 0, "test"}};
    dpf_ledger_add_mechanism(&spent.events, "test", &event);
    CU_ASSERT(dpf_training_plan_noise(&plan, 5000, &budget, &spent, NULL) == DPF_OK);
    struct dpf_header none = {.is_private = true};
    CU_ASSERT(dpf_training_plan_noise(&fresh, 5000, &budget, &none, NULL) == DPF_OK);
    CU_ASSERT(plan.noise.multiplier > 1.3 * fresh.noise.multiplier);
    dpf_ledger_add_mechanism(&spent.events, "test", &event);
    plan = plan_of(0, DPF_SAMPLE_POISSON);
    CU_ASSERT(dpf_training_plan_noise(&plan, 5000, &budget, &spent, NULL) == DPF_PRIVACY);
    dpf_header_release(&spent);
}

/* The ledger of a training says what its steps cost, for schedules too, and the account
 * of the ledger is what the training told. */
static void check_statement(enum dpf_sampling sampling, bool scheduled, int64_t steps)
{
    struct rig g;
    struct dpf_training t;
    struct dpf_training_plan plan = plan_of(2, sampling);
    struct dpf_header h = {.is_private = true}, none = {.is_private = true};
    struct dpf_account account;
    struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    const struct dpf_epoch_report *report;
    if (scheduled) {
        plan.noise.final_multiplier = 1;
        plan.noise.final_clip_l2 = 0.1;
    }
    begin(&g, dpf_architecture("tiny"), 500, false);
    CU_ASSERT_FATAL(
        dpf_training_init(&t, &plan, &g.engine, &g.optimiser, &g.data, NULL) == DPF_OK);
    for (int64_t i = 0; i < steps; i++)
        CU_ASSERT(dpf_training_step(&t, &report, NULL) == DPF_OK);
    CU_ASSERT(dpf_training_describe(&t, 1e-5, "train", &h, NULL) == DPF_OK);
    CU_ASSERT(!h.is_private && h.is_protected);
    CU_ASSERT(h.events.count == (scheduled ? (uint32_t)((steps + 9) / 10) : 1));
    CU_ASSERT_FATAL(dpf_account_ledger(&account, &h, &request, NULL) == DPF_OK);
    CU_ASSERT(fabs(account.proven.epsilon - dpf_training_cost(&t, 1e-5, &none)) < 1e-9);
    CU_ASSERT(account.proven.delta == 1e-5);
    CU_ASSERT(account.relation ==
              (sampling == DPF_SAMPLE_POISSON ? DPF_ADD_REMOVE : DPF_REPLACE_ONE));
    if (sampling == DPF_SAMPLE_POISSON) /* the moments accountant is never tighter */
        CU_ASSERT(account.claimed.epsilon >= account.proven.epsilon);
    dpf_account_release(&account);
    dpf_header_release(&h);
    dpf_training_release(&t);
    end(&g);
}

static void test_statements(void)
{
    check_statement(DPF_SAMPLE_POISSON, false, 40);
    check_statement(DPF_SAMPLE_POISSON, false, 7);
    check_statement(DPF_SAMPLE_POISSON, true, 40);
    check_statement(DPF_SAMPLE_POISSON, true, 23);
    check_statement(DPF_SAMPLE_SHUFFLE, false, 40);
    check_statement(DPF_SAMPLE_SHUFFLE, true, 15);
}

/* Shuffled lots cost what disjoint lots cost, not what sampled ones would. */
static void test_shuffled_is_not_sampled(void)
{
    struct dpf_spending sampled = {
        .kind = &dpf_spending_gaussian, .parameter = 2, .rate = 0.1, .count = 40};
    struct dpf_spending shuffled = {
        .kind = &dpf_spending_gaussian, .parameter = 1, .rate = 1, .count = 4};
    double a, b;
    dpf_compose_epsilon(DPF_METHOD_BEST, &sampled, 1, 1e-5, &a, NULL, NULL);
    dpf_compose_epsilon(DPF_METHOD_BEST, &shuffled, 1, 1e-5, &b, NULL, NULL);
    CU_ASSERT(b > 2 * a);
}

const char dpf_suite[] = "dpsgd";
const struct dpf_test dpf_tests[] = {
    {"one example moves a lot's sum by the clip norm and the margin", test_sensitivity},
    {"noise has the deviation that is stated", test_noise_deviation},
    {"Poisson lots come from the operating system, empty ones too", test_lots},
    {"a public population makes rate, steps and divisor", test_population},
    {"a hostile record neither stops a step nor spoils it", test_hostile_record},
    {"a target becomes the least noise", test_target},
    {"with given noise, training ends before the budget does", test_last_step},
    {"what was spent before counts", test_spent},
    {"ledger, account and progress state one epsilon", test_statements},
    {"shuffled lots are not accounted as sampled", test_shuffled_is_not_sampled},
    {NULL, NULL},
};
