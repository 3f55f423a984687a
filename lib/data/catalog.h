/* Data sets by name, and files by their kind: what `load` can load. What there is stands
 * in two tables: data/sets.h and data/formats.h. */
#ifndef DPF_DATA_CATALOG_H
#define DPF_DATA_CATALOG_H

#include "base/digest.h"
#include "base/status.h"
#include "data/contents.h"
#include "data/request.h"
#include "data/source.h"

/* The files that a request means; none if the program makes what is asked for. A data set
 * that is not on this machine is DPF_UNAVAILABLE and names the command that fetches it.
 */
enum dpf_status dpf_catalog_list(const struct dpf_load_request *request,
                                 struct dpf_file_list *files, struct dpf_error *e);
/* What these files, request->files, hold: by content. A named set is told as such if its
 * content is what was published under that name.
 *
 * Before they are opened: dpf_contents_unchanged() after the last record then shows that
 * what was read is what was digested. */
enum dpf_status dpf_catalog_contents(const struct dpf_load_request *request,
                                     struct dpf_contents *contents, struct dpf_error *e);
/* Open what is asked for, request->files. */
enum dpf_status dpf_catalog_open(const struct dpf_load_request *request,
                                 struct dpf_source **take, struct dpf_error *e);
/* Add the content of every file that dpf_catalog_list() gives. */
enum dpf_status dpf_catalog_fingerprint(const struct dpf_load_request *request,
                                        struct dpf_fingerprint *f, struct dpf_error *e);

/* What `load` can be asked for, "digits:train" and so on, a line each: for completion. */
void dpf_catalog_words(struct dpf_text *out);
/* Both tables as text, for help; datasets/README.md shows the same. */
void dpf_catalog_tables(struct dpf_text *out);

/* UCI optical digits, embedded in the program (datasets/digits.md). */
enum dpf_status dpf_digits_open(bool train, bool test, struct dpf_source **take,
                                struct dpf_error *e);

#endif
