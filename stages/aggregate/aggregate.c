/* aggregate: what many have sent, as one: owners' randomised messages, teachers' answers.
 */
#include "aggregate.h"
#include "account/code_noise.h"
#include "base/log.h"

#include "base/banned.h"

static struct dpf_aggregate state = {
    .field = "x", .label = "y", .calibration = "exact", .seed = -1};

static const struct dpf_option options[] = {
    DPF_OPT_STRING("field", &state.field, "NAME",
                   "messages: the field with them; answers: the field of --inputs (x)"),
    DPF_OPT_STRING("target", &state.label, "NAME",
                   "messages: the field with their labels, or codes of labels; answers: "
                   "the field with the released labels (y)"),
    DPF_OPT_ENDPOINT("public", &state.known_stream, "STREAM",
                     "messages: public records with labels, added to the estimate", 0),
    DPF_OPT_REAL("public-weight", &state.known_weight, "W", 1e-6, 1e6,
                 "weight of the public records, in units of the messages' noise (try 0.2 "
                 "if they resemble the private ones)"),
    DPF_OPT_CHOICE("vote", &state.vote, dpf_vote_choices, "HOW",
                   "votes: noise on each count, then the class with most: lnmax "
                   "(Laplace), gnmax (Gaussian); confident: gnmax for queries that pass "
                   "a noisy test of their largest count"),
    DPF_OPT_FLAG("codes", &state.codes,
                 "codes: the mean of each query's codes with Gaussian noise"),
    DPF_OPT_FLAG(
        "blank", &state.blank,
        "codes: write the noise alone, as if every code were 0: it costs nothing "
        "and shows what a decoder makes of noise (needs --inputs)"),
    DPF_OPT_REAL("norm", &state.norm, "R", 1e-6, 1e6,
                 "codes: longer ones are shortened to this L2 norm, which is public"),
    DPF_OPT_CHOICE("calibration", &state.calibration, dpf_calibrations, "HOW",
                   "codes: how --epsilon chooses the noise: exact (composition of "
                   "Gaussian mechanisms) or paper (Renyi divergence) (exact)"),
    DPF_OPT_INT("teachers", &state.teachers, "K", 1, DPF_VOTE_MAX_TEACHERS,
                "answers: how many teachers there have to be"),
    DPF_OPT_REAL(
        "noise", &state.noise, "S", 1e-6, 65535,
        "deviation (lnmax: scale) of the noise on each count, in votes, or on each "
        "value of a mean of codes; else --epsilon chooses it"),
    DPF_OPT_REAL("threshold", &state.threshold, "T", 0, DPF_VOTE_MAX_TEACHERS,
                 "confident: votes that the largest count has to reach"),
    DPF_OPT_REAL("threshold-noise", &state.threshold_noise, "S", 1e-3, 65535,
                 "confident: deviation of the noise of that test, in votes"),
    DPF_OPT_INT("answers", &state.most_answers, "A", 1, 1e9,
                "confident: stop after A answers; this many are paid for (all queries)"),
    DPF_OPT_REAL("epsilon", &state.epsilon, "E", 1e-6, 1e4,
                 "the epsilon to spend: refuse to exceed it, and choose the noise for it "
                 "if --noise is not given"),
    DPF_OPT_REAL("delta", &state.delta, "D", 1e-300, 0.5,
                 "the delta of every epsilon that is stated"),
    DPF_OPT_ENDPOINT("inputs", &state.inputs, "STREAM",
                     "the public inputs that were asked about: each answered one is "
                     "written with its label",
                     0),
    {.name = "once",
     .kind = DPF_KIND_OUTFILE,
     .target = &state.once.path,
     .arg = "FILE",
     .help = "answers: store the release whole in FILE before anything of it is passed "
             "on, and release nothing if there is a FILE already",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_FLAG("distinct-owners", &state.distinct_owners,
                 "no person has records with two teachers: an assumption of the epsilon, "
                 "for teachers of different sources"),
    DPF_OPT_FLAG("private-cost", &state.private_cost,
                 "print also the epsilon that the votes themselves give (Papernot et al. "
                 "2018): it is private, for the holder of the teachers' records alone"),
    DPF_OPT_FLAG(
        "publish-cost", &state.publish_cost,
        "gnmax, confident: release an upper bound of that epsilon with noise; it "
        "is what the ledger claims, for these votes and their neighbours, and "
        "its release is paid for"),
    DPF_OPT_REAL("cost-order", &state.cost_order, "A", 1.5, 1000,
                 "published cost: the order of its Renyi divergence (try 8)"),
    DPF_OPT_REAL(
        "cost-smoothness", &state.cost_smoothness, "B", 1e-3, 10,
        "published cost: one teacher may change the logarithm of the bound by B; "
        "a small B makes the bound larger (try 0.05)"),
    DPF_OPT_REAL(
        "cost-noise", &state.cost_noise, "M", 1e-2, 1e6,
        "published cost: deviation of the noise on that logarithm, as a multiple "
        "of B (try 3)"),
    DPF_OPT_INT(
        "insecure-seed", &state.seed, "N", 0, 9e15,
        "draw the noise from seed N, for tests: the result repeats and is not protected"),
    DPF_OPT_END,
};

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    v->of_answers = dpf_answers_is(&s->in);
    enum dpf_status status = dpf_aggregate_check_kind(s, e);
    if (status != DPF_OK || !v->of_answers)
        return status == DPF_OK ? dpf_messages_open(s, e) : status;
    if (!v->vote && !v->codes)
        return dpf_fail(e, DPF_USAGE, "answers of teachers need '--vote' or '--codes'");
    return dpf_answers_open(s, e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    return v->of_answers ? dpf_answers_batch(s, b, e) : dpf_messages_batch(s, b, e);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_aggregate *v = s->state;
    if (!v->of_answers)
        return dpf_messages_close(s, e);
    enum dpf_status status = v->codes ? dpf_codes_release(s, e) : dpf_votes_release(s, e);
    return status == DPF_OK ? dpf_once_commit(&v->once, s, e) : status;
}

/* What was drawn is spoken of when it has left: of a release that came to nothing nobody
 * learns anything. */
static void on_finished(struct dpf_stage *s)
{
    const struct dpf_aggregate *v = s->state;
    dpf_notice_lines(dpf_text_get(&v->said));
}

static void on_release(struct dpf_stage *s)
{
    struct dpf_aggregate *v = s->state;
    dpf_text_release(&v->said);
    dpf_once_release(&v->once, s);
    dpf_report_form_release(&v->form);
    dpf_report_stream_release(&v->reports);
    dpf_known_records_release(&v->known);
    dpf_answers_release(&v->answers);
    dpf_tallies_release(&v->tallies);
}

static const struct dpf_stage_info info = {
    .name = "aggregate",
    .summary =
        "combine owners' randomised messages, or release teachers' votes with noise",
    .reads = "x: messages of 'randomize --method privunit', y: labels or their codes; or "
             "answers of 'teacher-infer'",
    .writes = "of messages one record: gram, moment and their noise, for 'solve --what "
              "quadratic'; of answers: the answered queries, y: their labels",
    .privacy =
        "of messages none: their owners randomised them; of answers what the noise "
        "costs: the ledger states it",
    .example =
        "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow randomize "
        "--method privunit --epsilon 8 --labels joint | dpflow aggregate | dpflow "
        "solve --what quadratic | dpflow account",
    .detail =
        "Votes (PATE): teachers may come in any order, in one stream or in several "
        "(--input more\n"
        "than once). Everything is read and checked first: a teacher who is missing, "
        "answers a\n"
        "query twice, or answers other queries than the rest ends the program, and "
        "nothing was\n"
        "released. With '--vote confident' queries that fail the test are left out.\n\n"
        "With '--once FILE' a program that is killed and started again does not release "
        "twice:\n"
        "FILE appears when the release is whole, and then the program ends with status "
        "4. What\n"
        "was released is in FILE. Who removes FILE, or gives another name, releases "
        "again.",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = dpf_aggregate_options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_finished = on_finished,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
