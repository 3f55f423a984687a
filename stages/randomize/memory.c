#include "memory.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "ledger/source.h"

#include "base/banned.h"

/* The file: MAGIC, what it is of (hexadecimal digits), then chunks: the number of
 * entries (u64, little-endian) and its complement, the entries (digest of the input, what
 * left), a checksum of the chunk as text. The complement tells a damaged number, behind
 * which nothing could be trusted, from a chunk that was cut off. */
static const char magic[] = "dpflow release memory 1\n";
enum {
    COUNT = 16,
    MAGIC = sizeof magic - 1,
    HEAD = MAGIC + DPF_FINGERPRINT_HEX,
    DIGEST = 32, /* hexadecimal digits of a checksum */
    CHECK = DPF_CHECKSUM_TEXT - 1,
};

static size_t entry_bytes(const struct dpf_release_memory *m)
{
    return DIGEST + m->row_bytes;
}

/* Options, fields and mechanisms decide what a record's release looks like. */
static void identify(const struct dpf_stage *s, char out[DPF_FINGERPRINT_HEX + 1])
{
    struct dpf_fingerprint f;
    dpf_fingerprint_init(&f);
    dpf_fingerprint_add_string(&f, s->info->name);
    for (size_t i = 0; i < s->parsed.given_count; i++) {
        const struct dpf_given *g = &s->parsed.given[i];
        if (g->option->flags & DPF_OPTION_IMMATERIAL)
            continue;
        dpf_fingerprint_add_string(&f, g->option->name);
        dpf_fingerprint_add_string(&f, g->value);
    }
    for (int i = 0; i < s->out.field_count; i++) {
        const struct dpf_field *field = &s->out.fields[i];
        dpf_fingerprint_add_string(&f, field->name);
        dpf_fingerprint_add_string(&f, dpf_dtype_name(field->dtype));
        dpf_fingerprint_add(&f, &field->shape.rank, sizeof field->shape.rank);
        dpf_fingerprint_add(&f, field->shape.dim,
                            (size_t)field->shape.rank * sizeof *field->shape.dim);
    }
    /* not where the records are from: each is recognised by itself */
    dpf_ledger_fingerprint(&s->out.events, &f);
    dpf_fingerprint_hex(&f, out);
}

static void digest_bytes(struct dpf_release_memory *m, const void *data, size_t size,
                         char text[DPF_CHECKSUM_TEXT])
{
    dpf_checksum_reset(m->checksum);
    dpf_checksum_update(m->checksum, data, size);
    dpf_checksum_text(m->checksum, text);
}

static void digest_record(struct dpf_release_memory *m, const struct dpf_batch *b,
                          uint64_t row, unsigned char out[DIGEST])
{
    char text[DPF_CHECKSUM_TEXT];
    dpf_checksum_reset(m->checksum);
    for (int i = 0; i < b->count; i++) {
        size_t bytes = dpf_tensor_row_bytes(&b->tensor[i]);
        dpf_checksum_update(m->checksum, (const char *)b->tensor[i].data + row * bytes,
                            bytes);
    }
    dpf_checksum_text(m->checksum, text);
    memcpy(out, text + CHECK - DIGEST, DIGEST);
}

/* ---------------------------------------------------------------------------- opening */

static enum dpf_status damaged(const struct dpf_release_memory *m, struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM,
                    "'%s' is damaged: it is not known which records were released, so "
                    "none may be released",
                    m->path);
}

