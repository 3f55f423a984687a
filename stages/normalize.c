/* normalize: scale records into declared, public bounds. */
#include <string.h>

#include "base/log.h"
#include "data/bounds.h"
#include "data/scale.h"
#include "stage/spool.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct {
    struct dpf_range unit;
    bool zscore, declared, both_signs, non_private;
    double ball;
    int64_t lot_mean;
    const char *bounds, *fit, *field;
} opt = {.field = "x"};

static const char *const fits[] = {"unit", "zscore", NULL};

static const struct dpf_option options[] = {
    DPF_OPT_RANGE("unit", &opt.unit, "LO:HI",
                  "map the public bounds [LO,HI] to [0,1] and clip"),
    DPF_OPT_FILE("bounds", &opt.bounds, "FILE",
                 "the same for each feature, by the public bounds of a columns file"),
    DPF_OPT_FLAG("declared", &opt.declared,
                 "the same by the bounds that the stream's header declares"),
    DPF_OPT_FLAG("zscore", &opt.zscore,
                 "centre and scale each record by its own mean and deviation"),
    DPF_OPT_REAL("ball", &opt.ball, "R", 1e-30, 1e30,
                 "then scale each record into the L2 ball of radius R"),
    DPF_OPT_INT("lot-mean", &opt.lot_mean, "N", 1, 1e9,
                "subtract from each feature its mean over each N records that follow one "
                "another; not of private records"),
    DPF_OPT_FLAG("signed", &opt.both_signs, "map to [-1,1] instead of [0,1]"),
    DPF_OPT_CHOICE("fit", &opt.fit, fits, "HOW",
                   "take each feature's scale from the data: no privacy is left, so only "
                   "with --non-private"),
    DPF_OPT_FLAG("non-private", &opt.non_private,
                 "accept statistics of the data; the ledger says so"),
    DPF_OPT_STRING("field", &opt.field, "NAME", "the field to scale (x)"),
    DPF_OPT_END,
};

static struct dpf_scaling scaling;
static struct dpf_moments moments;
static struct dpf_lot_means means;
static struct dpf_spool spool;
static int field_index;

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    (void)s;
    int ways = opt.unit.given + (opt.bounds != NULL) + opt.declared + opt.zscore +
               (opt.fit != NULL) + (opt.lot_mean > 0);
    if (ways > 1)
        return dpf_fail(e, DPF_USAGE,
                        "give one of --unit, --bounds, --declared, --zscore, --lot-mean "
                        "and --fit");
    if (ways == 0 && opt.ball == 0)
        return dpf_fail(e, DPF_USAGE,
                        "say how: --unit LO:HI, --bounds FILE, --declared, "
                        "--zscore or --ball R");
    bool ranged = opt.unit.given || opt.bounds || opt.declared ||
                  (opt.fit && strcmp(opt.fit, "unit") == 0);
    if (opt.both_signs && !ranged)
        return dpf_fail(e, DPF_USAGE, "'--signed' needs a range to map");
    if (opt.non_private && !opt.fit)
        return dpf_fail(e, DPF_USAGE, "'--non-private' goes with '--fit'");
    if (opt.fit && !opt.non_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "--fit takes its scale from the data, which reveals them: give "
                        "public bounds, or accept it with --non-private");
    return DPF_OK;
}

/* The scale that the options name, or none (zscore, fit, ball alone). */
static enum dpf_status choose_scale(const struct dpf_field *f, struct dpf_error *e)
{
    const double unit[2] = {opt.unit.lo, opt.unit.hi};
    struct dpf_bounds b;
    if (!opt.unit.given && !opt.bounds && !opt.declared)
        return DPF_OK;
    enum dpf_status status =
        dpf_bounds_choose(f, opt.unit.given ? unit : NULL, opt.bounds, &b, e);
    if (status == DPF_OK)
        status =
            dpf_scale_from_bounds(&scaling.scale, b.lo, b.hi, b.count, opt.both_signs, e);
    dpf_bounds_release(&b);
    return status;
}

