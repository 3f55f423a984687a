#include "data/bounds.h"

#include <stdlib.h>
#include <string.h>

#include "data/columns.h"

#include "base/banned.h"

void dpf_bounds_release(struct dpf_bounds *b)
{
    free(b->lo);
    free(b->hi);
    *b = (struct dpf_bounds){0};
}

static bool bounds_alloc(struct dpf_bounds *b, size_t count)
{
    b->count = count;
    b->lo = dpf_calloc(count, sizeof *b->lo);
    b->hi = dpf_calloc(count, sizeof *b->hi);
    return b->lo && b->hi;
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
    bool room = bounds_alloc(b, c.features);
    if (c.features != features)
        status =
            dpf_fail(e, DPF_USAGE, "'%s' describes %zu features, the stream has %llu",
                     path, c.features, (unsigned long long)features);
    else if (!room)
        status = dpf_fail_memory(e);
    else
        fill(&c, b);
    dpf_columns_release(&c);
    return status;
}

enum dpf_status dpf_bounds_choose(const struct dpf_field *f, const double unit[2],
                                  const char *path, struct dpf_bounds *b,
                                  struct dpf_error *e)
{
    *b = (struct dpf_bounds){0};
    if (!unit && path)
        return dpf_bounds_read(path, dpf_shape_elements(&f->shape), b, e);
    if (!unit && !f->bounds.count)
        return dpf_fail(e, DPF_BAD_STREAM, "field '%s' declares no bounds", f->name);
    if (!bounds_alloc(b, unit ? 1 : f->bounds.count))
        return dpf_fail_memory(e);
    memcpy(b->lo, unit ? &unit[0] : f->bounds.lo, b->count * sizeof *b->lo);
    memcpy(b->hi, unit ? &unit[1] : f->bounds.hi, b->count * sizeof *b->hi);
    return DPF_OK;
}
