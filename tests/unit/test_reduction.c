/* The reduction seam with two ranks in one process: two engines on two threads, each with
 * whole parts of a lot, end a step with the parameters of one engine with all records,
 * bit for bit, noise included. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/signals.h"
#include "nn/engine.h"
#include "nn/geometry.h"
#include "random/seeded.h"
#include "stream_fixture.h"

#include "base/banned.h"

/* More than two blocks of parameters, so that both ranks have some. */
static const char pictures[] = "input x 1x8x8\n"
                               "c = conv x out=6 kernel=3 pad=1 stride=2\n"
                               "r = relu c\n"
                               "g = group-norm r groups=3\n"
                               "f = flatten g\n"
                               "d = dropout f rate=0.3\n"
                               "h = dense d out=30\n"
                               "t = tanh h\n"
                               "y = dense t out=5\n"
                               "output y\n";
enum { ROWS = 300, PIXELS = 64, CLASSES = 5, RANKS = 2, STEPS = 3, SEED = 11 };

/* ---- records ---- */

struct rig {
    struct dpf_model model;
    struct dpf_header header;
    struct dpf_dataset data;
    float *parameters;
    uint32_t rows[ROWS];
    uint64_t keys[ROWS];
};

static void fill(struct rig *g, struct dpf_batch *b)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "test reduction", 1, 0);
    for (uint64_t i = 0; i < ROWS * PIXELS; i++)
        ((float *)b->tensor[0].data)[i] = (float)dpf_seeded_normal(&r);
    for (uint32_t i = 0; i < ROWS; i++) {
        ((uint8_t *)b->tensor[1].data)[i] = (uint8_t)dpf_seeded_below(&r, CLASSES);
        g->rows[i] = i * 7 % ROWS;
        g->keys[i] = dpf_seeded_u64(&r);
    }
    for (size_t i = 0; i < g->model.span; i++)
        g->parameters[i] = (float)(0.2 * dpf_seeded_normal(&r));
}

