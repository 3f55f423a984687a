#include "data/files.h"

#include <stdlib.h>

#include "base/memory.h"

#include "base/banned.h"

bool dpf_file_list_add(struct dpf_file_list *l, char role, char *take_path,
                       const char *sha256)
{
    if (!take_path ||
        !dpf_grow(&l->files, &l->capacity, l->count + 1, sizeof *l->files)) {
        free(take_path);
        return false;
    }
    l->files[l->count++] = (struct dpf_data_file){take_path, role, sha256};
    return true;
}

const char **dpf_file_list_paths(const struct dpf_file_list *l, char role, size_t *count)
{
    const char **paths = dpf_calloc(l->count + 1, sizeof *paths);
    *count = 0;
    for (size_t i = 0; paths && i < l->count; i++)
        if (l->files[i].role == role)
            paths[(*count)++] = l->files[i].path;
    return paths;
}

void dpf_file_list_release(struct dpf_file_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->files[i].path);
    free(l->files);
    *l = (struct dpf_file_list){0};
}
