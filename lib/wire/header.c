#include "wire/header.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#include "base/banned.h"

static void field_release(struct dpf_field *f)
{
    dpf_field_clear_bounds(f);
    for (size_t i = 0; i < f->feature_count; i++)
        free(f->features[i]);
    free(f->features);
    *f = (struct dpf_field){0};
}

void dpf_header_release(struct dpf_header *h)
{
    for (int i = 0; i < h->field_count; i++)
        field_release(&h->fields[i]);
    dpf_values_release(&h->provenance);
    dpf_values_release(&h->events);
    dpf_values_release(&h->branches);
    *h = (struct dpf_header){0};
}

void dpf_header_keep_field(struct dpf_header *h, int number)
{
    struct dpf_field kept = h->fields[number];
    for (int i = 0; i < h->field_count; i++)
        if (i != number)
            field_release(&h->fields[i]);
    memset(h->fields, 0, sizeof h->fields);
    h->fields[0] = kept;
    h->field_count = 1;
}

void dpf_field_clear_bounds(struct dpf_field *f)
{
    free(f->bounds.lo);
    free(f->bounds.hi);
    f->bounds = (struct dpf_bounds){0};
}

static bool bounds_alloc(struct dpf_bounds *b, size_t count)
{
    b->lo = dpf_calloc(count, sizeof *b->lo);
    b->hi = dpf_calloc(count, sizeof *b->hi);
    b->count = count;
    return b->lo && b->hi;
}

enum dpf_status dpf_field_set_bounds(struct dpf_field *f, double lo, double hi,
                                     struct dpf_error *e)
{
    dpf_field_clear_bounds(f);
    if (!bounds_alloc(&f->bounds, 1))
        return dpf_fail_memory(e);
    f->bounds.lo[0] = lo;
    f->bounds.hi[0] = hi;
    return DPF_OK;
}

enum dpf_status dpf_field_declare_features(struct dpf_field *f, size_t count,
                                           struct dpf_error *e)
{
    for (size_t i = 0; i < f->feature_count; i++)
        free(f->features[i]);
    free(f->features);
    f->feature_count = 0;
    dpf_field_clear_bounds(f);
    f->features = dpf_calloc(count, sizeof *f->features);
    return f->features && bounds_alloc(&f->bounds, count) ? DPF_OK : dpf_fail_memory(e);
}

enum dpf_status dpf_field_name_feature(struct dpf_field *f, const char *name,
                                       struct dpf_error *e)
{
    f->features[f->feature_count] = dpf_strdup(name);
    return f->features[f->feature_count] && ++f->feature_count ? DPF_OK
                                                               : dpf_fail_memory(e);
}

static bool field_copy(struct dpf_field *to, const struct dpf_field *from)
{
    *to = *from;
    to->bounds = (struct dpf_bounds){0};
    to->features = NULL;
    to->feature_count = 0;
    if (from->bounds.count) {
        if (!bounds_alloc(&to->bounds, from->bounds.count))
            return false;
        memcpy(to->bounds.lo, from->bounds.lo, from->bounds.count * sizeof(double));
        memcpy(to->bounds.hi, from->bounds.hi, from->bounds.count * sizeof(double));
    }
    if (from->feature_count) {
        to->features = dpf_calloc(from->feature_count, sizeof *to->features);
        if (!to->features)
            return false;
        to->feature_count = from->feature_count;
        for (size_t i = 0; i < from->feature_count; i++)
            if (!(to->features[i] = dpf_strdup(from->features[i])))
                return false;
    }
    return true;
}

void dpf_header_drop_fields(struct dpf_header *h)
{
    for (int i = 0; i < h->field_count; i++)
        field_release(&h->fields[i]);
    h->field_count = 0;
    h->has_records = false;
    h->records = 0;
}

void dpf_field_redefine(struct dpf_field *f, enum dpf_dtype dtype,
                        const struct dpf_shape *record_shape)
{
    struct dpf_field fresh = {.dtype = dtype, .shape = *record_shape};
    memcpy(fresh.name, f->name, sizeof fresh.name);
    field_release(f);
    *f = fresh;
}

enum dpf_status dpf_header_copy(struct dpf_header *to, const struct dpf_header *from,
                                struct dpf_error *e)
{
    bool good = true;
    *to = (struct dpf_header){.field_count = from->field_count,
                              .has_records = from->has_records,
                              .records = from->records,
                              .is_private = from->is_private,
                              .is_protected = from->is_protected};
    for (int i = 0; i < from->field_count; i++)
        good = field_copy(&to->fields[i], &from->fields[i]) && good;
    dpf_values_append(&to->provenance, &from->provenance);
    dpf_values_append(&to->events, &from->events);
    if (!good || !dpf_buffer_ok(&to->provenance.bytes) ||
        !dpf_buffer_ok(&to->events.bytes)) {
        dpf_header_release(to);
        return dpf_fail_memory(e);
    }
    return DPF_OK;
}

