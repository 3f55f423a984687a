/* The operations of a training step in host memory, for backends that work there. */
#ifndef DPF_KERNELS_HOST_H
#define DPF_KERNELS_HOST_H

#include "kernels/kernels.h"

/* A microbatch's values should stay in a core's cache, but its weights have to be read
 * for each one: large dense layers want more examples at a time. */
int64_t dpf_host_microbatch(struct dpf_context *context, size_t example_bytes,
                            size_t parameter_bytes);
void dpf_host_losses(struct dpf_context *context, const struct dpf_loss *loss, int64_t n,
                     int64_t classes, int64_t voxels, const float *z,
                     const int32_t *labels, const float *values, float *dz,
                     double *loss_of, int32_t *correct);
void dpf_host_clip_factors(struct dpf_context *context, int64_t n, bool automatic,
                           double limit, const double *square, float *factor, float *keep,
                           int64_t counts[2]);
void dpf_host_grid_add(struct dpf_context *context, double step, size_t count,
                       float *part, int64_t *sums);
void dpf_host_optimise(struct dpf_context *context, const struct dpf_step *step,
                       size_t count, float *w, float *g, float *m, float *v);
bool dpf_host_all_finite(struct dpf_context *context, size_t count, const float *x);

/* All of them, for a table's initialiser. */
#define DPF_HOST_STEPS                                                                   \
    .microbatch = dpf_host_microbatch, .losses = dpf_host_losses,                        \
    .clip_factors = dpf_host_clip_factors, .grid_add = dpf_host_grid_add,                \
    .optimise = dpf_host_optimise, .all_finite = dpf_host_all_finite

#endif
