/* Windows over records that are larger or smaller than a network's input: against the
 * records themselves, against the network without windows, and against plain loops. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/evaluation.h"
#include "nn/windows.h"
#include "random/seeded.h"
#include "stream_fixture.h"

#include "base/banned.h"

const char dpf_suite[] = "windows";

static const char identity[] = "input x 2x4x6x5\ny = conv x out=2 kernel=1\noutput y\n";
static const char volume_net[] = "input x 2x4x6x5\n"
                                 "c = conv x out=3 kernel=3 pad=1\n"
                                 "r = tanh c\n"
                                 "y = conv r out=3 kernel=3 pad=1\n"
                                 "output y\n";
static const char picture_net[] = "input x 2x7x4\n"
                                  "c = conv x out=3 kernel=3 pad=1\n"
                                  "y = tanh c\n"
                                  "output y\n";

struct bench {
    struct dpf_model model;
    struct dpf_engine engine;
    struct dpf_windows windows;
    struct dpf_field x;
    struct dpf_dataset data;
    float *parameters;
    uint32_t rows[8];
    struct dpf_lot lot;
};

static void begin(struct bench *b, const char *text, int threads)
{
    struct dpf_seeded r;
    *b = (struct bench){.rows = {0, 1, 2, 3, 4, 5, 6, 7}};
    CU_ASSERT_FATAL(dpf_model_parse(&b->model, text, strlen(text), "net", NULL) ==
                    DPF_OK);
    const struct dpf_engine_setup setup = {.model = &b->model,
                                           .kernels = &dpf_kernels_ref,
                                           .threads = threads,
                                           .microbatch = 3};
    CU_ASSERT_FATAL(dpf_engine_init(&b->engine, &setup, NULL) == DPF_OK);
    b->parameters = dpf_calloc(b->model.span, sizeof *b->parameters);
    dpf_seeded_init(&r, "test windows", 5, 0);
    for (size_t i = 0; i < b->model.span; i++)
        b->parameters[i] = (float)dpf_seeded_normal(&r);
    if (text == identity)
        for (size_t i = 0; i < b->model.span; i++) /* [[1, 0], [0, 1]], then biases */
            b->parameters[i] = i == 0 || i == 3 ? 1 : 0;
    dpf_engine_put(&b->engine, b->parameters);
}

static void end(struct bench *b)
{
    dpf_engine_release(&b->engine);
    dpf_model_release(&b->model);
    free(b->parameters);
}

/* Records of this shape with random values, in a lot. */
static enum dpf_status open_records(struct bench *b, struct dpf_shape shape,
                                    uint64_t count, struct dpf_error *e)
{
    struct dpf_seeded r;
    b->x = (struct dpf_field){.name = "x", .dtype = DPF_F32, .shape = shape};
    b->data = (struct dpf_dataset){
        .dtype = DPF_F32, .record = dpf_shape_elements(&shape), .rows = count};
    b->data.record_bytes = b->data.record * sizeof(float);
    enum dpf_status status =
        dpf_windows_init(&b->windows, &b->model, b->model.output, &b->x, e);
    if (status != DPF_OK)
        return status;
    float *x = dpf_calloc(count * b->data.record, sizeof *x);
    dpf_seeded_init(&r, "test records", 6, 0);
    for (uint64_t i = 0; i < count * b->data.record; i++)
        x[i] = i % 17 ? (float)dpf_seeded_normal(&r) : -0.0F;
    b->data.x = (unsigned char *)x;
    b->lot = (struct dpf_lot){.data = &b->data, .rows = b->rows, .count = (int64_t)count};
    return DPF_OK;
}

static void close_records(struct bench *b)
{
    free(b->data.x);
    dpf_windows_release(&b->windows);
}

