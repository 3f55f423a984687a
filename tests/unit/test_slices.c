/* Slices of volumes with masks: which slices, which way up, colours, window, and what is
 * refused. */
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "data/canvas.h"
#include "data/slices.h"
#include "stream_fixture.h"

#include "base/banned.h"

const char dpf_suite[] = "slices";

/* D, H and W; 192 / 12 = 16 pixels a voxel, and gaps of 4. */
enum { D = 6, H = 12, W = 8, ZOOM = 16, GAP = 4, CELL_H = H * ZOOM + GAP };
enum { CELL_W = W * ZOOM + GAP, PLANE = H * W, VOXELS = D * PLANE };

struct scene {
    struct dpf_field x, truth, guess;
    float values[2][2][VOXELS]; /* two records of two channels */
    uint8_t masks[2][2][VOXELS];
    struct dpf_tensor tensors[3];
};

static struct dpf_field field_of(const char *name, enum dpf_dtype dtype,
                                 struct dpf_shape shape, uint64_t classes)
{
    struct dpf_field f = {.dtype = dtype, .shape = shape, .classes = classes};
    snprintf(f.name, sizeof f.name, "%s", name);
    return f;
}

static struct scene *scene_new(void)
{
    struct scene *s = calloc(1, sizeof *s);
    CU_ASSERT_FATAL(s != NULL);
    struct dpf_shape volume = {4, {2, D, H, W}}, mask = {3, {D, H, W}}, all;
    s->x = field_of("x", DPF_F32, volume, 0);
    s->truth = field_of("truth", DPF_U8, mask, 3);
    s->guess = field_of("guess", DPF_U8, mask, 3);
    CU_ASSERT(dpf_shape_prepend(&volume, 2, &all));
    CU_ASSERT(dpf_tensor_view(&s->tensors[0], DPF_F32, &all, s->values, NULL) == DPF_OK);
    CU_ASSERT(dpf_shape_prepend(&mask, 2, &all));
    for (int k = 0; k < 2; k++)
        CU_ASSERT(dpf_tensor_view(&s->tensors[1 + k], DPF_U8, &all, s->masks[k], NULL) ==
                  DPF_OK);
    return s;
}

struct shot {
    png_image image;
    png_bytep pixels;
};

/* Draw both records and read the file. */
static struct shot shoot(const struct scene *s, const struct dpf_slices_plan *plan,
                         const struct dpf_tensor *x)
{
    struct dpf_slices *sheet;
    struct shot shot = {.image = {.version = PNG_IMAGE_VERSION}};
    const struct dpf_tensor *masks[] = {&s->tensors[1], &s->tensors[2]};
    CU_ASSERT_FATAL(dpf_slices_new(&sheet, plan, NULL) == DPF_OK);
    folder_begin();
    for (uint64_t row = 0; row < 2; row++)
        dpf_slices_add(sheet, x, masks, row);
    CU_ASSERT(!dpf_slices_full(sheet));
    CU_ASSERT(dpf_slices_save(sheet, in_folder("x.png"), NULL) == DPF_OK);
    CU_ASSERT_FATAL(png_image_begin_read_from_file(&shot.image, in_folder("x.png")));
    shot.image.format = PNG_FORMAT_RGB;
    shot.pixels = malloc(PNG_IMAGE_SIZE(shot.image));
    CU_ASSERT_FATAL(png_image_finish_read(&shot.image, NULL, shot.pixels, 0, NULL));
    folder_end();
    dpf_slices_destroy(&sheet);
    return shot;
}

/* The middle of voxel (y, x) of slice k of a record, as it is stored: y grows upwards. */
static const png_byte *voxel(const struct shot *s, int record, int k, int y, int x)
{
    size_t py = (size_t)(GAP + record * CELL_H + (H - 1 - y) * ZOOM + ZOOM / 2);
    size_t px = (size_t)(GAP + k * CELL_W + x * ZOOM + ZOOM / 2);
    return s->pixels + 3 * (py * s->image.width + px);
}

static bool is(const png_byte *p, int r, int g, int b)
{
    bool good =
        abs(p[0] - r) <= 1 && abs(p[1] - g) <= 1 && abs(p[2] - b) <= 1; /* rounding */
    if (!good)
        printf("    %d %d %d, not %d %d %d\n", p[0], p[1], p[2], r, g, b);
    return good;
}

