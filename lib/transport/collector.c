#include "transport/collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "transport/zmq_channel.h"

#include "base/banned.h"

/* Frames in flight from one owner: there may be many of them. */
enum { WINDOW = 2 };

struct owner {
    char key[DPF_CURVE_TEXT];
    char name[65];
    bool present; /* has said hello; `peer` is how it is reached */
    struct dpf_zmq_peer peer;
};

struct dpf_collector {
    struct dpf_zmq_channel *channel;
    struct owner *owners;
    size_t count;
    zmq_msg_t payload;
    bool has_payload;
};

static enum dpf_status read_keys(struct dpf_collector *c,
                                 const struct dpf_endpoint_options *options,
                                 struct dpf_error *e)
{
    c->owners = dpf_calloc(options->peer_key_count, sizeof *c->owners);
    if (!c->owners)
        return dpf_fail_memory(e);
    for (size_t i = 0; i < options->peer_key_count; i++) {
        struct dpf_curve_key key;
        unsigned char raw[32];
        enum dpf_status status = dpf_curve_read(options->peer_keys[i], false, &key, e);
        if (status != DPF_OK)
            return status;
        memcpy(c->owners[i].key, key.public_text, sizeof key.public_text);
        zmq_z85_decode(raw, key.public_text);
        for (size_t k = 0; k < sizeof raw; k++)
            snprintf(c->owners[i].name + 2 * k, 3, "%02x", raw[k]);
        for (size_t k = 0; k < i; k++)
            if (strcmp(c->owners[k].name, c->owners[i].name) == 0)
                return dpf_fail(e, DPF_USAGE, "'%s' is the key of two owners",
                                options->peer_keys[i]);
        c->count++;
    }
    return DPF_OK;
}

enum dpf_status dpf_collector_open(const char *endpoint,
                                   const struct dpf_endpoint_options *options,
                                   struct dpf_collector **take, struct dpf_error *e)
{
    struct dpf_channel *channel = NULL;
    if (!options->key_file || options->peer_key_count == 0)
        return dpf_fail(e, DPF_USAGE,
                        "owners are identified by their keys: give --key and the owners' "
                        "public keys");
    struct dpf_collector *c = dpf_calloc(1, sizeof *c);
    if (!c)
        return dpf_fail_memory(e);
    enum dpf_status status = read_keys(c, options, e);
    if (status == DPF_OK)
        status = dpf_zmq_open(endpoint, DPF_READ, options, &channel, e);
    c->channel = (struct dpf_zmq_channel *)channel;
    if (status == DPF_OK && !c->channel->binds)
        status =
            dpf_fail(e, DPF_USAGE, "a curator listens: endpoint '%s' cannot be 'connect'",
                     endpoint);
    *take = c;
    if (status != DPF_OK)
        dpf_collector_destroy(take);
    return status;
}

void dpf_collector_destroy(struct dpf_collector **c)
{
    if (!*c)
        return;
    if ((*c)->has_payload)
        zmq_msg_close(&(*c)->payload);
    if ((*c)->channel)
        dpf_zmq_destroy(&(*c)->channel->base);
    free((*c)->owners);
    free(*c);
    *c = NULL;
}

const char *dpf_collector_name(const struct dpf_collector *c, size_t owner)
{
    return c->owners[owner].name;
}

/* ------------------------------------------------------------------------- messages */

static void grant(struct dpf_collector *c, struct owner *o)
{
    if (o->peer.outstanding >= WINDOW)
        return;
    dpf_zmq_send_number(c->channel, &o->peer, 'C', WINDOW - o->peer.outstanding);
    o->peer.outstanding = WINDOW;
}

/* Who sent a message: libzmq knows the key that the connection was made with. */
static struct owner *owner_of(struct dpf_collector *c, zmq_msg_t *message)
{
    const char *key = zmq_msg_gets(message, "User-Id");
    for (size_t i = 0; key && i < c->count; i++)
        if (strcmp(c->owners[i].key, key) == 0)
            return &c->owners[i];
    return NULL;
}

