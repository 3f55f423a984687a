/* Signals: a program that is told to stop leaves no half-written file.
 *
 * SIGINT, SIGTERM and SIGHUP set a flag; blocking calls return EINTR and the program
 * unwinds through its ordinary error path. Temporary files are registered so that they
 * can be removed even when the program has to leave from elsewhere. */
#ifndef DPF_BASE_SIGNALS_H
#define DPF_BASE_SIGNALS_H

#include <stdbool.h>

/* Install the handlers, except where a signal is ignored already (nohup, background jobs
 * of a shell); SIGPIPE is ignored, so that a closed pipe is an error, not a silent death.
 */
void dpf_signals_install(void);
/* A descriptor 0, 1 or 2 that is closed would be given to the next file that is opened,
 * and what is printed would end in it: put something there that fails instead. */
void dpf_standard_fds_guard(void);
bool dpf_stop_requested(void);
int dpf_stop_signal(void);

/* Paths to unlink at the end. `path` is borrowed and must live until forgotten. */
void dpf_cleanup_register(const char *path);
void dpf_cleanup_forget(const char *path);
void dpf_cleanup_all(void);

#endif