static void begin(struct rig *g)
{
    struct dpf_shape square = {.rank = 2, .dim = {8, 8}}, one = {.rank = 0};
    struct dpf_batch b;
    *g = (struct rig){0};
    CU_ASSERT_FATAL(dpf_model_parse(&g->model, pictures, strlen(pictures), "net", NULL) ==
                    DPF_OK);
    CU_ASSERT_FATAL(g->model.span > 2 * DPF_REDUCTION_BLOCK);
    CU_ASSERT_FATAL(dpf_header_add_field(&g->header, "x", DPF_F32, &square) != NULL);
    struct dpf_field *y = dpf_header_add_field(&g->header, "y", DPF_U8, &one);
    CU_ASSERT_FATAL(y != NULL);
    y->classes = CLASSES;
    g->parameters = dpf_calloc(g->model.span, sizeof *g->parameters);
    CU_ASSERT_FATAL(g->parameters != NULL);
    CU_ASSERT_FATAL(dpf_batch_init(&b, &g->header, ROWS, NULL) == DPF_OK);
    fill(g, &b);
    struct dpf_dataset_need need = {
        .model = &g->model, .x = "x", .y = "y", .loss = dpf_loss_find("cross-entropy")};
    CU_ASSERT_FATAL(dpf_dataset_init(&g->data, &g->header, &need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_add(&g->data, &g->header, &b, &need, NULL) == DPF_OK);
    dpf_batch_release(&b);
}

static void end(struct rig *g)
{
    dpf_dataset_release(&g->data);
    dpf_header_release(&g->header);
    dpf_model_release(&g->model);
    free(g->parameters);
}

/* ---- ranks of one process ---- */

struct group {
    pthread_barrier_t all_here;
    void *memory[RANKS]; /* what each of them brought */
};

struct rank {
    const struct rig *rig;
    struct group *group; /* NULL: alone */
    int number, threads;
    enum dpf_clip_rule rule;
    bool noisy;
    uint32_t rows[ROWS]; /* its records of each lot */
    uint64_t keys[ROWS];
    int64_t count;
    float *after[STEPS]; /* the parameters after each step */
    bool good, others_cleared;
};

/* Blocks from the first on are rank 0's; the last one is not whole. */
static struct dpf_slice slice_of(int rank, size_t count)
{
    size_t blocks = (count + DPF_REDUCTION_BLOCK - 1) / DPF_REDUCTION_BLOCK;
    size_t middle = blocks / RANKS * DPF_REDUCTION_BLOCK;
    return rank ? (struct dpf_slice){middle, count} : (struct dpf_slice){0, middle};
}

static void *meet(struct rank *r, void *memory)
{
    r->group->memory[r->number] = memory;
    pthread_barrier_wait(&r->group->all_here);
    return r->group->memory[1 - r->number];
}

/* The other one reads its own slice meanwhile, which nobody writes here. */
#define REDUCE(type)                                                                     \
    struct rank *r = state;                                                              \
    const type *others = meet(r, sums);                                                  \
    (void)k, (void)c, (void)e;                                                           \
    *own = slice_of(r->number, count);                                                   \
    for (size_t i = own->from; i < own->to; i++)                                         \
        sums[i] += others[i];                                                            \
    pthread_barrier_wait(&r->group->all_here);                                           \
    for (size_t i = 0; i < count; i++)                                                   \
        if (i < own->from || i >= own->to)                                               \
            sums[i] = 0;                                                                 \
    return DPF_OK

static enum dpf_status reduce_integers(void *state, const struct dpf_kernels *k,
                                       struct dpf_context *c, int64_t *sums, size_t count,
                                       struct dpf_slice *own, struct dpf_error *e)
{
    REDUCE(int64_t);
}

static enum dpf_status reduce_floats(void *state, const struct dpf_kernels *k,
                                     struct dpf_context *c, float *sums, size_t count,
                                     struct dpf_slice *own, struct dpf_error *e)
{
    REDUCE(float);
}

static enum dpf_status share(void *state, const struct dpf_kernels *k,
                             struct dpf_context *c, float *parameters, size_t count,
                             struct dpf_slice own, struct dpf_error *e)
{
    struct rank *r = state;
    const float *others = meet(r, parameters);
    (void)k, (void)c, (void)e;
    for (size_t i = 0; i < count; i++)
        if (i < own.from || i >= own.to)
            parameters[i] = others[i];
    pthread_barrier_wait(&r->group->all_here);
    return DPF_OK;
}

/* ---- steps ---- */

static bool steps(struct rank *r, struct dpf_engine *g, struct dpf_optimiser *o)
{
    size_t span = g->model->span;
    struct dpf_lot_result result;
    struct dpf_gaussian noise;
    struct dpf_lot lot = {.data = &r->rig->data,
                          .rows = r->rows,
                          .count = r->count,
                          .loss = dpf_loss_find("cross-entropy"),
                          .rule = r->rule,
                          .clip_l2 = 1.5,
                          .expected = ROWS,
                          .keys = r->keys};
    struct dpf_gaussian_query query = {.sensitivity_l2 = 1.5,
                                       .values = span,
                                       .parts = 1,
                                       .least_step = dpf_lot_sum_step(lot.clip_l2)};
    bool good = dpf_gaussian_init(&noise, &query, 0.7, NULL) == DPF_OK;
    dpf_engine_put(g, r->rig->parameters);
    for (uint64_t step = 0; step < STEPS; step++) {
        struct dpf_lot_noise draw = {&noise, true, SEED, step};
        good = dpf_engine_gradients(g, &lot, &result, NULL) == DPF_OK && good;
        good = dpf_engine_update(g, o, ROWS, r->noisy ? &draw : NULL, NULL) == DPF_OK &&
               good;
        dpf_engine_get(g, r->after[step]);
        for (size_t i = 0; i < span; i++) {
            r->others_cleared = r->others_cleared && g->sums[i] == 0;
            for (int t = 0; t < g->threads; t++)
                r->others_cleared =
                    r->others_cleared && g->workers[t].net.gradients[i] == 0;
        }
    }
    return good;
}

/* A rank's whole life, on a thread of its own: no assertions, which are the first one's.
 * It meets the others at every step, so nothing may return before. */
static void *live(void *argument)
{
    struct rank *r = argument;
    struct dpf_engine engine;
    /* moments show whether a slice stays with its rank; but they would magnify rounding
     */
    const char *kind = r->rule == DPF_CLIP_NONE ? "sgd" : "adam";
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find(kind), 0.05);
    const struct dpf_reduction seam = {r, reduce_integers, reduce_floats, share};
    struct dpf_engine_setup setup = {.model = &r->rig->model,
                                     .kernels = dpf_kernels_cpu(),
                                     .reduction = r->group ? &seam : NULL,
                                     .threads = r->threads,
                                     .microbatch = 16,
                                     .training = true,
                                     .clipping = true};
    size_t span = r->rig->model.span;
    r->others_cleared = true;
    if (dpf_engine_init(&engine, &setup, NULL) != DPF_OK ||
        dpf_optimiser_init(&o, engine.kernels, engine.workers[0].context, span, NULL) !=
            DPF_OK)
        abort(); /* the other one would wait for ever */
    r->good = steps(r, &engine, &o);
    dpf_optimiser_release(&o);
    dpf_engine_release(&engine);
    return NULL;
}

static void start_rank(struct rank *r, const struct rig *g, enum dpf_clip_rule rule,
                       bool noisy)
{
    *r = (struct rank){.rig = g, .rule = rule, .noisy = noisy};
    for (int s = 0; s < STEPS; s++) {
        r->after[s] = dpf_calloc(g->model.span, sizeof *r->after[s]);
        CU_ASSERT_FATAL(r->after[s] != NULL);
    }
}

