/* teacher-infer: teachers' answers to public inputs. */
#include "asking.h"

#include "base/banned.h"

static struct dpf_asking state = {.field = "x", .backend = "cpu"};

static const struct dpf_option options[] = {
    {.name = "model",
     .kind = DPF_KIND_ENDPOINTS,
     .target = &state.models,
     .arg = "STREAM",
     .help = "a teacher, or several: a stream of 'train', with one model or of "
             "--teachers, or a folder of such streams; may be given more than once",
     .flags = DPF_OPTION_REQUIRED},
    DPF_OPT_ENDPOINT("encoder", &state.encoder_stream, "STREAM",
                     "answer by codes: what this public model, an autoencoder or "
                     "principal components, makes of a teacher's probabilities",
                     0),
    DPF_OPT_STRING("node", &state.node, "NAME",
                   "the encoder's node that is the code ('code', else its output)"),
    DPF_OPT_FLAG("scores", &state.scores_as_code,
                 "answer by the probabilities themselves, of all classes and positions"),
    DPF_OPT_FLAG("window", &state.window,
                 "inputs may be larger than those of the networks: average scores over "
                 "overlapping windows, as 'infer --window' does"),
    DPF_OPT_REAL("norm", &state.norm, "R", 1e-6, 1e6,
                 "shorten longer codes to this L2 norm before they leave"),
    DPF_OPT_STRING("field", &state.field, "NAME", "the field that networks read (x)"),
    DPF_OPT_INT_IMMATERIAL("threads", &state.threads, "N", 1, 1024,
                           "number of threads (one for each processor)"),
    DPF_OPT_STRING("backend", &state.backend, "NAME",
                   "where to compute: cpu, ref (plain C), or a plug-in (cpu)"),
    DPF_OPT_END,
};

static const struct dpf_stage_info info = {
    .name = "teacher-infer",
    .summary = "compute teachers' votes or codes on public inputs, for 'aggregate'",
    .reads = "x: numbers or packed bits, public",
    .writes =
        "for each input and teacher: query (number and digest of the input), teacher, "
        "vote or code",
    .privacy = "none spent: the answers are as private as the teachers' records until "
               "'aggregate' releases them",
    .example =
        "dpflow load digits:train | dpflow normalize --unit 0:16 | dpflow train "
        "--teachers 5 --arch tiny --epochs 5 --rate 0.1 -o teachers.mp && dpflow load "
        "digits:test --public | dpflow normalize --unit 0:16 | dpflow teacher-infer "
        "--model teachers.mp | dpflow inspect",
    .detail = "Each teacher votes for the class of its highest score, or gives a code "
              "(--encoder,\n--scores). Inputs leave by "
              "their number and\n"
              "digest alone, so that answers to other inputs are noticed.",
    .kind = DPF_FILTER,
    .options = options,
    .state = &state,
    .on_options = dpf_asking_options,
    .on_open = dpf_asking_open,
    .on_batch = dpf_asking_batch,
    .on_release = dpf_asking_release,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
