#include "base/progress.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#include "base/banned.h"

#define COUNTERS_FORMAT "%20" PRIu64 " %20" PRIu64 " %20" PRIu64 "\n"

struct dpf_progress {
    char *path;
    int fd;
    double last;
};

struct dpf_progress *dpf_progress_new(void)
{
    const char *path = getenv("DPFLOW_STATUS");
    if (!path || !*path)
        return NULL;
    struct dpf_progress *p = dpf_calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->path = dpf_strdup(path);
    p->fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    return p;
}

static void write_counters(struct dpf_progress *p, const struct dpf_counters *now)
{
    char line[96];
    int n = snprintf(line, sizeof line, COUNTERS_FORMAT, now->records, now->total,
                     now->bytes);
    if (p->fd >= 0 && pwrite(p->fd, line, (size_t)n, 0) != n) {
        close(p->fd); /* progress is a courtesy: a full disk fails elsewhere */
        p->fd = -1;
    }
}

void dpf_progress_update(struct dpf_progress *p, const struct dpf_counters *now)
{
    if (!p)
        return;
    double t = dpf_clock_seconds();
    if (t - p->last < 0.1)
        return;
    p->last = t;
    write_counters(p, now);
}

void dpf_progress_finish(struct dpf_progress **pp, const struct dpf_counters *now,
                         const struct dpf_error *outcome)
{
    struct dpf_progress *p = *pp;
    if (!p)
        return;
    write_counters(p, now);
    char *path = dpf_format("%s.end", p->path);
    char *text = dpf_format("%d %d %s\n", (int)outcome->status, outcome->consequence,
                            outcome->message);
    if (path && text)
        dpf_write_file(path, text, strlen(text), NULL);
    free(path);
    free(text);
    if (p->fd >= 0)
        close(p->fd);
    free(p->path);
    free(p);
    *pp = NULL;
}

bool dpf_progress_read(const char *path, struct dpf_counters *now)
{
    char line[96] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = pread(fd, line, sizeof line - 1, 0);
    close(fd);
    return n > 0 && sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu64, &now->records,
                           &now->total, &now->bytes) == 3;
}

bool dpf_progress_outcome(const char *path, struct dpf_error *outcome)
{
    char *name = dpf_format("%s.end", path), *text = NULL;
    bool found = false;
    int status, consequence, used;
    if (name && dpf_read_file(name, 4096, &text, NULL, NULL) == DPF_OK &&
        sscanf(text, "%d %d %n", &status, &consequence, &used) == 2) {
        outcome->status = (enum dpf_status)status;
        outcome->consequence = consequence != 0;
        snprintf(outcome->message, sizeof outcome->message, "%.*s",
                 (int)strcspn(text + used, "\n"), text + used);
        found = true;
    }
    free(name);
    free(text);
    return found;
}
