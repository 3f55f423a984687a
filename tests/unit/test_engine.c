/* The engine against one network over all examples: threads, microbatches and clipping
 * rules change nothing beyond rounding; and examples in memory, whatever their dtype. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/engine.h"
#include "nn/geometry.h"
#include "random/seeded.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- networks and examples to test with ---- */

/* Two dropouts: one in place of what it reads, one behind a value that must stay. */
static const char pictures[] = "input x 1x8x8\n"
                               "c = conv x out=6 kernel=3 pad=1 stride=2\n"
                               "r = relu c\n"
                               "g = group-norm r groups=3\n"
                               "p = max-pool g kernel=2\n"
                               "f = flatten p\n"
                               "d = dropout f rate=0.3\n"
                               "h = dense d out=20\n"
                               "t = tanh h\n"
                               "e = dropout t rate=0.2\n"
                               "y = dense e out=5\n"
                               "output y\n";
enum { ROWS = 77, PIXELS = 64, CLASSES = 5 };

struct rig {
    struct dpf_model model;
    struct dpf_header header;
    struct dpf_dataset_need need;
    struct dpf_dataset data;
    float *parameters;
    uint32_t rows[ROWS];
};

static void parse(struct dpf_model *m, const char *text)
{
    CU_ASSERT_FATAL(dpf_model_parse(m, text, strlen(text), "net", NULL) == DPF_OK);
}

static struct dpf_field *add_field(struct dpf_header *h, const char *name,
                                   enum dpf_dtype dtype, int rank, const uint64_t *dim)
{
    struct dpf_shape shape = {.rank = rank};
    for (int d = 0; d < rank; d++)
        shape.dim[d] = dim[d];
    struct dpf_field *f = dpf_header_add_field(h, name, dtype, &shape);
    CU_ASSERT_FATAL(f != NULL);
    return f;
}

static void set(struct dpf_tensor *t, uint64_t i, double value)
{
    switch (t->dtype) {
    case DPF_U8:
        ((uint8_t *)t->data)[i] = (uint8_t)value;
        break;
    case DPF_I32:
        ((int32_t *)t->data)[i] = (int32_t)value;
        break;
    case DPF_I64:
        ((int64_t *)t->data)[i] = (int64_t)value;
        break;
    case DPF_F32:
        ((float *)t->data)[i] = (float)value;
        break;
    case DPF_F64:
        ((double *)t->data)[i] = value;
        break;
    default: { /* bits of records with one dimension */
        uint64_t columns = t->shape.dim[t->shape.rank - 1];
        uint8_t *row = (uint8_t *)t->data + i / columns * ((columns + 7) / 8);
        uint8_t bit = (uint8_t)(1 << (i % columns % 8));
        row[i % columns / 8] = (uint8_t)(value > 0 ? row[i % columns / 8] | bit
                                                   : row[i % columns / 8] & ~bit);
    }
    }
}

static struct dpf_batch batch_of(const struct dpf_header *h, uint64_t rows)
{
    struct dpf_batch b;
    CU_ASSERT_FATAL(dpf_batch_init(&b, h, rows, NULL) == DPF_OK);
    for (int i = 0; i < b.count; i++)
        memset(b.tensor[i].data, 0, b.tensor[i].bytes);
    return b;
}

static void draw_parameters(const struct dpf_model *m, float *parameters)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "test engine weights", 5, 0);
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; k < m->nodes[i].parameter_count; k++)
            for (int64_t j = 0; j < dpf_nn_elements(&m->nodes[i].parameters[k]); j++)
                parameters[m->nodes[i].offset[k] + (size_t)j] =
                    (float)(0.4 * dpf_seeded_normal(&r));
}

static uint64_t keys[ROWS]; /* of the examples of a lot */

static void begin(struct rig *g)
{
    struct dpf_seeded r;
    *g = (struct rig){0};
    for (int i = 0; i < ROWS; i++)
        keys[i] = 0x9e3779b97f4a7c15u * (uint64_t)(i + 1);
    parse(&g->model, pictures);
    add_field(&g->header, "x", DPF_F32, 2, (uint64_t[]){8, 8});
    add_field(&g->header, "y", DPF_U8, 0, NULL)->classes = CLASSES;
    g->need = (struct dpf_dataset_need){
        .model = &g->model, .x = "x", .y = "y", .loss = dpf_loss_find("cross-entropy")};
    struct dpf_batch b = batch_of(&g->header, ROWS);
    dpf_seeded_init(&r, "test engine", 1, 0);
    for (uint64_t i = 0; i < ROWS * PIXELS; i++)
        set(&b.tensor[0], i, dpf_seeded_normal(&r));
    for (uint32_t i = 0; i < ROWS; i++) {
        /* most are of one class, so that the sums are larger than their rounding */
        uint64_t label = dpf_seeded_below(&r, CLASSES);
        set(&b.tensor[1], i, (double)(dpf_seeded_below(&r, 4) ? 0 : label));
        g->rows[i] = i * 10 % ROWS; /* another order than theirs */
    }
    CU_ASSERT_FATAL(dpf_dataset_init(&g->data, &g->header, &g->need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_add(&g->data, &g->header, &b, &g->need, NULL) == DPF_OK);
    dpf_batch_release(&b);
    g->parameters = dpf_calloc(g->model.span, sizeof *g->parameters);
    CU_ASSERT_FATAL(g->parameters != NULL);
    draw_parameters(&g->model, g->parameters);
}

static void end(struct rig *g)
{
    dpf_dataset_release(&g->data);
    dpf_header_release(&g->header);
    dpf_model_release(&g->model);
    free(g->parameters);
}

static struct dpf_lot lot_of(const struct rig *g, enum dpf_clip_rule rule)
{
    return (struct dpf_lot){.data = &g->data,
                            .rows = g->rows,
                            .count = ROWS,
                            .loss = dpf_loss_find("cross-entropy"),
                            .rule = rule,
                            .clip_l2 = rule == DPF_CLIP_LAYER ? 0.7 : 2.5,
                            .expected = ROWS,
                            .keys = keys};
}

static void start(struct dpf_engine *e, const struct dpf_model *m,
                  const float *parameters, const struct dpf_kernels *k, int threads,
                  int64_t microbatch)
{
    CU_ASSERT_FATAL(dpf_engine_init(e,
                                    &(struct dpf_engine_setup){.model = m,
                                                               .kernels = k,
                                                               .threads = threads,
                                                               .microbatch = microbatch,
                                                               .training = true,
                                                               .clipping = true,
                                                               .every_value = false},
                                    NULL) == DPF_OK);
    dpf_engine_put(e, parameters);
}

/* What all workers have added up, as floats or as integers; heap. */
static double *sums_of(struct dpf_engine *e)
{
    double *sum = dpf_calloc(e->model->span, sizeof *sum);
    int64_t *integers = dpf_calloc(e->model->span, sizeof *integers);
    CU_ASSERT_FATAL(sum && integers);
    double step = dpf_engine_sums(e, integers);
    for (size_t i = 0; i < e->model->span; i++) {
        sum[i] = (double)integers[i] * step;
        for (int t = 0; t < e->threads; t++)
            sum[i] += (double)e->workers[t].net.gradients[i];
    }
    free(integers);
    return sum;
}

/* The largest difference, over the largest wanted. */
static double distance(size_t count, const double *got, const double *want)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        worst = isfinite(got[i]) ? fmax(worst, fabs(got[i] - want[i])) : INFINITY;
        largest = fmax(largest, fabs(want[i]));
    }
    CU_ASSERT(largest > 0);
    return worst / largest;
}

