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

static struct inspection {
    /* what the user asked for, then what it takes */
    bool json, no_statistics, heat;
    int64_t head;
    const char *png, *npy;
    struct dpf_summary summaries[DPF_MAX_FIELDS];
    struct dpf_sheet *sheets[DPF_MAX_FIELDS];
    struct dpf_npy_writer writers[DPF_MAX_FIELDS];
    int label_field; /* below 0: none */
    uint64_t shown;
} state = {.head = 2, .label_field = -1};

static const struct dpf_option options[] = {
    DPF_OPT_FLAG("json", &state.json,
                 "write one JSON object on each line; the last is the trailer"),
    DPF_OPT_INT("head", &state.head, "N", 0, 1e9, "show the first N records (2)"),
    DPF_OPT_FLAG("no-statistics", &state.no_statistics,
                 "only header, first records and trailer: faster"),
    DPF_OPT_OUTFILE("png", &state.png, "DIR",
                    "write a contact sheet DIR/FIELD.png of each picture field"),
    DPF_OPT_FLAG(
        "heat", &state.heat,
        "with --png: draw small values green and large ones red, as for relevance"),
    DPF_OPT_OUTFILE("npy", &state.npy, "DIR", "write each field to DIR/FIELD.npy"),
    DPF_OPT_END,
};

static enum dpf_status open_sheets(struct inspection *v, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    enum dpf_status status = dpf_make_dirs(v->png, e);
    const struct dpf_field *y = dpf_header_field(&s->in, "y");
    if (y && y->classes && y->classes <= 32 && y->shape.rank == 0)
        v->label_field = (int)(y - s->in.fields);
    int drawn = 0;
    for (int i = 0; status == DPF_OK && i < s->in.field_count; i++)
        if (dpf_sheet_can_draw(&s->in.fields[i].shape)) {
            status = dpf_sheet_new(&v->sheets[i], &s->in.fields[i].shape,
                                   v->label_field >= 0 ? y->classes : 0, e);
            if (status == DPF_OK && v->heat)
                dpf_sheet_use_heat(v->sheets[i]);
            drawn++;
        }
    if (status == DPF_OK && !drawn)
        status = dpf_fail(e, DPF_USAGE, "no field of this stream holds pictures");
    return status;
}

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
    if (v->heat && !v->png)
        return dpf_fail(e, DPF_USAGE, "'--heat' goes with '--png'");
    enum dpf_status status = v->json ? dpf_show_header_json(s->text, &s->in, e)
                                     : dpf_show_header_text(s->text, &s->in, e);
    if (status == DPF_OK && v->png)
        status = open_sheets(v, s, e);
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
        for (uint64_t row = 0; v->sheets[i] && row < b->rows; row++) {
            if (dpf_sheet_full(v->sheets[i]))
                break;
            uint64_t label =
                v->label_field < 0
                    ? UINT64_MAX
                    : (uint64_t)dpf_tensor_get(&b->tensor[v->label_field], row);
            dpf_sheet_add(v->sheets[i], &b->tensor[i], row, label);
        }
        if (v->npy)
            status = dpf_npy_writer_add(&v->writers[i], &b->tensor[i], e);
    }
    return status;
}

static enum dpf_status on_other(struct dpf_stage *s, const msgpack_object *frame,
                                struct dpf_error *e)
{
    const struct inspection *v = s->state;
    (void)e;
    dpf_show_other(s->text, v->json, frame);
    return DPF_OK;
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
    for (int i = 0; status == DPF_OK && i < s->in.field_count; i++) {
        if (v->npy)
            status = dpf_npy_writer_finish(&v->writers[i], e);
        if (status == DPF_OK && v->sheets[i]) {
            char *path = dpf_format("%s/%s.png", v->png, s->in.fields[i].name);
            status = path ? dpf_sheet_write(v->sheets[i], path, e) : dpf_fail_memory(e);
            free(path);
        }
    }
    show_trailer(v, s);
    return status;
}

static void on_release(struct dpf_stage *s)
{
    struct inspection *v = s->state;
    for (int i = 0; i < DPF_MAX_FIELDS; i++) {
        dpf_sheet_destroy(&v->sheets[i]);
        dpf_npy_writer_abort(&v->writers[i]);
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
