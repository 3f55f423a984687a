/* Pictures that are moved, turned, mirrored and enlarged: the geometry against values
 * that follow from its definition, the records against their recipe. */
#include <float.h>
#include <math.h>

#include "data/augment.h"
#include "stream_fixture.h"

#include "base/banned.h"

#define SHAPE(...)                                                                       \
    (struct dpf_shape)                                                                   \
    {                                                                                    \
        .rank = sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), .dim = {           \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

/* ---- geometry ---- */

enum { MOST = 3100 };
static float numbers[MOST], got[MOST], again[MOST];

static void draw(uint64_t index, double lo, double hi)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "test-augment", 1, index);
    for (int i = 0; i < MOST; i++)
        numbers[i] = (float)dpf_seeded_range(&r, lo, hi);
}

static struct dpf_warp warp(size_t planes, size_t height, size_t width,
                            struct dpf_pose pose)
{
    struct dpf_warp w = {planes, height, width, height, width, {{0}, {0}}};
    dpf_warp_set_pose(&w, &pose);
    return w;
}

static struct dpf_warp resize(size_t height, size_t width, size_t new_height,
                              size_t new_width)
{
    struct dpf_warp w = {1, height, width, new_height, new_width, {{0}, {0}}};
    dpf_warp_set_pose(&w, &(struct dpf_pose){0});
    return w;
}

static size_t clip(long at, size_t n)
{
    return at < 0 ? 0 : at >= (long)n ? n - 1 : (size_t)at;
}

static void test_identity(void)
{
    static const size_t sizes[][3] = {{3, 32, 32}, {1, 1, 1}, {2, 7, 13}, {5, 1, 300}};
    draw(0, -3, 3);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t n = sizes[s][0] * sizes[s][1] * sizes[s][2];
        struct dpf_warp w =
            warp(sizes[s][0], sizes[s][1], sizes[s][2], (struct dpf_pose){0});
        memset(got, 0x55, sizeof got);
        dpf_warp_linear(&w, DPF_F32, numbers, got);
        CU_ASSERT(memcmp(got, numbers, n * sizeof *got) == 0);
        CU_ASSERT(memcmp(&got[n], "UUUU", 4) == 0); /* and not a value more */
    }
    uint8_t bytes[256], same[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (uint8_t)i;
    struct dpf_warp w = warp(1, 16, 16, (struct dpf_pose){.degrees = 360});
    dpf_warp_linear(&w, DPF_U8, bytes, same);
    CU_ASSERT(memcmp(bytes, same, 256) == 0);
    dpf_warp_nearest(&w, 1, bytes, same);
    CU_ASSERT(memcmp(bytes, same, 256) == 0);
}

static void test_mirror(void)
{
    enum { P = 3, H = 5, W = 9 };
    struct dpf_warp w = warp(P, H, W, (struct dpf_pose){.mirrored = true});
    draw(1, -1, 1);
    dpf_warp_linear(&w, DPF_F32, numbers, got);
    int wrong = 0;
    for (int r = 0; r < P * H; r++)
        for (int c = 0; c < W; c++)
            wrong += got[r * W + c] != numbers[r * W + W - 1 - c];
    CU_ASSERT(wrong == 0);
    dpf_warp_linear(&w, DPF_F32, got, again);
    CU_ASSERT(memcmp(again, numbers, P * H * W * sizeof *again) == 0);
}

/* Whole pixels in all directions, also farther than the picture is wide. */
static void test_whole_shift(void)
{
    enum { P = 2, H = 6, W = 11 };
    int wrong = 0;
    draw(2, -1, 1);
    numbers[P * H * W] = NAN; /* what lies behind must not be touched, not even times 0 */
    for (long down = -7; down <= 7; down++)
        for (long right = -12; right <= 12; right += 3) {
            struct dpf_warp w = warp(P, H, W,
                                     (struct dpf_pose){.rows_down = (double)down,
                                                       .columns_right = (double)right});
            dpf_warp_linear(&w, DPF_F32, numbers, got);
            dpf_warp_nearest(&w, 4, numbers, again);
            for (long p = 0; p < P; p++)
                for (long r = 0; r < H; r++)
                    for (long c = 0; c < W; c++) {
                        long at = (p * H + r) * W + c;
                        float due = numbers[((size_t)p * H + clip(r - down, H)) * W +
                                            clip(c - right, W)];
                        wrong += (got[at] != due) + (again[at] != due);
                    }
        }
    CU_ASSERT(wrong == 0);
    struct dpf_warp w = warp(1, 1, 4, (struct dpf_pose){.columns_right = 0.25});
    static const float row[] = {0, 4, 8, 16}, due[] = {0, 3, 7, 14};
    dpf_warp_linear(&w, DPF_F32, row, got);
    CU_ASSERT(memcmp(got, due, sizeof due) == 0);
}

