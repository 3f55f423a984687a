/* Principal components of masks against the eigenvalues of their covariance matrix, and
 * the coder as a network: what it encodes, decodes and loses. */
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "kernels/kernels.h"
#include "nn/engine.h"
#include "nn/mask_coder.h"
#include "random/seeded.h"

#include "base/banned.h"

enum { CLASSES = 3, HEIGHT = 4, WIDTH = 5, PLACES = HEIGHT * WIDTH, MASKS = 9 };
enum { VALUES = CLASSES * PLACES };

static const struct dpf_shape mask_shape = {.rank = 2, .dim = {HEIGHT, WIDTH}};

/* A shape that all masks share, and changes of their own; the last one is the first. */
static void draw(unsigned char *labels)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "masks", 7, 0);
    for (int i = 0; i < MASKS - 1; i++)
        for (int p = 0; p < PLACES; p++)
            labels[i * PLACES + p] = dpf_seeded_below(&r, 3) == 0
                                         ? (unsigned char)dpf_seeded_below(&r, CLASSES)
                                         : (unsigned char)(p / 7 % CLASSES);
    memcpy(labels + (MASKS - 1) * PLACES, labels, PLACES);
}

static void start(struct dpf_mask_coder *c, unsigned char *labels)
{
    const struct dpf_shape all = {.rank = 3, .dim = {MASKS, HEIGHT, WIDTH}};
    struct dpf_tensor t;
    draw(labels);
    CU_ASSERT_FATAL(dpf_tensor_init(&t, DPF_U8, &all, NULL) == DPF_OK);
    memcpy(t.data, labels, MASKS * PLACES);
    CU_ASSERT_FATAL(dpf_mask_coder_init(c, CLASSES, PLACES, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_mask_coder_add(c, &t, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_mask_coder_solve(c, NULL) == DPF_OK);
    dpf_tensor_release(&t);
}

static void one_hot(const unsigned char *labels, float *y)
{
    memset(y, 0, VALUES * sizeof *y);
    for (int p = 0; p < PLACES; p++)
        y[labels[p] * PLACES + p] = 1;
}

/* The covariance matrix of all values, 60 x 60, by the definition. */
static void test_variances(void)
{
    struct dpf_mask_coder c;
    unsigned char labels[MASKS * PLACES];
    double mean[VALUES] = {0}, *covariance = calloc(VALUES * VALUES, sizeof *covariance);
    double found[VALUES];
    float y[MASKS][VALUES];
    start(&c, labels);
    CU_ASSERT_FATAL(covariance != NULL);
    for (int i = 0; i < MASKS; i++) {
        one_hot(labels + i * PLACES, y[i]);
        for (int v = 0; v < VALUES; v++)
            mean[v] += (double)y[i][v] / MASKS;
    }
    for (int a = 0; a < VALUES; a++)
        for (int b = 0; b < VALUES; b++)
            for (int i = 0; i < MASKS; i++)
                covariance[a * VALUES + b] +=
                    ((double)y[i][a] - mean[a]) * ((double)y[i][b] - mean[b]) / MASKS;
    CU_ASSERT_FATAL(LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'N', 'U', VALUES, covariance, VALUES,
                                   found) == 0);
    for (int k = 0; k < MASKS; k++)
        CU_ASSERT_DOUBLE_EQUAL(c.variances[k], found[VALUES - 1 - k], 1e-10);
    /* one mask twice, and their mean taken off */
    CU_ASSERT_EQUAL(dpf_mask_coder_rank(&c), MASKS - 2);
    free(covariance);
    dpf_mask_coder_release(&c);
}

/* Values of a node of the coder for one input of its network. */
static void run(const struct dpf_model *m, const float *parameters, const char *node,
                const float *x, size_t values, float *out)
{
    const struct dpf_engine_setup setup = {
        .model = m, .kernels = &dpf_kernels_ref, .threads = 1, .every_value = true};
    struct dpf_engine engine;
    uint32_t row = 0;
    const struct dpf_dataset data = {.dtype = DPF_F32,
                                     .record = values,
                                     .record_bytes = values * sizeof *x,
                                     .rows = 1,
                                     .x = (unsigned char *)x};
    const struct dpf_lot lot = {.data = &data, .rows = &row, .count = 1};
    const struct dpf_lot_values want = {
        .node = (size_t)(dpf_model_find(m, node) - m->nodes), .values = out};
    CU_ASSERT_FATAL(dpf_engine_init(&engine, &setup, NULL) == DPF_OK);
    dpf_engine_put(&engine, parameters);
    CU_ASSERT_FATAL(dpf_engine_values(&engine, &lot, &want, NULL) == DPF_OK);
    dpf_engine_release(&engine);
}

/* With all components a mask comes back; with fewer, the mean squared distance is the
 * variance that they leave out. Codes lie in the unit ball. */
static void test_there_and_back(void)
{
    const struct dpf_mask_noise none = {.deviation = 0};
    struct dpf_mask_coder c;
    unsigned char labels[MASKS * PLACES];
    start(&c, labels);
    for (size_t k = 1; k <= MASKS - 2; k++) {
        struct dpf_model m;
        float *parameters, y[VALUES], back[VALUES], code[MASKS];
        double distance = 0, longest = 0;
        CU_ASSERT_FATAL(dpf_mask_coder_write(&c, &mask_shape, k, &none, &m, &parameters,
                                             NULL) == DPF_OK);
        for (int i = 0; i < MASKS; i++) {
            double norm = 0;
            one_hot(labels + i * PLACES, y);
            run(&m, parameters, "y", y, VALUES, back);
            run(&m, parameters, "code", y, VALUES, code);
            for (size_t j = 0; j < k; j++)
                norm += (double)code[j] * (double)code[j];
            for (int v = 0; v < VALUES; v++)
                distance += pow((double)y[v] - (double)back[v], 2) / MASKS;
            longest = fmax(longest, sqrt(norm));
        }
        CU_ASSERT_DOUBLE_EQUAL(distance, dpf_mask_coder_distance(&c, k, &none), 1e-5);
        CU_ASSERT_DOUBLE_EQUAL(longest, 1, 1e-5);
        CU_ASSERT(k < MASKS - 2 || distance < 1e-5);
        free(parameters);
        dpf_model_release(&m);
    }
    dpf_mask_coder_release(&c);
}

/* L_PCA by simulation: masks, codes, noise on them, what is decoded. */
static double simulate(const struct dpf_mask_coder *c, const unsigned char *labels,
                       size_t k, const struct dpf_mask_noise *noise)
{
    enum { ROUNDS = 400 };
    struct dpf_model m;
    float *parameters, y[VALUES], back[VALUES], code[MASKS];
    struct dpf_seeded r;
    double distance = 0;
    dpf_seeded_init(&r, "noise on codes", 3, k);
    CU_ASSERT_FATAL(
        dpf_mask_coder_write(c, &mask_shape, k, noise, &m, &parameters, NULL) == DPF_OK);
    const struct dpf_node *h = dpf_model_find(&m, "h");
    const float *weight = parameters + h->offset[0], *bias = parameters + h->offset[1];
    for (int i = 0; i < MASKS; i++) {
        one_hot(labels + i * PLACES, y);
        run(&m, parameters, "code", y, VALUES, code);
        for (int round = 0; round < ROUNDS; round++) {
            float noisy[MASKS];
            for (size_t j = 0; j < k; j++)
                noisy[j] =
                    (float)((double)code[j] + noise->deviation * dpf_seeded_normal(&r));
            for (int v = 0; v < VALUES; v++) {
                back[v] = bias[v];
                for (size_t j = 0; j < k; j++)
                    back[v] += weight[(size_t)v * k + j] * noisy[j];
                distance += pow((double)y[v] - (double)back[v], 2) / MASKS / ROUNDS;
            }
        }
    }
    free(parameters);
    dpf_model_release(&m);
    return distance;
}

static void test_noise(void)
{
    struct dpf_mask_coder c;
    unsigned char labels[MASKS * PLACES];
    start(&c, labels);
    for (int shrink = 0; shrink < 2; shrink++)
        for (size_t k = 1; k <= MASKS - 2; k += 3) {
            const struct dpf_mask_noise noise = {.deviation = 0.3, .shrink = shrink};
            double expected = dpf_mask_coder_distance(&c, k, &noise);
            CU_ASSERT(fabs(simulate(&c, labels, k, &noise) / expected - 1) < 0.05);
        }
    dpf_mask_coder_release(&c);
}

/* Eq. 7: with a fixed radius, components whose variance is above that of the noise. */
static void test_choice(void)
{
    struct dpf_mask_coder c;
    unsigned char labels[MASKS * PLACES];
    start(&c, labels);
    for (size_t k = 1; k < MASKS - 2; k++) {
        double between = (c.variances[k - 1] + c.variances[k]) / 2;
        const struct dpf_mask_noise noise = {.deviation = sqrt(between), .radius = 1};
        CU_ASSERT_EQUAL(dpf_mask_coder_choose(&c, MASKS, &noise), k);
        CU_ASSERT_EQUAL(dpf_mask_coder_choose(&c, 1, &noise), 1);
    }
    const struct dpf_mask_noise much = {.deviation = 1e6, .radius = 1};
    CU_ASSERT_EQUAL(dpf_mask_coder_choose(&c, MASKS, &much), 1);
    dpf_mask_coder_release(&c);
}

static void test_refused(void)
{
    struct dpf_error e = {.status = DPF_OK};
    struct dpf_mask_coder c;
    struct dpf_tensor t;
    const struct dpf_shape two = {.rank = 2, .dim = {2, 4}};
    CU_ASSERT(dpf_mask_coder_init(&c, 1, 4, &e) == DPF_USAGE);
    CU_ASSERT(dpf_mask_coder_init(&c, 3, 0, &e) == DPF_USAGE);
    CU_ASSERT_FATAL(dpf_mask_coder_init(&c, 3, 4, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_tensor_init(&t, DPF_U8, &two, NULL) == DPF_OK);
    memset(t.data, 0, 8);
    CU_ASSERT(dpf_mask_coder_solve(&c, &e) == DPF_BAD_STREAM); /* no masks */
    CU_ASSERT_FATAL(dpf_mask_coder_add(&c, &t, NULL) == DPF_OK);
    CU_ASSERT(dpf_mask_coder_solve(&c, &e) == DPF_BAD_STREAM); /* all the same */
    ((unsigned char *)t.data)[5] = 3;
    CU_ASSERT(dpf_mask_coder_add(&c, &t, &e) == DPF_BAD_STREAM); /* no such class */
    CU_ASSERT(strstr(e.message, "outside its 3 classes") != NULL);
    dpf_tensor_release(&t);
    dpf_mask_coder_release(&c);
}

const char dpf_suite[] = "masks";
const struct dpf_test dpf_tests[] = {
    {"variances of masks are the eigenvalues of their covariance", test_variances},
    {"masks are encoded, and decoded as far as components reach", test_there_and_back},
    {"L_PCA is what noise on codes leaves", test_noise},
    {"Eq. 7 chooses components above the noise", test_choice},
    {"masks that have no components are refused", test_refused},
    {NULL, NULL}};
