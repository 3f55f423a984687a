/* The reference in double precision: the same source as ref, compiled for double, so that
 * finite differences are exact enough to tell a wrong gradient from rounding. For tests.
 */
#ifndef DPF_KERNELS_REF_REF64_H
#define DPF_KERNELS_REF_REF64_H

#include "kernels/kernels.h"

#define DPF_TABLE dpf_kernels64
#define DPF_REAL  double
#include "kernels/table.inc"
#undef DPF_TABLE
#undef DPF_REAL

extern const struct dpf_kernels64 dpf_kernels_ref64;

#endif