static float *computed(struct bench *b)
{
    uint64_t all = (uint64_t)b->lot.count * dpf_shape_elements(&b->windows.values);
    float *values = dpf_calloc(all, sizeof *values);
    memset(values, 0xff, all * sizeof *values); /* each must be written */
    CU_ASSERT(dpf_windows_compute(&b->windows, &b->engine, &b->lot, values, NULL) ==
              DPF_OK);
    return values;
}

/* A network that gives what it reads gives the whole record. */
static void test_identity(void)
{
    static const struct dpf_shape shapes[] = {
        {4, {2, 13, 17, 11}}, {4, {2, 4, 6, 5}},  {4, {2, 5, 7, 6}}, {4, {2, 3, 17, 1}},
        {4, {2, 1, 1, 1}},    {4, {2, 48, 6, 9}}, {4, {2, 2, 3, 64}}};
    struct bench b;
    begin(&b, identity, 2);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        CU_ASSERT_FATAL(open_records(&b, shapes[i], 3, NULL) == DPF_OK);
        CU_ASSERT(dpf_shape_equal(&b.windows.values, &shapes[i]));
        float *values = computed(&b);
        const float *x = (const void *)b.data.x;
        double worst = 0;
        for (uint64_t k = 0; k < 3 * b.data.record; k++)
            worst = fmax(worst, fabs((double)values[k] - (double)x[k]) /
                                    fmax(fabs((double)x[k]), 1e-30));
        CU_ASSERT(worst < 8 * 6e-8); /* eight windows, each rounded twice at most */
        free(values);
        close_records(&b);
    }
    end(&b);
}

/* Windows as large as the records change no bit, not even the sign of a zero. */
static void test_one_window(void)
{
    for (int k = 0; k < 3; k++) {
        const char *const texts[] = {identity, volume_net, picture_net};
        struct bench b;
        begin(&b, texts[k], 2);
        CU_ASSERT_FATAL(open_records(&b, b.model.nodes[0].shape, 7, NULL) == DPF_OK);
        CU_ASSERT(dpf_windows_count(&b.windows) == 1);
        float *values = computed(&b);
        uint64_t all = 7 * dpf_shape_elements(&b.windows.values);
        float *plain = dpf_calloc(all, sizeof *plain);
        const struct dpf_lot_values want = {.node = b.model.output, .values = plain};
        CU_ASSERT(dpf_engine_values(&b.engine, &b.lot, &want, NULL) == DPF_OK);
        CU_ASSERT(memcmp(values, plain, all * sizeof *plain) == 0);
        free(plain);
        free(values);
        close_records(&b);
        end(&b);
    }
}

/* ---- plain loops ---- */

/* Where windows start along a dimension, by the words of the header. */
static int starts(int64_t size, int64_t window, int64_t *at)
{
    int count = 0;
    if (size <= window) {
        at[0] = -((window - size) / 2);
        return 1;
    }
    for (int64_t p = 0; p + window < size; p += window / 2)
        at[count++] = p;
    at[count++] = size - window;
    return count;
}

static double triangle(int64_t i, int64_t window)
{
    return (double)(i < window - 1 - i ? i + 1 : window - i);
}

