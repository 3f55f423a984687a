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
 *                                X refused (why: a status, text) P are you there */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "transport/zmq_channel.h"

#include "base/banned.h"

bool dpf_zmq_stop_now(struct dpf_error *e, enum dpf_status *status)
{
    if (!dpf_stop_requested())
        return false;
    *status =
        dpf_fail_after_peer(e, DPF_SYSTEM, "interrupted by signal %d", dpf_stop_signal());
    return true;
}

/* Send [identity][kind][payload]; takes over `payload` (may be NULL). False if the peer
 * is gone. */
bool dpf_zmq_send(struct dpf_zmq_channel *c, const struct dpf_zmq_peer *p, char kind,
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

bool dpf_zmq_send_number(struct dpf_zmq_channel *c, const struct dpf_zmq_peer *p,
                         char kind, uint32_t number)
{
    zmq_msg_t m;
    if (zmq_msg_init_size(&m, 4) != 0)
        return false;
    unsigned char *b = zmq_msg_data(&m);
    for (int i = 0; i < 4; i++)
        b[i] = (unsigned char)(number >> (8 * i));
    return dpf_zmq_send(c, p, kind, &m);
}

static struct dpf_zmq_peer *find_peer(struct dpf_zmq_channel *c, zmq_msg_t *identity)
{
    size_t size = zmq_msg_size(identity);
    for (unsigned i = 0; i < c->peer_count; i++)
        if (c->peers[i].identity_size == size &&
            memcmp(c->peers[i].identity, zmq_msg_data(identity), size) == 0)
            return &c->peers[i];
    return NULL;
}

/* A hello from the connecting side: take the peer in, or refuse it. */
static void welcome(struct dpf_zmq_channel *c, zmq_msg_t *identity, zmq_msg_t *payload)
{
    const char *want = c->reading ? "dpflow 1 w" : "dpflow 1 r";
    struct dpf_zmq_peer p = {.identity_size = zmq_msg_size(identity)};
    if (p.identity_size > DPF_ZMQ_IDENTITY_BYTES || find_peer(c, identity))
        return;
    memcpy(p.identity, zmq_msg_data(identity), p.identity_size);
    if (zmq_msg_size(payload) != strlen(want) ||
        memcmp(zmq_msg_data(payload), want, strlen(want)) != 0 ||
        c->peer_count == c->peer_limit) {
        dpf_zmq_send(c, &p, 'X', NULL);
        return;
    }
    c->peers[c->peer_count++] = p;
}

/* Receive one message if there is one. *kind = 0 if not. A frame goes to *frame. */
static enum dpf_status take_message(struct dpf_zmq_channel *c, char *kind,
                                    struct dpf_zmq_peer **from, zmq_msg_t *payload,
                                    struct dpf_error *e)
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
void dpf_zmq_read_monitor(struct dpf_zmq_channel *c)
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
                 number == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL)
            c->refused = true;
        else if (number == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
            /* a wrong key, or a peer or proxy that is just starting or ending */
            c->refused = ++c->drops >= DPF_ZMQ_MAX_DROPS;
        else if (number == ZMQ_EVENT_DISCONNECTED) {
            c->suspect = true;
            c->lost = c->connected;
        }
    }
}

enum dpf_status dpf_zmq_gone(const struct dpf_zmq_channel *c, struct dpf_error *e)
{
    if (c->reading)
        return dpf_fail_after_peer(e, DPF_BAD_STREAM,
                                   "stream ended before its trailer: a writer is gone");
    return dpf_fail_after_peer(e, DPF_SYSTEM, "its reader is gone");
}

/* After a disconnection, ask every unfinished peer: a ROUTER knows who is unreachable. */
static enum dpf_status look_for_dead(struct dpf_zmq_channel *c, struct dpf_error *e)
{
    if (!c->suspect)
        return DPF_OK;
    if (!c->binds)
        return c->lost && !c->peers[0].done ? dpf_zmq_gone(c, e) : DPF_OK;
    for (unsigned i = 0; i < c->peer_count; i++)
        if (!c->peers[i].done && !c->peers[i].trailer &&
            !dpf_zmq_send(c, &c->peers[i], 'P', NULL) && errno == EHOSTUNREACH)
            return dpf_zmq_gone(c, e);
    return DPF_OK;
}

/* Wait a little for something to happen on the socket or its monitor. */
static enum dpf_status wait_event(struct dpf_zmq_channel *c, bool *readable,
                                  struct dpf_error *e)
{
    enum dpf_status status;
    zmq_pollitem_t items[] = {{.socket = c->socket, .events = ZMQ_POLLIN},
                              {.socket = c->monitor, .events = ZMQ_POLLIN}};
    *readable = false;
    if (dpf_zmq_stop_now(e, &status))
        return status;
    int n = zmq_poll(items, 2, DPF_ZMQ_POLL_MS);
    if (n < 0 && errno != EINTR)
        return dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    *readable = n > 0 && (items[0].revents & ZMQ_POLLIN);
    if (n > 0 && (items[1].revents & ZMQ_POLLIN)) {
        dpf_zmq_read_monitor(c);
        /* A last frame may have come together with the notice of disconnection. */
        *readable = *readable || zmq_poll(items, 1, 0) > 0;
    }
    if (c->deadline > 0 && c->peer_count < c->peer_limit &&
        dpf_clock_seconds() > c->deadline)
        return dpf_fail(e, DPF_UNAVAILABLE, "only %u of %u peers have come",
                        c->peer_count, c->peer_limit);
    /* What the dead have said before is still to be read. */
    return *readable ? DPF_OK : look_for_dead(c, e);
}

