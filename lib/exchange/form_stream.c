#include "exchange/form_stream.h"

#include <string.h>

#include "base/banned.h"

enum dpf_status dpf_form_declare(struct dpf_header *h, size_t n, size_t outputs,
                                 struct dpf_error *e)
{
    const struct dpf_shape square = {2, {n, n}}, moment = {2, {n, outputs}};
    const struct dpf_shape two = {1, {2}}, scalar = {0};
    dpf_header_drop_fields(h);
    bool good = dpf_header_add_field(h, "gram", DPF_F64, &square) &&
                dpf_header_add_field(h, "moment", DPF_F64, &moment) &&
                dpf_header_add_field(h, "noise", DPF_F64, &two) &&
                dpf_header_add_field(h, "intercept", DPF_U8, &scalar);
    h->has_records = true;
    h->records = 1;
    return good ? DPF_OK : dpf_fail(e, DPF_SYSTEM, "the form does not fit a header");
}

enum dpf_status dpf_form_begin(struct dpf_stage *s, struct dpf_batch *b,
                               struct dpf_error *e)
{
    enum dpf_status status = dpf_stage_begin(s, e);
    return status == DPF_OK ? dpf_batch_init(b, &s->out, 1, e) : status;
}

enum dpf_status dpf_form_send(struct dpf_stage *s, struct dpf_batch *take_b,
                              const double noise[2], bool intercept, struct dpf_error *e)
{
    memcpy(take_b->tensor[2].data, noise, 2 * sizeof *noise);
    *(uint8_t *)take_b->tensor[3].data = intercept;
    enum dpf_status status = dpf_stage_emit(s, take_b, e);
    dpf_batch_release(take_b);
    return status;
}
