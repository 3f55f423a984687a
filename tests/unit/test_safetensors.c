/* safetensors files: what the reference writer makes is read, what is written is read
 * back bit for bit, and files that are cut, lying or hostile are refused by a message
 * that names the file and the tensor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "harness.h"
#include "nn/safetensors.h"

#include "base/banned.h"

/* ---- helpers ---- */

static char folder[256];

static void folder_begin(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/dpf-safetensors-XXXXXX", base ? base : "/tmp");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
}

static void folder_end(void)
{
    dpf_remove_tree(folder);
}

/* The path of a file in the folder; up to four live at a time. */
static const char *in_folder(const char *name)
{
    static char paths[4][320];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static struct dpf_buffer make_file(const char *header, size_t header_size,
                                   const void *data, size_t size)
{
    struct dpf_buffer b = {0};
    uint8_t length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)((uint64_t)header_size >> 8 * i);
    dpf_buffer_append(&b, length, sizeof length);
    dpf_buffer_append(&b, header, header_size);
    dpf_buffer_append(&b, data, size);
    CU_ASSERT_FATAL(dpf_buffer_ok(&b));
    return b;
}

/* In memory of exactly this size, so that a sanitizer sees a read beyond it. */
static enum dpf_status parse_exact(struct dpf_safetensors *s, const void *bytes,
                                   size_t size, struct dpf_error *e)
{
    uint8_t *copy = malloc(size ? size : 1);
    CU_ASSERT_FATAL(copy != NULL);
    memcpy(copy, bytes, size);
    enum dpf_status status = dpf_safetensors_parse(s, copy, size, "f", e);
    free(copy);
    return status;
}

static enum dpf_status parse(struct dpf_safetensors *s, const char *header,
                             const void *data, size_t size, struct dpf_error *e)
{
    struct dpf_buffer b = make_file(header, strlen(header), data, size);
    enum dpf_status status = parse_exact(s, b.data, b.size, e);
    dpf_buffer_release(&b);
    return status;
}

static bool refused(enum dpf_status got, enum dpf_status due, const struct dpf_error *e,
                    const char *text)
{
    bool good = got == due && e->status == due && strstr(e->message, text) != NULL;
    if (!good)
        printf("\n    %d '%s', not %d '%s'\n", got, e->message, due, text);
    return good;
}

static bool is_empty(const struct dpf_safetensors *s)
{
    return s->count == 0 && s->capacity == 0 && !s->tensors && !s->metadata;
}

/* Refused with this text, and nothing is left to release. */
static bool refuses(const char *header, size_t data_size, const char *text)
{
    static const uint8_t data[64];
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    enum dpf_status status = parse(&s, header, data, data_size, &e);
    return refused(status, DPF_BAD_STREAM, &e, text) && is_empty(&s);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- what the reference writer makes ---- */

/* safetensors 0.8.0: save({"b.weight": float32 [[1, -2], [0.5, 3]], "a": float16
 * [1.5, -0.0], "s": float64 7.0}, metadata={"format": "pt"}). */
static const char reference[] =
    "\xd0\0\0\0\0\0\0\0"
    "{\"__metadata__\":{\"format\":\"pt\"},"
    "\"s\":{\"dtype\":\"F64\",\"shape\":[],\"data_offsets\":[0,8]},"
    "\"b.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[8,24]},"
    "\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]}}      "
    "\0\0\0\0\0\0\x1c\x40"
    "\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f\0\0\x40\x40"
    "\0\x3e\0\x80";
enum { REFERENCE_SIZE = sizeof reference - 1, REFERENCE_DATA = 8 + 0xd0 };

static void check_reference(const struct dpf_safetensors *s)
{
    static const float weight[] = {1, -2, 0.5f, 3};
    CU_ASSERT_FATAL(s->count == 3);
    CU_ASSERT_STRING_EQUAL(s->metadata, "{\"format\":\"pt\"}");
    CU_ASSERT_STRING_EQUAL(s->tensors[0].name, "s");
    const struct dpf_named_tensor *t = dpf_safetensors_find(s, "s");
    CU_ASSERT_FATAL(t == &s->tensors[0]);
    CU_ASSERT(t->shape.rank == 0 && t->count == 1 && t->values[0] == 7);
    t = dpf_safetensors_find(s, "b.weight");
    CU_ASSERT_FATAL(t == &s->tensors[1] && t->count == 4);
    CU_ASSERT(t->shape.rank == 2 && t->shape.dim[0] == 2 && t->shape.dim[1] == 2);
    CU_ASSERT(memcmp(t->values, weight, sizeof weight) == 0);
    t = dpf_safetensors_find(s, "a");
    CU_ASSERT_FATAL(t == &s->tensors[2] && t->count == 2 && t->shape.rank == 1);
    CU_ASSERT(t->values[0] == 1.5f && bits_of(t->values[1]) == 0x80000000u);
    CU_ASSERT((uintptr_t)t->values % DPF_ALIGNMENT == 0);
    CU_ASSERT(dpf_safetensors_find(s, "b") == NULL);
}

static void test_reference(void)
{
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    folder_begin();
    CU_ASSERT_FATAL(parse_exact(&s, reference, REFERENCE_SIZE, &e) == DPF_OK);
    check_reference(&s);
    dpf_safetensors_release(&s);
    CU_ASSERT(is_empty(&s));
    const char *path = in_folder("m");
    CU_ASSERT_FATAL(dpf_write_file(path, reference, REFERENCE_SIZE, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_read(&s, path, &e) == DPF_OK);
    check_reference(&s);
    dpf_safetensors_release(&s);
    folder_end();
}

/* A pipe has no size; what comes out of it is checked all the same. */
static void test_pipe(void)
{
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    for (size_t cut = 0; cut < 2; cut++) {
        int ends[2];
        char path[32];
        CU_ASSERT_FATAL(pipe(ends) == 0);
        CU_ASSERT_FATAL(dpf_write_all(ends[1], reference, REFERENCE_SIZE - cut));
        close(ends[1]);
        snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        enum dpf_status status = dpf_safetensors_read(&s, path, &e);
        if (cut) {
            CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "truncated: tensor 'a'"));
        } else {
            CU_ASSERT_FATAL(status == DPF_OK);
            check_reference(&s);
            dpf_safetensors_release(&s);
        }
        close(ends[0]);
    }
}

