#include "data/idx.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/formats.h"

#include "base/banned.h"

struct idx {
    struct dpf_source source;
    struct dpf_bytes *images, *labels;
    size_t record_bytes;
    uint64_t left; /* records */
    uint64_t classes;
    bool ended; /* nothing follows the last record: seen */
};

struct idx_head {
    enum dpf_dtype dtype;
    uint64_t records;
    struct dpf_shape record;
    size_t record_bytes;
};

static uint32_t big_endian(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static enum dpf_dtype element_type(unsigned char code)
{
    switch (code) {
    case 0x08:
        return DPF_U8;
    case 0x0c:
        return DPF_I32;
    case 0x0d:
        return DPF_F32;
    case 0x0e:
        return DPF_F64;
    default:
        return DPF_DTYPE_COUNT;
    }
}

/* The sizes of a header that was read, held against what the file can hold. */
static enum dpf_status check_sizes(const struct dpf_bytes *b, struct idx_head *head,
                                   struct dpf_error *e)
{
    uint64_t total;
    for (int i = 0; i < head->record.rank; i++)
        if (head->record.dim[i] == 0)
            return dpf_fail(e, DPF_BAD_STREAM, "'%s' has records of size 0",
                            dpf_bytes_name(b));
    if (!dpf_shape_bytes(head->dtype, &head->record, &head->record_bytes) ||
        head->record_bytes > DPF_MAX_RECORD_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has records larger than 256 MiB",
                        dpf_bytes_name(b));
    if (__builtin_mul_overflow(head->records, head->record_bytes, &total) ||
        !dpf_bytes_can_hold(b, total))
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' ends early", dpf_bytes_name(b));
    return DPF_OK;
}

static enum dpf_status read_head(struct dpf_bytes *b, struct idx_head *head,
                                 struct dpf_error *e)
{
    unsigned char magic[4], dims[4 * DPF_MAX_RANK];
    enum dpf_status status = dpf_bytes_read_exact(b, magic, sizeof magic, "header", e);
    if (status != DPF_OK)
        return status;
    if (magic[0] || magic[1])
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' is not an idx file", dpf_bytes_name(b));
    *head = (struct idx_head){.dtype = element_type(magic[2])};
    if (head->dtype == DPF_DTYPE_COUNT)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' has the idx type 0x%02x, not u8, i32, "
                        "f32 or f64",
                        dpf_bytes_name(b), magic[2]);
    if (magic[3] == 0 || magic[3] > DPF_MAX_RANK)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has %d dimensions, not 1 to %d",
                        dpf_bytes_name(b), magic[3], DPF_MAX_RANK);
    status = dpf_bytes_read_exact(b, dims, 4u * magic[3], "header", e);
    if (status != DPF_OK)
        return status;
    head->records = big_endian(dims);
    head->record.rank = magic[3] - 1;
    for (int i = 0; i < head->record.rank; i++)
        head->record.dim[i] = big_endian(dims + 4 * (i + 1));
    return check_sizes(b, head, e);
}

static void swap32(void *data, size_t count)
{
    uint32_t *p = data;
    for (size_t i = 0; i < count; i++)
        p[i] = __builtin_bswap32(p[i]);
}

static void swap64(void *data, size_t count)
{
    uint64_t *p = data;
    for (size_t i = 0; i < count; i++)
        p[i] = __builtin_bswap64(p[i]);
}

/* From the file's byte order to ours; false if a value is not finite. */
static bool to_host(enum dpf_dtype dtype, void *data, size_t bytes)
{
    int bad = 0;
    switch (dtype) {
    case DPF_I32:
        swap32(data, bytes / 4);
        break;
    case DPF_F32:
        swap32(data, bytes / 4);
        for (size_t i = 0; i < bytes / 4; i++)
            bad |= !isfinite(((const float *)data)[i]);
        break;
    case DPF_F64:
        swap64(data, bytes / 8);
        for (size_t i = 0; i < bytes / 8; i++)
            bad |= !isfinite(((const double *)data)[i]);
        break;
    default:
        break;
    }
    return !bad;
}

static enum dpf_status read_labels(struct idx *s, uint8_t *to, uint64_t count,
                                   struct dpf_error *e)
{
    enum dpf_status status =
        dpf_bytes_read_exact(s->labels, to, (size_t)count, "labels", e);
    if (status != DPF_OK || s->classes == 0)
        return status;
    int bad = 0;
    for (uint64_t i = 0; i < count; i++)
        bad |= to[i] >= s->classes;
    if (bad)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has a label outside its %llu classes",
                        dpf_bytes_name(s->labels), (unsigned long long)s->classes);
    return DPF_OK;
}

