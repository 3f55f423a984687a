/* The judge of clipped sums: tries to refute the sensitivity that nn/engine.h claims.
 *
 * What one record does to a lot is computed from outside, from the integers that noise
 * would be added to, and exactly: differences of int64, squares summed in long double. It
 * is compared with what training states. Networks, weights, records, targets, keys and
 * sizes are drawn, with a bias for what has gone wrong before: equal records (their
 * rounding errors add up), positions that cancel, empty inputs, squares that underflow,
 * targets that are the network's own output (the gradient is 0 unless a bit differs),
 * numbers that are not finite.
 *
 * DPFLOW_JUDGE_TRIALS sets the number of random trials, DPFLOW_JUDGE_SEED where they
 * start. The worst ratio of moved to stated, and its case, are printed. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/geometry.h"
#include "nn/initialise.h"
#include "nn/ops/op.h"
#include "nn/training.h"
#include "random/seeded.h"

enum {
    RECORDS = 360,   /* different ones; larger lots repeat them */
    LARGEST = 61440, /* records in a lot */
    LOTS_A_RIG = 16, /* random trials with one engine */
    HOSTILE = 50,    /* in one pattern every so many records is one, among usual ones */
    TEXT = 640,      /* characters of a network */
    SHORT_TRIALS = 1800,
};

/* ------------------------------------------------------------------------------- rigs */

/* An engine, records for it, and a lot: record rows[i] with the key keys[i]. */
struct rig {
    struct dpf_model model;
    struct dpf_engine engine;
    struct dpf_dataset data;
    float *weights;
    uint32_t *rows, *other_rows;
    uint64_t *keys, *other_keys;
    int64_t *with, *without;
};

struct form {
    const char *text;
    int threads;
    int64_t microbatch;
    bool ref, values; /* values: targets are numbers, else labels */
};

static void begin_data(struct rig *g, bool values)
{
    struct dpf_dataset *d = &g->data;
    size_t out = dpf_shape_elements(&g->model.nodes[g->model.output].shape);
    bool bits = g->model.nodes[0].bits;
    d->record = dpf_shape_elements(&g->model.nodes[0].shape);
    d->dtype = bits ? DPF_BITS : DPF_F32;
    d->record_bytes = bits ? (d->record + 7) / 8 : d->record * sizeof(float);
    d->rows = RECORDS;
    d->classes = out;
    d->positions = values ? out : 1;
    d->x = dpf_calloc(RECORDS + 1, d->record_bytes);
    d->values = values ? dpf_calloc(RECORDS * out, sizeof *d->values) : NULL;
    d->labels = values ? NULL : dpf_calloc(RECORDS, sizeof *d->labels);
    CU_ASSERT_FATAL(d->x && (d->values || d->labels));
}

static void begin(struct rig *g, const struct form *f)
{
    *g = (struct rig){0};
    CU_ASSERT_FATAL(dpf_model_parse(&g->model, f->text, strlen(f->text), "judge", NULL) ==
                    DPF_OK);
    struct dpf_engine_setup setup = {.model = &g->model,
                                     .kernels =
                                         f->ref ? &dpf_kernels_ref : dpf_kernels_cpu(),
                                     .threads = f->threads,
                                     .microbatch = f->microbatch,
                                     .training = true,
                                     .clipping = true};
    CU_ASSERT_FATAL(dpf_engine_init(&g->engine, &setup, NULL) == DPF_OK);
    size_t span = g->model.span;
    g->weights = dpf_calloc(span, sizeof *g->weights);
    g->with = dpf_calloc(span, sizeof *g->with);
    g->without = dpf_calloc(span, sizeof *g->without);
    g->rows = dpf_calloc(LARGEST + 1, sizeof *g->rows);
    g->other_rows = dpf_calloc(LARGEST + 1, sizeof *g->other_rows);
    g->keys = dpf_calloc(LARGEST + 1, sizeof *g->keys);
    g->other_keys = dpf_calloc(LARGEST + 1, sizeof *g->other_keys);
    CU_ASSERT_FATAL(g->weights && g->with && g->without && g->rows && g->other_rows &&
                    g->keys && g->other_keys);
    begin_data(g, f->values);
    dpf_initialise(&g->model, "torch", 3, g->weights);
    dpf_engine_put(&g->engine, g->weights);
    struct dpf_seeded r;
    dpf_seeded_init(&r, "judge keys", 1, 0);
    for (uint32_t i = 0; i <= LARGEST; i++) {
        g->rows[i] = i % RECORDS;
        g->keys[i] = dpf_seeded_u64(&r);
    }
}

static void end(struct rig *g)
{
    dpf_engine_release(&g->engine);
    dpf_dataset_release(&g->data);
    dpf_model_release(&g->model);
    free(g->weights);
    free(g->with);
    free(g->without);
    free(g->rows);
    free(g->other_rows);
    free(g->keys);
    free(g->other_keys);
}

static float *record(struct rig *g, size_t i)
{
    return (float *)(void *)g->data.x + i * g->data.record;
}

/* ---------------------------------------------------------------------- what is moved */

struct lot {
    enum dpf_clip_rule rule;
    double clip;
    const struct dpf_loss *loss;
    int64_t expected, count, at; /* at: the record that is added, taken, or replaced */
};

/* The integers of n records. */
static void take_sums(struct rig *g, const struct lot *l, const uint32_t *rows,
                      const uint64_t *keys, int64_t n, int64_t *sums)
{
    struct dpf_lot lot = {.data = &g->data,
                          .rows = rows,
                          .count = n,
                          .loss = l->loss,
                          .rule = l->rule,
                          .clip_l2 = l->clip,
                          .expected = l->expected,
                          .keys = keys};
    struct dpf_lot_result result;
    CU_ASSERT_FATAL(dpf_engine_gradients(&g->engine, &lot, &result, NULL) == DPF_OK);
    CU_ASSERT(dpf_engine_sums(&g->engine, sums) == dpf_lot_sum_step(l->clip));
    /* without an update, which would refuse weights that are not finite */
    memset(g->engine.sums, 0, g->model.span * sizeof *g->engine.sums);
    g->engine.sum_step = 0;
}

