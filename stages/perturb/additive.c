#include "additive.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "privacy/grid.h"

#include "base/banned.h"

/* ----------------------------------------------------------------------- mechanisms */

static enum dpf_status init_laplace(struct dpf_additive *a, double sensitivity,
                                    double epsilon, double delta, struct dpf_error *e)
{
    const struct dpf_laplace_query query = {.sensitivity_l1 = sensitivity,
                                            .values = a->bounds.values,
                                            .parts = 1,
                                            .least_step =
                                                dpf_record_least_step(&a->bounds)};
    (void)delta;
    enum dpf_status status = dpf_laplace_init(&a->laplace, &query, epsilon, e);
    a->step = a->laplace.step;
    a->sensitivity = a->laplace.sensitivity_l1;
    a->parameter = a->laplace.epsilon;
    return status;
}

static void add_laplace(const struct dpf_additive *a, struct dpf_random *r, int64_t *sums)
{
    dpf_laplace_add(&a->laplace, r, sums, a->bounds.values);
}

static enum dpf_status init_gaussian(struct dpf_additive *a, double sensitivity,
                                     double epsilon, double delta, struct dpf_error *e)
{
    const struct dpf_gaussian_query query = {.sensitivity_l2 = sensitivity,
                                             .values = a->bounds.values,
                                             .parts = 1,
                                             .least_step =
                                                 dpf_record_least_step(&a->bounds)};
    enum dpf_status status =
        dpf_gaussian_init_epsilon(&a->gaussian, &query, epsilon, delta, e);
    a->step = a->gaussian.step;
    a->sensitivity = a->gaussian.sensitivity_l2;
    a->parameter = a->gaussian.noise_multiplier;
    return status;
}

static void add_gaussian(const struct dpf_additive *a, struct dpf_random *r,
                         int64_t *sums)
{
    dpf_gaussian_add(&a->gaussian, r, 1, sums, a->bounds.values);
}

const struct dpf_noise dpf_noises[] = {
    {"laplace", DPF_NORM_L1, "l1", &dpf_spending_pure, "Dwork et al. 2006",
     "discrete Laplace mechanism", init_laplace, add_laplace},
    {"gaussian", DPF_NORM_L2, "l2", &dpf_spending_gaussian, "Balle and Wang 2018",
     "Gaussian mechanism on a grid, trade-off function", init_gaussian, add_gaussian},
    {.name = NULL},
};

/* -------------------------------------------------------------------- what all need */

enum dpf_status dpf_additive_open(struct dpf_additive *a, const struct dpf_perturb *p,
                                  const struct dpf_field *f, enum dpf_relation relation,
                                  double epsilon, struct dpf_mechanism_event *event,
                                  struct dpf_error *e)
{
    a->is = DPF_FIND(dpf_noises, p->mechanism ? p->mechanism : "laplace");
    enum dpf_status status = dpf_perturb_bounds(p, f, &a->bounds, e);
    if (status != DPF_OK)
        return status;
    a->row = dpf_calloc(a->bounds.values + 1, sizeof *a->row);
    a->sums = dpf_calloc(a->bounds.values + 1, sizeof *a->sums);
    if (!a->row || !a->sums)
        return dpf_fail_memory(e);
    double sensitivity = dpf_record_sensitivity(&a->bounds, a->is->norm == DPF_NORM_L2,
                                                relation != DPF_ADD_REMOVE);
    status = a->is->init(a, sensitivity, epsilon, p->delta, e);
    *event = (struct dpf_mechanism_event){
        .spending = dpf_perturb_spending(a->is->spends, a->parameter),
        .sampling = "none",
        .norm = a->is->norm_word,
        .sensitivity = a->sensitivity,
        .relation = relation,
        .claimed = {p->epsilon, p->delta, a->is->source},
        .proven = {epsilon, p->delta, a->is->theorem}};
    return status;
}

void dpf_additive_release(struct dpf_additive *a)
{
    dpf_record_bounds_release(&a->bounds);
    free(a->row);
    free(a->sums);
    *a = (struct dpf_additive){0};
}

enum dpf_status dpf_sum_declare(const struct dpf_perturb *p, struct dpf_stage *s,
                                const char *name, struct dpf_error *e)
{
    struct dpf_shape shape = s->in.fields[p->x].shape;
    s->out_deferred = true;
    dpf_header_drop_fields(&s->out);
    s->out.has_records = true;
    s->out.records = 1;
    return dpf_header_add_field(&s->out, name, DPF_F64, &shape)
               ? DPF_OK
               : dpf_fail(e, DPF_SYSTEM, "the sum does not fit a header");
}

enum dpf_status dpf_sum_take(struct dpf_perturb *p, struct dpf_batch *b,
                             struct dpf_error *e)
{
    struct dpf_additive *a = p->own;
    struct dpf_tensor *x = &b->tensor[p->x];
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    const float *value = x->data;
    uint64_t rows = status == DPF_OK ? dpf_tensor_rows(x) : 0;
    for (uint64_t row = 0; row < rows; row++, value += a->bounds.values) {
        a->clipped += dpf_record_clip(&a->bounds, value, a->row);
        for (size_t i = 0; i < a->bounds.values; i++)
            a->sums[i] += dpf_grid_round(a->row[i], a->step);
    }
    return status;
}

enum dpf_status dpf_sum_send(struct dpf_perturb *p, struct dpf_stage *s, double divisor,
                             struct dpf_error *e)
{
    struct dpf_additive *a = p->own;
    struct dpf_batch b = {0};
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = dpf_batch_init(&b, &s->out, 1, e);
    if (status != DPF_OK)
        return status;
    a->is->add(a, &p->random, a->sums);
    double *out = b.tensor[0].data;
    for (size_t i = 0; i < a->bounds.values; i++)
        out[i] = (double)a->sums[i] * a->step / divisor;
    status = dpf_stage_emit(s, &b, e);
    dpf_batch_release(&b);
    return status;
}

uint64_t dpf_additive_clipped(const struct dpf_perturb *p)
{
    return ((const struct dpf_additive *)p->own)->clipped;
}

void dpf_additive_close(struct dpf_perturb *p)
{
    dpf_additive_release(p->own);
}
