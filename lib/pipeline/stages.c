#include "pipeline/stages.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "options/options.h"

#include "base/banned.h"

const struct dpf_stage_entry dpf_stage_entries[] = {
#include "stages.inc" /* made from stages/stages.list */
    {NULL, false, NULL},
};

const struct dpf_stage_entry *dpf_stage_find(const char *name)
{
    for (const struct dpf_stage_entry *s = dpf_stage_entries; s->name; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    return NULL;
}

const char *dpf_stage_nearest(const char *name)
{
    return DPF_NEAREST(dpf_stage_entries, name);
}

char *dpf_stage_path(const char *name)
{
    char *dir = dpf_program_dir();
    char *path = dir ? dpf_format("%s/../libexec/dpflow/%s", dir, name) : NULL;
    if (path && !dpf_is_file(path)) {
        free(path);
        path = dpf_format("%s/%s", dir, name);
    }
    free(dir);
    return path;
}
