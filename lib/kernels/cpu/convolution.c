/* Convolutions, by oneDNN: channels last, weights in whatever order its kernel for this
 * shape likes best. A compiled primitive is kept for each shape and direction, for the
 * context that made it. Values are computed one example at a time, which costs next to
 * nothing and keeps examples apart: oneDNN takes other paths for other batch sizes. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/onednn.h"

#include "base/banned.h"

/* Of the OpenMP runtime that oneDNN brings; its header is the compiler's own. */
void omp_set_num_threads(int count);

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS };
enum { MOST_PLANS = 256 };

/* One primitive and how the weights get into, or out of, its order. */
struct plan {
    struct dpf_conv shape;
    int64_t n;
    enum direction direction;
    bool bias;
    dnnl_primitive_t convolution, reorder;
    dnnl_memory_t source, target, bias_memory, plain, blocked;
    dnnl_memory_t scratch, reorder_scratch;
    size_t weight_bytes; /* in the primitive's order */
    size_t scratch_bytes, reorder_scratch_bytes;
};

/* What a context keeps. */
struct dpf_cpu_convolutions {
    dnnl_stream_t stream;
    struct plan *plans;
    size_t count, capacity;
};

static dnnl_engine_t engine;

static bool good(struct dpf_context *context, dnnl_status_t status)
{
    if (status != dnnl_success)
        dpf_cpu_fail(context, status == dnnl_out_of_memory
                                  ? "out of memory"
                                  : "oneDNN cannot do this convolution");
    return status == dnnl_success;
}

static void release_plan(struct plan *p)
{
    dnnl_primitive_destroy(p->convolution);
    dnnl_primitive_destroy(p->reorder);
    dnnl_memory_destroy(p->source);
    dnnl_memory_destroy(p->target);
    dnnl_memory_destroy(p->bias_memory);
    dnnl_memory_destroy(p->plain);
    dnnl_memory_destroy(p->blocked);
    dnnl_memory_destroy(p->scratch);
    dnnl_memory_destroy(p->reorder_scratch);
}

static void forget_plans(struct dpf_cpu_convolutions *own)
{
    for (size_t i = 0; i < own->count; i++)
        release_plan(&own->plans[i]);
    free(own->plans);
    own->plans = NULL;
    own->count = own->capacity = 0;
}

void dpf_cpu_end_convolutions(struct dpf_context *context)
{
    struct dpf_cpu_convolutions *own = CPU->convolutions;
    if (!own)
        return;
    forget_plans(own);
    dnnl_stream_destroy(own->stream);
    free(own);
    CPU->convolutions = NULL;
}

bool dpf_cpu_begin(struct dpf_context *context)
{
    static _Thread_local bool alone;
    if (!alone)
        omp_set_num_threads(1); /* of this thread's parallel regions, oneDNN's */
    alone = true;
    if (CPU->convolutions)
        return true;
    struct dpf_cpu_convolutions *own = dpf_calloc(1, sizeof *own);
    if (!own) {
        dpf_cpu_fail(context, "out of memory");
        return false;
    }
    if (!good(context,
              dnnl_stream_create(&own->stream, engine, dnnl_stream_default_flags))) {
        free(own);
        return false;
    }
    CPU->convolutions = own;
    return true;
}

/* ---------------------------------------------------------------------- descriptions */

/* Pictures go without their depth of 1: oneDNN's kernels for them are better. */
static bool describe(struct dpf_context *context, const struct dpf_conv *p, int64_t n,
                     struct dpf_onednn_conv *s)
{
    *s = (struct dpf_onednn_conv){0};
    int skip = p->in[0] == 1 && p->kernel[0] == 1 && p->pad[0] == 0 ? 1 : 0;
    int space = DPF_SPACE - skip, rank = 2 + space;
    dnnl_dims_t x = {n, p->in_channels}, y = {n, p->out_channels},
                w = {p->out_channels, p->in_channels}, b = {p->out_channels};
    for (int d = 0; d < space; d++) {
        x[2 + d] = p->in[skip + d];
        y[2 + d] = p->out[skip + d];
        w[2 + d] = p->kernel[skip + d];
        s->stride[d] = p->stride[skip + d];
        s->pad[d] = p->pad[skip + d];
    }
    dnnl_format_tag_t last = skip ? dnnl_nhwc : dnnl_ndhwc;
    return good(context, dpf_onednn_describe(&s->source, rank, x, last)) &&
           good(context, dpf_onednn_describe(&s->target, rank, y, last)) &&
           good(context,
                dpf_onednn_describe(&s->weights, rank, w, dnnl_format_tag_any)) &&
           good(context, dpf_onednn_describe(&s->plain_weights, rank, w,
                                             skip ? dnnl_oihw : dnnl_oidhw)) &&
           good(context, dpf_onednn_describe(&s->bias, 1, b, dnnl_x));
}

