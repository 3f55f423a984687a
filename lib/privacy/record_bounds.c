#include "privacy/record_bounds.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "privacy/grid.h"

#include "base/banned.h"

enum dpf_status dpf_record_bounds_init(struct dpf_record_bounds *b, size_t values,
                                       struct dpf_error *e)
{
    *b = (struct dpf_record_bounds){.values = values};
    b->lo = dpf_calloc(values + 1, sizeof *b->lo);
    b->hi = dpf_calloc(values + 1, sizeof *b->hi);
    return b->lo && b->hi ? DPF_OK : dpf_fail_memory(e);
}

void dpf_record_bounds_release(struct dpf_record_bounds *b)
{
    free(b->lo);
    free(b->hi);
    *b = (struct dpf_record_bounds){0};
}

/* Above what rounding of n terms takes away, see the proof. */
static double rounded_up(double norm, size_t n)
{
    return norm * (1 + fmax(1e-13, 2 * ((double)n + 8) * 0x1p-53));
}

double dpf_record_sensitivity(const struct dpf_record_bounds *b, bool l2, bool replace)
{
    double sum = 0;
    bool any = false;
    if (b->radius > 0)
        return b->radius * (replace ? 2 : 1);
    for (size_t i = 0; i < b->values; i++) {
        double one = replace ? b->hi[i] - b->lo[i] : fmax(fabs(b->lo[i]), fabs(b->hi[i]));
        sum += l2 ? one * one : one;
        any = any || one > 0;
    }
    bool lost = l2 && sum < DBL_MIN && any; /* squares underflow */
    return lost ? (double)INFINITY : rounded_up(l2 ? sqrt(sum) : sum, b->values);
}

double dpf_record_largest(const struct dpf_record_bounds *b)
{
    double largest = fmax(b->radius, 1e-290);
    for (size_t i = 0; i < b->values; i++)
        largest = fmax(largest, fmax(fabs(b->lo[i]), fabs(b->hi[i])));
    return largest;
}

double dpf_record_least_step(const struct dpf_record_bounds *b)
{
    return ldexp(dpf_grid_floor_power(dpf_record_largest(b)), -DPF_SUM_VALUE_LOG2);
}

static double clip_value(double value, double lo, double hi, uint64_t *clipped)
{
    if (value >= lo && value <= hi)
        return value;
    ++*clipped;
    return value > hi ? hi : value < lo ? lo : dpf_record_middle(lo, hi);
}

uint64_t dpf_record_clip(const struct dpf_record_bounds *b, const float *record,
                         double *out)
{
    uint64_t clipped = 0;
    for (size_t i = 0; i < b->values; i++)
        out[i] = b->radius > 0
                     ? (double)record[i]
                     : clip_value((double)record[i], b->lo[i], b->hi[i], &clipped);
    if (b->radius > 0)
        clipped += dpf_clip(b->norm, b->radius, out, b->values);
    return clipped;
}
