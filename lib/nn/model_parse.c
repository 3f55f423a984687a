#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "nn/ops/attributes.h"
#include "nn/ops/op.h"

#include "base/banned.h"

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
    *n = (struct dpf_node){.line = p->line};
    dpf_attributes_default(n);
    snprintf(n->name, sizeof n->name, "%s", name);
    return n;
}

/* input NAME SHAPE [bits] */
static enum dpf_status take_input(struct parser *p, char **words, size_t count)
{
    if (p->m->count)
        return wrong(p, "there is a second input:", count > 1 ? words[1] : "");
    if (count < 3 || count > 4 || (count == 4 && strcmp(words[3], "bits") != 0))
        return wrong(p, "an input is written 'input NAME SHAPE [bits]', not", words[0]);
    struct dpf_node *n = add_node(p, words[1]);
    if (!n)
        return p->e ? p->e->status : DPF_USAGE;
    n->op = &dpf_op_input;
    n->bits = count == 4;
    if (!dpf_parse_dimensions(words[2], &n->shape))
        return wrong(p, "this is no shape of 1 to 4 numbers:", words[1]);
    size_t bytes;
    if (n->bits && n->shape.rank != 1)
        return wrong(p, "packed bits have one dimension:", n->name);
    if (n->shape.rank == 2)
        return wrong(p,
                     "an input is a vector, a picture CxHxW or a volume CxDxHxW, not "
                     "two-dimensional:",
                     n->name);
    if (!dpf_shape_bytes(n->bits ? DPF_BITS : DPF_F32, &n->shape, &bytes))
        return wrong(p, "this is larger than 2^32-1 bytes:", n->name);
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
            if (!dpf_attribute_set(n, words[i], equals + 1, given)) {
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
            return wrong(p, "too many inputs:", words[i]);
        n->inputs[n->input_count++] = (size_t)(from - p->m->nodes);
    }
    return DPF_OK;
}

static enum dpf_status unknown_operation(struct parser *p, const char *name)
{
    const char *near = dpf_op_nearest(name);
    if (strcmp(name, "batch-norm") == 0)
        return wrong(p,
                     "it mixes the examples of a batch, so that none has a gradient of "
                     "its own to clip; use 'group-norm' instead of",
                     name);
    return near ? dpf_fail(p->e, DPF_USAGE,
                           "%s:%d: unknown operation '%s' (did you mean '%s'?)", p->name,
                           p->line, name, near)
                : wrong(p, "unknown operation", name);
}

/* Shape and parameters of a node, from its inputs'. */
static enum dpf_status infer_shape(struct parser *p, struct dpf_node *n)
{
    const struct dpf_node *from[DPF_NODE_INPUTS] = {0};
    char where[160];
    size_t bytes;
    snprintf(where, sizeof where, "%s:%d", p->name, p->line);
    for (int i = 0; i < n->input_count; i++) {
        from[i] = &p->m->nodes[n->inputs[i]];
        if (from[i]->bits && !n->op->reads_bits)
            return dpf_shape_misfit(n, from[i], where, "packed bits are for 'dense' only",
                                    p->e);
    }
    enum dpf_status status = n->op->shape(n, from, where, p->e);
    if (status != DPF_OK)
        return status;
    bool fits = dpf_shape_bytes(DPF_F32, &n->shape, &bytes);
    for (int i = 0; i < n->parameter_count; i++)
        fits = fits && dpf_shape_bytes(DPF_F32, &n->parameters[i], &bytes);
    return fits ? DPF_OK
                : dpf_fail(p->e, DPF_USAGE, "%s: '%s' would be larger than 2^32-1 bytes",
                           where, n->name);
}

/* NAME = OP NODE... [key=value...] */
static enum dpf_status take_node(struct parser *p, char **words, size_t count)
{
    if (count < 3 || strcmp(words[1], "=") != 0)
        return wrong(p, "a line is 'NAME = OPERATION ...', 'input' or 'output', not",
                     words[0]);
    if (!p->m->count)
        return wrong(p, "the input has to come before", words[0]);
    const struct dpf_op *op = dpf_op_find(words[2]);
    if (!op)
        return unknown_operation(p, words[2]);
    struct dpf_node *n = add_node(p, words[0]);
    if (!n)
        return DPF_USAGE;
    n->op = op;
    unsigned given = 0;
    enum dpf_status status =
        take_operands(p, n, words + 3, count - 3, op->inputs + op->more, &given);
    if (status != DPF_OK)
        return status;
    if (n->input_count < op->inputs)
        return wrong(p, "an input is missing:", n->name);
    if ((given & op->needs) != op->needs || (given & ~(op->needs | op->may)) != 0)
        return wrong(p, "an attribute is missing, or does not belong to this operation:",
                     words[2]);
    status = op->shape ? infer_shape(p, n) : DPF_OK;
    /* an operation that is not complete is not for use */
    return status == DPF_OK ? dpf_op_check(op, n->parameter_count > 0, p->e) : status;
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

size_t dpf_model_layers(const struct dpf_model *m)
{
    size_t layers = 0;
    for (size_t i = 0; i < m->count; i++)
        layers += m->nodes[i].parameter_count > 0;
    return layers;
}

uint64_t dpf_model_parameter_count(const struct dpf_model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->count; i++)
        for (int k = 0; k < m->nodes[i].parameter_count; k++)
            sum += dpf_shape_elements(&m->nodes[i].parameters[k]);
    return sum;
}
