#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/version.h"
#include "ledger/merge.h"
#include "stage/identity.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct {
    struct dpf_list inputs, outputs, peer_keys;
    const char *key;
    double wait_seconds;
    bool cleartext, quiet, help, version, fingerprint, man, completion;
} common;

static const struct dpf_option common_options[] = {
    {.name = "input",
     .letter = 'i',
     .kind = DPF_KIND_LIST,
     .target = &common.inputs,
     .arg = "ENDPOINT",
     .help = "read from ENDPOINT instead of standard input; several are read one after "
             "the other",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "output",
     .letter = 'o',
     .kind = DPF_KIND_LIST,
     .target = &common.outputs,
     .arg = "ENDPOINT",
     .help = "write to ENDPOINT instead of standard output; all of several get "
             "the same stream",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "key",
     .kind = DPF_KIND_STRING,
     .target = &common.key,
     .arg = "FILE",
     .help = "our CURVE key pair for ipc:// and tcp:// (dpflow keygen makes one)",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "peer-key",
     .kind = DPF_KIND_LIST,
     .target = &common.peer_keys,
     .arg = "FILE",
     .help = "public key of a peer that we talk to; give one for each",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "cleartext",
     .kind = DPF_KIND_FLAG,
     .target = &common.cleartext,
     .help = "allow tcp:// beyond this machine without encryption",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "wait",
     .kind = DPF_KIND_REAL,
     .target = &common.wait_seconds,
     .arg = "SECONDS",
     .lo = 0.1,
     .hi = 1e6,
     .help = "how long to wait for a network peer to appear (30)",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "quiet",
     .letter = 'q',
     .kind = DPF_KIND_FLAG,
     .target = &common.quiet,
     .help = "no notices, only errors",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "help",
     .letter = 'h',
     .kind = DPF_KIND_FLAG,
     .target = &common.help,
     .help = "show this text",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "version",
     .kind = DPF_KIND_FLAG,
     .target = &common.version,
     .help = "show the version",
     .flags = DPF_OPTION_IMMATERIAL},
    {.name = "fingerprint",
     .kind = DPF_KIND_FLAG,
     .target = &common.fingerprint,
     .help = "print a digest of all that determines the result",
     .flags = DPF_OPTION_IMMATERIAL | DPF_OPTION_HIDDEN},
    {.name = "dump-man",
     .kind = DPF_KIND_FLAG,
     .target = &common.man,
     .help = "print the man page",
     .flags = DPF_OPTION_IMMATERIAL | DPF_OPTION_HIDDEN},
    {.name = "dump-completion",
     .kind = DPF_KIND_FLAG,
     .target = &common.completion,
     .help = "print the options for shell completion",
     .flags = DPF_OPTION_IMMATERIAL | DPF_OPTION_HIDDEN},
    DPF_OPT_END,
};

static const struct dpf_option no_options[] = {DPF_OPT_END};

/* The common options that apply to a kind of stage: one that reads no stream has no
 * --input, and one that neither reads nor writes a stream has no network options. */
static const struct dpf_option *options_for(enum dpf_stage_kind kind)
{
    static const char *const streams[] = {"input",    "output",    "key",
                                          "peer-key", "cleartext", "wait"};
    static struct dpf_option chosen[sizeof common_options / sizeof *common_options];
    size_t leave_out = kind == DPF_PROGRAM ? 6 : kind == DPF_SOURCE ? 1 : 0, count = 0;
    for (const struct dpf_option *o = common_options; o->kind != DPF_KIND_END; o++) {
        bool kept = true;
        for (size_t i = 0; i < leave_out; i++)
            kept = kept && strcmp(o->name, streams[i]) != 0;
        if (kept)
            chosen[count++] = *o;
    }
    chosen[count] = (struct dpf_option)DPF_OPT_END;
    return chosen;
}

/* One line: messages quote names and texts of files and streams, which may hold anything.
 * A backslash in them is the writer's own, or was escaped before. */
static void print_line(const struct dpf_stage *s, const char *message)
{
    struct dpf_text line = {0};
    for (size_t size; *message; message += size) {
        size = strcspn(message, "\\");
        dpf_text_add_visible(&line, message, size);
        for (; message[size] == '\\'; size++)
            dpf_text_add(&line, "\\");
    }
    fprintf(stderr, "%s: %s\n", s->info->name, dpf_text_get(&line));
    dpf_text_release(&line);
}

