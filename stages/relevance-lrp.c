/* relevance-lrp: how much each feature has to do with a network's answer. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "nn/relevance.h"
#include "stage/batch_lot.h"
#include "stage/training_job.h"

#include "base/banned.h"

static struct {
    const char *model, *x, *y, *node, *rule, *from, *bias, *scale, *backend;
    double mu, alpha;
    int64_t threads;
    bool average;
} opt = {.x = "x",
         .y = "y",
         .rule = "epsilon",
         .from = "true",
         .bias = "absorb",
         .scale = "unit",
         .backend = "cpu",
         .mu = 1e-3,
         .alpha = 2};

static const char *const biases[] = {"absorb", "spread", NULL};
static const char *const scales[] = {"unit", "none", NULL};

static const struct dpf_option options[] = {
    DPF_OPT_ENDPOINT("model", &opt.model, "STREAM", "the network, as train writes it",
                     DPF_OPTION_REQUIRED),
    DPF_OPT_CHOICE("rule", &opt.rule, dpf_relevance_rules, "NAME",
                   "how a neuron shares out its relevance: epsilon (AdLM), alpha-beta, "
                   "z-plus"),
    DPF_OPT_REAL("mu", &opt.mu, "M", 0, 1e30,
                 "epsilon: the stabiliser, added to each divisor's size (0.001)"),
    DPF_OPT_REAL("alpha", &opt.alpha, "A", 1, 1e6,
                 "alpha-beta: the weight of what speaks for a neuron; beta is A - 1 (2)"),
    DPF_OPT_CHOICE(
        "bias", &opt.bias, biases, "HOW",
        "the share of biases: absorbed, as printed, or spread over the inputs: "
        "then sums stay the same from layer to layer"),
    DPF_OPT_CHOICE("from", &opt.from, dpf_relevance_origins, "WHICH",
                   "the score to explain: that of the true class, the highest, or all"),
    DPF_OPT_STRING("node", &opt.node, "NAME", "whose relevance (the network's input)"),
    DPF_OPT_CHOICE("scale", &opt.scale, scales, "HOW",
                   "unit: each record onto [0,1] by its own least and greatest relevance "
                   "(bounds that a mechanism can rely on); none: as they are"),
    DPF_OPT_FLAG("average", &opt.average, "the mean of all records, as one record"),
    DPF_OPT_STRING("field", &opt.x, "NAME", "what the network reads (x)"),
    DPF_OPT_STRING("label", &opt.y, "NAME", "the true class (y)"),
    DPF_OPT_INT_IMMATERIAL("threads", &opt.threads, "N", 1, 1024,
                           "(as many as there are processors)"),
    DPF_OPT_CHOICE("backend", &opt.backend, dpf_backend_words, "NAME",
                   "cpu, or ref: plain C"),
    DPF_OPT_END,
};

static struct dpf_model_stream source;
static struct dpf_batch_lot reader;
static struct dpf_engine engine;
static struct dpf_engine_relevance relevance;
static struct dpf_relevance_plan plan;
static size_t record;
static double *sums; /* --average */
static uint64_t records;

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    plan.rule = (enum dpf_relevance_rule)dpf_word_index(opt.rule, dpf_relevance_rules);
    plan.from = (enum dpf_relevance_from)dpf_word_index(opt.from, dpf_relevance_origins);
    plan.mu = opt.mu;
    plan.alpha = opt.alpha;
    plan.spread_bias = strcmp(opt.bias, "spread") == 0;
    plan.unit = strcmp(opt.scale, "unit") == 0;
    if (dpf_option_given(&s->parsed, "mu") && plan.rule != DPF_RELEVANCE_EPSILON)
        return dpf_fail(e, DPF_USAGE, "'--mu' goes with '--rule epsilon'");
    if (dpf_option_given(&s->parsed, "alpha") && plan.rule != DPF_RELEVANCE_ALPHA_BETA)
        return dpf_fail(e, DPF_USAGE, "'--alpha' goes with '--rule alpha-beta'");
    return DPF_OK;
}

