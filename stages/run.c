/* run: run a pipeline file. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "pipeline/sweep.h"
#include "stage/stage.h"

#include "base/banned.h"

static struct running {
    const char *dir, *transport, *mpirun;
    bool fresh, dry_run;
} state = {.transport = "pipe"};

static const char *const transports[] = {"pipe", "zmq", "mpi", NULL};

static const struct dpf_option options[] = {
    DPF_OPT_STRING("dir", &state.dir, "DIR",
                   "the run directory (runs/NAME): every named stream ends there"),
    DPF_OPT_CHOICE("transport", &state.transport, transports, "HOW",
                   "how stages are connected; the result is the same"),
    DPF_OPT_FLAG("fresh", &state.fresh, "make every stream again, reuse nothing"),
    DPF_OPT_FLAG("dry-run", &state.dry_run, "print the commands that would run"),
    DPF_OPT_STRING("mpirun-args", &state.mpirun, "ARGS",
                   "further arguments of mpirun, e.g. '--hostfile hosts'"),
    DPF_OPT_END,
};

/* FILE name=value...: the values may be lists. */
static enum dpf_status read_settings(struct dpf_stage *s, struct dpf_setting *settings,
                                     struct dpf_error *e)
{
    for (size_t i = 1; i < s->argument_count; i++) {
        const char *word = s->arguments[i], *equals = strchr(word, '=');
        if (!equals || equals == word)
            return dpf_fail(e, DPF_USAGE, "'%s' is not name=value", word);
        settings[i - 1] =
            (struct dpf_setting){dpf_strndup(word, (size_t)(equals - word)), equals + 1};
    }
    return DPF_OK;
}

static enum dpf_status on_run(struct dpf_stage *s, struct dpf_error *e)
{
    const struct running *v = s->state;
    size_t count = s->argument_count - 1;
    struct dpf_setting *settings = dpf_calloc(count, sizeof *settings);
    if (!settings)
        return dpf_fail_memory(e);
    enum dpf_status status = read_settings(s, settings, e);
    struct dpf_sweep sweep = {
        .file = s->arguments[0],
        .dir = v->dir,
        .settings = settings,
        .setting_count = count,
        .plumbing = strcmp(v->transport, "zmq") == 0   ? DPF_PLUMB_ZMQ
                    : strcmp(v->transport, "mpi") == 0 ? DPF_PLUMB_MPI
                                                       : DPF_PLUMB_PIPE,
        .fresh = v->fresh,
        .dry_run = v->dry_run,
        .run = {.quiet = dpf_option_given(&s->parsed, "quiet"), .mpirun_args = v->mpirun},
        .out = s->text};
    if (status == DPF_OK)
        status = dpf_sweep_run(&sweep, e);
    for (size_t i = 0; i < count; i++)
        free((char *)settings[i].name);
    free(settings);
    return status;
}

static const struct dpf_stage_info info = {
    .name = "run",
    .summary = "run a pipeline file: start, connect and watch all its stages",
    .reads = "a pipeline file (pipelines/FORMAT.md)",
    .writes = "a run directory with every named stream and run.json",
    .privacy = "what the stages spend; finished streams are reused, not released again",
    .example = "dpflow run pipelines/first-look.pipe data=digits",
    .detail = "A list of values (name=1,2,3) runs the file once for each value, each in "
              "a folder of\n"
              "its own; streams that do not depend on the value are made once.",
    .arguments = "FILE [name=value...]",
    .min_arguments = 1,
    .max_arguments = 1024,
    .kind = DPF_PROGRAM,
    .options = options,
    .state = &state,
    .on_run = on_run,
};

int main(int argc, char **argv)
{
    return dpf_stage_main(&info, argc, argv);
}