struct dpf_field *dpf_header_field(struct dpf_header *h, const char *name)
{
    for (int i = 0; i < h->field_count; i++)
        if (strcmp(h->fields[i].name, name) == 0)
            return &h->fields[i];
    return NULL;
}

static bool plain_name(const char *text, size_t size)
{
    if (size == 0 || size >= DPF_NAME_BYTES || !dpf_text_is_visible(text, size))
        return false;
    for (size_t i = 0; i < size; i++)
        if ((unsigned char)text[i] <= 0x20 || text[i] == 0x7f || text[i] == '\'' ||
            text[i] == '/') /* names become file names */
            return false;
    return true;
}

struct dpf_field *dpf_header_add_field(struct dpf_header *h, const char *name,
                                       enum dpf_dtype dtype,
                                       const struct dpf_shape *record_shape)
{
    if (h->field_count == DPF_MAX_FIELDS || !plain_name(name, strlen(name)) ||
        dpf_header_field(h, name))
        return NULL;
    struct dpf_field *f = &h->fields[h->field_count++];
    *f = (struct dpf_field){.dtype = dtype, .shape = *record_shape};
    snprintf(f->name, sizeof f->name, "%s", name);
    return f;
}

enum dpf_status dpf_header_same_fields(const struct dpf_header *a,
                                       const struct dpf_header *b, struct dpf_error *e)
{
    if (a->field_count != b->field_count)
        return dpf_fail(e, DPF_BAD_STREAM, "the streams have %d and %d fields",
                        a->field_count, b->field_count);
    for (int i = 0; i < a->field_count; i++) {
        const struct dpf_field *f = &a->fields[i], *g = &b->fields[i];
        if (strcmp(f->name, g->name) != 0 || f->dtype != g->dtype ||
            !dpf_shape_equal(&f->shape, &g->shape)) {
            char left[96], right[96];
            dpf_shape_format(&f->shape, left, sizeof left);
            dpf_shape_format(&g->shape, right, sizeof right);
            return dpf_fail(
                e, DPF_BAD_STREAM,
                "the streams differ: field '%s' is %s %s, field '%s' is %s %s", f->name,
                dpf_dtype_name(f->dtype), left, g->name, dpf_dtype_name(g->dtype), right);
        }
    }
    return DPF_OK;
}

static bool same_features(const struct dpf_field *a, const struct dpf_field *b)
{
    if (a->feature_count != b->feature_count)
        return false;
    for (size_t i = 0; i < a->feature_count; i++)
        if (strcmp(a->features[i], b->features[i]) != 0)
            return false;
    return true;
}

enum dpf_status dpf_field_merge(struct dpf_field *into, const struct dpf_field *other,
                                struct dpf_error *e)
{
    if (into->classes != other->classes)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the streams differ: field '%s' has %llu and %llu classes",
                        into->name, (unsigned long long)into->classes,
                        (unsigned long long)other->classes);
    if (!same_features(into, other))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the streams differ: field '%s' has other feature names",
                        into->name);
    if (into->norm_l2 <= 0 || other->norm_l2 <= 0)
        into->norm_l2 = 0;
    else if (other->norm_l2 > into->norm_l2)
        into->norm_l2 = other->norm_l2;
    if (into->bounds.count != other->bounds.count) {
        dpf_field_clear_bounds(into);
        return DPF_OK;
    }
    for (size_t i = 0; i < into->bounds.count; i++) {
        into->bounds.lo[i] = fmin(into->bounds.lo[i], other->bounds.lo[i]);
        into->bounds.hi[i] = fmax(into->bounds.hi[i], other->bounds.hi[i]);
    }
    return DPF_OK;
}

static void encode_reals(struct dpf_encoder *enc, const double *values, size_t count)
{
    msgpack_pack_array(&enc->packer, count);
    for (size_t i = 0; i < count; i++)
        dpf_encode_real(enc, values[i]);
}

