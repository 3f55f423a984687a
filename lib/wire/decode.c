#include "wire/decode.h"

#include <string.h>

#include "base/banned.h"

/* Body bytes and child values of the MessagePack value at `p`; the head's own size. */
struct value_head {
    size_t head;
    uint64_t body;
    uint64_t children;
};

static uint64_t big_endian(const unsigned char *p, int bytes)
{
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

/* A head whose length field has `width` bytes; false if it is cut off. */
static bool sized_head(const unsigned char *p, size_t left, int width, uint64_t *length)
{
    if (left < 1 + (size_t)width)
        return false;
    *length = big_endian(p + 1, width);
    return true;
}

static bool read_head(const unsigned char *p, size_t left, struct value_head *h)
{
    static const unsigned char fixed[] = {
        [0xca - 0xca] = 4, [0xcb - 0xca] = 8, [0xcc - 0xca] = 1,  [0xcd - 0xca] = 2,
        [0xce - 0xca] = 4, [0xcf - 0xca] = 8, [0xd0 - 0xca] = 1,  [0xd1 - 0xca] = 2,
        [0xd2 - 0xca] = 4, [0xd3 - 0xca] = 8, [0xd4 - 0xca] = 2,  [0xd5 - 0xca] = 3,
        [0xd6 - 0xca] = 5, [0xd7 - 0xca] = 9, [0xd8 - 0xca] = 17,
    };
    unsigned char c = p[0];
    uint64_t length;
    int width;
    *h = (struct value_head){.head = 1};
    if (c <= 0x7f || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3)
        return true;
    if (c <= 0x8f) {
        h->children = 2 * (uint64_t)(c & 15);
    } else if (c <= 0x9f) {
        h->children = c & 15;
    } else if (c <= 0xbf) {
        h->body = c & 31;
    } else if (c == 0xc1) {
        return false;
    } else if (c <= 0xc9) { /* bin 8/16/32, ext 8/16/32 */
        width = 1 << ((c - 0xc4) % 3);
        if (!sized_head(p, left, width, &length))
            return false;
        h->head += (size_t)width;
        h->body = length + (c >= 0xc7);
    } else if (c <= 0xd8) {
        h->body = fixed[c - 0xca];
    } else if (c <= 0xdb) { /* str 8/16/32 */
        width = 1 << (c - 0xd9);
        if (!sized_head(p, left, width, &length))
            return false;
        h->head += (size_t)width;
        h->body = length;
    } else { /* array 16/32, map 16/32 */
        width = c & 1 ? 4 : 2;
        if (!sized_head(p, left, width, &length))
            return false;
        h->head += (size_t)width;
        h->children = c >= 0xde ? 2 * length : length;
    }
    return true;
}

enum dpf_status dpf_frame_check(const unsigned char *data, size_t size,
                                struct dpf_error *e)
{
    uint64_t open[DPF_MAX_NESTING]; /* values still to come on each level */
    int depth = 0;
    size_t at = 0;
    uint64_t values = 0;
    for (;;) {
        struct value_head h;
        if (at >= size || !read_head(data + at, size - at, &h) ||
            h.body > size - at - h.head || h.children > size - at)
            return dpf_fail(e, DPF_BAD_STREAM,
                            "a frame holds malformed MessagePack at byte %zu", at);
        if (++values > DPF_MAX_FRAME_VALUES)
            return dpf_fail(e, DPF_BAD_STREAM, "a frame holds more than %d values",
                            DPF_MAX_FRAME_VALUES);
        at += h.head + (size_t)h.body;
        if (depth > 0)
            open[depth - 1]--;
        if (h.children) {
            if (depth == DPF_MAX_NESTING)
                return dpf_fail(e, DPF_BAD_STREAM,
                                "a frame nests more than %d levels deep",
                                DPF_MAX_NESTING);
            open[depth++] = h.children;
        }
        while (depth > 0 && open[depth - 1] == 0)
            depth--;
        if (depth == 0)
            break;
    }
    if (at != size)
        return dpf_fail(e, DPF_BAD_STREAM, "a frame is longer than its content");
    return DPF_OK;
}

enum dpf_status dpf_decoder_read(struct dpf_decoder *d, const struct dpf_frame *frame,
                                 struct dpf_error *e)
{
    size_t declared;
    if (frame->size < DPF_PREAMBLE_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM, "a frame is too short");
    enum dpf_status status = dpf_preamble_parse(frame->data, &declared, e);
    if (status != DPF_OK)
        return status;
    if (declared != frame->size)
        return dpf_fail(e, DPF_BAD_STREAM, "a frame's size is not what it declares");
    status = dpf_frame_check(frame->data, frame->size, e);
    if (status != DPF_OK)
        return status;
    if (d->zone)
        msgpack_zone_clear(d->zone);
    else if (!(d->zone = msgpack_zone_new(MSGPACK_ZONE_CHUNK_SIZE)))
        return dpf_fail_memory(e);
    size_t at = 0;
    if (msgpack_unpack((const char *)frame->data, frame->size, &at, d->zone, &d->root) !=
            MSGPACK_UNPACK_SUCCESS ||
        d->root.type != MSGPACK_OBJECT_MAP)
        return dpf_fail(e, DPF_BAD_STREAM, "a frame holds malformed MessagePack");
    return DPF_OK;
}

void dpf_decoder_release(struct dpf_decoder *d)
{
    if (d->zone)
        msgpack_zone_free(d->zone);
    *d = (struct dpf_decoder){0};
}

bool dpf_object_text(const msgpack_object *o, const char **text, size_t *size)
{
    if (!o)
        return false;
    if (o->type == MSGPACK_OBJECT_STR) {
        *text = o->via.str.ptr;
        *size = o->via.str.size;
        return true;
    }
    if (o->type == MSGPACK_OBJECT_BIN) {
        *text = o->via.bin.ptr;
        *size = o->via.bin.size;
        return true;
    }
    return false;
}

bool dpf_object_is_string(const msgpack_object *o, const char *string)
{
    const char *text;
    size_t size;
    return dpf_object_text(o, &text, &size) && size == strlen(string) &&
           memcmp(text, string, size) == 0;
}

const msgpack_object *dpf_object_get(const msgpack_object *map, const char *key)
{
    if (!map || map->type != MSGPACK_OBJECT_MAP)
        return NULL;
    for (uint32_t i = 0; i < map->via.map.size; i++)
        if (dpf_object_is_string(&map->via.map.ptr[i].key, key))
            return &map->via.map.ptr[i].val;
    return NULL;
}

bool dpf_object_uint(const msgpack_object *o, uint64_t *value)
{
    if (!o || o->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
        return false;
    *value = o->via.u64;
    return true;
}

bool dpf_object_real(const msgpack_object *o, double *value)
{
    if (!o)
        return false;
    if (o->type == MSGPACK_OBJECT_FLOAT32 || o->type == MSGPACK_OBJECT_FLOAT64)
        *value = o->via.f64;
    else if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER)
        *value = (double)o->via.u64;
    else if (o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER)
        *value = (double)o->via.i64;
    else
        return false;
    return true;
}

enum dpf_status dpf_object_shape(const msgpack_object *o, struct dpf_shape *shape,
                                 struct dpf_error *e)
{
    *shape = (struct dpf_shape){0};
    if (!o || o->type != MSGPACK_OBJECT_ARRAY)
        return dpf_fail(e, DPF_BAD_STREAM, "a shape is missing");
    if (o->via.array.size > DPF_MAX_RANK)
        return dpf_fail(e, DPF_BAD_STREAM, "a shape has more than %d dimensions",
                        DPF_MAX_RANK);
    shape->rank = (int)o->via.array.size;
    for (int i = 0; i < shape->rank; i++)
        if (!dpf_object_uint(&o->via.array.ptr[i], &shape->dim[i]))
            return dpf_fail(e, DPF_BAD_STREAM,
                            "a shape holds something that is no number");
    return DPF_OK;
}

static enum dpf_dtype numpy_dtype(const msgpack_object *type, const msgpack_object *bits)
{
    static const struct {
        const char *name;
        enum dpf_dtype dtype;
    } names[] = {{"|u1", DPF_U8},  {"<i4", DPF_I32}, {"<i8", DPF_I64},
                 {"<f4", DPF_F32}, {"<f8", DPF_F64}, {"u1", DPF_U8}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (dpf_object_is_string(type, names[i].name))
            return bits && names[i].dtype == DPF_U8 ? DPF_BITS : names[i].dtype;
    return DPF_DTYPE_COUNT;
}

enum dpf_status dpf_object_tensor(const msgpack_object *o, struct dpf_tensor *tensor,
                                  struct dpf_error *e)
{
    *tensor = (struct dpf_tensor){0};
    const msgpack_object *nd = dpf_object_get(o, "nd"), *bits = dpf_object_get(o, "bits");
    const msgpack_object *data = dpf_object_get(o, "data");
    if (!nd || nd->type != MSGPACK_OBJECT_BOOLEAN || !nd->via.boolean || !data ||
        data->type != MSGPACK_OBJECT_BIN)
        return dpf_fail(e, DPF_BAD_STREAM, "a value is not a tensor");
    enum dpf_dtype dtype = numpy_dtype(dpf_object_get(o, "type"), bits);
    if (dtype == DPF_DTYPE_COUNT)
        return dpf_fail(e, DPF_BAD_STREAM, "a tensor has an unknown dtype");
    struct dpf_shape shape;
    enum dpf_status status = dpf_object_shape(dpf_object_get(o, "shape"), &shape, e);
    if (status != DPF_OK)
        return status;
    if (dtype == DPF_BITS) {
        uint64_t columns;
        if (shape.rank == 0 || !dpf_object_uint(bits, &columns) ||
            columns > DPF_MAX_TENSOR_BYTES * 8 ||
            (columns + 7) / 8 != shape.dim[shape.rank - 1])
            return dpf_fail(e, DPF_BAD_STREAM, "packed bits do not fit their shape");
        shape.dim[shape.rank - 1] = columns;
    }
    size_t bytes;
    if (!dpf_shape_bytes(dtype, &shape, &bytes))
        return dpf_fail(e, DPF_BAD_STREAM, "a tensor is larger than 2^32-1 bytes");
    if (bytes != data->via.bin.size)
        return dpf_fail(e, DPF_BAD_STREAM, "a tensor's data does not fill its shape");
    size_t align = dpf_dtype_size(dtype);
    if (align > 1 && (uintptr_t)data->via.bin.ptr % align != 0) {
        status = dpf_tensor_init(tensor, dtype, &shape, e);
        if (status == DPF_OK && bytes)
            memcpy(tensor->data, data->via.bin.ptr, bytes);
        return status;
    }
    return dpf_tensor_view(tensor, dtype, &shape, (void *)data->via.bin.ptr, e);
}
