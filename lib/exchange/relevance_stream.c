#include "exchange/relevance_stream.h"

#include <stdlib.h>

#include "base/memory.h"
#include "exchange/model_stream.h"
#include "exchange/side_stream.h"

#include "base/banned.h"

struct reading {
    struct dpf_stage *stage;
    double *numbers;
    size_t values;
    int field;
    uint64_t records;
};

static enum dpf_status begin_relevance(void *context, struct dpf_header *h,
                                       struct dpf_error *e)
{
    struct reading *r = context;
    const struct dpf_field *f = dpf_header_field(h, "relevance");
    f = f ? f : dpf_header_field(h, "x");
    if (h->is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "the relevance is that of private records: release it first, "
                        "with 'perturb --release relevance'");
    if (!f || f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the relevance's stream has no field 'relevance' or 'x'");
    if (dpf_shape_elements(&f->shape) != r->values)
        return dpf_fail(e, DPF_USAGE, "the relevance has %llu values for %zu features",
                        (unsigned long long)dpf_shape_elements(&f->shape), r->values);
    r->field = (int)(f - h->fields);
    dpf_stage_adopt_model(r->stage, h);
    return DPF_OK;
}

static enum dpf_status add_relevance(void *context, struct dpf_header *h,
                                     struct dpf_batch *b, struct dpf_error *e)
{
    struct reading *r = context;
    (void)h;
    r->records += b->rows;
    if (r->records > 1)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the relevance has to be one record, the mean of all");
    for (size_t i = 0; b->rows && i < r->values; i++)
        r->numbers[i] = dpf_tensor_get(&b->tensor[r->field], i);
    return DPF_OK;
}

enum dpf_status dpf_relevance_read(struct dpf_stage *s, const char *endpoint,
                                   size_t values, double **take_numbers,
                                   struct dpf_error *e)
{
    struct reading r = {.stage = s, .values = values};
    const struct dpf_side_stream side = {&r, begin_relevance, add_relevance};
    r.numbers = dpf_calloc(values + 1, sizeof *r.numbers);
    enum dpf_status status =
        r.numbers ? dpf_side_stream_read(endpoint, &side, e) : dpf_fail_memory(e);
    if (status == DPF_OK && r.records != 1)
        status = dpf_fail(e, DPF_BAD_STREAM, "the relevance's stream is empty");
    if (status != DPF_OK) {
        free(r.numbers);
        r.numbers = NULL;
    }
    *take_numbers = r.numbers;
    return status;
}
