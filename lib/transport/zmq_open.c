/* Setting up a ZeroMQ channel: address, keys, socket, first contact. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/text.h"
#include "transport/zmq_channel.h"

#include "base/banned.h"

/* Split "tcp://host:port,bind,peers=3" into the address and its options. */
static enum dpf_status parse_endpoint(struct dpf_zmq_channel *c, char *text,
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
                 !dpf_parse_uint(option + 6, &peers) || peers < 1 ||
                 peers > DPF_ZMQ_MAX_PEERS)
            return dpf_fail(e, DPF_USAGE,
                            "endpoint option '%s' is not bind, connect or peers=1..%d",
                            option, DPF_ZMQ_MAX_PEERS);
    }
    if (!c->binds && peers != 1)
        return dpf_fail(e, DPF_USAGE,
                        "endpoint '%s' connects to one peer: peers=N goes with bind",
                        text);
    c->peer_limit = (unsigned)peers;
    c->base.lanes = c->reading ? c->peer_limit : 1;
    return DPF_OK;
}

/* Whether a tcp:// address stays on this machine: an address in 127/8, ::1 or the name
 * localhost, and nothing that merely looks like one. */
static bool is_loopback(const char *host, size_t size)
{
    char text[64];
    struct in_addr address;
    if (size == 0 || size >= sizeof text)
        return false;
    memcpy(text, host, size);
    text[size] = '\0';
    if (strcmp(text, "localhost") == 0 || strcmp(text, "[::1]") == 0)
        return true;
    return inet_pton(AF_INET, text, &address) == 1 &&
           (ntohl(address.s_addr) >> 24) == 127;
}

/* HOST:PORT with a port that exists; libzmq would take others modulo 65536, and a source
 * address before ';'. */
static enum dpf_status check_address(const char *address, bool *local,
                                     struct dpf_error *e)
{
    *local = true;
    if (!dpf_starts_with(address, "tcp://"))
        return DPF_OK;
    const char *host = address + strlen("tcp://"), *colon = strrchr(host, ':');
    uint64_t port;
    if (!colon || strchr(host, ';') || !dpf_parse_uint(colon + 1, &port) || port < 1 ||
        port > 65535)
        return dpf_fail(e, DPF_USAGE, "endpoint '%s' is not tcp://HOST:PORT", address);
    *local = is_loopback(host, (size_t)(colon - host));
    return DPF_OK;
}

static enum dpf_status set_keys(struct dpf_zmq_channel *c, const char *address,
                                const struct dpf_endpoint_options *o, struct dpf_error *e)
{
    bool local;
    enum dpf_status status = check_address(address, &local, e);
    if (status != DPF_OK)
        return status;
    if (!o->key_file && !o->peer_key_count) {
        if (local || o->cleartext)
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
    status = dpf_curve_read(o->key_file, true, &own, e);
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

static void set_socket_options(struct dpf_zmq_channel *c)
{
    static const struct {
        int option, value;
    } settings[] = {
        {ZMQ_SNDHWM, 0},  /* credit bounds the queues */
        {ZMQ_RCVHWM, 64}, /* far above any window: for peers that ignore their credit */
        {ZMQ_HEARTBEAT_IVL, DPF_ZMQ_HEARTBEAT_MS},
        {ZMQ_HEARTBEAT_TIMEOUT, DPF_ZMQ_HEARTBEAT_TIMEOUT_MS},
        {ZMQ_HEARTBEAT_TTL, DPF_ZMQ_HEARTBEAT_TIMEOUT_MS},
        {ZMQ_RECONNECT_IVL, 20},
        {ZMQ_RECONNECT_IVL_MAX, 500},
        {ZMQ_SNDBUF, 1 << 20},
        {ZMQ_RCVBUF, 1 << 20},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        zmq_setsockopt(c->socket, settings[i].option, &settings[i].value, sizeof(int));
    int64_t largest = (int64_t)DPF_MAX_FRAME_BYTES;
    zmq_setsockopt(c->socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    if (c->binds) {
        int yes = 1; /* say so instead of dropping silently */
        zmq_setsockopt(c->socket, ZMQ_ROUTER_MANDATORY, &yes, sizeof yes);
    }
}

static enum dpf_status start_monitor(struct dpf_zmq_channel *c, struct dpf_error *e)
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

/* Connecting side: wait for the handshake, then say hello. */
static enum dpf_status shake_hands(struct dpf_zmq_channel *c, const char *address,
                                   double seconds, struct dpf_error *e)
{
    double deadline = dpf_clock_seconds() + (seconds > 0 ? seconds : 30);
    enum dpf_status status;
    while (!c->connected) {
        zmq_pollitem_t item = {.socket = c->monitor, .events = ZMQ_POLLIN};
        if (dpf_zmq_stop_now(e, &status))
            return status;
        if (zmq_poll(&item, 1, DPF_ZMQ_POLL_MS) > 0)
            dpf_zmq_read_monitor(c);
        if (c->refused)
            return dpf_fail(e, DPF_SYSTEM, "'%s' does not accept our key%s", address,
                            c->curve ? "" : ": it expects CURVE encryption");
        if (!c->connected && dpf_clock_seconds() > deadline)
            return dpf_fail(e, DPF_UNAVAILABLE, "nobody answers at '%s'", address);
    }
    zmq_msg_t hello;
    const char *text = c->reading ? "dpflow 1 r" : "dpflow 1 w";
    if (zmq_msg_init_size(&hello, strlen(text)) != 0)
        return dpf_fail_memory(e);
    memcpy(zmq_msg_data(&hello), text, strlen(text));
    c->peer_count = 1;
    if (!dpf_zmq_send(c, &c->peers[0], 'H', &hello))
        return dpf_zmq_gone(c, e);
    return DPF_OK;
}

static enum dpf_status start(struct dpf_zmq_channel *c, const char *address,
                             const struct dpf_endpoint_options *o, struct dpf_error *e)
{
    c->context = zmq_ctx_new();
    if (c->context)
        c->socket = zmq_socket(c->context, c->binds ? ZMQ_ROUTER : ZMQ_DEALER);
    c->peers = dpf_calloc(c->peer_limit, sizeof *c->peers);
    if (!c->socket || !c->peers)
        return dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    set_socket_options(c);
    if (c->binds && o->connect_seconds > 0)
        c->deadline = dpf_clock_seconds() + o->connect_seconds;
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

enum dpf_status dpf_zmq_open(const char *endpoint, enum dpf_direction direction,
                             const struct dpf_endpoint_options *options,
                             struct dpf_channel **take_channel, struct dpf_error *e)
{
    struct dpf_zmq_channel *c = dpf_calloc(1, sizeof *c);
    if (!c)
        return dpf_fail_memory(e);
    c->base.ops = direction == DPF_READ ? &dpf_zmq_read_ops : &dpf_zmq_write_ops;
    c->reading = direction == DPF_READ;
    c->base.name = dpf_strdup(endpoint);
    char *address = dpf_strdup(endpoint);
    enum dpf_status status =
        c->base.name && address ? parse_endpoint(c, address, e) : dpf_fail_memory(e);
    if (status == DPF_OK)
        status = start(c, address, options, e);
    free(address);
    if (status != DPF_OK) {
        dpf_zmq_destroy(&c->base);
        return status;
    }
    *take_channel = &c->base;
    return DPF_OK;
}

const struct dpf_transport dpf_transport_zmq_ipc = {.prefix = "ipc://",
                                                    .open = dpf_zmq_open};
const struct dpf_transport dpf_transport_zmq_tcp = {.prefix = "tcp://",
                                                    .open = dpf_zmq_open};
