#include "exchange/model_reader.h"

#include "base/banned.h"

enum dpf_status dpf_model_reader_find(struct dpf_model_reader *r, const char *name,
                                      size_t otherwise, struct dpf_error *e)
{
    const struct dpf_model *m = &r->source.model;
    const struct dpf_node *found = name ? dpf_model_find(m, name) : &m->nodes[otherwise];
    if (!found)
        return dpf_fail(e, DPF_USAGE, "the network has no node '%s'", name);
    r->node = (size_t)(found - m->nodes);
    return DPF_OK;
}

enum dpf_status dpf_model_reader_open(struct dpf_model_reader *r, struct dpf_stage *s,
                                      struct dpf_dataset_need need,
                                      struct dpf_engine_setup setup, struct dpf_error *e)
{
    need.model = setup.model = &r->source.model;
    setup.every_value = true;
    enum dpf_status status = dpf_batch_lot_init(&r->lots, &s->in, &need, e);
    if (status == DPF_OK)
        status = dpf_engine_init(&r->engine, &setup, e);
    if (status == DPF_OK)
        dpf_engine_put(&r->engine, r->source.parameters);
    return status;
}

enum dpf_status dpf_model_reader_take(struct dpf_model_reader *r, struct dpf_stage *s,
                                      struct dpf_batch *b, const struct dpf_shape *record,
                                      struct dpf_lot *lot, struct dpf_tensor *values,
                                      struct dpf_error *e)
{
    struct dpf_shape shape;
    enum dpf_status status = dpf_batch_lot_take(&r->lots, &s->in, b, lot, e);
    if (status == DPF_OK && !dpf_shape_prepend(record, b->rows, &shape))
        status = dpf_fail_memory(e);
    return status == DPF_OK ? dpf_tensor_init(values, DPF_F32, &shape, e) : status;
}

void dpf_model_reader_release(struct dpf_model_reader *r)
{
    dpf_engine_release(&r->engine);
    dpf_batch_lot_release(&r->lots);
    dpf_model_stream_release(&r->source);
}
