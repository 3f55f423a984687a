#include "data/npy.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/formats.h"
#include "data/zip.h"

#include "base/banned.h"

enum { MAX_HEAD = 1 << 16 };

struct npy_head {
    enum dpf_dtype dtype;
    bool truth; /* b1: only 0 and 1 */
    struct dpf_shape shape;
    bool has_descr, has_order, has_shape;
};

struct array {
    struct dpf_bytes *bytes;
    size_t record_bytes;
    bool truth;
};

struct npy {
    struct dpf_source source;
    struct array arrays[DPF_MAX_FIELDS]; /* in the order of the header's fields */
    uint64_t classes;
    uint64_t left; /* records */
    bool ended;
};

/* ---- the dictionary ---- */

struct dict {
    const char *at, *end;
    const char *name; /* of the file */
    struct dpf_error *e;
};

static enum dpf_status malformed(struct dict *d)
{
    return dpf_fail(d->e, DPF_BAD_STREAM, "'%s' has a malformed npy header", d->name);
}

static void skip_space(struct dict *d)
{
    while (d->at < d->end && (*d->at == ' ' || *d->at == '\n' || *d->at == '\t'))
        d->at++;
}

static bool take_char(struct dict *d, char c)
{
    skip_space(d);
    if (d->at == d->end || *d->at != c)
        return false;
    d->at++;
    return true;
}

static bool take_word(struct dict *d, const char *word)
{
    size_t size = strlen(word);
    skip_space(d);
    if ((size_t)(d->end - d->at) < size || memcmp(d->at, word, size) != 0)
        return false;
    d->at += size;
    return true;
}

/* A string of plain characters: no escapes are due in any that we know. */
static bool take_string(struct dict *d, char *out, size_t room)
{
    size_t n = 0;
    skip_space(d);
    if (d->at == d->end || (*d->at != '\'' && *d->at != '"'))
        return false;
    char quote = *d->at++;
    for (; d->at < d->end && *d->at != quote; d->at++) {
        if (n + 1 == room || *d->at < 0x20 || *d->at == 0x7f || *d->at == '\\')
            return false;
        out[n++] = *d->at;
    }
    out[n] = '\0';
    return d->at++ < d->end;
}

static bool take_size(struct dict *d, uint64_t *value)
{
    uint64_t v = 0;
    skip_space(d);
    const char *start = d->at;
    for (; d->at < d->end && *d->at >= '0' && *d->at <= '9'; d->at++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*d->at - '0'), &v))
            return false;
    *value = v;
    return d->at > start;
}

static enum dpf_status parse_descr(struct dict *d, struct npy_head *h)
{
    static const struct {
        const char *descr;
        enum dpf_dtype dtype;
    } known[] = {{"|u1", DPF_U8},  {"|b1", DPF_U8},  {"<i4", DPF_I32},
                 {"<i8", DPF_I64}, {"<f4", DPF_F32}, {"<f8", DPF_F64}};
    char text[32];
    skip_space(d);
    if (d->at < d->end && (*d->at == '[' || *d->at == '('))
        return dpf_fail(d->e, DPF_BAD_STREAM, "'%s' has a structured dtype", d->name);
    if (!take_string(d, text, sizeof text))
        return malformed(d);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i].descr) == 0) {
            h->dtype = known[i].dtype;
            h->truth = text[1] == 'b';
            return DPF_OK;
        }
    if (strchr(text, 'O'))
        return dpf_fail(d->e, DPF_BAD_STREAM, "'%s' holds Python objects, not numbers",
                        d->name);
    if (text[0] == '>')
        return dpf_fail(d->e, DPF_BAD_STREAM,
                        "'%s' is big-endian; save it as little-endian", d->name);
    return dpf_fail(d->e, DPF_BAD_STREAM,
                    "'%s' has dtype '%s', not u1, b1, i4, i8, f4 or f8", d->name, text);
}

static enum dpf_status parse_order(struct dict *d)
{
    if (take_word(d, "True"))
        return dpf_fail(d->e, DPF_BAD_STREAM,
                        "'%s' is in Fortran order; save it in C order", d->name);
    return take_word(d, "False") ? DPF_OK : malformed(d);
}

