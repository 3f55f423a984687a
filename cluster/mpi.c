/* mpi:NAME, an edge of an MPI job: the plug-in behind `dpflow run --transport mpi`.
 *
 * A pipeline runs as one MPMD job (mpirun's app file), each stage a rank. On joining, the
 * ranks tell each other the names of the edges that they read and write, so nobody has to
 * know rank numbers. A frame is one message (more, if it is over 1 GiB), sent
 * synchronously with a small window: a slow reader slows its writer. A rank that fails
 * aborts the job; mpirun ends the others. */
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/plugin.h"
#include "base/text.h"
#include "transport/transport.h"

#include "base/banned.h"

enum { WINDOW = 4, CHUNK_BYTES = 1 << 30, SPINS = 200 };

struct edge {
    char *name;
    int writer, reader; /* ranks, or -1 */
};

static const struct dpf_plugin_host *program;
static struct edge *edges;
static size_t edge_count;
static bool joined;

/* A wait that gives the core away: ranks outnumber cores when a pipeline is tested on a
 * laptop, and OpenMPI's own waits spin. */
static bool pause_or_stop(unsigned *turns)
{
    if (++*turns < SPINS) {
        sched_yield();
    } else {
        struct timespec t = {0, *turns < 4 * SPINS ? 20000 : 200000};
        nanosleep(&t, NULL);
    }
    return program->stop_requested();
}

static enum dpf_status stopped(struct dpf_error *e)
{
    return dpf_fail_after_peer(e, DPF_SYSTEM, "interrupted by signal %d",
                               program->stop_signal());
}

/* --------------------------------------------------------------------- channels */

struct mpi_channel {
    struct dpf_channel base;
    int peer, tag;
    /* writing: a window of frames on their way */
    unsigned char *slots[WINDOW];
    size_t slot_capacity[WINDOW];
    MPI_Request request[WINDOW];
    int next;
    /* reading */
    unsigned char *buffer;
    size_t capacity;
};

static bool reserve(unsigned char **buffer, size_t *capacity, size_t wanted)
{
    if (wanted <= *capacity)
        return true;
    free(*buffer);
    *capacity = 0;
    *buffer = dpf_alloc_aligned(wanted);
    if (!*buffer)
        return false;
    *capacity = wanted;
    return true;
}

static enum dpf_status wait_request(MPI_Request *request, struct dpf_error *e)
{
    unsigned turns = 0;
    int done = 0;
    for (;;) {
        if (MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
            return dpf_fail_after_peer(e, DPF_SYSTEM, "an MPI message was lost");
        if (done)
            return DPF_OK;
        if (pause_or_stop(&turns))
            return stopped(e);
    }
}

static enum dpf_status mpi_send(struct dpf_channel *base, struct iovec *parts, int count,
                                size_t total, struct dpf_error *e)
{
    struct mpi_channel *c = (struct mpi_channel *)base;
    int slot = c->next;
    enum dpf_status status = wait_request(&c->request[slot], e);
    if (status != DPF_OK)
        return status;
    if (!reserve(&c->slots[slot], &c->slot_capacity[slot], total))
        return dpf_fail_memory(e);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        memcpy(c->slots[slot] + at, parts[i].iov_base, parts[i].iov_len);
        at += parts[i].iov_len;
    }
    for (at = 0; status == DPF_OK && at < total; at += CHUNK_BYTES) {
        size_t size = total - at < CHUNK_BYTES ? total - at : CHUNK_BYTES;
        MPI_Issend(c->slots[slot] + at, (int)size, MPI_BYTE, c->peer, c->tag,
                   MPI_COMM_WORLD, &c->request[slot]);
        if (total > at + CHUNK_BYTES) /* one request a slot: long frames in lock-step */
            status = wait_request(&c->request[slot], e);
    }
    c->next = (slot + 1) % WINDOW;
    return status;
}

static enum dpf_status mpi_write_finish(struct dpf_channel *base, struct dpf_error *e)
{
    struct mpi_channel *c = (struct mpi_channel *)base;
    enum dpf_status status = DPF_OK;
    for (int i = 0; status == DPF_OK && i < WINDOW; i++)
        status = wait_request(&c->request[i], e);
    return status;
}

