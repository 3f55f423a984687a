/* The coefficients of least squares with noise: privacy/quadratic.h. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/form_stream.h"
#include "privacy/quadratic.h"
#include "release.h"

#include "base/banned.h"

const char *const dpf_form_losses[] = {"squared", "cross-entropy", NULL};

struct own {
    struct dpf_quadratic form;
    int y;          /* the number of the target's field */
    uint64_t group; /* records that epsilon is for */
};

/* Each variant, what is claimed of it and what is proven. */
static const struct variant {
    const char *name;
    enum dpf_quadratic_variant is;
    const char *source, *theorem;
} rows[] = {{"paper", DPF_QUADRATIC_PAPER,
             "Jiang, Deep Learning with Differential Privacy, section 4.2",
             "Laplace on all entries, true sensitivities n^2 and 2n"},
            {"sound", DPF_QUADRATIC_SOUND,
             "Jiang, with the joint sensitivity of the upper triangle",
             "Laplace on the upper triangle, joint sensitivity"},
            {"gaussian", DPF_QUADRATIC_GAUSSIAN, "Balle and Wang 2018",
             "Gaussian on the upper triangle, trade-off function"},
            {"plain", DPF_QUADRATIC_PLAIN, NULL, NULL},
            {NULL, DPF_QUADRATIC_PLAIN, NULL, NULL}};

static enum dpf_status check_quadratic(const struct dpf_perturb *p,
                                       const struct dpf_stage *s, struct dpf_error *e)
{
    (void)s;
    if (p->unit && (p->paper || p->plain))
        return dpf_fail(e, DPF_USAGE,
                        "'--unit' goes with the variants sound and gaussian");
    if (p->loss && strcmp(p->loss, "cross-entropy") == 0 && !p->paper && !p->plain)
        return dpf_fail(e, DPF_USAGE,
                        "'--loss cross-entropy' has the variants paper and plain: as "
                        "released, the others' coefficients are those of any quadratic "
                        "loss of classes");
    if (p->gaussian != (p->relation != NULL))
        return dpf_fail(e, DPF_USAGE,
                        p->gaussian ? "give '--relation': add-remove, or replace-one"
                                    : "'--relation' is fixed for this variant");
    return DPF_OK;
}

/* The target: a number in [-1, 1], or a class. */
static enum dpf_status take_target(struct dpf_perturb *p, struct dpf_header *h,
                                   struct dpf_quadratic_plan *plan, struct dpf_error *e)
{
    struct own *own = p->own;
    enum dpf_status status = dpf_perturb_target(p, h, &own->y, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_field *f = &h->fields[own->y];
    plan->classes = f->classes > 0;
    plan->outputs = plan->classes ? (size_t)f->classes : 1;
    if (dpf_shape_elements(&f->shape) != 1 || f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_USAGE,
                        "target '%s' does not hold one number for each record", f->name);
    if (!plan->classes &&
        (f->bounds.count != 1 || f->bounds.lo[0] < -1 || f->bounds.hi[0] > 1))
        return dpf_fail(e, DPF_USAGE,
                        "target '%s' needs declared bounds within [-1, 1]: 'normalize "
                        "--field %s --signed'",
                        f->name, f->name);
    return DPF_OK;
}

/* The features: within [-1, 1], or in a ball. */
static enum dpf_status take_features(const struct dpf_perturb *p,
                                     const struct dpf_field *f,
                                     struct dpf_quadratic_plan *plan, struct dpf_error *e)
{
    bool boxed = f->bounds.count > 0, negative = !boxed;
    for (size_t i = 0; i < f->bounds.count; i++) {
        boxed = boxed && f->bounds.lo[i] >= -1 && f->bounds.hi[i] <= 1;
        negative = negative || f->bounds.lo[i] < 0;
    }
    plan->features = dpf_shape_elements(&f->shape);
    plan->radius = p->gaussian || p->plain ? f->norm_l2 : 0;
    plan->non_negative = !negative;
    if (!boxed && !(plan->radius > 0))
        return dpf_fail(
            e, DPF_USAGE,
            "field '%s' needs declared bounds within [-1, 1]%s: see normalize", f->name,
            p->gaussian || p->plain ? ", or a norm" : "");
    return DPF_OK;
}

static const char taylor_source[] = "Phan et al. 2017 (pCDBN), section 3.3";
static const char taylor_theorem[] =
    "Laplace on all coefficients, their true sensitivities";

static void add_events(const struct dpf_perturb *p, struct dpf_stage *s,
                       const struct variant *v)
{
    const struct dpf_quadratic *q = &((const struct own *)p->own)->form;
    bool l2 = p->gaussian;
    if (p->plain) {
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "the coefficients were released without noise");
        return;
    }
    uint64_t group = ((const struct own *)p->own)->group;
    double multiplier = q->gaussian.noise_multiplier;
    double proven = l2 || group > 1 ? dpf_perturb_record_epsilon(p, multiplier, group)
                                    : q->proven_epsilon;
    const struct dpf_mechanism_event event = {
        .spending = dpf_perturb_spending(
            l2 ? &dpf_spending_gaussian : &dpf_spending_pure,
            l2 ? dpf_perturb_record_multiplier(multiplier, group) : proven),
        .sampling = "none",
        .norm = l2 ? "l2" : "l1",
        .sensitivity = q->sensitivity / (double)group,
        .relation = l2 && !q->plan.replace_one ? DPF_ADD_REMOVE : DPF_REPLACE_ONE,
        .claimed = {p->epsilon, p->delta, q->plan.taylor ? taylor_source : v->source},
        .proven = {proven, p->delta, q->plan.taylor ? taylor_theorem : v->theorem}};
    dpf_perturb_add_event(p, s, &event);
    dpf_standing_protect(&s->out);
}

