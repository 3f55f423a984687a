/* What a curator makes of messages and public records: principal components and the
 * coefficients of least squares, held against direct computation. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/report_stream.h"
#include "harness.h"
#include "nn/components.h"
#include "nn/expected_bits.h"
#include "nn/initialise.h"
#include "nn/report_form.h"
#include "random/seeded.h"

#include "base/banned.h"

const char dpf_suite[] = "local-models";

enum { D = 5, N = 400 };

/* Records around (1, 2, ...) whose coordinates vary by 5, 4, ..., 1. */
static void draw_records(float *x)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "components", 1, 0);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < D; k++)
            x[i * D + k] = (float)(k + 1 + (D - k) * dpf_seeded_normal(&r));
}

/* The outputs have mean 0, no correlation, variances that fall, and those of `whiten`. */
static void test_components(void)
{
    static float x[N * D];
    float w[3 * D], b[3];
    draw_records(x);
    for (int half = 0; half <= 2; half++) {
        struct dpf_components c;
        double share, whiten = half / 2.;
        CU_ASSERT_FATAL(dpf_components_init(&c, D, NULL) == DPF_OK);
        CU_ASSERT(dpf_components_add(&c, x, 100, NULL) == DPF_OK);
        CU_ASSERT(dpf_components_add(&c, x + 100 * D, N - 100, NULL) == DPF_OK);
        CU_ASSERT(dpf_components_solve(&c, 3, whiten, w, b, &share, NULL) == DPF_OK);
        CU_ASSERT(share > 0.8 && share < 1);
        double mean[3] = {0}, product[3][3] = {{0}}, last = INFINITY;
        for (int i = 0; i < N; i++) {
            double y[3];
            for (int k = 0; k < 3; k++) {
                y[k] = (double)b[k];
                for (int j = 0; j < D; j++)
                    y[k] += (double)w[k * D + j] * (double)x[i * D + j];
                mean[k] += y[k] / N;
            }
            for (int k = 0; k < 3; k++)
                for (int j = 0; j < 3; j++)
                    product[k][j] += y[k] * y[j] / N;
        }
        for (int k = 0; k < 3; k++) {
            CU_ASSERT_DOUBLE_EQUAL(mean[k], 0, 1e-4);
            for (int j = 0; j < k; j++)
                CU_ASSERT_DOUBLE_EQUAL(product[k][j], 0, 1e-3);
            if (half == 2)
                CU_ASSERT_DOUBLE_EQUAL(product[k][k], 1, 1e-3);
            CU_ASSERT(product[k][k] <= last * (1 + 1e-3));
            last = product[k][k];
        }
        dpf_components_release(&c);
    }
}

static void test_components_refused(void)
{
    struct dpf_components c;
    struct dpf_error e = {0};
    const float flat[] = {1, 2, 3, 2, 4, 6, 3, 6, 9, 0, 0, 0};
    float w[9], b[3];
    double share;
    CU_ASSERT_FATAL(dpf_components_init(&c, 3, &e) == DPF_OK);
    CU_ASSERT(dpf_components_add(&c, flat, 4, &e) == DPF_OK);
    CU_ASSERT(dpf_components_solve(&c, 4, 0, w, b, &share, &e) == DPF_USAGE);
    CU_ASSERT(dpf_components_solve(&c, 2, 0, w, b, &share, &e) == DPF_USAGE);
    CU_ASSERT(strstr(e.message, "fewer than 2") != NULL);
    dpf_components_release(&c);
    CU_ASSERT_FATAL(dpf_components_init(&c, 3, &e) == DPF_OK);
    CU_ASSERT(dpf_components_add(&c, flat, 1, &e) == DPF_OK);
    CU_ASSERT(dpf_components_solve(&c, 1, 0, w, b, &share, &e) == DPF_BAD_STREAM);
    dpf_components_release(&c);
}

/* Messages v / m with E[v v'] = a I + b u u': what is left after the diagonal was taken
 * away is b / m^2 times the sum of u u', and the moments are the sum of u code'. */
