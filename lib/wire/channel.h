/* What carries frames. lib/wire writes and reads frames through this vtable and does not
 * know whether a pipe, a file, memory, ZeroMQ or MPI is behind it; lib/transport (and the
 * plug-ins in cluster/) implement it.
 *
 * A frame is an indivisible message. A reading channel has one or more lanes: lane i
 * carries the frames of one writer in their order, lanes are interleaved as they arrive.
 */
#ifndef DPF_WIRE_CHANNEL_H
#define DPF_WIRE_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/status.h"

struct dpf_frame {
    unsigned char *data; /* the bytes may be changed in place until released */
    size_t size;
    unsigned lane;
    void (*release)(struct dpf_frame *frame); /* NULL: valid until the next recv */
    void *owner;
};

struct dpf_channel;

struct dpf_channel_ops {
    /* Send one frame, given in parts whose sizes add up to `total`. The parts are free
     * for reuse on return; the iovec array may be changed. */
    enum dpf_status (*send)(struct dpf_channel *c, struct iovec *parts, int count,
                            size_t total, struct dpf_error *e);
    /* Receive the next frame of any lane. The end of input is DPF_BAD_STREAM with
     * "stream ended before its trailer": a reader that has seen the trailers of all
     * lanes does not ask again. */
    enum dpf_status (*recv)(struct dpf_channel *c, struct dpf_frame *frame,
                            struct dpf_error *e);
    /* Writing: everything was sent; return once it is safely handed over (synced and
     * renamed, or acknowledged). Reading: the trailers have come; confirm, and refuse
     * anything after them. */
    enum dpf_status (*finish)(struct dpf_channel *c, struct dpf_error *e);
    /* Let go. Without a finish before, what was written is withdrawn where possible. */
    void (*destroy)(struct dpf_channel *c);
};

struct dpf_channel {
    const struct dpf_channel_ops *ops;
    unsigned lanes; /* reading: number of writers */
    char *name;     /* for messages: "standard input", a path, an endpoint */
};

void dpf_channel_destroy(struct dpf_channel **c);
void dpf_frame_release(struct dpf_frame *frame);

/* Bytes of the fixed start of each frame: a map of up to 15 entries whose first is
 * "bytes": uint64 (see FORMAT.md). */
enum { DPF_PREAMBLE_BYTES = 16 };
/* No frame is larger: one full tensor and its surroundings. */
#define DPF_MAX_FRAME_BYTES (4294967296ull + (64ull << 20))
/* The size that a preamble declares; DPF_BAD_STREAM if this is none of ours. */
enum dpf_status dpf_preamble_parse(const unsigned char preamble[DPF_PREAMBLE_BYTES],
                                   size_t *size, struct dpf_error *e);

/* Whether a whole frame is a trailer: "type" is always the second key. */
bool dpf_frame_is_trailer(const unsigned char *data, size_t size);

#endif