/* One network over the whole lot at once; heap. */
static double *by_one_network(const struct rig *g, const struct dpf_kernels *k,
                              const struct dpf_lot *lot, struct dpf_lot_result *result)
{
    static float x[ROWS * PIXELS], d[ROWS * CLASSES];
    struct dpf_network net;
    struct dpf_context *context;
    CU_ASSERT_FATAL(k->open(0, &context, NULL) == DPF_OK);
    CU_ASSERT_FATAL(
        dpf_network_init(&net,
                         &(struct dpf_network_setup){.model = &g->model,
                                                     .kernels = k,
                                                     .context = context,
                                                     .parameters = g->parameters,
                                                     .capacity = ROWS,
                                                     .training = true,
                                                     .clipping = true},
                         NULL) == DPF_OK);
    *result = (struct dpf_lot_result){0};
    dpf_dataset_gather(lot->data, lot->rows, lot->count, x);
    dpf_network_forward(&net, lot->count, x, true, lot->keys);
    for (int64_t e = 0; e < lot->count; e++) {
        struct dpf_loss_target t = dpf_dataset_target(lot->data, lot->rows[e]);
        const float *z = dpf_network_output(&net) + e * CLASSES;
        int best = 0;
        for (int l = 1; l < CLASSES; l++)
            best = z[l] > z[best] ? l : best;
        result->correct += best == t.labels[0];
        result->loss += (lot->loss)->example(CLASSES, 1, z, &t, d + e * CLASSES);
    }
    result->clipped = dpf_network_backward(&net, lot->count, d, lot->rule, lot->clip_l2);
    double *sum = dpf_calloc(g->model.span, sizeof *sum);
    CU_ASSERT_FATAL(sum != NULL);
    for (size_t i = 0; i < g->model.span; i++)
        sum[i] = (double)net.gradients[i];
    dpf_network_release(&net);
    k->close(context);
    return sum;
}

/* ---- gradients ---- */

static void check_gradients(const struct dpf_kernels *k, enum dpf_clip_rule rule)
{
    static const int64_t microbatches[] = {1, 5, 64};
    struct rig g;
    struct dpf_lot_result due, got;
    begin(&g);
    struct dpf_lot lot = lot_of(&g, rule);
    double *want = by_one_network(&g, k, &lot, &due);
    CU_ASSERT(rule == DPF_CLIP_NONE ? due.clipped == 0 : due.clipped > 0);
    if (rule == DPF_CLIP_FLAT) /* both sides of the bound are tried */
        CU_ASSERT(due.clipped < ROWS);
    for (int threads = 1; threads <= 3; threads++)
        for (size_t m = 0; m < COUNT(microbatches); m++) {
            struct dpf_engine e;
            start(&e, &g.model, g.parameters, k, threads, microbatches[m]);
            CU_ASSERT(dpf_engine_gradients(&e, &lot, &got, NULL) == DPF_OK);
            double *sum = sums_of(&e), far = distance(g.model.span, sum, want);
            if (far > 1e-6)
                printf("    %s, rule %d, %d threads, microbatch %lld: off by %g\n",
                       k->name, (int)rule, threads, (long long)microbatches[m], far);
            CU_ASSERT(far <= 1e-6);
            CU_ASSERT(got.clipped == due.clipped && got.correct == due.correct);
            CU_ASSERT(fabs(got.loss - due.loss) <= 1e-6 * due.loss);
            free(sum);
            dpf_engine_release(&e);
        }
    free(want);
    end(&g);
}

static void test_gradients_ref(void)
{
    for (int rule = DPF_CLIP_NONE; rule <= DPF_CLIP_AUTOMATIC; rule++)
        check_gradients(&dpf_kernels_ref, (enum dpf_clip_rule)rule);
}

static void test_gradients_cpu(void)
{
    for (int rule = DPF_CLIP_NONE; rule <= DPF_CLIP_AUTOMATIC; rule++)
        check_gradients(dpf_kernels_cpu(), (enum dpf_clip_rule)rule);
}

/* The sums of one lot on a fresh engine; heap. */
static double *gradients_of(const struct rig *g, const struct dpf_lot *lot)
{
    struct dpf_engine e;
    struct dpf_lot_result result;
    start(&e, &g->model, g->parameters, dpf_kernels_cpu(), 2, 5);
    CU_ASSERT(dpf_engine_gradients(&e, lot, &result, NULL) == DPF_OK);
    double *sum = sums_of(&e);
    dpf_engine_release(&e);
    return sum;
}

/* Masks are another seed's, another step's, another position's: never the same. */
static void test_masks(void)
{
    struct rig g;
    begin(&g);
    struct dpf_lot lot = lot_of(&g, DPF_CLIP_NONE);
    lot.keys = NULL; /* the engine's own, of seed, step and place */
    double *base = gradients_of(&g, &lot);
    lot.step++;
    double *step = gradients_of(&g, &lot);
    lot.step--;
    lot.seed++;
    double *seed = gradients_of(&g, &lot);
    CU_ASSERT(distance(g.model.span, step, base) > 1e-3);
    CU_ASSERT(distance(g.model.span, seed, base) > 1e-3);
    CU_ASSERT(distance(g.model.span, seed, step) > 1e-3);
    uint32_t same[] = {7, 7};
    lot = lot_of(&g, DPF_CLIP_NONE);
    lot.rows = same;
    lot.count = 1;
    double *once = gradients_of(&g, &lot);
    lot.count = 2;
    double *twice = gradients_of(&g, &lot);
    for (size_t i = 0; i < g.model.span; i++)
        once[i] *= 2;
    CU_ASSERT(distance(g.model.span, twice, once) > 1e-3);
    free(base);
    free(step);
    free(seed);
    free(once);
    free(twice);
    end(&g);
}

/* Two lots one after the other add up, and any number of threads gives the same bits. */
static void check_same_bits(const struct dpf_kernels *k, int threads, int64_t microbatch)
{
    struct rig g;
    struct dpf_engine e[2];
    struct dpf_lot_result result[2];
    begin(&g);
    struct dpf_lot lot = lot_of(&g, DPF_CLIP_FLAT);
    for (int i = 0; i < 2; i++) {
        start(&e[i], &g.model, g.parameters, k, i ? 1 : threads, microbatch);
        for (int turn = 0; turn < 2; turn++)
            CU_ASSERT(dpf_engine_gradients(&e[i], &lot, &result[i], NULL) == DPF_OK);
    }
    CU_ASSERT(memcmp(&result[0], &result[1], sizeof result[0]) == 0);
    double *twice = sums_of(&e[0]), *alone = sums_of(&e[1]);
    CU_ASSERT(memcmp(twice, alone, g.model.span * sizeof *twice) == 0);
    free(alone);
    double *once = by_one_network(&g, k, &lot, &result[1]);
    for (size_t i = 0; i < g.model.span; i++)
        once[i] *= 2;
    CU_ASSERT(distance(g.model.span, twice, once) <= 2e-6);
    CU_ASSERT(result[0].clipped == result[1].clipped); /* of the last lot only */
    free(twice);
    free(once);
    dpf_engine_release(&e[0]);
    dpf_engine_release(&e[1]);
    end(&g);
}

