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
                                 "v = reshape f shape=6x6x11\n"
                                 "e = leaky-relu v\n"
                                 "w = flatten e\n"
                                 "n = noise w sigma=0.5\n"
                                 "aa = slice n from=7 count=300\n"
                                 "ab = slice n from=290 count=106\n"
                                 "ac = concat ab aa\n"
                                 "h = dense ac out=5\n"
                                 "m = min-max h\n"
                                 "i = relu m\n"
                                 "r = cap i\n"
                                 "y = dense r out=4 bias=0\n"
                                 "o = ball y\n"
                                 "z = softmax o\n"
                                 "output z\n";
/* Energy models with conditions, read by two of them, as layers of a network. */
static const char conditional[] = "input x 2x6x6\n"
                                  "f = flatten x\n"
                                  "i = dense f out=40\n"
                                  "t = tanh i\n"
                                  "v = slice t from=0 count=30\n"
                                  "u = slice t from=28 count=12\n"
                                  "w = reshape v shape=2x5x3\n"
                                  "c = conv w u out=4 kernel=2 visible=1\n"
                                  "r = relu c\n"
                                  "g = flatten r\n"
                                  "d = dense g u out=5 visible=1\n"
                                  "h = tanh d\n"
                                  "y = dense h out=3\n"
                                  "z = softmax y\n"
                                  "output z\n";
enum { N = 4, OUT = 3, IN = 2 * 6 * 6 };

