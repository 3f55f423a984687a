#include "nn/safetensors_header.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#include "base/banned.h"

typedef unsigned long long ull; /* what %llu takes */

static const struct {
    const char *name;
    size_t size;
} elements[] = {
    [DPF_FILE_F32] = {"F32", 4},
    [DPF_FILE_F64] = {"F64", 8},
    [DPF_FILE_F16] = {"F16", 2},
    [DPF_FILE_BF16] = {"BF16", 2},
};

size_t dpf_element_size(enum dpf_element element)
{
    return elements[element].size;
}

/* ---- names ---- */

static bool is_utf8(const char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < size;) {
        size_t more = s[i] < 0x80 ? 0 : s[i] >= 0xf0 ? 3 : s[i] >= 0xe0 ? 2 : 1;
        if (more == 0) {
            i++;
            continue;
        }
        if (s[i] < 0xc2 || s[i] > 0xf4 || size - i <= more)
            return false;
        /* The second byte tells overlong forms, surrogates and what is beyond Unicode. */
        unsigned char low = s[i] == 0xe0 ? 0xa0 : s[i] == 0xf0 ? 0x90 : 0x80;
        unsigned char high = s[i] == 0xed ? 0x9f : s[i] == 0xf4 ? 0x8f : 0xbf;
        if (s[i + 1] < low || s[i + 1] > high)
            return false;
        for (size_t k = 2; k <= more; k++)
            if ((s[i + k] & 0xc0) != 0x80)
                return false;
        i += more + 1;
    }
    return true;
}

/* The C0 and C1 sets and DEL: a name is shown on terminals and compared as a C string. */
static bool has_control(const char *text, size_t size)
{
    const unsigned char *s = (const unsigned char *)text;
    for (size_t i = 0; i < size; i++)
        if (s[i] < 0x20 || s[i] == 0x7f ||
            (s[i] == 0xc2 && i + 1 < size && s[i + 1] < 0xa0))
            return true;
    return false;
}

const char *dpf_safetensors_name_fault(const char *name, size_t size)
{
    if (size == 0)
        return "is empty";
    if (size >= DPF_TENSOR_NAME)
        return "is longer than 127 bytes";
    if (!is_utf8(name, size))
        return "is not UTF-8";
    if (has_control(name, size))
        return "has a control character";
    return strcmp(name, DPF_SAFETENSORS_METADATA) == 0 ? "is that of the metadata" : NULL;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A name that is there twice, or NULL. Sorts. */
static const char *doubled_name(const char **names, size_t count)
{
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return names[i];
    return NULL;
}

enum dpf_status dpf_safetensors_find_doubled(const struct dpf_safetensors *s,
                                             const char **name, struct dpf_error *e)
{
    const char **names = dpf_calloc(s->count, sizeof *names);
    if (!names)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < s->count; i++)
        names[i] = s->tensors[i].name;
    *name = doubled_name(names, s->count);
    free(names);
    return DPF_OK;
}

/* ---- JSON, but only what the format can say: nothing nests freely ---- */

struct header {
    const char *start, *at, *end;
    const char *file; /* for messages */
    struct dpf_error *e;
    struct dpf_safetensors *s;
    struct dpf_extent *extents; /* one for each tensor */
    size_t capacity;
    struct dpf_text word; /* the last string, decoded */
};

static enum dpf_status malformed(const struct header *h, const char *expected)
{
    return dpf_fail(h->e, DPF_BAD_STREAM,
                    "'%s' has a malformed header: expected %s at byte %zu of it", h->file,
                    expected, (size_t)(h->at - h->start));
}

static void skip_space(struct header *h)
{
    while (h->at < h->end &&
           (*h->at == ' ' || *h->at == '\n' || *h->at == '\r' || *h->at == '\t'))
        h->at++;
}

static bool take(struct header *h, char c)
{
    skip_space(h);
    if (h->at == h->end || *h->at != c)
        return false;
    h->at++;
    return true;
}

/* After an opening bracket or an item: 1 if another item is due, 0 at the closing
 * bracket, -1 if there is neither. */