static void test_same_bits(void)
{
    check_same_bits(&dpf_kernels_ref, 2, 5);
    check_same_bits(dpf_kernels_cpu(), 1, 64);
    check_same_bits(dpf_kernels_cpu(), 3, 5);
    check_same_bits(dpf_kernels_cpu(), 8, 7);
}

static void test_empty_lot(void)
{
    struct rig g;
    struct dpf_engine e;
    struct dpf_lot_result result = {9, 9, 9};
    float value = 5, *after;
    double loss = 5;
    begin(&g);
    start(&e, &g.model, g.parameters, dpf_kernels_cpu(), 3, 5);
    struct dpf_lot lot = lot_of(&g, DPF_CLIP_FLAT);
    lot.rows = NULL;
    lot.count = 0;
    CU_ASSERT(dpf_engine_gradients(&e, &lot, &result, NULL) == DPF_OK);
    CU_ASSERT(result.loss == 0 && result.correct == 0 && result.clipped == 0);
    result.loss = 9;
    struct dpf_lot_values want = {
        .node = g.model.output, .values = &value, .losses = &loss, .result = &result};
    CU_ASSERT(dpf_engine_values(&e, &lot, &want, NULL) == DPF_OK);
    CU_ASSERT(result.loss == 0 && value == 5 && loss == 5);
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 1);
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, g.model.span, NULL) ==
                    DPF_OK);
    CU_ASSERT(dpf_engine_update(&e, &o, 4, NULL, NULL) == DPF_OK);
    after = dpf_calloc(g.model.span, sizeof *after);
    CU_ASSERT_FATAL(after != NULL);
    dpf_engine_get(&e, after);
    CU_ASSERT(memcmp(after, g.parameters, g.model.span * sizeof *after) == 0);
    free(after);
    dpf_optimiser_release(&o);
    dpf_engine_release(&e);
    end(&g);
}

/* What no machine has is said, not tried. */
static void test_too_large(void)
{
    struct dpf_model m;
    struct dpf_engine e;
    struct dpf_error error = {0};
    parse(&m, pictures);
    struct dpf_engine_setup setup = {
        .model = &m, .kernels = dpf_kernels_cpu(), .threads = 2, .training = true};
    setup.microbatch = (int64_t)1 << 44;
    CU_ASSERT(refused(dpf_engine_init(&e, &setup, &error), DPF_USAGE, &error,
                      "too large for this machine's memory"));
    dpf_engine_release(&e); /* harmless */
    setup.microbatch = 0;
    CU_ASSERT(dpf_engine_init(&e, &setup, &error) == DPF_OK);
    CU_ASSERT(e.threads == 2 && e.microbatch >= 1 && e.microbatch <= 256);
    dpf_engine_release(&e);
    dpf_model_release(&m);
}

/* ---- updates ---- */

/* Noise of deviation 3 from seed 2, and what of it the engine has to add at a step. */
static struct dpf_gaussian three_for(const struct dpf_model *m)
{
    struct dpf_gaussian g;
    struct dpf_gaussian_query query = {.sensitivity_l2 = 1,
                                       .values = m->span,
                                       .parts = 1,
                                       .least_step = dpf_lot_sum_step(2.5)};
    CU_ASSERT_FATAL(dpf_gaussian_init(&g, &query, 3, NULL) == DPF_OK);
    return g;
}

static float *noise_for(const struct dpf_model *m, const struct dpf_gaussian *g,
                        uint64_t step)
{
    enum { BLOCK = 1024 };
    float *noise = dpf_calloc(m->span, sizeof *noise);
    uint64_t blocks = m->span / BLOCK + 1;
    CU_ASSERT_FATAL(noise != NULL);
    for (size_t from = 0; from < m->span; from += BLOCK) {
        struct dpf_random r;
        int64_t sums[BLOCK] = {0};
        size_t count = m->span - from < BLOCK ? m->span - from : BLOCK;
        dpf_random_init_insecure(&r, "noise", 2, step * blocks + from / BLOCK);
        dpf_gaussian_add(g, &r, 1, sums, count);
        for (size_t i = 0; i < count; i++)
            noise[from + i] = (float)((double)sums[i] * g->step);
    }
    return noise;
}

/* Two steps of the engine against the optimiser on the mean, worked out by hand. */
static void check_update_on(const struct dpf_kernels *k, const struct dpf_step_kind *kind,
                            int threads, bool noisy)
{
    struct rig g;
    struct dpf_engine e;
    struct dpf_lot_result result;
    struct dpf_optimiser o = dpf_optimiser_defaults(kind, 0.05), own;
    const double divisor = 40;
    o.l2 = 0.01;
    own = o;
    begin(&g);
    size_t span = g.model.span;
    struct dpf_lot lot = lot_of(&g, DPF_CLIP_FLAT);
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, span, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_optimiser_init(&own, &dpf_kernels_ref, NULL, span, NULL) ==
                    DPF_OK);
    struct dpf_gaussian three = three_for(&g.model);
    float *after = dpf_calloc(span, sizeof *after);
    float *mean = dpf_calloc(span, sizeof *mean);
    CU_ASSERT_FATAL(after && mean);
    start(&e, &g.model, g.parameters, k, threads, 5);
    for (int step = 0; step < 2; step++) {
        double worst = 0;
        int left = 0;
        lot.step = (uint64_t)step;
        struct dpf_lot_noise draw = {
            .mechanism = &three, .insecure = true, .seed = 2, .step = lot.step};
        float *noise = noise_for(&g.model, &three, lot.step);
        CU_ASSERT(dpf_engine_gradients(&e, &lot, &result, NULL) == DPF_OK);
        double *sum = sums_of(&e);
        for (size_t i = 0; i < span; i++)
            mean[i] = (float)((sum[i] + (noisy ? (double)noise[i] : 0)) / divisor);
        dpf_optimiser_begin(&own, 1);
        dpf_optimiser_update(&own, NULL, 0, span, g.parameters, mean);
        CU_ASSERT(dpf_engine_update(&e, &o, divisor, noisy ? &draw : NULL, NULL) ==
                  DPF_OK);
        CU_ASSERT(o.step == (uint64_t)step + 1);
        dpf_engine_get(&e, after);
        for (size_t i = 0; i < span; i++)
            worst = fmax(worst, fabs((double)(after[i] - g.parameters[i])));
        CU_ASSERT(worst <= 1e-6);
        for (int t = 0; t < threads; t++)
            for (size_t i = 0; i < span; i++)
                left += e.workers[t].net.gradients[i] != 0 || e.sums[i] != 0;
        CU_ASSERT(left == 0);
        memcpy(g.parameters, after, span * sizeof *after);
        free(sum);
        free(noise);
    }
    free(after);
    free(mean);
    dpf_optimiser_release(&o);
    dpf_optimiser_release(&own);
    dpf_engine_release(&e);
    end(&g);
}