/* A row longer than the pieces in which rows are made. */
static void test_long_rows(void)
{
    struct dpf_warp w = warp(2, 1, 1001, (struct dpf_pose){.columns_right = -2});
    int wrong = 0;
    draw(3, -1, 1);
    dpf_warp_linear(&w, DPF_F32, numbers, got);
    dpf_warp_nearest(&w, 4, numbers, again);
    for (size_t i = 0; i < 2002; i++) {
        float due = numbers[i / 1001 * 1001 + clip((long)(i % 1001) + 2, 1001)];
        wrong += (got[i] != due) + (again[i] != due);
    }
    CU_ASSERT(wrong == 0);
}

/* Counter-clockwise: the right column becomes the top row. */
static void test_quarter_turns(void)
{
    for (size_t n = 1; n <= 8; n++) {
        int wrong = 0;
        draw(n, -1, 1);
        for (size_t i = 0; i < n * n; i += 2)
            numbers[i] *= 1e30f; /* the smallest share of a neighbour would be seen */
        memcpy(got, numbers, sizeof got);
        for (int quarter = 1; quarter <= 4; quarter++) {
            memcpy(again, got, sizeof again);
            for (size_t r = 0; r < n; r++)
                for (size_t c = 0; c < n; c++)
                    got[r * n + c] = again[c * n + n - 1 - r];
            static const double turns[] = {0, 360, -360};
            for (int t = 0; t < 3; t++) {
                struct dpf_warp w =
                    warp(1, n, n, (struct dpf_pose){.degrees = 90 * quarter + turns[t]});
                dpf_warp_linear(&w, DPF_F32, numbers, again);
                wrong += memcmp(again, got, n * n * sizeof *got) != 0;
                dpf_warp_nearest(&w, 4, numbers, again);
                wrong += memcmp(again, got, n * n * sizeof *got) != 0;
            }
        }
        CU_ASSERT(wrong == 0);
        CU_ASSERT(memcmp(got, numbers, n * n * sizeof *got) == 0);
    }
    static const int64_t wide[] = {1, 2, 3, 4};
    static const int64_t due[] = {2, 4, 1, 3};
    int64_t out[4];
    struct dpf_warp w = warp(1, 2, 2, (struct dpf_pose){.degrees = 90});
    dpf_warp_nearest(&w, 8, wide, out);
    CU_ASSERT(memcmp(out, due, sizeof due) == 0);
}

/* Bilinear interpolation of a plane is exact, so inside the picture a turned and moved
 * plane is the plane of the point that was turned and moved to here. */
static void test_any_turn(void)
{
    enum { N = 41 };
    static const double angles[] = {10, -37.5, 60, 120};
    for (size_t a = 0; a < 4; a++)
        for (int mirrored = 0; mirrored < 2; mirrored++) {
            double sine = sin(angles[a] / 57.29577951308232), worst = 0;
            double cosine = cos(angles[a] / 57.29577951308232);
            for (int i = 0; i < N * N; i++)
                numbers[i] = (float)(2 * (i / N) - 3 * (i % N));
            struct dpf_warp w = warp(1, N, N,
                                     (struct dpf_pose){.mirrored = mirrored,
                                                       .degrees = angles[a],
                                                       .rows_down = 1.5,
                                                       .columns_right = -2.25});
            dpf_warp_linear(&w, DPF_F32, numbers, got);
            for (int up = -9; up <= 9; up++) /* forwards: from the middle, up and right */
                for (int right = -9; right <= 9; right++) {
                    /* the source point that lands on this pixel */
                    double u = up + 1.5, v = right + 2.25;
                    double x = cosine * v + sine * u, y = -sine * v + cosine * u;
                    double c = mirrored ? 20 - x : 20 + x, r = 20 - y;
                    double value = (double)got[(20 - up) * N + 20 + right];
                    worst = fmax(worst, fabs(value - (2 * r - 3 * c)));
                }
            CU_ASSERT(worst < 1e-4);
        }
}

