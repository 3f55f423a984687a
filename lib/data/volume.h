/* One volume of a NIfTI-1 file (.nii, .nii.gz), turned so that its axes go the way the
 * patient's do: x to the right, y to the front, z up, by the file's sform, else by its
 * qform. A file that has neither stays as it is stored.
 *
 * nifticlib interprets headers, and trusts them; so each header is first held against
 * the format and the size of its file, and the voxels are read by data/bytes.h, which
 * also verifies the checks of gzip. */
#ifndef DPF_DATA_VOLUME_H
#define DPF_DATA_VOLUME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "data/bytes.h"
#include "tensor/tensor.h"

/* A file whose header was read and found good. */
struct dpf_volume {
    struct dpf_bytes *bytes; /* at the first voxel */
    struct dpf_shape shape;  /* [C,D,H,W]: channels, z, y and x */
    size_t voxels;           /* of all channels */
    /* as it is stored */
    int datatype;
    bool swapped;
    double slope, intercept;
    uint64_t stored[3]; /* numbers of voxels along its axes, the fastest first */
    int axis[3];        /* of x, y and z: which of these */
    bool back[3];       /* and whether it goes the other way */
};

/* What is no such file is DPF_BAD_STREAM. Release after success only. */
enum dpf_status dpf_volume_open(struct dpf_volume *v, const char *path,
                                struct dpf_error *e);
void dpf_volume_release(struct dpf_volume *v);
/* All voxels, once, with the header's slope and intercept. One that is not finite, or a
 * file that goes on behind them, is DPF_BAD_STREAM. */
enum dpf_status dpf_volume_read(struct dpf_volume *v, float *out, struct dpf_error *e);
/* The same for labels below `classes` (0: 256). */
enum dpf_status dpf_volume_read_labels(struct dpf_volume *v, uint64_t classes,
                                       uint8_t *out, struct dpf_error *e);

#endif
