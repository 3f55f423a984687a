#include "nn/row_probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/geometry.h"
#include "random/seeded.h"

#include "base/banned.h"

enum { UNTRIED, GOOD, BAD }; /* state of a size */
/* Values that a trial should have had, so that chance can be left out of account. */
enum { ENOUGH_VALUES = 4096, MOST_TRIALS = 16 };

/* ----------------------------------------------------------------------------- setup */

static int64_t input_floats(const struct dpf_network *net)
{
    const struct dpf_node *input = &net->model->nodes[0];
    int64_t record = dpf_nn_elements(&input->shape);
    return input->bits ? (record + 31) / 32 : record;
}

static size_t row_bytes(const struct dpf_network *net)
{
    const struct dpf_node *input = &net->model->nodes[0];
    size_t record = (size_t)dpf_nn_elements(&input->shape);
    return input->bits ? (record + 7) / 8 : record * sizeof(float);
}

/* Weights that keep values of the size of 1 from layer to layer, no two alike. */
static bool fill_parameters(struct dpf_row_probe *p)
{
    const struct dpf_model *m = p->net->model;
    float *host = dpf_calloc(m->span + 1, sizeof *host);
    struct dpf_seeded r;
    if (!host)
        return false;
    dpf_seeded_init(&r, "row probe weights", 1, 0);
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; k < m->nodes[i].parameter_count; k++) {
            const struct dpf_shape *s = &m->nodes[i].parameters[k];
            double all = (double)dpf_shape_elements(s);
            double width = k == 0 && s->rank > 1 ? sqrt((double)s->dim[0] / all) : 0.5;
            for (size_t j = 0; j < (size_t)all; j++)
                host[m->nodes[i].offset[k] + j] = (float)(width * dpf_seeded_normal(&r));
        }
    p->net->kernels->put(p->parameters, host, m->span * sizeof *host);
    free(host);
    return true;
}

/* Values and gradients of one example that a backend holds. */
static size_t example_floats(const struct dpf_network *net)
{
    size_t sum = 0;
    for (size_t i = 0; i < net->model->count; i++) {
        size_t record = (size_t)dpf_nn_elements(&net->model->nodes[i].shape);
        if (!net->model->nodes[i].bits)
            sum += record + (net->layers[i].gradient ? record : 0);
    }
    return sum;
}

enum dpf_status dpf_row_probe_init(struct dpf_row_probe *p, struct dpf_network *net,
                                   const struct dpf_row_probe *other, struct dpf_error *e)
{
    const struct dpf_model *m = net->model;
    size_t capacity = (size_t)net->capacity, largest = 0;
    size_t out = (size_t)dpf_nn_elements(&m->nodes[m->output].shape);
    for (size_t i = 0; i < m->count; i++)
        if ((size_t)dpf_nn_elements(&m->nodes[i].shape) > largest)
            largest = (size_t)dpf_nn_elements(&m->nodes[i].shape);
    *p = (struct dpf_row_probe){.net = net, .example = example_floats(net)};
    p->quantum = net->capacity >= 64 ? 4 : net->capacity >= 32 ? 2 : 1;
    p->trials = (int)(ENOUGH_VALUES / (p->example + 1)) + 1;
    p->trials = p->trials < MOST_TRIALS ? p->trials : MOST_TRIALS;
    p->state = dpf_calloc(capacity + 1, 1);
    p->borrowed = other != NULL;
    p->parameters = other ? other->parameters
                          : net->kernels->alloc((m->span + 1) * sizeof *p->parameters);
    p->x = dpf_calloc(capacity + 1, row_bytes(net));
    p->d = dpf_calloc(capacity * out + 1, sizeof *p->d);
    p->keys = dpf_calloc(capacity + 1, sizeof *p->keys);
    p->rows = dpf_calloc(capacity * largest + 1, sizeof *p->rows);
    p->reference = dpf_calloc((size_t)p->trials * p->example + 1, sizeof *p->reference);
    if (p->state && p->parameters && p->x && p->d && p->keys && p->rows && p->reference &&
        (other || fill_parameters(p)))
        return DPF_OK;
    dpf_row_probe_release(p);
    return dpf_fail_memory(e);
}

void dpf_row_probe_release(struct dpf_row_probe *p)
{
    if (!p->net)
        return;
    if (!p->borrowed)
        p->net->kernels->release(p->parameters);
    free(p->state);
    free(p->x);
    free(p->d);
    free(p->keys);
    free(p->rows);
    free(p->reference);
    *p = (struct dpf_row_probe){0};
}

