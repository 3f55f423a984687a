#include "exchange/spool.h"
#include "ledger/merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "transport/transport.h"

#include "base/banned.h"

static enum dpf_status open_fd(int fd, enum dpf_direction direction,
                               struct dpf_channel **channel, struct dpf_error *e)
{
    char endpoint[32];
    snprintf(endpoint, sizeof endpoint, "fd:%d", fd);
    return dpf_channel_open(endpoint, direction, NULL, channel, e);
}

enum dpf_status dpf_spool_open(struct dpf_spool *s, const struct dpf_header *header,
                               struct dpf_error *e)
{
    *s = (struct dpf_spool){.fd = dpf_open_unnamed("dpflow-spool")};
    if (s->fd < 0)
        return dpf_fail_errno(e, "cannot create a temporary file");
    struct dpf_channel **channels = dpf_calloc(1, sizeof *channels);
    if (!channels)
        return dpf_fail_memory(e);
    /* Finishing closes the channel's descriptor; ours stays for reading. */
    enum dpf_status status = open_fd(dup(s->fd), DPF_WRITE, channels, e);
    if (status != DPF_OK) {
        free(channels);
        return status;
    }
    status = dpf_stream_writer_init(&s->writer, channels, 1, e);
    if (status == DPF_OK)
        status = dpf_stream_write_header(&s->writer, header, e);
    return status;
}

enum dpf_status dpf_spool_add(struct dpf_spool *s, const struct dpf_batch *b,
                              struct dpf_error *e)
{
    return dpf_stream_write_batch(&s->writer, b, e);
}

enum dpf_status dpf_spool_next(struct dpf_spool *s, struct dpf_batch **b,
                               struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    enum dpf_item item = DPF_ITEM_END;
    *b = NULL;
    if (!s->reading) {
        struct dpf_channel *channel;
        status = dpf_stream_writer_finish(&s->writer, e);
        if (status == DPF_OK && lseek(s->fd, 0, SEEK_SET) != 0)
            status = dpf_fail_errno(e, "cannot read a temporary file");
        if (status == DPF_OK)
            status = open_fd(s->fd, DPF_READ, &channel, e);
        if (status == DPF_OK)
            status = dpf_stream_reader_open(&s->reader, channel, dpf_ledger_merge, e);
        s->reading = status == DPF_OK;
    }
    if (status == DPF_OK)
        status = dpf_stream_reader_next(&s->reader, &item, e);
    if (status == DPF_OK && item == DPF_ITEM_BATCH)
        *b = &s->reader.batch;
    return status;
}

void dpf_spool_release(struct dpf_spool *s)
{
    dpf_stream_writer_release(&s->writer);
    if (s->reading)
        dpf_stream_reader_release(&s->reader);
    if (s->fd > 0)
        close(s->fd);
    *s = (struct dpf_spool){.fd = -1};
}
