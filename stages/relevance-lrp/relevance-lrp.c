/* relevance-lrp: compute each feature's relevance for a network's output. */
#include "job.h"

#include "base/banned.h"

static struct dpf_relevance_job job = {.x = "x",
                                       .y = "y",
                                       .rule = "epsilon",
                                       .from = "true",
                                       .bias = "absorb",
                                       .scale = "unit",
                                       .backend = "cpu",
                                       .mu = 1e-3,
                                       .alpha = 2};

static const struct dpf_option options[] = {
    DPF_OPT_ENDPOINT("model", &job.model, "STREAM", "the network, as train writes it",
                     DPF_OPTION_REQUIRED),
    DPF_OPT_CHOICE("rule", &job.rule, dpf_relevance_rules, "NAME",
                   "how a neuron shares out its relevance: epsilon (AdLM), alpha-beta, "
                   "z-plus"),
    DPF_OPT_REAL("mu", &job.mu, "M", 0, 1e30,
                 "epsilon: the stabiliser, added to each divisor's size (0.001)"),
    DPF_OPT_REAL("alpha", &job.alpha, "A", 1, 1e6,
                 "alpha-beta: the weight of positive contributions; beta is A - 1 (2)"),
    DPF_OPT_CHOICE(
        "bias", &job.bias, dpf_bias_words, "HOW",
        "the share of biases: absorbed, as printed, or spread over the inputs: "
        "then sums stay the same from layer to layer"),
    DPF_OPT_CHOICE("from", &job.from, dpf_relevance_origins, "WHICH",
                   "the score to explain: that of the true class, the highest, or all"),
    DPF_OPT_STRING("node", &job.node, "NAME",
                   "the node whose relevance is computed (the network's input)"),
    DPF_OPT_CHOICE("scale", &job.scale, dpf_onto_unit_words, "HOW",
                   "unit: each record onto [0,1] by its own least and greatest relevance "
                   "(bounds that a mechanism can rely on); none: as they are"),
    DPF_OPT_FLAG("average", &job.average, "the mean of all records, as one record"),
    DPF_OPT_STRING("field", &job.x, "NAME", "what the network reads (x)"),
    DPF_OPT_STRING("label", &job.y, "NAME", "the true class (y)"),
    DPF_OPT_INT_IMMATERIAL("threads", &job.threads, "N", 1, 1024,
                           "(as many as there are processors)"),
    DPF_OPT_CHOICE("backend", &job.backend, dpf_backend_words, "NAME",
                   "cpu, or ref: plain C"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_relevance_job_check(&job, s, e);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_relevance_job_open(&job, s, e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    return dpf_relevance_job_take(&job, s, b, e);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_relevance_job_finish(&job, s, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_relevance_job_release(&job);
}

static const struct dpf_stage_info info = {
    .name = "relevance-lrp",
    .summary = "compute each feature's relevance for a network's output",
    .reads = "x: numbers or packed bits; y, the true class, with --from true",
    .writes = "the same fields, relevance in x's place; or one record, the mean",
    .privacy = "none spent, and none protected: relevance is as private as the records, "
               "until 'perturb --release relevance'",
    .example =
        "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow train "
        "--arch tiny --epochs 2 --rate 0.1 -o seen.mp && dpflow load digits:test | "
        "dpflow normalize --unit 0:16 | dpflow relevance-lrp --model seen.mp | "
        "dpflow inspect",
    .detail = "Layer-wise relevance propagation (Bach et al. 2015), from the scores of "
              "the output\nnode (before any softmax) down to the input or --node.",
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
