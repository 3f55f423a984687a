#include "exchange/report_stream.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/ledger.h"
#include "base/memory.h"
#include "exchange/model_stream.h"
#include "exchange/side_stream.h"

#include "base/banned.h"

static enum dpf_status find_moments(const struct dpf_values *events, double moments[2],
                                    struct dpf_error *e)
{
    switch (dpf_ledger_find(events, NULL, "moments", moments, 2)) {
    case DPF_FOUND:
        return DPF_OK;
    case DPF_NOT_FOUND:
        return dpf_fail(
            e, DPF_BAD_STREAM,
            "the ledger has no event of 'randomize --method privunit' on private "
            "records");
    case DPF_FOUND_DIFFERENT:
        break;
    }
    return dpf_fail(e, DPF_BAD_STREAM, "the stream holds messages of different settings");
}

/* Where messages and labels stand in a header, and what they look like. */
static enum dpf_status find_fields(struct dpf_report_stream *r, struct dpf_header *h,
                                   const char *field, const char *label,
                                   struct dpf_error *e)
{
    const struct dpf_field *x = dpf_header_field(h, field);
    const struct dpf_field *y = dpf_header_field(h, label);
    if (!x || !y)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'",
                        x ? label : field);
    uint64_t elements = dpf_shape_elements(&y->shape);
    *r = (struct dpf_report_stream){.x = (int)(x - h->fields),
                                    .y = (int)(y - h->fields),
                                    .values = dpf_shape_elements(&x->shape),
                                    .classes = y->classes > 0 && elements == 1};
    r->outputs = r->classes ? y->classes : elements;
    if (x->dtype != DPF_F32 || x->shape.rank != 1 || r->values < 2)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds no vectors of f32", x->name);
    if ((!r->classes && (y->dtype != DPF_F32 || y->shape.rank != 1)) || r->outputs < 1)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' holds neither labels nor codes of labels", y->name);
    return DPF_OK;
}

enum dpf_status dpf_report_stream_open(struct dpf_report_stream *r, struct dpf_stage *s,
                                       const char *field, const char *label,
                                       struct dpf_error *e)
{
    enum dpf_status status = find_fields(r, &s->in, field, label, e);
    return status == DPF_OK ? find_moments(&s->in.events, r->moments, e) : status;
}

enum dpf_status dpf_report_stream_take(struct dpf_report_stream *r, struct dpf_batch *b,
                                       struct dpf_error *e)
{
    const struct dpf_tensor *y = &b->tensor[r->y];
    enum dpf_status status = dpf_tensor_make_f32(&b->tensor[r->x], e);
    if (status != DPF_OK)
        return status;
    if (!dpf_grow(&r->codes, &r->capacity, b->rows * r->outputs + 1, sizeof *r->codes))
        return dpf_fail_memory(e);
    if (!r->classes) {
        memcpy(r->codes, y->data, b->rows * r->outputs * sizeof *r->codes);
        return DPF_OK;
    }
    memset(r->codes, 0, b->rows * r->outputs * sizeof *r->codes);
    for (uint64_t i = 0; i < b->rows; i++) /* the reader checked their range */
        r->codes[i * r->outputs + (uint64_t)dpf_tensor_get(y, i)] = 1;
    return DPF_OK;
}

uint64_t dpf_report_stream_sift(const struct dpf_report_stream *r, struct dpf_batch *b)
{
    float *x = b->tensor[r->x].data;
    double length = 1 / (r->moments[0] * r->moments[0]); /* squared */
    uint64_t kept = 0;
    for (uint64_t i = 0; i < b->rows; i++) {
        const float *message = x + i * r->values, *code = r->codes + i * r->outputs;
        double norm = 0, largest = 0;
        for (size_t k = 0; k < r->values; k++)
            norm += (double)message[k] * (double)message[k];
        for (size_t k = 0; k < r->outputs; k++)
            largest = fmax(largest, isnan(code[k]) ? INFINITY : fabs((double)code[k]));
        if (!(fabs(norm - length) <= 1e-3 * length) || largest > 1)
            continue;
        memmove(x + kept * r->values, message, r->values * sizeof *x);
        memmove(r->codes + kept * r->outputs, code, r->outputs * sizeof *code);
        kept++;
    }
    return kept;
}

void dpf_report_stream_release(struct dpf_report_stream *r)
{
    free(r->codes);
    r->codes = NULL;
}

/* ------------------------------------------------------------------- known records */

struct known_reading {
    struct dpf_known_records *records;
    const char *field, *label;
};

static enum dpf_status begin_known(void *context, struct dpf_header *h,
                                   struct dpf_error *e)
{
    struct known_reading *k = context;
    const struct dpf_report_stream *like = k->records->like;
    if (h->is_private || h->is_protected)
        return dpf_fail(e, DPF_PRIVACY, "records beside the messages have to be public");
    enum dpf_status status = find_fields(&k->records->own, h, k->field, k->label, e);
    if (status == DPF_OK &&
        (k->records->own.values != like->values || !k->records->own.classes ||
         k->records->own.outputs != like->outputs))
        status = dpf_fail(e, DPF_BAD_STREAM,
                          "the public records are not like the messages: %zu values and "
                          "%zu classes against %zu and %zu",
                          k->records->own.values, k->records->own.outputs, like->values,
                          like->outputs);
    if (status == DPF_OK)
        dpf_stage_adopt_model(k->records->stage, h);
    return status;
}

static enum dpf_status add_known(void *context, struct dpf_header *h, struct dpf_batch *b,
                                 struct dpf_error *e)
{
    struct dpf_known_records *k = ((struct known_reading *)context)->records;
    size_t d = k->own.values, m = k->own.outputs, rows = b->rows;
    (void)h;
    enum dpf_status status = dpf_report_stream_take(&k->own, b, e);
    if (status != DPF_OK)
        return status;
    if (!dpf_grow(&k->x, &k->x_capacity, (k->count + rows) * d, sizeof *k->x) ||
        !dpf_grow(&k->codes, &k->codes_capacity, (k->count + rows) * m, sizeof *k->codes))
        return dpf_fail_memory(e);
    const float *from = b->tensor[k->own.x].data;
    float *to = k->x + k->count * d;
    for (size_t i = 0; i < rows; i++, from += d, to += d) {
        double norm = 0;
        for (size_t j = 0; j < d; j++)
            norm += (double)from[j] * (double)from[j];
        for (size_t j = 0; j < d; j++)
            to[j] = norm > 0 ? (float)((double)from[j] / sqrt(norm)) : 0;
    }
    memcpy(k->codes + k->count * m, k->own.codes, rows * m * sizeof *k->codes);
    k->count += rows;
    return DPF_OK;
}

enum dpf_status dpf_known_records_read(struct dpf_known_records *k, const char *endpoint,
                                       const char *field, const char *label,
                                       struct dpf_error *e)
{
    struct known_reading reading = {k, field, label};
    const struct dpf_side_stream side = {&reading, begin_known, add_known};
    return dpf_side_stream_read(endpoint, &side, e);
}

void dpf_known_records_release(struct dpf_known_records *k)
{
    dpf_report_stream_release(&k->own);
    free(k->x);
    free(k->codes);
    *k = (struct dpf_known_records){0};
}
