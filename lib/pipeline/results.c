#include "pipeline/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account/ledger.h"
#include "base/file.h"
#include "base/text.h"
#include "ledger/merge.h"
#include "transport/transport.h"
#include "wire/stream.h"

#include "base/banned.h"

/* What a stream has to say, as one JSON object, or nothing. Of several outputs the one
 * with the largest weight stands at the top. */
typedef enum dpf_status stream_reader(struct dpf_stream_reader *r, struct dpf_text *out,
                                      double *weight, struct dpf_error *e);

/* The JSON object of the stream's first metric, as a stage wrote it. */
static enum dpf_status take_metric(struct dpf_stream_reader *r, struct dpf_text *out,
                                   double *weight, struct dpf_error *e)
{
    enum dpf_item item = DPF_ITEM_BATCH;
    *weight = 0;
    if (r->header.field_count > 0)
        return DPF_OK;
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

/* What the ledger comes to. One that cannot be accounted for has no epsilon, and says
 * why.
 */
static enum dpf_status take_account(struct dpf_stream_reader *r, struct dpf_text *out,
                                    double *weight, struct dpf_error *e)
{
    struct dpf_account account;
    struct dpf_error own = {.status = DPF_OK};
    struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    (void)e;
    *weight = INFINITY;
    if (r->header.events.count == 0 && !r->header.is_private)
        return DPF_OK;
    if (dpf_account_ledger(&account, &r->header, &request, &own) == DPF_OK) {
        dpf_account_json(&account, &r->header.events, out);
        *weight = account.proven.epsilon;
        dpf_account_release(&account);
        return DPF_OK;
    }
    dpf_text_add(out, "{\"epsilon\":null,\"claimed\":null,\"proven\":{\"epsilon\":null,"
                      "\"why\":");
    dpf_text_add_json(out, own.message, strlen(own.message));
    dpf_text_add(out, "}}");
    return DPF_OK;
}

static enum dpf_status read_stream(const char *path, stream_reader *take,
                                   struct dpf_text *out, double *weight,
                                   struct dpf_error *e)
{
    struct dpf_channel *channel;
    struct dpf_stream_reader reader = {0};
    enum dpf_status status = dpf_channel_open(path, DPF_READ, NULL, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&reader, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    status = take(&reader, out, weight, e);
    dpf_stream_reader_release(&reader);
    return status;
}

/* Everything of the object at the top, then the objects of all streams by name. */
static enum dpf_status write_object(const char *path, const struct dpf_text *top,
                                    const struct dpf_text *streams, struct dpf_error *e)
{
    struct dpf_text t = {0};
    dpf_text_addn(&t, top->data, top->size - 1);
    dpf_text_addf(&t, ",\"streams\":{%s}}\n", dpf_text_get(streams));
    enum dpf_status status = t.failed || top->failed || streams->failed
                                 ? dpf_fail_memory(e)
                                 : dpf_write_file(path, t.data, t.size, e);
    dpf_text_release(&t);
    return status;
}

static enum dpf_status collect(const struct dpf_plan *plan, const char *file,
                               stream_reader *take, struct dpf_error *e)
{
    const struct dpf_pipeline *p = plan->pipeline;
    struct dpf_text streams = {0}, top = {0};
    char *path = dpf_path_join(plan->run_dir, file);
    enum dpf_status status = path ? DPF_OK : dpf_fail_memory(e);
    bool top_is_output = false;
    double top_weight = 0;
    if (path)
        unlink(path);
    for (size_t i = 0; status == DPF_OK && i < p->count; i++) {
        struct dpf_text one = {0};
        double weight = 0;
        bool output = p->statements[i].is_output;
        const char *label = p->statements[i].label;
        if (!plan->streams[i].text)
            status = read_stream(plan->streams[i].path, take, &one, &weight, e);
        if (one.size) {
            dpf_text_add(&streams, streams.size ? "," : "");
            dpf_text_add_json(&streams, label, strlen(label));
            dpf_text_addf(&streams, ":%s", one.data);
        }
        bool heavier = output == top_is_output ? weight > top_weight : output;
        if (one.size && (!top.size || heavier)) {
            top_is_output = output;
            top_weight = weight;
            dpf_text_reset(&top);
            dpf_text_addn(&top, one.data, one.size);
        }
        dpf_text_release(&one);
    }
    if (status == DPF_OK && top.size)
        status = write_object(path, &top, &streams, e);
    dpf_text_release(&streams);
    dpf_text_release(&top);
    free(path);
    return status;
}

enum dpf_status dpf_plan_write_metrics(const struct dpf_plan *plan, struct dpf_error *e)
{
    return collect(plan, "metrics.json", take_metric, e);
}

enum dpf_status dpf_plan_write_account(const struct dpf_plan *plan, struct dpf_error *e)
{
    return collect(plan, "account.json", take_account, e);
}
