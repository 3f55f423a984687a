/* The table of data sets that have a name. A set is one row:
 *
 * - made by the program (embedded, or generated from a seed): a row beside the code,
 *     const struct dpf_data_set dpf_set_synth_leaves = {.open = ..., ...};
 *   which the Makefile finds in lib/data;
 * - published files: lines in datasets/sets.list, of which the Makefile makes a row and
 *   datasets/fetch its addresses and sums.
 *
 * build/gen/data_sets.inc lists both; help and completion are read from the table. */
#ifndef DPF_DATA_SETS_H
#define DPF_DATA_SETS_H

#include "base/status.h"
#include "data/request.h"
#include "data/source.h"

/* A part of a set, as it is asked for. */
struct dpf_part {
    const char *name; /* "train", "test", "all" */
    bool train, test;
    uint64_t first, count; /* generated sets: these records */
};

/* A file of a published set. */
struct dpf_set_file {
    const char *name; /* without .gz or .xz */
    const char *part;
    char role; /* 'x': records, 'y': labels */
    const char *sha256;
};

struct dpf_data_set {
    uint64_t train, test; /* records; of a generated set by default */
    const char *fields;   /* in help */
    const char *from;     /* in help: "generated" */
    /* Parts of its own in place of train and test, ended by NULL: views of the same
     * people, so they are never taken for records apart. `train` counts the first. */
    const char *const *views;
    bool has_all; /* its parts may be read together */
    bool is_generated;
    const char *const *takes; /* options besides those of all: DPF_TAKES(...), or NULL */
    /* Sets that the program makes. *take is destroyed by dpf_source_destroy(). */
    enum dpf_status (*open)(const struct dpf_load_request *q, const struct dpf_part *part,
                            struct dpf_source **take, struct dpf_error *e);
    /* Published files, ended by one without a name; or NULL. */
    const struct dpf_set_file *files;
    const char *format; /* of dpf_formats */
    uint64_t classes;
    /* Its files are whole in themselves, so that some may be read without the others, and
     * are called so ("batches"); NULL: all of a part are needed. */
    const char *pieces;
};

/* A table of base/words.h. */
struct dpf_set_entry {
    const char *name;
    const struct dpf_data_set *set;
};
extern const struct dpf_set_entry dpf_sets[];

/* Records of test parts of generated sets start here, far from any training set. */
#define DPF_SET_TEST_FIRST (1ull << 40)

/* The set and part that q->names[0] asks for. DPF_USAGE names the nearest if there is
 * none. */
enum dpf_status dpf_set_find(const struct dpf_load_request *q,
                             const struct dpf_set_entry **set, struct dpf_part *part,
                             struct dpf_error *e);

#endif
