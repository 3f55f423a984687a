/* Training: epochs of lots over examples in memory, validation, early stopping, and a
 * state that can be put aside at any step and taken up again to the same bits.
 *
 * Everything that is drawn (order, lots, dropout) is a function of the seed and of the
 * number of the epoch or step, never of a generator's state: that is what makes a resumed
 * run equal an undisturbed one. */
#ifndef DPF_NN_TRAINING_H
#define DPF_NN_TRAINING_H

#include "nn/engine.h"
#include "wire/decode.h"
#include "wire/encode.h"

enum dpf_sampling {
    DPF_SAMPLE_SHUFFLE,  /* every example once an epoch, in a new order */
    DPF_SAMPLE_POISSON,  /* each example in each lot with probability lot / examples */
    DPF_SAMPLE_SEQUENCE, /* in the order of the stream, the same every epoch */
};

struct dpf_sampling_choice {
    const char *name;
    enum dpf_sampling sampling;
};
const char *dpf_sampling_name(enum dpf_sampling sampling);
extern const struct dpf_sampling_choice dpf_sampling_choices[]; /* ended by one without a
                                                                 * name */

/* DP-SGD (Abadi et al. 2016): each example's gradient clipped, Gaussian noise on the sum
 * of a lot, the sum divided by a public number. Multiplier and clip norm go linearly from
 * their first to their final value, from epoch to epoch.
 *
 * Claim. With clip norm C (C sqrt(L) for L layers clipped each to C), the sum over a lot,
 * as the integers that it is computed in, has L2 sensitivity C' = C (1 + margin) when one
 * example is added or removed (nn/engine.h; margin is dpf_lot_sum_margin()), and each
 * step is the Gaussian mechanism of privacy/gaussian.h with that sensitivity and the
 * epoch's multiplier m: with Poisson lots of rate q the sampled Gaussian of multiplier m
 * under add-remove. With shuffled lots an example is in one lot an epoch, so that an
 * epoch is one Gaussian of multiplier m / 2 under replace-one (two gradients differ by at
 * most 2C'); no amplification is claimed for them.
 * Proof: Abadi et al., section 3, and parallel composition over an epoch's disjoint lots.
 * Whether an example is in a Poisson lot, and its key (which part of the sum it is added
 * in, and what dropout drops of it), are drawn for each example and step independently
 * from the operating system's entropy. Give common examples of neighbours common draws:
 * for each outcome of these, the lot of one is that of the other, with the example that
 * differs or without it; then the integers differ by at most C', and the mixture over
 * outcomes of sampled Gaussians costs no more than one of them (joint convexity). With a
 * seed, an example's key is a function of seed, step and its own content instead, so that
 * runs on neighbouring data can be compared; nothing is promised then. */
struct dpf_noise_plan {
    double multiplier, final_multiplier; /* 0: no noise */
    double final_clip_l2;
    double
        claimed_share;  /* of the multiplier in what a paper claims for it, if that takes
                         * one layer's clip norm for all: multiplier times this; or 0 */
    int64_t population; /* public number of examples; 0: take the number that came */
    int64_t max_steps;  /* stop here, before a budget is exceeded; 0: no such end */
    bool insecure;      /* lots and noise from the plan's seed: no protection */
};

struct dpf_training_plan {
    struct dpf_noise_plan noise;
    int64_t epochs, lot;
    enum dpf_sampling sampling;
    const struct dpf_loss *loss;
    struct dpf_energy *energy; /* borrowed: learn this in place of a loss, or NULL */
    enum dpf_clip_rule rule;
    double clip_l2;
    uint64_t seed;
    double validation;    /* share of the examples that is held back */
    int64_t patience;     /* epochs without a better validation loss; 0: no early stop */
    const uint32_t *rows; /* borrowed: the examples to train on; NULL: all */
    int64_t row_count;
    const struct dpf_dataset *watched; /* borrowed: scored after each epoch and used for
                                        * nothing else; or NULL */
};