static void print_notice(void *context, const char *line)
{
    if (!common.quiet)
        print_line(context, line);
}

struct dpf_endpoint_options dpf_stage_endpoint_options(void)
{
    return (struct dpf_endpoint_options){.key_file = common.key,
                                         .peer_keys = common.peer_keys.items,
                                         .peer_key_count = common.peer_keys.count,
                                         .cleartext = common.cleartext,
                                         .connect_seconds = common.wait_seconds};
}

/* ---------------------------------------------------------------------- output */

static enum dpf_status open_outputs(struct dpf_stage *s, struct dpf_error *e)
{
    static const char *const standard[] = {"-"};
    const char *const *names = common.outputs.count ? common.outputs.items : standard;
    size_t count = common.outputs.count ? common.outputs.count : 1;
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    struct dpf_channel **channels = dpf_calloc(count, sizeof *channels);
    if (!channels)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_stream_writer_init(&s->writer, channels, 0, e);
    for (size_t i = 0; status == DPF_OK && i < count; i++) {
        status = dpf_channel_open(names[i], DPF_WRITE, &options, &channels[i], e);
        s->writer.channel_count += status == DPF_OK;
    }
    return status;
}

static void report(struct dpf_stage *s)
{
    struct dpf_counters now = {
        .records = s->info->kind == DPF_SINK ? s->records_in : s->writer.records,
        .total = s->info->kind == DPF_SINK ? s->in.records
                 : s->out.has_records      ? s->out.records
                                           : 0,
        .bytes = s->info->kind == DPF_SINK ? s->bytes_in : s->writer.bytes};
    if (!s->drafts)
        dpf_progress_update(s->progress, &now);
}

enum dpf_status dpf_stage_begin(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_stage_add_provenance(s, e);
    if (status != DPF_OK)
        return status;
    status = dpf_stream_write_header(&s->writer, &s->out, e);
    for (size_t at = 0; status == DPF_OK && at < s->deferred.size;) {
        struct dpf_frame frame = {.data = s->deferred.data + at};
        status = dpf_preamble_parse(frame.data, &frame.size, e);
        if (status == DPF_OK)
            status = dpf_stream_write_frame(&s->writer, &frame, e);
        at += frame.size;
    }
    return status;
}

enum dpf_status dpf_stage_emit(struct dpf_stage *s, const struct dpf_batch *b,
                               struct dpf_error *e)
{
    if (b->rows == 0)
        return DPF_OK;
    enum dpf_status status = dpf_stream_write_batch(&s->writer, b, e);
    report(s);
    return status;
}

/* ----------------------------------------------------------------------- input */

struct input {
    struct dpf_stream_reader *readers;
    size_t count;
};

static void close_input(struct input *in)
{
    for (size_t i = 0; i < in->count; i++)
        dpf_stream_reader_release(&in->readers[i]);
    free(in->readers);
    *in = (struct input){0};
}

/* One more stream of the input. Who reads only ledgers takes a model and a sum together.
 */
static enum dpf_status merge_input(struct dpf_stage *s, const struct dpf_header *h,
                                   struct dpf_error *e)
{
    if (!s->info->any_fields || dpf_header_same_fields(&s->in, h, NULL) == DPF_OK)
        return dpf_header_merge(&s->in, h, dpf_ledger_merge, e);
    s->in.has_records = s->in.has_records && h->has_records;
    s->in.records += h->records;
    return dpf_ledger_merge(&s->in, h, e);
}

static enum dpf_status open_input(struct dpf_stage *s, struct input *in,
                                  struct dpf_error *e)
{
    static const char *const standard[] = {"-"};
    const char *const *names = common.inputs.count ? common.inputs.items : standard;
    size_t count = common.inputs.count ? common.inputs.count : 1;
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    struct dpf_channel **channels = dpf_calloc(count, sizeof *channels);
    *in = (struct input){.readers = dpf_calloc(count, sizeof *in->readers)};
    enum dpf_status status = channels && in->readers ? DPF_OK : dpf_fail_memory(e);
    /* All doors are opened before anyone is waited for: a writer to the last one would
     * give up while the first makes up its mind. */
    for (size_t i = 0; status == DPF_OK && i < count; i++)
        status = dpf_channel_open(names[i], DPF_READ, &options, &channels[i], e);
    for (size_t i = 0; status == DPF_OK && i < count; i++) {
        status =
            dpf_stream_reader_open(&in->readers[i], channels[i], dpf_ledger_merge, e);
        channels[i] = NULL; /* the reader's now, whatever came of it */
        if (status != DPF_OK)
            break;
        in->count++;
        status = i ? merge_input(s, &in->readers[i].header, e)
                   : dpf_header_copy(&s->in, &in->readers[i].header, e);
    }
    for (size_t i = 0; channels && i < count; i++)
        dpf_channel_destroy(&channels[i]);
    free(channels);
    return status;
}

