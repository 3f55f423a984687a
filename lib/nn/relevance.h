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

enum dpf_relevance_rule {
    DPF_RELEVANCE_EPSILON,
    DPF_RELEVANCE_ALPHA_BETA,
    DPF_RELEVANCE_Z_PLUS,
};
extern const char *const dpf_relevance_rules[]; /* their names, ended by NULL */

/* Which outputs' scores are to be explained. */
enum dpf_relevance_from {
    DPF_FROM_TRUE, /* that of the record's class */
    DPF_FROM_TOP,  /* the highest: what the network answers */
    DPF_FROM_ALL,
};
extern const char *const dpf_relevance_origins[];

struct dpf_relevance_plan {
    enum dpf_relevance_rule rule;
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
};

enum dpf_status dpf_relevance_init(struct dpf_relevance *r, struct dpf_network *net,
                                   const struct dpf_relevance_plan *plan,
                                   struct dpf_error *e);
void dpf_relevance_release(struct dpf_relevance *r);
/* From the output's relevance (host memory, channels last) to that of plan.node, read
 * with dpf_network_read_relevance(). After the forward of the same n examples. */
void dpf_relevance_propagate(struct dpf_relevance *r, int64_t n, const float *output);

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
