#include "once.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"
#include "ledger/merge.h"
#include "transport/transport.h"

#include "base/banned.h"

static enum dpf_status fail_made(const struct dpf_once *o, struct dpf_error *e)
{
    return dpf_fail(e, DPF_PRIVACY,
                    "the release was made before, it is in '%s': a second one would "
                    "cost again",
                    o->path);
}

/* Whether an output is written at FILE, or has its draft there. */
static enum dpf_status check_output(const struct dpf_once *o, const char *output,
                                    struct dpf_error *e)
{
    size_t size = strlen(o->path);
    bool part = dpf_ends_with(o->path, DPF_PART_SUFFIX);
    char *whole = dpf_strndup(o->path, size - (part ? strlen(DPF_PART_SUFFIX) : 0));
    bool same =
        dpf_same_place(o->path, output) || (whole && dpf_same_place(whole, output));
    enum dpf_status status =
        !whole ? dpf_fail_memory(e)
        : same ? dpf_fail(e, DPF_USAGE, "'--once' and '--output' are both '%s'", o->path)
               : DPF_OK;
    free(whole);
    return status;
}

enum dpf_status dpf_once_check(const struct dpf_once *o, const struct dpf_parsed *given,
                               struct dpf_error *e)
{
    struct stat s;
    enum dpf_status status = DPF_OK;
    if (!o->path)
        return DPF_OK;
    if (strcmp(o->path, "-") == 0 || dpf_endpoint_has_scheme(o->path) ||
        !*dpf_path_base(o->path) || dpf_is_dir(o->path))
        return dpf_fail(e, DPF_USAGE, "'--once' wants a file, not '%s'", o->path);
    for (size_t i = 0; status == DPF_OK && i < given->given_count; i++)
        if (strcmp(given->given[i].option->name, "output") == 0)
            status = check_output(o, given->given[i].value, e);
    if (status != DPF_OK)
        return status;
    if (lstat(o->path, &s) == 0)
        return fail_made(o, e);
    return errno == ENOENT ? DPF_OK : dpf_fail_errno(e, "cannot look for '%s'", o->path);
}

/* A new file for this run alone, without a name where the file system can do that: what
 * is not released must not be read by others, or be in the way of another run. */
static enum dpf_status make_draft(struct dpf_once *o, struct dpf_error *e)
{
    char *folder = dpf_path_folder(o->path);
    o->fd = folder ? open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    free(folder);
    if (o->fd < 0) {
        o->draft = dpf_format("%s.draft-XXXXXX", o->path);
        o->fd = o->draft ? mkostemp(o->draft, O_CLOEXEC) : -1;
        if (o->fd >= 0)
            dpf_cleanup_register(o->draft);
    }
    o->open = o->fd >= 0;
    return o->open ? DPF_OK : dpf_fail_errno(e, "cannot create a draft of '%s'", o->path);
}

static void forget_draft(struct dpf_once *o)
{
    if (o->open && o->draft) {
        unlink(o->draft);
        dpf_cleanup_forget(o->draft);
    }
    if (o->open)
        close(o->fd);
    free(o->draft);
    o->draft = NULL;
    o->open = false;
}

static enum dpf_status open_draft(struct dpf_once *o, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    char endpoint[32];
    enum dpf_status status = make_draft(o, e);
    if (status != DPF_OK)
        return status;
    struct dpf_channel **channels = dpf_calloc(1, sizeof *channels);
    struct dpf_stream_writer writer;
    if (!channels)
        return dpf_fail_memory(e);
    status = dpf_stream_writer_init(&writer, channels, 0, e);
    if (status != DPF_OK)
        return status;
    /* Finishing closes the channel's descriptor; ours keeps the file. */
    snprintf(endpoint, sizeof endpoint, "fd:%d", fcntl(o->fd, F_DUPFD_CLOEXEC, 3));
    status = dpf_channel_open(endpoint, DPF_WRITE, NULL, &channels[0], e);
    writer.channel_count = status == DPF_OK;
    o->outputs = s->writer;
    s->writer = writer;
    s->drafts = true; /* how much was drawn is not shown either */
    o->drawing = true;
    return status;
}