static int next_item(struct header *h, char close, bool *first)
{
    if (take(h, close))
        return 0;
    if (!*first && !take(h, ','))
        return -1;
    *first = false;
    return 1;
}

static bool take_hex(struct header *h, uint32_t *unit)
{
    *unit = 0;
    if (h->end - h->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = *h->at++;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

/* After "\u": one unit of UTF-16, or the two of a pair, as UTF-8. */
static bool take_unicode(struct header *h)
{
    uint32_t code, low;
    char out[4];
    size_t n = 0;
    if (!take_hex(h, &code) || (code >= 0xdc00 && code <= 0xdfff))
        return false;
    if (code >= 0xd800 && code <= 0xdbff) {
        if (h->end - h->at < 2 || h->at[0] != '\\' || h->at[1] != 'u')
            return false;
        h->at += 2;
        if (!take_hex(h, &low) || low < 0xdc00 || low > 0xdfff)
            return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code < 0x80) {
        out[n++] = (char)code;
    } else {
        int tails = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
        static const uint32_t lead[] = {0, 0xc0, 0xe0, 0xf0};
        out[n++] = (char)(lead[tails] | code >> (6 * tails));
        while (tails-- > 0)
            out[n++] = (char)(0x80 | (code >> (6 * tails) & 0x3f));
    }
    dpf_text_addn(&h->word, out, n);
    return true;
}

/* After a backslash. */
static bool take_escape(struct header *h)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (h->at == h->end)
        return false;
    char c = *h->at++;
    if (c == 'u')
        return take_unicode(h);
    const char *found = c ? strchr(letters, c) : NULL;
    if (!found)
        return false;
    dpf_text_addn(&h->word, meanings + (found - letters), 1);
    return true;
}

/* A string, decoded into h->word. That the header is UTF-8 was checked before. */
static bool take_string(struct header *h)
{
    dpf_text_reset(&h->word);
    if (!take(h, '"'))
        return false;
    for (;;) {
        const char *run = h->at;
        while (h->at < h->end && *h->at != '"' && *h->at != '\\' &&
               (unsigned char)*h->at >= 0x20)
            h->at++;
        dpf_text_addn(&h->word, run, (size_t)(h->at - run));
        if (h->at == h->end || (*h->at != '"' && *h->at != '\\'))
            return false;
        if (*h->at++ == '"')
            return !h->word.failed;
        if (!take_escape(h))
            return false;
    }
}

/* An unsigned integer as JSON writes it: no sign, no leading zero, no fraction. */
static bool take_number(struct header *h, uint64_t *value)
{
    uint64_t v = 0;
    skip_space(h);
    const char *start = h->at;
    for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
        if (__builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*h->at - '0'), &v))
            return false;
    *value = v;
    return h->at > start && (*start != '0' || h->at == start + 1);
}

static bool word_is(const struct header *h, const char *text)
{
    return h->word.size == strlen(text) && memcmp(h->word.data, text, h->word.size) == 0;
}

/* The last string for a message: it may be long, or made to play with a terminal. */
static const char *shown_word(const struct header *h)
{
    bool plain = h->word.size <= 32 && !has_control(h->word.data, h->word.size);
    return plain ? h->word.data : "?";
}

/* ---- the parts of the header ---- */

/* `keys` holds `count` strings, each with its NUL. */
static enum dpf_status check_metadata_keys(const struct header *h,
                                           const struct dpf_text *keys, size_t count)
{
    if (keys->failed)
        return dpf_fail_memory(h->e);
    const char **names = dpf_calloc(count, sizeof *names), *at = keys->data;
    if (!names)
        return dpf_fail_memory(h->e);
    for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
        names[i] = at;
    bool twice = doubled_name(names, count) != NULL;
    free(names);
    if (twice)
        return dpf_fail(h->e, DPF_BAD_STREAM, "'%s' has a key twice in its metadata",
                        h->file);
    return DPF_OK;
}

