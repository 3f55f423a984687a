/* Tensors: every dtype, and shapes that lie. */
#include "tensor/tensor.h"

#include <math.h>

#include "base/memory.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define SHAPE(...)                                                                       \
    (struct dpf_shape)                                                                   \
    {                                                                                    \
        .rank = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), .dim = {           \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

static const size_t sizes[DPF_DTYPE_COUNT] = {1, 4, 8, 4, 8, 0};
static const char *const names[DPF_DTYPE_COUNT] = {"u8",  "i32", "i64",
                                                   "f32", "f64", "bits"};

static void test_dtypes(void)
{
    for (int d = 0; d < DPF_DTYPE_COUNT; d++) {
        enum dpf_dtype dtype = (enum dpf_dtype)d;
        CU_ASSERT_STRING_EQUAL(dpf_dtype_name(dtype), names[d]);
        CU_ASSERT(dpf_dtype_parse(names[d], strlen(names[d])) == dtype);
        CU_ASSERT(dpf_dtype_size(dtype) == sizes[d]);
    }
    CU_ASSERT(dpf_dtype_parse("f16", 3) == DPF_DTYPE_COUNT);
    CU_ASSERT(dpf_dtype_parse("", 0) == DPF_DTYPE_COUNT);
    CU_ASSERT(dpf_dtype_parse("f32x", 4) == DPF_DTYPE_COUNT);
    CU_ASSERT(dpf_dtype_parse("f32x", 3) == DPF_F32); /* only so many are looked at */
    CU_ASSERT_STRING_EQUAL(dpf_dtype_name(DPF_DTYPE_COUNT), "?");
}

static void test_bytes(void)
{
    size_t bytes;
    struct dpf_shape s = SHAPE(2, 3, 5), scalar = {0}, empty = SHAPE(0, 3);
    for (int d = DPF_U8; d <= DPF_F64; d++) {
        CU_ASSERT(dpf_shape_bytes((enum dpf_dtype)d, &s, &bytes));
        CU_ASSERT(bytes == 30 * sizes[d]);
        CU_ASSERT(dpf_shape_bytes((enum dpf_dtype)d, &scalar, &bytes));
        CU_ASSERT(bytes == sizes[d]);
        CU_ASSERT(dpf_shape_bytes((enum dpf_dtype)d, &empty, &bytes) && bytes == 0);
    }
    CU_ASSERT(dpf_shape_bytes(DPF_BITS, &s, &bytes) && bytes == 6); /* rows of 5 bits */
    s = SHAPE(3, 8);
    CU_ASSERT(dpf_shape_bytes(DPF_BITS, &s, &bytes) && bytes == 3);
    s = SHAPE(3, 9);
    CU_ASSERT(dpf_shape_bytes(DPF_BITS, &s, &bytes) && bytes == 6);
    CU_ASSERT(dpf_shape_elements(&s) == 27 && dpf_shape_elements(&scalar) == 1);
    s = SHAPE(DPF_MAX_TENSOR_BYTES);
    CU_ASSERT(dpf_shape_bytes(DPF_U8, &s, &bytes) && bytes == DPF_MAX_TENSOR_BYTES);
}

static void test_hostile_shapes(void)
{
    size_t bytes = 77;
    const struct dpf_shape bad[] = {
        SHAPE(1ull << 63),
        SHAPE(DPF_MAX_TENSOR_BYTES + 1),
        SHAPE(1ull << 32, 1ull << 32),
        SHAPE(1ull << 63, 2),
        SHAPE(0, 1ull << 63),          /* a zero hides nothing */
        SHAPE(1ull << 20, 1 << 20, 0), /* on either side */
        SHAPE(0, 1ull << 20, 1 << 20),
        SHAPE(65536, 65536, 1, 1, 1, 1, 1, 1),
        SHAPE(UINT64_MAX, UINT64_MAX, UINT64_MAX),
        {.rank = 9},
        {.rank = -1},
        {.rank = INT32_MAX},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (int d = 0; d <= DPF_F64; d++) {
            struct dpf_tensor t;
            struct dpf_error e = {0};
            CU_ASSERT(!dpf_shape_bytes((enum dpf_dtype)d, &bad[i], &bytes));
            CU_ASSERT(dpf_tensor_init(&t, (enum dpf_dtype)d, &bad[i], &e) ==
                      DPF_BAD_STREAM);
            CU_ASSERT(t.data == NULL && !t.owned && e.message[0]);
        }
    const struct dpf_shape bad_bits[] = {{.rank = 0},
                                         SHAPE(1ull << 63),
                                         SHAPE(UINT64_MAX),
                                         SHAPE(DPF_MAX_TENSOR_BYTES * 8 + 1),
                                         SHAPE(2, DPF_MAX_TENSOR_BYTES * 8),
                                         SHAPE(0, UINT64_MAX)};
    for (size_t i = 0; i < sizeof bad_bits / sizeof *bad_bits; i++)
        CU_ASSERT(!dpf_shape_bytes(DPF_BITS, &bad_bits[i], &bytes));
    CU_ASSERT(bytes == 77);
    CU_ASSERT(!dpf_shape_bytes(DPF_DTYPE_COUNT, &(struct dpf_shape){0}, &bytes));
}

static void test_shapes(void)
{
    struct dpf_shape a = SHAPE(2, 3), b = SHAPE(2, 3), out = {0};
    char text[32];
    b.dim[5] = 9; /* what lies beyond the rank does not count */
    CU_ASSERT(dpf_shape_equal(&a, &b));
    b.dim[1] = 4;
    CU_ASSERT(!dpf_shape_equal(&a, &b));
    b = SHAPE(2, 3, 1);
    CU_ASSERT(!dpf_shape_equal(&a, &b));
    CU_ASSERT(dpf_shape_prepend(&a, 7, &out) && out.rank == 3);
    CU_ASSERT(out.dim[0] == 7 && out.dim[1] == 2 && out.dim[2] == 3);
    CU_ASSERT(dpf_shape_prepend(&a, 5, &a) && a.rank == 3 && a.dim[2] == 3);
    struct dpf_shape full = SHAPE(1, 1, 1, 1, 1, 1, 1, 1);
    CU_ASSERT(!dpf_shape_prepend(&full, 1, &out));
    dpf_shape_format(&a, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "5x2x3");
    dpf_shape_format(&(struct dpf_shape){0}, text, sizeof text);
    CU_ASSERT_STRING_EQUAL(text, "scalar");
    full = SHAPE(UINT64_MAX, UINT64_MAX, UINT64_MAX);
    memset(text, '!', sizeof text);
    dpf_shape_format(&full, text, 8);
    CU_ASSERT(text[7] == '\0' && text[8] == '!');
}

/* Element i of a tensor that holds 0, 1, 2, ... (bits: a pattern). */
static double due(enum dpf_dtype dtype, uint64_t i)
{
    return dtype == DPF_BITS ? (double)(i * 7 / 3 % 2) : (double)i;
}

static void fill(struct dpf_tensor *t)
{
    uint64_t n = dpf_shape_elements(&t->shape);
    memset(t->data, 0, t->bytes);
    for (uint64_t i = 0; i < n; i++)
        switch (t->dtype) {
        case DPF_U8:
            ((uint8_t *)t->data)[i] = (uint8_t)i;
            break;
        case DPF_I32:
            ((int32_t *)t->data)[i] = (int32_t)i;
            break;
        case DPF_I64:
            ((int64_t *)t->data)[i] = (int64_t)i;
            break;
        case DPF_F32:
            ((float *)t->data)[i] = (float)i;
            break;
        case DPF_F64:
            ((double *)t->data)[i] = (double)i;
            break;
        default: {
            uint64_t columns = t->shape.dim[t->shape.rank - 1], row = i / columns;
            uint8_t *bytes = (uint8_t *)t->data + row * ((columns + 7) / 8);
            unsigned bit = due(DPF_BITS, i) > 0;
            bytes[i % columns / 8] |= (uint8_t)(bit << i % columns % 8);
        }
        }
}

static void test_values(void)
{
    struct dpf_shape shape = SHAPE(3, 2, 11);
    for (int d = 0; d < DPF_DTYPE_COUNT; d++) {
        struct dpf_tensor t, f, view;
        struct dpf_error e = {0};
        enum dpf_dtype dtype = (enum dpf_dtype)d;
        CU_ASSERT_FATAL(dpf_tensor_init(&t, dtype, &shape, &e) == DPF_OK);
        CU_ASSERT(t.owned && (uintptr_t)t.data % DPF_ALIGNMENT == 0);
        fill(&t);
        CU_ASSERT(dpf_tensor_rows(&t) == 3);
        CU_ASSERT(dpf_tensor_row_bytes(&t) == (d == DPF_BITS ? 4 : 22 * sizes[d]));
        CU_ASSERT_FATAL(dpf_tensor_to_f32(&t, &f, &e) == DPF_OK);
        CU_ASSERT(f.dtype == DPF_F32 && dpf_shape_equal(&f.shape, &shape));
        for (uint64_t i = 0; i < 66; i++) {
            CU_ASSERT(dpf_tensor_get(&t, i) == due(dtype, i));
            CU_ASSERT(((float *)f.data)[i] == (float)due(dtype, i));
        }
        CU_ASSERT_FATAL(dpf_tensor_view(&view, dtype, &shape, t.data, &e) == DPF_OK);
        CU_ASSERT(!view.owned && view.bytes == t.bytes && dpf_tensor_equal(&view, &t));
        dpf_tensor_release(&view);
        CU_ASSERT(view.data == NULL && dpf_tensor_get(&t, 2) == due(dtype, 2));
        dpf_tensor_release(&f);
        dpf_tensor_release(&t);
        CU_ASSERT(t.data == NULL && !t.owned);
        dpf_tensor_release(&t);
    }
}

static void test_extremes(void)
{
    int32_t i32[2] = {INT32_MIN, INT32_MAX};
    int64_t i64[2] = {INT64_MIN, -1};
    struct dpf_shape two = SHAPE(2), none = SHAPE(0, 4);
    struct dpf_tensor t, f;
    CU_ASSERT_FATAL(dpf_tensor_view(&t, DPF_I32, &two, i32, NULL) == DPF_OK);
    CU_ASSERT(dpf_tensor_get(&t, 0) == -2147483648.0 &&
              dpf_tensor_get(&t, 1) == 2147483647.0);
    CU_ASSERT_FATAL(dpf_tensor_view(&t, DPF_I64, &two, i64, NULL) == DPF_OK);
    CU_ASSERT(dpf_tensor_get(&t, 0) == -0x1p63 && dpf_tensor_get(&t, 1) == -1);
    CU_ASSERT_FATAL(dpf_tensor_to_f32(&t, &f, NULL) == DPF_OK);
    CU_ASSERT(((float *)f.data)[0] == -0x1p63f && ((float *)f.data)[1] == -1);
    dpf_tensor_release(&f);
    CU_ASSERT_FATAL(dpf_tensor_init(&t, DPF_BITS, &none, NULL) == DPF_OK);
    CU_ASSERT(dpf_tensor_rows(&t) == 0 && dpf_tensor_row_bytes(&t) == 0 && t.bytes == 0);
    CU_ASSERT_FATAL(dpf_tensor_to_f32(&t, &f, NULL) == DPF_OK);
    CU_ASSERT(f.bytes == 0);
    dpf_tensor_release(&f);
    dpf_tensor_release(&t);
    struct dpf_shape scalar = {0};
    CU_ASSERT_FATAL(dpf_tensor_init(&t, DPF_F64, &scalar, NULL) == DPF_OK);
    CU_ASSERT(dpf_tensor_rows(&t) == 1 && dpf_tensor_row_bytes(&t) == 8);
    dpf_tensor_release(&t);
}

static void test_equal(void)
{
    float a[4] = {1, NAN, -0.0f, 4}, b[4] = {1, NAN, -0.0f, 4};
    struct dpf_shape flat = SHAPE(4), square = SHAPE(2, 2);
    struct dpf_tensor x, y;
    CU_ASSERT_FATAL(dpf_tensor_view(&x, DPF_F32, &flat, a, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_tensor_view(&y, DPF_F32, &flat, b, NULL) == DPF_OK);
    CU_ASSERT(dpf_tensor_equal(&x, &y));
    b[2] = 0.0f; /* another zero is another value */
    CU_ASSERT(!dpf_tensor_equal(&x, &y));
    b[2] = -0.0f;
    CU_ASSERT_FATAL(dpf_tensor_view(&y, DPF_F32, &square, b, NULL) == DPF_OK);
    CU_ASSERT(!dpf_tensor_equal(&x, &y));
    CU_ASSERT_FATAL(dpf_tensor_view(&y, DPF_I32, &flat, b, NULL) == DPF_OK);
    CU_ASSERT(!dpf_tensor_equal(&x, &y));
}

const char dpf_suite[] = "tensor";

const struct dpf_test dpf_tests[] = {
    {"dtypes and their names", test_dtypes},
    {"bytes of shapes", test_bytes},
    {"hostile shapes", test_hostile_shapes},
    {"shapes compared, extended, formatted", test_shapes},
    {"values of every dtype", test_values},
    {"extreme values and empty tensors", test_extremes},
    {"equality is of bits", test_equal},
    {0},
};
