#include "solve_job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "exchange/side_stream.h"
#include "nn/quadratic_solve.h"

#include "base/banned.h"

const char *const dpf_solve_job_words[] = {"quadratic", "components", NULL};
const char *const dpf_repair_words[] = {"ridge", "none", NULL};

static bool is_components(const struct dpf_solve_job *j)
{
    return strcmp(j->what, "components") == 0;
}

enum dpf_status dpf_solve_job_check(const struct dpf_solve_job *j,
                                    const struct dpf_stage *s, struct dpf_error *e)
{
    static const struct {
        const char *name;
        bool components;
    } options[] = {{"repair", false},       {"ridge", false}, {"prior", false},
                   {"prior-weight", false}, {"whiten", true}, {"components", true},
                   {"field", true}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (dpf_option_given(&s->parsed, options[i].name) &&
            options[i].components != is_components(j))
            return dpf_fail(e, DPF_USAGE, "option '--%s' does not go with '--solve %s'",
                            options[i].name, j->what);
    if (dpf_option_given(&s->parsed, "prior-weight") && !j->prior)
        return dpf_fail(e, DPF_USAGE, "'--prior-weight' goes with '--prior'");
    return is_components(j) && j->component_count == 0
               ? dpf_fail(e, DPF_USAGE, "'--solve components' needs '--components'")
               : DPF_OK;
}

static enum dpf_status open_components(struct dpf_solve_job *j, struct dpf_stage *s,
                                       struct dpf_error *e)
{
    enum { MOST = 8192 }; /* a matrix of 512 MB */
    const struct dpf_field *x = dpf_header_field(&s->in, j->field);
    if (!x)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", j->field);
    uint64_t values = dpf_shape_elements(&x->shape);
    if (x->dtype == DPF_BITS || values < 1 || values > MOST)
        return dpf_fail(e, DPF_USAGE, "field '%s' is not 1 to %d numbers", x->name,
                        (int)MOST);
    j->x = (int)(x - s->in.fields);
    return dpf_components_init(&j->components, values, e);
}

/* A form's fields, as form_stream.h declares them. */
static bool has_form(struct dpf_header *h, const struct dpf_field **gram,
                     const struct dpf_field **moment)
{
    const struct dpf_field *a = dpf_header_field(h, "gram");
    const struct dpf_field *b = dpf_header_field(h, "moment");
    *gram = a;
    *moment = b;
    return a && b && a->dtype == DPF_F64 && b->dtype == DPF_F64 && a->shape.rank == 2 &&
           b->shape.rank == 2 && a->shape.dim[0] == a->shape.dim[1] &&
           a->shape.dim[0] > 0 && a->shape.dim[0] == b->shape.dim[0] &&
           b->shape.dim[1] > 0;
}

enum dpf_status dpf_solve_job_open(struct dpf_solve_job *j, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    if (is_components(j))
        return open_components(j, s, e);
    const struct dpf_field *a, *b;
    const struct dpf_field *noise = dpf_header_field(&s->in, "noise");
    const struct dpf_field *intercept = dpf_header_field(&s->in, "intercept");
    bool good = has_form(&s->in, &a, &b) && noise && intercept &&
                noise->dtype == DPF_F64 && intercept->dtype == DPF_U8 &&
                dpf_shape_elements(&noise->shape) == 2 &&
                dpf_shape_elements(&intercept->shape) == 1;
    return good ? DPF_OK
                : dpf_fail(e, DPF_BAD_STREAM,
                           "the stream holds no quadratic form, as 'perturb --release "
                           "quadratic' makes it");
}

/* A dense layer without its weights. */
static enum dpf_status make_layer(struct dpf_solve_job *j, size_t features,
                                  size_t outputs, bool intercept, struct dpf_error *e)
{
    struct dpf_model *m = &j->result.model;
    char *text = dpf_format("input x %zu\ny = dense x out=%zu%s\noutput y\n", features,
                            outputs, intercept ? "" : " bias=0");
    if (!text)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_model_parse(m, text, strlen(text), "solution", e);
    free(text);
    if (status != DPF_OK)
        return status;
    j->result.parameters = dpf_calloc(m->span + 1, sizeof *j->result.parameters);
    return j->result.parameters ? DPF_OK : dpf_fail_memory(e);
}

/* The layer of the solution, [n, outputs] with the constant's row first. */
static enum dpf_status make_model(struct dpf_solve_job *j, size_t n, size_t outputs,
                                  bool intercept, const double *w, struct dpf_error *e)
{
    struct dpf_model *m = &j->result.model;
    size_t features = n - intercept;
    enum dpf_status status = make_layer(j, features, outputs, intercept, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_node *layer = &m->nodes[m->output];
    float *weights = j->result.parameters + layer->offset[0];
    for (size_t k = 0; k < outputs; k++)
        for (size_t i = 0; i < features; i++)
            weights[k * features + i] = (float)w[(i + intercept) * outputs + k];
    for (size_t k = 0; intercept && k < outputs; k++)
        j->result.parameters[layer->offset[1] + k] = (float)w[k];
    return DPF_OK;
}

static void tell(const struct dpf_solve_job *j, const struct dpf_quadratic_outcome *o,
                 size_t n)
{
    bool none = strcmp(j->repair, "none") == 0;
    if (none && o->smallest <= 0)
        dpf_notice("the noisy form has no minimum (smallest eigenvalue %.4g): this is a "
                   "saddle point; '--repair ridge' mends it",
                   o->smallest);
    else
        dpf_notice("smallest eigenvalue %.4g, ridge %.4g, %zu of %zu directions dropped",
                   o->smallest, o->ridge, o->dropped, n);
}

/* ------------------------------------------------------------------------- a prior */

struct prior {
    struct dpf_stage *stage;
    double *gram, *moment; /* those of the form: the prior's are added to them */
    double noise_stddev;   /* and its noise to theirs */
    bool intercept;
    size_t n, outputs;
    double weight;
    uint64_t records;
};

static enum dpf_status begin_prior(void *context, struct dpf_header *h,
                                   struct dpf_error *e)
{
    struct prior *p = context;
    const struct dpf_field *a, *b;
    if (h->is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "the prior is made of private records, without a mechanism");
    if (!has_form(h, &a, &b) || a->shape.dim[0] != p->n || b->shape.dim[1] != p->outputs)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the prior is not a quadratic form of %zu variables and %zu "
                        "outputs",
                        p->n, p->outputs);
    dpf_stage_adopt_model(p->stage, h);
    return DPF_OK;
}

static enum dpf_status add_prior(void *context, struct dpf_header *h, struct dpf_batch *b,
                                 struct dpf_error *e)
{
    struct prior *p = context;
    const struct dpf_tensor *gram = dpf_batch_field(b, h, "gram", e);
    const struct dpf_tensor *moment = dpf_batch_field(b, h, "moment", e);
    const struct dpf_tensor *noise = dpf_batch_field(b, h, "noise", e);
    const struct dpf_tensor *constant = dpf_batch_field(b, h, "intercept", e);
    p->records += b->rows;
    if (!gram || !moment || !noise || !constant || noise->dtype != DPF_F64 ||
        constant->dtype != DPF_U8 || p->records > 1)
        return dpf_fail(e, DPF_BAD_STREAM, "the prior is not one quadratic form");
    if (b->rows && (*(const uint8_t *)constant->data != 0) != p->intercept)
        return dpf_fail(
            e, DPF_BAD_STREAM,
            "one of the form and its prior has a constant, the other has none");
    if (b->rows)
        p->noise_stddev =
            hypot(p->noise_stddev, p->weight * *(const double *)noise->data);
    for (size_t i = 0; b->rows && i < p->n * p->n; i++)
        p->gram[i] += p->weight * ((const double *)gram->data)[i];
    for (size_t i = 0; b->rows && i < p->n * p->outputs; i++)
        p->moment[i] += p->weight * ((const double *)moment->data)[i];
    return DPF_OK;
}

enum dpf_status dpf_solve_job_take(struct dpf_solve_job *j, struct dpf_stage *s,
                                   struct dpf_batch *b, struct dpf_error *e)
{
    if (is_components(j)) {
        struct dpf_tensor *x = &b->tensor[j->x];
        enum dpf_status made = dpf_tensor_make_f32(x, e);
        return made == DPF_OK ? dpf_components_add(&j->components, x->data, b->rows, e)
                              : made;
    }
    struct dpf_tensor *a = dpf_batch_field(b, &s->in, "gram", e);
    struct dpf_tensor *moment = dpf_batch_field(b, &s->in, "moment", e);
    struct dpf_tensor *noise = dpf_batch_field(b, &s->in, "noise", e);
    struct dpf_tensor *constant = dpf_batch_field(b, &s->in, "intercept", e);
    struct dpf_quadratic_outcome outcome;
    if (!a || !moment || !noise || !constant)
        return DPF_BAD_STREAM;
    if (b->rows == 0)
        return DPF_OK;
    if (b->rows > 1 || j->result.parameters)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the stream holds more than one quadratic form");
    struct dpf_quadratic_form form = {.n = a->shape.dim[1],
                                      .outputs = moment->shape.dim[2],
                                      .a = a->data,
                                      .b = moment->data,
                                      .noise_stddev = *(const double *)noise->data};
    struct dpf_quadratic_repair repair = {.none = strcmp(j->repair, "none") == 0,
                                          .ridge = j->ridge};
    bool intercept = *(const uint8_t *)constant->data != 0;
    struct prior prior = {.stage = s,
                          .gram = a->data,
                          .moment = moment->data,
                          .n = form.n,
                          .outputs = form.outputs,
                          .noise_stddev = form.noise_stddev,
                          .intercept = intercept,
                          .weight = j->prior_weight};
    const struct dpf_side_stream side = {&prior, begin_prior, add_prior};
    if (j->prior && dpf_side_stream_read(j->prior, &side, e) != DPF_OK)
        return e->status;
    form.noise_stddev = prior.noise_stddev;
    for (size_t i = 0; i < form.n * (form.n + form.outputs); i++)
        if (!isfinite(i < form.n * form.n ? form.a[i] : form.b[i - form.n * form.n]))
            return dpf_fail(e, DPF_BAD_STREAM, "a coefficient is not a finite number");
    if (!isfinite(form.noise_stddev) || form.noise_stddev < 0 || form.n <= intercept)
        return dpf_fail(e, DPF_BAD_STREAM, "the quadratic form does not fit together");
    double *w = dpf_calloc(form.n * form.outputs, sizeof *w);
    enum dpf_status status =
        w ? dpf_quadratic_solve(&form, &repair, w, &outcome, e) : dpf_fail_memory(e);
    if (status == DPF_OK)
        tell(j, &outcome, form.n);
    if (status == DPF_OK)
        status = make_model(j, form.n, form.outputs, intercept, w, e);
    free(w);
    return status;
}

static enum dpf_status solve_components(struct dpf_solve_job *j, struct dpf_error *e)
{
    size_t k = (size_t)j->component_count;
    double share;
    enum dpf_status status = make_layer(j, j->components.values, k, true, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_node *layer = &j->result.model.nodes[j->result.model.output];
    status = dpf_components_solve(&j->components, k, j->whiten,
                                  j->result.parameters + layer->offset[0],
                                  j->result.parameters + layer->offset[1], &share, e);
    if (status == DPF_OK)
        dpf_notice("%zu components with %.1f %% of the variance", k, 100 * share);
    return status;
}

enum dpf_status dpf_solve_job_finish(struct dpf_solve_job *j, struct dpf_stage *s,
                                     struct dpf_error *e)
{
    if (s->in.is_private)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "the model was solved from private numbers");
    if (is_components(j))
        return solve_components(j, e);
    return j->result.parameters
               ? DPF_OK
               : dpf_fail(e, DPF_BAD_STREAM, "the stream holds no quadratic form");
}

void dpf_solve_job_release(struct dpf_solve_job *j)
{
    dpf_components_release(&j->components);
    dpf_model_stream_release(&j->result);
}
