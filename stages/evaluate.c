/* evaluate: measure a model on records and their targets. */
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "exchange/model_stream.h"
#include "ledger/lineage.h"
#include "nn/evaluation.h"
#include "nn/expected_bits.h"

#include "base/banned.h"

static struct measurement {
    /* what the user asked for, then what it takes */
    const char *model, *x, *y, *loss, *backend, *json, *table;
    int64_t threads;
    bool expected;
    const struct dpf_kernels *kernels; /* of the backend */
    struct dpf_model_stream source;
    struct dpf_dataset data;
    struct dpf_dataset_need need;
    struct dpf_engine engine;
    struct dpf_evaluation evaluation;
} state = {.x = "x", .y = "y", .loss = "cross-entropy", .backend = "cpu"};

static const struct dpf_option options[] = {
    DPF_OPT_ENDPOINT("model", &state.model, "STREAM", "the model, as train writes it",
                     DPF_OPTION_REQUIRED),
    DPF_OPT_STRING("field", &state.x, "NAME", "the field that the network reads (x)"),
    DPF_OPT_STRING("target", &state.y, "NAME", "the field with the targets (y)"),
    DPF_OPT_CHOICE("loss", &state.loss, dpf_losses, "NAME",
                   "the loss that is reported (cross-entropy); voxel and dice also give "
                   "Dice coefficients"),
    DPF_OPT_FLAG(
        "expected", &state.expected,
        "for inputs that are not randomised and a model trained on randomised bits: "
        "average over the randomisation, by the rates in the model's ledger"),
    DPF_OPT_OUTFILE("json", &state.json, "FILE", "write all figures as JSON"),
    DPF_OPT_OUTFILE("table", &state.table, "FILE", "write all figures as a table"),
    DPF_OPT_INT_IMMATERIAL("threads", &state.threads, "N", 1, 1024,
                           "number of threads (one for each processor)"),
    DPF_OPT_STRING("backend", &state.backend, "NAME",
                   "where to compute: cpu, ref (plain C), or a plug-in (cpu)"),
    DPF_OPT_END,
};

/* Clean bits for a network that knows randomised ones. */
static enum dpf_status expect_bits(struct measurement *v, struct dpf_error *e)
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

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct measurement *v = s->state;
    return dpf_backend_find(v->backend, &v->kernels, e);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct measurement *v = s->state;
    enum dpf_status status = dpf_model_stream_read(&v->source, v->model, NULL, NULL, e);
    if (status == DPF_OK && v->expected)
        status = expect_bits(v, e);
    if (status != DPF_OK)
        return status;
    v->need = (struct dpf_dataset_need){
        .model = &v->source.model, .x = v->x, .y = v->y, .loss = dpf_loss_find(v->loss)};
    struct dpf_engine_setup setup = {
        .model = &v->source.model, .kernels = v->kernels, .threads = (int)v->threads};
    status = dpf_dataset_init(&v->data, &s->in, &v->need, e);
    if (status == DPF_OK)
        status = dpf_engine_init(&v->engine, &setup, e);
    if (status == DPF_OK)
        status = dpf_evaluation_init(&v->evaluation, &v->engine, v->need.loss, e);
    if (status != DPF_OK)
        return status;
    dpf_engine_put(&v->engine, v->source.parameters);
    dpf_header_drop_fields(&s->out);
    dpf_stage_adopt_model(s, &v->source.header);
    if (s->in.is_private)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "scores were computed from the records");
    s->out_deferred = true;
    return DPF_OK;
}

static enum dpf_status score_data(struct measurement *v, struct dpf_error *e)
{
    enum dpf_status status = dpf_evaluation_add(&v->evaluation, &v->data, e);
    dpf_dataset_clear(&v->data);
    return status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct measurement *v = s->state;
    enum dpf_status status = dpf_dataset_add(&v->data, &s->in, b, &v->need, e);
    /* enough for every thread, also where a batch is a single volume */
    return status == DPF_OK && v->data.rows >= (uint64_t)v->engine.threads * 8
               ? score_data(v, e)
               : status;
}

static enum dpf_status write_results(const struct measurement *v, struct dpf_stage *s,
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

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct measurement *v = s->state;
    struct dpf_text table = {0}, json = {0};
    enum dpf_status status = score_data(v, e);
    if (status != DPF_OK)
        return status;
    struct dpf_findings findings = {0};
    struct dpf_lineage lineage;
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

static void on_release(struct dpf_stage *s)
{
    struct measurement *v = s->state;
    dpf_evaluation_release(&v->evaluation);
    dpf_engine_release(&v->engine);
    dpf_dataset_release(&v->data);
    dpf_model_stream_release(&v->source);
}

static const struct dpf_stage_info info = {
    .name = "evaluate",
    .summary = "measure a model on records and their targets",
    .reads = "x: numbers or packed bits, y: labels or values",
    .writes = "a metric: accuracy with its interval, loss, confusion, calibration, Dice",
    .privacy = "none spent: scores of private records are as private as the records",
    .example = "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow train "
               "--arch tiny --epochs 5 --rate 0.1 -o model.mp && dpflow load "
               "digits:test | dpflow normalize --unit 0:16 | dpflow evaluate --model "
               "model.mp | dpflow inspect",
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
