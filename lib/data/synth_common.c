#ifdef __clang__ /* GCC knows no such pragma, and -std=c11 means the same to it */
#pragma STDC FP_CONTRACT OFF
#endif

#include "data/synth_common.h"

#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

static enum dpf_status synth_fill(struct dpf_source *source, struct dpf_batch *b,
                                  uint64_t want, uint64_t *filled, struct dpf_error *e)
{
    (void)e;
    struct dpf_synth *s = (struct dpf_synth *)source;
    unsigned char *x = b->tensor[0].data, *y = b->tensor[1].data;
    size_t x_bytes = dpf_tensor_row_bytes(&b->tensor[0]);
    size_t y_bytes = dpf_tensor_row_bytes(&b->tensor[1]);
    uint64_t left = s->end - s->next, rows = want < left ? want : left;
    for (uint64_t i = 0; i < rows; i++)
        s->make(s, s->next++, x + i * x_bytes, y + i * y_bytes);
    *filled = rows;
    return DPF_OK;
}

static void synth_destroy(struct dpf_source *source)
{
    struct dpf_synth *s = (struct dpf_synth *)source;
    free(s->scratch);
    free(s);
}

enum dpf_status dpf_synth_new(uint64_t seed, uint64_t first, uint64_t count,
                              void (*make)(struct dpf_synth *, uint64_t, void *, void *),
                              size_t scratch, struct dpf_synth **take,
                              struct dpf_error *e)
{
    static const struct dpf_source_ops ops = {.fill = synth_fill,
                                              .destroy = synth_destroy};
    if (count > UINT64_MAX - first)
        return dpf_fail(e, DPF_USAGE,
                        "from record %llu on there are fewer than '%llu' records",
                        (unsigned long long)first, (unsigned long long)count);
    struct dpf_synth *s = dpf_calloc(1, sizeof *s);
    void *memory = scratch ? dpf_calloc(1, scratch) : NULL;
    if (!s || (scratch && !memory)) {
        free(s);
        free(memory);
        return dpf_fail_memory(e);
    }
    *s = (struct dpf_synth){.source.ops = &ops,
                            .seed = seed,
                            .next = first,
                            .end = first + count,
                            .make = make,
                            .scratch = memory};
    s->source.header.has_records = true;
    s->source.header.records = count;
    *take = s;
    return DPF_OK;
}

enum dpf_status dpf_synth_give(struct dpf_synth *take_s, enum dpf_status status,
                               struct dpf_source **take)
{
    struct dpf_source *source = &take_s->source;
    if (status == DPF_OK)
        *take = source;
    else
        dpf_source_destroy(&source);
    return status;
}

enum dpf_status dpf_synth_add_field(struct dpf_synth *s, const char *name,
                                    enum dpf_dtype dtype, const struct dpf_shape *shape,
                                    uint64_t classes, double lo, double hi,
                                    struct dpf_error *e)
{
    struct dpf_field *f = dpf_header_add_field(&s->source.header, name, dtype, shape);
    if (!f)
        return dpf_fail_memory(e);
    f->classes = classes;
    return classes ? DPF_OK : dpf_field_set_bounds(f, lo, hi, e);
}

double dpf_synth_bell(struct dpf_seeded *r)
{
    uint64_t bits = dpf_seeded_u64(r), sum = 0;
    for (int i = 0; i < 4; i++)
        sum += bits >> (16 * i) & 0xffff;
    return ((double)sum - 2 * 65535.0) / 37837.22; /* sqrt(4 (2^32 - 1) / 12) */
}
