/* `train --teachers K`: K networks, each trained on a part of the records that no other
 * has seen, for PATE. The records are in memory once. A network is trained by one thread,
 * and several at the same time, so that results do not depend on the number of threads.
 */
#include "teachers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/progress.h"
#include "base/signals.h"
#include "data/partition.h"
#include "exchange/teachers.h"
#include "ledger/merge.h"
#include "nn/initialise.h"
#include "random/seeded.h"

#include "base/banned.h"

struct school {
    struct dpf_train *v;
    struct dpf_stage *s;
    uint64_t seed;
    size_t teachers;
    uint32_t *rows;     /* of all parts, one behind the other */
    size_t *starts;     /* of each part in `rows`, and the end of the last */
    float **parameters; /* of each teacher, when it is trained */
    atomic_size_t next; /* that nobody trains yet */
    atomic_size_t done;
    atomic_bool failed;
    double told;              /* when progress was told last */
    struct dpf_error *errors; /* of each thread */
};

/* Sort rows by their part, in order within each. */
static enum dpf_status divide(struct school *c, struct dpf_error *e)
{
    uint64_t rows = c->v->data.rows;
    uint32_t *part_of = dpf_calloc(rows + 1, sizeof *part_of);
    size_t *fill = dpf_calloc(c->teachers + 1, sizeof *fill);
    c->rows = dpf_calloc(rows + 1, sizeof *c->rows);
    c->starts = dpf_calloc(c->teachers + 1, sizeof *c->starts);
    c->parameters = dpf_calloc(c->teachers + 1, sizeof *c->parameters);
    enum dpf_status status = part_of && fill && c->rows && c->starts && c->parameters
                                 ? dpf_partition_assign(c->teachers, 0, rows, part_of, e)
                                 : dpf_fail_memory(e);
    for (uint64_t i = 0; status == DPF_OK && i < rows; i++)
        c->starts[part_of[i] + 1]++;
    for (size_t k = 0; status == DPF_OK && k < c->teachers; k++) {
        if (c->starts[k + 1] == 0)
            status =
                dpf_fail(e, DPF_USAGE,
                         "there are fewer records than teachers: part %zu is empty", k);
        c->starts[k + 1] += c->starts[k];
        fill[k] = c->starts[k];
    }
    for (uint64_t i = 0; status == DPF_OK && i < rows; i++)
        c->rows[fill[part_of[i]]++] = (uint32_t)i;
    free(part_of);
    free(fill);
    return status;
}

/* One teacher, from its first weights to its last. */
static enum dpf_status teach(struct school *c, struct dpf_engine *engine, size_t number,
                             struct dpf_error *e)
{
    struct dpf_train *v = c->v;
    const struct dpf_model *m = &v->start.model;
    struct dpf_optimiser optimiser = {.count = 0};
    struct dpf_training training = {.epoch = 0};
    struct dpf_dataset more = {.rows = 0};
    struct dpf_seeded draw;
    dpf_seeded_init(&draw, "teacher", c->seed, number);
    struct dpf_training_plan plan = dpf_train_plan(v, dpf_seeded_u64(&draw));
    float *parameters = dpf_calloc(m->span + 1, sizeof *parameters);
    if (!parameters)
        return dpf_fail_memory(e);
    c->parameters[number] = parameters;
    const uint32_t *rows = c->rows + c->starts[number];
    int64_t count = (int64_t)(c->starts[number + 1] - c->starts[number]);
    if (!v->copies.copies) {
        plan.rows = rows;
        plan.row_count = count;
    }
    if (v->model)
        memcpy(parameters, v->start.parameters, m->span * sizeof *parameters);
    else
        dpf_initialise(m, v->init, plan.seed, parameters);
    dpf_engine_put(engine, parameters);
    enum dpf_status status = dpf_train_optimiser(v, engine, &optimiser, e);
    if (status == DPF_OK && v->copies.copies)
        status =
            dpf_copies_make(&v->copies, &v->data, m, rows, count, plan.seed, &more, e);
    if (status == DPF_OK)
        status = dpf_training_init(&training, &plan, engine, &optimiser,
                                   v->copies.copies ? &more : &v->data, e);
    int64_t over = v->schedule_epochs ? v->schedule_epochs : v->epochs;
    optimiser.schedule_steps = (uint64_t)(over * training.steps_per_epoch);
    while (status == DPF_OK && !dpf_training_done(&training) &&
           !atomic_load(&c->failed)) {
        const struct dpf_epoch_report *report;
        status = dpf_training_step(&training, &report, e);
    }
    if (status == DPF_OK)
        dpf_training_result(&training, parameters);
    dpf_training_release(&training);
    dpf_optimiser_release(&optimiser);
    dpf_dataset_release(&more);
    return status == DPF_OK ? DPF_OK : dpf_error_prefix(e, status, "teacher %zu", number);
}

static void tell(struct school *c, size_t done)
{
    struct dpf_counters now = {.records = done, .total = c->teachers};
    dpf_progress_update(c->s->progress, &now);
    if (dpf_clock_seconds() - c->told < 10)
        return;
    c->told = dpf_clock_seconds();
    dpf_notice("%zu of %zu teachers are trained", done, c->teachers);
}

