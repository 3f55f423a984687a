#include "job.h"
#include "ledger/merge.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "account/ledger.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/text.h"

#include "base/banned.h"

/* ------------------------------------------------------------------------------- keys */

static int by_name(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    size_t i = strlen(*x), k = strlen(*y);
    return i != k ? (i > k) - (i < k) : strcmp(*x, *y); /* owner-9 before owner-10 */
}

/* The keys given one by one, then all of the folder. */
static enum dpf_status list_keys(struct dpf_collect_job *j,
                                 const struct dpf_endpoint_options *o,
                                 struct dpf_error *e)
{
    DIR *folder = NULL;
    if (j->owner_keys && !(folder = opendir(j->owner_keys)))
        return dpf_fail_errno(e, "cannot read '%s'", j->owner_keys);
    for (struct dirent *one; folder && (one = readdir(folder));) {
        size_t size = strlen(one->d_name);
        if (size < 5 || strcmp(one->d_name + size - 4, ".pub") != 0)
            continue;
        if (!dpf_grow(&j->found, &j->found_capacity, j->found_count + 1,
                      sizeof *j->found) ||
            !(j->found[j->found_count] = dpf_path_join(j->owner_keys, one->d_name))) {
            closedir(folder);
            return dpf_fail_memory(e);
        }
        j->found_count++;
    }
    if (folder)
        closedir(folder);
    if (j->found_count)
        qsort(j->found, j->found_count, sizeof *j->found, by_name);
    j->key_count = o->peer_key_count + j->found_count;
    if (!dpf_grow(&j->keys, &j->key_capacity, j->key_count + 1, sizeof *j->keys))
        return dpf_fail_memory(e);
    for (size_t i = 0; i < j->key_count; i++)
        j->keys[i] =
            i < o->peer_key_count ? o->peer_keys[i] : j->found[i - o->peer_key_count];
    return DPF_OK;
}

/* ------------------------------------------------------------------------ checking */

/* The ledgers are put together by the one who knows that owners are different people. */
static enum dpf_status merge_provenance(struct dpf_header *into,
                                        const struct dpf_header *other,
                                        struct dpf_error *e)
{
    dpf_standing_join(into, other);
    dpf_values_append(&into->provenance, &other->provenance);
    return dpf_buffer_ok(&into->provenance.bytes) ? DPF_OK : dpf_fail_memory(e);
}

/* Whether a stream can stand beside the first one: what would fail when all are passed on
 * fails here, and is its owner's to hear. */
static enum dpf_status check_like(const struct dpf_collect_job *j,
                                  const struct dpf_header *h, struct dpf_error *e)
{
    struct dpf_header both = {.field_count = 0};
    struct dpf_values branches = {0};
    enum dpf_status status = dpf_header_same_fields(&j->like, h, e);
    if (status != DPF_OK)
        return status;
    status = dpf_header_copy(&both, &j->like, e);
    if (status == DPF_OK)
        status = dpf_header_merge(&both, h, merge_provenance, e);
    dpf_ledger_add_branch(&branches, &j->like.events);
    dpf_ledger_add_branch(&branches, &h->events);
    if (status == DPF_OK)
        status = dpf_ledger_write_merge(&both.events, &branches, true, e);
    if (status == DPF_OK)
        status = dpf_account_check_release(&both, NULL, e);
    dpf_values_release(&branches);
    dpf_header_release(&both);
    return status;
}

