/* CURVE keys for ZeroMQ: files that hold them, and the check of who may talk to us. */
#ifndef DPF_TRANSPORT_CURVE_H
#define DPF_TRANSPORT_CURVE_H

#include <stddef.h>

#include "base/status.h"

enum { DPF_CURVE_TEXT = 41 }; /* Z85 with its NUL */

struct dpf_curve_key {
    char public_text[DPF_CURVE_TEXT];
    char secret_text[DPF_CURVE_TEXT]; /* empty in a public key file */
};

/* Make a key pair: NAME.key (mode 0600, both keys) and NAME.pub (to hand out). Existing
 * files are not overwritten. */
enum dpf_status dpf_curve_generate(const char *name, struct dpf_error *e);
/* Read either kind of file; `need_secret` refuses a public one. */
enum dpf_status dpf_curve_read(const char *path, int need_secret,
                               struct dpf_curve_key *key, struct dpf_error *e);

/* A thread that answers libzmq's question (ZAP, RFC 27) whether a client's key is one of
 * ours, and names the client by its public key (the "User-Id" of its messages). Start
 * before binding; it ends when the context does. */
struct dpf_curve_guard;
enum dpf_status dpf_curve_guard_start(void *zmq_context,
                                      const struct dpf_curve_key *allowed, size_t count,
                                      struct dpf_curve_guard **take_guard,
                                      struct dpf_error *e);
/* After zmq_ctx_shutdown(). */
void dpf_curve_guard_stop(struct dpf_curve_guard **guard);

#endif
