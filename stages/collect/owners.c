/* Taking in the owners' streams: who they are, what is checked, where it is kept. */
#include "collect.h"

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
#include "ledger/merge.h"

#include "base/banned.h"

/* ------------------------------------------------------------------------------- keys */

/* The keys given one by one, then all of the folder. */
static enum dpf_status list_keys(struct dpf_curator *c,
                                 const struct dpf_endpoint_options *o,
                                 struct dpf_error *e)
{
    if (c->owner_keys) {
        enum dpf_status status =
            dpf_list_folder(c->owner_keys, ".pub", &c->found, &c->found_count, e);
        if (status != DPF_OK)
            return status;
    }
    c->key_count = o->peer_key_count + c->found_count;
    if (!dpf_grow(&c->keys, &c->key_capacity, c->key_count + 1, sizeof *c->keys))
        return dpf_fail_memory(e);
    for (size_t i = 0; i < c->key_count; i++)
        c->keys[i] =
            i < o->peer_key_count ? o->peer_keys[i] : c->found[i - o->peer_key_count];
    return DPF_OK;
}

/* ------------------------------------------------------------------------ checking */

enum dpf_status dpf_curator_merge_provenance(struct dpf_header *into,
                                             const struct dpf_header *other,
                                             struct dpf_error *e)
{
    dpf_standing_join(into, other);
    dpf_values_append(&into->provenance, &other->provenance);
    return dpf_buffer_ok(&into->provenance.bytes) ? DPF_OK : dpf_fail_memory(e);
}

/* Whether a stream can stand beside the first one: what would fail when all are passed on
 * fails here, and is its owner's to hear. */
static enum dpf_status check_like(const struct dpf_curator *c, const struct dpf_header *h,
                                  struct dpf_error *e)
{
    struct dpf_header both = {.field_count = 0};
    struct dpf_values branches = {0};
    enum dpf_status status = dpf_header_same_fields(&c->like, h, e);
    if (status == DPF_OK)
        status = dpf_header_copy(&both, &c->like, e);
    if (status != DPF_OK)
        return status;
    status = dpf_header_merge(&both, h, dpf_curator_merge_provenance, e);
    if (status == DPF_OK && c->answers)
        status = dpf_curator_check_asked(c, h, e);
    /* what the ledgers of answers say together is for `aggregate` to judge */
    if (status == DPF_OK && !c->answers) {
        dpf_ledger_add_branch(&branches, &c->like.events);
        dpf_ledger_add_branch(&branches, &h->events);
        status = dpf_ledger_write_merge(&both.events, &branches, true, e);
        if (status == DPF_OK)
            status = dpf_account_check_release(&both, NULL, e);
    }
    dpf_values_release(&branches);
    dpf_header_release(&both);
    return status;
}

/* What a file of an owner turned out to be. */
struct checked {
    struct dpf_header header;
    char digest[DPF_CHECKSUM_TEXT];
    uint64_t records;
};

/* Read a file to its end: a whole stream, fit to be kept, and like the others. Release
 * the header, also after a failure. */
