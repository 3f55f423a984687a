#include "data/csv_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#include "base/banned.h"

enum { CHUNK = 256 << 10 };

enum dpf_status dpf_csv_text_fail(const struct dpf_csv_text *t, const char *what,
                                  struct dpf_error *e)
{
    return dpf_fail(e, DPF_BAD_STREAM, "'%s' line %lu: %s", dpf_bytes_name(t->bytes),
                    t->line, what);
}

/* ---- a row of text ---- */

static bool odd_quotes(const char *text, size_t size)
{
    bool odd = false;
    const char *end = text + size;
    while ((text = memchr(text, '"', (size_t)(end - text)))) {
        odd = !odd;
        if (++text == end)
            break;
    }
    return odd;
}

static enum dpf_status refill(struct dpf_csv_text *t, struct dpf_error *e)
{
    size_t got, have = t->end - t->start;
    if (t->start && have)
        memmove(t->buffer, t->buffer + t->start, have);
    t->start = 0;
    t->end = have;
    enum dpf_status status =
        dpf_bytes_read(t->bytes, t->buffer + have, t->capacity - have, &got, e);
    if (status != DPF_OK)
        return status;
    t->drained = got < t->capacity - have;
    t->end += got;
    return DPF_OK;
}

/* Look for the line feed that ends the row, from *scan on. *open tells whether a quote is
 * open there: line feeds within quotes belong to a cell. */
static bool find_end(struct dpf_csv_text *t, size_t *scan, bool *open)
{
    const char *row = t->buffer + t->start;
    size_t have = t->end - t->start;
    while (*scan < have) {
        const char *feed = memchr(row + *scan, '\n', have - *scan);
        size_t stop = feed ? (size_t)(feed - row) : have;
        *open ^= odd_quotes(row + *scan, stop - *scan);
        *scan = stop;
        if (!feed)
            return false;
        t->next_line++;
        if (!*open)
            return true;
        ++*scan;
    }
    return false;
}

/* The next row of text without its line end; *row is NULL behind the last one. */
static enum dpf_status next_text(struct dpf_csv_text *t, char **row, size_t *size,
                                 struct dpf_error *e)
{
    size_t scan = 0;
    bool open = false, found;
    t->line = t->next_line;
    *row = NULL;
    while (!(found = find_end(t, &scan, &open)) && !t->drained &&
           scan <= t->max_line_bytes) {
        enum dpf_status status = refill(t, e);
        if (status != DPF_OK)
            return status;
    }
    if (scan > t->max_line_bytes)
        return dpf_fail(e, DPF_BAD_STREAM, "'%s' line %lu is longer than %zu bytes",
                        dpf_bytes_name(t->bytes), t->line, t->max_line_bytes);
    if (!found && scan == 0)
        return DPF_OK;
    if (open)
        return dpf_csv_text_fail(t, "a quote is not closed", e);
    *row = t->buffer + t->start;
    *size = scan;
    t->start += scan + found;
    if (memchr(*row, '\0', *size))
        return dpf_csv_text_fail(t, "a NUL byte is not text", e);
    if (*size && (*row)[*size - 1] == '\r')
        --*size;
    return DPF_OK;
}

/* ---- its cells ---- */

static bool is_blank(char c, char separator)
{
    return (c == ' ' || c == '\t') && c != separator;
}

/* A quoted cell, unquoted in place. *at goes from the opening quote to what ends the
 * cell. */
static bool quoted_cell(char **at, char *end, char separator, struct dpf_csv_cell *cell)
{
    char *in = *at + 1, *out = in;
    cell->text = in;
    for (; in < end; in++) {
        if (*in == '"' && in + 1 < end && in[1] == '"')
            in++;
        else if (*in == '"')
            break;
        *out++ = *in;
    }
    cell->size = (size_t)(out - cell->text);
    if (in == end)
        return false;
    in++;
    while (in < end && is_blank(*in, separator))
        in++;
    *at = in;
    return in == end || *in == separator;
}

static bool plain_cell(char **at, char *end, char separator, struct dpf_csv_cell *cell)
{
    char *in = *at;
    int quotes = 0;
    cell->text = in;
    for (; in < end && *in != separator; in++)
        quotes |= *in == '"';
    *at = in;
    while (in > cell->text && is_blank(in[-1], separator))
        in--;
    cell->size = (size_t)(in - cell->text);
    return !quotes;
}

static enum dpf_status split_row(struct dpf_csv_text *t, char *row, size_t size,
                                 struct dpf_error *e)
{
    const char separator = t->separator;
    char *at = row, *end = row + size;
    size_t n = 0;
    for (;; at++) {
        while (at < end && (is_blank(*at, separator) || (separator == ' ' && *at == ' ')))
            at++;
        if (separator == ' ' && at == end && n > 0)
            break; /* spaces at the end of a row separate nothing */
        if (n == t->cell_capacity &&
            !dpf_grow(&t->cells, &t->cell_capacity, n + 1, sizeof *t->cells))
            return dpf_fail_memory(e);
        if (n == t->max_fields)
            return dpf_csv_text_fail(t, "too many fields", e);
        struct dpf_csv_cell *cell = &t->cells[n++];
        bool good = at < end && *at == '"' ? quoted_cell(&at, end, separator, cell)
                                           : plain_cell(&at, end, separator, cell);
        if (!good)
            return dpf_csv_text_fail(t, "a quote stands where none is due", e);
        if (at == end)
            break;
    }
    t->cell_count = n;
    return DPF_OK;
}

/* ---- the interface ---- */

enum dpf_status dpf_csv_text_init(struct dpf_csv_text *t, struct dpf_bytes *take_bytes,
                                  char separator, size_t max_line_bytes,
                                  size_t max_fields, struct dpf_error *e)
{
    *t = (struct dpf_csv_text){.bytes = take_bytes,
                               .separator = separator,
                               .max_line_bytes = max_line_bytes,
                               .max_fields = max_fields,
                               .capacity = max_line_bytes + CHUNK,
                               .next_line = 1};
    t->buffer = malloc(t->capacity);
    if (!t->buffer)
        return dpf_fail_memory(e);
    enum dpf_status status = refill(t, e);
    if (status == DPF_OK && t->end >= 3 && memcmp(t->buffer, "\xef\xbb\xbf", 3) == 0)
        t->start = 3; /* a byte order mark that says nothing */
    return status;
}

enum dpf_status dpf_csv_text_skip(struct dpf_csv_text *t, struct dpf_error *e)
{
    char *row;
    size_t size;
    t->cell_count = 0;
    return next_text(t, &row, &size, e);
}

enum dpf_status dpf_csv_text_next(struct dpf_csv_text *t, struct dpf_error *e)
{
    char *row;
    size_t size = 0;
    t->cell_count = 0;
    do {
        enum dpf_status status = next_text(t, &row, &size, e);
        if (status != DPF_OK || !row)
            return status;
    } while (size == 0);
    return split_row(t, row, size, e);
}

void dpf_csv_text_release(struct dpf_csv_text *t)
{
    dpf_bytes_destroy(&t->bytes);
    free(t->buffer);
    free(t->cells);
    *t = (struct dpf_csv_text){0};
}
