/* Named float tensors in a safetensors file: how a trained model leaves dpflow and how
 * one from elsewhere comes in.
 *
 * The format is Hugging Face's: the length of a header (8 bytes, little-endian), the
 * header as JSON (for each name its dtype, shape and data_offsets; optionally
 * "__metadata__", an object of strings), then the data without holes or overlaps. It was
 * chosen because every framework reads it and because reading it runs no code, unlike a
 * pickle. A file may come from anyone: whatever it says is checked before anything is
 * allocated for it, and a file that is not exactly as the format demands is refused. */
#ifndef DPF_NN_SAFETENSORS_H
#define DPF_NN_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "tensor/tensor.h"

enum {
    DPF_TENSOR_NAME = 128,             /* bytes of a name with its NUL */
    DPF_MAX_NAMED_TENSORS = 1 << 16,   /* tensors, and entries of the metadata */
    DPF_MAX_TENSORS_HEADER = 100000000 /* bytes; the limit of the reference reader */
};

struct dpf_named_tensor {
    char name[DPF_TENSOR_NAME];
    struct dpf_shape shape;
    float *values; /* aligned to DPF_ALIGNMENT; never NULL, also where count is 0 */
    size_t count;
};

/* Zero-initialise, or let dpf_safetensors_read() fill it. */
struct dpf_safetensors {
    struct dpf_named_tensor *tensors; /* in the order of the header */
    size_t count, capacity;
    char *metadata; /* "__metadata__" as the file has it: JSON text, or NULL */
};

/* Read a file. F32, F64, F16 and BF16 become floats (F64 rounds to nearest; a finite one
 * that no float can hold is refused); other dtypes are refused by name. What was in *s is
 * overwritten, not released. A pipe is read to its end first. DPF_SYSTEM if the file
 * cannot be read, DPF_BAD_STREAM if it is truncated, malformed or lies; *s is empty then.
 */
enum dpf_status dpf_safetensors_read(struct dpf_safetensors *s, const char *path,
                                     struct dpf_error *e);
/* The same over a file in memory, which is borrowed for the call only. `name` stands for
 * the path in messages. */
enum dpf_status dpf_safetensors_parse(struct dpf_safetensors *s, const uint8_t *bytes,
                                      size_t size, const char *name, struct dpf_error *e);

/* Write all tensors as F32 in the order in which they stand in *s, and the metadata if
 * there is any, atomically. The same content gives the same bytes; data begins at a
 * multiple of 64. DPF_USAGE if the content is not what a reader would accept (a doubled
 * name, metadata that is no JSON object of strings). */
enum dpf_status dpf_safetensors_write(const struct dpf_safetensors *s, const char *path,
                                      struct dpf_error *e);

/* The tensor of this name, owned by s, or NULL. It moves when another one is added. */
struct dpf_named_tensor *dpf_safetensors_find(const struct dpf_safetensors *s,
                                              const char *name);
/* Append a copy of `values`, as many as `shape` says (may be NULL for none). DPF_USAGE if
 * the name is there already, is empty, too long, no UTF-8 or has control characters, or
 * if the shape has a bad rank or is too large; *s is unchanged then. */
enum dpf_status dpf_safetensors_add(struct dpf_safetensors *s, const char *name,
                                    const struct dpf_shape *shape, const float *values,
                                    struct dpf_error *e);
/* Free everything; *s is empty and can be used again. */
void dpf_safetensors_release(struct dpf_safetensors *s);

#endif
