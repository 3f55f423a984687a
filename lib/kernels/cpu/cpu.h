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

/* A context: memory for intermediate results, what oneDNN keeps, what went wrong. */
enum dpf_cpu_scratch {
    DPF_CPU_PATCHES,
    DPF_CPU_GRAMS,
    DPF_CPU_WEIGHTS,
    DPF_CPU_SUMS,
    DPF_CPU_GRADIENT,
    DPF_CPU_CONVOLUTION,
    DPF_CPU_REORDER,
    DPF_CPU_SCRATCHES
};
struct dpf_cpu {
    struct dpf_context base;
    void *memory[DPF_CPU_SCRATCHES];
    size_t bytes[DPF_CPU_SCRATCHES];
    const char *failed;
    struct dpf_cpu_convolutions *convolutions; /* made on first use */
};

/* What is not needed by an operation; and what it is to one that needs it. */
#define CONTEXT __attribute__((unused)) struct dpf_context *context
#define CPU     ((struct dpf_cpu *)(void *)context)

/* At least `bytes`, aligned, valid until the next call of the same `slot`; NULL is
 * remembered and reported by finish(). */
void *dpf_cpu_scratch(struct dpf_context *context, enum dpf_cpu_scratch slot,
                      size_t bytes);
/* oneDNN for this context, on the calling thread only; false if it cannot be had. */
bool dpf_cpu_begin(struct dpf_context *context);
/* Remember that an operation could not be done. */
void dpf_cpu_fail(struct dpf_context *context, const char *what);
/* Release what convolutions keep. */
void dpf_cpu_end_convolutions(struct dpf_context *context);

#endif
