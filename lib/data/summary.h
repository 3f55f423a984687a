/* Statistics of a field for people: minimum, mean, maximum, deviation and a histogram, in
 * one pass and constant memory. For inspection: what it prints depends on the data. */
#ifndef DPF_DATA_SUMMARY_H
#define DPF_DATA_SUMMARY_H

#include "tensor/tensor.h"

enum { DPF_SUMMARY_BINS = 64 };

struct dpf_summary {
    uint64_t count, not_finite;
    double lo, hi;
    long double sum; /* exact for whole numbers of any sensible size */
    double square;   /* squared distances from the mean */
    /* Bins cover [start, start + BINS * width); the width doubles when values fall
     * outside, so the range need not be known beforehand. */
    double start, width;
    uint64_t bins[DPF_SUMMARY_BINS];
};

void dpf_summary_add(struct dpf_summary *s, const struct dpf_tensor *t);
double dpf_summary_mean(const struct dpf_summary *s);
double dpf_summary_deviation(const struct dpf_summary *s);
/* The histogram from minimum to maximum in `columns` bars. */
void dpf_summary_histogram(const struct dpf_summary *s, uint64_t *bars, int columns);

#endif