static void forget(struct dpf_onednn_conv *s)
{
    dpf_onednn_forget(&s->source);
    dpf_onednn_forget(&s->target);
    dpf_onednn_forget(&s->weights);
    dpf_onednn_forget(&s->plain_weights);
    dpf_onednn_forget(&s->bias);
}

/* The description of a plan's primitive, with the forward one as a hint. */
static bool primitive_desc(struct dpf_context *context, const struct plan *p,
                           const struct dpf_onednn_conv *s, dnnl_primitive_desc_t *out)
{
    dnnl_primitive_desc_t hint = NULL;
    dnnl_primitive_attr_t attr = NULL;
    /* The library's own scratch memory is the creating thread's: a primitive could not be
     * executed or destroyed by another one. */
    bool fine =
        good(context, dnnl_primitive_attr_create(&attr)) &&
        good(context,
             dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    if (fine && p->direction == FORWARD)
        fine = good(context, dpf_onednn_forward(out, engine, p->bias, s, attr));
    else if (fine)
        fine =
            good(context, dpf_onednn_forward(&hint, engine, false, s, attr)) &&
            good(context, dpf_onednn_backward(out, engine, p->direction == BACKWARD_DATA,
                                              s, hint, attr));
    dnnl_primitive_desc_destroy(hint);
    dnnl_primitive_attr_destroy(attr);
    return fine;
}

/* Forward and backward-data: plain weights into the primitive's order. Gradients: out of
 * it, added to what is there. */
static bool make_reorder(struct dpf_context *context, struct plan *p,
                         dpf_onednn_view plain, dpf_onednn_view blocked)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    dnnl_primitive_desc_t d = NULL;
    bool out = p->direction == BACKWARD_WEIGHTS;
    bool fine =
        good(context, dnnl_primitive_attr_create(&attr)) &&
        good(context,
             dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user));
    if (fine && out)
        fine = good(context, dnnl_post_ops_create(&ops)) &&
               good(context, dpf_onednn_append_sum(ops)) &&
               good(context, dnnl_primitive_attr_set_post_ops(attr, ops));
    fine = fine &&
           good(context, dnnl_reorder_primitive_desc_create(&d, out ? blocked : plain,
                                                            engine, out ? plain : blocked,
                                                            engine, attr)) &&
           good(context, dnnl_primitive_create(&p->reorder, d));
    if (fine) {
        dpf_onednn_view scratch =
            dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0);
        p->reorder_scratch_bytes = dnnl_memory_desc_get_size(scratch);
        fine = good(context, dnnl_memory_create(&p->reorder_scratch, scratch, engine,
                                                DNNL_MEMORY_NONE));
    }
    dnnl_primitive_desc_destroy(d);
    dnnl_post_ops_destroy(ops);
    dnnl_primitive_attr_destroy(attr);
    return fine;
}

static bool make_memories(struct dpf_context *context, struct plan *p,
                          const struct dpf_onednn_conv *s, dpf_onednn_view blocked,
                          dpf_onednn_view scratch)
{
    const struct {
        dnnl_memory_t *memory;
        dpf_onednn_view of;
    } all[] = {{&p->source, dpf_onednn_view_of(&s->source)},
               {&p->target, dpf_onednn_view_of(&s->target)},
               {&p->bias_memory, dpf_onednn_view_of(&s->bias)},
               {&p->plain, dpf_onednn_view_of(&s->plain_weights)},
               {&p->blocked, blocked},
               {&p->scratch, scratch}};
    bool fine = true;
    for (size_t i = 0; fine && i < sizeof all / sizeof *all; i++)
        fine = good(context, dnnl_memory_create(all[i].memory, all[i].of, engine,
                                                DNNL_MEMORY_NONE));
    return fine;
}

