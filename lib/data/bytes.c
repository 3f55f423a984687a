#include "data/bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include "base/banned.h"

enum { BUFFER_BYTES = 256 << 10, SKIP_BYTES = 16 << 10 };
#define XZ_MEMORY_LIMIT (256ull << 20)
/* One inflate or lzma call is never given more room than fits its counters. */
#define ROUND_BYTES ((size_t)1 << 30)

enum packing { PLAIN, GZIP, DEFLATE, XZ };

struct dpf_bytes {
    char *name;
    int fd;                    /* -1 over memory */
    unsigned char *buffer;     /* NULL over memory */
    const unsigned char *next; /* input that was not unpacked yet */
    size_t available;
    bool drained;     /* no more input than `available` */
    bool size_known;  /* of the stored bytes */
    uint64_t size;    /* stored bytes */
    bool is_part;     /* an archive's member: stop after part.size stored bytes */
    uint64_t pending; /* part: stored bytes that are still in the file */
    struct dpf_bytes_part part;
    uint64_t unpacked; /* part: bytes so far, and their CRC-32 */
    uint32_t crc;
    enum packing packing;
    bool unpacker_ready;
    z_stream z;
    lzma_stream x;
    bool ended; /* the last unpacked byte was handed out */
    bool has_ahead;
    unsigned char ahead; /* one byte that at_end() had to look at */
};

static enum dpf_status ends_early(const struct dpf_bytes *b, struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' ends early", b->name);
}

static enum dpf_status damaged(const struct dpf_bytes *b, struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' is damaged", b->name);
}

/* Stored bytes from the file into `to`; fewer than `size` only at the end. */
static enum dpf_status read_stored(struct dpf_bytes *b, unsigned char *to, size_t size,
                                   size_t *got, struct dpf_error *e)
{
    if (b->is_part && size > b->pending)
        size = (size_t)b->pending;
    long long n = dpf_read_full(b->fd, to, size);
    if (n < 0)
        return dpf_fail_errno(e, "cannot read '%s'", b->name);
    if (b->is_part) {
        if ((size_t)n < size)
            return ends_early(b, e);
        b->pending -= (uint64_t)n;
        b->drained = b->pending == 0;
    } else {
        b->drained = (size_t)n < size;
    }
    *got = (size_t)n;
    return DPF_OK;
}

static enum dpf_status refill(struct dpf_bytes *b, struct dpf_error *e)
{
    if (b->available || b->drained)
        return DPF_OK;
    b->next = b->buffer;
    return read_stored(b, b->buffer, BUFFER_BYTES, &b->available, e);
}

static void consume(struct dpf_bytes *b, size_t left)
{
    b->next += b->available - left;
    b->available = left;
}

static enum dpf_status unpack_plain(struct dpf_bytes *b, unsigned char *to, size_t size,
                                    size_t *got, struct dpf_error *e)
{
    if (!b->available && !b->drained && size >= BUFFER_BYTES)
        return read_stored(b, to, size, got, e); /* no copy through the buffer */
    enum dpf_status status = refill(b, e);
    if (status != DPF_OK)
        return status;
    size_t n = b->available < size ? b->available : size;
    if (n)
        memcpy(to, b->next, n);
    consume(b, b->available - n);
    b->ended = b->available == 0 && b->drained;
    *got = n;
    return DPF_OK;
}

/* A gzip file may be several members one after the other; whatever follows a member has
 * to be another one, and inflate() says so if it is not. */
static enum dpf_status after_member(struct dpf_bytes *b, struct dpf_error *e)
{
    enum dpf_status status = refill(b, e);
    if (status != DPF_OK)
        return status;
    bool more = b->available > 0;
    if (!more)
        b->ended = true;
    else if (b->packing == DEFLATE || inflateReset(&b->z) != Z_OK)
        return damaged(b, e);
    return DPF_OK;
}

static enum dpf_status unpack_zlib(struct dpf_bytes *b, unsigned char *to, size_t size,
                                   size_t *got, struct dpf_error *e)
{
    enum dpf_status status = refill(b, e);
    if (status != DPF_OK)
        return status;
    size_t in = b->available < ROUND_BYTES ? b->available : ROUND_BYTES;
    size_t room = size < ROUND_BYTES ? size : ROUND_BYTES;
    b->z.next_in = (unsigned char *)b->next;
    b->z.avail_in = (uInt)in;
    b->z.next_out = to;
    b->z.avail_out = (uInt)room;
    int code = inflate(&b->z, Z_NO_FLUSH);
    consume(b, b->available - (in - b->z.avail_in));
    *got = room - b->z.avail_out;
    if (code == Z_STREAM_END)
        return after_member(b, e);
    if (code == Z_MEM_ERROR)
        return dpf_fail_memory(e);
    if (code != Z_OK && code != Z_BUF_ERROR)
        return damaged(b, e);
    /* inflate() may still hold output when the input is gone: only no progress at all
     * means that the file stops too soon. */
    return in == 0 && *got == 0 ? ends_early(b, e) : DPF_OK;
}

