/* perturb: release records, their sum or their quadratic form with noise. */
#include <string.h>

#include "job.h"

#include "base/banned.h"

static struct dpf_perturb_job job = {
    .field = "x",
    .target = "y",
    .seed = -1,
    .y = -1,
    .features = {.draw = "record", .coefficients = "all"}};

static double share = 1, label_share;

static const struct dpf_option options[] = {
    {.name = "release",
     .kind = DPF_KIND_CHOICE,
     .target = &job.release,
     DPF_CHOICES(dpf_release_words),
     .arg = "WHAT",
     .help = "each record (local privacy), the sum of all, the coefficients of least "
             "squares, the mean relevance of features, or features by their relevance",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_CHOICE("mechanism", &job.mechanism, dpf_perturb_words, "NAME",
                   "the noise on records and sums"),
    DPF_OPT_CHOICE(
        "variant", &job.variant, dpf_quadratic_words, "NAME",
        "paper (as printed), sound (proven); quadratic: gaussian, too; plain: no "
        "noise"),
    DPF_OPT_REAL("epsilon", &job.epsilon, "E", 1e-9, 1e6, "the privacy to spend"),
    DPF_OPT_REAL("share", &share, "P", 1e-9, 1, "spend only this part of it (1)"),
    DPF_OPT_REAL("delta", &job.delta, "D", 1e-300, 0.5, "of Gaussian noise"),
    DPF_OPT_CHOICE("relation", &job.relation, dpf_central_words, "NAME",
                   "who is a neighbour: one record more or less, or one replaced"),
    DPF_OPT_REAL("clip-l1", &job.clip_l1, "R", 1e-30, 1e30,
                 "cut each record down to this L1 norm; else its declared bounds count"),
    DPF_OPT_REAL("clip-l2", &job.clip_l2, "R", 1e-30, 1e30,
                 "the same in L2, for Gaussian noise (the declared norm)"),
    DPF_OPT_ENDPOINT("relevance", &job.features.relevance, "STREAM",
                     "features: how relevant each is; the noise follows it. Without, all "
                     "get the same (ILM)",
                     0),
    DPF_OPT_REAL("label-epsilon", &job.features.label_epsilon, "E", 1e-9, 1e6,
                 "features: what is spent on the class"),
    DPF_OPT_REAL("label-share", &label_share, "P", 1e-9, 1,
                 "features: the same as a part of --epsilon"),
    DPF_OPT_INT("lot", &job.features.lot, "B", 1, 1e9,
                "features, paper: records of a training step; noise is divided by it"),
    DPF_OPT_REAL(
        "neurons", &job.features.neurons, "N", 1e-9, 1e9,
        "features, paper: |h_0|, how many first neurons a feature is counted for"),
    DPF_OPT_INT("hidden", &job.features.hidden, "N", 1, 1e9,
                "features, paper: |h_k|, neurons of the last hidden layer"),
    DPF_OPT_CHOICE("draw", &job.features.draw, dpf_draw_words, "WHEN",
                   "features, paper: noise for each record, or one draw for each lot or "
                   "for all, which protects nothing (record)"),
    DPF_OPT_CHOICE(
        "coefficients", &job.features.coefficients, dpf_coefficient_words, "WHICH",
        "features, paper: of the loss: all, as printed, or the first, which the "
        "class decides (the second is 1/8 for all records) (all)"),
    DPF_OPT_REAL("limit", &job.features.limit, "R", 1e-30, 1e30,
                 "features: cut noisy values to [-R,R]"),
    DPF_OPT_STRING("field", &job.field, "NAME", "what is perturbed (x)"),
    DPF_OPT_STRING("target", &job.target, "NAME",
                   "what is to be predicted, a number or a class (y)"),
    DPF_OPT_FLAG("no-intercept", &job.no_intercept,
                 "quadratic: no constant beside the features"),
    DPF_OPT_FLAG("only", &job.only, "records: drop all other fields"),
    DPF_OPT_FLAG("non-private", &job.non_private,
                 "accept a release without noise; the ledger says so"),
    DPF_OPT_INT("insecure-seed", &job.seed, "N", 0, 9e15,
                "draw the noise from N: the same each time, and no protection"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    if (label_share > 0 && job.features.label_epsilon > 0)
        return dpf_fail(e, DPF_USAGE, "give one of --label-epsilon and --label-share");
    if (label_share > 0 && job.epsilon == 0)
        return dpf_fail(e, DPF_USAGE,
                        "'--label-share' is a part of '--epsilon': give it");
    if (share < 1 && job.epsilon == 0)
        return dpf_fail(e, DPF_USAGE, "'--share' is a part of '--epsilon': give it");
    if (label_share > 0)
        job.features.label_epsilon = job.epsilon * label_share;
    job.epsilon *= share;
    job.features.epsilon = job.epsilon;
    job.features.paper = job.variant && strcmp(job.variant, "paper") == 0;
    job.features.plain = job.variant && strcmp(job.variant, "plain") == 0;
    return dpf_perturb_job_check(&job, s, e);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_perturb_job_open(&job, s, e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    return dpf_perturb_job_take(&job, s, b, e);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_perturb_job_finish(&job, s, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_perturb_job_release(&job);
}

static const struct dpf_stage_info info = {
    .name = "perturb",
    .summary = "release records, features, sums or quadratic forms with noise",
    .reads = "x: numbers with declared bounds or norm; quadratic and features: y too",
    .writes = "the noisy records, or one record: the sum, the mean relevance, or gram, "
              "moment and their noise",
    .privacy = "epsilon (and delta) as given; sensitivity comes from declared bounds",
    .example =
        "dpflow load synth-census:train --limit 2000 | dpflow normalize --declared "
        "--signed | dpflow normalize --field y --declared --signed | dpflow perturb "
        "--release quadratic --variant sound --epsilon 1 | dpflow inspect",
    .detail =
        "Values outside the bounds are clipped and counted, without saying which.\n"
        "\n"
        "quadratic: the coefficients are of sum (w x - y)^2: gram is the sum of x x', "
        "moment of\nx y', with a constant 1 in front of x unless --no-intercept. Paper "
        "and sound variants\nprotect under replace-one.\n"
        "\n"
        "relevance, features: AdLM (Phan et al. 2017), or ILM without --relevance. x "
        "gets Laplace\nnoise once, more where it matters less. Paper: y becomes the "
        "noisy "
        "coefficients 1/2 - y\nand 1/8 of each class, for 'train --loss taylor2'. Sound: "
        "local privacy, the budget\nshared out by the cube root of relevance, y by "
        "randomised response.",
    .kind = DPF_FILTER,
    .options = options,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
