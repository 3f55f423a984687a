/* The idx format of MNIST and its relatives: a magic number that names the element type
 * and the rank, big-endian dimensions, then the elements. Images and labels are two
 * files that have to agree on their number of records. */
#ifndef DPF_DATA_IDX_H
#define DPF_DATA_IDX_H

#include <stdint.h>

#include "base/status.h"
#include "data/bytes.h"
#include "data/source.h"

/* Field "x" from `images` (u8, i32, f32 or f64; u8 declares bounds 0..255) and, unless
 * `labels` is NULL, field "y" (u8 scalars). With classes > 0 labels are checked and
 * declared. Files that end early, go on too long or hold what is not finite are
 * DPF_BAD_STREAM, at opening or while reading. *take is destroyed by
 * dpf_source_destroy(). */
enum dpf_status dpf_idx_open(const char *images, const char *labels, uint64_t classes,
                             struct dpf_source **take, struct dpf_error *e);
/* The same over opened bytes, which are consumed even on failure; labels may be NULL. */
enum dpf_status dpf_idx_new(struct dpf_bytes *take_images, struct dpf_bytes *take_labels,
                            uint64_t classes, struct dpf_source **take,
                            struct dpf_error *e);

#endif
