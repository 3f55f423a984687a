/* collect: many owners' randomised streams as one. */
#include "job.h"

#include "base/banned.h"

static struct dpf_collect_job job = {.owner_bytes = (int64_t)16 << 30};

static const struct dpf_option options[] = {
    {.name = "store",
     .kind = DPF_KIND_OUTFILE,
     .target = &job.store,
     .arg = "DIR",
     .help = "keep each owner's stream here; a curator that starts again goes on from it",
     .flags = DPF_OPTION_IMMATERIAL | DPF_OPTION_REQUIRED},
    {.name = "owner-keys",
     .kind = DPF_KIND_STRING,
     .target = &job.owner_keys,
     .arg = "DIR",
     .help = "the owners' public keys: every .pub file there, besides each --peer-key",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_INT("enough", &job.enough, "N", 1, 4096,
                "go on when N owners have sent their streams (all)"),
    DPF_OPT_REAL("until", &job.until, "SECONDS", 0.1, 1e9,
                 "wait no longer than this for further owners"),
    {.name = "hear-all",
     .kind = DPF_KIND_FLAG,
     .target = &job.hear_all,
     .help = "wait for every owner to connect, even if its stream is in --store",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_INT("owner-bytes", &job.owner_bytes, "N", 1, 9e15,
                "the most that one owner may send (16 GiB)"),
    DPF_OPT_END,
};

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    job.endpoint = s->arguments[0];
    if (!dpf_endpoint_has_scheme(job.endpoint))
        return dpf_fail(e, DPF_USAGE, "'%s' is no endpoint: tcp://HOST:PORT",
                        job.endpoint);
    enum dpf_status status = dpf_collect_job_gather(&job, s, e);
    return status == DPF_OK ? dpf_collect_job_header(&job, s, e) : status;
}

static enum dpf_status on_produce(struct dpf_stage *s, struct dpf_batch *b,
                                  struct dpf_error *e)
{
    (void)s;
    return dpf_collect_job_produce(&job, b, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_collect_job_release(&job);
}

static const struct dpf_stage_info info = {
    .name = "collect",
    .summary = "receive the randomised streams of many owners, as a curator",
    .reads = "what owners send with 'dpflow submit'",
    .writes = "all their records, in the order of the owners' keys",
    .privacy =
        "none spent: private records are refused; owners count as different people",
    .example = "dpflow collect --help",
    .detail =
        "Owners are identified by their CURVE keys. They may connect at any time, fail "
        "and\n"
        "connect again. Each owner's stream counts whole and once. The same stream "
        "again\n"
        "changes nothing; a different one is a second release and is refused. The "
        "ledger\n"
        "of the result has a branch for each owner. A person's cost is that of the most\n"
        "expensive branch, if nobody's records are held by two owners.",
    .arguments = "ENDPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .kind = DPF_SOURCE,
    .has_effects = true,
    .options = options,
    .on_open = on_open,
    .on_produce = on_produce,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
