/* submit: send a randomised stream to a curator. */
#include "job.h"

#include "base/banned.h"

static struct dpf_submit_job job = {.patience = 60};

static const struct dpf_option options[] = {
    DPF_OPT_STRING("budget", &job.budget, "E[,D]",
                   "refuse to send what has a larger proven epsilon, or delta (0)"),
    {.name = "patience",
     .kind = DPF_KIND_REAL,
     .target = &job.patience,
     .arg = "SECONDS",
     .lo = 0.1,
     .hi = 1e9,
     .help = "give up after so long without progress (60)",
     .flags = DPF_OPTION_IMMATERIAL},
    DPF_OPT_END,
};

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    job.endpoint = s->arguments[0];
    if (!dpf_endpoint_has_scheme(job.endpoint))
        return dpf_fail(e, DPF_USAGE, "'%s' is no endpoint of a curator: tcp://HOST:PORT",
                        job.endpoint);
    return dpf_submit_job_open(&job, s, e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    (void)s;
    return dpf_submit_job_take(&job, b, e);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_submit_job_finish(&job, s, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_submit_job_release(&job);
}

static const struct dpf_stage_info info = {
    .name = "submit",
    .summary = "send a randomised stream to a curator and wait for its receipt",
    .reads = "records that are public or came out of mechanisms",
    .writes = "a receipt, as text",
    .privacy = "none spent: private records and what has no finite epsilon are refused",
    .example = "dpflow submit --help",
    .detail = "The whole stream is stored first and then sent. If the curator ('dpflow "
              "collect')\n"
              "cannot be reached or fails, the same bytes are sent again. The same "
              "stream may be\n"
              "submitted twice: the curator keeps it once. Another stream of the same "
              "owner is a\n"
              "second release and is refused.",
    .arguments = "ENDPOINT",
    .min_arguments = 1,
    .max_arguments = 1,
    .kind = DPF_SINK,
    .has_effects = true,
    .options = options,
    .on_open = on_open,
    .on_batch = on_batch,
    .on_close = on_close,
    .on_release = on_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
