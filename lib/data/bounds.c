#include "data/bounds.h"

#include <stdlib.h>

#include "data/columns.h"

#include "base/banned.h"

void dpf_bounds_release(struct dpf_bounds *b)
{
    free(b->lo);
    free(b->hi);
    *b = (struct dpf_bounds){0};
}

static void fill(const struct dpf_columns *c, struct dpf_bounds *b)
{
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) {
        const struct dpf_column *column = &c->columns[i];
        size_t n = dpf_column_features(column);
        bool number = column->kind == DPF_COLUMN_REAL || column->kind == DPF_COLUMN_INT;
        for (size_t j = 0; j < n; j++, at++) {
            b->lo[at] = number ? column->lo : 0;
            b->hi[at] = number ? column->hi
                        : column->kind == DPF_COLUMN_CODE
                            ? (double)column->value_count - 1
                            : 1;
        }
    }
}

enum dpf_status dpf_bounds_read(const char *path, uint64_t features, struct dpf_bounds *b,
                                struct dpf_error *e)
{
    struct dpf_columns c;
    *b = (struct dpf_bounds){0};
    enum dpf_status status = dpf_columns_read(path, &c, e);
    if (status != DPF_OK)
        return status;
    b->lo = dpf_calloc(c.features, sizeof *b->lo);
    b->hi = dpf_calloc(c.features, sizeof *b->hi);
    if (c.features != features)
        status =
            dpf_fail(e, DPF_USAGE, "'%s' describes %zu features, the stream has %llu",
                     path, c.features, (unsigned long long)features);
    else if (!b->lo || !b->hi)
        status = dpf_fail_memory(e);
    else {
        b->count = c.features;
        fill(&c, b);
    }
    dpf_columns_release(&c);
    return status;
}
