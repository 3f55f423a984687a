#include "pipeline/metrics.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "transport/transport.h"
#include "wire/stream.h"

#include "base/banned.h"

/* The JSON object of the stream's first metric, as a stage wrote it. */
static enum dpf_status take_metric(struct dpf_stream_reader *r, struct dpf_text *out,
                                   struct dpf_error *e)
{
    enum dpf_item item = DPF_ITEM_BATCH;
    while (item != DPF_ITEM_END) {
        const char *text;
        size_t size;
        enum dpf_status status = dpf_stream_reader_next(r, &item, e);
        if (status != DPF_OK)
            return status;
        if (item != DPF_ITEM_OTHER || out->size ||
            !dpf_object_is_string(dpf_object_get(r->object, "type"), "metric"))
            continue;
        const msgpack_object *json = dpf_object_get(r->object, "json");
        if (json && dpf_object_text(json, &text, &size) && size > 2 && text[0] == '{' &&
            text[size - 1] == '}' && dpf_json_is_object(text, size))
            dpf_text_addn(out, text, size);
    }
    return DPF_OK;
}

static enum dpf_status read_metric(const char *path, struct dpf_text *out,
                                   struct dpf_error *e)
{
    struct dpf_channel *channel;
    struct dpf_stream_reader reader = {0};
    enum dpf_status status = dpf_channel_open(path, DPF_READ, NULL, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&reader, channel, e);
    if (status != DPF_OK)
        return status;
    if (reader.header.field_count == 0)
        status = take_metric(&reader, out, e);
    dpf_stream_reader_release(&reader);
    return status;
}

/* Everything of the object at the top, then the objects of all streams by name. */
static enum dpf_status write_file(const struct dpf_plan *plan, const char *top,
                                  const struct dpf_text *streams, struct dpf_error *e)
{
    struct dpf_text t = {0};
    char *path = dpf_path_join(plan->run_dir, "metrics.json");
    dpf_text_addn(&t, top, strlen(top) - 1);
    dpf_text_addf(&t, ",\"streams\":{%s}}\n", dpf_text_get(streams));
    enum dpf_status status = t.failed || streams->failed || !path
                                 ? dpf_fail_memory(e)
                                 : dpf_write_file(path, t.data, t.size, e);
    free(path);
    dpf_text_release(&t);
    return status;
}

enum dpf_status dpf_plan_write_metrics(const struct dpf_plan *plan, struct dpf_error *e)
{
    const struct dpf_pipeline *p = plan->pipeline;
    struct dpf_text streams = {0}, first = {0};
    bool from_output = false;
    enum dpf_status status = DPF_OK;
    char *old = dpf_path_join(plan->run_dir, "metrics.json");
    if (old)
        unlink(old);
    free(old);
    for (size_t i = 0; status == DPF_OK && i < p->count; i++) {
        struct dpf_text metric = {0};
        if (!plan->streams[i].text)
            status = read_metric(plan->streams[i].path, &metric, e);
        if (metric.size) {
            dpf_text_add(&streams, streams.size ? "," : "");
            dpf_text_add_json(&streams, p->statements[i].label,
                              strlen(p->statements[i].label));
            dpf_text_addf(&streams, ":%s", metric.data);
        }
        if (metric.size &&
            (!first.size || (p->statements[i].is_output && !from_output))) {
            from_output = p->statements[i].is_output;
            dpf_text_reset(&first);
            dpf_text_addn(&first, metric.data, metric.size);
        }
        dpf_text_release(&metric);
    }
    if (status == DPF_OK && first.size)
        status = write_file(plan, first.data, &streams, e);
    dpf_text_release(&streams);
    dpf_text_release(&first);
    return status;
}
