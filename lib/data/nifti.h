/* Brain scans and other volumes as single-file NIfTI-1 (.nii, .nii.gz), one record a
 * file, with a mask a file where there is one; read by data/volume.h. */
#ifndef DPF_DATA_NIFTI_H
#define DPF_DATA_NIFTI_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/source.h"

/* Field "x" f32 [C,D,H,W]: channels (NIfTI's fourth dimension, 1 if it has none), then z,
 * y and x, turned as the file's orientation says. With `masks` (n of them, or
 * NULL) field "mask" u8 [D,H,W]; with mask_classes > 0 (at most 256) its values are
 * checked and declared as labels. All files must have the dimensions of the first. Paths
 * are copied. A file that is not such a volume, ends early or holds a value that is not
 * finite is DPF_BAD_STREAM. *take is destroyed by dpf_source_destroy(). */
enum dpf_status dpf_nifti_open(const char *const *images, size_t n,
                               const char *const *masks, uint64_t mask_classes,
                               struct dpf_source **take, struct dpf_error *e);

#endif
