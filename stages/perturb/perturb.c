/* perturb: release records, their sum or their quadratic form with noise. */
#include <stdlib.h>

#include "additive.h"
#include "base/log.h"
#include "base/memory.h"
#include "kernels/expansion.h"

#include "base/banned.h"

static struct dpf_perturb state = {.field = "x",
                                   .target = "y",
                                   .seed = -1,
                                   .share = 1,
                                   .draw = "record",
                                   .coefficients = "all",
                                   .function = "sigmoid",
                                   .expansion = "chebyshev",
                                   .degree = 1};

static const struct dpf_option options[] = {
    {.name = "release",
     .kind = DPF_KIND_CHOICE,
     .target = &state.release_word,
     DPF_CHOICES(dpf_releases),
     .arg = "WHAT",
     .help = "records: each record (local privacy); sum: the sum of all; quadratic: the "
             "coefficients of least squares; relevance: the mean relevance of each "
             "feature; features: each record, with noise set by relevance; energy: the "
             "coefficients of a polynomial energy (pCDBN)",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_CHOICE("mechanism", &state.mechanism, dpf_noises, "NAME",
                   "the noise on records and sums"),
    DPF_OPT_CHOICE("variant", &state.variant, dpf_variant_words, "NAME",
                   "paper (as printed), sound (with a proof), plain (no noise); "
                   "quadratic, energy: also gaussian"),
    DPF_OPT_REAL("epsilon", &state.epsilon, "E", 1e-9, 1e6, "the epsilon to spend"),
    DPF_OPT_REAL("share", &state.share, "P", 1e-9, 1,
                 "spend only this part of --epsilon (1)"),
    DPF_OPT_REAL("delta", &state.delta, "D", 1e-300, 0.5, "the delta of Gaussian noise"),
    DPF_OPT_CHOICE(
        "relation", &state.relation, dpf_central_words, "NAME",
        "the neighbouring relation: one record added or removed, or one replaced"),
    DPF_OPT_REAL("clip-l1", &state.clip_l1, "R", 1e-30, 1e30,
                 "clip each record to this L1 norm (else the declared bounds give its "
                 "sensitivity)"),
    DPF_OPT_REAL(
        "clip-l2", &state.clip_l2, "R", 1e-30, 1e30,
        "clip each record to this L2 norm, for Gaussian noise (the declared norm)"),
    DPF_OPT_ENDPOINT("relevance", &state.relevance, "STREAM",
                     "features: their relevance, which sets the noise of each. Without "
                     "it all get the same noise (ILM)",
                     0),
    DPF_OPT_REAL("label-epsilon", &state.label_epsilon, "E", 1e-9, 1e6,
                 "features: the epsilon of the class"),
    DPF_OPT_REAL("label-share", &state.label_share, "P", 1e-9, 1,
                 "features: the epsilon of the class, as a part of --epsilon"),
    DPF_OPT_INT("lot", &state.lot, "B", 1, 1e9,
                "features, paper: number of records in a training step, by which noise "
                "is divided"),
    DPF_OPT_REAL("neurons", &state.neurons, "N", 1e-9, 1e9,
                 "features, paper: |h_0|, the number of neurons of the first hidden "
                 "layer that count for a feature"),
    DPF_OPT_INT("hidden", &state.hidden, "N", 1, 1e9,
                "features, paper: |h_k|, the number of neurons of the last hidden layer"),
    DPF_OPT_CHOICE("draw", &state.draw, dpf_draw_words, "WHEN",
                   "features, paper: independent noise for each record, or one draw for "
                   "each lot or for the stream, which gives no protection (record)"),
    DPF_OPT_CHOICE("coefficients", &state.coefficients, dpf_coefficient_words, "WHICH",
                   "features, paper: the coefficients of the loss that get noise: all, "
                   "as printed, or only the first, which depends on the class (the "
                   "second is 1/8 for all records) (all)"),
    DPF_OPT_REAL("limit", &state.limit, "R", 1e-30, 1e30,
                 "features: clip noisy values to [-R,R]"),
    DPF_OPT_CHOICE(
        "loss", &state.loss, dpf_form_losses, "NAME",
        "quadratic: squared, or taylor2: the cross-entropy of each class to the "
        "second order, pCDBN's head (squared)"),
    DPF_OPT_STRING(
        "kernel", &state.kernel, "HxW",
        "energy: the size of patches, which filters will have (whole records)"),
    DPF_OPT_STRING("picture", &state.picture, "CxHxW",
                   "energy: the first values of a vector are a picture of this size, the "
                   "others are conditions, which belong to each of its patches"),
    DPF_OPT_INT("stride", &state.stride, "S", 1, 4096,
                "energy: patches at every S-th row and column (1)"),
    DPF_OPT_INT("degree", &state.degree, "L", 1, 11,
                "energy: the degree of the polynomial that stands for the sigmoid (1)"),
    DPF_OPT_CHOICE("function", &state.function, dpf_functions, "NAME",
                   "energy: what is expanded (sigmoid)"),
    DPF_OPT_CHOICE("expansion", &state.expansion, dpf_expansion_choices, "NAME",
                   "energy: how (chebyshev)"),
    DPF_OPT_REAL("scale", &state.scale, "Z", 1e-9, 1e9,
                 "energy: the expansion is of the hidden unit's input divided by Z (the "
                 "number of inputs and 1)"),
    DPF_OPT_CHOICE("unit", &state.unit, dpf_unit_words, "WHO",
                   "quadratic, energy (sound, gaussian): --epsilon is for one record, or "
                   "for all windows that one person changes, as the ledger has them "
                   "(record)"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field to perturb (x)"),
    DPF_OPT_STRING("target", &state.target, "NAME",
                   "the field to predict, a number or a class (y)"),
    DPF_OPT_FLAG("no-intercept", &state.no_intercept,
                 "quadratic: without a constant feature"),
    DPF_OPT_FLAG("only", &state.only, "records: drop all other fields"),
    DPF_OPT_FLAG("non-private", &state.non_private,
                 "accept a release without noise; the ledger says so"),
    DPF_OPT_INT(
        "insecure-seed", &state.seed, "N", 0, 9e15,
        "draw the noise from seed N, for tests: the result repeats and is not protected"),
    DPF_OPT_END,
};

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_perturb *p = s->state;
    const struct dpf_field *f = dpf_header_field(&s->in, p->field);
    enum dpf_status status = dpf_ledger_refuse_answers(&s->in.events, e);
    if (status != DPF_OK)
        return status;
    if (!f)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", p->field);
    if (f->dtype == DPF_BITS)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' holds packed bits", f->name);
    p->x = (int)(f - s->in.fields);
    s->drops_others = true; /* nothing leaves that the mechanism has not seen */
    if (p->seed >= 0)
        dpf_random_init_insecure(&p->random, "perturb", (uint64_t)p->seed, 0);
    else
        status = dpf_random_init(&p->random, e);
    p->own = dpf_calloc(1, p->release->own_bytes);
    if (status == DPF_OK && !p->own)
        status = dpf_fail_memory(e);
    return status == DPF_OK ? p->release->open(p, s, e) : status;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_perturb *p = s->state;
    p->records += b->rows;
    if (p->release->sums && p->records > (uint64_t)1 << DPF_SUM_RECORDS_LOG2)
        return dpf_fail(e, DPF_USAGE, "a sum has at most 2^%d records",
                        (int)DPF_SUM_RECORDS_LOG2);
    return p->release->take(p, b, e);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_perturb *p = s->state;
    uint64_t clipped = p->release->clipped(p);
    if (clipped && s->in.is_private) /* the number is private */
        dpf_notice("some values or records were outside their bounds and were clipped");
    else if (clipped)
        dpf_notice("%llu values or records were outside their bounds and were clipped",
                   (unsigned long long)clipped);
    return p->release->finish ? p->release->finish(p, s, e) : DPF_OK;
}

static void on_release(struct dpf_stage *s)
{
    struct dpf_perturb *p = s->state;
    if (p->own)
        p->release->release(p);
    free(p->own);
    p->own = NULL;
    dpf_random_release(&p->random);
}

static const struct dpf_stage_info info = {
    .name = "perturb",
    .summary = "release records, features, sums or quadratic forms with noise",
    .reads = "x: numbers with declared bounds or norm; quadratic and features: y too",
    .writes = "the noisy records, or one record: the sum, the mean relevance, gram, "
              "moment and their noise, or the coefficients of an energy",
    .privacy = "epsilon (and delta) as given; sensitivity comes from declared bounds",
    .example =
        "dpflow load synth-census:train --limit 2000 | dpflow normalize --declared "
        "--signed | dpflow normalize --field y --declared --signed | dpflow perturb "
        "--release quadratic --variant sound --epsilon 1 | dpflow inspect",
    .detail = "Values outside the bounds are clipped and counted, without saying which.\n"
              "\n"
              "quadratic: the loss is sum (w x - y)^2. gram is the sum of x x', moment "
              "the sum of x y',\n"
              "with a constant 1 as first feature unless --no-intercept. The paper and "
              "sound variants\n"
              "protect under replace-one.\n"
              "\n"
              "relevance, features: AdLM (Phan et al. 2017), or ILM without --relevance. "
              "x gets Laplace\n"
              "noise once; less relevant features get more. Paper: y becomes the noisy "
              "coefficients\n"
              "1/2 - y and 1/8 of each class, for 'train --loss taylor2'. Sound: local "
              "privacy; each\n"
              "feature's part of the budget is proportional to the cube root of its "
              "relevance, and y\n"
              "gets randomised response.\n"
              "\n"
              "energy: pCDBN (Phan et al. 2017). What filters of size --kernel need to "
              "know of x, for\n"
              "'solve --what energy'. Paper: Laplace noise on the coefficients, by a "
              "sensitivity that\n"
              "is read from the records: claimed, not proven. Sound, gaussian: noise on "
              "the moments of\n"
              "patches; a record's moments are cut to --clip-l1 or --clip-l2, as means "
              "over positions.",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = dpf_perturb_check,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
