#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/bounds.h"
#include "exchange/relevance_stream.h"

#include "base/banned.h"

enum dpf_status dpf_normalize_check(const struct dpf_normalize_job *j,
                                    const struct dpf_stage *s, struct dpf_error *e)
{
    int ways = j->unit.given + (j->bounds != NULL) + j->declared + j->zscore +
               (j->fit != NULL) + (j->lot_mean > 0);
    if (ways > 1)
        return dpf_fail(e, DPF_USAGE,
                        "give one of --unit, --bounds, --declared, --zscore, --lot-mean "
                        "and --fit");
    if (dpf_option_given(&s->parsed, "power") && !j->relevance)
        return dpf_fail(e, DPF_USAGE, "'--power' goes with '--relevance'");
    if (ways == 0 && j->ball == 0 && !j->relevance)
        return dpf_fail(e, DPF_USAGE,
                        "say how: --unit LO:HI, --bounds FILE, --declared, "
                        "--zscore, --relevance STREAM or --ball R");
    bool ranged = j->unit.given || j->bounds || j->declared ||
                  (j->fit && strcmp(j->fit, "unit") == 0);
    if (j->both_signs && !ranged)
        return dpf_fail(e, DPF_USAGE, "'--signed' needs a range to map");
    if (j->non_private && !j->fit)
        return dpf_fail(e, DPF_USAGE, "'--non-private' goes with '--fit'");
    if (j->fit && !j->non_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "--fit takes its scale from the data, which reveals them: give "
                        "public bounds, or accept it with --non-private");
    return DPF_OK;
}

/* The scale that the options name, or none (zscore, fit, ball alone). */
static enum dpf_status choose_scale(struct dpf_normalize_job *j,
                                    const struct dpf_field *f, struct dpf_error *e)
{
    const double unit[2] = {j->unit.lo, j->unit.hi};
    struct dpf_bounds b;
    if (!j->unit.given && !j->bounds && !j->declared)
        return DPF_OK;
    enum dpf_status status =
        dpf_bounds_choose(f, j->unit.given ? unit : NULL, j->bounds, &b, e);
    if (status == DPF_OK)
        status = dpf_scale_from_bounds(&j->scaling.scale, b.lo, b.hi, b.count,
                                       j->both_signs, e);
    dpf_bounds_release(&b);
    return status;
}

/* What the scaled field may be relied on for. */
static enum dpf_status declare(const struct dpf_normalize_job *j, struct dpf_field *f,
                               struct dpf_error *e)
{
    f->dtype = DPF_F32;
    f->classes = 0;
    f->norm_l2 = j->ball;
    dpf_field_clear_bounds(f);
    bool unit_range = j->scaling.scale.clip || (j->fit && strcmp(j->fit, "unit") == 0);
    if (!unit_range)
        return DPF_OK;
    return dpf_field_set_bounds(f, j->both_signs ? -1 : 0, 1, e);
}

static enum dpf_status weigh(struct dpf_normalize_job *j, struct dpf_stage *s,
                             size_t features, struct dpf_error *e)
{
    double *relevance;
    enum dpf_status status = dpf_relevance_read(s, j->relevance, features, &relevance, e);
    if (status == DPF_OK)
        status = dpf_scaling_weigh(&j->scaling, relevance, features, j->power, e);
    free(relevance);
    return status;
}

enum dpf_status dpf_normalize_open(struct dpf_normalize_job *j, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(&s->out, j->field);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", j->field);
    if (f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds packed bits", f->name);
    j->x = (int)(f - s->out.fields);
    j->scaling.zscore = j->zscore;
    j->scaling.ball_l2 = j->ball;
    enum dpf_status status = choose_scale(j, f, e);
    if (status == DPF_OK && j->relevance)
        status = weigh(j, s, dpf_shape_elements(&f->shape), e);
    if (status == DPF_OK)
        status = declare(j, f, e);
    if (status == DPF_OK && j->fit) {
        s->out_deferred = true;
        if (s->in.is_private)
            dpf_ledger_add_none(
                &s->out.events, s->info->name,
                "the scale of each feature was taken from the data without noise");
        status = dpf_moments_init(&j->moments, dpf_shape_elements(&f->shape), e);
    }
    if (status == DPF_OK && j->lot_mean && s->in.is_private)
        status = dpf_fail(e, DPF_PRIVACY,
                          "the mean of a lot is made of all its records: '--lot-mean' is "
                          "for public or protected ones");
    if (j->lot_mean) {
        if (s->in.is_protected)
            dpf_ledger_add_mixing(&s->out.events, s->info->name, "lot");
        s->out_deferred = true;
        dpf_lot_means_init(&j->means, dpf_shape_elements(&f->shape),
                           (uint64_t)j->lot_mean);
    }
    return status == DPF_OK && s->out_deferred ? dpf_spool_open(&j->spool, &s->out, e)
                                               : status;
}

enum dpf_status dpf_normalize_take(struct dpf_normalize_job *j, struct dpf_stage *s,
                                   struct dpf_batch *b, struct dpf_error *e)
{
    struct dpf_tensor *x = &b->tensor[j->x];
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    if (status != DPF_OK)
        return status;
    status = j->fit        ? dpf_moments_add(&j->moments, x, e)
             : j->lot_mean ? dpf_lot_means_add(&j->means, x, e)
                           : dpf_scaling_apply(&j->scaling, x, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot scale field '%s'", j->field);
    return s->out_deferred ? dpf_spool_add(&j->spool, b, e) : DPF_OK;
}

/* The whole input was seen; now scale what was put aside. */
static enum dpf_status emit_fitted(struct dpf_normalize_job *j, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (j->fit) {
        dpf_moments_finish(&j->moments);
        status = dpf_scale_from_fit(&j->scaling.scale, &j->moments,
                                    strcmp(j->fit, "unit") == 0, j->both_signs, e);
    }
    dpf_lot_means_finish(&j->means);
    if (status == DPF_OK)
        status = dpf_stage_begin(s, e);
    struct dpf_batch *b = NULL;
    do {
        if (status == DPF_OK)
            status = dpf_spool_next(&j->spool, &b, e);
        if (status == DPF_OK && b && j->lot_mean)
            dpf_lot_means_subtract(&j->means, &b->tensor[j->x]);
        if (status == DPF_OK && b)
            status = dpf_scaling_apply(&j->scaling, &b->tensor[j->x], e);
        if (status == DPF_OK && b)
            status = dpf_stage_emit(s, b, e);
    } while (status == DPF_OK && b);
    return status;
}

enum dpf_status dpf_normalize_finish(struct dpf_normalize_job *j, struct dpf_stage *s,
                                     struct dpf_error *e)
{
    if (j->fit || j->lot_mean)
        return emit_fitted(j, s, e);
    if (j->scaling.clipped)
        dpf_notice("%llu values were outside the declared bounds and were clipped",
                   (unsigned long long)j->scaling.clipped);
    return DPF_OK;
}

void dpf_normalize_release(struct dpf_normalize_job *j)
{
    dpf_scaling_release(&j->scaling);
    dpf_moments_release(&j->moments);
    dpf_lot_means_release(&j->means);
    dpf_spool_release(&j->spool);
}
