#include "data/formats.h"

#include <string.h>

#include "base/text.h"
#include "base/words.h"

#include "base/banned.h"

#define FORMAT(symbol, name) extern const struct dpf_format dpf_format_##symbol;
#include "formats.inc"
#undef FORMAT

#define FORMAT(symbol, name) {name, &dpf_format_##symbol},
const struct dpf_format_entry dpf_formats[] = {
#include "formats.inc"
    {NULL, NULL},
};

static bool has_ending(const struct dpf_format *f, const char *path, size_t size)
{
    for (const char *const *ending = f->endings; *ending; ending++) {
        size_t n = strlen(*ending);
        if (size >= n && memcmp(path + size - n, *ending, n) == 0)
            return true;
    }
    return false;
}

const struct dpf_format_entry *dpf_format_of(const struct dpf_load_request *q)
{
    const char *path = q->names[0];
    size_t size = strlen(path);
    if (q->format)
        return DPF_FIND(dpf_formats, q->format);
    for (const struct dpf_format_entry *f = dpf_formats; f->name; f++)
        if (f->format->scheme && dpf_starts_with(path, f->format->scheme))
            return f;
    if (dpf_ends_with(path, ".gz") || dpf_ends_with(path, ".xz"))
        size -= 3;
    for (const struct dpf_format_entry *f = dpf_formats; f->name; f++)
        if (has_ending(f->format, path, size))
            return f;
    return NULL;
}

enum dpf_status dpf_format_open(const struct dpf_load_request *q,
                                struct dpf_source **take, struct dpf_error *e)
{
    const struct dpf_format_entry *f = dpf_format_of(q);
    if (!f)
        return dpf_fail(e, DPF_USAGE,
                        "cannot tell the format of '%s' by its name: give --format",
                        q->names[0]);
    enum dpf_status status = dpf_request_check(q, f->format->takes, f->name, e);
    if (status == DPF_OK && q->name_count > 1 && !f->format->many)
        status = dpf_fail(e, DPF_USAGE, "format %s takes one file", f->name);
    return status == DPF_OK ? f->format->open(q, take, e) : status;
}

enum dpf_status dpf_format_list(const struct dpf_load_request *q, struct dpf_file_list *l,
                                struct dpf_error *e)
{
    const struct dpf_format_entry *f = dpf_format_of(q);
    bool added = true;
    if (f && f->format->list)
        return f->format->list(q, l, e);
    for (size_t i = 0; added && i < q->name_count; i++)
        added = dpf_file_list_add(l, 'x', dpf_strdup(q->names[i]), NULL);
    for (size_t i = 0; added && i < q->label_count; i++)
        added = dpf_file_list_add(l, 'y', dpf_strdup(q->labels[i]), NULL);
    return added ? DPF_OK : dpf_fail_memory(e);
}
