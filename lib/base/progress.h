/* How a stage tells the runner what it is doing. The runner names a file in
 * $DPFLOW_STATUS; the stage keeps one fixed line of counters in it and, at the end,
 * leaves its status and error text beside it. Files work the same under fork, mpirun and
 * ssh. */
#ifndef DPF_BASE_PROGRESS_H
#define DPF_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct dpf_counters {
    uint64_t records, total; /* total 0: unknown */
    uint64_t bytes;
};

struct dpf_progress;
/* NULL if nobody asked; every function takes NULL. */
struct dpf_progress *dpf_progress_new(void);
/* Writes at most ten times a second. */
void dpf_progress_update(struct dpf_progress *p, const struct dpf_counters *now);
/* Final counters and the outcome; frees. */
void dpf_progress_finish(struct dpf_progress **p, const struct dpf_counters *now,
                         const struct dpf_error *outcome);

/* The runner's side. False if nothing was written yet. */
bool dpf_progress_read(const char *path, struct dpf_counters *now);
/* The outcome that a stage left: false if it ended without one. */
bool dpf_progress_outcome(const char *path, struct dpf_error *outcome);

#endif
