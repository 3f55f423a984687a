/* Rows and cells out of the bytes of comma-separated text (RFC 4180). Where a row ends
 * and what a quote means is a matter of characters alone; what a cell means is a matter
 * of the columns (csv.h). Kept apart, the loops over every byte can be read, and tried on
 * hostile text, without knowing anything about columns.
 *
 * The text is streamed through one buffer, and cells are unquoted in place there: nothing
 * is copied or allocated for a row. Lines are counted as an editor counts them, so that a
 * message finds its line even behind cells that hold line feeds. */
#ifndef DPF_DATA_CSV_TEXT_H
#define DPF_DATA_CSV_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"
#include "data/bytes.h"

/* Not terminated, and gone when the next row is asked for. */
struct dpf_csv_cell {
    char *text;
    size_t size;
};

struct dpf_csv_text {
    /* For the caller to read: the row in hand. */
    struct dpf_csv_cell *cells;
    size_t cell_count;  /* 0: there was no more row */
    unsigned long line; /* on which it starts, from 1 */
    struct dpf_bytes *bytes;
    /* Of no concern to the caller. */
    char separator;
    size_t max_line_bytes, max_fields, cell_capacity;
    char *buffer; /* text from `start` to `end` was not looked at yet */
    size_t capacity, start, end;
    bool drained;
    unsigned long next_line; /* of the text at `start` */
};

/* Start reading; a byte order mark is passed over. A row longer than `max_line_bytes` or
 * with more than `max_fields` cells will be refused. The bytes are consumed even on
 * failure; t wants dpf_csv_text_release() either way. DPF_SYSTEM when out of memory,
 * otherwise what dpf_bytes_read() says. */
enum dpf_status dpf_csv_text_init(struct dpf_csv_text *t, struct dpf_bytes *take_bytes,
                                  char separator, size_t max_line_bytes,
                                  size_t max_fields, struct dpf_error *e);
/* The next row that is not empty, cut into t->cells. Blanks around a cell are dropped
 * unless they are quoted; a separator ' ' stands for any number of spaces. Text that is
 * not well-formed is DPF_BAD_STREAM with its line. */
enum dpf_status dpf_csv_text_next(struct dpf_csv_text *t, struct dpf_error *e);
/* Pass over the next row, even an empty one, without cutting it. At the end of the text
 * there is nothing to pass over, which is no failure. */
enum dpf_status dpf_csv_text_skip(struct dpf_csv_text *t, struct dpf_error *e);
/* DPF_BAD_STREAM "'FILE' line N: WHAT" about the row in hand. */
enum dpf_status dpf_csv_text_fail(const struct dpf_csv_text *t, const char *what,
                                  struct dpf_error *e);
/* Close the bytes and free the buffers. A zeroed t is fine. */
void dpf_csv_text_release(struct dpf_csv_text *t);

#endif
