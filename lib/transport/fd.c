/* Frames over file descriptors: pipes, files, terminals' redirections. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/text.h"
#include "transport/transport.h"

#include "base/banned.h"

/* A frame's declared size is believed only this far ahead of the bytes that came. */
enum { TRUSTED_BYTES = 4 << 20, PIPE_BYTES = 1 << 20 };

struct fd_channel {
    struct dpf_channel base;
    int fd;
    bool close_fd;
    char *follow; /* a growing file: its final name */
    /* reading */
    unsigned char *buffer;
    size_t capacity;
    /* writing to a file */
    struct dpf_outfile file;
};

static void fd_destroy(struct dpf_channel *base)
{
    struct fd_channel *c = (struct fd_channel *)base;
    dpf_outfile_abort(&c->file);
    if (c->close_fd && c->fd >= 0)
        close(c->fd);
    free(c->buffer);
    free(c->follow);
    free(c->base.name);
    free(c);
}

static enum dpf_status interrupted(struct dpf_error *e)
{
    return dpf_fail_after_peer(e, DPF_SYSTEM, "interrupted by signal %d",
                               dpf_stop_signal());
}

static bool still_growing(const struct fd_channel *c)
{
    struct stat s;
    char *part = dpf_format("%s" DPF_PART_SUFFIX, c->follow);
    bool growing = part && stat(part, &s) == 0;
    free(part);
    return growing;
}

/* At the end of a growing file: wait for more, or say that there will be none. */
static bool follow_wait(struct fd_channel *c, unsigned *pause_us)
{
    if (!still_growing(c)) {
        struct stat s;
        /* Renamed between our read and this look: what was written last is there now. */
        off_t at = lseek(c->fd, 0, SEEK_CUR);
        return fstat(c->fd, &s) == 0 && s.st_size > at;
    }
    struct timespec t = {0, (long)*pause_us * 1000};
    nanosleep(&t, NULL);
    if (*pause_us < 20000)
        *pause_us *= 2;
    return !dpf_stop_requested();
}

static long long read_some(struct fd_channel *c, void *data, size_t size)
{
    long long n = dpf_read_full(c->fd, data, size);
    unsigned pause_us = 500;
    while (c->follow && n >= 0 && (size_t)n < size && follow_wait(c, &pause_us)) {
        long long more = dpf_read_full(c->fd, (char *)data + n, size - (size_t)n);
        if (more < 0)
            return -1;
        if (more > 0)
            pause_us = 500;
        n += more;
    }
    return n;
}

static enum dpf_status short_read(long long n, struct dpf_error *e)
{
    if (dpf_stop_requested())
        return interrupted(e);
    if (n < 0)
        return dpf_fail_errno(e, "read failed");
    return dpf_fail_after_peer(e, DPF_BAD_STREAM, "stream ended before its trailer");
}

static bool reserve(struct fd_channel *c, size_t keep, size_t wanted)
{
    if (wanted <= c->capacity)
        return true;
    unsigned char *grown = dpf_alloc_aligned(wanted);
    if (!grown)
        return false;
    if (keep)
        memcpy(grown, c->buffer, keep);
    free(c->buffer);
    c->buffer = grown;
    c->capacity = wanted;
    return true;
}

static enum dpf_status fd_recv(struct dpf_channel *base, struct dpf_frame *frame,
                               struct dpf_error *e)
{
    struct fd_channel *c = (struct fd_channel *)base;
    unsigned char preamble[DPF_PREAMBLE_BYTES];
    size_t size, have = sizeof preamble;
    long long n = read_some(c, preamble, sizeof preamble);
    if (n < (long long)sizeof preamble)
        return short_read(n, e);
    enum dpf_status status = dpf_preamble_parse(preamble, &size, e);
    if (status != DPF_OK)
        return status;
    /* The buffer grows as bytes really arrive: a lying size allocates nothing. */
    if (!reserve(c, 0, size < TRUSTED_BYTES ? size : TRUSTED_BYTES))
        return dpf_fail_memory(e);
    memcpy(c->buffer, preamble, sizeof preamble);
    while (have < size) {
        size_t step = c->capacity - have;
        if (step > size - have)
            step = size - have;
        n = read_some(c, c->buffer + have, step);
        if (n < (long long)step)
            return short_read(n, e);
        have += step;
        size_t twice = 2 * c->capacity;
        if (have < size && !reserve(c, have, twice < size ? twice : size))
            return dpf_fail_memory(e);
    }
    *frame = (struct dpf_frame){.data = c->buffer, .size = size};
    return DPF_OK;
}

/* Nothing may follow the trailer; a pipe's writer has to close, a file has to end. */
static enum dpf_status fd_read_finish(struct dpf_channel *base, struct dpf_error *e)
{
    struct fd_channel *c = (struct fd_channel *)base;
    if (c->follow && still_growing(c)) /* its writer has not renamed it yet */
        return DPF_OK;
    char extra;
    long long n = dpf_read_full(c->fd, &extra, 1);
    if (n < 0)
        return short_read(n, e);
    if (n > 0)
        return dpf_fail(e, DPF_BAD_STREAM, "data follows the trailer");
    return DPF_OK;
}

