#include "data/catalog.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/text.h"
#include "data/formats.h"
#include "data/stored.h"

#include "base/banned.h"

/* What a request comes to: a set and its part, or files of a format (set is NULL). */
struct found {
    const struct dpf_set_entry *set;
    struct dpf_part part;
};

static enum dpf_status find(const struct dpf_load_request *q, struct found *f,
                            struct dpf_error *e)
{
    const struct dpf_format_entry *format = dpf_format_of(q);
    if (q->format || dpf_is_file(q->names[0]) || (format && format->format->scheme))
        return DPF_OK;
    return dpf_set_find(q, &f->set, &f->part, e);
}

enum dpf_status dpf_catalog_list(const struct dpf_load_request *q,
                                 struct dpf_file_list *files, struct dpf_error *e)
{
    struct found f = {0};
    enum dpf_status status = find(q, &f, e);
    if (status != DPF_OK)
        return status;
    if (!f.set)
        return dpf_format_list(q, files, e);
    return f.set->set->files ? dpf_stored_list(q, f.set, &f.part, files, e) : DPF_OK;
}

static enum dpf_status open_set(const struct dpf_load_request *q, struct found *f,
                                struct dpf_source **take, struct dpf_error *e)
{
    const struct dpf_data_set *set = f->set->set;
    if (q->name_count > 1)
        return dpf_fail(e, DPF_USAGE, "load one data set at a time");
    enum dpf_status status = dpf_request_check(q, set->takes, f->set->name, e);
    if (status == DPF_OK)
        status = set->files ? dpf_stored_open(set, q->files, take, e)
                            : set->open(q, &f->part, take, e);
    return status;
}

enum dpf_status dpf_catalog_open(const struct dpf_load_request *q,
                                 struct dpf_source **take, struct dpf_error *e)
{
    struct found f = {0};
    enum dpf_status status = find(q, &f, e);
    if (status == DPF_OK)
        status = f.set ? open_set(q, &f, take, e) : dpf_format_open(q, take, e);
    return status;
}

enum dpf_status dpf_catalog_fingerprint(const struct dpf_load_request *q,
                                        struct dpf_fingerprint *f, struct dpf_error *e)
{
    struct dpf_file_list files = {0};
    enum dpf_status status = dpf_catalog_list(q, &files, e);
    for (size_t i = 0; status == DPF_OK && i < files.count; i++)
        status = dpf_fingerprint_add_file(f, files.files[i].path, e);
    dpf_file_list_release(&files);
    return status;
}

/* --------------------------------------------------------------------- contents */

/* Made from a seed, or embedded: what was asked for tells what comes. */
static enum dpf_status add_made(const struct dpf_load_request *q, const struct found *f,
                                struct dpf_contents *c, struct dpf_error *e)
{
    char *text =
        dpf_format("%s seed %llu count %llu side %llu channels %llu", q->names[0],
                   (unsigned long long)q->seed, (unsigned long long)f->part.count,
                   (unsigned long long)q->side, (unsigned long long)q->channels);
    enum dpf_status status =
        text ? dpf_contents_add_text(c, text, e) : dpf_fail_memory(e);
    free(text);
    return status;
}

/* Files that lie there under the name of a set may hold anything: only what was published
 * is taken for it. */
static void name_set(const struct dpf_load_request *q, const struct found *f,
                     struct dpf_contents *c)
{
    bool generated = f->set->set->is_generated;
    /* of so many, the last training records would be the first of the test */
    if (f->set->set->views || !dpf_contents_genuine(c) ||
        (generated && q->count > DPF_SET_TEST_FIRST))
        return;
    if (generated)
        snprintf(c->set, sizeof c->set, "%s seed %llu", f->set->name,
                 (unsigned long long)q->seed);
    else
        snprintf(c->set, sizeof c->set, "%s", f->set->name);
    snprintf(c->part, sizeof c->part, "%s", f->part.name);
}

enum dpf_status dpf_catalog_contents(const struct dpf_load_request *q,
                                     struct dpf_contents *c, struct dpf_error *e)
{
    struct found f = {0};
    enum dpf_status status = find(q, &f, e);
    if (status == DPF_OK && f.set && !f.set->set->files)
        status = add_made(q, &f, c, e);
    for (size_t i = 0; status == DPF_OK && i < q->files->count; i++) {
        const struct dpf_data_file *file = &q->files->files[i];
        status = dpf_contents_add_file(c, file->role, file->path, file->sha256, e);
    }
    if (status == DPF_OK)
        status = dpf_contents_read(c, e);
    if (status == DPF_OK && f.set)
        name_set(q, &f, c);
    return status;
}
