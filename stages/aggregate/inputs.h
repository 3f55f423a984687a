/* `--inputs`: the public inputs that were asked about, to be written with what was
 * released about them. All of them are read and compared with the queries before anything
 * leaves. */
#ifndef DPF_STAGE_INPUTS_H
#define DPF_STAGE_INPUTS_H

#include "aggregate.h"
#include "exchange/spool.h"

/* Zero-initialise. */
struct dpf_inputs {
    const struct dpf_aggregate *v;
    struct dpf_tallies *tallies;
    struct dpf_header header; /* of the one field that passes */
    struct dpf_spool spool;   /* the inputs, in the order of the queries */
    int field;
    uint64_t next;
};

/* DPF_BAD_STREAM if they are other ones than the teachers answered, or have another
 * ledger. */
enum dpf_status dpf_inputs_check(struct dpf_inputs *in, struct dpf_aggregate *v,
                                 struct dpf_error *e);
/* Put the inputs' field into `out`, which keeps its events and provenance. */
enum dpf_status dpf_inputs_declare(const struct dpf_inputs *in, struct dpf_header *out,
                                   struct dpf_error *e);
void dpf_inputs_release(struct dpf_inputs *in);

#endif
