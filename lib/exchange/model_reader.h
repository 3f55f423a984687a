/* A model that reads the records of a stream, batch by batch: what `infer` and
 * `relevance-lrp` have in common. */
#ifndef DPF_EXCHANGE_MODEL_READER_H
#define DPF_EXCHANGE_MODEL_READER_H

#include "exchange/batch_lot.h"
#include "exchange/model_stream.h"
#include "nn/windows.h"

struct dpf_model_reader {
    struct dpf_model_stream source; /* filled by the stage: read, or made */
    struct dpf_batch_lot lots;
    struct dpf_engine engine;
    size_t node;   /* whose values are wanted */
    bool windowed; /* records may be larger than the network's input; before open */
    struct dpf_windows windows;
};

/* Find the node `name` (NULL: `otherwise`); DPF_USAGE if there is none. */
enum dpf_status dpf_model_reader_find(struct dpf_model_reader *r, const char *name,
                                      size_t otherwise, struct dpf_error *e);
/* Check the header against the need, start the engine and give it the weights. The
 * model's fields of need and setup are filled in. With r->windowed, windows of the
 * network's input cover the records. */
enum dpf_status dpf_model_reader_open(struct dpf_model_reader *r, struct dpf_stage *s,
                                      struct dpf_dataset_need need,
                                      struct dpf_engine_setup setup, struct dpf_error *e);
/* All records of a batch as a lot, and room for floats of shape `record` for each. */
enum dpf_status dpf_model_reader_take(struct dpf_model_reader *r, struct dpf_stage *s,
                                      struct dpf_batch *b, const struct dpf_shape *record,
                                      struct dpf_lot *lot, struct dpf_tensor *values,
                                      struct dpf_error *e);
/* The shape of the node's values of a record, after open. */
const struct dpf_shape *dpf_model_reader_shape(const struct dpf_model_reader *r);
/* The node's values of all records of the lot, channels first. */
enum dpf_status dpf_model_reader_compute(struct dpf_model_reader *r,
                                         const struct dpf_lot *lot, float *values,
                                         struct dpf_error *e);
void dpf_model_reader_release(struct dpf_model_reader *r);

#endif
