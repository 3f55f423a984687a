/* Frames in memory: what a test writes is what a test reads, and what a fuzzer feeds. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "transport/transport.h"

#include "base/banned.h"

struct mem_channel {
    struct dpf_channel base;
    const unsigned char *data;
    size_t size, at;
    struct dpf_buffer *sink;
    unsigned char *frame;
};

static void mem_destroy(struct dpf_channel *base)
{
    struct mem_channel *c = (struct mem_channel *)base;
    free(c->frame);
    free(c->base.name);
    free(c);
}

static enum dpf_status mem_recv(struct dpf_channel *base, struct dpf_frame *frame,
                                struct dpf_error *e)
{
    struct mem_channel *c = (struct mem_channel *)base;
    size_t left = c->size - c->at, size;
    if (left < DPF_PREAMBLE_BYTES)
        return dpf_fail_after_peer(e, DPF_BAD_STREAM, "stream ended before its trailer");
    enum dpf_status status = dpf_preamble_parse(c->data + c->at, &size, e);
    if (status != DPF_OK)
        return status;
    if (size > left)
        return dpf_fail_after_peer(e, DPF_BAD_STREAM, "stream ended before its trailer");
    /* Aligned as every other transport delivers it, and changeable in place. */
    free(c->frame);
    c->frame = dpf_alloc_aligned(size);
    if (!c->frame)
        return dpf_fail_memory(e);
    memcpy(c->frame, c->data + c->at, size);
    c->at += size;
    *frame = (struct dpf_frame){.data = c->frame, .size = size};
    return DPF_OK;
}

static enum dpf_status mem_read_finish(struct dpf_channel *base, struct dpf_error *e)
{
    struct mem_channel *c = (struct mem_channel *)base;
    if (c->at != c->size)
        return dpf_fail(e, DPF_BAD_STREAM, "data follows the trailer");
    return DPF_OK;
}

static enum dpf_status mem_send(struct dpf_channel *base, struct iovec *parts, int count,
                                size_t total, struct dpf_error *e)
{
    struct mem_channel *c = (struct mem_channel *)base;
    (void)total;
    for (int i = 0; i < count; i++)
        dpf_buffer_append(c->sink, parts[i].iov_base, parts[i].iov_len);
    return dpf_buffer_ok(c->sink) ? DPF_OK : dpf_fail_memory(e);
}

static enum dpf_status mem_write_finish(struct dpf_channel *base, struct dpf_error *e)
{
    (void)base;
    (void)e;
    return DPF_OK;
}

static const struct dpf_channel_ops mem_read_ops = {
    .recv = mem_recv, .finish = mem_read_finish, .destroy = mem_destroy};
static const struct dpf_channel_ops mem_write_ops = {
    .send = mem_send, .finish = mem_write_finish, .destroy = mem_destroy};

static enum dpf_status mem_new(const struct mem_channel *with,
                               struct dpf_channel **take_channel, struct dpf_error *e)
{
    struct mem_channel *c = dpf_calloc(1, sizeof *c);
    if (c) {
        *c = *with;
        c->base.lanes = 1;
        c->base.name = dpf_strdup("memory");
    }
    if (!c || !c->base.name) {
        free(c);
        return dpf_fail_memory(e);
    }
    *take_channel = &c->base;
    return DPF_OK;
}

enum dpf_status dpf_channel_from_memory(const void *data, size_t size,
                                        struct dpf_channel **take_channel,
                                        struct dpf_error *e)
{
    struct mem_channel c = {.base.ops = &mem_read_ops, .data = data, .size = size};
    return mem_new(&c, take_channel, e);
}

enum dpf_status dpf_channel_to_memory(struct dpf_buffer *sink,
                                      struct dpf_channel **take_channel,
                                      struct dpf_error *e)
{
    struct mem_channel c = {.base.ops = &mem_write_ops, .sink = sink};
    return mem_new(&c, take_channel, e);
}
