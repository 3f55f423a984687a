/* evaluate: measure a model on records and their targets. */
#include "evaluate.h"

#include "base/banned.h"

static struct dpf_measurement state = {
    .x = "x", .y = "y", .loss = "cross-entropy", .backend = "cpu"};

static const struct dpf_option options[] = {
    DPF_OPT_ENDPOINT("model", &state.model, "STREAM", "the model, as train writes it",
                     DPF_OPTION_REQUIRED),
    DPF_OPT_STRING("field", &state.x, "NAME", "the field that the network reads (x)"),
    DPF_OPT_STRING("target", &state.y, "NAME", "the field with the targets (y)"),
    DPF_OPT_CHOICE("loss", &state.loss, dpf_losses, "NAME",
                   "the loss that is reported (cross-entropy); voxel and dice also give "
                   "Dice coefficients"),
    DPF_OPT_FLAG("window", &state.window,
                 "records may be larger than the network's input: score averages over "
                 "overlapping windows, as 'infer --window' computes them"),
    DPF_OPT_FLAG(
        "teachers", &state.teachers,
        "the model is a stream or folder of teachers: score their ensemble (mean "
        "of probabilities), and each of them"),
    DPF_OPT_FLAG(
        "expected", &state.expected,
        "for inputs that are not randomised and a model trained on randomised bits: "
        "average over the randomisation, by the rates in the model's ledger"),
    DPF_OPT_OUTFILE("json", &state.json, "FILE", "write all figures as JSON"),
    DPF_OPT_OUTFILE("table", &state.table, "FILE", "write all figures as a table"),
    DPF_OPT_INT_IMMATERIAL("threads", &state.threads, "N", 1, 1024,
                           "number of threads (one for each processor)"),
    DPF_OPT_STRING("backend", &state.backend, "NAME",
                   "where to compute: cpu, ref (plain C), or a plug-in (cpu)"),
    DPF_OPT_END,
};

static const struct dpf_stage_info info = {
    .name = "evaluate",
    .summary = "measure a model on records and their targets",
    .reads = "x: numbers or packed bits, y: labels or values",
    .writes = "a metric: accuracy with its interval, loss, confusion, calibration, Dice",
    .privacy = "none spent: scores of private records are as private as the records",
    .example = "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow train "
               "--arch tiny --epochs 5 --rate 0.1 -o model.mp && dpflow load "
               "digits:test | dpflow normalize --unit 0:16 | dpflow evaluate --model "
               "model.mp | dpflow inspect",
    .detail =
        "Dice of a class is its mean over the records in which it is labelled or "
        "predicted: one\n"
        "that has it in only one of the two counts 0, one that has it in neither is "
        "left out.\n"
        "Pooled Dice takes all records as one. A class that is nowhere has no Dice "
        "(null) and is\n"
        "left out of the means. Foreground Dice is the mean without class 0.",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = dpf_measurement_options,
    .on_open = dpf_measurement_open,
    .on_batch = dpf_measurement_batch,
    .on_close = dpf_measurement_close,
    .on_release = dpf_measurement_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
