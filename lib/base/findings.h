/* What a program found out, in two forms: a table for people and a JSON object for
 * programs. Several parts of the library add to the same findings (a score, what it was
 * measured on; a cost, the same by other methods), each behind what is there already.
 * Table and object are put together at the end, so nobody edits finished text. */
#ifndef DPF_BASE_FINDINGS_H
#define DPF_BASE_FINDINGS_H

#include "base/text.h"

/* Zero-initialise; release with dpf_findings_release(). */
struct dpf_findings {
    struct dpf_text rows;    /* the first paragraph of the table: names and values */
    struct dpf_text details; /* further paragraphs, each behind an empty line */
    struct dpf_text members; /* of the JSON object: dpf_text_add_key(), then the value */
};

/* A row of the first paragraph: the name, padded to so many columns, and a value. */
void dpf_findings_add_row(struct dpf_findings *f, int columns, const char *name,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Append the whole table; a failure of memory stays in `out`. */
void dpf_findings_table(const struct dpf_findings *f, struct dpf_text *out);
/* Append the whole JSON object, without a newline. */
void dpf_findings_json(const struct dpf_findings *f, struct dpf_text *out);
void dpf_findings_release(struct dpf_findings *f);

#endif
