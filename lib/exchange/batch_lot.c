#include "exchange/batch_lot.h"

#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

enum dpf_status dpf_batch_lot_init(struct dpf_batch_lot *l, struct dpf_header *h,
                                   const struct dpf_dataset_need *need,
                                   struct dpf_error *e)
{
    *l = (struct dpf_batch_lot){.need = *need};
    return dpf_dataset_init(&l->data, h, &l->need, e);
}

enum dpf_status dpf_batch_lot_take(struct dpf_batch_lot *l, struct dpf_header *h,
                                   struct dpf_batch *b, struct dpf_lot *lot,
                                   struct dpf_error *e)
{
    dpf_dataset_clear(&l->data);
    enum dpf_status status = dpf_dataset_add(&l->data, h, b, &l->need, e);
    if (status != DPF_OK)
        return status;
    if (!dpf_grow(&l->rows, &l->capacity, b->rows, sizeof *l->rows))
        return dpf_fail_memory(e);
    for (uint32_t i = 0; i < b->rows; i++)
        l->rows[i] = i;
    *lot = (struct dpf_lot){.data = &l->data, .rows = l->rows, .count = (int64_t)b->rows};
    return DPF_OK;
}

void dpf_batch_lot_release(struct dpf_batch_lot *l)
{
    dpf_dataset_release(&l->data);
    free(l->rows);
    *l = (struct dpf_batch_lot){0};
}
