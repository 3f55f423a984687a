/* The mean of teachers' codes with Gaussian noise (PCA-PATE, Autoencoded PATE).
 *
 * Claim. Each of K teachers gives a vector of l floats, whatever stands in them. With a
 * public radius R, dpf_code_add() adds to the sums an integer vector v with
 * |v| <= 2^20 in L2, so that one teacher who answers otherwise changes the sums by at
 * most 2^21 steps of R 2^-20, that is by 2 R. With noise of deviation 2 R m on the sums,
 * releasing the mean of one query is (1/m)-GDP for replace-one of a teacher, and that of
 * N queries (sqrt N / m)-GDP. Proof. A vector with an entry that is not finite is
 * replaced by 0. Else its entries are scaled in doubles to the length that R allows,
 * multiplied by 2^20 / R and cut to integers towards 0; the integers' squares are then
 * added as integers, none of which can overflow (below), and the vector is shrunk and cut
 * again until the sum is at most 2^40. So |v| <= 2^20 holds for the integers that are
 * added, whatever the doubles did. The triangle inequality gives 2^21; the noise is
 * privacy/gaussian.h's on values that are multiples of the step already. Dividing by K
 * afterwards is post-processing. Sizes: after scaling an entry is at most 2^20 (1 +
 * 2^-40), so squares are below 2^41 and 2^16 of them below 2^57; sums of 2^20 teachers
 * stay below 2^41. */
#ifndef DPF_PRIVACY_CODE_MEAN_H
#define DPF_PRIVACY_CODE_MEAN_H

#include <stddef.h>
#include <stdint.h>

#include "privacy/gaussian.h"

enum { DPF_CODE_MAX_VALUES = 1 << 16, DPF_CODE_MAX_TEACHERS = 1 << 20 };

struct dpf_code_mean {
    size_t values, teachers;
    double radius;
    struct dpf_gaussian noise; /* of the sums */
};

/* For codes of `values` numbers of `teachers`; `noise_multiplier` is m. DPF_USAGE for
 * what is out of bounds: a radius from 1e-6 to 1e6. */
enum dpf_status dpf_code_mean_init(struct dpf_code_mean *m, size_t values,
                                   size_t teachers, double radius,
                                   double noise_multiplier, struct dpf_error *e);
/* The multiplier that gives the mean noise of this deviation. */
double dpf_code_multiplier(size_t teachers, double radius, double noise_of_mean);
/* The noise of the mean, a value's deviation. */
double dpf_code_noise(const struct dpf_code_mean *m);
/* Cut one teacher's code to the radius and add it. */
void dpf_code_add(const struct dpf_code_mean *m, const float *code, int64_t *sums);
/* Add noise to the sums, which are overwritten, and divide. */
void dpf_code_release(const struct dpf_code_mean *m, struct dpf_random *r, int64_t *sums,
                      float *mean);

/* The papers' epsilon for `queries` answers: Renyi's divergence of Gaussian noise, by the
 * conversion that is not tight, a + 2 sqrt(a log 1/delta) with a = N / (2 m^2). And the
 * multiplier that it gives for an epsilon. */
double dpf_code_paper_epsilon(double noise_multiplier, double queries, double delta);
double dpf_code_paper_multiplier(double epsilon, double queries, double delta);

#endif
