#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "transport/transport.h"

#include "base/banned.h"

static const struct dpf_transport *const transports[] = {
    &dpf_transport_fd,
    &dpf_transport_follow,
    &dpf_transport_zmq_ipc,
    &dpf_transport_zmq_tcp,
};

static const struct dpf_plugin *loaded;

/* Plug-ins lie beside the stages (an installed tree and build/ look alike). */
static char *plugin_path(const char *scheme)
{
    char *dir = dpf_program_dir();
    char *path = dir ? dpf_format("%s/dpflow-%s.so", dir, scheme) : NULL;
    if (path && !dpf_is_file(path)) {
        free(path);
        path = dpf_format("%s/../libexec/dpflow/dpflow-%s.so", dir, scheme);
    }
    free(dir);
    return path;
}

enum dpf_status dpf_plugin_load(const char *scheme, const struct dpf_plugin **plugin,
                                struct dpf_error *e)
{
    enum dpf_status status = DPF_OK;
    if (loaded) {
        *plugin = loaded;
        return DPF_OK;
    }
    char *path = plugin_path(scheme);
    if (!path)
        return dpf_fail_memory(e);
    void *object = NULL;
    if (!dpf_is_file(path))
        status = dpf_fail(e, DPF_UNAVAILABLE,
                          "the '%s' transport was not built: install libopenmpi-dev and "
                          "openmpi-bin, then run make again",
                          scheme);
    else if (!(object = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
        status = dpf_fail(e, DPF_UNAVAILABLE, "cannot load plug-in: %s", dlerror());
    if (status == DPF_OK) {
        const struct dpf_plugin *found = dlsym(object, "dpf_plugin");
        if (!found || found->version != DPF_PLUGIN_VERSION)
            status = dpf_fail(e, DPF_UNAVAILABLE,
                              "plug-in 'dpflow-%s.so' is of another version", scheme);
        else
            *plugin = loaded = found;
    }
    free(path);
    return status;
}

const struct dpf_plugin *dpf_plugin_loaded(void)
{
    return loaded;
}

bool dpf_endpoint_has_scheme(const char *endpoint)
{
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
        if (dpf_starts_with(endpoint, transports[i]->prefix))
            return true;
    return dpf_starts_with(endpoint, "mpi:") || strstr(endpoint, "://");
}

enum dpf_status dpf_channel_open(const char *endpoint, enum dpf_direction direction,
                                 const struct dpf_endpoint_options *options,
                                 struct dpf_channel **take_channel, struct dpf_error *e)
{
    static const struct dpf_endpoint_options none;
    if (!options)
        options = &none;
    *take_channel = NULL;
    if (!*endpoint)
        return dpf_fail(e, DPF_USAGE, "an endpoint is empty");
    if (dpf_starts_with(endpoint, "mpi:")) {
        const struct dpf_plugin *plugin;
        enum dpf_status status = dpf_plugin_load("mpi", &plugin, e);
        if (status != DPF_OK)
            return status;
        return plugin->transport.open(endpoint, direction, options, take_channel, e);
    }
    for (size_t i = 0; i < sizeof transports / sizeof *transports; i++)
        if (dpf_starts_with(endpoint, transports[i]->prefix))
            return transports[i]->open(endpoint, direction, options, take_channel, e);
    if (strcmp(endpoint, "-") == 0)
        return dpf_transport_fd.open(endpoint, direction, options, take_channel, e);
    if (strstr(endpoint, "://"))
        return dpf_fail(e, DPF_USAGE, "endpoint '%s' has an unknown scheme", endpoint);
    return dpf_transport_file.open(endpoint, direction, options, take_channel, e);
}