static const uint64_t keys[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

struct fixture {
    struct dpf_model model;
    struct dpf_network net;
    float *parameters;
    struct dpf_seeded random;
    float x[N * IN], d[N * OUT];
};

static void fill(struct dpf_seeded *r, float *x, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(scale * dpf_seeded_normal(r));
}

static void begin_on(struct fixture *f, const char *text, const struct dpf_kernels *k)
{
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_model_parse(&f->model, text, strlen(text), "net", &e) == DPF_OK);
    f->parameters = dpf_calloc(f->model.span, sizeof *f->parameters);
    struct dpf_context *context;
    CU_ASSERT_FATAL(k->open(0, &context, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_network_init(&f->net,
                                     &(struct dpf_network_setup){
                                         .model = &f->model,
                                         .kernels = k,
                                         .context = context,
                                         .parameters = f->parameters,
                                         .capacity = N,
                                         .training = true,
                                         .clipping = true,
                                     },
                                     &e) == DPF_OK);
    dpf_seeded_init(&f->random, "test network", 3, 0);
    for (size_t i = 0; i < f->model.count; i++)
        for (int d = 0; d < f->model.nodes[i].parameter_count; d++)
            fill(&f->random, f->parameters + f->model.nodes[i].offset[d],
                 dpf_nn_elements(&f->model.nodes[i].parameters[d]), 0.4);
    fill(&f->random, f->x, N * IN, 1);
    fill(&f->random, f->d, N * OUT, 1);
}

static void begin(struct fixture *f, const char *text)
{
    begin_on(f, text, &dpf_kernels_ref);
}

static void end(struct fixture *f)
{
    const struct dpf_kernels *k = f->net.kernels;
    struct dpf_context *context = f->net.context;
    dpf_network_release(&f->net);
    k->close(context);
    free(f->parameters);
    dpf_model_release(&f->model);
}

/* All gradients of parameters, one behind the other (gaps are 0); heap. */
static double *gradients(const struct fixture *f, size_t *count)
{
    *count = f->model.span;
    double *all = dpf_calloc(*count, sizeof *all);
    for (size_t i = 0; i < *count; i++)
        all[i] = (double)f->net.gradients[i];
    return all;
}

/* Move every parameter by h times its entry in `direction`. */
static void move(struct fixture *f, const double *direction, double h)
{
    for (size_t i = 0; i < f->model.span; i++)
        f->parameters[i] += (float)(h * direction[i]);
}

static double loss(struct fixture *f)
{
    double sum = 0;
    dpf_network_forward(&f->net, N, f->x, true, keys);
    for (int i = 0; i < N * OUT; i++)
        sum += (double)f->d[i] * (double)dpf_network_output(&f->net)[i];
    return sum;
}

/* By how much the loss rises along `direction`, by differences. */
static double slope_along(struct fixture *f, const double *direction, double square)
{
    double h = 2e-3 / sqrt(square);
    move(f, direction, h);
    double above = loss(f);
    move(f, direction, -2 * h);
    double below = loss(f);
    move(f, direction, h);
    return (above - below) / (2 * h);
}

/* Along the gradient, the loss must rise by the gradient's squared norm: along all of it
 * or, from `from` to `to`, along that of some parameters. */
static void check_slope(struct fixture *f, const double *all, size_t from, size_t to,
                        double tolerance)
{
    double *g = dpf_calloc(f->model.span, sizeof *g), square = 0;
    for (size_t i = from; i < to; i++) {
        g[i] = all[i];
        square += g[i] * g[i];
    }
    CU_ASSERT_FATAL(square > 1e-5);
    double slope = slope_along(f, g, square);
    if (fabs(slope - square) > tolerance * square)
        printf("    slope %g, gradient %g\n", slope, square);
    CU_ASSERT(fabs(slope - square) <= tolerance * square);
    free(g);
}

static void test_slope(void)
{
    static const char *const texts[] = {everything, conditional};
    for (int i = 0; i < 2; i++) {
        struct fixture f;
        size_t count;
        begin(&f, texts[i]);
        loss(&f);
        dpf_network_backward(&f.net, N, f.d, DPF_CLIP_NONE, 0);
        double *g = gradients(&f, &count);
        check_slope(&f, g, 0, count, 5e-3);
        free(g);
        end(&f);
    }
}

/* Weights, biases and weights of conditions one by one, on both backends; the visible
 * units' own parameters have no gradient but that of the energy. */
static void check_each_slope(const struct dpf_kernels *k)
{
    struct fixture f;
    size_t count;
    begin_on(&f, conditional, k);
    loss(&f);
    dpf_network_backward(&f.net, N, f.d, DPF_CLIP_NONE, 0);
    double *g = gradients(&f, &count);
    for (size_t i = 0; i < f.model.count; i++) {
        const struct dpf_node *n = &f.model.nodes[i];
        for (int d = 0; d < n->parameter_count; d++) {
            size_t to = n->offset[d] + (size_t)dpf_nn_elements(&n->parameters[d]);
            if (d != 2 && d != DPF_VISIBLE_CONDITION)
                check_slope(&f, g, n->offset[d], to, 2e-2);
            else
                for (size_t j = n->offset[d]; j < to; j++)
                    CU_ASSERT(g[j] == 0);
        }
    }
    free(g);
    end(&f);
}

static void test_each_slope(void)
{
    check_each_slope(&dpf_kernels_ref);
    check_each_slope(dpf_kernels_cpu());
}

/* One example alone, at its place in the lot, clipped by hand. */
static void clipped_alone(struct fixture *f, int e, enum dpf_clip_rule rule, double clip,
                          double *sum)
{
    size_t count;
    dpf_network_zero_gradients(&f->net);
    dpf_network_forward(&f->net, 1, f->x + e * IN, true, keys + e);
    dpf_network_backward(&f->net, 1, f->d + e * OUT, DPF_CLIP_NONE, 0);
    double *g = gradients(f, &count), whole = 0;
    for (size_t i = 0; i < count; i++)
        whole += g[i] * g[i];
    for (size_t i = 0; i < f->model.count; i++) {
        const struct dpf_node *n = &f->model.nodes[i];
        double part = 0;
        if (!n->parameter_count)
            continue;
        int last = n->parameter_count - 1;
        size_t start = n->offset[0];
        size_t end = n->offset[last] + (size_t)dpf_nn_elements(&n->parameters[last]);
        for (size_t j = start; j < end; j++)
            part += g[j] * g[j];
        double norm = sqrt(rule == DPF_CLIP_LAYER ? part : whole);
        double factor = rule == DPF_CLIP_AUTOMATIC ? clip / (norm + 0.01)
                        : norm > clip              ? clip / norm
                                                   : 1;
        for (size_t j = start; j < end; j++)
            sum[j] += g[j] * factor;
    }
    free(g);
}

static void check_clipping_on(const struct dpf_kernels *k, const char *text,
                              enum dpf_clip_rule rule, double clip)
{
    struct fixture f;
    size_t count;
    begin_on(&f, text, k);
    double *want = dpf_calloc(f.model.span, sizeof *want);
    for (int e = 0; e < N; e++)
        clipped_alone(&f, e, rule, clip, want);
    /* all at once, and in microbatches that add up */
    for (int step = N; step >= 1; step -= 3) {
        int64_t clipped = 0;
        dpf_network_zero_gradients(&f.net);
        for (int e = 0; e < N; e += step) {
            int n = N - e < step ? N - e : step;
            dpf_network_forward(&f.net, n, f.x + e * IN, true, keys + e);
            clipped += dpf_network_backward(&f.net, n, f.d + e * OUT, rule, clip);
        }
        double *got = gradients(&f, &count), worst = 0, scale = 0;
        for (size_t i = 0; i < count; i++) {
            worst = fmax(worst, fabs(got[i] - want[i]));
            scale = fmax(scale, fabs(want[i]));
        }
        CU_ASSERT(worst <= 1e-4 * scale && scale > 0); /* norms are up to 2^-14 above */
        CU_ASSERT(rule == DPF_CLIP_NONE ? clipped == 0 : clipped > 0);
        free(got);
    }
    free(want);
    end(&f);
}

/* Examples' gradients are computed twice from here on, where the backend can do so. */
static void keep_nothing(struct fixture *f)
{
    for (size_t i = 0; f->net.kernels == dpf_kernels_cpu() && i < f->model.count; i++) {
        f->net.kernels->release(f->net.context, f->net.layers[i].kept);
        f->net.layers[i].kept = NULL;
    }
}

/* Each way of taking norms must give the same: force it where it applies. */
static void check_ways(const struct dpf_kernels *k, const char *text)
{
    struct fixture f;
    size_t count;
    double *kept = NULL;
    begin_on(&f, text, k);
    for (int again = 0; again < 2; again++) {
        if (again)
            keep_nothing(&f);
        dpf_network_zero_gradients(&f.net);
        dpf_network_forward(&f.net, N, f.x, true, keys);
        dpf_network_backward(&f.net, N, f.d, DPF_CLIP_FLAT, 0.2);
        double *got = gradients(&f, &count), worst = 0, scale = 0;
        for (size_t i = 0; kept && i < count; i++) {
            worst = fmax(worst, fabs(got[i] - kept[i]));
            scale = fmax(scale, fabs(kept[i]));
        }
        CU_ASSERT(worst <= 2e-6 * scale);
        if (!kept)
            kept = got;
        else
            free(got);
    }
    free(kept);
    end(&f);
}

static void check_clipping(enum dpf_clip_rule rule, double clip)
{
    static const char *const texts[] = {everything, conditional};
    for (int i = 0; i < 2; i++) {
        check_clipping_on(&dpf_kernels_ref, texts[i], rule, clip);
        check_clipping_on(dpf_kernels_cpu(), texts[i], rule, clip);
    }
}

static void test_flat_clipping(void)
{
    check_clipping(DPF_CLIP_FLAT, 0.2);
}

static void test_layer_clipping(void)
{
    check_clipping(DPF_CLIP_LAYER, 0.05);
}

static void test_automatic_clipping(void)
{
    check_clipping(DPF_CLIP_AUTOMATIC, 0.2);
}

static void test_plain_sum(void)
{
    check_clipping(DPF_CLIP_NONE, 1e30);
}

static void test_norm_ways(void)
{
    check_ways(&dpf_kernels_ref, everything);
    check_ways(dpf_kernels_cpu(), everything);
    check_ways(dpf_kernels_cpu(), conditional);
}

/* Where large terms cancel, a gradient in single precision is mostly rounding. It must
 * not let an example pass with more than it may have. */
static void test_cancelling(void)
{
    enum { CHANNELS = 8, IN_VALUES = 8 * 8 * CHANNELS, OUT_VALUES = 6 * 6 * CHANNELS };
    enum { EXAMPLES = 4 };
    struct fixture f;
    static float x[EXAMPLES * IN_VALUES], d[EXAMPLES * OUT_VALUES];
    const double clip = 1;
    begin_on(&f, "input x 8x8x8\ny = conv x out=8 kernel=3 bias=0\noutput y\n",
             dpf_kernels_cpu());
    for (int i = 0; i < EXAMPLES * IN_VALUES; i++)
        x[i] = (float)(1000 + 0.5 * dpf_seeded_normal(&f.random));
    for (int i = 0; i < EXAMPLES * OUT_VALUES; i++)
        d[i] = i / CHANNELS % 2 ? 1 : -1; /* by place: what is common to x cancels */
    keep_nothing(&f);
    for (int e = 0; e < EXAMPLES; e++) {
        dpf_network_zero_gradients(&f.net);
        dpf_network_forward(&f.net, 1, x + e * IN_VALUES, true, keys);
        dpf_network_backward(&f.net, 1, d + e * OUT_VALUES, DPF_CLIP_FLAT, clip);
        double square = 0;
        for (size_t i = 0; i < f.model.span; i++)
            square += (double)f.net.gradients[i] * (double)f.net.gradients[i];
        CU_ASSERT(sqrt(square) <= clip * (1 + 1e-5) && square > 0);
    }
    end(&f);
}

/* An example whose gradient is not finite is left out; the others are as without it. */
static void check_not_finite(const char *text)
{
    struct fixture f;
    size_t count;
    static const int without[] = {0, 2, 3};
    begin_on(&f, text, dpf_kernels_cpu());
    double *want = dpf_calloc(f.model.span, sizeof *want);
    for (int i = 0; i < 3; i++)
        clipped_alone(&f, without[i], DPF_CLIP_FLAT, 0.2, want);
    f.x[1 * IN + 5] = NAN;
    dpf_network_zero_gradients(&f.net);
    dpf_network_forward(&f.net, N, f.x, true, keys);
    CU_ASSERT(dpf_network_backward(&f.net, N, f.d, DPF_CLIP_FLAT, 0.2) >= 1);
    double *got = gradients(&f, &count), worst = 0, scale = 0;
    for (size_t i = 0; i < count; i++) {
        worst = fmax(worst, isfinite(got[i]) ? fabs(got[i] - want[i]) : INFINITY);
        scale = fmax(scale, fabs(want[i]));
    }
    CU_ASSERT(worst <= 1e-4 * scale);
    free(got);
    free(want);
    end(&f);
}

static void test_not_finite(void)
{
    check_not_finite(everything);
    check_not_finite(conditional);
}

/* The first layer's gradient over packed bits stands [in, out]; turn it around. */
static void turn_first_layer(struct fixture *f)
{
    const struct dpf_shape *shape = &f->model.nodes[1].parameters[0];
    static bool turned;
    uint64_t rows = turned ? shape->dim[1] : shape->dim[0];
    uint64_t columns = turned ? shape->dim[0] : shape->dim[1];
    float copy[IN * 4], *g = f->net.gradients + f->model.nodes[1].offset[0];
    memcpy(copy, g, sizeof copy);
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++)
            g[c * rows + r] = copy[r * columns + c];
    turned = !turned;
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
    const float *turned = g.parameters + g.model.nodes[1].offset[0];
    for (int i = 0; i < BITS; i++) /* the same weights, the other way round */
        for (int u = 0; u < 4; u++)
            f.parameters[f.model.nodes[1].offset[0] + (size_t)(i * 4 + u)] =
                turned[u * BITS + i];
    for (int rule = DPF_CLIP_NONE; rule <= DPF_CLIP_LAYER; rule++) {
        dpf_network_zero_gradients(&f.net);
        dpf_network_zero_gradients(&g.net);
        dpf_network_forward(&f.net, N, bits, true, keys);
        dpf_network_forward(&g.net, N, g.x, true, keys);
        int64_t a = dpf_network_backward(&f.net, N, f.d, (enum dpf_clip_rule)rule, 0.5);
        int64_t b = dpf_network_backward(&g.net, N, g.d, (enum dpf_clip_rule)rule, 0.5);
        turn_first_layer(&f);
        double *left = gradients(&f, &count), *right = gradients(&g, &count), worst = 0;
        for (size_t i = 0; i < count; i++)
            worst = fmax(worst, fabs(left[i] - right[i]));
        CU_ASSERT(a == b && worst < 1e-5);
        turn_first_layer(&f);
        free(left);
        free(right);
    }
    end(&f);
    end(&g);
}

