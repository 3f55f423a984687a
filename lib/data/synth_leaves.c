/* Dead leaves: shapes of many sizes laid over each other until nothing is left uncovered,
 * each with a colour, a slope of light and perhaps stripes. Few things are as much like
 * photographs in how edges and contrasts of all sizes occur (Lee, Mumford and Huang
 * 2001), and they show nobody and nothing. */
#ifdef __clang__ /* GCC knows no such pragma, and -std=c11 means the same to it */
#pragma STDC FP_CONTRACT OFF
#endif

#include "data/synth.h"

#include <math.h>
#include <string.h>

#include "data/sets.h"
#include "data/synth_common.h"

#include "base/banned.h"

enum { SIDE = 32, FINE = 2 * SIDE, MOST_LEAVES = 400, CLASSES = 8 };

/* Drawn at twice the size, from the front to the back. */
struct canvas {
    double light[3][FINE][FINE];
    bool covered[FINE][FINE];
    int left; /* places that nothing covers yet */
};

struct scene {
    double light, spread, chroma; /* of all leaves */
    double smallest;
    bool angular, striped;
};

struct leaf {
    double x, y, radius, flat, c, s; /* middle, size, height to width, direction */
    bool angular;
    double colour[3], slope_x, slope_y;
    double stripes, pitch, stripe_c, stripe_s, phase; /* their strength, 0: none */
};

/* Down and up between -1 and 1 with period 4. */
static double wave(double t)
{
    t -= 4 * floor(t / 4);
    return t < 2 ? t - 1 : 3 - t;
}

static struct leaf pick_leaf(const struct scene *scene, bool last, struct dpf_seeded *r)
{
    struct leaf l = {0};
    double least = scene->smallest, most = 40, u = dpf_seeded_range(r, 0, 1);
    /* sizes have density radius^-3: pictures look the same at every distance */
    l.radius = last ? 1000 : 1 / sqrt(u / (least * least) + (1 - u) / (most * most));
    l.x = dpf_seeded_range(r, 0, FINE);
    l.y = dpf_seeded_range(r, 0, FINE);
    dpf_synth_turn(dpf_seeded_range(r, -1, 1), &l.c, &l.s);
    l.flat = dpf_seeded_range(r, .4, 1);
    l.angular = dpf_seeded_range(r, 0, 1) < (scene->angular ? .8 : .1);
    double light = scene->light + scene->spread * dpf_synth_bell(r);
    double red = .5 * scene->chroma * dpf_synth_bell(r);
    double blue = scene->chroma * dpf_synth_bell(r);
    l.colour[0] = light + red + .5 * blue;
    l.colour[1] = light - .5 * red + .2 * blue;
    l.colour[2] = light - blue;
    l.slope_x = .15 * dpf_synth_bell(r) / l.radius;
    l.slope_y = .15 * dpf_synth_bell(r) / l.radius;
    l.stripes = dpf_seeded_range(r, 0, 1) < (scene->striped ? .7 : .1)
                    ? dpf_seeded_range(r, 0, .12)
                    : 0;
    l.pitch = dpf_seeded_range(r, .2, 1.2);
    l.phase = dpf_seeded_range(r, 0, 4);
    dpf_synth_turn(dpf_seeded_range(r, -1, 1), &l.stripe_c, &l.stripe_s);
    return l;
}

static void lay(struct canvas *c, const struct leaf *l)
{
    double reach = l->radius > 100 ? 2 * FINE : 1.5 * l->radius + 2;
    int x0 = (int)dpf_synth_clamp(l->x - reach, 0, FINE - 1);
    int x1 = (int)dpf_synth_clamp(l->x + reach, 0, FINE - 1);
    int y0 = (int)dpf_synth_clamp(l->y - reach, 0, FINE - 1);
    int y1 = (int)dpf_synth_clamp(l->y + reach, 0, FINE - 1);
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            double dx = x - l->x, dy = y - l->y;
            double p = l->c * dx + l->s * dy, q = (l->c * dy - l->s * dx) / l->flat;
            double r = l->radius;
            bool inside =
                l->angular ? p < r && p > -r && q < r && q > -r : p * p + q * q < r * r;
            if (!inside || c->covered[y][x])
                continue;
            double along = l->stripe_c * dx + l->stripe_s * dy;
            double shade = l->slope_x * dx + l->slope_y * dy +
                           l->stripes * wave(l->pitch * along + l->phase);
            for (int k = 0; k < 3; k++)
                c->light[k][y][x] = l->colour[k] + shade;
            c->covered[y][x] = true;
            c->left--;
        }
}

static void make_leaves(struct dpf_synth *s, uint64_t index, void *x, void *y)
{
    struct canvas *c = s->scratch;
    struct dpf_seeded r;
    uint8_t *image = x;
    dpf_seeded_init(&r, "synth-leaves", s->seed, index);
    uint64_t label = dpf_seeded_below(&r, CLASSES);
    struct scene scene = {.light = dpf_seeded_range(&r, .2, .8),
                          .spread = dpf_seeded_range(&r, .15, .3),
                          .chroma = dpf_seeded_range(&r, .04, .16),
                          .smallest = label & 1 ? 5 : 2,
                          .angular = label & 2,
                          .striped = label & 4};
    memset(c->covered, 0, sizeof c->covered);
    c->left = FINE * FINE;
    for (int i = 0; c->left > 0; i++) {
        struct leaf l = pick_leaf(&scene, i == MOST_LEAVES, &r);
        lay(c, &l);
    }
    for (int k = 0; k < 3; k++)
        for (int v = 0; v < SIDE; v++)
            for (int u = 0; u < SIDE; u++) {
                double sum = c->light[k][2 * v][2 * u] + c->light[k][2 * v][2 * u + 1] +
                             c->light[k][2 * v + 1][2 * u] +
                             c->light[k][2 * v + 1][2 * u + 1];
                double level = sum / 4 + .015 * dpf_synth_bell(&r);
                *image++ = (uint8_t)(255 * dpf_synth_clamp(level, 0, 1) + .5);
            }
    *(uint8_t *)y = (uint8_t)label;
}

enum dpf_status dpf_synth_leaves_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e)
{
    const struct dpf_shape image = {3, {3, SIDE, SIDE}}, scalar = {0};
    struct dpf_synth *s = NULL;
    enum dpf_status status =
        dpf_synth_new(seed, first, count, make_leaves, sizeof(struct canvas), &s, e);
    if (status != DPF_OK)
        return status;
    status = dpf_synth_add_field(s, "x", DPF_U8, &image, 0, 0, 255, e);
    if (status == DPF_OK)
        status = dpf_synth_add_field(s, "y", DPF_U8, &scalar, CLASSES, 0, 0, e);
    return dpf_synth_give(s, status, take);
}

static enum dpf_status open_leaves(const struct dpf_load_request *q,
                                   const struct dpf_part *part, struct dpf_source **take,
                                   struct dpf_error *e)
{
    return dpf_synth_leaves_open(q->seed, part->first, part->count, take, e);
}

const struct dpf_data_set dpf_set_synth_leaves = {
    .train = 10000,
    .test = 2000,
    .fields = "x u8 3x32x32, y 8 classes",
    .from = "generated",
    .is_generated = true,
    .takes = DPF_TAKES("count", "seed"),
    .open = open_leaves,
};