static void test_upscale(void)
{
    static const float ramp[] = {0, 1, 2, 3}, corner[] = {0, 10, 20, 30};
    static const float twice[] = {0, .25f, .75f, 1.25f, 1.75f, 2.25f, 2.75f, 3};
    static const float square[] = {0,  2.5f,  7.5f,  10, 5,  7.5f,  12.5f, 15,
                                   15, 17.5f, 22.5f, 25, 20, 22.5f, 27.5f, 30};
    struct dpf_warp w = resize(1, 4, 1, 8);
    dpf_warp_linear(&w, DPF_F32, ramp, got);
    CU_ASSERT(memcmp(got, twice, sizeof twice) == 0);
    w = resize(4, 1, 8, 1);
    dpf_warp_linear(&w, DPF_F32, ramp, got);
    CU_ASSERT(memcmp(got, twice, sizeof twice) == 0);
    w = resize(2, 2, 4, 4);
    dpf_warp_linear(&w, DPF_F32, corner, got);
    CU_ASSERT(memcmp(got, square, sizeof square) == 0);
    static const uint8_t bytes[] = {0, 10, 20, 30};
    static const uint8_t rounded[] = {0,  3,  8,  10, 5,  8,  13, 15,
                                      15, 18, 23, 25, 20, 23, 28, 30};
    uint8_t out[16];
    dpf_warp_linear(&w, DPF_U8, bytes, out);
    CU_ASSERT(memcmp(out, rounded, sizeof rounded) == 0);
    w = resize(1, 4, 1, 7); /* pixel j has its centre at (j + 1/2) 4/7 - 1/2 */
    static const double sevenths[] = {0, 2.5 / 7, 6.5 / 7, 1.5, 14.5 / 7, 18.5 / 7, 3};
    dpf_warp_linear(&w, DPF_F32, ramp, got);
    for (int i = 0; i < 7; i++)
        CU_ASSERT(fabs((double)got[i] - sevenths[i]) < 1e-6);
    static const int32_t labels[] = {7, 1, 2, 9};
    static const int32_t thrice[] = {7, 7, 7, 1, 1, 1, 2, 2, 2, 9, 9, 9};
    int32_t wide[24];
    w = resize(1, 4, 2, 12);
    dpf_warp_nearest(&w, 4, labels, wide);
    CU_ASSERT(memcmp(wide, thrice, sizeof thrice) == 0);
    CU_ASSERT(memcmp(wide + 12, thrice, sizeof thrice) == 0);
    static const int32_t doubled[] = {7, 7, 1, 1, 2, 2, 9, 9};
    w = resize(1, 2, 1, 4);
    w.planes = 2;
    dpf_warp_nearest(&w, 4, labels, wide);
    CU_ASSERT(memcmp(wide, doubled, sizeof doubled) == 0);
}

/* No value leaves the range of the picture, by not so much as one rounding. */
static void test_bounds(void)
{
    enum { H = 9, W = 12, N = H * W };
    static const double ranges[][2] = {{0, 1},           {0.1, 0.1}, {-1e-30, 1},
                                       {-FLT_MAX, 3e38}, {0, 1e-44}, {-0.3, -0.1}};
    struct dpf_seeded r;
    dpf_seeded_init(&r, "test-augment-poses", 1, 0);
    uint8_t bytes[N], out[N];
    memset(bytes, 255, sizeof bytes);
    int outside = 0, dull = 0;
    for (int turn = 0; turn < 600; turn++) {
        const double *range = ranges[turn % 6];
        float lo = FLT_MAX, hi = -FLT_MAX;
        draw(100 + (uint64_t)turn, range[0], range[1]);
        for (int i = 0; i < N; i++) {
            numbers[i] = i % 3 ? numbers[i] : (float)range[i % 2];
            lo = fminf(lo, numbers[i]);
            hi = fmaxf(hi, numbers[i]);
        }
        struct dpf_warp w =
            warp(1, H, W,
                 (struct dpf_pose){.mirrored = turn % 2,
                                   .degrees = dpf_seeded_range(&r, -180, 180),
                                   .rows_down = dpf_seeded_range(&r, -5, 5),
                                   .columns_right = dpf_seeded_range(&r, -5, 5)});
        dpf_warp_linear(&w, DPF_F32, numbers, got);
        for (int i = 0; i < N; i++)
            outside += !(got[i] >= lo && got[i] <= hi);
        dpf_warp_linear(&w, DPF_U8, bytes, out);
        dull += memcmp(bytes, out, N) != 0;
    }
    CU_ASSERT(outside == 0);
    CU_ASSERT(dull == 0);
}

/* ---- records ---- */

enum { RECORDS = 37, H = 4, W = 6 };