static enum dpf_status open_quadratic(struct dpf_perturb *p, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    struct own *own = p->own;
    const struct variant *v = DPF_FIND(rows, p->variant);
    struct dpf_quadratic_plan plan = {
        .variant = v->is,
        .intercept = !p->no_intercept,
        .replace_one = p->relation && strcmp(p->relation, "replace-one") == 0,
        .taylor = p->loss && strcmp(p->loss, "cross-entropy") == 0,
        .epsilon = p->epsilon,
        .delta = p->delta};
    enum dpf_status status = take_features(p, &s->in.fields[p->x], &plan, e);
    if (status == DPF_OK)
        status = dpf_perturb_group(p, s, &own->group, e);
    plan.group = own->group;
    plan.epsilon = dpf_perturb_group_epsilon(p, own->group);
    if (status == DPF_OK)
        status = take_target(p, &s->in, &plan, e);
    if (status == DPF_OK && plan.taylor && !plan.classes)
        status =
            dpf_fail(e, DPF_USAGE, "'--loss cross-entropy' needs classes: '%s' has none",
                     p->target);
    if (status == DPF_OK)
        status = dpf_quadratic_init(&own->form, &plan, e);
    if (status != DPF_OK)
        return status;
    s->out_deferred = true;
    status = dpf_form_declare(&s->out, own->form.n, own->form.plan.outputs, e);
    if (status == DPF_OK && s->in.is_private)
        add_events(p, s, v);
    return status;
}

static enum dpf_status take_quadratic(struct dpf_perturb *p, struct dpf_batch *b,
                                      struct dpf_error *e)
{
    struct own *own = p->own;
    struct dpf_tensor *x = &b->tensor[p->x], *y = &b->tensor[own->y];
    bool classes = own->form.plan.classes;
    int32_t *labels = classes ? dpf_calloc(b->rows + 1, sizeof *labels) : NULL;
    if (classes && !labels)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    for (uint64_t i = 0; classes && i < b->rows; i++) /* the reader checked their range */
        labels[i] = (int32_t)dpf_tensor_get(y, i);
    if (status == DPF_OK && !classes)
        status = dpf_tensor_make_f32(y, e);
    if (status == DPF_OK)
        dpf_quadratic_add(&own->form, x->data, classes ? NULL : y->data, labels, b->rows);
    free(labels);
    return status;
}

static enum dpf_status finish_quadratic(struct dpf_perturb *p, struct dpf_stage *s,
                                        struct dpf_error *e)
{
    struct dpf_quadratic *q = &((struct own *)p->own)->form;
    struct dpf_batch b = {0};
    enum dpf_status status = dpf_form_begin(s, &b, e);
    if (status != DPF_OK)
        return status;
    dpf_quadratic_release_noisy(q, &p->random, b.tensor[0].data, b.tensor[1].data);
    const double noise[2] = {dpf_quadratic_noise_a(q), dpf_quadratic_noise_b(q)};
    return dpf_form_send(s, &b, noise, q->plan.intercept, e);
}

static uint64_t clipped(const struct dpf_perturb *p)
{
    return ((const struct own *)p->own)->form.clipped;
}

static void release_quadratic(struct dpf_perturb *p)
{
    dpf_quadratic_release(&((struct own *)p->own)->form);
}

static const char *const needs[] = {"variant", NULL};
static const char *const may[] = {"delta",  "unit", "relation", "no-intercept",
                                  "target", "loss", NULL};
static const char *const variants[] = {"paper", "sound", "gaussian", "plain", NULL};

const struct dpf_release dpf_release_quadratic = {.needs = needs,
                                                  .may = may,
                                                  .variants = variants,
                                                  .own_bytes = sizeof(struct own),
                                                  .sums = true,
                                                  .check = check_quadratic,
                                                  .open = open_quadratic,
                                                  .take = take_quadratic,
                                                  .finish = finish_quadratic,
                                                  .clipped = clipped,
                                                  .release = release_quadratic};