static enum dpf_status unpack_xz(struct dpf_bytes *b, unsigned char *to, size_t size,
                                 size_t *got, struct dpf_error *e)
{
    enum dpf_status status = refill(b, e);
    if (status != DPF_OK)
        return status;
    b->x.next_in = b->next;
    b->x.avail_in = b->available;
    b->x.next_out = to;
    b->x.avail_out = size;
    lzma_ret code = lzma_code(&b->x, b->drained ? LZMA_FINISH : LZMA_RUN);
    consume(b, b->x.avail_in);
    *got = size - b->x.avail_out;
    switch (code) {
    case LZMA_OK:
        return DPF_OK;
    case LZMA_STREAM_END:
        b->ended = true;
        return DPF_OK;
    case LZMA_BUF_ERROR:
        return ends_early(b, e);
    case LZMA_MEM_ERROR:
        return dpf_fail_memory(e);
    case LZMA_MEMLIMIT_ERROR:
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' needs more than 256 MiB to unpack",
                        b->name);
    default:
        return damaged(b, e);
    }
}

static enum dpf_status unpack(struct dpf_bytes *b, unsigned char *to, size_t size,
                              size_t *got, struct dpf_error *e)
{
    switch (b->packing) {
    case GZIP:
    case DEFLATE:
        return unpack_zlib(b, to, size, got, e);
    case XZ:
        return unpack_xz(b, to, size, got, e);
    default:
        return unpack_plain(b, to, size, got, e);
    }
}

/* A member's CRC-32 and size stand in the archive's directory. */
static enum dpf_status check_part(struct dpf_bytes *b, const unsigned char *data,
                                  size_t size, struct dpf_error *e)
{
    b->crc = (uint32_t)crc32_z(b->crc, data, size);
    b->unpacked += size;
    if (b->unpacked > b->part.unpacked ||
        (b->ended && (b->unpacked != b->part.unpacked || b->crc != b->part.crc)))
        return damaged(b, e);
    return DPF_OK;
}

enum dpf_status dpf_bytes_read(struct dpf_bytes *b, void *buffer, size_t size,
                               size_t *got, struct dpf_error *e)
{
    unsigned char *to = buffer;
    size_t done = 0;
    *got = 0;
    if (b->has_ahead && size) {
        to[done++] = b->ahead;
        b->has_ahead = false;
    }
    while (done < size && !b->ended) {
        size_t n = 0;
        enum dpf_status status = unpack(b, to + done, size - done, &n, e);
        if (status == DPF_OK && b->is_part)
            status = check_part(b, to + done, n, e);
        if (status != DPF_OK)
            return status;
        done += n;
    }
    *got = done;
    return DPF_OK;
}

enum dpf_status dpf_bytes_read_exact(struct dpf_bytes *b, void *buffer, size_t size,
                                     const char *what, struct dpf_error *e)
{
    size_t got;
    enum dpf_status status = dpf_bytes_read(b, buffer, size, &got, e);
    if (status == DPF_OK && got < size)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' ends early, in its %s", b->name, what);
    return status;
}

enum dpf_status dpf_bytes_skip(struct dpf_bytes *b, uint64_t size, const char *what,
                               struct dpf_error *e)
{
    unsigned char dropped[SKIP_BYTES];
    enum dpf_status status = DPF_OK;
    while (size && status == DPF_OK) {
        size_t n = size < sizeof dropped ? (size_t)size : sizeof dropped;
        status = dpf_bytes_read_exact(b, dropped, n, what, e);
        size -= n;
    }
    return status;
}

enum dpf_status dpf_bytes_at_end(struct dpf_bytes *b, bool *end, struct dpf_error *e)
{
    size_t got = 1;
    enum dpf_status status = DPF_OK;
    if (!b->has_ahead) {
        status = dpf_bytes_read(b, &b->ahead, 1, &got, e);
        b->has_ahead = status == DPF_OK && got == 1;
    }
    *end = !b->has_ahead;
    return status;
}

enum dpf_status dpf_bytes_expect_end(struct dpf_bytes *b, struct dpf_error *e)
{
    bool end;
    enum dpf_status status = dpf_bytes_at_end(b, &end, e);
    if (status == DPF_OK && !end)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has bytes after its data", b->name);
    return status;
}

/* Deflate makes at most 1032 bytes of one. LZMA codes a longest match of 273 bytes in no
 * less than 0.3 bits, which is below 8192 to one. */
bool dpf_bytes_can_hold(const struct dpf_bytes *b, uint64_t size)
{
    if (b->is_part)
        return size <= b->part.unpacked &&
               (b->packing == PLAIN ? size <= b->size : size / 1032 <= b->size);
    if (!b->size_known)
        return true;
    switch (b->packing) {
    case PLAIN:
        return size <= b->size;
    case XZ:
        return size / 8192 <= b->size;
    default:
        return size / 1032 <= b->size;
    }
}

bool dpf_bytes_known_size(const struct dpf_bytes *b, uint64_t *size)
{
    if (b->packing != PLAIN || !b->size_known)
        return false;
    *size = b->size;
    return true;
}

const char *dpf_bytes_name(const struct dpf_bytes *b)
{
    return b->name;
}

