/* Digits as a pen would draw them: a glyph is a few strokes of lines and quadratic Bezier
 * curves; each record bends one, and inks the pixels by their distance to the stroke. */
#ifdef __clang__ /* GCC knows no such pragma, and -std=c11 means the same to it */
#pragma STDC FP_CONTRACT OFF
#endif

#include "data/synth.h"

#include <math.h>
#include <string.h>

#include "data/sets.h"
#include "data/synth_common.h"

#include "base/banned.h"

enum {
    SIDE = DPF_SYNTH_DIGIT_SIDE,
    CLASSES = 10,
    GLYPH_CLASSES = 200, /* the digits, and 190 glyphs that nobody writes */
    MAX_POINTS = 20,
    MAX_VARIANTS = 2,
    CURVE_STEPS = 5,
    MAX_PATH = MAX_POINTS * CURVE_STEPS,
    GRID = 3, /* nodes a side of the field that bends a digit */
};

/* A point in the unit box, y downwards. As in TrueType outlines, two neighbouring
 * points off the curve imply one on it, half-way; so a curve is smooth by construction
 * and stays so when its points are jittered. */
enum kind { END = 0, START, ON, OFF, S = START, N = ON, F = OFF };

struct point {
    enum kind kind;
    double x, y;
};

/* One point a line would hide the shapes. */
/* clang-format off */
static const struct point glyphs[CLASSES][MAX_VARIANTS][MAX_POINTS] = {
    [0] = {
        {{S, .50, .00}, {F, .36, .00}, {F, .18, .25}, {F, .18, .75}, {F, .36, 1.0},
         {F, .64, 1.0}, {F, .82, .75}, {F, .82, .25}, {F, .64, .00}, {N, .50, .00}},
        {{S, .62, .06}, {F, .46, -.04}, {F, .26, .16}, {F, .22, .62}, {F, .30, .98},
         {F, .52, 1.04}, {F, .74, .84}, {F, .80, .40}, {F, .74, .02}, {N, .50, .02}},
    },
    [1] = {
        {{S, .50, .00}, {F, .51, .50}, {N, .50, 1.0}},
        {{S, .32, .20}, {N, .53, .00}, {N, .51, 1.0}},
    },
    [2] = {
        {{S, .20, .26}, {F, .24, .00}, {F, .78, -.05}, {F, .84, .40}, {N, .50, .70},
         {N, .17, 1.0}, {N, .85, .98}},
        {{S, .20, .24}, {F, .30, -.03}, {F, .80, -.04}, {F, .80, .42}, {F, .46, .86},
         {F, .16, 1.06}, {F, .12, .78}, {F, .40, .80}, {F, .60, 1.02}, {N, .90, .93}},
    },
    [3] = {
        {{S, .20, .12}, {F, .40, -.07}, {F, .82, -.02}, {F, .80, .42}, {N, .42, .47},
         {F, .86, .48}, {F, .90, .98}, {F, .45, 1.08}, {N, .16, .88}},
        {{S, .20, .02}, {N, .76, .02}, {N, .44, .40}, {F, .86, .40}, {F, .90, .96},
         {F, .44, 1.09}, {N, .16, .86}},
    },
    [4] = {
        {{S, .26, .04}, {F, .22, .35}, {N, .18, .56}, {F, .50, .58}, {N, .88, .54},
         {S, .70, .06}, {F, .68, .55}, {N, .62, 1.0}},
        {{S, .62, 1.0}, {N, .64, .00}, {N, .13, .66}, {N, .88, .65}},
    },
    [5] = {
        {{S, .80, .02}, {N, .33, .02}, {N, .26, .45}, {F, .48, .32}, {F, .86, .40},
         {F, .84, .94}, {F, .44, 1.08}, {N, .16, .90}},
        {{S, .33, .05}, {N, .29, .42}, {F, .60, .36}, {F, .84, .56}, {F, .76, 1.0},
         {F, .42, 1.02}, {N, .18, .94}, {S, .32, .05}, {N, .84, .00}},
    },
    [6] = {
        {{S, .68, .01}, {F, .36, .16}, {F, .18, .56}, {F, .18, 1.02}, {F, .50, 1.02},
         {F, .82, 1.0}, {F, .82, .54}, {F, .48, .50}, {N, .24, .74}},
        {{S, .52, .00}, {F, .34, .36}, {F, .22, .72}, {F, .26, 1.0}, {F, .52, 1.0},
         {F, .80, .98}, {F, .76, .60}, {F, .48, .60}, {N, .27, .82}},
    },
    [7] = {
        {{S, .15, .06}, {N, .82, .03}, {F, .58, .42}, {N, .42, 1.0}},
        {{S, .16, .10}, {F, .20, .02}, {N, .84, .04}, {F, .60, .40}, {N, .44, 1.0},
         {S, .28, .52}, {N, .78, .47}},
    },
    [8] = {
        {{S, .74, .16}, {F, .66, -.02}, {F, .26, -.06}, {F, .22, .30}, {F, .50, .46},
         {F, .84, .60}, {F, .84, 1.0}, {F, .50, 1.03}, {F, .16, 1.0}, {F, .18, .66},
         {F, .50, .46}, {F, .80, .28}, {N, .74, .14}},
        {{S, .50, .00}, {F, .30, .00}, {F, .24, .24}, {F, .30, .46}, {F, .50, .48},
         {F, .84, .52}, {F, .84, 1.0}, {F, .50, 1.02}, {F, .16, 1.0}, {F, .16, .52},
         {F, .50, .48}, {F, .70, .46}, {F, .76, .24}, {F, .70, .00}, {N, .50, .00}},
    },
    [9] = {
        {{S, .74, .16}, {F, .60, -.05}, {F, .20, -.04}, {F, .18, .50}, {F, .58, .58},
         {N, .75, .18}, {F, .74, .50}, {N, .66, 1.0}},
        {{S, .74, .20}, {F, .64, -.05}, {F, .24, -.04}, {F, .18, .52}, {F, .62, .56},
         {N, .76, .16}, {F, .82, .72}, {F, .70, 1.04}, {N, .30, .96}},
    },
};
/* clang-format on */

