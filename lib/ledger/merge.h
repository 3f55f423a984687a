/* Ledgers of streams that are read as one: see "Merging" in FORMAT.md. */
#ifndef DPF_LEDGER_MERGE_H
#define DPF_LEDGER_MERGE_H

#include "ledger/event.h"
#include "wire/stream.h"

/* Add the ledger, standing and provenance of the second header to the first: a
 * dpf_ledger_merger, to be handed to the readers of streams. */
enum dpf_status dpf_ledger_merge(struct dpf_header *into, const struct dpf_header *other,
                                 struct dpf_error *e);

/* A list of events as one more branch; and one `merge` of all branches in place of
 * events. `distinct_owners`: each is another owner's own records, so their costs do not
 * add up. */
void dpf_ledger_add_branch(struct dpf_values *branches, const struct dpf_values *events);
enum dpf_status dpf_ledger_write_merge(struct dpf_values *events,
                                       const struct dpf_values *branches,
                                       bool distinct_owners, struct dpf_error *e);

#endif
