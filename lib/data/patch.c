#include "data/patch.h"

#include <stdio.h>
#include <string.h>

#include "base/number.h"

#include "base/banned.h"

enum dpf_status dpf_patch_parse(struct dpf_patch *p, const char *text,
                                struct dpf_error *e)
{
    char copy[96];
    uint64_t size[DPF_PATCH_AXES];
    bool good = snprintf(copy, sizeof copy, "%s", text) < (int)sizeof copy;
    char *at = copy;
    *p = (struct dpf_patch){.size = {1, 1, 1}};
    for (char *word; good && (word = strsep(&at, "x"));)
        good = p->dimensions < DPF_PATCH_AXES &&
               dpf_parse_uint(word, &size[p->dimensions++]) &&
               size[p->dimensions - 1] >= 1;
    if (!good || p->dimensions < 2)
        return dpf_fail(e, DPF_USAGE,
                        "a patch is HEIGHTxWIDTH or DEPTHxHEIGHTxWIDTH, not '%s'", text);
    memcpy(p->size + DPF_PATCH_AXES - p->dimensions, size,
           (size_t)p->dimensions * sizeof *size);
    return DPF_OK;
}

/* Depth, height and width of a record. */
static const uint64_t *space_of(const struct dpf_patch *p, const struct dpf_shape *record,
                                uint64_t space[DPF_PATCH_AXES])
{
    for (int d = 0; d < DPF_PATCH_AXES; d++) {
        int from = record->rank - DPF_PATCH_AXES + d;
        space[d] = d < DPF_PATCH_AXES - p->dimensions ? 1 : record->dim[from];
    }
    return space;
}

bool dpf_patch_fits(const struct dpf_patch *p, const struct dpf_shape *record,
                    struct dpf_shape *cut)
{
    uint64_t space[DPF_PATCH_AXES];
    if (record->rank < p->dimensions || record->rank > p->dimensions + 1)
        return false;
    space_of(p, record, space);
    *cut = *record;
    for (int d = 0; d < DPF_PATCH_AXES; d++)
        if (p->size[d] > space[d])
            return false;
    for (int d = 0; d < p->dimensions; d++)
        cut->dim[record->rank - p->dimensions + d] =
            p->size[DPF_PATCH_AXES - p->dimensions + d];
    return true;
}

void dpf_patch_draw(const struct dpf_patch *p, const struct dpf_shape *record,
                    struct dpf_seeded *r, uint64_t at[DPF_PATCH_AXES])
{
    uint64_t space[DPF_PATCH_AXES];
    space_of(p, record, space);
    for (int d = 0; d < DPF_PATCH_AXES; d++)
        at[d] = dpf_seeded_below(r, space[d] - p->size[d] + 1);
}

void dpf_patch_cut(const struct dpf_patch *p, const struct dpf_shape *record,
                   const uint64_t at[DPF_PATCH_AXES], size_t element_bytes,
                   const void *from, void *to)
{
    uint64_t space[DPF_PATCH_AXES];
    space_of(p, record, space);
    uint64_t channels = record->rank > p->dimensions ? record->dim[0] : 1;
    size_t row = p->size[2] * element_bytes;
    unsigned char *out = to;
    for (uint64_t c = 0; c < channels; c++)
        for (uint64_t z = 0; z < p->size[0]; z++)
            for (uint64_t y = 0; y < p->size[1]; y++, out += row) {
                uint64_t plane = c * space[0] + at[0] + z;
                uint64_t start = (plane * space[1] + at[1] + y) * space[2] + at[2];
                memcpy(out, (const unsigned char *)from + start * element_bytes, row);
            }
}