static bool make_plan(struct dpf_context *context, struct plan *p)
{
    struct dpf_onednn_conv s;
    dnnl_primitive_desc_t d = NULL;
    bool fine =
        describe(context, &p->shape, p->n, &s) && primitive_desc(context, p, &s, &d);
    if (fine) {
        dpf_onednn_view blocked = dnnl_primitive_desc_query_md(
            d,
            p->direction == BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md
                                             : dnnl_query_weights_md,
            0);
        dpf_onednn_view scratch =
            dnnl_primitive_desc_query_md(d, dnnl_query_scratchpad_md, 0);
        p->weight_bytes = dnnl_memory_desc_get_size(blocked);
        p->scratch_bytes = dnnl_memory_desc_get_size(scratch);
        fine = good(context, dnnl_primitive_create(&p->convolution, d)) &&
               make_memories(context, p, &s, blocked, scratch) &&
               make_reorder(context, p, dpf_onednn_view_of(&s.plain_weights), blocked);
    }
    dnnl_primitive_desc_destroy(d);
    forget(&s);
    return fine;
}

/* The plan for a shape, made on first use. */
static struct plan *find_plan(struct dpf_context *context, const struct dpf_conv *shape,
                              int64_t n, bool bias, enum direction direction)
{
    if (!dpf_cpu_begin(context))
        return NULL;
    struct dpf_cpu_convolutions *own = CPU->convolutions;
    for (size_t i = 0; i < own->count; i++)
        if (own->plans[i].n == n && own->plans[i].direction == direction &&
            own->plans[i].bias == bias &&
            memcmp(&own->plans[i].shape, shape, sizeof *shape) == 0)
            return &own->plans[i];
    if (own->count == MOST_PLANS) /* shapes that keep changing: start over */
        forget_plans(own);
    if (!dpf_grow(&own->plans, &own->capacity, own->count + 1, sizeof *own->plans)) {
        dpf_cpu_fail(context, "out of memory");
        return NULL;
    }
    struct plan *p = &own->plans[own->count];
    *p = (struct plan){.shape = *shape, .n = n, .bias = bias, .direction = direction};
    if (!make_plan(context, p)) {
        release_plan(p);
        return NULL;
    }
    own->count++;
    return p;
}

/* ------------------------------------------------------------------------- execution */

static int64_t volume(const int64_t size[DPF_SPACE])
{
    return size[0] * size[1] * size[2];
}

static void point(struct dpf_context *context, dnnl_memory_t memory, const void *at)
{
    /* oneDNN only reads what is an input */
    good(context, dnnl_memory_set_data_handle(memory, (void *)(uintptr_t)at));
}

/* A primitive with memory for its intermediate results, of this context, as the last of
 * `count` arguments. Most need none, and every argument costs time. */
static void execute(struct dpf_context *context, dnnl_primitive_t primitive, int count,
                    dnnl_exec_arg_t *args, enum dpf_cpu_scratch slot, size_t bytes)
{
    if (bytes) {
        void *memory = dpf_cpu_scratch(context, slot, bytes);
        if (!memory)
            return;
        point(context, args[count - 1].memory, memory);
    }
    good(context, dnnl_primitive_execute(primitive, CPU->convolutions->stream,
                                         bytes ? count : count - 1, args));
}

static void run_reorder(struct dpf_context *context, struct plan *p, const void *plain,
                        void *blocked)
{
    bool out = p->direction == BACKWARD_WEIGHTS;
    point(context, p->plain, plain);
    point(context, p->blocked, blocked);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, out ? p->blocked : p->plain},
                              {DNNL_ARG_TO, out ? p->plain : p->blocked},
                              {DNNL_ARG_SCRATCHPAD, p->reorder_scratch}};
    execute(context, p->reorder, 3, args, DPF_CPU_REORDER, p->reorder_scratch_bytes);
}

