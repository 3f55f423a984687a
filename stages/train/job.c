#include "job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "account/training.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "exchange/side_stream.h"
#include "ledger/source.h"
#include "nn/initialise.h"
#include "random/seeded.h"

#include "base/banned.h"

static bool is_noisy(const struct dpf_training_job *j)
{
    return j->noise_multiplier > 0 || j->target_epsilon > 0;
}

/* Noise without what bounds its meaning, or beside what would undo it. */
static enum dpf_status check_noise(const struct dpf_training_job *j,
                                   const struct dpf_stage *s, struct dpf_error *e)
{
    if (!is_noisy(j))
        return DPF_OK;
    if (j->clip_l2 == 0)
        return dpf_fail(e, DPF_USAGE,
                        "noise needs a bound on gradients: give '--clip-l2'");
    if (j->delta == 0)
        return dpf_fail(e, DPF_USAGE, "noise needs '--delta'");
    if (!dpf_option_given(&s->parsed, "sampling"))
        return dpf_fail(e, DPF_USAGE,
                        "noise needs '--sampling': poisson lots cost far less than "
                        "shuffled ones");
    if (j->population && strcmp(j->sampling, "poisson") != 0)
        return dpf_fail(e, DPF_USAGE, "option '--population' needs '--sampling poisson'");
    if (j->validation > 0 || j->patience)
        return dpf_fail(
            e, DPF_PRIVACY,
            "validation would use records without a mechanism: hold them back "
            "with split, before training");
    return DPF_OK;
}

/* An option that would change nothing is a mistake that the user should hear of. */
static enum dpf_status refuse_idle(const struct dpf_training_job *j,
                                   const struct dpf_stage *s, struct dpf_error *e)
{
    bool constant = strcmp(j->schedule, "constant") == 0;
    const struct {
        const char *name, *needs;
        bool idle;
    } options_if[] = {
        {"init", "weights that are drawn", j->weights || j->model},
        {"momentum", "--optimiser momentum", strcmp(j->optimiser_kind, "momentum") != 0},
        {"final-rate", "--schedule linear or cosine", constant},
        {"schedule-epochs", "--schedule linear or cosine", constant},
        {"checkpoint-seconds", "--checkpoint", !j->checkpoint},
        {"final-noise-multiplier", "--noise-multiplier", j->noise_multiplier == 0},
        {"final-clip-l2", "--clip-l2", j->clip_l2 == 0},
        {"population", "--noise-multiplier or --target-epsilon", !is_noisy(j)},
        {"delta", "--noise-multiplier or --target-epsilon", !is_noisy(j)},
    };
    for (size_t i = 0; i < sizeof options_if / sizeof *options_if; i++)
        if (options_if[i].idle && dpf_option_given(&s->parsed, options_if[i].name))
            return dpf_fail(e, DPF_USAGE, "option '--%s' needs %s", options_if[i].name,
                            options_if[i].needs);
    return DPF_OK;
}

enum dpf_status dpf_training_job_check(const struct dpf_training_job *j,
                                       const struct dpf_stage *s, struct dpf_error *e)
{
    static const char *const required[] = {"rate", "epochs"};
    if (j->solve)
        return dpf_fail(e, DPF_USAGE,
                        "'--solve' is a stage of its own: 'dpflow solve --what %s'",
                        j->solve);
    for (int i = 0; i < 2; i++)
        if (!dpf_option_given(&s->parsed, required[i]))
            return dpf_fail(e, DPF_USAGE, "option '--%s' is required", required[i]);
    if (!j->arch == !j->model)
        return dpf_fail(e, DPF_USAGE, "give one of --arch and --model");
    if (dpf_option_given(&s->parsed, "clip") && j->clip_l2 == 0)
        return dpf_fail(e, DPF_USAGE, "option '--clip' needs '--clip-l2'");
    if (j->patience && j->validation == 0)
        return dpf_fail(e, DPF_USAGE, "option '--patience' needs '--validation'");
    if (j->weights && j->model)
        return dpf_fail(e, DPF_USAGE, "give one of --weights and --model");
    enum dpf_status status = check_noise(j, s, e);
    return status == DPF_OK ? refuse_idle(j, s, e) : status;
}

/* A file that will be written after hours of work is opened first, for trial. */
static enum dpf_status check_files(const struct dpf_training_job *j, struct dpf_error *e)
{
    /* not the checkpoint: it may be another training's, which holds its own lock */
    const char *const paths[] = {j->export_file, j->curve, j->history};
    enum dpf_status status = DPF_OK;
    if (j->checkpoint &&
        (strcmp(j->checkpoint, "-") == 0 || dpf_endpoint_has_scheme(j->checkpoint)))
        return dpf_fail(e, DPF_USAGE, "a checkpoint is a file, not '%s'", j->checkpoint);
    for (size_t i = 0; status == DPF_OK && i < sizeof paths / sizeof *paths; i++) {
        struct dpf_outfile file = {.fd = -1};
        if (paths[i]) {
            status = dpf_outfile_open(&file, paths[i], e);
            dpf_outfile_abort(&file);
        }
    }
    return status;
}

