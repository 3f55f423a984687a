/* The mean relevance of each feature, over all records, with noise: privacy/adlm.h. */
#include "additive.h"
#include "privacy/adlm.h"

#include "base/banned.h"

static enum dpf_status open_relevance(struct dpf_perturb *p, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    struct dpf_mechanism_event event;
    double epsilon = dpf_adlm_relevance_epsilon(p->epsilon, p->paper);
    enum dpf_status status = dpf_additive_open(p->own, p, &s->in.fields[p->x],
                                               DPF_REPLACE_ONE, epsilon, &event, e);
    if (status == DPF_OK)
        status = dpf_sum_declare(p, s, "relevance", e);
    if (status != DPF_OK || !s->in.is_private)
        return status;
    event.claimed.source = "Phan et al. 2017, Lemma 2";
    if (epsilon < p->epsilon)
        event.why = "the paper allows each relevance to move by 2, but in [0,1] it moves "
                    "by 1";
    dpf_perturb_add_event(p, s, &event);
    dpf_standing_protect(&s->out);
    return DPF_OK;
}

static enum dpf_status finish_relevance(struct dpf_perturb *p, struct dpf_stage *s,
                                        struct dpf_error *e)
{
    /* who replaces a record does not change how many there are */
    return dpf_sum_send(p, s, p->records ? (double)p->records : 1, e);
}

static const char *const needs[] = {"variant", NULL};
static const char *const variants[] = {"paper", "sound", NULL};

const struct dpf_release dpf_release_relevance = {.needs = needs,
                                                  .variants = variants,
                                                  .own_bytes =
                                                      sizeof(struct dpf_additive),
                                                  .sums = true,
                                                  .open = open_relevance,
                                                  .take = dpf_sum_take,
                                                  .finish = finish_relevance,
                                                  .clipped = dpf_additive_clipped,
                                                  .release = dpf_additive_close};
