/* Many networks over one vector of parameters: each thread runs its own on microbatches
 * that fit in its caches, and their gradients are added at the end of a lot.
 *
 * Plain gradients are dealt out by position, not by who is free, so the same number of
 * threads gives the same bits. Clipped ones are cut into parts by the examples' keys and
 * added as integers (privacy/lot_sum.h): any number of threads gives the same bits, and
 * the sensitivity of the sums is proven. */
#ifndef DPF_NN_ENGINE_H
#define DPF_NN_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/parallel.h"
#include "nn/dataset.h"
#include "nn/energy.h"
#include "nn/network.h"
#include "nn/optimiser.h"
#include "nn/reduction.h"
#include "nn/row_probe.h"
#include "privacy/gaussian.h"
#include "privacy/lot_sum.h"

struct dpf_engine;
struct dpf_lot_result;

/* One thread of an engine. */
struct dpf_worker {
    struct dpf_engine *engine;
    int number;
    struct dpf_context *context;
    struct dpf_network net;
    void *x;                       /* a microbatch's inputs, on the host */
    uint32_t *rows;                /* and which examples they are */
    uint64_t *keys;                /* and their keys */
    void *host_targets, *targets;  /* labels or values of a microbatch: here, and on the
                                    * backend */
    size_t targets_capacity;       /* how many */
    float *d;                      /* gradients of outputs that nobody needs, there */
    struct dpf_energy_room energy; /* of an energy model; else empty */
    double *losses, *host_losses;  /* an example's loss: there, and here */
    int32_t *correct, *host_correct;
    bool apart; /* what its probe says: examples do not change each other's bits */
    double loss_sum;
    int64_t correct_sum, clipped;
    struct dpf_random random; /* of its part of the noise */
    struct dpf_error error;
};

typedef void dpf_worker_job(struct dpf_worker *w, void *context);

enum { DPF_ENGINE_LOCKS = 8 };

struct dpf_engine {
    const struct dpf_model *model;
    const struct dpf_kernels *kernels;
    const struct dpf_reduction *reduction; /* borrowed, or NULL: alone */
    int threads;
    int64_t microbatch;
    float *parameters; /* [model->span], on the backend */
    struct dpf_worker *workers;
    struct dpf_thread_pool pool; /* their threads; the first is the caller's own */
    uint64_t *keys;              /* of a lot that brought none */
    size_t keys_capacity;
    bool apart;    /* what all probes say; else examples are computed one at a time */
    int64_t *sums; /* [model->span]: clipped gradients of all workers, on the backend */
    pthread_mutex_t sum_locks[DPF_ENGINE_LOCKS]; /* each of a share of the sums */
    struct dpf_lot_parts parts;                  /* of the lot in hand */
    struct dpf_lot_result *part_results;
    size_t part_results_capacity;
    atomic_size_t next_part; /* that nobody has taken yet */
    double sum_step;         /* of the integers; 0: they hold nothing */
    int64_t summed;          /* examples that the integers may hold */
    bool plain;              /* the workers' floats hold gradients that are not clipped */
    bool failed;             /* an update ended half-way: nothing may follow */
};

struct dpf_engine_setup {
    const struct dpf_model *model;         /* borrowed */
    const struct dpf_kernels *kernels;     /* borrowed */
    int device;                            /* of the backend */
    const struct dpf_reduction *reduction; /* borrowed, or NULL: alone */
    int threads;                           /* 0: as many as there are processors for us */
    int64_t microbatch;                    /* 0: what is fast on the device */
    bool training, clipping, every_value, relevance;
};

enum dpf_status dpf_engine_init(struct dpf_engine *g,
                                const struct dpf_engine_setup *setup,
                                struct dpf_error *e);
void dpf_engine_release(struct dpf_engine *g);

/* Parameters from and to host memory, [model->span]. */
void dpf_engine_put(struct dpf_engine *g, const float *parameters);
void dpf_engine_get(struct dpf_engine *g, float *parameters);

/* One lot: which examples, and what to do with them. */
struct dpf_lot {
    const struct dpf_dataset *data;
    const uint32_t *rows;
    int64_t count;
    const struct dpf_loss *loss;
    struct dpf_energy *energy; /* learn this in place of a loss; its chains move on */
    enum dpf_clip_rule rule;
    double clip_l2;
    int64_t expected;     /* clipping: the public size of a lot, by which it is cut */
    const uint64_t *keys; /* drawn for each example: what it drops, which part it is in;
                           * NULL: made from seed, step and place */
    uint64_t seed, step;
};

