/* Rows that depend on each other, or on where they stand, are noticed; and the libraries
 * in use have sizes without such rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/row_probe.h"

struct rig {
    struct dpf_model model;
    struct dpf_network net;
    struct dpf_row_probe probe;
    float *parameters;
};

static void begin(struct rig *g, const char *text, const struct dpf_kernels *k,
                  int64_t capacity)
{
    CU_ASSERT_FATAL(dpf_model_parse(&g->model, text, strlen(text), "test", NULL) ==
                    DPF_OK);
    g->parameters = dpf_calloc(g->model.span, sizeof *g->parameters);
    struct dpf_network_setup setup = {.model = &g->model,
                                      .kernels = k,
                                      .parameters = g->parameters,
                                      .capacity = capacity,
                                      .training = true,
                                      .clipping = true};
    CU_ASSERT_FATAL(g->parameters && dpf_network_init(&g->net, &setup, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_row_probe_init(&g->probe, &g->net, NULL, NULL) == DPF_OK);
}

static void end(struct rig *g)
{
    CU_ASSERT(g->net.parameters == g->parameters); /* a trial gives them back */
    dpf_row_probe_release(&g->probe);
    dpf_network_release(&g->net);
    dpf_model_release(&g->model);
    free(g->parameters);
}

static const char dense[] = "input x 40\na = dense x out=9\nr = relu a\nd = dropout r "
                            "rate=0.5\ny = dense d out=3\noutput y\n";

/* Each number of examples gets rows that have been tried, not many more than it needs. */
static void check_sizes(const char *text, const struct dpf_kernels *k, int64_t capacity)
{
    struct rig g;
    begin(&g, text, k, capacity);
    int64_t more = 0, few = 0;
    for (int64_t n = 1; n <= capacity; n += 1 + capacity / 12) {
        int64_t size = dpf_row_probe_size(&g.probe, n);
        few += size < n;
        more += size - n;
    }
    if (few || more > 5 * capacity)
        printf("    %s: %lld sizes are too small, %lld rows too many\n", k->name,
               (long long)few, (long long)more);
    CU_ASSERT(few == 0 && more <= 5 * capacity);
    end(&g);
}

static void test_sizes(void)
{
    check_sizes(dense, &dpf_kernels_ref, 20);
    check_sizes(dense, dpf_kernels_cpu(), 256);
    check_sizes("input x 100 bits\na = dense x out=40\ny = dense a out=3\noutput y\n",
                dpf_kernels_cpu(), 64);
    check_sizes(dpf_architecture("tiny"), dpf_kernels_cpu(), 100);
    check_sizes(dpf_architecture("dpsgd-mnist"), dpf_kernels_cpu(), 84);
    check_sizes(dpf_architecture("plain-cifar"), dpf_kernels_cpu(), 10);
}

/* --------------------------------------------------------- kernels with something wrong
 */

static int64_t wrong_from; /* rows of products that are wrong */

/* Sums from the other end: as good as the right ones, and not the same. */
static void backwards(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
                      const float *a, const float *b, double beta, float *c)
{
    dpf_kernels_ref.gemm(ta, tb, m, n, k, alpha, a, b, beta, c);
    for (int64_t i = wrong_from; !ta && i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t l = k; l-- > 0;)
                sum += a[i * k + l] * (tb ? b[j * k + l] : b[l * n + j]);
            c[i * n + j] = sum;
        }
}

/* A row that adds nothing of the next one, which is something if that is NaN. */
static void leaking(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
                    const float *a, const float *b, double beta, float *c)
{
    dpf_kernels_ref.gemm(ta, tb, m, n, k, alpha, a, b, beta, c);
    for (int64_t i = 0; !ta && i + 1 < m; i++)
        c[i * n] += 0 * a[(i + 1) * k];
}

static void test_noticed(void)
{
    struct dpf_kernels bad = dpf_kernels_ref;
    struct rig g;
    bad.gemm = backwards;
    wrong_from =
        12; /* small microbatches are fine among themselves, the largest is not */
    begin(&g, dense, &bad, 20);
    CU_ASSERT(dpf_row_probe_size(&g.probe, 5) == 1 &&
              dpf_row_probe_size(&g.probe, 20) == 1);
    end(&g);
    wrong_from = 0; /* all rows the same way: another expression, but one for all */
    begin(&g, dense, &bad, 20);
    CU_ASSERT(dpf_row_probe_size(&g.probe, 5) == 5);
    end(&g);
    bad.gemm = leaking;
    begin(&g, dense, &bad, 20);
    CU_ASSERT(dpf_row_probe_size(&g.probe, 20) == 1);
    end(&g);
}

/* Products of fewer than 10 rows by another algorithm: those sizes are passed over. */
static void small_differ(bool ta, bool tb, int64_t m, int64_t n, int64_t k, double alpha,
                         const float *a, const float *b, double beta, float *c)
{
    wrong_from = m < 10 ? 0 : m;
    backwards(ta, tb, m, n, k, alpha, a, b, beta, c);
}

static void test_passed_over(void)
{
    struct dpf_kernels bad = dpf_kernels_ref;
    struct rig g;
    bad.gemm = small_differ;
    begin(&g, dense, &bad, 20);
    CU_ASSERT(dpf_row_probe_size(&g.probe, 3) == 10);
    CU_ASSERT(dpf_row_probe_size(&g.probe, 11) == 11);
    end(&g);
}

const char dpf_suite[] = "row probe";
const struct dpf_test dpf_tests[] = {
    {"sizes that may be used", test_sizes},
    {"rows that differ or leak are noticed", test_noticed},
    {"sizes with other rows are passed over", test_passed_over},
    {0},
};
