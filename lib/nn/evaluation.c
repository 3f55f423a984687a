#include "nn/evaluation.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "nn/geometry.h"

#include "base/banned.h"

enum dpf_status dpf_evaluation_init(struct dpf_evaluation *v, struct dpf_engine *engine,
                                    const struct dpf_loss *loss, struct dpf_error *e)
{
    bool voxels = loss->targets == DPF_TARGET_VOXEL_LABELS;
    const struct dpf_node *output = &engine->model->nodes[engine->model->output];
    *v = (struct dpf_evaluation){
        .engine = engine, .loss = loss, .labelled = dpf_loss_wants_labels(loss)};
    uint64_t classes = voxels ? output->shape.dim[0] : dpf_shape_elements(&output->shape);
    return v->labelled ? dpf_score_init(&v->score, classes, voxels, e) : DPF_OK;
}

void dpf_evaluation_release(struct dpf_evaluation *v)
{
    if (v->labelled)
        dpf_score_release(&v->score);
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

enum dpf_status dpf_evaluation_add(struct dpf_evaluation *v, const struct dpf_dataset *d,
                                   struct dpf_error *e)
{
    const struct dpf_model *m = v->engine->model;
    size_t record = (size_t)dpf_nn_elements(&m->nodes[m->output].shape), all,
           rows = d->rows;
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
    struct dpf_lot_values want = {
        .node = m->output, .values = v->outputs, .losses = v->losses};
    enum dpf_status status = dpf_engine_values(v->engine, &lot, &want, e);
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