static void encode_field(struct dpf_encoder *enc, const struct dpf_field *f)
{
    unsigned entries = 3 + (f->classes > 0) + (f->norm_l2 > 0) + (f->bounds.count > 0) +
                       (f->feature_count > 0);
    msgpack_pack_map(&enc->packer, entries);
    dpf_encode_key(enc, "name");
    dpf_encode_string(enc, f->name);
    dpf_encode_key(enc, "dtype");
    dpf_encode_string(enc, dpf_dtype_name(f->dtype));
    dpf_encode_key(enc, "shape");
    dpf_encode_shape(enc, &f->shape);
    if (f->classes) {
        dpf_encode_key(enc, "classes");
        dpf_encode_uint(enc, f->classes);
    }
    if (f->norm_l2 > 0) {
        dpf_encode_key(enc, "norm_l2");
        dpf_encode_real(enc, f->norm_l2);
    }
    if (f->bounds.count) {
        dpf_encode_key(enc, "bounds");
        msgpack_pack_array(&enc->packer, 2);
        encode_reals(enc, f->bounds.lo, f->bounds.count);
        encode_reals(enc, f->bounds.hi, f->bounds.count);
    }
    if (f->feature_count) {
        dpf_encode_key(enc, "features");
        msgpack_pack_array(&enc->packer, f->feature_count);
        for (size_t i = 0; i < f->feature_count; i++)
            dpf_encode_string(enc, f->features[i]);
    }
}

static void encode_values(struct dpf_encoder *enc, const struct dpf_values *v)
{
    msgpack_pack_array(&enc->packer, v->count);
    dpf_buffer_append(&enc->meta, v->bytes.data, v->bytes.size);
}

const char *dpf_header_standing(const struct dpf_header *h)
{
    return h->is_private ? "private" : h->is_protected ? "protected" : "public";
}

enum dpf_status dpf_header_encode(struct dpf_encoder *enc, const struct dpf_header *h,
                                  struct dpf_error *e)
{
    if (!dpf_buffer_ok(&h->provenance.bytes) || !dpf_buffer_ok(&h->events.bytes))
        return dpf_fail_memory(e);
    dpf_encoder_begin(enc, "header", 5);
    dpf_encode_key(enc, "format");
    dpf_encode_uint(enc, DPF_FORMAT_VERSION);
    dpf_encode_key(enc, "fields");
    msgpack_pack_array(&enc->packer, (size_t)h->field_count);
    for (int i = 0; i < h->field_count; i++)
        encode_field(enc, &h->fields[i]);
    dpf_encode_key(enc, "records");
    if (h->has_records)
        dpf_encode_uint(enc, h->records);
    else
        msgpack_pack_nil(&enc->packer);
    dpf_encode_key(enc, "provenance");
    encode_values(enc, &h->provenance);
    dpf_encode_key(enc, "ledger");
    msgpack_pack_map(&enc->packer, 2);
    dpf_encode_key(enc, "data");
    dpf_encode_string(enc, dpf_header_standing(h));
    dpf_encode_key(enc, "events");
    encode_values(enc, &h->events);
    return DPF_OK;
}

static enum dpf_status decode_bounds(const msgpack_object *o, struct dpf_field *f,
                                     struct dpf_error *e)
{
    if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != 2)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has malformed bounds", f->name);
    const msgpack_object *lo = &o->via.array.ptr[0], *hi = &o->via.array.ptr[1];
    uint64_t features = dpf_shape_elements(&f->shape);
    if (lo->type != MSGPACK_OBJECT_ARRAY || hi->type != MSGPACK_OBJECT_ARRAY ||
        lo->via.array.size != hi->via.array.size ||
        (lo->via.array.size != 1 && lo->via.array.size != features))
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has malformed bounds", f->name);
    if (!bounds_alloc(&f->bounds, lo->via.array.size))
        return dpf_fail_memory(e);
    for (size_t i = 0; i < f->bounds.count; i++)
        if (!dpf_object_real(&lo->via.array.ptr[i], &f->bounds.lo[i]) ||
            !dpf_object_real(&hi->via.array.ptr[i], &f->bounds.hi[i]) ||
            !isfinite(f->bounds.lo[i]) || !isfinite(f->bounds.hi[i]) ||
            f->bounds.lo[i] > f->bounds.hi[i])
            return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has impossible bounds",
                            f->name);
    return DPF_OK;
}

static enum dpf_status decode_features(const msgpack_object *o, struct dpf_field *f,
                                       struct dpf_error *e)
{
    if (o->type != MSGPACK_OBJECT_ARRAY ||
        o->via.array.size != dpf_shape_elements(&f->shape))
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has malformed feature names",
                        f->name);
    f->features = dpf_calloc(o->via.array.size, sizeof *f->features);
    if (!f->features)
        return dpf_fail_memory(e);
    for (uint32_t i = 0; i < o->via.array.size; i++) {
        const char *text;
        size_t size;
        if (!dpf_object_text(&o->via.array.ptr[i], &text, &size) ||
            memchr(text, '\0', size))
            return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has malformed feature names",
                            f->name);
        if (!(f->features[i] = dpf_strndup(text, size)))
            return dpf_fail_memory(e);
        f->feature_count++;
    }
    return DPF_OK;
}

