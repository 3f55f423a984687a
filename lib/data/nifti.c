#include "data/nifti.h"

#include <float.h>
#include <math.h>
#include <nifti/nifti1_io.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/bytes.h"
#include "data/formats.h"

#include "base/banned.h"

enum { MAX_DIM = 4096, MAX_OFFSET = 16 << 20, CHUNK = 1 << 14 };
#define MAX_VOLUME_BYTES (1ull << 30)

struct nifti {
    struct dpf_source source;
    char **images, **masks; /* masks may be NULL */
    size_t count, next;
    uint64_t classes;
};

/* A file whose header was read and found good; the bytes stand at its first voxel. */
struct volume {
    struct dpf_bytes *bytes;
    nifti_image *image;
    struct dpf_shape shape; /* [C,D,H,W] */
    size_t voxels;
    bool swapped;
};

static enum dpf_status bad(const struct dpf_bytes *b, const char *what,
                           struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' %s", dpf_bytes_name(b), what);
}

static void volume_release(struct volume *v)
{
    if (v->image)
        nifti_image_free(v->image);
    dpf_bytes_destroy(&v->bytes);
    *v = (struct volume){0};
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
static enum dpf_status check_header(const struct nifti_1_header *h, struct volume *v,
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

static enum dpf_status read_header(struct volume *v, struct dpf_error *e)
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
    nifti_set_debug_level(0);
    v->image = nifti_convert_nhdr2nim(host, NULL);
    if (!v->image)
        return bad(v->bytes, "is not a NIfTI-1 file", e);
    uint64_t offset = (uint64_t)host.vox_offset;
    return dpf_bytes_skip(v->bytes, offset - sizeof raw, "header", e);
}

static enum dpf_status volume_open(struct volume *v, const char *path,
                                   struct dpf_error *e)
{
    *v = (struct volume){0};
    enum dpf_status status = dpf_bytes_open(path, &v->bytes, e);
    if (status == DPF_OK)
        status = read_header(v, e);
    if (status != DPF_OK)
        volume_release(v);
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
static enum dpf_status read_chunk(struct volume *v, size_t count, float *out,
                                  struct dpf_error *e)
{
    _Alignas(8) unsigned char raw[CHUNK * 8];
    int datatype = v->image->datatype, bad_value = 0;
    size_t size = voxel_bytes(datatype);
    double slope = (double)v->image->scl_slope, inter = (double)v->image->scl_inter;
    enum dpf_status status =
        dpf_bytes_read_exact(v->bytes, raw, count * size, "voxels", e);
    if (status != DPF_OK)
        return status;
    if (v->swapped && size > 1)
        nifti_swap_Nbytes(count, (int)size, raw);
    for (size_t i = 0; i < count; i++) {
        double value = voxel_get(datatype, raw, i);
        if (slope != 0)
            value = slope * value + inter;
        bool good = fabs(value) <= (double)FLT_MAX; /* false for NaN, too */
        out[i] = good ? (float)value : 0;
        bad_value |= !good;
    }
    return bad_value ? bad(v->bytes, "has a value that is not finite", e) : DPF_OK;
}

static enum dpf_status read_image(struct volume *v, float *x, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    for (size_t done = 0; done < v->voxels && status == DPF_OK; done += CHUNK) {
        size_t n = v->voxels - done < CHUNK ? v->voxels - done : CHUNK;
        status = read_chunk(v, n, x + done, e);
    }
    return status == DPF_OK ? dpf_bytes_expect_end(v->bytes, e) : status;
}

static enum dpf_status read_mask(struct volume *v, uint8_t *mask, uint64_t classes,
                                 struct dpf_error *e)
{
    float chunk[CHUNK], top = classes ? (float)(classes - 1) : 255;
    for (size_t done = 0; done < v->voxels; done += CHUNK) {
        size_t n = v->voxels - done < CHUNK ? v->voxels - done : CHUNK;
        int outside = 0;
        enum dpf_status status = read_chunk(v, n, chunk, e);
        if (status != DPF_OK)
            return status;
        for (size_t i = 0; i < n; i++) {
            bool good = chunk[i] >= 0 && chunk[i] <= top && chunk[i] == floorf(chunk[i]);
            outside |= !good;
            mask[done + i] = good ? (uint8_t)chunk[i] : 0;
        }
        if (outside)
            return dpf_fail(e, DPF_BAD_STREAM, "'%s' has a label outside its %d classes",
                            dpf_bytes_name(v->bytes), (int)top + 1);
    }
    return dpf_bytes_expect_end(v->bytes, e);
}

static enum dpf_status check_shape(const struct volume *v, const struct dpf_shape *due,
                                   struct dpf_error *e)
{
    char have[96], want[96];
    if (dpf_shape_equal(&v->shape, due))
        return DPF_OK;
    dpf_shape_format(&v->shape, have, sizeof have);
    dpf_shape_format(due, want, sizeof want);
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' has dimensions %s, %s are expected",
                    dpf_bytes_name(v->bytes), have, want);
}

static enum dpf_status read_record(struct nifti *s, struct dpf_batch *b, uint64_t row,
                                   struct dpf_error *e)
{
    const struct dpf_shape *x = &s->source.header.fields[0].shape;
    struct dpf_shape one = *x;
    struct volume v;
    enum dpf_status status = volume_open(&v, s->images[s->next], e);
    if (status == DPF_OK)
        status = check_shape(&v, x, e);
    if (status == DPF_OK)
        status = read_image(&v, (float *)b->tensor[0].data + row * v.voxels, e);
    volume_release(&v);
    if (status != DPF_OK || !s->masks)
        return status;
    one.dim[0] = 1; /* a mask has one channel whatever the image has */
    status = volume_open(&v, s->masks[s->next], e);
    if (status == DPF_OK)
        status = check_shape(&v, &one, e);
    if (status == DPF_OK)
        status =
            read_mask(&v, (uint8_t *)b->tensor[1].data + row * v.voxels, s->classes, e);
    volume_release(&v);
    return status;
}

static enum dpf_status nifti_fill(struct dpf_source *source, struct dpf_batch *b,
                                  uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    struct nifti *s = (struct nifti *)source;
    for (*filled = 0; *filled < want && s->next < s->count; ++*filled, s->next++) {
        enum dpf_status status = read_record(s, b, *filled, e);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

static void free_paths(char **paths, size_t count)
{
    for (size_t i = 0; paths && i < count; i++)
        free(paths[i]);
    free(paths);
}

static void nifti_destroy(struct dpf_source *source)
{
    struct nifti *s = (struct nifti *)source;
    free_paths(s->images, s->count);
    free_paths(s->masks, s->count);
    free(s);
}

static char **copy_paths(const char *const *paths, size_t count)
{
    char **copy = dpf_calloc(count, sizeof *copy);
    for (size_t i = 0; copy && i < count; i++)
        if (!(copy[i] = dpf_strdup(paths[i]))) {
            free_paths(copy, count);
            return NULL;
        }
    return copy;
}

/* The first file says what all records look like. */
static enum dpf_status nifti_start(struct nifti *s, struct dpf_error *e)
{
    struct volume v;
    struct dpf_header *h = &s->source.header;
    enum dpf_status status = volume_open(&v, s->images[0], e);
    if (status != DPF_OK)
        return status;
    dpf_header_add_field(h, "x", DPF_F32, &v.shape);
    if (s->masks) {
        struct dpf_shape mask = {.rank = 3,
                                 .dim = {v.shape.dim[1], v.shape.dim[2], v.shape.dim[3]}};
        dpf_header_add_field(h, "mask", DPF_U8, &mask)->classes = s->classes;
    }
    h->has_records = true;
    h->records = s->count;
    volume_release(&v);
    return DPF_OK;
}

enum dpf_status dpf_nifti_open(const char *const *images, size_t n,
                               const char *const *masks, uint64_t mask_classes,
                               struct dpf_source **take, struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {.fill = nifti_fill,
                                              .destroy = nifti_destroy};
    if (n == 0)
        return dpf_fail(e, DPF_USAGE, "no NIfTI file is given");
    if (mask_classes > 256)
        return dpf_fail(e, DPF_USAGE, "a mask has at most 256 classes, not '%llu'",
                        (unsigned long long)mask_classes);
    struct nifti *s = dpf_calloc(1, sizeof *s);
    if (!s)
        return dpf_fail_memory(e);
    s->source.ops = &ops;
    s->count = n;
    s->classes = mask_classes;
    s->images = copy_paths(images, n);
    s->masks = masks ? copy_paths(masks, n) : NULL;
    *take = &s->source;
    enum dpf_status status =
        s->images && (s->masks || !masks) ? nifti_start(s, e) : dpf_fail_memory(e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

static enum dpf_status open_request(const struct dpf_load_request *q,
                                    struct dpf_source **take, struct dpf_error *e)
{
    if (q->label_count && q->label_count != q->name_count)
        return dpf_fail(e, DPF_USAGE,
                        "%zu volumes need the same number of masks, not %zu",
                        q->name_count, q->label_count);
    return dpf_nifti_open(q->names, q->name_count, q->label_count ? q->labels : NULL,
                          q->classes, take, e);
}

const struct dpf_format dpf_format_nifti = {
    .title = "NIfTI-1",
    .endings = DPF_ENDINGS(".nii"),
    .gives = "x f32 CxDxHxW; with --labels also mask",
    .takes = DPF_TAKES("labels", "classes"),
    .many = true,
    .open = open_request,
};
