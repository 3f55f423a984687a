/* Inside the ZeroMQ transport: what its two files share. zmq.c speaks the protocol over a
 * channel that zmq_open.c has set up (address, keys, socket, first contact). */
#ifndef DPF_TRANSPORT_ZMQ_CHANNEL_H
#define DPF_TRANSPORT_ZMQ_CHANNEL_H

#include <stdint.h>
#include <zmq.h>

#include "transport/curve.h"
#include "transport/transport.h"

enum {
    DPF_ZMQ_WINDOW = 8, /* frames in flight to one reader */
    DPF_ZMQ_HEARTBEAT_MS = 1000,
    DPF_ZMQ_HEARTBEAT_TIMEOUT_MS = 4000,
    DPF_ZMQ_POLL_MS = 100,
    DPF_ZMQ_LINGER_MS = 2000,
    DPF_ZMQ_MAX_PEERS = 4096,
    DPF_ZMQ_IDENTITY_BYTES = 32,
    DPF_ZMQ_MAX_DROPS = 6, /* handshakes cut short, over about a second */
};

struct dpf_zmq_peer {
    unsigned char identity[DPF_ZMQ_IDENTITY_BYTES];
    size_t identity_size;
    uint32_t credit;      /* writing: frames that may still be sent */
    uint32_t outstanding; /* reading: frames granted and not yet delivered */
    bool started;         /* reading: its first frame was delivered */
    bool trailer;         /* reading: its trailer was delivered */
    bool done;            /* acknowledged */
};

struct dpf_zmq_channel {
    struct dpf_channel base;
    void *context, *socket, *monitor;
    struct dpf_curve_guard *guard;
    bool binds, reading, curve;
    bool suspect; /* some peer went away: find out which */
    bool lost;    /* connecting side: the other side went away */
    bool refused; /* connecting side: the handshake failed, or the stream is unwelcome */
    unsigned drops;
    bool connected;
    double deadline; /* binding side: all peers must have come by then; 0: any time */
    struct dpf_zmq_peer *peers;
    unsigned peer_count, peer_limit, started_count;
};

extern const struct dpf_channel_ops dpf_zmq_read_ops, dpf_zmq_write_ops;

/* The opener of both schemes. */
enum dpf_status dpf_zmq_open(const char *endpoint, enum dpf_direction direction,
                             const struct dpf_endpoint_options *options,
                             struct dpf_channel **take_channel, struct dpf_error *e);
/* Send a number with a message, as for credit. */
bool dpf_zmq_send_number(struct dpf_zmq_channel *c, const struct dpf_zmq_peer *p,
                         char kind, uint32_t number);

/* Send [identity][kind][payload]; takes over `payload` (may be NULL). False if the peer
 * is gone. */
bool dpf_zmq_send(struct dpf_zmq_channel *c, const struct dpf_zmq_peer *p, char kind,
                  zmq_msg_t *take_payload);
/* Take in what the socket monitor says: connections made, refused and lost. */
void dpf_zmq_read_monitor(struct dpf_zmq_channel *c);
/* The error of a channel whose other side went away. */
enum dpf_status dpf_zmq_gone(const struct dpf_zmq_channel *c, struct dpf_error *e);
/* True, and *status set, if a signal asks the program to stop. */
bool dpf_zmq_stop_now(struct dpf_error *e, enum dpf_status *status);
/* Close sockets, end the key check, free. */
void dpf_zmq_destroy(struct dpf_channel *base);

#endif