/* The distance of the two sums, in units of the clip norm. */
static double distance(const struct rig *g, double clip)
{
    long double square = 0;
    for (size_t i = 0; i < g->model.span; i++) {
        long double d = (long double)(g->with[i] - g->without[i]);
        square += d * d;
    }
    return (double)(sqrtl(square) * (long double)(dpf_lot_sum_step(clip) / clip));
}

/* With and without record `at`. */
static double moved(struct rig *g, const struct lot *l)
{
    int64_t m = 0;
    for (int64_t i = 0; i < l->count; i++)
        if (i != l->at) {
            g->other_rows[m] = g->rows[i];
            g->other_keys[m++] = g->keys[i];
        }
    take_sums(g, l, g->rows, g->keys, l->count, g->with);
    take_sums(g, l, g->other_rows, g->other_keys, m, g->without);
    return distance(g, l->clip);
}

/* With record `at`, and with another one (and another key) in its place. */
static double moved_by_replacing(struct rig *g, const struct lot *l, uint32_t row,
                                 uint64_t key)
{
    memcpy(g->other_rows, g->rows, (size_t)l->count * sizeof *g->rows);
    memcpy(g->other_keys, g->keys, (size_t)l->count * sizeof *g->keys);
    g->other_rows[l->at] = row;
    g->other_keys[l->at] = key;
    take_sums(g, l, g->rows, g->keys, l->count, g->with);
    take_sums(g, l, g->other_rows, g->other_keys, l->count, g->without);
    return distance(g, l->clip);
}

/* What training states, in units of the clip norm. */
static double stated(const struct rig *g, enum dpf_clip_rule rule)
{
    double layers = 0;
    for (size_t i = 0; i < g->model.count; i++)
        layers += g->model.nodes[i].parameter_count > 0;
    return (1 + dpf_lot_sum_margin(g->model.span)) *
           (rule == DPF_CLIP_LAYER ? sqrt(layers) : 1);
}

/* ------------------------------------------------------------------------ named cases */

static void report(const char *name, double moved_most, double limit)
{
    printf("# %-58s moved %.7f, stated %.7f\n", name, moved_most, limit);
    CU_ASSERT(moved_most <= limit);
}

/* The worst of a record at the front, in the middle and at the end. */
static double worst_place(struct rig *g, struct lot *l)
{
    const int64_t places[] = {0, l->count / 2, l->count - 1};
    double worst = 0;
    for (int i = 0; i < 3; i++) {
        l->at = places[i];
        double m = moved(g, l);
        worst = m > worst || isnan(m) ? m : worst;
    }
    return worst;
}

static void fill_equal(struct rig *g, float value)
{
    for (size_t i = 0; i < RECORDS * g->data.record; i++)
        record(g, 0)[i] = value;
}

/* Equal records, of a few values: their errors of rounding all have one sign. */
static void judge_equal(const char *name, const struct form *f, int64_t count,
                        int64_t expected)
{
    static const float values[] = {0.3f, 1.7f, 0.9999f, 0.1f};
    struct rig g;
    struct lot l = {DPF_CLIP_FLAT, 1, dpf_loss_find("cross-entropy"), expected, count, 0};
    double worst = 0;
    begin(&g, f);
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        fill_equal(&g, values[i]);
        for (size_t j = 0; j < RECORDS * g.data.record; j++)
            record(&g, 0)[j] += 0.013f * (float)(j % g.data.record);
        l.clip = i % 2 ? 1 : 0.37;
        worst = fmax(worst, worst_place(&g, &l));
    }
    report(name, worst, stated(&g, l.rule));
    end(&g);
}

static const char dense_text[] = "input x 16\ny = dense x out=2\noutput y\n";
static const char conv_text[] = "input x 1x12x12\nc = conv x out=64 kernel=11\n"
                                "f = flatten c\noutput f\n";

static void force_again(struct rig *g)
{
    bool can = g->engine.kernels == dpf_kernels_cpu();
    for (int i = 0; can && i < g->engine.threads; i++)
        for (size_t j = 0; j < g->model.count; j++) {
            struct dpf_layer *l = &g->engine.workers[i].net.layers[j];
            g->engine.kernels->release(g->engine.workers[i].context, l->kept);
            l->kept = NULL;
        }
}

/* An empty picture has no gradient of the weights, but a large one of the bias. */
static void judge_empty_picture(bool again)
{
    struct rig g;
    struct form f = {conv_text, 2, 1024, false, true};
    struct lot l = {DPF_CLIP_FLAT, 1, dpf_loss_find("squared"), 1024, 1024, 0};
    begin(&g, &f);
    struct dpf_seeded r;
    dpf_seeded_init(&r, "judge empty", 1, 0);
    for (size_t i = 0; i < g.model.span; i++)
        g.weights[i] = (float)dpf_seeded_range(&r, -2, 2);
    dpf_engine_put(&g.engine, g.weights);
    for (size_t i = 0; i < RECORDS * g.data.record; i++)
        record(&g, 0)[i] = (float)dpf_seeded_unit(&r);
    memset(record(&g, 0), 0, g.data.record_bytes);
    for (size_t i = 0; i < RECORDS * g.data.positions; i++)
        g.data.values[i] = 0x1p20f;
    if (again)
        force_again(&g);
    report(again ? "empty picture, target 2^20, gradients computed again"
                 : "empty picture, target 2^20, gradients kept",
           worst_place(&g, &l), stated(&g, l.rule));
    end(&g);
}