static void cpu_conv_forward(CONTEXT, const struct dpf_conv *shape, int64_t n,
                             const float *x, const float *w, const float *b, bool relu,
                             float *y)
{
    struct plan *p = find_plan(context, shape, 1, b != NULL, FORWARD);
    void *weights = p ? dpf_cpu_scratch(context, DPF_CPU_WEIGHTS, p->weight_bytes) : NULL;
    if (!weights)
        return;
    run_reorder(context, p, w, weights);
    point(context, p->bias_memory, b);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->source},
                              {DNNL_ARG_WEIGHTS, p->blocked},
                              {DNNL_ARG_DST, p->target},
                              {DNNL_ARG_BIAS, p->bias_memory},
                              {DNNL_ARG_SCRATCHPAD, p->scratch}};
    if (!b)
        args[3] = args[4];
    int64_t in = volume(shape->in) * shape->in_channels;
    int64_t out = volume(shape->out) * shape->out_channels;
    for (int64_t e = 0; e < n; e++) {
        point(context, p->source, x + e * in);
        point(context, p->target, y + e * out);
        execute(context, p->convolution, b ? 5 : 4, args, DPF_CPU_CONVOLUTION,
                p->scratch_bytes);
    }
    if (relu) /* not oneDNN's own, which takes NaN for 0 */
        dpf_kernels_cpu()->unary_forward(
            context, DPF_RELU, n * volume(shape->out) * shape->out_channels, y, y);
}

static void cpu_conv_backward_data(CONTEXT, const struct dpf_conv *shape, int64_t n,
                                   const float *dy, const float *w, float *dx)
{
    struct plan *p = find_plan(context, shape, 1, false, BACKWARD_DATA);
    void *weights = p ? dpf_cpu_scratch(context, DPF_CPU_WEIGHTS, p->weight_bytes) : NULL;
    if (!weights)
        return;
    run_reorder(context, p, w, weights);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_DIFF_SRC, p->source},
                              {DNNL_ARG_WEIGHTS, p->blocked},
                              {DNNL_ARG_DIFF_DST, p->target},
                              {DNNL_ARG_SCRATCHPAD, p->scratch}};
    int64_t in = volume(shape->in) * shape->in_channels;
    int64_t out = volume(shape->out) * shape->out_channels;
    for (int64_t e = 0; e < n; e++) {
        point(context, p->source, dx + e * in);
        point(context, p->target, dy + e * out);
        execute(context, p->convolution, 4, args, DPF_CPU_CONVOLUTION, p->scratch_bytes);
    }
}

/* The gradient of all n examples, in the primitive's order. */
static void weight_gradient(struct dpf_context *context, struct plan *p, const float *x,
                            const float *dy, void *slot)
{
    point(context, p->source, x);
    point(context, p->target, dy);
    point(context, p->blocked, slot);
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->source},
                              {DNNL_ARG_DIFF_WEIGHTS, p->blocked},
                              {DNNL_ARG_DIFF_DST, p->target},
                              {DNNL_ARG_SCRATCHPAD, p->scratch}};
    execute(context, p->convolution, 4, args, DPF_CPU_CONVOLUTION, p->scratch_bytes);
}

static void cpu_conv_backward_weights(CONTEXT, const struct dpf_conv *shape, int64_t n,
                                      const float *x, const float *dy, float *dw,
                                      float *db)
{
    struct plan *p = find_plan(context, shape, n, false, BACKWARD_WEIGHTS);
    void *slot = p ? dpf_cpu_scratch(context, DPF_CPU_WEIGHTS, p->weight_bytes) : NULL;
    if (!slot)
        return;
    weight_gradient(context, p, x, dy, slot);
    run_reorder(context, p, dw, slot);
    if (db)
        dpf_kernels_cpu()->sum_bias(context, n * volume(shape->out), shape->out_channels,
                                    dy, db);
}

/* ------------------------------------------------------------------- single examples */

/* Gradients that are kept should stay in the caches of one core's share. */
enum { KEPT_FLOATS = 4 << 20 };

