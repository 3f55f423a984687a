/* inspect: show what a stream holds. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "data/npy_write.h"
#include "filters.h"
#include "sheets.h"
#include "show.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct inspection {
    /* what the user asked for, then what it takes */
    bool json, no_statistics;
    int64_t head;
    const char *npy;
    struct dpf_sheets sheets;
    struct dpf_summary summaries[DPF_MAX_FIELDS];
    struct dpf_npy_writer writers[DPF_MAX_FIELDS];
    uint64_t shown;
    int64_t models, filters; /* seen; nodes whose filters were drawn */
} state = {.head = 2};

static const struct dpf_option options[] = {
    DPF_OPT_FLAG("json", &state.json,
                 "write one JSON object on each line; the last is the trailer"),
    DPF_OPT_INT("head", &state.head, "N", 0, 1e9, "show the first N records (2)"),
    DPF_OPT_FLAG("no-statistics", &state.no_statistics,
                 "only header, first records and trailer: faster"),
    DPF_OPT_OUTFILE(
        "png", &state.sheets.folder, "DIR",
        "write DIR/FIELD.png of each field with pictures or volumes: a "
        "contact sheet, or slices of the first volumes; of a model DIR/NODE.png "
        "of each node with filters"),
    DPF_OPT_LIST("overlay", &state.sheets.overlay, "FIELD",
                 "with --png: lay this mask over pictures or volumes of its size, each "
                 "class in a colour; given twice, the second mask is an outline"),
    DPF_OPT_INT("channel", &state.sheets.channel, "N", 0, 1e6,
                "with --png: the channel of volumes that is shown (0)"),
    DPF_OPT_FLAG(
        "heat", &state.sheets.heat,
        "with --png: draw small values green and large ones red, as for relevance"),
    DPF_OPT_OUTFILE("npy", &state.npy, "DIR", "write each field to DIR/FIELD.npy"),
    DPF_OPT_END,
};

static enum dpf_status open_writers(struct inspection *v, struct dpf_stage *s,
                                    struct dpf_error *e)
{
    enum dpf_status status = dpf_make_dirs(v->npy, e);
    for (int i = 0; status == DPF_OK && i < s->in.field_count; i++) {
        char *path = dpf_format("%s/%s.npy", v->npy, s->in.fields[i].name);
        status = path ? dpf_npy_writer_open(&v->writers[i], path, &s->in.fields[i], e)
                      : dpf_fail_memory(e);
        free(path);
    }
    return status;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct inspection *v = s->state;
    for (int i = 0; i < DPF_MAX_FIELDS; i++)
        v->writers[i].file.fd = -1;
    static const char *const drawing[] = {"heat", "overlay", "channel"};
    for (size_t i = 0; !v->sheets.folder && i < sizeof drawing / sizeof *drawing; i++)
        if (dpf_option_given(&s->parsed, drawing[i]))
            return dpf_fail(e, DPF_USAGE, "'--%s' goes with '--png'", drawing[i]);
    enum dpf_status status = v->json ? dpf_show_header_json(s->text, &s->in, e)
                                     : dpf_show_header_text(s->text, &s->in, e);
    if (status == DPF_OK && v->sheets.folder)
        status = dpf_sheets_open(&v->sheets, &s->in, e);
    if (status == DPF_OK && v->npy)
        status = open_writers(v, s, e);
    return status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct inspection *v = s->state;
    enum dpf_status status = DPF_OK;
    for (uint64_t row = 0; row < b->rows && v->shown < (uint64_t)v->head;
         row++, v->shown++)
        dpf_show_record(s->text, v->json, &s->in, b, row, v->shown);
    for (int i = 0; status == DPF_OK && i < b->count; i++) {
        if (!v->no_statistics)
            dpf_summary_add(&v->summaries[i], &b->tensor[i]);
        if (v->npy)
            status = dpf_npy_writer_add(&v->writers[i], &b->tensor[i], e);
    }
    dpf_sheets_add(&v->sheets, b);
    return status;
}

static enum dpf_status on_other(struct dpf_stage *s, const msgpack_object *frame,
                                struct dpf_error *e)
{
    struct inspection *v = s->state;
    dpf_show_other(s->text, v->json, frame);
    return v->sheets.folder &&
                   dpf_object_is_string(dpf_object_get(frame, "type"), "model")
               ? dpf_filters_save(v->sheets.folder, frame, v->models++, &v->filters, e)
               : DPF_OK;
}

/* Several streams have no digest in common. */
static void show_trailer(const struct inspection *v, const struct dpf_stage *s)
{
    bool one = s->streams_in == 1;
    const char *quote = v->json && one ? "\"" : "";
    fprintf(s->text,
            v->json
                ? "{\"type\":\"trailer\",\"records\":%llu,\"frames\":%llu,"
                  "\"streams\":%u,\"digest\":%s%s%s,\"status\":\"ok\"}\n"
                : "trailer    %llu records, %llu frames, streams %u, digest %s%s%s, ok\n",
            (unsigned long long)s->records_in, (unsigned long long)s->frames_in,
            s->streams_in, quote,
            one       ? s->digest_in
            : v->json ? "null"
                      : "of each checked",
            quote);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct inspection *v = s->state;
    enum dpf_status status = DPF_OK;
    if (!v->no_statistics)
        dpf_show_statistics(s->text, v->json, &s->in, v->summaries);
    for (int i = 0; v->npy && status == DPF_OK && i < s->in.field_count; i++)
        status = dpf_npy_writer_finish(&v->writers[i], e);
    if (status == DPF_OK && v->sheets.folder)
        status = dpf_sheets_save(&v->sheets, &s->in, e);
    if (status == DPF_OK && v->sheets.folder && s->in.field_count == 0 && !v->filters)
        status = dpf_fail(e, DPF_USAGE,
                          "the stream has no pictures, and no model with filters");
    show_trailer(v, s);
    return status;
}

static void on_release(struct dpf_stage *s)
{
    struct inspection *v = s->state;
    for (int i = 0; i < DPF_MAX_FIELDS; i++)
        dpf_npy_writer_abort(&v->writers[i]);
    dpf_sheets_release(&v->sheets);
}

static const struct dpf_stage_info info = {
    .name = "inspect",
    .summary = "show what a stream holds: header, ledger, records, statistics",
    .reads = "any stream",
    .writes = "text; PNG and .npy files if asked",
    .privacy = "none spent: what it shows is as private as the stream",
    .example = "dpflow load digits:test | dpflow inspect --json | tail -1",
    .detail =
        "Of volumes, --png shows slices across the first axis, through the middle "
        "third: a row\n"
        "for each of the first 6 records, from black at the 1st to white at the 99th "
        "percentile\n"
        "of what is shown of the record. The front of the patient is on top, as "
        "'load' turns\n"
        "NIfTI files. Class 0 of a mask is not drawn.",
    .kind = DPF_SINK,
    .options = options,
    .state = &state,
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
