/* U-Nets and autoencoders that take their sizes from the records: any size parses, the
 * output has the positions of the input, and gradients on odd sizes are right. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/fitted.h"
#include "nn/geometry.h"
#include "nn/network.h"
#include "random/seeded.h"

const char dpf_suite[] = "fitted";

/* The network for records [channels, size...], with a label for each position. */
static void fit(struct dpf_model *m, const char *arch, uint64_t channels,
                const uint64_t *size, int dimensions, uint64_t classes)
{
    struct dpf_error e = {0};
    struct dpf_field x = {.name = "x", .dtype = DPF_F32};
    struct dpf_field y = {.name = "mask", .dtype = DPF_U8, .classes = classes};
    x.shape = (struct dpf_shape){.rank = dimensions + 1, .dim = {channels}};
    y.shape.rank = dimensions;
    for (int d = 0; d < dimensions; d++)
        x.shape.dim[1 + d] = y.shape.dim[d] = size[d];
    enum dpf_status status = dpf_model_fit(m, arch, &x, &y, &e);
    if (status != DPF_OK)
        printf("    %s\n", e.message);
    CU_ASSERT_FATAL(status == DPF_OK);
}

/* Whether input and output are as the records and their labels are. */
static bool has_positions(const struct dpf_model *m, uint64_t channels,
                          const uint64_t *size, int dimensions, uint64_t classes)
{
    const struct dpf_shape *in = &m->nodes[0].shape, *out = &m->nodes[m->output].shape;
    bool good = in->rank == dimensions + 1 && out->rank == in->rank &&
                in->dim[0] == channels && out->dim[0] == classes;
    for (int d = 0; good && d < dimensions; d++)
        good = in->dim[1 + d] == size[d] && out->dim[1 + d] == size[d];
    return good;
}

static int poolings(const struct dpf_model *m)
{
    int count = 0;
    while (1) {
        char name[16];
        snprintf(name, sizeof name, "p%d", count + 1);
        if (!dpf_model_find(m, name))
            return count;
        count++;
    }
}

static void test_volumes(void)
{
    static const struct {
        uint64_t size[3];
        int poolings; /* halved while 8 positions are left, four times at most */
    } cases[] = {{{13, 17, 11}, 2}, {{48, 64, 48}, 4}, {{15, 15, 15}, 2},
                 {{5, 7, 5}, 1},    {{1, 17, 23}, 2},  {{1, 1, 1}, 0},
                 {{2, 2, 2}, 0},    {{3, 1, 40}, 2},   {{31, 33, 29}, 3},
                 {{4, 4, 4}, 1},    {{155, 7, 9}, 4},  {{2, 9, 31}, 2}};
    static const char *const archs[] = {"unet:4", "autoencoder:8:0.3"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; k < 2; k++) {
            struct dpf_model m;
            fit(&m, archs[k], 2, cases[i].size, 3, 3);
            CU_ASSERT(has_positions(&m, 2, cases[i].size, 3, 3));
            if (poolings(&m) != cases[i].poolings)
                printf("    case %zu: %d poolings\n", i, poolings(&m));
            CU_ASSERT(poolings(&m) == cases[i].poolings);
            dpf_model_release(&m);
        }
}

/* Every size of pictures up to 24, and those of the task of the test. */
static void test_pictures(void)
{
    for (uint64_t h = 1; h <= 24; h++)
        for (uint64_t w = 1; w <= 24; w++) {
            struct dpf_model m;
            fit(&m, "unet:2", 1, (uint64_t[]){h, w}, 2, 4);
            CU_ASSERT(has_positions(&m, 1, (uint64_t[]){h, w}, 2, 4));
            dpf_model_release(&m);
        }
}

/* ---- gradients ---- */

enum { N = 2 };

struct bench {
    struct dpf_model model;
    struct dpf_network net;
    float *parameters, *x, *weights;
    int64_t outputs;
};

static void fill(struct dpf_seeded *r, float *x, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(scale * dpf_seeded_normal(r));
}

