/* The callbacks of `normalize`. */
#include "normalize.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "data/bounds.h"
#include "exchange/relevance_stream.h"

#include "base/banned.h"

enum dpf_status dpf_normalize_options(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_normalize *n = s->state;
    int ways = n->unit.given + (n->bounds != NULL) + n->declared + n->zscore +
               (n->fit != NULL) + (n->lot_mean > 0);
    if (ways > 1)
        return dpf_fail(e, DPF_USAGE,
                        "give one of --unit, --bounds, --declared, --zscore, --lot-mean "
                        "and --fit");
    if (dpf_option_given(&s->parsed, "power") && !n->relevance)
        return dpf_fail(e, DPF_USAGE, "'--power' goes with '--relevance'");
    if (ways == 0 && n->ball == 0 && !n->relevance)
        return dpf_fail(e, DPF_USAGE,
                        "say how: --unit LO:HI, --bounds FILE, --declared, "
                        "--zscore, --relevance STREAM or --ball R");
    bool ranged = n->unit.given || n->bounds || n->declared ||
                  (n->fit && strcmp(n->fit, "unit") == 0);
    if (n->both_signs && !ranged)
        return dpf_fail(e, DPF_USAGE, "'--signed' needs a range to map");
    if (n->non_private && !n->fit)
        return dpf_fail(e, DPF_USAGE, "'--non-private' goes with '--fit'");
    if (n->fit && !n->non_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "--fit takes its scale from the data, which reveals them: give "
                        "public bounds, or accept it with --non-private");
    return DPF_OK;
}

/* The scale that the options name, or none (zscore, fit, ball alone). */
static enum dpf_status choose_scale(struct dpf_normalize *n, const struct dpf_field *f,
                                    struct dpf_error *e)
{
    const double unit[2] = {n->unit.lo, n->unit.hi};
    struct dpf_bounds b;
    if (!n->unit.given && !n->bounds && !n->declared)
        return DPF_OK;
    enum dpf_status status =
        dpf_bounds_choose(f, n->unit.given ? unit : NULL, n->bounds, &b, e);
    if (status == DPF_OK)
        status = dpf_scale_from_bounds(&n->scaling.scale, b.lo, b.hi, b.count,
                                       n->both_signs, e);
    dpf_bounds_release(&b);
    return status;
}

/* What the scaled field may be relied on for. */
static enum dpf_status declare(const struct dpf_normalize *n, struct dpf_field *f,
                               struct dpf_error *e)
{
    f->dtype = DPF_F32;
    f->classes = 0;
    f->norm_l2 = n->ball;
    dpf_field_clear_bounds(f);
    bool unit_range = n->scaling.scale.clip || (n->fit && strcmp(n->fit, "unit") == 0);
    if (!unit_range)
        return DPF_OK;
    return dpf_field_set_bounds(f, n->both_signs ? -1 : 0, 1, e);
}

static enum dpf_status weigh(struct dpf_normalize *n, struct dpf_stage *s,
                             size_t features, struct dpf_error *e)
{
    double *relevance;
    enum dpf_status status = dpf_relevance_read(s, n->relevance, features, &relevance, e);
    if (status == DPF_OK)
        status = dpf_scaling_weigh(&n->scaling, relevance, features, n->power, e);
    free(relevance);
    return status;
}

enum dpf_status dpf_normalize_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_normalize *n = s->state;
    struct dpf_field *f = dpf_header_field(&s->out, n->field);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", n->field);
    if (f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds packed bits", f->name);
    n->x = (int)(f - s->out.fields);
    n->scaling.zscore = n->zscore;
    n->scaling.ball_l2 = n->ball;
    enum dpf_status status = choose_scale(n, f, e);
    if (status == DPF_OK && n->relevance)
        status = weigh(n, s, dpf_shape_elements(&f->shape), e);
    if (status == DPF_OK)
        status = declare(n, f, e);
    if (status == DPF_OK && n->fit) {
        s->out_deferred = true;
        if (s->in.is_private)
            dpf_ledger_add_none(
                &s->out.events, s->info->name,
                "the scale of each feature was taken from the data without noise");
        status = dpf_moments_init(&n->moments, dpf_shape_elements(&f->shape), e);
    }
    if (status == DPF_OK && n->lot_mean && s->in.is_private)
        status = dpf_fail(e, DPF_PRIVACY,
                          "the mean of a lot depends on all its records: '--lot-mean' "
                          "needs public or protected records");
    if (n->lot_mean) {
        if (s->in.is_protected)
            dpf_ledger_add_mixing(&s->out.events, s->info->name, "lot");
        s->out_deferred = true;
        dpf_lot_means_init(&n->means, dpf_shape_elements(&f->shape),
                           (uint64_t)n->lot_mean);
    }
    return status == DPF_OK && s->out_deferred ? dpf_spool_open(&n->spool, &s->out, e)
                                               : status;
}

enum dpf_status dpf_normalize_batch(struct dpf_stage *s, struct dpf_batch *b,
                                    struct dpf_error *e)
{
    struct dpf_normalize *n = s->state;
    struct dpf_tensor *x = &b->tensor[n->x];
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    if (status != DPF_OK)
        return status;
    status = n->fit        ? dpf_moments_add(&n->moments, x, e)
             : n->lot_mean ? dpf_lot_means_add(&n->means, x, e)
                           : dpf_scaling_apply(&n->scaling, x, e);
    if (status != DPF_OK)
        return dpf_error_prefix(e, status, "cannot scale field '%s'", n->field);
    return s->out_deferred ? dpf_spool_add(&n->spool, b, e) : DPF_OK;
}

/* The whole input was seen; now scale what was put aside. */
static enum dpf_status emit_fitted(struct dpf_normalize *n, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (n->fit) {
        dpf_moments_finish(&n->moments);
        status = dpf_scale_from_fit(&n->scaling.scale, &n->moments,
                                    strcmp(n->fit, "unit") == 0, n->both_signs, e);
    }
    dpf_lot_means_finish(&n->means);
    if (status == DPF_OK)
        status = dpf_stage_begin(s, e);
    struct dpf_batch *b = NULL;
    do {
        if (status == DPF_OK)
            status = dpf_spool_next(&n->spool, &b, e);
        if (status == DPF_OK && b && n->lot_mean)
            dpf_lot_means_subtract(&n->means, &b->tensor[n->x]);
        if (status == DPF_OK && b)
            status = dpf_scaling_apply(&n->scaling, &b->tensor[n->x], e);
        if (status == DPF_OK && b)
            status = dpf_stage_emit(s, b, e);
    } while (status == DPF_OK && b);
    return status;
}

enum dpf_status dpf_normalize_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_normalize *n = s->state;
    if (n->fit || n->lot_mean)
        return emit_fitted(n, s, e);
    if (n->scaling.clipped)
        dpf_notice("%llu values were outside the declared bounds and were clipped",
                   (unsigned long long)n->scaling.clipped);
    return DPF_OK;
}

void dpf_normalize_release(struct dpf_stage *s)
{
    struct dpf_normalize *n = s->state;
    dpf_scaling_release(&n->scaling);
    dpf_moments_release(&n->moments);
    dpf_lot_means_release(&n->means);
    dpf_spool_release(&n->spool);
}
