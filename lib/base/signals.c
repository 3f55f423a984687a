#include "base/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/banned.h"

enum { CLEANUP_SLOTS = 64 };

static volatile sig_atomic_t stop_signal;
static const char *cleanup[CLEANUP_SLOTS];

static void on_stop(int number)
{
    if (stop_signal == 0) /* what is told and the status that is left agree */
        stop_signal = number;
}

/* All but those that the thread's own instructions raise. */
static void fill_without_faults(sigset_t *set)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigfillset(set);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(set, faults[i]);
}

void dpf_signals_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    /* no SA_RESTART: reads wake up */
    struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_ONSTACK};
    dpf_signals_leave_stack(NULL); /* who computes asks again, and hears of a failure */
    fill_without_faults(&stop.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &stop, NULL);
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigemptyset(&ignore.sa_mask);
    sigaction(SIGPIPE, &ignore, NULL);
}

/* Room for a dozen handlers that interrupt each other: a frame holds all registers of the
 * processor, 3 KiB with AVX-512 and 11 KiB with AMX. */
static size_t alternate_bytes(void)
{
    size_t frame = (size_t)getauxval(AT_MINSIGSTKSZ), least = 65536;
    return 16 * frame > least ? 16 * frame : least;
}

/* Below the stack is a page that faults, so that too deep a handler ends the process
 * instead of writing elsewhere. */
static enum dpf_status give_alternate_stack(struct dpf_error *e)
{
    stack_t old, own = {.ss_size = alternate_bytes()};
    if (sigaltstack(NULL, &old) == 0 && !(old.ss_flags & SS_DISABLE) &&
        old.ss_size >= own.ss_size)
        return DPF_OK;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *map = mmap(NULL, page + own.ss_size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (map == MAP_FAILED)
        return dpf_fail_errno(e, "cannot make a stack for signals");
    own.ss_sp = map + page;
    if (mprotect(map, page, PROT_NONE) != 0 || sigaltstack(&own, NULL) != 0) {
        enum dpf_status status = dpf_fail_errno(e, "cannot make a stack for signals");
        munmap(map, page + own.ss_size);
        return status;
    }
    return DPF_OK;
}

enum dpf_status dpf_signals_leave_stack(struct dpf_error *e)
{
    enum dpf_status status = give_alternate_stack(e);
    /* The C library keeps two numbers for itself, for pthread_cancel() and setuid(), and
     * refuses them here; nobody calls either. */
    for (int number = 1; status == DPF_OK && number <= SIGRTMAX; number++) {
        struct sigaction a;
        if (sigaction(number, NULL, &a) != 0 || a.sa_flags & SA_ONSTACK ||
            a.sa_handler == SIG_DFL || a.sa_handler == SIG_IGN)
            continue;
        a.sa_flags |= SA_ONSTACK;
        if (sigaction(number, &a, NULL) != 0)
            status = dpf_fail_errno(e, "cannot move the handler of signal %d", number);
    }
    return status;
}

int dpf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument)
{
    sigset_t blocked, before;
    fill_without_faults(&blocked);
    /* A thread begins with the mask of the one that starts it. */
    int failure = pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (failure != 0)
        return failure;
    failure = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failure;
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

enum dpf_status dpf_stop_check(struct dpf_error *e)
{
    return stop_signal ? dpf_fail_after_peer(e, DPF_SYSTEM, "interrupted by signal %d",
                                             (int)stop_signal)
                       : DPF_OK;
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
