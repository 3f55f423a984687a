/* A description of columns, a line with only "---", and a table. Without such a line all
 * is a table that has no description. What is written stays within what was declared. */
#include <stdlib.h>
#include <string.h>

#include "data/csv.h"

#include "base/banned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BATCHES = 64 };

/* Declared bounds and classes hold for whatever the table says. */
static void check(const struct dpf_field *f, const struct dpf_tensor *t)
{
    uint64_t n = dpf_shape_elements(&t->shape);
    for (uint64_t i = 0; i < n; i++) {
        double v = dpf_tensor_get(t, i);
        size_t k = f->bounds.count ? (size_t)(i % f->bounds.count) : 0;
        if (f->bounds.count && !(v >= f->bounds.lo[k] && v <= f->bounds.hi[k]))
            abort();
        if (f->classes && !(v >= 0 && v < (double)f->classes))
            abort();
    }
}

static void read_all(struct dpf_source *take_source)
{
    struct dpf_batch b;
    uint64_t got = 1;
    for (int i = 0; i < MAX_BATCHES && got; i++) {
        if (dpf_source_next(take_source, &b, 16, NULL) != DPF_OK)
            break;
        got = b.rows;
        for (int k = 0; k < b.count; k++)
            check(&take_source->header.fields[k], &b.tensor[k]);
        dpf_batch_release(&b);
    }
    dpf_source_destroy(&take_source);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct dpf_csv_limits limits = {.line_bytes = 4096, .fields = 256};
    struct dpf_columns columns;
    struct dpf_bytes *bytes;
    struct dpf_source *s;
    const uint8_t *line = size ? memmem(data, size, "\n---\n", 5) : NULL;
    size_t head = line ? (size_t)(line - data) + 1 : 0, skip = line ? head + 4 : 0;
    if (line &&
        dpf_columns_parse((const char *)data, head, "columns", &columns, NULL) != DPF_OK)
        return 0;
    if (dpf_bytes_open_memory(data + skip, size - skip, "fuzz", &bytes, NULL) == DPF_OK &&
        dpf_csv_new(bytes, line ? &columns : NULL, &limits, &s, NULL) == DPF_OK)
        read_all(s);
    if (line)
        dpf_columns_release(&columns);
    return 0;
}
