#include "pipeline/run.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/text.h"
#include "base/version.h"
#include "pipeline/watch.h"

#include "base/banned.h"

/* ------------------------------------------------------------------------- cause */

/* How likely a failure is what made the others fail. */
enum blame {
    BLAME_OWN,    /* it says why */
    BLAME_SILENT, /* killed: by somebody, or by mpirun because another failed */
    BLAME_PEER,   /* it says that another failed */
};

/* How a process ended, in words: from what it left behind, or from its exit. */
static enum blame outcome_of(const struct dpf_plan_process *p, const struct dpf_child *c,
                             struct dpf_error *out)
{
    *out = (struct dpf_error){.status = DPF_OK};
    bool spoke = dpf_progress_outcome(p->status_path, out);
    if (!c) { /* under mpirun */
        if (!spoke)
            dpf_fail(out, DPF_SYSTEM, "ended without an error message: was it killed?");
    } else if (WIFSIGNALED(c->wait_status) && !spoke) {
        out->consequence = c->told_to_stop;
        out->status = DPF_SYSTEM;
        snprintf(out->message, sizeof out->message, "was killed by signal %d (%s)",
                 WTERMSIG(c->wait_status), strsignal(WTERMSIG(c->wait_status)));
    } else if (WIFEXITED(c->wait_status) && WEXITSTATUS(c->wait_status) == 127 &&
               !spoke) {
        dpf_fail(out, DPF_UNAVAILABLE, "could not be started");
    } else if (c->wait_status != 0 && !spoke) {
        dpf_fail(out, DPF_SYSTEM, "ended without an error message");
    } else if (c->wait_status != 0 && out->status == DPF_OK) {
        dpf_fail(out, DPF_SYSTEM, "reported success, but its process failed");
    }
    return out->consequence ? BLAME_PEER : c || spoke ? BLAME_OWN : BLAME_SILENT;
}

/* The first process that failed by itself, else the first that failed at all. */
static enum dpf_status name_cause(const struct dpf_plan *plan,
                                  const struct dpf_child *children, struct dpf_error *e)
{
    size_t best = SIZE_MAX;
    struct dpf_error found = {.status = DPF_OK};
    enum blame least = BLAME_PEER;
    for (size_t i = 0; i < plan->process_count; i++) {
        struct dpf_error o;
        enum blame blame =
            outcome_of(&plan->processes[i], children ? &children[i] : NULL, &o);
        if (o.status == DPF_OK)
            continue;
        bool earlier =
            best != SIZE_MAX && children && children[i].order < children[best].order;
        if (best == SIZE_MAX || blame < least || (blame == least && earlier)) {
            best = i;
            least = blame;
            found = o;
        }
    }
    if (dpf_stop_requested())
        return dpf_fail_after_peer(e, DPF_SYSTEM,
                                   "interrupted by signal %d: all stages were stopped",
                                   dpf_stop_signal());
    if (best == SIZE_MAX)
        return DPF_OK;
    char *name = dpf_plan_process_name(plan, &plan->processes[best]);
    dpf_fail(e, found.status, "%s: %s", name ? name : "?", found.message);
    free(name);
    return found.status;
}

/* --------------------------------------------------------------------------- run */

/* A process that was killed could not clean up: nothing half-written stays. */
static void remove_parts(const struct dpf_plan *plan)
{
    for (size_t i = 0; i < plan->pipeline->count; i++) {
        char *part = dpf_format("%s" DPF_PART_SUFFIX, plan->streams[i].stored);
        if (part)
            unlink(part);
        free(part);
    }
}

/* Before the start: nothing may lie where a stream will be made, neither what a killed
 * runner left nor an older one; readers would follow it. */
static void clear_store(const struct dpf_plan *plan)
{
    remove_parts(plan);
    dpf_plan_discard(plan);
}

/* Link the stored file under the stream's name, replacing an older one at once. */
static enum dpf_status give_names(const struct dpf_plan *plan, struct dpf_error *e)
{
    for (size_t i = 0; i < plan->pipeline->count; i++) {
        const struct dpf_plan_stream *s = &plan->streams[i];
        char *next = dpf_format("%s" DPF_PART_SUFFIX, s->path);
        if (!next)
            return dpf_fail_memory(e);
        unlink(next);
        bool good = link(s->stored, next) == 0 && rename(next, s->path) == 0;
        enum dpf_status status =
            good ? DPF_OK : dpf_fail_errno(e, "cannot name '%s'", s->path);
        unlink(next); /* rename does nothing if both are the same file already */
        free(next);
        if (status != DPF_OK)
            return status;
    }
    return DPF_OK;
}

static enum dpf_status run_children(struct dpf_plan *plan, struct dpf_board *board,
                                    struct dpf_error *e)
{
    struct dpf_child *children = dpf_calloc(plan->process_count, sizeof *children);
    if (!children)
        return dpf_fail_memory(e);
    enum dpf_status status = DPF_OK;
    for (size_t i = 0; status == DPF_OK && i < plan->process_count; i++)
        status = dpf_child_start(&children[i], &plan->processes[i], e);
    if (status != DPF_OK) /* could not start all: end those that run */
        for (size_t i = 0; i < plan->process_count; i++)
            if (children[i].pid > 0)
                kill(children[i].pid, SIGTERM);
    dpf_children_watch(children, plan->process_count, board);
    if (status == DPF_OK)
        status = name_cause(plan, children, e);
    free(children);
    return status;
}