/* Long inputs of 3e17 and gradients whose squares underflow in float. */
static void judge_underflow(void)
{
    static const float targets[] = {2e-23f, 1e-23f, 1e-25f, 1e-38f, 1e-40f};
    struct rig g;
    struct form f = {"input x 4000\ny = dense x out=1\noutput y\n", 2, 0, false, true};
    struct lot l = {DPF_CLIP_FLAT, 1, dpf_loss_find("squared"), 64, 64, 0};
    double worst = 0;
    begin(&g, &f);
    memset(g.weights, 0, g.model.span * sizeof *g.weights);
    dpf_engine_put(&g.engine, g.weights);
    fill_equal(&g, 3e17f);
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        for (size_t j = 0; j < RECORDS; j++)
            g.data.values[j] = targets[i];
        for (l.clip = 1e-3; l.clip > 1e-12; l.clip /= 300)
            worst = fmax(worst, worst_place(&g, &l));
    }
    report("4,000 inputs of 3e17, gradients below 2.6e-23", worst, stated(&g, l.rule));
    end(&g);
}

static void use_own_output(struct rig *g, const struct dpf_loss *loss)
{
    struct dpf_lot lot = {.data = &g->data,
                          .rows = g->rows,
                          .count = RECORDS,
                          .loss = loss,
                          .keys = g->keys};
    struct dpf_lot_values want = {.node = g->model.output, .values = g->data.values};
    CU_ASSERT_FATAL(dpf_engine_values(&g->engine, &lot, &want, NULL) == DPF_OK);
}

/* Equal records whose target is what the network says of them: nothing moves, unless the
 * bits of a row depend on how many there are. All are in one part. */
static void judge_row_counts(void)
{
    static const int inputs[] = {4000, 4007, 3993, 300, 255, 37};
    double worst = 0, limit = INFINITY;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        struct rig g;
        struct lot l = {DPF_CLIP_FLAT, 1e-6, dpf_loss_find("squared"), 1, 1, 0};
        char text[80];
        snprintf(text, sizeof text, "input x %d\ny = dense x out=%d\noutput y\n",
                 inputs[i], i % 2 ? 3 : 1);
        struct form f = {text, 1, i % 3 ? 112 : 0, false, true};
        begin(&g, &f);
        struct dpf_seeded r;
        dpf_seeded_init(&r, "judge rows", i, 0);
        for (size_t j = 0; j < RECORDS * g.data.record; j++)
            record(&g, 0)[j] = j < g.data.record ? (float)dpf_seeded_normal(&r)
                                                 : record(&g, 0)[j - g.data.record];
        use_own_output(&g, l.loss);
        for (uint64_t j = 0; j < RECORDS; j++)
            g.keys[j] = 1000 + j;
        for (l.count = 2; l.count < 120; l.count += 1 + (l.count > 50))
            worst = fmax(worst, moved(&g, &l));
        limit = fmin(limit, stated(&g, l.rule));
        end(&g);
    }
    report("own output as target, one row more and one row less", worst, limit);
}

/* Nothing to measure, a factor above 1 and a row that it makes overflow. */
static void judge_automatic(void)
{
    static const float inputs[] = {0, 1e-39f, 1e-45f, 1e-30f};
    static const float targets[] = {1e37f, 3e38f, 1e30f};
    struct rig g;
    struct form f = {"input x 4\ny = dense x out=2 bias=0\noutput y\n", 1, 64, false,
                     true};
    struct lot l = {DPF_CLIP_AUTOMATIC, 1, dpf_loss_find("squared"), 64, 64, 0};
    double worst = 0;
    begin(&g, &f);
    fill_equal(&g, 1);
    for (size_t i = 0; i < 12; i++) {
        for (size_t j = 0; j < RECORDS; j++)
            g.data.values[2 * j] = 5;
        for (size_t j = 0; j < 4; j++)
            record(&g, 0)[j] = inputs[i % 4];
        g.data.values[0] = targets[i / 4];
        for (l.clip = 1e-6; l.clip < 1e13; l.clip *= 1e6)
            worst = fmax(worst, worst_place(&g, &l));
    }
    report("automatic rule, no bias, empty input, huge target", worst,
           stated(&g, l.rule));
    end(&g);
}

/* How much of the margin an adversary can use: 112 records of one key are a part that is
 * added in float, one more makes it `single`. Equal terms round the same way each time;
 * the value for which that is worst is searched for. */
static void judge_margin(void)
{
    struct rig g;
    struct form f = {"input x 1\ny = dense x out=1 bias=0\noutput y\n", 1, 0, false,
                     true};
    struct lot l = {DPF_CLIP_FLAT, 1, dpf_loss_find("squared"), 1, 113, 112};
    double worst = 0;
    begin(&g, &f);
    fill_equal(&g, 1);
    for (int64_t i = 0; i < l.count; i++)
        g.keys[i] = 42;
    for (size_t i = 0; i < RECORDS; i++)
        g.data.values[i] = 1e6f;
    for (l.clip = 1; l.clip < 2; l.clip += 0x1p-10)
        worst = fmax(worst, moved(&g, &l));
    report("112 records of one key and one more, the worst clip norm", worst,
           stated(&g, l.rule));
    end(&g);
}

/* Gradients of values that cancel: nothing but their last bits is left, and clipping to a
 * tiny norm makes them large. Hidden values are 0, so that the other layer has none. If
 * these bits depend on how many rows there are, all records of a part turn. */
