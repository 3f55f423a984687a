/* metrics.json and account.json: the figures of a run and its cost in privacy, collected
 * from its streams, so that scripts and reports need not read them. */
#ifndef DPF_PIPELINE_RESULTS_H
#define DPF_PIPELINE_RESULTS_H

#include "pipeline/plan.h"

/* Each writes a file into the run directory: one JSON object at the top, those of every
 * stream that has some under "streams". A run without any gets no file, and an old one
 * goes.
 * Metrics: the figures of `metric` frames; at the top the first one, an output before all
 * others. Streams with records hold no metrics and are not read.
 * Account: of every stream that is not public; at the top the dearest output. What
 * several outputs cost together, `account -i A -i B` says. */
enum dpf_status dpf_plan_write_metrics(const struct dpf_plan *plan, struct dpf_error *e);
enum dpf_status dpf_plan_write_account(const struct dpf_plan *plan, struct dpf_error *e);

#endif
