#include "privacy/clip.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

double dpf_norm_of(enum dpf_norm norm, const double *x, size_t count)
{
    double sum = 0, largest = 0, bad = 0;
    for (size_t i = 0; i < count; i++) {
        double size = fabs(x[i]);
        bad += x[i] * 0; /* NaN unless finite */
        largest = fmax(largest, size);
        sum += norm == DPF_NORM_L2 ? size * size : size;
    }
    if (bad != 0 || isnan(bad))
        return NAN;
    if (norm == DPF_NORM_L2 && (isinf(sum) || sum < 1e-280) && largest > 0) {
        sum = 0; /* squares leave the range of doubles: in units of the largest */
        for (size_t i = 0; i < count; i++)
            sum += x[i] / largest * (x[i] / largest);
        return largest * sqrt(sum);
    }
    return norm == DPF_NORM_MAX ? largest : norm == DPF_NORM_L1 ? sum : sqrt(sum);
}

bool dpf_clip(enum dpf_norm norm, double bound, double *x, size_t count)
{
    double size = dpf_norm_of(norm, x, count);
    double allowance = 0x1p-40 + (double)count * 0x1p-52;
    if (isnan(size) || isinf(size) || !(bound > 0)) {
        memset(x, 0, count * sizeof *x);
        return true;
    }
    if (norm == DPF_NORM_MAX) {
        for (size_t i = 0; i < count; i++)
            x[i] = fmin(fmax(x[i], -bound), bound);
        return size > bound;
    }
    if (size * (1 + allowance) <= bound)
        return false;
    /* in units of a power of two near the norm, so that no factor loses digits to the end
     * of the range of doubles; a bound that lies there itself leaves nothing */
    int exponent;
    double fraction = frexp(size, &exponent);
    double factor = bound > 0x1p-900 ? bound / fraction * (1 - 2 * allowance) : 0;
    for (size_t i = 0; i < count; i++)
        x[i] = ldexp(x[i], -exponent) * factor;
    return size > bound;
}
