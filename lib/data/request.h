/* What `load` is asked for: data sets, files and their options, as one struct that every
 * reader and generator sees and takes its own part of. */
#ifndef DPF_DATA_REQUEST_H
#define DPF_DATA_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "data/columns.h"
#include "data/files.h"
#include "options/options.h"

struct dpf_load_request {
    const struct dpf_parsed *given; /* to refuse options that do not apply; or NULL */
    const char *const *names;       /* one data set "NAME[:SPLIT]", or paths */
    size_t name_count;
    const char *data_dir;      /* or NULL */
    bool partial;              /* a named set may lack files */
    const char *format;        /* a name of dpf_formats, or NULL: by file name */
    const char *const *labels; /* label file (idx) or mask files (nifti) */
    size_t label_count;
    const struct dpf_columns *columns;    /* csv, or NULL */
    uint64_t classes;                     /* of labels and masks; 0: not declared */
    uint64_t count, seed, side, channels; /* generators; count 0: the default */
    uint64_t size[3];                     /* of volumes, [D,H,W]; 0: not given */
    const struct dpf_file_list *files;    /* the files that this means, if they were
                                           * listed before; or NULL */
};

/* The options that a reader or generator takes, as a member of its row. */
#define DPF_TAKES(...) ((const char *const[]){__VA_ARGS__, NULL})

/* DPF_USAGE if an option was given that only others take: an option that means nothing
 * for `what` is a mistake. `takes` ends with NULL, or is NULL: none. */
enum dpf_status dpf_request_check(const struct dpf_load_request *q,
                                  const char *const *takes, const char *what,
                                  struct dpf_error *e);

#endif
