/* The principal components of records, as a dense layer that projects onto them. */
#include "base/log.h"
#include "solve.h"

#include "base/banned.h"

enum dpf_status dpf_solve_components_check(const struct dpf_stage *s, struct dpf_error *e)
{
    const struct dpf_solve *v = s->state;
    return v->component_count > 0
               ? DPF_OK
               : dpf_fail(e, DPF_USAGE, "'--what components' needs '--components'");
}

enum dpf_status dpf_solve_components_open(struct dpf_stage *s, struct dpf_error *e)
{
    enum { MOST = 8192 }; /* a matrix of 512 MB */
    struct dpf_solve *v = s->state;
    const struct dpf_field *x = dpf_header_field(&s->in, v->field);
    if (!x)
        return dpf_fail(e, DPF_BAD_STREAM, "the stream has no field '%s'", v->field);
    uint64_t values = dpf_shape_elements(&x->shape);
    if (x->dtype == DPF_BITS || values < 1 || values > MOST)
        return dpf_fail(e, DPF_USAGE, "field '%s' is not 1 to %d numbers", x->name,
                        (int)MOST);
    v->x = (int)(x - s->in.fields);
    return dpf_components_init(&v->components, values, e);
}

enum dpf_status dpf_solve_components_add(struct dpf_stage *s, struct dpf_batch *b,
                                         struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    struct dpf_tensor *x = &b->tensor[v->x];
    enum dpf_status status = dpf_tensor_make_f32(x, e);
    return status == DPF_OK ? dpf_components_add(&v->components, x->data, b->rows, e)
                            : status;
}

enum dpf_status dpf_solve_components_finish(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_solve *v = s->state;
    struct dpf_model_stream *m = &v->result;
    size_t k = (size_t)v->component_count;
    double share;
    enum dpf_status status = dpf_solve_make_layer(m, v->components.values, k, true, e);
    if (status != DPF_OK)
        return status;
    const struct dpf_node *layer = &m->model.nodes[m->model.output];
    status = dpf_components_solve(&v->components, k, v->whiten,
                                  m->parameters + layer->offset[0],
                                  m->parameters + layer->offset[1], &share, e);
    if (status == DPF_OK)
        dpf_notice("%zu components with %.1f %% of the variance", k, 100 * share);
    return status;
}
