#include "nn/windows.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

#include "base/banned.h"

/* ------------------------------------------------------------------------------- plan */

int64_t dpf_window_start(const struct dpf_window_axis *a, uint64_t k)
{
    if (a->size <= a->window)
        return -(int64_t)((a->window - a->size) / 2);
    return (int64_t)(k + 1 == a->count ? a->size - a->window : k * a->step);
}

static double weight(const struct dpf_window_axis *a, uint64_t i)
{
    uint64_t left = i + 1, right = a->window - i;
    return (double)(left < right ? left : right);
}

static bool inside(const struct dpf_window_axis *a, int64_t position)
{
    return position >= 0 && (uint64_t)position < a->size;
}

static enum dpf_status axis_init(struct dpf_window_axis *a, uint64_t size,
                                 uint64_t window, struct dpf_error *e)
{
    *a = (struct dpf_window_axis){.size = size, .window = window, .count = 1};
    a->step = window > 1 ? window / 2 : 1;
    if (size > window)
        a->count += (size - window + a->step - 1) / a->step;
    double *sums = dpf_calloc(size, sizeof *sums);
    size_t shares;
    a->shares = dpf_mul_size(a->count, window, &shares)
                    ? dpf_calloc(shares, sizeof *a->shares)
                    : NULL;
    if (!sums || !a->shares) {
        free(sums);
        return dpf_fail_memory(e);
    }
    for (int pass = 0; pass < 2; pass++)
        for (uint64_t k = 0; k < a->count; k++)
            for (uint64_t i = 0; i < window; i++) {
                int64_t position = dpf_window_start(a, k) + (int64_t)i;
                if (!inside(a, position))
                    continue;
                if (pass == 0)
                    sums[position] += weight(a, i);
                else
                    a->shares[k * window + i] = weight(a, i) / sums[position];
            }
    free(sums);
    return DPF_OK;
}

/* A field of pictures may lack its channel, labels have none (nn/dataset.h). */
static bool positions_of(const struct dpf_field *x, int dimensions, const uint64_t **at)
{
    if (x->shape.rank != dimensions && x->shape.rank != dimensions + 1)
        return false;
    *at = x->shape.dim + x->shape.rank - dimensions;
    for (int d = 0; d < dimensions; d++)
        if ((*at)[d] < 1)
            return false;
    return true;
}

static void add_shape(struct dpf_text *t, uint64_t channels, const uint64_t *positions,
                      int dimensions)
{
    dpf_text_addf(t, "%llu", (unsigned long long)channels);
    for (int d = 0; d < dimensions; d++)
        dpf_text_addf(t, "x%llu", (unsigned long long)positions[d]);
    dpf_text_add(t, "\n");
}

/* Input and output of whole records, by their names, for messages. */
static enum dpf_status write_whole(struct dpf_windows *w, const struct dpf_model *m,
                                   const uint64_t *positions, int dimensions,
                                   struct dpf_error *e)
{
    const struct dpf_node *in = &m->nodes[0], *out = &m->nodes[w->node];
    struct dpf_text text = {0};
    dpf_text_addf(&text, "input %s ", in->name);
    add_shape(&text, w->channels[0], positions, dimensions);
    if (out != in)
        dpf_text_addf(&text, "%s = conv %s out=%llu kernel=1\n", out->name, in->name,
                      (unsigned long long)w->channels[1]);
    dpf_text_addf(&text, "output %s\n", out->name);
    enum dpf_status status =
        text.failed ? dpf_fail_memory(e)
                    : dpf_model_parse(&w->whole, text.data, text.size, "windows", e);
    dpf_text_release(&text);
    return status;
}

static enum dpf_status check(const struct dpf_model *m, size_t node,
                             const struct dpf_field *x, const uint64_t **positions,
                             struct dpf_error *e)
{
    const struct dpf_shape *in = &m->nodes[0].shape, *out = &m->nodes[node].shape;
    char have[96], want[96];
    dpf_shape_format(in, want, sizeof want);
    if (in->rank < 3)
        return dpf_fail(e, DPF_USAGE,
                        "windows need a network of pictures or volumes, not of '%s'",
                        want);
    dpf_shape_format(out, have, sizeof have);
    if (out->rank != in->rank ||
        memcmp(out->dim + 1, in->dim + 1, (size_t)(in->rank - 1) * sizeof *in->dim) != 0)
        return dpf_fail(e, DPF_USAGE,
                        "windows need a value for each position of the input, which is "
                        "%s; node '%s' is %s",
                        want, m->nodes[node].name, have);
    dpf_shape_format(&x->shape, have, sizeof have);
    if (!positions_of(x, in->rank - 1, positions))
        return dpf_fail(e, DPF_USAGE,
                        "windows of %s do not fit field '%s', whose records are of shape "
                        "%s",
                        want, x->name, have);
    return DPF_OK;
}

