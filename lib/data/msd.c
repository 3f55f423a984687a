/* A task of the Medical Segmentation Decathlon: a folder with dataset.json, which lists
 * images and their masks. Volumes differ in size: each is cut or padded, about its
 * middle, to one public size, and its channels are scaled by their own mean and
 * deviation, so that no record depends on another. */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/volume.h"

#include "base/banned.h"

enum { MOST_VOLUMES = 1 << 20, MOST_JSON = 64 << 20, MOST_CHANNELS = 4 };
static const char scheme[] = "msd:";

struct task {
    struct dpf_source source;
    struct dpf_file_list files;
    const char **images, **masks; /* paths of the list, or of the one that was given */
    size_t count, next;
    uint64_t channels, classes, size[3];
    float *volume; /* the file in hand, before it is cut */
    uint8_t *mask;
    size_t capacity, mask_capacity;
};

/* ------------------------------------------------------------------------ dataset.json
 */

static const char *folder_of(const struct dpf_load_request *q)
{
    const char *name = q->names[0];
    return dpf_starts_with(name, scheme) ? name + strlen(scheme) : name;
}

static enum dpf_status bad(const char *folder, const char *what, struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s/dataset.json' %s", folder, what);
}

/* "./imagesTr/a.nii.gz" beside dataset.json; NULL if it leads elsewhere. */
static char *path_of(const char *folder, const json_t *name)
{
    const char *text = json_string_value(name);
    bool good = text && *text && *text != '/' && strlen(text) == json_string_length(name);
    for (const char *at = text; good && (at = strstr(at, "..")); at += 2)
        good = !((at == text || at[-1] == '/') && (at[2] == '/' || !at[2]));
    if (!good)
        return NULL;
    return dpf_format("%s/%s", folder, strncmp(text, "./", 2) == 0 ? text + 2 : text);
}

/* Keys "0", "1", ... of an object: how many there are, if none is left out. */
static uint64_t count_numbered(const json_t *object)
{
    uint64_t count = json_object_size(object);
    for (uint64_t i = 0; i < count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%llu", (unsigned long long)i);
        if (!json_object_get(object, key))
            return 0;
    }
    return count;
}

/* Whether something is there that is no file: a FIFO would never end. */
static bool is_no_file(const char *path)
{
    struct stat found;
    return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

static enum dpf_status take_task(struct task *t, const json_t *root, const char *folder,
                                 struct dpf_error *e)
{
    const json_t *training = json_object_get(root, "training"), *pair;
    size_t i, count = json_array_size(training);
    t->channels = count_numbered(json_object_get(root, "modality"));
    t->classes = count_numbered(json_object_get(root, "labels"));
    if (t->channels < 1 || t->channels > MOST_CHANNELS)
        return bad(folder, "does not have 1 to 4 modalities \"0\", \"1\", ...", e);
    if (t->classes < 2 || t->classes > 256)
        return bad(folder, "does not have 2 to 256 labels \"0\", \"1\", ...", e);
    if (count < 1 || count > MOST_VOLUMES)
        return bad(folder, "has no list 'training' of volumes", e);
    json_array_foreach(training, i, pair)
    {
        char *image = path_of(folder, json_object_get(pair, "image"));
        char *mask = path_of(folder, json_object_get(pair, "label"));
        bool named = image && mask;
        bool files = named && !is_no_file(image) && !is_no_file(mask);
        bool image_added = dpf_file_list_add(&t->files, 'x', image, NULL);
        bool mask_added = dpf_file_list_add(&t->files, 'y', mask, NULL);
        if (!named)
            return bad(folder, "lists a volume without an 'image' and a 'label' below it",
                       e);
        if (!image_added || !mask_added)
            return dpf_fail_memory(e);
        if (!files)
            return bad(folder, "lists a volume that is not a file", e);
    }
    return DPF_OK;
}

static enum dpf_status read_task(struct task *t, const char *folder, struct dpf_error *e)
{
    char *path = dpf_format("%s/dataset.json", folder), *text = NULL;
    size_t size = 0;
    json_error_t problem;
    enum dpf_status status = !path ? dpf_fail_memory(e)
                             : is_no_file(path)
                                 ? bad(folder, "is not a file", e)
                                 : dpf_read_file(path, MOST_JSON, &text, &size, e);
    json_t *root = status == DPF_OK
                       ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem)
                       : NULL;
    if (status == DPF_OK)
        status = root ? take_task(t, root, folder, e)
                      : dpf_fail(e, DPF_BAD_STREAM, "'%s' is not JSON (line %d)", path,
                                 problem.line);
    json_decref(root);
    free(text);
    free(path);
    return status;
}

