#include "evaluate.h"

#include "base/file.h"
#include "base/log.h"
#include "ledger/lineage.h"
#include "nn/expected_bits.h"

#include "base/banned.h"

/* Clean bits for a network that knows randomised ones. */
static enum dpf_status expect_bits(struct dpf_measurement *v, struct dpf_error *e)
{
    double rates[4];
    enum dpf_found found =
        dpf_ledger_find(&v->source.header.events, NULL, "probabilities", rates, 4);
    if (found != DPF_FOUND)
        return dpf_fail(e, DPF_USAGE,
                        "the model's ledger %s: '--expected' is for models trained on "
                        "bits that 'randomize' randomised",
                        found ? "states several rates" : "states no rates of bits");
    return dpf_expect_bits(&v->source.model, rates, v->source.parameters, e);
}

enum dpf_status dpf_measurement_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_measurement *v = s->state;
    return dpf_backend_find(v->backend, &v->kernels, e);
}

/* Their events stand for those of a model. */
static enum dpf_status read_teachers(struct dpf_measurement *v, struct dpf_error *e)
{
    struct dpf_teachers *t = &v->ensemble.teachers;
    if (v->expected)
        return dpf_fail(e, DPF_USAGE, "give one of '--teachers' and '--expected'");
    enum dpf_status status = dpf_ensemble_read(&v->ensemble, v->model, e);
    const struct dpf_teachers_event event = {.branches = &t->branches};
    if (status == DPF_OK) {
        dpf_ledger_add_teachers(&v->source.header.events, "train", &event);
        dpf_values_append(&v->source.header.provenance, &t->provenance);
        v->source.header.is_private = !t->is_public;
    }
    return status;
}

/* Records are then held against windows of the network, not against its input. */
static enum dpf_status open_windows(struct dpf_measurement *v, struct dpf_stage *s,
                                    const struct dpf_model *m, struct dpf_error *e)
{
    const struct dpf_field *x = v->window ? dpf_header_field(&s->in, v->x) : NULL;
    enum dpf_status status =
        x ? dpf_windows_init(&v->windows, m, m->output, x, e) : DPF_OK;
    if (status == DPF_OK && x)
        v->need.model = &v->windows.whole;
    return status;
}

enum dpf_status dpf_measurement_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_measurement *v = s->state;
    enum dpf_status status =
        v->teachers ? read_teachers(v, e)
                    : dpf_model_stream_read(&v->source, v->model, NULL, NULL, e);
    if (status == DPF_OK && v->expected)
        status = expect_bits(v, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_model *model =
        v->teachers ? &v->ensemble.teachers.list[0].model : &v->source.model;
    v->need = (struct dpf_dataset_need){
        .model = model, .x = v->x, .y = v->y, .loss = dpf_loss_find(v->loss)};
    struct dpf_engine_setup setup = {
        .model = model, .kernels = v->kernels, .threads = (int)v->threads};
    struct dpf_windows *windows = v->window ? &v->windows : NULL;
    status = open_windows(v, s, model, e);
    if (status == DPF_OK)
        status = dpf_dataset_init(&v->data, &s->in, &v->need, e);
    if (status == DPF_OK)
        status = dpf_engine_init(&v->engine, &setup, e);
    if (status == DPF_OK)
        status = v->teachers ? dpf_ensemble_open(&v->ensemble, &v->engine, windows,
                                                 v->need.loss, e)
                             : dpf_evaluation_init(&v->evaluation, &v->engine, windows,
                                                   v->need.loss, e);
    if (status != DPF_OK)
        return status;
    if (!v->teachers)
        dpf_engine_put(&v->engine, v->source.parameters);
    dpf_header_drop_fields(&s->out);
    dpf_stage_adopt_model(s, &v->source.header);
    if (s->in.is_private)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "scores were computed from the records");
    s->out_deferred = true;
    return DPF_OK;
}

static enum dpf_status score_data(struct dpf_measurement *v, struct dpf_error *e)
{
    enum dpf_status status = v->teachers
                                 ? dpf_ensemble_add(&v->ensemble, &v->engine, &v->data, e)
                                 : dpf_evaluation_add(&v->evaluation, &v->data, e);
    dpf_dataset_clear(&v->data);
    return status;
}

enum dpf_status dpf_measurement_batch(struct dpf_stage *s, struct dpf_batch *b,
                                      struct dpf_error *e)
{
    struct dpf_measurement *v = s->state;
    enum dpf_status status = dpf_dataset_add(&v->data, &s->in, b, &v->need, e);
    /* Enough for every thread, also where a batch is a single volume; windows of one
     * volume are enough. */
    uint64_t enough = v->window ? 1 : (uint64_t)v->engine.threads * 8;
    return status == DPF_OK && v->data.rows >= enough ? score_data(v, e) : status;
}

static enum dpf_status write_results(const struct dpf_measurement *v, struct dpf_stage *s,
                                     const struct dpf_text *table, struct dpf_text *json,
                                     struct dpf_error *e)
{
    struct dpf_encoder *enc = &s->writer.encoder;
    enum dpf_status status = dpf_stage_begin(s, e);
    if (status != DPF_OK)
        return status;
    dpf_encoder_begin(enc, "metric", 3);
    dpf_encode_key(enc, "name");
    dpf_encode_string(enc, "evaluation");
    dpf_encode_key(enc, "json");
    dpf_encode_string(enc, dpf_text_get(json));
    dpf_encode_key(enc, "table");
    dpf_encode_string(enc, dpf_text_get(table));
    status = dpf_stream_write_encoded(&s->writer, e);
    dpf_text_add(json, "\n");
    if (status == DPF_OK && v->json)
        status = dpf_write_file(v->json, dpf_text_get(json), json->size, e);
    if (status == DPF_OK && v->table)
        status = dpf_write_file(v->table, dpf_text_get(table), table->size, e);
    if (status == DPF_OK && !v->table)
        dpf_notice_lines(dpf_text_get(table)); /* the summary, up to an empty line */
    return status;
}

enum dpf_status dpf_measurement_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_measurement *v = s->state;
    struct dpf_text table = {0}, json = {0};
    enum dpf_status status = score_data(v, e);
    if (status != DPF_OK)
        return status;
    struct dpf_findings findings = {0};
    struct dpf_lineage lineage;
    if (v->teachers)
        dpf_ensemble_report(&v->ensemble, &findings);
    else
        dpf_evaluation_report(&v->evaluation, &findings);
    dpf_lineage_read(&lineage, &v->source.header, &s->in);
    dpf_lineage_report(&lineage, &findings);
    dpf_findings_table(&findings, &table);
    dpf_findings_json(&findings, &json);
    if (lineage.membership == DPF_SEEN)
        dpf_notice("the model was trained on these records: this does not measure "
                   "generalisation");
    dpf_lineage_release(&lineage);
    status = table.failed || json.failed ? dpf_fail_memory(e)
                                         : write_results(v, s, &table, &json, e);
    dpf_findings_release(&findings);
    dpf_text_release(&table);
    dpf_text_release(&json);
    return status;
}

void dpf_measurement_release(struct dpf_stage *s)
{
    struct dpf_measurement *v = s->state;
    if (!v->teachers)
        dpf_evaluation_release(&v->evaluation);
    dpf_windows_release(&v->windows);
    dpf_engine_release(&v->engine); /* it borrows a teacher's network */
    dpf_ensemble_release(&v->ensemble);
    dpf_dataset_release(&v->data);
    dpf_model_stream_release(&v->source);
}
