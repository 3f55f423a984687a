/* randomize: records that are changed with known probabilities before they leave. */
#include "job.h"

#include "base/banned.h"

static struct dpf_randomize_job job = {
    .field = "x", .label = "y", .seed = -1, .codebook = 4096};

static const struct dpf_option options[] = {
    {.name = "method",
     .kind = DPF_KIND_CHOICE,
     .target = &job.method_word,
     DPF_CHOICES(dpf_randomize_words),
     .arg = "NAME",
     .help = "how: rr, moue, uer (bits), ue, oue, response (classes), sampled-bit "
             "(bits), privunit (numbers)",
     .flags = DPF_OPTION_REQUIRED},
    {.name = "epsilon",
     .kind = DPF_KIND_REAL,
     .target = &job.epsilon,
     .arg = "E",
     .lo = 1e-9,
     .hi = 1e6,
     .help = "what the method claims for a record",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_REAL("alpha", &job.alpha, "A", 1e-6, 1e6,
                 "moue, uer: the privacy budget coefficient"),
    DPF_OPT_CHOICE("labels", &job.labels_word, dpf_labels_words, "HOW",
                   "what becomes of labels: clear (as they are, not protected), response "
                   "(randomised by themselves), joint (privunit: with the record), drop"),
    DPF_OPT_REAL("label-epsilon", &job.label_epsilon, "E", 1e-9, 36,
                 "of '--labels response', beside the record's"),
    DPF_OPT_INT("codebook", &job.codebook, "K", 2, DPF_SPHERE_MAX_DIRECTIONS,
                "privunit: directions to choose among (4096)"),
    DPF_OPT_INT("public-seed", &job.public_seed, "N", 0, 9e15,
                "privunit: of the directions, the same for all owners (0)"),
    DPF_OPT_INT("owner", &job.owner, "N", 0, 1e9,
                "privunit: a public number of this owner's, so that owners' messages do "
                "not err in the same way (0)"),
    DPF_OPT_STRING("field", &job.field, "NAME", "what is randomised (x)"),
    DPF_OPT_STRING("label", &job.label, "NAME", "the field with the labels (y)"),
    DPF_OPT_OUTFILE("remember", &job.remember, "FILE",
                    "keep what left here, and send the same again: a record is released "
                    "once and for all"),
    DPF_OPT_INT("insecure-seed", &job.seed, "N", 0, 9e15,
                "draw from N: the same each time, and no protection"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_randomize_job_check(&job, s, e);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_randomize_job_open(&job, s, e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    return dpf_randomize_job_take(&job, s, b, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_randomize_job_release(&job);
}

static const struct dpf_stage_info info = {
    .name = "randomize",
    .summary = "change records with known probabilities before they leave their owner",
    .reads = "x: packed bits, a class, or numbers; y: labels",
    .writes = "x: what the method makes of it; y if it is wanted; no other field",
    .privacy = "local: what the method claims and what is proven, both in the ledger",
    .example = "dpflow load digits:train | dpflow normalize --zscore | dpflow "
               "encode-binary --whole 2 --fraction 5 | dpflow randomize --method uer "
               "--alpha 7 --epsilon 0.5 --labels clear | dpflow account",
    .detail =
        "rr, moue and uer change every bit of a string, and what is proven of them is "
        "the "
        "sum\nover all bits. ue and oue change the bits of a class written one-hot; "
        "response keeps a\nclass or tells another. sampled-bit tells one bit of many and "
        "writes the estimate of\nall. privunit tells a direction near the record's (its "
        "length is lost); with --labels\njoint the message is about record and label "
        "together, and y becomes a code that\n'aggregate' reads.\n\n"
        "With --remember, what is already in FILE is sent as it was; a record that is "
        "not "
        "the\none of before is refused.",
    .kind = DPF_FILTER,
    .options = options,
    .on_options = on_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
