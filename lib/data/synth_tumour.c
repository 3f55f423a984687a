/* Volumes like skull-stripped brain MRI with tumours. A voxel's tissue is decided by
 * smooth shapes (a brain, two ventricles, up to two tumours) whose surfaces are bent by
 * lattice noise; each channel shows the tissues in its own grey levels, under its own
 * uneven field, with noise. Coordinates run over [-1,1] along each axis, whatever the
 * side. */
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
    CHANNELS = DPF_SYNTH_MAX_CHANNELS,
    MAX_SIDE = DPF_SYNTH_MAX_SIDE,
    MAX_NODES = 14,
    MAX_TUMOURS = 2,
    CLASSES = 4, /* of the mask; the three tumour tissues come last below */
};

enum tissue { GREY, WHITE, FLUID, EDEMA, NON_ENHANCING, ENHANCING, TISSUES };

/* Fields of lattice noise: a broad texture, folds of the cortex, and two that bend
 * surfaces; then the uneven field of each channel. */
enum { BROAD, FOLDS, BEND, BORDER, UNEVEN, FIELDS = UNEVEN + CHANNELS };

static const int field_nodes[FIELDS] = {
    [BROAD] = 5,      [FOLDS] = 14,     [BEND] = 8,       [BORDER] = 11,
    [UNEVEN + 0] = 3, [UNEVEN + 1] = 3, [UNEVEN + 2] = 3, [UNEVEN + 3] = 3,
};

/* Grey levels in FLAIR, T1, T1 with contrast agent, T2. */
static const double levels[TISSUES][CHANNELS] = {
    [GREY] = {.52, .44, .46, .52},          [WHITE] = {.42, .60, .62, .40},
    [FLUID] = {.12, .15, .16, .90},         [EDEMA] = {.82, .38, .40, .78},
    [NON_ENHANCING] = {.64, .27, .30, .70}, [ENHANCING] = {.72, .46, .92, .62},
};

/* Values in [-1,1] at the nodes of a lattice over the volume. */
struct field {
    int nodes;
    double value[MAX_NODES][MAX_NODES][MAX_NODES];
    /* For each voxel along an axis: the node before it, and how far behind it is. */
    int cell[MAX_SIDE];
    double weight[MAX_SIDE];
    double row[MAX_SIDE]; /* along the row being made */
};

/* The ellipsoid |shape (p - centre)| < 1; `shape` is upper triangular. */
struct ellipsoid {
    double centre[3];
    double shape[3][3];
};

struct volume {
    size_t side, channels;
    double position[MAX_SIDE];
    struct field field[FIELDS];
    struct ellipsoid brain, ventricle[2], tumour[MAX_TUMOURS];
    int tumours;
    double noise_stddev;
};

static void field_layout(struct field *f, int nodes, size_t side)
{
    f->nodes = nodes;
    for (size_t i = 0; i < side; i++) {
        double at = ((double)i + .5) / (double)side * (nodes - 1);
        f->cell[i] = (int)at;
        f->weight[i] = dpf_synth_smooth(at - f->cell[i]);
    }
}

static void field_draw(struct field *f, struct dpf_seeded *r)
{
    for (int z = 0; z < f->nodes; z++)
        for (int y = 0; y < f->nodes; y++)
            for (int x = 0; x < f->nodes; x++)
                f->value[z][y][x] = dpf_seeded_range(r, -1, 1);
}

/* Interpolate the lattice along z and y once a row, then along x for each voxel. */
static void field_row(struct field *f, size_t z, size_t y, size_t side)
{
    double line[MAX_NODES], w = f->weight[z], v = f->weight[y];
    int a = f->cell[z], b = f->cell[y];
    for (int x = 0; x < f->nodes; x++) {
        double near = f->value[a][b][x] * (1 - v) + f->value[a][b + 1][x] * v;
        double far = f->value[a + 1][b][x] * (1 - v) + f->value[a + 1][b + 1][x] * v;
        line[x] = near * (1 - w) + far * w;
    }
    for (size_t x = 0; x < side; x++) {
        const double *pair = line + f->cell[x];
        f->row[x] = pair[0] + (pair[1] - pair[0]) * f->weight[x];
    }
}

/* Squared distance from the centre in units of the surface. */
static double ellipsoid_square(const struct ellipsoid *b, const double p[3])
{
    double d[3] = {p[0] - b->centre[0], p[1] - b->centre[1], p[2] - b->centre[2]};
    double u = b->shape[0][0] * d[0] + b->shape[0][1] * d[1] + b->shape[0][2] * d[2];
    double v = b->shape[1][1] * d[1] + b->shape[1][2] * d[2];
    double w = b->shape[2][2] * d[2];
    return u * u + v * v + w * w;
}

static void ellipsoid_draw(struct ellipsoid *b, const double centre[3],
                           const double radius[3], double skew, struct dpf_seeded *r)
{
    *b = (struct ellipsoid){0};
    for (int i = 0; i < 3; i++) {
        b->centre[i] = centre[i];
        b->shape[i][i] = 1 / (radius[i] * dpf_seeded_range(r, .94, 1.06));
        for (int j = i + 1; j < 3; j++)
            b->shape[i][j] = dpf_seeded_range(r, -skew, skew) / radius[i];
    }
}

