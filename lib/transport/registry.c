#include <stdlib.h>
#include <string.h>

#include "base/plugin.h"
#include "base/text.h"
#include "base/words.h"
#include "transport/transport.h"

#include "base/banned.h"

static const struct dpf_transport *const transports[] = {
    &dpf_transport_fd,
    &dpf_transport_follow,
    &dpf_transport_zmq_ipc,
    &dpf_transport_zmq_tcp,
    NULL,
};

/* Plug-ins that this source tree can build, and whose names are schemes even where they
 * are not there: who asks for one that was not built must not get a file. */
static const char *const optional[] = {
#include "transports.inc"
    NULL};

enum { NAME_BYTES = 32 };

/* ---------------------------------------------------------------------- schemes */

static const struct dpf_transport *find_built_in(const char *endpoint)
{
    for (const struct dpf_transport *const *t = transports; *t; t++)
        if (dpf_starts_with(endpoint, (*t)->prefix))
            return *t;
    return NULL;
}

/* The plug-in that an endpoint asks for: the word before its first colon, if there is or
 * may be such a plug-in. */
static bool names_plugin(const char *endpoint, char name[NAME_BYTES])
{
    size_t size = strcspn(endpoint, ":/");
    if (endpoint[size] != ':' || size >= NAME_BYTES || find_built_in(endpoint))
        return false;
    memcpy(name, endpoint, size);
    name[size] = '\0';
    return DPF_FIND(optional, name) || dpf_plugin_exists(name);
}

static enum dpf_status find_plugin(const char *name, const struct dpf_transport **found,
                                   struct dpf_error *e)
{
    const struct dpf_plugin *plugin;
    enum dpf_status status = dpf_plugin_find(DPF_TRANSPORT_KIND, name, &plugin, e);
    if (status == DPF_OK)
        *found = plugin->table;
    return status;
}

bool dpf_endpoint_has_scheme(const char *endpoint)
{
    char name[NAME_BYTES];
    return find_built_in(endpoint) || names_plugin(endpoint, name) ||
           strstr(endpoint, "://");
}

enum dpf_status dpf_channel_open(const char *endpoint, enum dpf_direction direction,
                                 const struct dpf_endpoint_options *options,
                                 struct dpf_channel **take_channel, struct dpf_error *e)
{
    static const struct dpf_endpoint_options none;
    const struct dpf_transport *transport = find_built_in(endpoint);
    char name[NAME_BYTES];
    *take_channel = NULL;
    if (!*endpoint)
        return dpf_fail(e, DPF_USAGE, "an endpoint is empty");
    if (names_plugin(endpoint, name)) {
        enum dpf_status status = find_plugin(name, &transport, e);
        if (status != DPF_OK)
            return status;
    } else if (!transport && strcmp(endpoint, "-") == 0) {
        transport = &dpf_transport_fd;
    } else if (!transport && strstr(endpoint, "://")) {
        return dpf_fail(e, DPF_USAGE, "endpoint '%s' has an unknown scheme", endpoint);
    } else if (!transport) {
        transport = &dpf_transport_file;
    }
    return transport->open(endpoint, direction, options ? options : &none, take_channel,
                           e);
}

/* ------------------------------------------------------------------------- jobs */

enum { MAX_JOBS = 8 };
static const struct dpf_transport *jobs[MAX_JOBS];
static size_t job_count;

static bool is_joined(const struct dpf_transport *t)
{
    size_t i = 0;
    while (i < job_count && jobs[i] != t)
        i++;
    return i < job_count;
}

/* Of all endpoints, those of plug-in `name`. `mine` has room for them. */
static size_t select_endpoints(const char *const *endpoints, size_t count,
                               const char *name, const char **mine)
{
    size_t selected = 0;
    for (size_t i = 0; i < count; i++) {
        char other[NAME_BYTES];
        if (names_plugin(endpoints[i] + 1, other) && strcmp(name, other) == 0)
            mine[selected++] = endpoints[i];
    }
    return selected;
}

static enum dpf_status join(const char *name, const char *const *endpoints, size_t count,
                            struct dpf_error *e)
{
    const struct dpf_transport *transport;
    enum dpf_status status = find_plugin(name, &transport, e);
    if (status != DPF_OK || !transport->join || is_joined(transport))
        return status;
    if (job_count == MAX_JOBS)
        return dpf_fail(e, DPF_USAGE, "endpoints of more than %d plug-ins", MAX_JOBS);
    const char **mine = dpf_calloc(count + 1, sizeof *mine);
    if (!mine)
        return dpf_fail_memory(e);
    jobs[job_count++] = transport; /* to be left even if joining fails half-way */
    size_t selected = select_endpoints(endpoints, count, name, mine);
    status = transport->join(mine, selected, e);
    free(mine);
    return status;
}

enum dpf_status dpf_transports_join(const char *const *endpoints, size_t count,
                                    const char *also, struct dpf_error *e)
{
    enum dpf_status status = also ? join(also, endpoints, count, e) : DPF_OK;
    for (size_t i = 0; status == DPF_OK && i < count; i++) {
        char name[NAME_BYTES];
        if (names_plugin(endpoints[i] + 1, name))
            status = join(name, endpoints, count, e);
    }
    return status;
}

bool dpf_transports_joined(void)
{
    return job_count > 0;
}

void dpf_transports_leave(enum dpf_status status)
{
    while (job_count > 0) {
        const struct dpf_transport *t = jobs[--job_count];
        if (t->leave)
            t->leave(status);
    }
}
