/* Run a program and keep what it prints. */
#ifndef DPF_PIPELINE_CAPTURE_H
#define DPF_PIPELINE_CAPTURE_H

#include "base/status.h"
#include "base/text.h"

/* argv[0] is a path. *exit_status is 128+signal for a killed one. Fails only if it could
 * not be started. */
enum dpf_status dpf_capture(char *const *argv, struct dpf_text *out, struct dpf_text *err,
                            int *exit_status, struct dpf_error *e);

#endif
