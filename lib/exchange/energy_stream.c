#include "exchange/energy_stream.h"

#include <math.h>

#include "privacy/patch_moments.h"

#include "base/banned.h"

enum field { COEFFICIENTS, EXPANSION, PATCH, CONDITIONS, VISIBLE, NOISE, FIELDS };

static const char *const names[FIELDS] = {"coefficients", "expansion", "patch",
                                          "conditions",   "visible",   "noise"};

static enum dpf_dtype type_of(int field)
{
    return field == PATCH || field == CONDITIONS ? DPF_I64 : DPF_F64;
}

enum dpf_status dpf_energy_declare(struct dpf_header *h, size_t count, int degree,
                                   struct dpf_error *e)
{
    const struct dpf_shape shapes[FIELDS] = {
        {1, {count}}, {1, {(uint64_t)degree + 1}}, {1, {3}}, {0}, {0}, {0}};
    bool good = true;
    dpf_header_drop_fields(h);
    for (int i = 0; i < FIELDS; i++)
        good = good && dpf_header_add_field(h, names[i], type_of(i), &shapes[i]);
    h->has_records = true;
    h->records = 1;
    return good ? DPF_OK : dpf_fail(e, DPF_SYSTEM, "the energy does not fit a header");
}

static struct dpf_energy_record views_of(const struct dpf_tensor *const *t)
{
    return (struct dpf_energy_record){.count = t[COEFFICIENTS]->shape.dim[1],
                                      .degree = (int)t[EXPANSION]->shape.dim[1] - 1,
                                      .coefficients = t[COEFFICIENTS]->data,
                                      .expansion = t[EXPANSION]->data,
                                      .patch = t[PATCH]->data,
                                      .conditions = t[CONDITIONS]->data,
                                      .visible = t[VISIBLE]->data,
                                      .noise = t[NOISE]->data};
}

enum dpf_status dpf_energy_begin(struct dpf_stage *s, struct dpf_batch *b,
                                 struct dpf_energy_record *record, struct dpf_error *e)
{
    const struct dpf_tensor *t[FIELDS];
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = dpf_batch_init(b, &s->out, 1, e);
    if (status != DPF_OK)
        return status;
    for (int i = 0; i < FIELDS; i++)
        t[i] = &b->tensor[i];
    *record = views_of(t);
    return DPF_OK;
}

enum dpf_status dpf_energy_send(struct dpf_stage *s, struct dpf_batch *take_b,
                                struct dpf_error *e)
{
    enum dpf_status status = dpf_stage_emit(s, take_b, e);
    dpf_batch_release(take_b);
    return status;
}

enum dpf_status dpf_energy_expect(struct dpf_header *h, struct dpf_error *e)
{
    static const int ranks[FIELDS] = {1, 1, 1, 0, 0, 0};
    for (int i = 0; i < FIELDS; i++) {
        const struct dpf_field *f = dpf_header_field(h, names[i]);
        if (!f || f->dtype != type_of(i) || f->shape.rank != ranks[i] ||
            (i == PATCH && f->shape.dim[0] != 3) ||
            (i == EXPANSION &&
             (f->shape.dim[0] < 2 || f->shape.dim[0] > DPF_MOMENTS_MOST_DEGREE)))
            return dpf_fail(e, DPF_BAD_STREAM,
                            "the stream holds no energy, as 'perturb --release energy' "
                            "makes it");
    }
    return DPF_OK;
}

/* As many coefficients as the patch and the expansion say. */
static bool fits(const struct dpf_energy_record *r)
{
    double p = 1;
    size_t all = 0;
    for (int i = 0; i < 3; i++) {
        if (r->patch[i] < 1 || r->patch[i] > DPF_MOMENTS_MOST)
            return false;
        p *= (double)r->patch[i];
    }
    if (*r->conditions < 0 || *r->conditions > DPF_MOMENTS_MOST)
        return false;
    p += (double)*r->conditions;
    if (p > DPF_MOMENTS_MOST)
        return false;
    for (int l = 0; l <= r->degree; l++) {
        size_t block = dpf_multichoose((size_t)p + 1, (size_t)l + 1);
        if (!isfinite(r->expansion[l]) || block == SIZE_MAX)
            return false;
        all += r->expansion[l] == 0 ? 0 : block;
    }
    for (size_t i = 0; i < r->count; i++)
        if (!isfinite(r->coefficients[i]))
            return false;
    return all > 0 && all == r->count && isfinite(*r->visible) && *r->noise >= 0 &&
           isfinite(*r->noise);
}

enum dpf_status dpf_energy_read(struct dpf_batch *b, struct dpf_header *h,
                                struct dpf_energy_record *record, struct dpf_error *e)
{
    const struct dpf_tensor *t[FIELDS];
    for (int i = 0; i < FIELDS; i++)
        if (!(t[i] = dpf_batch_field(b, h, names[i], e)))
            return DPF_BAD_STREAM;
    if (b->rows != 1)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream holds more than one energy");
    *record = views_of(t);
    return fits(record) ? DPF_OK
                        : dpf_fail(e, DPF_BAD_STREAM,
                                   "the numbers of the energy do not fit each other, or "
                                   "are not finite");
}
