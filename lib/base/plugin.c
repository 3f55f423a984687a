#include "base/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"

#include "base/banned.h"

/* Where plug-ins lie, seen from the program: a stage, or bin/dpflow. */
static const char *const folders[] = {"", "/../libexec/dpflow", NULL};

static struct loaded {
    const struct dpf_plugin *plugin;
    struct loaded *next;
} * all;

/* A name is a word, never a path. */
static bool is_name(const char *name)
{
    return *name &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name);
}

/* Heap; NULL if there is no such file. */
static char *find_file(const char *name)
{
    char *dir = is_name(name) ? dpf_program_dir() : NULL, *path = NULL;
    for (const char *const *folder = folders; dir && !path && *folder; folder++) {
        path = dpf_format("%s%s/dpflow-%s.so", dir, *folder, name);
        if (path && !dpf_is_file(path)) {
            free(path);
            path = NULL;
        }
    }
    free(dir);
    return path;
}

static const struct dpf_plugin *find_loaded(const char *name)
{
    for (const struct loaded *l = all; l; l = l->next)
        if (strcmp(l->plugin->name, name) == 0)
            return l->plugin;
    return NULL;
}

/* Whether the file keeps what its name and its version promise. */
static bool is_valid(const struct dpf_plugin *p, const char *name)
{
    return p && p->version == DPF_PLUGIN_VERSION && p->kind && p->name && p->table &&
           strcmp(p->name, name) == 0;
}

static enum dpf_status load(const char *path, const char *name,
                            const struct dpf_plugin **plugin, struct dpf_error *e)
{
    static const struct dpf_plugin_host host = {dpf_stop_requested, dpf_stop_signal};
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object)
        return dpf_fail(e, DPF_UNAVAILABLE, "cannot load plug-in: %s", dlerror());
    const struct dpf_plugin *found = dlsym(object, "dpf_plugin");
    if (!is_valid(found, name)) {
        dlclose(object);
        return dpf_fail(e, DPF_UNAVAILABLE,
                        "plug-in 'dpflow-%s.so' is of another version of dpflow", name);
    }
    struct loaded *entry = dpf_calloc(1, sizeof *entry);
    if (!entry) {
        dlclose(object);
        return dpf_fail_memory(e);
    }
    *entry = (struct loaded){found, all};
    all = entry;
    if (found->attach)
        found->attach(&host);
    *plugin = found;
    return DPF_OK;
}

bool dpf_plugin_exists(const char *name)
{
    char *path = find_file(name);
    free(path);
    return path != NULL;
}

enum dpf_status dpf_plugin_find(const char *kind, const char *name,
                                const struct dpf_plugin **plugin, struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    const struct dpf_plugin *found = find_loaded(name);
    if (!found) {
        char *path = find_file(name);
        if (!path)
            return dpf_fail(e, DPF_UNAVAILABLE,
                            "the '%s' %s was not built or installed: 'dpflow-%s.so' is "
                            "not beside the stages (README.md says what it needs)",
                            name, kind, name);
        status = load(path, name, &found, e);
        free(path);
    }
    if (status == DPF_OK && strcmp(found->kind, kind) != 0)
        status = dpf_fail(e, DPF_UNAVAILABLE, "plug-in 'dpflow-%s.so' is a %s, not a %s",
                          name, found->kind, kind);
    if (status == DPF_OK)
        *plugin = found;
    return status;
}

/* --------------------------------------------------------------------- listing */

static int is_plugin_file(const struct dirent *entry)
{
    return dpf_starts_with(entry->d_name, "dpflow-") &&
           dpf_ends_with(entry->d_name, ".so");
}

static void list_folder(const char *folder, const char *kind,
                        void (*each)(void *context, const struct dpf_plugin *plugin),
                        void *context)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_plugin_file, alphasort);
    for (int i = 0; i < count; i++) {
        const struct dpf_plugin *plugin;
        struct dpf_error ignored = {.status = DPF_OK};
        char *name = dpf_strdup(entries[i]->d_name + strlen("dpflow-"));
        if (name) {
            name[strlen(name) - strlen(".so")] = '\0';
            if (dpf_plugin_find(kind, name, &plugin, &ignored) == DPF_OK)
                each(context, plugin);
        }
        free(name);
        free(entries[i]);
    }
    free(entries);
}

void dpf_plugin_each(const char *kind,
                     void (*each)(void *context, const struct dpf_plugin *plugin),
                     void *context)
{
    char *dir = dpf_program_dir();
    for (const char *const *f = folders; dir && *f; f++) {
        char *folder = dpf_format("%s%s", dir, *f);
        if (folder && dpf_is_dir(folder))
            list_folder(folder, kind, each, context);
        free(folder);
    }
    free(dir);
}
