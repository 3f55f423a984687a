#include "data/picture.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "data/canvas.h"

#include "base/banned.h"

enum { COLUMNS = 10, PLAIN_ROWS = 10, GAP = 2, MAX_ROWS = 32, MAX_SIDE = 512 };

struct dpf_sheet {
    uint64_t channels, depth, height, width;
    bool colour, heat;
    uint64_t rows;
    uint64_t used[MAX_ROWS];
    double *cells; /* rows x COLUMNS x cell values, kept until the range is known */
    size_t cell_values;
    double lo, hi;
    bool any;
};

static bool geometry(const struct dpf_shape *r, struct dpf_sheet *s)
{
    *s = (struct dpf_sheet){.channels = 1, .depth = 1};
    if (r->rank < 2 || r->rank > 4)
        return false;
    s->height = r->dim[r->rank - 2];
    s->width = r->dim[r->rank - 1];
    if (r->rank >= 3)
        s->channels = r->dim[0];
    if (r->rank == 4)
        s->depth = r->dim[1];
    s->colour = r->rank == 3 && s->channels == 3;
    if (r->rank == 3 && s->channels != 1 && s->channels != 3) {
        s->depth = s->channels; /* a volume without channels: its middle slice */
        s->channels = 1;
    }
    return s->height >= 1 && s->width >= 1 && s->height <= MAX_SIDE &&
           s->width <= MAX_SIDE && s->channels >= 1 && s->channels <= 16 && s->depth >= 1;
}

bool dpf_sheet_can_draw(const struct dpf_shape *record)
{
    struct dpf_sheet s;
    return geometry(record, &s);
}

enum dpf_status dpf_sheet_new(struct dpf_sheet **take_sheet,
                              const struct dpf_shape *record, uint64_t rows,
                              struct dpf_error *e)
{
    struct dpf_sheet *s = dpf_calloc(1, sizeof *s);
    if (!s)
        return dpf_fail_memory(e);
    if (!geometry(record, s)) {
        free(s);
        return dpf_fail(e, DPF_USAGE, "records of this shape are no pictures");
    }
    s->rows = rows && rows <= MAX_ROWS ? rows : PLAIN_ROWS;
    s->cell_values = s->channels * s->height * s->width;
    s->cells = dpf_calloc(s->rows * COLUMNS, s->cell_values * sizeof *s->cells);
    if (!s->cells) {
        free(s);
        return dpf_fail_memory(e);
    }
    *take_sheet = s;
    return DPF_OK;
}

void dpf_sheet_use_heat(struct dpf_sheet *s)
{
    s->heat = true;
    s->colour = false; /* channels side by side */
}

void dpf_sheet_add(struct dpf_sheet *s, const struct dpf_tensor *x, uint64_t row,
                   uint64_t label)
{
    uint64_t line = label;
    if (label == UINT64_MAX) /* no labels: fill line after line */
        for (line = 0; line + 1 < s->rows && s->used[line] == COLUMNS;)
            line++;
    if (line >= s->rows || s->used[line] == COLUMNS)
        return;
    uint64_t plane = s->height * s->width, record = s->channels * s->depth * plane;
    double *cell = s->cells + (line * COLUMNS + s->used[line]++) * s->cell_values;
    for (uint64_t c = 0; c < s->channels; c++)
        for (uint64_t i = 0; i < plane; i++) {
            uint64_t at = row * record + (c * s->depth + s->depth / 2) * plane + i;
            double v = dpf_tensor_get(x, at);
            cell[c * plane + i] = v;
            if (!isfinite(v))
                continue;
            s->lo = !s->any || v < s->lo ? v : s->lo;
            s->hi = !s->any || v > s->hi ? v : s->hi;
            s->any = true;
        }
}

bool dpf_sheet_full(const struct dpf_sheet *s)
{
    for (uint64_t i = 0; i < s->rows; i++)
        if (s->used[i] < COLUMNS)
            return false;
    return true;
}

/* Where a value stands between the extremes, in [0, 1]. */
static double level(const struct dpf_sheet *s, double v)
{
    if (!isfinite(v) || s->hi <= s->lo)
        return 0;
    double span = s->hi / 2 - s->lo / 2; /* halves: the difference may overflow */
    return fmin(fmax((v / 2 - s->lo / 2) / span, 0), 1);
}

static unsigned char shade(double v)
{
    return (unsigned char)(255 * v + 0.5);
}

/* Green over yellow to red. */
static struct dpf_colour heat(double v)
{
    return (struct dpf_colour){shade(fmin(2 * v, 1)), shade(fmin(2 - 2 * v, 0.75)), 0};
}

/* Draw one cell, its upper left corner at (left, top), each value as a square of `zoom`
 * pixels. */
static void draw(const struct dpf_sheet *s, const double *cell, struct dpf_canvas *canvas,
                 size_t left, size_t top, size_t zoom)
{
    uint64_t plane = s->height * s->width;
    uint64_t tiles = s->colour ? 1 : s->channels;
    for (uint64_t t = 0; t < tiles; t++)
        for (uint64_t i = 0; i < plane; i++) {
            double v[3];
            for (uint64_t c = 0; c < 3; c++)
                v[c] = level(s, cell[(s->colour ? c : t) * plane + i]);
            dpf_canvas_fill(
                canvas, left + (t * s->width + i % s->width) * zoom,
                top + i / s->width * zoom, zoom, zoom,
                s->heat ? heat(v[0])
                        : (struct dpf_colour){shade(v[0]), shade(v[1]), shade(v[2])});
        }
}

enum dpf_status dpf_sheet_write(struct dpf_sheet *s, const char *path,
                                struct dpf_error *e)
{
    size_t side = s->height > s->width ? s->height : s->width, columns = 1, rows = 1;
    for (uint64_t line = 0; line < s->rows; line++) {
        columns = s->used[line] > columns ? s->used[line] : columns;
        rows = s->used[line] ? line + 1 : rows;
    }
    size_t wanted = rows * columns == 1 ? 256 : 64; /* a single picture may be large */
    size_t zoom = side < wanted ? wanted / side : 1;
    uint64_t tiles = s->colour ? 1 : s->channels;
    size_t cell_w = tiles * s->width * zoom + GAP, cell_h = s->height * zoom + GAP;
    size_t width = columns * cell_w + GAP, height = rows * cell_h + GAP;
    struct dpf_canvas canvas;
    enum dpf_status status =
        dpf_canvas_init(&canvas, width, height, (struct dpf_colour){48, 48, 48}, e);
    if (status != DPF_OK)
        return status;
    for (uint64_t line = 0; line < rows; line++)
        for (uint64_t i = 0; i < s->used[line]; i++)
            draw(s, s->cells + (line * COLUMNS + i) * s->cell_values, &canvas,
                 GAP + i * cell_w, GAP + line * cell_h, zoom);
    status = dpf_canvas_save(&canvas, path, e);
    dpf_canvas_release(&canvas);
    return status;
}

void dpf_sheet_destroy(struct dpf_sheet **s)
{
    if (*s)
        free((*s)->cells);
    free(*s);
    *s = NULL;
}
