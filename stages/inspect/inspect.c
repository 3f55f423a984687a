/* inspect: show what a stream holds. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "data/npy_write.h"
#include "data/picture.h"
#include "show.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct {
    bool json, no_statistics, heat;
    int64_t head;
    const char *png, *npy;
} opt = {.head = 2};

static const struct dpf_option options[] = {
    DPF_OPT_FLAG("json", &opt.json,
                 "write one JSON object on each line; the last is the trailer"),
    DPF_OPT_INT("head", &opt.head, "N", 0, 1e9, "show the first N records (2)"),
    DPF_OPT_FLAG("no-statistics", &opt.no_statistics,
                 "only header, first records and trailer: faster"),
    DPF_OPT_OUTFILE("png", &opt.png, "DIR",
                    "write a contact sheet DIR/FIELD.png of each picture field"),
    DPF_OPT_FLAG(
        "heat", &opt.heat,
        "with --png: draw small values green and large ones red, as for relevance"),
    DPF_OPT_OUTFILE("npy", &opt.npy, "DIR", "write each field to DIR/FIELD.npy"),
    DPF_OPT_END,
};

static struct dpf_summary summaries[DPF_MAX_FIELDS];
static struct dpf_sheet *sheets[DPF_MAX_FIELDS];
static struct dpf_npy_writer writers[DPF_MAX_FIELDS];
static int label_field = -1;
static uint64_t shown;

static enum dpf_status open_sheets(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_make_dirs(opt.png, e);
    const struct dpf_field *y = dpf_header_field(&s->in, "y");
    if (y && y->classes && y->classes <= 32 && y->shape.rank == 0)
        label_field = (int)(y - s->in.fields);
    int drawn = 0;
    for (int i = 0; status == DPF_OK && i < s->in.field_count; i++)
        if (dpf_sheet_can_draw(&s->in.fields[i].shape)) {
            status = dpf_sheet_new(&sheets[i], &s->in.fields[i].shape,
                                   label_field >= 0 ? y->classes : 0, e);
            if (status == DPF_OK && opt.heat)
                dpf_sheet_use_heat(sheets[i]);
            drawn++;
        }
    if (status == DPF_OK && !drawn)
        status = dpf_fail(e, DPF_USAGE, "no field of this stream holds pictures");
    return status;
}

static enum dpf_status open_writers(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_make_dirs(opt.npy, e);
    for (int i = 0; status == DPF_OK && i < s->in.field_count; i++) {
        char *path = dpf_format("%s/%s.npy", opt.npy, s->in.fields[i].name);
        status = path ? dpf_npy_writer_open(&writers[i], path, &s->in.fields[i], e)
                      : dpf_fail_memory(e);
        free(path);
    }
    return status;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    for (int i = 0; i < DPF_MAX_FIELDS; i++)
        writers[i].file.fd = -1;
    if (opt.heat && !opt.png)
        return dpf_fail(e, DPF_USAGE, "'--heat' goes with '--png'");
    enum dpf_status status = opt.json ? dpf_show_header_json(s->text, &s->in, e)
                                      : dpf_show_header_text(s->text, &s->in, e);
    if (status == DPF_OK && opt.png)
        status = open_sheets(s, e);
    if (status == DPF_OK && opt.npy)
        status = open_writers(s, e);
    return status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (uint64_t row = 0; row < b->rows && shown < (uint64_t)opt.head; row++, shown++)
        dpf_show_record(s->text, opt.json, &s->in, b, row, shown);
    for (int i = 0; status == DPF_OK && i < b->count; i++) {
        if (!opt.no_statistics)
            dpf_summary_add(&summaries[i], &b->tensor[i]);
        for (uint64_t row = 0; sheets[i] && row < b->rows; row++) {
            if (dpf_sheet_full(sheets[i]))
                break;
            uint64_t label = label_field < 0
                                 ? UINT64_MAX
                                 : (uint64_t)dpf_tensor_get(&b->tensor[label_field], row);
            dpf_sheet_add(sheets[i], &b->tensor[i], row, label);
        }
        if (opt.npy)
            status = dpf_npy_writer_add(&writers[i], &b->tensor[i], e);
    }
    return status;
}

static enum dpf_status on_other(struct dpf_stage *s, const msgpack_object *frame,
                                struct dpf_error *e)
{
    (void)e;
    dpf_show_other(s->text, opt.json, frame);
    return DPF_OK;
}

/* Several streams have no digest in common. */
static void show_trailer(const struct dpf_stage *s)
{
    bool one = s->streams_in == 1;
    const char *quote = opt.json && one ? "\"" : "";
    fprintf(s->text,
            opt.json
                ? "{\"type\":\"trailer\",\"records\":%llu,\"frames\":%llu,"
                  "\"streams\":%u,\"digest\":%s%s%s,\"status\":\"ok\"}\n"
                : "trailer    %llu records, %llu frames, streams %u, digest %s%s%s, ok\n",
            (unsigned long long)s->records_in, (unsigned long long)s->frames_in,
            s->streams_in, quote,
            one        ? s->digest_in
            : opt.json ? "null"
                       : "of each checked",
            quote);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (!opt.no_statistics)
        dpf_show_statistics(s->text, opt.json, &s->in, summaries);
    for (int i = 0; status == DPF_OK && i < s->in.field_count; i++) {
        if (opt.npy)
            status = dpf_npy_writer_finish(&writers[i], e);
        if (status == DPF_OK && sheets[i]) {
            char *path = dpf_format("%s/%s.png", opt.png, s->in.fields[i].name);
            status = path ? dpf_sheet_write(sheets[i], path, e) : dpf_fail_memory(e);
            free(path);
        }
    }
    show_trailer(s);
    return status;
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    for (int i = 0; i < DPF_MAX_FIELDS; i++) {
        dpf_sheet_destroy(&sheets[i]);
        dpf_npy_writer_abort(&writers[i]);
    }
}

static const struct dpf_stage_info info = {
    .name = "inspect",
    .summary = "show what a stream holds: header, ledger, records, statistics",
    .reads = "any stream",
    .writes = "text; PNG and .npy files if asked",
    .privacy = "none spent: what it shows is as private as the stream",
    .example = "dpflow load digits:test | dpflow inspect --json | tail -1",
    .kind = DPF_SINK,
    .options = options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_other = on_other,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
