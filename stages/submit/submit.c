/* submit: send a randomised stream to a curator, or teachers' answers to an aggregator,
 * who may be away. It is put aside whole, checked against the owner's own rules, and sent
 * until the other side has said that it is safe there. */
#include "submit.h"
#include "base/text.h"

#include "base/banned.h"

static struct dpf_submission state = {.patience = 60};

static const struct dpf_option options[] = {
    DPF_OPT_FLAG("answers", &state.answers,
                 "send answers of 'teacher-infer', which have no noise, to an aggregator "
                 "that you trust with them; needs --key and --peer-key"),
    DPF_OPT_STRING(
        "budget", &state.budget, "E[,D]",
        "refuse to send a stream whose proven epsilon is above E or delta above D (0)"),
    {.name = "patience",
     .kind = DPF_KIND_REAL,
     .target = &state.patience,
     .arg = "SECONDS",
     .lo = 0.1,
     .hi = 1e9,
     .help = "give up after this time without progress (60)",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_END,
};

/* Answers have no noise: they go encrypted, to one key, or not at all. Other endpoints
 * (fd:, plug-ins) know no keys. */
static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_submission *v = s->state;
    struct dpf_endpoint_options o = dpf_stage_endpoint_options();
    v->endpoint = s->arguments[0];
    if (!dpf_endpoint_has_scheme(v->endpoint))
        return dpf_fail(e, DPF_USAGE,
                        "'%s' is not an endpoint of a curator: tcp://HOST:PORT",
                        v->endpoint);
    if (!v->answers)
        return DPF_OK;
    if (v->budget)
        return dpf_fail(e, DPF_USAGE,
                        "'--budget' does not apply to '--answers': answers have no "
                        "epsilon until 'aggregate' releases them");
    if (o.cleartext || !o.key_file || o.peer_key_count != 1)
        return dpf_fail(e, DPF_USAGE,
                        o.cleartext ? "'--answers' are never sent in cleartext"
                                    : "'--answers' needs '--key' and one '--peer-key', "
                                      "that of the aggregator");
    if (!dpf_starts_with(v->endpoint, "tcp://") &&
        !dpf_starts_with(v->endpoint, "ipc://"))
        return dpf_fail(
            e, DPF_USAGE,
            "'--answers' are sent encrypted, to tcp:// or ipc://, not to '%s'",
            v->endpoint);
    return DPF_OK;
}

static const struct dpf_stage_info info = {
    .name = "submit",
    .summary = "send a randomised stream, or teachers' answers, and wait for a receipt",
    .reads = "records that are public or came out of mechanisms; with --answers what "
             "'teacher-infer' wrote",
    .writes = "a receipt, as text",
    .privacy =
        "none spent: private records and streams without a finite epsilon are refused. "
        "--answers: the aggregator is trusted",
    .example = "dpflow submit --help",
    .detail = "The whole stream is stored first and then sent. If the curator ('dpflow "
              "collect')\n"
              "cannot be reached or fails, the same bytes are sent again. The same "
              "stream may be\n"
              "submitted twice: the curator keeps it once. Another stream of the same "
              "owner is a\n"
              "second release and is refused.\n\n"
              "With --answers, teachers' votes or codes leave without noise, encrypted, "
              "for the\n"
              "holder of --peer-key alone. You trust that aggregator to keep them "
              "secret, and to\n"
              "release them once, with noise. It sees each teacher's answer to each "
              "public input, and\n"
              "the ledger: names and keyed digests of your sources, and the options of "
              "your stages.\n"
              "Records, inputs and weights do not leave. Keep the answers in a file "
              "('teacher-infer -o')\n"
              "and submit that file: teachers that are trained again give other answers, "
              "which are\n"
              "refused.",
    .arguments = "ENDPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .kind = DPF_SINK,
    .has_effects = true,
    .options = options,
    .state = &state,
    .on_options = on_options,
    .on_open = dpf_submission_open,
    .on_batch = dpf_submission_batch,
    .on_close = dpf_submission_close,
    .on_release = dpf_submission_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
