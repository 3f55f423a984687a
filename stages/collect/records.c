/* The callbacks of `collect`: one stream of all owners' records. */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "collect.h"
#include "ledger/merge.h"

#include "base/banned.h"

static enum dpf_status open_stream(struct dpf_curator *c, size_t number,
                                   struct dpf_error *e)
{
    struct dpf_channel *channel = NULL;
    enum dpf_status status =
        dpf_channel_open(c->owners[number].path, DPF_READ, NULL, &channel, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&c->reader, channel, dpf_ledger_merge, e);
    c->reading = status == DPF_OK;
    return status;
}

static void close_stream(struct dpf_curator *c)
{
    if (c->reading)
        dpf_stream_reader_release(&c->reader);
    c->reading = false;
}

/* The header of all streams together, into s->out. Answers get the ledger that they would
 * have if `aggregate` had read them one after the other: whether their teachers have
 * records in common, it decides. */
static enum dpf_status join_headers(struct dpf_curator *c, struct dpf_stage *s,
                                    struct dpf_error *e)
{
    struct dpf_values branches = {0};
    enum dpf_status status = DPF_OK;
    bool first = true;
    for (size_t i = 0; status == DPF_OK && i < c->key_count; i++) {
        if (!c->owners[i].done)
            continue;
        status = open_stream(c, i, e);
        if (status == DPF_OK) {
            dpf_ledger_add_branch(&branches, &c->reader.header.events);
            status = first ? dpf_header_copy(&s->out, &c->reader.header, e)
                           : dpf_header_merge(&s->out, &c->reader.header,
                                              c->answers ? dpf_ledger_merge
                                                         : dpf_curator_merge_provenance,
                                              e);
        }
        first = false;
        close_stream(c);
    }
    if (status == DPF_OK && branches.count > 0 && !c->answers)
        status = dpf_ledger_write_merge(&s->out.events, &branches, true, e);
    dpf_values_release(&branches);
    return status;
}

enum dpf_status dpf_collect_open(struct dpf_stage *s, struct dpf_error *e)
{
    struct dpf_curator *c = s->state;
    c->endpoint = s->arguments[0];
    if (!dpf_endpoint_has_scheme(c->endpoint))
        return dpf_fail(e, DPF_USAGE, "'%s' is not an endpoint: tcp://HOST:PORT",
                        c->endpoint);
    enum dpf_status status = dpf_curator_gather(c, s, e);
    return status == DPF_OK ? join_headers(c, s, e) : status;
}

enum dpf_status dpf_collect_produce(struct dpf_stage *s, struct dpf_batch *b,
                                    struct dpf_error *e)
{
    struct dpf_curator *c = s->state;
    enum dpf_status status = DPF_OK;
    enum dpf_item item = DPF_ITEM_END;
    while (status == DPF_OK) {
        if (!c->reading) {
            while (c->next < c->key_count && !c->owners[c->next].done)
                c->next++;
            if (c->next == c->key_count)
                return DPF_OK;
            status = open_stream(c, c->next++, e);
            continue;
        }
        status = dpf_stream_reader_next(&c->reader, &item, e);
        if (status == DPF_OK && item == DPF_ITEM_END)
            close_stream(c);
        if (status == DPF_OK && item == DPF_ITEM_BATCH && c->reader.batch.rows > 0) {
            *b = c->reader.batch; /* views into a frame that stays until the next one */
            c->reader.batch = (struct dpf_batch){0};
            return DPF_OK;
        }
    }
    return status;
}

void dpf_collect_release(struct dpf_stage *s)
{
    struct dpf_curator *c = s->state;
    close_stream(c);
    dpf_collector_destroy(&c->collector);
    for (size_t i = 0; c->owners && i < c->key_count; i++) {
        dpf_curator_forget_part(&c->owners[i]);
        free(c->owners[i].path);
        free(c->owners[i].part);
    }
    dpf_names_free(c->found, c->found_count);
    free(c->owners);
    free(c->teachers);
    free(c->keys);
    dpf_header_release(&c->like);
    if (c->store_open)
        close(c->store_fd);
    *c = (struct dpf_curator){0};
}
