#ifdef __clang__ /* GCC knows no such pragma, and -std=c11 means the same to it */
#pragma STDC FP_CONTRACT OFF
#endif

#include "data/augment.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/text.h"

#include "base/banned.h"

/* ---------------------------------------------------------------------- geometry */

/* Quarter turns are permutations of pixels: sine and cosine must be exact there. */
static void turn(double degrees, double *sine, double *cosine)
{
    static const double quarter[4] = {0, 1, 0, -1};
    double quarters = degrees / 90;
    if (quarters == rint(quarters)) {
        int n = (int)fmod(quarters, 4) + 4;
        *sine = quarter[n % 4];
        *cosine = quarter[(n + 1) % 4];
        return;
    }
    double radians = degrees * (3.141592653589793 / 180);
    *sine = sin(radians);
    *cosine = cos(radians);
}

/* The pose backwards: move back, turn back, mirror. Rows grow downwards, so a turn
 * counter-clockwise takes what is on the right to the top. */
void dpf_warp_set_pose(struct dpf_warp *w, const struct dpf_pose *pose)
{
    double step_r = (double)w->in_height / (double)w->out_height;
    double step_c = (double)w->in_width / (double)w->out_width;
    double middle_r = ((double)w->in_height - 1) / 2;
    double middle_c = ((double)w->in_width - 1) / 2;
    double start_r = (step_r - 1) / 2 - middle_r - pose->rows_down;
    double start_c = (step_c - 1) / 2 - middle_c - pose->columns_right;
    double sine, cosine;
    turn(pose->degrees, &sine, &cosine);
    struct dpf_affine *m = &w->map;
    m->r[0] = cosine * step_r;
    m->r[1] = sine * step_c;
    m->r[2] = middle_r + (cosine * start_r + sine * start_c);
    m->c[0] = -sine * step_r;
    m->c[1] = cosine * step_c;
    m->c[2] = middle_c + (cosine * start_c - sine * start_r);
    if (pose->mirrored) {
        m->c[0] = -m->c[0];
        m->c[1] = -m->c[1];
        m->c[2] = (double)w->in_width - 1 - m->c[2];
    }
}

/* Where an output pixel takes its value from: four neighbours and their shares. A plane
 * has fewer than 2^32 elements. */
struct tap {
    uint32_t at, right, down;
    double share[4];
};

/* Taps for pieces of a row are made once and used for all planes, while they are hot. */
enum { PIECE = 256 };

static double clamp(double value, double top)
{
    return value > 0 ? value < top ? value : top : 0;
}

static void find_taps(const struct dpf_warp *w, size_t i, size_t j, size_t n,
                      struct tap *taps)
{
    const struct dpf_affine *m = &w->map;
    double last_r = (double)(w->in_height - 1), last_c = (double)(w->in_width - 1);
    double start_r = m->r[0] * (double)i + m->r[2];
    double start_c = m->c[0] * (double)i + m->c[2];
    for (size_t k = 0; k < n; k++) {
        double r = clamp(m->r[1] * (double)(j + k) + start_r, last_r);
        double c = clamp(m->c[1] * (double)(j + k) + start_c, last_c);
        uint32_t row = (uint32_t)r, column = (uint32_t)c;
        double y = r - row, x = c - column;
        taps[k].at = row * (uint32_t)w->in_width + column;
        taps[k].right = column + 1 < w->in_width;
        taps[k].down = row + 1 < w->in_height ? (uint32_t)w->in_width : 0;
        taps[k].share[0] = (1 - y) * (1 - x);
        taps[k].share[1] = (1 - y) * x;
        taps[k].share[2] = y * (1 - x);
        taps[k].share[3] = y * x;
    }
}

/* Why the result lies between the four values: in double precision the mean leaves their
 * range by a few parts in 2^53 at most, and rounding to the coarser type, which is
 * monotonic, takes it back. */
#define MEAN(p, t)                                                                       \
    (((double)(p)[0] * (t)->share[0] + (double)(p)[(t)->right] * (t)->share[1]) +        \
     ((double)(p)[(t)->down] * (t)->share[2] +                                           \
      (double)(p)[(size_t)(t)->down + (t)->right] * (t)->share[3]))

