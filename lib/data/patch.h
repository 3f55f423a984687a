/* Patches: boxes of one size, cut out of pictures or volumes at random places, for
 * networks whose input is smaller. Places are uniform, and a function of a public seed
 * and at most of a record's number: never of what the record holds. */
#ifndef DPF_DATA_PATCH_H
#define DPF_DATA_PATCH_H

#include "base/status.h"
#include "random/seeded.h"
#include "tensor/tensor.h"

enum { DPF_PATCH_AXES = 3, DPF_PATCH_MOST = 10000 };

struct dpf_patch {
    int dimensions;                /* 2: of pictures, 3: of volumes; 0: none is wanted */
    uint64_t size[DPF_PATCH_AXES]; /* the last `dimensions` count, the others are 1 */
};

/* "HxW" or "DxHxW", each at least 1; else DPF_USAGE. */
enum dpf_status dpf_patch_parse(struct dpf_patch *p, const char *text,
                                struct dpf_error *e);
/* Replace the last dimensions of a record's shape, [channels, [depth,]] height, width, by
 * the patch's. False if these are not as many, or one is smaller than the patch. */
bool dpf_patch_fits(const struct dpf_patch *p, const struct dpf_shape *record,
                    struct dpf_shape *cut);
/* Where one begins, uniform over all places inside a record that it fits. */
void dpf_patch_draw(const struct dpf_patch *p, const struct dpf_shape *record,
                    struct dpf_seeded *r, uint64_t at[DPF_PATCH_AXES]);
/* Copy it; with channels or, of a mask, without. */
void dpf_patch_cut(const struct dpf_patch *p, const struct dpf_shape *record,
                   const uint64_t at[DPF_PATCH_AXES], size_t element_bytes,
                   const void *from, void *to);

#endif
