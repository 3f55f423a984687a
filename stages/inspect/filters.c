#include "filters.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "data/picture.h"
#include "nn/ops/op.h"
#include "nn/weights.h"
#include "tensor/tensor.h"

#include "base/banned.h"

/* One filter of a node as a picture or a volume; false: it is none. */
static bool filter_shape(const struct dpf_model *m, const struct dpf_node *n,
                         struct dpf_shape *one)
{
    const struct dpf_node *from = &m->nodes[n->inputs[0]];
    if (n->op == &dpf_op_conv) {
        const uint64_t *d = n->parameters[0].dim;
        bool flat = d[2] == 1 && (d[1] == 1 || d[1] == 3);
        *one = flat ? (struct dpf_shape){.rank = 3, .dim = {d[1], d[3], d[4]}}
                    : (struct dpf_shape){.rank = 4, .dim = {d[1], d[2], d[3], d[4]}};
        return d[3] * d[4] > 1 && dpf_sheet_can_draw(one);
    }
    if (n->op != &dpf_op_dense || from->op != &dpf_op_flatten)
        return false;
    *one = m->nodes[from->inputs[0]].shape;
    return dpf_sheet_can_draw(one);
}

static enum dpf_status save_node(const char *path, const struct dpf_node *n,
                                 const float *weights, const struct dpf_shape *one,
                                 struct dpf_error *e)
{
    struct dpf_sheet *sheet = NULL;
    struct dpf_tensor all;
    uint64_t filters = (uint64_t)n->out, size = dpf_shape_elements(one);
    const struct dpf_shape shape = {.rank = 2, .dim = {filters, size}};
    enum dpf_status status = dpf_tensor_view(&all, DPF_F32, &shape, (void *)weights, e);
    if (status == DPF_OK)
        status = dpf_sheet_new(&sheet, one, 0, e);
    for (uint64_t i = 0; status == DPF_OK && i < filters && !dpf_sheet_full(sheet); i++)
        dpf_sheet_add(sheet, &all, i, UINT64_MAX);
    if (status == DPF_OK)
        status = dpf_sheet_write(sheet, path, e);
    dpf_sheet_destroy(&sheet);
    return status;
}

enum dpf_status dpf_filters_save(const char *folder, const msgpack_object *frame,
                                 int64_t number, int64_t *drawn, struct dpf_error *e)
{
    struct dpf_model m;
    struct dpf_shape one;
    float *parameters = NULL;
    enum dpf_status status = dpf_weights_decode(frame, &m, &parameters, e);
    if (status != DPF_OK)
        return status;
    for (size_t i = 1; status == DPF_OK && i < m.count; i++) {
        const struct dpf_node *n = &m.nodes[i];
        if (!filter_shape(&m, n, &one))
            continue;
        char *path =
            number > 0 ? dpf_format("%s/%s.%lld.png", folder, n->name, (long long)number)
                       : dpf_format("%s/%s.png", folder, n->name);
        status = path ? save_node(path, n, parameters + n->offset[0], &one, e)
                      : dpf_fail_memory(e);
        free(path);
        ++*drawn;
    }
    free(parameters);
    dpf_model_release(&m);
    return status;
}