/* A picture, its mask and a number; the pictures are not alike. */
static void make(struct dpf_header *h, struct dpf_batch *b, uint64_t first, uint64_t rows)
{
    *h = (struct dpf_header){.has_records = true, .records = RECORDS};
    dpf_header_add_field(h, "n", DPF_I64, &(struct dpf_shape){0});
    dpf_header_add_field(h, "x", DPF_F32, &SHAPE(2, H, W));
    dpf_header_add_field(h, "mask", DPF_I32, &SHAPE(H, W));
    CU_ASSERT_FATAL(dpf_batch_init(b, h, rows, NULL) == DPF_OK);
    for (uint64_t i = 0; i < rows; i++) {
        float *x = (float *)b->tensor[1].data + i * 2 * H * W;
        ((int64_t *)b->tensor[0].data)[i] = (int64_t)(first + i);
        for (int k = 0; k < 2 * H * W; k++)
            x[k] = (float)((first + i) * 100 + (uint64_t)k * (uint64_t)k % 53);
        for (int k = 0; k < H * W; k++)
            ((int32_t *)b->tensor[2].data)[i * H * W + (uint64_t)k] = (int32_t)x[k];
    }
}

static const struct dpf_augment usual = {.picture = "x",
                                         .mask = "mask",
                                         .random = true,
                                         .shift = 0.3,
                                         .degrees = 40,
                                         .flip = true,
                                         .keep = true,
                                         .copies = 3,
                                         .seed = 5};

/* The result in one batch, from input cut into pieces of `cut` records and through an
 * output batch of `room` records. */
