/* What a score was measured on: which records, whether the model has seen them, and
 * whether they were randomised like those it was trained on. A score on records that were
 * trained on does not measure generalisation, and one on randomised records is another
 * figure than one on clean ones; so both are stated with it. All of it is read from the
 * events of the two streams; ledger/source.h says when records are the same. */
#ifndef DPF_LEDGER_LINEAGE_H
#define DPF_LEDGER_LINEAGE_H

#include "base/findings.h"
#include "ledger/source.h"

enum dpf_membership {
    DPF_HELD_OUT, /* no record that the model was made of is among them */
    DPF_SEEN,     /* the same records, or some of them */
    DPF_UNKNOWN,  /* neither can be proven */
};

struct dpf_lineage {
    struct dpf_text records, trained_on; /* sources, separated by ", " */
    enum dpf_membership membership;
    struct dpf_text
        randomised; /* the methods that the inputs went through; empty: none */
};

/* Compare the ledger of a model with that of records. */
void dpf_lineage_read(struct dpf_lineage *l, const struct dpf_header *model,
                      const struct dpf_header *records);
void dpf_lineage_release(struct dpf_lineage *l);
/* Behind a score: two rows, and members "records", "trained_on", "held_out" and
 * "inputs_randomised". */
void dpf_lineage_report(const struct dpf_lineage *l, struct dpf_findings *f);

/* The parts that a list of events (a branch) took of one source, before anything was
 * spent on it or made of it, and with neighbours by this relation (0: add-remove, 1:
 * replace-one) still neighbours: only then do parts without a common record count once.
 * False if there are none, or the list is not of one source alone, or used a model
 * of records that are not public, or teachers; the source's digest is filled in all the
 * same. */
bool dpf_lineage_parts(const msgpack_object *events, int relation, struct dpf_origin *o);

#endif