static void test_every_cut(void)
{
    struct dpf_safetensors s;
    folder_begin();
    const char *path = in_folder("cut");
    for (size_t size = 0; size < REFERENCE_SIZE; size++) {
        struct dpf_error e = {0};
        const char *due = size < 8                     ? "its header alone takes 8"
                          : size < REFERENCE_DATA      ? "its header needs 208 bytes"
                          : size < REFERENCE_DATA + 8  ? "tensor 's' needs bytes 0..8"
                          : size < REFERENCE_DATA + 24 ? "'b.weight' needs bytes 8..24"
                                                       : "'a' needs bytes 24..28";
        enum dpf_status status = parse_exact(&s, reference, size, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "'f' is truncated: "));
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, due));
        CU_ASSERT(is_empty(&s));
        CU_ASSERT_FATAL(dpf_write_file(path, reference, size, &e) == DPF_OK);
        status = dpf_safetensors_read(&s, path, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "/cut' is truncated: "));
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, due));
        CU_ASSERT(is_empty(&s));
    }
    folder_end();
}

static void test_truncated_message(void)
{
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    CU_ASSERT(dpf_safetensors_parse(&s, (const uint8_t *)reference, REFERENCE_DATA + 20,
                                    "model.safetensors", &e) == DPF_BAD_STREAM);
    CU_ASSERT_STRING_EQUAL(e.message, "'model.safetensors' is truncated: tensor "
                                      "'b.weight' needs bytes 8..24 of a data part of "
                                      "20 bytes");
}

static void test_no_file(void)
{
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    folder_begin();
    enum dpf_status status = dpf_safetensors_read(&s, in_folder("absent"), &e);
    CU_ASSERT(refused(status, DPF_SYSTEM, &e, "absent': No such file"));
    CU_ASSERT(is_empty(&s));
    status = dpf_safetensors_read(&s, folder, &e);
    CU_ASSERT(refused(status, DPF_SYSTEM, &e, "Is a directory"));
    folder_end();
}

/* ---- conversion ---- */

