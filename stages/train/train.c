/* train: fit a network to records and their targets. */
#include "train.h"
#include "data/partition.h"
#include "nn/initialise.h"

#include "base/banned.h"

static struct dpf_train state = {.x = "x",
                                 .y = "y",
                                 .loss = "cross-entropy",
                                 .optimiser_kind = "momentum",
                                 .init = "he-normal",
                                 .schedule = "constant",
                                 .sampling = "shuffle",
                                 .clip = "flat",
                                 .noise_unit = "joint",
                                 .backend = "cpu",
                                 .checkpoint_seconds = 60,
                                 .momentum = 0.9,
                                 .confidence = 0.95,
                                 .lot = 128,
                                 .gibbs = 1,
                                 .seed = -1};

static const char *const noise_units[] = {"joint", "layer", NULL};

static const struct dpf_option options[] = {
    {.name = "arch",
     .kind = DPF_KIND_STRING,
     .target = &state.arch,
     .arg = "NAME|FILE",
     .help = "the network: an architecture's name (below), or a file with its text",
     .may_change = "a checkpoint is of the network's text, wherever that stands"},
    DPF_OPT_ENDPOINT("model", &state.model, "STREAM",
                     "start from this model (network and weights)", 0),
    DPF_OPT_FILE("weights", &state.weights, "FILE",
                 "start from these weights (safetensors)"),
    DPF_OPT_CHOICE("init", &state.init, dpf_initialisers, "NAME",
                   "how the first weights are drawn (he-normal)"),
    DPF_OPT_STRING("field", &state.x, "NAME", "the field that the network reads (x)"),
    DPF_OPT_STRING("target", &state.y, "NAME", "the field with the targets (y)"),
    DPF_OPT_CHOICE("loss", &state.loss, dpf_losses, "NAME", "the loss (cross-entropy)"),
    DPF_OPT_STRING("energy", &state.energy_node, "NODE",
                   "learn NODE, which has 'visible=1', as a restricted Boltzmann machine "
                   "of what it reads, by contrastive divergence; there is no target, and "
                   "the loss that is shown is half the squared distance of a record from "
                   "its reconstruction"),
    DPF_OPT_INT("gibbs", &state.gibbs, "K", 1, 10000,
                "with --energy: steps of Gibbs sampling for each gradient (1)"),
    DPF_OPT_FLAG("persistent", &state.persistent,
                 "with --energy: each chain goes on where it ended in the step before, "
                 "instead of starting at a record"),
    DPF_OPT_CHOICE("optimiser", &state.optimiser_kind, dpf_step_kinds, "NAME",
                   "the optimiser (momentum)"),
    DPF_OPT_REAL("rate", &state.rate, "R", 1e-12, 1e6, "learning rate (required)"),
    DPF_OPT_REAL("momentum", &state.momentum, "M", 0, 0.999999,
                 "coefficient of '--optimiser momentum' (0.9)"),
    DPF_OPT_CHOICE(
        "schedule", &state.schedule, dpf_schedules, "NAME",
        "how the rate changes: linear and cosine lead to --final-rate (constant)"),
    DPF_OPT_REAL("final-rate", &state.final_rate, "R", 0, 1e6,
                 "the last learning rate (0)"),
    DPF_OPT_INT("schedule-epochs", &state.schedule_epochs, "N", 1, 1e9,
                "number of epochs until --final-rate (--epochs)"),
    DPF_OPT_REAL("l1", &state.l1, "P", 0, 1e6, "L1 penalty (0)"),
    DPF_OPT_REAL("l2", &state.l2, "P", 0, 1e6, "L2 penalty (0)"),
    DPF_OPT_INT("epochs", &state.epochs, "N", 1, 1e9,
                "number of passes over the records (required)"),
    DPF_OPT_INT("lot", &state.lot, "N", 1, 4e9, "number of records in a step (128)"),
    DPF_OPT_CHOICE("sampling", &state.sampling, dpf_sampling_choices, "HOW",
                   "how lots are drawn: shuffle, poisson (each record independently), or "
                   "sequence (in order)"),
    DPF_OPT_REAL("clip-l2", &state.clip_l2, "C", 1e-12, 1e12,
                 "clip each record's gradient to this L2 norm"),
    DPF_OPT_CHOICE("clip", &state.clip, dpf_clip_choices, "RULE",
                   "flat: clip the whole gradient; layer: clip each of L layers (the "
                   "whole is then bounded by C sqrt L); automatic: scale every gradient"),
    DPF_OPT_REAL(
        "final-clip-l2", &state.final_clip_l2, "C", 1e-12, 1e12,
        "the clip norm of the last epoch; it changes linearly from epoch to epoch"),
    DPF_OPT_REAL(
        "noise-multiplier", &state.noise_multiplier, "S", 0.02, 1e6,
        "Gaussian noise on each lot's sum, in units of its sensitivity (DP-SGD)"),
    DPF_OPT_REAL(
        "final-noise-multiplier", &state.final_noise_multiplier, "S", 0.02, 1e6,
        "the multiplier of the last epoch; it changes linearly from epoch to epoch"),
    DPF_OPT_CHOICE("noise-unit", &state.noise_unit, noise_units, "WHAT",
                   "with --clip layer, what noise multipliers are multiples of: the "
                   "sensitivity of all layers together, or one layer's clip norm, which "
                   "papers then claim an epsilon for (joint)"),
    DPF_OPT_REAL("target-epsilon", &state.target_epsilon, "E", 1e-6, 1e4,
                 "choose the noise for this epsilon; with --noise-multiplier, stop "
                 "before this epsilon is exceeded"),
    DPF_OPT_REAL("delta", &state.delta, "D", 1e-300, 0.5,
                 "the delta of every epsilon that is stated"),
    DPF_OPT_INT("population", &state.population, "N", 1, 4e9,
                "a public number of records, for lots and epochs (else the true number, "
                "which is then public; required after a choice by content or label)"),
    DPF_OPT_INT("teachers", &state.teachers, "K", 1, DPF_PARTITION_MAX_PARTS,
                "train K networks, each on another of K parts of the records, for "
                "'teacher-infer' (PATE)"),
    DPF_OPT_INT(
        "copies", &state.copies.copies, "C", 1, 1000,
        "without noise: add C copies of each picture, or volume and mask, changed "
        "by --shift, --rotate, --flip; with --teachers to its part"),
    DPF_OPT_ENDPOINT("unlabelled", &state.unlabelled, "STREAM",
                     "public records without labels: train on them too, by what the "
                     "network is sure of (FixMatch), as a student of PATE does; an epoch "
                     "is a pass over them",
                     0),
    DPF_OPT_REAL("confidence", &state.confidence, "P", 0, 1,
                 "with --unlabelled: the probability from which on a class is taken for "
                 "a label (0.95)"),
    DPF_OPT_REAL("shift", &state.copies.shift, "F", 0, 0.999,
                 "with --copies or --unlabelled: move pictures by up to a fraction F of "
                 "height and width"),
    DPF_OPT_REAL("rotate", &state.copies.degrees, "DEGREES", 0, 180,
                 "with --copies or --unlabelled: turn by up to DEGREES in either "
                 "direction"),
    DPF_OPT_FLAG("flip", &state.copies.flip,
                 "with --copies or --unlabelled: mirror left to right, with probability "
                 "1/2"),
    {.name = "solve", /* so that the error can name the stage that does it now */
     .kind = DPF_KIND_STRING,
     .target = &state.solve,
     .flags = DPF_OPTION_HIDDEN,
     .may_change = "it is refused"},
    DPF_OPT_REAL(
        "validation", &state.validation, "F", 0, 0.9,
        "hold this share of the records back and report loss and accuracy on it"),
    DPF_OPT_INT("patience", &state.patience, "N", 1, 1e9,
                "stop after N epochs without a lower validation loss; keep the best"),
    DPF_OPT_INT_MAY_CHANGE("threads", &state.threads, "N", 1, 1024,
                           "number of threads (one for each processor)",
                           "a machine may have others; a notice tells of other rounding"),
    DPF_OPT_INT_MAY_CHANGE(
        "microbatch", &state.microbatch, "N", 1, 1e6,
        "number of records that a thread computes at a time (as many as fit the caches)",
        "the number in effect is compared: without noise a notice "
        "tells of other rounding, with noise it may not change"),
    DPF_OPT_STRING("backend", &state.backend, "NAME",
                   "where to compute: cpu, ref (plain C), or a plug-in (cpu)"),
    DPF_OPT_OUTFILE_MAY_CHANGE("checkpoint", &state.checkpoint, "FILE",
                               "save the state of training here, and continue from it",
                               "it is where the state stands"),
    {.name = "checkpoint-seconds",
     .kind = DPF_KIND_REAL,
     .target = &state.checkpoint_seconds,
     .arg = "S",
     .lo = 0,
     .hi = 1e9,
     .help = "time between two checkpoints; one is also saved after each epoch (60)",
     .flags = DPF_OPTION_IMMATERIAL,
     .may_change = "it is when states are written, not what is computed"},
    DPF_OPT_OUTFILE_MAY_CHANGE("export", &state.export_file, "FILE",
                               "write the weights as safetensors",
                               "a copy of the result"),
    {.name = "watch",
     .kind = DPF_KIND_ENDPOINT,
     .target = &state.watch,
     .arg = "STREAM",
     .help = "print loss and accuracy on these records after each epoch; they are not "
             "trained on",
     .flags = DPF_OPTION_IMMATERIAL,
     .may_change = "what is watched changes no weight"},
    DPF_OPT_OUTFILE_MAY_CHANGE("history", &state.history, "FILE",
                               "write loss and accuracy of every epoch as CSV",
                               "a report about the training"),
    DPF_OPT_OUTFILE_MAY_CHANGE("curve", &state.curve, "FILE",
                               "write the loss of every step as CSV",
                               "a report about the training"),
    DPF_OPT_INT("insecure-seed", &state.seed, "N", 0, 9e15,
                "draw everything from seed N, for tests: the result repeats, and no "
                "epsilon is stated"),
    DPF_OPT_END,
};

static const struct dpf_stage_info info = {
    .name = "train",
    .summary = "fit a network to records and their targets",
    .reads = "x: numbers or packed bits, y: labels or values",
    .writes = "a model: the network with its weights; with --teachers, one for each part",
    .privacy = "with noise, the ledger states it; without noise none is spent, and a "
               "model of private records is as private as they are",
    .example = "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow train "
               "--arch tiny --epochs 5 --rate 0.1 | dpflow inspect",
    .detail = "The same --insecure-seed, --threads and --microbatch give the same bits, "
              "also when a\n"
              "run was killed and continues from its --checkpoint. With --clip-l2, "
              "--threads may differ.\n"
              "Loss and accuracy that are shown while training are computed from the "
              "records without\n"
              "noise: they are private.",
    .add_tables = dpf_architecture_table,
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = dpf_train_options,
    .on_open = dpf_train_open,
    .on_batch = dpf_train_batch,
    .on_close = dpf_train_close,
    .on_release = dpf_train_release,
    .on_fingerprint = dpf_train_fingerprint,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
