/* Composition of privacy loss distributions: the tightest accountant for mixed lists.
 *
 * Claim. The epsilon (delta) returned is an upper bound on the least epsilon (delta) for
 * which the adaptive composition of all uses is (epsilon, delta)-DP.
 * Proof. Dominating pairs compose (Zhu, Dong and Wang 2022, Theorem 10), and those of
 * account/loss.h are discretised from above; the loss of the composition is the sum of
 * independent losses. Its distribution is computed by one Fourier transform of N points,
 * of the losses tilted by e^(t loss): under the tilt, the losses that matter for this
 * delta are the likely ones, so that rounding (about 1e-15 of the tilted mass) is small
 * against delta, however small delta is. The transform adds up losses modulo N steps.
 * Mass from below the window comes in at its top and only adds to the result; the mass
 * above it is bounded by Chernoff's inequality and added to delta, as are infinite
 * losses and rounding. Both directions, removal and addition, are computed and the larger
 * one counts. */
#ifndef DPF_ACCOUNT_PLD_H
#define DPF_ACCOUNT_PLD_H

#include "privacy/spending.h"

/* The smallest epsilon at which delta suffices. DPF_USAGE if the list is beyond this
 * method (losses above DPF_LOSS_LIMIT). */
enum dpf_status dpf_pld_epsilon(const struct dpf_spending *list, size_t count,
                                double delta, double *epsilon, struct dpf_error *e);
enum dpf_status dpf_pld_delta(const struct dpf_spending *list, size_t count,
                              double epsilon, double *delta, struct dpf_error *e);
/* A cruder epsilon without a transform, by Chernoff's inequality on the same losses:
 * a good guess for whoever searches. */
enum dpf_status dpf_pld_epsilon_roughly(const struct dpf_spending *list, size_t count,
                                        double delta, double *epsilon,
                                        struct dpf_error *e);

#endif
