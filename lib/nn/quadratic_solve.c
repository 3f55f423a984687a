#include "nn/quadratic_solve.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

/* How much of each direction is kept: 1 / eigenvalue, or nothing. */
static void invert(double *values, size_t n, const struct dpf_quadratic_repair *repair,
                   struct dpf_quadratic_outcome *outcome)
{
    double largest = fmax(fabs(values[0]), fabs(values[n - 1]));
    double tiny = largest * 1e-12; /* a direction without data, up to rounding */
    for (size_t i = 0; i < n; i++) {
        double value = values[i] + outcome->ridge;
        bool keep = repair->none ? fabs(value) > tiny : value > tiny;
        outcome->dropped += !keep;
        values[i] = keep ? 1 / value : 0;
    }
}

enum dpf_status dpf_quadratic_solve(const struct dpf_quadratic_form *form,
                                    const struct dpf_quadratic_repair *repair, double *w,
                                    struct dpf_quadratic_outcome *outcome,
                                    struct dpf_error *e)
{
    size_t n = form->n, outputs = form->outputs;
    double *vectors = dpf_calloc(n * n, sizeof *vectors);
    double *values = dpf_calloc(n, sizeof *values);
    double *turned = dpf_calloc(n * outputs, sizeof *turned);
    enum dpf_status status = vectors && values && turned ? DPF_OK : dpf_fail_memory(e);
    if (status != DPF_OK)
        goto out;
    memcpy(vectors, form->a, n * n * sizeof *vectors);
    /* row-major: column k of `vectors` is eigenvector k */
    if (LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'U', (lapack_int)n, vectors, (lapack_int)n,
                       values) != 0) {
        status = dpf_fail(e, DPF_SYSTEM, "LAPACK cannot find the eigenvalues");
        goto out;
    }
    *outcome = (struct dpf_quadratic_outcome){
        .smallest = values[0],
        .ridge =
            repair->none ? 0 : repair->ridge * 2 * form->noise_stddev * sqrt((double)n)};
    invert(values, n, repair, outcome);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)outputs, (int)n, 1,
                vectors, (int)n, form->b, (int)outputs, 0, turned, (int)outputs);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < outputs; k++)
            turned[i * outputs + k] *= values[i];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)outputs, (int)n,
                1, vectors, (int)n, turned, (int)outputs, 0, w, (int)outputs);
out:
    free(vectors);
    free(values);
    free(turned);
    return status;
}
