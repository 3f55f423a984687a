#include "nn/ops/attributes.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/words.h"

#include "base/banned.h"

bool dpf_parse_dimensions(const char *text, struct dpf_shape *shape)
{
    char copy[96];
    *shape = (struct dpf_shape){0};
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return false;
    char *at = copy;
    for (char *word; (word = strsep(&at, "x"));) {
        uint64_t d;
        if (shape->rank == 4 || !dpf_parse_uint(word, &d) || d < 1 || d > 1 << 30)
            return false;
        shape->dim[shape->rank++] = d;
    }
    return true;
}

/* "3", "3x5" or "3x3x3" into the last dimensions; the others get `rest`. */
static bool parse_sizes(const char *text, int64_t rest, int64_t least, int64_t out[3])
{
    char copy[64];
    int64_t parts[3];
    int count = 0;
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
        return false;
    char *at = copy;
    for (char *word; (word = strsep(&at, "x"));)
        if (count == 3 || !dpf_parse_int(word, &parts[count]) || parts[count] < least ||
            parts[count++] > 1 << 20)
            return false;
    for (int d = 0; d < 3; d++)
        out[d] = count == 1 ? parts[0] : d < 3 - count ? rest : parts[d - (3 - count)];
    return count > 0;
}

static bool parse_window(const char *text, void *to)
{
    return parse_sizes(text, 1, 1, to);
}

static bool parse_pad(const char *text, void *to)
{
    return parse_sizes(text, 0, 0, to);
}

static bool parse_whole(const char *text, void *to)
{
    int64_t *out = to;
    return dpf_parse_int(text, out) && *out >= 1 && *out <= 1 << 30;
}

/* A place, counted from 0. */
static bool parse_place(const char *text, void *to)
{
    int64_t *out = to;
    return dpf_parse_int(text, out) && *out >= 0 && *out <= 1 << 30;
}

static bool parse_channels(const char *text, void *to)
{
    return parse_whole(text, to) && *(int64_t *)to <= 4096;
}

/* Only 0 is written: a bias is there by default. */
static bool parse_absent(const char *text, void *to)
{
    int64_t flag = 0;
    *(bool *)to = false;
    return dpf_parse_int(text, &flag) && flag == 0;
}

/* Only 1 is written. */
static bool parse_present(const char *text, void *to)
{
    int64_t flag = 0;
    *(bool *)to = true;
    return dpf_parse_int(text, &flag) && flag == 1;
}

static bool parse_rate(const char *text, void *to)
{
    double *out = to;
    return dpf_parse_real(text, out) && *out >= 0 && *out < 1;
}

static bool parse_positive(const char *text, void *to)
{
    double *out = to;
    return dpf_parse_real(text, out) && *out > 0;
}

static bool parse_deviation(const char *text, void *to)
{
    double *out = to;
    return dpf_parse_real(text, out) && *out >= 0 && *out <= 1e6;
}

static bool parse_shape(const char *text, void *to)
{
    struct dpf_shape *out = to;
    return dpf_parse_dimensions(text, out) && (out->rank == 3 || out->rank == 4);
}

static bool parse_degree(const char *text, void *to)
{
    int64_t *out = to;
    return dpf_parse_int(text, out) && *out >= 0 && *out <= DPF_EXPANSION_MOST;
}

static bool parse_function(const char *text, void *to)
{
    const struct dpf_function **out = to;
    return (*out = DPF_FIND(dpf_functions, text)) != NULL;
}

static bool parse_expansion(const char *text, void *to)
{
    const struct dpf_expansion_choice **out = to;
    return (*out = DPF_FIND(dpf_expansion_choices, text)) != NULL;
}

#define AT(member) offsetof(struct dpf_node, member)
static const struct {
    const char *name;
    enum dpf_attribute bit;
    size_t at;
    bool (*parse)(const char *text, void *to);
} attributes[] = {
    {"out", DPF_ATTRIBUTE_OUT, AT(out), parse_whole},
    {"kernel", DPF_ATTRIBUTE_KERNEL, AT(kernel), parse_window},
    {"stride", DPF_ATTRIBUTE_STRIDE, AT(stride), parse_window},
    {"pad", DPF_ATTRIBUTE_PAD, AT(pad), parse_pad},
    {"bias", DPF_ATTRIBUTE_BIAS, AT(bias), parse_absent},
    {"groups", DPF_ATTRIBUTE_GROUPS, AT(groups), parse_whole},
    {"window", DPF_ATTRIBUTE_WINDOW, AT(window), parse_channels},
    {"factor", DPF_ATTRIBUTE_FACTOR, AT(factor), parse_whole},
    {"rate", DPF_ATTRIBUTE_RATE, AT(rate), parse_rate},
    {"epsilon", DPF_ATTRIBUTE_EPSILON, AT(epsilon), parse_positive},
    {"alpha", DPF_ATTRIBUTE_ALPHA, AT(alpha), parse_positive},
    {"beta", DPF_ATTRIBUTE_BETA, AT(beta), parse_positive},
    {"base", DPF_ATTRIBUTE_BASE, AT(base), parse_positive},
    {"sigma", DPF_ATTRIBUTE_SIGMA, AT(sigma), parse_deviation},
    {"shape", DPF_ATTRIBUTE_SHAPE, AT(shape), parse_shape},
    {"visible", DPF_ATTRIBUTE_VISIBLE, AT(visible), parse_present},
    {"degree", DPF_ATTRIBUTE_DEGREE, AT(degree), parse_degree},
    {"scale", DPF_ATTRIBUTE_SCALE, AT(scale), parse_positive},
    {"function", DPF_ATTRIBUTE_FUNCTION, AT(function), parse_function},
    {"expansion", DPF_ATTRIBUTE_EXPANSION, AT(expansion), parse_expansion},
    {"from", DPF_ATTRIBUTE_FROM, AT(first), parse_place},
    {"count", DPF_ATTRIBUTE_COUNT, AT(count), parse_whole},
    {NULL, 0, 0, NULL},
};

void dpf_attributes_default(struct dpf_node *n)
{
    for (int d = 0; d < 3; d++)
        n->kernel[d] = 1;
    n->bias = true;
    n->window = 5;
    n->base = 1;
    n->alpha = 1e-4;
    n->beta = 0.75;
    n->epsilon = 1e-5;
    n->scale = 1;
    n->degree = 7;
    n->function = DPF_FIND(dpf_functions, "sigmoid");
    n->expansion = DPF_FIND(dpf_expansion_choices, "chebyshev");
}

bool dpf_attribute_set(struct dpf_node *n, const char *key, const char *value,
                       unsigned *given)
{
    size_t i = DPF_INDEX(attributes, key);
    if (!attributes[i].name || *given & attributes[i].bit)
        return false;
    *given |= attributes[i].bit;
    return attributes[i].parse(value, (char *)n + attributes[i].at);
}