/* What stands in a stream is channels first; inside it is not. */
static void test_layout(void)
{
    struct fixture f;
    float host[N * 2 * 6 * 6], flat[N * 72];
    begin(&f, "input x 2x6x6\nr = relu x\nq = flatten r\ny = dense q out=3\noutput y\n");
    dpf_network_forward(&f.net, N, f.x, false, NULL);
    dpf_network_read(&f.net, 0, N, host);
    CU_ASSERT(memcmp(host, f.x, sizeof host) == 0);
    dpf_network_read(&f.net, 2, N, flat);
    int wrong = 0;
    for (int i = 0; i < N * 72; i++)
        wrong += flat[i] != (f.x[i] > 0 ? f.x[i] : 0);
    CU_ASSERT(wrong == 0);
    end(&f);
}

const char dpf_suite[] = "network";
const struct dpf_test dpf_tests[] = {
    {"the loss rises along its gradient, through every layer", test_slope},
    {"so it does along the gradient of each parameter of energy models", test_each_slope},
    {"flat clipping equals single examples clipped by hand", test_flat_clipping},
    {"clipping by layer equals single examples clipped by hand", test_layer_clipping},
    {"automatic clipping equals single examples scaled by hand", test_automatic_clipping},
    {"gradients kept and computed again agree", test_norm_ways},
    {"a norm that cancels does not let a gradient pass", test_cancelling},
    {"an example without a finite gradient is left out", test_not_finite},
    {"without clipping, single examples add up", test_plain_sum},
    {"packed bits equal numbers", test_packed},
    {"values are read as they stand in streams", test_layout},
    {0},
};
