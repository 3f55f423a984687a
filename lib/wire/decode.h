/* Reading frames from strangers.
 *
 * A frame is first walked once by dpf_frame_check(): every length must fit in the bytes
 * that are there, nesting is shallow, and containers cannot promise more elements than
 * bytes. Only then does MessagePack-C build its object tree, so a few hostile bytes can
 * neither allocate gigabytes nor overflow a stack. Tensor data is not copied. */
#ifndef DPF_WIRE_DECODE_H
#define DPF_WIRE_DECODE_H

#include <msgpack.h>

#include "base/status.h"
#include "tensor/tensor.h"
#include "wire/channel.h"

enum { DPF_MAX_NESTING = 24, DPF_MAX_FRAME_VALUES = 1 << 20 };

enum dpf_status dpf_frame_check(const unsigned char *data, size_t size,
                                struct dpf_error *e);

struct dpf_decoder {
    msgpack_zone *zone;
    msgpack_object root; /* a map; strings and data point into the frame */
};
/* Check and decode one frame. The tree is valid until the next decode or release and
 * while the frame's bytes stay. */
enum dpf_status dpf_decoder_read(struct dpf_decoder *d, const struct dpf_frame *frame,
                                 struct dpf_error *e);
void dpf_decoder_release(struct dpf_decoder *d);

/* The value of a string (or bin) key in a map, or NULL. */
const msgpack_object *dpf_object_get(const msgpack_object *map, const char *key);
bool dpf_object_is_string(const msgpack_object *o, const char *string);
bool dpf_object_uint(const msgpack_object *o, uint64_t *value);
bool dpf_object_real(const msgpack_object *o, double *value);
/* Text of a str or bin; not NUL-terminated. */
bool dpf_object_text(const msgpack_object *o, const char **text, size_t *size);
enum dpf_status dpf_object_shape(const msgpack_object *o, struct dpf_shape *shape,
                                 struct dpf_error *e);
/* A tensor as a view into the frame, or an owned copy where the data is not aligned for
 * its type. DPF_BAD_STREAM for anything that does not fit together. */
enum dpf_status dpf_object_tensor(const msgpack_object *o, struct dpf_tensor *tensor,
                                  struct dpf_error *e);

#endif
