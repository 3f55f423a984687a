#include "nn/expected_bits.h"

#include <stdlib.h>

#include "base/memory.h"
#include "nn/ops/op.h"

#include "base/banned.h"

enum dpf_status dpf_expect_bits(const struct dpf_model *m, const double rates[4],
                                float *parameters, struct dpf_error *e)
{
    const struct dpf_node *layer = NULL;
    size_t readers = 0;
    for (size_t i = 1; i < m->count; i++)
        for (int k = 0; k < m->nodes[i].input_count; k++)
            if (m->nodes[i].inputs[k] == 0) {
                layer = &m->nodes[i];
                readers++;
            }
    if (!m->nodes[0].bits || readers != 1 || layer->op != &dpf_op_dense || !layer->bias)
        return dpf_fail(e, DPF_USAGE,
                        "the network does not start with one dense layer with a bias "
                        "over packed bits");
    size_t bits = m->nodes[0].shape.dim[0], units = (size_t)layer->out;
    float *w = parameters + layer->offset[0], *bias = parameters + layer->offset[1];
    double *sum = dpf_calloc(units, sizeof *sum);
    if (!sum)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < bits; i++) { /* over bits, weights are [in, out] */
        double p = rates[2 * (i % 2)], q = rates[2 * (i % 2) + 1];
        for (size_t u = 0; u < units; u++) {
            double one = (double)w[i * units + u];
            sum[u] += q * one;
            w[i * units + u] = (float)((p - q) * one);
        }
    }
    for (size_t u = 0; u < units; u++)
        bias[u] += (float)sum[u];
    free(sum);
    return DPF_OK;
}
