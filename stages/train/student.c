#include "student.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/signals.h"
#include "exchange/side_stream.h"
#include "random/seeded.h"

#include "base/banned.h"

enum { RATIO = 4 };                  /* unlabelled examples for each labelled one */
static const double WEAK = 0.3;      /* part of --shift and --rotate that is slight */
static const double AVERAGE = 0.999; /* of the weights, from step to step */

struct student {
    struct dpf_train *v;
    struct dpf_stage *s;
    struct dpf_dataset unlabelled;
    struct dpf_dataset_need need;
    struct dpf_dataset slight, batch; /* of a step: unlabelled, and what is learned */
    uint32_t *order, *rows;           /* of unlabelled examples; 0, 1, 2, ... */
    float *scores, *mean, *now; /* of `slight`; parameters: averaged, and of a step */
    uint64_t seed, classes;
    int64_t lot, lots, steps; /* labelled, unlabelled a step; steps of an epoch */
    int64_t sure, asked;      /* in this epoch */
};

/* -------------------------------------------------------------------- the other stream
 */

static enum dpf_status begin_unlabelled(void *context, struct dpf_header *h,
                                        struct dpf_error *e)
{
    struct student *c = context;
    if (h->is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "the records without labels are private: they have to be public, "
                        "or to come out of a mechanism");
    dpf_stage_adopt_model(c->s, h); /* the model is of these records, too */
    return dpf_dataset_init(&c->unlabelled, h, &c->need, e);
}

static enum dpf_status add_unlabelled(void *context, struct dpf_header *h,
                                      struct dpf_batch *b, struct dpf_error *e)
{
    struct student *c = context;
    return dpf_dataset_add(&c->unlabelled, h, b, &c->need, e);
}

/* ------------------------------------------------------------------------------- steps
 */