static void work(void *context, int number)
{
    struct school *c = context;
    struct dpf_train *v = c->v;
    struct dpf_error *e = &c->errors[number];
    struct dpf_engine engine;
    const struct dpf_engine_setup setup = {.model = &v->start.model,
                                           .kernels = v->kernels,
                                           .threads = 1,
                                           .microbatch = v->microbatch,
                                           .training = true,
                                           .clipping = v->clip_l2 > 0};
    enum dpf_status status = dpf_engine_init(&engine, &setup, e);
    bool made = status == DPF_OK;
    for (size_t i; status == DPF_OK && !atomic_load(&c->failed) &&
                   (i = atomic_fetch_add(&c->next, 1)) < c->teachers;) {
        status = dpf_stop_requested()
                     ? dpf_fail_after_peer(e, DPF_SYSTEM, "interrupted by signal %d",
                                           dpf_stop_signal())
                     : teach(c, &engine, i, e);
        size_t done = atomic_fetch_add(&c->done, 1) + 1;
        if (number == 0 && status == DPF_OK)
            tell(c, done);
    }
    if (made)
        dpf_engine_release(&engine);
    if (status != DPF_OK) {
        e->status = status;
        atomic_store(&c->failed, true);
    }
}

static enum dpf_status teach_all(struct school *c, struct dpf_error *e)
{
    int threads = c->v->threads > 0 ? (int)c->v->threads : dpf_processors();
    struct dpf_thread_pool pool;
    if ((size_t)threads > c->teachers)
        threads = (int)c->teachers;
    c->errors = dpf_calloc((size_t)threads, sizeof *c->errors);
    enum dpf_status status =
        c->errors ? dpf_thread_pool_init(&pool, threads, e) : dpf_fail_memory(e);
    if (status != DPF_OK)
        return status;
    dpf_thread_pool_run(&pool, work, c);
    dpf_thread_pool_release(&pool);
    for (int i = 0; i < threads && status == DPF_OK; i++)
        if (c->errors[i].status != DPF_OK) {
            *e = c->errors[i];
            status = e->status;
        }
    return status;
}

/* A branch for each teacher: the events of the records, and which part of them it had. */
static enum dpf_status describe(struct school *c, struct dpf_error *e)
{
    struct dpf_stage *s = c->s;
    struct dpf_values branches = {0};
    char **names = dpf_part_names(c->teachers);
    uint64_t *ids = dpf_calloc(c->teachers, sizeof *ids);
    uint64_t group = (uint64_t)c->v->copies.copies + 1;
    enum dpf_status status = names && ids ? DPF_OK : dpf_fail_memory(e);
    for (size_t i = 0; status == DPF_OK && i < c->teachers; i++) {
        struct dpf_values events = {0};
        const struct dpf_partition_event part = {.parts = c->teachers,
                                                 .part = i,
                                                 .by = "index",
                                                 .stability = {.replace_one = 1},
                                                 .disjoint_under = DPF_REPLACE_ONE};
        dpf_values_append(&events, &s->out.events);
        dpf_ledger_add_partition(&events, s->info->name, &part, &s->in);
        if (group > 1)
            dpf_ledger_add_augmentation(&events, s->info->name, group, "index",
                                        (struct dpf_stability){.replace_one = group});
        dpf_ledger_add_branch(&branches, &events);
        dpf_values_release(&events);
        ids[i] = i;
    }
    const struct dpf_teachers_event event = {
        .branches = &branches, .names = (const char *const *)names, .ids = ids};
    if (status == DPF_OK) {
        dpf_values_release(&s->out.events);
        dpf_ledger_add_teachers(&s->out.events, s->info->name, &event);
    }
    if (status == DPF_OK && !dpf_buffer_ok(&s->out.events.bytes))
        status = dpf_fail_memory(e);
    dpf_values_release(&branches);
    dpf_names_free(names, c->teachers);
    free(ids);
    return status;
}

static enum dpf_status send_models(struct school *c, struct dpf_error *e)
{
    struct dpf_stage *s = c->s;
    enum dpf_status status = dpf_stage_begin(s, e);
    for (size_t i = 0; status == DPF_OK && i < c->teachers; i++) {
        struct dpf_safetensors weights = {0};
        status = dpf_model_stream_encode(&s->writer.encoder, &c->v->start.model,
                                         c->parameters[i], 0, &weights, e);
        if (status == DPF_OK)
            status = dpf_stream_write_encoded(&s->writer, e);
        dpf_safetensors_release(&weights);
    }
    return status;
}

enum dpf_status dpf_train_teachers(struct dpf_train *v, struct dpf_stage *s,
                                   struct dpf_error *e)
{
    struct school c = {.v = v,
                       .s = s,
                       .teachers = (size_t)v->teachers,
                       .seed = v->seed >= 0 ? (uint64_t)v->seed : dpf_random_seed(),
                       .told = dpf_clock_seconds()};
    if (v->model)
        dpf_stage_adopt_model(s, &v->start.header);
    enum dpf_status status =
        v->copies.copies ? dpf_copies_check(&v->data, &v->start.model, e) : DPF_OK;
    if (status == DPF_OK)
        status = divide(&c, e);
    if (status == DPF_OK)
        status = teach_all(&c, e);
    if (status == DPF_OK)
        status = describe(&c, e);
    if (status == DPF_OK)
        status = send_models(&c, e);
    for (size_t i = 0; c.parameters && i < c.teachers; i++)
        free(c.parameters[i]);
    free(c.parameters);
    free(c.rows);
    free(c.starts);
    free(c.errors);
    return status;
}
