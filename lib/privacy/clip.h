/* Clipping: what makes a sensitivity a fact.
 *
 * Claim. After clipping, a vector's norm is at most the bound, whatever it held before:
 * numbers that are not finite make the whole vector 0. Two clipped vectors differ by at
 * most twice the bound, and one from nothing by the bound.
 * Proof. Scaling by a factor rounded down; a norm of doubles is computed with a relative
 * error below 2^-40 for up to 2^12 values and below n 2^-52 beyond, and the factor allows
 * for it. */
#ifndef DPF_PRIVACY_CLIP_H
#define DPF_PRIVACY_CLIP_H

#include <stdbool.h>
#include <stddef.h>

enum dpf_norm { DPF_NORM_L1, DPF_NORM_L2, DPF_NORM_MAX };

/* The norm; infinity or NaN if a value is not finite. */
double dpf_norm_of(enum dpf_norm norm, const double *x, size_t count);
/* Scale (L1, L2) or cut each value (max) down to the bound; whether that was needed. */
bool dpf_clip(enum dpf_norm norm, double bound, double *x, size_t count);

#endif
