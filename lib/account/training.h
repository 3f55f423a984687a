/* The privacy of a training: from a target to noise, from steps to a cost, and the events
 * that say so.
 *
 * Notation: a step adds Gaussian noise of m S' to the sum of a lot, where S' bounds in L2
 * what one example can add to the numbers that are summed, and m is the multiplier of the
 * step's epoch (the Claim of a single step is in nn/training.h, those of sum and noise in
 * privacy/lot_sum.h and privacy/gaussian.h).
 *
 * Claim. The steps that were taken cost at most what the events of
 * dpf_training_describe() spend by composition:
 * - Poisson lots, add-remove: a sampled Gaussian of multiplier m and rate q = min(1, lot
 * / population) for each step.
 * - Shuffled lots and lots in sequence, replace-one: one Gaussian of multiplier m / 2 for
 *   each epoch that was begun. No amplification is claimed.
 *
 * Assumed. Lots, keys and noise come from the operating system's entropy; with a seed
 * nothing is promised, and an event of its own says so. Losses, curves and checkpoints,
 * which depend on the records without noise, are not released. No example is used beside
 * the steps: '--validation' is refused with noise. For Poisson lots the population is
 * public, as an option or because the number of examples is (then the event says that it
 * tells the number). For other lots the number of examples is public: replace-one leaves
 * it the same.
 *
 * Proof, Poisson lots. Neighbours differ in one example, which is in a lot with
 * probability q, drawn for it alone. A step is then the sampled Gaussian of
 * nn/training.h, and each step sees only the results of those before it: adaptive
 * composition (what account/compose.h does). The q of the event is the double with which
 * lots are drawn, by the same expression of the same numbers, and random/bernoulli.h
 * draws with exactly that probability. Number of steps, divisor and rate are functions of
 * public numbers.
 *
 * Proof, other lots. The order of an epoch is a function of a seed, of the epoch's number
 * and of how many examples there are, not of their content; an epoch takes each place of
 * that order into one lot. Fix the order and the keys. Neighbours then have the same lots
 * in an epoch but for one, of the same size, in which one example has another value: its
 * sum changes by at most 2 S' (privacy/lot_sum.h: a value that is replaced moves the
 * integers at most twice as far as one that is added). In terms of that change the noise
 * has multiplier m S' / (2 S') = m / 2. All other steps of the epoch are functions of
 * earlier results and of examples that both have: given these results they are
 * distributed alike and add nothing to the privacy loss (parallel composition,
 * adaptively: McSherry 2009). So the epoch as a whole is (2/m)-GDP, for every order and
 * all keys and hence, by joint convexity, for their mixture. An epoch that was begun and
 * not finished has at most that one lot, too. Epochs compose adaptively.
 *
 * Schedules. Multipliers of epochs are composed as they are. Equal ones that follow each
 * other are one event with their number: composition does not depend on the order. The
 * clip norm may change from epoch to epoch; it cancels, since noise is in units of S'.
 * The sensitivity in an event is that of its first epoch and enters no account.
 *
 * Rounding. The multiplier of an epoch is one double, computed by one function for the
 * noise and for the event; gaussian.h rounds the deviation up. m / 2, 2 S' and, when a
 * multiplier is sought, 2 (m / 2) are exact in binary: multipliers are far
 * from underflow. Accountants round epsilon up. What cannot be computed for lack of
 * memory counts as infinite.
 *
 * Budgets. What earlier events cost is taken off epsilon and delta first, by basic
 * composition. Noise is then chosen, or the last step found, so that the cost by the same
 * accountant is at most what is left: a number of steps is accepted only after its own
 * cost was computed, so that nothing rests on the cost being monotone. These are plans.
 * dpf_training_foresee() accounts for the ledger with all planned steps before the first
 * one, and refuses what would exceed the target by more than a share of 1e-9, which is
 * for the rounding of the subtraction; what `account` states later is computed from the
 * events alone. */
#ifndef DPF_ACCOUNT_TRAINING_H
#define DPF_ACCOUNT_TRAINING_H

#include "account/ledger.h"
#include "nn/training.h"

/* What the user wants to spend at most. */
struct dpf_training_budget {
    double epsilon; /* 0: no target */
    double delta;
};

/* Fill in the plan's noise: without a multiplier, the least that keeps all epochs within
 * the budget; with one, the number of steps after which to stop. `spent` is the ledger
 * before the training: what it cost counts against the budget. DPF_PRIVACY if nothing is
 * left to spend. Knows the number of examples, so call it when they are in. */
enum dpf_status dpf_training_plan_noise(struct dpf_training_plan *plan, int64_t examples,
                                        const struct dpf_training_budget *budget,
                                        const struct dpf_header *spent,
                                        struct dpf_error *e);
/* The proven epsilon of the ledger with the steps that were taken; infinite if none can
 * be stated. `ledger` is that of what is trained on. */
double dpf_training_cost(const struct dpf_training *t, double delta,
                         const struct dpf_header *ledger);
/* Before the first step: whether the ledger with all planned steps keeps the budget. It
 * may not although the noise was chosen for it, if records were selected or multiplied in
 * a way that the mechanism's relation does not allow: DPF_PRIVACY says what it would cost
 * and why. Without a target, a ledger without a finite epsilon is a notice. */
enum dpf_status dpf_training_foresee(const struct dpf_training *t,
                                     const struct dpf_training_budget *budget,
                                     const struct dpf_header *ledger,
                                     struct dpf_error *e);
/* Append the events of the steps that were taken, and say that what follows is protected
 * by them. */
enum dpf_status dpf_training_describe(const struct dpf_training *t, double delta,
                                      const char *stage, struct dpf_header *h,
                                      struct dpf_error *e);

#endif