/* Value (channel, p) of record r, from all windows that hold it, each computed alone. */
static void add_windows(struct bench *b, const int64_t *size, uint64_t r, double *sum,
                        double *weights)
{
    const struct dpf_shape *in = &b->model.nodes[0].shape;
    int64_t w[3] = {1, 1, 1}, at[3][64];
    int n[3], channels = (int)in->dim[0];
    for (int d = 0; d < in->rank - 1; d++)
        w[4 - in->rank + d] = (int64_t)in->dim[1 + d];
    for (int d = 0; d < 3; d++)
        n[d] = starts(size[d], w[d], at[d]);
    int64_t cells = w[0] * w[1] * w[2], places = size[0] * size[1] * size[2];
    const float *x = (const float *)(const void *)b->data.x + r * b->data.record;
    uint64_t outputs = b->model.nodes[b->model.output].shape.dim[0];
    float *cut = dpf_calloc((size_t)cells * (size_t)channels, sizeof *cut);
    float *got = dpf_calloc((size_t)cells * outputs, sizeof *got);
    struct dpf_dataset data = {.dtype = DPF_F32, .rows = 1, .x = (unsigned char *)cut};
    data.record = (uint64_t)(cells * channels);
    data.record_bytes = data.record * sizeof *cut;
    const struct dpf_lot lot = {.data = &data, .rows = b->rows, .count = 1};
    const struct dpf_lot_values want = {.node = b->model.output, .values = got};
    for (int k = 0; k < n[0] * n[1] * n[2]; k++) {
        const int64_t o[3] = {at[0][k / (n[1] * n[2])], at[1][k / n[2] % n[1]],
                              at[2][k % n[2]]};
        for (int pass = 0; pass < 2; pass++) {
            for (int64_t i = 0; i < cells; i++) {
                const int64_t c[3] = {i / (w[1] * w[2]), i / w[2] % w[1], i % w[2]};
                const int64_t p[3] = {o[0] + c[0], o[1] + c[1], o[2] + c[2]};
                bool in_record = true;
                for (int d = 0; d < 3; d++)
                    in_record = in_record && p[d] >= 0 && p[d] < size[d];
                int64_t place = (p[0] * size[1] + p[1]) * size[2] + p[2];
                for (int64_t l = 0; pass == 0 && l < channels; l++)
                    cut[l * cells + i] = in_record ? x[l * places + place] : 0;
                double weight =
                    triangle(c[0], w[0]) * triangle(c[1], w[1]) * triangle(c[2], w[2]);
                for (int64_t l = 0; pass && in_record && l < (int64_t)outputs; l++) {
                    sum[l * places + place] += weight * (double)got[l * cells + i];
                    weights[l * places + place] += weight;
                }
            }
            if (pass == 0)
                CU_ASSERT(dpf_engine_values(&b->engine, &lot, &want, NULL) == DPF_OK);
        }
    }
    free(cut);
    free(got);
}

static void hold_against_loops(const char *text, struct dpf_shape shape, int threads)
{
    struct bench b;
    begin(&b, text, threads);
    CU_ASSERT_FATAL(open_records(&b, shape, 2, NULL) == DPF_OK);
    int64_t size[3] = {1, 1, 1};
    for (int d = 1; d < shape.rank; d++)
        size[3 - shape.rank + d] = (int64_t)shape.dim[d];
    float *values = computed(&b);
    uint64_t all = dpf_shape_elements(&b.windows.values);
    for (uint64_t r = 0; r < 2; r++) {
        double *sum = dpf_calloc(all, sizeof *sum);
        double *weights = dpf_calloc(all, sizeof *weights), worst = 0, least = 1;
        add_windows(&b, size, r, sum, weights);
        for (uint64_t i = 0; i < all; i++) {
            least = fmin(least, weights[i]);
            worst = fmax(worst, fabs((double)values[r * all + i] - sum[i] / weights[i]));
        }
        CU_ASSERT(least >= 1); /* each position has a window */
        if (!(worst < 2e-5))
            printf("    off by %g\n", worst);
        CU_ASSERT(worst < 2e-5);
        free(sum);
        free(weights);
    }
    free(values);
    close_records(&b);
    end(&b);
}

static void test_loops(void)
{
    hold_against_loops(volume_net, (struct dpf_shape){4, {2, 9, 13, 11}}, 2);
    hold_against_loops(volume_net, (struct dpf_shape){4, {2, 3, 14, 4}}, 1);
    hold_against_loops(picture_net, (struct dpf_shape){3, {2, 17, 23}}, 3);
    hold_against_loops(picture_net, (struct dpf_shape){3, {2, 4, 9}}, 1);
}

/* ---- scores ---- */

/* Losses and Dice of whole records are the same with and without windows of their size,
 * and windows of labels that are read as one-hot work as those of numbers. */
