/* The privacy of a training: from a target to noise, from steps to a cost, and the events
 * that say so. */
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
