#include "stage/report_stream.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "wire/decode.h"

#include "base/banned.h"

/* The means of every mechanism that tells some, in the branches of merged streams, too.
 */
struct search {
    double moments[2];
    bool found, differ;
};

static void look_at(const msgpack_object *event, struct search *s, int depth)
{
    const msgpack_object *told = dpf_object_get(event, "moments");
    const msgpack_object *branches = dpf_object_get(event, "branches");
    double own[2];
    if (told && told->type == MSGPACK_OBJECT_ARRAY && told->via.array.size == 2 &&
        dpf_object_real(&told->via.array.ptr[0], &own[0]) &&
        dpf_object_real(&told->via.array.ptr[1], &own[1])) {
        s->differ = s->differ || (s->found && memcmp(s->moments, own, sizeof own) != 0);
        memcpy(s->moments, own, sizeof own);
        s->found = true;
    }
    if (!branches || branches->type != MSGPACK_OBJECT_ARRAY || depth > 16)
        return;
    for (uint32_t i = 0; i < branches->via.array.size; i++) {
        const msgpack_object *b = &branches->via.array.ptr[i];
        for (uint32_t k = 0; b->type == MSGPACK_OBJECT_ARRAY && k < b->via.array.size;
             k++)
            look_at(&b->via.array.ptr[k], s, depth + 1);
    }
}

static enum dpf_status find_moments(const struct dpf_values *events, double moments[2],
                                    struct dpf_error *e)
{
    msgpack_unpacked one;
    struct search s = {.found = false};
    size_t at = 0;
    msgpack_unpacked_init(&one);
    for (uint32_t i = 0; i < events->count; i++)
        if (msgpack_unpack_next(&one, (const char *)events->bytes.data,
                                events->bytes.size, &at) == MSGPACK_UNPACK_SUCCESS)
            look_at(&one.data, &s, 0);
    msgpack_unpacked_destroy(&one);
    memcpy(moments, s.moments, sizeof s.moments);
    if (!s.found)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the ledger names no messages: 'randomize --method privunit' "
                        "makes them of private records");
    return s.differ ? dpf_fail(e, DPF_BAD_STREAM,
                               "the stream holds messages of different settings")
                    : DPF_OK;
}

enum dpf_status dpf_report_stream_open(struct dpf_report_stream *r, struct dpf_stage *s,
                                       const char *field, const char *label,
                                       struct dpf_error *e)
{
    const struct dpf_field *x = dpf_header_field(&s->in, field);
    const struct dpf_field *y = dpf_header_field(&s->in, label);
    if (!x || !y)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'",
                        x ? label : field);
    uint64_t elements = dpf_shape_elements(&y->shape);
    *r = (struct dpf_report_stream){.x = (int)(x - s->in.fields),
                                    .y = (int)(y - s->in.fields),
                                    .values = dpf_shape_elements(&x->shape),
                                    .classes = y->classes > 0 && elements == 1};
    r->outputs = r->classes ? y->classes : elements;
    if (x->dtype != DPF_F32 || x->shape.rank != 1 || r->values < 2)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds no messages", x->name);
    if ((!r->classes && (y->dtype != DPF_F32 || y->shape.rank != 1)) || r->outputs < 1)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' holds neither labels nor codes of labels", y->name);
    return find_moments(&s->in.events, r->moments, e);
}

enum dpf_status dpf_report_stream_take(struct dpf_report_stream *r, struct dpf_batch *b,
                                       struct dpf_error *e)
{
    const struct dpf_tensor *y = &b->tensor[r->y];
    enum dpf_status status = dpf_tensor_make_f32(&b->tensor[r->x], e);
    if (status != DPF_OK)
        return status;
    if (!dpf_grow(&r->codes, &r->capacity, b->rows * r->outputs + 1, sizeof *r->codes))
        return dpf_fail_memory(e);
    if (!r->classes) {
        memcpy(r->codes, y->data, b->rows * r->outputs * sizeof *r->codes);
        return DPF_OK;
    }
    memset(r->codes, 0, b->rows * r->outputs * sizeof *r->codes);
    for (uint64_t i = 0; i < b->rows; i++) /* the reader checked their range */
        r->codes[i * r->outputs + (uint64_t)dpf_tensor_get(y, i)] = 1;
    return DPF_OK;
}

void dpf_report_stream_release(struct dpf_report_stream *r)
{
    free(r->codes);
    r->codes = NULL;
}
