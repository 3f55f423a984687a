/* dpflow: the front-end. Finds a stage's program and becomes it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/version.h"
#include "pipeline/completion.h"
#include "pipeline/manual.h"
#include "pipeline/stages.h"

#include "base/banned.h"

static void print_overview(FILE *out)
{
    fprintf(out, "usage: dpflow STAGE [options]       e.g.  dpflow load digits:train | "
                 "dpflow inspect\n"
                 "       dpflow run FILE [name=value...]\n"
                 "       dpflow help STAGE\n"
                 "       dpflow completion bash|zsh\n\nstages\n");
    for (const struct dpf_stage_entry *s = dpf_stage_entries; s->name; s++)
        fprintf(out, "  %-14s %s%s\n", s->name, s->summary,
                s->spends_privacy ? " (spends privacy)" : "");
}

static int unknown(const char *name)
{
    const char *near = dpf_stage_nearest(name);
    fprintf(stderr,
            near ? "dpflow: unknown stage '%s' (did you mean '%s'?)\n"
                 : "dpflow: unknown stage '%s' (see 'dpflow help')\n",
            name, near);
    return DPF_USAGE;
}

static int become(const char *name, char **argv)
{
    if (!dpf_stage_find(name))
        return unknown(name);
    char *path = dpf_stage_path(name);
    if (path)
        execv(path, argv);
    fprintf(stderr, "dpflow: cannot start stage '%s': %s\n", name, strerror(errno));
    free(path);
    return DPF_UNAVAILABLE;
}

/* What was printed has arrived, or the exit status says so. */
static int finish(int status)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == DPF_OK) {
        fprintf(stderr, "dpflow: cannot write 'standard output': %s\n", strerror(errno));
        return DPF_SYSTEM;
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    if (argc < 2) {
        print_overview(stderr);
        return DPF_USAGE;
    }
    if (strcmp(command, "--version") == 0) {
        printf("dpflow %s\n", DPF_VERSION);
        return finish(DPF_OK);
    }
    if (strcmp(command, "help") == 0 && argc > 2) {
        char *help[] = {argv[2], "--help", NULL};
        return become(argv[2], help);
    }
    if (strcmp(command, "help") == 0 || strcmp(command, "--help") == 0 ||
        strcmp(command, "-h") == 0) {
        print_overview(stdout);
        return finish(DPF_OK);
    }
    if (strcmp(command, "--dump-man") == 0) {
        struct dpf_text page = {0};
        dpf_manual(&page);
        fputs(dpf_text_get(&page), stdout);
        dpf_text_release(&page);
        return finish(DPF_OK);
    }
    if (strcmp(command, "completion") == 0)
        return finish(dpf_completion_print(argc > 2 ? argv[2] : ""));
    return become(command, argv + 1);
}