/* "()", "(3,)" or "(3, 4)"; a comma may end any but the first. */
static enum dpf_status parse_shape(struct dict *d, struct dpf_shape *shape)
{
    bool comma = true;
    *shape = (struct dpf_shape){0};
    if (!take_char(d, '('))
        return malformed(d);
    while (!take_char(d, ')')) {
        uint64_t size;
        if (!comma || !take_size(d, &size))
            return malformed(d);
        if (shape->rank == DPF_MAX_RANK)
            return dpf_fail(d->e, DPF_BAD_STREAM, "'%s' has more than %d dimensions",
                            d->name, DPF_MAX_RANK);
        shape->dim[shape->rank++] = size;
        comma = take_char(d, ',');
    }
    if (shape->rank == 1 && !comma)
        return malformed(d); /* "(3)" is a number to Python */
    if (shape->rank == 0)
        return dpf_fail(d->e, DPF_BAD_STREAM, "'%s' is a single number without records",
                        d->name);
    return DPF_OK;
}

static enum dpf_status parse_entry(struct dict *d, struct npy_head *h)
{
    char key[24];
    if (!take_string(d, key, sizeof key) || !take_char(d, ':'))
        return malformed(d);
    if (strcmp(key, "descr") == 0 && !h->has_descr) {
        h->has_descr = true;
        return parse_descr(d, h);
    }
    if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
        h->has_order = true;
        return parse_order(d);
    }
    if (strcmp(key, "shape") == 0 && !h->has_shape) {
        h->has_shape = true;
        return parse_shape(d, &h->shape);
    }
    return malformed(d);
}

static enum dpf_status parse_dict(struct dict *d, struct npy_head *h)
{
    bool comma = true;
    *h = (struct npy_head){0};
    if (!take_char(d, '{'))
        return malformed(d);
    while (!take_char(d, '}')) {
        enum dpf_status status = comma ? parse_entry(d, h) : malformed(d);
        if (status != DPF_OK)
            return status;
        comma = take_char(d, ',');
    }
    skip_space(d);
    if (d->at != d->end || !h->has_descr || !h->has_order || !h->has_shape)
        return malformed(d);
    return DPF_OK;
}

/* The bytes of the dictionary, which stand after the magic number and the version. */
static enum dpf_status read_length(struct dpf_bytes *b, size_t *size, struct dpf_error *e)
{
    unsigned char start[8];
    uint32_t length = 0;
    enum dpf_status status = dpf_bytes_read_exact(b, start, sizeof start, "header", e);
    if (status != DPF_OK)
        return status;
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' is not a npy file", dpf_bytes_name(b));
    if (start[6] < 1 || start[6] > 3 || start[7] != 0)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has npy version %d.%d, not 1, 2 or 3",
                        dpf_bytes_name(b), start[6], start[7]);
    status = dpf_bytes_read_exact(b, &length, start[6] == 1 ? 2 : 4, "header", e);
    *size = le32toh(length);
    if (status == DPF_OK && *size > MAX_HEAD)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has a npy header larger than 64 KiB",
                        dpf_bytes_name(b));
    return status;
}

static enum dpf_status read_head(struct dpf_bytes *b, struct npy_head *h,
                                 struct dpf_error *e)
{
    size_t size = 0;
    enum dpf_status status = read_length(b, &size, e);
    if (status != DPF_OK)
        return status;
    char *text = dpf_calloc(size, 1);
    if (!text)
        return dpf_fail_memory(e);
    status = dpf_bytes_read_exact(b, text, size, "header", e);
    if (status == DPF_OK) {
        struct dict d = {text, text + size, dpf_bytes_name(b), e};
        status = parse_dict(&d, h);
    }
    free(text);
    return status;
}

/* ---- the source ---- */

static enum dpf_status check_sizes(const struct dpf_bytes *b, const struct npy_head *h,
                                   struct dpf_shape *record, size_t *record_bytes,
                                   struct dpf_error *e)
{
    uint64_t total;
    *record = (struct dpf_shape){.rank = h->shape.rank - 1};
    for (int i = 0; i < record->rank; i++)
        if ((record->dim[i] = h->shape.dim[i + 1]) == 0)
            return dpf_fail(e, DPF_BAD_STREAM, "'%s' has records of size 0",
                            dpf_bytes_name(b));
    if (!dpf_shape_bytes(h->dtype, record, record_bytes) ||
        *record_bytes > DPF_MAX_RECORD_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has records larger than 256 MiB",
                        dpf_bytes_name(b));
    if (__builtin_mul_overflow(h->shape.dim[0], *record_bytes, &total) ||
        !dpf_bytes_can_hold(b, total))
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' ends early", dpf_bytes_name(b));
    return DPF_OK;
}

