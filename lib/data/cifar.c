#include "data/cifar.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/formats.h"

#include "base/banned.h"

enum { PIXELS = 3 * 32 * 32, RECORD = 1 + PIXELS, CLASSES = 10, BLOCK = 64 };

struct cifar {
    struct dpf_source source;
    struct dpf_bytes *now; /* the file that is being read */
    bool fresh;            /* nothing was read from it yet */
    char **paths;          /* those that follow: paths[next ..] */
    size_t count, next;
    unsigned char block[BLOCK * RECORD];
};

static enum dpf_status not_whole(const struct dpf_bytes *b, struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' does not hold whole CIFAR-10 records",
                    dpf_bytes_name(b));
}

/* Up to `want` records into s->block; *got is 0 only at the end of the last file. */
static enum dpf_status read_block(struct cifar *s, uint64_t want, size_t *got,
                                  struct dpf_error *e)
{
    size_t n = want < BLOCK ? (size_t)want : BLOCK, bytes = 0;
    *got = 0;
    for (;;) {
        enum dpf_status status = DPF_OK;
        if (!s->now && s->next == s->count)
            return DPF_OK;
        if (!s->now) {
            status = dpf_bytes_open(s->paths[s->next++], &s->now, e);
            s->fresh = true;
        }
        if (status == DPF_OK)
            status = dpf_bytes_read(s->now, s->block, n * RECORD, &bytes, e);
        if (status != DPF_OK)
            return status;
        if (bytes % RECORD != 0 || (bytes == 0 && s->fresh))
            return not_whole(s->now, e);
        s->fresh = false;
        if (bytes)
            break;
        dpf_bytes_destroy(&s->now);
    }
    *got = bytes / RECORD;
    return DPF_OK;
}

static enum dpf_status cifar_fill(struct dpf_source *source, struct dpf_batch *b,
                                  uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    struct cifar *s = (struct cifar *)source;
    uint8_t *x = b->tensor[0].data, *y = b->tensor[1].data;
    uint64_t done = 0;
    while (done < want) {
        size_t n;
        int bad = 0;
        enum dpf_status status = read_block(s, want - done, &n, e);
        if (status != DPF_OK)
            return status;
        if (n == 0)
            break;
        for (size_t i = 0; i < n; i++, done++) {
            const unsigned char *record = s->block + i * RECORD;
            y[done] = record[0];
            bad |= record[0] >= CLASSES;
            memcpy(x + done * PIXELS, record + 1, PIXELS);
        }
        if (bad)
            return dpf_fail(e, DPF_BAD_STREAM, "'%s' has a label outside its 10 classes",
                            dpf_bytes_name(s->now));
    }
    *filled = done;
    return DPF_OK;
}

static void cifar_destroy(struct dpf_source *source)
{
    struct cifar *s = (struct cifar *)source;
    dpf_bytes_destroy(&s->now);
    for (size_t i = 0; i < s->count; i++)
        free(s->paths[i]);
    free(s->paths);
    free(s);
}

static enum dpf_status cifar_init(struct dpf_source **take, struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {.fill = cifar_fill,
                                              .destroy = cifar_destroy};
    const struct dpf_shape picture = {.rank = 3, .dim = {3, 32, 32}}, scalar = {0};
    struct cifar *s = dpf_calloc(1, sizeof *s);
    if (!s)
        return dpf_fail_memory(e);
    s->source.ops = &ops;
    struct dpf_field *x = dpf_header_add_field(&s->source.header, "x", DPF_U8, &picture);
    dpf_header_add_field(&s->source.header, "y", DPF_U8, &scalar)->classes = CLASSES;
    *take = &s->source;
    enum dpf_status status = dpf_field_set_bounds(x, 0, 255, e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

/* A plain file's size tells its records; one that cannot be right is refused now rather
 * than after an hour of training. */
static enum dpf_status count_records(struct dpf_header *h, const struct dpf_bytes *b,
                                     struct dpf_error *e)
{
    uint64_t size;
    if (!dpf_bytes_known_size(b, &size)) {
        h->has_records = false;
        return DPF_OK;
    }
    h->records += size / RECORD;
    return size == 0 || size % RECORD ? not_whole(b, e) : DPF_OK;
}

static enum dpf_status add_path(struct cifar *s, const char *path, struct dpf_error *e)
{
    struct dpf_bytes *b;
    if (!(s->paths[s->count] = dpf_strdup(path)))
        return dpf_fail_memory(e);
    s->count++;
    enum dpf_status status = dpf_bytes_open(path, &b, e);
    if (status != DPF_OK)
        return status;
    status = count_records(&s->source.header, b, e);
    dpf_bytes_destroy(&b);
    return status;
}

enum dpf_status dpf_cifar_open(const char *const *paths, size_t count,
                               struct dpf_source **take, struct dpf_error *e)
{
    enum dpf_status status = cifar_init(take, e);
    if (status != DPF_OK)
        return status;
    struct cifar *s = (struct cifar *)*take;
    s->source.header.has_records = true;
    s->paths = dpf_calloc(count, sizeof *s->paths);
    if (!s->paths)
        status = dpf_fail_memory(e);
    for (size_t i = 0; i < count && status == DPF_OK; i++)
        status = add_path(s, paths[i], e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    else if (!s->source.header.has_records)
        s->source.header.records = 0;
    return status;
}

enum dpf_status dpf_cifar_new(struct dpf_bytes *take_bytes, struct dpf_source **take,
                              struct dpf_error *e)
{
    enum dpf_status status = cifar_init(take, e);
    if (status != DPF_OK) {
        dpf_bytes_destroy(&take_bytes);
        return status;
    }
    struct cifar *s = (struct cifar *)*take;
    s->now = take_bytes;
    s->fresh = true;
    s->source.header.has_records = true;
    status = count_records(&s->source.header, take_bytes, e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

static enum dpf_status open_request(const struct dpf_load_request *q,
                                    struct dpf_source **take, struct dpf_error *e)
{
    return dpf_cifar_open(q->names, q->name_count, take, e);
}

const struct dpf_format dpf_format_cifar = {
    .title = "CIFAR-10 binary",
    .endings = DPF_ENDINGS(".bin"),
    .gives = "x u8 3x32x32, y",

    .many = true,
    .open = open_request,
};
