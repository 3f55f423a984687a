#include "data/slices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/canvas.h"

#include "base/banned.h"

enum {
    ROWS = 6,    /* records of volumes */
    COLUMNS = 5, /* slices of a volume, or pictures in a row */
    GAP = 4,
    MAX_SIDE = 1024,
    WANTED_SIDE = 192,
    SPACE = 3,
    LETTER_ZOOM = 2,
    SWATCH = DPF_LETTER_HEIGHT * LETTER_ZOOM,
    MARGIN = SWATCH / 2,
};

static const struct dpf_colour ground = {255, 255, 255}, ink = {0, 0, 0};

struct dpf_slices {
    uint64_t channels, channel, size[SPACE];
    uint64_t slices, first, last; /* of a volume */
    uint64_t records, used;
    bool flat, labels; /* pictures; the field itself is the first mask */
    char names[DPF_SLICES_MASKS][DPF_NAME_BYTES];
    uint64_t classes[DPF_SLICES_MASKS]; /* 0: no such mask */
    float *values;                      /* [records, slices, H, W] */
    float *sorted;                      /* finite ones of a record */
    uint8_t *masks[DPF_SLICES_MASKS];
    float lo[ROWS * COLUMNS], hi[ROWS * COLUMNS]; /* window of a record */
};

/* ---------------------------------------------------------------------------- geometry
 */

static bool holds_labels(const struct dpf_field *f)
{
    return f->classes >= 2 && f->classes <= 256 &&
           (f->dtype == DPF_U8 || f->dtype == DPF_I32 || f->dtype == DPF_I64);
}

/* Channels and D, H, W; `rank` dimensions of space, or 0 if the field shows. */
static bool geometry(const struct dpf_field *f, int rank, struct dpf_slices *s)
{
    const struct dpf_shape *r = &f->shape;
    if (!rank)
        rank = r->rank == 4 || (r->rank == 3 &&
                                (f->classes || (r->dim[0] != 1 && r->dim[0] != 3)))
                   ? 3
                   : 0;
    if (!rank || f->dtype == DPF_BITS || (r->rank != rank && r->rank != rank + 1))
        return false;
    s->channels = r->rank > rank ? r->dim[0] : 1;
    s->size[0] = 1;
    memcpy(s->size + SPACE - rank, r->dim + r->rank - rank,
           (size_t)rank * sizeof *s->size);
    s->flat = s->size[0] == 1;
    for (int d = 0; d < SPACE; d++)
        if (s->size[d] < 1 || (d > 0 && s->size[d] > MAX_SIDE))
            return false;
    return s->channels >= 1;
}

bool dpf_slices_can_draw(const struct dpf_field *f, const struct dpf_field *mask)
{
    struct dpf_slices s;
    if (!mask)
        return geometry(f, 0, &s);
    int rank = mask->shape.rank;
    return f != mask && !f->classes && (rank == 2 || rank == 3) &&
           geometry(f, rank, &s) &&
           memcmp(s.size + SPACE - rank, mask->shape.dim,
                  (size_t)rank * sizeof *s.size) == 0;
}

static void choose_slices(struct dpf_slices *s)
{
    uint64_t depth = s->size[0];
    s->first = depth / 3;
    s->last = depth - 1 - depth / 3;
    s->slices = s->last - s->first + 1 < COLUMNS ? s->last - s->first + 1 : COLUMNS;
    s->records = s->flat ? ROWS * COLUMNS : ROWS;
}

static uint64_t slice_at(const struct dpf_slices *s, uint64_t k)
{
    uint64_t steps = s->slices - 1;
    return steps ? s->first + (k * (s->last - s->first) + steps / 2) / steps : s->first;
}

static enum dpf_status take_mask(struct dpf_slices *s, int k, const struct dpf_field *f,
                                 struct dpf_error *e)
{
    if (!holds_labels(f))
        return dpf_fail(e, DPF_USAGE, "field '%s' holds no labels of 2 to 256 classes",
                        f->name);
    s->classes[k] = f->classes;
    snprintf(s->names[k], sizeof s->names[k], "%s", f->name);
    return DPF_OK;
}

