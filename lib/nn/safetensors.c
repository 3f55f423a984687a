#include "nn/safetensors.h"

#include <endian.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "nn/safetensors_header.h"

#include "base/banned.h"

typedef unsigned long long ull; /* what %llu takes */

enum { LENGTH_BYTES = 8, CHUNK_BYTES = 1 << 16 };

/* ---- reading ---- */

/* A file or memory, read from begin to end. */
struct source {
    const char *name;
    const uint8_t *bytes; /* NULL: read from fd */
    int fd;
    uint64_t size, at;
};

static enum dpf_status fetch(struct source *in, void *to, size_t size,
                             struct dpf_error *e)
{
    if (in->bytes) {
        memcpy(to, in->bytes + in->at, size);
    } else {
        long long got = dpf_read_full(in->fd, to, size);
        if (got < 0)
            return dpf_fail_errno(e, "cannot read '%s'", in->name);
        if ((size_t)got < size)
            return dpf_fail(e, DPF_BAD_STREAM,
                            "'%s' is truncated: it was cut while it was read", in->name);
    }
    in->at += size;
    return DPF_OK;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static float float_of_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31;
    uint32_t fraction = half & 0x3ff;
    if (exponent == 0) { /* zero and subnormals: multiples of 2^-24, exact as a float */
        float value = ldexpf((float)fraction, -24);
        return sign ? -value : value;
    }
    exponent = exponent == 31 ? 255 : exponent + (127 - 15);
    return float_of_bits(sign | exponent << 23 | fraction << 13);
}

/* False if a finite value is beyond every float. */
static bool convert(enum dpf_element element, const uint8_t *from, float *to,
                    size_t count)
{
    bool fits = true;
    for (size_t i = 0; i < count; i++) {
        uint64_t wide;
        uint32_t word;
        uint16_t half;
        double value;
        switch (element) {
        case DPF_FILE_F64:
            memcpy(&wide, from + 8 * i, 8);
            wide = le64toh(wide);
            memcpy(&value, &wide, 8);
            to[i] = (float)value;
            if (isfinite(value) && !isfinite(to[i]))
                fits = false;
            break;
        case DPF_FILE_F16:
        case DPF_FILE_BF16:
            memcpy(&half, from + 2 * i, 2);
            half = le16toh(half);
            to[i] = element == DPF_FILE_F16 ? float_of_half(half)
                                            : float_of_bits((uint32_t)half << 16);
            break;
        case DPF_FILE_F32:
            memcpy(&word, from + 4 * i, 4);
            to[i] = float_of_bits(le32toh(word));
        }
    }
    return fits;
}

static enum dpf_status load(struct source *in, enum dpf_element element,
                            struct dpf_named_tensor *t, struct dpf_error *e)
{
    uint8_t chunk[CHUNK_BYTES];
    size_t size = dpf_element_size(element), most = sizeof chunk / size;
    t->values = dpf_alloc_aligned(t->count * sizeof *t->values);
    if (!t->values)
        return dpf_fail_memory(e);
    for (size_t done = 0; done < t->count;) {
        size_t n = t->count - done < most ? t->count - done : most;
        enum dpf_status status = fetch(in, chunk, n * size, e);
        if (status != DPF_OK)
            return status;
        if (!convert(element, chunk, t->values + done, n))
            return dpf_fail(e, DPF_BAD_STREAM,
                            "tensor '%s' of '%s' has a value that is too large for F32",
                            t->name, in->name);
        done += n;
    }
    return DPF_OK;
}

static enum dpf_status read_header_size(struct source *in, size_t *size,
                                        struct dpf_error *e)
{
    uint64_t length;
    if (in->size < LENGTH_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' is truncated: it has %llu bytes, the length of its header "
                        "alone takes %d",
                        in->name, (ull)in->size, LENGTH_BYTES);
    enum dpf_status status = fetch(in, &length, sizeof length, e);
    if (status != DPF_OK)
        return status;
    length = le64toh(length);
    if (length > DPF_MAX_TENSORS_HEADER)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' is no safetensors file: its header would have %llu bytes, "
                        "more than %d",
                        in->name, (ull)length, DPF_MAX_TENSORS_HEADER);
    if (length > in->size - LENGTH_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "'%s' is truncated: its header needs %llu bytes, %llu are there",
                        in->name, (ull)length, (ull)(in->size - LENGTH_BYTES));
    *size = (size_t)length;
    return DPF_OK;
}