enum dpf_status dpf_training_job_open(struct dpf_training_job *j, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    enum dpf_status status = check_files(j, e);
    if (status == DPF_OK && is_noisy(j) && s->in.is_private && !j->population &&
        strcmp(j->sampling, "poisson") == 0 && dpf_ledger_count_is_private(&s->in.events))
        status =
            dpf_fail(e, DPF_PRIVACY,
                     "records were chosen by content or label, so how many there are "
                     "is private, and the sampling rate would tell it: give "
                     "'--population N' with a public N");
    s->drops_others = is_noisy(j); /* nothing leaves that the mechanism has not seen */
    if (status == DPF_OK && j->model)
        status = dpf_model_stream_read(&j->start, j->model, NULL, NULL, e);
    if (status == DPF_OK && j->arch && dpf_arch_is_fitted(j->arch)) {
        const struct dpf_field *x = dpf_header_field(&s->in, j->x);
        const struct dpf_field *y = dpf_header_field(&s->in, j->y);
        status = x && y ? dpf_model_fit(&j->start.model, j->arch, x, y, e)
                        : dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'",
                                   x ? j->y : j->x);
    }
    j->need = (struct dpf_dataset_need){
        .model = &j->start.model,
        .x = j->x,
        .y = j->y,
        .loss = (enum dpf_loss)DPF_INDEX(dpf_loss_words, j->loss)};
    j->watched_need = j->need;
    if (j->need.loss == DPF_LOSS_TAYLOR) /* what is watched has classes */
        j->watched_need.loss = DPF_LOSS_LOGISTIC;
    return status == DPF_OK ? dpf_dataset_init(&j->data, &s->in, &j->need, e) : status;
}

/* Records that are only looked at. */
static enum dpf_status begin_watched(void *context, struct dpf_header *h,
                                     struct dpf_error *e)
{
    struct dpf_training_job *j = context;
    if (h->is_private)
        return dpf_fail(e, DPF_PRIVACY,
                        "records to watch have to be public or randomised: their scores "
                        "are told after every epoch");
    return dpf_dataset_init(&j->watched, h, &j->watched_need, e);
}

static enum dpf_status add_watched(void *context, struct dpf_header *h,
                                   struct dpf_batch *b, struct dpf_error *e)
{
    struct dpf_training_job *j = context;
    return dpf_dataset_add(&j->watched, h, b, &j->watched_need, e);
}

static enum dpf_status read_watched(struct dpf_training_job *j, struct dpf_error *e)
{
    const struct dpf_side_stream side = {j, begin_watched, add_watched};
    return dpf_side_stream_read(j->watch, &side, e);
}

/* The weights to start from: the model's, a file's, or drawn. */
static enum dpf_status first_weights(struct dpf_training_job *j, struct dpf_stage *s,
                                     uint64_t seed, struct dpf_error *e)
{
    struct dpf_model_stream *m = &j->start;
    struct dpf_safetensors file = {0};
    enum dpf_status status = DPF_OK;
    if (!m->parameters)
        m->parameters = dpf_calloc(m->model.span + 1, sizeof *m->parameters);
    if (!m->parameters)
        return dpf_fail_memory(e);
    if (j->weights)
        status = dpf_safetensors_read(&file, j->weights, e);
    if (status == DPF_OK && j->weights)
        status = dpf_weights_import(&m->model, &file, j->weights, m->parameters, e);
    if (status == DPF_OK && j->weights)
        dpf_stage_adopt_weights(s, &file);
    if (!j->weights && !j->model)
        dpf_initialise(&m->model, j->init, seed, m->parameters);
    dpf_safetensors_release(&file);
    if (status == DPF_OK)
        dpf_engine_put(&j->engine, m->parameters);
    return status;
}

static enum dpf_status prepare_optimiser(struct dpf_training_job *j, struct dpf_error *e)
{
    struct dpf_optimiser *o = &j->optimiser;
    *o = dpf_optimiser_defaults(
        (enum dpf_optimiser_kind)DPF_INDEX(dpf_optimiser_words, j->optimiser_kind),
        j->rate);
    o->momentum = j->momentum;
    o->l1 = j->l1;
    o->l2 = j->l2;
    o->schedule = (enum dpf_schedule)DPF_INDEX(dpf_schedule_words, j->schedule);
    o->final_rate = j->final_rate;
    return dpf_optimiser_init(o, j->start.model.span, e);
}