static void test_evaluation(void)
{
    static const char text[] = "input x 3x4x6x5\ny = conv x out=3 kernel=3 pad=1\n"
                               "output y\n";
    struct bench b;
    struct dpf_evaluation with, without;
    uint8_t labels[4][120];
    int32_t targets[4][120];
    begin(&b, text, 2);
    b.x = (struct dpf_field){
        .name = "x", .dtype = DPF_U8, .classes = 3, .shape = {3, {4, 6, 5}}};
    b.data = (struct dpf_dataset){.dtype = DPF_U8,
                                  .record = 120,
                                  .record_bytes = 120,
                                  .one_hot = 3,
                                  .rows = 4,
                                  .x = &labels[0][0],
                                  .labels = &targets[0][0],
                                  .positions = 120,
                                  .classes = 3};
    for (int i = 0; i < 480; i++) {
        labels[i / 120][i % 120] = (uint8_t)(i * i % 7 % 3);
        targets[i / 120][i % 120] = i * i % 11 % 3;
    }
    CU_ASSERT_FATAL(dpf_windows_init(&b.windows, &b.model, b.model.output, &b.x, NULL) ==
                    DPF_OK);
    const struct dpf_loss *loss = dpf_loss_find("voxel-dice");
    CU_ASSERT_FATAL(dpf_evaluation_init(&with, &b.engine, &b.windows, loss, NULL) ==
                    DPF_OK);
    CU_ASSERT_FATAL(dpf_evaluation_init(&without, &b.engine, NULL, loss, NULL) == DPF_OK);
    CU_ASSERT(dpf_evaluation_add(&with, &b.data, NULL) == DPF_OK);
    CU_ASSERT(dpf_evaluation_add(&without, &b.data, NULL) == DPF_OK);
    CU_ASSERT(with.loss_sum == without.loss_sum && with.loss_sum > 0);
    CU_ASSERT(with.score.positions == 480 && with.score.hits == without.score.hits);
    dpf_score_finish(&with.score);
    dpf_score_finish(&without.score);
    CU_ASSERT(with.score.dice_mean == without.score.dice_mean);
    dpf_evaluation_release(&with);
    dpf_evaluation_release(&without);
    dpf_windows_release(&b.windows);
    end(&b);
}

static void test_refusals(void)
{
    static const char vector[] = "input x 2x4x6x5\nf = flatten x\ny = dense f out=2\n"
                                 "output y\n";
    static const char smaller[] = "input x 2x4x6x4\ny = max-pool x kernel=2\noutput y\n";
    static const char flat[] = "input x 9\ny = dense x out=2\noutput y\n";
    const struct dpf_shape volume = {4, {2, 8, 8, 8}};
    struct dpf_error e = {0};
    struct bench b;
    begin(&b, vector, 1);
    CU_ASSERT(refused(open_records(&b, volume, 1, &e), DPF_USAGE, &e, "node 'y' is 2"));
    end(&b);
    begin(&b, smaller, 1);
    CU_ASSERT(
        refused(open_records(&b, volume, 1, &e), DPF_USAGE, &e, "node 'y' is 2x2x3x2"));
    end(&b);
    begin(&b, flat, 1);
    CU_ASSERT(refused(open_records(&b, volume, 1, &e), DPF_USAGE, &e, "pictures or"));
    end(&b);
    begin(&b, picture_net, 1);
    CU_ASSERT(refused(open_records(&b, volume, 1, &e), DPF_USAGE, &e, "2x8x8x8"));
    end(&b);
}

const struct dpf_test dpf_tests[] = {
    {"a network that copies gives the record, of any size", test_identity},
    {"one window changes no bit", test_one_window},
    {"windows against plain loops", test_loops},
    {"losses and Dice of whole records", test_evaluation},
    {"what has no windows is refused", test_refusals},
    {NULL, NULL},
};
