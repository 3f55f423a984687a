/* The Gaussian trade-off function: what (epsilon, delta) a Gaussian of a given noise
 * multiplier has, and back. Values are rounded to the safe side: delta and epsilon up,
 * mu down.
 *
 * Claim. A release of f(D) + N(0, sigma^2 I) with L2 sensitivity S is mu-GDP with
 * mu = S / sigma, and for every epsilon it is (epsilon, delta)-DP with
 *   delta = Phi(-epsilon / mu + mu / 2) - e^epsilon Phi(-epsilon / mu - mu / 2),
 * and with no smaller delta. k of them, adaptively, are sqrt(sum mu_i^2)-GDP.
 * Proof: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2019, Corollaries 2.13, 3.3.
 */
#ifndef DPF_PRIVACY_TRADEOFF_H
#define DPF_PRIVACY_TRADEOFF_H

/* ln Phi(x), also far in the tail. */
double dpf_log_normal_cdf(double x);
double dpf_gdp_delta(double mu, double epsilon);
/* The smallest epsilon for a delta in (0, 1); 0 if none is needed; infinity if mu is. */
double dpf_gdp_epsilon(double mu, double delta);
/* The largest mu for epsilon >= 0 and delta in (0, 1). */
double dpf_gdp_mu(double epsilon, double delta);

#endif