static enum dpf_status prepare(struct dpf_slices *s, const struct dpf_slices_plan *p,
                               struct dpf_error *e)
{
    const struct dpf_field *f = p->field;
    enum dpf_status status = DPF_OK;
    for (int k = 0; status == DPF_OK && k < DPF_SLICES_MASKS && p->masks[k]; k++) {
        status = take_mask(s, k, p->masks[k], e);
        if (status == DPF_OK && !dpf_slices_can_draw(f, p->masks[k]))
            status = dpf_fail(e, DPF_USAGE, "field '%s' is no mask of field '%s'",
                              p->masks[k]->name, f->name);
    }
    if (status == DPF_OK && !geometry(f, p->masks[0] ? p->masks[0]->shape.rank : 0, s))
        status = dpf_fail(e, DPF_USAGE, "field '%s' holds no volumes", f->name);
    s->labels = !p->masks[0] && holds_labels(f);
    if (status == DPF_OK && s->labels)
        status = take_mask(s, 0, f, e);
    if (status == DPF_OK && !s->labels && p->channel >= s->channels)
        status = dpf_fail(
            e, DPF_USAGE, "field '%s' has %llu channels, there is no '%llu'", f->name,
            (unsigned long long)s->channels, (unsigned long long)p->channel);
    s->channel = s->labels ? 0 : p->channel;
    return status;
}

enum dpf_status dpf_slices_new(struct dpf_slices **take_slices,
                               const struct dpf_slices_plan *plan, struct dpf_error *e)
{
    struct dpf_slices *s = dpf_calloc(1, sizeof *s);
    enum dpf_status status = s ? prepare(s, plan, e) : dpf_fail_memory(e);
    if (status != DPF_OK) {
        dpf_slices_destroy(&s);
        return status;
    }
    choose_slices(s);
    size_t count = s->records * s->slices * s->size[1] * s->size[2];
    s->values = dpf_calloc(count, sizeof *s->values);
    s->sorted = dpf_calloc(s->slices * s->size[1] * s->size[2], sizeof *s->sorted);
    bool good = s->values && s->sorted;
    for (int k = 0; k < DPF_SLICES_MASKS && s->classes[k]; k++)
        good = (s->masks[k] = dpf_calloc(count, sizeof *s->masks[k])) && good;
    if (!good) {
        dpf_slices_destroy(&s);
        return dpf_fail_memory(e);
    }
    *take_slices = s;
    return DPF_OK;
}

void dpf_slices_destroy(struct dpf_slices **s)
{
    for (int k = 0; *s && k < DPF_SLICES_MASKS; k++)
        free((*s)->masks[k]);
    if (*s) {
        free((*s)->values);
        free((*s)->sorted);
    }
    free(*s);
    *s = NULL;
}

/* ----------------------------------------------------------------------------- filling
 */

static int by_value(const void *a, const void *b)
{
    const float *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* The 1st and 99th percentile; the extremes, where these are the same. */
static void find_window(const float *values, size_t count, float *sorted, float *lo,
                        float *hi)
{
    size_t finite = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]))
            sorted[finite++] = values[i];
    *lo = *hi = 0;
    if (!finite)
        return;
    qsort(sorted, finite, sizeof *sorted, by_value);
    *lo = sorted[finite / 100];
    *hi = sorted[finite - 1 - finite / 100];
    if (*lo == *hi) {
        *lo = sorted[0];
        *hi = sorted[finite - 1];
    }
}

/* Planes of a record that are shown; rows of volumes from the last to the first. */
static uint64_t place_of(const struct dpf_slices *s, uint64_t channel, uint64_t k,
                         uint64_t i)
{
    uint64_t y = i / s->size[2], x = i % s->size[2];
    uint64_t row = s->flat ? y : s->size[1] - 1 - y;
    return ((channel * s->size[0] + slice_at(s, k)) * s->size[1] + row) * s->size[2] + x;
}

