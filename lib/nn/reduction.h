/* Where the sums of several ranks become one: the only place in a training step where
 * another process takes part.
 *
 * A step goes: parts of the lot -> integers -> reduce -> noise -> update -> share. Every
 * rank computes the sums of its own examples (nn/engine.h), on the same grid. reduce()
 * adds those of all ranks, exactly, since they are integers; afterwards a rank holds the
 * total of its own slice and nothing of the others. It draws the noise of that slice and
 * takes the optimiser's step on it; share() then gives the new parameters to all. So
 * noise is drawn once for each parameter, whatever the number of ranks.
 *
 * Claim. If the ranks' examples are disjoint and reduce() adds exactly, the total is what
 * one rank with all examples has, up to how the lot is cut into parts: the sensitivity of
 * privacy/lot_sum.h holds for it, because integers add up without rounding and every part
 * stays within one rank. Overflow: DPF_LOT_MOST bounds the lot of all ranks together, not
 * of each; whoever implements reduce() sees to it, and that all ranks call it with the
 * same kind of sums (they all have computed a lot, an empty one too). The bits are those
 * of one rank if every child of the root of the parts' tree is in one rank.
 *
 * Moments of an optimiser are those of the rank's own slice. A rank whose update fails
 * does not come to share(): it has to end the job.
 *
 * An engine without a reduction is alone: its slice is everything. */
#ifndef DPF_NN_REDUCTION_H
#define DPF_NN_REDUCTION_H

#include "kernels/kernels.h"

/* Slices begin at multiples of this, so that seeded noise is the same for any ranks. */
enum { DPF_REDUCTION_BLOCK = 1024 };

struct dpf_slice {
    size_t from, to;
};

struct dpf_reduction {
    void *state;
    /* Sums of clipped gradients, or of plain ones, [count], memory of the backend (`c` is
     * a context of the caller's thread). On return those of *own are totals and all
     * others are 0. Every rank has to call it, in the same order. */
    enum dpf_status (*reduce_integers)(void *state, const struct dpf_kernels *k,
                                       struct dpf_context *c, int64_t *sums, size_t count,
                                       struct dpf_slice *own, struct dpf_error *e);
    enum dpf_status (*reduce_floats)(void *state, const struct dpf_kernels *k,
                                     struct dpf_context *c, float *sums, size_t count,
                                     struct dpf_slice *own, struct dpf_error *e);
    /* Parameters, [count]: this rank's slice to all others, theirs into place. */
    enum dpf_status (*share)(void *state, const struct dpf_kernels *k,
                             struct dpf_context *c, float *parameters, size_t count,
                             struct dpf_slice own, struct dpf_error *e);
};

#endif
