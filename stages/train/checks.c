/* Whether the options of `train` go together. */
#include <string.h>

#include "train.h"

#include "base/banned.h"

bool dpf_train_is_noisy(const struct dpf_train *v)
{
    return v->noise_multiplier > 0 || v->target_epsilon > 0;
}

/* Noise without what bounds its meaning, or beside what would undo it. */
static enum dpf_status check_noise(const struct dpf_train *v, const struct dpf_stage *s,
                                   struct dpf_error *e)
{
    if (!dpf_train_is_noisy(v))
        return DPF_OK;
    if (v->clip_l2 == 0)
        return dpf_fail(e, DPF_USAGE,
                        "noise needs a bound on gradients: give '--clip-l2'");
    if (v->delta == 0)
        return dpf_fail(e, DPF_USAGE, "noise needs '--delta'");
    if (!dpf_option_given(&s->parsed, "sampling"))
        return dpf_fail(e, DPF_USAGE,
                        "noise needs '--sampling': poisson lots cost far less than "
                        "shuffled ones");
    if (v->population && strcmp(v->sampling, "poisson") != 0)
        return dpf_fail(e, DPF_USAGE, "option '--population' needs '--sampling poisson'");
    if (v->validation > 0 || v->patience)
        return dpf_fail(e, DPF_PRIVACY,
                        "validation would use records without noise: hold them back with "
                        "'split' before training");
    return DPF_OK;
}

/* Copies are made once, of all records. */
static enum dpf_status check_copies(const struct dpf_train *v, struct dpf_error *e)
{
    const struct {
        const char *name;
        bool given;
    } beside[] = {{"unlabelled", v->unlabelled != NULL},
                  {"validation", v->validation > 0},
                  {"checkpoint", v->checkpoint != NULL}};
    if (!v->copies.copies || v->teachers)
        return DPF_OK;
    if (dpf_train_is_noisy(v))
        return dpf_fail(e, DPF_PRIVACY,
                        "'--copies' would make several records of one for the noise: use "
                        "'augment', which says so in the ledger");
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (beside[i].given)
            return dpf_fail(e, DPF_USAGE, "option '--copies' does not go with '--%s'",
                            beside[i].name);
    return DPF_OK;
}

/* An option that would change nothing is a mistake that the user should hear of. */
static enum dpf_status refuse_idle(const struct dpf_train *v, const struct dpf_stage *s,
                                   struct dpf_error *e)
{
    bool constant = strcmp(v->schedule, "constant") == 0;
    const struct {
        const char *name, *needs;
        bool idle;
    } options_if[] = {
        {"init", "weights that are drawn", v->weights || v->model},
        {"momentum", "--optimiser momentum or nesterov",
         strcmp(v->optimiser_kind, "momentum") != 0 &&
             strcmp(v->optimiser_kind, "nesterov") != 0},
        {"final-rate", "--schedule linear or cosine", constant},
        {"schedule-epochs", "--schedule linear or cosine", constant},
        {"checkpoint-seconds", "--checkpoint", !v->checkpoint},
        {"final-noise-multiplier", "--noise-multiplier", v->noise_multiplier == 0},
        {"final-clip-l2", "--clip-l2", v->clip_l2 == 0},
        {"population", "--noise-multiplier or --target-epsilon", !dpf_train_is_noisy(v)},
        {"delta", "--noise-multiplier or --target-epsilon", !dpf_train_is_noisy(v)},
        {"shift", "--copies or --unlabelled", !v->copies.copies && !v->unlabelled},
        {"rotate", "--copies or --unlabelled", !v->copies.copies && !v->unlabelled},
        {"flip", "--copies or --unlabelled", !v->copies.copies && !v->unlabelled},
        {"confidence", "--unlabelled", !v->unlabelled},
    };
    for (size_t i = 0; i < sizeof options_if / sizeof *options_if; i++)
        if (options_if[i].idle && dpf_option_given(&s->parsed, options_if[i].name))
            return dpf_fail(e, DPF_USAGE, "option '--%s' needs %s", options_if[i].name,
                            options_if[i].needs);
    return DPF_OK;
}

