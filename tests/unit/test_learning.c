/* Optimisers by their definitions, and the whole engine: a small network learns the
 * embedded digits, plainly and with clipped gradients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/catalog.h"
#include "harness.h"
#include "kernels/loss.h"
#include "nn/geometry.h"
#include "nn/network.h"
#include "nn/optimiser.h"
#include "random/seeded.h"

static double after(const struct dpf_step_kind *kind, int steps, double start)
{
    struct dpf_optimiser o = dpf_optimiser_defaults(kind, 0.1);
    float w = (float)start;
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, 1, NULL) == DPF_OK);
    for (int i = 0; i < steps; i++) {
        float g = 2 * w; /* of w^2 */
        dpf_optimiser_begin(&o, 1);
        dpf_optimiser_update(&o, NULL, 0, 1, &w, &g);
    }
    dpf_optimiser_release(&o);
    return (double)w;
}

static void test_first_steps(void)
{
    /* worked out by hand for w = 1, gradient 2, rate 0.1 */
    CU_ASSERT_DOUBLE_EQUAL(after(dpf_step_kind_find("sgd"), 1, 1), 0.8, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(after(dpf_step_kind_find("sgd"), 2, 1), 0.64, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(after(dpf_step_kind_find("momentum"), 2, 1),
                           0.8 - 0.1 * (0.9 * 2 + 1.6), 1e-6);
    /* the first step is of 2 + 0.9 * 2, and ends at 0.62 with the gradient 1.24 */
    CU_ASSERT_DOUBLE_EQUAL(after(dpf_step_kind_find("nesterov"), 2, 1),
                           0.62 - 0.1 * (1.24 + 0.9 * (0.9 * 2 + 1.24)), 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(after(dpf_step_kind_find("adam"), 1, 1), 0.9,
                           1e-6); /* rate times the sign */
    CU_ASSERT_DOUBLE_EQUAL(after(dpf_step_kind_find("adadelta"), 1, 1),
                           1 - 0.1 * sqrt(1e-6) / sqrt(0.05 * 4 + 1e-6) * 2, 1e-7);
    CU_ASSERT(fabs(after(dpf_step_kind_find("adam"), 300, 1)) < 0.01 &&
              fabs(after(dpf_step_kind_find("momentum"), 300, 1)) < 0.01);
}

static void test_schedules(void)
{
    struct dpf_optimiser o = dpf_optimiser_defaults(dpf_step_kind_find("sgd"), 1);
    o.schedule = dpf_schedule_find("linear");
    o.schedule_steps = 10;
    o.final_rate = 0.2;
    o.step = 5;
    CU_ASSERT_DOUBLE_EQUAL(dpf_optimiser_rate(&o), 0.6, 1e-12);
    o.step = 50;
    CU_ASSERT_DOUBLE_EQUAL(dpf_optimiser_rate(&o), 0.2, 1e-12);
    o.schedule = dpf_schedule_find("cosine");
    o.step = 5;
    CU_ASSERT_DOUBLE_EQUAL(dpf_optimiser_rate(&o), 0.6, 1e-12);
    o.step = 0;
    CU_ASSERT_DOUBLE_EQUAL(dpf_optimiser_rate(&o), 1, 1e-12);
}

/* ------------------------------------------------------------------- the whole engine */

enum { TRAIN = 1437, TEST = 360, PIXELS = 64, BATCH = 32 };
static float pictures[TRAIN + TEST][PIXELS];
static int32_t labels[TRAIN + TEST];

static void load_digits(void)
{
    struct dpf_source *source;
    struct dpf_batch b;
    CU_ASSERT_FATAL(dpf_digits_open(true, true, &source, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_source_next(source, &b, TRAIN + TEST, NULL) == DPF_OK);
    CU_ASSERT_FATAL(b.rows == TRAIN + TEST);
    for (size_t i = 0; i < TRAIN + TEST; i++) {
        labels[i] = (int32_t)dpf_tensor_get(&b.tensor[1], i);
        for (size_t j = 0; j < PIXELS; j++)
            pictures[i][j] = (float)(dpf_tensor_get(&b.tensor[0], i * PIXELS + j) / 16);
    }
    dpf_batch_release(&b);
    dpf_source_destroy(&source);
}

static void step(struct dpf_network *net, struct dpf_optimiser *o, float *parameters,
                 double divisor)
{
    for (size_t i = 0; i < net->model->span; i++)
        net->gradients[i] /= (float)divisor;
    dpf_optimiser_begin(o, 1);
    dpf_optimiser_update(o, NULL, 0, net->model->span, parameters, net->gradients);
    dpf_network_zero_gradients(net);
}

static void train_epoch(struct dpf_network *net, struct dpf_optimiser *o,
                        float *parameters, enum dpf_clip_rule rule, struct dpf_seeded *r)
{
    for (int batch = 0; batch < TRAIN / BATCH; batch++) {
        static float x[BATCH][PIXELS], d[BATCH][10];
        static const uint64_t keys[BATCH];
        int32_t y[BATCH];
        for (int e = 0; e < BATCH; e++) {
            size_t pick = dpf_seeded_below(r, TRAIN);
            memcpy(x[e], pictures[pick], sizeof x[e]);
            y[e] = labels[pick];
        }
        dpf_network_forward(net, BATCH, x, true, keys);
        for (int e = 0; e < BATCH; e++) {
            struct dpf_loss_target t = {.labels = &y[e]};
            (dpf_loss_find("cross-entropy"))
                ->example(10, 1, dpf_network_output(net) + 10 * e, &t, d[e]);
        }
        dpf_network_backward(net, BATCH, d[0], rule, 1);
        step(net, o, parameters, BATCH);
    }
}

static double accuracy(struct dpf_network *net)
{
    int right = 0;
    for (int i = TRAIN; i < TRAIN + TEST; i++) {
        dpf_network_forward(net, 1, pictures[i], false, NULL);
        const float *z = dpf_network_output(net);
        int best = 0;
        for (int l = 1; l < 10; l++)
            best = z[l] > z[best] ? l : best;
        right += best == labels[i];
    }
    return right / (double)TEST;
}

static double learn(const struct dpf_step_kind *kind, double rate,
                    enum dpf_clip_rule rule)
{
    struct dpf_model m;
    struct dpf_network net;
    struct dpf_seeded r;
    const char *text = dpf_architecture("tiny");
    struct dpf_optimiser o = dpf_optimiser_defaults(kind, rate);
    load_digits();
    CU_ASSERT_FATAL(dpf_model_parse(&m, text, strlen(text), "tiny", NULL) == DPF_OK);
    float *parameters = dpf_calloc(m.span, sizeof *parameters);
    CU_ASSERT_FATAL(dpf_network_init(&net,
                                     &(struct dpf_network_setup){
                                         .model = &m,
                                         .kernels = &dpf_kernels_ref,
                                         .parameters = parameters,
                                         .capacity = BATCH,
                                         .training = true,
                                         .clipping = true,
                                     },
                                     NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_optimiser_init(&o, &dpf_kernels_ref, NULL, m.span, NULL) ==
                    DPF_OK);
    dpf_seeded_init(&r, "test learning", 1, 0);
    for (size_t i = 0; i < m.count; i++)
        for (int64_t j = 0;
             m.nodes[i].parameter_count && j < dpf_nn_elements(&m.nodes[i].parameters[0]);
             j++)
            parameters[m.nodes[i].offset[0] + (size_t)j] =
                (float)(0.1 * dpf_seeded_normal(&r));
    for (int epoch = 0; epoch < 12; epoch++)
        train_epoch(&net, &o, parameters, rule, &r);
    double result = accuracy(&net);
    dpf_optimiser_release(&o);
    dpf_network_release(&net);
    free(parameters);
    dpf_model_release(&m);
    return result;
}

static void test_learns(void)
{
    double plain = learn(dpf_step_kind_find("adam"), 0.01, DPF_CLIP_NONE);
    double clipped = learn(dpf_step_kind_find("momentum"), 0.2, DPF_CLIP_FLAT);
    printf("    digits after 12 epochs: %.1f %% plain, %.1f %% clipped\n", 100 * plain,
           100 * clipped);
    CU_ASSERT(plain > 0.9);
    CU_ASSERT(clipped > 0.85);
}

const char dpf_suite[] = "learning";
const struct dpf_test dpf_tests[] = {
    {"optimisers: first steps by hand", test_first_steps},
    {"learning rates: schedules", test_schedules},
    {"a network learns the digits, plainly and clipped", test_learns},
    {0},
};