enum dpf_status dpf_windows_init(struct dpf_windows *w, const struct dpf_model *m,
                                 size_t node, const struct dpf_field *x,
                                 struct dpf_error *e)
{
    const struct dpf_shape *in = &m->nodes[0].shape;
    const uint64_t *positions = NULL;
    *w = (struct dpf_windows){.node = node};
    enum dpf_status status = check(m, node, x, &positions, e);
    if (status != DPF_OK)
        return status;
    int dimensions = in->rank - 1, before = DPF_WINDOW_AXES - dimensions;
    w->channels[0] = in->dim[0];
    w->channels[1] = m->nodes[node].shape.dim[0];
    status = write_whole(w, m, positions, dimensions, e);
    if (status != DPF_OK)
        return status;
    w->values = w->whole.nodes[w->whole.output].shape;
    for (int d = 0; status == DPF_OK && d < DPF_WINDOW_AXES; d++)
        status = d < before ? axis_init(&w->axes[d], 1, 1, e)
                            : axis_init(&w->axes[d], positions[d - before],
                                        in->dim[1 + d - before], e);
    w->record =
        dpf_calloc(dpf_shape_elements(&w->whole.nodes[0].shape), sizeof *w->record);
    if (status == DPF_OK && !w->record)
        status = dpf_fail_memory(e);
    if (status != DPF_OK)
        dpf_windows_release(w);
    return status;
}

void dpf_windows_release(struct dpf_windows *w)
{
    for (int d = 0; d < DPF_WINDOW_AXES; d++)
        free(w->axes[d].shares);
    dpf_model_release(&w->whole);
    free(w->record);
    free(w->cut);
    free(w->computed);
    free(w->rows);
    *w = (struct dpf_windows){.node = 0};
}

uint64_t dpf_windows_count(const struct dpf_windows *w)
{
    return w->axes[0].count * w->axes[1].count * w->axes[2].count;
}

/* ---------------------------------------------------------------------------- windows */

/* One window: where it starts, and its shares. */
struct window {
    int64_t start[DPF_WINDOW_AXES];
    const double *shares[DPF_WINDOW_AXES];
};

static struct window window_of(const struct dpf_windows *w, uint64_t number)
{
    struct window found;
    for (int d = DPF_WINDOW_AXES - 1; d >= 0; d--) {
        const struct dpf_window_axis *a = &w->axes[d];
        uint64_t k = number % a->count;
        number /= a->count;
        found.start[d] = dpf_window_start(a, k);
        found.shares[d] = a->shares + k * a->window;
    }
    return found;
}

static uint64_t elements(const struct dpf_windows *w)
{
    return w->axes[0].window * w->axes[1].window * w->axes[2].window;
}

/* What a row of a window and the record have in common. */
struct row {
    uint64_t in_record, in_window, from, to; /* the first ones, then columns of both */
    double share;
};

static struct row row_of(const struct dpf_windows *w, const struct window *o,
                         uint64_t number)
{
    const struct dpf_window_axis *a = w->axes;
    uint64_t y = number % a[1].window, rest = number / a[1].window;
    uint64_t z = rest % a[0].window, channel = rest / a[0].window;
    int64_t in_z = o->start[0] + (int64_t)z, in_y = o->start[1] + (int64_t)y;
    int64_t in_x = o->start[2];
    struct row r = {.in_window = number * a[2].window};
    if (!inside(&a[0], in_z) || !inside(&a[1], in_y))
        return r;
    r.from = in_x < 0 ? (uint64_t)-in_x : 0;
    r.to = a[2].size < a[2].window ? r.from + a[2].size : a[2].window;
    r.in_record = ((channel * a[0].size + (uint64_t)in_z) * a[1].size + (uint64_t)in_y) *
                      a[2].size +
                  (uint64_t)(in_x + (int64_t)r.from);
    r.share = o->shares[0][z] * o->shares[1][y];
    return r;
}

