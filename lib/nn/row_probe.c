#include "nn/row_probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/geometry.h"
#include "random/seeded.h"

#include "base/banned.h"

/* Trials, each with all rows: many for small networks, which have few values. */
enum { VALUES = 1 << 20, LEAST_TRIALS = 8, MOST_TRIALS = 64 };

struct probe {
    struct dpf_network *net; /* borrowed */
    float *parameters;       /* random, on the backend */
    unsigned char *x;        /* a microbatch's inputs */
    size_t row_bytes;        /* of one of them */
    float *d;                /* its outputs' gradients */
    size_t outputs;          /* of one of them */
    uint64_t *keys;
    float *together; /* [rows, example]: all values and gradients, node by node */
    float *alone;    /* those of one example */
    size_t example;  /* how many */
};

/* ----------------------------------------------------------------------------- setup */

/* Numbers of one size, or of very different ones: orders of a sum show in both ways. */
static float draw(struct dpf_seeded *r, bool wide)
{
    int exponent = wide ? (int)dpf_seeded_below(r, 17) - 8 : 0;
    return ldexpf((float)dpf_seeded_normal(r), exponent);
}

/* Weights that keep values of the size of 1 from layer to layer, no two alike. */
static bool fill_parameters(struct probe *p)
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
    p->net->kernels->put(p->net->context, p->parameters, host, m->span * sizeof *host);
    free(host);
    return true;
}

static bool begin(struct probe *p, struct dpf_network *net)
{
    const struct dpf_model *m = net->model;
    size_t capacity = (size_t)net->capacity;
    size_t in = (size_t)dpf_nn_elements(&m->nodes[0].shape);
    *p = (struct probe){.net = net};
    for (size_t i = 0; i < m->count; i++) {
        size_t record = (size_t)dpf_nn_elements(&m->nodes[i].shape);
        if (!m->nodes[i].bits)
            p->example += record + (net->layers[i].gradient ? record : 0);
    }
    p->row_bytes = m->nodes[0].bits ? (in + 7) / 8 : in * sizeof(float);
    p->parameters =
        net->kernels->alloc(net->context, (m->span + 1) * sizeof *p->parameters);
    p->x = dpf_calloc(capacity + 1, p->row_bytes);
    p->outputs = (size_t)dpf_nn_elements(&m->nodes[m->output].shape);
    p->d = dpf_calloc(capacity * p->outputs + 1, sizeof *p->d);
    p->keys = dpf_calloc(capacity + 1, sizeof *p->keys);
    p->together = dpf_calloc(capacity * p->example + 1, sizeof *p->together);
    p->alone = dpf_calloc(p->example + 1, sizeof *p->alone);
    return p->parameters && p->x && p->d && p->keys && p->together && p->alone &&
           fill_parameters(p);
}

static void end(struct probe *p)
{
    p->net->kernels->release(p->net->context, p->parameters);
    free(p->x);
    free(p->d);
    free(p->keys);
    free(p->together);
    free(p->alone);
}

/* ---------------------------------------------------------------------------- trials */

/* What stands in rows that nobody asks about. */
static float strange(int64_t row, struct dpf_seeded *r)
{
    static const float all[] = {NAN, INFINITY, -3e38f, 1e-40f};
    return row / 3 % 5 == 4 ? draw(r, true) : all[row / 3 % 5];
}

static bool is_strange(int64_t row, int trial)
{
    return row % 3 == trial % 3;
}

/* Random examples, every third of them strange. */
static void fill_rows(struct probe *p, int64_t n, int trial)
{
    bool bits = p->net->model->nodes[0].bits, wide = trial % 2;
    for (int64_t row = 0; row < n; row++) {
        bool own = !is_strange(row, trial);
        unsigned char *x = p->x + (size_t)row * p->row_bytes;
        struct dpf_seeded r;
        dpf_seeded_init(&r, "row probe", (uint64_t)trial, (uint64_t)row);
        p->keys[row] = dpf_seeded_u64(&r);
        for (size_t i = 0; bits && i < p->row_bytes; i++)
            x[i] = (unsigned char)dpf_seeded_u64(&r);
        for (size_t i = 0; !bits && i < p->row_bytes / sizeof(float); i++)
            ((float *)(void *)x)[i] = own ? draw(&r, wide) : strange(row, &r);
        for (size_t i = 0; i < p->outputs; i++)
            p->d[(size_t)row * p->outputs + i] =
                own ? draw(&r, wide) : strange(row + 6, &r);
    }
}

/* All values and gradients of n rows from `from` on, node by node. */
static void compute(struct probe *p, int64_t from, int64_t n, float *out)
{
    struct dpf_network *net = p->net;
    dpf_network_forward(net, n, p->x + (size_t)from * p->row_bytes, true, p->keys + from);
    dpf_network_value_gradients(net, n, p->d + (size_t)from * p->outputs);
    for (size_t i = 0; i < net->model->count; i++) {
        const struct dpf_layer *l = &net->layers[i];
        size_t count = (size_t)(n * dpf_nn_elements(&net->model->nodes[i].shape));
        if (net->model->nodes[i].bits)
            continue;
        net->kernels->get(net->context, out, l->value, count * sizeof *out);
        out += count;
        if (l->gradient && l->filled)
            net->kernels->get(net->context, out, l->gradient, count * sizeof *out);
        out += l->gradient ? count : 0;
    }
}

/* Whether row `row` of n has the same bits as alone. */
static bool same_row(const struct probe *p, int64_t n, int64_t row)
{
    const struct dpf_network *net = p->net;
    const float *together = p->together, *alone = p->alone;
    bool same = true;
    for (size_t i = 0; same && i < net->model->count; i++) {
        size_t record = (size_t)dpf_nn_elements(&net->model->nodes[i].shape);
        int arrays = net->model->nodes[i].bits ? 0 : net->layers[i].gradient ? 2 : 1;
        for (int a = 0; a < arrays; a++) {
            same = same && memcmp(together + (size_t)row * record, alone,
                                  record * sizeof *alone) == 0;
            together += (size_t)n * record;
            alone += record;
        }
    }
    return same;
}

static bool try_rows(struct probe *p, int64_t n, int trial)
{
    bool same = true;
    fill_rows(p, n, trial);
    compute(p, 0, n, p->together);
    for (int64_t row = 0; same && row < n; row++) {
        if (is_strange(row, trial))
            continue;
        compute(p, row, 1, p->alone);
        same = same_row(p, n, row);
    }
    return same;
}

enum dpf_status dpf_row_probe(struct dpf_network *net, bool *apart, struct dpf_error *e)
{
    const float *own = net->parameters;
    struct probe p;
    *apart = true;
    if (net->capacity == 1)
        return DPF_OK;
    bool good = begin(&p, net);
    size_t trials = VALUES / ((size_t)net->capacity * p.example + 1);
    trials = trials < LEAST_TRIALS  ? LEAST_TRIALS
             : trials < MOST_TRIALS ? trials
                                    : MOST_TRIALS;
    net->parameters = p.parameters;
    for (size_t trial = 0; good && *apart && trial < trials; trial++) {
        int64_t n = net->capacity - (int64_t)(trial % 8); /* the last rows vary as well */
        *apart = try_rows(&p, n < 1 ? net->capacity : n, (int)trial);
    }
    net->parameters = own;
    end(&p);
    return good ? net->kernels->finish(net->context, e) : dpf_fail_memory(e);
}
