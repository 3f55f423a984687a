/* The sum of all records with noise. */
#include <string.h>

#include "additive.h"

#include "base/banned.h"

static enum dpf_status open_sum(struct dpf_perturb *p, struct dpf_stage *s,
                                struct dpf_error *e)
{
    struct dpf_mechanism_event event;
    enum dpf_relation relation =
        strcmp(p->relation, "replace-one") == 0 ? DPF_REPLACE_ONE : DPF_ADD_REMOVE;
    enum dpf_status status = dpf_additive_open(p->own, p, &s->in.fields[p->x], relation,
                                               p->epsilon, &event, e);
    if (status == DPF_OK)
        status = dpf_sum_declare(p, s, "sum", e);
    if (status != DPF_OK || !s->in.is_private)
        return status;
    dpf_perturb_add_event(p, s, &event);
    dpf_standing_protect(&s->out);
    return DPF_OK;
}

static enum dpf_status finish_sum(struct dpf_perturb *p, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    return dpf_sum_send(p, s, 1, e);
}

static const char *const needs[] = {"mechanism", "relation", NULL};
static const char *const may[] = {"delta", "clip-l1", "clip-l2", NULL};

const struct dpf_release dpf_release_sum = {.needs = needs,
                                            .may = may,
                                            .own_bytes = sizeof(struct dpf_additive),
                                            .sums = true,
                                            .open = open_sum,
                                            .take = dpf_sum_take,
                                            .finish = finish_sum,
                                            .clipped = dpf_additive_clipped,
                                            .release = dpf_additive_close};
