/* Renyi differential privacy and the moments accountant.
 *
 * Claim. If uses i = 1..k are (alpha, r_i)-RDP, their adaptive composition is
 * (alpha, sum r_i)-RDP (Mironov 2017, Proposition 1), and for every delta it is
 * (epsilon, delta)-DP with
 *   epsilon = r + ln((alpha - 1) / alpha) - (ln delta + ln alpha) / (alpha - 1)
 * (Canonne, Kamath and Steinke 2020, Proposition 12; "improved"), or with
 *   epsilon = r + ln(1 / delta) / (alpha - 1)
 * (Mironov 2017, Proposition 3: the moments accountant of Abadi et al. 2016 is this one
 * at whole orders).
 * A Gaussian with Poisson sampling has at whole orders, log-sum-exp over j = 0..alpha,
 *   (alpha - 1) r = ln sum C(alpha, j) (1-q)^(alpha-j) q^j e^(j(j-1) / 2s^2)
 * (Mironov, Talwar and Zhang 2019), which is the larger of the two directions; between
 * them E[r^alpha], r = (1-q) + q e^((2x-1)/2s^2), x normal, is integrated by the
 * trapezoid rule, whose error for such functions falls exponentially in the number of
 * points. Other mechanisms use the discretised pairs of account/loss.h, whose divergences
 * are larger than the true ones. */
#ifndef DPF_ACCOUNT_RDP_H
#define DPF_ACCOUNT_RDP_H

#include "account/spending.h"

enum { DPF_MOMENTS_MAX_ORDER = 256 }; /* lambda up to 255 */

/* The Renyi divergence of order alpha > 1 of all uses together. */
enum dpf_status dpf_rdp_divergence(const struct dpf_spending *list, size_t count,
                                   double alpha, double *divergence, struct dpf_error *e);
/* Over the customary orders 1.1, 1.2 .. 10.9, 11, 12 .. 63, 128, 256, 512, 1024; *order,
 * if not NULL, is the one that was best. */
enum dpf_status dpf_rdp_epsilon(const struct dpf_spending *list, size_t count,
                                double delta, double *epsilon, double *order,
                                struct dpf_error *e);
/* Over lambda = alpha - 1 = 1 .. 255 and tenths below 10, with the plain conversion. */
enum dpf_status dpf_moments_epsilon(const struct dpf_spending *list, size_t count,
                                    double delta, double *epsilon, struct dpf_error *e);

#endif