static enum dpf_status read_source(struct dpf_safetensors *s, struct source *in,
                                   struct dpf_error *e)
{
    struct dpf_extent *extents = NULL;
    size_t size = 0;
    *s = (struct dpf_safetensors){0};
    enum dpf_status status = read_header_size(in, &size, e);
    if (status != DPF_OK)
        return status;
    char *text = malloc(size + 1);
    if (!text)
        return dpf_fail_memory(e);
    status = fetch(in, text, size, e);
    if (status == DPF_OK)
        status = dpf_safetensors_header_parse(s, text, size, in->size - in->at, in->name,
                                              &extents, e);
    free(text);
    for (size_t i = 0; i < s->count && status == DPF_OK; i++)
        status = load(in, extents[i].element, &s->tensors[extents[i].index], e);
    if (status != DPF_OK)
        dpf_safetensors_release(s);
    free(extents);
    return status;
}

enum dpf_status dpf_safetensors_parse(struct dpf_safetensors *s, const uint8_t *bytes,
                                      size_t size, const char *name, struct dpf_error *e)
{
    struct source in = {.name = name,
                        .bytes = bytes ? bytes : (const uint8_t *)"",
                        .fd = -1,
                        .size = size};
    return read_source(s, &in, e);
}

/* A pipe has no size to hold its header against: take all of it first. */
static enum dpf_status read_pipe(struct dpf_safetensors *s, const char *path,
                                 struct dpf_error *e)
{
    char *bytes;
    size_t size;
    *s = (struct dpf_safetensors){0};
    enum dpf_status status = dpf_read_file(path, DPF_MAX_TENSOR_BYTES, &bytes, &size, e);
    if (status != DPF_OK)
        return status;
    status = dpf_safetensors_parse(s, (const uint8_t *)bytes, size, path, e);
    free(bytes);
    return status;
}

