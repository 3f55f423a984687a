/* Dense row-major tensors of six element types.
 *
 * A tensor either owns its memory or is a view into memory that someone else keeps alive
 * (a decoded frame). Packed bits count elements, not bytes, in their shape; each row (the
 * last dimension) starts at a byte boundary and bit i is bit i%8 of byte i/8. */
#ifndef DPF_TENSOR_TENSOR_H
#define DPF_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum dpf_dtype {
    DPF_U8 = 0,
    DPF_I32,
    DPF_I64,
    DPF_F32,
    DPF_F64,
    DPF_BITS,
    DPF_DTYPE_COUNT,
};

enum { DPF_MAX_RANK = 8 };
/* What one MessagePack `bin` can hold; larger data is batched. */
#define DPF_MAX_TENSOR_BYTES 4294967295ull

struct dpf_shape {
    int rank;
    uint64_t dim[DPF_MAX_RANK];
};

struct dpf_tensor {
    enum dpf_dtype dtype;
    struct dpf_shape shape;
    void *data;
    size_t bytes;
    bool owned;
};

/* "u8", "i32", "i64", "f32", "f64", "bits". */
const char *dpf_dtype_name(enum dpf_dtype dtype);
/* The dtype of a name, or DPF_DTYPE_COUNT. `name` need not be NUL-terminated. */
enum dpf_dtype dpf_dtype_parse(const char *name, size_t size);
/* Bytes an element; 0 for bits. */
size_t dpf_dtype_size(enum dpf_dtype dtype);

/* Bytes that a tensor of this shape takes; false if it exceeds DPF_MAX_TENSOR_BYTES,
 * overflows, or has a bad rank. Nothing is allocated. */
bool dpf_shape_bytes(enum dpf_dtype dtype, const struct dpf_shape *shape, size_t *bytes);
/* Product of the dimensions (checked shapes only). */
uint64_t dpf_shape_elements(const struct dpf_shape *shape);
bool dpf_shape_equal(const struct dpf_shape *a, const struct dpf_shape *b);
/* `record` with `rows` put in front; false if the rank would be too large. */
bool dpf_shape_prepend(const struct dpf_shape *record, uint64_t rows,
                       struct dpf_shape *out);
/* "28x28", or "scalar". */
void dpf_shape_format(const struct dpf_shape *shape, char *out, size_t size);

/* Allocate an owned tensor; its content is not initialised. */
enum dpf_status dpf_tensor_init(struct dpf_tensor *t, enum dpf_dtype dtype,
                                const struct dpf_shape *shape, struct dpf_error *e);
/* A view on `data`, which must hold the shape's bytes and outlive the view. */
enum dpf_status dpf_tensor_view(struct dpf_tensor *t, enum dpf_dtype dtype,
                                const struct dpf_shape *shape, void *data,
                                struct dpf_error *e);
void dpf_tensor_release(struct dpf_tensor *t);
/* Records along axis 0 (1 for a scalar), and the bytes of each. */
uint64_t dpf_tensor_rows(const struct dpf_tensor *t);
size_t dpf_tensor_row_bytes(const struct dpf_tensor *t);
/* Element i in row-major order as a double (bits: 0 or 1). For inspection, not for
 * inner loops. */
double dpf_tensor_get(const struct dpf_tensor *t, uint64_t i);
/* A class as element i, in any dtype but packed bits. */
void dpf_tensor_put_class(struct dpf_tensor *t, uint64_t i, uint64_t value);
/* Same dtype, shape and bytes (NaN equals itself). */
bool dpf_tensor_equal(const struct dpf_tensor *a, const struct dpf_tensor *b);
/* A new f32 tensor with the values of any other dtype. */
enum dpf_status dpf_tensor_to_f32(const struct dpf_tensor *from, struct dpf_tensor *to,
                                  struct dpf_error *e);
/* The same in its own place; an f32 tensor is left as it is. */
enum dpf_status dpf_tensor_make_f32(struct dpf_tensor *t, struct dpf_error *e);

#endif