/* ----------------------------------------------------------------------------- volumes
 */

/* Mean and deviation of what is not 0: in scans without a skull, 0 is what was cut away.
 */
static void measure(const float *x, size_t count, double *mean, double *deviation)
{
    double sum = 0, square = 0, n = 0;
    for (size_t i = 0; i < count; i++)
        if (x[i] != 0) {
            n++;
            sum += (double)x[i];
        }
    *mean = n > 0 ? sum / n : 0;
    for (size_t i = 0; i < count; i++)
        if (x[i] != 0)
            square += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    *deviation = n > 0 && square > 0 ? sqrt(square / n) : 1;
}

/* How one size is laid into another: from where to where, and how much. */
struct overlap {
    uint64_t from[3], to[3], count[3];
};

static struct overlap middle(const uint64_t have[3], const uint64_t want[3])
{
    struct overlap o;
    for (int d = 0; d < 3; d++) {
        o.from[d] = have[d] > want[d] ? (have[d] - want[d]) / 2 : 0;
        o.to[d] = want[d] > have[d] ? (want[d] - have[d]) / 2 : 0;
        o.count[d] = have[d] < want[d] ? have[d] : want[d];
    }
    return o;
}

static uint64_t row_start(const uint64_t size[3], const uint64_t at[3], uint64_t z,
                          uint64_t y)
{
    return ((at[0] + z) * size[1] + at[1] + y) * size[2] + at[2];
}

static void place_channel(const struct task *t, const uint64_t have[3], const float *from,
                          float *to)
{
    struct overlap o = middle(have, t->size);
    double mean, deviation;
    uint64_t all = t->size[0] * t->size[1] * t->size[2];
    measure(from, have[0] * have[1] * have[2], &mean, &deviation);
    for (uint64_t i = 0; i < all; i++) /* what is added is air */
        to[i] = (float)(-mean / deviation);
    for (uint64_t z = 0; z < o.count[0]; z++)
        for (uint64_t y = 0; y < o.count[1]; y++) {
            const float *row = from + row_start(have, o.from, z, y);
            float *out = to + row_start(t->size, o.to, z, y);
            for (uint64_t x = 0; x < o.count[2]; x++)
                out[x] = (float)(((double)row[x] - mean) / deviation);
        }
}

static void place_mask(const struct task *t, const uint64_t have[3], const uint8_t *from,
                       uint8_t *to)
{
    struct overlap o = middle(have, t->size);
    memset(to, 0, t->size[0] * t->size[1] * t->size[2]);
    for (uint64_t z = 0; z < o.count[0]; z++)
        for (uint64_t y = 0; y < o.count[1]; y++)
            memcpy(to + row_start(t->size, o.to, z, y),
                   from + row_start(have, o.from, z, y), o.count[2]);
}

static enum dpf_status read_mask(struct task *t, const struct dpf_shape *image,
                                 uint8_t *out, struct dpf_error *e)
{
    struct dpf_volume v;
    char have[96], want[96];
    enum dpf_status status = dpf_volume_open(&v, t->masks[t->next], e);
    if (status != DPF_OK)
        return status;
    struct dpf_shape due = *image;
    due.dim[0] = 1; /* a mask has one channel whatever the image has */
    dpf_shape_format(&v.shape, have, sizeof have);
    dpf_shape_format(&due, want, sizeof want);
    if (!dpf_shape_equal(&v.shape, &due))
        status = dpf_fail(e, DPF_BAD_STREAM,
                          "'%s' has dimensions %s, but its image '%s' has %s",
                          t->masks[t->next], have, t->images[t->next], want);
    if (status == DPF_OK && !dpf_grow(&t->mask, &t->mask_capacity, v.voxels, 1))
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        status = dpf_volume_read_labels(&v, t->classes, t->mask, e);
    if (status == DPF_OK)
        place_mask(t, image->dim + 1, t->mask, out);
    dpf_volume_release(&v);
    return status;
}

