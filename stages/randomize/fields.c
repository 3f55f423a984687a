/* The fields that `randomize` reads and writes. */
#include "randomize.h"

#include "base/banned.h"

static bool is_label(const struct dpf_field *f)
{
    return f->classes >= 2 && dpf_shape_elements(&f->shape) == 1 && f->dtype != DPF_BITS;
}

/* Another class must fit where the true one stood. */
static bool classes_overflow(const struct dpf_field *f)
{
    return f->dtype == DPF_U8 && f->classes > 256;
}

static bool has_form(const struct dpf_field *f, enum dpf_message_form form)
{
    switch (form) {
    case DPF_MESSAGE_BITS:
        return f->dtype == DPF_BITS && f->shape.rank == 1;
    case DPF_MESSAGE_CLASS:
        return f->classes >= 2 && dpf_shape_elements(&f->shape) == 1;
    case DPF_MESSAGE_NUMBERS:
        return f->dtype != DPF_BITS && !f->classes;
    }
    return false;
}

static const char *name_form(enum dpf_message_form form)
{
    switch (form) {
    case DPF_MESSAGE_BITS:
        return "packed bits (encode-binary makes them)";
    case DPF_MESSAGE_CLASS:
        return "one class a record";
    case DPF_MESSAGE_NUMBERS:
        return "numbers";
    }
    return "nothing";
}

static enum dpf_status check_label(const struct dpf_randomize *j,
                                   const struct dpf_field *y, struct dpf_error *e)
{
    if (y && j->labels == DPF_LABELS_NONE)
        return dpf_fail(e, DPF_USAGE,
                        "say what happens to the labels in field '%s': '--labels clear', "
                        "'response' or 'drop'%s",
                        y->name, j->method->takes_label ? " (or 'joint')" : "");
    if (!y && j->labels != DPF_LABELS_NONE && j->labels != DPF_LABELS_DROP)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no labels '%s'", j->label);
    if (y && j->labels != DPF_LABELS_DROP && !is_label(y))
        return dpf_fail(e, DPF_USAGE, "field '%s' holds no label of declared classes",
                        y->name);
    return DPF_OK;
}

enum dpf_status dpf_randomize_find_fields(struct dpf_randomize *j, struct dpf_header *h,
                                          struct dpf_error *e)
{
    const struct dpf_field *x = dpf_header_field(h, j->field);
    const struct dpf_field *y = dpf_header_field(h, j->label);
    enum dpf_message_form form = j->method->reads;
    if (!x)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", j->field);
    if (y == x)
        y = NULL; /* the label itself is what is randomised */
    uint64_t elements = dpf_shape_elements(&x->shape);
    if (!has_form(x, form) || elements == 0)
        return dpf_fail(e, DPF_BAD_STREAM, "method '%s' randomises %s, not field '%s'",
                        j->method_word, name_form(form), x->name);
    j->x = (int)(x - h->fields);
    j->y = y ? (int)(y - h->fields) : -1;
    j->values = form == DPF_MESSAGE_CLASS ? x->classes : elements;
    enum dpf_status status = check_label(j, y, e);
    if (status == DPF_OK && (classes_overflow(x) || (y && classes_overflow(y))))
        status = dpf_fail(e, DPF_USAGE, "field '%s' has more classes than its type holds",
                          classes_overflow(x) ? x->name : y->name);
    return status;
}

static void declare_message(const struct dpf_randomize *j, struct dpf_field *f)
{
    const struct dpf_shape many = {1, {j->values}}, same = f->shape;
    switch (j->method->writes) {
    case DPF_MESSAGE_BITS:
        dpf_field_redefine(f, DPF_BITS, &many);
        f->classes = 0;
        break;
    case DPF_MESSAGE_CLASS:
        dpf_field_redefine(f, f->dtype, &same);
        f->classes = j->values;
        break;
    case DPF_MESSAGE_NUMBERS:
        dpf_field_redefine(f, DPF_F32, &many);
        f->classes = 0;
        break;
    }
}

enum dpf_status dpf_randomize_declare(const struct dpf_randomize *j, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    const struct dpf_field *y = j->y >= 0 ? &s->in.fields[j->y] : NULL;
    dpf_header_keep_field(&s->out, j->x);
    declare_message(j, &s->out.fields[0]);
    if (!y || j->labels == DPF_LABELS_DROP)
        return DPF_OK;
    const struct dpf_shape code = {1, {y->classes}};
    bool joint = j->labels == DPF_LABELS_JOINT;
    struct dpf_field *label = dpf_header_add_field(
        &s->out, y->name, joint ? DPF_F32 : y->dtype, joint ? &code : &y->shape);
    if (!label)
        return dpf_fail_memory(e);
    label->classes = joint ? 0 : y->classes;
    return DPF_OK;
}