static void test_half(void)
{
    static const struct {
        uint16_t half;
        uint32_t bits;
    } cases[] = {
        {0x0000, 0x00000000}, {0x8000, 0x80000000}, /* zeros */
        {0x0001, 0x33800000}, {0x8001, 0xb3800000}, /* 2^-24, the smallest subnormal */
        {0x0003, 0x34400000}, {0x03ff, 0x387fc000}, /* the largest subnormal */
        {0x0400, 0x38800000}, {0x3c00, 0x3f800000}, /* 2^-14, 1 */
        {0x3555, 0x3eaaa000}, {0xc000, 0xc0000000}, /* about 1/3, -2 */
        {0x7bff, 0x477fe000}, {0xfbff, 0xc77fe000}, /* 65504 */
        {0x7c00, 0x7f800000}, {0xfc00, 0xff800000}, /* infinities */
        {0x7e00, 0x7fc00000}, {0xfe01, 0xffc02000}, /* NaN */
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    uint8_t data[2 * COUNT];
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    for (size_t i = 0; i < COUNT; i++) {
        data[2 * i] = (uint8_t)cases[i].half;
        data[2 * i + 1] = (uint8_t)(cases[i].half >> 8);
    }
    CU_ASSERT_FATAL(
        parse(&s, "{\"x\":{\"dtype\":\"F16\",\"shape\":[16],\"data_offsets\":[0,32]}}",
              data, sizeof data, &e) == DPF_OK);
    for (size_t i = 0; i < COUNT; i++)
        CU_ASSERT(bits_of(s.tensors[0].values[i]) == cases[i].bits);
    dpf_safetensors_release(&s);
}

/* Every finite half is sign * fraction * 2^exponent, by the definition of the format. */
static void test_all_halves(void)
{
    static uint8_t data[2 << 16];
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    size_t wrong = 0;
    for (size_t i = 0; i < 1 << 16; i++) {
        data[2 * i] = (uint8_t)i;
        data[2 * i + 1] = (uint8_t)(i >> 8);
    }
    CU_ASSERT_FATAL(parse(&s,
                          "{\"x\":{\"dtype\":\"F16\",\"shape\":[65536],"
                          "\"data_offsets\":[0,131072]}}",
                          data, sizeof data, &e) == DPF_OK);
    for (int i = 0; i < 1 << 16; i++) {
        int exponent = i >> 10 & 31, fraction = i & 1023;
        double due = exponent == 31  ? (fraction ? (double)NAN : (double)INFINITY)
                     : exponent == 0 ? ldexp(fraction, -24)
                                     : ldexp(1024 + fraction, exponent - 25);
        double got = (double)s.tensors[0].values[i];
        bool same = isnan(due) ? isnan(got) : fabs(got) == due;
        wrong += !same || !signbit(got) != !(i >> 15);
    }
    CU_ASSERT(wrong == 0);
    dpf_safetensors_release(&s);
}

static void test_bfloat(void)
{
    /* 1, -0, 2^-133 (the smallest subnormal), infinity, NaN, -3.390625 */
    static const uint8_t data[] = {0x80, 0x3f, 0,    0x80, 1,    0,
                                   0x80, 0x7f, 0xc0, 0x7f, 0x59, 0xc0};
    static const uint32_t due[] = {0x3f800000, 0x80000000, 0x00010000,
                                   0x7f800000, 0x7fc00000, 0xc0590000};
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(
        parse(&s, "{\"x\":{\"dtype\":\"BF16\",\"shape\":[3,2],\"data_offsets\":[0,12]}}",
              data, sizeof data, &e) == DPF_OK);
    for (size_t i = 0; i < 6; i++)
        CU_ASSERT(bits_of(s.tensors[0].values[i]) == due[i]);
    CU_ASSERT(s.tensors[0].values[2] == ldexpf(1, -133));
    CU_ASSERT(s.tensors[0].values[5] == -3.390625f);
    dpf_safetensors_release(&s);
}

/* On little-endian machines, which is what the values here are stored by. */
static void test_double(void)
{
    const double data[] = {0.1,
                           -0.0,
                           ldexp(1, -149), /* the smallest float */
                           ldexp(1, -151), /* rounds to 0 */
                           3.4028234663852886e38,
                           INFINITY,
                           -INFINITY,
                           NAN};
    static const char header[] =
        "{\"x\":{\"dtype\":\"F64\",\"shape\":[8],\"data_offsets\":[0,64]}}";
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(parse(&s, header, data, sizeof data, &e) == DPF_OK);
    const float *v = s.tensors[0].values;
    CU_ASSERT(v[0] == 0.1f && bits_of(v[1]) == 0x80000000u && bits_of(v[2]) == 1);
    CU_ASSERT(bits_of(v[3]) == 0 && bits_of(v[4]) == 0x7f7fffff);
    CU_ASSERT(v[5] == INFINITY && v[6] == -INFINITY && isnan(v[7]));
    dpf_safetensors_release(&s);
    double large[8] = {0, 0, 0, 0, 0, 0, 0, -1e39};
    enum dpf_status status = parse(&s, header, large, sizeof large, &e);
    CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "tensor 'x' of 'f' has a value"));
    CU_ASSERT(is_empty(&s));
}

/* ---- round trips ---- */

static void check_same(const struct dpf_safetensors *a, const struct dpf_safetensors *b)
{
    CU_ASSERT_FATAL(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct dpf_named_tensor *s = &a->tensors[i], *t = &b->tensors[i];
        CU_ASSERT_STRING_EQUAL(s->name, t->name);
        CU_ASSERT(dpf_shape_equal(&s->shape, &t->shape));
        CU_ASSERT_FATAL(s->count == t->count && t->values != NULL);
        CU_ASSERT(memcmp(s->values, t->values, s->count * sizeof(float)) == 0);
    }
    CU_ASSERT(!a->metadata == !b->metadata);
    if (a->metadata && b->metadata)
        CU_ASSERT_STRING_EQUAL(a->metadata, b->metadata);
}

