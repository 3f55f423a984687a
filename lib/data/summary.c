#include "data/summary.h"

#include <math.h>
#include <string.h>

#include "base/banned.h"

/* Double the range towards `value`, folding neighbours; false at the end of the numbers.
 */
static bool widen(struct dpf_summary *s, double value)
{
    uint64_t folded[DPF_SUMMARY_BINS] = {0};
    int half = DPF_SUMMARY_BINS / 2;
    bool down = value < s->start;
    double span = DPF_SUMMARY_BINS * s->width, start = down ? s->start - span : s->start;
    if (!isfinite(start) || !isfinite(start + 2 * span))
        return false;
    for (int i = 0; i < half; i++)
        folded[down ? half + i : i] = s->bins[2 * i] + s->bins[2 * i + 1];
    memcpy(s->bins, folded, sizeof folded);
    s->start = start;
    s->width *= 2;
    return true;
}

static void add_to_bin(struct dpf_summary *s, double value)
{
    if (s->width <= 0) { /* the first value sits in the middle of a tiny range */
        double scale = fmin(fmax(fabs(value), 1e-3), 1e300);
        s->width = ldexp(1, ilogb(scale) - 12);
        s->start = floor(fmin(fmax(value, -1e300), 1e300) / s->width) * s->width -
                   DPF_SUMMARY_BINS / 2 * s->width;
    }
    while ((value < s->start || value >= s->start + DPF_SUMMARY_BINS * s->width) &&
           widen(s, value))
        continue;
    /* What lies outside even the widest range goes into the outermost bin. */
    double place = value / s->width - s->start / s->width;
    place = fmin(fmax(place, 0), DPF_SUMMARY_BINS - 1);
    s->bins[(int)place]++;
}

/* Add the finite values of a block: its own moments first, then the pairwise update of
 * Chan, Golub and LeVeque, which loses no digits to a long run. */
static void add_block(struct dpf_summary *s, const double *v, size_t n)
{
    long double sum = 0;
    double square = 0;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) {
            s->not_finite++;
            continue;
        }
        s->lo = s->count + count == 0 || v[i] < s->lo ? v[i] : s->lo;
        s->hi = s->count + count == 0 || v[i] > s->hi ? v[i] : s->hi;
        sum += (long double)v[i];
        count++;
        add_to_bin(s, v[i]);
    }
    if (count == 0)
        return;
    double mean = (double)(sum / (long double)count);
    for (size_t i = 0; i < n; i++)
        if (isfinite(v[i]))
            square += (v[i] - mean) * (v[i] - mean);
    double delta = mean - dpf_summary_mean(s), before = (double)s->count;
    s->count += count;
    s->sum += sum;
    s->square += square + delta * delta * before * (double)count / (double)s->count;
}

void dpf_summary_add(struct dpf_summary *s, const struct dpf_tensor *t)
{
    enum { BLOCK = 1024 };
    double block[BLOCK];
    uint64_t n = dpf_shape_elements(&t->shape);
    for (uint64_t i = 0; i < n; i += BLOCK) {
        size_t size = n - i < BLOCK ? (size_t)(n - i) : BLOCK;
        for (size_t k = 0; k < size; k++)
            block[k] = dpf_tensor_get(t, i + k);
        add_block(s, block, size);
    }
}

double dpf_summary_mean(const struct dpf_summary *s)
{
    return s->count ? (double)(s->sum / (long double)s->count) : 0;
}

double dpf_summary_deviation(const struct dpf_summary *s)
{
    return s->count ? sqrt(s->square / (double)s->count) : 0;
}

void dpf_summary_histogram(const struct dpf_summary *s, uint64_t *bars, int columns)
{
    memset(bars, 0, (size_t)columns * sizeof *bars);
    double span = s->hi / 2 - s->lo / 2; /* halves: the difference may overflow */
    for (int i = 0; i < DPF_SUMMARY_BINS; i++) {
        if (!s->bins[i])
            continue;
        double middle = s->start + (i + 0.5) * s->width;
        double place = span > 0 ? (middle / 2 - s->lo / 2) / span * columns : 0;
        place = fmin(fmax(place, 0), columns - 1); /* a NaN becomes 0 */
        bars[(int)place] += s->bins[i];
    }
}
