#include "data/stored.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/words.h"
#include "data/formats.h"

#include "base/banned.h"

/* The rows of datasets/sets.list. */
#include "stored_sets.inc"

/* DIR/SET/NAME as it is, .gz or .xz. */
static char *find_in(const char *dir, const char *set, const char *name)
{
    static const char *const endings[] = {"", ".gz", ".xz"};
    for (size_t i = 0; dir && i < sizeof endings / sizeof *endings; i++) {
        char *path = dpf_format("%s/%s/%s%s", dir, set, name, endings[i]);
        if (path && dpf_is_file(path))
            return path;
        free(path);
    }
    return NULL;
}

/* The places where data sets lie, in order. heap strings; NULL entries are skipped. */
enum { PLACES = 5 };
static void list_places(const char *data_dir, char *places[PLACES])
{
    const char *env = getenv("DPFLOW_DATA"), *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    char *program = dpf_program_dir();
    places[0] = data_dir ? dpf_strdup(data_dir) : NULL;
    places[1] = env && *env ? dpf_strdup(env) : NULL;
    places[2] = dpf_strdup("datasets/data");
    /* beside a source tree that was built in place */
    places[3] = program ? dpf_format("%s/../../../datasets/data", program) : NULL;
    places[4] = cache && *cache ? dpf_format("%s/dpflow", cache)
                : home          ? dpf_format("%s/.cache/dpflow", home)
                                : NULL;
    free(program);
}

static bool place_has_any(const char *place, const struct dpf_set_entry *set)
{
    for (const struct dpf_set_file *f = set->set->files; f->name; f++) {
        char *path = find_in(place, set->name, f->name);
        free(path);
        if (path)
            return true;
    }
    return false;
}

/* The first place that has any file of the set; heap, or NULL. */
static char *find_place(const char *data_dir, const struct dpf_set_entry *set)
{
    char *places[PLACES], *found = NULL;
    list_places(data_dir, places);
    for (int i = 0; i < PLACES; i++) {
        if (!found && places[i] && place_has_any(places[i], set))
            found = places[i];
        else
            free(places[i]);
    }
    return found;
}

/* What is here of a part; *wanted: of how many. */
static enum dpf_status list_present(const char *place, const struct dpf_set_entry *set,
                                    const char *part, struct dpf_file_list *l,
                                    size_t *wanted, struct dpf_error *e)
{
    *wanted = 0;
    for (const struct dpf_set_file *f = set->set->files; f->name; f++) {
        if (strcmp(f->part, part) != 0)
            continue;
        char *path = find_in(place, set->name, f->name);
        if (path && !dpf_file_list_add(l, f->role, path, f->sha256))
            return dpf_fail_memory(e);
        ++*wanted;
    }
    return DPF_OK;
}

enum dpf_status dpf_stored_list(const struct dpf_load_request *q,
                                const struct dpf_set_entry *set,
                                const struct dpf_part *part, struct dpf_file_list *l,
                                struct dpf_error *e)
{
    const char *pieces = set->set->pieces, *kind = part->train ? "training" : "test";
    size_t wanted;
    char *place = find_place(q->data_dir, set);
    enum dpf_status status = list_present(place, set, part->name, l, &wanted, e);
    free(place);
    if (status != DPF_OK || l->count == wanted)
        return status;
    if (l->count == 0 || !pieces)
        return dpf_fail(e, DPF_UNAVAILABLE,
                        "data set '%s' is missing or incomplete: run "
                        "'datasets/fetch %s', or say where it is with --data-dir or "
                        "$DPFLOW_DATA",
                        set->name, set->name);
    if (!q->partial)
        return dpf_fail(e, DPF_UNAVAILABLE,
                        "only %zu of the %zu %s %s of '%s' are here: run "
                        "'datasets/fetch %s', or accept them with --partial",
                        l->count, wanted, kind, pieces, set->name, set->name);
    dpf_notice("only %zu of the %zu %s %s of '%s' are here", l->count, wanted, kind,
               pieces, set->name);
    return DPF_OK;
}

enum dpf_status dpf_stored_open(const struct dpf_data_set *set,
                                const struct dpf_file_list *files,
                                struct dpf_source **take, struct dpf_error *e)
{
    const struct dpf_format_entry *f = DPF_FIND(dpf_formats, set->format);
    struct dpf_load_request q = {.classes = set->classes};
    const char **names = dpf_file_list_paths(files, 'x', &q.name_count);
    const char **labels = dpf_file_list_paths(files, 'y', &q.label_count);
    q.names = names;
    q.labels = labels;
    enum dpf_status status =
        !names || !labels ? dpf_fail_memory(e)
        : !f ? dpf_fail(e, DPF_UNAVAILABLE, "there is no format '%s'", set->format)
             : f->format->open(&q, take, e);
    free(names);
    free(labels);
    return status;
}