void dpf_slices_add(struct dpf_slices *s, const struct dpf_tensor *x,
                    const struct dpf_tensor *const *masks, uint64_t row)
{
    uint64_t plane = s->size[1] * s->size[2], places = s->size[0] * plane;
    uint64_t at = s->used * s->slices * plane, count = s->slices * plane;
    if (dpf_slices_full(s))
        return;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = place_of(s, s->channel, i / plane, i % plane);
        double v = dpf_tensor_get(x, row * s->channels * places + from);
        if (s->labels)
            s->masks[0][at + i] = (uint8_t)v;
        else
            s->values[at + i] = (float)v;
        from = place_of(s, 0, i / plane, i % plane);
        for (int k = 0; !s->labels && k < DPF_SLICES_MASKS && s->classes[k]; k++)
            s->masks[k][at + i] = (uint8_t)dpf_tensor_get(masks[k], row * places + from);
    }
    if (!s->labels)
        find_window(s->values + at, count, s->sorted, &s->lo[s->used], &s->hi[s->used]);
    s->used++;
}

bool dpf_slices_full(const struct dpf_slices *s)
{
    return s->used == s->records;
}

/* ----------------------------------------------------------------------------- drawing
 */

/* The palette of Okabe and Ito (2008) without black, the most different ones first. */
static struct dpf_colour class_colour(uint64_t class)
{
    static const struct dpf_colour palette[] = {
        {86, 180, 233}, {213, 94, 0},  {240, 228, 66}, {0, 158, 115},
        {230, 159, 0},  {0, 114, 178}, {204, 121, 167}};
    enum { COLOURS = sizeof palette / sizeof *palette };
    struct dpf_colour c = palette[(class - 1) % COLOURS];
    if ((class - 1) / COLOURS % 2)
        c = (struct dpf_colour){(unsigned char)(c.r * 3 / 5),
                                (unsigned char)(c.g * 3 / 5),
                                (unsigned char)(c.b * 3 / 5)};
    return c;
}

static struct dpf_colour mix(struct dpf_colour a, struct dpf_colour b, double share)
{
    return (struct dpf_colour){(unsigned char)((1 - share) * a.r + share * b.r + 0.5),
                               (unsigned char)((1 - share) * a.g + share * b.g + 0.5),
                               (unsigned char)((1 - share) * a.b + share * b.b + 0.5)};
}

/* One slice: where its values start, and how it is drawn. */
struct tile {
    const struct dpf_slices *s;
    size_t at, zoom;
    double lo, hi;
};

static double level(const struct tile *t, uint64_t y, uint64_t x)
{
    double v = (double)t->s->values[t->at + y * t->s->size[2] + x];
    double span = t->hi / 2 - t->lo / 2; /* halves: the difference may overflow */
    if (!isfinite(v) || !(span > 0))
        return 0;
    return fmin(fmax((v / 2 - t->lo / 2) / span, 0), 1);
}

/* Where a pixel lies between the centres of two values, and how far from the first. */
static uint64_t between(size_t pixel, size_t zoom, uint64_t size, double *share)
{
    double at = ((double)pixel + 0.5) / (double)zoom - 0.5;
    at = fmin(fmax(at, 0), (double)(size - 1));
    *share = at - floor(at);
    return (uint64_t)at;
}

static struct dpf_colour grey_at(const struct tile *t, size_t py, size_t px)
{
    double down, right;
    uint64_t h = t->s->size[1], w = t->s->size[2];
    uint64_t y = between(py, t->zoom, h, &down), x = between(px, t->zoom, w, &right);
    uint64_t below = y + 1 < h ? y + 1 : y, beside = x + 1 < w ? x + 1 : x;
    double v =
        (1 - down) * ((1 - right) * level(t, y, x) + right * level(t, y, beside)) +
        down * ((1 - right) * level(t, below, x) + right * level(t, below, beside));
    unsigned char shade = (unsigned char)(255 * v + 0.5);
    return (struct dpf_colour){shade, shade, shade};
}

/* The class under a pixel; those outside are as the nearest inside. */
static uint8_t class_at(const struct tile *t, int mask, int64_t py, int64_t px)
{
    int64_t height = (int64_t)(t->s->size[1] * t->zoom);
    int64_t width = (int64_t)(t->s->size[2] * t->zoom);
    py = py < 0 ? 0 : py >= height ? height - 1 : py;
    px = px < 0 ? 0 : px >= width ? width - 1 : px;
    return t->s->masks[mask][t->at + (size_t)py / t->zoom * t->s->size[2] +
                             (size_t)px / t->zoom];
}