/* One "key": "value", the key with its NUL into `keys`. */
static enum dpf_status parse_metadata_item(struct header *h, struct dpf_text *keys)
{
    if (!take_string(h))
        return malformed(h, "a string");
    if (has_control(h->word.data, h->word.size))
        return dpf_fail(h->e, DPF_BAD_STREAM,
                        "'%s' has a control character in a key of its metadata", h->file);
    dpf_text_addn(keys, h->word.data, h->word.size + 1);
    if (!take(h, ':'))
        return malformed(h, "':'");
    return take_string(h) ? DPF_OK : malformed(h, "a string");
}

/* An object of strings; it stays in h from *start to h->at. */
static enum dpf_status parse_metadata(struct header *h, const char **start)
{
    struct dpf_text keys = {0};
    enum dpf_status status = DPF_OK;
    bool first = true;
    size_t count = 0;
    int more = 0;
    if (!take(h, '{'))
        return malformed(h, "'{'");
    *start = h->at - 1;
    while (status == DPF_OK && (more = next_item(h, '}', &first)) > 0) {
        if (count++ == DPF_MAX_NAMED_TENSORS)
            status = dpf_fail(h->e, DPF_BAD_STREAM, "'%s' has more than %d metadata keys",
                              h->file, DPF_MAX_NAMED_TENSORS);
        else
            status = parse_metadata_item(h, &keys);
    }
    if (status == DPF_OK && more < 0)
        status = malformed(h, "',' or '}'");
    if (status == DPF_OK)
        status = check_metadata_keys(h, &keys, count);
    dpf_text_release(&keys);
    return status;
}

static enum dpf_status parse_dtype(struct header *h, const struct dpf_named_tensor *t,
                                   enum dpf_element *element)
{
    if (!take_string(h))
        return malformed(h, "a string");
    for (int i = 0; i < (int)(sizeof elements / sizeof *elements); i++)
        if (word_is(h, elements[i].name)) {
            *element = (enum dpf_element)i;
            return DPF_OK;
        }
    return dpf_fail(h->e, DPF_BAD_STREAM,
                    "tensor '%s' of '%s' has dtype '%s', not F32, F64, F16 or BF16",
                    t->name, h->file, shown_word(h));
}

static enum dpf_status parse_shape(struct header *h, struct dpf_named_tensor *t)
{
    bool first = true;
    int more;
    if (!take(h, '['))
        return malformed(h, "'['");
    while ((more = next_item(h, ']', &first)) > 0) {
        if (t->shape.rank == DPF_MAX_RANK)
            return dpf_fail(h->e, DPF_BAD_STREAM,
                            "tensor '%s' of '%s' has more than %d dimensions", t->name,
                            h->file, DPF_MAX_RANK);
        if (!take_number(h, &t->shape.dim[t->shape.rank++]))
            return malformed(h, "an unsigned integer");
    }
    return more < 0 ? malformed(h, "',' or ']'") : DPF_OK;
}

static enum dpf_status parse_offsets(struct header *h, struct dpf_extent *x)
{
    if (!take(h, '[') || !take_number(h, &x->begin) || !take(h, ',') ||
        !take_number(h, &x->end) || !take(h, ']'))
        return malformed(h, "two unsigned integers in brackets");
    return DPF_OK;
}

/* The data must be as long as dtype and shape say. */
static enum dpf_status check_size(const struct header *h, struct dpf_named_tensor *t,
                                  const struct dpf_extent *x)
{
    char shape[176];
    size_t bytes;
    dpf_shape_format(&t->shape, shape, sizeof shape);
    if (!dpf_shape_bytes(DPF_F32, &t->shape, &bytes))
        return dpf_fail(h->e, DPF_BAD_STREAM,
                        "tensor '%s' of '%s' is too large: its shape is %s", t->name,
                        h->file, shape);
    if (x->begin > x->end)
        return dpf_fail(h->e, DPF_BAD_STREAM,
                        "tensor '%s' of '%s' begins at byte %llu, after its end at %llu",
                        t->name, h->file, (ull)x->begin, (ull)x->end);
    t->count = bytes / sizeof(float);
    uint64_t due = (uint64_t)t->count * elements[x->element].size;
    if (x->end - x->begin != due)
        return dpf_fail(h->e, DPF_BAD_STREAM,
                        "tensor '%s' of '%s' has %llu bytes of data where its dtype %s "
                        "and shape %s take %llu",
                        t->name, h->file, (ull)(x->end - x->begin),
                        elements[x->element].name, shape, (ull)due);
    return DPF_OK;
}