static enum dpf_status decode_field(const msgpack_object *o, struct dpf_header *h,
                                    struct dpf_error *e)
{
    const char *text;
    size_t size, bytes;
    char name[DPF_NAME_BYTES];
    struct dpf_shape shape;
    if (!dpf_object_text(dpf_object_get(o, "name"), &text, &size) ||
        !plain_name(text, size))
        return dpf_fail(e, DPF_BAD_STREAM, "a field has no proper name");
    memcpy(name, text, size);
    name[size] = '\0';
    enum dpf_dtype dtype = DPF_DTYPE_COUNT;
    if (dpf_object_text(dpf_object_get(o, "dtype"), &text, &size))
        dtype = dpf_dtype_parse(text, size);
    if (dtype == DPF_DTYPE_COUNT)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has an unknown dtype", name);
    enum dpf_status status = dpf_object_shape(dpf_object_get(o, "shape"), &shape, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "field '%s'", name);
    if (shape.rank + 1 > DPF_MAX_RANK || !dpf_shape_bytes(dtype, &shape, &bytes))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' has records larger than 2^32-1 bytes", name);
    struct dpf_field *f = dpf_header_add_field(h, name, dtype, &shape);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' is there twice, or there are too many", name);
    const msgpack_object *classes = dpf_object_get(o, "classes");
    const msgpack_object *norm = dpf_object_get(o, "norm_l2");
    const msgpack_object *bounds = dpf_object_get(o, "bounds");
    const msgpack_object *features = dpf_object_get(o, "features");
    bool integer = dtype == DPF_U8 || dtype == DPF_I32 || dtype == DPF_I64;
    if (classes && (!dpf_object_uint(classes, &f->classes) || !f->classes || !integer ||
                    f->classes > INT64_MAX))
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has malformed classes", name);
    if (norm &&
        (!dpf_object_real(norm, &f->norm_l2) || !isfinite(f->norm_l2) || f->norm_l2 <= 0))
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' has a malformed norm", name);
    if (bounds)
        status = decode_bounds(bounds, f, e);
    if (status == DPF_OK && features)
        status = decode_features(features, f, e);
    return status;
}

static void decode_values(const msgpack_object *array, struct dpf_values *v)
{
    for (uint32_t i = 0; i < array->via.array.size; i++)
        dpf_values_append_object(v, &array->via.array.ptr[i]);
}

static enum dpf_status decode_header(const msgpack_object *root, struct dpf_header *h,
                                     struct dpf_error *e)
{
    uint64_t version;
    if (!dpf_object_is_string(dpf_object_get(root, "type"), "header"))
        return dpf_fail(e, DPF_BAD_STREAM, "the stream does not start with a header");
    if (!dpf_object_uint(dpf_object_get(root, "format"), &version))
        return dpf_fail(e, DPF_BAD_STREAM, "the header has no format version");
    if (version != DPF_FORMAT_VERSION)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the stream has format version %llu, this program reads %d",
                        (unsigned long long)version, DPF_FORMAT_VERSION);
    const msgpack_object *fields = dpf_object_get(root, "fields");
    const msgpack_object *records = dpf_object_get(root, "records");
    const msgpack_object *provenance = dpf_object_get(root, "provenance");
    const msgpack_object *ledger = dpf_object_get(root, "ledger");
    const msgpack_object *data = dpf_object_get(ledger, "data");
    const msgpack_object *events = dpf_object_get(ledger, "events");
    if (!fields || fields->type != MSGPACK_OBJECT_ARRAY || !provenance ||
        provenance->type != MSGPACK_OBJECT_ARRAY || !events ||
        events->type != MSGPACK_OBJECT_ARRAY)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the header lacks its fields, provenance or ledger");
    /* Data of unknown standing is treated as private. */
    h->is_protected = dpf_object_is_string(data, "protected");
    h->is_private = !h->is_protected && !dpf_object_is_string(data, "public");
    if (records && records->type != MSGPACK_OBJECT_NIL) {
        if (!dpf_object_uint(records, &h->records))
            return dpf_fail(e, DPF_BAD_STREAM, "the header's record count is no number");
        h->has_records = true;
    }
    for (uint32_t i = 0; i < fields->via.array.size; i++) {
        enum dpf_status status = decode_field(&fields->via.array.ptr[i], h, e);
        if (status != DPF_OK)
            return status;
    }
    decode_values(provenance, &h->provenance);
    decode_values(events, &h->events);
    if (!dpf_buffer_ok(&h->provenance.bytes) || !dpf_buffer_ok(&h->events.bytes))
        return dpf_fail_memory(e);
    return DPF_OK;
}

enum dpf_status dpf_header_decode(const msgpack_object *root, struct dpf_header *h,
                                  struct dpf_error *e)
{
    *h = (struct dpf_header){0};
    enum dpf_status status = decode_header(root, h, e);
    if (status != DPF_OK)
        dpf_header_release(h);
    return status;
}
