/* Layers for machines with AVX2 and FMA; the Makefile compiles this file for them. */
#include "kernels/cpu/cpu.h"

#if defined(__x86_64__)
#define ADD_LAYERS dpf_cpu_add_layers_avx2
#include "kernels/cpu/layers.inc"
#endif

#include "base/banned.h"
