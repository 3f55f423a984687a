/* What a training takes: the network and its first weights, the records, engine,
 * optimiser and plan. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/training.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "exchange/side_stream.h"
#include "ledger/source.h"
#include "random/seeded.h"
#include "train.h"

#include "base/banned.h"

/* A file that will be written after hours of work is opened first, for trial. */
static enum dpf_status check_files(const struct dpf_train *v, struct dpf_error *e)
{
    /* not the checkpoint: it may be another training's, which holds its own lock */
    const char *const paths[] = {v->export_file, v->curve, v->history};
    enum dpf_status status = DPF_OK;
    if (v->checkpoint &&
        (strcmp(v->checkpoint, "-") == 0 || dpf_endpoint_has_scheme(v->checkpoint)))
        return dpf_fail(e, DPF_USAGE, "a checkpoint is a file, not '%s'", v->checkpoint);
    for (size_t i = 0; status == DPF_OK && i < sizeof paths / sizeof *paths; i++) {
        struct dpf_outfile file = {.fd = -1};
        if (paths[i]) {
            status = dpf_outfile_open(&file, paths[i], e);
            dpf_outfile_abort(&file);
        }
    }
    return status;
}

enum dpf_status dpf_train_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_train *v = s->state;
    dpf_header_drop_fields(&s->out);
    s->out_deferred = true;
    enum dpf_status status = check_files(v, e);
    if (status == DPF_OK && dpf_train_is_noisy(v) && s->in.is_private && !v->population &&
        strcmp(v->sampling, "poisson") == 0 && dpf_ledger_count_is_private(&s->in.events))
        status = dpf_fail(e, DPF_PRIVACY,
                          "records were chosen by content or label, so their number is "
                          "private, and the sampling rate would reveal it: give "
                          "'--population N' with a public N");
    if (status == DPF_OK && dpf_train_is_noisy(v))
        status = dpf_ledger_refuse_answers(&s->in.events, e);
    s->drops_others =
        dpf_train_is_noisy(v); /* nothing leaves that the mechanism has not seen */
    if (status == DPF_OK && v->model)
        status = dpf_model_stream_read(&v->start, v->model, NULL, NULL, e);
    if (status == DPF_OK && v->arch && dpf_arch_is_fitted(v->arch)) {
        const struct dpf_field *x = dpf_header_field(&s->in, v->x);
        const struct dpf_field *y = dpf_header_field(&s->in, v->y);
        status = x && y ? dpf_model_fit(&v->start.model, v->arch, x, y, e)
                        : dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'",
                                   x ? v->y : v->x);
    }
    v->need = (struct dpf_dataset_need){.model = &v->start.model,
                                        .x = v->x,
                                        .y = v->energy_node ? NULL : v->y,
                                        .loss = dpf_loss_find(v->loss)};
    if (status == DPF_OK && v->energy_node)
        status = dpf_energy_find(&v->start.model, v->energy_node, &v->energy.node, e);
    v->watched_need = v->need;
    /* what is watched has classes */
    v->watched_need.loss = dpf_loss_for_labels(v->need.loss);
    return status == DPF_OK ? dpf_dataset_init(&v->data, &s->in, &v->need, e) : status;
}

enum dpf_status dpf_train_fingerprint(struct dpf_stage *s, struct dpf_fingerprint *f,
                                      struct dpf_error *e)
{
    const struct dpf_train *v = s->state;
    (void)e;
    if (v->start.model.text) /* --arch may be a file */
        dpf_fingerprint_add_string(f, v->start.model.text);
    return DPF_OK;
}

enum dpf_status dpf_train_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_train *v = s->state;
    return dpf_dataset_add(&v->data, &s->in, b, &v->need, e);
}

/* Records that are only looked at. */
static enum dpf_status begin_watched(void *context, struct dpf_header *h,
                                     struct dpf_error *e)
{
    struct dpf_train *v = context;
    if (h->is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "records to watch have to be public or randomised: their scores "
                        "are printed after every epoch");
    return dpf_dataset_init(&v->watched, h, &v->watched_need, e);
}

static enum dpf_status add_watched(void *context, struct dpf_header *h,
                                   struct dpf_batch *b, struct dpf_error *e)
{
    struct dpf_train *v = context;
    return dpf_dataset_add(&v->watched, h, b, &v->watched_need, e);
}

static enum dpf_status read_watched(struct dpf_train *v, struct dpf_error *e)
{
    const struct dpf_side_stream side = {v, begin_watched, add_watched};
    return dpf_side_stream_read(v->watch, &side, e);
}

enum dpf_status dpf_train_optimiser(const struct dpf_train *v,
                                    const struct dpf_engine *engine,
                                    struct dpf_optimiser *o, struct dpf_error *e)
{
    *o = dpf_optimiser_defaults(dpf_step_kind_find(v->optimiser_kind), v->rate);
    o->momentum = v->momentum;
    o->l1 = v->l1;
    o->l2 = v->l2;
    o->schedule = dpf_schedule_find(v->schedule);
    o->final_rate = v->final_rate;
    return dpf_optimiser_init(o, engine->kernels, engine->workers[0].context,
                              v->start.model.span, e);
}