static void judge_cancelling_gradients(int outputs, int hidden, double *worst)
{
    struct rig g;
    struct lot l = {DPF_CLIP_FLAT, 1e-12, dpf_loss_find("squared"), 1, 1, 0};
    char text[120];
    snprintf(text, sizeof text,
             "input x 3\nh = dense x out=%d\na = tanh h\ny = dense a out=%d bias=0\n"
             "output y\n",
             hidden, outputs);
    struct form f = {text, 1, 112, false, true};
    begin(&g, &f);
    struct dpf_seeded r;
    dpf_seeded_init(&r, "judge cancelling", (uint64_t)outputs, 0);
    memset(g.weights, 0, g.model.span * sizeof *g.weights);
    float *w = g.weights + g.model.nodes[g.model.output].offset[0];
    for (int o = 0; o < outputs; o++) /* the second half takes back the first */
        for (int i = 0; i < hidden; i++)
            w[o * hidden + i] = o < outputs / 2
                                    ? (float)dpf_seeded_normal(&r)
                                    : -w[(o * 7 + 3) % (outputs / 2) * hidden + i];
    dpf_engine_put(&g.engine, g.weights);
    fill_equal(&g, 1);
    for (size_t i = 0; i < RECORDS * g.data.positions; i++)
        g.data.values[i] = 1;
    for (uint64_t i = 0; i < RECORDS; i++)
        g.keys[i] = 1000 + i;
    for (l.count = 2; l.count < 116; l.count += 1 + (l.count > 20))
        *worst = fmax(*worst, moved(&g, &l) / stated(&g, l.rule));
    end(&g);
}

static void judge_cancelling(void)
{
    double worst = 0;
    for (int outputs = 8; outputs < 400; outputs = outputs * 3 / 2 / 14 * 14 + 14)
        for (int hidden = 1; hidden < 80; hidden = 3 * hidden + outputs % 5)
            judge_cancelling_gradients(outputs, hidden, &worst);
    report("gradients of values that cancel (over what is stated)", worst, 1);
}

static void test_named(void)
{
    struct form dense = {dense_text, 2, 0, false, false};
    struct form conv = {conv_text, 2, 2000, false, false};
    judge_equal("dense 16->2, 61,440 equal records, lot 61,440", &dense, LARGEST,
                LARGEST);
    judge_equal("dense 16->2, 61,440 equal records, lot 512 expected", &dense, LARGEST,
                512);
    judge_equal("dense 16->2, 512 equal records", &dense, 512, 512);
    judge_equal("conv 1x12x12, 64 of 11x11, 2,000 equal pictures", &conv, 2000, 2000);
    judge_empty_picture(false);
    judge_empty_picture(true);
    judge_underflow();
    judge_row_counts();
    judge_automatic();
    judge_margin();
    judge_cancelling();
}

/* ---------------------------------------------------------------------- random trials */

static struct dpf_seeded dice;

static int below(int n)
{
    return (int)dpf_seeded_below(&dice, (uint64_t)n);
}

enum size { NORMAL, ZERO, ANY_SIZE, DENORMAL, STRANGE, LARGE, HUGE_ONES, TINY, SIZES };

static float draw(enum size size)
{
    static const float strange[] = {INFINITY, -INFINITY, NAN, 3e38f,
                                    -3e38f,   1e-45f,    0,   1};
    switch (size) {
    case NORMAL:
        return (float)dpf_seeded_normal(&dice);
    case ZERO:
        return 0;
    case ANY_SIZE:
        return (float)(dpf_seeded_normal(&dice) *
                       exp2(dpf_seeded_range(&dice, -126, 126)));
    case DENORMAL:
        return 1e-40f * (float)below(100);
    case STRANGE:
        return strange[below(8)];
    case LARGE:
        return below(2) ? 3e17f : -3e17f;
    case HUGE_ONES:
        return (float)(dpf_seeded_normal(&dice) * 1e30);
    case TINY:
    case SIZES:
        break;
    }
    return (float)(dpf_seeded_normal(&dice) * 1e-22);
}

/* How records of a lot are alike. */
enum pattern { EQUAL, IN_TURN, ALL_DIFFERENT, MOSTLY_EQUAL, FEW_HOSTILE, PATTERNS };

/* A random trial: all that it takes to say what happened. */
struct trial {
    char text[TEXT];
    struct form form;
    struct lot lot;
    enum size weights, records, others, targets;
    enum pattern pattern;
    int keys, target_kind;
    bool again;
};

static const char *activation(char *text, size_t size)
{
    static const char *const all[] = {"relu",    "tanh", "sigmoid", "cap",
                                      "min-max", "ball", "softmax", "dropout"};
    int which = below(8);
    snprintf(text, size, "%s h%s", all[which], which == 7 ? " rate=0.4" : "");
    return text;
}

static void draw_dense(char *t, int kind, const char *act, const char *bias)
{
    int out = below(4) ? 2 + below(16) : below(2) ? 1 : 100 + below(200);
    int in = below(6) ? 1 + below(60) : 200 + below(400);
    int hidden = below(6) ? 2 + below(60) : 1;
    if (kind == 0)
        snprintf(t, TEXT, "input x %d\ny = dense x out=%d%s\noutput y\n", in, out, bias);
    else
        snprintf(t, TEXT,
                 "input x %d%s\nh = dense x out=%d%s\na = %s\ny = dense a out=%d%s\n"
                 "output y\n",
                 in, kind == 2 ? " bits" : "", hidden, bias, act, out, bias);
}

