/* Messages of owners to the estimate of a quadratic form. */
#include <string.h>

#include "aggregate.h"
#include "base/log.h"
#include "exchange/form_stream.h"

#include "base/banned.h"

enum dpf_status dpf_messages_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    enum dpf_status status =
        dpf_report_stream_open(&v->reports, s, v->field, v->label, e);
    if (status == DPF_OK)
        status = dpf_report_form_init(&v->form, v->reports.values, v->reports.outputs,
                                      v->reports.moments, e);
    v->known.like = &v->reports;
    v->known.stage = s;
    if (status == DPF_OK && v->known_stream)
        status =
            dpf_known_records_read(&v->known, v->known_stream, v->field, v->label, e);
    s->out_deferred = true;
    s->drops_others = true;
    return status == DPF_OK
               ? dpf_form_declare(&s->out, v->reports.values, v->reports.outputs, e)
               : status;
}

enum dpf_status dpf_messages_batch(struct dpf_stage *s, struct dpf_batch *b,
                                   struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    enum dpf_status status = dpf_report_stream_take(&v->reports, b, e);
    uint64_t kept = status == DPF_OK ? dpf_report_stream_sift(&v->reports, b) : 0;
    v->left_out += b->rows - kept;
    return status == DPF_OK ? dpf_report_form_add(&v->form, b->tensor[v->reports.x].data,
                                                  v->reports.codes, kept, e)
                            : status;
}

enum dpf_status dpf_messages_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    double noise[2];
    if (v->left_out)
        dpf_notice("%llu records were not messages and were left out",
                   (unsigned long long)v->left_out);
    if (v->form.reports == 0)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no messages");
    enum dpf_status status = DPF_OK;
    if (v->known.count)
        status = dpf_report_form_add_known(&v->form, v->known.x, v->known.codes,
                                           v->known.count, v->known_weight, e);
    dpf_report_form_finish(&v->form, noise);
    struct dpf_batch b = {0};
    if (status == DPF_OK)
        status = dpf_form_begin(s, &b, e);
    if (status != DPF_OK)
        return status;
    memcpy(b.tensor[0].data, v->form.gram, b.tensor[0].bytes);
    memcpy(b.tensor[1].data, v->form.moment, b.tensor[1].bytes);
    return dpf_form_send(s, &b, noise, false, e);
}