static void end_rank(struct rank *r)
{
    for (int s = 0; s < STEPS; s++)
        free(r->after[s]);
}

static void give(struct rank *r, const struct rig *g, size_t place)
{
    r->rows[r->count] = g->rows[place];
    r->keys[r->count++] = g->keys[place];
}

/* Whole parts to the ranks: every `turn`th to the second one; 0: none. */
static void deal(const struct rig *g, struct rank ranks[RANKS], size_t turn)
{
    struct dpf_lot_parts all = {0}, own = {0};
    uint64_t planned = dpf_lot_parts_planned(ROWS);
    size_t parts = 0;
    CU_ASSERT_FATAL(dpf_lot_parts_cut(&all, g->keys, ROWS, planned, NULL) == DPF_OK);
    CU_ASSERT(all.count > 2);
    for (size_t p = 0; p < all.count; p++)
        for (int64_t i = 0; i < all.list[p].count; i++)
            give(&ranks[turn && p % turn == 0], g,
                 all.sorted[all.list[p].from + i].place);
    for (int r = 0; r < RANKS; r++) { /* which are cut the same way there */
        CU_ASSERT_FATAL(dpf_lot_parts_cut(&own, ranks[r].keys, ranks[r].count, planned,
                                          NULL) == DPF_OK);
        parts += own.count;
    }
    CU_ASSERT(parts == all.count);
    CU_ASSERT(ranks[0].count + ranks[1].count == ROWS);
    dpf_lot_parts_release(&all);
    dpf_lot_parts_release(&own);
}

/* The largest difference of parameters after all steps. */
static double apart(const struct rank *a, const struct rank *b)
{
    double worst = 0;
    for (size_t i = 0; i < a->rig->model.span; i++)
        worst = fmax(
            worst, fabs((double)a->after[STEPS - 1][i] - (double)b->after[STEPS - 1][i]));
    return worst;
}

static void check(enum dpf_clip_rule rule, bool noisy, size_t turn, int threads)
{
    struct rig g;
    struct group group;
    struct rank one, ranks[RANKS];
    pthread_t ids[RANKS];
    begin(&g);
    start_rank(&one, &g, rule, noisy);
    one.threads = 2;
    for (size_t i = 0; i < ROWS; i++)
        give(&one, &g, i);
    for (int r = 0; r < RANKS; r++)
        start_rank(&ranks[r], &g, rule, noisy);
    deal(&g, ranks, turn);
    CU_ASSERT_FATAL(pthread_barrier_init(&group.all_here, NULL, RANKS) == 0);
    for (int r = 0; r < RANKS; r++) {
        ranks[r].group = &group;
        ranks[r].number = r;
        ranks[r].threads = r ? threads : 1;
        CU_ASSERT_FATAL(dpf_thread_start(&ids[r], live, &ranks[r]) == 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(ids[r], NULL);
    live(&one);
    size_t bytes = g.model.span * sizeof(float);
    CU_ASSERT(one.good && one.others_cleared);
    CU_ASSERT(memcmp(one.after[0], g.parameters, bytes) != 0);
    for (int r = 0; r < RANKS; r++) {
        CU_ASSERT(ranks[r].good && ranks[r].others_cleared);
        for (int s = 0; s < STEPS; s++) {
            CU_ASSERT(memcmp(ranks[r].after[s], ranks[0].after[s], bytes) == 0);
            CU_ASSERT(rule == DPF_CLIP_NONE ||
                      memcmp(ranks[r].after[s], one.after[s], bytes) == 0);
        }
        CU_ASSERT(apart(&ranks[r], &one) < 1e-6); /* plain sums are rounded */
    }
    for (int r = 0; r < RANKS; r++)
        end_rank(&ranks[r]);
    pthread_barrier_destroy(&group.all_here);
    end_rank(&one);
    end(&g);
}

static void test_clipped(void)
{
    for (int rule = DPF_CLIP_FLAT; rule <= DPF_CLIP_AUTOMATIC; rule++) {
        check((enum dpf_clip_rule)rule, true, 2, 2);
        check((enum dpf_clip_rule)rule, false, 3, 1);
    }
    check(DPF_CLIP_FLAT, true, 2, 5); /* more threads than blocks */
}

/* A rank whose lot is empty still takes part, on the grid of the others. */
static void test_empty_rank(void)
{
    check(DPF_CLIP_FLAT, true, 0, 2);
    check(DPF_CLIP_FLAT, true, 1, 2);
    check(DPF_CLIP_LAYER, false, 0, 1);
}

static void test_plain(void)
{
    check(DPF_CLIP_NONE, false, 2, 2);
}

const char dpf_suite[] = "reduction";
const struct dpf_test dpf_tests[] = {
    {"two ranks with whole parts: the bits of one, noise included", test_clipped},
    {"a rank without records takes part", test_empty_rank},
    {"plain gradients of two ranks end in the same parameters", test_plain},
    {0},
};
