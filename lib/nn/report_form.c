#include "nn/report_form.h"

#include <cblas.h>
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

enum dpf_status dpf_report_form_init(struct dpf_report_form *f, size_t values,
                                     size_t outputs, const double moments[2],
                                     struct dpf_error *e)
{
    *f = (struct dpf_report_form){
        .values = values, .outputs = outputs, .cosine = moments[0], .square = moments[1]};
    if (!(f->cosine > 0) || !(f->cosine <= 1) || !(f->square > 0) || !(f->square <= 1) ||
        values < 2 || outputs < 1)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the ledger's moments cannot be those of messages");
    f->gram = dpf_calloc(values * values, sizeof *f->gram);
    f->moment = dpf_calloc(values * outputs, sizeof *f->moment);
    return f->gram && f->moment ? DPF_OK : dpf_fail_memory(e);
}

void dpf_report_form_release(struct dpf_report_form *f)
{
    free(f->gram);
    free(f->moment);
    free(f->room);
    *f = (struct dpf_report_form){0};
}

/* Add weight * x x' and weight * x code'. */
static enum dpf_status add_weighted(struct dpf_report_form *f, const float *x,
                                    const float *code, size_t count, double weight,
                                    struct dpf_error *e)
{
    size_t d = f->values, m = f->outputs;
    if (count == 0)
        return DPF_OK;
    if (!dpf_grow(&f->room, &f->room_capacity, count * (d + m), sizeof *f->room))
        return dpf_fail_memory(e);
    double *wide = f->room, *codes = f->room + count * d;
    for (size_t i = 0; i < count * d; i++)
        wide[i] = (double)x[i];
    for (size_t i = 0; i < count * m; i++)
        codes[i] = (double)code[i];
    cblas_dsyrk(CblasRowMajor, CblasUpper, CblasTrans, (int)d, (int)count, weight, wide,
                (int)d, 1, f->gram, (int)d);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)d, (int)m, (int)count,
                weight, wide, (int)d, codes, (int)m, 1, f->moment, (int)m);
    return DPF_OK;
}

enum dpf_status dpf_report_form_add(struct dpf_report_form *f, const float *x,
                                    const float *code, size_t count, struct dpf_error *e)
{
    f->reports += count;
    for (size_t i = 0; i < count * f->outputs; i++)
        f->code_square += (double)code[i] * (double)code[i];
    return add_weighted(f, x, code, count, 1, e);
}

enum dpf_status dpf_report_form_add_known(struct dpf_report_form *f, const float *x,
                                          const float *code, size_t count, double weight,
                                          struct dpf_error *e)
{
    double n = (double)f->reports, entries = n * (double)f->outputs;
    double noise = f->code_square / entries / (f->cosine * f->cosine * (double)f->values);
    return add_weighted(f, x, code, count, weight * noise * n / (double)count, e);
}

void dpf_report_form_finish(struct dpf_report_form *f, double noise[2])
{
    size_t d = f->values;
    double n = (double)f->reports, size = 1 / (f->cosine * f->cosine); /* |x|^2 */
    double even = (1 - f->square) / ((double)d - 1);                   /* a */
    for (size_t i = 0; i < d; i++) {
        f->gram[i * d + i] -= n * even * size;
        for (size_t k = 0; k < i; k++)
            f->gram[i * d + k] = f->gram[k * d + i];
    }
    /* two coordinates of a random direction have a product of variance 1 / (d (d + 2)) */
    noise[0] = sqrt(n / ((double)d * ((double)d + 2))) * size;
    noise[1] = sqrt(n / (double)d * size);
}
