/* Layer-wise relevance propagation: against the paper's equations taken literally, with
 * every message from neuron to neuron written down, and by what it promises: sums stay
 * the same from layer to layer. */
#include "nn/relevance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/geometry.h"
#include "nn/ops/window.h"
#include "random/seeded.h"

#include "base/banned.h"

const char dpf_suite[] = "relevance";

enum { N = 3, MOST = 4096 };

/* ------------------------------------------------------------------------- a network */

struct fixture {
    struct dpf_model model;
    struct dpf_network net;
    struct dpf_relevance relevance;
    float *parameters, *x, *output;
    int64_t in, out;
};

static void fill(struct dpf_seeded *r, float *x, int64_t count, double scale)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(scale * dpf_seeded_normal(r));
}

/* Random weights of a size that keeps values moderate, random inputs. */
static void begin(struct fixture *f, const char *text, const struct dpf_kernels *k,
                  const struct dpf_relevance_plan *plan, int64_t n)
{
    struct dpf_error e = {0};
    struct dpf_seeded random;
    CU_ASSERT_FATAL(dpf_model_parse(&f->model, text, strlen(text), "net", &e) == DPF_OK);
    f->parameters = dpf_alloc_aligned(f->model.span * sizeof *f->parameters);
    CU_ASSERT_FATAL(f->parameters != NULL);
    memset(f->parameters, 0, f->model.span * sizeof *f->parameters);
    dpf_seeded_init(&random, "test relevance", 1, 0);
    for (size_t i = 0; i < f->model.count; i++)
        for (int d = 0; d < f->model.nodes[i].parameter_count; d++) {
            const struct dpf_shape *s = &f->model.nodes[i].parameters[d];
            double fan = (double)dpf_nn_elements(s) / (double)s->dim[0];
            fill(&random, f->parameters + f->model.nodes[i].offset[d], dpf_nn_elements(s),
                 d == 0 ? sqrt(2 / fan) : 0.2);
        }
    struct dpf_context *context;
    CU_ASSERT_FATAL(k->open(0, &context, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_network_init(&f->net,
                                     &(struct dpf_network_setup){
                                         .model = &f->model,
                                         .kernels = k,
                                         .context = context,
                                         .parameters = f->parameters,
                                         .capacity = n,
                                         .every_value = true,
                                         .relevance = true,
                                     },
                                     &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_relevance_init(&f->relevance, &f->net, plan, &e) == DPF_OK);
    f->in = dpf_nn_elements(&f->model.nodes[0].shape);
    f->out = dpf_nn_elements(&f->model.nodes[f->model.output].shape);
    f->x = dpf_calloc((size_t)(n * f->in), sizeof *f->x);
    f->output = dpf_calloc((size_t)(n * f->out), sizeof *f->output);
    CU_ASSERT_FATAL(f->x != NULL && f->output != NULL);
    fill(&random, f->x, n * f->in, 1); /* as packed bits: as good as any */
    dpf_network_forward(&f->net, n, f->x, false, NULL);
    k->get(f->net.context, f->output, dpf_network_output(&f->net),
           (size_t)(n * f->out) * sizeof *f->output);
    dpf_relevance_propagate(&f->relevance, n, f->output);
}

static void end(struct fixture *f)
{
    dpf_relevance_release(&f->relevance);
    const struct dpf_kernels *k = f->net.kernels;
    struct dpf_context *context = f->net.context;
    dpf_network_release(&f->net);
    k->close(context);
    free(f->parameters);
    free(f->x);
    free(f->output);
    dpf_model_release(&f->model);
}

/* -------------------------------------------------------------------- the literal way */

/* Weights w[p][m] of all pairs, and the bias, of a layer of numbers whose channels come
 * last, as inside a network. */
struct layer {
    int64_t in, out;
    double *w, *bias;
};

static struct layer dense_layer(const struct fixture *f, size_t i)
{
    const struct dpf_node *node = &f->model.nodes[i];
    struct layer l = {dpf_nn_elements(&f->model.nodes[node->inputs[0]].shape), node->out,
                      NULL, NULL};
    l.w = dpf_calloc((size_t)(l.in * l.out), sizeof *l.w);
    l.bias = dpf_calloc((size_t)l.out, sizeof *l.bias);
    const float *w = f->parameters + node->offset[0];
    for (int64_t m = 0; m < l.out; m++)
        for (int64_t p = 0; p < l.in; p++)
            l.w[p * l.out + m] = (double)w[m * l.in + p];
    for (int64_t m = 0; node->bias && m < l.out; m++)
        l.bias[m] = (double)f->parameters[node->offset[1] + (size_t)m];
    return l;
}

static struct layer conv_layer(const struct fixture *f, size_t i)
{
    const struct dpf_node *node = &f->model.nodes[i];
    struct dpf_conv c = dpf_conv_of(node, &f->model.nodes[node->inputs[0]]);
    struct layer l = {c.in[1] * c.in[2] * c.in_channels,
                      c.out[1] * c.out[2] * c.out_channels, NULL, NULL};
    l.w = dpf_calloc((size_t)(l.in * l.out), sizeof *l.w);
    l.bias = dpf_calloc((size_t)l.out, sizeof *l.bias);
    const float *w = f->parameters + node->offset[0];
    for (int64_t oy = 0; oy < c.out[1]; oy++)
        for (int64_t ox = 0; ox < c.out[2]; ox++)
            for (int64_t o = 0; o < c.out_channels; o++) {
                int64_t m = (oy * c.out[2] + ox) * c.out_channels + o;
                l.bias[m] =
                    node->bias ? (double)f->parameters[node->offset[1] + (size_t)o] : 0;
                for (int64_t ky = 0; ky < c.kernel[1]; ky++)
                    for (int64_t kx = 0; kx < c.kernel[2]; kx++)
                        for (int64_t ch = 0; ch < c.in_channels; ch++) {
                            int64_t y = oy * c.stride[1] + ky - c.pad[1];
                            int64_t x = ox * c.stride[2] + kx - c.pad[2];
                            if (y < 0 || x < 0 || y >= c.in[1] || x >= c.in[2])
                                continue;
                            int64_t p = (y * c.in[2] + x) * c.in_channels + ch;
                            l.w[p * l.out + m] =
                                (double)w[((o * c.in_channels + ch) * c.kernel[1] + ky) *
                                              c.kernel[2] +
                                          kx];
                        }
            }
    return l;
}

static void release_layer(struct layer *l)
{
    free(l->w);
    free(l->bias);
}

/* Eqs. 4 to 7, message by message; or the alpha-beta rule. */
static void share_out(const struct layer *l, const struct dpf_relevance_plan *plan,
                      const double *p_value, const double *r_upper, double *r_lower)
{
    for (int64_t p = 0; p < l->in; p++)
        r_lower[p] = 0;
    for (int64_t m = 0; m < l->out; m++) {
        double z = l->bias[m], pro = fmax(l->bias[m], 0), con = fmin(l->bias[m], 0);
        int64_t read = 0; /* neurons that m is connected to */
        for (int64_t p = 0; p < l->in; p++) {
            double zpm = p_value[p] * l->w[p * l->out + m];
            z += zpm;
            pro += fmax(zpm, 0);
            con += fmin(zpm, 0);
            read += l->w[p * l->out + m] != 0;
        }
        double alpha = strcmp(plan->rule->name, "z-plus") == 0 ? 1 : plan->alpha;
        double a = con == 0 ? 1 : alpha, b = pro == 0 ? -1 : alpha - 1;
        for (int64_t p = 0; p < l->in; p++) {
            if (l->w[p * l->out + m] == 0)
                continue;
            double part = plan->spread_bias ? l->bias[m] / (double)read : 0;
            double zpm = p_value[p] * l->w[p * l->out + m], message = 0;
            if (!plan->rule->both_sides) {
                message = (zpm + part) / (z + (z >= 0 ? plan->mu : -plan->mu));
            } else {
                if (pro > 0)
                    message += a * (fmax(zpm, 0) + fmax(part, 0)) / pro;
                if (con < 0)
                    message -= b * (fmin(zpm, 0) + fmin(part, 0)) / con;
            }
            r_lower[p] += message * r_upper[m];
        }
    }
}

/* The other nodes of the nets below, channels last. */
static void pass_pool(const struct fixture *f, size_t i, const double *value,
                      const double *upper, double *lower)
{
    const struct dpf_node *node = &f->model.nodes[i];
    struct dpf_pool p = dpf_pool_of(node, &f->model.nodes[node->inputs[0]]);
    for (int64_t k = 0; k < p.in[1] * p.in[2] * p.channels; k++)
        lower[k] = 0;
    for (int64_t oy = 0; oy < p.out[1]; oy++)
        for (int64_t ox = 0; ox < p.out[2]; ox++)
            for (int64_t c = 0; c < p.channels; c++) {
                double r = upper[(oy * p.out[2] + ox) * p.channels + c], sum = 0, mu = 0;
                int64_t best = -1;
                for (int pass = 0; pass < 2; pass++)
                    for (int64_t k = 0; k < p.kernel[1] * p.kernel[2]; k++) {
                        int64_t y = oy * p.stride[1] + k / p.kernel[2] - p.pad[1];
                        int64_t x = ox * p.stride[2] + k % p.kernel[2] - p.pad[2];
                        if (y < 0 || x < 0 || y >= p.in[1] || x >= p.in[2])
                            continue;
                        int64_t at = (y * p.in[2] + x) * p.channels + c;
                        if (pass == 0) {
                            sum += value[at];
                            mu += f->relevance.plan.mu; /* of the mean, not the sum */
                            best = best < 0 || value[at] > value[best] ? at : best;
                        } else if (node->op == &dpf_op_average_pool && sum != 0) {
                            lower[at] += r * value[at] / (sum + (sum >= 0 ? mu : -mu));
                        }
                    }
                if (node->op == &dpf_op_max_pool)
                    lower[best] += r;
            }
}

/* From channels last to channels first, for one example. */
static void turn(const struct dpf_shape *s, const double *last, double *first)
{
    int64_t channels = s->rank >= 3 ? (int64_t)s->dim[0] : 1;
    int64_t places = dpf_nn_elements(s) / channels;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t p = 0; p < places; p++)
            first[c * places + p] = last[p * channels + c];
}

/* The relevance of example e's input, by the equations; the net is a chain. */
static void literal(const struct fixture *f, int64_t e, double *r)
{
    static double upper[MOST], value[MOST];
    for (int64_t k = 0; k < f->out; k++)
        upper[k] = (double)f->output[e * f->out + k];
    for (size_t i = f->model.output; i > 0; i--) {
        const struct dpf_node *node = &f->model.nodes[i];
        const struct dpf_shape *shape = &f->model.nodes[node->inputs[0]].shape;
        int64_t in = dpf_nn_elements(shape);
        CU_ASSERT_FATAL(in <= MOST && node->inputs[0] == i - 1);
        for (int64_t k = 0; k < in; k++)
            value[k] = (double)f->net.layers[i - 1].value[e * in + k];
        if (node->op == &dpf_op_dense || node->op == &dpf_op_conv) {
            struct layer l =
                node->op == &dpf_op_dense ? dense_layer(f, i) : conv_layer(f, i);
            share_out(&l, &f->relevance.plan, value, upper, r);
            release_layer(&l);
        } else if (node->op == &dpf_op_max_pool || node->op == &dpf_op_average_pool) {
            pass_pool(f, i, value, upper, r);
        } else if (node->op == &dpf_op_flatten) {
            int64_t channels = (int64_t)shape->dim[0], places = in / channels;
            for (int64_t c = 0; c < channels; c++)
                for (int64_t p = 0; p < places; p++)
                    r[p * channels + c] = upper[c * places + p];
        } else {
            memcpy(r, upper, (size_t)in * sizeof *r);
        }
        memcpy(upper, r, (size_t)in * sizeof *r);
    }
    turn(&f->model.nodes[0].shape, upper, r);
}

static const char dense_net[] = "input x 7\n"
                                "a = dense x out=6\n"
                                "b = relu a\n"
                                "c = dense b out=5\n"
                                "d = relu c\n"
                                "m = min-max d\n"
                                "y = dense m out=3\n"
                                "output y\n";
static const char conv_net[] = "input x 2x9x8\n"
                               "a = conv x out=5 kernel=3 pad=1\n"
                               "b = relu a\n"
                               "l = lrn b window=5 base=2 alpha=1e-4 beta=0.75\n"
                               "p = max-pool l kernel=2\n"
                               "c = conv p out=4 kernel=3 stride=2 pad=1\n"
                               "d = relu c\n"
                               "q = average-pool d kernel=2\n"
                               "f = flatten q\n"
                               "e = dense f out=6\n"
                               "g = relu e\n"
                               "y = dense g out=4\n"
                               "output y\n";

static void compare(const char *text, const struct dpf_relevance_plan *plan,
                    const struct dpf_kernels *k)
{
    struct fixture f;
    static double want[MOST];
    begin(&f, text, k, plan, N);
    float *got = dpf_calloc((size_t)(N * f.in), sizeof *got);
    dpf_network_read_relevance(&f.net, 0, N, got);
    double worst = 0, size = 0;
    for (int64_t e = 0; e < N; e++) {
        literal(&f, e, want);
        for (int64_t i = 0; i < f.in; i++) {
            worst = fmax(worst, fabs(want[i] - (double)got[e * f.in + i]));
            size = fmax(size, fabs(want[i]));
        }
    }
    CU_ASSERT(size > 1e-3);
    CU_ASSERT(worst <= 2e-4 * size);
    free(got);
    end(&f);
}

static void test_equations(void)
{
    const struct dpf_kernels *const backends[] = {&dpf_kernels_ref, dpf_kernels_cpu()};
    for (int b = 0; b < 2; b++)
        for (int rule = 0; rule < 3; rule++)
            for (int spread = 0; spread < 2; spread++) {
                struct dpf_relevance_plan plan = {.rule = &dpf_relevance_rules[rule],
                                                  .mu = 0.05,
                                                  .alpha = 2,
                                                  .spread_bias = spread != 0};
                compare(dense_net, &plan, backends[b]);
                compare(conv_net, &plan, backends[b]);
            }
}

/* ------------------------------------------------------------------------ conservation
 */

static void conserve(const char *name, const char *text,
                     const struct dpf_relevance_rule *rule)
{
    struct dpf_relevance_plan plan = {.rule = rule, .alpha = 2, .spread_bias = true};
    struct fixture f;
    begin(&f, text, dpf_kernels_cpu(), &plan, 1);
    float *got = dpf_calloc((size_t)f.in, sizeof *got);
    dpf_network_read_relevance(&f.net, 0, 1, got);
    double in = 0, out = 0, size = 0;
    for (int64_t i = 0; i < f.in; i++) {
        in += (double)got[i];
        size += fabs((double)got[i]);
    }
    for (int64_t i = 0; i < f.out; i++)
        out += (double)f.output[i];
    if (!(fabs(in - out) <= 1e-4 * (size + fabs(out))))
        printf("    %s, rule %s: %g at the input, %g at the output\n", name, rule->name,
               in, out);
    CU_ASSERT(fabs(in - out) <= 1e-4 * (size + fabs(out)));
    CU_ASSERT(size > 0);
    free(got);
    end(&f);
}

/* Eq. 9 with mu = 0 and biases spread: nothing is lost, through every operation. */
static void test_conservation(void)
{
    static const char graph[] = "input x 2x6x6\n"
                                "a = conv x out=4 kernel=3 pad=1\n"
                                "b = relu a\n"
                                "g = group-norm b groups=2\n"
                                "p = max-pool b kernel=2\n"
                                "q = average-pool g kernel=2\n"
                                "j = concat p q\n"
                                "t = conv-transpose j out=3 kernel=3 stride=2 pad=1\n"
                                "u = upsample q factor=2\n"
                                "n = conv u out=2 kernel=2\n"
                                "o = conv t out=2 kernel=1\n"
                                "f = flatten o\n"
                                "v = slice f from=0 count=40\n"
                                "w = slice f from=40 count=10\n"
                                "s = concat v w\n"
                                "h = dense s out=5\n"
                                "d = dropout h rate=0.25\n"
                                "k = ball d\n"
                                "y = dense k out=4\n"
                                "output y\n";
    static const char conditional[] = "input x 40\n"
                                      "v = slice x from=0 count=30\n"
                                      "u = slice x from=30 count=10\n"
                                      "w = reshape v shape=2x5x3\n"
                                      "c = conv w u out=4 kernel=2 visible=1\n"
                                      "r = relu c\n"
                                      "f = flatten r\n"
                                      "d = dense f u out=5 visible=1\n"
                                      "y = dense d out=3\n"
                                      "output y\n";
    for (int rule = 0; rule < 3; rule++) {
        conserve("a graph", graph, &dpf_relevance_rules[rule]);
        conserve("conditions", conditional, &dpf_relevance_rules[rule]);
    }
}

/* Forward and back again, with other weights. */
static void run_again(struct fixture *f, int64_t n)
{
    dpf_network_forward(&f->net, n, f->x, false, NULL);
    f->net.kernels->get(f->net.context, f->output, dpf_network_output(&f->net),
                        (size_t)(n * f->out) * sizeof *f->output);
    dpf_relevance_propagate(&f->relevance, n, f->output);
}

/* A dense layer with conditions is one that reads both vectors joined. */
static void test_conditions(void)
{
    enum { V = 5, U = 3, OUT = 4, IN = V + U };
    static const char apart[] = "input x 8\nv = slice x from=0 count=5\n"
                                "u = slice x from=5 count=3\n"
                                "y = dense v u out=4 visible=1\noutput y\n",
                      joined[] = "input x 8\ny = dense x out=4\noutput y\n";
    for (int rule = 0; rule < 3; rule++) {
        struct dpf_relevance_plan plan = {
            .rule = &dpf_relevance_rules[rule], .mu = 0.05, .alpha = 2};
        struct fixture f, g;
        float got[N * IN], want[N * IN];
        begin(&f, apart, dpf_kernels_cpu(), &plan, N);
        begin(&g, joined, dpf_kernels_cpu(), &plan, N);
        const size_t *from = f.model.nodes[3].offset, *to = g.model.nodes[1].offset;
        for (int o = 0; o < OUT; o++) {
            float *row = g.parameters + to[0] + (size_t)(o * IN);
            memcpy(row, f.parameters + from[0] + (size_t)(o * V), V * sizeof *row);
            memcpy(row + V, f.parameters + from[DPF_CONDITION] + (size_t)(o * U),
                   U * sizeof *row);
        }
        memcpy(g.parameters + to[1], f.parameters + from[1], OUT * sizeof *g.parameters);
        memcpy(g.x, f.x, sizeof got);
        run_again(&g, N);
        dpf_network_read_relevance(&f.net, 0, N, got);
        dpf_network_read_relevance(&g.net, 0, N, want);
        for (int i = 0; i < N * IN; i++)
            CU_ASSERT(fabsf(got[i] - want[i]) <= 1e-4F * (1 + fabsf(want[i])));
        end(&f);
        end(&g);
    }
}

static void test_architectures(void)
{
    for (int i = 0; dpf_architecture_names[i]; i++) {
        const char *name = dpf_architecture_names[i];
        conserve(name, dpf_architecture(name), &dpf_relevance_rules[0]);
        if (strcmp(name, "unet3d") != 0) /* the same operations, and slow */
            conserve(name, dpf_architecture(name), &dpf_relevance_rules[1]);
    }
}

/* The stabiliser takes its share: the smaller it is, the less is missing. */
static void test_stabiliser(void)
{
    double missing[3];
    for (int i = 0; i < 3; i++) {
        struct dpf_relevance_plan plan = {.mu = i == 0   ? 1
                                                : i == 1 ? 0.01
                                                         : 0,
                                          .rule = &dpf_relevance_rules[0],
                                          .spread_bias = true};
        struct fixture f;
        begin(&f, dense_net, &dpf_kernels_ref, &plan, 1);
        float got[7];
        dpf_network_read_relevance(&f.net, 0, 1, got);
        missing[i] = 0;
        for (int j = 0; j < 7; j++)
            missing[i] += (double)got[j];
        for (int64_t j = 0; j < f.out; j++)
            missing[i] -= (double)f.output[j];
        missing[i] = fabs(missing[i]);
        end(&f);
    }
    CU_ASSERT(missing[0] > missing[1]);
    CU_ASSERT(missing[1] > missing[2]);
    CU_ASSERT(missing[2] < 1e-4);
}

/* ------------------------------------------------------------------------------- lots */

enum { ROWS = 37 };

static void make_data(struct dpf_dataset *d, const struct dpf_model *m)
{
    struct dpf_seeded random;
    size_t in = (size_t)dpf_nn_elements(&m->nodes[0].shape);
    *d = (struct dpf_dataset){.dtype = DPF_F32,
                              .record_bytes = in * sizeof(float),
                              .record = in,
                              .rows = ROWS,
                              .positions = 1,
                              .classes = 4};
    d->x = dpf_calloc(ROWS, d->record_bytes);
    d->labels = dpf_calloc(ROWS, sizeof *d->labels);
    dpf_seeded_init(&random, "test relevance", 2, 0);
    fill(&random, (float *)(void *)d->x, (int64_t)(ROWS * in), 1);
    memset(d->x, 0, d->record_bytes); /* a record without any relevance */
    for (int i = 0; i < ROWS; i++)
        d->labels[i] = i % 4;
}

/* What threads make of a lot is what one network makes of each record; each onto [0,1];
 * and only the scores asked for count. */
static void test_lots(void)
{
    static const char net[] = "input x 1x6x6\n"
                              "a = conv x out=3 kernel=3 bias=0\n"
                              "b = relu a\n"
                              "f = flatten b\n"
                              "y = dense f out=4 bias=0\n"
                              "output y\n";
    struct dpf_error e = {0};
    struct dpf_model model;
    struct dpf_dataset data;
    uint32_t rows[ROWS];
    static float got[3][2][ROWS * 36];
    CU_ASSERT_FATAL(dpf_model_parse(&model, net, strlen(net), "net", &e) == DPF_OK);
    make_data(&data, &model);
    float *parameters = dpf_calloc(model.span, sizeof *parameters);
    struct dpf_seeded random;
    dpf_seeded_init(&random, "test relevance", 3, 0);
    fill(&random, parameters, (int64_t)model.span, 0.5);
    for (uint32_t i = 0; i < ROWS; i++)
        rows[i] = i;
    for (int from = 0; from < 3; from++)
        for (int unit = 0; unit < 2; unit++) {
            struct dpf_engine engine;
            struct dpf_engine_relevance r;
            struct dpf_engine_setup setup = {.model = &model,
                                             .kernels = dpf_kernels_cpu(),
                                             .threads = 1 + from,
                                             .microbatch = 5,
                                             .every_value = true,
                                             .relevance = true};
            struct dpf_relevance_plan plan = {.rule = &dpf_relevance_rules[0],
                                              .from = (enum dpf_relevance_from)from,
                                              .mu = 1e-6,
                                              .unit = unit != 0};
            struct dpf_lot lot = {.data = &data, .rows = rows, .count = ROWS};
            CU_ASSERT_FATAL(dpf_engine_init(&engine, &setup, &e) == DPF_OK);
            dpf_engine_put(&engine, parameters);
            CU_ASSERT_FATAL(dpf_engine_relevance_init(&r, &engine, &plan, &e) == DPF_OK);
            CU_ASSERT(dpf_engine_relevance(&r, &lot, got[from][unit], &e) == DPF_OK);
            static float scores[ROWS * 4];
            struct dpf_lot_values want = {.node = model.output, .values = scores};
            CU_ASSERT(dpf_engine_values(&engine, &lot, &want, &e) == DPF_OK);
            for (int i = 0; i < ROWS; i++) {
                const float *x = got[from][unit] + i * 36, *z = scores + i * 4;
                double sum = 0, lo = INFINITY, hi = -INFINITY, due = 0;
                int top = 0;
                for (int k = 0; k < 36; k++) {
                    sum += (double)x[k];
                    lo = fmin(lo, (double)x[k]);
                    hi = fmax(hi, (double)x[k]);
                }
                for (int l = 0; l < 4; l++) {
                    top = z[l] > z[top] ? l : top;
                    due += from == DPF_FROM_ALL ? (double)z[l] : 0;
                }
                due = from == DPF_FROM_TRUE  ? (double)z[i % 4]
                      : from == DPF_FROM_TOP ? (double)z[top]
                                             : due;
                bool good = unit ? lo == 0 && hi == (i != 0) : fabs(sum - due) < 1e-2;
                CU_ASSERT(good);
            }
            dpf_engine_relevance_release(&r);
            dpf_engine_release(&engine);
        }
    free(parameters);
    dpf_dataset_release(&data);
    dpf_model_release(&model);
}

const struct dpf_test dpf_tests[] = {
    {"messages of Eqs. 4-8, and of alpha-beta and z+, one by one", test_equations},
    {"sums stay the same through every operation (Eq. 9)", test_conservation},
    {"conditions are as a vector joined to what else is read", test_conditions},
    {"and through every architecture", test_architectures},
    {"only the stabiliser takes something away", test_stabiliser},
    {"lots: threads, the scores to explain, records onto [0,1]", test_lots},
    {NULL, NULL},
};
