#include "data/zip.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

#include "base/banned.h"

enum { MAX_DIRECTORY = 1 << 20, MAX_COMMENT = 65535 };

/* The signatures and sizes of PKWARE's APPNOTE 6.3. */
enum {
    END_BYTES = 22,
    LOCATOR_BYTES = 20,
    END64_BYTES = 56,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
};

struct dpf_zip {
    const char *path;
    int fd;
    uint64_t size;
    uint64_t directory, directory_bytes, entries;
    unsigned char *text; /* the directory, once it was asked for */
    const unsigned char *at;
};

static uint32_t little32(const unsigned char *p)
{
    return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static uint32_t little16(const unsigned char *p)
{
    return (uint32_t)p[1] << 8 | p[0];
}

static uint64_t little64(const unsigned char *p)
{
    return (uint64_t)little32(p + 4) << 32 | little32(p);
}

static enum dpf_status damaged(const struct dpf_zip *z, struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' is a damaged zip", z->path);
}

/* ---- the directory ---- */

static enum dpf_status read_at(const struct dpf_zip *z, uint64_t offset, void *to,
                               size_t size, struct dpf_error *e)
{
    if (offset > z->size || size > z->size - offset)
        return damaged(z, e);
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(z->fd, (char *)to + done, size - done, (off_t)(offset + done));
        if (n < 0)
            return dpf_fail_errno(e, "cannot read '%s'", z->path);
        if (n == 0)
            return damaged(z, e);
        done += (size_t)n;
    }
    return DPF_OK;
}

/* Files over 4 GiB keep their numbers in a second record that a locator points to. */
static enum dpf_status read_end64(struct dpf_zip *z, uint64_t end, struct dpf_error *e)
{
    unsigned char locator[LOCATOR_BYTES], record[END64_BYTES];
    if (end < LOCATOR_BYTES)
        return damaged(z, e);
    enum dpf_status status = read_at(z, end - LOCATOR_BYTES, locator, sizeof locator, e);
    if (status != DPF_OK)
        return status;
    if (little32(locator) != 0x07064b50)
        return DPF_OK; /* the numbers only happen to be all ones */
    status = read_at(z, little64(locator + 8), record, sizeof record, e);
    if (status != DPF_OK)
        return status;
    if (little32(record) != 0x06064b50)
        return damaged(z, e);
    z->entries = little64(record + 32);
    z->directory_bytes = little64(record + 40);
    z->directory = little64(record + 48);
    return DPF_OK;
}

/* The last record stands at the end, behind it only a comment of stated length. */
static enum dpf_status find_directory(struct dpf_zip *z, struct dpf_error *e)
{
    size_t tail = z->size < END_BYTES + MAX_COMMENT ? (size_t)z->size
                                                    : (size_t)END_BYTES + MAX_COMMENT;
    unsigned char *text = dpf_calloc(tail, 1), *p = NULL;
    if (!text)
        return dpf_fail_memory(e);
    enum dpf_status status = read_at(z, z->size - tail, text, tail, e);
    for (size_t i = tail; status == DPF_OK && !p && i-- > 0;)
        if (tail - i >= END_BYTES && little32(text + i) == 0x06054b50 &&
            little16(text + i + 20) == tail - i - END_BYTES)
            p = text + i;
    if (status == DPF_OK && !p)
        status = damaged(z, e);
    if (status == DPF_OK) {
        z->entries = little16(p + 10);
        z->directory_bytes = little32(p + 12);
        z->directory = little32(p + 16);
        if (z->entries == 0xffff || z->directory_bytes == 0xffffffff ||
            z->directory == 0xffffffff)
            status = read_end64(z, z->size - tail + (uint64_t)(p - text), e);
    }
    free(text);
    return status;
}

static enum dpf_status read_directory(struct dpf_zip *z, struct dpf_error *e)
{
    if (z->directory_bytes > MAX_DIRECTORY)
        return damaged(z, e);
    z->text = dpf_calloc((size_t)z->directory_bytes, 1);
    if (!z->text)
        return dpf_fail_memory(e);
    z->at = z->text;
    return read_at(z, z->directory, z->text, (size_t)z->directory_bytes, e);
}

/* ---- members ---- */

/* The 64-bit sizes of an entry, in the order of those that are all ones. */
static bool read_extra64(const unsigned char *extra, size_t size, uint64_t *const *wanted,
                         size_t count)
{
    while (size >= 4) {
        size_t block = little16(extra + 2);
        if (block > size - 4)
            return false;
        if (little16(extra) == 1) {
            if (block < count * 8)
                return false;
            for (size_t i = 0; i < count; i++)
                *wanted[i] = little64(extra + 4 + 8 * i);
            return true;
        }
        extra += 4 + block;
        size -= 4 + block;
    }
    return false;
}

