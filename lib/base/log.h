/* Notices that are not errors ("12 values were clipped"). The library hands them to a
 * sink; a stage's main program sets one that prints "stage: text" to standard error. */
#ifndef DPF_BASE_LOG_H
#define DPF_BASE_LOG_H

typedef void (*dpf_log_sink)(void *context, const char *line);

/* NULL (the default) drops notices. */
void dpf_log_set_sink(dpf_log_sink sink, void *context);
void dpf_notice(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A text of several lines, up to its end or its first empty line, a notice each. */
void dpf_notice_lines(const char *text);

#endif
