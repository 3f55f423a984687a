#include "data/source.h"

#include "base/banned.h"

enum dpf_status dpf_source_next(struct dpf_source *s, struct dpf_batch *b, uint64_t want,
                                struct dpf_error *e)
{
    uint64_t filled = 0;
    enum dpf_status status = dpf_batch_init(b, &s->header, want, e);
    if (status != DPF_OK)
        return status;
    status = s->ops->fill(s, b, want, &filled, e);
    if (status != DPF_OK)
        dpf_batch_release(b);
    else
        dpf_batch_truncate(b, filled);
    return status;
}

void dpf_source_destroy(struct dpf_source **s)
{
    if (!*s)
        return;
    dpf_header_release(&(*s)->header);
    (*s)->ops->destroy(*s);
    *s = NULL;
}
