/* Data sets by name, and files by their kind: what `load` can load.
 *
 * A name is looked for in --data-dir, $DPFLOW_DATA, datasets/data and the user's cache,
 * in this order; `digits` and the synth-* sets are always there. */
#ifndef DPF_DATA_CATALOG_H
#define DPF_DATA_CATALOG_H

#include "base/digest.h"
#include "base/status.h"
#include "data/columns.h"
#include "data/contents.h"
#include "data/source.h"
#include "options/options.h"

struct dpf_load_request {
    const struct dpf_parsed *given; /* to refuse options that do not apply; or NULL */
    const char *const *names;       /* one data set "NAME[:SPLIT]", or paths */
    size_t name_count;
    const char *data_dir;      /* or NULL */
    bool partial;              /* a named set may lack files */
    const char *format;        /* idx, cifar, csv, npy, nifti, or NULL: by file name */
    const char *const *labels; /* label file (idx) or mask files (nifti) */
    size_t label_count;
    const struct dpf_columns *columns;    /* csv, or NULL */
    uint64_t classes;                     /* of labels and masks; 0: not declared */
    uint64_t count, seed, side, channels; /* generators; count 0: the default */
};

/* Open what is asked for. A data set that is not on this machine is DPF_UNAVAILABLE and
 * names the command that fetches it. */
enum dpf_status dpf_catalog_open(const struct dpf_load_request *request,
                                 struct dpf_source **take, struct dpf_error *e);
/* Add the content of every file that dpf_catalog_open() would read. */
enum dpf_status dpf_catalog_fingerprint(const struct dpf_load_request *request,
                                        struct dpf_fingerprint *f, struct dpf_error *e);
/* What dpf_catalog_open() would read, by content. A named set is told as such if its
 * content is what was published under that name. */
enum dpf_status dpf_catalog_contents(const struct dpf_load_request *request,
                                     struct dpf_contents *contents, struct dpf_error *e);
/* What `load` can be asked for, "digits:train" and so on, ended by NULL: for completion.
 */
extern const char *const dpf_catalog_words[];

/* UCI optical digits, embedded in the program (datasets/digits.md). */
enum dpf_status dpf_digits_open(bool train, bool test, struct dpf_source **take,
                                struct dpf_error *e);

#endif
