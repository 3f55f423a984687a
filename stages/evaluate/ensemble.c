#include "ensemble.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

enum dpf_status dpf_ensemble_read(struct dpf_ensemble *t, const char *place,
                                  struct dpf_error *e)
{
    enum dpf_status status = dpf_teachers_read(&t->teachers, place, e);
    for (size_t i = 1; status == DPF_OK && i < t->teachers.count; i++)
        if (strcmp(t->teachers.list[i].model.text, t->teachers.list[0].model.text) != 0)
            status = dpf_fail(e, DPF_USAGE, "'%s' and '%s' are different networks",
                              t->teachers.list[0].name, t->teachers.list[i].name);
    return status;
}

enum dpf_status dpf_ensemble_open(struct dpf_ensemble *t, struct dpf_engine *engine,
                                  struct dpf_windows *windows,
                                  const struct dpf_loss *loss, struct dpf_error *e)
{
    const struct dpf_node *output = &engine->model->nodes[engine->model->output];
    bool voxels = loss->targets == DPF_TARGET_VOXEL_LABELS;
    if (!dpf_loss_wants_labels(loss))
        return dpf_fail(e, DPF_USAGE, "'--teachers' needs a loss of labels, not '%s'",
                        loss->name);
    t->classes = voxels ? output->shape.dim[0] : dpf_shape_elements(&output->shape);
    t->single = dpf_calloc(t->teachers.count, sizeof *t->single);
    enum dpf_status status = t->single
                                 ? dpf_score_init(&t->together, t->classes, voxels, e)
                                 : dpf_fail_memory(e);
    t->scoring = status == DPF_OK;
    for (size_t i = 0; status == DPF_OK && i < t->teachers.count; i++)
        status = dpf_evaluation_init(&t->single[i], engine, windows, loss, e);
    return status;
}

void dpf_ensemble_release(struct dpf_ensemble *t)
{
    for (size_t i = 0; t->single && i < t->teachers.count; i++)
        dpf_evaluation_release(&t->single[i]);
    if (t->scoring)
        dpf_score_release(&t->together);
    free(t->single);
    free(t->sum);
    free(t->scores);
    dpf_teachers_release(&t->teachers);
    *t = (struct dpf_ensemble){.classes = 0};
}

/* Probabilities of scores [classes, places], added. */
static void add_probabilities(const float *scores, uint64_t classes, uint64_t places,
                              float *sum)
{
    for (uint64_t i = 0; i < places; i++) {
        double top = (double)scores[i], all = 0;
        for (uint64_t l = 1; l < classes; l++)
            top = fmax(top, (double)scores[l * places + i]);
        for (uint64_t l = 0; l < classes; l++)
            all += exp((double)scores[l * places + i] - top);
        for (uint64_t l = 0; l < classes; l++)
            sum[l * places + i] +=
                (float)(exp((double)scores[l * places + i] - top) / all);
    }
}

/* Logarithms of mean probabilities are scores that have these probabilities. */
static void score_example(struct dpf_ensemble *t, const float *sum, uint64_t places,
                          const int32_t *labels)
{
    double loss = 0, count = (double)t->teachers.count;
    for (uint64_t i = 0; i < places; i++)
        for (uint64_t l = 0; l < t->classes; l++) {
            double p = (double)sum[l * places + i] / count;
            float score = (float)log(fmax(p, 1e-30));
            t->scores[i * t->classes + l] = score;
            loss -= labels[i] == (int32_t)l ? (double)score / (double)places : 0;
        }
    dpf_score_add(&t->together, t->scores, (int64_t)places, labels, loss);
}

enum dpf_status dpf_ensemble_add(struct dpf_ensemble *t, struct dpf_engine *engine,
                                 const struct dpf_dataset *d, struct dpf_error *e)
{
    uint64_t places = d->positions, record = t->classes * places, all = d->rows * record;
    enum dpf_status status =
        dpf_grow(&t->sum, &t->sum_capacity, all, sizeof *t->sum) &&
                dpf_grow(&t->scores, &t->scores_capacity, record, sizeof *t->scores)
            ? DPF_OK
            : dpf_fail_memory(e);
    if (status == DPF_OK && all)
        memset(t->sum, 0, all * sizeof *t->sum);
    for (size_t k = 0; status == DPF_OK && k < t->teachers.count; k++) {
        dpf_engine_put(engine, t->teachers.list[k].parameters);
        status = dpf_evaluation_add(&t->single[k], d, e);
        for (uint64_t i = 0; status == DPF_OK && i < d->rows; i++)
            add_probabilities(t->single[k].outputs + i * record, t->classes, places,
                              t->sum + i * record);
    }
    for (uint64_t i = 0; status == DPF_OK && i < d->rows; i++)
        score_example(t, t->sum + i * record, places,
                      dpf_dataset_target(d, (uint32_t)i).labels);
    return status;
}

/* ----------------------------------------------------------------------------- report */

static double accuracy_of(const struct dpf_score *s)
{
    return s->accuracy;
}

static double dice_of(const struct dpf_score *s)
{
    return s->dice_foreground;
}

/* One figure over the single models. */
static void report_single(const struct dpf_ensemble *t, const char *name, const char *key,
                          double (*figure)(const struct dpf_score *s),
                          struct dpf_findings *f)
{
    enum { NAME_COLUMNS = 18 };
    double sum = 0, square = 0, least = INFINITY, most = -INFINITY;
    double n = (double)t->teachers.count;
    for (size_t i = 0; i < t->teachers.count; i++) {
        double x = figure(&t->single[i].score);
        sum += x;
        least = fmin(least, x);
        most = fmax(most, x);
    }
    for (size_t i = 0; i < t->teachers.count; i++)
        square += pow(figure(&t->single[i].score) - sum / n, 2);
    double deviation = n > 1 ? sqrt(square / (n - 1)) : 0;
    dpf_findings_add_row(f, NAME_COLUMNS, name,
                         "%.4f on average (deviation %.4f, %.4f to %.4f)", sum / n,
                         deviation, least, most);
    dpf_text_add_key(&f->members, key);
    dpf_text_add_real(&f->members, sum / n);
}

void dpf_ensemble_report(struct dpf_ensemble *t, struct dpf_findings *f)
{
    enum { NAME_COLUMNS = 18 };
    dpf_score_finish(&t->together);
    for (size_t i = 0; i < t->teachers.count; i++)
        dpf_score_finish(&t->single[i].score);
    dpf_score_report(&t->together, NULL, f);
    dpf_findings_add_row(f, NAME_COLUMNS, "teachers", "%zu; above: their ensemble",
                         t->teachers.count);
    report_single(t, "single accuracy", "single_accuracy", accuracy_of, f);
    if (t->together.voxels)
        report_single(t, "single Dice", "single_dice_foreground", dice_of, f);
}
