/* Products, by OpenBLAS; thin ones (a microbatch through a dense layer) by oneDNN's
 * product, which is 10 to 30 % faster there (tests/bench/RESULTS.md). */
#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

#include "base/banned.h"

/* Another package's cblas.h may be the one that is found; it lacks OpenBLAS's own. */
extern void openblas_set_num_threads(int threads);

static void cpu_gemm(CONTEXT, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                     int64_t k, double alpha, const float *a, const float *b, double beta,
                     float *c)
{
    enum { THIN = 48 };
    if (m == 0 || n == 0)
        return;
    if (k > 0 && (m <= THIN || k <= THIN) && dpf_cpu_begin(context)) {
        if (dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k,
                       (float)alpha, a, transpose_a ? m : k, b, transpose_b ? k : n,
                       (float)beta, c, n) != dnnl_success)
            dpf_cpu_fail(context, "oneDNN cannot do this product");
        return;
    }
    cblas_sgemm(CblasRowMajor, transpose_a ? CblasTrans : CblasNoTrans,
                transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)k,
                (float)alpha, a,
                (int)(transpose_a ? m
                      : k > 0     ? k
                                  : 1),
                b, (int)(transpose_b ? (k > 0 ? k : 1) : n), (float)beta, c, (int)n);
}

void dpf_cpu_add_products(struct dpf_kernels *table)
{
    /* Threads are ours, one a network; the library's own would only be in the way. */
    openblas_set_num_threads(1);
    table->gemm = cpu_gemm;
}
