/* What the generators behind synth.h share and nobody else needs: a source that makes one
 * record at a time from its index, and the few functions of arithmetic that their shapes
 * are drawn with. They stand here once, because a generator that did its own batching or
 * its own rounding could break the promise that record i is the same everywhere.
 *
 * Include it below `#pragma STDC FP_CONTRACT OFF`: the inline functions must round like
 * the rest of the generator. */
#ifndef DPF_DATA_SYNTH_COMMON_H
#define DPF_DATA_SYNTH_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/source.h"
#include "random/seeded.h"

struct dpf_synth {
    struct dpf_source source; /* first, because the operations cast back */
    uint64_t seed;
    uint64_t next, end;
    /* Write record `index` to the first field, `x`, and the second, `y`. */
    void (*make)(struct dpf_synth *s, uint64_t index, void *x, void *y);
    void *scratch; /* zeroed memory for `make`, or NULL */
};

/* A source of records first..first+count-1 without fields yet, with `scratch` bytes for
 * `make`; 0 is fine. It becomes the caller's, to be passed on by dpf_synth_give().
 * DPF_USAGE if first + count exceeds 64 bits; DPF_SYSTEM when out of memory. */
enum dpf_status dpf_synth_new(uint64_t seed, uint64_t first, uint64_t count,
                              void (*make)(struct dpf_synth *, uint64_t, void *, void *),
                              size_t scratch, struct dpf_synth **take,
                              struct dpf_error *e);
/* Declare the next field: labels if `classes`, otherwise values in [lo,hi]. DPF_SYSTEM
 * when out of memory. */
enum dpf_status dpf_synth_add_field(struct dpf_synth *s, const char *name,
                                    enum dpf_dtype dtype, const struct dpf_shape *shape,
                                    uint64_t classes, double lo, double hi,
                                    struct dpf_error *e);
/* Pass a finished source on, or destroy one whose fields could not be declared, which
 * `status` tells and which is returned. take_s is consumed either way. */
enum dpf_status dpf_synth_give(struct dpf_synth *take_s, enum dpf_status status,
                               struct dpf_source **take);

/* Nearly normal with mean 0 and deviation 1, within +-3.47: a sum of four uniforms, which
 * needs no libm and has no tails that would throw a record out of its bounds. */
double dpf_synth_bell(struct dpf_seeded *r);

static inline double dpf_synth_clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* 0 to 1 with flat ends, so that what is interpolated with it has no creases. */
static inline double dpf_synth_smooth(double t)
{
    return t * t * (3 - 2 * t);
}

/* Cosine and sine of 2 atan(half_tangent): a rotation without libm. */
static inline void dpf_synth_turn(double half_tangent, double *c, double *s)
{
    double square = half_tangent * half_tangent;
    *c = (1 - square) / (1 + square);
    *s = 2 * half_tangent / (1 + square);
}

#endif
