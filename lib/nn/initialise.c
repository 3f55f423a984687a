#include "nn/initialise.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "random/normal.h"
#include "random/seeded.h"

#include "base/banned.h"

const char *const dpf_initialisers[] = {
    "he-normal",    "he-uniform", "xavier-normal", "xavier-uniform",
    "lecun-normal", "torch",      "zero",          NULL};

/* How many inputs an output adds up, and how many outputs an input reaches. */
static void fans(const struct dpf_node *n, double *in, double *out)
{
    const struct dpf_shape *s = &n->parameters[0];
    double window = 1;
    for (int d = 2; d < s->rank; d++)
        window *= (double)s->dim[d];
    bool dense = n->op == DPF_OP_DENSE;
    bool turned =
        n->op == DPF_OP_CONV_TRANSPOSE || (dense && (int64_t)s->dim[1] == n->out);
    *in = (double)s->dim[turned ? 0 : 1] * window;
    *out = (double)s->dim[turned ? 1 : 0] * window;
}

/* Standard deviation, and whether the distribution is uniform. */
static bool spread(const char *name, double in, double out, double *deviation)
{
    bool uniform = strstr(name, "uniform") != NULL;
    if (strncmp(name, "he-", 3) == 0)
        *deviation = sqrt(2 / in);
    else if (strncmp(name, "xavier-", 7) == 0)
        *deviation = sqrt(2 / (in + out));
    else if (strcmp(name, "lecun-normal") == 0)
        *deviation = sqrt(1 / in);
    else if (strcmp(name, "torch") == 0) {
        *deviation = sqrt(1 / (3 * in)); /* uniform in +-1/sqrt(in) */
        uniform = true;
    } else
        *deviation = 0;
    return uniform;
}

static void draw(struct dpf_seeded *r, bool uniform, double deviation, uint64_t count,
                 float *to)
{
    double bound = deviation * sqrt(3);
    if (!uniform)
        dpf_normal_fill(dpf_seeded_u64(r), 0, count, to);
    for (uint64_t i = 0; i < count; i++)
        to[i] = uniform ? (float)dpf_seeded_range(r, -bound, bound)
                        : (float)deviation * to[i];
}

bool dpf_initialise(const struct dpf_model *m, const char *name, uint64_t seed,
                    float *parameters)
{
    bool known = false;
    for (const char *const *n = dpf_initialisers; *n; n++)
        known = known || strcmp(*n, name) == 0;
    if (!known)
        return false;
    memset(parameters, 0, m->span * sizeof *parameters);
    for (size_t i = 0; i < m->count; i++) {
        const struct dpf_node *n = &m->nodes[i];
        double in, out, deviation;
        struct dpf_seeded r;
        char purpose[sizeof n->name + 16];
        if (!n->parameter_count)
            continue;
        float *first = parameters + n->offset[0];
        uint64_t count = dpf_shape_elements(&n->parameters[0]);
        if (n->op == DPF_OP_GROUP_NORM) {
            for (uint64_t j = 0; j < count; j++)
                first[j] = 1;
            continue;
        }
        fans(n, &in, &out);
        /* PyTorch counts a transposed convolution's outputs as its inputs. */
        if (n->op == DPF_OP_CONV_TRANSPOSE && strcmp(name, "torch") == 0)
            in = out;
        bool uniform = spread(name, in, out, &deviation);
        snprintf(purpose, sizeof purpose, "weights of %s", n->name);
        dpf_seeded_init(&r, purpose, seed, 0);
        draw(&r, uniform, deviation, count, first);
        if (n->parameter_count > 1 && strcmp(name, "torch") == 0)
            draw(&r, true, deviation, dpf_shape_elements(&n->parameters[1]),
                 parameters + n->offset[1]);
    }
    return true;
}
