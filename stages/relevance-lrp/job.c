#include "job.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

const char *const dpf_bias_words[] = {"absorb", "spread", NULL};
const char *const dpf_onto_unit_words[] = {"unit", "none", NULL};

enum dpf_status dpf_relevance_job_check(struct dpf_relevance_job *j,
                                        const struct dpf_stage *s, struct dpf_error *e)
{
    j->plan = (struct dpf_relevance_plan){
        .rule = DPF_FIND(dpf_relevance_rules, j->rule),
        .from = dpf_relevance_origins[DPF_INDEX(dpf_relevance_origins, j->from)].from,
        .mu = j->mu,
        .alpha = j->alpha,
        .spread_bias = strcmp(j->bias, "spread") == 0,
        .unit = strcmp(j->scale, "unit") == 0};
    if (dpf_option_given(&s->parsed, "mu") && j->plan.rule->both_sides)
        return dpf_fail(e, DPF_USAGE, "'--mu' goes with '--rule epsilon'");
    if (dpf_option_given(&s->parsed, "alpha") && !j->plan.rule->has_alpha)
        return dpf_fail(e, DPF_USAGE, "'--alpha' goes with '--rule alpha-beta'");
    if (dpf_option_given(&s->parsed, "label") && j->plan.from != DPF_FROM_TRUE)
        return dpf_fail(e, DPF_USAGE, "'--label' goes with '--from true'");
    return DPF_OK;
}

/* The relevance stands where the input stood; its class stays beside it. */
static enum dpf_status declare(struct dpf_relevance_job *j, struct dpf_stage *s,
                               struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_field(&s->out, j->x);
    struct dpf_shape shape = j->reader.source.model.nodes[j->plan.node].shape;
    if (j->plan.node == 0 && j->record == dpf_shape_elements(&f->shape))
        shape = f->shape; /* a picture may lack its channel */
    j->at = (int)(f - s->out.fields);
    if (j->average) {
        dpf_header_keep_field(&s->out, j->at);
        f = &s->out.fields[0];
        s->out_deferred = true;
        s->out.has_records = true;
        s->out.records = 1;
    }
    dpf_field_redefine(f, DPF_F32, &shape);
    return j->plan.unit ? dpf_field_set_bounds(f, 0, 1, e) : DPF_OK;
}

enum dpf_status dpf_relevance_job_open(struct dpf_relevance_job *j, struct dpf_stage *s,
                                       struct dpf_error *e)
{
    struct dpf_model_reader *r = &j->reader;
    enum dpf_status status = dpf_model_stream_read(&r->source, j->model, NULL, NULL, e);
    if (status == DPF_OK)
        status = dpf_model_reader_find(r, j->node, 0, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_model *m = &r->source.model;
    bool spatial = m->nodes[m->output].shape.rank > 1;
    j->plan.node = r->node;
    j->record = dpf_shape_elements(&m->nodes[r->node].shape);
    status = dpf_model_reader_open(
        r, s,
        (struct dpf_dataset_need){.x = j->x,
                                  .y = j->plan.from == DPF_FROM_TRUE ? j->y : NULL,
                                  .loss =
                                      dpf_loss_find(spatial ? "voxel" : "cross-entropy")},
        (struct dpf_engine_setup){.kernels = dpf_backend_of(j->backend),
                                  .threads = (int)j->threads,
                                  .relevance = true},
        e);
    if (status == DPF_OK)
        status = dpf_engine_relevance_init(&j->relevance, &r->engine, &j->plan, e);
    if (status == DPF_OK && !(j->sums = dpf_calloc(j->record + 1, sizeof *j->sums)))
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        status = declare(j, s, e);
    if (status != DPF_OK)
        return status;
    dpf_stage_adopt_model(s, &r->source.header);
    const struct dpf_selection_event mean = {
        .by = "mean of all", .rule = "mean of all", .stability = {.replace_one = 1}};
    if (j->average && s->in.is_private) /* one record, but of everyone */
        dpf_ledger_add_selection(&s->out.events, s->info->name, &mean);
    return DPF_OK;
}

static void add_up(struct dpf_relevance_job *j, const float *r, uint64_t rows)
{
    for (uint64_t row = 0; row < rows; row++, r += j->record)
        for (size_t i = 0; i < j->record; i++)
            j->sums[i] += (double)r[i];
    j->records += rows;
}

enum dpf_status dpf_relevance_job_take(struct dpf_relevance_job *j, struct dpf_stage *s,
                                       struct dpf_batch *b, struct dpf_error *e)
{
    const struct dpf_shape *own = &s->out.fields[j->average ? 0 : j->at].shape;
    struct dpf_tensor values;
    struct dpf_lot lot;
    enum dpf_status status =
        dpf_model_reader_take(&j->reader, s, b, own, &lot, &values, e);
    if (status != DPF_OK)
        return status;
    status = dpf_engine_relevance(&j->relevance, &lot, values.data, e);
    if (!j->average) {
        dpf_tensor_release(&b->tensor[j->at]);
        b->tensor[j->at] = values;
        return status;
    }
    if (status == DPF_OK)
        add_up(j, values.data, b->rows);
    dpf_tensor_release(&values);
    dpf_batch_truncate(b, 0); /* nothing leaves yet */
    return status;
}

enum dpf_status dpf_relevance_job_finish(struct dpf_relevance_job *j, struct dpf_stage *s,
                                         struct dpf_error *e)
{
    struct dpf_batch b = {0};
    if (!j->average)
        return DPF_OK;
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status == DPF_OK)
        status = dpf_batch_init(&b, &s->out, 1, e);
    if (status != DPF_OK)
        return status;
    float *mean = b.tensor[0].data;
    for (size_t i = 0; i < j->record; i++)
        mean[i] = j->records ? (float)(j->sums[i] / (double)j->records) : 0.0F;
    status = dpf_stage_emit(s, &b, e);
    dpf_batch_release(&b);
    return status;
}

void dpf_relevance_job_release(struct dpf_relevance_job *j)
{
    dpf_engine_relevance_release(&j->relevance);
    dpf_model_reader_release(&j->reader);
    free(j->sums);
    j->sums = NULL;
}