/* Read the head of the next array and declare it as a field. */
static enum dpf_status add_array(struct npy *s, struct dpf_bytes *take_bytes,
                                 const char *name, struct dpf_error *e)
{
    struct dpf_header *h = &s->source.header;
    struct array *a = &s->arrays[h->field_count];
    struct npy_head head;
    struct dpf_shape record;
    a->bytes = take_bytes;
    enum dpf_status status = read_head(a->bytes, &head, e);
    if (status == DPF_OK)
        status = check_sizes(a->bytes, &head, &record, &a->record_bytes, e);
    if (status != DPF_OK)
        return status;
    if (h->field_count && head.shape.dim[0] != s->left)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has %llu records, %llu are expected",
                        dpf_bytes_name(a->bytes), (unsigned long long)head.shape.dim[0],
                        (unsigned long long)s->left);
    struct dpf_field *f = dpf_header_add_field(h, name, head.dtype, &record);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' is there twice",
                        dpf_bytes_name(a->bytes));
    a->truth = head.truth;
    h->has_records = true;
    h->records = s->left = head.shape.dim[0];
    bool integer = head.dtype != DPF_F32 && head.dtype != DPF_F64;
    if (integer && s->classes && strcmp(name, "y") == 0)
        f->classes = s->classes;
    else if (head.dtype == DPF_U8)
        status = dpf_field_set_bounds(f, 0, head.truth ? 1 : 255, e);
    return status;
}

/* Labels below `classes`; a negative one becomes large. */
static bool labels_hold(enum dpf_dtype dtype, const void *data, size_t count,
                        uint64_t classes)
{
    int bad = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t label = dtype == DPF_U8    ? ((const uint8_t *)data)[i]
                         : dtype == DPF_I32 ? (uint64_t)((const int32_t *)data)[i]
                                            : (uint64_t)((const int64_t *)data)[i];
        bad |= label >= classes;
    }
    return !bad;
}

static bool all_finite(enum dpf_dtype dtype, const void *data, size_t count)
{
    int bad = 0;
    if (dtype == DPF_F32)
        for (size_t i = 0; i < count; i++)
            bad |= !isfinite(((const float *)data)[i]);
    else if (dtype == DPF_F64)
        for (size_t i = 0; i < count; i++)
            bad |= !isfinite(((const double *)data)[i]);
    return !bad;
}

static enum dpf_status check_values(const struct array *a, const struct dpf_field *f,
                                    const void *data, size_t bytes, struct dpf_error *e)
{
    size_t count = bytes / dpf_dtype_size(f->dtype);
    const char *name = dpf_bytes_name(a->bytes);
    if (!all_finite(f->dtype, data, count))
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has a value that is not finite", name);
    if (a->truth && !labels_hold(DPF_U8, data, count, 2))
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has a truth value other than 0 and 1",
                        name);
    if (f->classes && !labels_hold(f->dtype, data, count, f->classes))
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' has a label outside its %llu classes",
                        name, (unsigned long long)f->classes);
    return DPF_OK;
}

static enum dpf_status expect_ends(struct npy *s, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (int i = 0; i < s->source.header.field_count && status == DPF_OK; i++)
        status = dpf_bytes_expect_end(s->arrays[i].bytes, e);
    s->ended = status == DPF_OK;
    return status;
}

static enum dpf_status npy_fill(struct dpf_source *source, struct dpf_batch *b,
                                uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    struct npy *s = (struct npy *)source;
    uint64_t n = want < s->left ? want : s->left;
    for (int i = 0; i < s->source.header.field_count; i++) {
        struct array *a = &s->arrays[i];
        void *data = b->tensor[i].data;
        size_t bytes = (size_t)n * a->record_bytes;
        enum dpf_status status = dpf_bytes_read_exact(a->bytes, data, bytes, "data", e);
        if (status == DPF_OK)
            status = check_values(a, &s->source.header.fields[i], data, bytes, e);
        if (status != DPF_OK)
            return status;
    }
    s->left -= n;
    *filled = n;
    /* A failed CRC is found before the last batch goes out. */
    return s->left || s->ended ? DPF_OK : expect_ends(s, e);
}