static void linear_f32(const struct tap *taps, size_t n, const float *from, float *to)
{
    for (size_t k = 0; k < n; k++) {
        const float *p = from + taps[k].at;
        to[k] = (float)MEAN(p, &taps[k]);
    }
}

static void linear_u8(const struct tap *taps, size_t n, const uint8_t *from, uint8_t *to)
{
    for (size_t k = 0; k < n; k++) {
        const uint8_t *p = from + taps[k].at;
        to[k] = (uint8_t)(MEAN(p, &taps[k]) + 0.5);
    }
}

void dpf_warp_linear(const struct dpf_warp *w, enum dpf_dtype dtype, const void *from,
                     void *to)
{
    struct tap taps[PIECE];
    size_t in = w->in_height * w->in_width, out = w->out_height * w->out_width;
    for (size_t i = 0; w->planes && i < w->out_height; i++)
        for (size_t j = 0; j < w->out_width; j += PIECE) {
            size_t n = w->out_width - j < PIECE ? w->out_width - j : PIECE;
            size_t at = i * w->out_width + j;
            find_taps(w, i, j, n, taps);
            for (size_t plane = 0; plane < w->planes; plane++)
                if (dtype == DPF_F32)
                    linear_f32(taps, n, (const float *)from + plane * in,
                               (float *)to + plane * out + at);
                else
                    linear_u8(taps, n, (const uint8_t *)from + plane * in,
                              (uint8_t *)to + plane * out + at);
        }
}

static void find_nearest(const struct dpf_warp *w, size_t i, size_t j, size_t n,
                         uint32_t *at)
{
    const struct dpf_affine *m = &w->map;
    double last_r = (double)(w->in_height - 1), last_c = (double)(w->in_width - 1);
    double start_r = m->r[0] * (double)i + m->r[2];
    double start_c = m->c[0] * (double)i + m->c[2];
    for (size_t k = 0; k < n; k++) {
        double r = clamp(m->r[1] * (double)(j + k) + start_r, last_r);
        double c = clamp(m->c[1] * (double)(j + k) + start_c, last_c);
        at[k] = (uint32_t)(r + 0.5) * (uint32_t)w->in_width + (uint32_t)(c + 0.5);
    }
}

static void pick(const uint32_t *at, size_t n, size_t element_bytes, const void *from,
                 void *to)
{
    switch (element_bytes) {
    case 1:
        for (size_t k = 0; k < n; k++)
            ((uint8_t *)to)[k] = ((const uint8_t *)from)[at[k]];
        break;
    case 4:
        for (size_t k = 0; k < n; k++)
            ((uint32_t *)to)[k] = ((const uint32_t *)from)[at[k]];
        break;
    default:
        for (size_t k = 0; k < n; k++)
            ((uint64_t *)to)[k] = ((const uint64_t *)from)[at[k]];
    }
}

void dpf_warp_nearest(const struct dpf_warp *w, size_t element_bytes, const void *from,
                      void *to)
{
    uint32_t taps[PIECE];
    size_t in = w->in_height * w->in_width * element_bytes;
    size_t out = w->out_height * w->out_width * element_bytes;
    for (size_t i = 0; w->planes && i < w->out_height; i++)
        for (size_t j = 0; j < w->out_width; j += PIECE) {
            size_t n = w->out_width - j < PIECE ? w->out_width - j : PIECE;
            size_t at = (i * w->out_width + j) * element_bytes;
            find_nearest(w, i, j, n, taps);
            for (size_t plane = 0; plane < w->planes; plane++)
                pick(taps, n, element_bytes, (const char *)from + plane * in,
                     (char *)to + plane * out + at);
        }
}

/* ------------------------------------------------------------------------ recipes */

