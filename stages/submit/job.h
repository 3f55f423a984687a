/* Handing a stream to a curator who may be away: it is put aside whole, checked against
 * the owner's own rules, and sent until the curator has said that it is safe there. */
#ifndef DPF_STAGE_SUBMIT_JOB_H
#define DPF_STAGE_SUBMIT_JOB_H

#include "account/ledger.h"
#include "stage/stage.h"

struct dpf_submit_job {
    const char *endpoint;
    const char *budget;  /* the owner's own limit, "E" or "E,D"; NULL: none */
    double patience;     /* seconds without any success before giving up */
    char *folder, *path; /* where the stream is put aside */
    struct dpf_stream_writer aside;
    uint64_t attempts;
};

/* Refuse what must not leave (private records, no finite epsilon, more than the budget),
 * and begin to put the stream aside. */
enum dpf_status dpf_submit_job_open(struct dpf_submit_job *j, struct dpf_stage *s,
                                    struct dpf_error *e);
enum dpf_status dpf_submit_job_take(struct dpf_submit_job *j, struct dpf_batch *b,
                                    struct dpf_error *e);
/* Send all of it, and say what was received. */
enum dpf_status dpf_submit_job_finish(struct dpf_submit_job *j, struct dpf_stage *s,
                                      struct dpf_error *e);
void dpf_submit_job_release(struct dpf_submit_job *j);

#endif
