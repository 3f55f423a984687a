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
    const struct dpf_field *x = r->windowed ? dpf_header_field(&s->in, need.x) : NULL;
    enum dpf_status status =
        x ? dpf_windows_init(&r->windows, setup.model, r->node, x, e) : DPF_OK;
    if (status == DPF_OK && x)
        need.model = &r->windows.whole;
    if (status == DPF_OK)
        status = dpf_batch_lot_init(&r->lots, &s->in, &need, e);
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

const struct dpf_shape *dpf_model_reader_shape(const struct dpf_model_reader *r)
{
    return r->windowed ? &r->windows.values : &r->source.model.nodes[r->node].shape;
}

enum dpf_status dpf_model_reader_compute(struct dpf_model_reader *r,
                                         const struct dpf_lot *lot, float *values,
                                         struct dpf_error *e)
{
    const struct dpf_lot_values want = {.node = r->node, .values = values};
    return r->windowed ? dpf_windows_compute(&r->windows, &r->engine, lot, values, e)
                       : dpf_engine_values(&r->engine, lot, &want, e);
}

void dpf_model_reader_release(struct dpf_model_reader *r)
{
    dpf_windows_release(&r->windows);
    dpf_engine_release(&r->engine);
    dpf_batch_lot_release(&r->lots);
    dpf_model_stream_release(&r->source);
}
