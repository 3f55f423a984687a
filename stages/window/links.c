/* The public links of `window`. */
#include "exchange/side_stream.h"
#include "window.h"

#include "base/banned.h"

static enum dpf_status check_links(void *context, struct dpf_header *h,
                                   struct dpf_error *e)
{
    const struct dpf_field *f = dpf_header_field(h, "link");
    (void)context;
    if (h->is_private || h->is_protected)
        return dpf_fail(e, DPF_PRIVACY,
                        "the stream of '--links' is not public: links of private people "
                        "need a protection of their own, which windows do not give");
    return f && f->dtype == DPF_I64 && f->shape.rank == 1 && f->shape.dim[0] == 2
               ? DPF_OK
               : dpf_fail(e, DPF_BAD_STREAM,
                          "the stream of '--links' has no field 'link', i64 [2]");
}

static enum dpf_status take_links(void *context, struct dpf_header *h,
                                  struct dpf_batch *b, struct dpf_error *e)
{
    struct dpf_windowing *v = context;
    const struct dpf_tensor *t = dpf_batch_field(b, h, "link", e);
    enum dpf_status status = t ? DPF_OK : DPF_BAD_STREAM;
    for (uint64_t i = 0; status == DPF_OK && i < b->rows; i++) {
        const int64_t *link = (const int64_t *)t->data + 2 * i;
        status = dpf_history_link(v->history, link[0], link[1], e);
    }
    return status;
}

enum dpf_status dpf_window_read_links(struct dpf_windowing *v, struct dpf_error *e)
{
    const struct dpf_side_stream side = {v, check_links, take_links};
    return dpf_side_stream_read(v->links, &side, e);
}
