/* The minimum of a noisy quadratic form, as a dense layer. */
#include "solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "exchange/side_stream.h"
#include "nn/quadratic_solve.h"

#include "base/banned.h"

const char *const dpf_repair_words[] = {"ridge", "none", NULL};

/* A field of so many values of this type. */
static bool has_values(struct dpf_header *h, const char *name, enum dpf_dtype dtype,
                       uint64_t count)
{
    const struct dpf_field *f = dpf_header_field(h, name);
    return f && f->dtype == dtype && dpf_shape_elements(&f->shape) == count;
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
           b->shape.dim[1] > 0 && has_values(h, "noise", DPF_F64, 2) &&
           has_values(h, "intercept", DPF_U8, 1);
}

enum dpf_status dpf_solve_form_check(const struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    return dpf_option_given(&s->parsed, "prior-weight") && !v->prior
               ? dpf_fail(e, DPF_USAGE, "'--prior-weight' goes with '--prior'")
               : DPF_OK;
}

enum dpf_status dpf_solve_form_open(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_field *gram, *moment;
    return has_form(&s->in, &gram, &moment)
               ? DPF_OK
               : dpf_fail(e, DPF_BAD_STREAM,
                          "the stream holds no quadratic form, as 'perturb --release "
                          "quadratic' makes it");
}

enum dpf_status dpf_solve_make_layer(struct dpf_model_stream *m, size_t features,
                                     size_t outputs, bool intercept, struct dpf_error *e)
{
    char *text = dpf_format("input x %zu\ny = dense x out=%zu%s\noutput y\n", features,
                            outputs, intercept ? "" : " bias=0");
    if (!text)
        return dpf_fail_memory(e);
    enum dpf_status status =
        dpf_model_parse(&m->model, text, strlen(text), "solution", e);
    free(text);
    if (status != DPF_OK)
        return status;
    m->parameters = dpf_calloc(m->model.span + 1, sizeof *m->parameters);
    return m->parameters ? DPF_OK : dpf_fail_memory(e);
}

/* The layer of the solution, [n, outputs] with the constant's row first. */
static enum dpf_status make_model(struct dpf_model_stream *m, size_t n, size_t outputs,
                                  bool intercept, const double *w, struct dpf_error *e)
{
    size_t features = n - intercept;
    enum dpf_status status = dpf_solve_make_layer(m, features, outputs, intercept, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_node *layer = &m->model.nodes[m->model.output];
    float *weights = m->parameters + layer->offset[0];
    for (size_t k = 0; k < outputs; k++)
        for (size_t i = 0; i < features; i++)
            weights[k * features + i] = (float)w[(i + intercept) * outputs + k];
    for (size_t k = 0; intercept && k < outputs; k++)
        m->parameters[layer->offset[1] + k] = (float)w[k];
    return DPF_OK;
}

static void tell(const struct dpf_quadratic_repair *repair,
                 const struct dpf_quadratic_outcome *o, size_t n)
{
    if (repair->none && o->smallest <= 0)
        dpf_notice("the noisy form has no minimum (smallest eigenvalue %.4g): this is a "
                   "saddle point; '--repair ridge' corrects it",
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
                        "the prior was computed from private records without noise");
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
    if (!gram || !moment || !noise || !constant || p->records > 1)
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

/* Add the prior to the form in hand, whose coefficients are these. */
static enum dpf_status read_prior(struct dpf_stage *s, struct dpf_quadratic_form *form,
                                  double *gram, double *moment, bool intercept,
                                  struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    struct prior prior = {.stage = s,
                          .gram = gram,
                          .moment = moment,
                          .n = form->n,
                          .outputs = form->outputs,
                          .noise_stddev = form->noise_stddev,
                          .intercept = intercept,
                          .weight = v->prior_weight};
    const struct dpf_side_stream side = {&prior, begin_prior, add_prior};
    enum dpf_status status = dpf_side_stream_read(v->prior, &side, e);
    form->noise_stddev = prior.noise_stddev;
    return status;
}

/* ------------------------------------------------------------------------ a solution */

static enum dpf_status check_form(const struct dpf_quadratic_form *form, bool intercept,
                                  struct dpf_error *e)
{
    size_t grams = form->n * form->n, moments = form->n * form->outputs;
    for (size_t i = 0; i < grams + moments; i++)
        if (!isfinite(i < grams ? form->a[i] : form->b[i - grams]))
            return dpf_fail(e, DPF_BAD_STREAM, "a coefficient is not a finite number");
    if (!isfinite(form->noise_stddev) || form->noise_stddev < 0 || form->n <= intercept)
        return dpf_fail(e, DPF_BAD_STREAM, "the sizes of gram and moment do not match");
    return DPF_OK;
}

static enum dpf_status solve_form(struct dpf_solve *v,
                                  const struct dpf_quadratic_form *form, bool intercept,
                                  struct dpf_error *e)
{
    struct dpf_quadratic_repair repair = {.none = strcmp(v->repair, "none") == 0,
                                          .ridge = v->ridge};
    struct dpf_quadratic_outcome outcome;
    double *w = dpf_calloc(form->n * form->outputs, sizeof *w);
    enum dpf_status status =
        w ? dpf_quadratic_solve(form, &repair, w, &outcome, e) : dpf_fail_memory(e);
    if (status == DPF_OK)
        tell(&repair, &outcome, form->n);
    if (status == DPF_OK)
        status = make_model(&v->result, form->n, form->outputs, intercept, w, e);
    free(w);
    return status;
}

enum dpf_status dpf_solve_form_add(struct dpf_stage *s, struct dpf_batch *b,
                                   struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    struct dpf_tensor *a = dpf_batch_field(b, &s->in, "gram", e);
    struct dpf_tensor *moment = dpf_batch_field(b, &s->in, "moment", e);
    struct dpf_tensor *noise = dpf_batch_field(b, &s->in, "noise", e);
    struct dpf_tensor *constant = dpf_batch_field(b, &s->in, "intercept", e);
    if (!a || !moment || !noise || !constant)
        return DPF_BAD_STREAM;
    if (b->rows == 0)
        return DPF_OK;
    if (b->rows > 1 || v->result.parameters)
        return dpf_fail(e, DPF_BAD_STREAM,
                        "the stream holds more than one quadratic form");
    struct dpf_quadratic_form form = {.n = a->shape.dim[1],
                                      .outputs = moment->shape.dim[2],
                                      .a = a->data,
                                      .b = moment->data,
                                      .noise_stddev = *(const double *)noise->data};
    bool intercept = *(const uint8_t *)constant->data != 0;
    enum dpf_status status = DPF_OK;
    if (v->prior)
        status = read_prior(s, &form, a->data, moment->data, intercept, e);
    if (status == DPF_OK)
        status = check_form(&form, intercept, e);
    return status == DPF_OK ? solve_form(v, &form, intercept, e) : status;
}

enum dpf_status dpf_solve_form_finish(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    return v->result.parameters
               ? DPF_OK
               : dpf_fail(e, DPF_BAD_STREAM, "the stream holds no quadratic form");
}
