#include "tallies.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"

#include "base/banned.h"

/* In the file: the digest, the bits up to a multiple of 8 bytes, the counts. */
static size_t bits_bytes(size_t teachers)
{
    return (teachers + 63) / 64 * 8;
}

enum dpf_status dpf_tallies_open(struct dpf_tallies *t, size_t teachers, size_t values,
                                 size_t value_bytes, struct dpf_error *e)
{
    *t = (struct dpf_tallies){.fd = -1, .teachers = teachers, .values = values};
    t->bytes =
        (sizeof(int64_t) + bits_bytes(teachers) + values * value_bytes + 7) / 8 * 8;
    t->fd = dpf_open_unnamed("dpflow-answers");
    return t->fd >= 0 ? DPF_OK
                      : dpf_fail_errno(e, "cannot create a temporary file for answers");
}

void dpf_tallies_release(struct dpf_tallies *t)
{
    if (t->bytes && t->fd >= 0)
        close(t->fd);
    free(t->block);
    *t = (struct dpf_tallies){.fd = -1};
}

/* Write the queries in memory back, if they changed. */
static enum dpf_status put_back(struct dpf_tallies *t, struct dpf_error *e)
{
    size_t wanted = t->changed ? (size_t)t->count * t->bytes : 0, put = 0;
    while (put < wanted) {
        ssize_t n = pwrite(t->fd, t->block + put, wanted - put,
                           (off_t)(t->first * t->bytes + put));
        if (n <= 0)
            return dpf_fail_errno(e, "cannot write a temporary file");
        put += (size_t)n;
    }
    t->changed = false;
    return DPF_OK;
}

enum dpf_status dpf_tallies_load(struct dpf_tallies *t, uint64_t first, uint64_t count,
                                 struct dpf_error *e)
{
    size_t wanted = (size_t)count * t->bytes, got = 0;
    if (t->count > 0 && t->first == first && t->count == count)
        return DPF_OK; /* the next teacher answers the same queries */
    enum dpf_status status = put_back(t, e);
    if (status != DPF_OK)
        return status;
    t->count = 0;
    if (!dpf_grow(&t->block, &t->block_capacity, wanted, 1))
        return dpf_fail_memory(e);
    while (got < wanted) {
        ssize_t n =
            pread(t->fd, t->block + got, wanted - got, (off_t)(first * t->bytes + got));
        if (n < 0)
            return dpf_fail_errno(e, "cannot read a temporary file");
        if (n == 0)
            break; /* nobody has come so far */
        got += (size_t)n;
    }
    memset(t->block + got, 0, wanted - got);
    t->first = first;
    t->count = count;
    if (first + count > t->queries)
        t->queries = first + count;
    return DPF_OK;
}

struct dpf_tally dpf_tallies_at(const struct dpf_tallies *t, uint64_t i)
{
    unsigned char *at = t->block + i * t->bytes;
    struct dpf_tally one = {.answered = at + sizeof one.digest};
    memcpy(&one.digest, at, sizeof one.digest);
    void *values = one.answered + bits_bytes(t->teachers);
    one.counts = values;
    one.sums = values;
    return one;
}

void dpf_tallies_set_digest(struct dpf_tallies *t, uint64_t i, int64_t digest)
{
    memcpy(t->block + i * t->bytes, &digest, sizeof digest);
}

bool dpf_tally_is_new(const struct dpf_tally *one, size_t teachers)
{
    for (size_t i = 0; i < bits_bytes(teachers); i++)
        if (one->answered[i])
            return false;
    return true;
}

void dpf_tallies_changed(struct dpf_tallies *t)
{
    t->changed = true;
}

void dpf_tallies_drop(struct dpf_tallies *t)
{
    t->count = 0;
    t->changed = false;
}
