/* encode-binary: encode numbers as packed bits, and decode them. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/binary.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct encoding {
    /* what the user asked for, then what it takes */
    int64_t whole, fraction;
    bool decode, signs;
    const char *field;
    struct dpf_binary code;
    int field_index;
    size_t values; /* of one record */
    uint64_t misfits;
    uint8_t *packed; /* --signs: room for one record */
} state = {.whole = -1, .fraction = -1, .field = "x"};

static const struct dpf_option options[] = {
    {.name = "whole",
     .kind = DPF_KIND_INT,
     .target = &state.whole,
     .arg = "N",
     .lo = 0,
     .hi = DPF_BINARY_MAX_BITS,
     .help = "number of bits before the binary point",
     .flags = DPF_OPTION_REQUIRED},
    {.name = "fraction",
     .kind = DPF_KIND_INT,
     .target = &state.fraction,
     .arg = "M",
     .lo = 0,
     .hi = DPF_BINARY_MAX_BITS,
     .help = "number of bits after the binary point",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_FLAG("decode", &state.decode, "decode bits to numbers"),
    DPF_OPT_FLAG("signs", &state.signs,
                 "write each bit as a number, -1 or 1, instead of packing them"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field to encode or decode (x)"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct encoding *v = s->state;
    v->code = (struct dpf_binary){(int)v->whole, (int)v->fraction};
    if (v->decode && v->signs)
        return dpf_fail(e, DPF_USAGE, "give one of --decode and --signs");
    return dpf_binary_check(&v->code, e);
}

static enum dpf_status declare(struct encoding *v, struct dpf_field *f,
                               struct dpf_error *e)
{
    uint64_t elements = dpf_shape_elements(&f->shape),
             bits = (uint64_t)dpf_binary_bits(&v->code);
    if (v->decode != (f->dtype == DPF_BITS))
        return dpf_fail(e, DPF_BAD_STREAM,
                        v->decode ? "field '%s' holds no packed bits"
                                  : "field '%s' holds packed bits already",
                        f->name);
    if (v->decode && (f->shape.rank != 1 || elements % bits != 0))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' is no string of values of %llu bits each", f->name,
                        (unsigned long long)bits);
    v->values = v->decode ? elements / bits : elements;
    struct dpf_shape shape = {1, {v->decode ? v->values : v->values * bits}};
    if (v->values == 0 || shape.dim[0] / v->values > bits)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds no values", f->name);
    dpf_field_redefine(f, v->decode || v->signs ? DPF_F32 : DPF_BITS, &shape);
    double largest = v->signs ? 1 : dpf_binary_largest(&v->code);
    return v->decode || v->signs ? dpf_field_set_bounds(f, -largest, largest, e) : DPF_OK;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct encoding *v = s->state;
    struct dpf_field *f = dpf_header_field(&s->out, v->field);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", v->field);
    v->field_index = (int)(f - s->out.fields);
    enum dpf_status status = declare(v, f, e);
    if (status != DPF_OK || !v->signs)
        return status;
    v->packed = dpf_calloc(dpf_binary_bytes(&v->code, v->values), 1);
    return v->packed ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct encoding *v = s->state;
    struct dpf_tensor *x = &b->tensor[v->field_index], made;
    const struct dpf_field *f = &s->out.fields[v->field_index];
    struct dpf_shape shape;
    enum dpf_status status = v->decode ? DPF_OK : dpf_tensor_make_f32(x, e);
    if (status == DPF_OK && !dpf_shape_prepend(&f->shape, b->rows, &shape))
        status =
            dpf_fail(e, DPF_BAD_STREAM, "field '%s' has too many dimensions", f->name);
    if (status == DPF_OK)
        status = dpf_tensor_init(&made, f->dtype, &shape, e);
    if (status != DPF_OK)
        return status;
    size_t from = dpf_tensor_row_bytes(x), to = dpf_tensor_row_bytes(&made);
    for (uint64_t i = 0; i < b->rows; i++) {
        void *in = (char *)x->data + i * from, *out = (char *)made.data + i * to;
        if (v->decode)
            dpf_binary_decode(&v->code, in, v->values, out);
        else
            v->misfits +=
                dpf_binary_encode(&v->code, in, v->values, v->signs ? v->packed : out);
        if (v->signs)
            dpf_binary_signs(&v->code, v->packed, v->values, out);
    }
    dpf_tensor_release(x);
    *x = made;
    return DPF_OK;
}

static void on_release(struct dpf_stage *s)
{
    struct encoding *v = s->state;
    free(v->packed);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    const struct encoding *v = s->state;
    (void)e;
    if (v->misfits)
        dpf_notice("%llu values did not fit %lld whole bits and were cut down",
                   (unsigned long long)v->misfits, (long long)v->whole);
    return DPF_OK;
}

static const struct dpf_stage_info info = {
    .name = "encode-binary",
    .summary = "encode numbers as packed bits, and decode them",
    .reads = "x: numbers; with --decode, packed bits",
    .writes = "x: packed bits, (1 + whole + fraction) for each value; or f32",
    .privacy = "none spent",
    .example = "dpflow load digits:train | dpflow normalize --zscore | dpflow "
               "encode-binary --whole 2 --fraction 5 | dpflow encode-binary --decode "
               "--whole 2 --fraction 5 | dpflow inspect",
    .detail =
        "Each value is a sign bit (1: below zero), then its magnitude, most significant "
        "bit\n"
        "first. Values that do not fit saturate; digits after the last bit are cut off.",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
