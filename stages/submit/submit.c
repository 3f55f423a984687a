/* submit: send a randomised stream to a curator, who may be away. It is put aside whole,
 * checked against the owner's own rules, and sent until the curator has said that it is
 * safe there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "account/ledger.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/text.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct submission {
    const char *endpoint;
    const char *budget;  /* the owner's own limit, "E" or "E,D"; NULL: none */
    double patience;     /* seconds without any success before giving up */
    char *folder, *path; /* where the stream is put aside */
    struct dpf_stream_writer aside;
    uint64_t attempts;
} state = {.patience = 60};

static const struct dpf_option options[] = {
    DPF_OPT_STRING(
        "budget", &state.budget, "E[,D]",
        "refuse to send a stream whose proven epsilon is above E or delta above D (0)"),
    {.name = "patience",
     .kind = DPF_KIND_REAL,
     .target = &state.patience,
     .arg = "SECONDS",
     .lo = 0.1,
     .hi = 1e9,
     .help = "give up after this time without progress (60)",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_END,
};

/* "E" (then delta has to be 0) or "E,D". */
static enum dpf_status parse_budget(const char *text, struct dpf_guarantee *limit,
                                    struct dpf_error *e)
{
    const char *comma = strchr(text, ',');
    char *epsilon = dpf_strndup(text, comma ? (size_t)(comma - text) : strlen(text));
    bool good = epsilon && dpf_parse_real(epsilon, &limit->epsilon) &&
                limit->epsilon > 0 &&
                (!comma || (dpf_parse_real(comma + 1, &limit->delta) &&
                            limit->delta >= 0 && limit->delta < 1));
    free(epsilon);
    return good ? DPF_OK : dpf_fail(e, DPF_USAGE, "a budget is E or E,D, not '%s'", text);
}

/* Refuse what must not leave (private records, no finite epsilon, more than the budget),
 * and begin to put the stream aside. */
static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct submission *v = s->state;
    const char *tmp = getenv("TMPDIR");
    struct dpf_channel **channels = NULL;
    struct dpf_guarantee limit = {0, 0, NULL};
    v->endpoint = s->arguments[0];
    if (!dpf_endpoint_has_scheme(v->endpoint))
        return dpf_fail(e, DPF_USAGE,
                        "'%s' is not an endpoint of a curator: tcp://HOST:PORT",
                        v->endpoint);
    enum dpf_status status = v->budget ? parse_budget(v->budget, &limit, e) : DPF_OK;
    if (status == DPF_OK)
        status = dpf_account_check_release(&s->in, v->budget ? &limit : NULL, e);
    if (status != DPF_OK)
        return status;
    v->folder = dpf_format("%s/dpflow-submit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!v->folder || !mkdtemp(v->folder)) {
        free(v->folder);
        v->folder = NULL;
        return dpf_fail_errno(e, "cannot create a folder to put the stream aside");
    }
    v->path = dpf_path_join(v->folder, "stream.mp");
    channels = dpf_calloc(1, sizeof *channels);
    if (!v->path || !channels) {
        free(channels);
        return dpf_fail_memory(e);
    }
    status = dpf_stream_writer_init(&v->aside, channels, 0, e);
    if (status == DPF_OK)
        status = dpf_channel_open(v->path, DPF_WRITE, NULL, &channels[0], e);
    v->aside.channel_count = status == DPF_OK;
    return status == DPF_OK ? dpf_stream_write_header(&v->aside, &s->in, e) : status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct submission *v = s->state;
    return b->rows ? dpf_stream_write_batch(&v->aside, b, e) : DPF_OK;
}

/* ---------------------------------------------------------------------------- sending */

/* All frames of the file that was put aside, in order. */
static enum dpf_status send_frames(struct dpf_channel *from, struct dpf_channel *to,
                                   double *last_success, struct dpf_error *e)
{
    bool trailer = false;
    enum dpf_status status = DPF_OK;
    while (status == DPF_OK && !trailer) {
        struct dpf_frame frame = {0};
        status = from->ops->recv(from, &frame, e);
        if (status != DPF_OK)
            return status;
        struct iovec part = {frame.data, frame.size};
        trailer = dpf_frame_is_trailer(frame.data, frame.size);
        status = to->ops->send(to, &part, 1, frame.size, e);
        dpf_frame_release(&frame);
        if (status == DPF_OK)
            *last_success = dpf_clock_seconds();
    }
    return status == DPF_OK ? to->ops->finish(to, e) : status;
}

static enum dpf_status attempt(struct submission *v, double *last_success,
                               struct dpf_error *e)
{
    struct dpf_endpoint_options endpoint = dpf_stage_endpoint_options();
    struct dpf_channel *from = NULL, *to = NULL;
    endpoint.connect_seconds = fmin(v->patience, 5);
    enum dpf_status status = dpf_channel_open(v->path, DPF_READ, NULL, &from, e);
    if (status == DPF_OK)
        status = dpf_channel_open(v->endpoint, DPF_WRITE, &endpoint, &to, e);
    if (status == DPF_OK)
        status = send_frames(from, to, last_success, e);
    dpf_channel_destroy(&to);
    dpf_channel_destroy(&from);
    return status;
}

/* Send all of it, and say what was received. */
static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct submission *v = s->state;
    double last_success = dpf_clock_seconds();
    enum dpf_status status = dpf_stream_writer_finish(&v->aside, e);
    if (status != DPF_OK)
        return status;
    for (;;) {
        struct dpf_error why = {.status = DPF_OK};
        v->attempts++;
        status = attempt(v, &last_success, &why);
        /* a curator who is away, or was lost on the way, may come back */
        bool away =
            (status == DPF_UNAVAILABLE || why.consequence) && !dpf_stop_requested();
        if (status == DPF_OK)
            break;
        if (!away || dpf_clock_seconds() - last_success > v->patience) {
            *e = why;
            return status;
        }
        usleep(200000);
    }
    fprintf(s->text, "submitted  %llu records, %s, in %llu attempt%s\n",
            (unsigned long long)s->records_in, v->aside.digest,
            (unsigned long long)v->attempts, v->attempts == 1 ? "" : "s");
    return DPF_OK;
}

static void on_release(struct dpf_stage *s)
{
    struct submission *v = s->state;
    dpf_stream_writer_release(&v->aside);
    if (v->folder)
        dpf_remove_tree(v->folder);
    free(v->folder);
    free(v->path);
    v->folder = v->path = NULL;
}

static const struct dpf_stage_info info = {
    .name = "submit",
    .summary = "send a randomised stream to a curator and wait for its receipt",
    .reads = "records that are public or came out of mechanisms",
    .writes = "a receipt, as text",
    .privacy =
        "none spent: private records and streams without a finite epsilon are refused",
    .example = "dpflow submit --help",
    .detail = "The whole stream is stored first and then sent. If the curator ('dpflow "
              "collect')\n"
              "cannot be reached or fails, the same bytes are sent again. The same "
              "stream may be\n"
              "submitted twice: the curator keeps it once. Another stream of the same "
              "owner is a\n"
              "second release and is refused.",
    .arguments = "ENDPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .kind = DPF_SINK,
    .has_effects = true,
    .options = options,
    .state = &state,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