/* A frame that is none of ours goes on as it is: now, or behind the deferred header. */
static enum dpf_status pass_on(struct dpf_stage *s, const struct dpf_frame *frame,
                               struct dpf_error *e)
{
    if (!s->out_deferred)
        return dpf_stream_write_frame(&s->writer, frame, e);
    dpf_buffer_append(&s->deferred, frame->data, frame->size);
    return dpf_buffer_ok(&s->deferred) ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status take_item(struct dpf_stage *s, struct dpf_stream_reader *r,
                                 enum dpf_item item, struct dpf_error *e)
{
    const struct dpf_stage_info *info = s->info;
    enum dpf_status status = DPF_OK;
    s->bytes_in += r->frame.size;
    if (item == DPF_ITEM_BATCH) {
        s->records_in += r->batch.rows;
        if (info->on_batch)
            status = info->on_batch(s, &r->batch, e);
        if (status == DPF_OK && info->kind == DPF_FILTER && !s->out_deferred)
            status = dpf_stage_emit(s, &r->batch, e);
    } else {
        if (info->on_other)
            status = info->on_other(s, r->object, e);
        if (status == DPF_OK && info->kind == DPF_FILTER && !s->drops_others)
            status = pass_on(s, &r->frame, e);
    }
    report(s);
    return status;
}

static enum dpf_status read_all(struct dpf_stage *s, struct input *in,
                                struct dpf_error *e)
{
    for (size_t i = 0; i < in->count; i++) {
        enum dpf_item item = DPF_ITEM_END;
        do {
            enum dpf_status status = dpf_stream_reader_next(&in->readers[i], &item, e);
            if (status == DPF_OK && item != DPF_ITEM_END)
                status = take_item(s, &in->readers[i], item, e);
            if (status != DPF_OK)
                return status;
        } while (item != DPF_ITEM_END);
        s->streams_in += in->readers[i].lane_count;
        s->frames_in += in->readers[i].frames;
        snprintf(s->digest_in, sizeof s->digest_in, "%s", in->readers[i].digest);
    }
    return DPF_OK;
}

/* ------------------------------------------------------------ the kinds of stage */

static enum dpf_status run_source(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_stage_info *info = s->info;
    enum dpf_status status = open_outputs(s, e);
    if (status == DPF_OK)
        status = info->on_open(s, e);
    if (status == DPF_OK)
        status = dpf_stage_begin(s, e);
    bool more = true;
    while (status == DPF_OK && more) {
        struct dpf_batch b = {0};
        status = dpf_stop_check(e);
        if (status == DPF_OK)
            status = info->on_produce(s, &b, e);
        more = b.rows > 0;
        if (status == DPF_OK)
            status = dpf_stage_emit(s, &b, e);
        dpf_batch_release(&b);
    }
    if (status == DPF_OK && info->on_close)
        status = info->on_close(s, e);
    if (status == DPF_OK)
        status = dpf_stream_writer_finish(&s->writer, e);
    return status;
}

static enum dpf_status run_filter(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_stage_info *info = s->info;
    struct input in = {0};
    enum dpf_status status = open_outputs(s, e);
    if (status == DPF_OK)
        status = open_input(s, &in, e);
    if (status == DPF_OK)
        status = dpf_header_copy(&s->out, &s->in, e);
    if (status == DPF_OK && info->on_open)
        status = info->on_open(s, e);
    if (status == DPF_OK && !s->out_deferred)
        status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = read_all(s, &in, e);
    if (status == DPF_OK && info->on_close)
        status = info->on_close(s, e);
    if (status == DPF_OK)
        status = dpf_stream_writer_finish(&s->writer, e);
    close_input(&in);
    return status;
}

/* Text goes to standard output or, whole or not at all, to one file. */
static enum dpf_status run_sink(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_stage_info *info = s->info;
    struct input in = {0};
    struct dpf_outfile file = {.fd = -1};
    enum dpf_status status = DPF_OK;
    bool to_file = common.outputs.count == 1 && strcmp(common.outputs.items[0], "-") != 0;
    if (common.outputs.count > 1)
        status = dpf_fail(e, DPF_USAGE, "text is written to one --output only");
    if (status == DPF_OK && to_file && dpf_endpoint_has_scheme(common.outputs.items[0]))
        status = dpf_fail(e, DPF_USAGE, "text is written to a file, not to '%s'",
                          common.outputs.items[0]);
    if (!to_file)
        s->text = stdout;
    if (status == DPF_OK && to_file) {
        status = dpf_outfile_open(&file, common.outputs.items[0], e);
        if (status == DPF_OK && !(s->text = fdopen(dup(file.fd), "w")))
            status = dpf_fail_memory(e);
    }
    if (status == DPF_OK && s->no_input && common.inputs.count)
        status = dpf_fail(e, DPF_USAGE, "'--input' does not go with these options");
    if (status == DPF_OK && !s->no_input)
        status = open_input(s, &in, e);
    if (status == DPF_OK && info->on_open)
        status = info->on_open(s, e);
    if (status == DPF_OK)
        status = read_all(s, &in, e);
    if (status == DPF_OK && info->on_close)
        status = info->on_close(s, e);
    if (s->text && (fflush(s->text) != 0 || ferror(s->text)) && status == DPF_OK)
        status = dpf_fail_errno(e, "cannot write '%s'",
                                to_file ? file.path : "standard output");
    if (to_file && s->text)
        fclose(s->text);
    if (status == DPF_OK && to_file)
        status = dpf_outfile_commit(&file, e);
    dpf_outfile_abort(&file);
    close_input(&in);
    return status;
}

static enum dpf_status run_program(struct dpf_stage *s, struct dpf_error *e)
{
    s->text = stdout;
    enum dpf_status status = s->info->on_run(s, e);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == DPF_OK)
        status = dpf_fail_errno(e, "cannot write 'standard output'");
    return status;
}

