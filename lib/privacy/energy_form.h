/* The polynomial energy of a convolutional restricted Boltzmann machine, released once
 * through its coefficients (the functional mechanism, pCDBN: Phan et al. 2017).
 *
 * With the probability of a hidden unit in its place, and the sigmoid expanded as
 * sum_l alpha_l X^l of X = w.u / Z (u: a patch with a 1 in front, and conditions behind;
 * w: a filter with its bias in front, and the weights of conditions behind, which is what
 * pCDBN's dynamic bias adds (Eq. 25); Z: a public constant), the energy of one group of
 * hidden units is E(w, c) = - sum_records ( sum_positions sum_l alpha_l Z^-l (w.u)^(l+1)
 * + c sum v ), a polynomial in w. Its coefficients are the same for every group, so one
 * release serves all of them (the one reading in which pCDBN's maximum over groups, Eq.
 * 15, is right). That of the monomial w^a of degree l + 1 is - alpha_l Z^-l times the
 * multinomial coefficient of a times the moment of a (privacy/patch_moments.h).
 *
 * Claims, for values in [0, 1]:
 *
 * - sound, gaussian. Released are the moments of the highest degree L + 1, which have all
 *   others among them, with Laplace or Gaussian noise; coefficients are computed from
 *   them. A record adds integers whose L1 (sound) or L2 norm (gaussian) is at most
 *   `bound`, whatever the record holds: it is measured on the integers that are added. So
 *   the sums move by at most `bound` when a record is added or removed. When one is
 *   replaced, by at most twice that in L1, and by sqrt(2) times that in L2: no integer is
 *   negative, so |a - b|^2 <= |a|^2 + |b|^2. Noise is that of privacy/laplace.h and
 * privacy/gaussian.h on integers. Proof. By patch_moments.h a record's moments are exact
 * integers below 2^53, none negative, and a function of the record alone; so is what
 * follows. They are divided by a power of two, towards 0. Their norm is then computed in
 * doubles with a relative error below 2^-30 (count 2^-53); if it is above bound (1 -
 * 1e-9), each is multiplied by a factor below 1 and cut to an integer towards 0. Then
 * every integer is at most 2^25, and their sum (of squares) is taken as a double sum of
 * integers that are not negative: if the result is at most 2^50, every partial sum was
 * exact. A record whose result is above bound (its square) adds nothing. Sums of 2^25
 * records stay below 2^50.
 * - paper (Lemma 2). Independent Laplace noise of scale D / epsilon on each coefficient,
 *   of each l, and on that of c; D = 2 max over records of sum_positions sum_l |alpha_l|
 *   Z^-l s^(l+1) + sum v, s = 1 + the sum of the patch's values (Eq. 15). Claimed:
 *   epsilon. Proven: nothing, as D is read from the records (a local sensitivity), and
 *   noise of a scale that depends on a record tells of it; the scale itself is stated
 *   beside the coefficients, and in the ledger. Were it public, the release would be
 *   `public_epsilon`-DP for replace-one: all moments of a record lie between 0 and those
 *   of a record of ones, so coefficients move by at most
 *   S = positions sum_l |alpha_l| Z^-l q^(l+1) + visible units in L1. Coefficients are
 *   doubles, a product of three numbers each: of n records, roundings add at most
 *   n S 2^-51 for both neighbours, below S 2^-24 for 2^25 records. Rounding to the
 *   noise's grid adds a step for each. (The sum of visible units is exact up to 2^53
 *   steps of 2^-bits.)
 * - plain: no noise, for comparison. */
#ifndef DPF_PRIVACY_ENERGY_FORM_H
#define DPF_PRIVACY_ENERGY_FORM_H

#include "privacy/gaussian.h"
#include "privacy/laplace.h"
#include "privacy/patch_moments.h"

enum dpf_energy_variant {
    DPF_ENERGY_PAPER,
    DPF_ENERGY_SOUND,
    DPF_ENERGY_GAUSSIAN,
    DPF_ENERGY_PLAIN,
};

/* All of it public. */
struct dpf_energy_plan {
    enum dpf_energy_variant variant;
    struct dpf_patch_plan patches;         /* their degree is L + 1 */
    double alpha[DPF_MOMENTS_MOST_DEGREE]; /* alpha_l Z^-l, l = 0..L */
    double epsilon, delta;
    bool replace_one; /* sound, gaussian: else add-remove */
    uint64_t group;   /* sound, gaussian: epsilon is for so many records at once; 0: 1 */
    double clip;      /* sound, gaussian: the norm of a record's moments, each a mean over
                       * positions; 0: that of the largest record there can be */
};

struct dpf_energy_form {
    struct dpf_energy_plan plan;
    struct dpf_patch_moments moments;
    int shift;           /* integers are moments times 2^-shift */
    double bound;        /* of a record's integers; sound, gaussian */
    double clip;         /* the same as a mean over positions */
    size_t coefficients; /* how many */
    struct dpf_laplace laplace;
    struct dpf_gaussian gaussian;
    double public_epsilon; /* paper: after release_noisy() */
    /* what was gathered */
    int64_t *sums;  /* [moments.count] */
    double visible; /* paper, plain: the sum of all values, in steps of 2^-bits */
    double largest; /* paper: half of D, of the records so far */
    uint64_t clipped;
};

/* A thread's share of the work: sums of its own, so that threads do not meet. */
struct dpf_energy_worker {
    struct dpf_patch_room room;
    int64_t *sums;
    double visible, largest;
    uint64_t clipped;
};

/* DPF_USAGE names what does not fit. */
enum dpf_status dpf_energy_form_init(struct dpf_energy_form *f,
                                     const struct dpf_energy_plan *plan,
                                     struct dpf_error *e);
void dpf_energy_form_release(struct dpf_energy_form *f);
enum dpf_status dpf_energy_worker_init(struct dpf_energy_worker *w,
                                       const struct dpf_energy_form *f,
                                       struct dpf_error *e);
void dpf_energy_worker_release(struct dpf_energy_worker *w);

/* Add records, [count, dpf_patch_record()]. */
void dpf_energy_add(const struct dpf_energy_form *f, struct dpf_energy_worker *w,
                    const float *records, size_t count);
/* A worker's sums into the form's; the worker's are 0 again. */
void dpf_energy_join(struct dpf_energy_form *f, struct dpf_energy_worker *w);

/* Draw the noise, once, and give the coefficients: for each l with alpha_l != 0 those of
 * the monomials of degree l + 1 in lexicographic order, l ascending; *visible is that of
 * c (0 for sound and gaussian, which do not release it). DPF_USAGE if noise of the
 * paper's scale cannot be drawn. */
enum dpf_status dpf_energy_release_noisy(struct dpf_energy_form *f, struct dpf_random *r,
                                         double *coefficients, double *visible,
                                         struct dpf_error *e);
/* One step of the integers that sound and gaussian add, as a moment. */
double dpf_energy_unit(const struct dpf_energy_form *f);
/* The deviation of the noise on a moment (paper: on a coefficient). */
double dpf_energy_noise(const struct dpf_energy_form *f);

#endif
