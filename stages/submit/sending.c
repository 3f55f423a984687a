/* Putting a stream aside, after it was checked, and sending it until it has arrived. */
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
#include "exchange/answer_stream.h"
#include "submit.h"

#include "base/banned.h"

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

/* Private records, no finite epsilon, or more than the budget: DPF_PRIVACY. */
static enum dpf_status check_stream(const struct dpf_submission *v,
                                    const struct dpf_header *h, struct dpf_error *e)
{
    struct dpf_guarantee limit = {0, 0, NULL};
    struct dpf_answers answers;
    enum dpf_status status = DPF_OK;
    if (v->answers) {
        status = dpf_answers_read_alone(&answers, h, e);
        if (status == DPF_OK)
            dpf_answers_release(&answers);
        return status;
    }
    if (v->budget)
        status = parse_budget(v->budget, &limit, e);
    return status == DPF_OK ? dpf_account_check_release(h, v->budget ? &limit : NULL, e)
                            : status;
}

/* Refuse what must not leave, and begin to put the stream aside. */
enum dpf_status dpf_submission_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_submission *v = s->state;
    const char *tmp = getenv("TMPDIR");
    struct dpf_channel **channels = NULL;
    enum dpf_status status = check_stream(v, &s->in, e);
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

enum dpf_status dpf_submission_batch(struct dpf_stage *s, struct dpf_batch *b,
                                     struct dpf_error *e)
{
    struct dpf_submission *v = s->state;
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

static enum dpf_status attempt(struct dpf_submission *v, double *last_success,
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
enum dpf_status dpf_submission_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_submission *v = s->state;
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

void dpf_submission_release(struct dpf_stage *s)
{
    struct dpf_submission *v = s->state;
    dpf_stream_writer_release(&v->aside);
    if (v->folder)
        dpf_remove_tree(v->folder);
    free(v->folder);
    free(v->path);
    v->folder = v->path = NULL;
}
