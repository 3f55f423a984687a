#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"

enum { CLEANUP_SLOTS = 64 };

static volatile sig_atomic_t stop_signal;
static const char *cleanup[CLEANUP_SLOTS];

static void on_stop(int number)
{
    stop_signal = number;
}

void dpf_signals_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction stop = {.sa_handler = on_stop}; /* no SA_RESTART: reads wake up */
    sigemptyset(&stop.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &stop, NULL);
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
}

void dpf_standard_fds_guard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            /* the lowest free one, so this one; and in the wrong direction */
            (void)!open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

bool dpf_stop_requested(void)
{
    return stop_signal != 0;
}

int dpf_stop_signal(void)
{
    return stop_signal;
}

void dpf_cleanup_register(const char *path)
{
    for (size_t i = 0; i < CLEANUP_SLOTS; i++)
        if (!cleanup[i]) {
            cleanup[i] = path;
            return;
        }
}

void dpf_cleanup_forget(const char *path)
{
    for (size_t i = 0; i < CLEANUP_SLOTS; i++)
        if (cleanup[i] == path)
            cleanup[i] = NULL;
}

void dpf_cleanup_all(void)
{
    for (size_t i = 0; i < CLEANUP_SLOTS; i++)
        if (cleanup[i]) {
            unlink(cleanup[i]);
            cleanup[i] = NULL;
        }
}
