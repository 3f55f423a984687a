/* Numbers as strings of bits: every value of every grid there and back, what lies beside
 * and beyond it, the order of the bits. What is due is worked out here one value at a
 * time, in integers; memory that ends where the result ends catches whoever writes on. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/binary.h"
#include "harness.h"

#include "base/banned.h"

/* The magnitude in steps of 2^-fraction that |x| has to become, or -1: not a number. */
static long due_steps(const struct dpf_binary *b, float x, bool *fits)
{
    long end = 1L << (b->whole + b->fraction);
    double size = fabs((double)x) * (double)(1L << b->fraction); /* exact in a double */
    *fits = size < (double)end;
    if (x != x)
        return 0;
    return *fits ? (long)size : end - 1;
}

static int bit_at(const uint8_t *bits, size_t i)
{
    return bits[i / 8] >> i % 8 & 1;
}

/* Encode `count` values into exactly as many bytes as they need, and compare each bit. */
static bool check_encode(const struct dpf_binary *b, const float *x, size_t count)
{
    size_t width = (size_t)(b->whole + b->fraction + 1), misfits = 0;
    size_t bytes = (count * width + 7) / 8;
    uint8_t *bits = malloc(bytes + 2);
    CU_ASSERT_FATAL(bits != NULL);
    memset(bits, 0xa5, bytes + 2);
    uint64_t told = dpf_binary_encode(b, x, count, bits + 1);
    bool good = bits[0] == 0xa5 && bits[bytes + 1] == 0xa5;
    good = good && dpf_binary_bytes(b, count) == bytes;
    for (size_t i = 0; i < count; i++) {
        bool fits;
        long steps = due_steps(b, x[i], &fits);
        misfits += !fits;
        good = good && bit_at(bits + 1, i * width) == (x[i] < 0);
        for (size_t k = 1; k < width; k++)
            good = good &&
                   bit_at(bits + 1, i * width + k) == (int)(steps >> (width - 1 - k) & 1);
    }
    for (size_t i = count * width; i < bytes * 8; i++) /* unused */
        good = good && bit_at(bits + 1, i) == 0;
    good = good && told == misfits;
    if (!good)
        printf("    %d + %d bits, %zu values\n", b->whole, b->fraction, count);
    free(bits);
    return good;
}

/* ------------------------------------------------------------------------------- grids
 */

static void test_sizes(void)
{
    struct dpf_error e = {0};
    for (int whole = -1; whole <= 17; whole++)
        for (int fraction = -1; fraction <= 17; fraction++) {
            struct dpf_binary b = {whole, fraction};
            bool due = whole >= 0 && fraction >= 0 && whole + fraction >= 1 &&
                       whole + fraction <= 15;
            enum dpf_status status = dpf_binary_check(&b, &e);
            CU_ASSERT(status == (due ? DPF_OK : DPF_USAGE));
            if (!due)
                continue;
            CU_ASSERT(dpf_binary_bits(&b) == whole + fraction + 1);
            CU_ASSERT(dpf_binary_bytes(&b, 0) == 0);
            double step = 1.0 / (double)(1 << fraction);
            CU_ASSERT(dpf_binary_largest(&b) == (double)(1 << whole) - step);
        }
    struct dpf_binary low = {-2147483647, 2147483647};
    CU_ASSERT(dpf_binary_check(&low, &e) == DPF_USAGE);
}

/* Every value of every grid, both signs, comes back; zero has one sign only. */
static void test_round_trip(void)
{
    static float x[2 << 15], back[2 << 15];
    static uint8_t bits[2 * sizeof x];
    for (int total = 1; total <= 15; total++)
        for (int whole = 0; whole <= total; whole += total == 15 ? 5 : 1) {
            struct dpf_binary b = {whole, total - whole};
            size_t count = 0;
            for (long k = 0; k < 1L << total; k++)
                for (int sign = 0; sign < 2; sign++)
                    if (k || !sign)
                        x[count++] = (float)(sign ? -k : k) / (float)(1L << b.fraction);
            uint64_t misfits = dpf_binary_encode(&b, x, count, bits);
            dpf_binary_decode(&b, bits, count, back);
            CU_ASSERT(misfits == 0 && memcmp(x, back, count * sizeof *x) == 0);
            CU_ASSERT(check_encode(&b, x, count));
        }
}

/* Every string of bits is some value, decoded as its bits say. */
static void test_decode_all(void)
{
    static const struct dpf_binary codes[] = {{1, 0}, {0, 1}, {2, 5}, {10, 5}, {0, 15}};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        const struct dpf_binary *b = &codes[c];
        int width = b->whole + b->fraction + 1;
        bool good = true;
        for (long code = 0; code < 1L << width; code++) {
            /* the second value is what is looked at: it starts inside a byte */
            uint8_t bits[4] = {0};
            float x[2];
            double due = 0;
            for (int k = 0; k < width; k++) {
                size_t at = (size_t)(width + k);
                int bit = (int)(code >> k & 1);
                bits[at / 8] |= (uint8_t)(bit << at % 8);
                if (k)
                    due += bit * pow(2, b->whole - k);
            }
            dpf_binary_decode(b, bits, 2, x);
            good = good && x[0] == 0 && !signbit(x[0]);
            good = good && (double)x[1] == (code & 1 ? -due : due);
        }
        CU_ASSERT(good);
    }
}