/* ------------------------------------------------------------------------- main */

/* The endpoints of this process, in the order in which they are given: plug-ins learn
 * which ones are theirs before any is opened. */
static enum dpf_status join_jobs(const struct dpf_stage *s, struct dpf_error *e)
{
    const char *also = getenv("DPFLOW_TRANSPORT"); /* the runner's word to its stages */
    size_t count = 0;
    bool failed = false;
    char **endpoints =
        dpf_calloc(common.inputs.count + common.outputs.count + s->parsed.given_count,
                   sizeof *endpoints);
    if (!endpoints)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < common.inputs.count; i++)
        endpoints[count++] = dpf_format("r%s", common.inputs.items[i]);
    for (size_t i = 0; i < common.outputs.count; i++)
        endpoints[count++] = dpf_format("w%s", common.outputs.items[i]);
    for (size_t i = 0; i < s->parsed.given_count; i++)
        if (s->parsed.given[i].option->kind == DPF_KIND_ENDPOINT ||
            s->parsed.given[i].option->kind == DPF_KIND_ENDPOINTS)
            endpoints[count++] = dpf_format("r%s", s->parsed.given[i].value);
    for (size_t i = 0; i < count; i++)
        failed = failed || !endpoints[i];
    enum dpf_status status =
        failed ? dpf_fail_memory(e)
               : dpf_transports_join((const char *const *)endpoints, count,
                                     also && *also ? also : NULL, e);
    for (size_t i = 0; i < count; i++)
        free(endpoints[i]);
    free(endpoints);
    return status;
}

static enum dpf_status check_arguments(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_stage_info *info = s->info;
    if (s->argument_count > info->max_arguments)
        return dpf_fail(e, DPF_USAGE, "unexpected argument '%s'",
                        s->arguments[info->max_arguments]);
    if (s->argument_count < info->min_arguments)
        return dpf_fail(e, DPF_USAGE, "%s is missing", info->arguments);
    for (const struct dpf_option *o = info->options; o && o->kind != DPF_KIND_END; o++)
        if ((o->flags & DPF_OPTION_REQUIRED) && !dpf_option_given(&s->parsed, o->name))
            return dpf_fail(e, DPF_USAGE, "option '--%s' is required", o->name);
    return info->on_options ? info->on_options(s, e) : DPF_OK;
}

