/* Batches of a stream as lots that a network reads, in order, one after the other. */
#ifndef DPF_EXCHANGE_BATCH_LOT_H
#define DPF_EXCHANGE_BATCH_LOT_H

#include "nn/engine.h"

struct dpf_batch_lot {
    struct dpf_dataset data; /* the batch in hand */
    struct dpf_dataset_need need;
    uint32_t *rows;
    size_t capacity;
};

/* Check a header against the need, as dpf_dataset_init() does. */
enum dpf_status dpf_batch_lot_init(struct dpf_batch_lot *l, struct dpf_header *h,
                                   const struct dpf_dataset_need *need,
                                   struct dpf_error *e);
/* All records of a batch; *lot is valid until the next call. */
enum dpf_status dpf_batch_lot_take(struct dpf_batch_lot *l, struct dpf_header *h,
                                   struct dpf_batch *b, struct dpf_lot *lot,
                                   struct dpf_error *e);
void dpf_batch_lot_release(struct dpf_batch_lot *l);

#endif