static uint64_t rows_of(const struct dpf_windows *w, int which)
{
    return w->channels[which] * w->axes[0].window * w->axes[1].window;
}

/* Cut a window out of the record in hand; zeros outside. */
static void cut(const struct dpf_windows *w, uint64_t number, float *to)
{
    const struct window o = window_of(w, number);
    memset(to, 0, w->channels[0] * elements(w) * sizeof *to);
    for (uint64_t i = 0; i < rows_of(w, 0); i++) {
        struct row r = row_of(w, &o, i);
        if (r.to > r.from)
            memcpy(to + r.in_window + r.from, w->record + r.in_record,
                   (r.to - r.from) * sizeof *to);
    }
}

/* A share of 1 is a position that no other window has: the value goes as it is. */
static void add(const struct dpf_windows *w, uint64_t number, const float *from,
                float *values)
{
    const struct window o = window_of(w, number);
    for (uint64_t i = 0; i < rows_of(w, 1); i++) {
        struct row r = row_of(w, &o, i);
        float *to = values + r.in_record;
        for (uint64_t x = r.from; x < r.to; x++, to++) {
            double share = r.share * o.shares[2][x];
            float value = from[r.in_window + x];
            *to = share == 1 ? value : *to + (float)(share * (double)value);
        }
    }
}

/* As many windows at a time as the engine's threads take at once. */
static enum dpf_status make_room(struct dpf_windows *w, const struct dpf_engine *g,
                                 uint64_t all, uint64_t *at_once, struct dpf_error *e)
{
    size_t in, out;
    *at_once = (uint64_t)g->threads * (uint64_t)g->microbatch;
    *at_once = all < *at_once ? all : *at_once;
    if (!dpf_mul_size(*at_once, w->channels[0] * elements(w), &in) ||
        !dpf_mul_size(*at_once, w->channels[1] * elements(w), &out) ||
        !dpf_grow(&w->cut, &w->cut_capacity, in, sizeof *w->cut) ||
        !dpf_grow(&w->computed, &w->computed_capacity, out, sizeof *w->computed) ||
        !dpf_grow(&w->rows, &w->rows_capacity, *at_once, sizeof *w->rows))
        return dpf_fail_memory(e);
    for (uint64_t i = 0; i < *at_once; i++)
        w->rows[i] = (uint32_t)i;
    return DPF_OK;
}

/* Windows are numbered through all records, so that small records share a call. */
enum dpf_status dpf_windows_compute(struct dpf_windows *w, struct dpf_engine *g,
                                    const struct dpf_lot *lot, float *values,
                                    struct dpf_error *e)
{
    uint64_t each = dpf_windows_count(w), all = (uint64_t)lot->count * each, at_once;
    uint64_t in = w->channels[0] * elements(w), out = w->channels[1] * elements(w);
    uint64_t record = dpf_shape_elements(&w->values);
    enum dpf_status status = make_room(w, g, all, &at_once, e);
    if (status != DPF_OK)
        return status;
    if (all)
        memset(values, 0, (size_t)lot->count * record * sizeof *values);
    const struct dpf_dataset data = {.dtype = DPF_F32,
                                     .record = in,
                                     .record_bytes = in * sizeof(float),
                                     .rows = at_once,
                                     .x = (unsigned char *)w->cut};
    for (uint64_t first = 0; status == DPF_OK && first < all; first += at_once) {
        uint64_t n = all - first < at_once ? all - first : at_once;
        for (uint64_t i = 0; i < n; i++) {
            if (i == 0 || (first + i) % each == 0)
                dpf_dataset_gather(lot->data, lot->rows + (first + i) / each, 1,
                                   w->record);
            cut(w, (first + i) % each, w->cut + i * in);
        }
        const struct dpf_lot part = {.data = &data, .rows = w->rows, .count = (int64_t)n};
        const struct dpf_lot_values want = {.node = w->node, .values = w->computed};
        status = dpf_engine_values(g, &part, &want, e);
        for (uint64_t i = 0; status == DPF_OK && i < n; i++)
            add(w, (first + i) % each, w->computed + i * out,
                values + (first + i) / each * record);
    }
    return status;
}