/* Slices 2 and 3 of six are the middle third; a bright block tells which side is up. */
static void test_which_slices(void)
{
    struct scene *s = scene_new();
    const struct dpf_slices_plan plan = {.field = &s->x, .channel = 1};
    for (int z = 0; z < D; z++) /* record 0: slice 3 is bright, and a band of slice 2 */
        for (int i = 0; i < PLANE; i++)
            s->values[0][1][z * PLANE + i] = z == 3 || (z == 2 && i / W >= H - 3);
    for (int i = 0; i < VOXELS; i++) /* the other channel is not shown */
        s->values[0][0][i] = s->values[1][0][i] = 5;
    struct shot shot = shoot(s, &plan, &s->tensors[0]);
    CU_ASSERT(shot.image.width == 2 * CELL_W + GAP); /* two slices, two rows, no legend */
    CU_ASSERT(shot.image.height == 2 * CELL_H + GAP);
    CU_ASSERT(is(voxel(&shot, 0, 1, 0, 0), 255, 255, 255));
    CU_ASSERT(is(voxel(&shot, 0, 0, 0, 3), 0, 0, 0));
    CU_ASSERT(
        is(voxel(&shot, 0, 0, H - 1, 3), 255, 255, 255)); /* the last row is on top */
    CU_ASSERT(is(voxel(&shot, 1, 0, 4, 4), 0, 0, 0));     /* nothing but one value */
    free(shot.pixels);
    free(s);
}

/* One voxel of 192 is above the 99th percentile, and the window does not care. */
static void test_window(void)
{
    struct scene *s = scene_new();
    const struct dpf_slices_plan plan = {.field = &s->x};
    for (int i = 0; i < VOXELS; i++)
        s->values[0][0][i] = i % 2 ? 2 : 1;
    s->values[0][0][2 * PLANE] = 1000;
    s->values[0][0][3 * PLANE] = NAN;
    s->values[0][0][0] = -1e30F; /* of a slice that is not shown */
    struct shot shot = shoot(s, &plan, &s->tensors[0]);
    CU_ASSERT(is(voxel(&shot, 0, 0, 0, 0), 255, 255, 255));
    CU_ASSERT(voxel(&shot, 0, 0, 5, 5)[0] > 240 && voxel(&shot, 0, 0, 5, 4)[0] < 15);
    free(shot.pixels);
    free(s);
}

/* A fill of class 1 and an outline of class 2 on black, and the legend below. */
static void test_masks(void)
{
    struct scene *s = scene_new();
    const struct dpf_slices_plan plan = {.field = &s->x, .masks = {&s->truth, &s->guess}};
    for (int y = 2; y < 8; y++)
        for (int x = 1; x < 7; x++) {
            s->masks[0][0][2 * PLANE + y * W + x] = 1;
            s->masks[1][1][3 * PLANE + y * W + x] = 2; /* record 1, second slice */
        }
    struct shot shot = shoot(s, &plan, &s->tensors[0]);
    CU_ASSERT(is(voxel(&shot, 0, 0, 4, 4), 39, 81, 105)); /* 0.45 of the colour */
    CU_ASSERT(is(voxel(&shot, 0, 0, 2, 1), 39, 81, 105));
    CU_ASSERT(is(voxel(&shot, 0, 0, 1, 1), 0, 0, 0));
    CU_ASSERT(is(voxel(&shot, 1, 1, 4, 4), 0, 0, 0)); /* inside: only the edge is drawn */
    /* one pixel inside the lower left corner, and one outside */
    const png_byte *p = voxel(&shot, 1, 1, 2, 1) +
                        3 * ((ZOOM / 2 - 1) * (int)shot.image.width - ZOOM / 2);
    CU_ASSERT(is(p, 213, 94, 0));
    CU_ASSERT(is(p - 3, 0, 0, 0));
    CU_ASSERT(shot.image.height > 2 * CELL_H + GAP);
    size_t blue = 0, red = 0, black = 0;
    for (size_t i = (2 * CELL_H + GAP) * shot.image.width;
         i < (size_t)shot.image.width * shot.image.height; i++) {
        p = shot.pixels + 3 * i;
        blue += p[0] == 86 && p[1] == 180 && p[2] == 233;
        red += p[0] == 213 && p[1] == 94 && p[2] == 0;
        black += p[0] == 0 && p[1] == 0 && p[2] == 0;
    }
    CU_ASSERT(blue == 14 * 14 && red == 14 * 14 && black > 500);
    free(shot.pixels);
    free(s);
}

