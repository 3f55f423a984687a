#include "nn/components.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

enum dpf_status dpf_components_init(struct dpf_components *c, size_t values,
                                    struct dpf_error *e)
{
    *c = (struct dpf_components){.values = values};
    c->sum = dpf_calloc(values, sizeof *c->sum);
    c->gram = dpf_calloc(values * values, sizeof *c->gram);
    return c->sum && c->gram ? DPF_OK : dpf_fail_memory(e);
}

void dpf_components_release(struct dpf_components *c)
{
    free(c->sum);
    free(c->gram);
    free(c->room);
    *c = (struct dpf_components){0};
}

enum dpf_status dpf_components_add(struct dpf_components *c, const float *x, size_t count,
                                   struct dpf_error *e)
{
    size_t d = c->values;
    if (count == 0)
        return DPF_OK;
    if (!dpf_grow(&c->room, &c->room_capacity, count * d, sizeof *c->room))
        return dpf_fail_memory(e);
    for (size_t i = 0; i < count * d; i++) {
        c->room[i] = (double)x[i];
        c->sum[i % d] += (double)x[i];
    }
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)d, (int)count, 1, c->room,
                (int)d, 1, c->gram, (int)d);
    c->records += count;
    return DPF_OK;
}

enum dpf_status dpf_components_solve(struct dpf_components *c, size_t k, double whiten,
                                     float *weights, float *bias, double *share,
                                     struct dpf_error *e)
{
    size_t d = c->values;
    double n = (double)c->records, all = 0, kept = 0;
    double *variance = dpf_calloc(d, sizeof *variance);
    enum dpf_status status = variance ? DPF_OK : dpf_fail_memory(e);
    if (status == DPF_OK && k > d)
        status =
            dpf_fail(e, DPF_USAGE, "records of %zu values have no %zu components", d, k);
    if (status == DPF_OK && c->records < 2)
        status = dpf_fail(e, DPF_BAD_STREAM, "components need two records or more");
    for (size_t i = 0; status == DPF_OK && i < d; i++)
        for (size_t j = i; j < d; j++)
            c->gram[i * d + j] = c->gram[i * d + j] / n - c->sum[i] / n * (c->sum[j] / n);
    /* row-major: column i of the result is eigenvector i, the largest last */
    if (status == DPF_OK && LAPACKE_dsyevd(LAPACK_ROW_MAJOR, 'V', 'U', (lapack_int)d,
                                           c->gram, (lapack_int)d, variance) != 0)
        status = dpf_fail(e, DPF_SYSTEM, "LAPACK cannot find the eigenvalues");
    if (status == DPF_OK && !(variance[d - k] > variance[d - 1] * 1e-10))
        status = dpf_fail(e, DPF_USAGE, "the records span fewer than %zu dimensions", k);
    for (size_t i = 0; status == DPF_OK && i < d; i++)
        all += fmax(variance[i], 0);
    for (size_t i = 0; status == DPF_OK && i < k; i++) {
        size_t column = d - 1 - i;
        double scale = pow(variance[column], -0.5 * whiten), shift = 0;
        for (size_t j = 0; j < d; j++) {
            double w = c->gram[j * d + column] * scale;
            weights[i * d + j] = (float)w;
            shift += w * (c->sum[j] / n);
        }
        bias[i] = (float)-shift;
        kept += variance[column];
    }
    *share = all > 0 ? kept / all : 0;
    free(variance);
    return status;
}