static enum dpf_status fd_send(struct dpf_channel *base, struct iovec *parts, int count,
                               size_t total, struct dpf_error *e)
{
    struct fd_channel *c = (struct fd_channel *)base;
    (void)total;
    if (dpf_writev_all(c->fd, parts, count))
        return DPF_OK;
    if (dpf_stop_requested())
        return interrupted(e);
    if (errno == EPIPE)
        return dpf_fail_after_peer(e, DPF_SYSTEM, "its reader closed it");
    return dpf_fail_errno(e, "write failed");
}

static enum dpf_status fd_write_finish(struct dpf_channel *base, struct dpf_error *e)
{
    struct fd_channel *c = (struct fd_channel *)base;
    if (c->file.path) {
        c->fd = -1;
        return dpf_outfile_commit(&c->file, e);
    }
    int fd = c->fd;
    c->fd = -1;
    /* A reader sees the end now, and a network file system reports a full disk here. */
    if (close(fd) != 0 && errno != EINTR)
        return dpf_fail_errno(e, "write failed");
    return DPF_OK;
}

static const struct dpf_channel_ops read_ops = {
    .recv = fd_recv, .finish = fd_read_finish, .destroy = fd_destroy};
static const struct dpf_channel_ops write_ops = {
    .send = fd_send, .finish = fd_write_finish, .destroy = fd_destroy};

static struct fd_channel *fd_new(int fd, enum dpf_direction direction, const char *name)
{
    struct fd_channel *c = dpf_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->base.ops = direction == DPF_READ ? &read_ops : &write_ops;
    c->base.lanes = 1;
    c->base.name = dpf_strdup(name);
    c->file.fd = -1;
    c->fd = fd;
    if (!c->base.name) {
        free(c);
        return NULL;
    }
#ifdef F_SETPIPE_SZ
    struct stat s;
    if (fd >= 0 && fstat(fd, &s) == 0 && S_ISFIFO(s.st_mode))
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES); /* larger pipes switch less */
#endif
    return c;
}

static enum dpf_status fd_open(const char *endpoint, enum dpf_direction direction,
                               const struct dpf_endpoint_options *options,
                               struct dpf_channel **take_channel, struct dpf_error *e)
{
    (void)options;
    int64_t number = direction == DPF_READ ? STDIN_FILENO : STDOUT_FILENO;
    const char *name = direction == DPF_READ ? "standard input" : "standard output";
    if (strcmp(endpoint, "-") != 0) {
        name = endpoint;
        if (!dpf_parse_int(endpoint + 3, &number) || number < 0 || number > 1 << 20)
            return dpf_fail(e, DPF_USAGE, "endpoint '%s' names no descriptor", endpoint);
    }
    if (isatty((int)number))
        return dpf_fail(e, DPF_USAGE,
                        direction == DPF_READ
                            ? "%s is a terminal: give a stream by a pipe or --input"
                            : "%s is a terminal: pipe it into 'dpflow inspect', or give "
                              "--output",
                        name);
    struct fd_channel *c = fd_new((int)number, direction, name);
    if (!c)
        return dpf_fail_memory(e);
    *take_channel = &c->base;
    return DPF_OK;
}

static enum dpf_status file_open(const char *path, enum dpf_direction direction,
                                 const struct dpf_endpoint_options *options,
                                 struct dpf_channel **take_channel, struct dpf_error *e)
{
    (void)options;
    int fd = -1;
    if (direction == DPF_READ && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    struct fd_channel *c = fd_new(fd, direction, path);
    if (!c) {
        if (fd >= 0)
            close(fd);
        return dpf_fail_memory(e);
    }
    c->close_fd = true;
    if (direction == DPF_WRITE) {
        enum dpf_status status = dpf_outfile_open(&c->file, path, e);
        if (status != DPF_OK) {
            fd_destroy(&c->base);
            return status;
        }
        c->fd = c->file.fd;
        c->close_fd = false; /* the outfile closes it */
    }
    *take_channel = &c->base;
    return DPF_OK;
}

/* Wait until the file, or the temporary file that will become it, is there. */
static int follow_open_file(const char *path)
{
    char *part = dpf_format("%s" DPF_PART_SUFFIX, path);
    int fd = -1;
    while (part && !dpf_stop_requested()) {
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            fd = open(part, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 || errno != ENOENT)
            break;
        struct timespec t = {0, 2000000};
        nanosleep(&t, NULL);
    }
    free(part);
    return fd;
}

static enum dpf_status follow_open(const char *endpoint, enum dpf_direction direction,
                                   const struct dpf_endpoint_options *options,
                                   struct dpf_channel **take_channel, struct dpf_error *e)
{
    (void)options;
    const char *path = endpoint + strlen("follow:");
    if (direction != DPF_READ)
        return dpf_fail(e, DPF_USAGE, "endpoint '%s' can only be read", endpoint);
    int fd = follow_open_file(path);
    if (fd < 0 && dpf_stop_requested())
        return interrupted(e);
    if (fd < 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    struct fd_channel *c = fd_new(fd, direction, path);
    if (c)
        c->follow = dpf_strdup(path);
    if (!c || !c->follow) {
        close(fd);
        if (c)
            fd_destroy(&c->base);
        return dpf_fail_memory(e);
    }
    c->close_fd = true;
    *take_channel = &c->base;
    return DPF_OK;
}

const struct dpf_transport dpf_transport_fd = {.prefix = "fd:", .open = fd_open};
const struct dpf_transport dpf_transport_file = {.prefix = "", .open = file_open};
const struct dpf_transport dpf_transport_follow = {.prefix = "follow:",
                                                   .open = follow_open};
