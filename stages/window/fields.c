/* The fields that `window` reads, and those that it makes of them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "window.h"

#include "base/banned.h"

static bool has_number(struct dpf_stage *s, const char *name, struct dpf_error *e)
{
    const struct dpf_field *f = dpf_header_field(&s->in, name);
    bool whole = f && (f->dtype == DPF_I64 || f->dtype == DPF_I32 || f->dtype == DPF_U8);
    if (whole && f->shape.rank == 0)
        return true;
    dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s' with one whole number",
             name);
    return false;
}

static enum dpf_status find_rise(struct dpf_windowing *v, const struct dpf_field *x,
                                 struct dpf_error *e)
{
    for (size_t i = 0; v->rise && i < x->feature_count; i++)
        if (strcmp(x->features[i], v->rise) == 0)
            v->rule.rise = (int64_t)i;
    return !v->rise || v->rule.rise >= 0
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE, "field '%s' has no feature '%s'", v->field,
                          v->rise);
}

enum dpf_status dpf_window_check_fields(struct dpf_windowing *v, struct dpf_stage *s,
                                        struct dpf_error *e)
{
    const struct dpf_field *x = dpf_header_field(&s->in, v->field);
    if (!has_number(s, v->person, e) || !has_number(s, v->time, e))
        return DPF_BAD_STREAM;
    uint64_t attributes = x ? dpf_shape_elements(&x->shape) : 0;
    if (!attributes || x->classes || x->dtype == DPF_BITS)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s' with attributes",
                        v->field);
    if (attributes >= DPF_HISTORY_MAX_VALUES / (v->rule.length + 1))
        return dpf_fail(e, DPF_BAD_STREAM, "a window would have more than %d values",
                        (int)DPF_HISTORY_MAX_VALUES);
    v->rule.attributes = (size_t)attributes;
    const struct dpf_field *y = v->rise ? NULL : dpf_header_field(&s->in, v->label);
    if (!v->rise && !(y && y->classes == 2 && y->shape.rank == 0))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the stream has no field '%s' with 2 classes: '--label' names "
                        "another, '--rise' makes it",
                        v->label);
    return find_rise(v, x, e);
}

/* Value i of a window: of which attribute, and of when; the last one is the influence. */
static enum dpf_status declare_value(const struct dpf_windowing *v,
                                     const struct dpf_field *x, struct dpf_field *to,
                                     size_t i, struct dpf_error *e)
{
    size_t d = v->rule.attributes, n = v->rule.length, newest = v->rule.next ? 0 : 1;
    bool past = i < d * n, own = i < d * n + d;
    size_t of = past ? i / n : i - d * n, pair = x->bounds.count == 1 ? 0 : of;
    char number[32];
    snprintf(number, sizeof number, "%zu", of);
    const char *name = own && x->feature_count ? x->features[of] : number;
    if (to->bounds.count) {
        to->bounds.lo[i] = own ? x->bounds.lo[pair] : 0;
        to->bounds.hi[i] = own ? x->bounds.hi[pair] : 1;
        if (v->rule.missing != DPF_MISSING_DROP) { /* 0 stands in */
            to->bounds.lo[i] = fmin(to->bounds.lo[i], 0);
            to->bounds.hi[i] = fmax(to->bounds.hi[i], 0);
        }
    }
    char *text = !own   ? dpf_format("influence")
                 : past ? dpf_format("%s t-%zu", name, n - 1 - i % n + newest)
                        : dpf_format("%s now", name);
    enum dpf_status status =
        text ? dpf_field_name_feature(to, text, e) : dpf_fail_memory(e);
    free(text);
    return status;
}

enum dpf_status dpf_window_declare_fields(const struct dpf_windowing *v,
                                          struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_shape scalar = {0};
    const struct dpf_shape window = {1, {dpf_history_values(&v->rule)}};
    const struct dpf_field *x = dpf_header_field(&s->in, v->field);
    dpf_header_drop_fields(&s->out);
    struct dpf_field *to = dpf_header_add_field(&s->out, "x", DPF_F32, &window);
    enum dpf_status status =
        to ? dpf_field_declare_features(to, window.dim[0], e) : dpf_fail_memory(e);
    if (status == DPF_OK && !x->bounds.count)
        dpf_field_clear_bounds(to);
    for (size_t i = 0; status == DPF_OK && i < window.dim[0]; i++)
        status = declare_value(v, x, to, i, e);
    struct dpf_field *y = dpf_header_add_field(&s->out, "y", DPF_U8, &scalar);
    if (y)
        y->classes = 2;
    return status;
}
