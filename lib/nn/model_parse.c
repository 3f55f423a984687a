#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "nn/model.h"
#include "options/options.h"

#include "base/banned.h"

/* The attributes of a node, as bits, so that an operation can say which it has. */
enum attribute {
    OUT = 1 << 0,
    KERNEL = 1 << 1,
    STRIDE = 1 << 2,
    PAD = 1 << 3,
    BIAS = 1 << 4,
    GROUPS = 1 << 5,
    WINDOW = 1 << 6,
    FACTOR = 1 << 7,
    RATE = 1 << 8,
    EPSILON = 1 << 9,
    ALPHA = 1 << 10,
    BETA = 1 << 11,
    BASE = 1 << 12,
};

static const struct {
    const char *name;
    enum dpf_op op;
    int inputs;
    unsigned needs, may; /* attributes */
} ops[] = {
    {"dense", DPF_OP_DENSE, 1, OUT, BIAS},
    {"conv", DPF_OP_CONV, 1, OUT | KERNEL, STRIDE | PAD | BIAS},
    {"conv-transpose", DPF_OP_CONV_TRANSPOSE, 1, OUT | KERNEL, STRIDE | PAD | BIAS},
    {"max-pool", DPF_OP_MAX_POOL, 1, KERNEL, STRIDE | PAD},
    {"average-pool", DPF_OP_AVERAGE_POOL, 1, KERNEL, STRIDE | PAD},
    {"relu", DPF_OP_RELU, 1, 0, 0},
    {"sigmoid", DPF_OP_SIGMOID, 1, 0, 0},
    {"tanh", DPF_OP_TANH, 1, 0, 0},
    {"cap", DPF_OP_CAP, 1, 0, 0},
    {"softmax", DPF_OP_SOFTMAX, 1, 0, 0},
    {"lrn", DPF_OP_LRN, 1, 0, WINDOW | BASE | ALPHA | BETA},
    {"min-max", DPF_OP_MIN_MAX, 1, 0, 0},
    {"group-norm", DPF_OP_GROUP_NORM, 1, GROUPS, EPSILON},
    {"dropout", DPF_OP_DROPOUT, 1, RATE, 0},
    {"flatten", DPF_OP_FLATTEN, 1, 0, 0},
    {"concat", DPF_OP_CONCAT, 2, 0, 0},
    {"upsample", DPF_OP_UPSAMPLE, 1, FACTOR, 0},
    {"ball", DPF_OP_BALL, 1, 0, 0},
    {NULL},
};
enum { OPS = sizeof ops / sizeof *ops - 1 };

const char *dpf_op_name(enum dpf_op op)
{
    for (size_t i = 0; i < OPS; i++)
        if (ops[i].op == op)
            return ops[i].name;
    return "input";
}

struct parser {
    struct dpf_model *m;
    const char *name;
    int line;
    bool has_output;
    struct dpf_error *e;
};

static enum dpf_status wrong(struct parser *p, const char *what, const char *subject)
{
    return dpf_fail(p->e, DPF_USAGE, "%s:%d: %s '%s'", p->name, p->line, what, subject);
}

const struct dpf_node *dpf_model_find(const struct dpf_model *m, const char *name)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->nodes[i].name, name) == 0)
            return &m->nodes[i];
    return NULL;
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

static bool parse_whole(const char *text, int64_t *out)
{
    return dpf_parse_int(text, out) && *out >= 1 && *out <= 1 << 30;
}

static bool set_attribute(struct dpf_node *n, const char *key, const char *value,
                          unsigned *given)
{
    static const struct {
        const char *name;
        enum attribute bit;
    } names[] = {{"out", OUT},         {"kernel", KERNEL}, {"stride", STRIDE},
                 {"pad", PAD},         {"bias", BIAS},     {"groups", GROUPS},
                 {"window", WINDOW},   {"factor", FACTOR}, {"rate", RATE},
                 {"epsilon", EPSILON}, {"alpha", ALPHA},   {"beta", BETA},
                 {"base", BASE}};
    unsigned bit = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, key) == 0)
            bit = names[i].bit;
    if (!bit || *given & bit)
        return false;
    *given |= bit;
    int64_t flag = 0;
    switch (bit) {
    case OUT:
        return parse_whole(value, &n->out);
    case KERNEL:
        return parse_sizes(value, 1, 1, n->kernel);
    case STRIDE:
        return parse_sizes(value, 1, 1, n->stride);
    case PAD:
        return parse_sizes(value, 0, 0, n->pad);
    case BIAS:
        n->bias = false;
        return dpf_parse_int(value, &flag) && flag == 0;
    case GROUPS:
        return parse_whole(value, &n->groups);
    case WINDOW:
        return parse_whole(value, &n->window) && n->window <= 4096;
    case FACTOR:
        return parse_whole(value, &n->factor);
    case RATE:
        return dpf_parse_real(value, &n->rate) && n->rate >= 0 && n->rate < 1;
    case EPSILON:
        return dpf_parse_real(value, &n->epsilon) && n->epsilon > 0;
    case ALPHA:
        return dpf_parse_real(value, &n->alpha) && n->alpha > 0;
    case BETA:
        return dpf_parse_real(value, &n->beta) && n->beta > 0;
    default:
        return dpf_parse_real(value, &n->base) && n->base > 0;
    }
}