/* What the scaled field may be relied on for. */
static enum dpf_status declare(struct dpf_field *f, struct dpf_error *e)
{
    f->dtype = DPF_F32;
    f->classes = 0;
    f->norm_l2 = opt.ball;
    dpf_field_clear_bounds(f);
    bool unit_range = scaling.scale.clip || (opt.fit && strcmp(opt.fit, "unit") == 0);
    if (!unit_range)
        return DPF_OK;
    return dpf_field_set_bounds(f, opt.both_signs ? -1 : 0, 1, e);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(&s->out, opt.field);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", opt.field);
    if (f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds packed bits", f->name);
    field_index = (int)(f - s->out.fields);
    scaling.zscore = opt.zscore;
    scaling.ball_l2 = opt.ball;
    enum dpf_status status = choose_scale(f, e);
    if (status == DPF_OK)
        status = declare(f, e);
    if (status == DPF_OK && opt.fit) {
        s->out_deferred = true;
        if (s->in.is_private)
            dpf_stage_add_unprotected_event(
                s, "the scale of each feature was taken from the data without noise");
        status = dpf_moments_init(&moments, dpf_shape_elements(&f->shape), e);
    }
    if (status == DPF_OK && opt.lot_mean && s->in.is_private)
        status = dpf_fail(e, DPF_PRIVACY,
                          "the mean of a lot is made of all its records: '--lot-mean' is "
                          "for public or protected ones");
    if (opt.lot_mean) {
        s->out_deferred = true;
        dpf_lot_means_init(&means, dpf_shape_elements(&f->shape), (uint64_t)opt.lot_mean);
    }
    return status == DPF_OK && s->out_deferred ? dpf_spool_open(&spool, &s->out, e)
                                               : status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_tensor *x = &b->tensor[field_index];
    (void)s;
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    if (status != DPF_OK)
        return status;
    status = opt.fit        ? dpf_moments_add(&moments, x, e)
             : opt.lot_mean ? dpf_lot_means_add(&means, x, e)
                            : dpf_scaling_apply(&scaling, x, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot scale field '%s'", opt.field);
    return s->out_deferred ? dpf_spool_add(&spool, b, e) : DPF_OK;
}

/* The whole input was seen; now scale what was put aside. */
static enum dpf_status emit_fitted(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (opt.fit) {
        dpf_moments_finish(&moments);
        status = dpf_scale_from_fit(&scaling.scale, &moments,
                                    strcmp(opt.fit, "unit") == 0, opt.both_signs, e);
    }
    dpf_lot_means_finish(&means);
    if (status == DPF_OK)
        status = dpf_stage_begin(s, e);
    struct dpf_batch *b = NULL;
    do {
        if (status == DPF_OK)
            status = dpf_spool_next(&spool, &b, e);
        if (status == DPF_OK && b && opt.lot_mean)
            dpf_lot_means_subtract(&means, &b->tensor[field_index]);
        if (status == DPF_OK && b)
            status = dpf_scaling_apply(&scaling, &b->tensor[field_index], e);
        if (status == DPF_OK && b)
            status = dpf_stage_emit(s, b, e);
    } while (status == DPF_OK && b);
    return status;
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    if (opt.fit || opt.lot_mean)
        return emit_fitted(s, e);
    if (scaling.clipped)
        dpf_notice("%llu values were outside the declared bounds and were clipped",
                   (unsigned long long)scaling.clipped);
    return DPF_OK;
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_scale_release(&scaling.scale);
    dpf_moments_release(&moments);
    dpf_lot_means_release(&means);
    dpf_spool_release(&spool);
}

static const struct dpf_stage_info info = {
    .name = "normalize",
    .summary = "scale records into declared, public bounds",
    .reads = "x: numbers [n, ...]",
    .writes = "the same fields, x as f32",
    .privacy = "none spent; statistics of the data are refused unless --non-private, and "
               "are then in the ledger",
    .example = "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow inspect",
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
