/* The clipped sum of a lot, in float arithmetic, with a sensitivity that holds for it.
 *
 * Float sums depend on the order of their terms, and one record more moves every other
 * record to another place. A bound on rounding in the whole lot would grow with its
 * square. So a lot is cut into parts, and which part a record is in is decided by a key
 * that is drawn for this record alone: one record more touches one part. The float sum of
 * a part is rounded to a grid and parts are added as integers, exactly, in any order and
 * on any number of threads.
 *
 * Notation as in Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
 * chapters 2 to 4: u = 2^-24, gamma_n = n u / (1 - n u); C is the clip norm, k the number
 * of values, M = DPF_LOT_PART_MOST.
 *
 * Claim. Let each record of a lot have a term t in R^k that is a function of the record
 * and of its own key, with |t| <= T = C (1 + 2^-22) in L2. Let dpf_lot_parts_cut() cut
 * the lot by the keys, let every value of every part be a sum of its terms' values in
 * float arithmetic, in any order, each term one product of two floats, rounded or fused
 * (for a part that is `single`: each record by itself), and let grid_add() of
 * kernels/table.inc add these to integers. For any two lots that differ in one record,
 * all others having the same keys (and, where keys are equal, the same order), the
 * integers times the step differ by at most C (1 + margin) in L2, where margin is
 * dpf_lot_sum_margin(k), less than 0.1 % for up to 10^9 values.
 *
 * Proof. Let lot B be lot A and one record x.
 *
 * Parts. The parts are leaves of a tree. The root has as many children as are planned (a
 * public number); a node of more than M records is cut in two by the next bit of the
 * keys; a node without bits left is a leaf, `single` if it has more than M records. A
 * node that x is not in has the same records in A and B, in the order of their keys, so
 * the same leaves. Follow x from the root to the node that is a leaf in A, with n
 * records. If n <= M, it is a leaf of n + 1 <= M records in B, or the leaves below it
 * have M + 1 records together. If n > M, it is `single` in both. All other leaves are the
 * same.
 *
 * Sums. A value of a leaf of n terms is computed as the sum of t_j (1 + d_j), |d_j| <=
 * gamma of (the depth of term j in the tree of additions, plus 1 for its product):
 * Higham, section 4.2 and Lemma 3.1; adding 0 rounds nothing. In a binary tree of n
 * leaves the sum of (depth + 1)^2 is largest if each addition takes one more term: depths
 * n - 1, n - 1, n - 2, ..., 1, and the sum is at most (n + 1.5)^3 / 3. By the inequality
 * of Cauchy and Schwarz for each value, and then by adding up over all values (the order
 * of additions may differ from value to value), |error| <= u' sqrt((n + 1.5)^3 / 3)
 * sqrt(n) T <= u' (n + 1.5)^2 / sqrt(3) T, u' = u / (1 - (M + 2) u). Of several leaves
 * with M + 1 records together, the sum of (n + 1.5)^2 is convex in their sizes, so it is
 * largest for one leaf of all, (M + 2.5)^2, or for leaves of one, 6.25 (M + 1), which is
 * less. Errors of A and B are together at most 2 u' (M + 2.5)^2 / sqrt(3) T.
 * In leaves that are `single` the error of a record is at most u |t|, and at most M + 1
 * records change their kind of leaf.
 *
 * Grid and range. The changed leaves are rounded to the grid: one in A and at most M + 1
 * in B (records of a `single` leaf that is one in both do not change), each by half a
 * step of at most 2^-36 C in each of k values. A product or sum that underflows is off by
 * at most 2^-126 more, flushed to zero or not: with C >= 2^-41 less than 2^-30 C in all.
 * Nothing overflows, since partial sums are at most (M + 1) T < 2^50.
 *
 * In real arithmetic the sums differ by |t| <= T. Add up. If x is there in both lots with
 * another value (and any key), they differ by at most twice that.
 *
 * Corollary. Keys are drawn independently of the records and of each other, so the
 * distributions over lots of neighbours can be coupled such that common records have
 * common keys: the sensitivity holds for every outcome of the keys, hence a mechanism
 * that adds noise for it has its guarantee for every outcome and, by joint convexity, for
 * their mixture. Who knows the keys learns nothing more. */
#ifndef DPF_PRIVACY_LOT_SUM_H
#define DPF_PRIVACY_LOT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DPF_LOT_PART_MOST = 112 };
/* Records in a lot at most, so that sums of integers cannot overflow. */
#define DPF_LOT_MOST ((int64_t)1 << 25)
/* Clip norms lie in between. */
#define DPF_LOT_LEAST_CLIP 0x1p-41
#define DPF_LOT_MOST_CLIP  0x1p41

/* A record of a lot. */
struct dpf_lot_place {
    uint64_t key, position; /* position: within its child of the root */
    uint32_t place;         /* in the lot */
};

struct dpf_lot_part {
    int64_t from, count; /* of the sorted records */
    bool single;         /* each record has to be added to the integers by itself */
};

struct dpf_lot_parts {
    struct dpf_lot_part *list; /* the largest first: who shares out work starts with it */
    size_t count, capacity;
    struct dpf_lot_place *sorted; /* by their keys: parts are runs of it */
    size_t sorted_capacity;
};

/* How many parts a lot of this expected size is cut into at first. The expected size is
 * public. */
uint64_t dpf_lot_parts_planned(int64_t expected);
/* Cut a lot of `count` records. Uses `p` again, which starts as all zeros. */
enum dpf_status dpf_lot_parts_cut(struct dpf_lot_parts *p, const uint64_t *keys,
                                  int64_t count, uint64_t planned, struct dpf_error *e);
void dpf_lot_parts_release(struct dpf_lot_parts *p);

/* The step of the integers, a power of two, for a clip norm. */
double dpf_lot_sum_step(double clip_l2);
/* By what share of the clip norm the integers may move further than the terms. */
double dpf_lot_sum_margin(size_t values);

#endif
