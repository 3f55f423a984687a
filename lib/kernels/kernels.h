/* The compute vtable: every operation on numbers that a network needs, behind one table a
 * backend. ref/ is plain C, obviously right, and the truth that the others are held
 * against; faster ones are made of libraries and plug in here. nn/ knows only this
 * header.
 *
 * Tensors are dense, batch first and channels last: [n, depth, height, width, channels];
 * pictures have depth 1. A position's channels side by side are what vector units and
 * products want. Memory belongs to the backend (a device's memory is not the host's), so
 * it is allocated, filled and read through the table. Every call names a context, which
 * is open on one device and used by one thread at a time. Operations are queued there in
 * order; only `get`, `finish` and what says so wait for them. A host backend uses no
 * other thread than the caller's: networks run side by side on parts of a lot, which
 * beats sharing out every small operation. Every operation takes a whole microbatch.
 * Sizes are checked by the caller when a model is built, so operations cannot fail,
 * except for lack of memory, which `finish` reports.
 *
 * Gradients of parameters are added to what is there (microbatches add up); gradients of
 * data are overwritten. */
#ifndef DPF_KERNELS_KERNELS_H
#define DPF_KERNELS_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "kernels/loss.h"
#include "kernels/step.h"
#include "kernels/unary.h"

enum { DPF_SPACE = 3 }; /* depth, height, width */

/* A convolution, a cross-correlation: y[o] = b[o] + sum x[i] w[o,i]. Weights
 * are [out_channels, in_channels, kernel...], as everywhere. The transposed convolution
 * is the same geometry with forward and backward-data exchanged. */
struct dpf_conv {
    int64_t in_channels, out_channels;
    int64_t in[DPF_SPACE], out[DPF_SPACE];
    int64_t kernel[DPF_SPACE], stride[DPF_SPACE], pad[DPF_SPACE]; /* pad: at the start */
};

/* Pooling over windows that are cut off at the borders. */
struct dpf_pool {
    int64_t channels;
    int64_t in[DPF_SPACE], out[DPF_SPACE];
    int64_t kernel[DPF_SPACE], stride[DPF_SPACE], pad[DPF_SPACE];
};

/* Local response normalisation: y_c = x_c / (bias + alpha * sum x_d^2)^beta, the sum over
 * the `window` channels around c. */
struct dpf_lrn {
    int64_t channels, positions; /* positions: depth * height * width */
    int64_t window;
    double bias, alpha, beta;
};

/* Group normalisation with a scale and a shift a channel. */
struct dpf_group_norm {
    int64_t channels, positions, groups;
    double epsilon; /* added to the variance */
};

/* A backend at work on one device. A backend's own context begins with this. */
struct dpf_context {
    int device;
};

#define DPF_TABLE dpf_kernels
#define DPF_REAL  float
#define DPF_TABLE_HAS_STEPS
#include "kernels/table.inc"
#undef DPF_TABLE
#undef DPF_REAL
#undef DPF_TABLE_HAS_STEPS

/* Plain C in single precision; always there. */
extern const struct dpf_kernels dpf_kernels_ref;
/* oneDNN, OpenBLAS and vector code. */
const struct dpf_kernels *dpf_kernels_cpu(void);

/* Those that are built in, ended by a row without a name. */
struct dpf_backend {
    const char *name;
    const struct dpf_kernels *(*table)(void);
};
extern const struct dpf_backend dpf_backends[];
/* A backend by name: built in, or the plug-in dpflow-NAME.so of kind "backend", whose
 * table is a struct dpf_kernels (base/plugin.h). DPF_UNAVAILABLE if there is none. */
enum dpf_status dpf_backend_find(const char *name, const struct dpf_kernels **kernels,
                                 struct dpf_error *e);

#endif