/* A tumour whose centre is well inside the brain. */
static void tumour_draw(struct ellipsoid *b, double size, struct dpf_seeded *r)
{
    double centre[3], radius[3], square;
    do {
        square = 0;
        for (int i = 0; i < 3; i++) {
            centre[i] = dpf_seeded_range(r, -.55, .55);
            square += centre[i] * centre[i];
        }
    } while (square > .55 * .55);
    for (int i = 0; i < 3; i++) {
        centre[i] *= .75;
        radius[i] = size * dpf_seeded_range(r, .8, 1.2);
    }
    ellipsoid_draw(b, centre, radius, .35, r);
}

static void anatomy_draw(struct volume *v, struct dpf_seeded *r)
{
    const double middle[3] = {0}, head[3] = {.74, .86, .78}, horn[3] = {.09, .30, .14};
    double apart = dpf_seeded_range(r, .11, .15), swell = dpf_seeded_range(r, .8, 1.4);
    double chance = dpf_seeded_unit(r);
    ellipsoid_draw(&v->brain, middle, head, .04, r);
    for (int i = 0; i < 2; i++) {
        double centre[3] = {i ? apart : -apart, .02, .05}, radius[3];
        for (int k = 0; k < 3; k++)
            radius[k] = horn[k] * swell;
        ellipsoid_draw(&v->ventricle[i], centre, radius, .1, r);
        v->ventricle[i].shape[0][1] =
            (i ? -.25 : .25) / radius[0]; /* they part in front */
    }
    v->tumours = chance < .15 ? 0 : chance < .75 ? 1 : 2;
    for (int i = 0; i < v->tumours; i++)
        tumour_draw(&v->tumour[i], dpf_seeded_range(r, i ? .20 : .28, i ? .28 : .44), r);
    v->noise_stddev = dpf_seeded_range(r, .015, .035);
}

/* 1 well inside a surface, 0 well outside, 1/2 on it: the share of a voxel. */
static double inside(double distance, double surface, double width)
{
    return dpf_synth_clamp((surface - distance) / width + .5, 0, 1);
}

/* The shares of the three tumour tissues at a voxel; returns its class. The surfaces stay
 * apart (.48 < .58 and .74 < .82), and near the surface of the brain the inner tissues
 * give way first, so the classes are nested and the core never touches the background. */
static int tumour_measure(const struct volume *v, const double p[3], double depth,
                          double bend, double border, double share[3])
{
    int class = 0;
    share[0] = share[1] = share[2] = 0;
    for (int i = 0; i < v->tumours; i++) {
        double square = ellipsoid_square(&v->tumour[i], p);
        if (square > 2.25)
            continue;
        double rho = sqrt(square) / (1 + .28 * bend);
        const double surface[3] = {.91 + .09 * border, .66 + .08 * border,
                                   .40 - .08 * border};
        for (int k = 0; k < 3; k++) {
            double pushed = rho + 8 * fmax(.06 * (k + 1) - depth, 0);
            share[k] = fmax(share[k], inside(pushed, surface[k], .10));
            if (pushed < surface[k] && class <= k)
                class = k + 1;
        }
    }
    return class;
}

static void mix(double *shade, enum tissue tissue, double share)
{
    if (share > 0)
        for (int c = 0; c < CHANNELS; c++)
            shade[c] += (levels[tissue][c] - shade[c]) * share;
}

/* Tissues of the voxel at p, column x of the row, into `shade`; returns its class, or -1
 * outside the brain. */
static int voxel_shade(const struct volume *v, const double p[3], size_t x,
                       double shade[CHANNELS])
{
    double bend = v->field[BEND].row[x], border = v->field[BORDER].row[x];
    double folds = v->field[FOLDS].row[x], broad = v->field[BROAD].row[x];
    double square = ellipsoid_square(&v->brain, p), share[3];
    if (square > 1.2)
        return -1;
    double depth = 1 + .03 * bend + .015 * folds - sqrt(square);
    if (depth < 0)
        return -1;
    memcpy(shade, levels[GREY], sizeof levels[GREY]);
    mix(shade, WHITE, inside(.16 + .10 * folds + .05 * border, depth, .12));
    for (int i = 0; i < 2; i++) {
        double horn = ellipsoid_square(&v->ventricle[i], p);
        if (horn < 2)
            mix(shade, FLUID, inside(sqrt(horn), 1 + .18 * bend, .25));
    }
    /* Fluid in the furrows of the surface and between the hemispheres. */
    mix(shade, FLUID, .7 * inside(depth, .03 + .05 * folds, .05));
    double cleft = fabs(p[0] + .03 * broad) + fmax(.45 - fabs(p[1]), 0);
    mix(shade, FLUID, .6 * inside(cleft, .015, .04));
    int class = tumour_measure(v, p, depth, bend, border, share);
    for (int k = 0; k < 3; k++)
        mix(shade, (enum tissue)(EDEMA + k), share[k]);
    for (int c = 0; c < CHANNELS; c++)
        shade[c] *= 1 + .08 * broad + .04 * folds;
    return class;
}

