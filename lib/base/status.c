#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* A message is one line whatever a hostile file name holds. */
static void flatten(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            *text = '?';
}

static void record(struct dpf_error *e, enum dpf_status status, bool consequence,
                   const char *format, va_list args)
{
    if (!e)
        return;
    e->status = status;
    e->consequence = consequence;
    vsnprintf(e->message, sizeof e->message, format, args);
    flatten(e->message);
}

enum dpf_status dpf_fail(struct dpf_error *e, enum dpf_status status, const char *format,
                         ...)
{
    va_list args;
    va_start(args, format);
    record(e, status, false, format, args);
    va_end(args);
    return status;
}

enum dpf_status dpf_fail_after_peer(struct dpf_error *e, enum dpf_status status,
                                    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    record(e, status, true, format, args);
    va_end(args);
    return status;
}

enum dpf_status dpf_fail_errno(struct dpf_error *e, const char *format, ...)
{
    int code = errno;
    va_list args;
    va_start(args, format);
    record(e, DPF_SYSTEM, false, format, args);
    va_end(args);
    if (e) {
        size_t used = strlen(e->message);
        snprintf(e->message + used, sizeof e->message - used, ": %s", strerror(code));
    }
    return DPF_SYSTEM;
}

enum dpf_status dpf_fail_memory(struct dpf_error *e)
{
    return dpf_fail(e, DPF_SYSTEM, "out of memory");
}

enum dpf_status dpf_error_prefix(struct dpf_error *e, enum dpf_status status,
                                 const char *format, ...)
{
    if (!e)
        return status;
    char tail[sizeof e->message];
    memcpy(tail, e->message, sizeof tail);
    va_list args;
    va_start(args, format);
    vsnprintf(e->message, sizeof e->message, format, args);
    va_end(args);
    flatten(e->message);
    size_t used = strlen(e->message);
    snprintf(e->message + used, sizeof e->message - used, ": %s", tail);
    return status;
}

const char *dpf_status_name(enum dpf_status status)
{
    switch (status) {
    case DPF_OK:
        return "ok";
    case DPF_SYSTEM:
        return "system error";
    case DPF_USAGE:
        return "usage error";
    case DPF_BAD_STREAM:
        return "bad or truncated input";
    case DPF_PRIVACY:
        return "refused for privacy";
    case DPF_UNAVAILABLE:
        return "unavailable";
    }
    return "unknown status";
}
