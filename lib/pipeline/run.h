/* Running a plan: start every process, watch them, name the first cause if one fails, and
 * give the finished streams their names. */
#ifndef DPF_PIPELINE_RUN_H
#define DPF_PIPELINE_RUN_H

#include "pipeline/plan.h"

struct dpf_run_options {
    bool quiet;
    const char *mpirun_args; /* put into mpirun's command line, or NULL */
};

/* DPF_OK if every process ended well and every stream has its name. The error of the
 * process that failed first otherwise; the others have been ended, nobody is left. */
enum dpf_status dpf_plan_run(struct dpf_plan *plan, const struct dpf_run_options *options,
                             struct dpf_error *e);
/* Write run.json into the run directory: parameters, streams, what was reused. */
enum dpf_status dpf_plan_write_summary(const struct dpf_plan *plan, struct dpf_error *e);
/* Remove from a store what no run directory names any more, or everything. */
void dpf_store_prune(const char *store, bool everything);

#endif
