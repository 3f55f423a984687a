/* Any bytes as a stream, read to its end; other frames also as JSON. */
#include "ledger/merge.h"
#include "transport/transport.h"
#include "wire/stream.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void show(const msgpack_object *object)
{
    struct dpf_text json = {0};
    dpf_object_to_json(object, &json);
    dpf_text_release(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dpf_channel *channel;
    struct dpf_stream_reader r;
    struct dpf_error e;
    enum dpf_item item = DPF_ITEM_BATCH;
    if (dpf_channel_from_memory(data, size, &channel, &e) != DPF_OK ||
        dpf_stream_reader_open(&r, channel, dpf_ledger_merge, &e) != DPF_OK)
        return 0;
    while (item != DPF_ITEM_END) {
        if (dpf_stream_reader_next(&r, &item, &e) != DPF_OK)
            break;
        if (item == DPF_ITEM_OTHER)
            show(r.object);
        /* Every element of every tensor lies in memory that is ours. */
        for (int i = 0; item == DPF_ITEM_BATCH && i < r.batch.count; i++) {
            uint64_t n = dpf_shape_elements(&r.batch.tensor[i].shape);
            volatile double sum = 0;
            for (uint64_t k = 0; k < n; k++)
                sum += dpf_tensor_get(&r.batch.tensor[i], k);
        }
    }
    dpf_stream_reader_release(&r);
    return 0;
}
