/* A network as a graph of named nodes, written as text:
 *
 *     # a comment
 *     input  x  1x28x28
 *     c1 = conv x  out=32 kernel=5 pad=2
 *     r1 = relu c1
 *     p1 = max-pool r1  kernel=2
 *     f  = flatten p1
 *     y  = dense f  out=10
 *     output y
 *
 * A line makes one node from nodes above it, so there are no cycles; a node may be read
 * by several (skip connections) and may read two (concat, conditions). Shapes are of one
 * record and are worked out while parsing, so what does not fit is said with its line,
 * the nodes and their shapes. The text is what a model frame stores, and reading it again
 * gives the same graph. The operations are rows of nn/ops/. */
#ifndef DPF_NN_MODEL_H
#define DPF_NN_MODEL_H

#include "base/status.h"
#include "kernels/expansion.h"
#include "tensor/tensor.h"

struct dpf_op; /* nn/ops/op.h */

enum { DPF_NODE_INPUTS = 2, DPF_NODE_PARAMETERS = 5, DPF_MODEL_MAX_NODES = 1024 };
/* Numbers of the parameters that weigh a node's conditions (nn/ops/visible.h). */
enum { DPF_CONDITION = 3, DPF_VISIBLE_CONDITION = 4 };

struct dpf_node {
    char name[48];
    const struct dpf_op *op;
    int line;
    size_t inputs[DPF_NODE_INPUTS];
    int input_count;
    struct dpf_shape shape; /* of the result, one record */
    bool bits;              /* an input of packed bits */

    /* attributes (nn/ops/attributes.h) */
    int64_t out, groups, window, factor;
    int64_t kernel[3], stride[3], pad[3]; /* depth, height, width; stride 0: not given */
    bool bias, visible;
    double rate, epsilon, alpha, beta, base, sigma, scale;
    int64_t degree;
    int64_t first, count;                         /* of a slice */
    const struct dpf_function *function;          /* that a polynomial is near */
    const struct dpf_expansion_choice *expansion; /* and how */
    double coefficients[DPF_EXPANSION_MOST + 1];

    /* Weights first, then bias, then visible bias, then the weights of conditions in both
     * biases; or scale, then shift. */
    struct dpf_shape parameters[DPF_NODE_PARAMETERS];
    int parameter_count;
    size_t offset[DPF_NODE_PARAMETERS]; /* where they stand among all of the model's */
};

struct dpf_model {
    char *text;
    struct dpf_node *nodes; /* in the order of the text; the first is the input */
    size_t count, capacity;
    size_t output;
    size_t span; /* numbers in a vector of all parameters, gaps for alignment included */
};

/* Parse `text` (`name` is for messages: "NAME:LINE: what"). What is wrong is DPF_USAGE.
 * Release after success only. */
enum dpf_status dpf_model_parse(struct dpf_model *m, const char *text, size_t size,
                                const char *name, struct dpf_error *e);
void dpf_model_release(struct dpf_model *m);
/* A node by its name, or NULL. */
const struct dpf_node *dpf_model_find(const struct dpf_model *m, const char *name);
/* Numbers that training adjusts. */
uint64_t dpf_model_parameter_count(const struct dpf_model *m);

/* Nodes with parameters: what '--clip layer' clips one by one. */
size_t dpf_model_layers(const struct dpf_model *m);

/* The text of a named architecture (abadi-mnist, adlm-mnist, ...), or NULL. */
const char *dpf_architecture(const char *name);
/* Their names, ended by NULL. */
extern const char *const dpf_architecture_names[];

#endif