static enum dpf_status run_mpi(struct dpf_plan *plan, struct dpf_board *board,
                               const char *mpirun_args, struct dpf_error *e)
{
    struct dpf_error cause = {.status = DPF_OK};
    enum dpf_status status = dpf_mpi_job_run(plan, mpirun_args, board, e);
    if (status == DPF_OK || status == DPF_UNAVAILABLE || status == DPF_USAGE)
        return status;
    /* If no stage left an outcome, none was started: mpirun's own message counts. */
    bool any = false;
    for (size_t i = 0; i < plan->process_count && !any; i++) {
        struct dpf_counters now;
        any = dpf_progress_read(plan->processes[i].status_path, &now) ||
              dpf_progress_outcome(plan->processes[i].status_path, &cause);
    }
    if (any && name_cause(plan, NULL, &cause) != DPF_OK)
        *e = cause;
    return e->status;
}

/* The last lines of one log: long trainings write many. */
static void show_log(const char *label, const char *path)
{
    enum { LIMIT = 1 << 20, SHOWN = 6 };
    char *text = NULL, *rest;
    size_t lines = 0, line_number = 0;
    if (dpf_read_file(path, LIMIT, &text, NULL, NULL) != DPF_OK)
        return;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    if (lines > SHOWN)
        fprintf(stderr, "  %-14s ... %zu lines more in %s\n", label, lines - SHOWN, path);
    rest = text;
    for (char *line; (line = strsep(&rest, "\n"));)
        if (*line && ++line_number + SHOWN > lines)
            fprintf(stderr, "  %-14s %s\n", label, line);
    free(text);
}

/* Notices that stages wrote to their logs. */
static void show_notices(const struct dpf_plan *plan)
{
    for (size_t i = 0; i < plan->process_count; i++)
        show_log(plan->pipeline->statements[plan->processes[i].statement].label,
                 plan->processes[i].log_path);
}

enum dpf_status dpf_plan_run(struct dpf_plan *plan, const struct dpf_run_options *options,
                             struct dpf_error *e)
{
    struct dpf_board board;
    struct dpf_error ignored;
    enum dpf_status status = dpf_board_open(&board, plan, options->quiet, e);
    if (status != DPF_OK)
        return status;
    clear_store(plan);
    if (plan->process_count)
        status = plan->plumbing == DPF_PLUMB_MPI
                     ? run_mpi(plan, &board, options->mpirun_args, e)
                     : run_children(plan, &board, e);
    dpf_board_release(&board);
    if (status == DPF_OK && !options->quiet)
        show_notices(plan);
    if (status == DPF_OK)
        status = dpf_plan_verify(plan, e);
    else if (dpf_stop_requested())
        dpf_plan_discard(plan);
    else /* what was finished can be reused, if its inputs are what they were */
        dpf_plan_verify(plan, &ignored);
    if (status == DPF_OK)
        status = give_names(plan, e);
    else
        remove_parts(plan);
    return status;
}

/* ----------------------------------------------------------------------- summary */

static void add_stream(const struct dpf_plan *plan, size_t i, struct dpf_text *t)
{
    const struct dpf_plan_stream *s = &plan->streams[i];
    const char *file = dpf_path_base(s->path);
    struct dpf_counters now = {0};
    dpf_text_addf(t, "%s\n    {\"name\": ", i ? "," : "");
    dpf_text_add_json(t, plan->pipeline->statements[i].label,
                      strlen(plan->pipeline->statements[i].label));
    dpf_text_add(t, ", \"file\": ");
    dpf_text_add_json(t, file, strlen(file));
    dpf_text_addf(t, ", \"output\": %s, \"reused\": %s, \"key\": \"%s\"",
                  plan->pipeline->statements[i].is_output ? "true" : "false",
                  s->reused ? "true" : "false", s->key);
    for (size_t p = 0; p < plan->process_count; p++)
        if (plan->processes[p].statement == i &&
            plan->processes[p].command + 1 == plan->pipeline->statements[i].count &&
            dpf_progress_read(plan->processes[p].status_path, &now))
            dpf_text_addf(t, ", \"records\": %llu", (unsigned long long)now.records);
    dpf_text_add(t, "}");
}

enum dpf_status dpf_plan_write_summary(const struct dpf_plan *plan, struct dpf_error *e)
{
    struct dpf_text t = {0};
    const char *file = dpf_path_base(plan->pipeline->file);
    dpf_text_add(&t, "{\n  \"pipeline\": ");
    dpf_text_add_json(&t, file, strlen(file));
    dpf_text_addf(&t, ",\n  \"version\": \"%s\",\n  \"parameters\": {", DPF_VERSION);
    for (size_t i = 0; i < plan->pipeline->param_count; i++) {
        const struct dpf_param *p = &plan->pipeline->params[i];
        dpf_text_addf(&t, "%s\"%s\": ", i ? ", " : "", p->name);
        dpf_text_add_json(&t, p->value, strlen(p->value));
    }
    dpf_text_add(&t, "},\n  \"streams\": [");
    for (size_t i = 0; i < plan->pipeline->count; i++)
        add_stream(plan, i, &t);
    dpf_text_add(&t, "\n  ]\n}\n");
    char *path = dpf_path_join(plan->run_dir, "run.json");
    enum dpf_status status =
        t.failed || !path ? dpf_fail_memory(e) : dpf_write_file(path, t.data, t.size, e);
    free(path);
    dpf_text_release(&t);
    return status;
}

void dpf_store_prune(const char *store, bool everything)
{
    DIR *dir = opendir(store);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char *path = dpf_path_join(store, entry->d_name);
        struct stat s;
        /* one link: no run directory names it */
        if (path && lstat(path, &s) == 0 && S_ISREG(s.st_mode) &&
            (everything || s.st_nlink == 1))
            unlink(path);
        free(path);
    }
    closedir(dir);
}