/* One message in parts [identity][kind][payload]; false if there is none, or it is not
 * of that form. */
static bool receive(struct dpf_collector *c, struct dpf_zmq_peer *from, char *kind)
{
    void *socket = c->channel->socket;
    char word[2];
    int more = 0, parts = 2;
    size_t more_size = sizeof more;
    int size = zmq_recv(socket, from->identity, sizeof from->identity, ZMQ_DONTWAIT);
    if (size < 0)
        return false;
    bool good = size <= (int)sizeof from->identity;
    from->identity_size = good ? (size_t)size : 0;
    *kind = 0;
    zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &more_size);
    if (more && zmq_recv(socket, word, sizeof word, 0) == 1)
        *kind = word[0];
    for (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &more_size); more;
         zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &more_size), parts++) {
        zmq_msg_close(&c->payload);
        zmq_msg_init(&c->payload);
        zmq_msg_recv(&c->payload, socket, 0);
    }
    return good && parts == 3 && *kind;
}

static void take_message(struct dpf_collector *c, struct dpf_collect_item *item)
{
    struct dpf_zmq_peer from = {.identity_size = 0};
    char kind;
    if (!receive(c, &from, &kind))
        return;
    struct owner *o = owner_of(c, &c->payload);
    if (!o)
        return;
    item->owner = (size_t)(o - c->owners);
    if (kind == 'H') { /* the first time, or again: an earlier connection is dead */
        o->peer = from;
        o->present = true;
        item->kind = DPF_COLLECT_BEGIN;
        grant(c, o);
        return;
    }
    bool current = o->present && o->peer.identity_size == from.identity_size &&
                   memcmp(o->peer.identity, from.identity, from.identity_size) == 0;
    if (kind != 'D' || !current || o->peer.outstanding == 0)
        return; /* the last words of a connection that was replaced */
    o->peer.outstanding--;
    item->kind = DPF_COLLECT_FRAME;
    item->data = zmq_msg_data(&c->payload);
    item->size = zmq_msg_size(&c->payload);
    grant(c, o);
}

enum dpf_status dpf_collector_next(struct dpf_collector *c, struct dpf_collect_item *item,
                                   struct dpf_error *e)
{
    enum dpf_status status;
    zmq_pollitem_t items[] = {{.socket = c->channel->socket, .events = ZMQ_POLLIN},
                              {.socket = c->channel->monitor, .events = ZMQ_POLLIN}};
    *item = (struct dpf_collect_item){.kind = DPF_COLLECT_NOTHING};
    if (c->has_payload)
        zmq_msg_close(&c->payload);
    zmq_msg_init(&c->payload);
    c->has_payload = true;
    if (dpf_zmq_stop_now(e, &status))
        return status;
    int n = zmq_poll(items, 2, DPF_ZMQ_POLL_MS);
    if (n < 0 && errno != EINTR)
        return dpf_fail(e, DPF_SYSTEM, "%s", zmq_strerror(errno));
    dpf_zmq_read_monitor(c->channel); /* else its events pile up */
    if (n > 0 && (items[0].revents & ZMQ_POLLIN))
        take_message(c, item);
    return DPF_OK;
}

void dpf_collector_accept(struct dpf_collector *c, size_t owner)
{
    struct owner *o = &c->owners[owner];
    if (o->present)
        dpf_zmq_send(c->channel, &o->peer, 'A', NULL);
    o->present = false;
}

void dpf_collector_refuse(struct dpf_collector *c, size_t owner, enum dpf_status status,
                          const char *why)
{
    struct owner *o = &c->owners[owner];
    zmq_msg_t reason;
    if (!o->present || zmq_msg_init_size(&reason, strlen(why) + 1) != 0)
        return;
    unsigned char *to = zmq_msg_data(&reason);
    to[0] = (unsigned char)status;
    memcpy(to + 1, why, strlen(why));
    dpf_zmq_send(c->channel, &o->peer, 'X', &reason);
    o->present = false;
}
