/* normalize: scale records into declared, public bounds. */
#include "job.h"

#include "base/banned.h"

static struct dpf_normalize_job job = {.field = "x", .power = 0.5};

static const char *const fits[] = {"unit", "zscore", NULL};

static const struct dpf_option options[] = {
    DPF_OPT_RANGE("unit", &job.unit, "LO:HI",
                  "map the public bounds [LO,HI] to [0,1] and clip"),
    DPF_OPT_FILE("bounds", &job.bounds, "FILE",
                 "the same for each feature, by the public bounds of a columns file"),
    DPF_OPT_FLAG("declared", &job.declared,
                 "the same by the bounds that the stream's header declares"),
    DPF_OPT_FLAG("zscore", &job.zscore,
                 "centre and scale each record by its own mean and deviation"),
    DPF_OPT_ENDPOINT("relevance", &job.relevance, "STREAM",
                     "then multiply each feature by its relevance to --power: it keeps "
                     "more of the norm",
                     0),
    DPF_OPT_REAL("power", &job.power, "P", 0, 16, "(0.5)"),
    DPF_OPT_REAL("ball", &job.ball, "R", 1e-30, 1e30,
                 "then scale each record into the L2 ball of radius R"),
    DPF_OPT_INT("lot-mean", &job.lot_mean, "N", 1, 1e9,
                "subtract from each feature its mean over each N records that follow one "
                "another; not of private records"),
    DPF_OPT_FLAG("signed", &job.both_signs, "map to [-1,1] instead of [0,1]"),
    DPF_OPT_CHOICE("fit", &job.fit, fits, "HOW",
                   "take each feature's scale from the data: no privacy is left, so only "
                   "with --non-private"),
    DPF_OPT_FLAG("non-private", &job.non_private,
                 "accept statistics of the data; the ledger says so"),
    DPF_OPT_STRING("field", &job.field, "NAME", "the field to scale (x)"),
    DPF_OPT_END,
};

static enum dpf_status on_options(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_normalize_check(&job, s, e);
}

static enum dpf_status on_open(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_normalize_open(&job, s, e);
}

static enum dpf_status on_batch(struct dpf_stage *s, struct dpf_batch *b,
                                struct dpf_error *e)
{
    return dpf_normalize_take(&job, s, b, e);
}

static enum dpf_status on_close(struct dpf_stage *s, struct dpf_error *e)
{
    return dpf_normalize_finish(&job, s, e);
}

static void on_release(struct dpf_stage *s)
{
    (void)s;
    dpf_normalize_release(&job);
}

static const struct dpf_stage_info info = {
    .name = "normalize",
    .summary = "scale records into declared, public bounds",
    .reads = "x: numbers [n, ...]",
    .writes = "the same fields, x as f32",
    .privacy = "none spent; statistics of the data are refused unless --non-private, and "
               "are then in the ledger",
    .example = "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow inspect",
    .kind = DPF_FILTER,
    .is_exact = true,
    .options = options,
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