static void begin(struct bench *b, const struct dpf_kernels *k, const uint64_t *size,
                  int dimensions)
{
    struct dpf_context *context;
    struct dpf_seeded r;
    fit(&b->model, "unet:2", 2, size, dimensions, 3);
    const struct dpf_model *m = &b->model;
    int64_t in = dpf_nn_elements(&m->nodes[0].shape);
    b->outputs = N * dpf_nn_elements(&m->nodes[m->output].shape);
    b->parameters = dpf_calloc(m->span, sizeof *b->parameters);
    b->x = dpf_calloc((size_t)(N * in), sizeof *b->x);
    b->weights = dpf_calloc((size_t)b->outputs, sizeof *b->weights);
    CU_ASSERT_FATAL(k->open(0, &context, NULL) == DPF_OK);
    const struct dpf_network_setup setup = {.model = m,
                                            .kernels = k,
                                            .context = context,
                                            .parameters = b->parameters,
                                            .capacity = N,
                                            .training = true};
    CU_ASSERT_FATAL(dpf_network_init(&b->net, &setup, NULL) == DPF_OK);
    dpf_seeded_init(&r, "test fitted", 8, 0);
    for (size_t i = 0; i < m->count; i++)
        for (int d = 0; d < m->nodes[i].parameter_count; d++) {
            float *p = b->parameters + m->nodes[i].offset[d];
            int64_t count = dpf_nn_elements(&m->nodes[i].parameters[d]);
            bool scale = m->nodes[i].name[0] == 'g' && d == 0;
            fill(&r, p, count, 0.3);
            for (int64_t j = 0; scale && j < count; j++)
                p[j] += 1; /* a scale near 0 would make the next norm steep */
        }
    fill(&r, b->x, N * in, 1);
    fill(&r, b->weights, b->outputs, 1);
}

static void end(struct bench *b)
{
    const struct dpf_kernels *k = b->net.kernels;
    struct dpf_context *context = b->net.context;
    dpf_network_release(&b->net);
    k->close(context);
    free(b->parameters);
    free(b->x);
    free(b->weights);
    dpf_model_release(&b->model);
}

static double loss(struct bench *b)
{
    static const uint64_t keys[N] = {1, 2};
    double sum = 0;
    dpf_network_forward(&b->net, N, b->x, true, keys);
    for (int64_t i = 0; i < b->outputs; i++)
        sum += (double)b->weights[i] * (double)dpf_network_output(&b->net)[i];
    return sum;
}

/* The slope along `direction` by finite differences. */
static double slope(struct bench *b, const double *direction, double step)
{
    size_t span = b->model.span;
    float *saved = dpf_calloc(span, sizeof *saved);
    double ends[2];
    memcpy(saved, b->parameters, span * sizeof *saved);
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < span; i++)
            b->parameters[i] =
                (float)((double)saved[i] + (side ? -step : step) * direction[i]);
        ends[side] = loss(b);
    }
    memcpy(b->parameters, saved, span * sizeof *saved);
    free(saved);
    return (ends[0] - ends[1]) / (2 * step);
}

/* Along the part of the gradient that is one node's, and along all of it, the loss rises
 * by the squared norm of that part. */
static void check_slopes(const struct dpf_kernels *k, const uint64_t *size,
                         int dimensions)
{
    struct bench b;
    begin(&b, k, size, dimensions);
    const struct dpf_model *m = &b.model;
    double *g = dpf_calloc(m->span, sizeof *g), *part = dpf_calloc(m->span, sizeof *part);
    loss(&b);
    dpf_network_backward(&b.net, N, b.weights, DPF_CLIP_NONE, 0);
    for (size_t i = 0; i < m->span; i++)
        g[i] = (double)b.net.gradients[i];
    int measured = 0;
    for (size_t n = 0; n <= m->count; n++) { /* each node, then all */
        double square = 0;
        for (size_t i = 0; i < m->span; i++) {
            part[i] = n == m->count ? g[i] : 0;
            for (int d = 0; n < m->count && d < m->nodes[n].parameter_count; d++) {
                size_t from = m->nodes[n].offset[d];
                size_t to = from + dpf_shape_elements(&m->nodes[n].parameters[d]);
                part[i] = i >= from && i < to ? g[i] : part[i];
            }
            square += part[i] * part[i];
        }
        if (n < m->count && !m->nodes[n].parameter_count)
            continue;
        double found = slope(&b, part, 3e-4 / sqrt(square));
        if (!(fabs(found - square) <= 0.01 * square))
            printf("    node %s: slope %g, gradient %g\n",
                   n < m->count ? m->nodes[n].name : "(all)", found, square);
        CU_ASSERT(square > 1e-6 && fabs(found - square) <= 0.01 * square);
        measured++;
    }
    CU_ASSERT(measured > 10);
    free(g);
    free(part);
    end(&b);
}

static void test_gradients(void)
{
    check_slopes(&dpf_kernels_ref, (uint64_t[]){5, 7, 5}, 3);
    check_slopes(dpf_kernels_cpu(), (uint64_t[]){5, 7, 5}, 3);
    check_slopes(dpf_kernels_cpu(), (uint64_t[]){9, 11}, 2);
}

const struct dpf_test dpf_tests[] = {
    {"volumes of any size keep their positions", test_volumes},
    {"pictures of every size up to 24", test_pictures},
    {"gradients of odd sizes by finite differences", test_gradients},
    {NULL, NULL},
};
