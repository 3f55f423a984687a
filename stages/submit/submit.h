/* A stream on its way from its owner to who collects. It is put aside whole, so that the
 * same bytes can be sent again however often a connection fails. */
#ifndef DPF_STAGE_SUBMIT_H
#define DPF_STAGE_SUBMIT_H

#include "stage/stage.h"

struct dpf_submission {
    const char *endpoint;
    const char *budget;  /* the owner's own limit, "E" or "E,D"; NULL: none */
    double patience;     /* seconds without any success before giving up */
    bool answers;        /* of teachers, without noise, to whom the owner trusts */
    char *folder, *path; /* where the stream is put aside */
    struct dpf_stream_writer aside;
    uint64_t attempts;
};

/* The callbacks. Open: refuse what must not leave, and begin to put the stream aside. */
enum dpf_status dpf_submission_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_submission_batch(struct dpf_stage *s, struct dpf_batch *b,
                                     struct dpf_error *e);
/* Send all of it, and say what was received. */
enum dpf_status dpf_submission_close(struct dpf_stage *s, struct dpf_error *e);
void dpf_submission_release(struct dpf_stage *s);

#endif
