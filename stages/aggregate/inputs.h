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

/* What a release does with them: once before the first batch, and for each batch. */
struct dpf_inputs_use {
    void *context;
    enum dpf_status (*begin)(void *context, struct dpf_error *e);
    enum dpf_status (*batch)(void *context, struct dpf_batch *b, struct dpf_error *e);
};

/* Read and check all inputs: DPF_BAD_STREAM if they are other ones than the teachers
 * answered, or have another ledger. Then put their field into `out`, which keeps its
 * events and provenance, begin, and hand over batch by batch. */
enum dpf_status dpf_inputs_write(struct dpf_inputs *in, struct dpf_aggregate *v,
                                 struct dpf_header *out, const struct dpf_inputs_use *use,
                                 struct dpf_error *e);
void dpf_inputs_release(struct dpf_inputs *in);

#endif