/* How far records of a class differ from each other. */
struct style {
    double radius[2], size[2]; /* of the pen, and of the longer side, in pixels */
    double jitter, bend;
    double shear[2], wide[2], turn; /* turn: tangent of half the largest angle */
};

/* tan(15 degrees / 2) = 0.13165 */
static const struct style steady = {{.75, 1.65}, {18.5, 20.5}, .030,  .055,
                                    {-.15, .40}, {.75, 1.25},  .13165};
static const struct style wild = {{.6, 2.0}, {17.5, 21}, .05, .09,
                                  {-.3, .6}, {.6, 1.3},  .2};

/* A polyline; a piece whose `pen` is false only moves. */
struct path {
    int count;
    double x[MAX_PATH], y[MAX_PATH];
    bool pen[MAX_PATH]; /* from the point before to this one */
};

static void path_add(struct path *p, double x, double y, bool pen)
{
    p->x[p->count] = x;
    p->y[p->count] = y;
    p->pen[p->count++] = pen;
}

static void path_add_curve(struct path *p, const struct point *control, double x,
                           double y)
{
    double x0 = p->x[p->count - 1], y0 = p->y[p->count - 1];
    for (int i = 1; i <= CURVE_STEPS; i++) {
        double t = (double)i / CURVE_STEPS, u = 1 - t;
        path_add(p, u * u * x0 + 2 * u * t * control->x + t * t * x,
                 u * u * y0 + 2 * u * t * control->y + t * t * y, true);
    }
}

/* Draw a glyph's strokes with every point jittered. */
static void path_trace(struct path *p, const struct point *glyph, double jitter,
                       struct dpf_seeded *r)
{
    struct point off = {0};
    p->count = 0;
    for (int i = 0; i < MAX_POINTS && glyph[i].kind != END; i++) {
        struct point q = glyph[i];
        q.x += jitter * dpf_synth_bell(r);
        q.y += jitter * dpf_synth_bell(r);
        if (q.kind == OFF) {
            if (off.kind == OFF)
                path_add_curve(p, &off, (off.x + q.x) / 2, (off.y + q.y) / 2);
            off = q;
            continue;
        }
        if (off.kind == OFF)
            path_add_curve(p, &off, q.x, q.y);
        else
            path_add(p, q.x, q.y, q.kind != START);
        off.kind = END;
    }
}

