/* Batches put aside until the end of the input is known, in a file that has no name. */
#ifndef DPF_EXCHANGE_SPOOL_H
#define DPF_EXCHANGE_SPOOL_H

#include "wire/stream.h"

struct dpf_spool {
    int fd;
    struct dpf_stream_writer writer;
    struct dpf_stream_reader reader;
    bool reading;
};

/* `header` describes the batches and must outlive the spool. */
enum dpf_status dpf_spool_open(struct dpf_spool *s, const struct dpf_header *header,
                               struct dpf_error *e);
enum dpf_status dpf_spool_add(struct dpf_spool *s, const struct dpf_batch *b,
                              struct dpf_error *e);
/* The next batch from the start, owned by the spool until the next call; NULL in *b at
 * the end. */
enum dpf_status dpf_spool_next(struct dpf_spool *s, struct dpf_batch **b,
                               struct dpf_error *e);
void dpf_spool_release(struct dpf_spool *s);

#endif
