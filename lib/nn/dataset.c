#include "nn/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/memory.h"
#include "kernels/mask.h"

#include "base/banned.h"

/* --------------------------------------------------------------------------- checks */

/* Labels for a network whose input has a channel for each class. */
static bool is_one_hot(const struct dpf_field *f, const struct dpf_node *input)
{
    bool whole = f->dtype == DPF_U8 || f->dtype == DPF_I32 || f->dtype == DPF_I64;
    return whole && f->classes > 1 && f->classes == input->shape.dim[0] &&
           input->shape.rank > 1 &&
           dpf_shape_elements(&f->shape) * f->classes ==
               dpf_shape_elements(&input->shape);
}

static enum dpf_status check_x(struct dpf_dataset *d, const struct dpf_field *f,
                               const struct dpf_node *input, struct dpf_error *e)
{
    char have[96], want[96];
    dpf_shape_format(&f->shape, have, sizeof have);
    dpf_shape_format(&input->shape, want, sizeof want);
    d->one_hot = is_one_hot(f, input) ? f->classes : 0;
    if (dpf_shape_elements(&f->shape) != dpf_shape_elements(&input->shape) && !d->one_hot)
        return dpf_fail(e, DPF_USAGE,
                        "field '%s' has records of shape %s, the network's input '%s' is "
                        "%s",
                        f->name, have, input->name, want);
    if ((f->dtype == DPF_BITS) != input->bits)
        return dpf_fail(e, DPF_USAGE,
                        input->bits
                            ? "the network's input '%s' is packed bits, field '%s' is %s"
                            : "the network's input '%s' is numbers, field '%s' is %s",
                        input->name, f->name, dpf_dtype_name(f->dtype));
    d->dtype = f->dtype;
    d->record = dpf_shape_elements(&f->shape);
    struct dpf_shape flat = {.rank = 1, .dim = {d->record}};
    if (!dpf_shape_bytes(f->dtype, &flat, &d->record_bytes) ||
        (f->dtype == DPF_BITS && f->shape.rank != 1))
        return dpf_fail(e, DPF_USAGE, "records of field '%s' do not fit", f->name);
    return DPF_OK;
}

/* How many targets an example of this output has. */
static uint64_t targets_of(const struct dpf_node *output, enum dpf_loss_targets targets)
{
    uint64_t all = dpf_shape_elements(&output->shape);
    switch (targets) {
    case DPF_TARGET_VOXEL_LABELS:
        return all / output->shape.dim[0];
    case DPF_TARGET_COEFFICIENTS:
        return 2 * all;
    case DPF_TARGET_VALUES:
        return all;
    case DPF_TARGET_LABEL:
        break;
    }
    return 1;
}

static enum dpf_status check_y(struct dpf_dataset *d, const struct dpf_field *f,
                               const struct dpf_dataset_need *need, struct dpf_error *e)
{
    const struct dpf_node *output = &need->model->nodes[need->model->output];
    const struct dpf_loss *loss = need->loss;
    uint64_t want = targets_of(output, loss->targets);
    bool vector =
        loss->targets == DPF_TARGET_LABEL || loss->targets == DPF_TARGET_COEFFICIENTS;
    char shape[96];
    dpf_shape_format(&output->shape, shape, sizeof shape);
    if (vector && output->shape.rank != 1)
        return dpf_fail(e, DPF_USAGE,
                        "the output '%s' is of shape %s, but this loss needs a vector of "
                        "scores",
                        output->name, shape);
    if (loss->most_classes && output->shape.dim[0] > loss->most_classes)
        return dpf_fail(
            e, DPF_USAGE, "the loss '%s' takes %llu classes, not the %s of '%s'",
            loss->name, (unsigned long long)loss->most_classes, shape, output->name);
    /* Inside, a picture's channels come last; its targets have to stand the same way. */
    d->turn = loss->targets == DPF_TARGET_VALUES && output->shape.rank > 1
                  ? output->shape.dim[0]
                  : 0;
    dpf_shape_format(&f->shape, shape, sizeof shape);
    d->first_only = loss->targets == DPF_TARGET_COEFFICIENTS &&
                    2 * dpf_shape_elements(&f->shape) == want;
    if (dpf_shape_elements(&f->shape) != want && !d->first_only)
        return dpf_fail(e, DPF_USAGE,
                        "field '%s' has records of shape %s, but this loss needs %llu "
                        "targets for the output '%s'",
                        f->name, shape, (unsigned long long)want, output->name);
    d->positions = want;
    if (!dpf_loss_wants_labels(loss))
        return f->dtype == DPF_BITS
                   ? dpf_fail(e, DPF_USAGE, "field '%s' is packed bits, not values",
                              f->name)
                   : DPF_OK;
    d->classes = output->shape.dim[0];
    if (f->dtype == DPF_F32 || f->dtype == DPF_F64 || f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_USAGE, "field '%s' is %s, not labels", f->name,
                        dpf_dtype_name(f->dtype));
    if (f->classes > d->classes)
        return dpf_fail(e, DPF_USAGE,
                        "field '%s' has %llu classes, the network's output '%s' has "
                        "%llu",
                        f->name, (unsigned long long)f->classes, output->name,
                        (unsigned long long)d->classes);
    return DPF_OK;
}

