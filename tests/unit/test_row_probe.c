/* Rows that depend on each other, or on where they stand, are noticed; and the libraries
 * in use have sizes without such rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/row_probe.h"

static const char dense[] = "input x 40\na = dense x out=9\nr = relu a\nd = dropout r "
                            "rate=0.5\ny = dense d out=3\noutput y\n";

/* What the probe says of a network on a backend. */
static bool apart(const char *text, const struct dpf_kernels *k, int64_t capacity)
{
    struct dpf_model model;
    struct dpf_network net;
    bool said = false;
    CU_ASSERT_FATAL(dpf_model_parse(&model, text, strlen(text), "test", NULL) == DPF_OK);
    float *parameters = dpf_calloc(model.span, sizeof *parameters);
    struct dpf_context *context;
    CU_ASSERT_FATAL(k->open(0, &context, NULL) == DPF_OK);
    struct dpf_network_setup setup = {.model = &model,
                                      .kernels = k,
                                      .context = context,
                                      .parameters = parameters,
                                      .capacity = capacity,
                                      .training = true,
                                      .clipping = true};
    CU_ASSERT_FATAL(parameters && dpf_network_init(&net, &setup, NULL) == DPF_OK);
    CU_ASSERT(dpf_row_probe(&net, &said, NULL) == DPF_OK);
    CU_ASSERT(net.parameters == parameters); /* a trial gives them back */
    dpf_network_release(&net);
    k->close(context);
    dpf_model_release(&model);
    free(parameters);
    return said;
}

/* Every operation that there is. */
static const char everything[] =
    "input x 2x6x6\nc = conv x out=8 kernel=3 pad=1\ng = group-norm c groups=2\n"
    "r = relu g\nl = lrn r window=3 base=2 alpha=0.1 beta=0.75\np = max-pool l kernel=2\n"
    "t = conv-transpose p out=4 kernel=2 stride=2\nh = tanh t\nk = concat h c\n"
    "a = average-pool k kernel=3 stride=2 pad=1\nu = upsample a factor=2\n"
    "s = sigmoid u\nb = cap s\nf = flatten b\nd = dense f out=300\nm = min-max d\n"
    "o = dropout m rate=0.3\ne = dense o out=7\nv = ball e\nw = softmax v\n"
    "y = dense w out=3\noutput y\n";

static void test_backends(void)
{
    CU_ASSERT(apart(dense, &dpf_kernels_ref, 20));
    CU_ASSERT(apart(everything, &dpf_kernels_ref, 5));
    for (int64_t capacity = 2; capacity <= 112; capacity += 11) {
        CU_ASSERT(apart(dense, dpf_kernels_cpu(), capacity));
        CU_ASSERT(apart(everything, dpf_kernels_cpu(), capacity));
    }
    CU_ASSERT(apart("input x 100 bits\na = dense x out=40\ny = dense a out=3\noutput y\n",
                    dpf_kernels_cpu(), 64));
    CU_ASSERT(apart(dpf_architecture("dpsgd-mnist"), dpf_kernels_cpu(), 84));
    CU_ASSERT(apart(dpf_architecture("plain-cifar"), dpf_kernels_cpu(), 10));
    CU_ASSERT(apart(dense, dpf_kernels_cpu(), 1));
}

/* --- kernels with something wrong --- */

static int64_t wrong_from; /* rows of products that are wrong */

/* Sums from the other end: as good as the right ones, and not the same. */
static void backwards(struct dpf_context *c, int64_t n, int64_t in, int64_t out,
                      const float *x, const float *w, const float *b, float *y)
{
    dpf_kernels_ref.dense_forward(c, n, in, out, x, w, b, y);
    for (int64_t i = wrong_from * out; i < n * out; i++) {
        float sum = b ? b[i % out] : 0;
        for (int64_t j = in; j-- > 0;)
            sum += x[i / out * in + j] * w[i % out * in + j];
        y[i] = sum;
    }
}

/* A row that adds nothing of the next one, which is something if that is NaN. */
static void leaking(struct dpf_context *c, int64_t n, int64_t in, int64_t out,
                    const float *x, const float *w, const float *b, float *y)
{
    dpf_kernels_ref.dense_forward(c, n, in, out, x, w, b, y);
    for (int64_t i = 0; i + 1 < n; i++)
        y[i * out] += 0 * x[(i + 1) * in];
}

/* Many rows by another way than few. */
static void by_size(struct dpf_context *c, int64_t n, int64_t in, int64_t out,
                    const float *x, const float *w, const float *b, float *y)
{
    wrong_from = n > 10 ? 0 : n;
    backwards(c, n, in, out, x, w, b, y);
}

static void test_noticed(void)
{
    struct dpf_kernels bad = dpf_kernels_ref;
    bad.dense_forward = backwards;
    wrong_from = 19; /* the last row only */
    CU_ASSERT(!apart(dense, &bad, 20));
    wrong_from = 0; /* all rows the same way: another expression, but one for all */
    CU_ASSERT(apart(dense, &bad, 20));
    bad.dense_forward = leaking;
    CU_ASSERT(!apart(dense, &bad, 20));
    bad.dense_forward = by_size;
    CU_ASSERT(!apart(dense, &bad, 20));
    CU_ASSERT(apart(dense, &bad, 8));
}

const char dpf_suite[] = "row probe";
const struct dpf_test dpf_tests[] = {
    {"examples are computed apart on both backends", test_backends},
    {"rows that differ or leak are noticed", test_noticed},
    {0},
};