static enum dpf_status check_stream(struct dpf_curator *c, size_t owner, const char *path,
                                    struct checked *found, struct dpf_error *e)
{
    struct dpf_channel *channel = NULL;
    struct dpf_stream_reader r;
    enum dpf_item item = DPF_ITEM_BATCH;
    *found = (struct checked){.records = 0};
    enum dpf_status status = dpf_channel_open(path, DPF_READ, NULL, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&r, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    status = dpf_curator_check_header(c, &r.header, e);
    if (status == DPF_OK && c->has_like)
        status = check_like(c, &r.header, e);
    if (status == DPF_OK && c->answers)
        status = dpf_curator_check_teachers(c, owner, &r.header, e);
    while (status == DPF_OK && item != DPF_ITEM_END) {
        status = dpf_stream_reader_next(&r, &item, e);
        if (status == DPF_OK && c->answers && item == DPF_ITEM_OTHER)
            status = dpf_fail(e, DPF_PRIVACY,
                              "something else than answers of teachers stands between "
                              "them");
    }
    if (status == DPF_OK)
        status = dpf_header_copy(&found->header, &r.header, e);
    memcpy(found->digest, r.digest, DPF_CHECKSUM_TEXT);
    found->records = r.records;
    dpf_stream_reader_release(&r);
    return status;
}

/* A stream that was checked is one of those that are kept. */
static enum dpf_status keep(struct dpf_curator *c, size_t number, struct checked *found,
                            struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (!c->has_like) {
        status = dpf_header_copy(&c->like, &found->header, e);
        c->has_like = status == DPF_OK;
    }
    if (status == DPF_OK && c->answers)
        status = dpf_curator_keep_teachers(c, number, &found->header, e);
    c->owners[number].done = true;
    c->done++;
    return status;
}

/* ----------------------------------------------------------------------- receiving */

void dpf_curator_forget_part(struct dpf_curator_owner *o)
{
    if (o->fd >= 0) {
        close(o->fd);
        unlink(o->part);
    }
    o->fd = -1;
    o->bytes = 0;
}

static enum dpf_status begin(struct dpf_curator_owner *o, struct dpf_error *e)
{
    dpf_curator_forget_part(o); /* it starts from the beginning */
    o->fd = open(o->part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    return o->fd >= 0 ? DPF_OK : dpf_fail_errno(e, "cannot create '%s'", o->part);
}

/* The first frame tells whether the stream may be here at all: what must not is not even
 * written down. */
static enum dpf_status check_header(const struct dpf_curator *c,
                                    const struct dpf_collect_item *item,
                                    struct dpf_error *e)
{
    struct dpf_decoder decoder = {0};
    struct dpf_frame frame = {.data = (unsigned char *)item->data, .size = item->size};
    struct dpf_header h = {.field_count = 0};
    enum dpf_status status = dpf_decoder_read(&decoder, &frame, e);
    if (status == DPF_OK)
        status = dpf_header_decode(&decoder.root, &h, e);
    if (status == DPF_OK)
        status = dpf_curator_check_header(c, &h, e);
    dpf_header_release(&h);
    dpf_decoder_release(&decoder);
    return status;
}

static void refuse(struct dpf_curator *c, size_t number, const struct dpf_error *why)
{
    struct dpf_curator_owner *o = &c->owners[number];
    enum dpf_status told = why->status == DPF_PRIVACY ? DPF_PRIVACY : DPF_BAD_STREAM;
    bool names_file = strstr(why->message, o->part) != NULL; /* not its business */
    dpf_collector_refuse(c->collector, number, told,
                         names_file ? "the stream is damaged or of another kind"
                                    : why->message);
    dpf_notice("owner %zu ('%s') was refused: %s", number, dpf_path_base(c->keys[number]),
               why->message);
    dpf_curator_forget_part(o);
}

/* The stream that was kept before is the only one that this owner may send. */
static enum dpf_status compare(struct dpf_curator *c, size_t number,
                               const struct checked *now, struct dpf_error *why,
                               struct dpf_error *e)
{
    struct checked before;
    enum dpf_status status = check_stream(c, number, c->owners[number].path, &before, e);
    if (status == DPF_OK && strcmp(before.digest, now->digest) != 0)
        dpf_fail(why, DPF_PRIVACY,
                 c->answers ? "this stream differs from the one that this owner sent "
                              "before: teachers answer once"
                            : "this stream differs from the one that this owner sent "
                              "before: randomising a record again is a second release");
    dpf_header_release(&before.header);
    return status;
}

/* Its name, too, is on the disk before the owner hears of it. */
static enum dpf_status store(struct dpf_curator *c, size_t number, struct checked *found,
                             struct dpf_error *e)
{
    struct dpf_curator_owner *o = &c->owners[number];
    close(o->fd);
    o->fd = -1;
    if (rename(o->part, o->path) != 0 || fsync(c->store_fd) != 0)
        return dpf_fail_errno(e, "cannot rename '%s'", o->part);
    enum dpf_status status = keep(c, number, found, e);
    dpf_notice("owner %zu ('%s'): %llu %s, %zu of %zu owners", number,
               dpf_path_base(c->keys[number]), (unsigned long long)found->records,
               c->answers ? "answers" : "records", c->done, c->key_count);
    return status;
}

/* The trailer has come. What is wrong with the stream is the owner's to hear; only what
 * is wrong here ends the curator. */
static enum dpf_status complete(struct dpf_curator *c, size_t number, struct dpf_error *e)
{
    struct dpf_curator_owner *o = &c->owners[number];
    struct dpf_error why = {.status = DPF_OK};
    struct checked found;
    if (fsync(o->fd) != 0)
        return dpf_fail_errno(e, "cannot write '%s'", o->part);
    why.status = check_stream(c, number, o->part, &found, &why);
    enum dpf_status status = DPF_OK;
    if (why.status == DPF_OK && o->done)
        status = compare(c, number, &found, &why, e);
    if (status == DPF_OK && why.status != DPF_OK) {
        refuse(c, number, &why);
    } else if (status == DPF_OK) {
        if (o->done)
            dpf_curator_forget_part(o); /* the same again */
        else
            status = store(c, number, &found, e);
        if (status == DPF_OK) {
            c->heard += !o->heard;
            o->heard = true;
            dpf_collector_accept(c->collector, number);
        }
    }
    dpf_header_release(&found.header);
    return status;
}

static enum dpf_status receive_frame(struct dpf_curator *c,
                                     const struct dpf_collect_item *item,
                                     struct dpf_error *e)
{
    struct dpf_curator_owner *o = &c->owners[item->owner];
    struct dpf_error why = {.status = DPF_OK};
    if (o->fd < 0)
        return DPF_OK;
    enum dpf_status status = o->bytes == 0 ? check_header(c, item, &why) : DPF_OK;
    o->bytes += item->size;
    if (status == DPF_OK && o->bytes > (uint64_t)c->owner_bytes)
        status =
            dpf_fail(&why, DPF_BAD_STREAM, "the stream is larger than an owner may send");
    if (status != DPF_OK) {
        refuse(c, item->owner, &why);
        return DPF_OK;
    }
    if (!dpf_write_all(o->fd, item->data, item->size)) {
        if (errno != ENOSPC && errno != EDQUOT)
            return dpf_fail_errno(e, "cannot write '%s'", o->part);
        dpf_fail(&why, DPF_BAD_STREAM, "the curator's disk is full");
        refuse(c, item->owner, &why);
        return DPF_OK;
    }
    return dpf_frame_is_trailer(item->data, item->size) ? complete(c, item->owner, e)
                                                        : DPF_OK;
}

/* One curator a store. */
static enum dpf_status lock_store(struct dpf_curator *c, struct dpf_error *e)
{
    enum dpf_status status =
        c->answers ? dpf_curator_close_folder(c->store, e) : dpf_make_dirs(c->store, e);
    if (status != DPF_OK)
        return status;
    c->store_fd = open(c->store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (c->store_fd < 0)
        return dpf_fail_errno(e, "cannot open '%s'", c->store);
    c->store_open = true;
    return flock(c->store_fd, LOCK_EX | LOCK_NB) == 0
               ? DPF_OK
               : dpf_fail(e, DPF_SYSTEM, "'%s' is in use by another curator", c->store);
}

/* What is kept from an earlier run. */
static enum dpf_status open_owners(struct dpf_curator *c, struct dpf_error *e)
{
    c->owners = dpf_calloc(c->key_count, sizeof *c->owners);
    if (!c->owners)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < c->key_count; i++)
        c->owners[i].fd = -1;
    for (size_t i = 0; i < c->key_count; i++) {
        struct dpf_curator_owner *o = &c->owners[i];
        struct checked found;
        o->path = dpf_format("%s/%s.mp", c->store, dpf_collector_name(c->collector, i));
        o->part = o->path ? dpf_format("%s" DPF_PART_SUFFIX, o->path) : NULL;
        if (!o->part)
            return dpf_fail_memory(e);
        if (!dpf_is_file(o->path))
            continue;
        enum dpf_status status = check_stream(c, i, o->path, &found, e);
        if (status == DPF_OK)
            status = keep(c, i, &found, e);
        else
            dpf_error_prefix(e, status, "'%s', of '%s'", o->path, c->keys[i]);
        dpf_header_release(&found.header);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

/* Name those who are missing, as far as there is room in a line. */
static enum dpf_status fail_missing(const struct dpf_curator *c, size_t enough,
                                    struct dpf_error *e)
{
    struct dpf_text names = {0};
    size_t shown = 0;
    for (size_t i = 0; i < c->key_count; i++) {
        if (c->owners[i].done)
            continue;
        if (shown == 5)
            dpf_text_add(&names, ", ...");
        if (shown++ < 5)
            dpf_text_addf(&names, "%s'%.60s'", shown > 1 ? ", " : "",
                          dpf_path_base(c->keys[i]));
    }
    enum dpf_status status = dpf_fail(
        e, DPF_UNAVAILABLE, "only %zu of %zu owners have sent their %s: missing %s",
        c->done, enough, c->answers ? "answers" : "records", dpf_text_get(&names));
    dpf_text_release(&names);
    return status;
}

enum dpf_status dpf_curator_gather(struct dpf_curator *c, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    struct dpf_endpoint_options options = dpf_stage_endpoint_options();
    double start = dpf_clock_seconds(), finished = 0;
    dpf_raise_descriptor_limit(); /* every owner on the line takes a socket and a file */
    enum dpf_status status = list_keys(c, &options, e);
    options.peer_keys = c->keys;
    options.peer_key_count = c->key_count;
    options.connect_seconds = 0;
    if (status == DPF_OK)
        status = lock_store(c, e);
    if (status == DPF_OK)
        status = dpf_collector_open(c->endpoint, &options, &c->collector, e);
    if (status == DPF_OK)
        status = open_owners(c, e);
    size_t enough = c->enough > 0 ? (size_t)c->enough : c->key_count;
    if (status == DPF_OK && enough > c->key_count)
        status = dpf_fail(e, DPF_USAGE, "there are keys of %zu owners, not of %zu",
                          c->key_count, enough);
    while (status == DPF_OK) {
        struct dpf_collect_item item;
        double now = dpf_clock_seconds();
        /* someone who never got our last word comes back with the same stream: stay for
         * a moment when all is there */
        bool all_here =
            c->done == c->key_count && (!c->hear_all || c->heard == c->key_count);
        finished = !all_here ? 0 : finished > 0 ? finished : now;
        bool late = c->until > 0 && now - start > c->until;
        if ((finished > 0 && now - finished > 0.5) || late)
            break;
        if (c->done >= enough && c->enough > 0 && !(c->until > 0))
            break;
        status = dpf_collector_next(c->collector, &item, e);
        if (status == DPF_OK && item.kind == DPF_COLLECT_BEGIN)
            status = begin(&c->owners[item.owner], e);
        else if (status == DPF_OK && item.kind == DPF_COLLECT_FRAME)
            status = receive_frame(c, &item, e);
        struct dpf_counters counters = {.records = c->done, .total = c->key_count};
        dpf_progress_update(s->progress, &counters);
    }
    if (status == DPF_OK && c->done < enough)
        status = fail_missing(c, enough, e);
    dpf_collector_destroy(&c->collector);
    return status;
}