/* --------------------------------------------------------------- beside and beyond */

static void test_hostile_values(void)
{
    static const float fixed[] = {
        0.0f,          -0.0f,       INFINITY,      -INFINITY, NAN,      -NAN,
        FLT_MAX,       -FLT_MAX,    FLT_MIN,       -FLT_MIN,  1e-45f,   -1e-45f,
        1e-40f,        0.99999994f, -0.99999994f,  32767.99f, 32768.0f, 2147483648.0f,
        4294967296.0f, -9.3e18f,    1.8446744e19f, 1e38f};
    enum { FIXED = sizeof fixed / sizeof *fixed };
    for (int total = 1; total <= 15; total++)
        for (int whole = 0; whole <= total; whole++) {
            struct dpf_binary b = {whole, total - whole};
            float largest = (float)dpf_binary_largest(&b), x[FIXED + 16];
            float step = 1 / (float)(1L << b.fraction), end = largest + step;
            size_t n = FIXED;
            memcpy(x, fixed, sizeof fixed);
            for (int sign = -1; sign <= 1; sign += 2) {
                float s = (float)sign;
                x[n++] = s * largest;
                x[n++] = s * nextafterf(end, 0); /* the last that fits, cut off */
                x[n++] = s * end;                /* the first that does not */
                x[n++] = s * nextafterf(end, INFINITY);
                x[n++] = s * step;
                x[n++] = s * nextafterf(step, 0); /* cut to nothing */
                x[n++] = s * nextafterf(step, 1);
                x[n++] = s * nextafterf(largest, 0);
            }
            CU_ASSERT(check_encode(&b, x, n));
        }
    /* the same in words: no wrapping, and what is no number is 0 */
    struct dpf_binary b = {2, 5};
    const float in[] = {4, -4, 1e30f, -INFINITY, NAN, -0.0f, 3.99f, -0.03f, 0.99f};
    const float due[] = {3.96875f, -3.96875f, 3.96875f, -3.96875f, 0,
                         0,        3.96875f,  0,        0.96875f};
    uint8_t bits[9];
    float out[9];
    CU_ASSERT(dpf_binary_encode(&b, in, 9, bits) == 5);
    dpf_binary_decode(&b, bits, 9, out);
    for (int i = 0; i < 9; i++)
        CU_ASSERT(out[i] == due[i]);
    CU_ASSERT(!signbit(out[4]) && !signbit(out[5]));
}

/* The floor of |x|, everywhere: many random values, all scales. */
static void test_truncation(void)
{
    static float x[4096];
    uint64_t state = 1;
    for (int total = 1; total <= 15; total++) {
        struct dpf_binary b = {total / 3, total - total / 3};
        for (size_t i = 0; i < 4096; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint32_t pattern = (uint32_t)(state >> 32);
            if (i % 2) /* any float there is; else one of this grid's size */
                memcpy(&x[i], &pattern, sizeof pattern);
            else
                x[i] = ((float)pattern / 2147483648.0f - 1) * 1.2f *
                       (float)dpf_binary_largest(&b);
        }
        CU_ASSERT(check_encode(&b, x, 4096));
    }
}

/* Counts around the sizes of bytes, words and blocks. */
static void test_counts(void)
{
    static float x[300];
    for (size_t i = 0; i < 300; i++)
        x[i] = (float)(i * 7919 % 601) / 50 - 6;
    for (int total = 1; total <= 15; total++) {
        struct dpf_binary b = {(total + 1) / 2, total / 2};
        bool good = true;
        for (size_t count = 0; count <= 200; count++)
            good = good && check_encode(&b, x + count % 3, count);
        CU_ASSERT(good);
    }
}

/* By hand: -2.5 with 2 + 1 bits is 1 10 1, 1 is 0 01 0; first bit lowest. */
static void test_order(void)
{
    struct dpf_binary b = {2, 1};
    const float x[] = {-2.5f, 1, 3.5f};
    uint8_t bits[2] = {0xff, 0xff};
    CU_ASSERT(dpf_binary_encode(&b, x, 3, bits) == 0);
    CU_ASSERT(bits[0] == 0x4b); /* 1,1,0,1 then 0,0,1,0 from the lowest bit on */
    CU_ASSERT(bits[1] == 0x0e); /* 0,1,1,1 then nothing */
}

const char dpf_suite[] = "binary";

const struct dpf_test dpf_tests[] = {
    {"sizes, and what has none", test_sizes},
    {"every value of every grid comes back", test_round_trip},
    {"every string of bits has its value", test_decode_all},
    {"saturation, NaN, infinities, denormals", test_hostile_values},
    {"values between two of the grid are cut off", test_truncation},
    {"any number of values", test_counts},
    {"order of bits, by hand", test_order},
    {0},
};
