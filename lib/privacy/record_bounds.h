/* What bounds a record before it is released or summed: a pair of bounds for each value,
 * or a norm of the whole. From it follows how far neighbours are apart.
 *
 * Claim. dpf_record_clip() makes of any record, whatever it held, one within the bounds;
 * and two data sets of clipped records that are neighbours have sums which differ, in L1
 * or L2, by at most dpf_record_sensitivity(): one record there or not ("add-remove"), or
 * one with another value ("replace-one", and for a single record "local").
 * Proof. A box: value i lies in [lo_i, hi_i]; a number outside becomes the nearer end, an
 * infinite one too, and what is no number the middle (the lower end, where the middle
 * overflows), so the clipped value is in the box.
 * Values of two records differ by at most hi_i - lo_i, and one differs from nothing by at
 * most max(|lo_i|, |hi_i|); the sensitivity is the L1 or L2 norm of these. It is computed
 * in doubles, with u = 2^-53: each term has a relative error of at most u (3 u for
 * squares), a sum of n terms that are not negative (n - 1) u more, and squares that
 * underflow take away at most n 2^-1075, which is n u of a sum that is normal. Root,
 * product and second-order terms are below 4 u for n below 2^26. The factor at the end,
 * 1 + 2 (n + 8) u or more, exceeds these. Terms that overflow, and squares whose sum is
 * not normal, make the sensitivity infinite, which mechanisms refuse.
 * A ball: privacy/clip.h bounds the norm by the radius, whole records that hold something
 * not finite become 0; two differ by at most twice the radius, exact in doubles. */
#ifndef DPF_PRIVACY_RECORD_BOUNDS_H
#define DPF_PRIVACY_RECORD_BOUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "privacy/clip.h"

struct dpf_record_bounds {
    size_t values;
    double *lo, *hi;    /* [values]; all 0 if there is a radius */
    double radius;      /* 0: the box counts */
    enum dpf_norm norm; /* of the radius: L1 or L2 */
};

/* Between two bounds, whatever they are. */
static inline double dpf_record_middle(double lo, double hi)
{
    double middle = 0.5 * (lo + hi); /* the sum may overflow, half of it may be rounded */
    return middle >= lo && middle <= hi ? middle : lo;
}

/* Room for so many values. */
enum dpf_status dpf_record_bounds_init(struct dpf_record_bounds *b, size_t values,
                                       struct dpf_error *e);
void dpf_record_bounds_release(struct dpf_record_bounds *b);
/* In L2 or in L1; of a record that is replaced, or added. The norm is that of the radius,
 * if there is one. */
double dpf_record_sensitivity(const struct dpf_record_bounds *b, bool l2, bool replace);
/* The largest size of a value; above 0. */
double dpf_record_largest(const struct dpf_record_bounds *b);
/* The record within its bounds, in `out`; how many values (a ball: 1) were outside. */
uint64_t dpf_record_clip(const struct dpf_record_bounds *b, const float *record,
                         double *out);

/* Sums of records on a grid. Values of at most 2^37 steps in size and at most 2^25
 * records, so that sums are at most 2^62 and noise has as much room again. */
enum { DPF_SUM_VALUE_LOG2 = 36, DPF_SUM_RECORDS_LOG2 = 25 };
/* The finest step that keeps values so small. */
double dpf_record_least_step(const struct dpf_record_bounds *b);

#endif
