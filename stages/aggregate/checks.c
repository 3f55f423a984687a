/* Whether the options of `aggregate` go together. */
#include "aggregate.h"
#include "published.h"

#include "base/banned.h"

enum kind { MESSAGES = 1, VOTES = 2, CODES = 4, ANSWERS = VOTES | CODES };

/* What an option is for: elsewhere it would do nothing. The others are for all. */
static const struct {
    const char *name;
    int kinds;
} options[] = {
    {"public", MESSAGES},
    {"public-weight", MESSAGES},
    {"vote", VOTES},
    {"threshold", VOTES},
    {"threshold-noise", VOTES},
    {"answers", VOTES},
    {"private-cost", VOTES},
    {"publish-cost", VOTES},
    {"cost-order", VOTES},
    {"cost-smoothness", VOTES},
    {"cost-noise", VOTES},
    {"codes", CODES},
    {"blank", CODES},
    {"norm", CODES},
    {"calibration", CODES},
    {"teachers", ANSWERS},
    {"noise", ANSWERS},
    {"epsilon", ANSWERS},
    {"delta", ANSWERS},
    {"inputs", ANSWERS},
    {"distinct-owners", ANSWERS},
    {"insecure-seed", ANSWERS},
    {"once", ANSWERS},
};

static enum dpf_status check_kinds(const struct dpf_stage *s, int kinds, const char *what,
                                   struct dpf_error *e)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (!(options[i].kinds & kinds) && dpf_option_given(&s->parsed, options[i].name))
            return dpf_fail(e, DPF_USAGE, "option '--%s' does not apply to %s",
                            options[i].name, what);
    return DPF_OK;
}

enum dpf_status dpf_aggregate_check_kind(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_aggregate *v = s->state;
    return v->of_answers ? check_kinds(s, ANSWERS, "answers of teachers", e)
                         : check_kinds(s, MESSAGES, "messages of owners", e);
}

static enum dpf_status check_codes(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_aggregate *v = s->state;
    enum dpf_status status = check_kinds(s, CODES, "codes", e);
    if (status != DPF_OK)
        return status;
    if (v->teachers == 0 || v->delta == 0 || v->norm == 0)
        return dpf_fail(e, DPF_USAGE, "codes need '--%s'",
                        v->teachers == 0 ? "teachers"
                        : v->delta == 0  ? "delta"
                                         : "norm");
    if (v->noise == 0 && v->epsilon == 0)
        return dpf_fail(e, DPF_USAGE, "codes need '--noise' or '--epsilon'");
    if (v->blank && !v->inputs)
        return dpf_fail(e, DPF_USAGE, "option '--blank' needs '--inputs'");
    if (v->noise > 0 && dpf_option_given(&s->parsed, "calibration"))
        return dpf_fail(e, DPF_USAGE, "'--noise' leaves nothing to '--calibration'");
    return DPF_OK;
}

static enum dpf_status check_votes(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_aggregate *v = s->state;
    enum dpf_vote_kind kind = dpf_vote_choices[DPF_INDEX(dpf_vote_choices, v->vote)].kind;
    bool confident = kind == DPF_VOTE_CONFIDENT, lnmax = kind == DPF_VOTE_LNMAX;
    if (v->teachers == 0 || v->delta == 0)
        return dpf_fail(e, DPF_USAGE, "votes need '--%s'",
                        v->teachers == 0 ? "teachers" : "delta");
    if (v->noise == 0 && (v->epsilon == 0 || lnmax))
        return dpf_fail(e, DPF_USAGE,
                        lnmax ? "'--vote lnmax' needs '--noise'"
                              : "votes need '--noise' or '--epsilon'");
    if (confident != dpf_option_given(&s->parsed, "threshold") ||
        confident != dpf_option_given(&s->parsed, "threshold-noise"))
        return dpf_fail(e, DPF_USAGE,
                        confident ? "'--vote confident' needs '--threshold' and "
                                    "'--threshold-noise'"
                                  : "'--threshold' and '--threshold-noise' need '--vote "
                                    "confident'");
    if (v->most_answers && !confident)
        return dpf_fail(e, DPF_USAGE, "option '--answers' needs '--vote confident'");
    return dpf_published_check(s, e);
}

enum dpf_status dpf_aggregate_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    if (!v->known_stream != !(v->known_weight > 0))
        return dpf_fail(e, DPF_USAGE, "'--public' and '--public-weight' go together");
    enum dpf_status status = dpf_once_check(&v->once, &s->parsed, e);
    if (status != DPF_OK)
        return status;
    if (v->blank && !v->codes)
        return dpf_fail(e, DPF_USAGE, "option '--blank' needs '--codes'");
    return v->codes ? check_codes(s, e) : v->vote ? check_votes(s, e) : DPF_OK;
}
