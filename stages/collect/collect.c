/* collect: many owners' streams as one: randomised records, or teachers' answers. */
#include "collect.h"

#include "base/banned.h"

static struct dpf_curator state = {.owner_bytes = (int64_t)16 << 30};

static const struct dpf_option options[] = {
    {.name = "store",
     .kind = DPF_KIND_OUTFILE,
     .target = &state.store,
     .arg = "DIR",
     .help =
         "keep each owner's stream here; a curator that starts again continues from it",
     .flags = DPF_OPTION_IMMATERIAL | DPF_OPTION_REQUIRED},
    {.name = "owner-keys",
     .kind = DPF_KIND_STRING,
     .target = &state.owner_keys,
     .arg = "DIR",
     .help = "the owners' public keys: every .pub file in DIR, in addition to each "
             "--peer-key",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_FLAG("answers", &state.answers,
                 "receive answers of teachers ('submit --answers') instead of randomised "
                 "records: they have no noise, and the result is private"),
    DPF_OPT_INT("enough", &state.enough, "N", 1, 4096,
                "continue when N owners have sent their streams (all)"),
    DPF_OPT_REAL("until", &state.until, "SECONDS", 0.1, 1e9,
                 "wait no longer than this for further owners"),
    {.name = "hear-all",
     .kind = DPF_KIND_FLAG,
     .target = &state.hear_all,
     .help = "wait for every owner to connect, even if its stream is in --store",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_INT("owner-bytes", &state.owner_bytes, "N", 1, 9e15,
                "the largest number of bytes that one owner may send (16 GiB)"),
    DPF_OPT_END,
};

static const struct dpf_stage_info info = {
    .name = "collect",
    .summary = "receive many owners' randomised streams, or teachers' answers",
    .reads = "what owners send with 'dpflow submit'",
    .writes = "all their records, in the order of the owners' keys",
    .privacy =
        "none spent: private records are refused; owners count as different people. "
        "--answers: private, for 'aggregate'",
    .example = "dpflow collect --help",
    .detail = "Owners are identified by their CURVE keys. They may connect at any time, "
              "fail and\n"
              "connect again. Each owner's stream counts whole and once. The same stream "
              "again\n"
              "changes nothing; a different one is a second release and is refused. The "
              "ledger of\n"
              "the result has a branch for each owner. A person's cost is that of the "
              "most expensive\n"
              "branch, provided that no person has records with two owners.\n\n"
              "With --answers, each owner sends the answers of its teachers, and whoever "
              "runs this\n"
              "program is trusted to keep them secret. Their files have mode 0600, and a "
              "--store that\n"
              "others may enter is refused. The result is for 'aggregate', which checks "
              "that teachers\n"
              "have no records in common (or takes your word for it, "
              "--distinct-owners), and releases\n"
              "it once with --once. To let an owner send other answers before that, "
              "remove its file.",
    .arguments = "ENDPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .kind = DPF_SOURCE,
    .has_effects = true,
    .options = options,
    .state = &state,
    .on_open = dpf_collect_open,
    .on_produce = dpf_collect_produce,
    .on_release = dpf_collect_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
