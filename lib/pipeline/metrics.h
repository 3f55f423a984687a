/* metrics.json: the figures of a run, collected from the `metric` frames of its streams,
 * so that scripts and reports need not read streams. */
#ifndef DPF_PIPELINE_METRICS_H
#define DPF_PIPELINE_METRICS_H

#include "pipeline/plan.h"

/* Write metrics.json into the run directory: the figures of the first metric (an output
 * before all others) at the top, those of every stream that has some under "streams". A
 * run without metrics gets none, and an old file goes. Streams with records hold no
 * metrics and are not read. */
enum dpf_status dpf_plan_write_metrics(const struct dpf_plan *plan, struct dpf_error *e);

#endif
