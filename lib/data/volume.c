#include "data/volume.h"

#include <float.h>
#include <math.h>
#include <nifti/nifti1_io.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

enum { MAX_DIM = 4096, MAX_OFFSET = 16 << 20, CHUNK = 1 << 14 };
#define MAX_VOLUME_BYTES (1ull << 30)

static enum dpf_status bad(const struct dpf_bytes *b, const char *what,
                           struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' %s", dpf_bytes_name(b), what);
}

void dpf_volume_release(struct dpf_volume *v)
{
    dpf_bytes_destroy(&v->bytes);
    *v = (struct dpf_volume){0};
}

static size_t voxel_bytes(int datatype)
{
    switch (datatype) {
    case DT_UINT8:
        return 1;
    case DT_INT16:
    case DT_UINT16:
        return 2;
    case DT_INT32:
    case DT_FLOAT32:
        return 4;
    case DT_FLOAT64:
        return 8;
    default:
        return 0;
    }
}

/* Three or four dimensions; further ones may only be 1. */
static bool read_shape(const struct nifti_1_header *h, struct dpf_shape *shape)
{
    *shape = (struct dpf_shape){.rank = 4};
    if (h->dim[0] < 3 || h->dim[0] > 7)
        return false;
    for (int i = 1; i <= h->dim[0]; i++)
        if (h->dim[i] < 1 || h->dim[i] > (i <= 4 ? MAX_DIM : 1))
            return false;
    shape->dim[0] = h->dim[0] >= 4 ? (uint64_t)h->dim[4] : 1;
    for (int i = 1; i <= 3; i++)
        shape->dim[4 - i] = (uint64_t)h->dim[i];
    return true;
}

/* All that nifticlib would believe. `h` is in the byte order of this machine. */
static enum dpf_status check_header(const struct nifti_1_header *h, struct dpf_volume *v,
                                    struct dpf_error *e)
{
    size_t size = voxel_bytes(h->datatype);
    if (h->sizeof_hdr != 348)
        return bad(v->bytes, "is not a NIfTI-1 file", e);
    if (memcmp(h->magic, "ni1", 4) == 0)
        return bad(v->bytes, "is half of a .hdr and .img pair; only .nii is read", e);
    if (memcmp(h->magic, "n+1", 4) != 0)
        return bad(v->bytes, "is not a NIfTI-1 file", e);
    if (!read_shape(h, &v->shape))
        return bad(v->bytes, "does not have 3 or 4 dimensions of 1 to 4096", e);
    if (size == 0 || h->bitpix != (short)(8 * size))
        return bad(v->bytes, "does not have u8, i16, u16, i32, f32 or f64 voxels", e);
    if (!(h->vox_offset >= 352 && h->vox_offset <= (float)MAX_OFFSET))
        return bad(v->bytes, "has its voxels at an impossible place", e);
    /* At most 4096^4 * 8, which 64 bits hold. */
    uint64_t voxels = dpf_shape_elements(&v->shape);
    uint64_t wide = size > sizeof(float) ? size : sizeof(float);
    if (voxels > MAX_VOLUME_BYTES / wide)
        return bad(v->bytes, "is larger than 1 GiB", e);
    v->voxels = (size_t)voxels;
    if (!dpf_bytes_can_hold(v->bytes, (uint64_t)h->vox_offset + voxels * size))
        return bad(v->bytes, "ends early", e);
    return DPF_OK;
}

/* Which way the stored axes go. */
static bool read_axes(const nifti_image *image, struct dpf_volume *v)
{
    int codes[3] = {NIFTI_L2R, NIFTI_P2A, NIFTI_I2S};
    unsigned seen = 0;
    if (image->sform_code > 0 || image->qform_code > 0)
        nifti_mat44_to_orientation(image->sform_code > 0 ? image->sto_xyz
                                                         : image->qto_xyz,
                                   &codes[0], &codes[1], &codes[2]);
    for (int d = 0; d < 3; d++) { /* codes are 1 to 6, two for each axis of the patient */
        int to = codes[d] >= 1 && codes[d] <= 6 ? (codes[d] - 1) / 2 : 3;
        seen |= 1U << to;
        if (to == 3)
            return false;
        v->axis[to] = d;
        v->back[to] = codes[d] % 2 == 0;
    }
    return seen == 7;
}

static enum dpf_status read_geometry(const struct nifti_1_header *h, struct dpf_volume *v,
                                     struct dpf_error *e)
{
    nifti_set_debug_level(0);
    nifti_image *image = nifti_convert_nhdr2nim(*h, NULL);
    if (!image)
        return bad(v->bytes, "is not a NIfTI-1 file", e);
    bool good = read_axes(image, v);
    v->datatype = image->datatype;
    v->slope = (double)image->scl_slope;
    v->intercept = (double)image->scl_inter;
    nifti_image_free(image);
    if (!good)
        return bad(v->bytes, "has an orientation (sform, qform) that is none", e);
    for (int d = 0; d < 3; d++)
        v->stored[d] = v->shape.dim[3 - d];
    for (int d = 0; d < 3; d++)
        v->shape.dim[3 - d] = v->stored[v->axis[d]];
    return DPF_OK;
}