/* The stage writes to its outputs again. */
static void return_outputs(struct dpf_once *o, struct dpf_stage *s)
{
    dpf_stream_writer_release(&s->writer);
    s->writer = o->outputs;
    s->drafts = false;
    o->outputs = (struct dpf_stream_writer){0};
    o->drawing = false;
}

enum dpf_status dpf_once_begin(struct dpf_once *o, struct dpf_stage *s,
                               struct dpf_error *e)
{
    enum dpf_status status = o->path ? open_draft(o, s, e) : DPF_OK;
    return status == DPF_OK ? dpf_stage_begin(s, e) : status;
}

static enum dpf_status sync_folder(const char *path, struct dpf_error *e)
{
    char *folder = dpf_path_folder(path);
    if (!folder)
        return dpf_fail_memory(e);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    enum dpf_status status = DPF_OK;
    if (fd < 0 || (fsync(fd) != 0 && errno != EINVAL))
        status = dpf_fail_errno(e, "cannot sync folder '%s'", folder);
    if (fd >= 0)
        close(fd);
    free(folder);
    return status;
}

static enum dpf_status give_name(struct dpf_once *o, struct dpf_error *e)
{
    char unnamed[48];
    enum dpf_status status = DPF_OK;
    snprintf(unnamed, sizeof unnamed, "/proc/self/fd/%d", o->fd);
    if (fsync(o->fd) != 0)
        status = dpf_fail_errno(e, "cannot write the draft of '%s'", o->path);
    else if (linkat(AT_FDCWD, o->draft ? o->draft : unnamed, AT_FDCWD, o->path,
                    AT_SYMLINK_FOLLOW) != 0)
        status = errno == EEXIST ? fail_made(o, e)
                                 : dpf_fail_errno(e, "cannot create '%s'", o->path);
    forget_draft(o);
    return status == DPF_OK ? sync_folder(o->path, e) : status;
}

/* From FILE to the outputs: the same header, the same records. */
static enum dpf_status pass_on(const struct dpf_once *o, struct dpf_stage *s,
                               struct dpf_error *e)
{
    struct dpf_channel *channel = NULL;
    struct dpf_stream_reader r;
    enum dpf_item item = DPF_ITEM_BATCH;
    enum dpf_status status = dpf_channel_open(o->path, DPF_READ, NULL, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&r, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    status = dpf_stream_write_header(&s->writer, &s->out, e);
    while (status == DPF_OK && item != DPF_ITEM_END) {
        status = dpf_stream_reader_next(&r, &item, e);
        if (status == DPF_OK && item == DPF_ITEM_BATCH)
            status = dpf_stage_emit(s, &r.batch, e);
    }
    dpf_stream_reader_release(&r);
    return status;
}

enum dpf_status dpf_once_commit(struct dpf_once *o, struct dpf_stage *s,
                                struct dpf_error *e)
{
    enum dpf_status status = dpf_stop_check(e); /* the last moment at which it can stop */
    if (!o->path || status != DPF_OK)
        return status;
    status = dpf_stream_writer_finish(&s->writer, e);
    return_outputs(o, s);
    if (status == DPF_OK)
        status = dpf_stop_check(e);
    if (status == DPF_OK)
        status = give_name(o, e);
    if (status != DPF_OK)
        return status;
    status = pass_on(o, s, e);
    return status == DPF_OK
               ? status
               : dpf_error_prefix(e, status, "the release is in '%s'", o->path);
}

void dpf_once_release(struct dpf_once *o, struct dpf_stage *s)
{
    if (o->drawing) { /* nothing leaves: the outputs are withdrawn */
        return_outputs(o, s);
        dpf_stream_writer_release(&s->writer);
    }
    forget_draft(o);
    *o = (struct dpf_once){.path = NULL};
}
