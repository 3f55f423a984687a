#include "pipeline/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/signals.h"

#include "base/banned.h"

/* After a failure the others are given a moment to end by themselves (their pipes break),
 * then they are asked, then they are killed. */
static const double ask_after = 0.3, kill_after = 5;

static void close_and_forget(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void become(const struct dpf_plan_process *p, pid_t runner)
{
    /* If the runner is killed, its children end, too. */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != runner)
        _exit(1);
    signal(SIGCHLD, SIG_DFL);
    int null = open("/dev/null", O_RDWR);
    int log = open(p->log_path, O_WRONLY | O_CREAT | O_APPEND, 0666);
    dup2(p->stdin_fd >= 0 ? p->stdin_fd : null, 0);
    dup2(p->stdout_fd >= 0 ? p->stdout_fd : null, 1);
    dup2(log >= 0 ? log : null, 2);
    for (size_t i = 0; i < p->more_count; i++)
        fcntl(p->more_fds[i], F_SETFD, 0);
    setenv("DPFLOW_STATUS", p->status_path, 1);
    execv(p->argv[0], p->argv);
    _exit(127);
}

enum dpf_status dpf_child_start(struct dpf_child *child, struct dpf_plan_process *p,
                                struct dpf_error *e)
{
    pid_t runner = getpid();
    child->pid = fork();
    if (child->pid < 0) {
        child->pid = 0;
        return dpf_fail_errno(e, "cannot start stage '%s'", p->stage);
    }
    if (child->pid == 0)
        become(p, runner);
    close_and_forget(&p->stdin_fd);
    close_and_forget(&p->stdout_fd);
    for (size_t i = 0; i < p->more_count; i++)
        close_and_forget(&p->more_fds[i]);
    return DPF_OK;
}

static void on_child(int number)
{
    (void)number; /* it interrupts the pause, that is all */
}

void dpf_watch_pause(void)
{
    static bool installed;
    if (!installed) {
        struct sigaction a = {.sa_handler = on_child, .sa_flags = SA_ONSTACK};
        sigemptyset(&a.sa_mask);
        sigaction(SIGCHLD, &a, NULL);
        installed = true;
    }
    struct timespec t = {0, 20000000};
    nanosleep(&t, NULL);
}

static size_t reap(struct dpf_child *children, size_t count, struct dpf_board *board,
                   bool *failed)
{
    size_t ended = 0;
    for (size_t i = 0; i < count; i++) {
        struct dpf_child *c = &children[i];
        if (!c->ended && c->pid > 0 &&
            waitpid(c->pid, &c->wait_status, WNOHANG) == c->pid) {
            static size_t order;
            c->ended = true;
            c->order = ++order;
            bool good = WIFEXITED(c->wait_status) && WEXITSTATUS(c->wait_status) == 0;
            *failed = *failed || !good;
            dpf_board_end_row(board, i, good ? DPF_ROW_DONE : DPF_ROW_FAILED);
        }
        ended += c->ended || c->pid == 0;
    }
    return ended;
}

static void signal_all(struct dpf_child *children, size_t count, int number)
{
    for (size_t i = 0; i < count; i++)
        if (!children[i].ended && children[i].pid > 0) {
            children[i].told_to_stop = true;
            kill(children[i].pid, number);
        }
}

void dpf_children_watch(struct dpf_child *children, size_t count, struct dpf_board *board)
{
    bool failed = false, asked = false;
    double failed_at = 0;
    while (reap(children, count, board, &failed) < count) {
        failed = failed || dpf_stop_requested();
        double now = dpf_clock_seconds();
        if (failed && failed_at == 0)
            failed_at = now;
        if (failed && !asked && (dpf_stop_requested() || now - failed_at > ask_after)) {
            signal_all(children, count, SIGTERM);
            asked = true;
        }
        if (failed && now - failed_at > kill_after)
            signal_all(children, count, SIGKILL);
        dpf_board_draw(board, false);
        dpf_watch_pause();
    }
    dpf_board_draw(board, true);
}
