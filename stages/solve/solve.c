/* solve: a model without training on records: from released coefficients, or in closed
 * form from records. */
#include "solve.h"

#include <stdlib.h>
#include <string.h>

#include "account/code_noise.h"
#include "nn/energy_filters.h"
#include "nn/initialise.h"

#include "base/banned.h"

static struct dpf_solve state = {.repair = "ridge",
                                 .calibration = "exact",
                                 .ridge = 1,
                                 .prior_weight = 1,
                                 .init = "he-normal",
                                 .filters = "orthogonal",
                                 .epochs = 100,
                                 .rate = 1};

static const struct dpf_solver solvers[] = {
    {"quadratic",
     {"repair", "ridge", "prior", "prior-weight"},
     dpf_solve_form_check,
     dpf_solve_form_open,
     dpf_solve_form_add,
     dpf_solve_form_finish},
    {"components",
     {"components", "whiten", "field"},
     dpf_solve_components_check,
     dpf_solve_components_open,
     dpf_solve_components_add,
     dpf_solve_components_finish},
    {"mask-components",
     {"components", "field", "radius", "epsilon", "delta", "teachers", "queries",
      "calibration", "shrink"},
     dpf_solve_masks_check,
     dpf_solve_masks_open,
     dpf_solve_masks_add,
     dpf_solve_masks_finish},
    {"energy",
     {"arch", "model", "init", "node", "filters", "epochs", "rate", "l1", "seed",
      "radius", "whiten"},
     dpf_solve_energy_check,
     dpf_solve_energy_open,
     dpf_solve_energy_add,
     dpf_solve_energy_finish},
    {.name = NULL}};

