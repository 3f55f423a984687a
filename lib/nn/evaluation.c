#include "nn/evaluation.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "nn/geometry.h"

#include "base/banned.h"

/* A network that gives the scores that it reads: losses of whole records are computed
 * from these as from any output. */
static enum dpf_status open_measure(struct dpf_evaluation *v, struct dpf_error *e)
{
    const struct dpf_shape *scores = &v->windows->values;
    struct dpf_text text = {0};
    dpf_text_add(&text, "input scores ");
    for (int d = 0; d < scores->rank; d++)
        dpf_text_addf(&text, "%s%llu", d ? "x" : "", (unsigned long long)scores->dim[d]);
    dpf_text_add(&text, "\noutput scores\n");
    enum dpf_status status =
        text.failed ? dpf_fail_memory(e)
                    : dpf_model_parse(&v->scores, text.data, text.size, "scores", e);
    const struct dpf_engine_setup setup = {.model = &v->scores,
                                           .kernels = v->engine->kernels,
                                           .threads = 1,
                                           .microbatch = 1,
                                           .every_value = true};
    if (status == DPF_OK)
        status = dpf_engine_init(&v->measure, &setup, e);
    dpf_text_release(&text);
    return status;
}

enum dpf_status dpf_evaluation_init(struct dpf_evaluation *v, struct dpf_engine *engine,
                                    struct dpf_windows *windows,
                                    const struct dpf_loss *loss, struct dpf_error *e)
{
    bool voxels = loss->targets == DPF_TARGET_VOXEL_LABELS;
    const struct dpf_node *output = &engine->model->nodes[engine->model->output];
    *v = (struct dpf_evaluation){.engine = engine,
                                 .windows = windows,
                                 .loss = loss,
                                 .labelled = dpf_loss_wants_labels(loss)};
    uint64_t classes = voxels ? output->shape.dim[0] : dpf_shape_elements(&output->shape);
    enum dpf_status status =
        v->labelled ? dpf_score_init(&v->score, classes, voxels, e) : DPF_OK;
    v->labelled = v->labelled && status == DPF_OK;
    return status == DPF_OK && windows ? open_measure(v, e) : status;
}

void dpf_evaluation_release(struct dpf_evaluation *v)
{
    if (v->labelled)
        dpf_score_release(&v->score);
    if (v->measure.model)
        dpf_engine_release(&v->measure);
    dpf_model_release(&v->scores);
    free(v->rows);
    free(v->outputs);
    free(v->turned);
    free(v->losses);
    *v = (struct dpf_evaluation){0};
}

/* A node's values come channels first, scores are taken class by class at each voxel. */
static const float *scores_of(struct dpf_evaluation *v, const float *output,
                              int64_t voxels)
{
    int64_t classes = (int64_t)v->score.classes;
    if (voxels == 1)
        return output;
    for (int64_t l = 0; l < classes; l++)
        for (int64_t p = 0; p < voxels; p++)
            v->turned[p * classes + l] = output[l * voxels + p];
    return v->turned;
}

/* Outputs and losses of all examples. */
static enum dpf_status compute(struct dpf_evaluation *v, const struct dpf_lot *lot,
                               size_t record, struct dpf_error *e)
{
    const struct dpf_model *m = v->engine->model;
    struct dpf_lot_values want = {
        .node = m->output, .values = v->outputs, .losses = v->losses};
    if (!v->windows)
        return dpf_engine_values(v->engine, lot, &want, e);
    enum dpf_status status =
        dpf_windows_compute(v->windows, v->engine, lot, v->outputs, e);
    struct dpf_dataset scores = *lot->data; /* the same targets */
    scores.dtype = DPF_F32;
    scores.one_hot = 0;
    scores.record = record;
    scores.record_bytes = record * sizeof *v->outputs;
    scores.x = (unsigned char *)v->outputs;
    struct dpf_lot losses = *lot;
    losses.data = &scores;
    want = (struct dpf_lot_values){.losses = v->losses};
    return status == DPF_OK ? dpf_engine_values(&v->measure, &losses, &want, e) : status;
}

enum dpf_status dpf_evaluation_add(struct dpf_evaluation *v, const struct dpf_dataset *d,
                                   struct dpf_error *e)
{
    const struct dpf_model *m = v->engine->model;
    const struct dpf_shape *output =
        v->windows ? &v->windows->values : &m->nodes[m->output].shape;
    size_t record = (size_t)dpf_nn_elements(output), all, rows = d->rows;
    if (!dpf_mul_size(rows, record, &all) ||
        !dpf_grow(&v->rows, &v->rows_capacity, rows, sizeof *v->rows) ||
        !dpf_grow(&v->losses, &v->losses_capacity, rows, sizeof *v->losses) ||
        !dpf_grow(&v->outputs, &v->outputs_capacity, all, sizeof *v->outputs) ||
        !dpf_grow(&v->turned, &v->turned_capacity, record, sizeof *v->turned))
        return dpf_fail_memory(e);
    for (size_t i = 0; i < rows; i++)
        v->rows[i] = (uint32_t)i;
    struct dpf_lot lot = {
        .data = d, .rows = v->rows, .count = (int64_t)rows, .loss = v->loss};
    enum dpf_status status = compute(v, &lot, record, e);
    for (size_t i = 0; status == DPF_OK && i < rows; i++) {
        int64_t voxels = v->labelled && v->score.voxels ? (int64_t)d->positions : 1;
        v->loss_sum += v->losses[i];
        v->examples++;
        if (v->labelled)
            dpf_score_add(&v->score, scores_of(v, v->outputs + i * record, voxels),
                          voxels, dpf_dataset_target(d, (uint32_t)i).labels,
                          v->losses[i]);
    }
    return status;
}

void dpf_evaluation_report(struct dpf_evaluation *v, struct dpf_findings *f)
{
    enum { NAME_COLUMNS = 10 };
    if (v->labelled) {
        dpf_score_finish(&v->score);
        dpf_score_report(&v->score, NULL, f);
        return;
    }
    double mean = v->examples ? v->loss_sum / (double)v->examples : NAN;
    unsigned long long examples = v->examples;
    dpf_findings_add_row(f, NAME_COLUMNS, "examples", "%llu", examples);
    dpf_findings_add_row(f, NAME_COLUMNS, "loss", "%.6g", mean);
    dpf_text_addf(&f->members, "\"examples\": %llu, \"loss\": ", examples);
    dpf_text_add_real(&f->members, mean);
}
