/* Tables that hold their own words: rows of any type whose first member is their name,
 * ended by a row without one. An array of strings that ends in NULL is such a table, too.
 * What may be chosen by name (a loss, an operation, a backend) is one row in one place;
 * options, help and messages read the words from there. */
#ifndef DPF_BASE_WORDS_H
#define DPF_BASE_WORDS_H

#include <stddef.h>

/* The name of row i, or NULL behind the last one. */
const char *dpf_row_name(const void *table, size_t row_bytes, size_t i);
/* The number of the row with this name; that of the end if there is none. */
size_t dpf_row_index(const void *table, size_t row_bytes, const char *name);
/* The row with this name, or NULL. */
const void *dpf_row_find(const void *table, size_t row_bytes, const char *name);
/* The name that was probably meant, or NULL. */
const char *dpf_row_nearest(const void *table, size_t row_bytes, const char *word);

#define DPF_INDEX(table, name)   dpf_row_index(table, sizeof *(table), name)
#define DPF_FIND(table, name)    dpf_row_find(table, sizeof *(table), name)
#define DPF_NEAREST(table, word) dpf_row_nearest(table, sizeof *(table), word)

#endif
