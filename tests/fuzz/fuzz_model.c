/* The text of a network: whatever it says, parsing ends with a graph or an error, a graph
 * is what its text says when it is read again, and a small one runs, clipped and all. */
#include <stdlib.h>
#include <string.h>

#include "nn/network.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

enum { EXAMPLES = 2, MOST = 4096 };

static bool is_small(const struct dpf_model *m)
{
    uint64_t sum = m->span;
    for (size_t i = 0; i < m->count && sum < MOST; i++) {
        sum += dpf_shape_elements(&m->nodes[i].shape);
        for (int d = 0; d < 3 && sum < MOST; d++)
            sum += (uint64_t)m->nodes[i].kernel[d] + (uint64_t)m->nodes[i].stride[d];
        sum += (uint64_t)m->nodes[i].window;
    }
    return sum < MOST && m->count < 64;
}

static void run(const struct dpf_model *m)
{
    static float x[EXAMPLES * MOST], d[EXAMPLES * MOST];
    static const uint64_t keys[EXAMPLES] = {1, 2};
    struct dpf_network net;
    struct dpf_error e = {0};
    float *parameters = calloc(m->span + 1, sizeof *parameters);
    for (size_t i = 0; i < m->span; i++)
        parameters[i] = (float)(i % 7) * 0.1f;
    for (size_t i = 0; i < EXAMPLES * MOST; i++)
        x[i] = d[i] = (float)(i % 5) - 2;
    struct dpf_network_setup setup = {.model = m,
                                      .kernels = &dpf_kernels_ref,
                                      .parameters = parameters,
                                      .capacity = EXAMPLES,
                                      .training = true,
                                      .clipping = true};
    if (dpf_network_init(&net, &setup, &e) == DPF_OK) {
        dpf_network_forward(&net, EXAMPLES, x, true, keys);
        dpf_network_backward(&net, EXAMPLES, d, DPF_CLIP_FLAT, 1);
        dpf_network_release(&net);
    }
    free(parameters);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
    struct dpf_model m, again;
    struct dpf_error e = {0};
    if (dpf_model_parse(&m, (const char *)data, size, "fuzz", &e) != DPF_OK)
        return 0;
    if (dpf_model_parse(&again, m.text, strlen(m.text), "again", &e) != DPF_OK ||
        again.count != m.count || again.span != m.span || again.output != m.output)
        abort();
    for (size_t i = 0; i < m.count; i++)
        for (int d = 0; d < m.nodes[i].input_count; d++)
            if (m.nodes[i].inputs[d] >= i)
                abort();
    if (is_small(&m))
        run(&m);
    dpf_model_release(&again);
    dpf_model_release(&m);
    return 0;
}
