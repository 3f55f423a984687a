/* The files that a request reads, in the order in which they count: what is digested is
 * what is opened. */
#ifndef DPF_DATA_FILES_H
#define DPF_DATA_FILES_H

#include <stdbool.h>
#include <stddef.h>

struct dpf_data_file {
    char *path;         /* heap */
    char role;          /* 'x': records, 'y': labels or masks (data/contents.h) */
    const char *sha256; /* as published (hex; borrowed), or NULL */
};

/* Zero-initialise. */
struct dpf_file_list {
    struct dpf_data_file *files;
    size_t count, capacity;
};

/* Add a file; `take_path` is consumed. False if there is no memory, or no path. */
bool dpf_file_list_add(struct dpf_file_list *l, char role, char *take_path,
                       const char *sha256);
/* The paths with one role, in order: heap, ended by NULL; *count of them. The strings
 * stay those of the list. NULL if there is no memory. */
const char **dpf_file_list_paths(const struct dpf_file_list *l, char role, size_t *count);
void dpf_file_list_release(struct dpf_file_list *l);

#endif