/* Bend the plane: displacements at the nodes of a coarse grid, smooth in between. */
static void path_bend(struct path *p, double amount, struct dpf_seeded *r)
{
    double dx[GRID][GRID], dy[GRID][GRID];
    for (int i = 0; i < GRID * GRID; i++) {
        dx[i / GRID][i % GRID] = amount * dpf_synth_bell(r);
        dy[i / GRID][i % GRID] = amount * dpf_synth_bell(r);
    }
    for (int i = 0; i < p->count; i++) {
        double u = dpf_synth_clamp(p->x[i], 0, .999) * (GRID - 1);
        double v = dpf_synth_clamp(p->y[i], 0, .999) * (GRID - 1);
        int a = (int)u, b = (int)v;
        u = dpf_synth_smooth(u - a);
        v = dpf_synth_smooth(v - b);
        double w[4] = {(1 - v) * (1 - u), (1 - v) * u, v * (1 - u), v * u};
        p->x[i] += w[0] * dx[b][a] + w[1] * dx[b][a + 1] + w[2] * dx[b + 1][a] +
                   w[3] * dx[b + 1][a + 1];
        p->y[i] += w[0] * dy[b][a] + w[1] * dy[b][a + 1] + w[2] * dy[b + 1][a] +
                   w[3] * dy[b + 1][a + 1];
    }
}

/* Shear and widen, then turn. */
static void path_slant(struct path *p, const struct style *style, struct dpf_seeded *r)
{
    double c, s;
    double shear = dpf_seeded_range(r, style->shear[0], style->shear[1]);
    double wide = dpf_seeded_range(r, style->wide[0], style->wide[1]);
    dpf_synth_turn(dpf_seeded_range(r, -style->turn, style->turn), &c, &s);
    for (int i = 0; i < p->count; i++) {
        double x = wide * (p->x[i] - .5) - shear * (p->y[i] - .5), y = p->y[i] - .5;
        p->x[i] = c * x - s * y;
        p->y[i] = s * x + c * y;
    }
}

struct box {
    double x0, y0, x1, y1;
};

static struct box path_box(const struct path *p)
{
    struct box b = {p->x[0], p->y[0], p->x[0], p->y[0]};
    for (int i = 1; i < p->count; i++) {
        b.x0 = p->x[i] < b.x0 ? p->x[i] : b.x0;
        b.x1 = p->x[i] > b.x1 ? p->x[i] : b.x1;
        b.y0 = p->y[i] < b.y0 ? p->y[i] : b.y0;
        b.y1 = p->y[i] > b.y1 ? p->y[i] : b.y1;
    }
    return b;
}

/* Where the ink's weight is: the middle of the pieces by their lengths. */
static void path_centre(const struct path *p, double *x, double *y)
{
    double sx = 0, sy = 0, total = 1e-9;
    for (int i = 1; i < p->count; i++) {
        double ex = p->x[i] - p->x[i - 1], ey = p->y[i] - p->y[i - 1];
        double length = p->pen[i] ? sqrt(ex * ex + ey * ey) : 0;
        sx += length * (p->x[i] + p->x[i - 1]) / 2;
        sy += length * (p->y[i] + p->y[i - 1]) / 2;
        total += length;
    }
    *x = sx / total;
    *y = sy / total;
}

/* As MNIST was made: the longer side fills 20 pixels, the centre of mass is the centre
 * of the image; up to a pixel off either way here. */