/* The relevance stands where the input stood; its class stays beside it. */
static enum dpf_status declare(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(&s->out, opt.x);
    struct dpf_shape shape = source.model.nodes[plan.node].shape;
    if (plan.node == 0 && record == dpf_shape_elements(&f->shape))
        shape = f->shape; /* a picture may lack its channel */
    if (opt.average) {
        dpf_header_keep_field(&s->out, (int)(f - s->out.fields));
        f = &s->out.fields[0];
        s->out_deferred = true;
        s->out.has_records = true;
        s->out.records = 1;
    }
    dpf_field_redefine(f, DPF_F32, &shape);
    return plan.unit ? dpf_field_set_bounds(f, 0, 1, e) : DPF_OK;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    enum dpf_status status = dpf_model_stream_read(&source, opt.model, NULL, NULL, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_node *found =
        opt.node ? dpf_model_find(&source.model, opt.node) : &source.model.nodes[0];
    if (!found)
        return dpf_fail(e, DPF_USAGE, "the network has no node '%s'", opt.node);
    const struct dpf_shape *out = &source.model.nodes[source.model.output].shape;
    plan.node = (size_t)(found - source.model.nodes);
    record = dpf_shape_elements(&found->shape);
    struct dpf_dataset_need need = {.model = &source.model,
                                    .x = opt.x,
                                    .y = plan.from == DPF_FROM_TRUE ? opt.y : NULL,
                                    .loss = out->rank > 1 ? DPF_LOSS_VOXEL
                                                          : DPF_LOSS_CROSS_ENTROPY};
    struct dpf_engine_setup setup = {.model = &source.model,
                                     .kernels = dpf_backend_of(opt.backend),
                                     .threads = (int)opt.threads,
                                     .every_value = true,
                                     .relevance = true};
    status = dpf_batch_lot_init(&reader, &s->in, &need, e);
    if (status == DPF_OK)
        status = dpf_engine_init(&engine, &setup, e);
    if (status == DPF_OK)
        status = dpf_engine_relevance_init(&relevance, &engine, &plan, e);
    if (status == DPF_OK && opt.average && !(sums = dpf_calloc(record + 1, sizeof *sums)))
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        status = declare(s, e);
    if (status != DPF_OK)
        return status;
    dpf_engine_put(&engine, source.parameters);
    dpf_stage_adopt_model(s, &source.header);
    if (opt.average && s->in.is_private) /* one record, but of everyone */
        dpf_stage_add_selection_event(s, "mean of all", "replace-one");
    return DPF_OK;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    int at = (int)(dpf_header_field(&s->in, opt.x) - s->in.fields);
    struct dpf_tensor values;
    struct dpf_shape shape;
    struct dpf_lot lot;
    enum dpf_status status = dpf_batch_lot_take(&reader, &s->in, b, &lot, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_shape *own = &s->out.fields[opt.average ? 0 : at].shape;
    if (!dpf_shape_prepend(own, b->rows, &shape) ||
        dpf_tensor_init(&values, DPF_F32, &shape, e) != DPF_OK)
        return dpf_fail_memory(e);
    status = dpf_engine_relevance(&relevance, &lot, values.data, e);
    if (opt.average) {
        const float *r = values.data;
        for (uint64_t row = 0; status == DPF_OK && row < b->rows; row++, r += record)
            for (size_t i = 0; i < record; i++)
                sums[i] += (double)r[i];
        records += b->rows;
        dpf_tensor_release(&values);
        dpf_batch_truncate(b, 0); /* nothing leaves yet */
        return status;
    }
    dpf_tensor_release(&b->tensor[at]);
    b->tensor[at] = values;
    return status;
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_batch b = {0};
    if (!opt.average)
        return DPF_OK;
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = dpf_batch_init(&b, &s->out, 1, e);
    if (status != DPF_OK)
        return status;
    for (size_t i = 0; i < record; i++)
        ((float *)b.tensor[0].data)[i] =
            records ? (float)(sums[i] / (double)records) : 0.0F;
    status = dpf_stage_emit(s, &b, e);
    dpf_batch_release(&b);
    return status;
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_engine_relevance_release(&relevance);
    dpf_engine_release(&engine);
    dpf_batch_lot_release(&reader);
    dpf_model_stream_release(&source);
    free(sums);
}

static const struct dpf_stage_info info = {
    .name = "relevance-lrp",
    .summary = "how much each feature has to do with a network's answer",
    .reads = "x: numbers or packed bits; y, the true class, with --from true",
    .writes = "the same fields, relevance in x's place; or one record, the mean",
    .privacy = "none spent, and none protected: relevance is as private as the records, "
               "until 'perturb --release relevance'",
    .example = "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow train "
               "--arch tiny --epochs 2 --rate 0.1 -o seen.mp && dpflow load digits:test "
               "| dpflow "
               "normalize --unit 0:16 | dpflow relevance-lrp --model seen.mp | dpflow "
               "inspect",
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
