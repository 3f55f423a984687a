/* Endpoints: where a stream comes from or goes to, named by a string.
 *
 *   -                    standard input or output
 *   PATH                 a file; written under a temporary name and renamed when whole
 *   fd:N                 an open file descriptor
 *   follow:PATH          a file that another process is still writing
 *   ipc://…, tcp://…     ZeroMQ (options after commas: bind, connect, peers=N)
 *   NAME:…, NAME://…     what the plug-in dpflow-NAME.so makes of it (base/plugin.h);
 *                        in cluster/: mpi:EDGE, an edge of an MPI job
 *
 * A registry maps schemes to openers; a plug-in adds one and nothing here needs to know
 * it. A path with a colon stays a path, unless its first word is the name of a plug-in
 * that is there, or that this source tree can build; `./NAME:…` is always a path. */
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

/* Also the table of a plug-in of kind "transport". */
struct dpf_transport {
    const char *prefix; /* "tcp://"; the empty prefix is the file transport */
    enum dpf_status (*open)(const char *endpoint, enum dpf_direction direction,
                            const struct dpf_endpoint_options *options,
                            struct dpf_channel **take_channel, struct dpf_error *e);
    /* Plug-ins only, or NULL: become part of a job before any endpoint is opened.
     * `endpoints` are all of this transport that this process will open, with 'r' or 'w'
     * in front. */
    enum dpf_status (*join)(const char *const *endpoints, size_t count,
                            struct dpf_error *e);
    /* Leave the job, also after a join that failed; a failed status takes the whole job
     * down. */
    void (*leave)(enum dpf_status status);
};
#define DPF_TRANSPORT_KIND "transport"

/* Open an endpoint for reading or writing. `options` may be NULL. */
enum dpf_status dpf_channel_open(const char *endpoint, enum dpf_direction direction,
                                 const struct dpf_endpoint_options *options,
                                 struct dpf_channel **take_channel, struct dpf_error *e);

/* Whether an endpoint is something else than a path or `-`. */
bool dpf_endpoint_has_scheme(const char *endpoint);

/* Join the jobs of all plug-ins that these endpoints name (each with 'r' or 'w' in front;
 * others are passed over), and of the plug-in `also` (or NULL), even if no endpoint names
 * it: every process of an MPI job has to join. */
enum dpf_status dpf_transports_join(const char *const *endpoints, size_t count,
                                    const char *also, struct dpf_error *e);
/* Whether a job was joined: its plug-in then takes care of a failure. */
bool dpf_transports_joined(void);
void dpf_transports_leave(enum dpf_status status);

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

#endif