static enum dpf_status prepare(struct dpf_training_job *j, struct dpf_stage *s,
                               struct dpf_error *e)
{
    uint64_t seed = j->seed >= 0 ? (uint64_t)j->seed : dpf_random_seed();
    bool clipping = j->clip_l2 > 0;
    struct dpf_engine_setup setup = {.model = &j->start.model,
                                     .kernels = dpf_backend_of(j->backend),
                                     .threads = (int)j->threads,
                                     .microbatch = j->microbatch,
                                     .training = true,
                                     .clipping = clipping};
    struct dpf_training_plan plan = {
        .epochs = j->epochs,
        .lot = j->lot,
        .sampling = (enum dpf_sampling)DPF_INDEX(dpf_sampling_words, j->sampling),
        .loss = j->need.loss,
        .rule = clipping ? DPF_CLIP_FLAT +
                               (enum dpf_clip_rule)DPF_INDEX(dpf_clip_words, j->clip)
                         : DPF_CLIP_NONE,
        .clip_l2 = j->clip_l2,
        .seed = seed,
        .validation = j->validation,
        .patience = j->patience,
        .watched = j->watched.rows ? &j->watched : NULL,
        .noise = {.multiplier = j->noise_multiplier,
                  .final_multiplier = j->final_noise_multiplier,
                  .final_clip_l2 = j->final_clip_l2,
                  .population = j->population,
                  .insecure = j->seed >= 0}};
    struct dpf_training_budget budget = {j->target_epsilon, j->delta};
    if (j->model)
        dpf_stage_adopt_model(s, &j->start.header);
    enum dpf_status status =
        dpf_training_plan_noise(&plan, (int64_t)j->data.rows, &budget, &s->out, e);
    if (status == DPF_OK && is_noisy(j) && j->noise_multiplier == 0)
        dpf_notice("noise multiplier %.6g for epsilon %g at delta %g",
                   plan.noise.multiplier, budget.epsilon, budget.delta);
    if (status == DPF_OK)
        status = dpf_engine_init(&j->engine, &setup, e);
    if (status == DPF_OK)
        status = first_weights(j, s, seed, e);
    if (status == DPF_OK)
        status = prepare_optimiser(j, e);
    if (status == DPF_OK)
        status = dpf_training_init(&j->training, &plan, &j->engine, &j->optimiser,
                                   &j->data, e);
    int64_t over = j->schedule_epochs ? j->schedule_epochs : j->epochs;
    j->optimiser.schedule_steps = (uint64_t)(over * j->training.steps_per_epoch);
    return status;
}

/* What shapes the result besides network, data and start: every option that may not
 * change, by the table, the noise that was worked out from them, and the ledger that it
 * was worked out for. With noise, also what one record can do to a sum:
 * another way of adding up, with another proof, goes on from nothing. */
static enum dpf_status describe_settings(const struct dpf_training_job *j,
                                         const struct dpf_stage *s, struct dpf_text *out,
                                         struct dpf_error *e)
{
    const struct dpf_noise_plan *noise = &j->training.plan.noise;
    char ledger[DPF_FINGERPRINT_HEX + 1];
    struct dpf_fingerprint f;
    enum dpf_status status = dpf_options_identity(s->info->options, out, e);
    if (status != DPF_OK)
        return status;
    if (noise->multiplier > 0) {
        dpf_fingerprint_init(&f);
        dpf_ledger_fingerprint(&s->out.events, &f);
        dpf_fingerprint_hex(&f, ledger);
        dpf_text_addf(out, "margin %.17g\n", dpf_lot_sum_margin(j->engine.model->span));
        dpf_text_addf(out,
                      "noise %.17g to %.17g, clipped to %.17g, population %lld, "
                      "at most %lld steps\n",
                      noise->multiplier, noise->final_multiplier, noise->final_clip_l2,
                      (long long)noise->population, (long long)noise->max_steps);
        dpf_text_addf(out, "ledger %s\n", ledger);
    }
    return out->failed ? dpf_fail_memory(e) : DPF_OK;
}

/* The events of all steps, and what the ledger comes to with them. */
static enum dpf_status state_cost(const struct dpf_training_job *j, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    struct dpf_account account;
    struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    struct dpf_text table = {0};
    struct dpf_error why;
    enum dpf_status status =
        dpf_training_describe(&j->training, j->delta, s->info->name, &s->out, e);
    if (status != DPF_OK)
        return status;
    if (dpf_account_ledger(&account, &s->out, &request, &why) != DPF_OK) {
        dpf_notice("no epsilon can be stated: %s", why.message);
        return DPF_OK;
    }
    dpf_account_table(&account, &table);
    dpf_notice_lines(dpf_text_get(&table));
    dpf_text_release(&table);
    dpf_account_release(&account);
    return DPF_OK;
}

