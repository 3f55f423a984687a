#include "pipeline/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"

static void become(char *const *argv, int out, int err)
{
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out, 1);
    dup2(err, 2);
    execv(argv[0], argv);
    _exit(127);
}

/* Move what is there from one descriptor; false at its end. */
static bool drain(int fd, struct dpf_text *text)
{
    char block[4096];
    ssize_t n = read(fd, block, sizeof block);
    if (n > 0)
        dpf_text_addn(text, block, (size_t)n);
    return n > 0 || (n < 0 && errno == EINTR);
}

enum dpf_status dpf_capture(char *const *argv, struct dpf_text *out, struct dpf_text *err,
                            int *exit_status, struct dpf_error *e)
{
    int a[2] = {-1, -1}, b[2] = {-1, -1};
    if (pipe2(a, O_CLOEXEC) != 0)
        return dpf_fail_errno(e, "cannot start '%s'", argv[0]);
    pid_t pid = pipe2(b, O_CLOEXEC) == 0 ? fork() : -1;
    if (pid == 0)
        become(argv, a[1], b[1]);
    close(a[1]);
    if (b[1] >= 0)
        close(b[1]);
    struct pollfd fds[] = {{a[0], POLLIN, 0}, {b[0], POLLIN, 0}};
    struct dpf_text *texts[] = {out, err};
    while (pid > 0 && (fds[0].fd >= 0 || fds[1].fd >= 0)) {
        if (poll(fds, 2, -1) < 0 && errno != EINTR)
            break;
        for (int i = 0; i < 2; i++)
            if (fds[i].fd >= 0 && fds[i].revents && !drain(fds[i].fd, texts[i]))
                fds[i].fd = -1;
    }
    close(a[0]);
    if (b[0] >= 0)
        close(b[0]);
    int status = 0;
    if (pid < 0)
        return dpf_fail_errno(e, "cannot start '%s'", argv[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return DPF_OK;
}
