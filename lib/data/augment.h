/* Pictures moved, turned, mirrored and enlarged, or cut into patches (data/patch.h).
 *
 * A network learns from one picture what it would need several for, if it also sees the
 * picture a little shifted or turned. Each copy is sampled once, through one inverse
 * affine map, so shift, rotation, mirror and change of size cost one interpolation and
 * blur once. Outside the picture lies its nearest edge value: every value that comes out
 * lies between values that went in, so declared bounds still hold.
 *
 * Copies of a record are records of the same person: whoever accounts for privacy
 * multiplies by their number. The randomness is public. */
#ifndef DPF_DATA_AUGMENT_H
#define DPF_DATA_AUGMENT_H

#include "base/status.h"
#include "data/patch.h"
#include "random/seeded.h"
#include "wire/batch.h"

enum { DPF_AUGMENT_MAX_SIDE = 8192, DPF_AUGMENT_MAX_COPIES = 10000 };

/* ---- geometry ---- */

/* What happens to a picture: it is mirrored left to right, then turned about its centre
 * (counter-clockwise as one sees it), then moved down and right, in its own pixels. */
struct dpf_pose {
    bool mirrored;
    double degrees, rows_down, columns_right;
};

/* Where output pixel (i, j) comes from: row r[0]*i + r[1]*j + r[2] and column
 * c[0]*i + c[1]*j + c[2], counted between pixel centres. */
struct dpf_affine {
    double r[3], c[3];
};

/* `planes` pictures of one size that share a map; no side is 0, and the bytes of all
 * planes keep DPF_MAX_TENSOR_BYTES. */
struct dpf_warp {
    size_t planes, in_height, in_width, out_height, out_width;
    struct dpf_affine map;
};

/* Set w->map from the pose and the sizes in `w`. A change of size keeps the outer edges
 * of the outer pixels in place (half-pixel centres, align_corners=False). Whole pixels
 * and quarter turns are exact. */
void dpf_warp_set_pose(struct dpf_warp *w, const struct dpf_pose *pose);
/* Bilinear; dtype is f32 (finite values) or u8 (rounded). `from` and `to` hold all planes
 * one after the other and do not overlap. */
void dpf_warp_linear(const struct dpf_warp *w, enum dpf_dtype dtype, const void *from,
                     void *to);
/* The nearest pixel, for labels; elements have 1, 4 or 8 bytes. */
void dpf_warp_nearest(const struct dpf_warp *w, size_t element_bytes, const void *from,
                      void *to);

/* ---- records ---- */

/* What to make of each record. */
struct dpf_augment {
    const char *picture;    /* field: f32 or u8, [[channels, [depth,]] height, width] */
    const char *mask;       /* integer field [[depth,] height, width], or NULL */
    bool random;            /* draw poses; else each record only changes its size */
    double shift;           /* up to this fraction of height and width, in [0, 1) */
    double degrees;         /* up to this angle either way */
    bool flip;              /* mirror, with probability 1/2 */
    bool keep;              /* the original first */
    uint64_t copies;        /* random ones of each record, at least 1 */
    uint64_t height, width; /* new size, or 0 for the old one */
    struct dpf_patch patch; /* each copy is one, at a random place, and nothing else */
    bool same_places;       /* of every record, so that no record moves another's */
    uint64_t seed;
};

/* "HxW" with sides of 1 to DPF_AUGMENT_MAX_SIDE; else DPF_USAGE. */
enum dpf_status dpf_augment_parse_size(const char *text, uint64_t *height,
                                       uint64_t *width, struct dpf_error *e);
/* Records that each record becomes. */
uint64_t dpf_augment_group(const struct dpf_augment *recipe);

struct dpf_augmenter {
    struct dpf_augment recipe;
    int picture, mask; /* field numbers; mask -1 if there is none */
    struct dpf_warp warp;
    size_t mask_planes;
    struct dpf_shape shape, mask_shape; /* of the input, for patches */
    uint64_t record;                    /* in the stream */
    struct dpf_seeded random;
    const struct dpf_batch *batch; /* borrowed */
    uint64_t row, copy;            /* the next to be written */
};

/* Check the recipe against a stream's header, and make `out` (a copy of `in`) the header
 * of the result: sizes, number of records, and only those declarations that still hold.
 * DPF_USAGE if the fields are not a picture and its mask, or become too large. Nothing is
 * allocated that would have to be released. recipe's strings are borrowed. */
enum dpf_status dpf_augmenter_open(struct dpf_augmenter *a,
                                   const struct dpf_augment *recipe,
                                   const struct dpf_header *in, struct dpf_header *out,
                                   struct dpf_error *e);
/* Go to the next batch of the input; it is borrowed until all of it was written. A value
 * that is not finite is DPF_BAD_STREAM. */
enum dpf_status dpf_augmenter_take(struct dpf_augmenter *a, const struct dpf_batch *b,
                                   struct dpf_error *e);
/* Write records into `out` from *filled on, and count *filled up. True when the batch is
 * used up, false when `out` is full before: empty it and call again. */
bool dpf_augmenter_fill(struct dpf_augmenter *a, struct dpf_batch *out, uint64_t *filled);

#endif
