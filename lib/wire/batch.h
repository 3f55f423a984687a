/* A batch: the tensors of some records, one tensor a field, records along axis 0. */
#ifndef DPF_WIRE_BATCH_H
#define DPF_WIRE_BATCH_H

#include "tensor/tensor.h"
#include "wire/header.h"

/* Tensors stand in the order of the header's fields. */
struct dpf_batch {
    uint64_t rows;
    int count;
    struct dpf_tensor tensor[DPF_MAX_FIELDS];
};

/* Bytes of data that a producer puts into one batch: large enough that per-frame costs
 * vanish, small enough that it stays in a cache and a dozen stages fit in memory. */
enum { DPF_BATCH_BYTES = 1 << 20 };

/* No batch has more: records may be empty, and whoever makes a list of them allocates. */
enum { DPF_MAX_BATCH_ROWS = 1 << 26 };

/* Records that fill about DPF_BATCH_BYTES, at least 1. */
uint64_t dpf_batch_rows(const struct dpf_header *h);
/* Allocate tensors for `rows` records of the header's fields. */
enum dpf_status dpf_batch_init(struct dpf_batch *b, const struct dpf_header *h,
                               uint64_t rows, struct dpf_error *e);
/* Keep the first `rows` records (after they were filled or compacted). */
void dpf_batch_truncate(struct dpf_batch *b, uint64_t rows);
/* Keep the records whose keep[i] is true, in order. */
void dpf_batch_select(struct dpf_batch *b, const bool *keep);
void dpf_batch_release(struct dpf_batch *b);
/* The tensor of a named field, or NULL with DPF_BAD_STREAM in `e`. */
struct dpf_tensor *dpf_batch_field(struct dpf_batch *b, const struct dpf_header *h,
                                   const char *name, struct dpf_error *e);

enum dpf_status dpf_batch_encode(struct dpf_encoder *enc, const struct dpf_header *h,
                                 const struct dpf_batch *b, uint64_t sequence,
                                 struct dpf_error *e);
/* Decode and hold against the header: every field present with its dtype and shape, the
 * same number of records, labels below their number of classes. */
enum dpf_status dpf_batch_decode(const msgpack_object *root, const struct dpf_header *h,
                                 uint64_t expected_sequence, struct dpf_batch *b,
                                 struct dpf_error *e);

#endif
