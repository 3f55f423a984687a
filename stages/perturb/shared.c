/* What several releases need: bounds, targets, events. */
#include <math.h>
#include <sodium.h>
#include <string.h>

#include "privacy/tradeoff.h"
#include "release.h"

#include "base/banned.h"

enum dpf_status dpf_perturb_bounds(const struct dpf_perturb *p, const struct dpf_field *f,
                                   struct dpf_record_bounds *b, struct dpf_error *e)
{
    enum dpf_status status = dpf_record_bounds_init(b, dpf_shape_elements(&f->shape), e);
    if (status != DPF_OK)
        return status;
    if (b->values == 0)
        return dpf_fail(e, DPF_USAGE, "field '%s' holds no values", f->name);
    b->norm = p->gaussian ? DPF_NORM_L2 : DPF_NORM_L1;
    b->radius = p->clip_l1 > 0   ? p->clip_l1
                : p->clip_l2 > 0 ? p->clip_l2
                : p->gaussian    ? f->norm_l2
                                 : 0;
    if (b->radius > 0)
        return DPF_OK;
    if (f->bounds.count == 0)
        return dpf_fail(e, DPF_USAGE,
                        "field '%s' has no declared bounds: the sensitivity must not "
                        "depend on the data; 'normalize' declares bounds",
                        f->name);
    for (size_t i = 0; i < b->values; i++) {
        size_t at = f->bounds.count == 1 ? 0 : i;
        b->lo[i] = f->bounds.lo[at];
        b->hi[i] = f->bounds.hi[at];
    }
    return DPF_OK;
}

enum dpf_status dpf_perturb_target(const struct dpf_perturb *p, struct dpf_header *h,
                                   int *number, struct dpf_error *e)
{
    const struct dpf_field *f = dpf_header_field(h, p->target);
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", p->target);
    *number = (int)(f - h->fields);
    return DPF_OK;
}

const char *const dpf_unit_words[] = {"record", "person", NULL};

enum dpf_status dpf_perturb_group(const struct dpf_perturb *p, const struct dpf_stage *s,
                                  uint64_t *group, struct dpf_error *e)
{
    bool replace = !p->relation || strcmp(p->relation, "replace-one") == 0;
    *group = 1;
    if (!p->unit || strcmp(p->unit, "record") == 0 || !s->in.is_private)
        return DPF_OK;
    *group = dpf_ledger_group(&s->in.events, replace ? DPF_REPLACE_ONE : DPF_ADD_REMOVE);
    return *group > 0
               ? DPF_OK
               : dpf_fail(e, DPF_PRIVACY,
                          "the ledger has no number of records that one person changes "
                          "under this relation: only behind 'window' there is one");
}

double dpf_perturb_record_multiplier(double multiplier, uint64_t group)
{
    return group == 1 ? multiplier : nextafter(multiplier * (double)group, 0);
}

double dpf_perturb_group_epsilon(const struct dpf_perturb *p, uint64_t group)
{
    return group == 1 || p->gaussian ? p->epsilon : p->epsilon * (1 - 1e-15);
}

double dpf_perturb_record_epsilon(const struct dpf_perturb *p, double multiplier,
                                  uint64_t group)
{
    if (group == 1)
        return p->epsilon;
    return p->gaussian
               ? dpf_gdp_epsilon(1 / dpf_perturb_record_multiplier(multiplier, group) *
                                     (1 + 1e-15),
                                 p->delta)
               : nextafter(p->epsilon / (double)group, 0);
}

struct dpf_spending dpf_perturb_spending(const struct dpf_spending_kind *kind,
                                         double parameter)
{
    return (struct dpf_spending){
        .kind = kind, .parameter = parameter, .choices = 2, .rate = 1, .count = 1};
}

/* Not from the generator of the noise: a name is public. */
static bool draw_name(char name[DPF_RELEASE_NAME + 1])
{
    struct dpf_random r;
    unsigned char bytes[DPF_RELEASE_NAME / 2];
    if (dpf_random_init(&r, NULL) != DPF_OK)
        return false;
    dpf_random_bytes(&r, bytes, sizeof bytes);
    dpf_random_release(&r);
    sodium_bin2hex(name, DPF_RELEASE_NAME + 1, bytes, sizeof bytes);
    return true;
}

void dpf_perturb_add_event(const struct dpf_perturb *p, struct dpf_stage *s,
                           const struct dpf_mechanism_event *m)
{
    char name[DPF_RELEASE_NAME + 1];
    struct dpf_mechanism_event named = *m;
    if (p->seed >= 0)
        dpf_ledger_add_seed(&s->out.events, s->info->name);
    else if (draw_name(name))
        named.release = name;
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &named);
}
