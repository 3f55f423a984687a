/* normalize: scale records into declared, public bounds. */
#include "normalize.h"

#include "base/banned.h"

static struct dpf_normalize state = {.field = "x", .power = 0.5};

static const char *const fits[] = {"unit", "zscore", NULL};

static const struct dpf_option options[] = {
    DPF_OPT_RANGE("unit", &state.unit, "LO:HI",
                  "map the public bounds [LO,HI] to [0,1] and clip"),
    DPF_OPT_FILE("bounds", &state.bounds, "FILE",
                 "the same for each feature, with the public bounds of a columns file"),
    DPF_OPT_FLAG("declared", &state.declared,
                 "the same with the bounds that the stream's header declares"),
    DPF_OPT_FLAG("zscore", &state.zscore,
                 "centre and scale each record by its own mean and standard deviation"),
    DPF_OPT_ENDPOINT("relevance", &state.relevance, "STREAM",
                     "then multiply each feature by its relevance to the power --power, "
                     "so that relevant features get more of the norm",
                     0),
    DPF_OPT_REAL("power", &state.power, "P", 0, 16, "the power of --relevance (0.5)"),
    DPF_OPT_REAL("ball", &state.ball, "R", 1e-30, 1e30,
                 "then scale each record into the L2 ball of radius R"),
    DPF_OPT_INT("lot-mean", &state.lot_mean, "N", 1, 1e9,
                "subtract from each feature its mean over each N successive records; "
                "refused for private records"),
    DPF_OPT_FLAG("signed", &state.both_signs, "map to [-1,1] instead of [0,1]"),
    DPF_OPT_CHOICE(
        "fit", &state.fit, fits, "HOW",
        "take each feature's scale from the data without noise; only with --non-private"),
    DPF_OPT_FLAG("non-private", &state.non_private,
                 "accept statistics of the data; the ledger says so"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field to scale (x)"),
    DPF_OPT_END,
};

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
    .state = &state,
    .on_options = dpf_normalize_options,
    .on_open = dpf_normalize_open,
    .on_batch = dpf_normalize_batch,
    .on_close = dpf_normalize_close,
    .on_release = dpf_normalize_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
