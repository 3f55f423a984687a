/* Frames over ZeroMQ: ipc:// and tcp://, one or many peers on the other side.
 *
 * The side that binds holds a ROUTER socket and knows each peer by its identity; a side
 * that connects holds a DEALER. By default readers bind and writers connect, so many
 * writers can feed one reader (peers=N); with `bind` on the writer and `connect` on the
 * readers one writer feeds many, and each of them gets every frame.
 *
 * ZeroMQ alone would drop or pile up; so a reader grants credit for a few frames and a
 * writer sends only against credit: a slow reader slows its writer, nothing is lost and
 * memory stays bounded. The end is acknowledged. ZMTP heartbeats and the socket monitor
 * tell within seconds when a peer is gone.
 *
 * A message is [kind][payload]:  H hello ("dpflow 1 r" or "w")   C credit (u32 LE)
 *                                D one frame                     A trailer received
 *                                X refused                       P are you there */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "base/memory.h"
#include "base/number.h"
#include "base/signals.h"
#include "base/text.h"
#include "transport/curve.h"
#include "transport/transport.h"

#include "base/banned.h"

enum {
    WINDOW = 8, /* frames in flight to one reader */
    HEARTBEAT_MS = 1000,
    HEARTBEAT_TIMEOUT_MS = 4000,
    POLL_MS = 100,
    LINGER_MS = 2000,
    MAX_PEERS = 4096,
    IDENTITY_BYTES = 32,
};

struct peer {
    unsigned char identity[IDENTITY_BYTES];
    size_t identity_size;
    uint32_t credit;      /* writing: frames that may still be sent */
    uint32_t outstanding; /* reading: frames granted and not yet delivered */
    bool started;         /* reading: its first frame was delivered */
    bool trailer;         /* reading: its trailer was delivered */
    bool done;            /* acknowledged */
};

struct zmq_channel {
    struct dpf_channel base;
    void *context, *socket, *monitor;
    struct dpf_curve_guard *guard;
    bool binds, reading, curve;
    bool suspect; /* some peer went away: find out which */
    bool lost;    /* connecting side: the other side went away */
    enum dpf_status connect_status;
    bool connected;
    struct peer *peers;
    unsigned peer_count, peer_limit, started_count;
    bool finished;
};

static bool stop_now(struct dpf_error *e, enum dpf_status *status)
{
    if (!dpf_stop_requested())
        return false;
    *status =
        dpf_fail_after_peer(e, DPF_SYSTEM, "interrupted by signal %d", dpf_stop_signal());
    return true;
}

/* Send [identity][kind][payload]; takes over `payload` (may be NULL). False if the peer
 * is gone. */