static enum dpf_status room(struct dpf_dataset *d, const struct dpf_dataset *like,
                            int64_t rows, struct dpf_error *e)
{
    *d = *like;
    d->values = NULL;
    d->rows = d->capacity = (uint64_t)rows;
    d->positions = 1;
    d->x = dpf_calloc((size_t)rows, d->record_bytes);
    d->labels = dpf_calloc((size_t)rows, sizeof *d->labels);
    return d->x && d->labels ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status prepare(struct student *c, struct dpf_error *e)
{
    const struct dpf_train *v = c->v;
    uint64_t rows = c->unlabelled.rows;
    size_t span = v->start.model.span;
    c->lot = v->lot < (int64_t)v->data.rows ? v->lot : (int64_t)v->data.rows;
    c->lots = RATIO * c->lot < (int64_t)rows ? RATIO * c->lot : (int64_t)rows;
    if (c->lot < 1 || c->lots < 1)
        return dpf_fail(e, DPF_USAGE, "there are no examples to train on");
    c->steps = ((int64_t)rows + c->lots - 1) / c->lots;
    c->classes = dpf_shape_elements(&v->start.model.nodes[v->start.model.output].shape);
    c->order = dpf_calloc(rows, sizeof *c->order);
    c->rows = dpf_calloc((size_t)(c->lot + c->lots), sizeof *c->rows);
    c->scores = dpf_calloc((size_t)c->lots * c->classes, sizeof *c->scores);
    c->mean = dpf_calloc(span + 1, sizeof *c->mean);
    c->now = dpf_calloc(span + 1, sizeof *c->now);
    if (!c->order || !c->rows || !c->scores || !c->mean || !c->now)
        return dpf_fail_memory(e);
    for (uint32_t i = 0; i < rows; i++)
        c->order[i] = i;
    for (uint32_t i = 0; i < c->lot + c->lots; i++)
        c->rows[i] = i;
    memcpy(c->mean, v->start.parameters, span * sizeof *c->mean);
    enum dpf_status status = room(&c->slight, &c->unlabelled, c->lots, e);
    return status == DPF_OK ? room(&c->batch, &v->data, c->lot + c->lots, e) : status;
}

/* One example into a place of a step's, changed by `share` of what the options allow. */
static void put(const struct student *c, struct dpf_seeded *r, double share,
                const struct dpf_dataset *from, uint64_t row, struct dpf_dataset *to,
                uint64_t place)
{
    struct dpf_copies change = c->v->copies;
    change.shift *= share;
    change.degrees *= share;
    dpf_copies_change(&change, &c->v->start.model, from->dtype, r,
                      from->x + row * from->record_bytes,
                      to->x + place * to->record_bytes);
}

/* The class of the highest score, and how sure the network is of it. */
static uint64_t surest(const float *scores, uint64_t classes, double *sure)
{
    uint64_t best = 0;
    double sum = 0;
    for (uint64_t i = 1; i < classes; i++)
        best = scores[i] > scores[best] ? i : best;
    for (uint64_t i = 0; i < classes; i++)
        sum += exp((double)scores[i] - (double)scores[best]);
    *sure = 1 / sum;
    return best;
}

/* Unlabelled examples that the network is sure of, behind the `filled` labelled ones. */
static enum dpf_status add_sure(struct student *c, struct dpf_seeded *r,
                                const uint32_t *chosen, int64_t count, int64_t *filled,
                                struct dpf_error *e)
{
    struct dpf_train *v = c->v;
    struct dpf_lot lot = {.data = &c->slight, .rows = c->rows, .count = count};
    const struct dpf_lot_values want = {.node = v->start.model.output,
                                        .values = c->scores};
    for (int64_t i = 0; i < count; i++)
        put(c, r, WEAK, &c->unlabelled, chosen[i], &c->slight, (uint64_t)i);
    enum dpf_status status = dpf_engine_values(&v->engine, &lot, &want, e);
    for (int64_t i = 0; status == DPF_OK && i < count; i++) {
        double sure;
        uint64_t label = surest(c->scores + (uint64_t)i * c->classes, c->classes, &sure);
        if (!(sure >= v->confidence))
            continue;
        put(c, r, 1, &c->unlabelled, chosen[i], &c->batch, (uint64_t)*filled);
        c->batch.labels[(*filled)++] = (int32_t)label;
        c->sure++;
    }
    c->asked += count;
    return status;
}

static void average(struct student *c, uint64_t step)
{
    double keep = fmin(AVERAGE, (double)(step + 1) / (double)(step + 10));
    dpf_engine_get(&c->v->engine, c->now);
    for (size_t i = 0; i < c->v->start.model.span; i++)
        c->mean[i] = (float)(keep * (double)c->mean[i] + (1 - keep) * (double)c->now[i]);
}

static enum dpf_status take_step(struct student *c, int64_t epoch, int64_t step,
                                 struct dpf_lot_result *result, struct dpf_error *e)
{
    struct dpf_train *v = c->v;
    uint64_t number = (uint64_t)(epoch * c->steps + step);
    int64_t from = step * c->lots, left = (int64_t)c->unlabelled.rows - from;
    int64_t filled = c->lot;
    struct dpf_seeded r;
    dpf_seeded_init(&r, "student", c->seed, number);
    for (int64_t i = 0; i < c->lot; i++) {
        uint64_t row = dpf_seeded_below(&r, v->data.rows);
        put(c, &r, 1, &v->data, row, &c->batch, (uint64_t)i);
        c->batch.labels[i] = v->data.labels[row];
    }
    enum dpf_status status =
        add_sure(c, &r, c->order + from, left < c->lots ? left : c->lots, &filled, e);
    struct dpf_lot lot = {.data = &c->batch,
                          .rows = c->rows,
                          .count = filled,
                          .loss = v->need.loss,
                          .seed = c->seed,
                          .step = number};
    if (status == DPF_OK)
        status = dpf_engine_gradients(&v->engine, &lot, result, e);
    if (status == DPF_OK && !isfinite(result->loss))
        status = dpf_fail(e, DPF_SYSTEM,
                          "the loss is not a finite number: try a lower '--rate'");
    if (status == DPF_OK)
        status = dpf_engine_update(&v->engine, &v->optimiser, (double)filled, NULL, e);
    if (status == DPF_OK)
        average(c, number);
    result->loss /= (double)filled;
    return status;
}

static enum dpf_status take_epoch(struct student *c, int64_t epoch, struct dpf_error *e)
{
    struct dpf_train *v = c->v;
    double began = dpf_clock_seconds(), loss = 0;
    struct dpf_seeded r;
    enum dpf_status status = DPF_OK;
    dpf_seeded_init(&r, "student order", c->seed, (uint64_t)epoch);
    for (uint64_t i = c->unlabelled.rows - 1; i > 0; i--) {
        uint64_t j = dpf_seeded_below(&r, i + 1);
        uint32_t row = c->order[i];
        c->order[i] = c->order[j];
        c->order[j] = row;
    }
    c->sure = c->asked = 0;
    for (int64_t i = 0; status == DPF_OK && i < c->steps; i++) {
        struct dpf_lot_result result = {0};
        status = dpf_stop_requested()
                     ? dpf_fail_after_peer(e, DPF_SYSTEM, "interrupted by signal %d",
                                           dpf_stop_signal())
                     : take_step(c, epoch, i, &result, e);
        loss += result.loss;
        struct dpf_counters now = {.records = (uint64_t)(epoch * c->steps + i + 1),
                                   .total = (uint64_t)(v->epochs * c->steps)};
        dpf_progress_update(c->s->progress, &now);
    }
    double seconds = dpf_clock_seconds() - began;
    if (status == DPF_OK)
        dpf_notice(
            "epoch %lld/%lld  loss %.4f  sure of %.1f %% of the unlabelled  %.0f s "
            "left",
            (long long)epoch + 1, (long long)v->epochs, loss / (double)c->steps,
            100 * (double)c->sure / (double)c->asked,
            seconds * (double)(v->epochs - epoch - 1));
    return status;
}

static enum dpf_status learn(struct student *c, struct dpf_error *e)
{
    struct dpf_train *v = c->v;
    const struct dpf_engine_setup setup = {.model = &v->start.model,
                                           .kernels = v->kernels,
                                           .threads = (int)v->threads,
                                           .microbatch = v->microbatch,
                                           .training = true,
                                           .every_value = true};
    enum dpf_status status = dpf_engine_init(&v->engine, &setup, e);
    if (status == DPF_OK && !v->model)
        status = dpf_model_stream_first_weights(&v->start, c->s, v->weights, v->init,
                                                c->seed, e);
    if (status == DPF_OK)
        status = dpf_train_optimiser(v, &v->engine, &v->optimiser, e);
    if (status == DPF_OK)
        status = prepare(c, e);
    if (status != DPF_OK)
        return status;
    dpf_engine_put(&v->engine, v->start.parameters);
    int64_t over = v->schedule_epochs ? v->schedule_epochs : v->epochs;
    v->optimiser.schedule_steps = (uint64_t)(over * c->steps);
    for (int64_t i = 0; status == DPF_OK && i < v->epochs; i++)
        status = take_epoch(c, i, e);
    memcpy(v->start.parameters, c->mean, v->start.model.span * sizeof *c->mean);
    return status;
}

enum dpf_status dpf_train_student(struct dpf_train *v, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    struct student c = {.v = v,
                        .s = s,
                        .need = {.model = &v->start.model, .x = v->x},
                        .seed = v->seed >= 0 ? (uint64_t)v->seed : dpf_random_seed()};
    const struct dpf_side_stream side = {&c, begin_unlabelled, add_unlabelled};
    if (v->model)
        dpf_stage_adopt_model(s, &v->start.header);
    enum dpf_status status = dpf_copies_check(&v->data, &v->start.model, e);
    if (status == DPF_OK)
        status = dpf_side_stream_read(v->unlabelled, &side, e);
    if (status == DPF_OK && c.unlabelled.dtype != v->data.dtype)
        status = dpf_fail(e, DPF_USAGE,
                          "records with and without labels have different types");
    if (status == DPF_OK)
        status = learn(&c, e);
    if (status == DPF_OK && s->in.is_private)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "trained on the records without a mechanism");
    if (status == DPF_OK)
        status = dpf_model_stream_write(s, &v->start, v->export_file, e);
    dpf_dataset_release(&c.unlabelled);
    dpf_dataset_release(&c.slight);
    dpf_dataset_release(&c.batch);
    free(c.order);
    free(c.rows);
    free(c.scores);
    free(c.mean);
    free(c.now);
    return status;
}
