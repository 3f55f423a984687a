/* Building frames. Small values go through MessagePack-C into a buffer; tensor data is
 * referenced, not copied, and leaves as parts of one vectored write. */
#ifndef DPF_WIRE_ENCODE_H
#define DPF_WIRE_ENCODE_H

#include <msgpack.h>
#include <sys/uio.h>

#include "base/memory.h"
#include "tensor/tensor.h"

struct dpf_encoder_part {
    size_t meta_end; /* buffered bytes before this reference */
    const void *data;
    size_t size;
};

/* Zero-initialise; reusable for any number of frames. */
struct dpf_encoder {
    struct dpf_buffer meta;
    struct dpf_encoder_part *parts;
    size_t part_count, part_capacity;
    size_t referenced; /* bytes in parts so far */
    msgpack_packer packer;
    struct iovec *iov;
    size_t iov_capacity;
    bool failed;
};

/* Start a frame: a map with `entries` keys besides "bytes" and "type". */
void dpf_encoder_begin(struct dpf_encoder *enc, const char *type, unsigned entries);
/* Small values between begin and end: use these or msgpack_pack_* on &enc->packer. */
void dpf_encode_key(struct dpf_encoder *enc, const char *key);
void dpf_encode_string(struct dpf_encoder *enc, const char *string);
void dpf_encode_uint(struct dpf_encoder *enc, uint64_t value);
void dpf_encode_real(struct dpf_encoder *enc, double value);
void dpf_encode_shape(struct dpf_encoder *enc, const struct dpf_shape *shape);
/* A tensor in msgpack-numpy's form, its data aligned to 64 bytes in the frame. The data
 * must stay until the frame was sent. */
void dpf_encode_tensor(struct dpf_encoder *enc, const struct dpf_tensor *tensor);
/* Finish: write the size into the preamble and give the parts (owned by enc, valid until
 * the next begin). */
enum dpf_status dpf_encoder_end(struct dpf_encoder *enc, struct iovec **parts, int *count,
                                size_t *total, struct dpf_error *e);
void dpf_encoder_release(struct dpf_encoder *enc);

/* A MessagePack value that is kept encoded and passed on unread: events, provenance. */
struct dpf_values {
    struct dpf_buffer bytes; /* `count` values one after the other */
    uint32_t count;
};
void dpf_values_append(struct dpf_values *v, const struct dpf_values *other);
void dpf_values_append_object(struct dpf_values *v, const msgpack_object *o);
/* A packer that appends to v; the caller counts: v->count++ after each whole value. */
msgpack_packer dpf_values_packer(struct dpf_values *v);
void dpf_values_release(struct dpf_values *v);
/* The same bytes. */
bool dpf_values_same(const struct dpf_values *a, const struct dpf_values *b);
/* msgpack_pack_str with a body. */
void dpf_pack_string(msgpack_packer *p, const char *string);

#endif
