/* A second stream that a stage reads whole, by an option: records to watch, public
 * records beside the private ones. */
#ifndef DPF_EXCHANGE_SIDE_STREAM_H
#define DPF_EXCHANGE_SIDE_STREAM_H

#include "stage/stage.h"

struct dpf_side_stream {
    void *context;
    enum dpf_status (*on_header)(void *context, struct dpf_header *h,
                                 struct dpf_error *e);
    enum dpf_status (*on_batch)(void *context, struct dpf_header *h, struct dpf_batch *b,
                                struct dpf_error *e);
};

enum dpf_status dpf_side_stream_read(const char *endpoint,
                                     const struct dpf_side_stream *side,
                                     struct dpf_error *e);

#endif
