/* Endpoints: where a stream comes from or goes to, named by a string.
 *
 *   -                    standard input or output
 *   PATH                 a file; written under a temporary name and renamed when whole
 *   fd:N                 an open file descriptor
 *   follow:PATH          a file that another process is still writing
 *   ipc://…, tcp://…     ZeroMQ (options after commas: bind, connect, peers=N)
 *   mpi:NAME             an edge of an MPI job (plug-in, see cluster/)
 *
 * A registry maps schemes to openers, so that a plug-in adds one without anything here
 * knowing of it. */
#ifndef DPF_TRANSPORT_TRANSPORT_H
#define DPF_TRANSPORT_TRANSPORT_H

#include "base/memory.h"
#include "base/status.h"
#include "wire/channel.h"

enum dpf_direction { DPF_READ, DPF_WRITE };

/* What network endpoints need to know besides their address. */
struct dpf_endpoint_options {
    const char *key_file;         /* our CURVE key pair, or NULL */
    const char *const *peer_keys; /* public key files of those we talk to */
    size_t peer_key_count;
    bool cleartext;         /* the user accepts unencrypted TCP beyond this machine */
    double connect_seconds; /* how long to wait for the other side; 0: the default */
};

struct dpf_transport {
    const char *prefix; /* "tcp://"; the empty prefix is the file transport */
    enum dpf_status (*open)(const char *endpoint, enum dpf_direction direction,
                            const struct dpf_endpoint_options *options,
                            struct dpf_channel **take_channel, struct dpf_error *e);
};

/* Open an endpoint for reading or writing. `options` may be NULL. */
enum dpf_status dpf_channel_open(const char *endpoint, enum dpf_direction direction,
                                 const struct dpf_endpoint_options *options,
                                 struct dpf_channel **take_channel, struct dpf_error *e);

/* Whether an endpoint is something else than a path or `-`. */
bool dpf_endpoint_has_scheme(const char *endpoint);

extern const struct dpf_transport dpf_transport_fd;     /* - and fd:N */
extern const struct dpf_transport dpf_transport_file;   /* paths */
extern const struct dpf_transport dpf_transport_follow; /* follow:PATH */
extern const struct dpf_transport dpf_transport_zmq_ipc, dpf_transport_zmq_tcp;

/* Memory, for tests and fuzzing: read frames out of `data` (borrowed), or append what is
 * written to `sink` (borrowed). */
enum dpf_status dpf_channel_from_memory(const void *data, size_t size,
                                        struct dpf_channel **take_channel,
                                        struct dpf_error *e);
enum dpf_status dpf_channel_to_memory(struct dpf_buffer *sink,
                                      struct dpf_channel **take_channel,
                                      struct dpf_error *e);

/* A plug-in is a shared object that exports `const struct dpf_plugin dpf_plugin`. The
 * scheme "mpi:" is looked for in dpflow-mpi.so beside the stages. */
/* What a plug-in, which has its own copy of lib/base, must ask the program for. */
struct dpf_plugin_host {
    bool (*stop_requested)(void);
    int (*stop_signal)(void);
};
struct dpf_plugin {
    int version; /* DPF_PLUGIN_VERSION */
    struct dpf_transport transport;
    /* Join the job before any endpoint is opened: `endpoints` are all that this process
     * will open, prefixed with 'r' or 'w'. */
    enum dpf_status (*join)(const struct dpf_plugin_host *host,
                            const char *const *endpoints, size_t count,
                            struct dpf_error *e);
    /* Leave the job; a failed status takes the whole job down. */
    void (*leave)(enum dpf_status status);
};
enum { DPF_PLUGIN_VERSION = 1 };
/* Load the plug-in for a scheme ("mpi") once. DPF_UNAVAILABLE says what to install. */
enum dpf_status dpf_plugin_load(const char *scheme, const struct dpf_plugin **plugin,
                                struct dpf_error *e);
/* The plug-in that was loaded, or NULL. */
const struct dpf_plugin *dpf_plugin_loaded(void);

#endif
