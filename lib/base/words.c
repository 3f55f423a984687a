#include "base/words.h"

#include <string.h>

#include "base/banned.h"

const char *dpf_row_name(const void *table, size_t row_bytes, size_t i)
{
    return *(const char *const *)(const void *)((const char *)table + i * row_bytes);
}

size_t dpf_row_index(const void *table, size_t row_bytes, const char *name)
{
    size_t i = 0;
    for (const char *own; (own = dpf_row_name(table, row_bytes, i)); i++)
        if (strcmp(own, name) == 0)
            break;
    return i;
}

const void *dpf_row_find(const void *table, size_t row_bytes, const char *name)
{
    size_t i = dpf_row_index(table, row_bytes, name);
    return dpf_row_name(table, row_bytes, i) ? (const char *)table + i * row_bytes : NULL;
}

/* Edit distance, cut off where it no longer matters. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 40 };
    size_t n = strlen(a), m = strlen(b), row[LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *dpf_row_nearest(const void *table, size_t row_bytes, const char *word)
{
    const char *best = NULL, *name;
    size_t least = 3;
    for (size_t i = 0; (name = dpf_row_name(table, row_bytes, i)); i++) {
        size_t d = distance(word, name);
        if (d < least && d < strlen(name)) {
            least = d;
            best = name;
        }
    }
    return best;
}
