/* What `load` says of its source: by content, keyed with the owner's secret where the
 * records are private (ledger/source.h). */
#ifndef DPF_STAGE_SOURCE_EVENT_H
#define DPF_STAGE_SOURCE_EVENT_H

#include "data/contents.h"
#include "stage/stage.h"

/* Append the events of a source with these contents, named by the stage's arguments: what
 * it is, and how many records a person has if a file was given more than once. An owner's
 * key that others can read is DPF_PRIVACY; without one the source is unknown, with a
 * notice. */
enum dpf_status dpf_source_describe(struct dpf_stage *s, const struct dpf_contents *c,
                                    struct dpf_error *e);

#endif
