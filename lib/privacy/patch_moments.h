/* Moments of patches of a record, as exact integers.
 *
 * A patch of a picture, read channel by channel and row by row, with a constant 1 in
 * front and the record's conditions behind, if it has any, is a vector u of q numbers in
 * [0, 1]. A record is its picture, then its conditions. The moments of degree D of a
 * record are m_a = sum over positions of u_(a_1) u_(a_2) ... u_(a_D),  a_1 <= a_2 <= ...
 * <= a_D, in lexicographic order of a: C(q + D - 1, D) of them. As u_0 = 1, those of all
 * lower degrees are among them. A polynomial energy of degree D of a convolutional
 * restricted Boltzmann machine depends on a data set through the sum of these alone
 * (privacy/energy_form.h).
 *
 * Claim. The integers are a function of the record alone: not of threads, of the order of
 * sums, or of other records. Proof. A value is clipped to [0, 1] (what is no number is 0)
 * and rounded to a multiple of 2^-bits; `bits` is such that any sum over positions of
 * products of D such multiples is below 2^53 steps of 2^(-bits D). So every product and
 * every partial sum is an integer that a double holds exactly, in any order and with
 * fused operations, too. */
#ifndef DPF_PRIVACY_PATCH_MOMENTS_H
#define DPF_PRIVACY_PATCH_MOMENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DPF_MOMENTS_MOST = 1 << 22, DPF_MOMENTS_MOST_DEGREE = 12 };

/* Pictures are [channels, height, width]; no padding. All of it public. */
struct dpf_patch_plan {
    size_t channels, height, width;
    size_t kernel_height, kernel_width, stride;
    size_t conditions; /* values of a record that are in each of its patches */
    int degree;        /* D, at least 2 */
};

struct dpf_patch_moments {
    struct dpf_patch_plan plan;
    size_t variables; /* q */
    size_t rows, columns, positions;
    size_t count;       /* of moments */
    int bits;           /* a value is an integer times 2^-bits */
    size_t left, right; /* degrees of the two factors that a moment is made of */
    size_t left_count, right_count;
    size_t *starts; /* of each left factor's moments */
    size_t *ways;   /* [right + 1, q + 1]: dpf_multichoose() */
};

/* Memory of one thread. */
struct dpf_patch_room {
    double *patches, *left, *right, *products, *moments;
};

/* Values of a record's picture; of a record. */
size_t dpf_patch_picture(const struct dpf_patch_plan *p);
size_t dpf_patch_record(const struct dpf_patch_plan *p);

/* C(n + k - 1, k), ways to choose k of n with repetition; SIZE_MAX if there are more than
 * DPF_MOMENTS_MOST. */
size_t dpf_multichoose(size_t n, size_t k);
/* The number of a tuple a_1 <= ... <= a_k of numbers below n among all such tuples. */
size_t dpf_multichoose_rank(size_t n, size_t k, const size_t *a);

/* DPF_USAGE if patches do not fit the pictures, or there are too many moments. */
enum dpf_status dpf_patch_moments_init(struct dpf_patch_moments *m,
                                       const struct dpf_patch_plan *plan,
                                       struct dpf_error *e);
void dpf_patch_moments_release(struct dpf_patch_moments *m);
enum dpf_status dpf_patch_room_init(struct dpf_patch_room *r,
                                    const struct dpf_patch_moments *m,
                                    struct dpf_error *e);
void dpf_patch_room_release(struct dpf_patch_room *r);

/* The moments of a record in steps of 2^(-bits D), in room->moments, and its patches
 * in steps of 2^-bits in room->patches, [positions, q]. Returns how many values were
 * outside [0, 1]. */
uint64_t dpf_patch_moments_of(const struct dpf_patch_moments *m, const float *record,
                              struct dpf_patch_room *room);

#endif