/* One message into c->buffer + at; *size is what came. */
static enum dpf_status take_chunk(struct mpi_channel *c, size_t at, size_t limit,
                                  size_t *size, struct dpf_error *e)
{
    MPI_Message message;
    MPI_Status info;
    MPI_Request request;
    unsigned turns = 0;
    int found = 0, bytes = 0;
    for (;;) {
        MPI_Improbe(c->peer, c->tag, MPI_COMM_WORLD, &found, &message, &info);
        if (found)
            break;
        if (pause_or_stop(&turns))
            return stopped(e);
    }
    MPI_Get_count(&info, MPI_BYTE, &bytes);
    *size = (size_t)bytes;
    bool fits = at == 0 ? reserve(&c->buffer, &c->capacity, *size) : *size <= limit - at;
    if (!fits)
        return dpf_fail(e, DPF_BAD_STREAM, "an MPI message has a wrong size");
    MPI_Imrecv(c->buffer + at, bytes, MPI_BYTE, &message, &request);
    return wait_request(&request, e);
}

static enum dpf_status mpi_recv(struct dpf_channel *base, struct dpf_frame *frame,
                                struct dpf_error *e)
{
    struct mpi_channel *c = (struct mpi_channel *)base;
    size_t have, declared;
    enum dpf_status status = take_chunk(c, 0, 0, &have, e);
    if (status != DPF_OK)
        return status;
    if (have < DPF_PREAMBLE_BYTES)
        return dpf_fail(e, DPF_BAD_STREAM, "a frame is too short");
    status = dpf_preamble_parse(c->buffer, &declared, e);
    if (status == DPF_OK && declared > have) { /* a long frame: make room for the rest */
        unsigned char *grown = dpf_alloc_aligned(declared);
        if (!grown)
            return dpf_fail_memory(e);
        memcpy(grown, c->buffer, have);
        free(c->buffer);
        c->buffer = grown;
        c->capacity = declared;
    }
    while (status == DPF_OK && have < declared) {
        size_t more;
        status = take_chunk(c, have, declared, &more, e);
        have += status == DPF_OK ? more : 0;
    }
    *frame = (struct dpf_frame){.data = c->buffer, .size = have};
    return status;
}

static enum dpf_status mpi_read_finish(struct dpf_channel *base, struct dpf_error *e)
{
    (void)base;
    (void)e;
    return DPF_OK;
}

static void mpi_destroy(struct dpf_channel *base)
{
    struct mpi_channel *c = (struct mpi_channel *)base;
    for (int i = 0; i < WINDOW; i++)
        if (c->request[i] == MPI_REQUEST_NULL) /* else MPI still reads it; we abort */
            free(c->slots[i]);
    free(c->buffer);
    free(c->base.name);
    free(c);
}

static const struct dpf_channel_ops read_ops = {
    .recv = mpi_recv, .finish = mpi_read_finish, .destroy = mpi_destroy};
static const struct dpf_channel_ops write_ops = {
    .send = mpi_send, .finish = mpi_write_finish, .destroy = mpi_destroy};

static enum dpf_status mpi_open(const char *endpoint, enum dpf_direction direction,
                                const struct dpf_endpoint_options *options,
                                struct dpf_channel **take_channel, struct dpf_error *e)
{
    (void)options;
    const char *name = endpoint + strlen("mpi:");
    size_t i = 0;
    while (i < edge_count && strcmp(edges[i].name, name) != 0)
        i++;
    if (i == edge_count || edges[i].writer < 0 || edges[i].reader < 0)
        return dpf_fail(e, DPF_USAGE, "nobody %s edge '%s' of this MPI job",
                        direction == DPF_READ ? "writes" : "reads", endpoint);
    struct mpi_channel *c = dpf_calloc(1, sizeof *c);
    if (!c || !(c->base.name = dpf_strdup(endpoint))) {
        free(c);
        return dpf_fail_memory(e);
    }
    c->base.ops = direction == DPF_READ ? &read_ops : &write_ops;
    c->base.lanes = 1;
    c->peer = direction == DPF_READ ? edges[i].writer : edges[i].reader;
    c->tag = (int)i;
    for (int k = 0; k < WINDOW; k++)
        c->request[k] = MPI_REQUEST_NULL;
    *take_channel = &c->base;
    return DPF_OK;
}