/* Four nearly normal numbers from 128 bits: sums of four bytes, deviation 1. Drawn for
 * all channels, so that a channel does not depend on how many are wanted. */
static void voxel_noise(struct dpf_seeded *r, double noise[CHANNELS])
{
    for (int half = 0; half < 2; half++) {
        uint64_t bits = dpf_seeded_u64(r);
        for (int c = 0; c < 2; c++, bits >>= 32) {
            unsigned sum = (unsigned)((bits & 255) + (bits >> 8 & 255) +
                                      (bits >> 16 & 255) + (bits >> 24 & 255));
            noise[2 * half + c] = ((double)sum - 510) / 147.8; /* sqrt(4 (2^16-1) / 12) */
        }
    }
}

static void make_row(struct volume *v, size_t z, size_t y, struct dpf_seeded *r, float *x,
                     uint8_t *mask)
{
    size_t n = v->side, start = (z * n + y) * n, plane = n * n * n;
    for (int f = 0; f < FIELDS; f++)
        field_row(&v->field[f], z, y, n);
    for (size_t i = 0; i < n; i++) {
        double shade[CHANNELS], noise[CHANNELS];
        const double p[3] = {v->position[i], v->position[y], v->position[z]};
        int class = voxel_shade(v, p, i, shade);
        mask[start + i] = (uint8_t)(class > 0 ? class : 0);
        if (class >= 0)
            voxel_noise(r, noise);
        for (size_t c = 0; c < v->channels; c++) {
            double value = 0; /* outside the brain */
            if (class >= 0)
                value = shade[c] * (1 + .15 * v->field[UNEVEN + c].row[i]) +
                        v->noise_stddev * noise[c];
            x[c * plane + start + i] = (float)dpf_synth_clamp(value, 0, 1);
        }
    }
}

static void make_volume(struct dpf_synth *s, uint64_t index, void *x, void *y)
{
    struct volume *v = s->scratch;
    struct dpf_seeded r;
    dpf_seeded_init(&r, "synth-tumour", s->seed, index);
    for (int f = 0; f < FIELDS; f++)
        field_draw(&v->field[f], &r);
    anatomy_draw(v, &r);
    for (size_t z = 0; z < v->side; z++)
        for (size_t row = 0; row < v->side; row++)
            make_row(v, z, row, &r, x, y);
}

static void volume_layout(struct volume *v, size_t channels, size_t side)
{
    v->channels = channels;
    v->side = side;
    for (size_t i = 0; i < side; i++)
        v->position[i] = (2 * (double)i + 1) / (double)side - 1;
    for (int f = 0; f < FIELDS; f++)
        field_layout(&v->field[f], field_nodes[f], side);
}

enum dpf_status dpf_synth_tumour_open(uint64_t seed, uint64_t first, uint64_t count,
                                      uint64_t channels, uint64_t side,
                                      struct dpf_source **take, struct dpf_error *e)
{
    const struct dpf_shape image = {4, {channels, side, side, side}};
    const struct dpf_shape mask = {3, {side, side, side}};
    struct dpf_synth *s = NULL;
    if (channels < 1 || channels > CHANNELS)
        return dpf_fail(e, DPF_USAGE, "a volume has 1 to %d channels, not '%llu'",
                        CHANNELS, (unsigned long long)channels);
    if (side < DPF_SYNTH_MIN_SIDE || side > MAX_SIDE)
        return dpf_fail(e, DPF_USAGE,
                        "the side of a volume is %d to %d voxels, not '%llu'",
                        DPF_SYNTH_MIN_SIDE, MAX_SIDE, (unsigned long long)side);
    enum dpf_status status =
        dpf_synth_new(seed, first, count, make_volume, sizeof(struct volume), &s, e);
    if (status != DPF_OK)
        return status;
    volume_layout(s->scratch, (size_t)channels, (size_t)side);
    status = dpf_synth_add_field(s, "x", DPF_F32, &image, 0, 0, 1, e);
    if (status == DPF_OK)
        status = dpf_synth_add_field(s, "mask", DPF_U8, &mask, CLASSES, 0, 0, e);
    return dpf_synth_give(s, status, take);
}

static enum dpf_status open_tumour(const struct dpf_load_request *q,
                                   const struct dpf_part *part, struct dpf_source **take,
                                   struct dpf_error *e)
{
    if (q->size[0] &&
        (q->size[1] != q->size[0] || q->size[2] != q->size[0] || q->side != q->size[0]))
        return dpf_fail(e, DPF_USAGE, "synth-tumour makes cubes: give one size");
    return dpf_synth_tumour_open(q->seed, part->first, part->count,
                                 q->channels ? q->channels : 4, q->side ? q->side : 64,
                                 take, e);
}

const struct dpf_data_set dpf_set_synth_tumour = {
    .train = 40,
    .test = 8,
    .fields = "x f32 4x64x64x64, mask 4 classes",
    .from = "generated",
    .is_generated = true,
    .takes = DPF_TAKES("count", "seed", "side", "size", "channels"),
    .open = open_tumour,
};
