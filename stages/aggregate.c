/* aggregate: many owners' randomised messages as one estimate. */
#include <string.h>

#include "base/log.h"
#include "exchange/form_stream.h"
#include "exchange/report_stream.h"
#include "nn/report_form.h"

#include "base/banned.h"

static struct aggregation {
    /* what the user asked for, then what it takes */
    const char *field, *label, *known_stream;
    double known_weight;
    struct dpf_report_form form;
    struct dpf_report_stream reports;
    struct dpf_known_records known;
    uint64_t left_out;
} state = {.field = "x", .label = "y"};

static const struct dpf_option options[] = {
    DPF_OPT_STRING("field", &state.field, "NAME", "the field with the messages (x)"),
    DPF_OPT_STRING("target", &state.label, "NAME",
                   "the field with their labels, or codes of labels (y)"),
    DPF_OPT_ENDPOINT("public", &state.known_stream, "STREAM",
                     "public records with labels, added to the estimate", 0),
    DPF_OPT_REAL("public-weight", &state.known_weight, "W", 1e-6, 1e6,
                 "weight of the public records, in units of the messages' noise (try 0.2 "
                 "if they resemble the private ones)"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    const struct aggregation *v = s->state;
    return !v->known_stream == !(v->known_weight > 0)
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE, "'--public' and '--public-weight' go together");
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct aggregation *v = s->state;
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

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct aggregation *v = s->state;
    enum dpf_status status = dpf_report_stream_take(&v->reports, b, e);
    uint64_t kept = status == DPF_OK ? dpf_report_stream_sift(&v->reports, b) : 0;
    v->left_out += b->rows - kept;
    return status == DPF_OK ? dpf_report_form_add(&v->form, b->tensor[v->reports.x].data,
                                                  v->reports.codes, kept, e)
                            : status;
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct aggregation *v = s->state;
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

static void on_release(struct dpf_stage *s)
{
    struct aggregation *v = s->state;
    dpf_report_form_release(&v->form);
    dpf_report_stream_release(&v->reports);
    dpf_known_records_release(&v->known);
}

static const struct dpf_stage_info info = {
    .name = "aggregate",
    .summary = "estimate a quadratic form from many owners' randomised messages",
    .reads = "x: messages of 'randomize --method privunit', y: labels or their codes",
    .writes = "one record: gram, moment and their noise, for 'solve --what quadratic'",
    .privacy = "none spent: the messages were randomised by their owners",
    .example =
        "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow randomize "
        "--method privunit --epsilon 8 --labels joint | dpflow aggregate | dpflow "
        "solve --what quadratic | dpflow account",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