static void check_update(const struct dpf_step_kind *kind, int threads, bool noisy)
{
    check_update_on(dpf_kernels_cpu(), kind, threads, noisy);
}

/* A device's memory is not the host's: the same steps by way of the host. */
static void test_device_updates(void)
{
    struct dpf_kernels device = dpf_kernels_ref;
    device.host_memory = false;
    for (int threads = 1; threads <= 2; threads++) {
        check_update_on(&device, dpf_step_kind_find("adam"), threads, true);
        check_update_on(&device, dpf_step_kind_find("momentum"), threads, false);
    }
}

static void test_updates(void)
{
    for (int threads = 1; threads <= 3; threads++) {
        check_update(dpf_step_kind_find("sgd"), threads, false);
        check_update(dpf_step_kind_find("sgd"), threads, true);
    }
    check_update(dpf_step_kind_find("momentum"), 2, true);
    check_update(dpf_step_kind_find("adadelta"), 3, true);
}

/* Noise alone: the sums were cleared, so a step moves by rate times noise over divisor,
 * on every parameter whatever worker's share it is in. */
static void test_noise(void)
{
    struct rig g;
    struct dpf_engine e;
    struct dpf_lot_result result;
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.5);
    begin(&g);
    size_t span = g.model.span;
    struct dpf_lot lot = lot_of(&g, DPF_CLIP_NONE);
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, span, NULL) == DPF_OK);
    struct dpf_gaussian three = three_for(&g.model);
    struct dpf_lot_noise draw = {
        .mechanism = &three, .insecure = true, .seed = 2, .step = 7};
    float *noise = noise_for(&g.model, &three, 7);
    float *before = dpf_calloc(span, sizeof *before);
    float *after = dpf_calloc(span, sizeof *after);
    double worst = 0;
    CU_ASSERT_FATAL(before && after);
    start(&e, &g.model, g.parameters, &dpf_kernels_ref, 3, 64);
    CU_ASSERT(dpf_engine_gradients(&e, &lot, &result, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_update(&e, &o, ROWS, NULL, NULL) == DPF_OK);
    dpf_engine_get(&e, before);
    CU_ASSERT(memcmp(before, g.parameters, span * sizeof *before) != 0);
    CU_ASSERT(dpf_engine_update(&e, &o, 8, &draw, NULL) == DPF_OK);
    dpf_engine_get(&e, after);
    for (size_t i = 0; i < span; i++)
        worst = fmax(worst, fabs((double)after[i] -
                                 ((double)before[i] - 0.5 * (double)noise[i] / 8)));
    CU_ASSERT(worst <= 1e-6);
    free(noise);
    free(before);
    free(after);
    dpf_optimiser_release(&o);
    dpf_engine_release(&e);
    end(&g);
}

/* ---- values and losses ---- */

/* Every node's values, by several threads and microbatches, as one network reads them;
 * dropout does not act. */
static void check_values(const struct dpf_kernels *k, int threads, int64_t microbatch)
{
    struct rig g;
    struct dpf_engine e;
    struct dpf_network net;
    static float x[ROWS * PIXELS], got[ROWS * 6 * PIXELS], want[ROWS * 6 * PIXELS];
    begin(&g);
    struct dpf_lot lot = lot_of(&g, DPF_CLIP_NONE);
    struct dpf_engine_setup setup = {.model = &g.model,
                                     .kernels = k,
                                     .threads = threads,
                                     .microbatch = microbatch,
                                     .every_value = true};
    CU_ASSERT_FATAL(dpf_engine_init(&e, &setup, NULL) == DPF_OK);
    struct dpf_context *context;
    CU_ASSERT_FATAL(k->open(0, &context, NULL) == DPF_OK);
    dpf_engine_put(&e, g.parameters);
    CU_ASSERT_FATAL(
        dpf_network_init(&net,
                         &(struct dpf_network_setup){.model = &g.model,
                                                     .kernels = k,
                                                     .context = context,
                                                     .parameters = g.parameters,
                                                     .capacity = ROWS,
                                                     .every_value = true},
                         NULL) == DPF_OK);
    dpf_dataset_gather(&g.data, g.rows, ROWS, x);
    dpf_network_forward(&net, ROWS, x, false, NULL);
    for (size_t node = 0; node < g.model.count; node++) {
        size_t count = ROWS * (size_t)dpf_nn_elements(&g.model.nodes[node].shape);
        double worst = 0, largest = 0;
        memset(got, 0xff, sizeof got);
        struct dpf_lot_values wanted = {.node = node, .values = got};
        CU_ASSERT(dpf_engine_values(&e, &lot, &wanted, NULL) == DPF_OK);
        dpf_network_read(&net, node, ROWS, want);
        for (size_t i = 0; i < count; i++) {
            double off = fabs((double)got[i] - (double)want[i]);
            worst = fmax(worst, isfinite(off) ? off : INFINITY);
            largest = fmax(largest, fabs((double)want[i]));
        }
        if (worst > 1e-6 * largest)
            printf("    %s: '%s' is off by %g\n", k->name, g.model.nodes[node].name,
                   worst / largest);
        CU_ASSERT(worst <= 1e-6 * largest && largest > 0);
        if (node == 0) /* what went in, in the lot's order */
            CU_ASSERT(memcmp(got, x, sizeof x) == 0);
    }
    dpf_network_release(&net);
    k->close(context);
    dpf_engine_release(&e);
    end(&g);
}

static void test_values(void)
{
    check_values(&dpf_kernels_ref, 2, 5);
    check_values(dpf_kernels_cpu(), 3, 5);
    check_values(dpf_kernels_cpu(), 2, 64);
}

/* Few numbers in, few out: y = w x + b with these. */
static const float weight[3][2] = {{1, -2}, {0.5, 0.25}, {-1, 3}},
                   bias[3] = {0.1f, -0.2f, 0.3f};
static const float points[4][2] = {{1, 1}, {2, -1}, {0, 0.5}, {-3, 0.25}};

static void score(int row, double z[3])
{
    for (int l = 0; l < 3; l++)
        z[l] = (double)weight[l][0] * (double)points[row][0] +
               (double)weight[l][1] * (double)points[row][1] + (double)bias[l];
}

static double own_loss(const struct dpf_loss *loss, int row, int label,
                       const float *values)
{
    double z[3], sum = 0, all = 0;
    score(row, z);
    for (int l = 0; l < 3; l++) {
        all += exp(z[l]);
        if (loss == dpf_loss_find("logistic"))
            sum += log(1 + exp(z[l])) - (l == label) * z[l];
        else if (loss == dpf_loss_find("squared"))
            sum += (z[l] - (double)values[l]) * (z[l] - (double)values[l]) / 2;
        else if (loss == dpf_loss_find("taylor2"))
            sum += log(2) + (double)values[2 * l] * z[l] +
                   (double)values[2 * l + 1] * z[l] * z[l];
    }
    return loss == dpf_loss_find("cross-entropy") ? log(all) - z[label] : sum;
}