/* {"dtype": ..., "shape": [...], "data_offsets": [...]} in any order. */
static enum dpf_status parse_description(struct header *h, struct dpf_named_tensor *t,
                                         struct dpf_extent *x)
{
    enum { DTYPE = 1, SHAPE = 2, OFFSETS = 4 };
    unsigned seen = 0;
    bool first = true;
    int more;
    if (!take(h, '{'))
        return malformed(h, "'{'");
    while ((more = next_item(h, '}', &first)) > 0) {
        enum dpf_status status;
        if (!take_string(h) || !take(h, ':'))
            return malformed(h, "a string and ':'");
        unsigned key = word_is(h, "dtype")          ? DTYPE
                       : word_is(h, "shape")        ? SHAPE
                       : word_is(h, "data_offsets") ? OFFSETS
                                                    : 0;
        if (key == 0 || (seen & key))
            return dpf_fail(h->e, DPF_BAD_STREAM,
                            "tensor '%s' of '%s' has the %s key '%s'", t->name, h->file,
                            key ? "doubled" : "unknown", shown_word(h));
        seen |= key;
        status = key == DTYPE   ? parse_dtype(h, t, &x->element)
                 : key == SHAPE ? parse_shape(h, t)
                                : parse_offsets(h, x);
        if (status != DPF_OK)
            return status;
    }
    if (more < 0)
        return malformed(h, "',' or '}'");
    if (seen != (DTYPE | SHAPE | OFFSETS))
        return dpf_fail(h->e, DPF_BAD_STREAM,
                        "tensor '%s' of '%s' lacks its dtype, shape or data_offsets",
                        t->name, h->file);
    return check_size(h, t, x);
}

/* A tensor whose name is in h->word. */
static enum dpf_status parse_tensor(struct header *h)
{
    struct dpf_safetensors *s = h->s;
    const char *fault = dpf_safetensors_name_fault(h->word.data, h->word.size);
    if (fault)
        return dpf_fail(h->e, DPF_BAD_STREAM, "the name of tensor %zu of '%s' %s",
                        s->count + 1, h->file, fault);
    if (s->count == DPF_MAX_NAMED_TENSORS)
        return dpf_fail(h->e, DPF_BAD_STREAM, "'%s' has more than %d tensors", h->file,
                        DPF_MAX_NAMED_TENSORS);
    if (!dpf_grow(&s->tensors, &s->capacity, s->count + 1, sizeof *s->tensors) ||
        !dpf_grow(&h->extents, &h->capacity, s->count + 1, sizeof *h->extents))
        return dpf_fail_memory(h->e);
    struct dpf_named_tensor *t = &s->tensors[s->count];
    struct dpf_extent *x = &h->extents[s->count];
    *t = (struct dpf_named_tensor){0};
    *x = (struct dpf_extent){.index = s->count++};
    memcpy(t->name, h->word.data, h->word.size + 1);
    return parse_description(h, t, x);
}

static enum dpf_status parse_item(struct header *h)
{
    const char *start;
    if (!take_string(h) || !take(h, ':'))
        return malformed(h, "a string and ':'");
    if (!word_is(h, DPF_SAFETENSORS_METADATA))
        return parse_tensor(h);
    if (h->s->metadata)
        return dpf_fail(h->e, DPF_BAD_STREAM, "'%s' has its metadata twice", h->file);
    enum dpf_status status = parse_metadata(h, &start);
    if (status != DPF_OK)
        return status;
    h->s->metadata = dpf_strndup(start, (size_t)(h->at - start));
    return h->s->metadata ? DPF_OK : dpf_fail_memory(h->e);
}