enum dpf_status dpf_training_job_run(struct dpf_training_job *j, struct dpf_stage *s,
                                     struct dpf_error *e)
{
    enum dpf_status status = j->watch ? read_watched(j, e) : DPF_OK;
    if (status == DPF_OK)
        status = prepare(j, s, e);
    if (status != DPF_OK)
        return status;
    if (s->in.is_private && !is_noisy(j))
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            j->clip_l2 > 0
                                ? "gradients were clipped, but no noise was added"
                                : "trained on the records without a mechanism");
    struct dpf_training_budget budget = {j->target_epsilon, j->delta};
    if (s->in.is_private && is_noisy(j))
        status = dpf_training_foresee(&j->training, &budget, &s->out, e);
    if (status != DPF_OK)
        return status;
    if (s->in.is_private && j->seed >= 0) /* an experiment: its target is not refused */
        dpf_ledger_add_seed(&s->out.events, s->info->name);
    struct dpf_text settings = {0};
    status = describe_settings(j, s, &settings, e);
    struct dpf_training_run run = {.training = &j->training,
                                   .checkpoint = j->checkpoint,
                                   .checkpoint_seconds = j->checkpoint_seconds,
                                   .settings = dpf_text_get(&settings),
                                   .given_start = j->model || j->weights,
                                   .delta = s->in.is_private ? j->delta : 0};
    if (status == DPF_OK)
        status = dpf_training_run(s, &run, e);
    if (status == DPF_OK)
        dpf_training_result(&j->training, j->start.parameters);
    if (status == DPF_OK && run.delta > 0)
        status = state_cost(j, s, e);
    dpf_text_release(&settings);
    return status;
}

/* epoch,step,loss: a line a step. */
static enum dpf_status write_curve(const struct dpf_training_job *j, struct dpf_error *e)
{
    const struct dpf_training *t = &j->training;
    struct dpf_text text = {0};
    dpf_text_add(&text, "epoch,step,loss\n");
    for (size_t i = 0; i < t->losses_count; i++) {
        dpf_text_addf(&text, "%lld,%zu,", (long long)i / t->steps_per_epoch + 1, i + 1);
        dpf_text_add_real(&text, (double)t->losses[i]);
        dpf_text_add(&text, "\n");
    }
    enum dpf_status status = text.failed
                                 ? dpf_fail_memory(e)
                                 : dpf_write_file(j->curve, text.data, text.size, e);
    dpf_text_release(&text);
    return status;
}

static void add_cell(struct dpf_text *text, double value)
{
    dpf_text_add(text, ",");
    if (!isnan(value))
        dpf_text_add_real(text, value);
}

/* A line an epoch. */
static enum dpf_status write_history(const struct dpf_training_job *j,
                                     struct dpf_error *e)
{
    const struct dpf_training *t = &j->training;
    struct dpf_text text = {0};
    dpf_text_add(&text, "epoch,loss,accuracy,validation_loss,validation_accuracy,"
                        "watched_loss,watched_accuracy\n");
    for (size_t i = 0; i < t->history_count; i++) {
        const struct dpf_epoch_report *r = &t->history[i];
        const double cells[] = {r->loss,
                                r->accuracy,
                                r->validation_loss,
                                r->validation_accuracy,
                                r->watched_loss,
                                r->watched_accuracy};
        dpf_text_addf(&text, "%lld", (long long)r->epoch);
        for (size_t k = 0; k < sizeof cells / sizeof *cells; k++)
            add_cell(&text, cells[k]);
        dpf_text_add(&text, "\n");
    }
    enum dpf_status status = text.failed
                                 ? dpf_fail_memory(e)
                                 : dpf_write_file(j->history, text.data, text.size, e);
    dpf_text_release(&text);
    return status;
}

enum dpf_status dpf_training_job_emit(struct dpf_training_job *j, struct dpf_stage *s,
                                      struct dpf_error *e)
{
    enum dpf_status status = dpf_model_stream_write(s, &j->start, j->export_file, e);
    if (status == DPF_OK && j->curve)
        status = write_curve(j, e);
    if (status == DPF_OK && j->history)
        status = write_history(j, e);
    if (status == DPF_OK && s->in.is_private && (j->curve || j->history))
        dpf_notice("'%s' holds losses of private records without noise, which no epsilon "
                   "covers: keep it with the records",
                   j->curve ? j->curve : j->history);
    return status;
}

void dpf_training_job_release(struct dpf_training_job *j)
{
    dpf_training_release(&j->training);
    dpf_engine_release(&j->engine);
    dpf_optimiser_release(&j->optimiser);
    dpf_dataset_release(&j->data);
    dpf_dataset_release(&j->watched);
    dpf_model_stream_release(&j->start);
}