/* Numbers of one example's gradient, in the primitive's order. */
static int64_t slot_of(const struct plan *p)
{
    return (int64_t)((p->weight_bytes + 63) / 64 * 16);
}

static int64_t cpu_conv_kept(CONTEXT, const struct dpf_conv *shape, int64_t n)
{
    struct plan *p = find_plan(context, shape, 1, false, BACKWARD_WEIGHTS);
    int64_t all = p ? n * slot_of(p) : 0;
    return all <= KEPT_FLOATS ? all : 0;
}

/* Example e's gradient of the weights. Always one example at a time: the same call gives
 * the same bits again. */
static void example_gradient(struct dpf_context *context, struct plan *p, int64_t e,
                             const float *x, const float *dy, float *slot)
{
    int64_t in = volume(p->shape.in) * p->shape.in_channels;
    int64_t out = volume(p->shape.out) * p->shape.out_channels;
    int64_t used = (int64_t)(p->weight_bytes / sizeof *slot);
    weight_gradient(context, p, x + e * in, dy + e * out, slot);
    for (int64_t i = used; i < slot_of(p); i++)
        slot[i] = 0;
}

static void cpu_conv_example_norms(CONTEXT, const struct dpf_conv *shape, int64_t n,
                                   const float *x, const float *dy, float *kept,
                                   double *square)
{
    struct plan *p = find_plan(context, shape, 1, false, BACKWARD_WEIGHTS);
    size_t bytes = p ? (size_t)slot_of(p) * sizeof(float) : 0;
    float *room = p && !kept ? dpf_cpu_scratch(context, DPF_CPU_GRADIENT, bytes) : kept;
    if (!room)
        return;
    /* one after the other, so that the norm finds the gradient still in a cache */
    for (int64_t e = 0; e < n; e++) {
        float *slot = kept ? kept + e * slot_of(p) : room;
        example_gradient(context, p, e, x, dy, slot);
        dpf_kernels_cpu()->row_norms(context, 1, slot_of(p), slot, square + e);
    }
}

/* n slots, each times its factor, out of the primitive's order. */
static void add_slots(struct dpf_context *context, struct plan *p, int64_t n,
                      const float *factor, const float *slots, float *dw)
{
    size_t bytes = (size_t)slot_of(p) * sizeof(float);
    float *sum = dpf_cpu_scratch(context, DPF_CPU_SUMS, bytes);
    if (!sum)
        return;
    memset(sum, 0, bytes);
    dpf_kernels_cpu()->add_scaled_rows(context, n, slot_of(p), factor, slots, sum);
    run_reorder(context, p, dw, sum);
}

static void cpu_conv_add_clipped(CONTEXT, const struct dpf_conv *shape, int64_t n,
                                 const float *factor, const float *x, const float *dy,
                                 const float *kept, float *dw)
{
    struct plan *p = find_plan(context, shape, 1, false, BACKWARD_WEIGHTS);
    if (p && kept)
        add_slots(context, p, n, factor, kept, dw);
    if (!p || kept)
        return;
    size_t bytes = (size_t)slot_of(p) * sizeof(float);
    float *room = dpf_cpu_scratch(context, DPF_CPU_GRADIENT, bytes);
    for (int64_t e = 0; room && e < n; e++)
        if (factor[e] != 0) {
            example_gradient(context, p, e, x, dy, room);
            add_slots(context, p, 1, factor + e, room, dw);
        }
}

void dpf_cpu_add_convolutions(struct dpf_kernels *table)
{
    /* Whatever the environment says: sums of float products, nothing shorter. Without an
     * engine the first convolution fails, and finish() says so. */
    if (dnnl_set_default_fpmath_mode(dnnl_fpmath_mode_strict) != dnnl_success ||
        dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
        engine = NULL;
    table->conv_forward = cpu_conv_forward;
    table->conv_backward_data = cpu_conv_backward_data;
    table->conv_backward_weights = cpu_conv_backward_weights;
    table->conv_kept = cpu_conv_kept;
    table->conv_example_norms = cpu_conv_example_norms;
    table->conv_add_clipped = cpu_conv_add_clipped;
}
