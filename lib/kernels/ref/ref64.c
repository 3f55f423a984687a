/* The reference in double precision. */
#include "kernels/ref/ref64.h"

#define DPF_TABLE dpf_kernels64
#define DPF_REAL  double
#define REF_TABLE dpf_kernels_ref64
#define REF_NAME  "ref64"
#define REF_STEPS /* gradients alone are checked */
#include "kernels/ref/ops.inc"

#include "base/banned.h"
