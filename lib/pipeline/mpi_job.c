/* A pipeline as one MPI job: an app file for mpirun with one program for each stage. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/text.h"
#include "pipeline/watch.h"

#include "base/banned.h"

/* App files know no quoting, so each stage gets a small script that holds its words. */
static enum dpf_status write_script(const struct dpf_plan_process *p, const char *path,
                                    struct dpf_error *e)
{
    struct dpf_text t = {0};
    dpf_text_add(&t, "DPFLOW_TRANSPORT=mpi DPFLOW_STATUS=");
    dpf_text_add_quoted(&t, p->status_path);
    dpf_text_add(&t, "\nexport DPFLOW_TRANSPORT DPFLOW_STATUS\nexec");
    for (size_t i = 0; i < p->argc; i++) {
        dpf_text_add(&t, " ");
        dpf_text_add_quoted(&t, p->argv[i]);
    }
    dpf_text_add(&t, " 2>>");
    dpf_text_add_quoted(&t, p->log_path);
    dpf_text_add(&t, " </dev/null\n");
    enum dpf_status status =
        t.failed ? dpf_fail_memory(e) : dpf_write_file(path, t.data, t.size, e);
    dpf_text_release(&t);
    return status;
}

static enum dpf_status write_app_file(const struct dpf_plan *plan, const char *path,
                                      struct dpf_error *e)
{
    struct dpf_text app = {0};
    enum dpf_status status = DPF_OK;
    if (strpbrk(plan->work, " \t\n'\"\\"))
        return dpf_fail(e, DPF_USAGE,
                        "the run directory '%s' has blanks or quotes, which mpirun's app "
                        "files cannot hold",
                        plan->run_dir);
    for (size_t i = 0; status == DPF_OK && i < plan->process_count; i++) {
        char *script = dpf_format("%s/%zu.sh", plan->work, i);
        status =
            script ? write_script(&plan->processes[i], script, e) : dpf_fail_memory(e);
        dpf_text_addf(&app, "-np 1 sh %s\n", script ? script : "");
        free(script);
    }
    if (status == DPF_OK)
        status =
            app.failed ? dpf_fail_memory(e) : dpf_write_file(path, app.data, app.size, e);
    dpf_text_release(&app);
    return status;
}

enum { MAX_ARGUMENTS = 256 };

/* mpirun's words; `extra` (changed here) is cut at blanks. No shell sees them. */
static void command_line(char *app, char *extra, char *argv[MAX_ARGUMENTS])
{
    static char mpirun[] = "mpirun", root[] = "--allow-run-as-root",
                over[] = "--oversubscribe", bind[] = "--bind-to", none[] = "none",
                file[] = "--app";
    size_t n = 0;
    argv[n++] = mpirun;
    if (geteuid() == 0)
        argv[n++] = root;
    argv[n++] = over;
    argv[n++] = bind;
    argv[n++] = none;
    for (char *word; extra && (word = strsep(&extra, " \t")) && n + 3 < MAX_ARGUMENTS;)
        if (*word)
            argv[n++] = word;
    argv[n++] = file;
    argv[n++] = app;
    argv[n] = NULL;
}

static pid_t start(char *const *argv, const char *log)
{
    pid_t runner = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != runner)
        _exit(1);
    signal(SIGCHLD, SIG_DFL);
    int null = open("/dev/null", O_RDONLY);
    int out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    execvp(argv[0], argv);
    _exit(127);
}

/* Show who has ended; true if one of them has failed. */
static bool note_ended(struct dpf_plan *plan, struct dpf_board *board, bool *seen)
{
    bool failed = false;
    for (size_t i = 0; i < plan->process_count; i++) {
        struct dpf_error outcome;
        if (seen[i] || !dpf_progress_outcome(plan->processes[i].status_path, &outcome))
            continue;
        seen[i] = true;
        failed = failed || outcome.status != DPF_OK;
        dpf_board_end_row(board, i,
                          outcome.status == DPF_OK ? DPF_ROW_DONE : DPF_ROW_FAILED);
    }
    return failed;
}

/* Wait for mpirun. A rank that fails aborts the job, and mpirun ends the others; but when
 * several abort at the same time, OpenMPI 4.1 may wait for itself for ever: all ranks are
 * gone and mpirun is not. So it is ended some seconds after a failure. */
static int watch(pid_t pid, struct dpf_plan *plan, struct dpf_board *board, bool *seen)
{
    enum { ABORT_SECONDS = 5, TERMINATE_SECONDS = 8 };
    int wait_status = 0;
    double asked = 0, failed = 0;
    while (waitpid(pid, &wait_status, WNOHANG) != pid) {
        double now = dpf_clock_seconds();
        bool hangs = failed > 0 && now - failed > ABORT_SECONDS;
        if ((dpf_stop_requested() || hangs) && asked == 0) {
            kill(pid, SIGTERM);
            asked = now;
        }
        if (asked > 0 && now - asked > TERMINATE_SECONDS)
            kill(pid, SIGKILL);
        if (note_ended(plan, board, seen) && failed == 0)
            failed = now;
        dpf_board_draw(board, false);
        dpf_watch_pause();
    }
    note_ended(plan, board, seen);
    dpf_board_draw(board, true);
    return wait_status;
}

enum dpf_status dpf_mpi_job_run(struct dpf_plan *plan, const char *mpirun_args,
                                struct dpf_board *board, struct dpf_error *e)
{
    char *app = dpf_path_join(plan->work, "mpirun.app");
    char *log = dpf_path_join(plan->work, "mpirun.log");
    char *extra = dpf_strdup(mpirun_args ? mpirun_args : "");
    char *argv[MAX_ARGUMENTS];
    bool *seen = dpf_calloc(plan->process_count, sizeof *seen);
    enum dpf_status status =
        app && log && extra && seen ? write_app_file(plan, app, e) : dpf_fail_memory(e);
    int wait_status = 0;
    if (status == DPF_OK) {
        command_line(app, extra, argv);
        pid_t pid = start(argv, log);
        if (pid < 0)
            status = dpf_fail_errno(e, "cannot start 'mpirun'");
        else
            wait_status = watch(pid, plan, board, seen);
    }
    if (status == DPF_OK && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 127)
        status =
            dpf_fail(e, DPF_UNAVAILABLE, "cannot start 'mpirun': install openmpi-bin");
    else if (status == DPF_OK && wait_status != 0)
        status = dpf_fail(e, DPF_SYSTEM, "mpirun failed (its output is in '%s')", log);
    free(app);
    free(log);
    free(extra);
    free(seen);
    return status;
}