static enum dpf_status read_header(struct dpf_volume *v, struct dpf_error *e)
{
    struct nifti_1_header raw, host;
    _Static_assert(sizeof raw == 348, "the header is as it stands in files");
    enum dpf_status status =
        dpf_bytes_read_exact(v->bytes, &raw, sizeof raw, "header", e);
    if (status != DPF_OK)
        return status;
    host = raw;
    v->swapped = raw.sizeof_hdr != 348;
    if (v->swapped)
        swap_nifti_header(&host, 1);
    status = check_header(&host, v, e);
    if (status != DPF_OK)
        return status;
    uint64_t offset = (uint64_t)host.vox_offset;
    status = read_geometry(&host, v, e);
    return status == DPF_OK ? dpf_bytes_skip(v->bytes, offset - sizeof raw, "header", e)
                            : status;
}

enum dpf_status dpf_volume_open(struct dpf_volume *v, const char *path,
                                struct dpf_error *e)
{
    *v = (struct dpf_volume){0};
    enum dpf_status status = dpf_bytes_open(path, &v->bytes, e);
    if (status == DPF_OK)
        status = read_header(v, e);
    if (status != DPF_OK)
        dpf_volume_release(v);
    return status;
}

static double voxel_get(int datatype, const void *data, size_t i)
{
    switch (datatype) {
    case DT_UINT8:
        return ((const uint8_t *)data)[i];
    case DT_INT16:
        return ((const int16_t *)data)[i];
    case DT_UINT16:
        return ((const uint16_t *)data)[i];
    case DT_INT32:
        return ((const int32_t *)data)[i];
    case DT_FLOAT32:
        return (double)((const float *)data)[i];
    default:
        return ((const double *)data)[i];
    }
}

/* Up to CHUNK voxels, scaled as the header says. */
static enum dpf_status read_chunk(struct dpf_volume *v, size_t count, float *out,
                                  struct dpf_error *e)
{
    _Alignas(8) unsigned char raw[CHUNK * 8];
    int bad_value = 0;
    size_t size = voxel_bytes(v->datatype);
    enum dpf_status status =
        dpf_bytes_read_exact(v->bytes, raw, count * size, "voxels", e);
    if (status != DPF_OK)
        return status;
    if (v->swapped && size > 1)
        nifti_swap_Nbytes(count, (int)size, raw);
    for (size_t i = 0; i < count; i++) {
        double value = voxel_get(v->datatype, raw, i);
        if (v->slope != 0)
            value = v->slope * value + v->intercept;
        bool good = fabs(value) <= (double)FLT_MAX; /* false for NaN, too */
        out[i] = good ? (float)value : 0;
        bad_value |= !good;
    }
    return bad_value ? bad(v->bytes, "has a value that is not finite", e) : DPF_OK;
}

static bool is_turned(const struct dpf_volume *v)
{
    bool turned = false;
    for (int d = 0; d < 3; d++)
        turned = turned || v->axis[d] != d || v->back[d];
    return turned;
}

/* From the order of the file to ours. */
static void turn(const struct dpf_volume *v, const float *from, float *to)
{
    const uint64_t *n = v->stored, all = n[0] * n[1] * n[2];
    const uint64_t stride[3] = {1, n[0], n[0] * n[1]};
    const uint64_t *shape = v->shape.dim;
    int64_t step[3];
    uint64_t start = 0;
    for (int d = 0; d < 3; d++) {
        int a = v->axis[d];
        step[d] = v->back[d] ? -(int64_t)stride[a] : (int64_t)stride[a];
        start += v->back[d] ? (n[a] - 1) * stride[a] : 0;
    }
    for (uint64_t c = 0; c < shape[0]; c++, from += all)
        for (int64_t z = 0; z < (int64_t)shape[1]; z++)
            for (int64_t y = 0; y < (int64_t)shape[2]; y++)
                for (int64_t x = 0; x < (int64_t)shape[3]; x++)
                    *to++ =
                        from[(int64_t)start + z * step[2] + y * step[1] + x * step[0]];
}

enum dpf_status dpf_volume_read(struct dpf_volume *v, float *out, struct dpf_error *e)
{
    float *stored = is_turned(v) ? dpf_calloc(v->voxels, sizeof *stored) : out;
    enum dpf_status status = stored ? DPF_OK : dpf_fail_memory(e);
    for (size_t done = 0; done < v->voxels && status == DPF_OK; done += CHUNK) {
        size_t n = v->voxels - done < CHUNK ? v->voxels - done : CHUNK;
        status = read_chunk(v, n, stored + done, e);
    }
    if (status == DPF_OK)
        status = dpf_bytes_expect_end(v->bytes, e);
    if (status == DPF_OK && stored != out)
        turn(v, stored, out);
    if (stored != out)
        free(stored);
    return status;
}

enum dpf_status dpf_volume_read_labels(struct dpf_volume *v, uint64_t classes,
                                       uint8_t *out, struct dpf_error *e)
{
    float *labels = dpf_calloc(v->voxels, sizeof *labels);
    float top = classes ? (float)(classes - 1) : 255;
    bool outside = false;
    enum dpf_status status = labels ? dpf_volume_read(v, labels, e) : dpf_fail_memory(e);
    for (size_t i = 0; status == DPF_OK && i < v->voxels; i++) {
        bool good = labels[i] >= 0 && labels[i] <= top && labels[i] == floorf(labels[i]);
        outside = outside || !good;
        out[i] = good ? (uint8_t)labels[i] : 0;
    }
    if (outside)
        status = dpf_fail(e, DPF_BAD_STREAM, "'%s' has a label outside its %d classes",
                          dpf_bytes_name(v->bytes), (int)top + 1);
    free(labels);
    return status;
}
