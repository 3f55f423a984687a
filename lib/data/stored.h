/* Published data sets: where their files lie on this machine, and how they are opened.
 *
 * A set is looked for in --data-dir, $DPFLOW_DATA, datasets/data and the user's cache, in
 * this order. */
#ifndef DPF_DATA_STORED_H
#define DPF_DATA_STORED_H

#include "data/files.h"
#include "data/sets.h"

/* The files of a part, with their published sums. All come from one place, the first that
 * has any file of the set. DPF_UNAVAILABLE names the command that fetches what is
 * missing; with q->partial, pieces may be missing, with a notice. */
enum dpf_status dpf_stored_list(const struct dpf_load_request *q,
                                const struct dpf_set_entry *set,
                                const struct dpf_part *part, struct dpf_file_list *l,
                                struct dpf_error *e);
/* Open these files by the set's format. */
enum dpf_status dpf_stored_open(const struct dpf_data_set *set,
                                const struct dpf_file_list *files,
                                struct dpf_source **take, struct dpf_error *e);

#endif
