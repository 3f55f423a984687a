#include "run.h"

#include <math.h>
#include <stdio.h>

#include "account/training.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/text.h"
#include "checkpoint.h"

#include "base/banned.h"

/* Nothing where there are no labels to be right about. */
static void format_accuracy(const struct dpf_training *t, double accuracy, char *out,
                            size_t size)
{
    out[0] = '\0';
    if (t->data->labels)
        snprintf(out, size, "  accuracy %.2f %%", 100 * accuracy);
}

/* The proven epsilon of the ledger with the steps so far. */
static void format_cost(const struct dpf_stage *s, const struct dpf_training_run *run,
                        char *out, size_t size)
{
    struct dpf_text text = {0};
    out[0] = '\0';
    if (run->delta == 0)
        return;
    dpf_text_add_epsilon(&text, dpf_training_cost(run->training, run->delta, &s->out));
    snprintf(out, size, "  epsilon %s", dpf_text_get(&text));
    dpf_text_release(&text);
}

static void tell_epoch(const struct dpf_stage *s, const struct dpf_training_run *run,
                       const struct dpf_epoch_report *r)
{
    const struct dpf_training *t = run->training;
    char held[96] = "", watched[96] = "", clipped[48] = "", right[48], cost[48];
    double left = (double)(t->plan.epochs - r->epoch) * (double)t->train_count /
                  fmax(r->examples_per_second, 1e-9);
    if (t->held_count)
        snprintf(held, sizeof held, "  validation %.4f %.2f %%", r->validation_loss,
                 100 * r->validation_accuracy);
    if (t->watched)
        snprintf(watched, sizeof watched, "  watched %.4f %.2f %%", r->watched_loss,
                 100 * r->watched_accuracy);
    if (t->plan.rule != DPF_CLIP_NONE)
        snprintf(clipped, sizeof clipped, "  clipped %.0f %%", 100 * r->clipped);
    format_accuracy(t, r->accuracy, right, sizeof right);
    format_cost(s, run, cost, sizeof cost);
    dpf_notice("epoch %lld/%lld  loss %.4f%s%s%s%s%s  %.0f examples/s  %.0f s left",
               (long long)r->epoch, (long long)t->plan.epochs, r->loss, right, held,
               watched, clipped, cost, r->examples_per_second, left);
}

/* Within a long epoch: how far, and how long it will take. */
static void tell_step(const struct dpf_stage *s, const struct dpf_training_run *run)
{
    const struct dpf_training *t = run->training;
    double done = (double)(t->epoch * t->steps_per_epoch + t->step);
    double all = (double)(t->plan.epochs * t->steps_per_epoch);
    double seen = fmax((double)t->seen, 1),
           rate = (double)t->timed / fmax(t->seconds, 1e-9);
    char right[48], cost[48];
    format_cost(s, run, cost, sizeof cost);
    format_accuracy(t, (double)t->correct / seen / (double)t->data->positions, right,
                    sizeof right);
    dpf_notice("epoch %lld/%lld at %.0f %%  loss %.4f%s%s  %.0f examples/s  %.0f s left",
               (long long)t->epoch + 1, (long long)t->plan.epochs,
               100 * (double)t->step / (double)t->steps_per_epoch, t->loss_sum / seen,
               right, cost, rate, (all - done) * (double)t->plan.lot / fmax(rate, 1e-9));
}

static void tell_runner(struct dpf_stage *s, const struct dpf_training *t)
{
    struct dpf_counters now = {.records = (uint64_t)(t->epoch * t->train_count + t->seen),
                               .total = (uint64_t)(t->plan.epochs * t->train_count),
                               .bytes = s->bytes_in};
    dpf_progress_update(s->progress, &now);
}

static enum dpf_status take_steps(struct dpf_stage *s, const struct dpf_training_run *run,
                                  struct dpf_checkpoint *c, struct dpf_error *e)
{
    struct dpf_training *t = run->training;
    const double every = 10; /* seconds between two lines within an epoch */
    double saved = dpf_clock_seconds(), told = saved;
    while (!dpf_training_done(t)) {
        const struct dpf_epoch_report *report;
        enum dpf_status status = dpf_training_step(t, &report, e);
        if (status != DPF_OK && c && dpf_stop_requested()) {
            struct dpf_error ignored;
            dpf_checkpoint_save(c,
                                &ignored); /* as far as it got: the step was not taken */
        }
        if (status != DPF_OK)
            return status;
        tell_runner(s, t);
        if (report)
            tell_epoch(s, run, report);
        else if (dpf_clock_seconds() - told >= every)
            tell_step(s, run);
        if (report || dpf_clock_seconds() - told >= every)
            told = dpf_clock_seconds();
        if (!c || (!report && dpf_clock_seconds() - saved < run->checkpoint_seconds))
            continue;
        status = dpf_checkpoint_save(c, e);
        if (status != DPF_OK)
            return status;
        saved = dpf_clock_seconds();
    }
    if (t->stopped)
        dpf_notice("stopped after epoch %lld: the best was %lld", (long long)t->epoch,
                   (long long)t->best_epoch);
    if (t->epoch < t->plan.epochs && t->plan.noise.max_steps)
        dpf_notice("stopped after step %lld: the next one would exceed the budget",
                   (long long)t->plan.noise.max_steps);
    return DPF_OK;
}

enum dpf_status dpf_train_run(struct dpf_stage *s, const struct dpf_training_run *run,
                              struct dpf_error *e)
{
    struct dpf_checkpoint c;
    if (!run->checkpoint)
        return take_steps(s, run, NULL, e);
    enum dpf_status status = dpf_checkpoint_open(&c, run, s, e);
    if (status == DPF_OK)
        status = take_steps(s, run, &c, e);
    dpf_checkpoint_release(&c);
    return status;
}