enum dpf_status dpf_safetensors_read(struct dpf_safetensors *s, const char *path,
                                     struct dpf_error *e)
{
    struct stat facts;
    if (!dpf_is_file(path))
        return read_pipe(s, path, e);
    struct source in = {.name = path, .fd = open(path, O_RDONLY | O_CLOEXEC)};
    *s = (struct dpf_safetensors){0};
    if (in.fd < 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    enum dpf_status status = DPF_OK;
    if (fstat(in.fd, &facts) != 0)
        status = dpf_fail_errno(e, "cannot read '%s'", path);
    in.size = status == DPF_OK ? (uint64_t)facts.st_size : 0;
    if (status == DPF_OK)
        status = read_source(s, &in, e);
    close(in.fd);
    return status;
}

/* ---- writing ---- */

static enum dpf_status check_tensors(const struct dpf_safetensors *s, struct dpf_error *e)
{
    const char *twice = NULL;
    if (s->count > DPF_MAX_NAMED_TENSORS)
        return dpf_fail(e, DPF_USAGE, "more than %d tensors", DPF_MAX_NAMED_TENSORS);
    for (size_t i = 0; i < s->count; i++) {
        const struct dpf_named_tensor *t = &s->tensors[i];
        size_t bytes;
        const char *fault =
            dpf_safetensors_name_fault(t->name, strnlen(t->name, sizeof t->name));
        if (fault)
            return dpf_fail(e, DPF_USAGE, "the name of tensor %zu %s", i + 1, fault);
        if (!dpf_shape_bytes(DPF_F32, &t->shape, &bytes) || bytes / 4 != t->count)
            return dpf_fail(e, DPF_USAGE, "tensor '%s' has not the values of its shape",
                            t->name);
    }
    enum dpf_status status = dpf_safetensors_find_doubled(s, &twice, e);
    if (status == DPF_OK && twice)
        status = dpf_fail(e, DPF_USAGE, "tensor '%s' is there twice", twice);
    return status;
}

static void compose_header(const struct dpf_safetensors *s, struct dpf_text *out)
{
    uint64_t at = 0;
    dpf_text_add(out, "{");
    if (s->metadata)
        dpf_text_addf(out, "\"" DPF_SAFETENSORS_METADATA "\":%s%s", s->metadata,
                      s->count ? "," : "");
    for (size_t i = 0; i < s->count; i++) {
        const struct dpf_named_tensor *t = &s->tensors[i];
        dpf_text_add(out, i ? "," : "");
        dpf_text_add_json(out, t->name, strlen(t->name));
        dpf_text_add(out, ":{\"dtype\":\"F32\",\"shape\":[");
        for (int k = 0; k < t->shape.rank; k++)
            dpf_text_addf(out, "%s%llu", k ? "," : "", (ull)t->shape.dim[k]);
        dpf_text_addf(out, "],\"data_offsets\":[%llu,%llu]}", (ull)at,
                      (ull)(at + t->count * sizeof(float)));
        at += t->count * sizeof(float);
    }
    dpf_text_add(out, "}");
    while (!out->failed && (out->size + LENGTH_BYTES) % DPF_ALIGNMENT)
        dpf_text_add(out, " ");
}

static bool write_values(int fd, const struct dpf_named_tensor *t)
{
    uint32_t chunk[CHUNK_BYTES / 4];
    size_t most = sizeof chunk / sizeof *chunk;
    for (size_t done = 0; done < t->count;) {
        size_t n = t->count - done < most ? t->count - done : most;
        memcpy(chunk, t->values + done, n * sizeof *chunk);
        for (size_t i = 0; i < n; i++)
            chunk[i] = htole32(chunk[i]);
        if (!dpf_write_all(fd, chunk, n * sizeof *chunk))
            return false;
        done += n;
    }
    return true;
}

static enum dpf_status write_all(const struct dpf_safetensors *s, const char *path,
                                 const struct dpf_text *header, struct dpf_error *e)
{
    struct dpf_outfile f;
    uint64_t length = htole64((uint64_t)header->size);
    enum dpf_status status = dpf_outfile_open(&f, path, e);
    if (status != DPF_OK)
        return status;
    bool good = dpf_write_all(f.fd, &length, sizeof length) &&
                dpf_write_all(f.fd, header->data, header->size);
    for (size_t i = 0; i < s->count && good; i++)
        good = write_values(f.fd, &s->tensors[i]);
    if (good)
        return dpf_outfile_commit(&f, e);
    status = dpf_fail_errno(e, "cannot write '%s'", path);
    dpf_outfile_abort(&f);
    return status;
}

enum dpf_status dpf_safetensors_write(const struct dpf_safetensors *s, const char *path,
                                      struct dpf_error *e)
{
    struct dpf_text header = {0};
    enum dpf_status status = check_tensors(s, e);
    if (status == DPF_OK && s->metadata && !dpf_safetensors_metadata_good(s->metadata))
        status = dpf_fail(e, DPF_USAGE, "the metadata is no JSON object of strings");
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot write '%s'", path);
    compose_header(s, &header);
    if (header.failed)
        status = dpf_fail_memory(e);
    else if (header.size > DPF_MAX_TENSORS_HEADER)
        status = dpf_fail(e, DPF_USAGE, "cannot write '%s': its header is over %d bytes",
                          path, DPF_MAX_TENSORS_HEADER);
    else
        status = write_all(s, path, &header, e);
    dpf_text_release(&header);
    return status;
}

/* ---- the collection ---- */

struct dpf_named_tensor *dpf_safetensors_find(const struct dpf_safetensors *s,
                                              const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

enum dpf_status dpf_safetensors_add(struct dpf_safetensors *s, const char *name,
                                    const struct dpf_shape *shape, const float *values,
                                    struct dpf_error *e)
{
    struct dpf_named_tensor t = {.shape = *shape};
    const char *fault = dpf_safetensors_name_fault(name, strlen(name));
    size_t bytes;
    if (fault)
        return dpf_fail(e, DPF_USAGE, "the name of tensor '%.127s' %s", name, fault);
    if (dpf_safetensors_find(s, name))
        return dpf_fail(e, DPF_USAGE, "tensor '%s' is there already", name);
    if (s->count >= DPF_MAX_NAMED_TENSORS)
        return dpf_fail(e, DPF_USAGE, "more than %d tensors", DPF_MAX_NAMED_TENSORS);
    if (!dpf_shape_bytes(DPF_F32, shape, &bytes))
        return dpf_fail(e, DPF_USAGE, "tensor '%s' has a bad shape", name);
    if (!dpf_grow(&s->tensors, &s->capacity, s->count + 1, sizeof *s->tensors))
        return dpf_fail_memory(e);
    t.values = dpf_alloc_aligned(bytes);
    if (!t.values)
        return dpf_fail_memory(e);
    memcpy(t.name, name, strlen(name) + 1);
    t.count = bytes / sizeof(float);
    if (bytes)
        memcpy(t.values, values, bytes);
    s->tensors[s->count++] = t;
    return DPF_OK;
}

void dpf_safetensors_release(struct dpf_safetensors *s)
{
    for (size_t i = 0; i < s->count; i++)
        free(s->tensors[i].values);
    free(s->tensors);
    free(s->metadata);
    *s = (struct dpf_safetensors){0};
}