/* ---------------------------------------------------------------------------- trials */

/* What stands in rows that must not matter. */
static float strange(int64_t row)
{
    static const float all[] = {NAN, INFINITY, -3e38f, 1e-40f};
    return all[row / 2 % 4];
}

/* The random example of a trial into every second row, from `first` on; what is strange
 * into the others. */
static void fill_rows(struct dpf_row_probe *p, int64_t n, int trial, int64_t first)
{
    const struct dpf_network *net = p->net;
    const struct dpf_model *m = net->model;
    int64_t in = input_floats(net);
    int64_t out = dpf_nn_elements(&m->nodes[m->output].shape);
    size_t bytes = row_bytes(net);
    for (int64_t r = 0; r < n; r++) {
        bool own = r % 2 == first;
        unsigned char *x = (unsigned char *)p->x + (size_t)r * bytes;
        struct dpf_seeded random;
        dpf_seeded_init(&random, "row probe example", (uint64_t)trial,
                        own ? 0 : 1 + (uint64_t)r);
        p->keys[r] = own ? (uint64_t)trial : dpf_seeded_u64(&random);
        for (int64_t i = 0; i < in; i++) {
            uint64_t bits = dpf_seeded_u64(&random);
            float value = own ? (float)dpf_seeded_normal(&random) : strange(r);
            size_t at = (size_t)i * sizeof value, left = bytes - at;
            memcpy(x + at, m->nodes[0].bits ? (const void *)&bits : (const void *)&value,
                   left < sizeof value ? left : sizeof value);
        }
        for (int64_t i = 0; i < out; i++)
            p->d[r * out + i] = own ? (float)dpf_seeded_normal(&random) : strange(r + 2);
    }
}

/* Rows of one array, [n, record], against the reference, or into it. */
static bool same_rows(struct dpf_row_probe *p, const float *array, int64_t record,
                      int64_t n, int64_t first, float *reference)
{
    size_t bytes = (size_t)record * sizeof *reference;
    p->net->kernels->get(p->rows, array, (size_t)n * bytes);
    if (!p->has_reference)
        memcpy(reference, p->rows + first * record, bytes);
    for (int64_t r = first; r < n; r += 2)
        if (memcmp(p->rows + r * record, reference, bytes) != 0)
            return false;
    return true;
}

static bool same_example(struct dpf_row_probe *p, int64_t n, int trial, int64_t first)
{
    struct dpf_network *net = p->net;
    float *reference = p->reference + (size_t)trial * p->example;
    fill_rows(p, n, trial, first);
    dpf_network_forward(net, n, p->x, true, p->keys);
    dpf_network_value_gradients(net, n, p->d);
    bool same = true;
    for (size_t i = 0; same && i < net->model->count; i++) {
        const struct dpf_layer *l = &net->layers[i];
        int64_t record = dpf_nn_elements(&net->model->nodes[i].shape);
        if (net->model->nodes[i].bits)
            continue;
        same = same_rows(p, l->value, record, n, first, reference);
        reference += record;
        if (l->gradient) {
            same = same &&
                   (!l->filled || same_rows(p, l->gradient, record, n, first, reference));
            reference += record;
        }
    }
    return same;
}

static bool try_size(struct dpf_row_probe *p, int64_t n)
{
    const float *own = p->net->parameters;
    bool same = true;
    p->net->parameters = p->parameters;
    for (int trial = 0; same && trial < p->trials; trial++) {
        bool had = p->has_reference;
        for (int64_t first = 0; same && first < 2 && first < n; first++) {
            same = same_example(p, n, trial, first);
            p->has_reference = true;
        }
        p->has_reference = had;
    }
    p->has_reference = true;
    p->net->parameters = own;
    return same;
}

static bool is_good(struct dpf_row_probe *p, int64_t n)
{
    if (p->state[n] == UNTRIED)
        p->state[n] = try_size(p, n) ? GOOD : BAD;
    return p->state[n] == GOOD;
}

int64_t dpf_row_probe_size(struct dpf_row_probe *p, int64_t n)
{
    int64_t capacity = p->net->capacity;
    if (capacity == 1 ||
        !is_good(p, capacity)) /* it makes the reference, so it is first */
        return 1;
    for (int64_t size = (n + p->quantum - 1) / p->quantum * p->quantum; size < capacity;
         size += p->quantum)
        if (is_good(p, size))
            return size;
    return capacity;
}
