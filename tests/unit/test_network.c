/* Networks on the reference kernels: gradients of whole graphs, and clipped sums against
 * what single examples give one by one. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/geometry.h"
#include "nn/network.h"
#include "random/seeded.h"

/* Every layer once, with a skip connection and a node that three others read. */
static const char everything[] = "input x 2x6x6\n"
                                 "a = conv x out=4 kernel=3 pad=1\n"
                                 "b = tanh a\n"
                                 "g = group-norm b groups=2\n"
                                 "l = lrn g window=3 base=1 alpha=0.3 beta=0.75\n"
                                 "p = max-pool l kernel=2\n"
                                 "q = average-pool g kernel=2\n"
                                 "j = concat p q\n"
                                 "t = conv-transpose j out=3 kernel=2 stride=2\n"
                                 "u = upsample q factor=2\n"
                                 "c = concat t u\n"
                                 "k = concat c b\n"
                                 "s = sigmoid k\n"
                                 "d = dropout s rate=0.25\n"
                                 "f = flatten d\n"
                                 "h = dense f out=5\n"
                                 "m = min-max h\n"
                                 "r = relu m\n"
                                 "y = dense r out=3 bias=0\n"
                                 "z = softmax y\n"
                                 "output z\n";
enum { N = 4, OUT = 3, IN = 2 * 6 * 6 };

struct fixture {
    struct dpf_model model;
    struct dpf_network net;
    struct dpf_seeded random;
    float x[N * IN], d[N * OUT];
};

static void fill(struct dpf_seeded *r, float *x, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(scale * dpf_seeded_normal(r));
}

static void begin(struct fixture *f, const char *text)
{
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_model_parse(&f->model, text, strlen(text), "net", &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_network_init(&f->net, &f->model, &dpf_kernels_ref, N, &e) ==
                    DPF_OK);
    dpf_seeded_init(&f->random, "test network", 3, 0);
    for (size_t i = 0; i < f->model.count; i++)
        for (int k = 0; k < f->model.nodes[i].parameter_count; k++)
            fill(&f->random, f->net.layers[i].parameters[k],
                 dpf_nn_elements(&f->model.nodes[i].parameters[k]), 0.4);
    fill(&f->random, f->x, N * IN, 1);
    fill(&f->random, f->d, N * OUT, 1);
}

static void end(struct fixture *f)
{
    dpf_network_release(&f->net);
    dpf_model_release(&f->model);
}

/* All gradients of parameters, one behind the other; heap. */
static double *gradients(const struct fixture *f, size_t *count)
{
    *count = (size_t)dpf_model_parameter_count(&f->model);
    double *all = dpf_calloc(*count, sizeof *all);
    size_t at = 0;
    for (size_t i = 0; i < f->model.count; i++)
        for (int k = 0; k < f->model.nodes[i].parameter_count; k++) {
            int64_t n = dpf_nn_elements(&f->model.nodes[i].parameters[k]);
            for (int64_t j = 0; j < n; j++)
                all[at++] = (double)f->net.layers[i].gradients[k][j];
        }
    return all;
}

/* Move every parameter by h times its entry in `direction`. */
static void move(struct fixture *f, const double *direction, double h)
{
    for (size_t i = 0, at = 0; i < f->model.count; i++)
        for (int k = 0; k < f->model.nodes[i].parameter_count; k++) {
            int64_t n = dpf_nn_elements(&f->model.nodes[i].parameters[k]);
            for (int64_t j = 0; j < n; j++)
                f->net.layers[i].parameters[k][j] += (float)(h * direction[at++]);
        }
}

static double loss(struct fixture *f)
{
    double sum = 0;
    f->net.step = 0; /* the same dropout each time */
    dpf_network_forward(&f->net, N, f->x, true);
    for (int i = 0; i < N * OUT; i++)
        sum += (double)f->d[i] * (double)dpf_network_output(&f->net)[i];
    return sum;
}

/* Along the gradient, the loss must rise by the gradient's squared norm. */
static void test_slope(void)
{
    struct fixture f;
    size_t count;
    begin(&f, everything);
    loss(&f);
    dpf_network_backward(&f.net, N, f.d, DPF_CLIP_NONE, 0);
    double *g = gradients(&f, &count), square = 0;
    for (size_t i = 0; i < count; i++)
        square += g[i] * g[i];
    CU_ASSERT(square > 1e-3);
    double h = 2e-3 / sqrt(square);
    move(&f, g, h);
    double above = loss(&f);
    move(&f, g, -2 * h);
    double below = loss(&f);
    double slope = (above - below) / (2 * h);
    if (fabs(slope - square) > 5e-3 * square)
        printf("    slope %g, gradient %g\n", slope, square);
    CU_ASSERT(fabs(slope - square) <= 5e-3 * square);
    free(g);
    end(&f);
}

/* One example alone, clipped by hand; without dropout, whose mask depends on the place.
 */
