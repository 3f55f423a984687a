/* The answer of an ensemble of teachers: a noisy maximum of their votes (PATE).
 *
 * Claim. Let `counts` be the histogram of K teachers' votes on one query, each teacher
 * one vote, and let neighbours differ in one teacher's votes (one record is in one
 * teacher's training set). Then, under replace-one,
 * - LNMax, the first class whose count plus independent discrete Laplace noise of scale b
 *   is largest, is (2 / b)-DP;
 * - GNMax, the same with Gaussian noise of deviation s, costs no more than a Gaussian
 *   mechanism of noise multiplier s / sqrt 2;
 * - the test of Confident-GNMax, whether the largest count plus Gaussian noise of
 * deviation s1 is at least T, costs no more than a Gaussian mechanism of multiplier s1.
 * A run that tests at most N queries and answers at most A of them, and decides from
 * earlier answers alone which ones, costs no more than N tests and A answers.
 *
 * Proof. A teacher who votes otherwise lowers one count by 1 and raises another by 1: the
 * histogram moves by 2 in L1 and by sqrt 2 in L2, and its largest count by at most 1, as
 * does the maximum of any numbers that each move by at most 1. Counts are integers, and
 * multiples of the grid's step, a power of two of at most 1: privacy/gaussian.h and
 * privacy/laplace.h with exact values. Class and yes or no are functions of the noisy
 * numbers. Two numbers that are equal are told apart by their place, which is public.
 *   Of the run: where fewer answers were given, let the mechanism go on with Gaussians of
 * a constant until N tests and A answers are spent, and not show them: that changes
 * nothing of what is seen. The multipliers then are the same on every path, in another
 * order at most, and the privacy loss, given all that came before, is at each step that
 * of a Gaussian with this step's multiplier. Its sum is that of N tests and A answers:
 * the steps' exponents (variances) add up to the same number on every path (Smith and
 * Thakurta 2022; Koskela, Tobaben and Honkela 2023). For LNMax there is no test. */
#ifndef DPF_PRIVACY_VOTE_H
#define DPF_PRIVACY_VOTE_H

#include "privacy/gaussian.h"
#include "privacy/laplace.h"

/* How votes become an answer. */
enum dpf_vote_kind {
    DPF_VOTE_LNMAX,
    DPF_VOTE_GNMAX,
    DPF_VOTE_CONFIDENT, /* GNMax behind a test */
};

struct dpf_vote_choice {
    const char *name;
    enum dpf_vote_kind kind;
};
extern const struct dpf_vote_choice dpf_vote_choices[]; /* ended by one without a name */

enum { DPF_VOTE_MAX_CLASSES = 4096, DPF_VOTE_MAX_TEACHERS = 1 << 20 };

/* What is asked for; all of it is public. */
struct dpf_vote_plan {
    enum dpf_vote_kind kind;
    double noise;           /* the deviation s, or the scale b */
    double threshold;       /* T, of the test */
    double threshold_noise; /* s1 */
};

/* Noise that is drawn ahead, for several queries at a time: the sampler draws in blocks.
 */
struct dpf_vote_noise {
    int64_t *values;
    size_t size, used;
};

struct dpf_vote {
    struct dpf_vote_plan plan;
    size_t classes;
    struct dpf_gaussian maximum, test;
    struct dpf_laplace laplace;
    struct dpf_vote_noise of_counts, of_test;
};

/* DPF_USAGE names the number that is out of range. */
enum dpf_status dpf_vote_init(struct dpf_vote *v, const struct dpf_vote_plan *plan,
                              size_t classes, struct dpf_error *e);
void dpf_vote_release(struct dpf_vote *v);

/* Whether a query is to be answered: always, but for the test. Noise is drawn ahead from
 * `r`: give the same generator in every call. */
bool dpf_vote_passes(struct dpf_vote *v, struct dpf_random *r, const int32_t *counts);
/* The class that is answered. */
size_t dpf_vote_answer(struct dpf_vote *v, struct dpf_random *r, const int32_t *counts);

#endif
