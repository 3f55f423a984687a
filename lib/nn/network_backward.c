/* Backward: gradients of values first, then norms, then gradients of parameters. */
#include "nn/geometry.h"
#include "nn/network.h"
#include "nn/ops/op.h"

#include "base/banned.h"

/* --------------------------------------------------------------- gradients of values */

float *dpf_network_output_gradient(struct dpf_network *net)
{
    struct dpf_layer *last = &net->layers[net->model->output];
    return last->trains ? last->gradient : NULL;
}

/* From the output to the first node with parameters. A node that several read gets the
 * sum of what they say. */
void dpf_network_value_gradients(struct dpf_network *net, int64_t n,
                                 const float *d_output)
{
    const struct dpf_model *m = net->model;
    float *last = dpf_network_output_gradient(net);
    for (size_t i = 0; i < m->count; i++)
        net->layers[i].filled = false;
    if (!last)
        return;
    if (d_output)
        net->kernels->put(net->context, last, d_output,
                          (size_t)(n * dpf_nn_elements(&m->nodes[m->output].shape)) *
                              sizeof *d_output);
    net->layers[m->output].filled = true;
    for (size_t i = m->output + 1; i-- > 0;) {
        const struct dpf_node *node = &m->nodes[i];
        for (int d = 0; net->layers[i].filled && d < node->input_count; d++) {
            struct dpf_layer *to = &net->layers[node->inputs[d]];
            if (!to->trains)
                continue;
            struct dpf_node_run r = dpf_node_run_of(net, i, d, n);
            node->op->backward(&r, to->filled ? net->scratch : to->gradient);
            if (to->filled)
                net->kernels->add(net->context, n * dpf_run_input(&r), net->scratch,
                                  to->gradient);
            to->filled = true;
        }
    }
}

/* --------------------------------------------------------------------------- clipping */

/* Take examples out of the sums altogether: 0 times what is not finite would be NaN, so
 * what their layers read is cleared as well. */
static void drop_examples(struct dpf_network *net, int64_t n, const float *keep)
{
    const struct dpf_model *m = net->model;
    for (size_t i = 0; i < m->count; i++)
        for (int d = 0; m->nodes[i].parameter_count && d < m->nodes[i].input_count; d++) {
            size_t from = m->nodes[i].inputs[d];
            if (!m->nodes[from].bits)
                net->kernels->scale_rows(net->context, n,
                                         dpf_nn_elements(&m->nodes[from].shape), keep,
                                         net->layers[from].value);
        }
}

/* Factors from the squares; how many gradients are cut down. */
static int64_t make_factors(struct dpf_network *net, int64_t n, enum dpf_clip_rule rule,
                            double clip_l2)
{
    int64_t counts[2];
    float *keep = net->scratch; /* as large as the largest value of all examples */
    net->kernels->clip_factors(net->context, n, rule == DPF_CLIP_AUTOMATIC, clip_l2,
                               net->squares, net->factors, keep, counts);
    if (counts[1])
        drop_examples(net, n, keep);
    return counts[0];
}

static void clear_squares(struct dpf_network *net, int64_t n)
{
    net->kernels->put(net->context, net->squares, net->zeros,
                      (size_t)n * sizeof *net->zeros);
}

static bool has_gradient(const struct dpf_network *net, size_t i)
{
    return net->model->nodes[i].parameter_count > 0 && net->layers[i].filled;
}

int64_t dpf_network_backward(struct dpf_network *net, int64_t n, const float *d_output,
                             enum dpf_clip_rule rule, double clip_l2)
{
    int64_t clipped = 0;
    bool whole = rule == DPF_CLIP_FLAT || rule == DPF_CLIP_AUTOMATIC;
    dpf_network_value_gradients(net, n, d_output);
    if (whole)
        clear_squares(net, n);
    for (size_t i = 0; whole && i < net->model->count; i++)
        if (has_gradient(net, i)) {
            struct dpf_node_run r = dpf_node_run_of(net, i, 0, n);
            r.node->op->parameters->example_norms(&r);
        }
    if (whole)
        clipped = make_factors(net, n, rule, clip_l2);
    for (size_t i = 0; i < net->model->count; i++) {
        if (!has_gradient(net, i))
            continue;
        struct dpf_node_run r = dpf_node_run_of(net, i, 0, n);
        const struct dpf_op_parameters *op = r.node->op->parameters;
        if (rule == DPF_CLIP_NONE) {
            op->gradients(&r);
            continue;
        }
        if (rule == DPF_CLIP_LAYER) {
            clear_squares(net, n);
            op->example_norms(&r);
            clipped += make_factors(net, n, rule, clip_l2);
        }
        op->add_clipped(&r);
    }
    return clipped;
}
