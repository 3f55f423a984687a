/* account: what the mechanisms of a stream, or of a list, cost in privacy. */
#include "job.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct dpf_account_job job = {
    .method = "best", .delta = -1, .epsilon = -1, .relation = NULL};

static const struct dpf_option options[] = {
    DPF_OPT_LIST(
        "gaussian", &job.gaussian, "sigma=S[,q=Q][,steps=T]",
        "Gaussian noise of S sensitivities, Poisson rate Q, T times; no stream is "
        "read"),
    DPF_OPT_LIST("laplace", &job.laplace, "scale=B[,q=Q][,count=T]",
                 "Laplace noise of scale B sensitivities"),
    DPF_OPT_LIST("rr", &job.response, "epsilon=E[,choices=M][,q=Q][,count=T]",
                 "randomised response among M answers (2)"),
    DPF_OPT_LIST("pure", &job.pure, "epsilon=E[,q=Q][,count=T]",
                 "any mechanism that is E-DP"),
    DPF_OPT_REAL("delta", &job.delta, "D", 0, 0.999999,
                 "(the sum of what the events state)"),
    DPF_OPT_CHOICE("method", &job.method, dpf_account_methods, "NAME",
                   "the accountant, or all (best: GDP where exact, else PLD)"),
    DPF_OPT_CHOICE("relation", &job.relation, dpf_relation_words, "NAME",
                   "take everything under this neighbouring relation"),
    DPF_OPT_CHOICE("solve", &job.solve, dpf_solve_words, "WHAT",
                   "find this of the first mechanism for --epsilon and --delta"),
    DPF_OPT_REAL("epsilon", &job.epsilon, "E", 0, 1e9,
                 "the target of --solve; alone: the delta at this epsilon"),
    DPF_OPT_STRING(
        "sweep", &job.sweep, "sigma|q|steps=LO:HI:N",
        "N values from LO to HI, evenly in logarithms, for the first mechanism"),
    DPF_OPT_INT("shuffled", &job.shuffled, "N", 2, 9e15,
                "local mechanisms: also what they cost if a trusted shuffler mixed the "
                "messages of N people, who all used the same one"),
    DPF_OPT_STRING("budget", &job.budget, "E,D",
                   "exit with status 4 if the proven cost is above (E, D)"),
    DPF_OPT_FLAG("json", &job.json, "JSON instead of a table"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_account_job_check(&job, e);
    s->no_input = dpf_account_job_is_direct(&job);
    return status;
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_account_job_run(&job, s, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_account_job_release(&job);
}

static const struct dpf_stage_info info = {
    .name = "account",
    .summary = "what privacy the mechanisms of a stream cost, claimed and proven",
    .reads = "any stream (its ledger); none if mechanisms are given",
    .writes = "text or JSON: claimed and proven epsilon, delta, method, relation",
    .privacy = "none spent: it adds up what was",
    .example = "dpflow account --gaussian sigma=4,q=0.01,steps=10000 --delta 1e-5 "
               "--method all",
    .detail =
        "Every epsilon is an upper bound, rounded up. Methods: basic, strong, moments, "
        "rdp, pld,\n"
        "gdp; best is gdp where it is exact, else the smallest of the others; all shows "
        "each.\n"
        "Sampling is Poisson's, under add-remove. --relation replace-one counts a "
        "replaced "
        "record\n"
        "as one removed and one added.",
    .kind = DPF_SINK,
    .any_fields = true,
    .options = options,
    .on_options = on_options,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
