#include "nn/weights.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "nn/ops/op.h"

#include "base/banned.h"

/* ------------------------------------------------------------------------ by name */

/* The shape as PyTorch has it: pictures' convolutions have no depth. */
static struct dpf_shape outer_shape(const struct dpf_model *m, const struct dpf_node *n,
                                    int k, bool *turned)
{
    struct dpf_shape s = n->parameters[k];
    *turned = false;
    if (k == 0 && s.rank == 5 && n->shape.rank == 3) {
        s.rank = 4;
        s.dim[2] = s.dim[3];
        s.dim[3] = s.dim[4];
    }
    if (k == 0 && n->op == &dpf_op_dense && m->nodes[n->inputs[0]].bits) {
        *turned = true; /* over packed bits: [in, out] inside */
        s.dim[1] = s.dim[0];
        s.dim[0] = (uint64_t)n->out;
    }
    return s;
}

static void transpose(uint64_t rows, uint64_t columns, const float *from, float *to)
{
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++)
            to[c * rows + r] = from[r * columns + c];
}

static const char *const endings[DPF_NODE_PARAMETERS] = {
    ".weight", ".bias", ".visible", ".condition", ".visible_condition"};

static void tensor_name(const struct dpf_node *n, int k, char out[DPF_TENSOR_NAME])
{
    snprintf(out, DPF_TENSOR_NAME, "%s%s", n->name, endings[k]);
}

enum dpf_status dpf_weights_export(const struct dpf_model *m, const float *parameters,
                                   struct dpf_safetensors *out, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; status == DPF_OK && k < m->nodes[i].parameter_count; k++) {
            const struct dpf_node *n = &m->nodes[i];
            const float *own = parameters + n->offset[k];
            char name[DPF_TENSOR_NAME];
            bool turned;
            struct dpf_shape shape = outer_shape(m, n, k, &turned);
            tensor_name(n, k, name);
            status = dpf_safetensors_add(out, name, &shape, own, e);
            if (status == DPF_OK && turned)
                transpose(shape.dim[1], shape.dim[0], own,
                          dpf_safetensors_find(out, name)->values);
        }
    return status;
}

/* Is this the name of one of the model's parameters? */
static bool is_known(const struct dpf_model *m, const char *name)
{
    char own[DPF_TENSOR_NAME];
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; k < m->nodes[i].parameter_count; k++) {
            tensor_name(&m->nodes[i], k, own);
            if (strcmp(own, name) == 0)
                return true;
        }
    return false;
}

static enum dpf_status import_one(const struct dpf_model *m, const struct dpf_node *n,
                                  int k, const struct dpf_safetensors *from,
                                  const char *file, float *to, struct dpf_error *e)
{
    char name[DPF_TENSOR_NAME], have[96], want[96];
    bool turned;
    struct dpf_shape shape = outer_shape(m, n, k, &turned);
    tensor_name(n, k, name);
    const struct dpf_named_tensor *t = dpf_safetensors_find(from, name);
    if (!t)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has no tensor '%s'", file, name);
    if (!dpf_shape_equal(&t->shape, &shape)) {
        dpf_shape_format(&t->shape, have, sizeof have);
        dpf_shape_format(&shape, want, sizeof want);
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s': tensor '%s' is %s, the network needs %s", file, name, have,
                        want);
    }
    if (turned)
        transpose(shape.dim[0], shape.dim[1], t->values, to);
    else
        memcpy(to, t->values, t->count * sizeof *to);
    return DPF_OK;
}

enum dpf_status dpf_weights_import(const struct dpf_model *m,
                                   const struct dpf_safetensors *from, const char *name,
                                   float *parameters, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    memset(parameters, 0, m->span * sizeof *parameters);
    for (size_t i = 0; i < from->count; i++)
        if (!is_known(m, from->tensors[i].name))
            return dpf_fail(e, DPF_BAD_STREAM, "'%s': the network has no parameter '%s'",
                            name, from->tensors[i].name);
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; status == DPF_OK && k < m->nodes[i].parameter_count; k++)
            status = import_one(m, &m->nodes[i], k, from, name,
                                parameters + m->nodes[i].offset[k], e);
    return status;
}

/* -------------------------------------------------------------------------- frames */