enum dpf_status dpf_augment_parse_size(const char *text, uint64_t *height,
                                       uint64_t *width, struct dpf_error *e)
{
    const char *cross = strchr(text, 'x');
    char *first = cross ? dpf_strndup(text, (size_t)(cross - text)) : NULL;
    if (cross && !first)
        return dpf_fail_memory(e);
    bool good = cross && dpf_parse_uint(first, height) &&
                dpf_parse_uint(cross + 1, width) && *height >= 1 && *width >= 1 &&
                *height <= DPF_AUGMENT_MAX_SIDE && *width <= DPF_AUGMENT_MAX_SIDE;
    free(first);
    if (!good)
        return dpf_fail(e, DPF_USAGE,
                        "a size is HEIGHTxWIDTH with sides of 1 to %d, not '%s'",
                        DPF_AUGMENT_MAX_SIDE, text);
    return DPF_OK;
}

uint64_t dpf_augment_group(const struct dpf_augment *recipe)
{
    return recipe->copies + recipe->keep;
}

/* ------------------------------------------------------------------------- header */

static enum dpf_status check_picture(const struct dpf_field *f, struct dpf_error *e)
{
    const struct dpf_shape *s = &f->shape;
    char shape[96];
    dpf_shape_format(s, shape, sizeof shape);
    if (s->rank < 2 || s->rank > 4 || !s->dim[s->rank - 2] || !s->dim[s->rank - 1])
        return dpf_fail(e, DPF_USAGE,
                        "field '%s' holds no pictures: its records are %s, not "
                        "[channels, [depth,]] height, width",
                        f->name, shape);
    if (f->dtype != DPF_F32 && f->dtype != DPF_U8)
        return dpf_fail(e, DPF_USAGE, "field '%s' is %s: pictures are f32 or u8", f->name,
                        dpf_dtype_name(f->dtype));
    if (f->classes)
        return dpf_fail(e, DPF_USAGE, "field '%s' holds labels, not pictures", f->name);
    return DPF_OK;
}

static enum dpf_status check_mask(const struct dpf_field *f, const struct dpf_field *x,
                                  struct dpf_error *e)
{
    struct dpf_shape due = {.rank = x->shape.rank == 4 ? 3 : 2};
    memcpy(due.dim, x->shape.dim + x->shape.rank - due.rank,
           (size_t)due.rank * sizeof *due.dim);
    if (!dpf_shape_equal(&f->shape, &due)) {
        char shape[96], wanted[96];
        dpf_shape_format(&f->shape, shape, sizeof shape);
        dpf_shape_format(&due, wanted, sizeof wanted);
        return dpf_fail(e, DPF_USAGE, "field '%s' is %s, a mask for '%s' is %s", f->name,
                        shape, x->name, wanted);
    }
    if (f->dtype != DPF_U8 && f->dtype != DPF_I32 && f->dtype != DPF_I64)
        return dpf_fail(e, DPF_USAGE, "field '%s' is %s: a mask holds integers", f->name,
                        dpf_dtype_name(f->dtype));
    return DPF_OK;
}

/* Values change their places within a record: bounds of single elements become those of
 * all. Repeated edges and more pixels can raise a norm; a mirror or a patch cannot. */
static enum dpf_status declare(const struct dpf_augment *recipe, struct dpf_field *f,
                               struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    struct dpf_shape cut;
    if (f->bounds.count > 1) {
        double lo = f->bounds.lo[0], hi = f->bounds.hi[0];
        for (size_t i = 1; i < f->bounds.count; i++) {
            lo = fmin(lo, f->bounds.lo[i]);
            hi = fmax(hi, f->bounds.hi[i]);
        }
        status = dpf_field_set_bounds(f, lo, hi, e);
    }
    if (recipe->patch.dimensions && !dpf_patch_fits(&recipe->patch, &f->shape, &cut)) {
        char shape[96];
        dpf_shape_format(&f->shape, shape, sizeof shape);
        return dpf_fail(e, DPF_USAGE,
                        "the patch is larger than field '%s', whose records are %s",
                        f->name, shape);
    }
    if (recipe->height || recipe->shift > 0 || recipe->degrees > 0)
        f->norm_l2 = 0;
    if ((!recipe->height && !recipe->patch.dimensions) || status != DPF_OK)
        return status;
    for (size_t i = 0; i < f->feature_count; i++)
        free(f->features[i]);
    free(f->features);
    f->features = NULL;
    f->feature_count = 0;
    if (recipe->patch.dimensions)
        f->shape = cut;
    else
        f->shape.dim[f->shape.rank - 2] = recipe->height;
    if (recipe->height)
        f->shape.dim[f->shape.rank - 1] = recipe->width;
    size_t bytes;
    if (!dpf_shape_bytes(f->dtype, &f->shape, &bytes))
        return dpf_fail(e, DPF_USAGE, "field '%s' would have records of over 4 GiB",
                        f->name);
    return DPF_OK;
}

