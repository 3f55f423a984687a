/* The filters of a convolutional restricted Boltzmann machine, from the released
 * coefficients of its polynomial energy (pCDBN). */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "exchange/energy_stream.h"
#include "nn/energy_filters.h"
#include "nn/initialise.h"
#include "random/seeded.h"
#include "solve.h"

#include "base/banned.h"

enum dpf_status dpf_solve_energy_check(const struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    bool descends = v->filters != NULL && strcmp(v->filters, "components") != 0;
    if (!v->arch == !v->model)
        return dpf_fail(e, DPF_USAGE, "'--what energy' needs one of --arch and --model");
    if (!v->node)
        return dpf_fail(e, DPF_USAGE,
                        "'--what energy' needs '--node': whose weights are sought");
    if (descends && dpf_option_given(&s->parsed, "whiten"))
        return dpf_fail(e, DPF_USAGE, "'--whiten' goes with '--filters components'");
    if (!descends &&
        (dpf_option_given(&s->parsed, "epochs") || dpf_option_given(&s->parsed, "rate") ||
         dpf_option_given(&s->parsed, "l1")))
        return dpf_fail(e, DPF_USAGE,
                        "'--epochs', '--rate' and '--l1' go with '--filters descent' or "
                        "'orthogonal'");
    return DPF_OK;
}

enum dpf_status dpf_solve_energy_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    enum dpf_status status = dpf_energy_expect(&s->in, e);
    if (status == DPF_OK && v->model)
        status = dpf_model_stream_read(&v->result, v->model, NULL, NULL, e);
    else if (status == DPF_OK)
        status = dpf_model_from_option(&v->result.model, v->arch, e);
    if (status == DPF_OK && !dpf_model_find(&v->result.model, v->node))
        status = dpf_fail(e, DPF_USAGE, "the network has no node '%s'", v->node);
    return status;
}

/* The node whose weights these patches fit, and where those of the conditions are. */
static enum dpf_status check_node(const struct dpf_solve *v,
                                  const struct dpf_energy_record *r, struct dpf_error *e)
{
    const struct dpf_node *n = dpf_model_find(&v->result.model, v->node);
    const struct dpf_shape *w = &n->parameters[0], *b = &n->parameters[DPF_CONDITION];
    uint64_t values = 1, conditions = (uint64_t)*r->conditions;
    for (int i = 0; i < 3; i++)
        values *= (uint64_t)r->patch[i];
    bool fits = n->parameter_count > 1 && n->bias && w->rank >= 2 &&
                dpf_shape_elements(w) == w->dim[0] * values &&
                (uint64_t)n->out == w->dim[0];
    for (int i = 0; fits && w->rank == 4 && i < 3; i++)
        fits = w->dim[i + 1] == (uint64_t)r->patch[i];
    if (n->parameter_count > DPF_CONDITION)
        fits = fits && b->dim[1] == conditions;
    else
        fits = fits && conditions == 0;
    return fits ? DPF_OK
                : dpf_fail(e, DPF_USAGE,
                           "node '%s' is no dense layer and no convolution with a bias "
                           "that reads patches of %lldx%lldx%lld and %lld conditions",
                           v->node, (long long)r->patch[0], (long long)r->patch[1],
                           (long long)r->patch[2], (long long)*r->conditions);
}

static void tell(const struct dpf_filter_plan *plan, const struct dpf_filter_outcome *o)
{
    if (plan->method == DPF_FILTERS_COMPONENTS)
        dpf_notice("%zu filters with %.1f %% of the variance of patches, %zu of them "
                   "below the noise",
                   plan->filters, 100 * o->share, o->noisy);
    else
        dpf_notice("%zu filters: mean energy of a patch %.6g, after %lld steps %.6g",
                   plan->filters, o->first, (long long)plan->steps, o->last);
}

static enum dpf_status fill_node(struct dpf_solve *v, const struct dpf_energy_record *r,
                                 struct dpf_error *e)
{
    const struct dpf_node *n = dpf_model_find(&v->result.model, v->node);
    size_t values = (size_t)(r->patch[0] * r->patch[1] * r->patch[2]);
    size_t conditions = (size_t)*r->conditions, p = values + conditions;
    const struct dpf_energy_polynomial energy = {.variables = p + 1,
                                                 .degree = r->degree,
                                                 .expansion = r->expansion,
                                                 .coefficients = r->coefficients,
                                                 .noise = *r->noise};
    const struct dpf_filter_choice *how = DPF_FIND(dpf_filter_choices, v->filters);
    const struct dpf_filter_plan plan = {.method = how->method,
                                         .filters = (size_t)n->out,
                                         .radius = v->radius > 0 ? v->radius : 1,
                                         .steps = v->epochs,
                                         .rate = v->rate,
                                         .l1 = v->l1,
                                         .whiten = v->whiten,
                                         .seed = (uint64_t)v->seed};
    struct dpf_filter_outcome outcome;
    double *w = dpf_calloc(plan.filters * (p + 1), sizeof *w);
    enum dpf_status status =
        w ? dpf_energy_filters(&energy, &plan, w, &outcome, e) : dpf_fail_memory(e);
    for (size_t f = 0; status == DPF_OK && f < plan.filters; f++) {
        for (size_t i = 0; i < p; i++)
            v->result.parameters[n->offset[0] + f * p + i] =
                (float)w[f * (p + 1) + i + 1];
        v->result.parameters[n->offset[1] + f] = (float)w[f * (p + 1)];
    }
    if (status == DPF_OK)
        tell(&plan, &outcome);
    free(w);
    return status;
}

enum dpf_status dpf_solve_energy_add(struct dpf_stage *s, struct dpf_batch *b,
                                     struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    struct dpf_energy_record record;
    if (b->rows == 0)
        return DPF_OK;
    if (v->solved)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream holds more than one energy");
    enum dpf_status status = dpf_energy_read(b, &s->in, &record, e);
    if (status == DPF_OK)
        status = check_node(v, &record, e);
    if (status == DPF_OK && v->arch)
        status = dpf_model_stream_first_weights(&v->result, s, NULL, v->init,
                                                (uint64_t)v->seed, e);
    if (status == DPF_OK)
        status = fill_node(v, &record, e);
    v->solved = status == DPF_OK;
    return status;
}

enum dpf_status dpf_solve_energy_finish(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    if (!v->solved)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream holds no energy");
    if (v->model)
        dpf_stage_adopt_model(s, &v->result.header);
    return DPF_OK;
}