static enum dpf_status expect_ends(struct idx *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_bytes_expect_end(s->images, e);
    if (status == DPF_OK && s->labels)
        status = dpf_bytes_expect_end(s->labels, e);
    s->ended = status == DPF_OK;
    return status;
}

static enum dpf_status idx_fill(struct dpf_source *source, struct dpf_batch *b,
                                uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    struct idx *s = (struct idx *)source;
    uint64_t n = want < s->left ? want : s->left;
    size_t bytes = (size_t)n * s->record_bytes;
    enum dpf_status status =
        dpf_bytes_read_exact(s->images, b->tensor[0].data, bytes, "data", e);
    if (status == DPF_OK && !to_host(b->tensor[0].dtype, b->tensor[0].data, bytes))
        status = dpf_fail(e, DPF_BAD_STREAM, "'%s' has a value that is not finite",
                          dpf_bytes_name(s->images));
    if (status == DPF_OK && s->labels)
        status = read_labels(s, b->tensor[1].data, n, e);
    if (status != DPF_OK)
        return status;
    s->left -= n;
    *filled = n;
    /* A file with more than it declares is found before its last batch goes out. */
    return s->left || s->ended ? DPF_OK : expect_ends(s, e);
}

static void idx_destroy(struct dpf_source *source)
{
    struct idx *s = (struct idx *)source;
    dpf_bytes_destroy(&s->images);
    dpf_bytes_destroy(&s->labels);
    free(s);
}

static enum dpf_status add_labels(struct idx *s, uint64_t records, struct dpf_error *e)
{
    struct idx_head head;
    enum dpf_status status = read_head(s->labels, &head, e);
    if (status != DPF_OK)
        return status;
    if (head.dtype != DPF_U8 || head.record.rank != 0)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' does not hold one u8 label a record",
                        dpf_bytes_name(s->labels));
    if (head.records != records)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' has %llu records where '%s' has %llu labels",
                        dpf_bytes_name(s->images), (unsigned long long)records,
                        dpf_bytes_name(s->labels), (unsigned long long)head.records);
    struct dpf_field *y =
        dpf_header_add_field(&s->source.header, "y", DPF_U8, &head.record);
    y->classes = s->classes;
    return DPF_OK;
}

static enum dpf_status idx_start(struct idx *s, struct dpf_error *e)
{
    struct idx_head head;
    enum dpf_status status = read_head(s->images, &head, e);
    if (status != DPF_OK)
        return status;
    struct dpf_field *x =
        dpf_header_add_field(&s->source.header, "x", head.dtype, &head.record);
    s->source.header.has_records = true;
    s->source.header.records = s->left = head.records;
    s->record_bytes = head.record_bytes;
    if (head.dtype == DPF_U8)
        status = dpf_field_set_bounds(x, 0, 255, e);
    if (status == DPF_OK && s->labels)
        status = add_labels(s, head.records, e);
    return status;
}

enum dpf_status dpf_idx_new(struct dpf_bytes *take_images, struct dpf_bytes *take_labels,
                            uint64_t classes, struct dpf_source **take,
                            struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {.fill = idx_fill, .destroy = idx_destroy};
    struct idx *s = dpf_calloc(1, sizeof *s);
    if (!s) {
        dpf_bytes_destroy(&take_images);
        dpf_bytes_destroy(&take_labels);
        return dpf_fail_memory(e);
    }
    s->source.ops = &ops;
    s->images = take_images;
    s->labels = take_labels;
    s->classes = classes;
    *take = &s->source;
    enum dpf_status status = idx_start(s, e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

enum dpf_status dpf_idx_open(const char *images, const char *labels, uint64_t classes,
                             struct dpf_source **take, struct dpf_error *e)
{
    struct dpf_bytes *image_bytes = NULL, *label_bytes = NULL;
    enum dpf_status status = dpf_bytes_open(images, &image_bytes, e);
    if (status == DPF_OK && labels)
        status = dpf_bytes_open(labels, &label_bytes, e);
    if (status == DPF_OK)
        return dpf_idx_new(image_bytes, label_bytes, classes, take, e);
    dpf_bytes_destroy(&image_bytes);
    dpf_bytes_destroy(&label_bytes);
    return status;
}

static enum dpf_status open_request(const struct dpf_load_request *q,
                                    struct dpf_source **take, struct dpf_error *e)
{
    return dpf_idx_open(q->names[0], q->label_count ? q->labels[0] : NULL, q->classes,
                        take, e);
}

const struct dpf_format dpf_format_idx = {
    .title = "idx",
    .endings = DPF_ENDINGS("-ubyte", ".idx"),
    .gives = "x; with --labels FILE also y",
    .takes = DPF_TAKES("labels", "classes"),

    .open = open_request,
};
