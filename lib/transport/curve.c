#include "transport/curve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/signals.h"
#include "base/text.h"

#include "base/banned.h"

static enum dpf_status write_new(const char *path, int mode, const char *text,
                                 struct dpf_error *e)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return dpf_fail_errno(e, "cannot create '%s'", path);
    bool good = dpf_write_all(fd, text, strlen(text)) && fsync(fd) == 0;
    if (close(fd) != 0 || !good) {
        enum dpf_status status = dpf_fail_errno(e, "cannot write '%s'", path);
        unlink(path);
        return status;
    }
    return DPF_OK;
}

enum dpf_status dpf_curve_generate(const char *name, struct dpf_error *e)
{
    struct dpf_curve_key key;
    enum dpf_status status = DPF_OK;
    if (zmq_curve_keypair(key.public_text, key.secret_text) != 0)
        return dpf_fail(e, DPF_UNAVAILABLE, "this libzmq was built without CURVE");
    char *secret_path = dpf_format("%s.key", name),
         *public_path = dpf_format("%s.pub", name);
    char *public_file =
        dpf_format("# dpflow CURVE key: may be handed out\npublic %s\n", key.public_text);
    char *secret_file =
        dpf_format("# dpflow CURVE key pair: keep secret\npublic %s\nsecret %s\n",
                   key.public_text, key.secret_text);
    if (!secret_path || !public_path || !public_file || !secret_file)
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        status = write_new(secret_path, 0600, secret_file, e);
    if (status == DPF_OK) {
        status = write_new(public_path, 0644, public_file, e);
        if (status != DPF_OK)
            unlink(secret_path);
    }
    if (secret_file)
        sodium_memzero(secret_file, strlen(secret_file));
    sodium_memzero(&key, sizeof key);
    free(secret_path);
    free(public_path);
    free(public_file);
    free(secret_file);
    return status;
}

/* The 40 characters behind `word` on a line of its own. */
static bool find_key(const char *text, const char *word, char out[DPF_CURVE_TEXT])
{
    unsigned char raw[32];
    for (const char *line = text; line && *line;) {
        if (dpf_starts_with(line, word) && line[strlen(word)] == ' ') {
            const char *value = line + strlen(word) + 1;
            if (strcspn(value, "\r\n \t") != DPF_CURVE_TEXT - 1)
                return false;
            memcpy(out, value, DPF_CURVE_TEXT - 1);
            out[DPF_CURVE_TEXT - 1] = '\0';
            return zmq_z85_decode(raw, out) != NULL;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return false;
}

enum dpf_status dpf_curve_read(const char *path, int need_secret,
                               struct dpf_curve_key *key, struct dpf_error *e)
{
    char *text;
    size_t size;
    *key = (struct dpf_curve_key){{0}, {0}};
    enum dpf_status status = dpf_read_file(path, 4096, &text, &size, e);
    if (status != DPF_OK)
        return status;
    if (!find_key(text, "public", key->public_text))
        status = dpf_fail(e, DPF_USAGE, "'%s' is not a dpflow key file", path);
    else if (!find_key(text, "secret", key->secret_text) && need_secret)
        status = dpf_fail(e, DPF_USAGE, "'%s' holds no secret key", path);
    sodium_memzero(text, size);
    free(text);
    return status;
}

struct dpf_curve_guard {
    pthread_t thread;
    void *socket;
    size_t count;
    unsigned char (*allowed)[32];
};

static bool is_allowed(const struct dpf_curve_guard *g, const unsigned char *client)
{
    for (size_t i = 0; i < g->count; i++)
        if (sodium_memcmp(g->allowed[i], client, 32) == 0)
            return true;
    return false;
}

/* Request: version, id, domain, address, identity, mechanism, credentials. */
static void *guard_main(void *context)
{
    struct dpf_curve_guard *g = context;
    for (;;) {
        char id[256];
        unsigned char client[32];
        int id_size = 0, part = 0, more = 1, client_size = 0;
        size_t more_size = sizeof more;
        while (more) {
            unsigned char bytes[256];
            int n = zmq_recv(g->socket, bytes, sizeof bytes, 0);
            if (n < 0 && errno == EINTR)
                continue;
            if (n < 0) {
                zmq_close(g->socket);
                return NULL;
            }
            if (n > (int)sizeof bytes)
                n = sizeof bytes;
            if (part == 1)
                memcpy(id, bytes, (size_t)(id_size = n));
            if (part == 6 && n == sizeof client)
                memcpy(client, bytes, (size_t)(client_size = n));
            part++;
            zmq_getsockopt(g->socket, ZMQ_RCVMORE, &more, &more_size);
        }
        bool good = client_size == sizeof client && is_allowed(g, client);
        zmq_send(g->socket, "1.0", 3, ZMQ_SNDMORE);
        zmq_send(g->socket, id, (size_t)id_size, ZMQ_SNDMORE);
        zmq_send(g->socket, good ? "200" : "400", 3, ZMQ_SNDMORE);
        zmq_send(g->socket, good ? "ok" : "no", 2, ZMQ_SNDMORE);
        /* the user's name: every message of the connection can be asked for it */
        char name[DPF_CURVE_TEXT] = "";
        if (good)
            zmq_z85_encode(name, client, sizeof client);
        zmq_send(g->socket, name, strlen(name), ZMQ_SNDMORE);
        zmq_send(g->socket, "", 0, 0);
    }
}

enum dpf_status dpf_curve_guard_start(void *zmq_context,
                                      const struct dpf_curve_key *allowed, size_t count,
                                      struct dpf_curve_guard **take_guard,
                                      struct dpf_error *e)
{
    struct dpf_curve_guard *g = dpf_calloc(1, sizeof *g);
    if (g)
        g->allowed = dpf_calloc(count, sizeof *g->allowed);
    if (!g || !g->allowed) {
        free(g);
        return dpf_fail_memory(e);
    }
    for (size_t i = 0; i < count; i++)
        zmq_z85_decode(g->allowed[i], allowed[i].public_text);
    g->count = count;
    g->socket = zmq_socket(zmq_context, ZMQ_REP);
    if (!g->socket || zmq_bind(g->socket, "inproc://zeromq.zap.01") != 0 ||
        dpf_thread_start(&g->thread, guard_main, g) != 0) {
        enum dpf_status status = dpf_fail(e, DPF_SYSTEM, "cannot start the key check: %s",
                                          zmq_strerror(errno));
        if (g->socket)
            zmq_close(g->socket);
        free(g->allowed);
        free(g);
        return status;
    }
    *take_guard = g;
    return DPF_OK;
}

void dpf_curve_guard_stop(struct dpf_curve_guard **guard)
{
    if (!*guard)
        return;
    pthread_join((*guard)->thread, NULL);
    free((*guard)->allowed);
    free(*guard);
    *guard = NULL;
}
