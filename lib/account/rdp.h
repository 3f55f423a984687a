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
 * A kind of mechanism has its own divergence (a Gaussian: privacy/spending/gaussian.c),
 * or that of the discretised pair of account/privacy_loss.h, which is larger than the
 * true one. */
#ifndef DPF_ACCOUNT_RDP_H
#define DPF_ACCOUNT_RDP_H

#include "privacy/spending.h"

enum { DPF_MOMENTS_MAX_ORDER = 256 }; /* lambda up to 255 */

/* Whether the divergences of a kind of mechanism are known. */
bool dpf_rdp_is_known(const struct dpf_spending_kind *kind);
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