static void npy_destroy(struct dpf_source *source)
{
    struct npy *s = (struct npy *)source;
    for (int i = 0; i < DPF_MAX_FIELDS; i++)
        dpf_bytes_destroy(&s->arrays[i].bytes);
    free(s);
}

static struct npy *npy_make(uint64_t classes)
{
    static const struct dpf_source_ops ops = {.fill = npy_fill, .destroy = npy_destroy};
    struct npy *s = dpf_calloc(1, sizeof *s);
    if (s) {
        s->source.ops = &ops;
        s->classes = classes;
    }
    return s;
}

enum dpf_status dpf_npy_new(struct dpf_bytes *take_bytes, struct dpf_source **take,
                            struct dpf_error *e)
{
    struct npy *s = npy_make(0);
    if (!s) {
        dpf_bytes_destroy(&take_bytes);
        return dpf_fail_memory(e);
    }
    *take = &s->source;
    enum dpf_status status = add_array(s, take_bytes, "x", e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

/* ---- several arrays in a zip ---- */

/* The name of a member without ".npy", if it can name a field. */
static bool field_name(const unsigned char *name, size_t size, char out[DPF_NAME_BYTES])
{
    if (size <= 4 || size - 4 >= DPF_NAME_BYTES ||
        memcmp(name + size - 4, ".npy", 4) != 0)
        return false;
    for (size_t i = 0; i < size - 4; i++)
        if (name[i] <= 0x20 || name[i] >= 0x7f || name[i] == '\'')
            return false;
    memcpy(out, name, size - 4);
    out[size - 4] = '\0';
    return true;
}

static enum dpf_status add_member(struct npy *s, struct dpf_zip *z, const char *path,
                                  struct dpf_error *e)
{
    struct dpf_zip_member member;
    struct dpf_bytes *bytes = NULL;
    char field[DPF_NAME_BYTES];
    enum dpf_status status = dpf_zip_next(z, &member, e);
    if (status != DPF_OK)
        return status;
    if (!field_name(member.name, member.name_size, field))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' has a member that is not NAME.npy with a plain, short name",
                        path);
    status = dpf_zip_open_member(z, &member, field, &bytes, e);
    return status == DPF_OK ? add_array(s, bytes, field, e) : status;
}

static enum dpf_status npz_open(struct dpf_zip *z, const char *path, uint64_t classes,
                                struct dpf_source **take, struct dpf_error *e)
{
    uint64_t count = dpf_zip_count(z);
    if (count == 0 || count > DPF_MAX_FIELDS)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' does not hold 1 to %d arrays", path,
                        DPF_MAX_FIELDS);
    struct npy *s = npy_make(classes);
    if (!s)
        return dpf_fail_memory(e);
    *take = &s->source;
    enum dpf_status status = DPF_OK;
    for (uint64_t i = 0; i < count && status == DPF_OK; i++)
        status = add_member(s, z, path, e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

enum dpf_status dpf_npy_open(const char *path, uint64_t classes, struct dpf_source **take,
                             struct dpf_error *e)
{
    struct dpf_zip *zip;
    struct dpf_bytes *bytes;
    enum dpf_status status = dpf_zip_open(path, &zip, e);
    if (status == DPF_OK && zip) {
        status = npz_open(zip, path, classes, take, e);
        dpf_zip_destroy(&zip);
        return status;
    }
    if (status == DPF_OK)
        status = dpf_bytes_open(path, &bytes, e);
    return status == DPF_OK ? dpf_npy_new(bytes, take, e) : status;
}

static enum dpf_status open_request(const struct dpf_load_request *q,
                                    struct dpf_source **take, struct dpf_error *e)
{
    return dpf_npy_open(q->names[0], q->classes, take, e);
}

const struct dpf_format dpf_format_npy = {
    .title = "NumPy",
    .endings = DPF_ENDINGS(".npy", ".npz"),
    .gives = "x; of .npz a field for each array",
    .takes = DPF_TAKES("classes"),

    .open = open_request,
};