/* Read a file to its end: a whole stream, fit to be kept, and like the others. */
static enum dpf_status check_stream(struct dpf_collect_job *j, const char *path,
                                    char digest[DPF_CHECKSUM_TEXT], uint64_t *records,
                                    struct dpf_error *e)
{
    struct dpf_channel *channel = NULL;
    struct dpf_stream_reader r;
    enum dpf_item item = DPF_ITEM_BATCH;
    enum dpf_status status = dpf_channel_open(path, DPF_READ, NULL, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&r, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    status = dpf_account_check_release(&r.header, NULL, e);
    if (status == DPF_OK && j->has_like)
        status = check_like(j, &r.header, e);
    while (status == DPF_OK && item != DPF_ITEM_END)
        status = dpf_stream_reader_next(&r, &item, e);
    if (status == DPF_OK && !j->has_like) {
        status = dpf_header_copy(&j->like, &r.header, e);
        j->has_like = status == DPF_OK;
    }
    memcpy(digest, r.digest, DPF_CHECKSUM_TEXT);
    *records = r.records;
    dpf_stream_reader_release(&r);
    return status;
}

/* ----------------------------------------------------------------------- receiving */

static void forget_part(struct dpf_collect_owner *o)
{
    if (o->fd >= 0) {
        close(o->fd);
        unlink(o->part);
    }
    o->fd = -1;
    o->bytes = 0;
}

static enum dpf_status begin(struct dpf_collect_owner *o, struct dpf_error *e)
{
    forget_part(o); /* it starts from the beginning */
    o->fd = open(o->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return o->fd >= 0 ? DPF_OK : dpf_fail_errno(e, "cannot create '%s'", o->part);
}

/* The first frame tells whether the stream may be here at all: what must not is not even
 * written down. */
static enum dpf_status check_header(const struct dpf_collect_item *item,
                                    struct dpf_error *e)
{
    struct dpf_decoder decoder = {0};
    struct dpf_frame frame = {.data = (unsigned char *)item->data, .size = item->size};
    struct dpf_header h = {.field_count = 0};
    enum dpf_status status = dpf_decoder_read(&decoder, &frame, e);
    if (status == DPF_OK)
        status = dpf_header_decode(&decoder.root, &h, e);
    if (status == DPF_OK)
        status = dpf_account_check_release(&h, NULL, e);
    dpf_header_release(&h);
    dpf_decoder_release(&decoder);
    return status;
}

static void refuse(struct dpf_collect_job *j, size_t number, const struct dpf_error *why)
{
    struct dpf_collect_owner *o = &j->owners[number];
    enum dpf_status told = why->status == DPF_PRIVACY ? DPF_PRIVACY : DPF_BAD_STREAM;
    bool names_file = strstr(why->message, o->part) != NULL; /* not its business */
    dpf_collector_refuse(j->collector, number, told,
                         names_file ? "the stream is damaged or of another kind"
                                    : why->message);
    dpf_notice("owner %zu was refused: %s", number, why->message);
    forget_part(o);
}

/* The trailer has come. What is wrong with the stream is the owner's to hear; only what
 * is wrong here ends the curator. */
static enum dpf_status complete(struct dpf_collect_job *j, size_t number,
                                struct dpf_error *e)
{
    struct dpf_collect_owner *o = &j->owners[number];
    struct dpf_error why = {.status = DPF_OK};
    char digest[DPF_CHECKSUM_TEXT], before[DPF_CHECKSUM_TEXT];
    uint64_t records = 0, ignored;
    if (fsync(o->fd) != 0)
        return dpf_fail_errno(e, "cannot write '%s'", o->part);
    enum dpf_status status = check_stream(j, o->part, digest, &records, &why);
    if (status == DPF_OK && o->done) {
        status = check_stream(j, o->path, before, &ignored, e);
        if (status != DPF_OK)
            return status;
        if (strcmp(before, digest) != 0)
            status =
                dpf_fail(&why, DPF_PRIVACY,
                         "this stream differs from the one that this owner sent before: "
                         "randomising a record again is a second release");
    }
    if (status != DPF_OK) {
        refuse(j, number, &why);
        return DPF_OK;
    }
    if (o->done) {
        forget_part(o); /* the same again */
    } else {
        close(o->fd);
        o->fd = -1;
        /* the name, too, is on the disk before the owner hears of it */
        if (rename(o->part, o->path) != 0 || fsync(j->store_fd) != 0)
            return dpf_fail_errno(e, "cannot rename '%s'", o->part);
        o->done = true;
        j->done++;
        dpf_notice("owner %zu: %llu records, %zu of %zu owners", number,
                   (unsigned long long)records, j->done, j->key_count);
    }
    j->heard += !o->heard;
    o->heard = true;
    dpf_collector_accept(j->collector, number);
    return DPF_OK;
}

static enum dpf_status take_frame(struct dpf_collect_job *j,
                                  const struct dpf_collect_item *item,
                                  struct dpf_error *e)
{
    struct dpf_collect_owner *o = &j->owners[item->owner];
    struct dpf_error why = {.status = DPF_OK};
    if (o->fd < 0)
        return DPF_OK;
    enum dpf_status status = o->bytes == 0 ? check_header(item, &why) : DPF_OK;
    o->bytes += item->size;
    if (status == DPF_OK && o->bytes > (uint64_t)j->owner_bytes)
        status =
            dpf_fail(&why, DPF_BAD_STREAM, "the stream is larger than an owner may send");
    if (status != DPF_OK) {
        refuse(j, item->owner, &why);
        return DPF_OK;
    }
    if (!dpf_write_all(o->fd, item->data, item->size)) {
        if (errno != ENOSPC && errno != EDQUOT)
            return dpf_fail_errno(e, "cannot write '%s'", o->part);
        dpf_fail(&why, DPF_BAD_STREAM, "the curator's disk is full");
        refuse(j, item->owner, &why);
        return DPF_OK;
    }
    return dpf_frame_is_trailer(item->data, item->size) ? complete(j, item->owner, e)
                                                        : DPF_OK;
}

/* One curator a store. */
static enum dpf_status lock_store(struct dpf_collect_job *j, struct dpf_error *e)
{
    enum dpf_status status = dpf_make_dirs(j->store, e);
    if (status != DPF_OK)
        return status;
    j->store_fd = open(j->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (j->store_fd < 0)
        return dpf_fail_errno(e, "cannot open '%s'", j->store);
    j->store_open = true;
    return flock(j->store_fd, LOCK_EX | LOCK_NB) == 0
               ? DPF_OK
               : dpf_fail(e, DPF_SYSTEM, "'%s' is in use by another curator", j->store);
}

/* What is kept from an earlier run. */
static enum dpf_status open_owners(struct dpf_collect_job *j, struct dpf_error *e)
{
    j->owners = dpf_calloc(j->key_count, sizeof *j->owners);
    if (!j->owners)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < j->key_count; i++)
        j->owners[i].fd = -1;
    for (size_t i = 0; i < j->key_count; i++) {
        struct dpf_collect_owner *o = &j->owners[i];
        char digest[DPF_CHECKSUM_TEXT];
        uint64_t records;
        o->path = dpf_format("%s/%s.mp", j->store, dpf_collector_name(j->collector, i));
        o->part = o->path ? dpf_format("%s" DPF_PART_SUFFIX, o->path) : NULL;
        if (!o->part)
            return dpf_fail_memory(e);
        if (!dpf_is_file(o->path))
            continue;
        enum dpf_status status = check_stream(j, o->path, digest, &records, e);
        if (status != DPF_OK)
            return status;
        o->done = true;
        j->done++;
    }
    return DPF_OK;
}

enum dpf_status dpf_collect_job_gather(struct dpf_collect_job *j, struct dpf_stage *s,
                                       struct dpf_error *e)
{
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    double start = dpf_clock_seconds(), finished = 0;
    dpf_raise_descriptor_limit(); /* every owner on the line takes a socket and a file */
    enum dpf_status status = list_keys(j, &options, e);
    options.peer_keys = j->keys;
    options.peer_key_count = j->key_count;
    options.connect_seconds = 0;
    if (status == DPF_OK)
        status = lock_store(j, e);
    if (status == DPF_OK)
        status = dpf_collector_open(j->endpoint, &options, &j->collector, e);
    if (status == DPF_OK)
        status = open_owners(j, e);
    size_t enough = j->enough > 0 ? (size_t)j->enough : j->key_count;
    if (status == DPF_OK && enough > j->key_count)
        status = dpf_fail(e, DPF_USAGE, "there are keys of %zu owners, not of %zu",
                          j->key_count, enough);
    while (status == DPF_OK) {
        struct dpf_collect_item item;
        double now = dpf_clock_seconds();
        /* someone who never got our last word comes back with the same stream: stay for
         * a moment when all is there */
        bool all_here =
            j->done == j->key_count && (!j->hear_all || j->heard == j->key_count);
        finished = !all_here ? 0 : finished > 0 ? finished : now;
        bool late = j->until > 0 && now - start > j->until;
        if ((finished > 0 && now - finished > 0.5) || late)
            break;
        if (j->done >= enough && j->enough > 0 && !(j->until > 0))
            break;
        status = dpf_collector_next(j->collector, &item, e);
        if (status == DPF_OK && item.kind == DPF_COLLECT_BEGIN)
            status = begin(&j->owners[item.owner], e);
        else if (status == DPF_OK && item.kind == DPF_COLLECT_FRAME)
            status = take_frame(j, &item, e);
        struct dpf_counters counters = {.records = j->done, .total = j->key_count};
        dpf_progress_update(s->progress, &counters);
    }
    if (status == DPF_OK && j->done < enough)
        status =
            dpf_fail(e, DPF_UNAVAILABLE, "only %zu of %zu owners have sent their records",
                     j->done, enough);
    dpf_collector_destroy(&j->collector);
    return status;
}

/* ---------------------------------------------------------------------- passing on */

static enum dpf_status open_stream(struct dpf_collect_job *j, size_t number,
                                   struct dpf_error *e)
{
    struct dpf_channel *channel = NULL;
    enum dpf_status status =
        dpf_channel_open(j->owners[number].path, DPF_READ, NULL, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&j->reader, channel, dpf_ledger_merge, e);
    j->reading = status == DPF_OK;
    return status;
}

static void close_stream(struct dpf_collect_job *j)
{
    if (j->reading)
        dpf_stream_reader_release(&j->reader);
    j->reading = false;
}

enum dpf_status dpf_collect_job_header(struct dpf_collect_job *j, struct dpf_stage *s,
                                       struct dpf_error *e)
{
    struct dpf_values branches = {0};
    enum dpf_status status = DPF_OK;
    bool first = true;
    for (size_t i = 0; status == DPF_OK && i < j->key_count; i++) {
        if (!j->owners[i].done)
            continue;
        status = open_stream(j, i, e);
        if (status == DPF_OK) {
            dpf_ledger_add_branch(&branches, &j->reader.header.events);
            status =
                first ? dpf_header_copy(&s->out, &j->reader.header, e)
                      : dpf_header_merge(&s->out, &j->reader.header, merge_provenance, e);
        }
        first = false;
        close_stream(j);
    }
    if (status == DPF_OK && branches.count > 0)
        status = dpf_ledger_write_merge(&s->out.events, &branches, true, e);
    dpf_values_release(&branches);
    return status;
}

enum dpf_status dpf_collect_job_produce(struct dpf_collect_job *j, struct dpf_batch *b,
                                        struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    enum dpf_item item = DPF_ITEM_END;
    while (status == DPF_OK) {
        if (!j->reading) {
            while (j->next < j->key_count && !j->owners[j->next].done)
                j->next++;
            if (j->next == j->key_count)
                return DPF_OK;
            status = open_stream(j, j->next++, e);
            continue;
        }
        status = dpf_stream_reader_next(&j->reader, &item, e);
        if (status == DPF_OK && item == DPF_ITEM_END)
            close_stream(j);
        if (status == DPF_OK && item == DPF_ITEM_BATCH && j->reader.batch.rows > 0) {
            *b = j->reader.batch; /* views into a frame that stays until the next one */
            j->reader.batch = (struct dpf_batch){0};
            return DPF_OK;
        }
    }
    return status;
}

void dpf_collect_job_release(struct dpf_collect_job *j)
{
    close_stream(j);
    dpf_collector_destroy(&j->collector);
    for (size_t i = 0; j->owners && i < j->key_count; i++) {
        forget_part(&j->owners[i]);
        free(j->owners[i].path);
        free(j->owners[i].part);
    }
    for (size_t i = 0; i < j->found_count; i++)
        free(j->found[i]);
    free(j->owners);
    free(j->found);
    free(j->keys);
    dpf_header_release(&j->like);
    if (j->store_open)
        close(j->store_fd);
    *j = (struct dpf_collect_job){0};
}
