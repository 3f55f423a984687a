/* Values on a grid of a power of two.
 *
 * Noise on floating-point numbers leaks through their uneven gaps, and float sums depend
 * on the order of their terms. Mechanisms here work on integers: a value is rounded to a
 * multiple of a public step, sums and noise are integers, and only the released result
 * becomes a real number again. Scaling by a power of two is exact. */
#ifndef DPF_PRIVACY_GRID_H
#define DPF_PRIVACY_GRID_H

#include <math.h>
#include <stdint.h>

/* The largest power of two that is not above x > 0. */
static inline double dpf_grid_floor_power(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent - 1);
}

/* The step for values that are rounded (parts > 0): 2^-log2 of the noise's size, but not
 * below `least`; for values that are multiples of `exact` already, that. NaN if it is no
 * step. */
static inline double dpf_grid_choose(unsigned parts, double noise, int log2, double least,
                                     double exact)
{
    double step = parts ? fmax(ldexp(dpf_grid_floor_power(noise), -log2), least) : exact;
    return step > 0 && isfinite(step) ? step : NAN;
}

/* value / step, rounded to the nearest integer and held within +-2^60 (four of them can
 * be added); what is no number becomes 0. */
static inline int64_t dpf_grid_round(double value, double step)
{
    const double limit = 0x1p60;
    double scaled = value / step;
    if (isnan(scaled))
        return 0;
    return (int64_t)llrint(fmin(fmax(scaled, -limit), limit));
}

/* The same for vector code, as a double that holds the integer, within +-2^49: sums of a
 * few are exact. `per_step` is 1 / step, exact for a power of two. */
static inline double dpf_grid_nearest(double value, double per_step)
{
    const double limit = 0x1p49, magic = 0x1.8p52; /* adding it rounds to an integer */
    double scaled = value * per_step;
    scaled = scaled == scaled ? scaled : 0;
    scaled = scaled < limit ? scaled : limit;
    scaled = scaled > -limit ? scaled : -limit;
    return (scaled + magic) - magic;
}

/* An integer on a grid that is 2^shift times as coarse, shift >= 0, |value| < 2^62. */
static inline int64_t dpf_grid_coarsen(int64_t value, int shift)
{
    if (shift > 62)
        return 0;
    int64_t half = shift > 0 ? (int64_t)1 << (shift - 1) : 0;
    return (value + half) >> shift; /* towards minus infinity, so to the nearest */
}

#endif
