#include "nn/initialise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "nn/ops/op.h"
#include "random/normal.h"
#include "random/seeded.h"

#include "base/banned.h"

static void draw(struct dpf_seeded *r, bool uniform, double deviation, uint64_t count,
                 float *to)
{
    double bound = deviation * sqrt(3);
    if (!uniform)
        dpf_normal_fill(dpf_seeded_u64(r), 0, count, to);
    for (uint64_t i = 0; i < count; i++)
        to[i] = uniform ? (float)dpf_seeded_range(r, -bound, bound)
                        : (float)deviation * to[i];
}

/* Edge detectors in evenly spaced directions: derivatives of a Gaussian, without a mean
 * and with an absolute sum of 1, the same for every channel of the input. Nothing is
 * drawn. */
static void orient(const struct dpf_shape *s, float *to)
{
    int64_t out = (int64_t)s->dim[0], in = (int64_t)s->dim[1];
    int64_t height = (int64_t)s->dim[s->rank - 2], width = (int64_t)s->dim[s->rank - 1];
    int64_t window = (int64_t)(dpf_shape_elements(s) / s->dim[0] / s->dim[1]);
    double spread = (double)(height < width ? height : width) / 5;
    for (int64_t o = 0; o < out; o++) {
        float *first = to + o * in * window;
        double turn = 2 * M_PI * (double)o / (double)out, sum = 0, size = 0;
        for (int pass = 0; pass < 2; pass++) {
            double mean = sum / (double)window;
            size = 0;
            for (int64_t i = 0; i < window; i++) {
                double y = (double)(i / width % height) - (double)(height - 1) / 2;
                double x = (double)(i % width) - (double)(width - 1) / 2;
                double along = x * cos(turn) + y * sin(turn);
                double value =
                    along * exp(-(x * x + y * y) / (2 * spread * spread)) - mean;
                sum += pass ? 0 : value;
                size += fabs(value);
                first[i] = (float)value;
            }
        }
        for (int64_t i = 0; i < in * window; i++)
            first[i] = i < window ? (float)((double)first[i] / size / (double)in)
                                  : first[i % window];
    }
}

/* Each filter sees differences, not brightness: its weights sum to 0. */
static void centre(const struct dpf_shape *s, float *to)
{
    uint64_t filter = dpf_shape_elements(s) / s->dim[0];
    for (uint64_t o = 0; o < s->dim[0]; o++, to += filter) {
        double mean = 0;
        for (uint64_t i = 0; i < filter; i++)
            mean += (double)to[i] / (double)filter;
        for (uint64_t i = 0; i < filter; i++)
            to[i] = (float)((double)to[i] - mean);
    }
}

/* -------------------------------------------------------------------------- mirrored */

/* Filters of which the second half are the first half's mirror images. */
static void mirror(const struct dpf_shape *s, float *to)
{
    uint64_t width = s->dim[s->rank - 1], filter = dpf_shape_elements(s) / s->dim[0];
    uint64_t half = s->dim[0] / 2;
    for (uint64_t i = 0; i < half * filter; i++)
        to[half * filter + i] = to[i - i % width + (width - 1 - i % width)];
}

/* A convolution of 1x1 that gives each input as it is and turned around, less 1/4: what
 * is for it and what is against it, beyond a threshold. */
static void split_signs(const struct dpf_shape *s, float *to, float *bias)
{
    memset(to, 0, dpf_shape_elements(s) * sizeof *to);
    for (uint64_t o = 0; o < s->dim[0]; o++) {
        to[o * s->dim[1] + o % s->dim[1]] = o < s->dim[1] ? 1 : -1;
        bias[o] = -0.25F;
    }
}

/* Sums of each value and that of the mirrored filter at the mirrored place. Values are
 * [channels, side, side]; filter k and k + f are mirror images of each other, f being a
 * quarter of the channels, and half of the channels are for, half against. */
static void add_twins(const struct dpf_node *n, const struct dpf_node *map, float *to)
{
    uint64_t channels = map->shape.dim[0], side = map->shape.dim[2], f = channels / 4;
    uint64_t in = channels * side * side, row = 0;
    memset(to, 0, dpf_shape_elements(&n->parameters[0]) * sizeof *to);
    for (uint64_t c = 0; c < channels; c++)
        for (uint64_t p = 0; c % (2 * f) < f && p < side * side; p++, row++) {
            if (row >= (uint64_t)n->out)
                return;
            uint64_t twin = p - p % side + (side - 1 - p % side);
            to[row * in + c * side * side + p] += 1;
            to[row * in + (c + f) * side * side + twin] += 1;
        }
}