static enum dpf_status read_image(struct task *t, float *out, struct dpf_shape *shape,
                                  struct dpf_error *e)
{
    struct dpf_volume v;
    uint64_t all = t->size[0] * t->size[1] * t->size[2];
    enum dpf_status status = dpf_volume_open(&v, t->images[t->next], e);
    if (status != DPF_OK)
        return status;
    *shape = v.shape;
    if (v.shape.dim[0] != t->channels)
        status = dpf_fail(e, DPF_BAD_STREAM,
                          "'%s' has %llu channels, dataset.json has %llu modalities",
                          t->images[t->next], (unsigned long long)v.shape.dim[0],
                          (unsigned long long)t->channels);
    if (status == DPF_OK && !dpf_grow(&t->volume, &t->capacity, v.voxels, sizeof(float)))
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        status = dpf_volume_read(&v, t->volume, e);
    for (uint64_t c = 0; status == DPF_OK && c < t->channels; c++)
        place_channel(t, shape->dim + 1, t->volume + c * (v.voxels / t->channels),
                      out + c * all);
    dpf_volume_release(&v);
    return status;
}

static enum dpf_status fill(struct dpf_source *source, struct dpf_batch *b, uint64_t want,
                            uint64_t *filled, struct dpf_error *e)
{
    struct task *t = (struct task *)source;
    uint64_t all = t->size[0] * t->size[1] * t->size[2];
    for (*filled = 0; *filled < want && t->next < t->count; ++*filled, t->next++) {
        struct dpf_shape shape;
        enum dpf_status status = read_image(
            t, (float *)b->tensor[0].data + *filled * all * t->channels, &shape, e);
        if (status == DPF_OK)
            status =
                read_mask(t, &shape, (uint8_t *)b->tensor[1].data + *filled * all, e);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

static void destroy(struct dpf_source *source)
{
    struct task *t = (struct task *)source;
    dpf_file_list_release(&t->files);
    free(t->images);
    free(t->masks);
    free(t->volume);
    free(t->mask);
    free(t);
}

/* --------------------------------------------------------------------------- the row */

static enum dpf_status start(struct task *t, const struct dpf_load_request *q,
                             struct dpf_error *e)
{
    struct dpf_header *h = &t->source.header;
    size_t masks, bytes;
    memcpy(t->size, q->size, sizeof t->size);
    if (!t->size[0])
        return dpf_fail(e, DPF_USAGE,
                        "'%s' needs '--size DxHxW': volumes are cut or padded to a size "
                        "that is public",
                        q->names[0]);
    enum dpf_status status = read_task(t, folder_of(q), e);
    if (status != DPF_OK)
        return status;
    const struct dpf_file_list *files = q->files ? q->files : &t->files;
    t->images = dpf_file_list_paths(files, 'x', &t->count);
    t->masks = dpf_file_list_paths(files, 'y', &masks);
    if (!t->images || !t->masks)
        return dpf_fail_memory(e);
    if (q->count > t->count)
        return dpf_fail(e, DPF_USAGE, "'%s' has %zu volumes, not %llu", q->names[0],
                        t->count, (unsigned long long)q->count);
    t->count = q->count ? q->count : t->count;
    t->source.first = q->count;
    const struct dpf_shape x = {.rank = 4,
                                .dim = {t->channels, t->size[0], t->size[1], t->size[2]}};
    const struct dpf_shape mask = {.rank = 3,
                                   .dim = {t->size[0], t->size[1], t->size[2]}};
    if (!dpf_shape_bytes(DPF_F32, &x, &bytes) || bytes > DPF_MAX_RECORD_BYTES)
        return dpf_fail(e, DPF_USAGE, "volumes of this '--size' are larger than 256 MiB");
    dpf_header_add_field(h, "x", DPF_F32, &x);
    dpf_header_add_field(h, "mask", DPF_U8, &mask)->classes = t->classes;
    h->has_records = true;
    h->records = t->count;
    return DPF_OK;
}

static enum dpf_status open_task(const struct dpf_load_request *q,
                                 struct dpf_source **take, struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {.fill = fill, .destroy = destroy};
    struct task *t = dpf_calloc(1, sizeof *t);
    if (!t)
        return dpf_fail_memory(e);
    t->source.ops = &ops;
    *take = &t->source;
    enum dpf_status status = start(t, q, e);
    if (status != DPF_OK)
        dpf_source_destroy(take);
    return status;
}

static enum dpf_status list_files(const struct dpf_load_request *q,
                                  struct dpf_file_list *l, struct dpf_error *e)
{
    struct task t = {.count = 0};
    enum dpf_status status = read_task(&t, folder_of(q), e);
    if (status == DPF_OK)
        *l = t.files;
    else
        dpf_file_list_release(&t.files);
    return status;
}

const struct dpf_format dpf_format_msd = {
    .title = "decathlon task",
    .endings = (const char *const[]){NULL},
    .gives = "x f32 CxDxHxW, mask, with --size DxHxW",
    .takes = DPF_TAKES("size", "count"),
    .scheme = "msd:",
    .list = list_files,
    .open = open_task,
};