static enum dpf_status run(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = join_jobs(s, e);
    if (status != DPF_OK)
        return status;
    switch (s->info->kind) {
    case DPF_SOURCE:
        return run_source(s, e);
    case DPF_FILTER:
        return run_filter(s, e);
    case DPF_SINK:
        return run_sink(s, e);
    case DPF_PROGRAM:
        return run_program(s, e);
    }
    return DPF_OK;
}

/* What completion offers for arguments. */
static void add_words(const struct dpf_stage_info *info, struct dpf_text *out)
{
    struct dpf_text words = {0};
    if (info->add_words)
        info->add_words(&words);
    const char *word = dpf_text_get(&words);
    for (size_t size; (size = strcspn(word, "\n")) > 0; word += size + 1)
        dpf_text_addf(out, "%.*s\tword\t\n", (int)size, word);
    dpf_text_release(&words);
}

/* --help and its like: true if one was asked for. */
static bool answer(const struct dpf_stage_info *info, struct dpf_error *e)
{
    struct dpf_text out = {0};
    const struct dpf_option *shared = options_for(info->kind);
    if (common.help) {
        dpf_stage_help(info, shared, &out);
    } else if (common.version) {
        dpf_text_addf(&out, "dpflow %s %s\n", info->name, DPF_VERSION);
    } else if (common.man) {
        dpf_stage_man(info, shared, &out);
    } else if (common.completion) {
        dpf_options_completion(info->options ? info->options : no_options, &out);
        dpf_options_completion(shared, &out);
        add_words(info, &out);
    } else {
        return false;
    }
    fputs(dpf_text_get(&out), stdout);
    dpf_text_release(&out);
    if (fflush(stdout) != 0)
        dpf_fail_errno(e, "cannot write 'standard output'");
    return true;
}

static void finish(struct dpf_stage *s, struct dpf_error *e)
{
    if (e->status != DPF_OK) {
        /* Readers learn it at once; a job that was joined is taken down as a whole
         * instead, and a program that was told to stop does not wait for anyone. */
        if (!dpf_stop_requested() && !dpf_transports_joined())
            dpf_stream_writer_fail(&s->writer);
        print_line(s, e->message);
    }
    bool hidden = s->info->kind == DPF_SINK || s->drafts;
    bool reads = hidden || s->writer.records == 0;
    struct dpf_counters now = {.records = reads ? s->records_in : s->writer.records,
                               .bytes = hidden ? s->bytes_in : s->writer.bytes};
    dpf_progress_finish(&s->progress, &now, e);
    dpf_stream_writer_release(&s->writer);
    if (s->info->on_release)
        s->info->on_release(s);
    dpf_header_release(&s->in);
    dpf_header_release(&s->out);
    dpf_buffer_release(&s->deferred);
    dpf_parsed_release(&s->parsed);
    dpf_cleanup_all();
}

int dpf_stage_main(const struct dpf_stage_info *info, int argc, char **argv)
{
    struct dpf_stage s = {.info = info, .state = info->state};
    struct dpf_error e = {.status = DPF_OK};
    const struct dpf_option *tables[] = {info->options ? info->options : no_options,
                                         options_for(info->kind), NULL};
    dpf_standard_fds_guard();
    dpf_signals_install();
    dpf_log_set_sink(print_notice, &s);
    s.progress = dpf_progress_new();
    e.status = dpf_options_parse(tables, argc, argv, &s.parsed, &e);
    s.arguments = s.parsed.args;
    s.argument_count = s.parsed.arg_count;
    if (e.status == DPF_OK && !answer(info, &e)) {
        e.status = check_arguments(&s, &e);
        if (e.status == DPF_OK && common.fingerprint &&
            (common.inputs.count || common.outputs.count))
            e.status =
                dpf_fail(&e, DPF_USAGE,
                         "in a pipeline, --input and --output are set by the runner");
        else if (e.status == DPF_OK && common.fingerprint)
            e.status = dpf_stage_print_fingerprint(&s, &e);
        else if (e.status == DPF_OK) {
            e.status = run(&s, &e);
            if (e.status == DPF_OK && info->on_finished)
                info->on_finished(&s);
        }
    }
    enum dpf_status status = e.status;
    finish(&s, &e);
    if (fflush(stdout) != 0 && status == DPF_OK)
        status = DPF_SYSTEM;
    dpf_transports_leave(status);
    /* A stop by signal is reported as such, so that shells and runners can tell. */
    if (status != DPF_OK && dpf_stop_requested()) {
        signal(dpf_stop_signal(), SIG_DFL);
        raise(dpf_stop_signal());
    }
    return (int)status;
}
