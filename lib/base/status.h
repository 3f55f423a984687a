/* Status and error text.
 *
 * Every function of the library that can fail returns an enum dpf_status and fills a
 * struct dpf_error with one line for people. The library never prints and never exits:
 * only the main program of a stage does, so one place decides what a user sees. The
 * numeric values are the exit statuses of every dpflow program. */
#ifndef DPF_BASE_STATUS_H
#define DPF_BASE_STATUS_H

#include <stdarg.h>
#include <stdbool.h>

enum dpf_status {
    DPF_OK = 0,
    DPF_SYSTEM = 1,      /* the operating system said no */
    DPF_USAGE = 2,       /* the command line or a pipeline file is wrong */
    DPF_BAD_STREAM = 3,  /* input is malformed, truncated or out of its declared range */
    DPF_PRIVACY = 4,     /* refused because a privacy rule would be broken */
    DPF_UNAVAILABLE = 5, /* a backend, plug-in or data set is not here */
};

struct dpf_error {
    enum dpf_status status;
    bool consequence; /* a peer failed first: a runner looks for the cause elsewhere */
    char message[480];
};

/* Record a failure and return its status, so that callers can `return dpf_fail(...)`.
 * `e` may be NULL when nobody wants the text. Quote the subject: 'x'. */
enum dpf_status dpf_fail(struct dpf_error *e, enum dpf_status status, const char *format,
                         ...) __attribute__((format(printf, 3, 4)));

/* The same for failures that a peer's failure caused (closed pipe, missing trailer). */
enum dpf_status dpf_fail_after_peer(struct dpf_error *e, enum dpf_status status,
                                    const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* DPF_SYSTEM with strerror(errno) at the end: dpf_fail_errno(e, "cannot open '%s'", p).
 */
enum dpf_status dpf_fail_errno(struct dpf_error *e, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

enum dpf_status dpf_fail_memory(struct dpf_error *e);

/* Put "context: " in front of a message that is already there. Returns `status`. */
enum dpf_status dpf_error_prefix(struct dpf_error *e, enum dpf_status status,
                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A word for a status: "ok", "system error", ... */
const char *dpf_status_name(enum dpf_status status);

#endif