void dpf_weights_encode(struct dpf_encoder *enc, const struct dpf_model *m,
                        const struct dpf_safetensors *weights, unsigned more)
{
    dpf_encoder_begin(enc, "model", 2 + more);
    dpf_encode_key(enc, "text");
    dpf_encode_string(enc, m->text);
    dpf_encode_key(enc, "parameters");
    msgpack_pack_map(&enc->packer, weights->count);
    for (size_t i = 0; i < weights->count; i++) {
        const struct dpf_named_tensor *t = &weights->tensors[i];
        struct dpf_tensor view;
        dpf_encode_key(enc, t->name);
        if (dpf_tensor_view(&view, DPF_F32, &t->shape, t->values, NULL) != DPF_OK)
            enc->failed = true;
        dpf_encode_tensor(enc, &view);
    }
}

/* Letters, digits and what else the names of nodes and their parameters are made of. */
static bool is_plain(const char *name)
{
    const char *letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    bool ends = false;
    for (int k = 0; k < DPF_NODE_PARAMETERS; k++)
        ends = ends || dpf_ends_with(name, endings[k]);
    return ends && strspn(name, letters) == strlen(name);
}

static enum dpf_status decode_tensors(const struct dpf_model *m,
                                      const msgpack_object *map,
                                      struct dpf_safetensors *out, struct dpf_error *e)
{
    if (map->via.map.size > DPF_NODE_PARAMETERS * m->count)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the model frame has %u parameters, its text %zu "
                        "nodes",
                        (unsigned)map->via.map.size, m->count);
    for (uint32_t i = 0; i < map->via.map.size; i++) {
        const msgpack_object_kv *pair = &map->via.map.ptr[i];
        const char *text;
        char name[DPF_TENSOR_NAME];
        size_t size;
        struct dpf_tensor t;
        if (!dpf_object_text(&pair->key, &text, &size) || size >= sizeof name)
            return dpf_fail(e, DPF_BAD_STREAM, "a parameter of the model has no name");
        snprintf(name, sizeof name, "%.*s", (int)size, text);
        if (strlen(name) != size || !is_plain(name))
            return dpf_fail(e, DPF_BAD_STREAM,
                            "a parameter's name is not that of a node, with '.weight', "
                            "'.bias' or another "
                            "ending of parameters");
        enum dpf_status status = dpf_object_tensor(&pair->val, &t, e);
        if (status != DPF_OK)
            return dpf_error_prefix(e, status, "parameter '%s'", name);
        if (t.dtype != DPF_F32)
            status = dpf_fail(e, DPF_BAD_STREAM, "parameter '%s' is %s, not f32", name,
                              dpf_dtype_name(t.dtype));
        else if (dpf_safetensors_find(out, name))
            status = dpf_fail(e, DPF_BAD_STREAM, "parameter '%s' is there twice", name);
        else
            status = dpf_safetensors_add(out, name, &t.shape, t.data, e);
        dpf_tensor_release(&t);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

enum dpf_status dpf_weights_decode(const msgpack_object *frame, struct dpf_model *m,
                                   float **take_parameters, struct dpf_error *e)
{
    struct dpf_safetensors weights = {0};
    const msgpack_object *map = dpf_object_get(frame, "parameters");
    const msgpack_object *text = dpf_object_get(frame, "text");
    const char *chars;
    size_t size;
    *take_parameters = NULL;
    if (!text || !dpf_object_text(text, &chars, &size) || !map ||
        map->type != MSGPACK_OBJECT_MAP)
        return dpf_fail(e, DPF_BAD_STREAM, "the model frame has no text or parameters");
    enum dpf_status status = dpf_model_parse(m, chars, size, "model", e);
    if (status != DPF_OK) {
        if (e && status == DPF_USAGE) /* the stream is at fault, not the command line */
            e->status = DPF_BAD_STREAM;
        return status == DPF_USAGE ? DPF_BAD_STREAM : status;
    }
    float *parameters = NULL;
    uint64_t have = 0, want = dpf_model_parameter_count(m);
    status = decode_tensors(m, map, &weights, e);
    for (size_t i = 0; i < weights.count; i++)
        have += weights.tensors[i].count;
    if (status == DPF_OK && have != want) /* before anything is allocated for them */
        status = dpf_fail(e, DPF_BAD_STREAM,
                          "the model's text needs %llu parameters, the frame has %llu",
                          (unsigned long long)want, (unsigned long long)have);
    if (status == DPF_OK)
        parameters = dpf_alloc_aligned((m->span + 1) * sizeof *parameters);
    if (status == DPF_OK)
        status = parameters ? dpf_weights_import(m, &weights, "model", parameters, e)
                            : dpf_fail_memory(e);
    dpf_safetensors_release(&weights);
    if (status == DPF_OK) {
        *take_parameters = parameters;
        return DPF_OK;
    }
    free(parameters);
    dpf_model_release(m);
    return status;
}