static void draw_picture(char *t, int kind, const char *act, const char *bias)
{
    static const char *const pools[] = {"max-pool", "average-pool"};
    int s = 3 + below(6), k = 1 + below(3), out = 1 + below(12);
    if (kind == 0)
        snprintf(t, TEXT,
                 "input x %dx%dx%d\nh = conv x out=%d kernel=%d pad=%d stride=%d%s\n"
                 "b = relu h\ng = %s b kernel=2 stride=%d\nf = flatten g\n"
                 "y = dense f out=%d%s\noutput y\n",
                 1 + below(3), s + 1, s + 1, 1 + below(20), k, below(k), 1 + below(2),
                 bias, pools[below(2)], 1 + below(2), out, bias);
    else if (kind == 1)
        snprintf(t, TEXT,
                 "input x %dx%dx%d\nh = conv-transpose x out=%d kernel=%d stride=%d%s\n"
                 "a = group-norm h groups=%d\nb = lrn a%s\np = %s b kernel=2\n"
                 "f = flatten p\ny = dense f out=%d\noutput y\n",
                 1 + below(2), s, s, 2 * (1 + below(6)), k, 1 + below(2), bias,
                 1 + below(2), below(2) ? "" : " window=3 beta=0.5", pools[below(2)],
                 out);
    else if (kind == 2)
        snprintf(t, TEXT,
                 "input x 2x%dx%d\nh = conv x out=4 kernel=3 pad=1%s\na = relu h\n"
                 "g = conv x out=3 kernel=1\nc = concat a g\nu = upsample c factor=2\n"
                 "d = conv u out=2 kernel=2 stride=2\nf = flatten d\no = dropout f "
                 "rate=0.3\ny = dense o out=%d\noutput y\n",
                 s, s, bias, out);
    else if (kind == 5)
        snprintf(t, TEXT,
                 "input x %dx%dx%dx3\nh = conv x out=%d kernel=2 pad=%d%s\n"
                 "a = relu h\nb = group-norm a groups=1\nf = flatten b\n"
                 "y = dense f out=%d\noutput y\n",
                 1 + below(2), s / 2 + 1, s / 2 + 1, 1 + below(8), below(2), bias, out);
    else if (kind == 6)
        snprintf(t, TEXT,
                 "input x %d\nv = slice x from=0 count=%d\nw = reshape v shape=1x%dx%d\n"
                 "u = slice x from=%d count=5\nc = conv w u out=%d kernel=%d visible=1\n"
                 "a = relu c\nf = flatten a\nh = dense f u out=3 visible=1\n"
                 "y = dense h out=%d\noutput y\n",
                 s * s + 3, s * s, s, s, s * s - 2, 1 + below(12), k, out);
    else if (kind == 3)
        snprintf(t, TEXT,
                 "input x 1x%dx%d\nc = conv x out=%d kernel=%d%s\ny = flatten c\n"
                 "output y\n",
                 s, s, 1 + below(24), s < 4 ? 2 : 3, bias);
    else
        snprintf(t, TEXT,
                 "input x 1x%dx%d\nc = conv x out=%d kernel=2\ng = tanh c\n"
                 "j = flatten g\nh = dense j out=%d%s\na = %s\ny = dense a out=%d\n"
                 "output y\n",
                 s, s, 1 + below(8), 2 + below(20), bias, act, out);
}

static void draw_network(char *t)
{
    char act[40];
    const char *bias = below(3) ? "" : " bias=0";
    int kind = below(10);
    activation(act, sizeof act);
    if (kind < 3)
        draw_dense(t, kind, act, bias);
    else
        draw_picture(t, kind - 3, act, bias);
}

/* Some networks do not fit together: draw again. */
static void draw_form(struct trial *t)
{
    static const int64_t microbatches[] = {1, 2, 5, 16, 32, 64, 100, 112, 256, 0};
    static const int threads[] = {1, 2, 3, 8};
    struct dpf_model m;
    bool good = false;
    while (!good) {
        draw_network(t->text);
        good = dpf_model_parse(&m, t->text, strlen(t->text), "judge", NULL) == DPF_OK;
        if (good)
            dpf_model_release(&m);
    }
    t->form = (struct form){t->text, threads[below(4)], microbatches[below(10)],
                            below(6) == 0, below(2)};
}

static void draw_weights(struct rig *g, struct trial *t)
{
    t->weights = below(2) ? NORMAL : (enum size)below(SIZES);
    bool few = t->weights == STRANGE;
    for (size_t i = 0; i < g->model.span; i++)
        g->weights[i] = few && below(60) ? 0.5f * draw(NORMAL) : 0.5f * draw(t->weights);
    dpf_engine_put(&g->engine, g->weights);
}

/* Which record this one is a copy of, or itself. */
static size_t original(enum pattern pattern, size_t i)
{
    bool own = pattern == ALL_DIFFERENT || pattern == FEW_HOSTILE ||
               (pattern == MOSTLY_EQUAL && i % 5 == 0);
    return own ? i : pattern == IN_TURN ? i % 2 : 0;
}

static enum size size_of(const struct trial *t, size_t i)
{
    if (t->pattern == FEW_HOSTILE)
        return i % HOSTILE ? NORMAL : t->others;
    return i && t->pattern != ALL_DIFFERENT ? t->others : t->records;
}

/* Some have positions that cancel. */
static void draw_records(struct rig *g, struct trial *t)
{
    bool cancel = below(4) == 0;
    t->pattern = (enum pattern)below(PATTERNS);
    t->records = below(3) ? (enum size)below(SIZES) : NORMAL;
    t->others = (enum size)below(SIZES);
    for (size_t i = 0; i < RECORDS; i++) {
        size_t from = original(t->pattern, i), bytes = g->data.record_bytes;
        enum size size = size_of(t, i);
        if (from != i)
            memcpy(g->data.x + i * bytes, g->data.x + from * bytes, bytes);
        else if (g->data.dtype == DPF_BITS)
            for (size_t j = 0; j < bytes; j++)
                g->data.x[i * bytes + j] = (unsigned char)(size == ZERO ? 0 : below(256));
        else
            for (size_t j = 0; j < g->data.record; j++)
                record(g, i)[j] = cancel && j % 2 ? -record(g, i)[j - 1] : draw(size);
    }
}

