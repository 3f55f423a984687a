#include "tensor/tensor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[DPF_DTYPE_COUNT] = {
    [DPF_U8] = {"u8", 1},   [DPF_I32] = {"i32", 4}, [DPF_I64] = {"i64", 8},
    [DPF_F32] = {"f32", 4}, [DPF_F64] = {"f64", 8}, [DPF_BITS] = {"bits", 0},
};

const char *dpf_dtype_name(enum dpf_dtype dtype)
{
    return dtype < DPF_DTYPE_COUNT ? dtypes[dtype].name : "?";
}

enum dpf_dtype dpf_dtype_parse(const char *name, size_t size)
{
    for (int i = 0; i < DPF_DTYPE_COUNT; i++)
        if (strlen(dtypes[i].name) == size && memcmp(dtypes[i].name, name, size) == 0)
            return (enum dpf_dtype)i;
    return DPF_DTYPE_COUNT;
}

size_t dpf_dtype_size(enum dpf_dtype dtype)
{
    return dtypes[dtype].size;
}

bool dpf_shape_bytes(enum dpf_dtype dtype, const struct dpf_shape *shape, size_t *bytes)
{
    if (shape->rank < 0 || shape->rank > DPF_MAX_RANK || dtype >= DPF_DTYPE_COUNT)
        return false;
    if (dtype == DPF_BITS && shape->rank == 0)
        return false;
    /* A zero dimension must not hide an absurd one behind it. */
    uint64_t total = dtype == DPF_BITS ? 1 : dtypes[dtype].size, nonzero = total;
    for (int i = 0; i < shape->rank; i++) {
        uint64_t d = shape->dim[i];
        if (d > DPF_MAX_TENSOR_BYTES * 8)
            return false;
        if (dtype == DPF_BITS && i == shape->rank - 1)
            d = (d + 7) / 8;
        if (__builtin_mul_overflow(total, d, &total) ||
            __builtin_mul_overflow(nonzero, d ? d : 1, &nonzero) ||
            nonzero > DPF_MAX_TENSOR_BYTES)
            return false;
    }
    *bytes = (size_t)total;
    return true;
}

uint64_t dpf_shape_elements(const struct dpf_shape *shape)
{
    uint64_t n = 1;
    for (int i = 0; i < shape->rank; i++)
        n *= shape->dim[i];
    return n;
}

