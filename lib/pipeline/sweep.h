/* A pipeline file run once, or once for every combination of value lists. */
#ifndef DPF_PIPELINE_SWEEP_H
#define DPF_PIPELINE_SWEEP_H

#include <stdio.h>

#include "pipeline/run.h"

struct dpf_sweep {
    const char *file;
    const char *dir; /* the run directory; NULL: runs/NAME */
    const struct dpf_setting *settings;
    size_t setting_count;
    enum dpf_plumbing plumbing;
    bool fresh, dry_run;
    struct dpf_run_options run;
    FILE *out; /* what was made, and where */
};

enum { DPF_SWEEP_MAX_POINTS = 10000 };

enum dpf_status dpf_sweep_run(const struct dpf_sweep *sweep, struct dpf_error *e);

#endif