static void draw_labels(struct rig *g, const struct trial *t)
{
    for (size_t i = 0; i < RECORDS; i++)
        g->data.labels[i] = (int32_t)(t->pattern == ALL_DIFFERENT
                                          ? dpf_seeded_below(&dice, g->data.classes)
                                          : i % 2 % g->data.classes);
}

/* 2^20, the network's own output, or drawn: equal for equal records, large for hostile
 * ones. */
static void draw_targets(struct rig *g, struct trial *t)
{
    size_t outputs = g->data.positions;
    t->target_kind = below(5);
    t->targets = (enum size)below(SIZES);
    t->lot.loss = g->data.values ? dpf_loss_find("squared")
                  : below(4)     ? dpf_loss_find("cross-entropy")
                                 : dpf_loss_find("logistic");
    if (g->data.labels)
        draw_labels(g, t);
    else if (t->target_kind == 0)
        use_own_output(g, t->lot.loss);
    for (size_t i = 0; g->data.values && t->target_kind && i < RECORDS * outputs; i++) {
        size_t row = i / outputs;
        bool usual = t->pattern == FEW_HOSTILE && row % HOSTILE;
        g->data.values[i] = usual                 ? draw(NORMAL)
                            : t->target_kind == 1 ? 0x1p20f
                            : t->pattern <= IN_TURN && row > 1
                                ? g->data.values[i - 2 * outputs]
                                : draw(t->targets);
    }
}

/* Keys that an adversary would like: all equal, two clusters, one after the other, as
 * many equal ones as a part may have; or random. */
static void draw_keys(struct rig *g, struct trial *t)
{
    t->keys = below(7);
    for (int64_t i = 0; i < t->lot.count; i++)
        g->keys[i] = t->keys == 0   ? 42
                     : t->keys == 1 ? (i % 2 ? 7 : (uint64_t)1 << 63)
                     : t->keys == 2 ? 1000 + (uint64_t)i
                     : t->keys == 3 ? (uint64_t)(i / 112) << 40
                                    : dpf_seeded_u64(&dice);
}

static void draw_lot(struct trial *t)
{
    static const int64_t counts[] = {1, 2, 5, 33, 64, 111, 112, 113, 114, 224, 225, 350};
    static const double clips[] = {1, 0.1, 1e-6, 1e-12, 1e12, 3.7, 0x1p-41, 0x1p41};
    struct lot *l = &t->lot;
    l->count = counts[below(12)];
    if (strstr(t->text, "conv") == NULL && !t->form.ref && below(200) == 0)
        l->count = below(2) ? 5000 : 60000;
    const int64_t expected[] = {1, l->count, 1000, 100000};
    l->expected = expected[below(4)];
    l->at = below(3) == 0 ? 0 : below(2) ? l->count - 1 : below((int)l->count);
    if (t->pattern == FEW_HOSTILE)
        l->at -= l->at % HOSTILE;
    l->rule = (enum dpf_clip_rule)(DPF_CLIP_FLAT + below(3));
    l->clip = clips[below(8)];
}

static void print_trial(const char *what, const struct trial *t, double ratio)
{
    const struct lot *l = &t->lot;
    printf("# %s: moved / stated %.9f: %s, %d threads, microbatch %" PRId64
           ", rule %d, clip %g, loss %s, lot %" PRId64 " of %" PRId64 ", at %" PRId64
           ", weights %d, records %d and %d in pattern %d, keys %d, targets %d.%d, way "
           "%s\n# ",
           what, ratio, t->form.ref ? "ref" : "cpu", t->form.threads, t->form.microbatch,
           (int)l->rule, l->clip, l->loss->name, l->count, l->expected, l->at,
           (int)t->weights, (int)t->records, (int)t->others, (int)t->pattern, t->keys,
           t->target_kind, (int)t->targets, t->again ? "again" : "its own");
    for (const char *c = t->text; *c; c++)
        fputs(*c == '\n' ? "; " : (char[]){*c, 0}, stdout);
    puts("");
}

/* One lot of a rig; the ratio of moved to stated. */
static double try_lot(struct rig *g, struct trial *t)
{
    draw_weights(g, t);
    draw_records(g, t);
    draw_targets(g, t);
    draw_lot(t);
    draw_keys(g, t);
    double limit = stated(g, t->lot.rule);
    double ratio = moved(g, &t->lot) / limit;
    if (below(5) == 0) {
        uint64_t key = below(2) ? g->keys[t->lot.at] : dpf_seeded_u64(&dice);
        double replaced =
            moved_by_replacing(g, &t->lot, (uint32_t)below(RECORDS), key) / (2 * limit);
        ratio = replaced <= ratio ? ratio : replaced;
    }
    if (!(ratio <= 1))
        print_trial("REFUTED", t, ratio);
    CU_ASSERT(ratio <= 1);
    return ratio;
}

static void keep_worst(struct trial *worst, double *most, const struct trial *t, double r)
{
    if (r <= *most)
        return;
    *most = r;
    *worst = *t;
    worst->form.text = worst->text;
}

static long setting(const char *name, long otherwise)
{
    const char *given = getenv(name);
    long value = given ? strtol(given, NULL, 10) : 0;
    return value > 0 ? value : otherwise;
}

static void test_random(void)
{
    long trials = setting("DPFLOW_JUDGE_TRIALS", SHORT_TRIALS), done = 0;
    struct trial t = {0}, worst = {0};
    double most = 0;
    dpf_seeded_init(&dice, "judge", (uint64_t)setting("DPFLOW_JUDGE_SEED", 1), 0);
    while (done < trials) {
        struct rig g;
        draw_form(&t);
        begin(&g, &t.form);
        for (int i = 0; i < LOTS_A_RIG; i++, done++) {
            t.again = i >= LOTS_A_RIG / 2;
            if (t.again)
                force_again(&g);
            keep_worst(&worst, &most, &t, try_lot(&g, &t));
        }
        end(&g);
    }
    printf("# %ld random trials\n", done);
    print_trial("worst", &worst, most);
}

