/* relevance-lrp: compute each feature's relevance for a network's output. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "exchange/model_reader.h"
#include "nn/relevance.h"

#include "base/banned.h"

static const char *const biases[] = {"absorb", "spread", NULL};
static const char *const scales[] = {"unit", "none", NULL};

static struct relevance {
    /* what the user asked for, then what it takes */
    const char *model, *x, *y, *node, *rule, *from, *bias, *scale, *backend;
    int64_t threads;
    bool average;
    const struct dpf_kernels *kernels;
    struct dpf_model_reader reader;
    struct dpf_engine_relevance relevance;
    struct dpf_relevance_plan plan;
    int at; /* number of the field that is read */
    size_t record;
    double *sums; /* --average */
    uint64_t records;
} state = {.x = "x",
           .y = "y",
           .rule = "epsilon",
           .from = "true",
           .bias = "absorb",
           .scale = "unit",
           .backend = "cpu",
           .plan = {.mu = 1e-3, .alpha = 2}};

static const struct dpf_option options[] = {
    DPF_OPT_ENDPOINT("model", &state.model, "STREAM", "the network, as train writes it",
                     DPF_OPTION_REQUIRED),
    DPF_OPT_CHOICE("rule", &state.rule, dpf_relevance_rules, "NAME",
                   "how a neuron's relevance is divided among its inputs (epsilon)"),
    DPF_OPT_REAL("mu", &state.plan.mu, "M", 0, 1e30,
                 "epsilon: stabiliser, added to each divisor's absolute value (0.001)"),
    DPF_OPT_REAL("alpha", &state.plan.alpha, "A", 1, 1e6,
                 "alpha-beta: the weight of positive contributions; beta is A - 1 (2)"),
    DPF_OPT_CHOICE("bias", &state.bias, biases, "HOW",
                   "biases' relevance: absorb drops it, as printed; spread gives it to "
                   "the inputs, so that each layer has the same sum"),
    DPF_OPT_CHOICE("from", &state.from, dpf_relevance_origins, "WHICH",
                   "the score to explain: of the true class, the highest one, or all"),
    DPF_OPT_STRING("node", &state.node, "NAME",
                   "the node whose relevance is computed (the network's input)"),
    DPF_OPT_CHOICE("scale", &state.scale, scales, "HOW",
                   "unit: map each record to [0,1] by its own smallest and largest "
                   "relevance (bounds for a mechanism); none: as they are"),
    DPF_OPT_FLAG("average", &state.average,
                 "write the mean of all records, as one record"),
    DPF_OPT_STRING("field", &state.x, "NAME", "the field that the network reads (x)"),
    DPF_OPT_STRING("label", &state.y, "NAME", "the field with the true class (y)"),
    DPF_OPT_INT_IMMATERIAL("threads", &state.threads, "N", 1, 1024,
                           "number of threads (one for each processor)"),
    DPF_OPT_STRING("backend", &state.backend, "NAME",
                   "where to compute: cpu, ref (plain C), or a plug-in (cpu)"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct relevance *v = s->state;
    v->plan.rule = DPF_FIND(dpf_relevance_rules, v->rule);
    v->plan.from = dpf_relevance_origins[DPF_INDEX(dpf_relevance_origins, v->from)].from;
    v->plan.spread_bias = strcmp(v->bias, "spread") == 0;
    v->plan.unit = strcmp(v->scale, "unit") == 0;
    if (dpf_option_given(&s->parsed, "mu") && v->plan.rule->both_sides)
        return dpf_fail(e, DPF_USAGE, "'--mu' goes with '--rule epsilon'");
    if (dpf_option_given(&s->parsed, "alpha") && !v->plan.rule->has_alpha)
        return dpf_fail(e, DPF_USAGE, "'--alpha' goes with '--rule alpha-beta'");
    if (dpf_option_given(&s->parsed, "label") && v->plan.from != DPF_FROM_TRUE)
        return dpf_fail(e, DPF_USAGE, "'--label' goes with '--from true'");
    return dpf_backend_find(v->backend, &v->kernels, e);
}

/* The relevance stands where the input stood; its class stays beside it. */
static enum dpf_status declare(struct relevance *v, struct dpf_stage *s,
                               struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(&s->out, v->x);
    struct dpf_shape shape = v->reader.source.model.nodes[v->plan.node].shape;
    if (v->plan.node == 0 && v->record == dpf_shape_elements(&f->shape))
        shape = f->shape; /* a picture may lack its channel */
    v->at = (int)(f - s->out.fields);
    if (v->average) {
        dpf_header_keep_field(&s->out, v->at);
        f = &s->out.fields[0];
        s->out_deferred = true;
        s->out.has_records = true;
        s->out.records = 1;
    }
    dpf_field_redefine(f, DPF_F32, &shape);
    return v->plan.unit ? dpf_field_set_bounds(f, 0, 1, e) : DPF_OK;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct relevance *v = s->state;
    struct dpf_model_reader *r = &v->reader;
    enum dpf_status status = dpf_model_stream_read(&r->source, v->model, NULL, NULL, e);
    if (status == DPF_OK)
        status = dpf_model_reader_find(r, v->node, 0, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_model *m = &r->source.model;
    bool spatial = m->nodes[m->output].shape.rank > 1;
    v->plan.node = r->node;
    v->record = dpf_shape_elements(&m->nodes[r->node].shape);
    status = dpf_model_reader_open(
        r, s,
        (struct dpf_dataset_need){.x = v->x,
                                  .y = v->plan.from == DPF_FROM_TRUE ? v->y : NULL,
                                  .loss =
                                      dpf_loss_find(spatial ? "voxel" : "cross-entropy")},
        (struct dpf_engine_setup){
            .kernels = v->kernels, .threads = (int)v->threads, .relevance = true},
        e);
    if (status == DPF_OK)
        status = dpf_engine_relevance_init(&v->relevance, &r->engine, &v->plan, e);
    if (status == DPF_OK && !(v->sums = dpf_calloc(v->record + 1, sizeof *v->sums)))
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        status = declare(v, s, e);
    if (status != DPF_OK)
        return status;
    dpf_stage_adopt_model(s, &r->source.header);
    const struct dpf_selection_event mean = {
        .by = "mean of all", .rule = "mean of all", .stability = {.replace_one = 1}};
    if (v->average && s->in.is_private) /* one record, but of everyone */
        dpf_ledger_add_selection(&s->out.events, s->info->name, &mean);
    return DPF_OK;
}

static void add_up(struct relevance *v, const float *r, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++, r += v->record)
        for (size_t i = 0; i < v->record; i++)
            v->sums[i] += (double)r[i];
    v->records += rows;
}

/* Relevance takes the place of the input; or it is added up, and nothing leaves yet. */
static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct relevance *v = s->state;
    const struct dpf_shape *own = &s->out.fields[v->average ? 0 : v->at].shape;
    struct dpf_tensor values;
    struct dpf_lot lot;
    enum dpf_status status =
        dpf_model_reader_take(&v->reader, s, b, own, &lot, &values, e);
    if (status != DPF_OK)
        return status;
    status = dpf_engine_relevance(&v->relevance, &lot, values.data, e);
    if (!v->average) {
        dpf_tensor_release(&b->tensor[v->at]);
        b->tensor[v->at] = values;
        return status;
    }
    if (status == DPF_OK)
        add_up(v, values.data, b->rows);
    dpf_tensor_release(&values);
    dpf_batch_truncate(b, 0); /* nothing leaves yet */
    return status;
}

