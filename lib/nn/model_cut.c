#include "nn/model_cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#include "base/banned.h"

/* Line `number` of a text, counted from 1. */
static void add_line(struct dpf_text *t, const char *text, int number)
{
    for (; number > 1 && text; number--)
        text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    if (text)
        dpf_text_addn(t, text, strcspn(text, "\n"));
    dpf_text_add(t, "\n");
}

/* Which nodes need nothing but `first`; whether the output is among them. */
static bool find_kept(const struct dpf_model *m, size_t first, bool *kept)
{
    kept[first] = true;
    for (size_t i = first + 1; i < m->count; i++) {
        kept[i] = m->nodes[i].input_count > 0;
        for (int k = 0; k < m->nodes[i].input_count; k++)
            kept[i] = kept[i] && kept[m->nodes[i].inputs[k]];
    }
    return kept[m->output];
}

static void write_rest(struct dpf_text *t, const struct dpf_model *m, size_t first,
                       const bool *kept)
{
    const struct dpf_node *in = &m->nodes[first];
    dpf_text_addf(t, "input %s ", in->name);
    for (int d = 0; d < in->shape.rank; d++)
        dpf_text_addf(t, "%s%llu", d ? "x" : "", (unsigned long long)in->shape.dim[d]);
    dpf_text_add(t, "\n");
    for (size_t i = first + 1; i < m->count; i++)
        if (kept[i])
            add_line(t, m->text, m->nodes[i].line);
    dpf_text_addf(t, "output %s\n", m->nodes[m->output].name);
}

/* The parameters of `to`, each from the node of its name. */
static float *copy_parameters(const struct dpf_model *from, const float *all,
                              const struct dpf_model *to)
{
    float *own = dpf_calloc(to->span + 1, sizeof *own);
    for (size_t i = 1; own && i < to->count; i++) {
        const struct dpf_node *n = &to->nodes[i], *old = dpf_model_find(from, n->name);
        for (int k = 0; k < n->parameter_count; k++)
            memcpy(own + n->offset[k], all + old->offset[k],
                   dpf_shape_elements(&n->parameters[k]) * sizeof *own);
    }
    return own;
}

enum dpf_status dpf_model_cut(const struct dpf_model *m, const float *parameters,
                              const char *from, struct dpf_model *rest,
                              float **take_parameters, struct dpf_error *e)
{
    const struct dpf_node *node = dpf_model_find(m, from);
    if (!node)
        return dpf_fail(e, DPF_USAGE, "the network has no node '%s'", from);
    if (node->bits) /* what reads them has its weights in another order */
        return dpf_fail(e, DPF_USAGE, "node '%s' is an input of packed bits", from);
    bool *kept = dpf_calloc(m->count, sizeof *kept);
    if (!kept)
        return dpf_fail_memory(e);
    struct dpf_text text = {0};
    size_t first = (size_t)(node - m->nodes);
    enum dpf_status status = DPF_OK;
    if (!find_kept(m, first, kept) || m->output == first)
        status = dpf_fail(e, DPF_USAGE,
                          "the network's output '%s' is not computed from '%s' alone",
                          m->nodes[m->output].name, from);
    else
        write_rest(&text, m, first, kept);
    if (status == DPF_OK)
        status = text.failed ? dpf_fail_memory(e)
                             : dpf_model_parse(rest, text.data, text.size, from, e);
    if (status == DPF_OK && !(*take_parameters = copy_parameters(m, parameters, rest))) {
        dpf_model_release(rest);
        status = dpf_fail_memory(e);
    }
    dpf_text_release(&text);
    free(kept);
    return status;
}