/* A patch of pictures has two sizes, one of volumes three. */
static enum dpf_status check_patch(const struct dpf_patch *p, const struct dpf_field *x,
                                   struct dpf_error *e)
{
    int due = x->shape.rank == 4 ? 3 : 2;
    if (p->dimensions && p->dimensions != due)
        return dpf_fail(e, DPF_USAGE, "a patch of field '%s' is %s", x->name,
                        due == 3 ? "DEPTHxHEIGHTxWIDTH" : "HEIGHTxWIDTH");
    return DPF_OK;
}

static enum dpf_status find_field(struct dpf_header *h, const char *name, int *number,
                                  struct dpf_error *e)
{
    const struct dpf_field *f = dpf_header_field(h, name);
    if (!f)
        return dpf_fail(e, DPF_USAGE, "the stream has no field '%s'", name);
    *number = (int)(f - h->fields);
    return DPF_OK;
}

static void set_sizes(struct dpf_augmenter *a, const struct dpf_shape *in,
                      const struct dpf_shape *out)
{
    int rank = in->rank;
    size_t channels = rank > 2 ? in->dim[0] : 1, depth = rank > 3 ? in->dim[1] : 1;
    a->warp = (struct dpf_warp){.planes = channels * depth,
                                .in_height = in->dim[rank - 2],
                                .in_width = in->dim[rank - 1],
                                .out_height = out->dim[rank - 2],
                                .out_width = out->dim[rank - 1]};
    a->mask_planes = depth;
}

enum dpf_status dpf_augmenter_open(struct dpf_augmenter *a,
                                   const struct dpf_augment *recipe,
                                   const struct dpf_header *in, struct dpf_header *out,
                                   struct dpf_error *e)
{
    *a = (struct dpf_augmenter){.recipe = *recipe, .mask = -1};
    enum dpf_status status = find_field(out, recipe->picture, &a->picture, e);
    if (status == DPF_OK && recipe->mask)
        status = find_field(out, recipe->mask, &a->mask, e);
    if (status != DPF_OK)
        return status;
    struct dpf_field *x = &out->fields[a->picture];
    status = check_picture(x, e);
    if (status == DPF_OK && a->mask >= 0)
        status = check_mask(&out->fields[a->mask], x, e);
    if (status == DPF_OK)
        status = check_patch(&recipe->patch, x, e);
    if (status == DPF_OK)
        status = declare(recipe, x, e);
    if (status == DPF_OK && a->mask >= 0)
        status = declare(recipe, &out->fields[a->mask], e);
    if (status != DPF_OK)
        return status;
    set_sizes(a, &in->fields[a->picture].shape, &x->shape);
    a->shape = in->fields[a->picture].shape;
    if (a->mask >= 0)
        a->mask_shape = in->fields[a->mask].shape;
    uint64_t group = dpf_augment_group(recipe);
    if (out->has_records && out->records > UINT64_MAX / group)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream declares too many records");
    out->records *= group;
    return DPF_OK;
}

/* ------------------------------------------------------------------------ records */

enum dpf_status dpf_augmenter_take(struct dpf_augmenter *a, const struct dpf_batch *b,
                                   struct dpf_error *e)
{
    const struct dpf_tensor *x = &b->tensor[a->picture];
    a->batch = b;
    a->row = a->copy = 0;
    uint32_t bad = 0;
    for (size_t i = 0; x->dtype == DPF_F32 && i < x->bytes / sizeof(float); i++) {
        uint32_t bits;
        memcpy(&bits, (const float *)x->data + i, sizeof bits);
        bad |= (uint32_t)((bits & 0x7f800000u) == 0x7f800000u);
    }
    return bad ? dpf_fail(e, DPF_BAD_STREAM, "a value of field '%s' is not finite",
                          a->recipe.picture)
               : DPF_OK;
}

