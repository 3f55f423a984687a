/* The header of a safetensors file, apart from the data it describes: all that a stranger
 * can lie about is decided here, before a byte of data is read. For lib/nn/safetensors.c
 * only. */
#ifndef DPF_NN_SAFETENSORS_HEADER_H
#define DPF_NN_SAFETENSORS_HEADER_H

#include <stdbool.h>

#include "nn/safetensors.h"

#define DPF_SAFETENSORS_METADATA "__metadata__"

enum dpf_element { DPF_FILE_F32, DPF_FILE_F64, DPF_FILE_F16, DPF_FILE_BF16 };

/* Where a tensor's data lies, relative to the end of the header. */
struct dpf_extent {
    size_t index; /* of the tensor */
    uint64_t begin, end;
    enum dpf_element element;
};

/* Bytes of an element in the file. */
size_t dpf_element_size(enum dpf_element element);

/* Names, shapes, counts and metadata into *s (empty before; values stay NULL), one extent
 * for each tensor in the order of the data into *take_extents, which is the caller's to
 * free. The extents are the data part of `data_bytes`, each byte once. `file` is for
 * messages. On failure *s may hold something that is to be released. */
enum dpf_status dpf_safetensors_header_parse(struct dpf_safetensors *s, const char *text,
                                             size_t size, uint64_t data_bytes,
                                             const char *file,
                                             struct dpf_extent **take_extents,
                                             struct dpf_error *e);

/* Whether this is the text of one JSON object of strings, with nothing around it. */
bool dpf_safetensors_metadata_good(const char *text);
/* What is wrong with a tensor's name ("is empty"), or NULL. */
const char *dpf_safetensors_name_fault(const char *name, size_t size);
/* *name is one that two tensors have, owned by s, or NULL. DPF_SYSTEM without memory. */
enum dpf_status dpf_safetensors_find_doubled(const struct dpf_safetensors *s,
                                             const char **name, struct dpf_error *e);

#endif
