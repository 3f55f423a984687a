/* Parts that are loaded when the program runs: what needs MPI or a GPU is a shared object
 * of its own, so that a machine without them builds and runs everything else.
 *
 * The plug-in NAME is the file dpflow-NAME.so beside the stages (an installed tree and
 * build/ look alike). It exports `const struct dpf_plugin dpf_plugin`. This registry
 * knows neither names nor kinds: whoever asks for a kind knows what its table is. */
#ifndef DPF_BASE_PLUGIN_H
#define DPF_BASE_PLUGIN_H

#include <stdbool.h>

#include "base/status.h"

/* A plug-in is linked with its own copy of lib/base, whose variables nobody sets: signals
 * arrive at the program's copy. This is what a plug-in asks the program for. */
struct dpf_plugin_host {
    bool (*stop_requested)(void);
    int (*stop_signal)(void);
};

enum { DPF_PLUGIN_VERSION = 2 }; /* of this header and of the tables of all kinds */

struct dpf_plugin {
    int version;      /* DPF_PLUGIN_VERSION; nothing else is read before it was checked */
    const char *kind; /* "transport", "backend" */
    const char *name; /* as in dpflow-NAME.so */
    const char *summary; /* one line: what it is */
    const void *table;   /* what the kind says: a struct of functions */
    /* Called once after loading, with a struct that stays; or NULL. */
    void (*attach)(const struct dpf_plugin_host *host);
};

/* The plug-in `name`, which must be of this kind. It is loaded once and stays; several
 * may be loaded. DPF_UNAVAILABLE, in one line, if there is no such file, it cannot be
 * loaded, or is of another version or kind. */
enum dpf_status dpf_plugin_find(const char *kind, const char *name,
                                const struct dpf_plugin **plugin, struct dpf_error *e);
/* Whether there is a file for it; nothing is loaded. */
bool dpf_plugin_exists(const char *name);
/* Call `each` for every plug-in of this kind that is there and can be loaded, in the
 * order of their names: for help and completion. */
void dpf_plugin_each(const char *kind,
                     void (*each)(void *context, const struct dpf_plugin *plugin),
                     void *context);

#endif
