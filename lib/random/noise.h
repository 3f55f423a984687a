/* Integer noise whose distribution is exact, at the speed of floating point.
 *
 * Both samplers compute a real function of uniform reals and round it. A uniform real has
 * infinitely many binary digits; 64 of them and double arithmetic give a value with a
 * known error. If every real within that error rounds to the same integer, that integer
 * is the answer; else (about once in 10,000 draws) more digits are drawn and the function
 * is computed by MPFR, with as many digits as it takes. No draw is ever decided by a
 * rounding error, so the integers have exactly the stated distribution: the holes and
 * patterns of floating-point noise that Mironov (2012) and Haney et al. (2022) exploit do
 * not exist, and the same random bits give the same integers on every machine.
 *
 * Gaussian: the integer nearest to s Z, Z standard normal (Box and Muller). For integer
 * v, v + round(sZ) = round(v + sZ): a function of the continuous Gaussian mechanism's
 * output. Its guarantee carries over as it is, in any dimension, with sampling, for L2
 * sensitivity. (The "discrete Gaussian", density proportional to exp(-k^2 / 2s^2), has no
 * such relation: in several dimensions its exact trade-off curve is not known.)
 *
 * Laplace: floor(tE) for a standard exponential E, with a sign, and "minus 0" drawn
 * again: the probability of k is proportional to exp(-|k| / t), the discrete Laplace
 * distribution. */
#ifndef DPF_RANDOM_NOISE_H
#define DPF_RANDOM_NOISE_H

#include "random/secure.h"

enum { DPF_NOISE_MAX_LOG2 = 36 }; /* s and t are at most 2^36 */

/* `count` integers round(s Z). 0 < s <= 2^36. */
void dpf_noise_gaussian(struct dpf_random *r, double s, int64_t *out, size_t count);
/* `count` discrete Laplace integers of scale t. 0 < t <= 2^36. */
void dpf_noise_laplace(struct dpf_random *r, double t, int64_t *out, size_t count);
/* The same, number i with scale t[i % period]. */
void dpf_noise_laplace_each(struct dpf_random *r, const double *t, size_t period,
                            int64_t *out, size_t count);

/* floor(tE), E standard exponential: k or more with probability e^(-k / t). */
int64_t dpf_noise_geometric(struct dpf_random *r, double t);

/* For tests: the largest error that the fast way may have, for Z and for E, and the fast
 * values themselves from given digits. */
#define DPF_NOISE_ERROR 0x1p-40
void dpf_noise_fast_normals(const uint64_t *radius, const uint64_t *angle, size_t count,
                            double *cosines, double *sines);
void dpf_noise_fast_exponentials(const uint64_t *digits, size_t count, double *out);

#endif