void dpf_bytes_destroy(struct dpf_bytes **bytes)
{
    struct dpf_bytes *b = *bytes;
    if (!b)
        return;
    if (b->unpacker_ready && b->packing == XZ)
        lzma_end(&b->x);
    else if (b->unpacker_ready)
        inflateEnd(&b->z);
    if (b->fd >= 0)
        close(b->fd);
    free(b->buffer);
    free(b->name);
    free(b);
    *bytes = NULL;
}

static struct dpf_bytes *bytes_new(const char *name)
{
    struct dpf_bytes *b = dpf_calloc(1, sizeof *b);
    if (!b)
        return NULL;
    b->fd = -1;
    b->next = (const unsigned char *)"";
    b->x = (lzma_stream)LZMA_STREAM_INIT;
    b->crc = (uint32_t)crc32_z(0, NULL, 0);
    b->name = dpf_strdup(name);
    if (!b->name)
        dpf_bytes_destroy(&b);
    return b;
}

static enum dpf_status open_file(struct dpf_bytes *b, const char *path,
                                 struct dpf_error *e)
{
    struct stat s;
    b->buffer = malloc(BUFFER_BYTES);
    if (!b->buffer)
        return dpf_fail_memory(e);
    b->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (b->fd < 0 || fstat(b->fd, &s) != 0)
        return dpf_fail_errno(e, "cannot read '%s'", b->name);
    b->size_known = S_ISREG(s.st_mode);
    b->size = b->size_known ? (uint64_t)s.st_size : 0;
    if (b->size_known)
        (void)posix_fadvise(b->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return DPF_OK;
}

static enum dpf_status start_unpacker(struct dpf_bytes *b, struct dpf_error *e)
{
    bool good = true;
    if (b->packing == XZ)
        good = lzma_stream_decoder(&b->x, XZ_MEMORY_LIMIT, LZMA_CONCATENATED) == LZMA_OK;
    else if (b->packing != PLAIN)
        good = inflateInit2(&b->z, b->packing == GZIP ? 15 + 16 : -15) == Z_OK;
    b->unpacker_ready = good && b->packing != PLAIN;
    return good ? DPF_OK : dpf_fail_memory(e);
}

/* Look at the first bytes and make the unpacker ready. */
static enum dpf_status start(struct dpf_bytes *b, struct dpf_error *e)
{
    static const unsigned char xz[6] = {0xfd, '7', 'z', 'X', 'Z', 0};
    enum dpf_status status = refill(b, e);
    if (status != DPF_OK)
        return status;
    if (b->available >= 2 && b->next[0] == 0x1f && b->next[1] == 0x8b)
        b->packing = GZIP;
    else if (b->available >= sizeof xz && memcmp(b->next, xz, sizeof xz) == 0)
        b->packing = XZ;
    b->ended = b->available == 0;
    return start_unpacker(b, e);
}

enum dpf_status dpf_bytes_open(const char *path, struct dpf_bytes **take,
                               struct dpf_error *e)
{
    struct dpf_bytes *b = bytes_new(path);
    if (!b)
        return dpf_fail_memory(e);
    enum dpf_status status = open_file(b, path, e);
    if (status == DPF_OK)
        status = start(b, e);
    if (status != DPF_OK)
        dpf_bytes_destroy(&b);
    *take = b;
    return status;
}

enum dpf_status dpf_bytes_open_memory(const void *data, size_t size, const char *name,
                                      struct dpf_bytes **take, struct dpf_error *e)
{
    struct dpf_bytes *b = bytes_new(name);
    if (!b)
        return dpf_fail_memory(e);
    if (size)
        b->next = data;
    b->available = size;
    b->drained = b->size_known = true;
    b->size = size;
    enum dpf_status status = start(b, e);
    if (status != DPF_OK)
        dpf_bytes_destroy(&b);
    *take = b;
    return status;
}

static enum dpf_status start_part(struct dpf_bytes *b, const struct dpf_bytes_part *part,
                                  struct dpf_error *e)
{
    if (part->offset > INT64_MAX || part->size > b->size ||
        part->offset > b->size - part->size)
        return ends_early(b, e);
    if (!part->deflated && part->size != part->unpacked)
        return damaged(b, e);
    if (lseek(b->fd, (off_t)part->offset, SEEK_SET) < 0)
        return dpf_fail_errno(e, "cannot read '%s'", b->name);
    b->is_part = true;
    b->part = *part;
    b->size = b->pending = part->size;
    b->drained = b->pending == 0;
    b->packing = part->deflated ? DEFLATE : PLAIN;
    b->ended = b->drained && !part->deflated;
    return start_unpacker(b, e);
}

enum dpf_status dpf_bytes_open_part(const char *path, const char *name,
                                    const struct dpf_bytes_part *part,
                                    struct dpf_bytes **take, struct dpf_error *e)
{
    struct dpf_bytes *b = bytes_new(name);
    if (!b)
        return dpf_fail_memory(e);
    enum dpf_status status = open_file(b, path, e);
    if (status == DPF_OK)
        status = start_part(b, part, e);
    if (status != DPF_OK)
        dpf_bytes_destroy(&b);
    *take = b;
    return status;
}
