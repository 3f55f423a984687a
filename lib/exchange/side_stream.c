#include "exchange/side_stream.h"
#include "ledger/merge.h"

#include "base/banned.h"

enum dpf_status dpf_side_stream_read(const char *endpoint,
                                     const struct dpf_side_stream *side,
                                     struct dpf_error *e)
{
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    struct dpf_channel *channel = NULL;
    struct dpf_stream_reader r = {0};
    enum dpf_item item = DPF_ITEM_BATCH;
    enum dpf_status status = dpf_channel_open(endpoint, DPF_READ, &options, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&r, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    status = side->on_header(side->context, &r.header, e);
    while (status == DPF_OK && item != DPF_ITEM_END) {
        status = dpf_stream_reader_next(&r, &item, e);
        if (status == DPF_OK && item == DPF_ITEM_BATCH)
            status = side->on_batch(side->context, &r.header, &r.batch, e);
    }
    dpf_stream_reader_release(&r);
    return status;
}
