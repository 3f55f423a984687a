/* A data set that is being read or generated: something that fills batches. Readers of
 * file formats and generators all look like this to the `load` stage. */
#ifndef DPF_DATA_SOURCE_H
#define DPF_DATA_SOURCE_H

#include <stdint.h>

#include "base/status.h"
#include "wire/batch.h"
#include "wire/header.h"

struct dpf_source;

struct dpf_source_ops {
    /* Fill up to `want` records into `b` (tensors allocated for `want` rows of the
     * header's fields; packed, row-major) and set *filled; 0 means the end. A file that
     * ends early, or holds what its format forbids, is DPF_BAD_STREAM. */
    enum dpf_status (*fill)(struct dpf_source *s, struct dpf_batch *b, uint64_t want,
                            uint64_t *filled, struct dpf_error *e);
    void (*destroy)(struct dpf_source *s);
};

/* Embed as the first member of a reader's own struct. */
struct dpf_source {
    const struct dpf_source_ops *ops;
    struct dpf_header header; /* fields, and the record count where it is known */
    uint64_t first; /* 0, or: no more than these of the records that are there are read */
};

/* Fill one batch (owned tensors) with up to `want` records. b->rows == 0 at the end. */
enum dpf_status dpf_source_next(struct dpf_source *s, struct dpf_batch *b, uint64_t want,
                                struct dpf_error *e);
void dpf_source_destroy(struct dpf_source **s);

#endif