/* Take in one chunk at `at`; *end is 0 if it was cut off. */
static enum dpf_status read_chunk(struct dpf_release_memory *m, uint64_t at,
                                  uint64_t size, uint64_t *end, struct dpf_error *e)
{
    uint64_t count[2], entry = entry_bytes(m);
    char text[DPF_CHECKSUM_TEXT], found[CHECK];
    *end = 0;
    if (size - at < COUNT || pread(m->fd, count, COUNT, (off_t)at) != COUNT)
        return DPF_OK;
    uint64_t rows = le64toh(count[0]);
    if (rows > DPF_MAX_BATCH_ROWS || rows == 0 || count[0] != ~count[1])
        return damaged(m, e);
    uint64_t bytes = rows * entry;
    if (size - at < COUNT + bytes + CHECK)
        return DPF_OK;
    dpf_checksum_reset(m->checksum);
    dpf_checksum_update(m->checksum, count, COUNT);
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t from = at + COUNT + i * entry;
        if (pread(m->fd, m->row, entry, (off_t)from) != (ssize_t)entry)
            return dpf_fail_errno(e, "cannot read '%s'", m->path);
        dpf_checksum_update(m->checksum, m->row, entry);
        if (!dpf_grow(&m->offsets, &m->capacity, m->count + 1, sizeof *m->offsets))
            return dpf_fail_memory(e);
        m->offsets[m->count++] = from;
    }
    dpf_checksum_text(m->checksum, text);
    *end = at + COUNT + bytes + CHECK;
    if (pread(m->fd, found, CHECK, (off_t)(*end - CHECK)) != CHECK ||
        memcmp(found, text, CHECK) != 0)
        return damaged(m, e);
    return DPF_OK;
}

/* What the file remembers; a chunk that was cut off never left, and is dropped. */
static enum dpf_status read_all(struct dpf_release_memory *m, uint64_t size,
                                const char *identity, struct dpf_error *e)
{
    char head[HEAD];
    if (pread(m->fd, head, HEAD, 0) != HEAD || memcmp(head, magic, MAGIC) != 0)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' is not a file of '--remember'", m->path);
    if (memcmp(head + MAGIC, identity, DPF_FINGERPRINT_HEX) != 0)
        return dpf_fail(e, DPF_PRIVACY,
                        "'%s' holds releases with other options: releasing the records "
                        "again costs again",
                        m->path);
    uint64_t at = HEAD, end = 1;
    enum dpf_status status = DPF_OK;
    while (status == DPF_OK && at < size && end) {
        status = read_chunk(m, at, size, &end, e);
        at = end ? end : at;
    }
    if (status == DPF_OK && at < size && ftruncate(m->fd, (off_t)at) != 0)
        status = dpf_fail_errno(e, "cannot repair '%s'", m->path);
    return status;
}

/* The name of a new file is on the disk when its folder is. */
static bool sync_folder(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder =
        slash ? dpf_strndup(path, (size_t)(slash - path) + 1) : dpf_strdup(".");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    bool good = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    free(folder);
    return good;
}

