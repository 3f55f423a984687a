/* The coefficients of a polynomial energy with noise: privacy/energy_form.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/parallel.h"
#include "exchange/energy_stream.h"
#include "kernels/expansion.h"
#include "privacy/energy_form.h"
#include "release.h"

#include "base/banned.h"

struct own {
    struct dpf_energy_form form;
    uint64_t group; /* records that epsilon is for */
    struct dpf_thread_pool pool;
    struct dpf_energy_worker *workers;
    int threads;
    /* the batch in hand */
    const float *records;
    uint64_t rows;
};

static const struct variant {
    const char *name;
    enum dpf_energy_variant is;
    const char *source, *theorem;
} rows[] = {{"paper", DPF_ENERGY_PAPER, "Phan et al. 2017 (pCDBN), Lemma 2",
             "none: the mechanism's epsilon is what it would be with a public scale"},
            {"sound", DPF_ENERGY_SOUND, "functional mechanism, Laplace noise on moments",
             "Laplace on integers whose L1 norm is measured"},
            {"gaussian", DPF_ENERGY_GAUSSIAN, "Balle and Wang 2018",
             "Gaussian on integers whose L2 norm is measured, trade-off function"},
            {"plain", DPF_ENERGY_PLAIN, NULL, NULL},
            {NULL, DPF_ENERGY_PLAIN, NULL, NULL}};

static const char why_printed[] =
    "the paper's sensitivity (Eq. 15) is the largest that the records at hand have, so "
    "the scale of the noise tells of them, and it leaves with the coefficients";

static enum dpf_status check_energy(const struct dpf_perturb *p,
                                    const struct dpf_stage *s, struct dpf_error *e)
{
    bool cut = !p->paper && !p->plain;
    (void)s;
    if (cut != (p->relation != NULL))
        return dpf_fail(e, DPF_USAGE,
                        cut ? "give '--relation': add-remove, or replace-one"
                            : "'--relation' is fixed for this variant");
    if (!cut && p->unit)
        return dpf_fail(e, DPF_USAGE,
                        "'--unit' goes with the variants sound and gaussian");
    if (!cut && (p->clip_l1 > 0 || p->clip_l2 > 0))
        return dpf_fail(e, DPF_USAGE,
                        "'--clip-l1' and '--clip-l2' do not go with this "
                        "variant: it takes records as they are");
    return DPF_OK;
}

/* "HxW", or the whole picture. */
static enum dpf_status parse_kernel(const struct dpf_perturb *p,
                                    struct dpf_patch_plan *plan, struct dpf_error *e)
{
    char *end;
    if (!p->kernel) {
        plan->kernel_height = plan->height;
        plan->kernel_width = plan->width;
        return DPF_OK;
    }
    unsigned long long h = strtoull(p->kernel, &end, 10), w = h;
    bool good = p->kernel[0] >= '1' && p->kernel[0] <= '9';
    if (good && *end == 'x') {
        good = end[1] >= '1' && end[1] <= '9';
        w = strtoull(end + 1, &end, 10);
    }
    if (!good || *end || h > 4096 || w > 4096)
        return dpf_fail(e, DPF_USAGE,
                        "option '--kernel' needs a size, 'K' or 'HxW', not "
                        "'%s'",
                        p->kernel);
    plan->kernel_height = (size_t)h;
    plan->kernel_width = (size_t)w;
    return DPF_OK;
}

/* "CxHxW": the first values of a vector are a picture, the others conditions. */
static enum dpf_status parse_picture(const struct dpf_perturb *p,
                                     const struct dpf_field *f,
                                     struct dpf_patch_plan *plan, struct dpf_error *e)
{
    const char *at = p->picture;
    uint64_t size[3] = {0}, values = dpf_shape_elements(&f->shape), all = 1;
    bool good = f->shape.rank == 1;
    for (int i = 0; good && i < 3; i++) {
        char *end;
        good = *at >= '1' && *at <= '9';
        size[i] = good ? strtoull(at, &end, 10) : 0;
        good = good && size[i] <= values && *end == (i < 2 ? 'x' : 0);
        all = good ? all * size[i] : 0; /* each is at most 2^32: values fit a record */
        good = good && all <= values;
        at = good ? end + 1 : at;
    }
    if (!good)
        return dpf_fail(
            e, DPF_USAGE,
            "option '--picture' needs a size CxHxW of at most the values of a "
            "vector, not '%s' of field '%s'",
            p->picture, f->name);
    plan->channels = (size_t)size[0];
    plan->height = (size_t)size[1];
    plan->width = (size_t)size[2];
    plan->conditions = (size_t)(values - all);
    return DPF_OK;
}

