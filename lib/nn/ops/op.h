/* An operation of a network: all that is known about it, in one row and one file.
 *
 * The parser, shapes, forward, backward, per-example clipping, relevance and first
 * weights know no operation by name; they go through the row. What a row leaves out is
 * refused when a network that uses it is parsed (dpf_op_check), so an operation whose
 * gradients nobody clips cannot reach a private training. ops/table.c lists the rows. */
#ifndef DPF_NN_OPS_OP_H
#define DPF_NN_OPS_OP_H

#include "nn/network.h"
#include "nn/ops/attributes.h"

struct dpf_relevance;

/* A node at work on n examples, as its operation sees it. Values and gradients are memory
 * of the backend, channels last. */
struct dpf_node_run {
    const struct dpf_kernels *k;
    struct dpf_context *c;
    struct dpf_network *net;
    size_t i;  /* number of the node */
    int which; /* of its inputs, if it has several */
    int64_t n;
    const struct dpf_node *node, *from; /* the node, and the input in hand */
    struct dpf_layer *own;
    const float *x; /* the input's value */
    float *y;       /* the node's value */
    float *dy;      /* the gradient of its value, or its relevance */
    bool training;
};

struct dpf_node_run dpf_node_run_of(struct dpf_network *net, size_t i, int which,
                                    int64_t n);
/* Parameter k of the node, and the sum of its gradients; NULL if it has no such one. */
const float *dpf_run_parameter(const struct dpf_node_run *r, int k);
float *dpf_run_gradient(const struct dpf_node_run *r, int k);
/* Number of the parameter that the input in hand is weighed with. */
int dpf_run_weights(const struct dpf_node_run *r);
/* Numbers in a record of the node's value and of its input's; its channels. */
int64_t dpf_run_record(const struct dpf_node_run *r);
int64_t dpf_run_input(const struct dpf_node_run *r);
int64_t dpf_run_channels(const struct dpf_node_run *r);

/* Whether an operation may overwrite its input's memory, if nobody else reads it. */
enum dpf_in_place {
    DPF_OWN_MEMORY,
    DPF_IN_PLACE,         /* always */
    DPF_IN_PLACE_IF_FLAT, /* if records have one channel or one position, so that their
                           * order in memory is the same both ways */
};

/* What is known of the sign of a node's values, whatever the network reads. */
enum dpf_sign {
    DPF_SIGN_ANY,
    DPF_SIGN_NOT_NEGATIVE,
    DPF_SIGN_OF_INPUTS, /* not negative if its inputs are not */
};

/* Memory of a layer between the norms of its examples' gradients and their sum. */
struct dpf_example_room {
    int64_t kept; /* numbers: gradients of the weights of all examples */
    int64_t sums; /* numbers: gradients of what is small (biases, scales, shifts) */
};

/* An operation with parameters.
 *
 * Claim. example_norms() adds to net->squares[e] the squared norm of example e's gradient
 * of all parameters of the node, never less than the true one of the numbers that
 * add_clipped() then adds, each times net->factors[e], to the sums of gradients.
 * nn/network.h builds on it; each operation's file says why it holds. */
struct dpf_op_parameters {
    /* Add the gradients of all examples, as they are. */
    void (*gradients)(const struct dpf_node_run *r);
    struct dpf_example_room (*room)(const struct dpf_node_run *r); /* for r->n examples */
    void (*example_norms)(const struct dpf_node_run *r);
    void (*add_clipped)(const struct dpf_node_run *r);
    /* How many inputs an output adds up and how many outputs an input reaches: what first
     * weights are drawn by. NULL: they are not drawn but all `start`. */
    void (*fans)(const struct dpf_node *n, double *in, double *out);
    float start;
};

/* An operation whose results are weighted sums of what it reads, for relevance. */
struct dpf_op_linear {
    /* y = x w without the bias, and x = s w', the same sums backwards; for any x and w of
     * the shapes of the input in hand and its weights. Packed bits come as numbers. */
    void (*sums)(const struct dpf_node_run *r, const float *x, const float *w, float *y);
    void (*back)(const struct dpf_node_run *r, const float *s, const float *w, float *x);
    /* Share s times the bias out in equal parts to the values that each result is made
     * of; x grows. */
    void (*spread_bias)(struct dpf_relevance *rel, const struct dpf_node_run *r,
                        const float *s, const float *bias, float *x);
};

struct dpf_op {
    const char *name;    /* as it stands in a network's text */
    int inputs, more;    /* that it reads, and that it may read besides */
    unsigned needs, may; /* attributes, DPF_ATTRIBUTE_* */
    bool reads_bits;     /* packed bits may be its input */
    enum dpf_in_place in_place;
    bool keeps_value;             /* backward reads the value that it made */
    const struct dpf_op *absorbs; /* does this one at once, if it follows in place and
                                   * there is but one input */
    size_t place_bytes; /* kept for each value from forward to backward (layer->places) */
    enum dpf_sign sign;
    /* Shape and parameters from the inputs' shapes. What does not fit is DPF_USAGE. */
    enum dpf_status (*shape)(struct dpf_node *n, const struct dpf_node *const *from,
                             const char *where, struct dpf_error *e);
    void (*forward)(const struct dpf_node_run *r);
    /* The gradient of the input in hand, from r->dy. */
    void (*backward)(const struct dpf_node_run *r, float *dx);
    const struct dpf_op_parameters *parameters; /* NULL: it has none */
    /* The relevance of the input in hand, from r->dy (nn/relevance.h). */
    void (*relevance)(struct dpf_relevance *rel, const struct dpf_node_run *r, float *x);
    const struct dpf_op_linear *linear; /* NULL: it is not linear */
};

/* All operations, ended by NULL. */
extern const struct dpf_op *const dpf_ops[];
/* An operation by name, or NULL; and the name that was probably meant. */
const struct dpf_op *dpf_op_find(const char *name);
const char *dpf_op_nearest(const char *name);
/* DPF_USAGE names what the row lacks for a node with or without parameters. */
enum dpf_status dpf_op_check(const struct dpf_op *op, bool has_parameters,
                             struct dpf_error *e);

/* What several operations share. */

/* The shape of the only input. */
enum dpf_status dpf_shape_same(struct dpf_node *n, const struct dpf_node *const *from,
                               const char *where, struct dpf_error *e);
/* Relevance value by value: a factor that is taken for a constant. */
void dpf_relevance_pass(struct dpf_relevance *rel, const struct dpf_node_run *r,
                        float *x);
/* Relevance of weighted sums, by the rule in hand. */
void dpf_relevance_linear(struct dpf_relevance *rel, const struct dpf_node_run *r,
                          float *x);
/* Refuse an input: "WHERE: 'NODE' (OP) cannot read 'INPUT' of shape ...: WHAT". */
enum dpf_status dpf_shape_misfit(const struct dpf_node *n, const struct dpf_node *from,
                                 const char *where, const char *what,
                                 struct dpf_error *e);
/* Channels, height and width, with or without depth. */
bool dpf_shape_is_spatial(const struct dpf_shape *s);
struct dpf_shape dpf_shape_with_space(const struct dpf_shape *like, int64_t channels,
                                      const int64_t size[DPF_SPACE]);

/* Those that are asked for by what they are. */
extern const struct dpf_op dpf_op_input, dpf_op_dense, dpf_op_conv, dpf_op_conv_transpose,
    dpf_op_max_pool, dpf_op_average_pool, dpf_op_relu, dpf_op_flatten, dpf_op_group_norm;

#endif