/* Numbers that do not fit 32 bits are all ones there and follow as 64 bits. */
static bool read_part(const unsigned char *entry, const unsigned char *extra, size_t size,
                      struct dpf_bytes_part *part)
{
    uint64_t *wanted[3];
    size_t count = 0;
    *part = (struct dpf_bytes_part){.offset = little32(entry + 42),
                                    .size = little32(entry + 20),
                                    .deflated = little16(entry + 10) == 8,
                                    .unpacked = little32(entry + 24),
                                    .crc = little32(entry + 16)};
    if (part->unpacked == 0xffffffff)
        wanted[count++] = &part->unpacked;
    if (part->size == 0xffffffff)
        wanted[count++] = &part->size;
    if (part->offset == 0xffffffff)
        wanted[count++] = &part->offset;
    return count == 0 || read_extra64(extra, size, wanted, count);
}

enum dpf_status dpf_zip_next(struct dpf_zip *z, struct dpf_zip_member *m,
                             struct dpf_error *e)
{
    enum dpf_status status = z->text ? DPF_OK : read_directory(z, e);
    if (status != DPF_OK)
        return status;
    const unsigned char *p = z->at;
    size_t left = (size_t)z->directory_bytes - (size_t)(p - z->text);
    if (left < ENTRY_BYTES || little32(p) != 0x02014b50)
        return damaged(z, e);
    size_t name = little16(p + 28), extra = little16(p + 30), comment = little16(p + 32);
    uint32_t method = little16(p + 10);
    if (left - ENTRY_BYTES < name + extra + comment)
        return damaged(z, e);
    m->name = p + ENTRY_BYTES;
    m->name_size = name;
    m->readable = !(little16(p + 8) & 1) && (method == 0 || method == 8);
    if (!read_part(p, m->name + name, extra, &m->part))
        return damaged(z, e);
    z->at = p + ENTRY_BYTES + name + extra + comment;
    return DPF_OK;
}

/* Where an entry's data start: behind its local header, which has its own lengths. */
static enum dpf_status find_data(const struct dpf_zip *z, struct dpf_bytes_part *part,
                                 struct dpf_error *e)
{
    unsigned char local[LOCAL_BYTES];
    enum dpf_status status = read_at(z, part->offset, local, sizeof local, e);
    if (status != DPF_OK)
        return status;
    if (little32(local) != 0x04034b50)
        return damaged(z, e);
    part->offset += LOCAL_BYTES + little16(local + 26) + little16(local + 28);
    if (part->offset > z->size || part->size > z->size - part->offset)
        return damaged(z, e);
    return DPF_OK;
}

enum dpf_status dpf_zip_open_member(const struct dpf_zip *z,
                                    const struct dpf_zip_member *m, const char *name,
                                    struct dpf_bytes **take, struct dpf_error *e)
{
    struct dpf_bytes_part part = m->part;
    if (!m->readable)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' has member '%s' encrypted or neither stored nor deflated",
                        z->path, name);
    enum dpf_status status = find_data(z, &part, e);
    if (status != DPF_OK)
        return status;
    char *shown = dpf_format("%s:%s", z->path, name);
    if (!shown)
        return dpf_fail_memory(e);
    status = dpf_bytes_open_part(z->path, shown, &part, take, e);
    free(shown);
    return status;
}

/* ---- the archive ---- */

static bool starts_like_zip(int fd)
{
    char magic[4];
    return pread(fd, magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           (memcmp(magic, "PK\3\4", 4) == 0 || memcmp(magic, "PK\5\6", 4) == 0);
}

static enum dpf_status zip_start(struct dpf_zip *z, struct dpf_error *e)
{
    struct stat file;
    if (fstat(z->fd, &file) != 0)
        return dpf_fail_errno(e, "cannot read '%s'", z->path);
    z->size = (uint64_t)file.st_size;
    return find_directory(z, e);
}

enum dpf_status dpf_zip_open(const char *path, struct dpf_zip **take, struct dpf_error *e)
{
    *take = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    bool zipped = starts_like_zip(fd);
    struct dpf_zip *z = zipped ? dpf_calloc(1, sizeof *z) : NULL;
    if (!z) {
        close(fd);
        return zipped ? dpf_fail_memory(e) : DPF_OK;
    }
    z->path = path;
    z->fd = fd;
    *take = z;
    enum dpf_status status = zip_start(z, e);
    if (status != DPF_OK)
        dpf_zip_destroy(take);
    return status;
}

uint64_t dpf_zip_count(const struct dpf_zip *z)
{
    return z->entries;
}

void dpf_zip_destroy(struct dpf_zip **z)
{
    if (!*z)
        return;
    close((*z)->fd);
    free((*z)->text);
    free(*z);
    *z = NULL;
}
