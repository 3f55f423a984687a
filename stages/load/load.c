/* load: read a data set or file into a stream. */
#include <string.h>

#include "base/number.h"
#include "data/catalog.h"
#include "data/formats.h"
#include "source_event.h"

#include "base/banned.h"

static struct loading {
    /* what the user asked for, then what it takes */
    const char *data_dir, *format, *columns_file, *size_text;
    struct dpf_list labels;
    int64_t classes, count, seed, side, channels, limit;
    bool is_public, partial;
    struct dpf_columns columns;
    uint64_t size[3];
    struct dpf_file_list files;
    struct dpf_source *source;
    struct dpf_contents contents;
    uint64_t produced;
} state = {.limit = -1};

static const struct dpf_option options[] = {
    {.name = "data-dir",
     .kind = DPF_KIND_STRING,
     .target = &state.data_dir,
     .arg = "DIR",
     .help = "look for named data sets in DIR first, then in $DPFLOW_DATA, datasets/data "
             "and the user's cache",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_FLAG("public", &state.is_public,
                 "declare the records public; otherwise they are private"),
    DPF_OPT_FLAG("partial", &state.partial,
                 "accept a named data set of which some files are missing"),
    DPF_OPT_INT("limit", &state.limit, "N", 0, 9e15, "stop after N records"),
    DPF_OPT_CHOICE("format", &state.format, dpf_formats, "FORMAT",
                   "the file's format, if its name does not show it"),
    DPF_OPT_FILE("columns", &state.columns_file, "FILE",
                 "the columns of a CSV table: types and public bounds"),
    {.name = "labels",
     .kind = DPF_KIND_LIST,
     .target = &state.labels,
     .arg = "FILE",
     .help = "labels of an idx file, or masks of NIfTI volumes (one for each volume)",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_INT("classes", &state.classes, "N", 1, 1e9,
                "labels and masks are classes 0 to N-1"),
    DPF_OPT_STRING(
        "size", &state.size_text, "DxHxW",
        "the public size that volumes of msd: are cut or padded to; synth-tumour: "
        "the size, a cube"),
    DPF_OPT_INT("count", &state.count, "N", 0, 9e15,
                "number of records to generate (synth-*), or of volumes to read (msd:), "
                "the first "
                "ones; 0: all, or as many as the generator has by itself"),
    DPF_OPT_INT("seed", &state.seed, "N", 0, 9e15, "seed of the generator (0)"),
    DPF_OPT_INT("side", &state.side, "N", 16, 128, "edge of a synth-tumour volume (64)"),
    DPF_OPT_INT("channels", &state.channels, "N", 1, 4, "channels of synth-tumour (4)"),
    DPF_OPT_END,
};

/* "48x64x48" */
static bool parse_size(const char *text, uint64_t size[3])
{
    char copy[64], *at = copy;
    int count = 0;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return false;
    for (char *word; (word = strsep(&at, "x")); count++)
        if (count == 3 || !dpf_parse_uint(word, &size[count]) || size[count] < 1 ||
            size[count] > 4096)
            return false;
    return count == 3;
}

static struct dpf_load_request request(const struct loading *v, const struct dpf_stage *s)
{
    return (struct dpf_load_request){.given = &s->parsed,
                                     .names = s->arguments,
                                     .name_count = s->argument_count,
                                     .data_dir = v->data_dir,
                                     .format = v->format,
                                     .partial = v->partial,
                                     .labels = v->labels.items,
                                     .label_count = v->labels.count,
                                     .columns = v->columns_file ? &v->columns : NULL,
                                     .classes = (uint64_t)v->classes,
                                     .count = (uint64_t)v->count,
                                     .seed = (uint64_t)v->seed,
                                     .side = v->side ? (uint64_t)v->side : v->size[0],
                                     .channels = (uint64_t)v->channels,
                                     .size = {v->size[0], v->size[1], v->size[2]},
                                     .files = &v->files};
}

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct loading *v = s->state;
    if (v->size_text && !parse_size(v->size_text, v->size))
        return dpf_fail(e, DPF_USAGE, "'--size %s' is not DxHxW, each from 1 to 4096",
                        v->size_text);
    return v->columns_file ? dpf_columns_read(v->columns_file, &v->columns, e) : DPF_OK;
}

static enum dpf_status on_fingerprint(struct dpf_stage *s, struct dpf_fingerprint *f,
                                      struct dpf_error *e)
{
    const struct loading *v = s->state;
    struct dpf_load_request q = request(v, s);
    return dpf_catalog_fingerprint(&q, f, e);
}

/* With a record less, the one behind the last comes in. */
static void add_selection(struct dpf_stage *s, uint64_t count)
{
    char rule[40];
    snprintf(rule, sizeof rule, "first %llu", (unsigned long long)count);
    const struct dpf_selection_event first = {
        .by = "order", .rule = rule, .stability = {.add_remove = 2, .replace_one = 1}};
    dpf_ledger_add_selection(&s->out.events, s->info->name, &first);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct loading *v = s->state;
    struct dpf_load_request q = request(v, s);
    enum dpf_status status = dpf_catalog_list(&q, &v->files, e);
    if (status == DPF_OK)
        status = dpf_catalog_contents(&q, &v->contents, e);
    if (status == DPF_OK)
        status = dpf_catalog_open(&q, &v->source, e);
    if (status == DPF_OK)
        status = dpf_header_copy(&s->out, &v->source->header, e);
    s->out.is_private = !v->is_public;
    /* A file a person: names and their number are theirs, and would leave with a model.
     */
    s->hides_arguments =
        s->out.is_private &&
        (s->argument_count > 1 || (s->out.has_records && s->out.records == 1));
    if (status == DPF_OK)
        status = dpf_source_describe(s, &v->contents, e);
    if (status != DPF_OK)
        return status;
    if (v->source->first)
        add_selection(s, v->source->first);
    if (v->limit >= 0) {
        /* How many there are is only known if the file told beforehand. */
        s->out.has_records = s->out.has_records || v->limit == 0;
        if (s->out.records > (uint64_t)v->limit)
            s->out.records = (uint64_t)v->limit;
        add_selection(s, (uint64_t)v->limit);
    }
    return DPF_OK;
}

static enum dpf_status on_produce(struct dpf_stage *s, struct dpf_batch *b,
                                  struct dpf_error *e)
{
    struct loading *v = s->state;
    uint64_t want = dpf_batch_rows(&s->out);
    if (v->limit >= 0 && want > (uint64_t)v->limit - v->produced)
        want = (uint64_t)v->limit - v->produced;
    if (want == 0)
        return DPF_OK;
    enum dpf_status status = dpf_source_next(v->source, b, want, e);
    v->produced += b->rows;
    return status;
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct loading *v = s->state;
    return dpf_contents_unchanged(&v->contents, e);
}

static void on_release(struct dpf_stage *s)
{
    struct loading *v = s->state;
    dpf_contents_release(&v->contents);
    dpf_source_destroy(&v->source);
    dpf_file_list_release(&v->files);
    dpf_columns_release(&v->columns);
}

static const struct dpf_stage_info info = {
    .name = "load",
    .summary = "read a data set or file into a stream",
    .reads = "a named data set (digits:train, mnist:test, ...) or files",
    .writes = "x: the records as stored; y: labels or target, mask: voxel classes",
    .privacy = "none spent; the stream is marked private unless --public. Its source is "
               "named by a digest that only the owner of the records can compute",
    .example = "dpflow load digits:train | dpflow inspect",
    .detail =
        "A named data set is NAME:train or NAME:test; digits:all has both parts.\n"
        "Files may be compressed as .gz or .xz (.npz is compressed itself).\n"
        "\n"
        "The owner's key protects digests of private records from guessing. It is made "
        "at the\n"
        "first use, in $DPFLOW_OWNER_KEY, or in dpflow/owner.key in $XDG_CONFIG_HOME or\n"
        "~/.config. Records from a pipe have no digest.",
    .add_tables = dpf_catalog_tables,
    .arguments = "DATASET|FILE...",
    .add_words = dpf_catalog_words,
    .min_arguments = 1,
    .max_arguments = 4096,
    .kind = DPF_SOURCE,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_fingerprint = on_fingerprint,
    .on_open = on_open,
    .on_produce = on_produce,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
