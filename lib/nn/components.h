/* Principal components of records as a dense layer: a public projection learned from
 * public records, before anything private is told in fewer dimensions.
 *
 * y = W (x - mean), the rows of W the k directions of largest variance, each divided by
 * its deviation to the power `whiten`: 0 leaves the variances as they are, 1 makes them
 * all 1. */
#ifndef DPF_NN_COMPONENTS_H
#define DPF_NN_COMPONENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct dpf_components {
    size_t values;
    uint64_t records;
    double *sum, *gram; /* [values], [values, values] */
    double *room;
    size_t room_capacity;
};

enum dpf_status dpf_components_init(struct dpf_components *c, size_t values,
                                    struct dpf_error *e);
void dpf_components_release(struct dpf_components *c);
enum dpf_status dpf_components_add(struct dpf_components *c, const float *x, size_t count,
                                   struct dpf_error *e);
/* weights [k, values], bias [k]. DPF_USAGE if the records span fewer than k dimensions;
 * *share is the part of the variance that is kept. */
enum dpf_status dpf_components_solve(struct dpf_components *c, size_t k, double whiten,
                                     float *weights, float *bias, double *share,
                                     struct dpf_error *e);

#endif