enum dpf_status dpf_release_memory_open(struct dpf_release_memory *m, const char *path,
                                        const struct dpf_stage *s, struct dpf_error *e)
{
    struct stat info;
    char identity[DPF_FINGERPRINT_HEX + 1];
    *m = (struct dpf_release_memory){.path = path};
    m->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (m->fd < 0)
        return dpf_fail_errno(e, "cannot open '%s'", path);
    m->open = true;
    if (flock(m->fd, LOCK_EX | LOCK_NB) != 0)
        return dpf_fail(e, DPF_SYSTEM, "'%s' is in use by another process", path);
    for (int i = 0; i < s->out.field_count; i++) {
        size_t bytes = 0;
        dpf_shape_bytes(s->out.fields[i].dtype, &s->out.fields[i].shape, &bytes);
        m->row_bytes += bytes;
    }
    m->checksum = dpf_checksum_new();
    m->row = malloc(entry_bytes(m));
    if (!m->checksum || !m->row)
        return dpf_fail_memory(e);
    if (fstat(m->fd, &info) != 0 || fchmod(m->fd, 0600) != 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    identify(s, identity);
    if (info.st_size >= HEAD)
        return read_all(m, (uint64_t)info.st_size, identity, e);
    /* new, or cut off before anything could leave; nobody's diary */
    char start[HEAD];
    ssize_t there = pread(m->fd, start, (size_t)info.st_size, 0);
    size_t known = there < MAGIC ? (size_t)(there < 0 ? 0 : there) : MAGIC;
    if (there != info.st_size || memcmp(start, magic, known) != 0)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' is not a file of '--remember'", m->path);
    if (ftruncate(m->fd, 0) != 0 || lseek(m->fd, 0, SEEK_SET) != 0 ||
        !dpf_write_all(m->fd, magic, MAGIC) ||
        !dpf_write_all(m->fd, identity, DPF_FINGERPRINT_HEX) || fsync(m->fd) != 0 ||
        !sync_folder(path))
        return dpf_fail_errno(e, "cannot write '%s'", path);
    return DPF_OK;
}

/* ---------------------------------------------------------------------------- records */

enum dpf_status dpf_release_memory_recall(struct dpf_release_memory *m,
                                          const struct dpf_batch *in, uint64_t row,
                                          struct dpf_batch *out, bool *known,
                                          struct dpf_error *e)
{
    unsigned char digest[DIGEST];
    *known = m->next < m->count;
    if (!*known)
        return DPF_OK;
    if (pread(m->fd, m->row, entry_bytes(m), (off_t)m->offsets[m->next]) !=
        (ssize_t)entry_bytes(m))
        return dpf_fail_errno(e, "cannot read '%s'", m->path);
    digest_record(m, in, row, digest);
    if (memcmp(digest, m->row, DIGEST) != 0)
        return dpf_fail(
            e, DPF_PRIVACY,
            "record %llu differs from the one that was released before ('%s')",
            (unsigned long long)m->next, m->path);
    const unsigned char *from = m->row + DIGEST;
    for (int i = 0; i < out->count; i++) {
        size_t bytes = dpf_tensor_row_bytes(&out->tensor[i]);
        memcpy((char *)out->tensor[i].data + row * bytes, from, bytes);
        from += bytes;
    }
    m->next++;
    return DPF_OK;
}

enum dpf_status dpf_release_memory_add(struct dpf_release_memory *m,
                                       const struct dpf_batch *in, uint64_t row,
                                       const struct dpf_batch *out, struct dpf_error *e)
{
    unsigned char digest[DIGEST];
    if (m->pending_rows == 0) {
        const uint64_t none[2] = {0}; /* the number stands here once it is known */
        dpf_buffer_append(&m->pending, none, COUNT);
    }
    digest_record(m, in, row, digest);
    dpf_buffer_append(&m->pending, digest, DIGEST);
    for (int i = 0; i < out->count; i++) {
        size_t bytes = dpf_tensor_row_bytes(&out->tensor[i]);
        dpf_buffer_append(&m->pending, (const char *)out->tensor[i].data + row * bytes,
                          bytes);
    }
    m->pending_rows++;
    m->next++;
    return dpf_buffer_ok(&m->pending) ? DPF_OK : dpf_fail_memory(e);
}

enum dpf_status dpf_release_memory_sync(struct dpf_release_memory *m, struct dpf_error *e)
{
    char text[DPF_CHECKSUM_TEXT];
    if (m->pending_rows == 0)
        return DPF_OK;
    uint64_t rows = htole64(m->pending_rows), count[2] = {rows, ~rows};
    memcpy(m->pending.data, count, COUNT);
    digest_bytes(m, m->pending.data, m->pending.size, text);
    dpf_buffer_append(&m->pending, text, CHECK);
    if (!dpf_buffer_ok(&m->pending))
        return dpf_fail_memory(e);
    if (lseek(m->fd, 0, SEEK_END) < 0 ||
        !dpf_write_all(m->fd, m->pending.data, m->pending.size) || fdatasync(m->fd) != 0)
        return dpf_fail_errno(e, "cannot write '%s'", m->path);
    m->pending.size = 0;
    m->pending_rows = 0;
    return DPF_OK;
}

void dpf_release_memory_release(struct dpf_release_memory *m)
{
    if (m->open)
        close(m->fd);
    free(m->offsets);
    free(m->row);
    dpf_buffer_release(&m->pending);
    dpf_checksum_destroy(&m->checksum);
    *m = (struct dpf_release_memory){0};
}