/* What belongs to the usual training alone. */
static enum dpf_status check_kind(const struct dpf_train *v, const struct dpf_stage *s,
                                  struct dpf_error *e)
{
    static const char *const usual[] = {
        "noise-multiplier", "target-epsilon", "validation", "patience",
        "checkpoint",       "watch",          "history",    "curve",
        "clip-l2",          "export",         "weights"};
    enum { OF_STUDENTS = 2 }; /* the last ones go with --unlabelled */
    size_t count = sizeof usual / sizeof *usual - (v->teachers ? 0 : OF_STUDENTS);
    if (v->teachers && v->unlabelled)
        return dpf_fail(e, DPF_USAGE, "give one of --teachers and --unlabelled");
    for (size_t i = 0; (v->teachers || v->unlabelled) && i < count; i++)
        if (dpf_option_given(&s->parsed, usual[i]))
            return dpf_fail(e, DPF_USAGE, "option '--%s' does not go with '--%s'",
                            usual[i], v->teachers ? "teachers" : "unlabelled");
    if (v->unlabelled && strcmp(v->loss, "cross-entropy") != 0)
        return dpf_fail(e, DPF_USAGE, "'--unlabelled' needs '--loss cross-entropy'");
    return DPF_OK;
}

/* An energy model has no target and no loss, and nothing clips its gradients. */
static enum dpf_status check_energy(const struct dpf_train *v, const struct dpf_stage *s,
                                    struct dpf_error *e)
{
    static const char *const others[] = {"target",           "loss",           "clip-l2",
                                         "noise-multiplier", "target-epsilon", "teachers",
                                         "unlabelled",       "watch",          "copies"};
    static const char *const own[] = {"gibbs", "persistent"};
    for (size_t i = 0; !v->energy_node && i < sizeof own / sizeof *own; i++)
        if (dpf_option_given(&s->parsed, own[i]))
            return dpf_fail(e, DPF_USAGE, "option '--%s' needs '--energy'", own[i]);
    for (size_t i = 0; v->energy_node && i < sizeof others / sizeof *others; i++)
        if (dpf_option_given(&s->parsed, others[i]))
            return dpf_fail(e, DPF_USAGE, "option '--%s' does not go with '--energy'",
                            others[i]);
    return v->persistent && v->checkpoint
               ? dpf_fail(
                     e, DPF_USAGE,
                     "'--persistent' does not go with '--checkpoint', which does not "
                     "hold chains")
               : DPF_OK;
}

enum dpf_status dpf_train_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_train *v = s->state;
    static const char *const required[] = {"rate", "epochs"};
    if (v->solve)
        return dpf_fail(e, DPF_USAGE,
                        "'--solve' is a stage of its own: 'dpflow solve --what %s'",
                        v->solve);
    enum dpf_status found = dpf_backend_find(v->backend, &v->kernels, e);
    if (found != DPF_OK)
        return found;
    for (int i = 0; i < 2; i++)
        if (!dpf_option_given(&s->parsed, required[i]))
            return dpf_fail(e, DPF_USAGE, "option '--%s' is required", required[i]);
    if (!v->arch == !v->model)
        return dpf_fail(e, DPF_USAGE, "give one of --arch and --model");
    if (dpf_option_given(&s->parsed, "clip") && v->clip_l2 == 0)
        return dpf_fail(e, DPF_USAGE, "option '--clip' needs '--clip-l2'");
    if (dpf_option_given(&s->parsed, "noise-unit") &&
        (strcmp(v->clip, "layer") != 0 || v->noise_multiplier == 0))
        return dpf_fail(e, DPF_USAGE,
                        "option '--noise-unit' needs '--clip layer' and "
                        "'--noise-multiplier'");
    if (v->patience && v->validation == 0)
        return dpf_fail(e, DPF_USAGE, "option '--patience' needs '--validation'");
    if (v->weights && v->model)
        return dpf_fail(e, DPF_USAGE, "give one of --weights and --model");
    enum dpf_status status = check_energy(v, s, e);
    if (status == DPF_OK)
        status = check_kind(v, s, e);
    if (status == DPF_OK)
        status = check_noise(v, s, e);
    if (status == DPF_OK)
        status = check_copies(v, e);
    if (status == DPF_OK)
        status = refuse_idle(v, s, e);
    return status == DPF_OK && v->arch && !dpf_arch_is_fitted(v->arch)
               ? dpf_model_from_option(&v->start.model, v->arch, e)
               : status;
}