/* Labels by themselves are filled on black; pictures stand side by side, as they are. */
static void test_labels_and_pictures(void)
{
    struct scene *s = scene_new();
    const struct dpf_slices_plan labels = {.field = &s->truth};
    s->masks[0][0][2 * PLANE + 3 * W + 3] = 2;
    struct shot shot = shoot(s, &labels, &s->tensors[1]);
    CU_ASSERT(is(voxel(&shot, 0, 0, 3, 3), 213, 94, 0));
    CU_ASSERT(is(voxel(&shot, 0, 0, 3, 4), 0, 0, 0));
    free(shot.pixels);
    float values[2][PLANE] = {{0}};
    struct dpf_shape flat = {2, {H, W}}, all = {4, {2, 1, H, W}}, own = {3, {1, H, W}};
    struct dpf_field x = field_of("x", DPF_F32, own, 0);
    struct dpf_field mask = field_of("mask", DPF_U8, flat, 3);
    const struct dpf_slices_plan plan = {.field = &x, .masks = {&mask}};
    struct dpf_tensor t;
    values[0][0] = values[0][1] = 1; /* on top; two of 96 are no outliers */
    s->masks[0][0][2 * PLANE + 3 * W + 3] = 0;
    s->masks[0][0][PLANE + 3] = 1; /* of the second picture */
    CU_ASSERT(dpf_tensor_view(&t, DPF_F32, &all, values, NULL) == DPF_OK);
    shot = shoot(s, &plan, &t);
    CU_ASSERT(shot.image.width == 2 * CELL_W + GAP);
    CU_ASSERT(voxel(&shot, 0, 0, H - 1, 0)[0] > 240 && voxel(&shot, 0, 0, 0, 0)[0] == 0);
    CU_ASSERT(is(voxel(&shot, 0, 1, H - 1, 3), 39, 81, 105));
    free(shot.pixels);
    free(s);
}

static void test_refusals(void)
{
    struct scene *s = scene_new();
    struct dpf_slices *sheet;
    struct dpf_error e = {0};
    struct dpf_slices_plan plan = {.field = &s->x, .channel = 2};
    CU_ASSERT(refused(dpf_slices_new(&sheet, &plan, &e), DPF_USAGE, &e, "no '2'"));
    struct dpf_field small = field_of("m", DPF_U8, (struct dpf_shape){3, {D, H, 7}}, 3);
    struct dpf_field plain = field_of("p", DPF_U8, s->truth.shape, 0);
    plan = (struct dpf_slices_plan){.field = &s->x, .masks = {&s->truth, &small}};
    CU_ASSERT(
        refused(dpf_slices_new(&sheet, &plan, &e), DPF_USAGE, &e, "'m' is no mask"));
    plan.masks[1] = &plain;
    CU_ASSERT(refused(dpf_slices_new(&sheet, &plan, &e), DPF_USAGE, &e, "'p' holds no"));
    struct dpf_field picture =
        field_of("x", DPF_U8, (struct dpf_shape){3, {3, 32, 32}}, 0);
    struct dpf_field wide =
        field_of("x", DPF_F32, (struct dpf_shape){4, {1, 4, 4, 1025}}, 0);
    CU_ASSERT(!dpf_slices_can_draw(&picture, NULL) && !dpf_slices_can_draw(&wide, NULL));
    CU_ASSERT(dpf_slices_can_draw(&s->x, NULL) && dpf_slices_can_draw(&s->x, &s->truth));
    CU_ASSERT(!dpf_slices_can_draw(&s->x, &small));
    plan = (struct dpf_slices_plan){.field = &picture};
    CU_ASSERT(refused(dpf_slices_new(&sheet, &plan, &e), DPF_USAGE, &e, "no volumes"));
    plan = (struct dpf_slices_plan){.field = &s->x};
    CU_ASSERT_FATAL(dpf_slices_new(&sheet, &plan, NULL) == DPF_OK);
    CU_ASSERT(dpf_slices_save(sheet, "/nonexistent/x.png", &e) == DPF_SYSTEM);
    dpf_slices_destroy(&sheet);
    CU_ASSERT(sheet == NULL);
    free(s);
}

const struct dpf_test dpf_tests[] = {
    {"the middle third, the last row on top, one channel", test_which_slices},
    {"brightness is that of percentiles", test_window},
    {"a fill, an outline and a legend", test_masks},
    {"labels alone, and pictures", test_labels_and_pictures},
    {"what is no mask and no volume is refused", test_refusals},
    {NULL, NULL},
};
