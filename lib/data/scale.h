/* Scaling records into declared, public bounds.
 *
 * Scales come from the user or from declared bounds. Taking them from the data would leak
 * the data's extremes through every record, so fitting exists only for experiments and
 * the stage that uses it says so in the ledger. */
#ifndef DPF_DATA_SCALE_H
#define DPF_DATA_SCALE_H

#include "base/status.h"
#include "tensor/tensor.h"

/* An affine map a feature: y = (x - offset) * factor, clipped into [lo, hi] if clip.
 * count is 1 (the same for all values) or the number of features of a record. */
struct dpf_scale {
    size_t count;
    float *offset, *factor;
    float *in_lo, *in_hi; /* clip: the declared bounds, to count what lies outside */
    bool clip;
    float lo, hi;
};

/* DPF_USAGE if bounds are too wide, or too near each other, for single precision.
 * Map [lo[i], hi[i]] onto [0, 1], or [-1, 1] if `both_signs`, and clip. A feature whose
 * bounds coincide becomes 0. */
enum dpf_status dpf_scale_from_bounds(struct dpf_scale *s, const double *lo,
                                      const double *hi, size_t count, bool both_signs,
                                      struct dpf_error *e);
/* Centre and divide by the deviation; no clipping. */
enum dpf_status dpf_scale_from_moments(struct dpf_scale *s, const double *mean,
                                       const double *deviation, size_t count,
                                       struct dpf_error *e);
void dpf_scale_release(struct dpf_scale *s);

/* In place, on f32 records. *clipped grows by the values that were outside. A value that
 * is not finite is DPF_BAD_STREAM (without saying where it stands). */
enum dpf_status dpf_scale_apply(const struct dpf_scale *s, struct dpf_tensor *x,
                                uint64_t *clipped, struct dpf_error *e);
/* Each record to mean 0 and deviation 1 by its own moments; a constant one to 0. */
enum dpf_status dpf_scale_zscore(struct dpf_tensor *x, struct dpf_error *e);
/* Each record with an L2 norm above `radius` down to it. */
enum dpf_status dpf_scale_ball(struct dpf_tensor *x, double radius, struct dpf_error *e);

/* What a stage may be asked to do to each record, in this order. */
struct dpf_scaling {
    struct dpf_scale scale; /* if scale.count > 0 */
    bool zscore;
    float *weights; /* one a feature, at most 1; or NULL */
    double ball_l2; /* if > 0 */
    uint64_t clipped;
};
/* Weights from relevances: (|r| / the largest)^power. Owned by the scaling. */
enum dpf_status dpf_scaling_weigh(struct dpf_scaling *s, const double *relevance,
                                  size_t features, double power, struct dpf_error *e);
void dpf_scaling_release(struct dpf_scaling *s);
enum dpf_status dpf_scaling_apply(struct dpf_scaling *s, struct dpf_tensor *x,
                                  struct dpf_error *e);

/* Running minimum, maximum, mean and deviation of each feature (Welford). */
struct dpf_moments {
    size_t features;
    uint64_t records;
    double *lo, *hi, *mean, *square;
};
enum dpf_status dpf_moments_init(struct dpf_moments *m, size_t features,
                                 struct dpf_error *e);
enum dpf_status dpf_moments_add(struct dpf_moments *m, const struct dpf_tensor *x,
                                struct dpf_error *e);
/* Turn `square` into deviations. */
void dpf_moments_finish(struct dpf_moments *m);
void dpf_moments_release(struct dpf_moments *m);
/* The scale that finished moments make: their extremes onto [0, 1] (or [-1, 1]) if
 * `unit`, else mean 0 and deviation 1. */
enum dpf_status dpf_scale_from_fit(struct dpf_scale *s, const struct dpf_moments *m,
                                   bool unit, bool both_signs, struct dpf_error *e);

/* The mean of each feature over each `lot` records that follow one another, the last lot
 * being what is left. */
struct dpf_lot_means {
    size_t features;
    uint64_t lot, records; /* seen, and then centred */
    double *sums;          /* [lots, features] */
    size_t capacity;
};
void dpf_lot_means_init(struct dpf_lot_means *m, size_t features, uint64_t lot);
enum dpf_status dpf_lot_means_add(struct dpf_lot_means *m, const struct dpf_tensor *x,
                                  struct dpf_error *e);
/* Sums become means; the next records to be centred are the first again. */
void dpf_lot_means_finish(struct dpf_lot_means *m);
void dpf_lot_means_subtract(struct dpf_lot_means *m, struct dpf_tensor *x);
void dpf_lot_means_release(struct dpf_lot_means *m);

#endif