/* Networks that are used, with the same adversary. */
static void test_real(void)
{
    static const char *const names[] = {"tiny", "dpsgd-digits", "abadi-mnist"};
    long lots = 4 + setting("DPFLOW_JUDGE_TRIALS", SHORT_TRIALS) / 600;
    struct trial t = {0}, worst = {0};
    double most = 0;
    dpf_seeded_init(&dice, "judge real", (uint64_t)setting("DPFLOW_JUDGE_SEED", 1), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rig g;
        snprintf(t.text, sizeof t.text, "%s", dpf_architecture(names[i]));
        t.form = (struct form){t.text, 2, 0, false, below(2)};
        begin(&g, &t.form);
        for (long j = 0; j < lots; j++)
            keep_worst(&worst, &most, &t, try_lot(&g, &t));
        end(&g);
    }
    print_trial("worst of real networks", &worst, most);
}

/* ---------------------------------------------------------------------------- threads */

/* Any number of threads gives the same integers. */
static void test_threads(void)
{
    static const int threads[] = {1, 2, 3, 8};
    struct trial t = {0};
    dpf_seeded_init(&dice, "judge threads", 1, 0);
    for (int net = 0; net < 12; net++) {
        int64_t *first = NULL;
        draw_form(&t);
        t.form.values = false;
        for (int i = 0; i < 4; i++) {
            struct rig g;
            struct lot l = {DPF_CLIP_FLAT, 0.1, dpf_loss_find("cross-entropy"),
                            350,           350, 0};
            t.form.threads = threads[i];
            begin(&g, &t.form);
            struct dpf_seeded r;
            dpf_seeded_init(&r, "judge threads", (uint64_t)net, 0);
            for (size_t j = 0; j < RECORDS * g.data.record_bytes / sizeof(float); j++)
                record(&g, 0)[j] = (float)dpf_seeded_normal(&r);
            take_sums(&g, &l, g.rows, g.keys, l.count, g.with);
            if (first)
                CU_ASSERT(memcmp(first, g.with, g.model.span * sizeof *first) == 0);
            int64_t *kept = g.with;
            g.with = first;
            first = kept;
            end(&g);
        }
        free(first);
    }
}

/* ----------------------------------------------------------------------- rows apart */

/* Numbers that an example's gradient of node i's weights takes, where it is kept. */
static int64_t slot_of(struct dpf_network *net, size_t i)
{
    struct dpf_node_run r = dpf_node_run_of(net, i, 0, 1);
    return r.node->parameter_count ? r.node->op->parameters->room(&r).kept : 0;
}

/* Everything that a backward left of row e: values, gradients, squares, what is kept
 * of it. How many numbers. */
static size_t take_row(struct dpf_network *net, int64_t e, double *out)
{
    size_t count = 0;
    for (size_t i = 0; i < net->model->count; i++) {
        const struct dpf_layer *l = &net->layers[i];
        int64_t record = dpf_nn_elements(&net->model->nodes[i].shape);
        for (int64_t j = 0; !net->model->nodes[i].bits && j < record; j++)
            out[count++] = (double)l->value[e * record + j];
        for (int64_t j = 0; l->gradient && l->filled && j < record; j++)
            out[count++] = (double)l->gradient[e * record + j];
        int64_t slot = slot_of(net, i);
        for (int64_t j = 0; l->kept && l->filled && j < slot; j++)
            out[count++] = (double)l->kept[e * slot + j];
    }
    out[count++] = net->squares[e];
    out[count++] = (double)net->factors[e];
    return count;
}

static void run_rows(struct rig *g, int64_t from, int64_t n, const float *d)
{
    struct dpf_network *net = &g->engine.workers[0].net;
    int64_t outputs = dpf_nn_elements(&g->model.nodes[g->model.output].shape);
    dpf_network_forward(net, n, g->data.x + (size_t)from * g->data.record_bytes, true,
                        g->keys + from);
    dpf_network_backward(net, n, d + from * outputs, DPF_CLIP_FLAT, 0.1);
}

static size_t row_numbers(const struct rig *g)
{
    size_t count = 2;
    for (size_t i = 0; i < g->model.count; i++)
        count += 2 * (size_t)dpf_nn_elements(&g->model.nodes[i].shape) +
                 (size_t)slot_of(&g->engine.workers[0].net, i);
    return count;
}

/* Whether all of n rows have the bits that they have alone. */
static bool are_apart(struct rig *g, int64_t n, const float *d)
{
    struct dpf_network *net = &g->engine.workers[0].net;
    size_t size = row_numbers(g), bad = 0;
    double *together = dpf_calloc((size_t)n * size, sizeof *together);
    double *alone = dpf_calloc(size, sizeof *alone);
    CU_ASSERT_FATAL(together && alone);
    run_rows(g, 0, n, d);
    for (int64_t e = 0; e < n; e++)
        take_row(net, e, together + (size_t)e * size);
    for (int64_t e = 0; e < n; e++) {
        const double *row = together + (size_t)e * size;
        run_rows(g, e, 1, d);
        size_t count = take_row(net, 0, alone);
        for (size_t i = 0; i < count; i++)
            bad += !(row[i] == alone[i] || (isnan(row[i]) && isnan(alone[i])));
    }
    dpf_network_zero_gradients(net);
    free(together);
    free(alone);
    return bad == 0;
}

