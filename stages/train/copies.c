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
    if (in->rank != 3 || (d->dtype != DPF_F32 && d->dtype != DPF_U8))
        return dpf_fail(e, DPF_USAGE, "'--copies' needs pictures as f32 or u8");
    if (!d->labels || d->positions != 1)
        return dpf_fail(e, DPF_USAGE, "'--copies' needs a label for each picture");
    return DPF_OK;
}

static struct dpf_pose draw_pose(const struct dpf_copies *c, struct dpf_seeded *r,
                                 const struct dpf_shape *picture)
{
    double down = dpf_seeded_range(r, -1, 1), right = dpf_seeded_range(r, -1, 1);
    return (struct dpf_pose){.degrees = c->degrees * dpf_seeded_range(r, -1, 1),
                             .mirrored = dpf_seeded_below(r, 2) == 1 && c->flip,
                             .rows_down = c->shift * down * (double)picture->dim[1],
                             .columns_right = c->shift * right * (double)picture->dim[2]};
}

void dpf_copies_change(const struct dpf_copies *c, const struct dpf_model *m,
                       enum dpf_dtype dtype, struct dpf_seeded *r,
                       const unsigned char *from, unsigned char *to)
{
    const struct dpf_shape *in = &m->nodes[0].shape;
    struct dpf_warp warp = {.planes = in->dim[0],
                            .in_height = in->dim[1],
                            .in_width = in->dim[2],
                            .out_height = in->dim[1],
                            .out_width = in->dim[2]};
    struct dpf_pose pose = draw_pose(c, r, in);
    dpf_warp_set_pose(&warp, &pose);
    dpf_warp_linear(&warp, dtype, from, to);
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
    out->labels = dpf_calloc(all, sizeof *out->labels);
    if (!out->x || !out->labels) {
        dpf_dataset_release(out);
        return dpf_fail_memory(e);
    }
    dpf_seeded_init(&r, "copies", seed, 0);
    for (uint64_t i = 0; i < all; i++) {
        const unsigned char *from = d->x + rows[i / group] * bytes;
        unsigned char *to = out->x + i * bytes;
        out->labels[i] = d->labels[rows[i / group]];
        if (i % group == 0)
            memcpy(to, from, bytes);
        else
            dpf_copies_change(c, m, d->dtype, &r, from, to);
    }
    return DPF_OK;
}
