/* Streams: what is written is read, bit for bit; what is cut, damaged, out of order or
 * lying is refused as DPF_BAD_STREAM, whatever byte it is. */
#include <math.h>

#include "ledger/merge.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define SHAPE(...)                                                                       \
    (struct dpf_shape)                                                                   \
    {                                                                                    \
        .rank = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), .dim = {           \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

/* ---- headers and batches to test with ---- */

static struct dpf_field *add(struct dpf_header *h, const char *name, enum dpf_dtype dtype,
                             struct dpf_shape shape)
{
    struct dpf_field *f = dpf_header_add_field(h, name, dtype, &shape);
    CU_ASSERT_FATAL(f != NULL);
    return f;
}

static void add_event(struct dpf_values *v, const char *stage)
{
    msgpack_packer p = dpf_values_packer(v);
    msgpack_pack_map(&p, 1);
    dpf_pack_string(&p, "stage");
    dpf_pack_string(&p, stage);
    v->count++;
}

static void add_features(struct dpf_field *f, const char *const *names, size_t count)
{
    f->features = dpf_calloc(count, sizeof *f->features);
    CU_ASSERT_FATAL(f->features != NULL);
    for (size_t i = 0; i < count; i++)
        f->features[i] = dpf_strdup(names[i]);
    f->feature_count = count;
}

/* Every attribute once, every dtype once. */
static struct dpf_header full_header(void)
{
    static const char *const names[] = {"age", "hours worked", "\xc3\xa9t\xc3\xa9"};
    struct dpf_header h = {.has_records = true, .records = 5, .is_private = true};
    struct dpf_field *x = add(&h, "x", DPF_F32, SHAPE(3));
    add(&h, "y", DPF_U8, (struct dpf_shape){0})->classes = 10;
    add(&h, "i", DPF_I32, SHAPE(2, 2));
    add(&h, "j", DPF_I64, SHAPE(1))->classes = 1ull << 40;
    add(&h, "d", DPF_F64, SHAPE(2));
    add(&h, "b", DPF_BITS, SHAPE(2, 11));
    x->norm_l2 = 1.5;
    x->bounds.count = 3;
    x->bounds.lo = dpf_calloc(3, sizeof(double));
    x->bounds.hi = dpf_calloc(3, sizeof(double));
    CU_ASSERT_FATAL(x->bounds.lo && x->bounds.hi);
    for (int i = 0; i < 3; i++) {
        x->bounds.lo[i] = -i - 0.1;
        x->bounds.hi[i] = i + 1e300;
    }
    add_features(x, names, 3);
    CU_ASSERT_FATAL(dpf_field_set_bounds(&h.fields[4], -1, 1, NULL) == DPF_OK);
    add_event(&h.provenance, "load");
    add_event(&h.provenance, "normalize");
    add_event(&h.events, "fit");
    return h;
}

/* Distinct bytes everywhere, but labels stay in their range. */
static struct dpf_batch full_batch(const struct dpf_header *h, uint64_t rows, int salt)
{
    struct dpf_batch b;
    CU_ASSERT_FATAL(dpf_batch_init(&b, h, rows, NULL) == DPF_OK);
    for (int f = 0; f < b.count; f++)
        for (size_t i = 0; i < b.tensor[f].bytes; i++)
            ((unsigned char *)b.tensor[f].data)[i] =
                (unsigned char)((i * 37 + (size_t)(f + salt) * 11) % 251);
    for (int f = 0; f < b.count; f++)
        for (uint64_t i = 0; h->fields[f].classes && i < rows; i++)
            if (h->fields[f].dtype == DPF_U8)
                ((uint8_t *)b.tensor[f].data)[i] = (uint8_t)(i % h->fields[f].classes);
            else
                ((int64_t *)b.tensor[f].data)[i] = (int64_t)h->fields[f].classes - 1;
    return b;
}

static bool same_batch(const struct dpf_batch *a, const struct dpf_batch *b)
{
    bool same = a->rows == b->rows && a->count == b->count;
    for (int i = 0; same && i < a->count; i++)
        same = dpf_tensor_equal(&a->tensor[i], &b->tensor[i]);
    return same;
}

static struct dpf_stream_reader open_made(const struct maker *m)
{
    struct dpf_channel *c;
    struct dpf_stream_reader r;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_channel_from_memory(m->out.data, m->out.size, &c, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_stream_reader_open(&r, c, dpf_ledger_merge, &e) == DPF_OK);
    return r;
}

/* ---- round trips ---- */

static void check_header(struct dpf_header *got, const struct dpf_header *h)
{
    CU_ASSERT_FATAL(dpf_header_same_fields(got, h, NULL) == DPF_OK);
    CU_ASSERT(got->has_records && got->records == 5 && got->is_private);
    CU_ASSERT(got->provenance.count == 2 && got->events.count == 1);
    CU_ASSERT(got->provenance.bytes.size == h->provenance.bytes.size &&
              memcmp(got->provenance.bytes.data, h->provenance.bytes.data,
                     h->provenance.bytes.size) == 0);
    for (int i = 0; i < h->field_count; i++) {
        const struct dpf_field *f = &got->fields[i], *g = &h->fields[i];
        CU_ASSERT(f->classes == g->classes && f->norm_l2 == g->norm_l2);
        CU_ASSERT_FATAL(f->bounds.count == g->bounds.count);
        CU_ASSERT_FATAL(f->feature_count == g->feature_count);
        for (size_t k = 0; k < f->bounds.count; k++)
            CU_ASSERT(f->bounds.lo[k] == g->bounds.lo[k] &&
                      f->bounds.hi[k] == g->bounds.hi[k]);
        for (size_t k = 0; k < f->feature_count; k++)
            CU_ASSERT_STRING_EQUAL(f->features[k], g->features[k]);
    }
    CU_ASSERT(dpf_header_field(got, "d") == &got->fields[4]);
    CU_ASSERT(dpf_header_field(got, "z") == NULL);
}

static void write_full(struct dpf_buffer *sinks, size_t count, struct dpf_header *h,
                       const struct dpf_batch *batches, int batch_count)
{
    struct dpf_stream_writer w;
    struct dpf_error e = {0};
    struct dpf_channel **channels = dpf_calloc(count, sizeof *channels);
    CU_ASSERT_FATAL(channels != NULL);
    for (size_t i = 0; i < count; i++)
        CU_ASSERT_FATAL(dpf_channel_to_memory(&sinks[i], &channels[i], &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_stream_writer_init(&w, channels, count, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_stream_write_header(&w, h, &e) == DPF_OK);
    for (int i = 0; i < batch_count; i++)
        CU_ASSERT_FATAL(dpf_stream_write_batch(&w, &batches[i], &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_stream_writer_finish(&w, &e) == DPF_OK);
    CU_ASSERT(w.records == 5 && w.frames == 1 + (uint64_t)batch_count);
    CU_ASSERT(w.bytes == sinks[0].size);
    dpf_stream_writer_release(&w);
}

static void test_round_trip(void)
{
    struct dpf_header h = full_header();
    struct dpf_batch batches[] = {full_batch(&h, 3, 1), full_batch(&h, 0, 2),
                                  full_batch(&h, 2, 3)};
    struct maker m = {0};
    struct dpf_buffer both[2] = {0};
    struct dpf_error e = {0};
    enum dpf_item item;
    write_full(both, 2, &h, batches, 3);
    CU_ASSERT(both[0].size == both[1].size &&
              memcmp(both[0].data, both[1].data, both[0].size) == 0);
    m.out = both[0];
    struct dpf_stream_reader r = open_made(&m);
    check_header(&r.header, &h);
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_FATAL(dpf_stream_reader_next(&r, &item, &e) == DPF_OK);
        CU_ASSERT_FATAL(item == DPF_ITEM_BATCH);
        CU_ASSERT(same_batch(&r.batch, &batches[i]));
        /* Data is neither copied nor misaligned. */
        for (int f = 0; batches[i].rows && f < r.batch.count; f++) {
            unsigned char *data = r.batch.tensor[f].data;
            CU_ASSERT(!r.batch.tensor[f].owned);
            CU_ASSERT(data >= r.frame.data && data <= r.frame.data + r.frame.size);
            CU_ASSERT((size_t)(data - r.frame.data) % DPF_ALIGNMENT == 0);
        }
    }
    CU_ASSERT_FATAL(dpf_stream_reader_next(&r, &item, &e) == DPF_OK);
    CU_ASSERT(item == DPF_ITEM_END && r.records == 5 && r.frames == 4);
    CU_ASSERT(strncmp(r.digest, "xxh128:", 7) == 0 && r.bytes == m.out.size);
    dpf_stream_reader_release(&r);
    for (int i = 0; i < 3; i++)
        dpf_batch_release(&batches[i]);
    dpf_buffer_release(&both[0]);
    dpf_buffer_release(&both[1]);
    dpf_header_release(&h);
}

/* A tensor's data lies at a multiple of 64 for each length of the length field. */
static void test_alignment(void)
{
    static const uint64_t rows[] = {0, 1, 2, 63, 64, 255, 256, 300, 65535, 65536, 70001};
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++) {
        struct dpf_header h = {0};
        struct maker m = {0};
        enum dpf_item item;
        add(&h, "a-field-with-a-long-name", DPF_U8, (struct dpf_shape){0});
        add(&h, "b", DPF_F32, SHAPE(1));
        struct dpf_batch b = full_batch(&h, rows[n], 0);
        maker_header(&m, &h);
        maker_batch(&m, &h, &b, 0);
        maker_trailer(&m, rows[n], "ok");
        struct dpf_stream_reader r = open_made(&m);
        CU_ASSERT_FATAL(dpf_stream_reader_next(&r, &item, NULL) == DPF_OK);
        CU_ASSERT_FATAL(item == DPF_ITEM_BATCH);
        CU_ASSERT(same_batch(&r.batch, &b));
        for (int f = 0; rows[n] && f < 2; f++)
            CU_ASSERT(((unsigned char *)r.batch.tensor[f].data - r.frame.data) % 64 == 0);
        dpf_stream_reader_release(&r);
        dpf_batch_release(&b);
        maker_release(&m);
        dpf_header_release(&h);
    }
}

static void test_nan(void)
{
    static const uint32_t odd[4] = {0x7fc00001, 0x7f800001, 0xffc12345, 0x80000000};
    static const uint64_t odder[4] = {0x7ff8000000000001, 0x7ff0000000000001,
                                      0xfff0000000000000, 0x0000000000000001};
    struct dpf_header h = {0};
    struct maker m = {0};
    enum dpf_item item;
    add(&h, "f", DPF_F32, (struct dpf_shape){0});
    add(&h, "d", DPF_F64, (struct dpf_shape){0});
    struct dpf_batch b = full_batch(&h, 4, 0);
    memcpy(b.tensor[0].data, odd, sizeof odd);
    memcpy(b.tensor[1].data, odder, sizeof odder);
    maker_header(&m, &h);
    maker_batch(&m, &h, &b, 0);
    maker_trailer(&m, 4, "ok");
    struct dpf_stream_reader r = open_made(&m);
    CU_ASSERT_FATAL(dpf_stream_reader_next(&r, &item, NULL) == DPF_OK);
    CU_ASSERT(memcmp(r.batch.tensor[0].data, odd, sizeof odd) == 0);
    CU_ASSERT(memcmp(r.batch.tensor[1].data, odder, sizeof odder) == 0);
    dpf_stream_reader_release(&r);
    dpf_batch_release(&b);
    maker_release(&m);
    dpf_header_release(&h);
}

static void test_other_frames(void)
{
    struct dpf_header h = {0};
    struct maker m = {0};
    struct dpf_text json = {0};
    enum dpf_item item;
    float weights[2] = {1, 2};
    struct dpf_tensor t;
    struct dpf_shape two = SHAPE(2);
    CU_ASSERT_FATAL(dpf_tensor_view(&t, DPF_F32, &two, weights, NULL) == DPF_OK);
    maker_header(&m, &h);
    dpf_encoder_begin(&m.enc, "model", 2);
    dpf_encode_key(&m.enc, "w");
    dpf_encode_tensor(&m.enc, &t);
    dpf_encode_key(&m.enc, "loss");
    dpf_encode_real(&m.enc, 0.5);
    maker_frame(&m);
    maker_trailer(&m, 0, "ok");
    struct dpf_stream_reader r = open_made(&m);
    CU_ASSERT_FATAL(dpf_stream_reader_next(&r, &item, NULL) == DPF_OK);
    CU_ASSERT_FATAL(item == DPF_ITEM_OTHER);
    CU_ASSERT(dpf_object_is_string(dpf_object_get(r.object, "type"), "model"));
    dpf_object_to_json(r.object, &json);
    CU_ASSERT(strstr(json.data, "\"type\":\"model\",\"w\":{\"tensor\":{\"type\":\"<f4\","
                                "\"shape\":[2]}},\"loss\":0.5}") != NULL);
    /* Passed on, it arrives as it was. */
    struct dpf_buffer sink = {0};
    struct dpf_channel **channels = dpf_calloc(1, sizeof *channels);
    struct dpf_stream_writer w;
    CU_ASSERT_FATAL(channels != NULL);
    CU_ASSERT_FATAL(dpf_channel_to_memory(&sink, &channels[0], NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_stream_writer_init(&w, channels, 1, NULL) == DPF_OK);
    CU_ASSERT(dpf_stream_write_header(&w, &h, NULL) == DPF_OK);
    CU_ASSERT(dpf_stream_write_frame(&w, &r.frame, NULL) == DPF_OK);
    CU_ASSERT(dpf_stream_writer_finish(&w, NULL) == DPF_OK);
    CU_ASSERT(sink.size == m.out.size && memcmp(sink.data, m.out.data, sink.size) == 0);
    dpf_stream_writer_release(&w);
    dpf_buffer_release(&sink);
    CU_ASSERT(dpf_stream_reader_next(&r, &item, NULL) == DPF_OK && item == DPF_ITEM_END);
    dpf_stream_reader_release(&r);
    dpf_text_release(&json);
    maker_release(&m);
}

/* A value as MessagePack bytes, as JSON. */
static bool json_is(const char *bytes, size_t size, const char *due)
{
    struct dpf_text t = {0};
    msgpack_unpacked u;
    size_t at = 0;
    msgpack_unpacked_init(&u);
    CU_ASSERT_FATAL(msgpack_unpack_next(&u, bytes, size, &at) == MSGPACK_UNPACK_SUCCESS);
    dpf_object_to_json(&u.data, &t);
    bool same = strcmp(dpf_text_get(&t), due) == 0;
    if (!same)
        printf("    %s, not %s\n", dpf_text_get(&t), due);
    dpf_text_release(&t);
    msgpack_unpacked_destroy(&u);
    return same;
}

static void test_json(void)
{
    CU_ASSERT(json_is("\xc0", 1, "null") && json_is("\xc3", 1, "true"));
    CU_ASSERT(json_is("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, "18446744073709551615"));
    CU_ASSERT(json_is("\xd3\x80\0\0\0\0\0\0\0", 9, "-9223372036854775808"));
    CU_ASSERT(json_is("\xcb\x7f\xf8\0\0\0\0\0\0", 9, "null")); /* NaN */
    CU_ASSERT(json_is("\x93\x01\xa1\"\xc4\x01\xff", 7, "[1,\"\\\"\",\"\\ufffd\"]"));
    CU_ASSERT(json_is("\x82\x01\x02\xa1k\x90", 6, "{\"1\":2,\"k\":[]}"));
    CU_ASSERT(json_is("\x81\x91\xa1k\xd4\x05x", 7, "{\"[\\\"k\\\"]\":null}"));
}

/* ---- damage ---- */

static void small_stream(struct maker *m)
{
    static const char *const names[] = {"p", "q"};
    struct dpf_header h = {.has_records = true, .records = 3};
    struct dpf_field *x = add(&h, "x", DPF_U8, SHAPE(2));
    x->norm_l2 = 2;
    add_features(x, names, 2);
    CU_ASSERT_FATAL(dpf_field_set_bounds(x, 0, 255, NULL) == DPF_OK);
    add(&h, "y", DPF_I32, (struct dpf_shape){0});
    add_event(&h.provenance, "load");
    struct dpf_batch b = full_batch(&h, 3, 0);
    maker_header(m, &h);
    maker_batch(m, &h, &b, 0);
    maker_trailer(m, 3, "ok");
    dpf_batch_release(&b);
    dpf_header_release(&h);
}

static void test_cut_anywhere(void)
{
    struct maker m = {0};
    uint64_t records;
    small_stream(&m);
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(read_bytes(m.out.data, m.out.size, &records, &e) == DPF_OK);
    CU_ASSERT(records == 3);
    for (size_t cut = 0; cut < m.out.size; cut++) {
        unsigned char *part = malloc(cut + 1); /* its end is the end of memory, too */
        CU_ASSERT_FATAL(part != NULL);
        memcpy(part, m.out.data, cut);
        e = (struct dpf_error){0};
        CU_ASSERT(refused(read_bytes(part, cut, &records, &e), DPF_BAD_STREAM, &e,
                          "cannot read 'memory': stream ended before its trailer"));
        CU_ASSERT(e.consequence);
        free(part);
    }
    maker_release(&m);
}

static void test_flip_anywhere(void)
{
    static const unsigned char masks[] = {0x01, 0x80, 0xff, 0x20};
    struct maker m = {0};
    uint64_t records;
    small_stream(&m);
    for (size_t i = 0; i < m.out.size; i++)
        for (size_t k = 0; k < sizeof masks; k++) {
            struct dpf_error e = {0};
            m.out.data[i] ^= masks[k];
            enum dpf_status status = read_bytes(m.out.data, m.out.size, &records, &e);
            if (status != DPF_BAD_STREAM || !e.message[0])
                printf("    byte %zu ^ %02x: status %d\n", i, masks[k], status);
            CU_ASSERT(status == DPF_BAD_STREAM && e.message[0]);
            m.out.data[i] ^= masks[k];
        }
    maker_release(&m);
}

/* Nobody has to want the text to get the status. */
static void test_status_without_text(void)
{
    struct maker m = {0};
    uint64_t records;
    small_stream(&m);
    CU_ASSERT(read_bytes(m.out.data, m.out.size - 1, &records, NULL) == DPF_BAD_STREAM);
    CU_ASSERT(read_bytes(m.out.data, 20, &records, NULL) == DPF_BAD_STREAM);
    maker_release(&m);
}

/* ---- order ---- */

static struct dpf_header plain_header(void)
{
    struct dpf_header h = {0};
    add(&h, "x", DPF_U8, SHAPE(2));
    return h;
}

static void check_made(struct maker *m, const char *text)
{
    struct dpf_error e = {0};
    CU_ASSERT(refused(read_made(m, &e), DPF_BAD_STREAM, &e, text));
    maker_release(m);
}

static void test_order(void)
{
    struct dpf_header h = plain_header();
    struct dpf_batch b = full_batch(&h, 3, 0);
    struct maker m = {0};
    struct dpf_error e = {0};
    maker_header(&m, &h);
    maker_batch(&m, &h, &b, 0);
    maker_batch(&m, &h, &b, 2);
    check_made(&m, "batch 2 came, 1 was expected");
    maker_header(&m, &h);
    maker_batch(&m, &h, &b, 0);
    maker_batch(&m, &h, &b, 0);
    check_made(&m, "batch 0 came, 1 was expected");
    maker_header(&m, &h);
    maker_header(&m, &h);
    check_made(&m, "a second header");
    maker_batch(&m, &h, &b, 0);
    check_made(&m, "does not start with a header");
    maker_trailer(&m, 0, "ok");
    check_made(&m, "does not start with a header");
    maker_header(&m, &h);
    maker_trailer(&m, 0, "ok");
    dpf_buffer_append(&m.out, "x", 1);
    check_made(&m, "data follows the trailer");
    maker_header(&m, &h);
    maker_trailer(&m, 0, "ok");
    maker_batch(&m, &h, &b, 0);
    check_made(&m, "data follows the trailer");
    maker_header(&m, &h);
    maker_trailer(&m, 0, "failed");
    CU_ASSERT(refused(read_made(&m, &e), DPF_BAD_STREAM, &e, "its writer failed"));
    CU_ASSERT(e.consequence);
    maker_release(&m);
    maker_header(&m, &h);
    maker_trailer(&m, 0, "perhaps");
    check_made(&m, "malformed trailer");
    dpf_batch_release(&b);
    dpf_header_release(&h);
}

static void test_counts(void)
{
    struct dpf_header h = plain_header();
    struct dpf_batch b = full_batch(&h, 3, 0);
    struct maker m = {0};
    maker_header(&m, &h);
    maker_batch(&m, &h, &b, 0);
    maker_trailer(&m, 4, "ok");
    check_made(&m, "the trailer counts 4 records, 3 came");
    maker_header(&m, &h);
    maker_batch(&m, &h, &b, 0);
    m.frames++;
    maker_trailer(&m, 3, "ok");
    check_made(&m, "the trailer counts");
    h.has_records = true;
    h.records = 4;
    maker_header(&m, &h);
    maker_batch(&m, &h, &b, 0);
    maker_trailer(&m, 3, "ok");
    check_made(&m, "the trailer counts 3 records, 3 came");
    /* The writer keeps the promise of its own header. */
    struct dpf_buffer sink = {0};
    struct dpf_channel **channels = dpf_calloc(1, sizeof *channels);
    struct dpf_stream_writer w;
    struct dpf_error e = {0};
    uint64_t records;
    CU_ASSERT_FATAL(channels != NULL);
    CU_ASSERT_FATAL(dpf_channel_to_memory(&sink, &channels[0], NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_stream_writer_init(&w, channels, 1, NULL) == DPF_OK);
    dpf_stream_writer_fail(&w); /* before the header there is nothing to fail */
    CU_ASSERT(sink.size == 0 && dpf_stream_write_header(&w, &h, NULL) == DPF_OK);
    CU_ASSERT(dpf_stream_write_batch(&w, &b, NULL) == DPF_OK);
    CU_ASSERT(refused(dpf_stream_writer_finish(&w, &e), DPF_BAD_STREAM, &e,
                      "the header promised 4 records, 3 were written"));
    dpf_stream_writer_fail(&w);
    CU_ASSERT(refused(read_bytes(sink.data, sink.size, &records, &e), DPF_BAD_STREAM, &e,
                      "its writer failed"));
    dpf_stream_writer_release(&w);
    dpf_buffer_release(&sink);
    dpf_batch_release(&b);
    dpf_header_release(&h);
}

/* ---- content that does not fit its header ---- */

static void check_batch(const struct dpf_header *h, const struct dpf_header *as,
                        const struct dpf_batch *b, const char *text)
{
    struct maker m = {0};
    maker_header(&m, h);
    maker_batch(&m, as, b, 0);
    maker_trailer(&m, b->rows, "ok");
    check_made(&m, text);
}

static void test_batches_that_do_not_fit(void)
{
    struct dpf_header h = {0}, other = {0};
    add(&h, "x", DPF_F32, SHAPE(2));
    add(&h, "y", DPF_U8, (struct dpf_shape){0})->classes = 3;
    struct dpf_batch b = full_batch(&h, 3, 0), c;
    ((uint8_t *)b.tensor[1].data)[2] = 3;
    check_batch(&h, &h, &b, "field 'y' has a label outside its 3 classes");
    ((uint8_t *)b.tensor[1].data)[2] = 2;
    add(&other, "x", DPF_F32, SHAPE(2));
    c = full_batch(&other, 3, 0);
    check_batch(&h, &other, &c, "a batch does not have the header's fields");
    dpf_batch_release(&c);
    add(&other, "z", DPF_U8, (struct dpf_shape){0});
    c = full_batch(&other, 3, 0);
    check_batch(&h, &other, &c, "a batch lacks field 'y'");
    other.fields[1].name[0] = 'y';
    dpf_batch_truncate(&c, 3);
    c.tensor[1].shape.dim[0] = 2;
    c.tensor[1].bytes = 2;
    memset(c.tensor[1].data, 0, 2);
    check_batch(&h, &other, &c, "fields 'x' and 'y' have different record counts");
    dpf_batch_release(&c);
    dpf_header_release(&other);
    add(&other, "x", DPF_F64, SHAPE(2));
    add(&other, "y", DPF_U8, (struct dpf_shape){0});
    c = full_batch(&other, 3, 0);
    check_batch(&h, &other, &c, "'x' does not have the dtype and shape of the header");
    dpf_batch_release(&c);
    dpf_header_release(&other);
    add(&other, "x", DPF_F32, SHAPE(2, 1));
    add(&other, "y", DPF_U8, (struct dpf_shape){0});
    c = full_batch(&other, 3, 0);
    check_batch(&h, &other, &c, "'x' does not have the dtype and shape of the header");
    dpf_batch_release(&c);
    dpf_batch_release(&b);
    dpf_header_release(&other);
    dpf_header_release(&h);
}

static void test_labels(void)
{
    static const enum dpf_dtype kinds[] = {DPF_I32, DPF_I64};
    for (int k = 0; k < 2; k++) {
        struct dpf_header h = {0};
        add(&h, "y", kinds[k], (struct dpf_shape){0});
        struct dpf_batch b = full_batch(&h, 1, 0);
        for (int n = 0; n < 3; n++) {
            static const int64_t labels[] = {5, -1, INT32_MIN};
            int64_t label = labels[n];
            h.fields[0].classes = 5;
            if (kinds[k] == DPF_I32)
                *(int32_t *)b.tensor[0].data = (int32_t)label;
            else
                *(int64_t *)b.tensor[0].data = label;
            check_batch(&h, &h, &b, "field 'y' has a label outside its 5 classes");
        }
        dpf_batch_release(&b);
        dpf_header_release(&h);
    }
}

/* No number of classes, however absurd, makes a negative label a label. */
static void test_negative_label(void)
{
    struct dpf_header h = {0};
    struct maker m = {0};
    struct dpf_error e = {0};
    add(&h, "y", DPF_I64, (struct dpf_shape){0})->classes = UINT64_MAX;
    struct dpf_batch b = full_batch(&h, 1, 0);
    *(int64_t *)b.tensor[0].data = -2;
    maker_header(&m, &h);
    maker_batch(&m, &h, &b, 0);
    maker_trailer(&m, 1, "ok");
    CU_ASSERT(read_made(&m, &e) == DPF_BAD_STREAM);
    maker_release(&m);
    dpf_batch_release(&b);
    dpf_header_release(&h);
}

/* ---- headers from strangers ---- */

/* A header whose one field is packed by `field`; what stands before it is fixed. */
static void strange_header(struct maker *m, uint64_t version,
                           void (*field)(struct dpf_encoder *enc))
{
    dpf_encoder_begin(&m->enc, "header", 4);
    dpf_encode_key(&m->enc, "format");
    dpf_encode_uint(&m->enc, version);
    dpf_encode_key(&m->enc, "fields");
    msgpack_pack_array(&m->enc.packer, 1);
    field(&m->enc);
    dpf_encode_key(&m->enc, "provenance");
    msgpack_pack_array(&m->enc.packer, 0);
    dpf_encode_key(&m->enc, "ledger");
    msgpack_pack_map(&m->enc.packer, 1);
    dpf_encode_key(&m->enc, "events");
    msgpack_pack_array(&m->enc.packer, 0);
    maker_frame(m);
    maker_trailer(m, 0, "ok");
}

static void start_field(struct dpf_encoder *enc, const char *name, const char *dtype,
                        int rank, uint64_t dim, unsigned more)
{
    struct dpf_shape s = {.rank = rank < 8 ? rank : 8};
    msgpack_pack_map(&enc->packer, 3 + more);
    dpf_encode_key(enc, "name");
    dpf_encode_string(enc, name);
    dpf_encode_key(enc, "dtype");
    dpf_encode_string(enc, dtype);
    dpf_encode_key(enc, "shape");
    if (rank > 8) {
        msgpack_pack_array(&enc->packer, (size_t)rank);
        for (int i = 0; i < rank; i++)
            dpf_encode_uint(enc, dim);
        return;
    }
    for (int i = 0; i < s.rank; i++)
        s.dim[i] = dim;
    dpf_encode_shape(enc, &s);
}

static void field_good(struct dpf_encoder *enc)
{
    start_field(enc, "x", "u8", 1, 3, 0);
}

static void field_dtype(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f16", 1, 3, 0);
}

static void field_huge(struct dpf_encoder *enc)
{
    start_field(enc, "x", "u8", 1, 1ull << 63, 0);
}

static void field_product(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f64", 7, 1ull << 10, 0);
}

static void field_rank(struct dpf_encoder *enc)
{
    start_field(enc, "x", "u8", 9, 1, 0);
}

static void field_rank_8(struct dpf_encoder *enc)
{
    start_field(enc, "x", "u8", 8, 1, 0); /* no room for the records */
}

static void field_name(struct dpf_encoder *enc)
{
    start_field(enc, "x\ny", "u8", 1, 3, 0);
}

static void field_long_name(struct dpf_encoder *enc)
{
    start_field(enc, "0123456789012345678901234567890123456789012345678901234567890",
                "u8", 1, 3, 0);
}

static void field_bits(struct dpf_encoder *enc)
{
    start_field(enc, "x", "bits", 0, 0, 0);
}

static void field_classes(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f32", 1, 3, 1);
    dpf_encode_key(enc, "classes");
    dpf_encode_uint(enc, 3);
}

static void field_no_classes(struct dpf_encoder *enc)
{
    start_field(enc, "x", "u8", 1, 3, 1);
    dpf_encode_key(enc, "classes");
    dpf_encode_uint(enc, 0);
}

static void field_norm(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f32", 1, 3, 1);
    dpf_encode_key(enc, "norm_l2");
    dpf_encode_real(enc, INFINITY);
}

static void field_bounds(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f32", 1, 3, 1);
    dpf_encode_key(enc, "bounds");
    msgpack_pack_array(&enc->packer, 2);
    for (int i = 0; i < 2; i++) { /* hi below lo */
        msgpack_pack_array(&enc->packer, 1);
        dpf_encode_real(enc, -i);
    }
}

static void field_bounds_count(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f32", 1, 3, 1);
    dpf_encode_key(enc, "bounds");
    msgpack_pack_array(&enc->packer, 2);
    for (int i = 0; i < 2; i++) {
        msgpack_pack_array(&enc->packer, 2);
        dpf_encode_real(enc, i);
        dpf_encode_real(enc, i);
    }
}

static void field_bounds_nan(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f32", 1, 3, 1);
    dpf_encode_key(enc, "bounds");
    msgpack_pack_array(&enc->packer, 2);
    for (int i = 0; i < 2; i++) {
        msgpack_pack_array(&enc->packer, 1);
        dpf_encode_real(enc, i ? 1 : NAN);
    }
}

static void field_features(struct dpf_encoder *enc)
{
    start_field(enc, "x", "f32", 1, 2, 1);
    dpf_encode_key(enc, "features");
    msgpack_pack_array(&enc->packer, 2);
    dpf_encode_string(enc, "a");
    dpf_encode_uint(enc, 5);
}

static void test_strange_headers(void)
{
    static const struct {
        void (*field)(struct dpf_encoder *enc);
        const char *text;
    } bad[] = {
        {field_dtype, "field 'x' has an unknown dtype"},
        {field_huge, "field 'x' has records larger than"},
        {field_product, "field 'x' has records larger than"},
        {field_rank, "field 'x': a shape has more than 8 dimensions"},
        {field_rank_8, "field 'x' has records larger than"},
        {field_name, "a field has no proper name"},
        {field_long_name, "a field has no proper name"},
        {field_bits, "field 'x' has records larger than"},
        {field_classes, "field 'x' has malformed classes"},
        {field_no_classes, "field 'x' has malformed classes"},
        {field_norm, "field 'x' has a malformed norm"},
        {field_bounds, "field 'x' has impossible bounds"},
        {field_bounds_count, "field 'x' has malformed bounds"},
        {field_bounds_nan, "field 'x' has impossible bounds"},
        {field_features, "field 'x' has malformed feature names"},
    };
    struct maker m = {0};
    struct dpf_error e = {0};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strange_header(&m, DPF_FORMAT_VERSION, bad[i].field);
        check_made(&m, bad[i].text);
    }
    strange_header(&m, 2, field_good);
    check_made(&m, "the stream has format version 2, this program reads 1");
    strange_header(&m, UINT64_MAX, field_good);
    check_made(&m, "format version 18446744073709551615");
    strange_header(&m, DPF_FORMAT_VERSION, field_good);
    CU_ASSERT(read_made(&m, &e) == DPF_OK);
    struct dpf_stream_reader r = open_made(&m);
    CU_ASSERT(r.header.is_private); /* nobody said that it is public */
    dpf_stream_reader_release(&r);
    maker_release(&m);
}

static void test_field_names(void)
{
    struct dpf_header h = {0};
    struct dpf_shape s = SHAPE(1);
    char name[16];
    CU_ASSERT(dpf_header_add_field(&h, "", DPF_U8, &s) == NULL);
    for (int i = 0; i < DPF_MAX_FIELDS; i++) {
        snprintf(name, sizeof name, "f%d", i);
        CU_ASSERT_FATAL(dpf_header_add_field(&h, name, DPF_U8, &s) != NULL);
    }
    CU_ASSERT(dpf_header_add_field(&h, "more", DPF_U8, &s) == NULL);
    h.field_count--;
    CU_ASSERT(dpf_header_add_field(&h, "f0", DPF_U8, &s) == NULL);
    CU_ASSERT(dpf_header_add_field(&h, "012345678901234567890123456789012345678901234567",
                                   DPF_U8, &s) == NULL);
    h.field_count++;
    struct maker m = {0};
    struct dpf_error e = {0};
    maker_header(&m, &h);
    maker_trailer(&m, 0, "ok");
    CU_ASSERT(read_made(&m, &e) == DPF_OK);
    maker_release(&m);
    dpf_header_release(&h);
}

/* A name that the library takes in for writing can be read again. */
static void test_bad_names_are_not_written(void)
{
    static const char *const names[] = {"two words", "quo'te", "line\nfeed", "del\x7f"};
    struct dpf_shape s = SHAPE(1);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dpf_header h = {0};
        struct maker m = {0};
        struct dpf_error e = {0};
        if (dpf_header_add_field(&h, names[i], DPF_U8, &s)) {
            maker_header(&m, &h);
            maker_trailer(&m, 0, "ok");
            CU_ASSERT(read_made(&m, &e) == DPF_OK);
        }
        maker_release(&m);
        dpf_header_release(&h);
    }
}

/* ---- frames from strangers ---- */

static void raw(struct dpf_encoder *enc, const void *bytes, size_t size)
{
    dpf_buffer_append(&enc->meta, bytes, size);
}

/* Header, then a frame with one key "x" and these bytes as its value. */
static void check_raw(const void *bytes, size_t size, const char *text)
{
    struct dpf_header h = plain_header();
    struct maker m = {0};
    maker_header(&m, &h);
    dpf_encoder_begin(&m.enc, "model", 1);
    dpf_encode_key(&m.enc, "x");
    raw(&m.enc, bytes, size);
    maker_frame(&m);
    maker_trailer(&m, 0, "ok");
    check_made(&m, text);
    dpf_header_release(&h);
}

static void test_hostile_frames(void)
{
    enum { DEEP = 10000 };
    static unsigned char nested[2 * DEEP + 1];
    check_raw("\xdf\xff\xff\xff\xff", 5, "malformed MessagePack at byte");
    check_raw("\xdd\xff\xff\xff\xff", 5, "malformed MessagePack at byte");
    check_raw("\xc6\xff\xff\xff\xff", 5, "malformed MessagePack at byte");
    check_raw("\xdb\xff\xff\xff\xff", 5, "malformed MessagePack at byte");
    check_raw("\xc9\xff\xff\xff\xff", 5, "malformed MessagePack at byte");
    check_raw("\xde\xff\xff", 3, "malformed MessagePack at byte");
    check_raw("\xdc", 1, "malformed MessagePack at byte");
    check_raw("\xcb\0", 2, "malformed MessagePack at byte");
    check_raw("\xc1", 1, "malformed MessagePack at byte");
    check_raw("\xc0\xc0", 2, "a frame is longer than its content");
    check_raw("\x92\xc0", 2, "malformed MessagePack at byte");
    memset(nested, 0x91, DEEP);
    nested[DEEP] = 0xc0;
    check_raw(nested, DEEP + 1, "a frame nests more than 24 levels deep");
    for (int i = 0; i < DEEP; i++) {
        nested[2 * i] = 0x81;
        nested[2 * i + 1] = 0x01;
    }
    nested[2 * DEEP] = 0xc0;
    check_raw(nested, sizeof nested, "a frame nests more than 24 levels deep");
    size_t many = DPF_MAX_FRAME_VALUES + 10;
    unsigned char *values = dpf_calloc(many + 5, 1);
    CU_ASSERT_FATAL(values != NULL);
    values[0] = 0xdd;
    for (int i = 0; i < 4; i++)
        values[1 + i] = (unsigned char)(many >> (24 - 8 * i));
    check_raw(values, many + 5, "a frame holds more than 1048576 values");
    free(values);
    struct dpf_error e = {0};
    CU_ASSERT(refused(dpf_frame_check(nested, 0, &e), DPF_BAD_STREAM, &e, "malformed"));
}

static void check_preamble(uint64_t size, const char *text)
{
    struct maker m = {0};
    uint64_t records;
    struct dpf_error e = {0};
    small_stream(&m);
    for (int i = 0; i < 8; i++)
        m.out.data[8 + i] = (unsigned char)(size >> (56 - 8 * i));
    CU_ASSERT(refused(read_bytes(m.out.data, m.out.size, &records, &e), DPF_BAD_STREAM,
                      &e, text));
    maker_release(&m);
}

static void test_preambles(void)
{
    check_preamble(1ull << 63, "impossible size of 9223372036854775808 bytes");
    check_preamble(UINT64_MAX, "impossible size");
    check_preamble(DPF_MAX_FRAME_BYTES + 1, "impossible size");
    check_preamble(DPF_MAX_FRAME_BYTES, "stream ended before its trailer");
    check_preamble(5, "impossible size of 5 bytes");
    check_preamble(0, "impossible size of 0 bytes");
    check_preamble(16, "malformed MessagePack");
    uint64_t records;
    struct dpf_error e = {0};
    CU_ASSERT(refused(read_bytes("GET / HTTP/1.1\r\n\r\n", 18, &records, &e),
                      DPF_BAD_STREAM, &e, "this is not a dpflow stream"));
    struct dpf_decoder d = {0};
    unsigned char bytes[8] = {0x80};
    struct dpf_frame frame = {.data = bytes, .size = 8};
    CU_ASSERT(refused(dpf_decoder_read(&d, &frame, &e), DPF_BAD_STREAM, &e, "too short"));
    dpf_decoder_release(&d);
}

/* A tensor as a foreign program might pack it: keys as strings, no padding. */
struct foreign {
    const char *type;
    int rank;
    uint64_t dim[9];
    bool has_bits;
    uint64_t bits;
    const void *data;
    size_t size;
};

static void pack_foreign(struct dpf_encoder *enc, const struct foreign *f)
{
    msgpack_pack_map(&enc->packer, f->has_bits ? 5 : 4);
    dpf_encode_key(enc, "nd");
    msgpack_pack_true(&enc->packer);
    dpf_encode_key(enc, "type");
    dpf_encode_string(enc, f->type);
    dpf_encode_key(enc, "shape");
    msgpack_pack_array(&enc->packer, (size_t)f->rank);
    for (int i = 0; i < f->rank; i++)
        dpf_encode_uint(enc, f->dim[i]);
    if (f->has_bits) {
        dpf_encode_key(enc, "bits");
        dpf_encode_uint(enc, f->bits);
    }
    dpf_encode_key(enc, "data");
    msgpack_pack_bin_with_body(&enc->packer, f->data, f->size);
}

static void foreign_stream(struct maker *m, const struct dpf_header *h,
                           const struct foreign *f, unsigned shift)
{
    char filler[16] = "fffffffffffffff";
    filler[shift] = '\0';
    maker_header(m, h);
    dpf_encoder_begin(&m->enc, "batch", 3);
    dpf_encode_key(&m->enc, "filler");
    dpf_encode_string(&m->enc, filler);
    dpf_encode_key(&m->enc, "sequence");
    dpf_encode_uint(&m->enc, 0);
    dpf_encode_key(&m->enc, "fields");
    msgpack_pack_map(&m->enc.packer, 1);
    dpf_encode_key(&m->enc, h->fields[0].name);
    pack_foreign(&m->enc, f);
    maker_frame(m);
    maker_trailer(m, f->dim[0], "ok");
}

static void test_foreign_writer(void)
{
    static const double values[4] = {1.5, -2, 1e300, 0};
    struct dpf_header h = {0};
    struct foreign f = {"<f8", 2, {2, 2}, false, 0, values, sizeof values};
    add(&h, "x", DPF_F64, SHAPE(2));
    int copies = 0;
    for (unsigned shift = 0; shift < 8; shift++) {
        struct maker m = {0};
        enum dpf_item item;
        struct dpf_error e = {0};
        foreign_stream(&m, &h, &f, shift);
        struct dpf_stream_reader r = open_made(&m);
        CU_ASSERT_FATAL(dpf_stream_reader_next(&r, &item, &e) == DPF_OK);
        CU_ASSERT_FATAL(item == DPF_ITEM_BATCH);
        const double *got = r.batch.tensor[0].data;
        CU_ASSERT((uintptr_t)got % sizeof *got == 0);
        copies += r.batch.tensor[0].owned;
        for (int i = 0; i < 4; i++)
            CU_ASSERT(got[i] == values[i]);
        CU_ASSERT(dpf_stream_reader_next(&r, &item, &e) == DPF_OK &&
                  item == DPF_ITEM_END);
        dpf_stream_reader_release(&r);
        maker_release(&m);
    }
    CU_ASSERT(copies == 7);
    dpf_header_release(&h);
}

static void test_hostile_tensors(void)
{
    static const unsigned char data[16] = {0};
    static const struct {
        struct foreign tensor;
        const char *text;
    } bad[] = {
        {{"<f2", 2, {2, 2}, false, 0, data, 8}, "a tensor has an unknown dtype"},
        {{">f8", 2, {2, 2}, false, 0, data, 8}, "a tensor has an unknown dtype"},
        {{"|u1", 2, {1ull << 63, 2}, false, 0, data, 8}, "larger than 2^32-1 bytes"},
        {{"|u1", 2, {1ull << 32, 1ull << 32}, false, 0, data, 0}, "larger than 2^32-1"},
        {{"|u1", 2, {0, 1ull << 63}, false, 0, data, 0}, "larger than 2^32-1"},
        {{"|u1", 2, {2, 2}, false, 0, data, 5}, "data does not fill its shape"},
        {{"|u1", 2, {2, 2}, false, 0, data, 3}, "data does not fill its shape"},
        {{"|u1", 9, {1, 1, 1, 1, 1, 1, 1, 1, 1}, false, 0, data, 1}, "more than 8 dim"},
        {{"|u1", 0, {0}, false, 0, data, 1}, "does not have the dtype and shape"},
        {{"|u1", 2, {2, 2}, true, 40, data, 4}, "packed bits do not fit their shape"},
        {{"|u1", 2, {2, 0}, true, UINT64_MAX, data, 0}, "packed bits do not fit"},
        {{"|u1", 0, {0}, true, 1, data, 1}, "packed bits do not fit their shape"},
        {{"|u1", 2, {2, 2}, true, 16, data, 4}, "does not have the dtype and shape"},
    };
    struct dpf_header h = plain_header();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct maker m = {0};
        foreign_stream(&m, &h, &bad[i].tensor, 0);
        check_made(&m, bad[i].text);
    }
    dpf_header_release(&h);
}

/* ---- merged headers ---- */

static void test_merge(void)
{
    struct dpf_header a = full_header(), b = full_header(), copy;
    struct dpf_error e = {0};
    a.is_private = false;
    b.records = 7;
    CU_ASSERT_FATAL(dpf_header_copy(&copy, &a, &e) == DPF_OK);
    CU_ASSERT(dpf_header_merge(&copy, &b, dpf_ledger_merge, &e) == DPF_OK);
    CU_ASSERT(copy.records == 12 && copy.has_records && copy.is_private);
    /* private records may stand in both: one event with a branch for each */
    CU_ASSERT(copy.provenance.count == 4 && copy.events.count == 1);
    CU_ASSERT(copy.events.bytes.size > 2 * a.events.bytes.size);
    CU_ASSERT(a.provenance.count == 2 && a.records == 5); /* a copy is a copy */
    b.has_records = false;
    CU_ASSERT(dpf_header_merge(&copy, &b, dpf_ledger_merge, &e) == DPF_OK &&
              !copy.has_records);
    struct maker m = {0};
    maker_header(&m, &copy); /* still a header that can be read */
    maker_trailer(&m, 0, "ok");
    CU_ASSERT(read_made(&m, &e) == DPF_OK);
    maker_release(&m);
    snprintf(b.fields[1].name, sizeof b.fields[1].name, "other");
    CU_ASSERT(refused(dpf_header_merge(&copy, &b, dpf_ledger_merge, &e), DPF_BAD_STREAM,
                      &e, "field 'y' is u8 scalar, field 'other' is u8 scalar"));
    snprintf(b.fields[1].name, sizeof b.fields[1].name, "y");
    b.fields[2].shape.dim[0] = 3;
    CU_ASSERT(refused(dpf_header_merge(&copy, &b, dpf_ledger_merge, &e), DPF_BAD_STREAM,
                      &e, "field 'i' is i32 2x2, field 'i' is i32 3x2"));
    b.fields[2].shape.dim[0] = 2;
    b.fields[0].dtype = DPF_I32;
    CU_ASSERT(dpf_header_merge(&copy, &b, dpf_ledger_merge, &e) == DPF_BAD_STREAM);
    b.fields[0].dtype = DPF_F32;
    b.field_count--;
    CU_ASSERT(refused(dpf_header_merge(&copy, &b, dpf_ledger_merge, &e), DPF_BAD_STREAM,
                      &e, "the streams have 6 and 5 fields"));
    b.field_count++;
    dpf_header_release(&copy);
    dpf_header_release(&b);
    dpf_header_release(&a);
}

/* What a merged header declares holds for the records of both streams: sensitivity is
 * computed from it. Either the merge is refused or it declares no more than both do. */
static void test_merge_keeps_promises(void)
{
    struct dpf_error e = {0};
    struct dpf_shape s = SHAPE(2);
    struct dpf_header narrow = {0}, wide = {0};
    struct dpf_field *f = add(&narrow, "x", DPF_F32, s), *g = add(&wide, "x", DPF_F32, s);
    f->norm_l2 = 1; /* and none in the other */
    CU_ASSERT(dpf_header_merge(&narrow, &wide, dpf_ledger_merge, &e) != DPF_OK ||
              f->norm_l2 == 0);
    f->norm_l2 = 1;
    g->norm_l2 = 2;
    CU_ASSERT(dpf_header_merge(&narrow, &wide, dpf_ledger_merge, &e) != DPF_OK ||
              f->norm_l2 >= 2 || f->norm_l2 == 0);
    f->norm_l2 = g->norm_l2 = 0;
    CU_ASSERT_FATAL(dpf_field_set_bounds(f, 0, 1, &e) == DPF_OK);
    CU_ASSERT(dpf_header_merge(&narrow, &wide, dpf_ledger_merge, &e) != DPF_OK ||
              f->bounds.count == 0);
    CU_ASSERT_FATAL(dpf_field_set_bounds(f, 0, 1, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_field_set_bounds(g, -5, 5, &e) == DPF_OK);
    CU_ASSERT(dpf_header_merge(&narrow, &wide, dpf_ledger_merge, &e) != DPF_OK ||
              f->bounds.count == 0 || (f->bounds.lo[0] <= -5 && f->bounds.hi[0] >= 5));
    dpf_header_release(&narrow);
    dpf_header_release(&wide);
    f = add(&narrow, "y", DPF_U8, (struct dpf_shape){0});
    g = add(&wide, "y", DPF_U8, (struct dpf_shape){0});
    f->classes = 10;
    g->classes = 100;
    CU_ASSERT(dpf_header_merge(&narrow, &wide, dpf_ledger_merge, &e) != DPF_OK ||
              f->classes >= 100 || f->classes == 0);
    dpf_header_release(&narrow);
    dpf_header_release(&wide);
}

/* ---- batches ---- */

static void test_select(void)
{
    struct dpf_header h = {0};
    add(&h, "x", DPF_I32, SHAPE(2));
    add(&h, "b", DPF_BITS, SHAPE(9));
    struct dpf_batch b = full_batch(&h, 5, 0);
    int32_t *x = b.tensor[0].data;
    unsigned char *bits = b.tensor[1].data;
    for (int i = 0; i < 10; i++) {
        x[i] = i;
        bits[i] = (unsigned char)i;
    }
    static const bool keep[] = {false, true, false, true, true};
    dpf_batch_select(&b, keep);
    CU_ASSERT(b.rows == 3 && b.tensor[0].shape.dim[0] == 3 && b.tensor[0].bytes == 24);
    CU_ASSERT(b.tensor[1].bytes == 6);
    static const int32_t due[] = {2, 3, 6, 7, 8, 9};
    for (int i = 0; i < 6; i++)
        CU_ASSERT(x[i] == due[i] && bits[i] == due[i]);
    static const bool none[] = {false, false, false};
    dpf_batch_select(&b, none);
    CU_ASSERT(b.rows == 0 && b.tensor[0].bytes == 0);
    struct dpf_error e = {0};
    CU_ASSERT(dpf_batch_field(&b, &h, "b", &e) == &b.tensor[1]);
    CU_ASSERT(dpf_batch_field(&b, &h, "z", &e) == NULL && e.status == DPF_BAD_STREAM);
    dpf_batch_release(&b);
    CU_ASSERT(dpf_batch_rows(&h) == DPF_BATCH_BYTES / 10);
    h.fields[0].shape.dim[0] = 1 << 24;
    CU_ASSERT(dpf_batch_rows(&h) == 1);
    CU_ASSERT(dpf_batch_init(&b, &h, 1ull << 40, &e) == DPF_BAD_STREAM && b.count == 0);
    dpf_header_release(&h);
}

const char dpf_suite[] = "wire";

const struct dpf_test dpf_tests[] = {
    {"round trip of all attributes and dtypes", test_round_trip},
    {"data is aligned to 64 bytes", test_alignment},
    {"NaN is kept bit for bit", test_nan},
    {"other frames pass through", test_other_frames},
    {"values as JSON", test_json},
    {"a stream cut at any byte is refused", test_cut_anywhere},
    {"a change of any byte is found", test_flip_anywhere},
    {"the status does not need the text", test_status_without_text},
    {"frames out of order", test_order},
    {"counts that do not add up", test_counts},
    {"batches that do not fit the header", test_batches_that_do_not_fit},
    {"labels out of range", test_labels},
    {"labels below zero", test_negative_label},
    {"headers from strangers", test_strange_headers},
    {"fields and their names", test_field_names},
    {"what can be written can be read", test_bad_names_are_not_written},
    {"hostile frames", test_hostile_frames},
    {"preambles that lie", test_preambles},
    {"a foreign writer without padding", test_foreign_writer},
    {"hostile tensors", test_hostile_tensors},
    {"merged headers", test_merge},
    {"merged headers promise what both keep", test_merge_keeps_promises},
    {"records are selected", test_select},
    {0},
};
