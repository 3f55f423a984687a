/* The reference in single precision. */
#include "kernels/host.h"

#define DPF_TABLE dpf_kernels
#define DPF_REAL  float
#define REF_TABLE dpf_kernels_ref
#define REF_NAME  "ref"
#define REF_STEPS DPF_HOST_STEPS,
#include "kernels/ref/ops.inc"

#include "base/banned.h"
