#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/stream.h"

#include "base/banned.h"

enum dpf_status dpf_header_merge(struct dpf_header *into, const struct dpf_header *other,
                                 dpf_ledger_merger *merge, struct dpf_error *e)
{
    enum dpf_status status = dpf_header_same_fields(into, other, e);
    if (status != DPF_OK)
        return status;
    for (int i = 0; i < into->field_count; i++) {
        status = dpf_field_merge(&into->fields[i], &other->fields[i], e);
        if (status != DPF_OK)
            return status;
    }
    into->has_records = into->has_records && other->has_records;
    into->records += other->records;
    return merge(into, other, e);
}

/* Receive a frame into r->frame, check and decode it. The checksum covers every frame
 * but the trailer, so it is taken by the caller, before anyone changes the bytes. */
static enum dpf_status receive(struct dpf_stream_reader *r, struct dpf_lane **lane,
                               struct dpf_error *e)
{
    dpf_batch_release(&r->batch);
    dpf_frame_release(&r->frame);
    enum dpf_status status = r->channel->ops->recv(r->channel, &r->frame, e);
    if (status == DPF_OK)
        status = dpf_decoder_read(&r->decoder, &r->frame, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot read '%s'", r->channel->name);
    if (r->frame.lane >= r->lane_count || r->lanes[r->frame.lane].done)
        return dpf_fail(e, DPF_BAD_STREAM, "cannot read '%s': data follows the trailer",
                        r->channel->name);
    r->bytes += r->frame.size;
    r->object = &r->decoder.root;
    *lane = &r->lanes[r->frame.lane];
    return DPF_OK;
}

static void count_frame(struct dpf_stream_reader *r, struct dpf_lane *lane)
{
    dpf_checksum_update(lane->checksum, r->frame.data, r->frame.size);
    lane->frames++;
    r->frames++;
}

static enum dpf_status read_header(struct dpf_stream_reader *r, struct dpf_error *e)
{
    struct dpf_lane *lane;
    enum dpf_status status = receive(r, &lane, e);
    if (status != DPF_OK)
        return status;
    if (lane->open)
        return dpf_fail(e, DPF_BAD_STREAM, "cannot read '%s': frames came out of order",
                        r->channel->name);
    lane->checksum = dpf_checksum_new();
    if (!lane->checksum)
        return dpf_fail_memory(e);
    count_frame(r, lane);
    status = dpf_header_decode(r->object, &lane->header, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot read '%s'", r->channel->name);
    lane->open = true;
    return DPF_OK;
}

enum dpf_status dpf_stream_reader_open(struct dpf_stream_reader *r,
                                       struct dpf_channel *take_channel,
                                       dpf_ledger_merger *merge, struct dpf_error *e)
{
    *r = (struct dpf_stream_reader){.channel = take_channel,
                                    .lane_count = take_channel->lanes};
    enum dpf_status status = DPF_OK;
    r->lanes = dpf_calloc(r->lane_count, sizeof *r->lanes);
    if (!r->lanes)
        status = dpf_fail_memory(e);
    for (unsigned i = 0; status == DPF_OK && i < r->lane_count; i++)
        status = read_header(r, e);
    if (status == DPF_OK)
        status = dpf_header_copy(&r->header, &r->lanes[0].header, e);
    for (unsigned i = 1; status == DPF_OK && i < r->lane_count; i++)
        status = dpf_header_merge(&r->header, &r->lanes[i].header, merge, e);
    if (status != DPF_OK)
        dpf_stream_reader_release(r);
    return status;
}

static enum dpf_status check_trailer(struct dpf_stream_reader *r, struct dpf_lane *lane,
                                     struct dpf_error *e)
{
    const char *name = r->channel->name;
    uint64_t records, frames;
    const msgpack_object *state = dpf_object_get(r->object, "status");
    if (dpf_object_is_string(state, "failed"))
        return dpf_fail_after_peer(e, DPF_BAD_STREAM,
                                   "cannot read '%s': its writer failed", name);
    if (!dpf_object_is_string(state, "ok") ||
        !dpf_object_uint(dpf_object_get(r->object, "records"), &records) ||
        !dpf_object_uint(dpf_object_get(r->object, "frames"), &frames))
        return dpf_fail(e, DPF_BAD_STREAM, "cannot read '%s': malformed trailer", name);
    dpf_checksum_text(lane->checksum, r->digest);
    if (!dpf_object_is_string(dpf_object_get(r->object, "digest"), r->digest))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "cannot read '%s': the digest does not match, the stream is "
                        "damaged",
                        name);
    if (records != lane->records || frames != lane->frames ||
        (lane->header.has_records && records != lane->header.records))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "cannot read '%s': the trailer counts %llu records, %llu came",
                        name, (unsigned long long)records,
                        (unsigned long long)lane->records);
    lane->done = true;
    r->lanes_done++;
    return DPF_OK;
}

enum dpf_status dpf_stream_reader_next(struct dpf_stream_reader *r, enum dpf_item *item,
                                       struct dpf_error *e)
{
    while (r->lanes_done < r->lane_count) {
        struct dpf_lane *lane;
        enum dpf_status status = receive(r, &lane, e);
        if (status != DPF_OK)
            return status;
        const msgpack_object *type = dpf_object_get(r->object, "type");
        if (dpf_object_is_string(type, "trailer")) {
            status = check_trailer(r, lane, e);
            if (status != DPF_OK)
                return status;
            continue;
        }
        count_frame(r, lane);
        if (dpf_object_is_string(type, "header"))
            return dpf_fail(e, DPF_BAD_STREAM, "cannot read '%s': a second header",
                            r->channel->name);
        if (!dpf_object_is_string(type, "batch")) {
            *item = DPF_ITEM_OTHER;
            return DPF_OK;
        }
        status = dpf_batch_decode(r->object, &lane->header, lane->sequence, &r->batch, e);
        if (status != DPF_OK)
            return dpf_error_prefix(e, status, "cannot read '%s'", r->channel->name);
        lane->sequence++;
        lane->records += r->batch.rows;
        r->records += r->batch.rows;
        *item = DPF_ITEM_BATCH;
        return DPF_OK;
    }
    *item = DPF_ITEM_END;
    enum dpf_status status = r->channel->ops->finish(r->channel, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot read '%s'", r->channel->name);
    return DPF_OK;
}

void dpf_stream_reader_release(struct dpf_stream_reader *r)
{
    dpf_batch_release(&r->batch);
    dpf_frame_release(&r->frame);
    for (unsigned i = 0; r->lanes && i < r->lane_count; i++) {
        dpf_header_release(&r->lanes[i].header);
        dpf_checksum_destroy(&r->lanes[i].checksum);
    }
    free(r->lanes);
    dpf_header_release(&r->header);
    dpf_decoder_release(&r->decoder);
    dpf_channel_destroy(&r->channel);
    *r = (struct dpf_stream_reader){0};
}
