#include "data/nifti.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/volume.h"

#include "base/banned.h"

struct nifti {
    struct dpf_source source;
    char **images, **masks; /* masks may be NULL */
    size_t count, next;
    uint64_t classes;
};

static enum dpf_status check_shape(const struct dpf_volume *v,
                                   const struct dpf_shape *due, struct dpf_error *e)
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
    struct dpf_volume v;
    enum dpf_status status = dpf_volume_open(&v, s->images[s->next], e);
    if (status == DPF_OK)
        status = check_shape(&v, x, e);
    if (status == DPF_OK)
        status = dpf_volume_read(&v, (float *)b->tensor[0].data + row * v.voxels, e);
    dpf_volume_release(&v);
    if (status != DPF_OK || !s->masks)
        return status;
    one.dim[0] = 1; /* a mask has one channel whatever the image has */
    status = dpf_volume_open(&v, s->masks[s->next], e);
    if (status == DPF_OK)
        status = check_shape(&v, &one, e);
    if (status == DPF_OK)
        status = dpf_volume_read_labels(&v, s->classes,
                                        (uint8_t *)b->tensor[1].data + row * v.voxels, e);
    dpf_volume_release(&v);
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
    struct dpf_volume v;
    struct dpf_header *h = &s->source.header;
    enum dpf_status status = dpf_volume_open(&v, s->images[0], e);
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
    dpf_volume_release(&v);
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