static const struct dpf_option options[] = {
    {.name = "what",
     .kind = DPF_KIND_CHOICE,
     .target = &state.what,
     DPF_CHOICES(solvers),
     .arg = "WHAT",
     .help =
         "quadratic: the minimum of the quadratic form that 'perturb' or 'aggregate' "
         "wrote; components: the principal components of the records; mask-components: "
         "those of masks, as an encoder and its decoder (PCA-PATE); energy: the filters "
         "of "
         "a layer, from what 'perturb --release energy' wrote",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_CHOICE(
        "repair", &state.repair, dpf_repair_words, "HOW",
        "quadratic, for a noisy form that may have no minimum: ridge adds a ridge and "
        "drops directions that still have none; none solves the form as it is (ridge)"),
    DPF_OPT_REAL("ridge", &state.ridge, "R", 0, 1e6,
                 "quadratic: size of the ridge, as a multiple of the noise's largest "
                 "eigenvalue (1)"),
    DPF_OPT_ENDPOINT("prior", &state.prior, "STREAM",
                     "quadratic: a form of public records, added to the one that is read",
                     0),
    DPF_OPT_REAL("prior-weight", &state.prior_weight, "W", 0, 1e9,
                 "quadratic: weight of each record of --prior (1)"),
    DPF_OPT_INT("components", &state.component_count, "K", 1, 8192,
                "components: number of components (required); mask-components: the most "
                "of them"),
    DPF_OPT_REAL(
        "whiten", &state.whiten, "W", 0, 1,
        "components, energy: divide each by its standard deviation to the power W "
        "(0)"),
    DPF_OPT_STRING("field", &state.field, "NAME",
                   "the field with the records (x) or masks (mask)"),
    DPF_OPT_REAL(
        "radius", &state.radius, "R", 1e-6, 1e6,
        "mask-components: codes are divided by R (the largest norm of the masks' "
        "codes); energy: the norm of a filter, at most (1)"),
    DPF_OPT_REAL("epsilon", &state.epsilon, "E", 1e-6, 1e4,
                 "mask-components: choose how many components for the noise that "
                 "'aggregate --codes' will add at this epsilon"),
    DPF_OPT_REAL("delta", &state.delta, "D", 1e-300, 0.5,
                 "mask-components: the delta of --epsilon"),
    DPF_OPT_INT("teachers", &state.teachers, "K", 1, 1 << 20,
                "mask-components: the number of teachers, for --epsilon"),
    DPF_OPT_INT("queries", &state.queries, "N", 1, 1e9,
                "mask-components: the number of queries, for --epsilon (that of masks)"),
    DPF_OPT_CHOICE("calibration", &state.calibration, dpf_calibrations, "HOW",
                   "mask-components: how --epsilon gives the noise, as in 'aggregate' "
                   "(exact)"),
    DPF_OPT_FLAG("shrink", &state.shrink,
                 "mask-components: decode by the mean of masks given the noisy code"),
    DPF_OPT_STRING("arch", &state.arch, "NAME|FILE",
                   "energy: the network that has the layer"),
    DPF_OPT_ENDPOINT("model", &state.model, "STREAM",
                     "energy: the same as a model, whose other layers stay as they are",
                     0),
    DPF_OPT_CHOICE("init", &state.init, dpf_initialisers, "NAME",
                   "energy: how the other layers of --arch are drawn (he-normal)"),
    DPF_OPT_STRING("node", &state.node, "NAME", "energy: the layer"),
    DPF_OPT_CHOICE("filters", &state.filters, dpf_filter_choices, "HOW",
                   "energy: descent (as printed), orthogonal (descent with filters that "
                   "stay apart), components (eigenvectors, both signs) (orthogonal)"),
    DPF_OPT_INT("epochs", &state.epochs, "N", 0, 1e9, "energy: steps of descent (100)"),
    DPF_OPT_REAL("rate", &state.rate, "R", 0, 1e6,
                 "energy: step size, for the mean energy of a patch (1)"),
    DPF_OPT_REAL("l1", &state.l1, "L", 0, 1e6, "energy: pull of filters to 0 (0)"),
    DPF_OPT_INT("seed", &state.seed, "N", 0, 9e15,
                "energy: seed of where filters and other layers start (0)"),
    DPF_OPT_OUTFILE("export", &state.export_file, "FILE",
                    "write the weights as safetensors"),
    DPF_OPT_END,
};

static bool takes(const struct dpf_solver *solver, const char *option)
{
    const char *const *o = solver->options;
    while (*o && strcmp(*o, option) != 0)
        o++;
    return *o != NULL;
}

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    v->solver = DPF_FIND(solvers, v->what);
    if (!v->field)
        v->field = strcmp(v->what, "mask-components") == 0 ? "mask" : "x";
    for (const struct dpf_solver *other = solvers; other->name; other++)
        for (const char *const *o = other->options; other != v->solver && *o; o++)
            if (dpf_option_given(&s->parsed, *o) && !takes(v->solver, *o))
                return dpf_fail(e, DPF_USAGE,
                                "option '--%s' does not go with '--what %s'", *o,
                                v->what);
    return v->solver->check(s, e);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    dpf_header_drop_fields(&s->out);
    s->out_deferred = true;
    return v->solver->open(s, e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    return v->solver->add(s, b, e);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    if (s->in.is_private)
        dpf_ledger_add_none(&s->out.events, s->info->name,
                            "the model was solved from private numbers");
    enum dpf_status status = v->solver->finish(s, e);
    return status == DPF_OK ? dpf_model_stream_write(s, &v->result, v->export_file, e)
                            : status;
}

static void on_release(struct dpf_stage *s)
{
    struct dpf_solve *v = s->state;
    dpf_components_release(&v->components);
    dpf_mask_coder_release(&v->masks);
    dpf_model_stream_release(&v->result);
}

static const struct dpf_stage_info info = {
    .name = "solve",
    .summary = "compute a model from released coefficients, or principal components",
    .reads = "one quadratic form (gram, moment, noise, intercept), or one energy "
             "(coefficients, ...); or x: numbers; or mask: labels",
    .writes =
        "a model with its weights: a dense layer; of masks an encoder and a decoder; of "
        "an energy the network of --arch or --model",
    .privacy = "none spent: a model of private numbers is as private as they are",
    .example = "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow solve "
               "--what components --components 8 | dpflow inspect",
    .detail =
        "Noise can leave a quadratic form without a minimum. By default a ridge is "
        "added that\n"
        "corrects this. With --prior, a form of public records is added first.\n"
        "\n"
        "energy: filters are sought on the released coefficients alone, in any number "
        "of steps. The\n"
        "energy has no least value, so filters are held to a norm (--radius).",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