static void path_place(struct path *p, const struct style *style, double radius,
                       struct dpf_seeded *r)
{
    struct box b = path_box(p);
    double tall = b.y1 - b.y0, wide = b.x1 - b.x0, cx, cy;
    double side = dpf_seeded_range(r, style->size[0], style->size[1]);
    double scale = (side - 2 * radius) / (tall > wide ? tall : wide);
    path_centre(p, &cx, &cy);
    double dx = SIDE / 2.0 - scale * cx + dpf_seeded_range(r, -1, 1);
    double dy = SIDE / 2.0 - scale * cy + dpf_seeded_range(r, -1, 1);
    /* Nothing may leave the image with its ink. */
    double margin = radius + 1.5;
    dx = dpf_synth_clamp(dx, margin - scale * b.x0, SIDE - margin - scale * b.x1);
    dy = dpf_synth_clamp(dy, margin - scale * b.y0, SIDE - margin - scale * b.y1);
    for (int i = 0; i < p->count; i++) {
        p->x[i] = scale * p->x[i] + dx;
        p->y[i] = scale * p->y[i] + dy;
    }
}

/* First and last pixel whose centre is within `reach` of [a,b]. */
static void pixel_span(double a, double b, double reach, int *from, int *to)
{
    double lo = (a < b ? a : b) - reach, hi = (a < b ? b : a) + reach;
    *from = (int)dpf_synth_clamp(lo, 0, SIDE - 1);
    *to = (int)dpf_synth_clamp(hi, 0, SIDE - 1);
}

/* Lower the squared distances of the pixels around the piece that ends at point i. */
static void piece_measure(const struct path *p, int i, double reach,
                          double near[SIDE][SIDE])
{
    double ax = p->x[i - 1], ay = p->y[i - 1], ex = p->x[i] - ax, ey = p->y[i] - ay;
    double inverse = 1 / (ex * ex + ey * ey + 1e-12);
    int x0, x1, y0, y1;
    pixel_span(ax, p->x[i], reach, &x0, &x1);
    pixel_span(ay, p->y[i], reach, &y0, &y1);
    for (int y = y0; y <= y1; y++) {
        for (int x = x0; x <= x1; x++) {
            double qx = x + .5 - ax, qy = y + .5 - ay;
            double t = dpf_synth_clamp((qx * ex + qy * ey) * inverse, 0, 1);
            qx -= t * ex;
            qy -= t * ey;
            double square = qx * qx + qy * qy;
            if (square < near[y][x])
                near[y][x] = square;
        }
    }
}

/* Full ink inside the pen's radius, fading to none over a pixel and a bit. */
static void path_ink(const struct path *p, double radius, double ink, uint8_t *image)
{
    const double soft = 1.2;
    double near[SIDE][SIDE], reach = radius + soft / 2;
    for (int i = 0; i < SIDE * SIDE; i++)
        near[i / SIDE][i % SIDE] = reach * reach;
    for (int i = 1; i < p->count; i++)
        if (p->pen[i])
            piece_measure(p, i, reach, near);
    memset(image, 0, SIDE * SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) {
        double square = near[i / SIDE][i % SIDE];
        if (square < reach * reach) {
            double level = dpf_synth_clamp((reach - sqrt(square)) / soft, 0, 1);
            image[i] = (uint8_t)(ink * level + .5);
        }
    }
}

static void draw(const struct point *glyph, const struct style *style,
                 struct dpf_seeded *r, uint8_t *image)
{
    struct path p;
    double radius = dpf_seeded_range(r, style->radius[0], style->radius[1]);
    double ink = dpf_seeded_range(r, 215, 255);
    path_trace(&p, glyph, style->jitter, r);
    path_bend(&p, style->bend, r);
    path_slant(&p, style, r);
    path_place(&p, style, radius, r);
    path_ink(&p, radius, ink, image);
}

static void make_digit(struct dpf_synth *s, uint64_t index, void *x, void *y)
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "synth-digits", s->seed, index);
    uint64_t label = dpf_seeded_below(&r, CLASSES);
    draw(glyphs[label][dpf_seeded_below(&r, MAX_VARIANTS)], &steady, &r, x);
    *(uint8_t *)y = (uint8_t)label;
}

/* ------------------------------------------------------------------------------ glyphs
 */

/* Glyph number k, the same for every seed: one stroke of three to eight points, or two of
 * two to four, each point away from the one before. */
