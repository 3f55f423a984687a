#include "tallies.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/signals.h"

#include "base/banned.h"

enum dpf_status dpf_tallies_open(struct dpf_tallies *t, size_t teachers, size_t values,
                                 size_t value_bytes, struct dpf_error *e)
{
    *t = (struct dpf_tallies){.fd = -1, .teachers = teachers, .values = values};
    t->bytes =
        (2 * sizeof(uint64_t) + dpf_tallies_bits_bytes(t) + values * value_bytes + 7) /
        8 * 8;
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

uint64_t dpf_tallies_most(const struct dpf_tallies *t, uint64_t wanted)
{
    uint64_t room = DPF_TALLIES_MEMORY / t->bytes;
    return wanted < room ? wanted : room ? room : 1;
}

enum dpf_status dpf_tallies_load(struct dpf_tallies *t, uint64_t first, uint64_t count,
                                 struct dpf_error *e)
{
    size_t wanted = (size_t)count * t->bytes, got = 0;
    enum dpf_status status = dpf_stop_check(e);
    if (status != DPF_OK)
        return status;
    if (t->count > 0 && t->first == first && t->count == count)
        return DPF_OK; /* the next teacher answers the same queries */
    status = put_back(t, e);
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

void dpf_tallies_changed(struct dpf_tallies *t)
{
    t->changed = true;
}

void dpf_tallies_drop(struct dpf_tallies *t)
{
    t->count = 0;
    t->changed = false;
}