/* Whether a pixel lies on the inner edge of its class. */
static bool on_edge(const struct tile *t, int mask, int64_t py, int64_t px)
{
    uint8_t own = class_at(t, mask, py, px);
    int64_t reach = t->zoom >= 3 ? 2 : 1;
    for (int64_t d = -reach; own && d <= reach; d += reach)
        for (int64_t b = -reach; b <= reach; b += reach)
            if (class_at(t, mask, py + d, px + b) != own)
                return true;
    return false;
}

static struct dpf_colour pixel_of(const struct tile *t, size_t py, size_t px)
{
    static const double translucent = 0.45;
    const struct dpf_slices *s = t->s;
    struct dpf_colour c = grey_at(t, py, px);
    int64_t y = (int64_t)py, x = (int64_t)px;
    uint8_t filled = s->classes[0] ? class_at(t, 0, y, x) : 0;
    if (filled)
        c = mix(c, class_colour(filled), s->labels ? 1 : translucent);
    if (s->classes[1] && on_edge(t, 1, y, x))
        c = class_colour(class_at(t, 1, y, x));
    return c;
}

/* Which mask is drawn how, and a square of each class's colour; returns its end. */
static size_t draw_legend(const struct dpf_slices *s, struct dpf_canvas *c, size_t top)
{
    char text[DPF_NAME_BYTES + 32];
    size_t x = MARGIN;
    uint64_t most = s->classes[1] > s->classes[0] ? s->classes[1] : s->classes[0];
    for (int k = 0; k < DPF_SLICES_MASKS && s->classes[k]; k++) {
        const char *how = !s->classes[1] ? "" : k ? " (outline)" : " (filled)";
        snprintf(text, sizeof text, "%s%s", s->names[k], how);
        x = dpf_canvas_write(c, x, top, LETTER_ZOOM, ink, text) + SWATCH;
    }
    for (uint64_t class = 1; class < most && class <= 14; class ++) {
        dpf_canvas_fill(c, x, top, SWATCH, SWATCH, class_colour(class));
        snprintf(text, sizeof text, "%llu", (unsigned long long)class);
        x = dpf_canvas_write(c, x + SWATCH + MARGIN, top, LETTER_ZOOM, ink, text) +
            SWATCH;
    }
    return x;
}

static void draw_tile(const struct tile *t, struct dpf_canvas *c, size_t left, size_t top)
{
    for (size_t y = 0; y < t->s->size[1] * t->zoom; y++)
        for (size_t x = 0; x < t->s->size[2] * t->zoom; x++)
            dpf_canvas_put(c, left + x, top + y, pixel_of(t, y, x));
}

enum dpf_status dpf_slices_save(const struct dpf_slices *s, const char *path,
                                struct dpf_error *e)
{
    uint64_t side = s->size[1] > s->size[2] ? s->size[1] : s->size[2];
    uint64_t tiles = s->used * s->slices;
    uint64_t columns = !s->flat ? s->slices : tiles < COLUMNS ? tiles : COLUMNS;
    columns = columns ? columns : 1;
    uint64_t rows = (tiles + columns - 1) / columns;
    size_t zoom = side < WANTED_SIDE ? WANTED_SIDE / side : 1;
    size_t cell_w = s->size[2] * zoom + GAP, cell_h = s->size[1] * zoom + GAP;
    size_t width = columns * cell_w + GAP, height = rows * cell_h + GAP;
    struct dpf_canvas canvas = {.width = 0}, nothing = {.width = 0};
    size_t legend = s->classes[0] ? draw_legend(s, &nothing, 0) : 0;
    size_t below = legend ? SWATCH + 2 * MARGIN : 0;
    enum dpf_status status = dpf_canvas_init(&canvas, width > legend ? width : legend,
                                             height + below, ground, e);
    if (status != DPF_OK)
        return status;
    for (uint64_t i = 0; i < tiles; i++) {
        uint64_t record = i / s->slices;
        const struct tile t = {.s = s,
                               .at = i * s->size[1] * s->size[2],
                               .zoom = zoom,
                               .lo = (double)s->lo[record],
                               .hi = (double)s->hi[record]};
        draw_tile(&t, &canvas, GAP + i % columns * cell_w, GAP + i / columns * cell_h);
    }
    if (legend)
        draw_legend(s, &canvas, height + MARGIN);
    status = dpf_canvas_save(&canvas, path, e);
    dpf_canvas_release(&canvas);
    return status;
}
