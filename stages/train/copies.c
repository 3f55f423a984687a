#include "copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/augment.h"

#include "base/banned.h"

enum dpf_status dpf_copies_check(const struct dpf_dataset *d, const struct dpf_model *m,
                                 struct dpf_error *e)
{
    const struct dpf_shape *in = &m->nodes[0].shape;
    uint64_t places = dpf_shape_elements(in) / in->dim[0];
    if ((in->rank != 3 && in->rank != 4) || (d->one_hot && d->positions != places) ||
        (d->dtype != DPF_F32 && d->dtype != DPF_U8))
        return dpf_fail(e, DPF_USAGE, "'--copies' needs pictures or volumes, f32 or u8");
    if (!d->labels || (d->positions != 1 && d->positions != places))
        return dpf_fail(e, DPF_USAGE,
                        "'--copies' needs a label for each picture, or one for each of "
                        "its positions");
    return DPF_OK;
}

static struct dpf_pose draw_pose(const struct dpf_copies *c, struct dpf_seeded *r,
                                 const struct dpf_warp *w)
{
    double down = dpf_seeded_range(r, -1, 1), right = dpf_seeded_range(r, -1, 1);
    return (struct dpf_pose){.degrees = c->degrees * dpf_seeded_range(r, -1, 1),
                             .mirrored = dpf_seeded_below(r, 2) == 1 && c->flip,
                             .rows_down = c->shift * down * (double)w->in_height,
                             .columns_right = c->shift * right * (double)w->in_width};
}

/* Height and width of an input; all slices of a volume are turned alike. */
static struct dpf_warp warp_of(const struct dpf_model *m)
{
    const struct dpf_shape *in = &m->nodes[0].shape;
    uint64_t height = in->dim[in->rank - 2], width = in->dim[in->rank - 1];
    return (struct dpf_warp){.planes = dpf_shape_elements(in) / height / width,
                             .in_height = height,
                             .in_width = width,
                             .out_height = height,
                             .out_width = width};
}

void dpf_copies_change(const struct dpf_copies *c, const struct dpf_model *m,
                       enum dpf_dtype dtype, struct dpf_seeded *r,
                       const unsigned char *from, unsigned char *to)
{
    struct dpf_warp warp = warp_of(m);
    struct dpf_pose pose = draw_pose(c, r, &warp);
    dpf_warp_set_pose(&warp, &pose);
    dpf_warp_linear(&warp, dtype, from, to);
}

/* The same with labels of every position, which turn with it. */
static void change_labelled(const struct dpf_copies *c, const struct dpf_model *m,
                            struct dpf_seeded *r, const struct dpf_dataset *d,
                            uint32_t row, struct dpf_dataset *out, uint64_t at)
{
    struct dpf_warp warp = warp_of(m);
    struct dpf_pose pose = draw_pose(c, r, &warp);
    dpf_warp_set_pose(&warp, &pose);
    const unsigned char *from = d->x + row * d->record_bytes;
    unsigned char *to = out->x + at * d->record_bytes;
    if (!d->one_hot)
        dpf_warp_linear(&warp, d->dtype, from, to);
    warp.planes /= m->nodes[0].shape.dim[0]; /* labels have no channels */
    if (d->one_hot)                          /* and are told apart while they are read */
        dpf_warp_nearest(&warp, dpf_dtype_size(d->dtype), from, to);
    dpf_warp_nearest(&warp, sizeof *d->labels, d->labels + row * d->positions,
                     out->labels + at * d->positions);
}

enum dpf_status dpf_copies_make(const struct dpf_copies *c, const struct dpf_dataset *d,
                                const struct dpf_model *m, const uint32_t *rows,
                                int64_t count, uint64_t seed, struct dpf_dataset *out,
                                struct dpf_error *e)
{
    size_t bytes = d->record_bytes;
    uint64_t group = (uint64_t)c->copies + 1, all = (uint64_t)count * group;
    struct dpf_seeded r;
    *out = *d; /* what describes the examples; the examples themselves are new */
    out->rows = out->capacity = all;
    out->values = NULL;
    out->x = dpf_calloc(all, bytes);
    out->labels = dpf_calloc(all * d->positions, sizeof *out->labels);
    if (!out->x || !out->labels) {
        dpf_dataset_release(out);
        return dpf_fail_memory(e);
    }
    dpf_seeded_init(&r, "copies", seed, 0);
    for (uint64_t i = 0; i < all; i++) {
        uint32_t row = rows[i / group];
        bool copy = i % group != 0;
        if (copy && d->positions > 1) {
            change_labelled(c, m, &r, d, row, out, i);
            continue;
        }
        memcpy(out->labels + i * d->positions, d->labels + row * d->positions,
               d->positions * sizeof *out->labels);
        if (copy)
            dpf_copies_change(c, m, d->dtype, &r, d->x + row * bytes, out->x + i * bytes);
        else
            memcpy(out->x + i * bytes, d->x + row * bytes, bytes);
    }
    return DPF_OK;
}
