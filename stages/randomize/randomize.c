/* randomize: records that are changed with known probabilities before they leave. */
#include "randomize.h"

#include <stdlib.h>

#include "privacy/sphere.h"

#include "base/banned.h"

static struct dpf_randomize state = {
    .field = "x", .label = "y", .seed = -1, .codebook = 4096};

static const struct dpf_option options[] = {
    {.name = "method",
     .kind = DPF_KIND_CHOICE,
     .target = &state.method_word,
     DPF_CHOICES(dpf_randomisers),
     .arg = "NAME",
     .help = "the randomisation method, see above",
     .flags = DPF_OPTION_REQUIRED},
    {.name = "epsilon",
     .kind = DPF_KIND_REAL,
     .target = &state.epsilon,
     .arg = "E",
     .lo = 1e-9,
     .hi = 1e6,
     .help = "the epsilon that the method claims for a record",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_REAL("alpha", &state.alpha, "A", 1e-6, 1e6,
                 "moue, uer: the privacy budget coefficient"),
    DPF_OPT_CHOICE(
        "labels", &state.labels_word, dpf_labels_rows, "HOW",
        "what happens to labels: clear (written as they are, not protected), response "
        "(randomised on their own), joint (privunit: randomised with the record), drop"),
    DPF_OPT_REAL("label-epsilon", &state.label_epsilon, "E", 1e-9, 36,
                 "epsilon of '--labels response', in addition to --epsilon"),
    DPF_OPT_INT("codebook", &state.codebook, "K", 2, DPF_SPHERE_MAX_DIRECTIONS,
                "privunit: number of directions to choose from (4096)"),
    DPF_OPT_INT("public-seed", &state.public_seed, "N", 0, 9e15,
                "privunit: seed of the directions, the same for all owners (0)"),
    DPF_OPT_INT("owner", &state.owner, "N", 0, 1e9,
                "privunit: a public number of this owner, so that errors of different "
                "owners are independent (0)"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field to randomise (x)"),
    DPF_OPT_STRING("label", &state.label, "NAME", "the field with the labels (y)"),
    DPF_OPT_OUTFILE("remember", &state.remember, "FILE",
                    "keep the messages in FILE and send the same ones again: each record "
                    "is released once"),
    DPF_OPT_INT("insecure-seed", &state.seed, "N", 0, 9e15,
                "draw from seed N, for tests: the result repeats and is not protected"),
    DPF_OPT_END,
};

static enum dpf_status open_mechanisms(struct dpf_randomize *j,
                                       const struct dpf_header *h, struct dpf_error *e)
{
    const struct dpf_randomiser_setup setup = {
        .name = j->method_word,
        .epsilon = j->epsilon,
        .alpha = j->alpha,
        .codebook = (size_t)j->codebook,
        .seed = (uint64_t)j->public_seed,
        .owner = (uint64_t)j->owner,
        .values = j->values,
        .labels = j->labels == DPF_LABELS_JOINT ? h->fields[j->y].classes : 0};
    enum dpf_status status = DPF_OK;
    if (j->seed >= 0)
        dpf_random_init_insecure(&j->random, "randomize", (uint64_t)j->seed, 0);
    else
        status = dpf_random_init(&j->random, e);
    if (status == DPF_OK)
        status = j->method->open(&setup, &j->mechanism, &j->facts, e);
    if (status == DPF_OK && j->labels == DPF_LABELS_RESPONSE)
        status = dpf_response_init(&j->label_response, j->label_epsilon,
                                   h->fields[j->y].classes, e);
    return status;
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_randomize *j = s->state;
    enum dpf_status status = dpf_ledger_refuse_answers(&s->in.events, e);
    if (status == DPF_OK)
        status = dpf_randomize_find_fields(j, &s->in, e);
    if (status == DPF_OK)
        status = open_mechanisms(j, &s->in, e);
    if (status == DPF_OK)
        status = dpf_randomize_declare(j, s, e);
    if (status != DPF_OK)
        return status;
    s->drops_others = true; /* nothing leaves that the mechanism has not seen */
    if (s->in.is_private) {
        dpf_randomize_add_events(j, s);
        dpf_standing_protect(&s->out);
    } else {
        dpf_ledger_add_randomised(&s->out.events, s->info->name, j->method_word);
    }
    return j->remember ? dpf_release_memory_open(&j->memory, j->remember, s, e) : DPF_OK;
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_randomize *j = s->state;
    struct dpf_batch out = {0};
    enum dpf_status status = DPF_OK;
    if (j->method->reads == DPF_MESSAGE_NUMBERS)
        status = dpf_tensor_make_f32(&b->tensor[j->x], e);
    if (status == DPF_OK)
        status = dpf_batch_init(&out, &s->out, b->rows, e);
    for (uint64_t row = 0; status == DPF_OK && row < b->rows; row++) {
        bool known = false;
        if (j->remember)
            status = dpf_release_memory_recall(&j->memory, b, row, &out, &known, e);
        if (status == DPF_OK && !known)
            dpf_randomize_record(j, b, row, &out);
        if (status == DPF_OK && !known && j->remember)
            status = dpf_release_memory_add(&j->memory, b, row, &out, e);
    }
    /* What is not safely remembered must not leave. */
    if (status == DPF_OK && j->remember)
        status = dpf_release_memory_sync(&j->memory, e);
    if (status != DPF_OK) {
        dpf_batch_release(&out);
        return status;
    }
    j->records += b->rows;
    dpf_batch_release(b);
    *b = out;
    return DPF_OK;
}

static void on_release(struct dpf_stage *s)
{
    struct dpf_randomize *j = s->state;
    dpf_release_memory_release(&j->memory);
    if (j->mechanism && j->method->release)
        j->method->release(j->mechanism);
    else
        free(j->mechanism);
    j->mechanism = NULL;
    dpf_random_release(&j->random);
}

static const struct dpf_stage_info info = {
    .name = "randomize",
    .summary = "randomise records for local privacy, before they leave their owner",
    .reads = "x: packed bits, a class, or numbers; y: labels",
    .writes = "x: the randomised values; y unless --labels drop; no other field",
    .privacy = "local: the claimed and the proven epsilon are in the ledger",
    .example = "dpflow load digits:train | dpflow normalize --zscore | dpflow "
               "encode-binary --whole 2 --fraction 5 | dpflow randomize --method uer "
               "--alpha 7 --epsilon 0.5 --labels clear | dpflow account",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = dpf_randomize_choose,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    struct dpf_text text = {0};
    struct dpf_stage_info described = info;
    described.detail = dpf_randomize_describe(&text);
    int status = dpf_stage_main(&described, argc, argv);
    dpf_text_release(&text);
    return status;
}