/* What a refusal says: the status it should have here, then why. A stranger's text is
 * cut and cleaned. */
static enum dpf_status refusal(struct dpf_zmq_channel *c, zmq_msg_t *payload,
                               struct dpf_error *e)
{
    const unsigned char *text = zmq_msg_data(payload);
    size_t size = zmq_msg_size(payload);
    char why[200];
    size_t kept = 0;
    c->refused = true; /* there will be no more credit */
    if (size < 2 || (text[0] != DPF_BAD_STREAM && text[0] != DPF_PRIVACY))
        return dpf_fail(e, DPF_UNAVAILABLE,
                        "the other side takes no more peers, or is "
                        "no dpflow stream in this direction");
    for (size_t i = 1; i < size && kept + 1 < sizeof why; i++)
        why[kept++] = text[i] >= ' ' && text[i] < 127 ? (char)text[i] : '?';
    why[kept] = '\0';
    return dpf_fail(e, (enum dpf_status)text[0], "the other side refused it: %s", why);
}

/* Deal with everything but data; data is handed to the caller in *payload. */
static enum dpf_status pump(struct dpf_zmq_channel *c, struct dpf_zmq_peer **data_from,
                            zmq_msg_t *payload, struct dpf_error *e)
{
    char kind;
    struct dpf_zmq_peer *from;
    bool readable;
    *data_from = NULL;
    enum dpf_status status = wait_event(c, &readable, e);
    if (status != DPF_OK || !readable)
        return status;
    status = take_message(c, &kind, &from, payload, e);
    if (status != DPF_OK || kind == 0 || kind == 'H' || kind == 'P' || !from)
        return status;
    if (kind == 'X')
        return refusal(c, payload, e);
    if (kind == 'C' && !c->reading && zmq_msg_size(payload) == 4) {
        const unsigned char *b = zmq_msg_data(payload);
        uint32_t n =
            b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
        if (n <= DPF_ZMQ_WINDOW && from->credit <= DPF_ZMQ_WINDOW)
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
    return dpf_fail(e, DPF_BAD_STREAM, "the other side violates the protocol");
}

static enum dpf_status zmq_send_frame(struct dpf_channel *base, struct iovec *parts,
                                      int count, size_t total, struct dpf_error *e)
{
    struct dpf_zmq_channel *c = (struct dpf_zmq_channel *)base;
    zmq_msg_t frame, payload;
    struct dpf_zmq_peer *from;
    enum dpf_status status = DPF_OK;
    /* All readers must have come and each must have room: the slowest sets the pace. */
    for (;;) {
        if (c->refused)
            return dpf_fail_after_peer(e, DPF_UNAVAILABLE, "the other side refused it");
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
        if (!dpf_zmq_send(c, &c->peers[i], 'D', &copy))
            status = dpf_zmq_gone(c, e);
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
static void grant(struct dpf_zmq_channel *c)
{
    uint32_t window = c->started_count == c->peer_limit ? DPF_ZMQ_WINDOW : 1;
    for (unsigned i = 0; i < c->peer_count; i++) {
        struct dpf_zmq_peer *p = &c->peers[i];
        if (p->trailer && !p->done) {
            dpf_zmq_send(c, p, 'A', NULL);
            p->done = true;
        }
        if (p->done || (window == 1 && p->started) || p->outstanding > window / 2)
            continue;
        dpf_zmq_send_number(c, p, 'C', window - p->outstanding);
        p->outstanding = window;
    }
}

static enum dpf_status zmq_recv_frame(struct dpf_channel *base, struct dpf_frame *frame,
                                      struct dpf_error *e)
{
    struct dpf_zmq_channel *c = (struct dpf_zmq_channel *)base;
    struct dpf_zmq_peer *from = NULL;
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
    struct dpf_zmq_channel *c = (struct dpf_zmq_channel *)base;
    (void)e;
    grant(c);
    return DPF_OK;
}

/* The trailer was sent: wait until every reader has it. */
static enum dpf_status zmq_write_finish(struct dpf_channel *base, struct dpf_error *e)
{
    struct dpf_zmq_channel *c = (struct dpf_zmq_channel *)base;
    for (unsigned i = 0; i < c->peer_count; i++)
        while (!c->peers[i].done) {
            zmq_msg_t payload;
            struct dpf_zmq_peer *from;
            zmq_msg_init(&payload);
            enum dpf_status status = pump(c, &from, &payload, e);
            zmq_msg_close(&payload);
            if (status != DPF_OK)
                return status;
        }
    return DPF_OK;
}

void dpf_zmq_destroy(struct dpf_channel *base)
{
    struct dpf_zmq_channel *c = (struct dpf_zmq_channel *)base;
    int linger = c->connected || c->binds ? DPF_ZMQ_LINGER_MS : 0;
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

const struct dpf_channel_ops dpf_zmq_read_ops = {
    .recv = zmq_recv_frame, .finish = zmq_read_finish, .destroy = dpf_zmq_destroy};
const struct dpf_channel_ops dpf_zmq_write_ops = {
    .send = zmq_send_frame, .finish = zmq_write_finish, .destroy = dpf_zmq_destroy};