/* All is drawn in this order, wanted or not: another option does not change what the
 * others do. */
static struct dpf_pose draw_pose(struct dpf_augmenter *a)
{
    double down = dpf_seeded_range(&a->random, -1, 1);
    double right = dpf_seeded_range(&a->random, -1, 1);
    double angle = dpf_seeded_range(&a->random, -1, 1);
    bool mirrored = dpf_seeded_u64(&a->random) >> 63;
    return (struct dpf_pose){
        .mirrored = a->recipe.flip && mirrored,
        .degrees = a->recipe.degrees * angle,
        .rows_down = a->recipe.shift * (double)a->warp.in_height * down,
        .columns_right = a->recipe.shift * (double)a->warp.in_width * right};
}

/* A patch of the picture and the same one of the mask. */
static void write_patch(struct dpf_augmenter *a, struct dpf_batch *out, uint64_t at)
{
    uint64_t place[DPF_PATCH_AXES];
    dpf_patch_draw(&a->recipe.patch, &a->shape, &a->random, place);
    for (int f = 0; f < out->count; f++) {
        const struct dpf_tensor *t = &a->batch->tensor[f];
        struct dpf_tensor *u = &out->tensor[f];
        size_t size = dpf_tensor_row_bytes(t);
        const char *from = (const char *)t->data + a->row * size;
        char *to = (char *)u->data + at * dpf_tensor_row_bytes(u);
        if (f == a->picture || f == a->mask)
            dpf_patch_cut(&a->recipe.patch, f == a->mask ? &a->mask_shape : &a->shape,
                          place, dpf_dtype_size(t->dtype), from, to);
        else if (size)
            memcpy(to, from, size);
    }
}

static void write_record(struct dpf_augmenter *a, const struct dpf_pose *pose,
                         struct dpf_batch *out, uint64_t at)
{
    bool warped = pose || a->recipe.height;
    if (warped)
        dpf_warp_set_pose(&a->warp, pose ? pose : &(struct dpf_pose){0});
    for (int f = 0; f < out->count; f++) {
        const struct dpf_tensor *t = &a->batch->tensor[f];
        struct dpf_tensor *u = &out->tensor[f];
        size_t size = dpf_tensor_row_bytes(t);
        const char *from = (const char *)t->data + a->row * size;
        char *to = (char *)u->data + at * dpf_tensor_row_bytes(u);
        struct dpf_warp mask = a->warp;
        mask.planes = a->mask_planes;
        if (warped && f == a->picture)
            dpf_warp_linear(&a->warp, t->dtype, from, to);
        else if (warped && f == a->mask)
            dpf_warp_nearest(&mask, dpf_dtype_size(t->dtype), from, to);
        else if (size)
            memcpy(to, from, size);
    }
}

bool dpf_augmenter_fill(struct dpf_augmenter *a, struct dpf_batch *out, uint64_t *filled)
{
    uint64_t group = dpf_augment_group(&a->recipe);
    for (; a->row < a->batch->rows; a->row++, a->record++, a->copy = 0) {
        if (a->copy == 0 && a->recipe.random)
            dpf_seeded_init(&a->random, a->recipe.patch.dimensions ? "patch" : "augment",
                            a->recipe.seed, a->recipe.same_places ? 0 : a->record);
        for (; a->copy < group; a->copy++) {
            if (*filled == out->rows)
                return false;
            if (a->recipe.patch.dimensions) {
                write_patch(a, out, (*filled)++);
                continue;
            }
            struct dpf_pose pose;
            bool posed = a->recipe.random && !(a->recipe.keep && a->copy == 0);
            if (posed)
                pose = draw_pose(a);
            write_record(a, posed ? &pose : NULL, out, (*filled)++);
        }
    }
    return true;
}