static void check_losses(const struct dpf_loss *loss, uint64_t targets)
{
    static const int labels[4] = {1, 0, 2, 1};
    /* z: (-0.9, 0.55, 2.3), (4.1, 0.55, -4.7), (-0.9, -0.075, 1.8), (-3.4, -1.6, 4.05) */
    static const uint32_t rows[] = {3, 1, 0, 2, 1};
    struct dpf_model m;
    struct dpf_header h = {0};
    struct dpf_dataset d;
    struct dpf_engine e;
    float values[4][6];
    bool labelled =
        loss == dpf_loss_find("cross-entropy") || loss == dpf_loss_find("logistic");
    parse(&m, "input x 2\ny = dense x out=3\noutput y\n");
    add_field(&h, "x", DPF_F64, 1, (uint64_t[]){2});
    add_field(&h, "t", labelled ? DPF_I64 : DPF_F32, labelled ? 0 : 1, &targets);
    struct dpf_dataset_need need = {&m, "x", "t", loss};
    struct dpf_batch b = batch_of(&h, 4);
    for (int r = 0; r < 4; r++) {
        for (uint64_t i = 0; i < 2; i++)
            set(&b.tensor[0], (uint64_t)r * 2 + i, (double)points[r][i]);
        for (uint64_t i = 0; i < targets; i++) {
            values[r][i] = (float)(r - 0.5 * (double)i);
            set(&b.tensor[1], (uint64_t)r * targets + i,
                labelled ? labels[r] : (double)values[r][i]);
        }
    }
    CU_ASSERT_FATAL(dpf_dataset_init(&d, &h, &need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_add(&d, &h, &b, &need, NULL) == DPF_OK);
    float *parameters = dpf_calloc(m.span, sizeof *parameters);
    CU_ASSERT_FATAL(parameters != NULL);
    memcpy(parameters + m.nodes[1].offset[0], weight, sizeof weight);
    memcpy(parameters + m.nodes[1].offset[1], bias, sizeof bias);
    start(&e, &m, parameters, dpf_kernels_cpu(), 2, 2);
    struct dpf_lot lot = {.data = &d, .rows = rows, .count = 5, .loss = loss};
    struct dpf_lot_result result, learned;
    double losses[5], sum = 0;
    struct dpf_lot_values want = {.losses = losses, .result = &result};
    CU_ASSERT(dpf_engine_values(&e, &lot, &want, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_gradients(&e, &lot, &learned, NULL) == DPF_OK);
    for (int i = 0; i < 5; i++) {
        double own = own_loss(loss, (int)rows[i], labels[rows[i]], values[rows[i]]);
        CU_ASSERT_DOUBLE_EQUAL(losses[i], own, 1e-5);
        sum += own;
    }
    CU_ASSERT_DOUBLE_EQUAL(result.loss, sum, 1e-5);
    CU_ASSERT_DOUBLE_EQUAL(learned.loss, sum, 1e-5);
    /* rows 1 (twice) and 2 are right */
    CU_ASSERT(result.correct == (labelled ? 3 : 0) && result.clipped == 0);
    CU_ASSERT(learned.correct == result.correct);
    dpf_engine_release(&e);
    free(parameters);
    dpf_batch_release(&b);
    dpf_dataset_release(&d);
    dpf_header_release(&h);
    dpf_model_release(&m);
}

static void test_losses(void)
{
    check_losses(dpf_loss_find("cross-entropy"), 1);
    check_losses(dpf_loss_find("logistic"), 1);
    check_losses(dpf_loss_find("squared"), 3);
    check_losses(dpf_loss_find("taylor2"), 6);
}

/* A 1x1 convolution over pictures of 2x3 positions; its values, losses and sums. */
struct positions {
    struct dpf_model m;
    struct dpf_header h;
    struct dpf_dataset d;
    float z[2][2][6]; /* values: row, channel, position */
    double losses[2];
    struct dpf_lot_result result;
};

static void run_positions(struct positions *p, const struct dpf_loss *loss,
                          enum dpf_dtype dtype, int rank, const uint64_t *dim)
{
    static const uint32_t rows[] = {0, 1};
    struct dpf_engine e;
    *p = (struct positions){0};
    parse(&p->m, "input x 1x2x3\ny = conv x out=2 kernel=1\noutput y\n");
    add_field(&p->h, "x", DPF_F32, 2, (uint64_t[]){2, 3});
    add_field(&p->h, "mask", dtype, rank, dim);
    struct dpf_dataset_need need = {&p->m, "x", "mask", loss};
    struct dpf_batch b = batch_of(&p->h, 2);
    for (uint64_t i = 0; i < 12; i++)
        set(&b.tensor[0], i, (double)i - 5);
    for (uint64_t i = 0; i < b.tensor[1].bytes / dpf_dtype_size(dtype); i++)
        set(&b.tensor[1], i, dtype == DPF_U8 ? (double)(i % 3 == 0) : (double)i);
    CU_ASSERT_FATAL(dpf_dataset_init(&p->d, &p->h, &need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_add(&p->d, &p->h, &b, &need, NULL) == DPF_OK);
    float *parameters = dpf_calloc(p->m.span, sizeof *parameters);
    CU_ASSERT_FATAL(parameters != NULL);
    parameters[p->m.nodes[1].offset[0]] = 1;
    parameters[p->m.nodes[1].offset[0] + 1] = -0.5f;
    parameters[p->m.nodes[1].offset[1] + 1] = 1;
    start(&e, &p->m, parameters, dpf_kernels_cpu(), 2, 1);
    struct dpf_lot lot = {.data = &p->d, .rows = rows, .count = 2, .loss = loss};
    struct dpf_lot_values want = {
        .node = 1, .values = &p->z[0][0][0], .losses = p->losses, .result = &p->result};
    CU_ASSERT(dpf_engine_values(&e, &lot, &want, NULL) == DPF_OK);
    for (int i = 0; i < 12; i++) { /* z_0 = x, z_1 = 1 - x / 2 */
        CU_ASSERT_DOUBLE_EQUAL(p->z[i / 6][0][i % 6], i - 5, 1e-6);
        CU_ASSERT_DOUBLE_EQUAL(p->z[i / 6][1][i % 6], 1 - (i - 5) / 2.0, 1e-6);
    }
    dpf_engine_release(&e);
    free(parameters);
    dpf_batch_release(&b);
}

static void end_positions(struct positions *p)
{
    dpf_dataset_release(&p->d);
    dpf_header_release(&p->h);
    dpf_model_release(&p->m);
}

static void test_voxels(void)
{
    struct positions p;
    int64_t correct = 0;
    run_positions(&p, dpf_loss_find("voxel"), DPF_U8, 2, (uint64_t[]){2, 3});
    CU_ASSERT(p.d.positions == 6 && p.d.classes == 2);
    for (int r = 0; r < 2; r++) {
        double own = 0;
        for (int v = 0; v < 6; v++) {
            double a = (double)p.z[r][0][v], b = (double)p.z[r][1][v];
            int label = (r * 6 + v) % 3 == 0;
            own += (log(exp(a) + exp(b)) - (label ? b : a)) / 6;
            correct += (b > a) == label;
        }
        CU_ASSERT_DOUBLE_EQUAL(p.losses[r], own, 1e-6);
    }
    CU_ASSERT(p.result.correct == correct && correct > 0 && correct < 12);
    end_positions(&p);
}

/* Values in a stream stand channels first, like the network's own values. */
static void test_squared_pictures(void)
{
    struct positions p;
    run_positions(&p, dpf_loss_find("squared"), DPF_F32, 3, (uint64_t[]){2, 2, 3});
    for (int r = 0; r < 2; r++) {
        double own = 0;
        for (int i = 0; i < 12; i++) {
            double off = (double)p.z[r][i / 6][i % 6] - (r * 12 + i);
            own += off * off / 2;
        }
        CU_ASSERT_DOUBLE_EQUAL(p.losses[r], own, 1e-4);
    }
    end_positions(&p);
}

/* ---- examples ---- */

/* A data set of `rows` records [count] of one dtype, value i of all being i % 201 (or its
 * parity, for bits). */
static void fill_dataset(struct dpf_dataset *d, struct dpf_header *h,
                         const struct dpf_model *m, enum dpf_dtype dtype, uint64_t count,
                         uint64_t rows)
{
    struct dpf_dataset_need need = {m, "x", NULL, dpf_loss_find("cross-entropy")};
    add_field(h, "x", dtype, 1, &count);
    struct dpf_batch b = batch_of(h, rows);
    for (uint64_t i = 0; i < rows * count; i++)
        set(&b.tensor[0], i,
            dtype == DPF_BITS ? (double)(i % 201 % 2) : (double)(i % 201));
    CU_ASSERT_FATAL(dpf_dataset_init(d, h, &need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_add(d, h, &b, &need, NULL) == DPF_OK);
    dpf_batch_release(&b);
}

static void test_dtypes(void)
{
    static const uint32_t rows[] = {6, 0, 3, 3};
    static const enum dpf_dtype dtypes[] = {DPF_U8, DPF_I32, DPF_I64, DPF_F32, DPF_F64};
    for (size_t t = 0; t < COUNT(dtypes); t++) {
        struct dpf_model m;
        struct dpf_header h = {0};
        struct dpf_dataset d;
        float out[4 * 37];
        int wrong = 0;
        parse(&m, "input x 37\ny = dense x out=3\noutput y\n");
        fill_dataset(&d, &h, &m, dtypes[t], 37, 7);
        CU_ASSERT(d.rows == 7 && d.record == 37 && !d.labels && !d.values);
        dpf_dataset_gather(&d, rows, 4, out);
        for (uint32_t i = 0; i < 4 * 37; i++)
            wrong += out[i] != (float)((rows[i / 37] * 37 + i % 37) % 201);
        CU_ASSERT(wrong == 0);
        dpf_dataset_release(&d);
        dpf_header_release(&h);
        dpf_model_release(&m);
    }
}

/* Packed bits stay packed, and a network over them sees the same numbers. */
static void test_bits(void)
{
    static const uint32_t rows[] = {6, 0, 3, 3};
    enum { IN = 37, OUT = 3, PACKED = (IN + 7) / 8 };
    struct dpf_model m[2];
    struct dpf_header h[2] = {0};
    struct dpf_dataset d[2];
    struct dpf_engine e[2];
    float z[2][4 * OUT];
    unsigned char packed[4 * PACKED];
    int wrong = 0;
    parse(&m[0], "input x 37 bits\ny = dense x out=3\noutput y\n");
    parse(&m[1], "input x 37\ny = dense x out=3\noutput y\n");
    fill_dataset(&d[0], &h[0], &m[0], DPF_BITS, IN, 7);
    fill_dataset(&d[1], &h[1], &m[1], DPF_U8, IN, 7);
    for (uint64_t i = 0; i < 7 * IN; i++) /* the same bits, a byte each */
        d[1].x[i] %= 2;
    dpf_dataset_gather(&d[0], rows, 4, packed);
    for (uint32_t i = 0; i < 4 * IN; i++)
        wrong += (packed[i / IN * PACKED + i % IN / 8] >> (i % IN % 8) & 1) !=
                 (int)((rows[i / IN] * IN + i % IN) % 201 % 2);
    CU_ASSERT(wrong == 0 && d[0].record_bytes == PACKED);
    float *parameters = dpf_calloc(m[0].span, sizeof *parameters);
    float *turned = dpf_calloc(m[1].span, sizeof *turned);
    CU_ASSERT_FATAL(parameters && turned);
    draw_parameters(&m[0], parameters);
    for (int i = 0; i < IN * OUT; i++) /* over bits they stand [in, out] */
        turned[i % OUT * IN + i / OUT] = parameters[i];
    memcpy(turned + m[1].nodes[1].offset[1], parameters + m[0].nodes[1].offset[1],
           OUT * sizeof *turned);
    for (int k = 0; k < 2; k++) {
        struct dpf_lot lot = {.data = &d[k], .rows = rows, .count = 4};
        struct dpf_lot_values want = {.node = 1, .values = z[k]};
        start(&e[k], &m[k], k ? turned : parameters, dpf_kernels_cpu(), 2, 1);
        CU_ASSERT(dpf_engine_values(&e[k], &lot, &want, NULL) == DPF_OK);
    }
    free(parameters);
    free(turned);
    for (int i = 0; i < 4 * OUT; i++)
        CU_ASSERT_DOUBLE_EQUAL(z[0][i], z[1][i], 1e-5);
    for (int k = 0; k < 2; k++) {
        dpf_engine_release(&e[k]);
        dpf_dataset_release(&d[k]);
        dpf_header_release(&h[k]);
        dpf_model_release(&m[k]);
    }
}

static void test_label_range(void)
{
    static const struct {
        enum dpf_dtype dtype;
        double label;
        bool good;
    } cases[] = {{DPF_U8, 2, true},           {DPF_U8, 3, false},
                 {DPF_I32, 0, true},          {DPF_I32, -1, false},
                 {DPF_I64, 2, true},          {DPF_I64, -4294967296., false},
                 {DPF_I64, 4294967296, false} /* 0, if it were cut to 32 bits */};
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct dpf_model m;
        struct dpf_header h = {0};
        struct dpf_dataset d;
        struct dpf_error e = {0};
        parse(&m, "input x 2\ny = dense x out=3\noutput y\n");
        add_field(&h, "x", DPF_U8, 1, (uint64_t[]){2});
        add_field(&h, "label", cases[c].dtype, 0, NULL);
        struct dpf_dataset_need need = {&m, "x", "label", dpf_loss_find("cross-entropy")};
        struct dpf_batch b = batch_of(&h, 3);
        CU_ASSERT_FATAL(dpf_dataset_init(&d, &h, &need, NULL) == DPF_OK);
        CU_ASSERT(dpf_dataset_add(&d, &h, &b, &need, &e) == DPF_OK);
        set(&b.tensor[1], 2, cases[c].label);
        enum dpf_status status = dpf_dataset_add(&d, &h, &b, &need, &e);
        if (cases[c].good) {
            CU_ASSERT(status == DPF_OK && d.rows == 6);
            CU_ASSERT(dpf_dataset_target(&d, 5).labels[0] == (int32_t)cases[c].label);
        } else {
            CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "field 'label'"));
            CU_ASSERT(strstr(e.message, "3 classes") && d.rows == 3);
        }
        dpf_batch_release(&b);
        dpf_dataset_release(&d);
        dpf_header_release(&h);
        dpf_model_release(&m);
    }
}

/* One field x and one field y against a network: what dpf_dataset_init says. */
static bool fits(const char *net, const struct dpf_loss *loss, struct dpf_field x,
                 struct dpf_field y, const char *message)
{
    struct dpf_model m;
    struct dpf_header h = {0};
    struct dpf_dataset d = {0};
    struct dpf_error e = {0};
    parse(&m, net);
    add_field(&h, "x", x.dtype, x.shape.rank, x.shape.dim);
    add_field(&h, "y", y.dtype, y.shape.rank, y.shape.dim)->classes = y.classes;
    struct dpf_dataset_need need = {&m, "x", "y", loss};
    enum dpf_status status = dpf_dataset_init(&d, &h, &need, &e);
    bool good = message ? refused(status, DPF_USAGE, &e, message) : status == DPF_OK;
    dpf_dataset_release(&d);
    dpf_header_release(&h);
    dpf_model_release(&m);
    return good;
}

#define FIELD(type, number, ...)                                                         \
    (struct dpf_field)                                                                   \
    {                                                                                    \
        .dtype = type, .shape = {.rank = number, .dim = {__VA_ARGS__} }                  \
    }

static void test_fitting(void)
{
    static const char picture[] = "input x 1x8x8\nf = flatten x\ny = dense f out=3\n"
                                  "output y\n",
                      packed[] = "input x 64 bits\ny = dense x out=3\noutput y\n",
                      voxels[] = "input x 1x4x4\ny = conv x out=3 kernel=1\noutput y\n",
                      volume[] = "input x 2x2x4x4\ny = conv x out=3 kernel=1\noutput y\n";
    const struct dpf_loss *label = dpf_loss_find("cross-entropy");
    const struct dpf_field x = FIELD(DPF_U8, 2, 8, 8), y = FIELD(DPF_U8, 0, 0);
    struct dpf_field four = y;
    four.classes = 4;
    CU_ASSERT(fits(picture, label, x, y, NULL));
    CU_ASSERT(fits(picture, label, FIELD(DPF_F64, 3, 1, 8, 8), y, NULL));
    CU_ASSERT(fits(picture, label, x, FIELD(DPF_I64, 1, 1), NULL));
    CU_ASSERT(fits(picture, label, FIELD(DPF_U8, 2, 8, 9), y,
                   "field 'x' has records of shape 8x9, the network's input 'x' is "
                   "1x8x8"));
    CU_ASSERT(fits(picture, label, FIELD(DPF_U8, 0, 0), y, "shape scalar"));
    CU_ASSERT(fits(picture, label, FIELD(DPF_BITS, 1, 64), y,
                   "input 'x' is numbers, field 'x' is bits"));
    CU_ASSERT(fits(packed, label, FIELD(DPF_BITS, 1, 64), y, NULL));
    CU_ASSERT(fits(packed, label, FIELD(DPF_BITS, 2, 4, 16), y, "field 'x'"));
    CU_ASSERT(fits(packed, label, x, y, "input 'x' is packed bits, field 'x' is u8"));
    CU_ASSERT(fits(picture, label, x, FIELD(DPF_U8, 1, 2),
                   "field 'y' has records of shape 2, but this loss needs 1 targets"));
    CU_ASSERT(fits(picture, label, x, FIELD(DPF_F32, 0, 0), "'y' is f32, not labels"));
    CU_ASSERT(fits(picture, label, x, FIELD(DPF_BITS, 1, 1), "'y' is bits, not labels"));
    CU_ASSERT(fits(picture, label, x, four,
                   "field 'y' has 4 classes, the network's output 'y' has 3"));
    CU_ASSERT(fits(picture, dpf_loss_find("squared"), x, FIELD(DPF_F32, 1, 3), NULL));
    CU_ASSERT(fits(picture, dpf_loss_find("squared"), x, y, "needs 3 targets"));
    CU_ASSERT(
        fits(picture, dpf_loss_find("squared"), x, FIELD(DPF_BITS, 1, 3), "not values"));
    CU_ASSERT(fits(picture, dpf_loss_find("taylor2"), x, FIELD(DPF_F64, 2, 3, 2), NULL));
    CU_ASSERT(fits(picture, dpf_loss_find("taylor2"), x, FIELD(DPF_F64, 1, 3), NULL));
    CU_ASSERT(fits(picture, dpf_loss_find("taylor2"), x, FIELD(DPF_F64, 1, 4),
                   "needs 6 targets"));
    const struct dpf_field flat = FIELD(DPF_F32, 2, 4, 4);
    CU_ASSERT(fits(voxels, label, flat, y,
                   "the output 'y' is of shape 3x4x4, but this loss needs a vector"));
    CU_ASSERT(
        fits(voxels, dpf_loss_find("taylor2"), flat, FIELD(DPF_F32, 1, 96), "a vector"));
    CU_ASSERT(
        fits(voxels, dpf_loss_find("squared"), flat, FIELD(DPF_F32, 3, 3, 4, 4), NULL));
    CU_ASSERT(fits(voxels, dpf_loss_find("voxel"), flat, FIELD(DPF_U8, 2, 4, 4), NULL));
    CU_ASSERT(fits(voxels, dpf_loss_find("dice"), flat, FIELD(DPF_I32, 1, 16), NULL));
    CU_ASSERT(fits(voxels, dpf_loss_find("voxel"), flat, y, "needs 16 targets"));
    CU_ASSERT(fits(volume, dpf_loss_find("dice"), FIELD(DPF_F32, 4, 2, 2, 4, 4),
                   FIELD(DPF_U8, 3, 2, 4, 4), NULL));
}

static void test_missing_fields(void)
{
    struct dpf_model m;
    struct dpf_header h = {0};
    struct dpf_dataset d;
    struct dpf_error e = {0};
    parse(&m, "input x 2\ny = dense x out=3\noutput y\n");
    add_field(&h, "x", DPF_U8, 1, (uint64_t[]){2});
    struct dpf_dataset_need need = {&m, "x", "z", dpf_loss_find("cross-entropy")};
    CU_ASSERT(
        refused(dpf_dataset_init(&d, &h, &need, &e), DPF_BAD_STREAM, &e, "no field 'z'"));
    need.x = "w";
    CU_ASSERT(
        refused(dpf_dataset_init(&d, &h, &need, &e), DPF_BAD_STREAM, &e, "no field 'w'"));
    dpf_header_release(&h);
    dpf_model_release(&m);
}

/* The Dice loss counts in fixed arrays: a network with more classes must be refused. */
static void test_dice_classes(void)
{
    CU_ASSERT(fits("input x 1x2x2\ny = conv x out=256 kernel=1\noutput y\n",
                   dpf_loss_find("dice"), FIELD(DPF_F32, 2, 2, 2), FIELD(DPF_U8, 2, 2, 2),
                   NULL));
    CU_ASSERT(fits("input x 1x2x2\ny = conv x out=257 kernel=1\noutput y\n",
                   dpf_loss_find("dice"), FIELD(DPF_F32, 2, 2, 2), FIELD(DPF_U8, 2, 2, 2),
                   "classes"));
}

/* Record i of a growing data set: x = (i, i + 0.5), label i % 3. */
static void add_rows(struct dpf_dataset *d, struct dpf_header *h,
                     const struct dpf_dataset_need *need, uint64_t first, uint64_t rows)
{
    struct dpf_batch b = batch_of(h, rows);
    for (uint64_t i = 0; i < rows; i++) {
        set(&b.tensor[1], 2 * i, (double)(first + i));
        set(&b.tensor[1], 2 * i + 1, (double)(first + i) + 0.5);
        set(&b.tensor[0], i, (double)((first + i) % 3));
    }
    CU_ASSERT(dpf_dataset_add(d, h, &b, need, NULL) == DPF_OK);
    dpf_batch_release(&b);
}

static int wrong_rows(const struct dpf_dataset *d, uint32_t first, uint32_t rows)
{
    int wrong = d->rows != rows;
    for (uint32_t i = 0; i < rows; i++) {
        float x[2];
        dpf_dataset_gather(d, &i, 1, x);
        wrong += x[0] != (float)(first + i) || x[1] != (float)(first + i) + 0.5f ||
                 dpf_dataset_target(d, i).labels[0] != (int32_t)((first + i) % 3);
    }
    return wrong;
}

static void fingerprint(const struct dpf_dataset *d, char hex[DPF_FINGERPRINT_HEX + 1])
{
    struct dpf_fingerprint f;
    dpf_fingerprint_init(&f);
    dpf_dataset_fingerprint(d, &f);
    dpf_fingerprint_hex(&f, hex);
}

static void test_growth(void)
{
    struct dpf_model m;
    struct dpf_header h = {0};
    struct dpf_dataset d, other;
    char a[DPF_FINGERPRINT_HEX + 1], b[DPF_FINGERPRINT_HEX + 1];
    parse(&m, "input x 2\ny = dense x out=3\noutput y\n");
    add_field(&h, "label", DPF_I32, 0, NULL); /* before x: fields go by name */
    add_field(&h, "pair", DPF_F64, 1, (uint64_t[]){2});
    struct dpf_dataset_need need = {&m, "pair", "label", dpf_loss_find("cross-entropy")};
    CU_ASSERT_FATAL(dpf_dataset_init(&d, &h, &need, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_dataset_init(&other, &h, &need, NULL) == DPF_OK);
    add_rows(&d, &h, &need, 0, 700);
    add_rows(&d, &h, &need, 700, 1);
    add_rows(&d, &h, &need, 701, 4299);
    CU_ASSERT(wrong_rows(&d, 0, 5000) == 0);
    add_rows(&other, &h, &need, 0, 5000);
    fingerprint(&d, a);
    fingerprint(&other, b);
    CU_ASSERT(strcmp(a, b) == 0); /* batches do not matter */
    other.labels[4999] = (other.labels[4999] + 1) % 3;
    fingerprint(&other, b);
    CU_ASSERT(strcmp(a, b) != 0);
    dpf_dataset_clear(&d);
    fingerprint(&d, b);
    CU_ASSERT(strcmp(a, b) != 0 && d.rows == 0);
    add_rows(&d, &h, &need, 33, 20);
    CU_ASSERT(wrong_rows(&d, 33, 20) == 0);
    dpf_dataset_release(&d);
    dpf_dataset_release(&other);
    dpf_header_release(&h);
    dpf_model_release(&m);
}

/* A stream may begin with a batch of no records. */
static void test_empty_batch(void)
{
    struct dpf_model m;
    struct dpf_header h = {0};
    struct dpf_dataset d;
    char hex[DPF_FINGERPRINT_HEX + 1];
    parse(&m, "input x 2\ny = dense x out=3\noutput y\n");
    add_field(&h, "label", DPF_U8, 0, NULL);
    add_field(&h, "x", DPF_F32, 1, (uint64_t[]){2});
    struct dpf_dataset_need need = {&m, "x", "label", dpf_loss_find("cross-entropy")};
    CU_ASSERT_FATAL(dpf_dataset_init(&d, &h, &need, NULL) == DPF_OK);
    add_rows(&d, &h, &need, 0, 0);
    CU_ASSERT(d.rows == 0);
    fingerprint(&d, hex);
    add_rows(&d, &h, &need, 5, 3);
    CU_ASSERT(wrong_rows(&d, 5, 3) == 0);
    dpf_dataset_release(&d);
    dpf_header_release(&h);
    dpf_model_release(&m);
}

/* Gradients that are not clipped never come into a sum that is released. */
static void test_plain_and_clipped(void)
{
    struct rig g;
    struct dpf_engine engine;
    struct dpf_lot_result result;
    struct dpf_error e = {0};
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 0.1);
    begin(&g);
    struct dpf_lot plain = lot_of(&g, DPF_CLIP_NONE), clipped = lot_of(&g, DPF_CLIP_FLAT);
    struct dpf_gaussian three = three_for(&g.model);
    struct dpf_lot_noise noise = {.mechanism = &three, .insecure = true};
    start(&engine, &g.model, g.parameters, &dpf_kernels_ref, 2, 5);
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, g.model.span, NULL) ==
                    DPF_OK);
    CU_ASSERT(dpf_engine_gradients(&engine, &plain, &result, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_gradients(&engine, &clipped, &result, &e) == DPF_PRIVACY);
    CU_ASSERT(dpf_engine_update(&engine, &o, 1, &noise, &e) == DPF_PRIVACY);
    CU_ASSERT(dpf_engine_update(&engine, &o, 1, NULL, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_gradients(&engine, &clipped, &result, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_gradients(&engine, &plain, &result, &e) == DPF_PRIVACY);
    CU_ASSERT(dpf_engine_update(&engine, &o, 1, &noise, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_gradients(&engine, &plain, &result, NULL) == DPF_OK);
    dpf_optimiser_release(&o);
    dpf_engine_release(&engine);
    end(&g);
}

const char dpf_suite[] = "engine";
const struct dpf_test dpf_tests[] = {
    {"plain and clipped gradients are kept apart", test_plain_and_clipped},
    {"threads, microbatches, clipping: one network's gradients (ref)",
     test_gradients_ref},
    {"threads, microbatches, clipping: one network's gradients (cpu)",
     test_gradients_cpu},
    {"dropout differs by seed, step and position", test_masks},
    {"the same threads give the same bits, and lots add up", test_same_bits},
    {"an empty lot is harmless", test_empty_lot},
    {"an engine that no memory can hold is refused", test_too_large},
    {"an update is the optimiser on the mean; sums are cleared", test_updates},
    {"updates by way of the host, as a device needs them", test_device_updates},
    {"noise is added on every parameter, before the division", test_noise},
    {"values of every node are those of one network", test_values},
    {"losses and correct answers by hand", test_losses},
    {"losses over voxels by hand", test_voxels},
    {"squared loss of pictures: targets stand channels first", test_squared_pictures},
    {"examples of every dtype are the same floats", test_dtypes},
    {"packed bits stay packed and mean the same", test_bits},
    {"labels outside the classes are refused", test_label_range},
    {"fields and networks that do not fit are refused by shape", test_fitting},
    {"missing fields are named", test_missing_fields},
    {"more classes than the Dice loss can count are refused", test_dice_classes},
    {"data sets grow, are cleared and have a fingerprint", test_growth},
    {"a first batch without records is harmless", test_empty_batch},
    {0},
};