/* What is told after each epoch. */
struct dpf_epoch_report {
    int64_t epoch;         /* from 1 */
    double loss, accuracy; /* means over the epoch's examples, while they were learned */
    double validation_loss, validation_accuracy; /* NaN without validation */
    double watched_loss, watched_accuracy;       /* NaN unless some are watched */
    double clipped; /* share of examples whose gradient was cut down */
    double rate;    /* of learning, at its end */
    double examples_per_second;
};

struct dpf_training {
    struct dpf_training_plan plan;
    struct dpf_engine *engine;       /* borrowed */
    struct dpf_optimiser *optimiser; /* borrowed */
    const struct dpf_dataset *data;  /* borrowed */
    uint32_t *train, *held, *order;  /* rows */
    uint32_t *lot, *watched;
    uint64_t *keys;       /* of the lot in hand */
    uint64_t *identities; /* of all examples, where keys come from a seed */
    int64_t train_count, held_count, steps_per_epoch;
    int64_t population;            /* what lots, epochs and divisors are reckoned from */
    struct dpf_gaussian mechanism; /* of the epoch in hand, if noise is added */
    int64_t mechanism_epoch;       /* from 1; 0: none yet */
    struct dpf_random random;      /* of Poisson lots */
    /* state */
    int64_t epoch, step; /* done: whole epochs, and steps of the one in hand */
    double loss_sum;     /* of the epoch in hand */
    int64_t correct, seen, clipped;
    double best_loss;
    int64_t best_epoch;
    float *best; /* the parameters of the best epoch, if validation is on */
    bool stopped;
    int64_t ordered; /* the epoch, from 1, whose order stands in `order`; 0: none */
    int64_t timed;   /* examples of the epoch in hand, in so many seconds */
    double seconds;
    struct dpf_epoch_report *history;
    size_t history_count, history_capacity;
    float *losses; /* mean loss of every step so far */
    size_t losses_count, losses_capacity;
    float *moments; /* of the optimiser, on the host, as they were encoded last */
};

/* Prepare; what is borrowed must outlive it. DPF_USAGE if the examples do not suffice. */
enum dpf_status dpf_training_init(struct dpf_training *t,
                                  const struct dpf_training_plan *plan,
                                  struct dpf_engine *engine,
                                  struct dpf_optimiser *optimiser,
                                  const struct dpf_dataset *data, struct dpf_error *e);
void dpf_training_release(struct dpf_training *t);

bool dpf_training_done(const struct dpf_training *t);
/* The noise multiplier and the clip norm of an epoch, from 0. */
double dpf_training_multiplier(const struct dpf_training_plan *plan, int64_t epoch);
double dpf_training_clip(const struct dpf_training_plan *plan, int64_t epoch);
/* The L2 sensitivity of a lot's sum in an epoch, of the numbers that are computed. */
double dpf_training_sensitivity(const struct dpf_training *t, int64_t epoch);
/* The probability with which an example is in a Poisson lot. */
double dpf_training_sampling_rate(const struct dpf_training *t);
/* One lot. At the end of an epoch, *report points to what it came to, else NULL. A loss
 * or a parameter that is not finite is DPF_SYSTEM: the step is named, and the state is
 * not one to go on from. */
enum dpf_status dpf_training_step(struct dpf_training *t,
                                  const struct dpf_epoch_report **report,
                                  struct dpf_error *e);
/* The final parameters, [model->span]: the best epoch's with early stopping, else the
 * last's. */
void dpf_training_result(struct dpf_training *t, float *parameters);

/* The state as the value of a frame's key "training", and back. `parameters` are those of
 * the engine. What the state is of (network, data, options) is the caller's to compare.
 */
void dpf_training_encode(struct dpf_encoder *enc, struct dpf_training *t);
enum dpf_status dpf_training_decode(struct dpf_training *t, const msgpack_object *o,
                                    struct dpf_error *e);

#endif
