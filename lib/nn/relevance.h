/* Layer-wise relevance propagation (Bach et al. 2015): how much each value of a network,
 * down to each input, has to do with its output. The output's relevance is handed back
 * layer by layer, each neuron sharing out what it has among those it reads:
 *
 * - epsilon rule (AdLM, Eqs. 4-8): in proportion to z_pm = x_p w_pm, divided by
 *   z_m + mu (z_m >= 0) or z_m - mu, where z_m is their sum and the bias;
 * - alpha-beta: what is positive among the z_pm gets alpha of it, what is negative
 *   -beta = 1 - alpha; z+ is alpha = 1.
 *
 * Sums stay the same from layer to layer (Eq. 9), up to the stabiliser mu and the share
 * of the biases: `spread_bias` gives that share to the inputs in equal parts, else it is
 * lost, as printed. Max-pooling hands everything to the winner, average pooling shares
 * in proportion. What acts value by value (ReLU, LRN, min-max, group normalisation,
 * sigmoid) passes relevance on: its factor counts as a constant, so each result is made
 * of one value. */
#ifndef DPF_NN_RELEVANCE_H
#define DPF_NN_RELEVANCE_H

#include "nn/engine.h"

struct dpf_node_run;
struct dpf_relevance;

/* A rule for weighted sums. */
struct dpf_relevance_rule {
    const char *name;
    bool both_sides; /* tells what speaks for a result from what speaks against it */
    bool has_alpha;
    /* From the relevance of a node's results to that of the `values` it reads. */
    void (*share)(struct dpf_relevance *rel, const struct dpf_node_run *r,
                  const float *values, float *x);
};
extern const struct dpf_relevance_rule dpf_relevance_rules[]; /* ended by one without a
                                                               * name */

/* Which outputs' scores are to be explained. */
enum dpf_relevance_from {
    DPF_FROM_TRUE, /* that of the record's class */
    DPF_FROM_TOP,  /* the highest: what the network answers */
    DPF_FROM_ALL,
};
struct dpf_relevance_origin {
    const char *name;
    enum dpf_relevance_from from;
};
extern const struct dpf_relevance_origin dpf_relevance_origins[];

struct dpf_relevance_plan {
    const struct dpf_relevance_rule *rule;
    enum dpf_relevance_from from;
    double mu, alpha;
    bool spread_bias;
    bool unit;   /* each record onto [0,1] by its own least and greatest; all 0 if none */
    size_t node; /* whose relevance */
};

/* Memory besides a network's own (which has to be set up for relevance). */
struct dpf_relevance {
    struct dpf_relevance_plan plan;
    struct dpf_network *net;
    float *share[2];  /* of a result: to what speaks for it, to what speaks against it */
    float *sum[2];    /* what speaks for it, what speaks against it */
    float *back, *in; /* as large as an input */
    float *weights, *bias, *ones, *places[2];
    unsigned char *bits; /* packed inputs, on the host */
    float *host;         /* as numbers, there */
    float *numbers;      /* and on the backend */
    float *output;       /* a microbatch's outputs and their relevance, on the host */
};

enum dpf_status dpf_relevance_init(struct dpf_relevance *r, struct dpf_network *net,
                                   const struct dpf_relevance_plan *plan,
                                   struct dpf_error *e);
void dpf_relevance_release(struct dpf_relevance *r);
/* From the output's relevance (host memory, channels last) to that of plan.node, read
 * with dpf_network_read_relevance(). After the forward of the same n examples. */
void dpf_relevance_propagate(struct dpf_relevance *r, int64_t n, const float *output);

/* For operations that spread a bias over places (nn/ops/): s times the bias at each place
 * of the result, into places[0]; divided by how many values each is made of, which stands
 * in places[1]; and from places[1] in equal parts to all channels of the input, x grows.
 */
void dpf_relevance_bias_shares(struct dpf_relevance *rel, const struct dpf_node_run *r,
                               const float *s, const float *bias);
void dpf_relevance_divide(struct dpf_relevance *rel, const struct dpf_node_run *r);
void dpf_relevance_to_channels(struct dpf_relevance *rel, const struct dpf_node_run *r,
                               float *x);

/* The same on all threads of an engine. */
struct dpf_engine_relevance {
    struct dpf_engine *engine;
    struct dpf_relevance *workers;
};
enum dpf_status dpf_engine_relevance_init(struct dpf_engine_relevance *r,
                                          struct dpf_engine *g,
                                          const struct dpf_relevance_plan *plan,
                                          struct dpf_error *e);
void dpf_engine_relevance_release(struct dpf_engine_relevance *r);
/* The relevance of a lot's examples at plan.node, channels first, into host memory. */
enum dpf_status dpf_engine_relevance(struct dpf_engine_relevance *r,
                                     const struct dpf_lot *lot, float *out,
                                     struct dpf_error *e);

#endif
