/* aggregate: many owners' randomised messages as one estimate. */
#include <string.h>

#include "base/log.h"
#include "exchange/form_stream.h"
#include "exchange/report_stream.h"
#include "nn/report_form.h"

#include "base/banned.h"

static struct {
    const char *field, *label, *known;
    double known_weight;
} opt = {.field = "x", .label = "y"};

static const struct dpf_option options[] = {
    DPF_OPT_STRING("field", &opt.field, "NAME", "the field with the messages (x)"),
    DPF_OPT_STRING("target", &opt.label, "NAME",
                   "the field with their labels, or codes of labels (y)"),
    DPF_OPT_ENDPOINT("public", &opt.known, "STREAM",
                     "public records with labels, added to the estimate", 0),
    DPF_OPT_REAL("public-weight", &opt.known_weight, "W", 1e-6, 1e6,
                 "weight of the public records, in units of the messages' noise (try 0.2 "
                 "if they resemble the private ones)"),
    DPF_OPT_END,
};

static struct dpf_report_form form;
static struct dpf_report_stream reports;
static struct dpf_known_records known;
static uint64_t left_out;

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    (void)s;
    return !opt.known == !(opt.known_weight > 0)
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE, "'--public' and '--public-weight' go together");
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_report_stream_open(&reports, s, opt.field, opt.label, e);
    if (status == DPF_OK)
        status = dpf_report_form_init(&form, reports.values, reports.outputs,
                                      reports.moments, e);
    known.like = &reports;
    known.stage = s;
    if (status == DPF_OK && opt.known)
        status = dpf_known_records_read(&known, opt.known, opt.field, opt.label, e);
    s->out_deferred = true;
    s->drops_others = true;
    return status == DPF_OK
               ? dpf_form_declare(&s->out, reports.values, reports.outputs, e)
               : status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    (void)s;
    enum dpf_status status = dpf_report_stream_take(&reports, b, e);
    uint64_t kept = status == DPF_OK ? dpf_report_stream_sift(&reports, b) : 0;
    left_out += b->rows - kept;
    return status == DPF_OK ? dpf_report_form_add(&form, b->tensor[reports.x].data,
                                                  reports.codes, kept, e)
                            : status;
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    double noise[2];
    if (left_out)
        dpf_notice("%llu records were not messages and were left out",
                   (unsigned long long)left_out);
    if (form.reports == 0)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no messages");
    enum dpf_status status = DPF_OK;
    if (known.count)
        status = dpf_report_form_add_known(&form, known.x, known.codes, known.count,
                                           opt.known_weight, e);
    dpf_report_form_finish(&form, noise);
    struct dpf_batch b = {0};
    if (status == DPF_OK)
        status = dpf_form_begin(s, &b, e);
    if (status != DPF_OK)
        return status;
    memcpy(b.tensor[0].data, form.gram, b.tensor[0].bytes);
    memcpy(b.tensor[1].data, form.moment, b.tensor[1].bytes);
    return dpf_form_send(s, &b, noise, false, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_report_form_release(&form);
    dpf_report_stream_release(&reports);
    dpf_known_records_release(&known);
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