static bool send_message(struct zmq_channel *c, const struct peer *p, char kind,
                         zmq_msg_t *payload)
{
    bool good = true;
    if (c->binds)
        good = zmq_send(c->socket, p->identity, p->identity_size,
                        ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0;
    good = good && zmq_send(c->socket, &kind, 1, payload ? ZMQ_SNDMORE : 0) >= 0;
    if (payload) {
        good = good && zmq_msg_send(payload, c->socket, 0) >= 0;
        if (!good)
            zmq_msg_close(payload);
    }
    return good;
}

static bool send_number(struct zmq_channel *c, const struct peer *p, char kind,
                        uint32_t number)
{
    zmq_msg_t m;
    if (zmq_msg_init_size(&m, 4) != 0)
        return false;
    unsigned char *b = zmq_msg_data(&m);
    for (int i = 0; i < 4; i++)
        b[i] = (unsigned char)(number >> (8 * i));
    return send_message(c, p, kind, &m);
}

static struct peer *find_peer(struct zmq_channel *c, zmq_msg_t *identity)
{
    size_t size = zmq_msg_size(identity);
    for (unsigned i = 0; i < c->peer_count; i++)
        if (c->peers[i].identity_size == size &&
            memcmp(c->peers[i].identity, zmq_msg_data(identity), size) == 0)
            return &c->peers[i];
    return NULL;
}

/* A hello from the connecting side: take the peer in, or refuse it. */
static void welcome(struct zmq_channel *c, zmq_msg_t *identity, zmq_msg_t *payload)
{
    const char *want = c->reading ? "dpflow 1 w" : "dpflow 1 r";
    struct peer p = {.identity_size = zmq_msg_size(identity)};
    if (p.identity_size > IDENTITY_BYTES || find_peer(c, identity))
        return;
    memcpy(p.identity, zmq_msg_data(identity), p.identity_size);
    if (zmq_msg_size(payload) != strlen(want) ||
        memcmp(zmq_msg_data(payload), want, strlen(want)) != 0 ||
        c->peer_count == c->peer_limit) {
        send_message(c, &p, 'X', NULL);
        return;
    }
    c->peers[c->peer_count++] = p;
}

/* Receive one message if there is one. *kind = 0 if not. A frame goes to *frame. */
static enum dpf_status take_message(struct zmq_channel *c, char *kind, struct peer **from,
                                    zmq_msg_t *payload, struct dpf_error *e)
{
    zmq_msg_t identity;
    char word[2];
    *kind = 0;
    *from = c->binds ? NULL : &c->peers[0];
    zmq_msg_init(&identity);
    if (c->binds && zmq_msg_recv(&identity, c->socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(&identity);
        return errno == EAGAIN || errno == EINTR
                   ? DPF_OK
                   : dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    }
    int n = zmq_recv(c->socket, word, sizeof word, ZMQ_DONTWAIT);
    if (n < 0) {
        zmq_msg_close(&identity);
        return errno == EAGAIN || errno == EINTR
                   ? DPF_OK
                   : dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    }
    int more = 0;
    size_t more_size = sizeof more;
    zmq_getsockopt(c->socket, ZMQ_RCVMORE, &more, &more_size);
    if (more)
        zmq_msg_recv(payload, c->socket, 0);
    *kind = n == 1 ? word[0] : '?';
    if (c->binds) {
        if (*kind == 'H')
            welcome(c, &identity, payload);
        *from = find_peer(c, &identity);
    }
    zmq_msg_close(&identity);
    /* Anything behind the payload is not ours. */
    for (zmq_getsockopt(c->socket, ZMQ_RCVMORE, &more, &more_size); more;
         zmq_getsockopt(c->socket, ZMQ_RCVMORE, &more, &more_size)) {
        zmq_msg_t extra;
        zmq_msg_init(&extra);
        zmq_msg_recv(&extra, c->socket, 0);
        zmq_msg_close(&extra);
        *kind = '?';
    }
    return DPF_OK;
}

/* What the socket monitor has to say: connections made, refused and lost. */
static void read_monitor(struct zmq_channel *c)
{
    for (;;) {
        unsigned char event[8];
        int n = zmq_recv(c->monitor, event, sizeof event, ZMQ_DONTWAIT);
        if (n < 0)
            return;
        int more;
        size_t more_size = sizeof more;
        zmq_getsockopt(c->monitor, ZMQ_RCVMORE, &more, &more_size);
        if (more) {
            char address[256];
            zmq_recv(c->monitor, address, sizeof address, 0);
        }
        if (n < 6)
            continue;
        unsigned number = event[0] | (unsigned)event[1] << 8;
        if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
            c->connected = true;
        else if (number == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH ||
                 number == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL ||
                 number == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
            c->connect_status = DPF_SYSTEM;
        else if (number == ZMQ_EVENT_DISCONNECTED) {
            c->suspect = true;
            c->lost = c->connected;
        }
    }
}

static enum dpf_status gone(const struct zmq_channel *c, struct dpf_error *e)
{
    if (c->reading)
        return dpf_fail_after_peer(e, DPF_BAD_STREAM,
                                   "stream ended before its trailer: a writer is gone");
    return dpf_fail_after_peer(e, DPF_SYSTEM, "its reader is gone");
}

/* After a disconnection, ask every unfinished peer: a ROUTER knows who is unreachable. */
static enum dpf_status look_for_dead(struct zmq_channel *c, struct dpf_error *e)
{
    if (!c->suspect)
        return DPF_OK;
    if (!c->binds)
        return c->lost && !c->peers[0].done ? gone(c, e) : DPF_OK;
    for (unsigned i = 0; i < c->peer_count; i++)
        if (!c->peers[i].done && !c->peers[i].trailer &&
            !send_message(c, &c->peers[i], 'P', NULL) && errno == EHOSTUNREACH)
            return gone(c, e);
    return DPF_OK;
}

/* Wait a little for something to happen on the socket or its monitor. */
static enum dpf_status wait_event(struct zmq_channel *c, bool *readable,
                                  struct dpf_error *e)
{
    enum dpf_status status;
    zmq_pollitem_t items[] = {{.socket = c->socket, .events = ZMQ_POLLIN},
                              {.socket = c->monitor, .events = ZMQ_POLLIN}};
    *readable = false;
    if (stop_now(e, &status))
        return status;
    int n = zmq_poll(items, 2, POLL_MS);
    if (n < 0 && errno != EINTR)
        return dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    *readable = n > 0 && (items[0].revents & ZMQ_POLLIN);
    if (n > 0 && (items[1].revents & ZMQ_POLLIN))
        read_monitor(c);
    /* What the dead have said before is still to be read. */
    return *readable ? DPF_OK : look_for_dead(c, e);
}

/* Deal with everything but data; data is handed to the caller in *payload. */
static enum dpf_status pump(struct zmq_channel *c, struct peer **data_from,
                            zmq_msg_t *payload, struct dpf_error *e)
{
    char kind;
    struct peer *from;
    bool readable;
    *data_from = NULL;
    enum dpf_status status = wait_event(c, &readable, e);
    if (status != DPF_OK || !readable)
        return status;
    status = take_message(c, &kind, &from, payload, e);
    if (status != DPF_OK || kind == 0 || kind == 'H' || kind == 'P' || !from)
        return status;
    if (kind == 'X')
        return dpf_fail(e, DPF_UNAVAILABLE,
                        "the other side takes no more peers, or is "
                        "no dpflow stream in this direction");
    if (kind == 'C' && !c->reading && zmq_msg_size(payload) == 4) {
        const unsigned char *b = zmq_msg_data(payload);
        uint32_t n =
            b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        if (n <= WINDOW && from->credit <= WINDOW)
            from->credit += n;
        return DPF_OK;
    }
    if (kind == 'A' && !c->reading) {
        from->done = true;
        return DPF_OK;
    }
    if (kind == 'D' && c->reading && from->outstanding > 0) {
        from->outstanding--;
        *data_from = from;
        return DPF_OK;
    }
    return dpf_fail(e, DPF_BAD_STREAM, "the other side breaks the protocol");
}

static enum dpf_status zmq_send_frame(struct dpf_channel *base, struct iovec *parts,
                                      int count, size_t total, struct dpf_error *e)
{
    struct zmq_channel *c = (struct zmq_channel *)base;
    zmq_msg_t frame, payload;
    struct peer *from;
    enum dpf_status status = DPF_OK;
    /* All readers must have come and each must have room: the slowest sets the pace. */
    for (;;) {
        bool ready = c->peer_count == c->peer_limit;
        for (unsigned i = 0; i < c->peer_count; i++)
            ready = ready && c->peers[i].credit > 0;
        if (ready)
            break;
        zmq_msg_init(&payload);
        status = pump(c, &from, &payload, e);
        zmq_msg_close(&payload);
        if (status != DPF_OK)
            return status;
    }
    if (zmq_msg_init_size(&frame, total) != 0)
        return dpf_fail_memory(e);
    unsigned char *to = zmq_msg_data(&frame);
    for (int i = 0; i < count; i++) {
        memcpy(to, parts[i].iov_base, parts[i].iov_len);
        to += parts[i].iov_len;
    }
    for (unsigned i = 0; status == DPF_OK && i < c->peer_count; i++) {
        zmq_msg_t copy; /* shares the bytes */
        zmq_msg_init(&copy);
        zmq_msg_copy(&copy, &frame);
        c->peers[i].credit--;
        if (!send_message(c, &c->peers[i], 'D', &copy))
            status = gone(c, e);
    }
    zmq_msg_close(&frame);
    return status;
}

static void release_frame(struct dpf_frame *frame)
{
    zmq_msg_t *m = frame->owner;
    zmq_msg_close(m);
    free(m);
}

/* Acknowledge trailers and top up credit. Until every writer's header has come, each may
 * send just that: the reader needs all headers before it can pass anything on. */
static void grant(struct zmq_channel *c)
{
    uint32_t window = c->started_count == c->peer_limit ? WINDOW : 1;
    for (unsigned i = 0; i < c->peer_count; i++) {
        struct peer *p = &c->peers[i];
        if (p->trailer && !p->done) {
            send_message(c, p, 'A', NULL);
            p->done = true;
        }
        if (p->done || (window == 1 && p->started) || p->outstanding > window / 2)
            continue;
        send_number(c, p, 'C', window - p->outstanding);
        p->outstanding = window;
    }
}

static enum dpf_status zmq_recv_frame(struct dpf_channel *base, struct dpf_frame *frame,
                                      struct dpf_error *e)
{
    struct zmq_channel *c = (struct zmq_channel *)base;
    struct peer *from = NULL;
    zmq_msg_t *payload = malloc(sizeof *payload);
    if (!payload)
        return dpf_fail_memory(e);
    zmq_msg_init(payload);
    while (!from) {
        grant(c);
        enum dpf_status status = pump(c, &from, payload, e);
        if (status != DPF_OK) {
            zmq_msg_close(payload);
            free(payload);
            return status;
        }
    }
    *frame = (struct dpf_frame){.data = zmq_msg_data(payload),
                                .size = zmq_msg_size(payload),
                                .lane = (unsigned)(from - c->peers),
                                .release = release_frame,
                                .owner = payload};
    if (!from->started) {
        from->started = true;
        c->started_count++;
    }
    from->trailer = dpf_frame_is_trailer(frame->data, frame->size);
    return DPF_OK;
}

static enum dpf_status zmq_read_finish(struct dpf_channel *base, struct dpf_error *e)
{
    struct zmq_channel *c = (struct zmq_channel *)base;
    (void)e;
    grant(c);
    c->finished = true;
    return DPF_OK;
}

/* The trailer was sent: wait until every reader has it. */
static enum dpf_status zmq_write_finish(struct dpf_channel *base, struct dpf_error *e)
{
    struct zmq_channel *c = (struct zmq_channel *)base;
    for (unsigned i = 0; i < c->peer_count; i++)
        while (!c->peers[i].done) {
            zmq_msg_t payload;
            struct peer *from;
            zmq_msg_init(&payload);
            enum dpf_status status = pump(c, &from, &payload, e);
            zmq_msg_close(&payload);
            if (status != DPF_OK)
                return status;
        }
    c->finished = true;
    return DPF_OK;
}

static void zmq_channel_destroy(struct dpf_channel *base)
{
    struct zmq_channel *c = (struct zmq_channel *)base;
    int linger = c->connected || c->binds ? LINGER_MS : 0;
    if (c->socket) {
        zmq_setsockopt(c->socket, ZMQ_LINGER, &linger, sizeof linger);
        zmq_socket_monitor(c->socket, NULL, 0);
        zmq_close(c->socket);
    }
    if (c->monitor)
        zmq_close(c->monitor);
    if (c->context) {
        zmq_ctx_shutdown(c->context);
        dpf_curve_guard_stop(&c->guard);
        zmq_ctx_term(c->context);
    }
    free(c->peers);
    free(c->base.name);
    free(c);
}

static const struct dpf_channel_ops zmq_read_ops = {
    .recv = zmq_recv_frame, .finish = zmq_read_finish, .destroy = zmq_channel_destroy};
static const struct dpf_channel_ops zmq_write_ops = {
    .send = zmq_send_frame, .finish = zmq_write_finish, .destroy = zmq_channel_destroy};

/* Split "tcp://host:port,bind,peers=3" into the address and its options. */
static enum dpf_status parse_endpoint(struct zmq_channel *c, char *text,
                                      struct dpf_error *e)
{
    char *next = strchr(text, ',');
    uint64_t peers = 1;
    c->binds = c->reading;
    while (next) {
        char *word = next + 1;
        *next = '\0';
        next = strchr(word, ',');
        size_t size = next ? (size_t)(next - word) : strlen(word);
        char option[32];
        snprintf(option, sizeof option, "%.*s", (int)size, word);
        if (strcmp(option, "bind") == 0)
            c->binds = true;
        else if (strcmp(option, "connect") == 0)
            c->binds = false;
        else if (!dpf_starts_with(option, "peers=") ||
                 !dpf_parse_uint(option + 6, &peers) || peers < 1 || peers > MAX_PEERS)
            return dpf_fail(e, DPF_USAGE,
                            "endpoint option '%s' is not bind, connect or peers=1..%d",
                            option, MAX_PEERS);
    }
    if (!c->binds && peers != 1)
        return dpf_fail(e, DPF_USAGE,
                        "endpoint '%s' connects to one peer: peers=N goes with bind",
                        text);
    c->peer_limit = (unsigned)peers;
    c->base.lanes = c->reading ? c->peer_limit : 1;
    return DPF_OK;
}

static bool is_local(const char *address)
{
    return dpf_starts_with(address, "ipc://") || dpf_starts_with(address, "tcp://127.") ||
           dpf_starts_with(address, "tcp://localhost:") ||
           dpf_starts_with(address, "tcp://[::1]:");
}

static enum dpf_status set_keys(struct zmq_channel *c, const char *address,
                                const struct dpf_endpoint_options *o, struct dpf_error *e)
{
    if (!o->key_file && !o->peer_key_count) {
        if (is_local(address) || o->cleartext)
            return DPF_OK;
        return dpf_fail(e, DPF_USAGE,
                        "endpoint '%s' leaves this machine unencrypted: give --key and "
                        "--peer-key, or accept it with --cleartext",
                        address);
    }
    if (!o->key_file || !o->peer_key_count)
        return dpf_fail(e, DPF_USAGE, "CURVE needs both --key and --peer-key");
    if (!c->binds && o->peer_key_count != 1)
        return dpf_fail(e, DPF_USAGE,
                        "endpoint '%s' connects to one peer: give one --peer-key",
                        address);
    struct dpf_curve_key own, *peers = dpf_calloc(o->peer_key_count, sizeof *peers);
    if (!peers)
        return dpf_fail_memory(e);
    enum dpf_status status = dpf_curve_read(o->key_file, true, &own, e);
    for (size_t i = 0; status == DPF_OK && i < o->peer_key_count; i++)
        status = dpf_curve_read(o->peer_keys[i], false, &peers[i], e);
    int yes = 1;
    if (status == DPF_OK && c->binds) {
        status =
            dpf_curve_guard_start(c->context, peers, o->peer_key_count, &c->guard, e);
        zmq_setsockopt(c->socket, ZMQ_CURVE_SERVER, &yes, sizeof yes);
    } else if (status == DPF_OK) {
        zmq_setsockopt(c->socket, ZMQ_CURVE_SERVERKEY, peers[0].public_text,
                       DPF_CURVE_TEXT);
        zmq_setsockopt(c->socket, ZMQ_CURVE_PUBLICKEY, own.public_text, DPF_CURVE_TEXT);
    }
    if (status == DPF_OK && zmq_setsockopt(c->socket, ZMQ_CURVE_SECRETKEY,
                                           own.secret_text, DPF_CURVE_TEXT) != 0)
        status = dpf_fail(e, DPF_UNAVAILABLE, "this libzmq was built without CURVE");
    c->curve = true;
    free(peers);
    return status;
}

static void set_socket_options(struct zmq_channel *c)
{
    static const struct {
        int option, value;
    } settings[] = {
        {ZMQ_SNDHWM, 0}, /* credit bounds the queues */
        {ZMQ_RCVHWM, 0},
        {ZMQ_HEARTBEAT_IVL, HEARTBEAT_MS},
        {ZMQ_HEARTBEAT_TIMEOUT, HEARTBEAT_TIMEOUT_MS},
        {ZMQ_HEARTBEAT_TTL, HEARTBEAT_TIMEOUT_MS},
        {ZMQ_RECONNECT_IVL, 20},
        {ZMQ_RECONNECT_IVL_MAX, 500},
        {ZMQ_SNDBUF, 1 << 20},
        {ZMQ_RCVBUF, 1 << 20},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        zmq_setsockopt(c->socket, settings[i].option, &settings[i].value, sizeof(int));
    if (c->binds) {
        int yes = 1; /* say so instead of dropping silently */
        zmq_setsockopt(c->socket, ZMQ_ROUTER_MANDATORY, &yes, sizeof yes);
    }
}

static enum dpf_status start_monitor(struct zmq_channel *c, struct dpf_error *e)
{
    char name[64];
    snprintf(name, sizeof name, "inproc://dpflow-monitor-%p", (void *)c);
    int events = ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED |
                 ZMQ_EVENT_HANDSHAKE_FAILED_AUTH | ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL |
                 ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL;
    c->monitor = zmq_socket(c->context, ZMQ_PAIR);
    if (!c->monitor || zmq_socket_monitor(c->socket, name, events) != 0 ||
        zmq_connect(c->monitor, name) != 0)
        return dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    return DPF_OK;
}

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Connecting side: wait for the handshake, then say hello. */
static enum dpf_status shake_hands(struct zmq_channel *c, const char *address,
                                   double seconds, struct dpf_error *e)
{
    double deadline = now_seconds() + (seconds > 0 ? seconds : 30);
    enum dpf_status status;
    while (!c->connected) {
        zmq_pollitem_t item = {.socket = c->monitor, .events = ZMQ_POLLIN};
        if (stop_now(e, &status))
            return status;
        if (zmq_poll(&item, 1, POLL_MS) > 0)
            read_monitor(c);
        if (c->connect_status != DPF_OK)
            return dpf_fail(e, DPF_SYSTEM, "'%s' does not accept our key%s", address,
                            c->curve ? "" : ": it expects CURVE encryption");
        if (!c->connected && now_seconds() > deadline)
            return dpf_fail(e, DPF_UNAVAILABLE, "nobody answers at '%s'", address);
    }
    zmq_msg_t hello;
    const char *text = c->reading ? "dpflow 1 r" : "dpflow 1 w";
    if (zmq_msg_init_size(&hello, strlen(text)) != 0)
        return dpf_fail_memory(e);
    memcpy(zmq_msg_data(&hello), text, strlen(text));
    c->peer_count = 1;
    if (!send_message(c, &c->peers[0], 'H', &hello))
        return gone(c, e);
    return DPF_OK;
}

static enum dpf_status start(struct zmq_channel *c, const char *address,
                             const struct dpf_endpoint_options *o, struct dpf_error *e)
{
    c->context = zmq_ctx_new();
    if (c->context)
        c->socket = zmq_socket(c->context, c->binds ? ZMQ_ROUTER : ZMQ_DEALER);
    c->peers = dpf_calloc(c->peer_limit, sizeof *c->peers);
    if (!c->socket || !c->peers)
        return dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    set_socket_options(c);
    enum dpf_status status = set_keys(c, address, o, e);
    if (status == DPF_OK)
        status = start_monitor(c, e);
    if (status != DPF_OK)
        return status;
    if (c->binds)
        return zmq_bind(c->socket, address) == 0
                   ? DPF_OK
                   : dpf_fail(e, DPF_SYSTEM, "cannot bind '%s': %s", address,
                              zmq_strerror(errno));
    if (zmq_connect(c->socket, address) != 0)
        return dpf_fail(e, DPF_USAGE, "cannot connect to '%s': %s", address,
                        zmq_strerror(errno));
    return shake_hands(c, address, o->connect_seconds, e);
}

static enum dpf_status zmq_open(const char *endpoint, enum dpf_direction direction,
                                const struct dpf_endpoint_options *options,
                                struct dpf_channel **take_channel, struct dpf_error *e)
{
    struct zmq_channel *c = dpf_calloc(1, sizeof *c);
    if (!c)
        return dpf_fail_memory(e);
    c->base.ops = direction == DPF_READ ? &zmq_read_ops : &zmq_write_ops;
    c->reading = direction == DPF_READ;
    c->base.name = dpf_strdup(endpoint);
    char *address = dpf_strdup(endpoint);
    enum dpf_status status =
        c->base.name && address ? parse_endpoint(c, address, e) : dpf_fail_memory(e);
    if (status == DPF_OK)
        status = start(c, address, options, e);
    free(address);
    if (status != DPF_OK) {
        zmq_channel_destroy(&c->base);
        return status;
    }
    *take_channel = &c->base;
    return DPF_OK;
}

const struct dpf_transport dpf_transport_zmq_ipc = {"ipc://", zmq_open};
const struct dpf_transport dpf_transport_zmq_tcp = {"tcp://", zmq_open};