static enum dpf_status parse_text(struct header *h)
{
    enum dpf_status status = DPF_OK;
    const char *twice = NULL;
    bool first = true;
    int more = 0;
    if (!is_utf8(h->start, (size_t)(h->end - h->start)))
        return dpf_fail(h->e, DPF_BAD_STREAM, "the header of '%s' is not UTF-8", h->file);
    if (h->at == h->end || *h->at++ != '{') /* the format allows no blanks here */
        return dpf_fail(h->e, DPF_BAD_STREAM,
                        "'%s' is no safetensors file: its header does not begin with '{'",
                        h->file);
    while (status == DPF_OK && (more = next_item(h, '}', &first)) > 0)
        status = parse_item(h);
    if (status != DPF_OK)
        return h->word.failed ? dpf_fail_memory(h->e) : status;
    if (more < 0)
        return malformed(h, "',' or '}'");
    skip_space(h);
    if (h->at != h->end)
        return malformed(h, "its end");
    status = dpf_safetensors_find_doubled(h->s, &twice, h->e);
    if (status == DPF_OK && twice)
        status =
            dpf_fail(h->e, DPF_BAD_STREAM, "'%s' has tensor '%s' twice", h->file, twice);
    return status;
}

/* ---- the data part ---- */

static int compare_extents(const void *a, const void *b)
{
    const struct dpf_extent *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end != y->end ? (x->end < y->end ? -1 : 1) : 0;
}

/* Sort the extents and see that they are the data part, each byte once. */
static enum dpf_status check_extents(struct header *h, uint64_t data_bytes)
{
    uint64_t at = 0;
    if (h->s->count)
        qsort(h->extents, h->s->count, sizeof *h->extents, compare_extents);
    for (size_t i = 0; i < h->s->count; i++) {
        const struct dpf_extent *x = &h->extents[i];
        const char *name = h->s->tensors[x->index].name;
        if (x->begin > at)
            return dpf_fail(h->e, DPF_BAD_STREAM,
                            "'%s' has a hole before tensor '%s': no tensor has bytes "
                            "%llu..%llu of the data",
                            h->file, name, (ull)at, (ull)x->begin);
        if (x->begin < at)
            return dpf_fail(h->e, DPF_BAD_STREAM, "tensors '%s' and '%s' of '%s' overlap",
                            h->s->tensors[h->extents[i - 1].index].name, name, h->file);
        if (x->end > data_bytes)
            return dpf_fail(h->e, DPF_BAD_STREAM,
                            "'%s' is truncated: tensor '%s' needs bytes %llu..%llu of a "
                            "data part of %llu bytes",
                            h->file, name, (ull)x->begin, (ull)x->end, (ull)data_bytes);
        at = x->end;
    }
    if (at != data_bytes)
        return dpf_fail(h->e, DPF_BAD_STREAM,
                        "'%s' has bytes after its data: %llu bytes belong to no tensor",
                        h->file, (ull)(data_bytes - at));
    return DPF_OK;
}

enum dpf_status dpf_safetensors_header_parse(struct dpf_safetensors *s, const char *text,
                                             size_t size, uint64_t data_bytes,
                                             const char *file,
                                             struct dpf_extent **take_extents,
                                             struct dpf_error *e)
{
    struct header h = {
        .start = text, .at = text, .end = text + size, .file = file, .e = e, .s = s};
    enum dpf_status status = parse_text(&h);
    if (status == DPF_OK)
        status = check_extents(&h, data_bytes);
    dpf_text_release(&h.word);
    if (status == DPF_OK)
        *take_extents = h.extents;
    else
        free(h.extents);
    return status;
}

bool dpf_safetensors_metadata_good(const char *text)
{
    struct header h = {.file = "metadata", .start = text, .at = text};
    const char *start = NULL;
    h.end = text + strlen(text);
    bool good = is_utf8(text, strlen(text)) && parse_metadata(&h, &start) == DPF_OK &&
                start == text && h.at == h.end;
    dpf_text_release(&h.word);
    return good;
}