bool dpf_shape_equal(const struct dpf_shape *a, const struct dpf_shape *b)
{
    return a->rank == b->rank &&
           memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

bool dpf_shape_prepend(const struct dpf_shape *record, uint64_t rows,
                       struct dpf_shape *out)
{
    if (record->rank + 1 > DPF_MAX_RANK)
        return false;
    struct dpf_shape s = {.rank = record->rank + 1};
    s.dim[0] = rows;
    memcpy(s.dim + 1, record->dim, (size_t)record->rank * sizeof s.dim[0]);
    *out = s;
    return true;
}

void dpf_shape_format(const struct dpf_shape *shape, char *out, size_t size)
{
    size_t used = 0;
    if (shape->rank == 0)
        snprintf(out, size, "scalar");
    for (int i = 0; i < shape->rank && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "%s%llu", i ? "x" : "",
                                 (unsigned long long)shape->dim[i]);
}

enum dpf_status dpf_tensor_init(struct dpf_tensor *t, enum dpf_dtype dtype,
                                const struct dpf_shape *shape, struct dpf_error *e)
{
    size_t bytes;
    *t = (struct dpf_tensor){0};
    if (!dpf_shape_bytes(dtype, shape, &bytes))
        return dpf_fail(e, DPF_BAD_STREAM, "a tensor is larger than 2^32-1 bytes");
    void *data = dpf_alloc_aligned(bytes);
    if (!data)
        return dpf_fail_memory(e);
    *t = (struct dpf_tensor){dtype, *shape, data, bytes, true};
    return DPF_OK;
}

enum dpf_status dpf_tensor_view(struct dpf_tensor *t, enum dpf_dtype dtype,
                                const struct dpf_shape *shape, void *data,
                                struct dpf_error *e)
{
    size_t bytes;
    *t = (struct dpf_tensor){0};
    if (!dpf_shape_bytes(dtype, shape, &bytes))
        return dpf_fail(e, DPF_BAD_STREAM, "a tensor is larger than 2^32-1 bytes");
    *t = (struct dpf_tensor){dtype, *shape, data, bytes, false};
    return DPF_OK;
}

void dpf_tensor_release(struct dpf_tensor *t)
{
    if (t->owned)
        free(t->data);
    *t = (struct dpf_tensor){0};
}

uint64_t dpf_tensor_rows(const struct dpf_tensor *t)
{
    return t->shape.rank ? t->shape.dim[0] : 1;
}

size_t dpf_tensor_row_bytes(const struct dpf_tensor *t)
{
    uint64_t rows = dpf_tensor_rows(t);
    return rows ? t->bytes / rows : 0;
}

double dpf_tensor_get(const struct dpf_tensor *t, uint64_t i)
{
    switch (t->dtype) {
    case DPF_U8:
        return ((const uint8_t *)t->data)[i];
    case DPF_I32:
        return ((const int32_t *)t->data)[i];
    case DPF_I64:
        return (double)((const int64_t *)t->data)[i];
    case DPF_F32:
        return (double)((const float *)t->data)[i];
    case DPF_F64:
        return ((const double *)t->data)[i];
    case DPF_BITS: {
        uint64_t columns = t->shape.dim[t->shape.rank - 1];
        uint64_t row = i / columns, column = i % columns;
        const uint8_t *bytes = (const uint8_t *)t->data + row * ((columns + 7) / 8);
        return (bytes[column / 8] >> (column % 8)) & 1;
    }
    case DPF_DTYPE_COUNT:
        break;
    }
    return 0;
}

bool dpf_tensor_equal(const struct dpf_tensor *a, const struct dpf_tensor *b)
{
    return a->dtype == b->dtype && dpf_shape_equal(&a->shape, &b->shape) &&
           a->bytes == b->bytes &&
           (a->bytes == 0 || memcmp(a->data, b->data, a->bytes) == 0);
}

enum dpf_status dpf_tensor_to_f32(const struct dpf_tensor *from, struct dpf_tensor *to,
                                  struct dpf_error *e)
{
    enum dpf_status status = dpf_tensor_init(to, DPF_F32, &from->shape, e);
    if (status != DPF_OK)
        return status;
    float *out = to->data;
    uint64_t n = dpf_shape_elements(&from->shape);
    switch (from->dtype) {
    case DPF_U8:
        for (uint64_t i = 0; i < n; i++)
            out[i] = ((const uint8_t *)from->data)[i];
        break;
    case DPF_I32:
        for (uint64_t i = 0; i < n; i++)
            out[i] = (float)((const int32_t *)from->data)[i];
        break;
    case DPF_I64:
        for (uint64_t i = 0; i < n; i++)
            out[i] = (float)((const int64_t *)from->data)[i];
        break;
    case DPF_F32:
        memcpy(out, from->data, from->bytes);
        break;
    case DPF_F64:
        for (uint64_t i = 0; i < n; i++)
            out[i] = (float)((const double *)from->data)[i];
        break;
    default:
        for (uint64_t i = 0; i < n; i++)
            out[i] = (float)dpf_tensor_get(from, i);
    }
    return DPF_OK;
}

enum dpf_status dpf_tensor_make_f32(struct dpf_tensor *t, struct dpf_error *e)
{
    struct dpf_tensor real;
    if (t->dtype == DPF_F32)
        return DPF_OK;
    enum dpf_status status = dpf_tensor_to_f32(t, &real, e);
    if (status != DPF_OK)
        return status;
    dpf_tensor_release(t);
    *t = real;
    return DPF_OK;
}

void dpf_tensor_put_class(struct dpf_tensor *t, uint64_t row, uint64_t value)
{
    switch (t->dtype) {
    case DPF_U8:
        ((uint8_t *)t->data)[row] = (uint8_t)value;
        break;
    case DPF_I32:
        ((int32_t *)t->data)[row] = (int32_t)value;
        break;
    case DPF_I64:
        ((int64_t *)t->data)[row] = (int64_t)value;
        break;
    case DPF_F32:
        ((float *)t->data)[row] = (float)value;
        break;
    default:
        ((double *)t->data)[row] = (double)value;
        break;
    }
}