/* Pictures within [0, 1]; a vector is a picture of one row. */
static enum dpf_status take_patches(const struct dpf_perturb *p,
                                    const struct dpf_field *f,
                                    struct dpf_patch_plan *plan, struct dpf_error *e)
{
    const uint64_t *d = f->shape.dim;
    bool inside = f->bounds.count > 0;
    for (size_t i = 0; i < f->bounds.count; i++)
        inside = inside && f->bounds.lo[i] >= 0 && f->bounds.hi[i] <= 1;
    if (f->shape.rank < 1 || f->shape.rank > 3)
        return dpf_fail(e, DPF_USAGE, "field '%s' holds no vectors and no pictures",
                        f->name);
    if (!inside)
        return dpf_fail(e, DPF_USAGE,
                        "field '%s' needs declared bounds within [0, 1]: 'normalize' "
                        "declares bounds",
                        f->name);
    *plan = (struct dpf_patch_plan){
        .channels = f->shape.rank == 3 ? (size_t)d[0] : 1,
        .height = f->shape.rank > 1 ? (size_t)d[f->shape.rank - 2] : 1,
        .width = (size_t)d[f->shape.rank - 1],
        .stride = p->stride ? (size_t)p->stride : 1,
        .degree = (int)p->degree + 1};
    enum dpf_status status = p->picture ? parse_picture(p, f, plan, e) : DPF_OK;
    return status == DPF_OK ? parse_kernel(p, plan, e) : status;
}

/* alpha_l Z^-l. What is below 1e-14 of the largest is an error of the expansion's own
 * arithmetic: the sigmoid has no even powers. */
static enum dpf_status take_expansion(const struct dpf_perturb *p, double scale,
                                      double *alpha, struct dpf_error *e)
{
    double c[DPF_EXPANSION_MOST + 1] = {0}, largest = 0;
    const struct dpf_expansion_choice *how =
        DPF_FIND(dpf_expansion_choices, p->expansion);
    enum dpf_status status =
        dpf_expand(DPF_FIND(dpf_functions, p->function), how->kind, (int)p->degree, c, e);
    for (int l = 0; l <= p->degree; l++)
        largest = fmax(largest, fabs(c[l]));
    for (int l = 0; l <= p->degree; l++)
        alpha[l] = fabs(c[l]) > 1e-14 * largest ? c[l] / pow(scale, l) : 0;
    return status;
}

static enum dpf_status make_workers(struct own *own, struct dpf_error *e)
{
    own->threads = dpf_processors();
    own->workers = dpf_calloc((size_t)own->threads, sizeof *own->workers);
    if (!own->workers)
        return dpf_fail_memory(e);
    for (int i = 0; i < own->threads; i++) {
        enum dpf_status status = dpf_energy_worker_init(&own->workers[i], &own->form, e);
        if (status != DPF_OK)
            return status;
    }
    return dpf_thread_pool_init(&own->pool, own->threads, e);
}

static void add_none(struct dpf_stage *s, const char *why)
{
    dpf_ledger_add_none(&s->out.events, s->info->name, why);
}

static void add_events(const struct dpf_perturb *p, struct dpf_stage *s,
                       const struct variant *v, const struct dpf_energy_form *f)
{
    uint64_t group = ((const struct own *)p->own)->group;
    double multiplier = f->gaussian.noise_multiplier, records = (double)group;
    bool l2 = p->gaussian, local = p->paper;
    double unit = dpf_energy_unit(f);
    if (p->plain) {
        add_none(s, "the coefficients of the energy were released without noise");
        return;
    }
    if (p->paper)
        add_none(s, why_printed);
    /* 1e9 is the largest that events state; nothing is proven of the paper's anyway */
    double pure = local        ? fmin(f->public_epsilon, 1e9)
                  : group == 1 ? f->laplace.epsilon
                               : dpf_perturb_record_epsilon(p, 0, group);
    double proven = local ? INFINITY
                    : l2  ? dpf_perturb_record_epsilon(p, multiplier, group)
                          : pure;
    const struct dpf_mechanism_event event = {
        .spending = dpf_perturb_spending(
            l2 ? &dpf_spending_gaussian : &dpf_spending_pure,
            l2 ? dpf_perturb_record_multiplier(multiplier, group) : pure),
        .sampling = "none",
        .norm = l2 ? "l2" : "l1",
        .sensitivity = (l2 ? f->gaussian.sensitivity_l2 * unit
                           : f->laplace.sensitivity_l1 * (local ? 1 : unit)) /
                       records,
        .relation = local || strcmp(p->relation, "replace-one") == 0 ? DPF_REPLACE_ONE
                                                                     : DPF_ADD_REMOVE,
        .method = "energy",
        .units = f->coefficients,
        .why = local ? why_printed : NULL,
        .claimed = {p->epsilon, p->delta, v->source},
        .proven = {proven, p->delta, v->theorem}};
    dpf_perturb_add_event(p, s, &event);
    dpf_standing_protect(&s->out);
}