/* The premise of the proof by itself, without a sum that could hide a last bit. */
static void test_apart(void)
{
    long nets = setting("DPFLOW_JUDGE_TRIALS", SHORT_TRIALS) / 20;
    struct trial t = {0};
    dpf_seeded_init(&dice, "judge apart", (uint64_t)setting("DPFLOW_JUDGE_SEED", 1), 0);
    for (long i = 0; i < nets; i++) {
        struct rig g;
        draw_form(&t);
        t.form.threads = 1;
        begin(&g, &t.form);
        size_t outputs = dpf_shape_elements(&g.model.nodes[g.model.output].shape);
        float *d = dpf_calloc(RECORDS * outputs, sizeof *d);
        CU_ASSERT_FATAL(d != NULL);
        for (int lot = 0; lot < 3; lot++) {
            draw_weights(&g, &t);
            draw_records(&g, &t);
            for (size_t j = 0; j < RECORDS * outputs; j++)
                d[j] = draw(below(20) ? NORMAL : (enum size)below(SIZES));
            t.lot.count = 1 + below((int)g.engine.microbatch);
            bool good = are_apart(&g, t.lot.count, d);
            if (!good)
                print_trial("NOT APART", &t, 0);
            CU_ASSERT(good);
        }
        free(d);
        end(&g);
    }
}

/* --------------------------------------------------------------------- whole training */

/* Parameters after one step on the first `count` records but record `at`. Each is in the
 * lot; the noise is that of a seed. Returns what the mechanism was made for. */
static double step_without(const char *text, int64_t count, int64_t at,
                           enum dpf_clip_rule rule, float *parameters)
{
    enum { POPULATION = 200 };
    struct rig g;
    struct form f = {text, 2, 0, false, false};
    struct dpf_training t;
    const struct dpf_epoch_report *told;
    struct dpf_training_plan plan = {
        .epochs = 1,
        .lot = POPULATION,
        .sampling = DPF_SAMPLE_POISSON,
        .loss = dpf_loss_find("cross-entropy"),
        .rule = rule,
        .clip_l2 = 0.7,
        .seed = 5,
        .noise = {.multiplier = 0.5, .population = POPULATION, .insecure = true}};
    struct dpf_optimiser sgd =
        dpf_optimiser_defaults(dpf_step_kind_find("sgd"), POPULATION * 64.0);
    begin(&g, &f);
    for (size_t i = 0; i < (size_t)count * g.data.record; i++)
        record(&g, 0)[i] = 0.3f + 0.01f * (float)(i % g.data.record);
    for (size_t i = 0; i < g.data.record; i++) /* the one that differs */
        record(&g, (size_t)count - 1)[i] = -0.2f;
    g.data.rows = (uint64_t)count;
    if (at >= 0) {
        g.data.rows--;
        memmove(record(&g, (size_t)at), record(&g, (size_t)at + 1),
                (size_t)(count - 1 - at) * g.data.record_bytes);
    }
    CU_ASSERT_FATAL(
        dpf_optimiser_init(&sgd, &dpf_kernels_ref, NULL, g.model.span, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_training_init(&t, &plan, &g.engine, &sgd, &g.data, NULL) ==
                    DPF_OK);
    CU_ASSERT(dpf_training_step(&t, &told, NULL) == DPF_OK);
    CU_ASSERT(t.seen == (int64_t)g.data.rows || t.history_count > 0);
    dpf_engine_get(&g.engine, parameters);
    double sensitivity = t.mechanism.sensitivity_l2;
    dpf_training_release(&t);
    dpf_optimiser_release(&sgd);
    end(&g);
    return sensitivity;
}

/* What one record moves parameters by in a step, where the noise cancels; less what their
 * own rounding to floats can add: two roundings of each, before and after the step. */
static void judge_step(const char *text, int64_t count, enum dpf_clip_rule rule)
{
    struct dpf_model m;
    CU_ASSERT_FATAL(dpf_model_parse(&m, text, strlen(text), "judge", NULL) == DPF_OK);
    float *a = dpf_calloc(m.span, sizeof *a), *b = dpf_calloc(m.span, sizeof *b);
    CU_ASSERT_FATAL(a && b);
    const int64_t places[] = {0, count / 2, count - 1};
    for (int i = 0; i < 3; i++) {
        long double square = 0, rounding = 0;
        double limit = step_without(text, count, -1, rule, a);
        step_without(text, count, places[i], rule, b);
        for (size_t j = 0; j < m.span; j++) {
            long double d = (long double)a[j] - (long double)b[j];
            long double ulps =
                (fabsl((long double)a[j]) + fabsl((long double)b[j]) + 1) * 0x1p-22L;
            square += d * d;
            rounding += ulps * ulps;
        }
        double ratio = (double)((sqrtl(square) - sqrtl(rounding)) / 64 / limit);
        CU_ASSERT(ratio <= 1);
        CU_ASSERT(ratio > 0.01 || rule == DPF_CLIP_LAYER); /* the record was there */
        printf("# a step of training, rule %d, without record %d of %d: moved / stated "
               "%.7f\n",
               (int)rule, (int)places[i], (int)count, ratio);
    }
    free(a);
    free(b);
    dpf_model_release(&m);
}

static void test_step(void)
{
    judge_step(dense_text, 200, DPF_CLIP_FLAT);
    judge_step(dense_text, 113, DPF_CLIP_AUTOMATIC);
    judge_step(dpf_architecture("tiny"), 150, DPF_CLIP_LAYER);
}

const char dpf_suite[] = "judge";
const struct dpf_test dpf_tests[] = {
    {"cases that once broke the claim", test_named},
    {"random networks, records, keys and lots", test_random},
    {"networks that are used", test_real},
    {"any number of threads, the same integers", test_threads},
    {"rows have the bits that they have alone", test_apart},
    {"one record in a step of training", test_step},
    {NULL, NULL},
};
