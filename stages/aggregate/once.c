#include "once.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "ledger/merge.h"

#include "base/banned.h"

static enum dpf_status fail_made(const struct dpf_once *o, struct dpf_error *e)
{
    return dpf_fail(e, DPF_PRIVACY,
                    "the release was made before, it is in '%s': a second one would "
                    "cost again",
                    o->path);
}

enum dpf_status dpf_once_check(const struct dpf_once *o, struct dpf_error *e)
{
    struct stat s;
    if (!o->path)
        return DPF_OK;
    if (lstat(o->path, &s) == 0)
        return fail_made(o, e);
    return errno == ENOENT ? DPF_OK : dpf_fail_errno(e, "cannot look for '%s'", o->path);
}

/* A draft that is not released must not be read by others: with the release it would be
 * two of them. */
static enum dpf_status lock_draft(struct dpf_once *o, struct dpf_error *e)
{
    char *name = dpf_format("%s.draft", o->path);
    mode_t before = umask(0077);
    enum dpf_status status =
        name ? dpf_outfile_open(&o->draft, name, e) : dpf_fail_memory(e);
    umask(before);
    if (status == DPF_OK && !o->draft.part)
        status = dpf_fail(e, DPF_SYSTEM, "'%s' is not a regular file", name);
    if (status == DPF_OK && fchmod(o->draft.fd, 0600) != 0)
        status = dpf_fail_errno(e, "cannot close '%s' to others", name);
    free(name);
    return status;
}

static enum dpf_status open_draft(struct dpf_once *o, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    char endpoint[32];
    enum dpf_status status = lock_draft(o, e);
    if (status != DPF_OK)
        return status;
    struct dpf_channel **channels = dpf_calloc(1, sizeof *channels);
    struct dpf_stream_writer writer;
    if (!channels)
        return dpf_fail_memory(e);
    status = dpf_stream_writer_init(&writer, channels, 0, e);
    if (status != DPF_OK)
        return status;
    /* Finishing closes the channel's descriptor; ours keeps the lock. */
    snprintf(endpoint, sizeof endpoint, "fd:%d", fcntl(o->draft.fd, F_DUPFD_CLOEXEC, 3));
    status = dpf_channel_open(endpoint, DPF_WRITE, NULL, &channels[0], e);
    writer.channel_count = status == DPF_OK;
    o->outputs = s->writer;
    s->writer = writer;
    o->drawing = true;
    return status;
}

/* The stage writes to its outputs again. */
static void return_outputs(struct dpf_once *o, struct dpf_stage *s)
{
    dpf_stream_writer_release(&s->writer);
    s->writer = o->outputs;
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
    const char *base = dpf_path_base(path);
    char *folder =
        base == path ? dpf_strdup(".") : dpf_strndup(path, (size_t)(base - path));
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
    enum dpf_status status = DPF_OK;
    if (fsync(o->draft.fd) != 0)
        status = dpf_fail_errno(e, "cannot write '%s'", o->draft.part);
    else if (link(o->draft.part, o->path) != 0)
        status = errno == EEXIST ? fail_made(o, e)
                                 : dpf_fail_errno(e, "cannot create '%s'", o->path);
    dpf_outfile_abort(&o->draft); /* the other name, and the lock */
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
    if (!o->path)
        return DPF_OK;
    enum dpf_status status = dpf_stream_writer_finish(&s->writer, e);
    return_outputs(o, s);
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
    dpf_outfile_abort(&o->draft);
    *o = (struct dpf_once){.path = NULL};
}
