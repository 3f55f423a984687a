#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/text.h"

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

enum dpf_status dpf_submit_job_open(struct dpf_submit_job *j, struct dpf_stage *s,
                                    struct dpf_error *e)
{
    const char *tmp = getenv("TMPDIR");
    struct dpf_channel **channels = NULL;
    struct dpf_guarantee limit = {0, 0, NULL};
    enum dpf_status status = j->budget ? parse_budget(j->budget, &limit, e) : DPF_OK;
    if (status == DPF_OK)
        status = dpf_account_check_release(&s->in, j->budget ? &limit : NULL, e);
    if (status != DPF_OK)
        return status;
    j->folder = dpf_format("%s/dpflow-submit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!j->folder || !mkdtemp(j->folder)) {
        free(j->folder);
        j->folder = NULL;
        return dpf_fail_errno(e, "cannot create a folder to put the stream aside");
    }
    j->path = dpf_path_join(j->folder, "stream.mp");
    channels = dpf_calloc(1, sizeof *channels);
    if (!j->path || !channels) {
        free(channels);
        return dpf_fail_memory(e);
    }
    status = dpf_stream_writer_init(&j->aside, channels, 0, e);
    if (status == DPF_OK)
        status = dpf_channel_open(j->path, DPF_WRITE, NULL, &channels[0], e);
    j->aside.channel_count = status == DPF_OK;
    return status == DPF_OK ? dpf_stream_write_header(&j->aside, &s->in, e) : status;
}

enum dpf_status dpf_submit_job_take(struct dpf_submit_job *j, struct dpf_batch *b,
                                    struct dpf_error *e)
{
    return b->rows ? dpf_stream_write_batch(&j->aside, b, e) : DPF_OK;
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

static enum dpf_status attempt(struct dpf_submit_job *j, double *last_success,
                               struct dpf_error *e)
{
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    struct dpf_channel *from = NULL, *to = NULL;
    options.connect_seconds = fmin(j->patience, 5);
    enum dpf_status status = dpf_channel_open(j->path, DPF_READ, NULL, &from, e);
    if (status == DPF_OK)
        status = dpf_channel_open(j->endpoint, DPF_WRITE, &options, &to, e);
    if (status == DPF_OK)
        status = send_frames(from, to, last_success, e);
    dpf_channel_destroy(&to);
    dpf_channel_destroy(&from);
    return status;
}

enum dpf_status dpf_submit_job_finish(struct dpf_submit_job *j, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    double last_success = dpf_clock_seconds();
    enum dpf_status status = dpf_stream_writer_finish(&j->aside, e);
    if (status != DPF_OK)
        return status;
    for (;;) {
        struct dpf_error why = {.status = DPF_OK};
        j->attempts++;
        status = attempt(j, &last_success, &why);
        /* a curator who is away, or was lost on the way, may come back */
        bool away =
            (status == DPF_UNAVAILABLE || why.consequence) && !dpf_stop_requested();
        if (status == DPF_OK)
            break;
        if (!away || dpf_clock_seconds() - last_success > j->patience) {
            *e = why;
            return status;
        }
        usleep(200000);
    }
    fprintf(s->text, "submitted  %llu records, %s, in %llu attempt%s\n",
            (unsigned long long)s->records_in, j->aside.digest,
            (unsigned long long)j->attempts, j->attempts == 1 ? "" : "s");
    return DPF_OK;
}

void dpf_submit_job_release(struct dpf_submit_job *j)
{
    dpf_stream_writer_release(&j->aside);
    if (j->folder)
        dpf_remove_tree(j->folder);
    free(j->folder);
    free(j->path);
    j->folder = j->path = NULL;
}
