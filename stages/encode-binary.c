/* encode-binary: encode numbers as packed bits, and decode them. */
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "data/binary.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct {
    int64_t whole, fraction;
    bool decode, signs;
    const char *field;
} opt = {.whole = -1, .fraction = -1, .field = "x"};

static const struct dpf_option options[] = {
    {.name = "whole",
     .kind = DPF_KIND_INT,
     .target = &opt.whole,
     .arg = "N",
     .lo = 0,
     .hi = DPF_BINARY_MAX_BITS,
     .help = "number of bits before the binary point",
     .flags = DPF_OPTION_REQUIRED},
    {.name = "fraction",
     .kind = DPF_KIND_INT,
     .target = &opt.fraction,
     .arg = "M",
     .lo = 0,
     .hi = DPF_BINARY_MAX_BITS,
     .help = "number of bits after the binary point",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_FLAG("decode", &opt.decode, "decode bits to numbers"),
    DPF_OPT_FLAG("signs", &opt.signs,
                 "write each bit as a number, -1 or 1, instead of packing them"),
    DPF_OPT_STRING("field", &opt.field, "NAME", "the field to encode or decode (x)"),
    DPF_OPT_END,
};

static struct dpf_binary code;
static int field_index;
static size_t values; /* of one record */
static uint64_t misfits;
static uint8_t *packed; /* --signs: room for one record */

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    (void)s;
    code = (struct dpf_binary){(int)opt.whole, (int)opt.fraction};
    if (opt.decode && opt.signs)
        return dpf_fail(e, DPF_USAGE, "give one of --decode and --signs");
    return dpf_binary_check(&code, e);
}

static enum dpf_status declare(struct dpf_field *f, struct dpf_error *e)
{
    uint64_t elements = dpf_shape_elements(&f->shape),
             bits = (uint64_t)dpf_binary_bits(&code);
    if (opt.decode != (f->dtype == DPF_BITS))
        return dpf_fail(e, DPF_BAD_STREAM,
                        opt.decode ? "field '%s' holds no packed bits"
                                   : "field '%s' holds packed bits already",
                        f->name);
    if (opt.decode && (f->shape.rank != 1 || elements % bits != 0))
        return dpf_fail(e, DPF_BAD_STREAM,
                        "field '%s' is no string of values of %llu bits each", f->name,
                        (unsigned long long)bits);
    values = opt.decode ? elements / bits : elements;
    struct dpf_shape shape = {1, {opt.decode ? values : values * bits}};
    if (values == 0 || shape.dim[0] / values > bits)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds no values", f->name);
    dpf_field_redefine(f, opt.decode || opt.signs ? DPF_F32 : DPF_BITS, &shape);
    double largest = opt.signs ? 1 : dpf_binary_largest(&code);
    return opt.decode || opt.signs ? dpf_field_set_bounds(f, -largest, largest, e)
                                   : DPF_OK;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(&s->out, opt.field);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", opt.field);
    field_index = (int)(f - s->out.fields);
    enum dpf_status status = declare(f, e);
    if (status != DPF_OK || !opt.signs)
        return status;
    packed = dpf_calloc(dpf_binary_bytes(&code, values), 1);
    return packed ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_tensor *x = &b->tensor[field_index], made;
    const struct dpf_field *f = &s->out.fields[field_index];
    struct dpf_shape shape;
    enum dpf_status status = opt.decode ? DPF_OK : dpf_tensor_make_f32(x, e);
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
        if (opt.decode)
            dpf_binary_decode(&code, in, values, out);
        else
            misfits += dpf_binary_encode(&code, in, values, opt.signs ? packed : out);
        if (opt.signs)
            dpf_binary_signs(&code, packed, values, out);
    }
    dpf_tensor_release(x);
    *x = made;
    return DPF_OK;
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    free(packed);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    (void)s;
    (void)e;
    if (misfits)
        dpf_notice("%llu values did not fit %lld whole bits and were cut down",
                   (unsigned long long)misfits, (long long)opt.whole);
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