static enum dpf_status open_energy(struct dpf_perturb *p, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    struct own *own = p->own;
    const struct variant *v = DPF_FIND(rows, p->variant);
    struct dpf_energy_plan plan = {.variant = v->is,
                                   .epsilon = p->epsilon,
                                   .delta = p->delta,
                                   .replace_one = p->relation &&
                                                  strcmp(p->relation, "replace-one") == 0,
                                   .clip = p->gaussian ? p->clip_l2 : p->clip_l1};
    enum dpf_status status = take_patches(p, &s->in.fields[p->x], &plan.patches, e);
    if (status == DPF_OK)
        status = dpf_perturb_group(p, s, &own->group, e);
    plan.group = own->group;
    plan.epsilon = dpf_perturb_group_epsilon(p, own->group);
    double inputs = (double)(plan.patches.channels * plan.patches.kernel_height *
                             plan.patches.kernel_width) +
                    (double)plan.patches.conditions;
    if (status == DPF_OK) /* by default filters within [-1, 1] keep X there */
        status = take_expansion(p, p->scale > 0 ? p->scale : inputs + 1, plan.alpha, e);
    if (status == DPF_OK)
        status = dpf_energy_form_init(&own->form, &plan, e);
    if (status == DPF_OK)
        status = make_workers(own, e);
    s->out_deferred = true;
    if (status == DPF_OK)
        status = dpf_energy_declare(&s->out, own->form.coefficients, (int)p->degree, e);
    /* the paper's noise is known when all records are */
    if (status == DPF_OK && s->in.is_private && !p->paper)
        add_events(p, s, v, &own->form);
    return status;
}

static void take_part(void *context, int number)
{
    const struct own *own = context;
    const struct dpf_patch_plan *plan = &own->form.plan.patches;
    uint64_t share = (own->rows + (uint64_t)own->threads - 1) / (uint64_t)own->threads;
    uint64_t from = (uint64_t)number * share;
    uint64_t to = from + share < own->rows ? from + share : own->rows;
    if (from < to)
        dpf_energy_add(&own->form, &own->workers[number],
                       own->records + from * dpf_patch_record(plan), (size_t)(to - from));
}

static enum dpf_status take_energy(struct dpf_perturb *p, struct dpf_batch *b,
                                   struct dpf_error *e)
{
    struct own *own = p->own;
    enum dpf_status status = dpf_tensor_make_f32(&b->tensor[p->x], e);
    if (status != DPF_OK)
        return status;
    own->records = b->tensor[p->x].data;
    own->rows = b->rows;
    dpf_thread_pool_run(&own->pool, take_part, own);
    return DPF_OK;
}

static enum dpf_status finish_energy(struct dpf_perturb *p, struct dpf_stage *s,
                                     struct dpf_error *e)
{
    struct own *own = p->own;
    struct dpf_energy_form *f = &own->form;
    struct dpf_energy_record record;
    struct dpf_batch b = {0};
    double visible, *coefficients = dpf_calloc(f->coefficients, sizeof *coefficients);
    enum dpf_status status = coefficients ? DPF_OK : dpf_fail_memory(e);
    for (int i = 0; i < own->threads; i++)
        dpf_energy_join(f, &own->workers[i]);
    if (status == DPF_OK)
        status = dpf_energy_release_noisy(f, &p->random, coefficients, &visible, e);
    if (status == DPF_OK && s->in.is_private && p->paper)
        add_events(p, s, DPF_FIND(rows, p->variant), f);
    if (status == DPF_OK)
        status = dpf_energy_begin(s, &b, &record, e);
    if (status == DPF_OK) {
        memcpy(record.coefficients, coefficients, f->coefficients * sizeof *coefficients);
        memcpy(record.expansion, f->plan.alpha,
               ((size_t)record.degree + 1) * sizeof *record.expansion);
        record.patch[0] = (int64_t)f->plan.patches.channels;
        record.patch[1] = (int64_t)f->plan.patches.kernel_height;
        record.patch[2] = (int64_t)f->plan.patches.kernel_width;
        *record.conditions = (int64_t)f->plan.patches.conditions;
        *record.visible = visible;
        *record.noise = dpf_energy_noise(f);
        status = dpf_energy_send(s, &b, e);
    }
    free(coefficients);
    return status;
}

static uint64_t clipped(const struct dpf_perturb *p)
{
    const struct own *own = p->own;
    uint64_t all = own->form.clipped;
    for (int i = 0; own->workers && i < own->threads; i++)
        all += own->workers[i].clipped;
    return all;
}

static void release_energy(struct dpf_perturb *p)
{
    struct own *own = p->own;
    dpf_thread_pool_release(&own->pool);
    for (int i = 0; own->workers && i < own->threads; i++)
        dpf_energy_worker_release(&own->workers[i]);
    free(own->workers);
    dpf_energy_form_release(&own->form);
}

static const char *const needs[] = {"variant", NULL};
static const char *const may[] = {
    "delta",  "unit",  "relation", "clip-l1",  "clip-l2",   "kernel", "stride",
    "degree", "scale", "picture",  "function", "expansion", NULL};
static const char *const variants[] = {"paper", "sound", "gaussian", "plain", NULL};

const struct dpf_release dpf_release_energy = {.needs = needs,
                                               .may = may,
                                               .variants = variants,
                                               .own_bytes = sizeof(struct own),
                                               .sums = true,
                                               .check = check_energy,
                                               .open = open_energy,
                                               .take = take_energy,
                                               .finish = finish_energy,
                                               .clipped = clipped,
                                               .release = release_energy};
