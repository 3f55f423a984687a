/* Whether branches of events (of a merge, or of teachers) are of different records, as
 * far as the ledger can show. */
#ifndef DPF_ACCOUNT_BRANCHES_H
#define DPF_ACCOUNT_BRANCHES_H

#include "ledger/event.h"

/* Whether neighbours by this relation (0: add-remove, 1: replace-one) differ in one of
 * the branches only: they are different parts of one partition of one source, made before
 * anything else but selections that leave neighbours neighbours. */
bool dpf_branches_disjoint(const msgpack_object *branches, int relation);
/* Whether somebody's word that branches are of different owners can be taken: it was
 * given, and the ledger does not say otherwise. */
bool dpf_branches_of_owners(const struct dpf_event *v);

#endif
