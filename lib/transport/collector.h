/* Streams from many owners who may connect late, fail and connect again: the curator's
 * side.
 *
 * A reading channel (transport.h) wants all its writers at once and fails if one dies.
 * Here each owner is known by its CURVE key, sends its stream when it can, and starts
 * from the beginning after every interruption; what it sent before is then forgotten.
 * Owners speak the protocol of any writer to tcp:// (zmq.c), so whatever stage writes
 * there can be one. */
#ifndef DPF_TRANSPORT_COLLECTOR_H
#define DPF_TRANSPORT_COLLECTOR_H

#include "transport/transport.h"

struct dpf_collector;

enum dpf_collect_kind {
    DPF_COLLECT_NOTHING, /* nothing for a while */
    DPF_COLLECT_BEGIN,   /* an owner starts its stream, perhaps again */
    DPF_COLLECT_FRAME,   /* its next frame */
};

struct dpf_collect_item {
    enum dpf_collect_kind kind;
    size_t owner; /* number of its key in peer_keys */
    const unsigned char *data;
    size_t size; /* of the frame; valid until the next item */
};

/* Listen. Without keys nobody could be told from another: DPF_USAGE. */
enum dpf_status dpf_collector_open(const char *endpoint,
                                   const struct dpf_endpoint_options *options,
                                   struct dpf_collector **take, struct dpf_error *e);
/* What came next; DPF_COLLECT_NOTHING after a tenth of a second. A signal that asks the
 * program to stop is DPF_SYSTEM. */
enum dpf_status dpf_collector_next(struct dpf_collector *c, struct dpf_collect_item *item,
                                   struct dpf_error *e);
/* The owner's stream is whole and safe: tell it so. */
void dpf_collector_accept(struct dpf_collector *c, size_t owner);
/* It will not be taken; `status` is what the owner's program is to exit with. */
void dpf_collector_refuse(struct dpf_collector *c, size_t owner, enum dpf_status status,
                          const char *why);
void dpf_collector_destroy(struct dpf_collector **c);

/* The public key of owner number i, 64 hexadecimal digits: a name for files. */
const char *dpf_collector_name(const struct dpf_collector *c, size_t owner);

#endif
