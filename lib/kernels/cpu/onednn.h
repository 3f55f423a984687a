/* oneDNN's C interface in the two versions that Debian has: 2 (bookworm) and 3 (trixie),
 * which made descriptions opaque and merged operation and primitive descriptors. */
#ifndef DPF_KERNELS_CPU_ONEDNN_H
#define DPF_KERNELS_CPU_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <stdbool.h>

/* What a convolution is described by. */
struct dpf_onednn_conv {
    dnnl_memory_desc_t source, weights, plain_weights, bias, target;
    dnnl_dims_t stride, dilate, pad;
};

#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t dpf_onednn_view;

static inline dpf_onednn_view dpf_onednn_view_of(const dnnl_memory_desc_t *d)
{
    return *d;
}

static inline dnnl_status_t dpf_onednn_describe(dnnl_memory_desc_t *d, int rank,
                                                const dnnl_dims_t size,
                                                dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(d, rank, size, dnnl_f32, tag);
}

static inline void dpf_onednn_forget(dnnl_memory_desc_t *d)
{
    dnnl_memory_desc_destroy(*d);
    *d = NULL;
}

static inline dnnl_status_t dpf_onednn_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
}

static inline dnnl_status_t dpf_onednn_forward(dnnl_primitive_desc_t *out,
                                               dnnl_engine_t engine, bool bias,
                                               const struct dpf_onednn_conv *c,
                                               const_dnnl_primitive_attr_t attr)
{
    return dnnl_convolution_forward_primitive_desc_create(
        out, engine, dnnl_forward_training, dnnl_convolution_direct, c->source,
        c->weights, bias ? c->bias : NULL, c->target, c->stride, c->dilate, c->pad,
        c->pad, attr);
}

static inline dnnl_status_t dpf_onednn_backward(dnnl_primitive_desc_t *out,
                                                dnnl_engine_t engine, bool data,
                                                const struct dpf_onednn_conv *c,
                                                dnnl_primitive_desc_t forward,
                                                const_dnnl_primitive_attr_t attr)
{
    return data ? dnnl_convolution_backward_data_primitive_desc_create(
                      out, engine, dnnl_convolution_direct, c->source, c->weights,
                      c->target, c->stride, c->dilate, c->pad, c->pad, forward, attr)
                : dnnl_convolution_backward_weights_primitive_desc_create(
                      out, engine, dnnl_convolution_direct, c->source, c->weights, NULL,
                      c->target, c->stride, c->dilate, c->pad, c->pad, forward, attr);
}

#else

typedef const dnnl_memory_desc_t *dpf_onednn_view;

static inline dpf_onednn_view dpf_onednn_view_of(const dnnl_memory_desc_t *d)
{
    return d;
}

static inline dnnl_status_t dpf_onednn_describe(dnnl_memory_desc_t *d, int rank,
                                                const dnnl_dims_t size,
                                                dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(d, rank, size, dnnl_f32, tag);
}

static inline void dpf_onednn_forget(dnnl_memory_desc_t *d)
{
    (void)d; /* holds no memory */
}

static inline dnnl_status_t dpf_onednn_append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1);
}

static inline dnnl_status_t dpf_onednn_forward(dnnl_primitive_desc_t *out,
                                               dnnl_engine_t engine, bool bias,
                                               const struct dpf_onednn_conv *c,
                                               const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t status = dnnl_convolution_forward_desc_init(
        &d, dnnl_forward_training, dnnl_convolution_direct, &c->source, &c->weights,
        bias ? &c->bias : NULL, &c->target, c->stride, c->pad, c->pad);
    return status == dnnl_success
               ? dnnl_primitive_desc_create(out, &d, attr, engine, NULL)
               : status;
}

static inline dnnl_status_t dpf_onednn_backward(dnnl_primitive_desc_t *out,
                                                dnnl_engine_t engine, bool data,
                                                const struct dpf_onednn_conv *c,
                                                dnnl_primitive_desc_t forward,
                                                const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    dnnl_status_t status = data
                               ? dnnl_convolution_backward_data_desc_init(
                                     &d, dnnl_convolution_direct, &c->source, &c->weights,
                                     &c->target, c->stride, c->pad, c->pad)
                               : dnnl_convolution_backward_weights_desc_init(
                                     &d, dnnl_convolution_direct, &c->source, &c->weights,
                                     NULL, &c->target, c->stride, c->pad, c->pad);
    return status == dnnl_success
               ? dnnl_primitive_desc_create(out, &d, attr, engine, forward)
               : status;
}

#endif

#endif