enum dpf_status dpf_dataset_init(struct dpf_dataset *d, struct dpf_header *h,
                                 const struct dpf_dataset_need *need, struct dpf_error *e)
{
    *d = (struct dpf_dataset){0};
    const struct dpf_field *x = dpf_header_field(h, need->x);
    const struct dpf_field *y = need->y ? dpf_header_field(h, need->y) : NULL;
    if (!x)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", need->x);
    if (need->y && !y)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", need->y);
    enum dpf_status status = check_x(d, x, &need->model->nodes[0], e);
    return status == DPF_OK && y ? check_y(d, y, need, e) : status;
}

void dpf_dataset_release(struct dpf_dataset *d)
{
    free(d->x);
    free(d->labels);
    free(d->values);
    *d = (struct dpf_dataset){0};
}

/* --------------------------------------------------------------------------- filling */

/* Examples to have room for at first: pictures by the thousand, volumes by the pair. */
static uint64_t first_capacity(const struct dpf_dataset *d)
{
    enum { BYTES = 64 << 20, LEAST = 2, MOST = 1024 };
    uint64_t one = d->record_bytes + d->positions * sizeof(float);
    uint64_t fit = BYTES / (one ? one : 1);
    return fit < LEAST ? LEAST : fit > MOST ? MOST : fit;
}

static enum dpf_status make_room(struct dpf_dataset *d, uint64_t rows, bool labels,
                                 bool values, struct dpf_error *e)
{
    uint64_t capacity = d->capacity ? d->capacity : first_capacity(d);
    size_t bytes, targets;
    if (rows >= UINT32_MAX)
        return dpf_fail(e, DPF_USAGE, "more than 2^32-1 examples");
    if (rows <= d->capacity)
        return DPF_OK;
    while (capacity < rows)
        capacity += capacity / 2;
    if (!dpf_mul_size(capacity, d->record_bytes, &bytes) ||
        !dpf_mul_size(capacity, d->positions * sizeof(float), &targets))
        return dpf_fail_memory(e);
    void *x = realloc(d->x, bytes ? bytes : 1);
    d->x = x ? x : d->x;
    bool good = x != NULL;
    if (good && labels) {
        int32_t *more = realloc(d->labels, targets);
        d->labels = more ? more : d->labels;
        good = more != NULL;
    }
    if (good && values) {
        float *more = realloc(d->values, targets);
        d->values = more ? more : d->values;
        good = more != NULL;
    }
    if (!good)
        return dpf_fail_memory(e);
    d->capacity = capacity;
    return DPF_OK;
}