static void check_round_trip(const struct dpf_safetensors *s)
{
    struct dpf_safetensors again;
    struct dpf_error e = {0};
    char *one, *two;
    size_t size_one, size_two;
    const char *path = in_folder("one"), *path_two = in_folder("two");
    CU_ASSERT_FATAL(dpf_safetensors_write(s, path, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_read(&again, path, &e) == DPF_OK);
    check_same(s, &again);
    CU_ASSERT_FATAL(dpf_safetensors_write(&again, path_two, &e) == DPF_OK);
    dpf_safetensors_release(&again);
    CU_ASSERT_FATAL(dpf_read_file(path, 1 << 24, &one, &size_one, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_read_file(path_two, 1 << 24, &two, &size_two, &e) == DPF_OK);
    CU_ASSERT(size_one == size_two && memcmp(one, two, size_one) == 0);
    CU_ASSERT(((uint8_t)one[0] + 8) % 64 == 0);
    free(one);
    free(two);
}

/* Ranks 0 to 5, 8, and empty ones of rank 1 and 3; more values than fit in one chunk. */
static void test_round_trip(void)
{
    static const struct {
        const char *name;
        struct dpf_shape shape;
    } cases[] = {
        {"scalar", {0, {0}}},
        {"vector", {1, {40000}}},
        {"none", {1, {0}}},
        {"z/matrix", {2, {3, 5}}},
        {"a.cube", {3, {2, 3, 4}}},
        {"hollow", {3, {4, 0, 5}}},
        {"conv.weight", {4, {2, 3, 5, 5}}},
        {"volume", {5, {2, 1, 3, 2, 2}}},
        {"eight", {8, {1, 2, 1, 2, 1, 2, 1, 2}}},
        {"last", {1, {0}}},
    };
    float *values = dpf_calloc(40000, sizeof *values);
    struct dpf_safetensors s = {0};
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(values != NULL);
    folder_begin();
    check_round_trip(&s);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t n = dpf_shape_elements(&cases[i].shape);
        for (uint64_t k = 0; k < n; k++)
            values[k] = (float)(i + 1) + 0.37f * (float)k;
        CU_ASSERT_FATAL(dpf_safetensors_add(&s, cases[i].name, &cases[i].shape,
                                            n ? values : NULL, &e) == DPF_OK);
    }
    values[0] = -99; /* they were copied */
    CU_ASSERT(s.count == 10 && s.tensors[9].count == 0 && s.tensors[8].values[0] == 9);
    check_round_trip(&s);
    s.metadata = dpf_strdup("{ \"format\" : \"dpflow\", \"\\u00e9\":\"a\\n\\\"\" }");
    CU_ASSERT_FATAL(s.metadata != NULL);
    check_round_trip(&s);
    free(values);
    dpf_safetensors_release(&s);
    folder_end();
}

/* Infinities, NaN with its payload, subnormals and the sign of zero stay as they are. */
static void test_round_trip_bits(void)
{
    static const uint32_t bits[] = {0x80000000, 1,          0x807fffff, 0x7f800000,
                                    0xff800000, 0x7fc00000, 0xffc12345, 0x7f7fffff};
    static const struct dpf_shape shape = {1, {8}};
    float values[8];
    struct dpf_safetensors s = {0}, again;
    struct dpf_error e = {0};
    memcpy(values, bits, sizeof bits);
    folder_begin();
    const char *path = in_folder("bits");
    CU_ASSERT_FATAL(dpf_safetensors_add(&s, "x", &shape, values, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_write(&s, path, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_read(&again, path, &e) == DPF_OK);
    CU_ASSERT(memcmp(again.tensors[0].values, bits, sizeof bits) == 0);
    dpf_safetensors_release(&again);
    dpf_safetensors_release(&s);
    folder_end();
}

static void test_written_bytes(void)
{
    static const char due[] =
        "\xb8\0\0\0\0\0\0\0"
        "{\"__metadata__\":{\"k\":\"v\"},"
        "\"q\\\"\\\\\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]}"
        ","
        "\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[8,12]}}"
        "                                            "
        "\0\0\x80\x3f\0\0\0\xc0"
        "\0\0\0\x3f";
    static const struct dpf_shape row = {2, {1, 2}}, scalar = {0, {0}};
    static const float values[] = {1, -2, 0.5f};
    struct dpf_safetensors s = {0};
    struct dpf_error e = {0};
    char *got;
    size_t size;
    folder_begin();
    const char *path = in_folder("w"), *part = in_folder("w" DPF_PART_SUFFIX);
    s.metadata = dpf_strdup("{\"k\":\"v\"}");
    CU_ASSERT_FATAL(dpf_safetensors_add(&s, "q\"\\\xc3\xa9", &row, values, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_add(&s, "b", &scalar, values + 2, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_write(&s, path, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_read_file(path, 4096, &got, &size, &e) == DPF_OK);
    CU_ASSERT(size == sizeof due - 1 && memcmp(got, due, size) == 0);
    CU_ASSERT(!dpf_is_file(part));
    free(got);
    check_round_trip(&s);
    dpf_safetensors_release(&s);
    folder_end();
}

static void test_write_refused(void)
{
    static const char *const bad[] = {"",
                                      "[]",
                                      "{} ",
                                      " {}",
                                      "{\"a\":1}",
                                      "{\"a\":\"b\"},\"x\":{\"a\":\"b\"}",
                                      "{\"a\":\"b\",\"\\u0061\":\"c\"}",
                                      "{\"a\":\"\xff\"}",
                                      "{\"a\":\"b\""};
    static const struct dpf_shape one = {1, {1}};
    static const float value = 3;
    struct dpf_safetensors s = {0};
    struct dpf_error e = {0};
    folder_begin();
    const char *path = in_folder("w");
    CU_ASSERT_FATAL(dpf_write_file(path, "old", 3, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_add(&s, "a", &one, &value, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_safetensors_add(&s, "b", &one, &value, &e) == DPF_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s.metadata = (char *)bad[i];
        enum dpf_status status = dpf_safetensors_write(&s, path, &e);
        CU_ASSERT(refused(status, DPF_USAGE, &e, "w': the metadata is no JSON object"));
    }
    s.metadata = NULL;
    s.tensors[1].name[0] = 'a';
    enum dpf_status status = dpf_safetensors_write(&s, path, &e);
    CU_ASSERT(refused(status, DPF_USAGE, &e, "w': tensor 'a' is there twice"));
    s.tensors[1].name[0] = '\n';
    status = dpf_safetensors_write(&s, path, &e);
    CU_ASSERT(refused(status, DPF_USAGE, &e, "name of tensor 2 has a control character"));
    s.tensors[1].name[0] = 'b';
    s.tensors[1].shape.dim[0] = 2;
    status = dpf_safetensors_write(&s, path, &e);
    CU_ASSERT(refused(status, DPF_USAGE, &e, "tensor 'b' has not the values"));
    s.tensors[1].shape.dim[0] = 1;
    status = dpf_safetensors_write(&s, in_folder("no/where"), &e);
    CU_ASSERT(refused(status, DPF_SYSTEM, &e, "no/where"));
    char *left;
    CU_ASSERT_FATAL(dpf_read_file(path, 16, &left, NULL, &e) == DPF_OK);
    CU_ASSERT_STRING_EQUAL(left, "old");
    free(left);
    dpf_safetensors_release(&s);
    folder_end();
}

static void test_add_refused(void)
{
    static const struct dpf_shape one = {1, {1}}, deep = {9, {0}}, flat = {-1, {0}},
                                  huge = {2, {1ull << 33, 1ull << 33}},
                                  hidden = {2, {0, 1ull << 40}};
    static const float value = 3;
    char name[DPF_TENSOR_NAME + 1];
    struct dpf_safetensors s = {0};
    struct dpf_error e = {0};
    memset(name, 'n', sizeof name);
    name[127] = '\0';
    CU_ASSERT(dpf_safetensors_add(&s, name, &one, &value, &e) == DPF_OK);
    CU_ASSERT(dpf_safetensors_find(&s, name) == &s.tensors[0]);
    CU_ASSERT(refused(dpf_safetensors_add(&s, name, &one, &value, &e), DPF_USAGE, &e,
                      "is there already"));
    name[127] = 'n';
    name[128] = '\0';
    CU_ASSERT(refused(dpf_safetensors_add(&s, name, &one, &value, &e), DPF_USAGE, &e,
                      "longer than 127"));
    static const char *const names[][2] = {{"", "is empty"},
                                           {"a\tb", "control"},
                                           {"a\x7f", "control"},
                                           {"\xc2\x9b", "control"},
                                           {"\xff", "not UTF-8"},
                                           {"\xc3", "not UTF-8"},
                                           {"\xc0\x80", "not UTF-8"},
                                           {"\xed\xa0\x80", "not UTF-8"},
                                           {"__metadata__", "that of the metadata"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CU_ASSERT(refused(dpf_safetensors_add(&s, names[i][0], &one, &value, &e),
                          DPF_USAGE, &e, names[i][1]));
    const struct dpf_shape *const shapes[] = {&deep, &flat, &huge, &hidden};
    for (size_t i = 0; i < 4; i++)
        CU_ASSERT(refused(dpf_safetensors_add(&s, "x", shapes[i], &value, &e), DPF_USAGE,
                          &e, "tensor 'x' has a bad shape"));
    CU_ASSERT(s.count == 1 && s.tensors[0].values[0] == 3);
    dpf_safetensors_release(&s);
}

/* ---- hostile headers ---- */

#define F32(name, shape, begin, end)                                                     \
    "\"" name "\":{\"dtype\":\"F32\",\"shape\":[" shape "],\"data_offsets\":[" begin     \
    "," end "]}"

static void test_extents_refused(void)
{
    CU_ASSERT(refuses("{" F32("a", "2", "0", "8") "," F32("b", "1", "4", "8") "}", 8,
                      "tensors 'a' and 'b' of 'f' overlap"));
    CU_ASSERT(refuses("{" F32("a", "1", "0", "4") "," F32("b", "1", "0", "4") "}", 4,
                      "overlap"));
    CU_ASSERT(refuses("{" F32("a", "2", "0", "8") "," F32("b", "0", "4", "4") "}", 8,
                      "overlap"));
    CU_ASSERT(refuses("{" F32("a", "1", "0", "4") "," F32("b", "1", "8", "12") "}", 12,
                      "'f' has a hole before tensor 'b': no tensor has bytes 4..8"));
    CU_ASSERT(refuses("{" F32("a", "1", "4", "8") "}", 8, "hole before tensor 'a'"));
    CU_ASSERT(refuses("{" F32("a", "1", "0", "4") "}", 7,
                      "has bytes after its data: 3 bytes belong to no tensor"));
    CU_ASSERT(refuses("{}", 1, "has bytes after its data: 1 bytes"));
    CU_ASSERT(refuses("{" F32("a", "1", "8", "4") "}", 8,
                      "'a' of 'f' begins at byte 8, after its end at 4"));
    CU_ASSERT(refuses("{" F32("a", "2,3", "0", "20") "}", 20,
                      "has 20 bytes of data where its dtype F32 and shape 2x3 take 24"));
    CU_ASSERT(refuses("{" F32("a", "", "0", "8") "}", 8, "shape scalar take 4"));
    CU_ASSERT(refuses("{" F32("a", "0", "0", "4") "}", 4, "shape 0 take 0"));
    CU_ASSERT(
        refuses("{" F32("a", "1", "18446744073709551612", "18446744073709551615") "}", 4,
                "has 3 bytes"));
    CU_ASSERT(
        refuses("{" F32("a", "1", "18446744073709551611", "18446744073709551615") "}", 4,
                "hole"));
}

static void test_shapes_refused(void)
{
    /* 2^62 floats are 2^64 bytes, that is 0; 2^32 * 2^32 elements are 0, too */
    CU_ASSERT(refuses("{" F32("a", "4611686018427387904", "0", "0") "}", 0,
                      "tensor 'a' of 'f' is too large"));
    CU_ASSERT(refuses("{" F32("a", "4294967296,4294967296", "0", "0") "}", 0,
                      "its shape is 4294967296x4294967296"));
    CU_ASSERT(
        refuses("{" F32("a", "0,18446744073709551615", "0", "0") "}", 0, "too large"));
    CU_ASSERT(refuses("{" F32("a", "18446744073709551616", "0", "4") "}", 4,
                      "expected an unsigned integer"));
    CU_ASSERT(refuses("{" F32("a", "1,1,1,1,1,1,1,1,1", "0", "4") "}", 4,
                      "more than 8 dimensions"));
    /* honest about a size that is not there: nothing is allocated for it */
    CU_ASSERT(refuses("{" F32("a", "1000000000", "0", "4000000000") "}", 4,
                      "'f' is truncated: tensor 'a' needs bytes 0..4000000000"));
}

static void test_header_length_refused(void)
{
    static const struct {
        uint8_t length[8];
        const char *text;
    } cases[] = {
        {{255, 255, 255, 255, 255, 255, 255, 255}, "would have 18446744073709551615"},
        {{0x01, 0xe1, 0xf5, 0x05}, "would have 100000001 bytes, more than 100000000"},
        {{0x00, 0xe1, 0xf5, 0x05}, "truncated: its header needs 100000000 bytes, 2 are"},
        {{3}, "its header needs 3 bytes, 2 are there"},
        {{1}, "expected a string and ':' at byte 1 of it"},
        {{0}, "does not begin with '{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t file[10] = {0, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
        struct dpf_safetensors s;
        struct dpf_error e = {0};
        memcpy(file, cases[i].length, 8);
        enum dpf_status status = parse_exact(&s, file, sizeof file, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, cases[i].text));
    }
}

static void test_dtypes_refused(void)
{
    static const char *const dtypes[] = {"I64", "I32", "U8", "BOOL", "F8_E4M3",
                                         "f32", "F3",  "",   "F321", "BF16 "};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        char header[128], text[64];
        snprintf(header, sizeof header,
                 "{\"bn.steps\":{\"dtype\":\"%s\",\"shape\":[1],\"data_offsets\":[0,8]}}",
                 dtypes[i]);
        snprintf(text, sizeof text, "tensor 'bn.steps' of 'f' has dtype '%s', not F32",
                 dtypes[i]);
        CU_ASSERT(refuses(header, 8, text));
    }
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\\u0000\",\"shape\":[],"
                      "\"data_offsets\":[0,4]}}",
                      4, "has dtype '?'"));
}

static void test_doubles_refused(void)
{
    CU_ASSERT(refuses("{" F32("a", "1", "0", "4") "," F32("b", "1", "4", "8") "," F32(
                          "a", "1", "8", "12") "}",
                      12, "'f' has tensor 'a' twice"));
    CU_ASSERT(refuses("{" F32("a", "1", "0", "4") "," F32("\\u0061", "1", "4", "8") "}",
                      8, "'f' has tensor 'a' twice"));
    CU_ASSERT(
        refuses("{\"__metadata__\":{},\"__metadata__\":{}}", 0, "its metadata twice"));
    CU_ASSERT(refuses("{\"__metadata__\":{\"k\":\"1\",\"j\":\"\",\"\\u006b\":\"2\"}}", 0,
                      "a key twice in its metadata"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[],"
                      "\"data_offsets\":[0,4]}}",
                      4, "has the doubled key 'dtype'"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"shape\":[1],"
                      "\"data_offsets\":[0,4]}}",
                      4, "has the doubled key 'shape'"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],"
                      "\"strides\":[1]}}",
                      4, "has the unknown key 'strides'"));
    CU_ASSERT(refuses("{\"a\":{\"dtype\":\"F32\",\"shape\":[]}}", 4,
                      "tensor 'a' of 'f' lacks its dtype, shape or data_offsets"));
    CU_ASSERT(refuses("{\"a\":{}}", 0, "lacks"));
}

static void test_names_refused(void)
{
    char long_name[128 + 1], header[256];
    memset(long_name, 'n', 128);
    long_name[128] = '\0';
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
             long_name);
    CU_ASSERT(refuses(header, 4, "the name of tensor 1 of 'f' is longer than 127 bytes"));
    CU_ASSERT(refuses("{" F32("a\\u0000b", "", "0", "4") "}", 4, "control character"));
    CU_ASSERT(refuses("{" F32("a\\nb", "", "0", "4") "}", 4, "control character"));
    CU_ASSERT(refuses("{" F32("\\u009b", "", "0", "4") "}", 4, "control character"));
    CU_ASSERT(refuses("{" F32("a\nb", "", "0", "4") "}", 4, "malformed"));
    CU_ASSERT(refuses("{" F32("", "", "0", "4") "}", 4, "is empty"));
    CU_ASSERT(refuses("{" F32("\xff", "", "0", "4") "}", 4, "not UTF-8"));
    CU_ASSERT(refuses("{\"__metadata__\":{\"a\\u0000b\":\"\"}}", 0, "control character"));
}

static void test_json_refused(void)
{
    static const char *const bad[] = {
        "[]",
        " {}",
        "{",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":{",
        "{,}",
        "{}}",
        "{} x",
        "{}{}",
        "{\"a\":1}",
        "{\"a\":null}",
        "{\"a\":[]}",
        "{a:{}}",
        "{'a':{}}",
        "{\"__metadata__\":[]}",
        "{\"__metadata__\":{\"a\":1}}",
        "{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}",
        "{\"__metadata__\":{\"a\":\"b\",}}",
        "{\"__metadata__\":{\"a\" \"b\"}}",
        "{\"__metadata__\":{\"a\":\"b\" \"c\":\"d\"}}",
        "{\"__metadata__\":{\"a\":\"\\x\"}}",
        "{\"__metadata__\":{\"a\":\"\\u12g4\"}}",
        "{\"__metadata__\":{\"a\":\"\\ud800\"}}",
        "{\"__metadata__\":{\"a\":\"\\udc00\"}}",
        "{\"__metadata__\":{\"a\":\"\\ud800\\u0041\"}}",
        "{\"__metadata__\":{\"a\":\"\t\"}}",
        "{\"__metadata__\":{\"a\":\"\\u12",
        "{\"__metadata__\":{\"a\":\"\\",
        "{\"__metadata__\":{\"a\":\"\\ud800\\",
        "{" F32("a", "1", "0", "4") ",}",
        "{," F32("a", "1", "0", "4") "}",
        "{" F32("a", "1", "0", "4") F32("b", "1", "4", "8") "}",
        "{" F32("a", "1,", "0", "4") "}",
        "{" F32("a", ",1", "0", "4") "}",
        "{" F32("a", "01", "0", "4") "}",
        "{" F32("a", "-1", "0", "4") "}",
        "{" F32("a", "+1", "0", "4") "}",
        "{" F32("a", "1.0", "0", "4") "}",
        "{" F32("a", "1e0", "0", "4") "}",
        "{" F32("a", "\"1\"", "0", "4") "}",
        "{" F32("a", "[1]", "0", "4") "}",
        "{" F32("a", "1 1", "0", "4") "}",
        "{" F32("a", "1", "0", "4,5") "}",
        "{" F32("a", "1", "00", "4") "}",
        "{" F32("a", "1", "0", "") "}",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT(refuses(bad[i], 4, i < 2 ? "does not begin with '{'" : "malformed"));
    }
}

/* A parser that recurses would end here. */
static void test_deep_nesting(void)
{
    static const char *const openings[] = {"[", "{\"a\":", "{\"__metadata__\":"};
    for (size_t i = 0; i < 3; i++) {
        struct dpf_text t = {0};
        struct dpf_safetensors s;
        struct dpf_error e = {0};
        dpf_text_add(&t, "{\"a\":{\"shape\":");
        for (int k = 0; k < 300000; k++)
            dpf_text_add(&t, openings[i]);
        CU_ASSERT_FATAL(!t.failed);
        enum dpf_status status = parse(&s, t.data, "", 0, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "malformed header"));
        status = parse(&s, t.data + strlen("{\"a\":{\"shape\":"), "", 0, &e);
        CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, i ? "'f' " : "does not begin"));
        dpf_text_release(&t);
    }
}

/* What JSON allows is read: escapes, blanks, keys in any order, tensors in any order. */
static void test_json_accepted(void)
{
    static const uint8_t data[] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40};
    struct dpf_safetensors s;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(
        parse(
            &s,
            "{ \"c\\/\\\"\\\\\\u00E9\\u20ac\\ud83d\\ude00\" :\t{ \"data_offsets\" : [ 4 "
            ", 12 ] ,\r\n\"shape\":[ 2 ],\"dtype\":\"F\\u00332\"},\n"
            "\"__metadata__\" : {\"x\" : \"\\b\\f\\n\\r\\t\\u0000\" } ," F32(
                "empty", "0,7", "4", "4") "," F32("first", "", "0", "4") "} \n",
            data, sizeof data, &e) == DPF_OK);
    CU_ASSERT_FATAL(s.count == 3);
    CU_ASSERT_STRING_EQUAL(s.tensors[0].name,
                           "c/\"\\\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    CU_ASSERT(s.tensors[0].values[0] == 2 && s.tensors[0].values[1] == 3);
    CU_ASSERT(s.tensors[1].count == 0 && s.tensors[1].shape.dim[1] == 7);
    CU_ASSERT(s.tensors[2].count == 1 && s.tensors[2].values[0] == 1);
    CU_ASSERT_STRING_EQUAL(s.metadata, "{\"x\" : \"\\b\\f\\n\\r\\t\\u0000\" }");
    dpf_safetensors_release(&s);
    CU_ASSERT_FATAL(parse(&s, "{}", "", 0, &e) == DPF_OK);
    CU_ASSERT(is_empty(&s));
}

/* 65536 empty tensors are read, one more is not; so for keys of the metadata. */
static void test_too_many(void)
{
    for (int extra = 0; extra < 2; extra++)
        for (int metadata = 0; metadata < 2; metadata++) {
            struct dpf_text t = {0};
            struct dpf_safetensors s;
            struct dpf_error e = {0};
            dpf_text_add(&t, metadata ? "{\"__metadata__\":{" : "{");
            for (int i = 0; i < DPF_MAX_NAMED_TENSORS + extra; i++)
                dpf_text_addf(&t,
                              metadata ? "%s\"%d\":\"\""
                                       : "%s\"%d\":{\"dtype\":\"F32\",\"shape\":[0],"
                                         "\"data_offsets\":[0,0]}",
                              i ? "," : "", i);
            dpf_text_add(&t, metadata ? "}}" : "}");
            CU_ASSERT_FATAL(!t.failed);
            enum dpf_status status = parse(&s, t.data, "", 0, &e);
            if (extra) {
                CU_ASSERT(refused(status, DPF_BAD_STREAM, &e, "has more than 65536"));
                CU_ASSERT(is_empty(&s));
            } else {
                CU_ASSERT(status == DPF_OK);
                CU_ASSERT(s.count == (metadata ? 0 : DPF_MAX_NAMED_TENSORS));
                CU_ASSERT(!s.metadata == !metadata);
                dpf_safetensors_release(&s);
            }
            dpf_text_release(&t);
        }
}

const char dpf_suite[] = "safetensors";
const struct dpf_test dpf_tests[] = {
    {"a file of the reference writer", test_reference},
    {"a pipe", test_pipe},
    {"every cut is found", test_every_cut},
    {"a cut is told by file, tensor and bytes", test_truncated_message},
    {"no file", test_no_file},
    {"F16 by its bits", test_half},
    {"F16, every value", test_all_halves},
    {"BF16", test_bfloat},
    {"F64", test_double},
    {"round trip of every rank", test_round_trip},
    {"round trip keeps every bit", test_round_trip_bits},
    {"the bytes that are written", test_written_bytes},
    {"what cannot be read is not written", test_write_refused},
    {"what cannot be added", test_add_refused},
    {"overlaps, holes and lying sizes", test_extents_refused},
    {"shapes that overflow", test_shapes_refused},
    {"lengths of the header that lie", test_header_length_refused},
    {"other dtypes", test_dtypes_refused},
    {"doubled and unknown keys", test_doubles_refused},
    {"names that are refused", test_names_refused},
    {"JSON that is refused", test_json_refused},
    {"deep JSON", test_deep_nesting},
    {"JSON that is read", test_json_accepted},
    {"too many tensors", test_too_many},
    {NULL, NULL},
};
