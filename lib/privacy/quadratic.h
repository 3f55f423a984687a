/* The functional mechanism for least squares: a loss that is quadratic in its parameters
 * is known by its coefficients, so noise on them, once, makes every minimiser private.
 *
 * For records x (with x_0 = 1 in front if there is an intercept; n numbers in all) and
 * targets y the coefficients are the gram matrix A = sum x x^T and the moments
 * B = sum x y^T (y a number in [-1, 1], or one of M classes as a unit vector). Values are
 * clipped to their bounds and rounded to a public grid of 2^-bits; all sums are exact
 * integers, so neither order nor threads matter, and rounded values are within the same
 * bounds: the sensitivities below hold for the integers without any allowance.
 *
 * Claims. d features, all in [-1, 1]; "replace-one" throughout, unless stated.
 *
 * Lemma. For u, v in [-1, 1]^n let a = |u - v|, b = |u + v|, so a_j + b_j <= 2. Then
 *   |u_j u_k - v_j v_k| = |(u-v)_j (u+v)_k + (u+v)_j (u-v)_k| / 2 <= (a_j b_k + b_j a_k)
 * / 2.
 *
 * - paper (Jiang, section 4.2): independent Laplace noise on all n^2 entries of A, of
 *   scale 2n^2 / e1, and on B, 2n / e2 (the paper's b is -2B with 4n / e2), with
 *   e1 : e2 = 2n^2 : 4n. Claimed: e1 + e2. Proven: e1 / 2 + e2, since by the lemma the
 *   entries of A move by sum_jk (a_j b_k + b_j a_k) / 2 = (sum a)(sum b) <= n^2 in all
 *   (half of what is printed) and those of B by at most 2n.
 * - paper, `taylor` (pCDBN's head: the cross-entropy of M logistic units, expanded to the
 *   second order): its coefficients are lambda_1 = - sum s x^T / 2 for each class (s = 1
 * for the record's class, -1 for the others) and lambda_2 = A / 8, the same for all
 * classes. Independent Laplace noise of scale S = (n + n^2 / 4) / e on each: so B is that
 * of targets s with noise of scale 2S, A has 8S, and the minimum is that of A and 2B.
 *   Claimed: e. Proven, replace-one: n^2 / (8S) + D_B / (2S), where by the lemma the
 *   entries of A move by n^2 at most, and those of B by D_B = 2nM: of a class that stays
 * a column moves by sum a_j, of the two classes that change it moves by sum b_j each, and
 *   (M - 2) sum a_j + 2 sum b_j <= 2n max(M - 2, 2) <= 2nM. For x >= 0, where
 *   |u_j - v_j| <= 1: D_B = n max(M, 4), as (M - 2) a_j + 2 b_j is linear in u_j and v_j.
 *   What is proven is below e from n = 4M - 8 on if x >= 0 and M > 3, and from 8M - 8 on
 *   otherwise; for fewer units it is above what is claimed.
 * - sound: noise on the upper triangle of A and on B, one scale D / e for all. Proven: e,
 *   with D the joint L1 sensitivity. By the lemma, with s = sum a_j over the features,
 *   the triangle moves by at most ((sum a)(sum b) + sum a_j b_j) / 2:
 *     intercept, y in [-1, 1]:    D = (d + 1)(d + 4) / 2, reached at x = (1, 1..1), y = 1
 *                                 and x' = (1, 0..0), y' = -1;
 *     no intercept, y in [-1, 1]: D = d (d + 2)^2 / (2 (d + 1));
 *     classes: the triangle's largest, d (d + 2)^2 / (2 (d + 1)) with an intercept and
 *     d (d + 1) / 2 without, plus 2n for B.
 *   (In the first two, y is one more coordinate whose square is not released: maximise
 *   over equal a_j = a and a_y = c, where b_j = 2 - a_j. The bound is linear in c.)
 * - gaussian: |x|_2^2 <= n (a ball's radius squared, plus 1 for the intercept). A's
 *   off-diagonal entries count sqrt 2 fold (they stand for two), B w-fold, w = sqrt n.
 *   L2 sensitivity S of the weighted vector, by |xx^T - x'x'^T|_F^2 = |x|^4 + |x'|^4 -
 *   2 (x.x')^2:
 *     add-remove:                       S^2 = n^2 + w^2 n;
 *     replace-one:                      S^2 = 2n^2 + 2n w^2 + w^4 / 2   (at |x.x'| =
 * w^2/2); replace-one, classes and x >= 0:  S^2 = 2n^2 + 2n w^2             (x.x' >= 0).
 *   Noise of deviation m S on the weighted vector is (1/m)-GDP (privacy/gaussian.h).
 * Tests compare every one of them with brute force. */
