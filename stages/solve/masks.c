/* The principal components of masks, as an encoder and its decoder (PCA-PATE). */
#include <math.h>

#include "account/code_noise.h"
#include "base/log.h"
#include "privacy/code_mean.h"
#include "solve.h"

#include "base/banned.h"

enum dpf_status dpf_solve_masks_check(const struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    bool noise = v->epsilon > 0 || v->delta > 0 || v->teachers > 0;
    if (v->component_count == 0)
        return dpf_fail(e, DPF_USAGE, "'--what mask-components' needs '--components'");
    if (noise && (v->epsilon == 0 || v->delta == 0 || v->teachers == 0))
        return dpf_fail(e, DPF_USAGE,
                        "'--epsilon', '--delta' and '--teachers' go together");
    if (!noise &&
        (v->shrink || v->queries > 0 || dpf_option_given(&s->parsed, "calibration")))
        return dpf_fail(e, DPF_USAGE,
                        "'--shrink', '--queries' and '--calibration' need '--epsilon'");
    return DPF_OK;
}

enum dpf_status dpf_solve_masks_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    const struct dpf_field *x = dpf_header_field(&s->in, v->field);
    if (!x)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", v->field);
    if (x->classes == 0 || x->shape.rank < 1 || x->shape.rank > 3)
        return dpf_fail(e, DPF_USAGE,
                        "field '%s' is not a mask: labels of classes at positions",
                        x->name);
    v->x = (int)(x - s->in.fields);
    v->mask_shape = x->shape;
    return dpf_mask_coder_init(&v->masks, x->classes, dpf_shape_elements(&x->shape), e);
}

enum dpf_status dpf_solve_masks_add(struct dpf_stage *s, struct dpf_batch *b,
                                    struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    return dpf_mask_coder_add(&v->masks, &b->tensor[v->x], e);
}

/* The noise that `aggregate` will put on the mean of codes, in radii. */
static enum dpf_status plan_noise(const struct dpf_solve *v, struct dpf_mask_noise *noise,
                                  struct dpf_error *e)
{
    double multiplier;
    uint64_t queries = v->queries > 0 ? (uint64_t)v->queries : v->masks.records;
    *noise = (struct dpf_mask_noise){.radius = v->radius, .shrink = v->shrink};
    if (v->epsilon == 0)
        return DPF_OK;
    enum dpf_status status =
        dpf_code_calibrate(v->calibration, queries, v->epsilon, v->delta, &multiplier, e);
    if (status != DPF_OK)
        return status;
    noise->deviation = 2 * multiplier / (double)v->teachers;
    dpf_notice(
        "%llu queries to %lld teachers at epsilon %g, delta %g: noise of deviation "
        "%.6g R on each value of a code",
        (unsigned long long)queries, (long long)v->teachers, v->epsilon, v->delta,
        noise->deviation);
    return DPF_OK;
}

static void tell(const struct dpf_mask_coder *c, const struct dpf_mask_noise *noise,
                 size_t k)
{
    double all = 0, kept = 0;
    double radius = noise->radius > 0 ? noise->radius : dpf_mask_coder_radius(c, k);
    for (size_t j = 0; j < c->records; j++) {
        all += c->variances[j];
        kept += j < k ? c->variances[j] : 0;
    }
    dpf_notice("%zu components with %.1f %% of the variance of %llu masks, R = %.6g", k,
               100 * kept / all, (unsigned long long)c->records, radius);
    if (noise->deviation > 0)
        dpf_notice(
            "L_PCA %.6g, of a variance of %.6g: what %zu components and this noise "
            "leave of a mask's squared distance",
            dpf_mask_coder_distance(c, k, noise), all, k);
}

enum dpf_status dpf_solve_masks_finish(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    struct dpf_mask_noise noise;
    enum dpf_status status = plan_noise(v, &noise, e);
    if (status == DPF_OK)
        status = dpf_mask_coder_solve(&v->masks, e);
    if (status != DPF_OK)
        return status;
    size_t most = (size_t)v->component_count, rank = dpf_mask_coder_rank(&v->masks);
    size_t k = noise.deviation > 0 ? dpf_mask_coder_choose(&v->masks, most, &noise)
               : most < rank       ? most
                                   : rank;
    tell(&v->masks, &noise, k);
    return dpf_mask_coder_write(&v->masks, &v->mask_shape, k, &noise, &v->result.model,
                                &v->result.parameters, e);
}