static int64_t whole_number(const struct dpf_tensor *t, uint64_t i)
{
    switch (t->dtype) {
    case DPF_U8:
        return ((const uint8_t *)t->data)[i];
    case DPF_I32:
        return ((const int32_t *)t->data)[i];
    case DPF_I64:
        return ((const int64_t *)t->data)[i];
    case DPF_F32:
    case DPF_F64:
    case DPF_BITS:
    case DPF_DTYPE_COUNT:
        break; /* no labels: check_y() has refused them */
    }
    return -1;
}

/* Where value i of the batch's targets goes. */
static uint64_t place_of(const struct dpf_dataset *d, uint64_t i)
{
    if (!d->turn)
        return i;
    uint64_t within = i % d->positions, places = d->positions / d->turn;
    return i - within + within % places * d->turn + within / places;
}

static enum dpf_status add_targets(struct dpf_dataset *d, const struct dpf_tensor *t,
                                   const char *name, struct dpf_error *e)
{
    uint64_t count = dpf_tensor_rows(t) * d->positions, at = d->rows * d->positions;
    for (uint64_t i = 0; d->first_only && i < count; i++)
        d->values[at + i] = i % 2 ? 0.125F : (float)dpf_tensor_get(t, i / 2);
    for (uint64_t i = 0; !d->first_only && i < count; i++) {
        if (!d->classes) {
            d->values[at + place_of(d, i)] = (float)dpf_tensor_get(t, i);
            continue;
        }
        int64_t label = whole_number(t, i);
        if (label < 0 || (uint64_t)label >= d->classes)
            return dpf_fail(e, DPF_BAD_STREAM,
                            "field '%s' has a label outside the network's %llu classes",
                            name, (unsigned long long)d->classes);
        d->labels[at + i] = (int32_t)label;
    }
    return DPF_OK;
}

/* Labels that are read as one-hot have a channel each. */
static enum dpf_status check_one_hot(const struct dpf_dataset *d,
                                     const struct dpf_tensor *x, const char *name,
                                     struct dpf_error *e)
{
    uint64_t count = d->one_hot ? dpf_tensor_rows(x) * d->record : 0;
    for (uint64_t i = 0; i < count; i++) {
        int64_t label = whole_number(x, i);
        if (label < 0 || (uint64_t)label >= d->one_hot)
            return dpf_fail(e, DPF_BAD_STREAM,
                            "field '%s' has a label outside its classes", name);
    }
    return DPF_OK;
}

enum dpf_status dpf_dataset_add(struct dpf_dataset *d, struct dpf_header *h,
                                struct dpf_batch *b, const struct dpf_dataset_need *need,
                                struct dpf_error *e)
{
    const struct dpf_tensor *x = dpf_batch_field(b, h, need->x, e);
    const struct dpf_tensor *y = need->y ? dpf_batch_field(b, h, need->y, e) : NULL;
    if (!x || (need->y && !y))
        return DPF_BAD_STREAM;
    if (b->rows == 0)
        return DPF_OK;
    enum dpf_status status =
        make_room(d, d->rows + b->rows, y && d->classes, y && !d->classes, e);
    if (status == DPF_OK)
        status = check_one_hot(d, x, need->x, e);
    if (status == DPF_OK && y)
        status = add_targets(d, y, need->y, e);
    if (status != DPF_OK)
        return status;
    memcpy(d->x + d->rows * d->record_bytes, x->data, b->rows * d->record_bytes);
    d->rows += b->rows;
    return DPF_OK;
}

void dpf_dataset_clear(struct dpf_dataset *d)
{
    d->rows = 0;
}

void dpf_dataset_fingerprint(const struct dpf_dataset *d, struct dpf_fingerprint *f)
{
    size_t targets = (size_t)(d->rows * d->positions);
    dpf_fingerprint_add(f, &d->rows, sizeof d->rows);
    dpf_fingerprint_add(f, &d->record_bytes, sizeof d->record_bytes);
    dpf_fingerprint_add(f, d->x, d->rows * d->record_bytes);
    if (d->labels)
        dpf_fingerprint_add(f, d->labels, targets * sizeof *d->labels);
    if (d->values)
        dpf_fingerprint_add(f, d->values, targets * sizeof *d->values);
}

/* --------------------------------------------------------------------------- picking */

