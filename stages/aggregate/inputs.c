#include "inputs.h"

#include <string.h>

#include "exchange/side_stream.h"
#include "ledger/source.h"

#include "base/banned.h"

static enum dpf_status on_header(void *context, struct dpf_header *h, struct dpf_error *e)
{
    struct dpf_inputs *in = context;
    const struct dpf_values *asked = &in->v->answers.asked;
    const struct dpf_field *f = dpf_header_field(h, in->v->field);
    if (h->is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "the inputs are private: they cannot be released");
    if (!f || strcmp(in->v->field, in->v->label) == 0)
        return dpf_fail(e, DPF_BAD_STREAM, "the inputs have no field '%s'", in->v->field);
    if (!dpf_ledger_same(&h->events, asked))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the inputs have another ledger than the queries that the "
                        "teachers answered: give the same stream");
    in->field = (int)(f - h->fields);
    enum dpf_status status = dpf_header_copy(&in->header, h, e);
    if (status == DPF_OK) /* what else stands beside it, labels too, does not pass */
        dpf_header_keep_field(&in->header, in->field);
    return status == DPF_OK ? dpf_spool_open(&in->spool, &in->header, e) : status;
}

/* Whether the next n queries, which fit in memory, are of these records. */
static enum dpf_status compare(struct dpf_inputs *in, uint64_t n,
                               const unsigned char *records, size_t bytes,
                               struct dpf_error *e)
{
    enum dpf_status status = dpf_tallies_load(in->tallies, in->next, n, e);
    for (uint64_t i = 0; status == DPF_OK && i < n; i++)
        if (*dpf_tallies_at(in->tallies, i).digest !=
            dpf_query_digest(records + i * bytes, bytes))
            status = dpf_fail(e, DPF_BAD_STREAM,
                              "input %llu is not the one that the teachers answered",
                              (unsigned long long)(in->next + i));
    in->next += n;
    return status;
}

static enum dpf_status on_batch(void *context, struct dpf_header *h, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_inputs *in = context;
    struct dpf_tensor *x = &b->tensor[in->field];
    size_t bytes = dpf_tensor_row_bytes(x);
    (void)h;
    if (b->rows == 0)
        return DPF_OK;
    if (in->next + b->rows > in->tallies->queries)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "there are more inputs than the %llu queries that were answered",
                        (unsigned long long)in->tallies->queries);
    enum dpf_status status = DPF_OK;
    for (uint64_t done = 0, n; status == DPF_OK && done < b->rows; done += n) {
        n = dpf_tallies_most(in->tallies, b->rows - done);
        status = compare(in, n, (const unsigned char *)x->data + done * bytes, bytes, e);
    }
    struct dpf_batch one = {.rows = b->rows, .count = 1, .tensor = {*x}};
    return status == DPF_OK ? dpf_spool_add(&in->spool, &one, e) : status;
}

static enum dpf_status check(struct dpf_inputs *in, struct dpf_aggregate *v,
                             struct dpf_error *e)
{
    const struct dpf_side_stream side = {in, on_header, on_batch};
    in->v = v;
    in->tallies = &v->tallies;
    enum dpf_status status = dpf_side_stream_read(v->inputs, &side, e);
    if (status == DPF_OK && in->next < v->tallies.queries)
        status = dpf_fail(
            e, DPF_BAD_STREAM, "there are %llu inputs, and %llu queries were answered",
            (unsigned long long)in->next, (unsigned long long)v->tallies.queries);
    return status;
}

static enum dpf_status declare(const struct dpf_inputs *in, struct dpf_header *to,
                               struct dpf_error *e)
{
    struct dpf_header out = {.field_count = 0};
    enum dpf_status status = dpf_header_copy(&out, &in->header, e);
    if (status != DPF_OK)
        return status;
    dpf_values_release(&out.events);
    dpf_values_release(&out.provenance);
    out.events = to->events;
    out.provenance = to->provenance;
    to->events = to->provenance = (struct dpf_values){0};
    dpf_header_release(to);
    *to = out;
    return DPF_OK;
}

enum dpf_status dpf_inputs_write(struct dpf_inputs *in, struct dpf_aggregate *v,
                                 struct dpf_header *out, const struct dpf_inputs_use *use,
                                 struct dpf_error *e)
{
    struct dpf_batch *b = NULL;
    enum dpf_status status = check(in, v, e);
    if (status == DPF_OK)
        status = declare(in, out, e);
    if (status == DPF_OK)
        status = use->begin(use->context, e);
    do {
        if (status == DPF_OK)
            status = dpf_spool_next(&in->spool, &b, e);
        if (status == DPF_OK && b)
            status = use->batch(use->context, b, e);
    } while (status == DPF_OK && b);
    return status;
}

void dpf_inputs_release(struct dpf_inputs *in)
{
    dpf_spool_release(&in->spool);
    dpf_header_release(&in->header);
}
