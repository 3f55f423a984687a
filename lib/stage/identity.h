/* What a stage's result depends on: as a fingerprint for the runner, which reuses
 * finished streams by it, and as an entry in the stream's provenance for people. */
#ifndef DPF_STAGE_IDENTITY_H
#define DPF_STAGE_IDENTITY_H

#include "stage/stage.h"

/* Print "source HEX", "stream HEX" (a filter) or "text HEX" (a sink) to standard output,
 * after "side-effects" if options name files that the stage writes besides. */
enum dpf_status dpf_stage_print_fingerprint(struct dpf_stage *s, struct dpf_error *e);
/* Append this stage to the provenance of its output. */
enum dpf_status dpf_stage_add_provenance(struct dpf_stage *s, struct dpf_error *e);

#endif