static void augment(const struct dpf_augment *recipe, uint64_t cut, uint64_t room,
                    struct dpf_batch *all)
{
    struct dpf_augmenter a;
    struct dpf_header in, out = {0};
    struct dpf_batch b, part;
    uint64_t done = 0;
    make(&in, &b, 0, 1);
    dpf_batch_release(&b);
    CU_ASSERT_FATAL(dpf_header_copy(&out, &in, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_augmenter_open(&a, recipe, &in, &out, NULL) == DPF_OK);
    dpf_header_release(&in);
    CU_ASSERT_FATAL(dpf_batch_init(all, &out, out.records, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_batch_init(&part, &out, room, NULL) == DPF_OK);
    uint64_t filled = 0;
    for (uint64_t at = 0; at < RECORDS; at += cut) {
        make(&in, &b, at, cut < RECORDS - at ? cut : RECORDS - at);
        CU_ASSERT_FATAL(dpf_augmenter_take(&a, &b, NULL) == DPF_OK);
        bool over;
        do {
            over = dpf_augmenter_fill(&a, &part, &filled);
            bool last = over && at + cut >= RECORDS;
            CU_ASSERT_FATAL(done + filled <= all->rows && (over || filled == room));
            for (int f = 0; (!over || last) && f < all->count; f++) {
                size_t row = dpf_tensor_row_bytes(&part.tensor[f]);
                memcpy((char *)all->tensor[f].data + done * row, part.tensor[f].data,
                       filled * row);
            }
            done += !over || last ? filled : 0;
            filled = over ? filled : 0;
        } while (!over);
        dpf_batch_release(&b);
        dpf_header_release(&in);
    }
    CU_ASSERT(done == all->rows);
    dpf_batch_release(&part);
    dpf_header_release(&out);
}

static bool same(const struct dpf_batch *a, const struct dpf_batch *b)
{
    bool equal = a->rows == b->rows && a->count == b->count;
    for (int f = 0; equal && f < a->count; f++)
        equal = dpf_tensor_equal(&a->tensor[f], &b->tensor[f]);
    return equal;
}

static void test_cuts(void)
{
    static const uint64_t cuts[][2] = {{1, 1}, {RECORDS, 7}, {5, 200}, {10, 4}, {36, 3}};
    struct dpf_batch due, other;
    augment(&usual, RECORDS, 4 * RECORDS, &due);
    CU_ASSERT(due.rows == 4 * RECORDS);
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        augment(&usual, cuts[i][0], cuts[i][1], &other);
        CU_ASSERT(same(&due, &other));
        dpf_batch_release(&other);
    }
    struct dpf_augment seeded = usual;
    seeded.seed = 6;
    augment(&seeded, RECORDS, 4 * RECORDS, &other);
    CU_ASSERT(!same(&due, &other));
    dpf_batch_release(&other);
    dpf_batch_release(&due);
}

static void test_originals_and_copies(void)
{
    struct dpf_header h;
    struct dpf_batch in, out, fewer;
    make(&h, &in, 0, RECORDS);
    augment(&usual, RECORDS, 16, &out);
    struct dpf_augment one = usual;
    one.copies = 1;
    one.keep = false;
    augment(&one, RECORDS, 16, &fewer);
    const float *x = in.tensor[1].data, *y = out.tensor[1].data,
                *z = fewer.tensor[1].data;
    const int32_t *mask = out.tensor[2].data;
    size_t n = 2 * H * W, alike = 0;
    for (uint64_t i = 0; i < RECORDS; i++) {
        CU_ASSERT(memcmp(x + i * n, y + 4 * i * n, n * sizeof *x) == 0);
        /* the first copy is the same, however many there are */
        CU_ASSERT(memcmp(z + i * n, y + (4 * i + 1) * n, n * sizeof *x) == 0);
        for (uint64_t k = 0; k < 4; k++) {
            CU_ASSERT(((int64_t *)out.tensor[0].data)[4 * i + k] == (int64_t)i);
            for (uint64_t other = 0; other < k; other++)
                alike += memcmp(y + (4 * i + k) * n, y + (4 * i + other) * n,
                                n * sizeof *x) == 0;
            for (int j = 0; j < H * W; j++) { /* the mask has only labels of the mask */
                int32_t label = mask[(4 * i + k) * H * W + (uint64_t)j];
                bool there_is = false;
                for (int q = 0; q < H * W; q++)
                    there_is =
                        there_is ||
                        label == ((int32_t *)in.tensor[2].data)[i * H * W + (uint64_t)q];
                CU_ASSERT(there_is);
            }
        }
    }
    CU_ASSERT(alike == 0);
    dpf_header_release(&h);
    dpf_batch_release(&in);
    dpf_batch_release(&out);
    dpf_batch_release(&fewer);
}

/* Flips alone: picture and mask go together, half of the time, and nothing else. */
static void test_flips(void)
{
    struct dpf_header h;
    struct dpf_batch in, out;
    struct dpf_augment recipe = {
        .picture = "x", .mask = "mask", .random = true, .flip = true, .copies = 40};
    make(&h, &in, 0, RECORDS);
    augment(&recipe, 9, 16, &out);
    int flipped = 0, wrong = 0;
    for (int i = 0; i < RECORDS * 40; i++) {
        const float *x = (float *)in.tensor[1].data + i / 40 * 2 * H * W;
        const float *y = (float *)out.tensor[1].data + i * 2 * H * W;
        const int32_t *m = (int32_t *)out.tensor[2].data + i * H * W;
        bool mirrored = y[0] != x[0];
        flipped += mirrored;
        for (int k = 0; k < 2 * H * W; k++) {
            float due = x[mirrored ? k / W * W + W - 1 - k % W : k];
            wrong += y[k] != due || (k < H * W && m[k] != (int32_t)due);
        }
    }
    CU_ASSERT(wrong == 0);
    /* 1480 coins: five deviations are 96 */
    CU_ASSERT(abs(flipped - RECORDS * 20) < 96);
    dpf_header_release(&h);
    dpf_batch_release(&in);
    dpf_batch_release(&out);
}

/* The shifts of many copies of two ramps, read off their middles: uniform over the range,
 * each axis by itself. */
static void test_shifts_are_uniform(void)
{
    enum { SIDE = 40, N = 2000 };
    struct dpf_header in = {0}, out = {0};
    struct dpf_batch b, copies;
    struct dpf_augmenter a;
    struct dpf_augment recipe = {
        .picture = "x", .random = true, .shift = 0.2, .copies = N};
    uint64_t filled = 0;
    dpf_header_add_field(&in, "x", DPF_F32, &SHAPE(2, SIDE, SIDE / 2));
    CU_ASSERT_FATAL(dpf_batch_init(&b, &in, 1, NULL) == DPF_OK);
    for (int i = 0; i < SIDE * SIDE / 2; i++) {
        ((float *)b.tensor[0].data)[i] = (float)(i / (SIDE / 2)); /* the row */
        ((float *)b.tensor[0].data)[SIDE * SIDE / 2 + i] = (float)(i % (SIDE / 2));
    }
    CU_ASSERT_FATAL(dpf_header_copy(&out, &in, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_augmenter_open(&a, &recipe, &in, &out, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_batch_init(&copies, &out, N, NULL) == DPF_OK);
    CU_ASSERT(dpf_augmenter_take(&a, &b, NULL) == DPF_OK);
    CU_ASSERT(dpf_augmenter_fill(&a, &copies, &filled) && filled == N);
    double square[2] = {0}, product = 0, most[2] = {0};
    for (int k = 0; k < N; k++) {
        const float *x = (float *)copies.tensor[0].data + k * SIDE * SIDE;
        double down = 20 - (double)x[20 * SIDE / 2 + 10];
        double right = 10 - (double)x[SIDE * SIDE / 2 + 20 * SIDE / 2 + 10];
        square[0] += down * down / N;
        square[1] += right * right / N;
        product += down * right / N;
        most[0] = fmax(most[0], fabs(down));
        most[1] = fmax(most[1], fabs(right));
    }
    /* up to 8 rows and 4 columns: variances 64/3 and 16/3, within five deviations */
    CU_ASSERT(most[0] <= 8.00001 && most[0] > 7.9 && most[1] <= 4.00001 && most[1] > 3.9);
    CU_ASSERT(fabs(square[0] - 64 / 3.0) < 2.2 && fabs(square[1] - 16 / 3.0) < 0.55);
    CU_ASSERT(fabs(product) < 1.2);
    dpf_header_release(&in);
    dpf_header_release(&out);
    dpf_batch_release(&b);
    dpf_batch_release(&copies);
}

static void test_sizes_change(void)
{
    struct dpf_batch out, plain;
    struct dpf_augment recipe = {.picture = "x", .mask = "mask", .copies = 1};
    augment(&recipe, 10, 10, &plain);
    recipe.height = 2 * H;
    recipe.width = 3 * W;
    augment(&recipe, 10, 10, &out);
    CU_ASSERT(out.rows == RECORDS &&
              dpf_tensor_row_bytes(&out.tensor[1]) == 12 * H * W * 4);
    int wrong = 0;
    for (int i = 0; i < RECORDS * H * W; i++) { /* each label is a block of 2x3 */
        int at = i / (H * W) * 6 * H * W + i / W % H * 2 * 3 * W + i % W * 3;
        const int32_t *m = (int32_t *)out.tensor[2].data + at;
        int32_t due = ((int32_t *)plain.tensor[2].data)[i];
        wrong += m[0] != due || m[2] != due || m[3 * W] != due || m[3 * W + 2] != due;
    }
    CU_ASSERT(wrong == 0);
    const float *x = plain.tensor[1].data, *y = out.tensor[1].data;
    for (int plane = 0; plane < RECORDS * 2; plane++, x += H * W, y += 6 * H * W) {
        wrong += y[0] != x[0] || y[6 * H * W - 1] != x[H * W - 1];
        wrong += fabsf(y[3 * W + 1] - (.75f * x[0] + .25f * x[W])) > 1e-3f;
    }
    CU_ASSERT(wrong == 0);
    dpf_batch_release(&plain);
    dpf_batch_release(&out);
}

/* A volume of two channels, its slices numbered: every slice of every channel and of the
 * mask is moved by itself and in the same way. */
static void test_volumes(void)
{
    enum { C = 2, D = 3, N = 8, SLICE = N * N };
    struct dpf_header in = {0}, out = {0};
    struct dpf_batch b, copies;
    struct dpf_augmenter a;
    struct dpf_augment recipe = {.picture = "x",
                                 .mask = "m",
                                 .random = true,
                                 .shift = 0.4,
                                 .degrees = 180,
                                 .flip = true,
                                 .copies = 50};
    uint64_t filled = 0;
    dpf_header_add_field(&in, "m", DPF_U8, &SHAPE(D, N, N));
    dpf_header_add_field(&in, "x", DPF_U8, &SHAPE(C, D, N, N));
    CU_ASSERT_FATAL(dpf_batch_init(&b, &in, 1, NULL) == DPF_OK);
    uint8_t *m = b.tensor[0].data, *x = b.tensor[1].data;
    for (int i = 0; i < C * D * SLICE; i++) /* a half-plane, brighter in each slice */
        x[i] = (uint8_t)(i % SLICE < SLICE / 2 ? 0 : 30 * (i / SLICE + 1));
    memcpy(m, x, D * SLICE);
    CU_ASSERT_FATAL(dpf_header_copy(&out, &in, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_augmenter_open(&a, &recipe, &in, &out, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_batch_init(&copies, &out, 50, NULL) == DPF_OK);
    CU_ASSERT(dpf_augmenter_take(&a, &b, NULL) == DPF_OK);
    CU_ASSERT(dpf_augmenter_fill(&a, &copies, &filled) && filled == 50);
    int wrong = 0, lit = 0;
    for (int i = 0; i < 50 * C * D * SLICE; i++) {
        int slice = i / SLICE % (C * D), pixel = i % SLICE, record = i / (C * D * SLICE);
        int first = ((uint8_t *)copies.tensor[1].data)[record * C * D * SLICE + pixel];
        int value = ((uint8_t *)copies.tensor[1].data)[i];
        wrong += abs(value - first * (slice + 1)) > slice; /* but for rounding */
        if (slice >= D)
            continue;
        int label =
            ((uint8_t *)copies.tensor[0].data)[(record * D + slice) * SLICE + pixel];
        wrong += label != 0 && label != 30 * (slice + 1);
        wrong += (value == 0 || value == 30 * (slice + 1)) && label != value;
        lit += label != 0;
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(lit > 50 * D * SLICE / 4 && lit < 50 * D * SLICE * 3 / 4);
    dpf_header_release(&in);
    dpf_header_release(&out);
    dpf_batch_release(&b);
    dpf_batch_release(&copies);
}

/* ---- headers ---- */

static enum dpf_status open_with(const struct dpf_augment *recipe, struct dpf_header *in,
                                 struct dpf_header *out, struct dpf_error *e)
{
    struct dpf_augmenter a;
    CU_ASSERT_FATAL(dpf_header_copy(out, in, NULL) == DPF_OK);
    return dpf_augmenter_open(&a, recipe, in, out, e);
}

static struct dpf_header declared_header(void)
{
    struct dpf_header h = {.has_records = true, .records = 10};
    struct dpf_field *x = dpf_header_add_field(&h, "x", DPF_F32, &SHAPE(1, 2));
    CU_ASSERT_FATAL(x != NULL);
    x->norm_l2 = 3;
    x->bounds = (struct dpf_bounds){2, dpf_calloc(2, 8), dpf_calloc(2, 8)};
    x->bounds.lo[0] = -1;
    x->bounds.lo[1] = -4;
    x->bounds.hi[0] = 7;
    x->bounds.hi[1] = 5;
    x->features = dpf_calloc(2, sizeof *x->features);
    x->features[0] = dpf_strdup("left");
    x->features[1] = dpf_strdup("right");
    x->feature_count = 2;
    return h;
}

/* What was declared of single pixels or of the norm may no longer hold. */
static void test_declarations(void)
{
    struct dpf_header in = declared_header(), out;
    struct dpf_augment recipe = {
        .picture = "x", .random = true, .flip = true, .keep = true, .copies = 4};
    struct dpf_field *x = &out.fields[0];
    CU_ASSERT(open_with(&recipe, &in, &out, NULL) == DPF_OK);
    CU_ASSERT(out.records == 50 && x->norm_l2 == 3 && x->feature_count == 2);
    CU_ASSERT(x->bounds.count == 1 && x->bounds.lo[0] == -4 && x->bounds.hi[0] == 7);
    dpf_header_release(&out);
    recipe.shift = 0.1;
    CU_ASSERT(open_with(&recipe, &in, &out, NULL) == DPF_OK && x->norm_l2 == 0);
    dpf_header_release(&out);
    recipe = (struct dpf_augment){.picture = "x", .copies = 1, .height = 3, .width = 5};
    CU_ASSERT(open_with(&recipe, &in, &out, NULL) == DPF_OK);
    CU_ASSERT(x->norm_l2 == 0 && x->feature_count == 0 && x->features == NULL);
    CU_ASSERT(dpf_shape_equal(&x->shape, &SHAPE(3, 5)) && out.records == 10);
    CU_ASSERT(x->bounds.count == 1 && x->bounds.hi[0] == 7);
    dpf_header_release(&out);
    dpf_header_release(&in);
}

static bool turned_down(struct dpf_header *in, const struct dpf_augment *recipe,
                        enum dpf_status due, const char *text)
{
    struct dpf_header out;
    struct dpf_error e = {0};
    enum dpf_status status = open_with(recipe, in, &out, &e);
    dpf_header_release(&out);
    return refused(status, due, &e, text);
}

static void test_refusals(void)
{
    struct dpf_header h = {.has_records = true, .records = UINT64_MAX / 2};
    dpf_header_add_field(&h, "x", DPF_F32, &SHAPE(4, 5, 6, 7));
    dpf_header_add_field(&h, "line", DPF_F32, &SHAPE(7));
    dpf_header_add_field(&h, "five", DPF_F32, &SHAPE(1, 4, 5, 6, 7));
    dpf_header_add_field(&h, "flat", DPF_F32, &SHAPE(3, 0, 7));
    dpf_header_add_field(&h, "double", DPF_F64, &SHAPE(6, 7));
    dpf_header_add_field(&h, "mask", DPF_U8, &SHAPE(5, 6, 7))->classes = 3;
    dpf_header_add_field(&h, "real", DPF_F32, &SHAPE(5, 6, 7));
    dpf_header_add_field(&h, "odd", DPF_U8, &SHAPE(4, 5, 6, 7));
    static const char *const bad[][2] = {
        {"none", "has no field 'none'"},      {"line", "field 'line' holds no pictures"},
        {"five", "field 'five' holds no"},    {"flat", "field 'flat' holds no"},
        {"double", "pictures are f32 or u8"}, {"mask", "field 'mask' holds labels"}};
    static const char *const masks[][2] = {
        {"none", "has no field 'none'"},
        {"real", "field 'real' is f32: a mask holds integers"},
        {"odd", "field 'odd' is 4x5x6x7, a mask for 'x' is 5x6x7"}};
    struct dpf_augment r = {.copies = 1, .random = true, .flip = true};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        r.picture = bad[i][0];
        CU_ASSERT(turned_down(&h, &r, DPF_USAGE, bad[i][1]));
    }
    r.picture = "x";
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        r.mask = masks[i][0];
        CU_ASSERT(turned_down(&h, &r, DPF_USAGE, masks[i][1]));
    }
    r.mask = NULL;
    r.copies = 3;
    CU_ASSERT(turned_down(&h, &r, DPF_BAD_STREAM, "too many records"));
    r.copies = 1;
    r.height = r.width = DPF_AUGMENT_MAX_SIDE;
    CU_ASSERT(turned_down(&h, &r, DPF_USAGE, "records of over 4 GiB"));
    dpf_header_release(&h);
}

static void test_not_finite(void)
{
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    struct dpf_header in, out = {0};
    struct dpf_batch b;
    struct dpf_augmenter a;
    make(&in, &b, 0, 3);
    CU_ASSERT_FATAL(dpf_header_copy(&out, &in, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_augmenter_open(&a, &usual, &in, &out, NULL) == DPF_OK);
    CU_ASSERT(dpf_augmenter_take(&a, &b, NULL) == DPF_OK);
    for (int i = 0; i < 3; i++) {
        struct dpf_error e = {0};
        ((float *)b.tensor[1].data)[2 * 2 * H * W + 7] = odd[i];
        CU_ASSERT(refused(dpf_augmenter_take(&a, &b, &e), DPF_BAD_STREAM, &e,
                          "a value of field 'x' is not finite"));
        CU_ASSERT(strpbrk(e.message, "0123456789") == NULL); /* not where it stands */
    }
    dpf_header_release(&in);
    dpf_header_release(&out);
    dpf_batch_release(&b);
}

static void test_size_texts(void)
{
    static const char *const bad[] = {
        "",     "8",    "x8",     "8x",     "0x8", "8x0",   "8x8x8",
        "8x-1", "8 x8", "8193x8", "8x8193", "8X8", "1e3x8", "99999999999999999999x8"};
    uint64_t height = 0, width = 0;
    CU_ASSERT(dpf_augment_parse_size("3x8192", &height, &width, NULL) == DPF_OK);
    CU_ASSERT(height == 3 && width == 8192);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct dpf_error e = {0};
        CU_ASSERT(refused(dpf_augment_parse_size(bad[i], &height, &width, &e), DPF_USAGE,
                          &e, "a size is HEIGHTxWIDTH"));
    }
}

const char dpf_suite[] = "augment";
const struct dpf_test dpf_tests[] = {
    {"the identity is exact", test_identity},
    {"mirrored twice is the identity", test_mirror},
    {"whole shifts repeat the edge", test_whole_shift},
    {"long rows", test_long_rows},
    {"quarter turns are permutations", test_quarter_turns},
    {"other turns, by a plane", test_any_turn},
    {"new sizes, by hand", test_upscale},
    {"bounds hold", test_bounds},
    {"records do not depend on the batches", test_cuts},
    {"originals, copies and masks", test_originals_and_copies},
    {"flips happen half of the time", test_flips},
    {"shifts are uniform", test_shifts_are_uniform},
    {"records change their size", test_sizes_change},
    {"volumes, slice by slice", test_volumes},
    {"only declarations that hold are kept", test_declarations},
    {"fields that cannot be augmented", test_refusals},
    {"values that are not finite", test_not_finite},
    {"sizes as text", test_size_texts},
    {0},
};