/* A multiplier in units of one layer's clip norm C is smaller in units of the
 * sensitivity of all layers together, C sqrt L; papers that pass over this claim the
 * former. */
static double layers_share(const struct dpf_train *v)
{
    return strcmp(v->noise_unit, "layer") == 0
               ? sqrt((double)dpf_model_layers(&v->start.model))
               : 1;
}

struct dpf_training_plan dpf_train_plan(const struct dpf_train *v, uint64_t seed)
{
    double share = layers_share(v);
    return (struct dpf_training_plan){
        .epochs = v->epochs,
        .lot = v->lot,
        .sampling =
            dpf_sampling_choices[DPF_INDEX(dpf_sampling_choices, v->sampling)].sampling,
        .loss = v->need.loss,
        .rule = v->clip_l2 > 0
                    ? dpf_clip_choices[DPF_INDEX(dpf_clip_choices, v->clip)].rule
                    : DPF_CLIP_NONE,
        .clip_l2 = v->clip_l2,
        .seed = seed,
        .validation = v->validation,
        .patience = v->patience,
        .watched = v->watched.rows ? &v->watched : NULL,
        .noise = {.multiplier = v->noise_multiplier / share,
                  .final_multiplier = v->final_noise_multiplier / share,
                  .claimed_share = share > 1 ? share : 0,
                  .final_clip_l2 = v->final_clip_l2,
                  .population = v->population,
                  .insecure = v->seed >= 0}};
}

/* The records and their copies, in the place of the records. */
static enum dpf_status add_copies(struct dpf_train *v, uint64_t seed, struct dpf_error *e)
{
    struct dpf_dataset more;
    uint32_t *rows = dpf_calloc(v->data.rows + 1, sizeof *rows);
    enum dpf_status status =
        rows ? dpf_copies_check(&v->data, &v->start.model, e) : dpf_fail_memory(e);
    for (uint32_t i = 0; status == DPF_OK && i < v->data.rows; i++)
        rows[i] = i;
    if (status == DPF_OK)
        status = dpf_copies_make(&v->copies, &v->data, &v->start.model, rows,
                                 (int64_t)v->data.rows, seed, &more, e);
    free(rows);
    if (status != DPF_OK)
        return status;
    dpf_dataset_release(&v->data);
    v->data = more;
    return DPF_OK;
}

enum dpf_status dpf_train_prepare(struct dpf_train *v, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    uint64_t seed = v->seed >= 0 ? (uint64_t)v->seed : dpf_random_seed();
    struct dpf_engine_setup setup = {.model = &v->start.model,
                                     .kernels = v->kernels,
                                     .threads = (int)v->threads,
                                     .microbatch = v->microbatch,
                                     .training = true,
                                     .clipping = v->clip_l2 > 0};
    struct dpf_training_budget budget = {v->target_epsilon, v->delta};
    enum dpf_status status = v->watch ? read_watched(v, e) : DPF_OK;
    if (status == DPF_OK && v->copies.copies)
        status = add_copies(v, seed, e);
    if (status != DPF_OK)
        return status;
    struct dpf_training_plan plan = dpf_train_plan(v, seed);
    v->energy.steps = v->gibbs;
    if (v->energy_node)
        plan.energy = &v->energy;
    if (v->persistent)
        status = dpf_energy_chains(
            &v->energy, &v->start.model,
            v->lot < (int64_t)v->data.rows ? v->lot : (int64_t)v->data.rows, e);
    if (status != DPF_OK)
        return status;
    if (v->model)
        dpf_stage_adopt_model(s, &v->start.header);
    status = dpf_training_plan_noise(&plan, (int64_t)v->data.rows, &budget, &s->out, e);
    if (status == DPF_OK && dpf_train_is_noisy(v) && v->noise_multiplier == 0)
        dpf_notice("noise multiplier %.6g for epsilon %g at delta %g",
                   plan.noise.multiplier, budget.epsilon, budget.delta);
    if (status == DPF_OK)
        status = dpf_engine_init(&v->engine, &setup, e);
    if (status == DPF_OK && !v->model)
        status =
            dpf_model_stream_first_weights(&v->start, s, v->weights, v->init, seed, e);
    if (status == DPF_OK)
        status = dpf_train_optimiser(v, &v->engine, &v->optimiser, e);
    if (status == DPF_OK)
        dpf_engine_put(&v->engine, v->start.parameters);
    if (status == DPF_OK)
        status = dpf_training_init(&v->training, &plan, &v->engine, &v->optimiser,
                                   &v->data, e);
    int64_t over = v->schedule_epochs ? v->schedule_epochs : v->epochs;
    v->optimiser.schedule_steps = (uint64_t)(over * v->training.steps_per_epoch);
    return status;
}

void dpf_train_release(struct dpf_stage *s)
{
    struct dpf_train *v = s->state;
    dpf_training_release(&v->training);
    dpf_optimiser_release(&v->optimiser); /* its memory is the engine's backend's */
    dpf_engine_release(&v->engine);
    dpf_dataset_release(&v->data);
    dpf_dataset_release(&v->watched);
    dpf_energy_release(&v->energy);
    dpf_model_stream_release(&v->start);
}
