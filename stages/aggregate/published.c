#include "published.h"

#include <math.h>
#include <string.h>

#include "account/compose.h"
#include "base/log.h"

#include "base/banned.h"

enum dpf_status dpf_published_check(struct dpf_stage *s, struct dpf_error *e)
{
    static const char *const details[] = {"cost-order", "cost-smoothness", "cost-noise",
                                          NULL};
    const struct dpf_aggregate *v = s->state;
    for (const char *const *name = details; *name; name++)
        if (v->publish_cost != dpf_option_given(&s->parsed, *name))
            return dpf_fail(e, DPF_USAGE,
                            v->publish_cost ? "'--publish-cost' needs '--%s'"
                                            : "option '--%s' needs '--publish-cost'",
                            *name);
    return v->publish_cost && strcmp(v->vote, "lnmax") == 0
               ? dpf_fail(e, DPF_USAGE,
                          "option '--publish-cost' does not apply to '--vote lnmax'")
               : DPF_OK;
}

enum dpf_status dpf_published_plan(struct dpf_published *p, const struct dpf_aggregate *v,
                                   const struct dpf_vote_plan *vote, struct dpf_error *e)
{
    const struct dpf_vote_smooth_plan plan = {.order = v->cost_order,
                                              .smoothness = v->cost_smoothness,
                                              .noise_multiplier = v->cost_noise};
    p->v = v;
    dpf_vote_smooth_free(&p->smooth);
    enum dpf_status status = dpf_vote_smooth_init(
        &p->smooth, &plan, vote, (size_t)v->answers.values, v->answers.count, e);
    p->spent = (struct dpf_spending){.kind = &dpf_spending_gaussian,
                                     .parameter = p->smooth.release.noise_multiplier,
                                     .rate = 1,
                                     .count = 1};
    return status;
}

void dpf_published_release(struct dpf_published *p)
{
    dpf_vote_smooth_free(&p->smooth);
}

enum dpf_status dpf_published_draw(struct dpf_published *p, struct dpf_aggregate *v,
                                   struct dpf_random *random, struct dpf_error *e)
{
    uint64_t queries = v->tallies.queries;
    enum dpf_status status = DPF_OK;
    for (uint64_t from = 0, n; status == DPF_OK && from < queries; from += n) {
        n = dpf_tallies_most(&v->tallies, queries - from);
        status = dpf_tallies_load(&v->tallies, from, n, e);
        for (uint64_t i = 0; status == DPF_OK && i < n; i++)
            status =
                dpf_vote_smooth_add(&p->smooth, dpf_tallies_at(&v->tallies, i).counts, e);
    }
    if (status == DPF_OK)
        p->epsilon = dpf_vote_smooth_epsilon(
            &p->smooth, dpf_vote_smooth_release(&p->smooth, random), v->delta);
    return status;
}

void dpf_published_tell_plan(const struct dpf_published *p)
{
    const struct dpf_aggregate *v = p->v;
    dpf_notice(
        "published cost: order %g alone states epsilon %.4f at delta %g; the bound "
        "of the votes' part is drawn %.3g times too large at the median",
        v->cost_order, log(2 / v->delta) / (v->cost_order - 1), v->delta,
        dpf_vote_smooth_margin(&p->smooth, v->delta / 2));
}

void dpf_published_tell(const struct dpf_published *p, struct dpf_text *said)
{
    dpf_text_addf(said,
                  "published cost: epsilon %.4f at delta %g for these votes and their "
                  "neighbours\n",
                  ceil(p->epsilon * 1e4) / 1e4, p->v->delta);
}

void dpf_published_claim(const struct dpf_published *p, struct dpf_mechanism_event *m)
{
    m->claimed = (struct dpf_guarantee){
        p->epsilon, p->v->delta,
        p->smooth.vote.kind == DPF_VOTE_CONFIDENT
            ? "Papernot et al. 2018, Confident-GNMax, from the votes, by a smooth bound"
            : "Papernot et al. 2018, GNMax, from the votes, by a smooth bound"};
    m->why = "the claimed epsilon is about these votes and their neighbours, the proven "
             "one about all votes (privacy/vote_smooth.h)";
}

void dpf_published_add_event(const struct dpf_published *p, struct dpf_stage *s,
                             double share)
{
    double one = 0;
    dpf_compose_epsilon(DPF_METHOD_BEST, &p->spent, 1, share, &one, NULL, NULL);
    const struct dpf_mechanism_event m = {
        .spending = p->spent,
        .sampling = "none",
        .norm = "l2",
        .sensitivity = p->smooth.release.sensitivity_l2,
        .relation = DPF_REPLACE_ONE,
        .method = "published cost",
        .units = 1,
        .claimed = {0, 0, "counted with the answers"},
        .proven = {one, share,
                   "Gaussian noise on the logarithm of a smooth bound "
                   "(privacy/vote_smooth.h)"}};
    dpf_ledger_add_mechanism(&s->out.events, s->info->name, &m);
}
