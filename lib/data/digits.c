/* The embedded data set: datasets/digits.mp, a stream of our own format, linked into the
 * program so that a fresh clone has real data. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/catalog.h"
#include "data/sets.h"

#include "base/banned.h"

enum { DIGITS_RECORDS = 1797, DIGITS_TRAIN = 1437, DIGITS_PIXELS = 64 };

__asm__(".section .rodata\n"
        ".balign 64\n"
        "dpf_digits_begin:\n"
        ".incbin \"datasets/digits.mp\"\n"
        "dpf_digits_end:\n"
        ".balign 64\n"
        ".byte 0\n"
        ".previous\n");
extern const unsigned char dpf_digits_begin[], dpf_digits_end[];

struct digits {
    struct dpf_source source;
    unsigned char *pixels, *labels; /* all records */
    uint64_t next, end;
};

static enum dpf_status digits_fill(struct dpf_source *source, struct dpf_batch *b,
                                   uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    (void)e;
    struct digits *d = (struct digits *)source;
    uint64_t n = d->end - d->next < want ? d->end - d->next : want;
    memcpy(b->tensor[0].data, d->pixels + d->next * DIGITS_PIXELS, n * DIGITS_PIXELS);
    memcpy(b->tensor[1].data, d->labels + d->next, n);
    d->next += n;
    *filled = n;
    return DPF_OK;
}

static void digits_destroy(struct dpf_source *source)
{
    struct digits *d = (struct digits *)source;
    free(d->pixels);
    free(d->labels);
    free(d);
}

static const struct dpf_source_ops digits_ops = {digits_fill, digits_destroy};

/* Copy one batch of the embedded stream behind the records that are there already. */
static enum dpf_status take_batch(struct digits *d, const msgpack_object *root,
                                  struct dpf_error *e)
{
    const msgpack_object *fields = dpf_object_get(root, "fields");
    struct dpf_tensor x = {0}, y = {0};
    enum dpf_status status = dpf_object_tensor(dpf_object_get(fields, "x"), &x, e);
    if (status == DPF_OK)
        status = dpf_object_tensor(dpf_object_get(fields, "y"), &y, e);
    if (status == DPF_OK &&
        (x.dtype != DPF_U8 || y.dtype != DPF_U8 || x.bytes != y.bytes * DIGITS_PIXELS ||
         d->end + y.bytes > DIGITS_RECORDS))
        status = dpf_fail(e, DPF_BAD_STREAM, "the embedded digits are damaged");
    if (status == DPF_OK) {
        memcpy(d->pixels + d->end * DIGITS_PIXELS, x.data, x.bytes);
        memcpy(d->labels + d->end, y.data, y.bytes);
        d->end += y.bytes;
    }
    dpf_tensor_release(&x);
    dpf_tensor_release(&y);
    return status;
}

static enum dpf_status read_embedded(struct digits *d, struct dpf_error *e)
{
    struct dpf_decoder decoder = {0};
    enum dpf_status status = DPF_OK;
    size_t left = (size_t)(dpf_digits_end - dpf_digits_begin), size;
    for (const unsigned char *at = dpf_digits_begin;
         status == DPF_OK && left >= DPF_PREAMBLE_BYTES; at += size, left -= size) {
        status = dpf_preamble_parse(at, &size, e);
        if (status != DPF_OK || size > left)
            break;
        struct dpf_frame frame = {.data = (unsigned char *)at, .size = size};
        status = dpf_decoder_read(&decoder, &frame, e);
        if (status == DPF_OK &&
            dpf_object_is_string(dpf_object_get(&decoder.root, "type"), "batch"))
            status = take_batch(d, &decoder.root, e);
    }
    dpf_decoder_release(&decoder);
    if (status == DPF_OK && d->end != DIGITS_RECORDS)
        status = dpf_fail(e, DPF_BAD_STREAM, "the embedded digits are damaged");
    return status;
}

static enum dpf_status declare(struct digits *d, struct dpf_error *e)
{
    struct dpf_header *h = &d->source.header;
    struct dpf_shape image = {.rank = 2, .dim = {8, 8}}, scalar = {0};
    struct dpf_field *x = dpf_header_add_field(h, "x", DPF_U8, &image);
    struct dpf_field *y = dpf_header_add_field(h, "y", DPF_U8, &scalar);
    y->classes = 10;
    h->has_records = true;
    h->records = d->end - d->next;
    return dpf_field_set_bounds(x, 0, 16, e);
}

enum dpf_status dpf_digits_open(bool train, bool test, struct dpf_source **take,
                                struct dpf_error *e)
{
    struct digits *d = dpf_calloc(1, sizeof *d);
    if (!d)
        return dpf_fail_memory(e);
    d->source.ops = &digits_ops;
    d->pixels = dpf_calloc(DIGITS_RECORDS, DIGITS_PIXELS);
    d->labels = dpf_calloc(DIGITS_RECORDS, 1);
    enum dpf_status status =
        d->pixels && d->labels ? read_embedded(d, e) : dpf_fail_memory(e);
    if (status == DPF_OK) {
        d->next = train ? 0 : DIGITS_TRAIN;
        d->end = test ? DIGITS_RECORDS : DIGITS_TRAIN;
        status = declare(d, e);
    }
    *take = &d->source;
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

static enum dpf_status open_set(const struct dpf_load_request *q,
                                const struct dpf_part *part, struct dpf_source **take,
                                struct dpf_error *e)
{
    (void)q;
    return dpf_digits_open(part->train, part->test, take, e);
}

const struct dpf_data_set dpf_set_digits = {
    .train = DIGITS_TRAIN,
    .test = DIGITS_RECORDS - DIGITS_TRAIN,
    .fields = "x u8 8x8, y 10 classes",
    .from = "embedded",
    .has_all = true,
    .open = open_set,
};
