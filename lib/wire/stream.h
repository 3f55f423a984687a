/* Whole streams over channels: header first, frames in order, trailer last.
 *
 * The rules that keep a dead producer from passing as a short data set live here: a
 * stream without its trailer is an error, the trailer's counts and checksum must agree
 * with what came, and nothing may follow it. */
#ifndef DPF_WIRE_STREAM_H
#define DPF_WIRE_STREAM_H

#include "base/digest.h"
#include "base/text.h"
#include "wire/batch.h"
#include "wire/channel.h"

enum dpf_item {
    DPF_ITEM_BATCH, /* reader->batch */
    DPF_ITEM_OTHER, /* model, vector, metric, ledger: reader->frame and ->object */
    DPF_ITEM_END,
};

struct dpf_lane {
    struct dpf_header header;
    struct dpf_checksum *checksum;
    uint64_t sequence, frames, records;
    bool open, done;
};

struct dpf_stream_reader {
    struct dpf_channel *channel;
    struct dpf_lane *lanes;
    unsigned lane_count, lanes_done;
    struct dpf_header header; /* of all lanes together */
    uint64_t records, frames, bytes;
    struct dpf_decoder decoder;
    struct dpf_frame frame; /* the frame behind the current item */
    struct dpf_batch batch; /* may be changed in place; reader releases it */
    const msgpack_object *object;
    char digest[DPF_CHECKSUM_TEXT]; /* of the last lane that ended, as in its trailer */
};

/* What becomes of the ledgers, standings and provenances of streams that are read as one:
 * adds the second header's to the first's (lib/ledger knows how). */
typedef enum dpf_status dpf_ledger_merger(struct dpf_header *into,
                                          const struct dpf_header *other,
                                          struct dpf_error *e);

/* Take over a reading channel and read the header of every lane. Streams that are merged
 * must have the same fields; `merge` puts their ledgers together. */
enum dpf_status dpf_stream_reader_open(struct dpf_stream_reader *r,
                                       struct dpf_channel *take_channel,
                                       dpf_ledger_merger *merge, struct dpf_error *e);
/* The next item. What the last item gave is invalid afterwards. */
enum dpf_status dpf_stream_reader_next(struct dpf_stream_reader *r, enum dpf_item *item,
                                       struct dpf_error *e);
void dpf_stream_reader_release(struct dpf_stream_reader *r);

/* Add the second header to the first, as for streams read one after the other. */
enum dpf_status dpf_header_merge(struct dpf_header *into, const struct dpf_header *other,
                                 dpf_ledger_merger *merge, struct dpf_error *e);

struct dpf_stream_writer {
    struct dpf_channel **channels; /* every frame goes to all of them */
    size_t channel_count;
    const struct dpf_header *header;
    struct dpf_checksum *checksum;
    struct dpf_encoder encoder;
    struct iovec *copy; /* send may change its parts */
    size_t copy_capacity;
    uint64_t sequence, frames, records, bytes;
    bool header_sent;
    char digest[DPF_CHECKSUM_TEXT];
};

/* Take over `count` writing channels (the array too). */
enum dpf_status dpf_stream_writer_init(struct dpf_stream_writer *w,
                                       struct dpf_channel **take_channels, size_t count,
                                       struct dpf_error *e);
/* `header` is borrowed until the end of the stream. */
enum dpf_status dpf_stream_write_header(struct dpf_stream_writer *w,
                                        const struct dpf_header *header,
                                        struct dpf_error *e);
enum dpf_status dpf_stream_write_batch(struct dpf_stream_writer *w,
                                       const struct dpf_batch *batch,
                                       struct dpf_error *e);
/* Pass on a frame that is none of ours (model, metric, ...) as it is. */
enum dpf_status dpf_stream_write_frame(struct dpf_stream_writer *w,
                                       const struct dpf_frame *frame,
                                       struct dpf_error *e);
/* Send the frame that was begun in w->encoder (a model, a metric, ...). */
enum dpf_status dpf_stream_write_encoded(struct dpf_stream_writer *w,
                                         struct dpf_error *e);
/* Trailer, then wait until every channel has handed everything over. */
enum dpf_status dpf_stream_writer_finish(struct dpf_stream_writer *w,
                                         struct dpf_error *e);
/* Tell the readers that this stream will not be completed; errors are ignored. */
void dpf_stream_writer_fail(struct dpf_stream_writer *w);
void dpf_stream_writer_release(struct dpf_stream_writer *w);

/* A MessagePack value as one line of JSON; tensors by dtype and shape, not by value. */
void dpf_object_to_json(const msgpack_object *o, struct dpf_text *out);

#endif