#ifndef DPF_PRIVACY_QUADRATIC_H
#define DPF_PRIVACY_QUADRATIC_H

#include "base/status.h"
#include "privacy/gaussian.h"
#include "privacy/laplace.h"

enum dpf_quadratic_variant {
    DPF_QUADRATIC_PAPER,
    DPF_QUADRATIC_SOUND,
    DPF_QUADRATIC_GAUSSIAN,
    DPF_QUADRATIC_PLAIN, /* no noise: what the others are compared with */
};

/* All of it public. */
struct dpf_quadratic_plan {
    enum dpf_quadratic_variant variant;
    size_t features; /* d */
    bool intercept;
    size_t outputs; /* 1, or the number of classes */
    bool classes;
    bool taylor;       /* PAPER, PLAIN, classes: the head of pCDBN */
    double radius;     /* GAUSSIAN: of the ball that holds x; 0: [-1, 1]^d */
    bool replace_one;  /* GAUSSIAN: else add-remove */
    bool non_negative; /* x has no negative values */
    double epsilon, delta;
    uint64_t group; /* SOUND, GAUSSIAN: they are for so many records at once; 0: 1 */
};

struct dpf_quadratic {
    struct dpf_quadratic_plan plan;
    size_t n;           /* of A: features, and 1 for the intercept */
    int bits;           /* of the grid of x; that of y where it is a number */
    double unit;        /* what x is divided by before it is rounded: radius, or 1 */
    double sensitivity; /* L1 of the paper's and the sound variant (A, then B), L2 */
    double weight;      /* GAUSSIAN: w */
    struct dpf_laplace laplace_a, laplace_b;
    struct dpf_gaussian gaussian;
    double claimed_epsilon, proven_epsilon; /* Laplace variants */
    int64_t *a, *b; /* [n, n] (upper triangle) and [n, outputs], integers */
    double *block_a, *block_b, *rows, *targets; /* exact partial sums */
    size_t block_count;                         /* records in them */
    uint64_t clipped;                           /* values that were outside */
};

/* The joint L1 sensitivity D of the sound variant, and the L2 sensitivity S. */
double dpf_quadratic_l1(size_t features, bool intercept, bool classes);
double dpf_quadratic_l2(double norm_squared, double weight, bool replace_one,
                        bool classes_of_non_negative);

/* DPF_USAGE names what is missing or out of range. */
enum dpf_status dpf_quadratic_init(struct dpf_quadratic *q,
                                   const struct dpf_quadratic_plan *plan,
                                   struct dpf_error *e);
void dpf_quadratic_release(struct dpf_quadratic *q);
/* Add records: x is [count, features]; y is [count] numbers, or NULL and labels below
 * `outputs`. What is outside the bounds is clipped, what is no number counts as 0. */
void dpf_quadratic_add(struct dpf_quadratic *q, const float *x, const float *y,
                       const int32_t *labels, size_t count);
/* Add the noise, once, and give the coefficients in units of x: a is [n, n], symmetric, b
 * is [n, outputs]. */
void dpf_quadratic_release_noisy(struct dpf_quadratic *q, struct dpf_random *r, double *a,
                                 double *b);
/* The deviation of the noise on an off-diagonal entry of a, and on one of b; public. */
double dpf_quadratic_noise_a(const struct dpf_quadratic *q);
double dpf_quadratic_noise_b(const struct dpf_quadratic *q);

#endif
