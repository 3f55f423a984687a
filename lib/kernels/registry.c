/* Backends by name: those that are built in, and plug-ins (base/plugin.h). */
#include "base/plugin.h"
#include "base/words.h"
#include "kernels/kernels.h"

#include "base/banned.h"

static const struct dpf_kernels *ref_table(void)
{
    return &dpf_kernels_ref;
}

const struct dpf_backend dpf_backends[] = {
    {"cpu", dpf_kernels_cpu},
    {"ref", ref_table},
    {NULL, NULL},
};

enum dpf_status dpf_backend_find(const char *name, const struct dpf_kernels **kernels,
                                 struct dpf_error *e)
{
    const struct dpf_backend *own = DPF_FIND(dpf_backends, name);
    const struct dpf_plugin *plugin;
    *kernels = own ? own->table() : NULL;
    if (own)
        return DPF_OK;
    if (!dpf_plugin_exists(name))
        return dpf_fail(e, DPF_UNAVAILABLE,
                        "there is no backend '%s': 'cpu' and 'ref' are built in, and the "
                        "plug-in 'dpflow-%s.so' is not beside the stages",
                        name, name);
    enum dpf_status status = dpf_plugin_find("backend", name, &plugin, e);
    if (status == DPF_OK)
        *kernels = plugin->table;
    return status;
}
