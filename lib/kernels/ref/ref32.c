/* The reference in single precision. */
#include "kernels/kernels.h"

#define DPF_TABLE dpf_kernels
#define DPF_REAL  float
#define REF_TABLE dpf_kernels_ref
#define REF_NAME  "ref"
#include "kernels/ref/ops.inc"

#include "base/banned.h"
