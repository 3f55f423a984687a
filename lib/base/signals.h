/* Signals: a program that is told to stop leaves no half-written file, and no signal
 * writes into what is being computed.
 *
 * SIGINT, SIGTERM and SIGHUP set a flag; blocking calls return EINTR and the program
 * unwinds through its ordinary error path. Temporary files are registered so that they
 * can be removed even when the program has to leave from elsewhere.
 *
 * Before a handler runs, the kernel writes a frame of some kilobytes below the stack
 * pointer. Products of oneDNN point that register into a buffer in the heap while they
 * run, so the frame would overwrite whatever lies before the buffer: sums, or the
 * allocator's lists. Therefore no thread that computes takes a frame where its stack
 * pointer is:
 *
 * - threads that we start block all signals (dpf_thread_start);
 * - the thread that starts them has an alternate stack, and every handler of the process,
 *   a library's too, runs on it (dpf_signals_leave_stack).
 *
 * Faults (SIGSEGV and the like) stay open everywhere: blocked, they would kill without a
 * sanitizer's report; and nobody computes on after one. Threads that libraries start for
 * themselves (OpenBLAS, ZeroMQ, MPI) run none of these products. */
#ifndef DPF_BASE_SIGNALS_H
#define DPF_BASE_SIGNALS_H

#include <pthread.h>
#include <stdbool.h>

#include "base/status.h"

/* Install the handlers, except where a signal is ignored already (nohup, background jobs
 * of a shell); SIGPIPE is ignored, so that a closed pipe is an error, not a silent death.
 */
void dpf_signals_install(void);
/* Give the calling thread an alternate stack, if it has none that is large enough, and
 * let every handler that is installed by now run on it. To be called by a thread before
 * it computes, after libraries that bring handlers (MPI) were started. The stack stays
 * until the process ends. DPF_SYSTEM if there is no memory for it. */
enum dpf_status dpf_signals_leave_stack(struct dpf_error *e);
/* pthread_create(), with all signals but faults blocked in the new thread from its first
 * instruction on. Every thread of ours is started by it: signals are for the thread that
 * waits in system calls, which they interrupt. */
int dpf_thread_start(pthread_t *thread, void *(*run)(void *), void *argument);
/* A descriptor 0, 1 or 2 that is closed would be given to the next file that is opened,
 * and what is printed would end in it: put something there that fails instead. */
void dpf_standard_fds_guard(void);
bool dpf_stop_requested(void);
int dpf_stop_signal(void);
/* DPF_SYSTEM, naming the signal, if a stop was asked for. */
enum dpf_status dpf_stop_check(struct dpf_error *e);

/* Paths to unlink at the end. `path` is borrowed and must live until forgotten. */
void dpf_cleanup_register(const char *path);
void dpf_cleanup_forget(const char *path);
void dpf_cleanup_all(void);

#endif
