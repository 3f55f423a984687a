#include "base/signals.h"

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
    struct sigaction stop = {.sa_handler = on_stop}; /* no SA_RESTART: reads wake up */
    sigemptyset(&stop.sa_mask);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGHUP, &stop, NULL);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
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