static void test_report_form(void)
{
    enum { DIM = 3, MANY = 200000 };
    const double u[DIM] = {0.6, 0, 0.8}, mean = 0.5, spread = sqrt(1 - 0.25);
    const double square = 0.25; /* of v.u, which is always 0.5 here */
    struct dpf_seeded r;
    struct dpf_report_form f;
    double noise[2];
    dpf_seeded_init(&r, "report-form", 2, 0);
    CU_ASSERT_FATAL(dpf_report_form_init(&f, DIM, 2, (double[]){mean, square}, NULL) ==
                    DPF_OK);
    for (int i = 0; i < MANY; i++) {
        /* 0.5 u and the rest across it, in a random direction */
        double angle = 6.283185307179586 * dpf_seeded_unit(&r);
        const double across[2][DIM] = {{0, 1, 0}, {-0.8, 0, 0.6}};
        float x[DIM], code[2] = {1, -1};
        for (int k = 0; k < DIM; k++)
            x[k] = (float)((mean * u[k] + spread * (cos(angle) * across[0][k] +
                                                    sin(angle) * across[1][k])) /
                           mean);
        CU_ASSERT(dpf_report_form_add(&f, x, code, 1, NULL) == DPF_OK);
    }
    dpf_report_form_finish(&f, noise);
    double even = (1 - square) / (DIM - 1), rank_one = square - even;
    for (int i = 0; i < DIM; i++)
        for (int k = 0; k < DIM; k++)
            CU_ASSERT_DOUBLE_EQUAL(f.gram[i * DIM + k] / MANY,
                                   rank_one * u[i] * u[k] / (mean * mean), 0.03);
    for (int i = 0; i < DIM; i++) {
        CU_ASSERT_DOUBLE_EQUAL(f.moment[2 * i] / MANY, u[i], 0.02);
        CU_ASSERT_DOUBLE_EQUAL(f.moment[2 * i + 1] / MANY, -u[i], 0.02);
    }
    CU_ASSERT(noise[0] > 0 && noise[1] > 0);
    dpf_report_form_release(&f);
}

/* Public records count by their weight: a weight twice as large moves the form twice as
 * far, and the messages' own sums stay. */
