/* The table of file formats. A format is one row, which stands beside its reader:
 *
 *   const struct dpf_format dpf_format_npy = {.title = "NumPy", ...};
 *
 * The Makefile finds these rows in lib/data and lists them in build/gen/formats.inc;
 * --format, file names, help and completion are read from the table. */
#ifndef DPF_DATA_FORMATS_H
#define DPF_DATA_FORMATS_H

#include "base/status.h"
#include "data/files.h"
#include "data/request.h"
#include "data/source.h"

struct dpf_format {
    const char *title;          /* in help: "NumPy" */
    const char *const *endings; /* of file names, before .gz or .xz; ended by NULL */
    const char *gives;          /* in help: the fields */
    const char *scheme;         /* what its names begin with ("msd:"), or NULL */
    const char *const *takes; /* options besides those of all: DPF_TAKES(...), or NULL */
    bool many;                /* takes several files */
    /* Which files a request means; NULL: those that it names, and its labels. */
    enum dpf_status (*list)(const struct dpf_load_request *q, struct dpf_file_list *l,
                            struct dpf_error *e);
    /* Open q->names with q->labels. *take is destroyed by dpf_source_destroy(). */
    enum dpf_status (*open)(const struct dpf_load_request *q, struct dpf_source **take,
                            struct dpf_error *e);
};
#define DPF_ENDINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A table of base/words.h. */
struct dpf_format_entry {
    const char *name;
    const struct dpf_format *format;
};
extern const struct dpf_format_entry dpf_formats[];

/* The format of a request, by --format or the name of its first file; NULL if neither
 * tells. */
const struct dpf_format_entry *dpf_format_of(const struct dpf_load_request *q);
/* Open the files of a request. */
enum dpf_status dpf_format_open(const struct dpf_load_request *q,
                                struct dpf_source **take, struct dpf_error *e);
/* The files that dpf_format_open() would read. A format that nobody knows reads what is
 * named. */
enum dpf_status dpf_format_list(const struct dpf_load_request *q, struct dpf_file_list *l,
                                struct dpf_error *e);

#endif