/* -------------------------------------------------------------------------- job */

static struct edge *edge_named(const char *name)
{
    for (size_t i = 0; i < edge_count; i++)
        if (strcmp(edges[i].name, name) == 0)
            return &edges[i];
    struct edge *grown = realloc(edges, (edge_count + 1) * sizeof *edges);
    if (!grown)
        return NULL;
    edges = grown;
    edges[edge_count] = (struct edge){dpf_strdup(name), -1, -1};
    return &edges[edge_count++];
}

/* Note what one rank said: "rmpi:a\nwmpi:b\n". All ranks see all lines in the same order,
 * so an edge has the same number everywhere. */
static enum dpf_status note_rank(int rank, char *lines, struct dpf_error *e)
{
    for (char *line; (line = strsep(&lines, "\n")) && *line;) {
        struct edge *edge = edge_named(line + strlen("rmpi:"));
        if (!edge)
            return dpf_fail_memory(e);
        int *end = *line == 'r' ? &edge->reader : &edge->writer;
        if (*end >= 0)
            return dpf_fail(e, DPF_USAGE, "edge '%s' of this MPI job has two %s",
                            edge->name, *line == 'r' ? "readers" : "writers");
        *end = rank;
    }
    return DPF_OK;
}

static enum dpf_status exchange(const struct dpf_text *mine, struct dpf_error *e)
{
    int ranks, size = (int)mine->size + 1, total = 0;
    enum dpf_status status = DPF_OK;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int *sizes = dpf_calloc((size_t)ranks, sizeof *sizes);
    int *starts = dpf_calloc((size_t)ranks, sizeof *starts);
    char *all = NULL;
    if (!sizes || !starts)
        return dpf_fail_memory(e);
    MPI_Allgather(&size, 1, MPI_INT, sizes, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        starts[i] = total;
        total += sizes[i];
    }
    all = dpf_calloc((size_t)total, 1);
    if (!all)
        status = dpf_fail_memory(e);
    else
        MPI_Allgatherv(dpf_text_get(mine), size, MPI_CHAR, all, sizes, starts, MPI_CHAR,
                       MPI_COMM_WORLD);
    for (int i = 0; status == DPF_OK && i < ranks; i++)
        status = note_rank(i, all + starts[i], e);
    free(sizes);
    free(starts);
    free(all);
    return status;
}

static void mpi_attach(const struct dpf_plugin_host *host)
{
    program = host;
}

static enum dpf_status mpi_join(const char *const *endpoints, size_t count,
                                struct dpf_error *e)
{
    struct dpf_text mine = {0};
    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return dpf_fail(e, DPF_UNAVAILABLE, "MPI could not be started");
    joined = true;
    for (size_t i = 0; i < count; i++)
        dpf_text_addf(&mine, "%s\n", endpoints[i]);
    enum dpf_status status = mine.failed ? dpf_fail_memory(e) : exchange(&mine, e);
    dpf_text_release(&mine);
    return status;
}

static void mpi_leave(enum dpf_status status)
{
    for (size_t i = 0; i < edge_count; i++)
        free(edges[i].name);
    free(edges);
    edges = NULL;
    edge_count = 0;
    if (!joined)
        return;
    joined = false;
    if (status == DPF_OK)
        MPI_Finalize();
    else
        MPI_Abort(MPI_COMM_WORLD, (int)status);
}

static const struct dpf_transport transport = {
    .prefix = "mpi:", .open = mpi_open, .join = mpi_join, .leave = mpi_leave};

extern const struct dpf_plugin dpf_plugin;
const struct dpf_plugin dpf_plugin = {.version = DPF_PLUGIN_VERSION,
                                      .kind = DPF_TRANSPORT_KIND,
                                      .name = "mpi",
                                      .summary = "edges of an MPI job",
                                      .table = &transport,
                                      .attach = mpi_attach};