struct dpf_lot_result {
    double loss;     /* sum over the examples */
    int64_t correct; /* positions whose largest score is the label's */
    int64_t clipped;
};

/* Inside: let every worker do a job. */
enum dpf_status dpf_engine_run(struct dpf_engine *g, dpf_worker_job *job, void *context,
                               struct dpf_error *e);
/* A worker's part of `count` examples, and how many it takes at a time. */
struct dpf_part {
    int64_t from, to, piece;
};
struct dpf_part dpf_worker_part(const struct dpf_worker *w, int64_t count);
/* The forward of n examples of a lot, from number `first` on; of those in w->rows with
 * the keys in w->keys. */
void dpf_worker_forward(struct dpf_worker *w, const struct dpf_lot *lot, int64_t first,
                        int64_t n, bool training);
void dpf_worker_forward_chosen(struct dpf_worker *w, const struct dpf_lot *lot,
                               int64_t n);
/* Losses of n examples after their forward: their sum and what is correct to the worker's
 * sums, each into `losses` unless NULL, and the gradient of the outputs to where the
 * backward finds it. */
void dpf_worker_losses(struct dpf_worker *w, const struct dpf_lot *lot,
                       const uint32_t *rows, int64_t n, double *losses);
/* Start the sums; and wait for the device, for w->error. */
void dpf_worker_begin(struct dpf_worker *w);
void dpf_worker_finish(struct dpf_worker *w);
/* The sums of all workers. */
void dpf_engine_add_up(const struct dpf_engine *g, struct dpf_lot_result *result);

/* Add the lot's gradients to the workers' sums. Several lots with one clip norm add up;
 * gradients that are clipped and such that are not are never added to each other, which
 * is DPF_PRIVACY.
 *
 * Claim. With a clip rule, the integers that dpf_engine_sums() gives have the sensitivity
 * of privacy/lot_sum.h: clip_l2 (1 + dpf_lot_sum_margin(span)), times the root of the
 * number of layers for DPF_CLIP_LAYER, if one example is added or removed and the others
 * keep their keys. Proof. nn/network.h bounds each example's term; it is a function of
 * the example and its key, since every operation computes examples apart
 * (kernels/table.inc; nn/row_probe.h tries it); parts are cut by the keys and a public
 * size, pieces of a part by its size. A part has the same sum whoever adds it up: the
 * buffers of all workers are aligned alike, and products of the same size, alignment and
 * numbers give the same bits (this is trusted of oneDNN and OpenBLAS on one thread; tests
 * try it). */
enum dpf_status dpf_engine_gradients(struct dpf_engine *g, const struct dpf_lot *lot,
                                     struct dpf_lot_result *result, struct dpf_error *e);
/* The sums of clipped gradients so far, [model->span], as integers; returns the value of
 * 1. For tests: what a mechanism adds its noise to. */
double dpf_engine_sums(struct dpf_engine *g, int64_t *sums);

/* Noise on the sums of clipped gradients, which are rounded once more, to the grid of the
 * noise: one part in the sense of privacy/gaussian.h. */
struct dpf_lot_noise {
    const struct dpf_gaussian *mechanism; /* made for span values in one part, with a step
                                           * of at least dpf_lot_sum_step() */
    bool insecure;                        /* draw from a seed: no protection */
    uint64_t seed, step;
};

/* One step of the optimiser with the sums divided by `divisor`; the sums are cleared.
 * `noise`, if not NULL, is added to the sums first, after the reduction over ranks. */
enum dpf_status dpf_engine_update(struct dpf_engine *g, struct dpf_optimiser *o,
                                  double divisor, const struct dpf_lot_noise *noise,
                                  struct dpf_error *e);
/* What the network makes of the lot's examples, without learning. Each may be NULL: a
 * node's values, channels first, into host memory; each example's loss; their totals (the
 * last two need targets). */
struct dpf_lot_values {
    size_t node;
    float *values;
    double *losses;
    struct dpf_lot_result *result;
};
enum dpf_status dpf_engine_values(struct dpf_engine *g, const struct dpf_lot *lot,
                                  const struct dpf_lot_values *want, struct dpf_error *e);

#endif
