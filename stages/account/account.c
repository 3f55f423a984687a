/* account: what the mechanisms of a stream, or of a list, cost in privacy. */
#include <stdlib.h>
#include <string.h>

#include "account.h"

#include "base/banned.h"

static struct dpf_account_question state = {
    .method = "best", .unit = "person", .delta = -1, .epsilon = -1, .relation = NULL};

static const struct dpf_option others[] = {
    DPF_OPT_REAL("delta", &state.delta, "D", 0, 0.999999,
                 "the delta of the stated epsilon (the sum of the events' deltas)"),
    DPF_OPT_CHOICE("method", &state.method, state.methods, "NAME",
                   "the accountant, or all of them (best)"),
    DPF_OPT_CHOICE("relation", &state.relation, dpf_relation_words, "NAME",
                   "state the cost under this neighbouring relation"),
    DPF_OPT_CHOICE(
        "solve", &state.solve, dpf_account_unknowns, "WHAT",
        "find this parameter of the first mechanism, for --epsilon and --delta"),
    DPF_OPT_REAL("epsilon", &state.epsilon, "E", 0, 1e9,
                 "with --solve: the target; alone: state the delta at this epsilon"),
    DPF_OPT_STRING("sweep", &state.sweep, "sigma|q|steps=LO:HI:N",
                   "N values from LO to HI, evenly spaced in logarithms, of a parameter "
                   "of the first mechanism"),
    DPF_OPT_INT("shuffled", &state.shuffled, "N", 2, 9e15,
                "local mechanisms: also state the cost if a trusted shuffler shuffled "
                "the messages of N people, who all used the same mechanism"),
    DPF_OPT_STRING("budget", &state.budget, "E,D",
                   "exit with status 4 if the proven cost is above (E, D)"),
    DPF_OPT_CHOICE("unit", &state.unit, dpf_account_units, "WHAT",
                   "of windows of people, what --budget judges: the cost for a person "
                   "(the default), or for a record, one window"),
    DPF_OPT_FLAG("json", &state.json, "write JSON instead of a table"),
    DPF_OPT_END,
};

enum { OPTION_COUNT = DPF_SPENDING_KIND_COUNT + sizeof others / sizeof *others };

/* One for each kind of mechanism, then the others. */
static void list_options(struct dpf_account_question *v, struct dpf_option *options)
{
    for (int i = 0; i < DPF_SPENDING_KIND_COUNT; i++) {
        const struct dpf_spending_kind *kind = dpf_spending_kinds[i];
        options[i] =
            (struct dpf_option)DPF_OPT_LIST(kind->question.option, &v->mechanisms[i],
                                            kind->question.argument, kind->question.help);
    }
    memcpy(options + DPF_SPENDING_KIND_COUNT, others, sizeof others);
}

static void on_release(struct dpf_stage *s)
{
    struct dpf_account_question *v = s->state;
    free(v->list);
    v->list = NULL;
}

static const struct dpf_stage_info info = {
    .name = "account",
    .summary = "compose the privacy cost of a stream's mechanisms, claimed and proven",
    .reads = "any stream (its ledger); none if mechanisms are given",
    .writes = "text or JSON: claimed and proven epsilon, delta, method, relation",
    .privacy = "none spent: it composes what was spent",
    .example = "dpflow account --gaussian sigma=4,q=0.01,steps=10000 --delta 1e-5 "
               "--method all",
    .detail = "Every epsilon is an upper bound, rounded up. The method best is gdp where "
              "gdp is exact,\n"
              "else the smallest of the others; all prints each of them. Sampling means "
              "Poisson\n"
              "sampling, under add-remove. --relation replace-one counts a replaced "
              "record as one\n"
              "removed and one added. After 'window' the proven cost is that of a person "
              "with all\n"
              "rows, and the cost of one window, the unit of papers, stands beside it.",
    .kind = DPF_SINK,
    .any_fields = true,
    .state = &state,
    .on_options = dpf_account_options,
    .on_close = dpf_account_answer,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    struct dpf_option options[OPTION_COUNT];
    struct dpf_stage_info complete = info;
    dpf_account_list_methods(info.state);
    list_options(info.state, options);
    complete.options = options;
    return dpf_stage_main(&complete, argc, argv);
}