static bool has_twins(const struct dpf_shape *map)
{
    return map->rank == 3 && map->dim[0] % 4 == 0 && map->dim[1] == map->dim[2];
}

/* For chains like patches-cifar; a convolution of 1x1 splits signs, others are centred
 * and mirrored, a dense layer adds twins. */
static void make_mirrored(const struct dpf_model *m, const struct dpf_node *n,
                          float *parameters)
{
    float *first = parameters + n->offset[0];
    const struct dpf_shape *s = &n->parameters[0];
    const struct dpf_node *from = &m->nodes[n->inputs[0]];
    bool single = n->op == &dpf_op_conv && n->kernel[1] == 1 && n->kernel[2] == 1;
    if (single && n->bias) {
        split_signs(s, first, parameters + n->offset[1]);
    } else if (n->op == &dpf_op_conv) {
        centre(s, first);
        mirror(s, first);
    } else if (from->op == &dpf_op_flatten &&
               has_twins(&m->nodes[from->inputs[0]].shape)) {
        add_twins(n, &m->nodes[from->inputs[0]], first);
    }
}

/* ------------------------------------------------------------------------- the table */

static double he(double in, double out)
{
    (void)out;
    return sqrt(2 / in);
}

static double xavier(double in, double out)
{
    return sqrt(2 / (in + out));
}

static double lecun(double in, double out)
{
    (void)out;
    return sqrt(1 / in);
}

/* Uniform in +-1/sqrt(in). */
static double torch(double in, double out)
{
    (void)out;
    return sqrt(1 / (3 * in));
}

static double zero(double in, double out)
{
    (void)in;
    (void)out;
    return 0;
}

static void orient_filters(const struct dpf_model *m, const struct dpf_node *n,
                           float *parameters)
{
    (void)m;
    if (n->op == &dpf_op_conv)
        orient(&n->parameters[0], parameters + n->offset[0]);
}

static void centre_filters(const struct dpf_model *m, const struct dpf_node *n,
                           float *parameters)
{
    (void)m;
    if (n->op == &dpf_op_conv)
        centre(&n->parameters[0], parameters + n->offset[0]);
}

const struct dpf_initialiser dpf_initialisers[] = {
    {.name = "he-normal", .deviation = he},
    {.name = "he-uniform", .deviation = he, .uniform = true},
    {.name = "xavier-normal", .deviation = xavier},
    {.name = "xavier-uniform", .deviation = xavier, .uniform = true},
    {.name = "lecun-normal", .deviation = lecun},
    {.name = "torch", .deviation = torch, .uniform = true, .as_torch = true},
    {.name = "zero", .deviation = zero},
    {.name = "oriented", .deviation = NULL, .arrange = orient_filters},
    {.name = "he-centred", .deviation = he, .arrange = centre_filters},
    {.name = "mirrored", .deviation = he, .arrange = make_mirrored},
    {.name = NULL},
};

/* Weights, and biases if the initialiser draws them, from a stream of their own. */
static void draw_node(const struct dpf_initialiser *how, const struct dpf_node *n,
                      uint64_t seed, float *parameters)
{
    double in, out;
    struct dpf_seeded r;
    char purpose[sizeof n->name + 16];
    n->op->parameters->fans(n, &in, &out);
    /* PyTorch counts a transposed convolution's outputs as its inputs. */
    if (n->op == &dpf_op_conv_transpose && how->as_torch)
        in = out;
    double deviation = how->deviation(in, out);
    snprintf(purpose, sizeof purpose, "weights of %s", n->name);
    dpf_seeded_init(&r, purpose, seed, 0);
    draw(&r, how->uniform, deviation, dpf_shape_elements(&n->parameters[0]),
         parameters + n->offset[0]);
    if (how->as_torch && n->parameter_count > 1)
        draw(&r, true, deviation, dpf_shape_elements(&n->parameters[1]),
             parameters + n->offset[1]);
}

bool dpf_initialise(const struct dpf_model *m, const char *name, uint64_t seed,
                    float *parameters)
{
    const struct dpf_initialiser *how = DPF_FIND(dpf_initialisers, name);
    if (!how)
        return false;
    memset(parameters, 0, m->span * sizeof *parameters);
    for (size_t i = 0; i < m->count; i++) {
        const struct dpf_node *n = &m->nodes[i];
        if (!n->parameter_count)
            continue;
        float *first = parameters + n->offset[0];
        if (!n->op->parameters->fans) {
            for (uint64_t j = 0; j < dpf_shape_elements(&n->parameters[0]); j++)
                first[j] = n->op->parameters->start;
            continue;
        }
        if (how->deviation)
            draw_node(how, n, seed, parameters);
        if (how->arrange)
            how->arrange(m, n, parameters);
    }
    return true;
}