static void test_known_records(void)
{
    const float message[] = {2, 0, 0, 2}, codes[] = {1, 0, 0, 1};
    const float known[] = {0.6f, 0.8f}, code[] = {1, 0};
    double gram[3], moment[3];
    for (int k = 0; k < 3; k++) {
        struct dpf_report_form f;
        double noise[2];
        CU_ASSERT_FATAL(dpf_report_form_init(&f, 2, 2, (double[]){0.5, 0.5}, NULL) ==
                        DPF_OK);
        CU_ASSERT(dpf_report_form_add(&f, message, codes, 2, NULL) == DPF_OK);
        if (k)
            CU_ASSERT(dpf_report_form_add_known(&f, known, code, 1, k, NULL) == DPF_OK);
        dpf_report_form_finish(&f, noise);
        gram[k] = f.gram[1];
        moment[k] = f.moment[2];
        dpf_report_form_release(&f);
    }
    CU_ASSERT(gram[1] > gram[0] && moment[1] > moment[0]);
    CU_ASSERT_DOUBLE_EQUAL(gram[2] - gram[0], 2 * (gram[1] - gram[0]), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(moment[2] - moment[0], 2 * (moment[1] - moment[0]), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(gram[1] / moment[1], 0.48 / 0.8, 1e-6);
}

/* Vectors of another length, and what is no number, are no messages. */
static void test_sift(void)
{
    float x[5][2] = {{2, 0}, {1, 0}, {NAN, 2}, {0, -2}, {1.2f, 1.6f}};
    float codes[5][2] = {{1, 0}, {1, 0}, {1, 0}, {1, -1}, {NAN, 0}};
    struct dpf_report_stream r = {
        .x = 0, .y = 1, .values = 2, .outputs = 2, .moments = {0.5, 0.3}};
    struct dpf_batch b = {.rows = 5, .count = 1};
    const struct dpf_shape shape = {2, {5, 2}};
    CU_ASSERT_FATAL(dpf_tensor_view(&b.tensor[0], DPF_F32, &shape, x, NULL) == DPF_OK);
    r.codes = codes[0];
    CU_ASSERT(dpf_report_stream_sift(&r, &b) == 2);
    CU_ASSERT(x[0][0] == 2 && x[1][0] == 0 && x[1][1] == -2);
    CU_ASSERT(codes[1][0] == 1 && codes[1][1] == -1);
}

static void test_form_refused(void)
{
    struct dpf_report_form f;
    static const double bad[][2] = {{0, 0.5}, {1.5, 0.5}, {0.5, 0}, {NAN, 0.5}, {0.5, 2}};
    for (int i = 0; i < 5; i++) {
        CU_ASSERT(dpf_report_form_init(&f, 4, 2, bad[i], NULL) == DPF_BAD_STREAM);
        dpf_report_form_release(&f);
    }
}

/* Every filter of a convolution sums to 0; dense layers are as he-normal has them. */
static void test_centred(void)
{
    static const char text[] = "input x 3x8x8\nc = conv x out=6 kernel=3\nf = flatten c\n"
                               "y = dense f out=4\noutput y\n";
    struct dpf_model m;
    CU_ASSERT_FATAL(dpf_model_parse(&m, text, sizeof text - 1, "text", NULL) == DPF_OK);
    float *centred = calloc(m.span + 1, sizeof *centred);
    float *normal = calloc(m.span + 1, sizeof *normal);
    CU_ASSERT(dpf_initialise(&m, "he-centred", 3, centred));
    CU_ASSERT(dpf_initialise(&m, "he-normal", 3, normal));
    const struct dpf_node *conv = dpf_model_find(&m, "c"),
                          *dense = dpf_model_find(&m, "y");
    for (int o = 0; o < 6; o++) {
        double sum = 0, shift = (double)(normal[conv->offset[0] + (size_t)o * 27] -
                                         centred[conv->offset[0] + (size_t)o * 27]);
        for (size_t i = 0; i < 27; i++) {
            size_t at = conv->offset[0] + (size_t)o * 27 + i;
            sum += (double)centred[at];
            CU_ASSERT_DOUBLE_EQUAL(normal[at] - centred[at], shift, 1e-6);
        }
        CU_ASSERT_DOUBLE_EQUAL(sum, 0, 1e-5);
    }
    CU_ASSERT(centred[dense->offset[0]] == normal[dense->offset[0]]);
    free(centred);
    free(normal);
    dpf_model_release(&m);
}

/* Only a network that starts with one dense layer over bits can be averaged. */
static void test_expected_refused(void)
{
    static const char *const texts[] = {
        "input x 8\ny = dense x out=2\noutput y\n",
        "input x 8 bits\ny = dense x out=2 bias=0\noutput y\n"};
    const double rates[4] = {0.9, 0.1, 0.9, 0.1};
    for (int i = 0; i < 2; i++) {
        struct dpf_model m;
        struct dpf_error e = {0};
        CU_ASSERT_FATAL(dpf_model_parse(&m, texts[i], strlen(texts[i]), "text", &e) ==
                        DPF_OK);
        float *parameters = calloc(m.span + 1, sizeof *parameters);
        CU_ASSERT(dpf_expect_bits(&m, rates, parameters, &e) == DPF_USAGE);
        free(parameters);
        dpf_model_release(&m);
    }
}

const struct dpf_test dpf_tests[] = {
    {"components: no mean, no correlation, falling variances", test_components},
    {"components: what cannot be is refused", test_components_refused},
    {"messages: gram and moments of the truth", test_report_form},
    {"public records count by their weight", test_known_records},
    {"what is no message is left out", test_sift},
    {"moments of no messages are refused", test_form_refused},
    {"centred filters sum to 0", test_centred},
    {"networks without a first layer over bits are refused", test_expected_refused},
    {NULL, NULL}};
