#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static dpf_log_sink log_sink;
static void *log_context;

void dpf_log_set_sink(dpf_log_sink sink, void *context)
{
    log_sink = sink;
    log_context = context;
}

void dpf_notice(const char *format, ...)
{
    char line[512];
    va_list args;
    if (!log_sink)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    log_sink(log_context, line);
}

void dpf_notice_lines(const char *text)
{
    while (*text && *text != '\n') {
        size_t length = strcspn(text, "\n");
        dpf_notice("%.*s", (int)length, text);
        text += length + (text[length] == '\n');
    }
}