static void to_floats(enum dpf_dtype dtype, uint64_t count, const unsigned char *from,
                      float *to)
{
    const void *data = from;
    switch (dtype) {
    case DPF_U8:
        for (uint64_t i = 0; i < count; i++)
            to[i] = from[i];
        break;
    case DPF_I32:
        for (uint64_t i = 0; i < count; i++)
            to[i] = (float)((const int32_t *)data)[i];
        break;
    case DPF_I64:
        for (uint64_t i = 0; i < count; i++)
            to[i] = (float)((const int64_t *)data)[i];
        break;
    case DPF_F64:
        for (uint64_t i = 0; i < count; i++)
            to[i] = (float)((const double *)data)[i];
        break;
    case DPF_F32:
        memcpy(to, from, count * sizeof *to);
        break;
    case DPF_BITS: /* stay packed */
    case DPF_DTYPE_COUNT:
        break;
    }
}

/* A record of labels as [classes, positions]. */
static void to_one_hot(const struct dpf_dataset *d, const unsigned char *from, float *to)
{
    const struct dpf_tensor labels = {.dtype = d->dtype, .data = (void *)(uintptr_t)from};
    memset(to, 0, (size_t)(d->record * d->one_hot) * sizeof *to);
    for (uint64_t i = 0; i < d->record; i++)
        to[(uint64_t)whole_number(&labels, i) * d->record + i] = 1;
}

void dpf_dataset_gather(const struct dpf_dataset *d, const uint32_t *rows, int64_t n,
                        void *out)
{
    unsigned char *bytes = out;
    float *floats = out;
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *from = d->x + (size_t)rows[i] * d->record_bytes;
        if (d->dtype == DPF_BITS)
            memcpy(bytes + (size_t)i * d->record_bytes, from, d->record_bytes);
        else if (d->one_hot)
            to_one_hot(d, from, floats + (size_t)i * d->record * d->one_hot);
        else
            to_floats(d->dtype, d->record, from, floats + (size_t)i * d->record);
    }
}

struct dpf_loss_target dpf_dataset_target(const struct dpf_dataset *d, uint32_t row)
{
    size_t at = (size_t)row * d->positions;
    return (struct dpf_loss_target){.labels = d->labels ? d->labels + at : NULL,
                                    .values = d->values ? d->values + at : NULL};
}

void dpf_dataset_targets(const struct dpf_dataset *d, const uint32_t *rows, int64_t n,
                         void *out)
{
    const unsigned char *all = d->labels ? (void *)d->labels : (void *)d->values;
    size_t bytes = (size_t)d->positions * (d->labels ? sizeof *d->labels : sizeof(float));
    for (int64_t i = 0; all && i < n; i++)
        memcpy((unsigned char *)out + (size_t)i * bytes, all + rows[i] * bytes, bytes);
}

/* ------------------------------------------------------------------------ identities */

struct content {
    uint64_t hash;
    uint64_t row;
};

static int by_content(const void *a, const void *b)
{
    const struct content *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

bool dpf_dataset_identities(const struct dpf_dataset *d, uint64_t *identities)
{
    struct content *all = dpf_calloc((size_t)d->rows + 1, sizeof *all);
    size_t targets = (size_t)d->positions * sizeof(float);
    if (!all)
        return false;
    for (uint64_t i = 0; i < d->rows; i++) {
        uint64_t hash = XXH3_64bits(d->x + i * d->record_bytes, d->record_bytes);
        if (d->labels)
            hash = XXH3_64bits_withSeed(d->labels + i * d->positions, targets, hash);
        if (d->values)
            hash = XXH3_64bits_withSeed(d->values + i * d->positions, targets, hash);
        all[i] = (struct content){hash, i};
    }
    qsort(all, d->rows, sizeof *all, by_content);
    for (uint64_t i = 0, equal = 0; i < d->rows; i++) {
        equal = i && all[i].hash == all[i - 1].hash ? equal + 1 : 0;
        identities[all[i].row] = dpf_mask_key(all[i].hash, equal);
    }
    free(all);
    return true;
}