static void clipped_alone(struct fixture *f, int e, enum dpf_clip_rule rule, double clip,
                          double *sum)
{
    size_t count, at = 0;
    dpf_network_zero_gradients(&f->net);
    dpf_network_forward(&f->net, 1, f->x + e * IN, true);
    dpf_network_backward(&f->net, 1, f->d + e * OUT, DPF_CLIP_NONE, 0);
    double *g = gradients(f, &count), whole = 0;
    for (size_t i = 0; i < count; i++)
        whole += g[i] * g[i];
    for (size_t i = 0; i < f->model.count; i++) {
        size_t n = 0;
        double part = 0;
        for (int k = 0; k < f->model.nodes[i].parameter_count; k++)
            n += (size_t)dpf_nn_elements(&f->model.nodes[i].parameters[k]);
        for (size_t j = 0; j < n; j++)
            part += g[at + j] * g[at + j];
        double norm = sqrt(rule == DPF_CLIP_LAYER ? part : whole);
        for (size_t j = 0; j < n; j++, at++)
            sum[at] += g[at] * (norm > clip ? clip / norm : 1);
    }
    free(g);
}

static void check_clipping(enum dpf_clip_rule rule, double clip)
{
    struct fixture f;
    size_t count;
    char text[sizeof everything + 8];
    snprintf(text, sizeof text, "%s", everything);
    memcpy(strstr(text, "rate=0.25"), "rate=0.00", 9);
    begin(&f, text);
    double *want = dpf_calloc((size_t)dpf_model_parameter_count(&f.model), sizeof *want);
    for (int e = 0; e < N; e++)
        clipped_alone(&f, e, rule, clip, want);
    /* all at once, and in microbatches that add up */
    for (int step = N; step >= 1; step -= 3) {
        int64_t clipped = 0;
        dpf_network_zero_gradients(&f.net);
        for (int e = 0; e < N; e += step) {
            int n = N - e < step ? N - e : step;
            dpf_network_forward(&f.net, n, f.x + e * IN, true);
            clipped += dpf_network_backward(&f.net, n, f.d + e * OUT, rule, clip);
        }
        double *got = gradients(&f, &count), worst = 0, scale = 0;
        for (size_t i = 0; i < count; i++) {
            worst = fmax(worst, fabs(got[i] - want[i]));
            scale = fmax(scale, fabs(want[i]));
        }
        CU_ASSERT(worst <= 1e-5 * scale && scale > 0);
        CU_ASSERT(rule == DPF_CLIP_NONE ? clipped == 0 : clipped > 0);
        free(got);
    }
    free(want);
    end(&f);
}

static void test_flat_clipping(void)
{
    check_clipping(DPF_CLIP_FLAT, 0.2);
}

static void test_layer_clipping(void)
{
    check_clipping(DPF_CLIP_LAYER, 0.05);
}

static void test_plain_sum(void)
{
    check_clipping(DPF_CLIP_NONE, 1e30);
}

/* Packed bits and the same bits as numbers make the same network. */
static void test_packed(void)
{
    enum { BITS = IN, ROW = (BITS + 7) / 8 };
    struct fixture f, g;
    size_t count;
    uint8_t bits[N * ROW] = {0};
    begin(
        &f,
        "input x 72 bits\na = dense x out=4\nr = relu a\ny = dense r out=3\noutput y\n");
    begin(&g, "input x 72\na = dense x out=4\nr = relu a\ny = dense r out=3\noutput y\n");
    for (int i = 0; i < N * BITS; i++) {
        int bit = f.x[i] > 0;
        g.x[i] = (float)bit;
        bits[i / BITS * ROW + i % BITS / 8] |= (uint8_t)(bit << (i % BITS % 8));
    }
    for (int rule = DPF_CLIP_NONE; rule <= DPF_CLIP_LAYER; rule++) {
        dpf_network_zero_gradients(&f.net);
        dpf_network_zero_gradients(&g.net);
        dpf_network_forward(&f.net, N, bits, true);
        dpf_network_forward(&g.net, N, g.x, true);
        int64_t a = dpf_network_backward(&f.net, N, f.d, (enum dpf_clip_rule)rule, 0.5);
        int64_t b = dpf_network_backward(&g.net, N, g.d, (enum dpf_clip_rule)rule, 0.5);
        double *left = gradients(&f, &count), *right = gradients(&g, &count), worst = 0;
        for (size_t i = 0; i < count; i++)
            worst = fmax(worst, fabs(left[i] - right[i]));
        CU_ASSERT(a == b && worst < 1e-5);
        free(left);
        free(right);
    }
    end(&f);
    end(&g);
}

static void test_unavailable(void)
{
    static const char text[] = "input x 4\ny = ball x\noutput y\n";
    struct dpf_model m;
    struct dpf_network net;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_model_parse(&m, text, strlen(text), "net", &e) == DPF_OK);
    CU_ASSERT(dpf_network_init(&net, &m, &dpf_kernels_ref, 1, &e) == DPF_UNAVAILABLE);
    CU_ASSERT_STRING_EQUAL(e.message, "backend 'ref' cannot run 'y' (ball)");
    dpf_model_release(&m);
}

const char dpf_suite[] = "network";
const struct dpf_test dpf_tests[] = {
    {"the loss rises along its gradient, through every layer", test_slope},
    {"flat clipping equals single examples clipped by hand", test_flat_clipping},
    {"clipping by layer equals single examples clipped by hand", test_layer_clipping},
    {"without clipping, single examples add up", test_plain_sum},
    {"packed bits equal numbers", test_packed},
    {"what a backend cannot run is refused", test_unavailable},
    {0},
};
