/* The end of the records: train on them, and write what came of it. */
#include <math.h>

#include "account/training.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "ledger/source.h"
#include "student.h"
#include "teachers.h"

#include "base/banned.h"

/* What shapes the result besides network, data and start: every option that may not
 * change, by the table, the noise that was worked out from them, and the ledger that it
 * was worked out for. With noise, also what one record can do to a sum:
 * another way of adding up, with another proof, goes on from nothing. */
static enum dpf_status describe_settings(const struct dpf_train *v,
                                         const struct dpf_stage *s, struct dpf_text *out,
                                         struct dpf_error *e)
{
    const struct dpf_noise_plan *noise = &v->training.plan.noise;
    char ledger[DPF_FINGERPRINT_HEX + 1];
    struct dpf_fingerprint f;
    enum dpf_status status = dpf_options_identity(s->info->options, out, e);
    if (status != DPF_OK)
        return status;
    if (noise->multiplier > 0) {
        dpf_fingerprint_init(&f);
        dpf_ledger_fingerprint(&s->out.events, &f);
        dpf_fingerprint_hex(&f, ledger);
        dpf_text_addf(out, "margin %.17g\n", dpf_lot_sum_margin(v->engine.model->span));
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
static enum dpf_status state_cost(const struct dpf_train *v, struct dpf_stage *s,
                                  struct dpf_error *e)
{
    struct dpf_account account;
    struct dpf_account_request request = {.method = DPF_METHOD_BEST, .delta = NAN};
    struct dpf_text table = {0};
    struct dpf_error why;
    enum dpf_status status =
        dpf_training_describe(&v->training, v->delta, s->info->name, &s->out, e);
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

/* All records are in: train. The result stands in v->start. */
static enum dpf_status train(struct dpf_train *v, struct dpf_stage *s,
                             struct dpf_error *e)
{
    enum dpf_status status = dpf_train_prepare(v, s, e);
    if (status != DPF_OK)
        return status;
    if (s->in.is_private && !dpf_train_is_noisy(v))
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            v->clip_l2 > 0
                                ? "gradients were clipped, but no noise was added"
                                : "trained on the records without a mechanism");
    struct dpf_training_budget budget = {v->target_epsilon, v->delta};
    if (s->in.is_private && dpf_train_is_noisy(v))
        status = dpf_training_foresee(&v->training, &budget, &s->out, e);
    if (status != DPF_OK)
        return status;
    if (s->in.is_private && v->seed >= 0) /* an experiment: its target is not refused */
        dpf_ledger_add_seed(&s->out.events, s->info->name);
    struct dpf_text settings = {0};
    status = describe_settings(v, s, &settings, e);
    struct dpf_training_run run = {.training = &v->training,
                                   .checkpoint = v->checkpoint,
                                   .checkpoint_seconds = v->checkpoint_seconds,
                                   .settings = dpf_text_get(&settings),
                                   .given_start = v->model || v->weights,
                                   .delta = s->in.is_private ? v->delta : 0};
    if (status == DPF_OK)
        status = dpf_train_run(s, &run, e);
    if (status == DPF_OK)
        dpf_training_result(&v->training, v->start.parameters);
    if (status == DPF_OK && run.delta > 0)
        status = state_cost(v, s, e);
    dpf_text_release(&settings);
    return status;
}

/* Consumes the text. */
static enum dpf_status write_text(struct dpf_text *take_text, const char *path,
                                  struct dpf_error *e)
{
    enum dpf_status status =
        take_text->failed ? dpf_fail_memory(e)
                          : dpf_write_file(path, take_text->data, take_text->size, e);
    dpf_text_release(take_text);
    return status;
}

/* epoch,step,loss: a line a step. */
static enum dpf_status write_curve(const struct dpf_train *v, struct dpf_error *e)
{
    const struct dpf_training *t = &v->training;
    struct dpf_text text = {0};
    dpf_text_add(&text, "epoch,step,loss\n");
    for (size_t i = 0; i < t->losses_count; i++) {
        dpf_text_addf(&text, "%lld,%zu,", (long long)i / t->steps_per_epoch + 1, i + 1);
        dpf_text_add_real(&text, (double)t->losses[i]);
        dpf_text_add(&text, "\n");
    }
    return write_text(&text, v->curve, e);
}

static void add_cell(struct dpf_text *text, double value)
{
    dpf_text_add(text, ",");
    if (!isnan(value))
        dpf_text_add_real(text, value);
}

/* A line an epoch. */
static enum dpf_status write_history(const struct dpf_train *v, struct dpf_error *e)
{
    const struct dpf_training *t = &v->training;
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
    return write_text(&text, v->history, e);
}

enum dpf_status dpf_train_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_train *v = s->state;
    if (v->teachers)
        return dpf_train_teachers(v, s, e);
    if (v->unlabelled)
        return dpf_train_student(v, s, e);
    enum dpf_status status = train(v, s, e);
    if (status == DPF_OK)
        status = dpf_model_stream_write(s, &v->start, v->export_file, e);
    if (status == DPF_OK && v->curve)
        status = write_curve(v, e);
    if (status == DPF_OK && v->history)
        status = write_history(v, e);
    if (status == DPF_OK && s->in.is_private && (v->curve || v->history))
        dpf_notice("'%s' holds losses of private records without noise, which no epsilon "
                   "covers: keep it with the records",
                   v->curve ? v->curve : v->history);
    return status;
}
