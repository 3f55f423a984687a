/* What a score was measured on: which records, whether the model has seen them, and
 * whether they were randomised like those it was trained on. A score on records that were
 * trained on tells of memory, not of learning, and one on randomised records is another
 * figure than one on clean ones; so both are said beside it. All of it is read off the
 * provenance of the two streams. */
#ifndef DPF_STAGE_LINEAGE_H
#define DPF_STAGE_LINEAGE_H

#include "base/text.h"
#include "wire/header.h"

enum dpf_membership {
    DPF_HELD_OUT, /* another source, or another part of the same split */
    DPF_SEEN,     /* the same records, as far as can be told */
    DPF_UNKNOWN,  /* no source is named on one side */
};

struct dpf_lineage {
    struct dpf_text records, trained_on; /* sources, separated by ", " */
    enum dpf_membership membership;
    struct dpf_text
        randomised; /* the methods that the inputs went through; empty: none */
};

/* Compare the provenance of a model with that of records. */
void dpf_lineage_read(struct dpf_lineage *l, const struct dpf_header *model,
                      const struct dpf_header *records);
void dpf_lineage_release(struct dpf_lineage *l);
/* Into the summary (its first paragraph) of a score's table, and into its JSON object. */
void dpf_lineage_report(const struct dpf_lineage *l, struct dpf_text *table,
                        struct dpf_text *json);

#endif