static struct dpf_node *add_node(struct parser *p, const char *name)
{
    struct dpf_model *m = p->m;
    bool plain = *name && strlen(name) < sizeof m->nodes->name;
    for (const char *c = name; *c; c++)
        plain = plain && (*c == '-' || *c == '_' || (*c >= '0' && *c <= '9') ||
                          (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z'));
    if (!plain) {
        wrong(p, "this cannot name a node:", name);
        return NULL;
    }
    if (dpf_model_find(m, name)) {
        wrong(p, "there is a node of this name already:", name);
        return NULL;
    }
    if (m->count == DPF_MODEL_MAX_NODES ||
        !dpf_grow(&m->nodes, &m->capacity, m->count + 1, sizeof *m->nodes)) {
        dpf_fail(p->e, DPF_USAGE, "%s:%d: too many nodes", p->name, p->line);
        return NULL;
    }
    struct dpf_node *n = &m->nodes[m->count++];
    *n = (struct dpf_node){.line = p->line,
                           .stride = {1, 1, 1},
                           .kernel = {1, 1, 1},
                           .bias = true,
                           .window = 5,
                           .base = 1,
                           .alpha = 1e-4,
                           .beta = 0.75,
                           .epsilon = 1e-5};
    snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

/* input NAME SHAPE [bits] */
static enum dpf_status take_input(struct parser *p, char **words, size_t count)
{
    if (p->m->count)
        return wrong(p, "a second input:", count > 1 ? words[1] : "");
    if (count < 3 || count > 4 || (count == 4 && strcmp(words[3], "bits") != 0))
        return wrong(p, "an input is written 'input NAME SHAPE [bits]', not", words[0]);
    struct dpf_node *n = add_node(p, words[1]);
    if (!n)
        return p->e ? p->e->status : DPF_USAGE;
    n->op = DPF_OP_INPUT;
    n->bits = count == 4;
    char *at = words[2];
    for (char *word; (word = strsep(&at, "x"));) {
        uint64_t d;
        if (n->shape.rank == 4 || !dpf_parse_uint(word, &d) || d < 1 || d > 1 << 30)
            return wrong(p, "this is no shape of 1 to 4 numbers:", words[1]);
        n->shape.dim[n->shape.rank++] = d;
    }
    size_t bytes;
    if (n->bits && n->shape.rank != 1)
        return wrong(p, "packed bits have one dimension:", n->name);
    if (n->shape.rank == 2)
        return wrong(p,
                     "an input is a vector, a picture CxHxW or a volume CxDxHxW, not "
                     "two-dimensional:",
                     n->name);
    if (!dpf_shape_bytes(n->bits ? DPF_BITS : DPF_F32, &n->shape, &bytes))
        return wrong(p, "larger than 2^32-1 bytes:", n->name);
    return DPF_OK;
}

/* The words behind the operation: nodes that are read, then key=value. */
static enum dpf_status take_operands(struct parser *p, struct dpf_node *n, char **words,
                                     size_t count, int inputs, unsigned *given)
{
    for (size_t i = 0; i < count; i++) {
        char *equals = strchr(words[i], '=');
        if (equals) {
            *equals = '\0';
            if (!set_attribute(n, words[i], equals + 1, given)) {
                *equals = '=';
                return wrong(p, "unknown, doubled or impossible attribute", words[i]);
            }
            *equals = '=';
            continue;
        }
        const struct dpf_node *from = dpf_model_find(p->m, words[i]);
        if (!from || from == n)
            return wrong(p, "no node above this line is called", words[i]);
        if (n->input_count == inputs)
            return wrong(p, "one input too many:", words[i]);
        n->inputs[n->input_count++] = (size_t)(from - p->m->nodes);
    }
    return DPF_OK;
}

/* NAME = OP NODE... [key=value...] */
static enum dpf_status take_node(struct parser *p, char **words, size_t count)
{
    if (count < 3 || strcmp(words[1], "=") != 0)
        return wrong(p, "a line is 'NAME = OPERATION ...', 'input' or 'output', not",
                     words[0]);
    if (!p->m->count)
        return wrong(p, "the input has to come before", words[0]);
    size_t o = 0;
    while (o < OPS && strcmp(ops[o].name, words[2]) != 0)
        o++;
    if (strcmp(words[2], "batch-norm") == 0)
        return wrong(p,
                     "it mixes the examples of a batch, so that none has a gradient of "
                     "its own to clip; use 'group-norm' instead of",
                     words[2]);
    if (o == OPS) {
        const char *near = DPF_NEAREST(ops, words[2]);
        return near ? dpf_fail(p->e, DPF_USAGE,
                               "%s:%d: unknown operation '%s' (did you mean '%s'?)",
                               p->name, p->line, words[2], near)
                    : wrong(p, "unknown operation", words[2]);
    }
    struct dpf_node *n = add_node(p, words[0]);
    if (!n)
        return DPF_USAGE;
    n->op = ops[o].op;
    unsigned given = 0;
    enum dpf_status status =
        take_operands(p, n, words + 3, count - 3, ops[o].inputs, &given);
    if (status != DPF_OK)
        return status;
    if (n->input_count < ops[o].inputs)
        return wrong(p, "an input is missing:", n->name);
    if ((given & ops[o].needs) != ops[o].needs ||
        (given & ~(ops[o].needs | ops[o].may)) != 0)
        return wrong(p, "an attribute is missing, or does not belong to this operation:",
                     words[2]);
    if (!(given & STRIDE) && (n->op == DPF_OP_MAX_POOL || n->op == DPF_OP_AVERAGE_POOL))
        memcpy(n->stride, n->kernel, sizeof n->stride); /* windows side by side */
    char where[160];
    snprintf(where, sizeof where, "%s:%d", p->name, p->line);
    return dpf_node_infer(n, p->m->nodes, where, p->e);
}

static enum dpf_status take_line(struct parser *p, char *line)
{
    enum { MOST = 32 };
    char *words[MOST];
    size_t count = 0;
    line[strcspn(line, "#")] = '\0';
    for (char *word; (word = strsep(&line, " \t\r"));) {
        if (!*word)
            continue;
        if (count == MOST)
            return wrong(p, "too many words after", words[0]);
        words[count++] = word;
    }
    if (count == 0)
        return DPF_OK;
    if (p->has_output)
        return wrong(p, "nothing can follow the output:", words[0]);
    if (strcmp(words[0], "input") == 0)
        return take_input(p, words, count);
    if (strcmp(words[0], "output") != 0)
        return take_node(p, words, count);
    const struct dpf_node *n = count == 2 ? dpf_model_find(p->m, words[1]) : NULL;
    if (!n)
        return wrong(p,
                     "the output is no node above this line:", count > 1 ? words[1] : "");
    p->m->output = (size_t)(n - p->m->nodes);
    p->has_output = true;
    return DPF_OK;
}

/* One behind the other, each at a multiple of a cache line. */
static void place_parameters(struct dpf_model *m)
{
    enum { LINE = 16 };
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; k < m->nodes[i].parameter_count; k++) {
            m->nodes[i].offset[k] = m->span;
            m->span +=
                (dpf_shape_elements(&m->nodes[i].parameters[k]) + LINE - 1) / LINE * LINE;
        }
}

enum dpf_status dpf_model_parse(struct dpf_model *m, const char *text, size_t size,
                                const char *name, struct dpf_error *e)
{
    struct parser p = {.m = m, .name = name, .e = e};
    *m = (struct dpf_model){.text = dpf_strndup(text, size)};
    char *copy = dpf_strndup(text, size), *rest = copy;
    enum dpf_status status = m->text && copy ? DPF_OK : dpf_fail_memory(e);
    if (status == DPF_OK && memchr(text, '\0', size))
        status = dpf_fail(e, DPF_USAGE, "%s: the text holds a NUL", name);
    for (char *line; status == DPF_OK && (line = strsep(&rest, "\n"));) {
        p.line++;
        status = take_line(&p, line);
    }
    if (status == DPF_OK && !p.has_output)
        status = dpf_fail(e, DPF_USAGE, "%s: the text names no output", name);
    if (status == DPF_OK)
        place_parameters(m);
    free(copy);
    if (status != DPF_OK)
        dpf_model_release(m);
    return status;
}

void dpf_model_release(struct dpf_model *m)
{
    free(m->text);
    free(m->nodes);
    *m = (struct dpf_model){0};
}

uint64_t dpf_model_parameter_count(const struct dpf_model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; k < m->nodes[i].parameter_count; k++)
            sum += dpf_shape_elements(&m->nodes[i].parameters[k]);
    return sum;
}