/* Send the mean, if that is what leaves. */
static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct relevance *v = s->state;
    struct dpf_batch b = {0};
    if (!v->average)
        return DPF_OK;
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = dpf_batch_init(&b, &s->out, 1, e);
    if (status != DPF_OK)
        return status;
    float *mean = b.tensor[0].data;
    for (size_t i = 0; i < v->record; i++)
        mean[i] = v->records ? (float)(v->sums[i] / (double)v->records) : 0.0F;
    status = dpf_stage_emit(s, &b, e);
    dpf_batch_release(&b);
    return status;
}

static void on_release(struct dpf_stage *s)
{
    struct relevance *v = s->state;
    dpf_engine_relevance_release(&v->relevance);
    dpf_model_reader_release(&v->reader);
    free(v->sums);
    v->sums = NULL;
}

static const struct dpf_stage_info info = {
    .name = "relevance-lrp",
    .summary = "compute each feature's relevance for a network's output",
    .reads = "x: numbers or packed bits; y, the true class, with --from true",
    .writes = "the same fields, relevance in x's place; or one record, the mean",
    .privacy = "none spent: relevance is as private as the records; 'perturb --release "
               "relevance' protects it",
    .example =
        "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow train "
        "--arch tiny --epochs 2 --rate 0.1 -o seen.mp && dpflow load digits:test | "
        "dpflow normalize --unit 0:16 | dpflow relevance-lrp --model seen.mp | "
        "dpflow inspect",
    .detail = "Layer-wise relevance propagation (Bach et al. 2015), from the scores of "
              "the output\nnode (before any softmax) down to the input or --node.",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
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
