/* A context is made by one thread and used by another: an engine sets up the networks of
 * all its workers. Convolutions of oneDNN that need scratch memory must not take it from
 * the thread that made them. */
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "harness.h"
#include "nn/engine.h"
#include "nn/geometry.h"

#include "base/banned.h"

enum { THREADS = 3, EXAMPLES = 3, TURNS = 5 };

struct microbatch {
    float *x, *d;
    uint64_t keys[EXAMPLES];
};

static void clipped_job(struct dpf_worker *w, void *context)
{
    const struct microbatch *b = context;
    dpf_network_forward(&w->net, EXAMPLES, b->x, true, b->keys);
    dpf_network_backward(&w->net, EXAMPLES, b->d, DPF_CLIP_FLAT, 1);
    dpf_worker_finish(w);
}

static float *numbers(size_t count, size_t factor, float scale)
{
    float *out = dpf_calloc(count + 1, sizeof *out);
    CU_ASSERT_FATAL(out != NULL);
    for (size_t i = 0; i < count; i++)
        out[i] = scale * ((float)(i * factor % 1000) / 500 - 1);
    return out;
}

/* All workers have the same examples, so the same gradients. */
static void check(const char *text)
{
    struct dpf_model m;
    struct dpf_engine g;
    CU_ASSERT_FATAL(dpf_model_parse(&m, text, strlen(text), "net", NULL) == DPF_OK);
    struct dpf_engine_setup setup = {.model = &m,
                                     .kernels = dpf_kernels_cpu(),
                                     .threads = THREADS,
                                     .microbatch = EXAMPLES,
                                     .training = true,
                                     .clipping = true};
    CU_ASSERT_FATAL(dpf_engine_init(&g, &setup, NULL) == DPF_OK);
    size_t in = EXAMPLES * (size_t)dpf_nn_elements(&m.nodes[0].shape);
    size_t out = EXAMPLES * (size_t)dpf_nn_elements(&m.nodes[m.output].shape);
    struct microbatch b = {.x = numbers(in, 7919, 1), .d = numbers(out, 104729, 1)};
    float *parameters = numbers(m.span, 31337, 0.1F);
    dpf_engine_put(&g, parameters);
    for (int turn = 0; turn < TURNS; turn++) {
        CU_ASSERT(dpf_engine_run(&g, clipped_job, &b, NULL) == DPF_OK);
        for (int i = 1; i < THREADS; i++)
            CU_ASSERT(memcmp(g.workers[i].net.gradients, g.workers[0].net.gradients,
                             m.span * sizeof(float)) == 0);
    }
    dpf_engine_release(&g);
    dpf_model_release(&m);
    free(parameters);
    free(b.x);
    free(b.d);
}

/* The oldest instructions: its convolutions are products of patches that are written
 * down, as volumes are on machines with AVX2. */
static void test_scratch(void)
{
    if (dnnl_set_max_cpu_isa(dnnl_cpu_isa_sse41) != dnnl_success)
        dpf_test_skip("oneDNN was used before, or knows one instruction set only");
    check("input x 3x20x20\nc = conv x out=6 kernel=5 pad=2\nr = relu c\n"
          "f = flatten r\ny = dense f out=4\noutput y\n");
    check("input x 1x8x20x20\nc = conv x out=6 kernel=3 pad=1\nr = relu c\n"
          "f = flatten r\ny = dense f out=4\noutput y\n");
}

const char dpf_suite[] = "cpu threads";
const struct dpf_test dpf_tests[] = {
    {"convolutions made by one thread compute on another", test_scratch},
    {0},
};
