#include "wire/encode.h"

#include <stdlib.h>
#include <string.h>

#include "wire/channel.h"

#include "base/banned.h"

static int write_meta(void *context, const char *bytes, size_t size)
{
    struct dpf_buffer *b = context;
    dpf_buffer_append(b, bytes, size);
    return dpf_buffer_ok(b) ? 0 : -1;
}

void dpf_pack_string(msgpack_packer *p, const char *string)
{
    msgpack_pack_str_with_body(p, string, strlen(string));
}

void dpf_encoder_begin(struct dpf_encoder *enc, const char *type, unsigned entries)
{
    dpf_buffer_reset(&enc->meta);
    enc->part_count = 0;
    enc->referenced = 0;
    enc->failed = entries + 2 > 15;
    msgpack_packer_init(&enc->packer, &enc->meta, write_meta);
    msgpack_pack_map(&enc->packer, entries + 2);
    dpf_encode_key(enc, "bytes");
    unsigned char size_later[9] = {0xcf}; /* uint64, always in its long form */
    dpf_buffer_append(&enc->meta, size_later, sizeof size_later);
    dpf_encode_key(enc, "type");
    dpf_encode_string(enc, type);
}

void dpf_encode_key(struct dpf_encoder *enc, const char *key)
{
    dpf_pack_string(&enc->packer, key);
}

void dpf_encode_string(struct dpf_encoder *enc, const char *string)
{
    dpf_pack_string(&enc->packer, string);
}

void dpf_encode_uint(struct dpf_encoder *enc, uint64_t value)
{
    msgpack_pack_uint64(&enc->packer, value);
}

void dpf_encode_real(struct dpf_encoder *enc, double value)
{
    msgpack_pack_double(&enc->packer, value);
}

void dpf_encode_shape(struct dpf_encoder *enc, const struct dpf_shape *shape)
{
    msgpack_pack_array(&enc->packer, (size_t)shape->rank);
    for (int i = 0; i < shape->rank; i++)
        msgpack_pack_uint64(&enc->packer, shape->dim[i]);
}

/* msgpack-numpy's keys are bytes objects, so they travel as `bin`. */
static void pack_bin_key(struct dpf_encoder *enc, const char *key)
{
    msgpack_pack_bin_with_body(&enc->packer, key, strlen(key));
}

void dpf_encode_tensor(struct dpf_encoder *enc, const struct dpf_tensor *t)
{
    static const char *const numpy[DPF_DTYPE_COUNT] = {"|u1", "<i4", "<i8",
                                                       "<f4", "<f8", "|u1"};
    static const unsigned char zeros[DPF_ALIGNMENT];
    bool bits = t->dtype == DPF_BITS;
    struct dpf_shape shape = t->shape;
    msgpack_pack_map(&enc->packer, bits ? 7 : 6);
    pack_bin_key(enc, "nd");
    msgpack_pack_true(&enc->packer);
    pack_bin_key(enc, "type");
    dpf_encode_string(enc, numpy[t->dtype]);
    pack_bin_key(enc, "kind");
    msgpack_pack_bin_with_body(&enc->packer, "", 0);
    pack_bin_key(enc, "shape");
    if (bits) {
        uint64_t *last = &shape.dim[shape.rank - 1], columns = *last;
        *last = (columns + 7) / 8;
        dpf_encode_shape(enc, &shape);
        pack_bin_key(enc, "bits");
        dpf_encode_uint(enc, columns);
    } else {
        dpf_encode_shape(enc, &shape);
    }
    pack_bin_key(enc, "pad");
    /* What stands between here and the data: the pad's own two bytes, the key, and the
     * data's length in one of its three forms. */
    size_t length_bytes = t->bytes < 256 ? 2 : t->bytes < 65536 ? 3 : 5;
    size_t data_at = enc->meta.size + enc->referenced + 2 + 6 + length_bytes;
    size_t pad = (DPF_ALIGNMENT - data_at % DPF_ALIGNMENT) % DPF_ALIGNMENT;
    msgpack_pack_bin_with_body(&enc->packer, zeros, pad);
    pack_bin_key(enc, "data");
    msgpack_pack_bin(&enc->packer, t->bytes);
    if (!dpf_grow(&enc->parts, &enc->part_capacity, enc->part_count + 1,
                  sizeof *enc->parts)) {
        enc->failed = true;
        return;
    }
    enc->parts[enc->part_count++] =
        (struct dpf_encoder_part){enc->meta.size, t->data, t->bytes};
    enc->referenced += t->bytes;
}

enum dpf_status dpf_encoder_end(struct dpf_encoder *enc, struct iovec **parts, int *count,
                                size_t *total, struct dpf_error *e)
{
    if (enc->failed || !dpf_buffer_ok(&enc->meta) ||
        !dpf_grow(&enc->iov, &enc->iov_capacity, 2 * enc->part_count + 1,
                  sizeof *enc->iov))
        return dpf_fail_memory(e);
    uint64_t size = enc->meta.size + enc->referenced;
    if (size > DPF_MAX_FRAME_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "a frame would be larger than any reader takes");
    for (int i = 0; i < 8; i++)
        enc->meta.data[8 + i] = (unsigned char)(size >> (56 - 8 * i));
    size_t from = 0;
    int n = 0;
    for (size_t i = 0; i < enc->part_count; i++) {
        const struct dpf_encoder_part *p = &enc->parts[i];
        enc->iov[n++] = (struct iovec){enc->meta.data + from, p->meta_end - from};
        enc->iov[n++] = (struct iovec){(void *)p->data, p->size};
        from = p->meta_end;
    }
    enc->iov[n++] = (struct iovec){enc->meta.data + from, enc->meta.size - from};
    *parts = enc->iov;
    *count = n;
    *total = (size_t)size;
    return DPF_OK;
}

void dpf_encoder_release(struct dpf_encoder *enc)
{
    dpf_buffer_release(&enc->meta);
    free(enc->parts);
    free(enc->iov);
    *enc = (struct dpf_encoder){0};
}

msgpack_packer dpf_values_packer(struct dpf_values *v)
{
    msgpack_packer p;
    msgpack_packer_init(&p, &v->bytes, write_meta);
    return p;
}

void dpf_values_append(struct dpf_values *v, const struct dpf_values *other)
{
    dpf_buffer_append(&v->bytes, other->bytes.data, other->bytes.size);
    v->count += other->count;
}

void dpf_values_append_object(struct dpf_values *v, const msgpack_object *o)
{
    msgpack_packer p = dpf_values_packer(v);
    msgpack_pack_object(&p, *o);
    v->count++;
}

bool dpf_values_same(const struct dpf_values *a, const struct dpf_values *b)
{
    return a->bytes.size == b->bytes.size &&
           (a->bytes.size == 0 ||
            memcmp(a->bytes.data, b->bytes.data, a->bytes.size) == 0);
}

void dpf_values_release(struct dpf_values *v)
{
    dpf_buffer_release(&v->bytes);
    v->count = 0;
}
