#include <stdlib.h>
#include <string.h>

#include "wire/stream.h"

#include "base/banned.h"

enum dpf_status dpf_stream_writer_init(struct dpf_stream_writer *w,
                                       struct dpf_channel **take_channels, size_t count,
                                       struct dpf_error *e)
{
    *w = (struct dpf_stream_writer){.channels = take_channels, .channel_count = count};
    w->checksum = dpf_checksum_new();
    if (!w->checksum) {
        dpf_stream_writer_release(w);
        return dpf_fail_memory(e);
    }
    return DPF_OK;
}

static enum dpf_status send_parts(struct dpf_stream_writer *w, struct iovec *parts,
                                  int count, size_t total, struct dpf_error *e)
{
    w->bytes += total;
    for (size_t i = 0; i < w->channel_count; i++) {
        struct iovec *mine = parts;
        if (i + 1 < w->channel_count) {
            if (!dpf_grow(&w->copy, &w->copy_capacity, (size_t)count, sizeof *mine))
                return dpf_fail_memory(e);
            memcpy(w->copy, parts, (size_t)count * sizeof *parts);
            mine = w->copy;
        }
        struct dpf_channel *c = w->channels[i];
        enum dpf_status status = c->ops->send(c, mine, count, total, e);
        if (status != DPF_OK)
            return dpf_error_prefix(e, status, "cannot write '%s'", c->name);
    }
    return DPF_OK;
}

/* Send what the encoder holds; everything but the trailer goes into the checksum. */
static enum dpf_status send_encoded(struct dpf_stream_writer *w, bool counted,
                                    struct dpf_error *e)
{
    struct iovec *parts;
    int count;
    size_t total;
    enum dpf_status status = dpf_encoder_end(&w->encoder, &parts, &count, &total, e);
    if (status != DPF_OK)
        return status;
    if (counted) {
        for (int i = 0; i < count; i++)
            dpf_checksum_update(w->checksum, parts[i].iov_base, parts[i].iov_len);
        w->frames++;
    }
    return send_parts(w, parts, count, total, e);
}

enum dpf_status dpf_stream_write_header(struct dpf_stream_writer *w,
                                        const struct dpf_header *header,
                                        struct dpf_error *e)
{
    enum dpf_status status = dpf_header_encode(&w->encoder, header, e);
    /* Provenance and events grow with every stage: never write what no reader takes. */
    if (status == DPF_OK)
        status = dpf_frame_check(w->encoder.meta.data, w->encoder.meta.size, e);
    if (status != DPF_OK)
        return status;
    w->header = header;
    w->header_sent = true;
    return send_encoded(w, true, e);
}

enum dpf_status dpf_stream_write_batch(struct dpf_stream_writer *w,
                                       const struct dpf_batch *batch, struct dpf_error *e)
{
    enum dpf_status status =
        dpf_batch_encode(&w->encoder, w->header, batch, w->sequence, e);
    if (status != DPF_OK)
        return status;
    w->sequence++;
    w->records += batch->rows;
    return send_encoded(w, true, e);
}

enum dpf_status dpf_stream_write_frame(struct dpf_stream_writer *w,
                                       const struct dpf_frame *frame, struct dpf_error *e)
{
    struct iovec part = {frame->data, frame->size};
    dpf_checksum_update(w->checksum, frame->data, frame->size);
    w->frames++;
    return send_parts(w, &part, 1, frame->size, e);
}

enum dpf_status dpf_stream_write_encoded(struct dpf_stream_writer *w, struct dpf_error *e)
{
    return send_encoded(w, true, e);
}

static void encode_trailer(struct dpf_stream_writer *w, const char *status)
{
    dpf_checksum_text(w->checksum, w->digest);
    dpf_encoder_begin(&w->encoder, "trailer", 4);
    dpf_encode_key(&w->encoder, "records");
    dpf_encode_uint(&w->encoder, w->records);
    dpf_encode_key(&w->encoder, "frames");
    dpf_encode_uint(&w->encoder, w->frames);
    dpf_encode_key(&w->encoder, "digest");
    dpf_encode_string(&w->encoder, w->digest);
    dpf_encode_key(&w->encoder, "status");
    dpf_encode_string(&w->encoder, status);
}

enum dpf_status dpf_stream_writer_finish(struct dpf_stream_writer *w, struct dpf_error *e)
{
    if (w->header->has_records && w->header->records != w->records)
        return dpf_fail(
            e, DPF_BAD_STREAM, "the header promised %llu records, %llu were written",
            (unsigned long long)w->header->records, (unsigned long long)w->records);
    encode_trailer(w, "ok");
    enum dpf_status status = send_encoded(w, false, e);
    for (size_t i = 0; status == DPF_OK && i < w->channel_count; i++) {
        struct dpf_channel *c = w->channels[i];
        status = c->ops->finish(c, e);
        if (status != DPF_OK)
            dpf_error_prefix(e, status, "cannot write '%s'", c->name);
    }
    return status;
}

void dpf_stream_writer_fail(struct dpf_stream_writer *w)
{
    struct dpf_error ignored;
    struct iovec *parts;
    int count;
    size_t total;
    if (!w->header_sent)
        return;
    encode_trailer(w, "failed");
    if (dpf_encoder_end(&w->encoder, &parts, &count, &total, &ignored) == DPF_OK)
        send_parts(w, parts, count, total, &ignored);
}

void dpf_stream_writer_release(struct dpf_stream_writer *w)
{
    for (size_t i = 0; i < w->channel_count; i++)
        dpf_channel_destroy(&w->channels[i]);
    free(w->channels);
    free(w->copy);
    dpf_checksum_destroy(&w->checksum);
    dpf_encoder_release(&w->encoder);
    *w = (struct dpf_stream_writer){0};
}
