/* The parts of the cpu backend: products from OpenBLAS, convolutions from oneDNN, the
 * other layers in C that the compiler vectorises, compiled once for every machine and
 * once for AVX2. Everything runs on the caller's thread (see kernels.h). */
#ifndef DPF_KERNELS_CPU_CPU_H
#define DPF_KERNELS_CPU_CPU_H

#include "kernels/kernels.h"

/* Put the operations of one part into a table. */
void dpf_cpu_add_products(struct dpf_kernels *table);
void dpf_cpu_add_convolutions(struct dpf_kernels *table);
void dpf_cpu_add_rows(struct dpf_kernels *table);
void dpf_cpu_add_layers_base(struct dpf_kernels *table);
void dpf_cpu_add_layers_avx2(struct dpf_kernels *table);

/* This thread's memory for intermediate results: at least `bytes`, aligned, valid until
 * the next call of the same `slot`; NULL is remembered and reported by finish(). */
enum dpf_cpu_scratch { DPF_CPU_PATCHES, DPF_CPU_GRAMS, DPF_CPU_WEIGHTS, DPF_CPU_SUMS };
void *dpf_cpu_scratch(enum dpf_cpu_scratch slot, size_t bytes);
/* oneDNN on this thread, and on this thread only; false if it cannot be had. */
bool dpf_cpu_begin_thread(void);
/* Remember that an operation of this thread could not be done. */
void dpf_cpu_fail(const char *what);
/* Release what convolutions keep for this thread. */
void dpf_cpu_end_convolutions(void);

#endif