static void invent(uint64_t k, struct point glyph[MAX_POINTS])
{
    struct dpf_seeded r;
    dpf_seeded_init(&r, "synth-glyphs", 0, k);
    int strokes = dpf_seeded_range(&r, 0, 1) < .7 ? 1 : 2, at = 0;
    memset(glyph, 0, MAX_POINTS * sizeof *glyph);
    for (int s = 0; s < strokes; s++) {
        int points = (int)(strokes == 1 ? 3 + dpf_seeded_below(&r, 6)
                                        : 2 + dpf_seeded_below(&r, 3));
        for (int i = 0; i < points; i++, at++) {
            struct point *p = &glyph[at];
            double dx, dy;
            for (int trial = 0; trial < 20; trial++) {
                p->x = dpf_seeded_range(&r, .1, .9);
                p->y = dpf_seeded_range(&r, 0, 1);
                dx = i ? p->x - p[-1].x : 1;
                dy = i ? p->y - p[-1].y : 1;
                if (dx * dx + dy * dy >= .3 * .3)
                    break;
            }
            p->kind = i == 0                            ? START
                      : i + 1 == points                 ? ON
                      : dpf_seeded_range(&r, 0, 1) < .7 ? OFF
                                                        : ON;
        }
    }
}

static void make_glyph(struct dpf_synth *s, uint64_t index, void *x, void *y)
{
    struct dpf_seeded r;
    struct point invented[MAX_POINTS];
    dpf_seeded_init(&r, "synth-glyphs", s->seed + 1, index); /* 0 is that of the glyphs */
    bool digit = dpf_seeded_below(&r, 5) < 2;
    uint64_t label = digit ? dpf_seeded_below(&r, CLASSES)
                           : CLASSES + dpf_seeded_below(&r, GLYPH_CLASSES - CLASSES);
    const struct point *glyph = invented;
    if (digit)
        glyph = glyphs[label][dpf_seeded_below(&r, MAX_VARIANTS)];
    else
        invent(label, invented);
    draw(glyph, &wild, &r, x);
    *(uint8_t *)y = (uint8_t)label;
}

static enum dpf_status open_drawn(uint64_t seed, uint64_t first, uint64_t count,
                                  bool of_glyphs, struct dpf_source **take,
                                  struct dpf_error *e)
{
    const struct dpf_shape image = {2, {SIDE, SIDE}}, scalar = {0};
    struct dpf_synth *s = NULL;
    enum dpf_status status =
        dpf_synth_new(seed, first, count, of_glyphs ? make_glyph : make_digit, 0, &s, e);
    if (status != DPF_OK)
        return status;
    status = dpf_synth_add_field(s, "x", DPF_U8, &image, 0, 0, 255, e);
    if (status == DPF_OK)
        status = dpf_synth_add_field(s, "y", DPF_U8, &scalar,
                                     of_glyphs ? GLYPH_CLASSES : CLASSES, 0, 0, e);
    return dpf_synth_give(s, status, take);
}

enum dpf_status dpf_synth_digits_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e)
{
    return open_drawn(seed, first, count, false, take, e);
}

enum dpf_status dpf_synth_glyphs_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e)
{
    return open_drawn(seed, first, count, true, take, e);
}

static enum dpf_status open_digits(const struct dpf_load_request *q,
                                   const struct dpf_part *part, struct dpf_source **take,
                                   struct dpf_error *e)
{
    return dpf_synth_digits_open(q->seed, part->first, part->count, take, e);
}

const struct dpf_data_set dpf_set_synth_digits = {
    .train = 10000,
    .test = 2000,
    .fields = "x u8 28x28, y 10 classes",
    .from = "generated",
    .is_generated = true,
    .takes = DPF_TAKES("count", "seed"),
    .open = open_digits,
};

static enum dpf_status open_glyphs(const struct dpf_load_request *q,
                                   const struct dpf_part *part, struct dpf_source **take,
                                   struct dpf_error *e)
{
    return dpf_synth_glyphs_open(q->seed, part->first, part->count, take, e);
}

const struct dpf_data_set dpf_set_synth_glyphs = {
    .train = 10000,
    .test = 2000,
    .fields = "x u8 28x28, y 200 classes",
    .from = "generated",
    .is_generated = true,
    .takes = DPF_TAKES("count", "seed"),
    .open = open_glyphs,
};
