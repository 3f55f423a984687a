/* Which options go together. What belongs to some releases alone is in their rows. */
#include <string.h>

#include "additive.h"

#include "base/banned.h"

const char *const dpf_variant_words[] = {"paper", "sound", "gaussian", "plain", NULL};
const char *const dpf_central_words[] = {"add-remove", "replace-one", NULL};

/* Options that every release has. */
static const char *const common[] = {"release",       "epsilon",     "share", "field",
                                     "insecure-seed", "non-private", NULL};

static bool is(const char *word, const char *other)
{
    return word && strcmp(word, other) == 0;
}

static bool lists(const char *const *names, const char *name)
{
    return names && DPF_FIND(names, name);
}

static enum dpf_status take_shares(struct dpf_perturb *p, struct dpf_error *e)
{
    if (p->label_share > 0 && p->label_epsilon > 0)
        return dpf_fail(e, DPF_USAGE, "give one of --label-epsilon and --label-share");
    if (p->label_share > 0 && p->epsilon == 0)
        return dpf_fail(e, DPF_USAGE,
                        "'--label-share' is a part of '--epsilon': give it");
    if (p->share < 1 && p->epsilon == 0)
        return dpf_fail(e, DPF_USAGE, "'--share' is a part of '--epsilon': give it");
    if (p->label_share > 0)
        p->label_epsilon = p->epsilon * p->label_share;
    p->epsilon *= p->share;
    return DPF_OK;
}

/* What a row does not list is refused by name, and what it needs asked for. */
static enum dpf_status check_row(const struct dpf_perturb *p, const struct dpf_stage *s,
                                 struct dpf_error *e)
{
    const struct dpf_release *r = p->release;
    for (const struct dpf_option *o = s->info->options; o->name; o++) {
        bool given = dpf_option_given(&s->parsed, o->name);
        if (given && !lists(common, o->name) && !lists(r->needs, o->name) &&
            !lists(r->may, o->name))
            return dpf_fail(e, DPF_USAGE, "'--%s' does not go with '--release %s'",
                            o->name, p->release_word);
        bool variant = r->variants && strcmp(o->name, "variant") == 0;
        if (!given && !variant && lists(r->needs, o->name))
            return dpf_fail(e, DPF_USAGE, "'--release %s' needs '--%s'", p->release_word,
                            o->name);
    }
    return DPF_OK;
}

static enum dpf_status check_variant(const struct dpf_perturb *p, struct dpf_error *e)
{
    struct dpf_text words = {0};
    const char *const *own = p->release->variants;
    if (!own || (p->variant && lists(own, p->variant)))
        return DPF_OK;
    for (; *own; own++)
        dpf_text_addf(&words, "%s'%s%s'", words.size ? " or " : "",
                      words.size ? "" : "--variant ", *own);
    dpf_fail(e, DPF_USAGE, "'--release %s' needs %s", p->release_word,
             dpf_text_get(&words));
    dpf_text_release(&words);
    return DPF_USAGE;
}

static enum dpf_status check_noise(const struct dpf_perturb *p, struct dpf_error *e)
{
    if (p->plain != p->non_private)
        return dpf_fail(e, p->plain ? DPF_PRIVACY : DPF_USAGE,
                        p->plain ? "the plain variant adds no noise, which reveals the "
                                   "records: accept it with --non-private"
                                 : "'--non-private' goes with '--variant plain'");
    if (p->plain ? p->epsilon > 0 || p->delta > 0 : p->epsilon == 0)
        return dpf_fail(e, DPF_USAGE,
                        p->plain ? "the plain variant has no epsilon and no delta"
                                 : "give '--epsilon'");
    if (p->gaussian != (p->delta > 0))
        return dpf_fail(e, DPF_USAGE,
                        p->gaussian ? "Gaussian noise needs '--delta'"
                                    : "Laplace noise has no '--delta'");
    if (p->gaussian ? p->clip_l1 > 0 : p->clip_l2 > 0)
        return dpf_fail(e, DPF_USAGE,
                        "'--clip-l1' goes with Laplace noise on records and sums, "
                        "'--clip-l2' with Gaussian");
    return DPF_OK;
}

enum dpf_status dpf_perturb_check(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_perturb *p = s->state;
    p->release = dpf_releases[DPF_INDEX(dpf_releases, p->release_word)].is;
    p->paper = is(p->variant, "paper");
    p->plain = is(p->variant, "plain");
    const struct dpf_noise *noise =
        p->mechanism ? DPF_FIND(dpf_noises, p->mechanism) : NULL;
    p->gaussian = noise ? noise->norm == DPF_NORM_L2 : is(p->variant, "gaussian");
    enum dpf_status status = take_shares(p, e);
    if (status == DPF_OK)
        status = check_row(p, s, e);
    if (status == DPF_OK)
        status = check_variant(p, e);
    if (status == DPF_OK)
        status = check_noise(p, e);
    return status == DPF_OK && p->release->check ? p->release->check(p, s, e) : status;
}
