/* Data sets made from a seed, for a machine that has no data set and for tests that need
 * the same one everywhere: handwritten-looking digits, a census-like regression table and
 * volumes like brain-tumour MRI. They describe nobody (datasets/SYNTHETIC.md says what is
 * behind them).
 *
 * Record i is a function of the seed and i alone: not of the count, the size of a batch
 * or the order of reading. `first` is the index of the first record, so a training set of
 * records 0..59999 and a test set from 60000 on never share one.
 *
 * Digits and volumes use only + - * / and sqrt on doubles, which IEEE 754 rounds exactly,
 * so their bytes are the same on every machine. The census draws logarithms, and rounds
 * its values to whole numbers, which hides the last bit of a machine's libm. */
#ifndef DPF_DATA_SYNTH_H
#define DPF_DATA_SYNTH_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/status.h"
#include "data/source.h"
#include "random/seeded.h"

enum {
    DPF_SYNTH_DIGIT_SIDE = 28,
    DPF_SYNTH_CENSUS_FEATURES = 12,
    DPF_SYNTH_MIN_SIDE = 16, /* of a volume */
    DPF_SYNTH_MAX_SIDE = 128,
    DPF_SYNTH_MAX_CHANNELS = 4,
};

/* Each opens a source of `count` records and gives it to the caller, who ends it with
 * dpf_source_destroy(). The header knows the number of records and calls them public.
 * DPF_USAGE if first + count exceeds 64 bits; DPF_SYSTEM when out of memory. */

/* x: u8 [28,28] in [0,255], white on black; y: u8, 10 classes. */
enum dpf_status dpf_synth_digits_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e);
/* x: f32 [12], named features with a pair of bounds each; y: f32 scalar, the income, in
 * [0,400000]. */
enum dpf_status dpf_synth_census_open(uint64_t seed, uint64_t first, uint64_t count,
                                      struct dpf_source **take, struct dpf_error *e);
/* x: f32 [channels,side,side,side] in [0,1], the channels being FLAIR, T1, T1 with
 * contrast agent, T2; mask: u8 [side,side,side], 4 classes: 0 background, 1 edema,
 * 2 non-enhancing, 3 enhancing core. With fewer channels, the ones that remain and the
 * mask are unchanged. DPF_USAGE unless channels is 1..4 and side 16..128. */
enum dpf_status dpf_synth_tumour_open(uint64_t seed, uint64_t first, uint64_t count,
                                      uint64_t channels, uint64_t side,
                                      struct dpf_source **take, struct dpf_error *e);

/* What follows is shared by the generators and of no use to anyone else. */

struct dpf_synth {
    struct dpf_source source; /* first, because the operations cast back */
    uint64_t seed;
    uint64_t next, end;
    /* Write record `index` to the first field, `x`, and the second, `y`. */
    void (*make)(struct dpf_synth *s, uint64_t index, void *x, void *y);
    void *scratch; /* zeroed memory for `make`, or NULL */
};

static inline enum dpf_status dpf_synth_fill(struct dpf_source *source,
                                             struct dpf_batch *b, uint64_t want,
                                             uint64_t *filled, struct dpf_error *e)
{
    (void)e;
    struct dpf_synth *s = (struct dpf_synth *)source;
    unsigned char *x = b->tensor[0].data, *y = b->tensor[1].data;
    size_t x_bytes = dpf_tensor_row_bytes(&b->tensor[0]);
    size_t y_bytes = dpf_tensor_row_bytes(&b->tensor[1]);
    uint64_t left = s->end - s->next, rows = want < left ? want : left;
    for (uint64_t i = 0; i < rows; i++)
        s->make(s, s->next++, x + i * x_bytes, y + i * y_bytes);
    *filled = rows;
    return DPF_OK;
}

static inline void dpf_synth_destroy(struct dpf_source *source)
{
    struct dpf_synth *s = (struct dpf_synth *)source;
    free(s->scratch);
    free(s);
}

/* A source without fields yet. `scratch` may be 0. */
static inline enum dpf_status
dpf_synth_new(uint64_t seed, uint64_t first, uint64_t count,
              void (*make)(struct dpf_synth *, uint64_t, void *, void *), size_t scratch,
              struct dpf_synth **take, struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {dpf_synth_fill, dpf_synth_destroy};
    if (count > UINT64_MAX - first)
        return dpf_fail(e, DPF_USAGE, "records from %llu on: there are no '%llu' of them",
                        (unsigned long long)first, (unsigned long long)count);
    struct dpf_synth *s = dpf_calloc(1, sizeof *s);
    void *memory = scratch ? dpf_calloc(1, scratch) : NULL;
    if (!s || (scratch && !memory)) {
        free(s);
        free(memory);
        return dpf_fail_memory(e);
    }
    *s = (struct dpf_synth){.source.ops = &ops,
                            .seed = seed,
                            .next = first,
                            .end = first + count,
                            .make = make,
                            .scratch = memory};
    s->source.header.has_records = true;
    s->source.header.records = count;
    *take = s;
    return DPF_OK;
}

/* Pass a finished source on, or destroy one whose fields could not be declared. */
static inline enum dpf_status
dpf_synth_give(struct dpf_synth *take_s, enum dpf_status status, struct dpf_source **take)
{
    struct dpf_source *source = &take_s->source;
    if (status == DPF_OK)
        *take = source;
    else
        dpf_source_destroy(&source);
    return status;
}

/* Declare the next field: labels if `classes`, otherwise values in [lo,hi]. */
static inline enum dpf_status dpf_synth_add_field(struct dpf_synth *s, const char *name,
                                                  enum dpf_dtype dtype,
                                                  const struct dpf_shape *shape,
                                                  uint64_t classes, double lo, double hi,
                                                  struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_add_field(&s->source.header, name, dtype, shape);
    if (!f)
        return dpf_fail_memory(e);
    f->classes = classes;
    return classes ? DPF_OK : dpf_field_set_bounds(f, lo, hi, e);
}

static inline double dpf_synth_clamp(double value, double lo, double hi)
{
    return value < lo ? lo : value > hi ? hi : value;
}

/* 0 to 1 with flat ends, so that what is interpolated with it has no creases. */
static inline double dpf_synth_smooth(double t)
{
    return t * t * (3 - 2 * t);
}

/* Nearly normal with mean 0 and deviation 1, within +-3.47: a sum of four uniforms, which
 * needs no libm and has no tails that would throw a record out of its bounds. */
static inline double dpf_synth_bell(struct dpf_seeded *r)
{
    uint64_t bits = dpf_seeded_u64(r), sum = 0;
    for (int i = 0; i < 4; i++)
        sum += bits >> (16 * i) & 0xffff;
    return ((double)sum - 2 * 65535.0) / 37837.22; /* sqrt(4 (2^32 - 1) / 12) */
}

/* Cosine and sine of 2 atan(half_tangent): a rotation without libm. */
static inline void dpf_synth_turn(double half_tangent, double *c, double *s)
{
    double square = half_tangent * half_tangent;
    *c = (1 - square) / (1 + square);
    *s = 2 * half_tangent / (1 + square);
}

#endif
