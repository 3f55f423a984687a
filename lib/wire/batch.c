#include "wire/batch.h"

#include <string.h>

#include "base/banned.h"

uint64_t dpf_batch_rows(const struct dpf_header *h)
{
    size_t record = 0, bytes;
    for (int i = 0; i < h->field_count; i++)
        if (dpf_shape_bytes(h->fields[i].dtype, &h->fields[i].shape, &bytes))
            record += bytes;
    uint64_t rows = record ? DPF_BATCH_BYTES / record : DPF_BATCH_BYTES / 64;
    return rows ? rows : 1;
}

enum dpf_status dpf_batch_init(struct dpf_batch *b, const struct dpf_header *h,
                               uint64_t rows, struct dpf_error *e)
{
    *b = (struct dpf_batch){.rows = rows, .count = h->field_count};
    for (int i = 0; i < h->field_count; i++) {
        struct dpf_shape shape;
        enum dpf_status status = DPF_OK;
        if (!dpf_shape_prepend(&h->fields[i].shape, rows, &shape))
            status = dpf_fail(e, DPF_BAD_STREAM, "field '%s' has too many dimensions",
                              h->fields[i].name);
        else
            status = dpf_tensor_init(&b->tensor[i], h->fields[i].dtype, &shape, e);
        if (status != DPF_OK) {
            dpf_batch_release(b);
            return status;
        }
    }
    return DPF_OK;
}

void dpf_batch_truncate(struct dpf_batch *b, uint64_t rows)
{
    for (int i = 0; i < b->count; i++) {
        struct dpf_tensor *t = &b->tensor[i];
        t->bytes = dpf_tensor_row_bytes(t) * rows;
        t->shape.dim[0] = rows;
    }
    b->rows = rows;
}

void dpf_batch_select(struct dpf_batch *b, const bool *keep)
{
    uint64_t kept = 0;
    for (uint64_t r = 0; r < b->rows; r++) {
        if (!keep[r])
            continue;
        for (int i = 0; kept != r && i < b->count; i++) {
            size_t row = dpf_tensor_row_bytes(&b->tensor[i]);
            char *data = b->tensor[i].data;
            memcpy(data + kept * row, data + r * row, row);
        }
        kept++;
    }
    dpf_batch_truncate(b, kept);
}

void dpf_batch_release(struct dpf_batch *b)
{
    for (int i = 0; i < b->count; i++)
        dpf_tensor_release(&b->tensor[i]);
    *b = (struct dpf_batch){0};
}

struct dpf_tensor *dpf_batch_field(struct dpf_batch *b, const struct dpf_header *h,
                                   const char *name, struct dpf_error *e)
{
    for (int i = 0; i < h->field_count; i++)
        if (strcmp(h->fields[i].name, name) == 0)
            return &b->tensor[i];
    dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", name);
    return NULL;
}

enum dpf_status dpf_batch_encode(struct dpf_encoder *enc, const struct dpf_header *h,
                                 const struct dpf_batch *b, uint64_t sequence,
                                 struct dpf_error *e)
{
    if (b->count != h->field_count)
        return dpf_fail(e, DPF_BAD_STREAM, "a batch does not have the header's fields");
    dpf_encoder_begin(enc, "batch", 2);
    dpf_encode_key(enc, "sequence");
    dpf_encode_uint(enc, sequence);
    dpf_encode_key(enc, "fields");
    msgpack_pack_map(&enc->packer, (size_t)b->count);
    for (int i = 0; i < b->count; i++) {
        dpf_encode_key(enc, h->fields[i].name);
        dpf_encode_tensor(enc, &b->tensor[i]);
    }
    return DPF_OK;
}

/* The message does not say which record has the bad label: that is private. */
static enum dpf_status check_labels(const struct dpf_field *f, const struct dpf_tensor *t,
                                    struct dpf_error *e)
{
    uint64_t n = dpf_shape_elements(&t->shape), top = 0;
    switch (t->dtype) {
    case DPF_U8:
        for (uint64_t i = 0; i < n; i++)
            top |= (uint64_t)(((const uint8_t *)t->data)[i] >= f->classes);
        break;
    case DPF_I32:
        for (uint64_t i = 0; i < n; i++)
            top |= (uint64_t)((uint64_t)((const int32_t *)t->data)[i] >= f->classes);
        break;
    default:
        for (uint64_t i = 0; i < n; i++)
            top |= (uint64_t)((uint64_t)((const int64_t *)t->data)[i] >= f->classes);
    }
    if (top)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' has a label outside its %llu classes", f->name,
                        (unsigned long long)f->classes);
    return DPF_OK;
}

static enum dpf_status decode_tensor(const msgpack_object *fields,
                                     const struct dpf_field *f, struct dpf_tensor *t,
                                     struct dpf_error *e)
{
    const msgpack_object *o = dpf_object_get(fields, f->name);
    if (!o)
        return dpf_fail(e, DPF_BAD_STREAM, "a batch lacks field '%s'", f->name);
    enum dpf_status status = dpf_object_tensor(o, t, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot read field '%s'", f->name);
    struct dpf_shape wanted;
    dpf_shape_prepend(&f->shape, dpf_tensor_rows(t), &wanted);
    if (t->dtype != f->dtype || !dpf_shape_equal(&t->shape, &wanted)) {
        dpf_tensor_release(t);
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' does not have the dtype and shape of the header",
                        f->name);
    }
    status = f->classes ? check_labels(f, t, e) : DPF_OK;
    if (status != DPF_OK)
        dpf_tensor_release(t);
    return status;
}

enum dpf_status dpf_batch_decode(const msgpack_object *root, const struct dpf_header *h,
                                 uint64_t expected_sequence, struct dpf_batch *b,
                                 struct dpf_error *e)
{
    *b = (struct dpf_batch){0};
    uint64_t sequence;
    const msgpack_object *fields = dpf_object_get(root, "fields");
    if (!dpf_object_uint(dpf_object_get(root, "sequence"), &sequence) || !fields ||
        fields->type != MSGPACK_OBJECT_MAP)
        return dpf_fail(e, DPF_BAD_STREAM, "a batch lacks its sequence number or fields");
    if (sequence != expected_sequence)
        return dpf_fail(e, DPF_BAD_STREAM, "batch %llu came, %llu was expected",
                        (unsigned long long)sequence,
                        (unsigned long long)expected_sequence);
    if (fields->via.map.size != (uint32_t)h->field_count)
        return dpf_fail(e, DPF_BAD_STREAM, "a batch does not have the header's fields");
    for (int i = 0; i < h->field_count; i++) {
        enum dpf_status status = decode_tensor(fields, &h->fields[i], &b->tensor[i], e);
        if (status == DPF_OK) {
            b->count++;
            if (i && dpf_tensor_rows(&b->tensor[i]) != b->rows)
                status = dpf_fail(e, DPF_BAD_STREAM,
                                  "fields '%s' and '%s' have different record counts",
                                  h->fields[0].name, h->fields[i].name);
        }
        if (status != DPF_OK) {
            dpf_batch_release(b);
            return status;
        }
        b->rows = dpf_tensor_rows(&b->tensor[i]);
    }
    if (b->rows > DPF_MAX_BATCH_ROWS) {
        dpf_batch_release(b);
        return dpf_fail(e, DPF_BAD_STREAM, "a batch has more than %d records",
                        DPF_MAX_BATCH_ROWS);
    }
    return DPF_OK;
}
