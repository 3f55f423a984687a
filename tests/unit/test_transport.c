/* Endpoints: whole streams over descriptors, files and ZeroMQ, with peers that are many,
 * slow, dead, wrong or uninvited. Every side runs in a process of its own and tells what
 * became of it through shared memory; whoever hangs is ended and has no result. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#include "base/plugin.h"
#include "base/text.h"
#include "ledger/merge.h"
#include "stream_fixture.h"
#include "transport/curve.h"

#include "base/banned.h"

/* ---- peers ---- */

enum { PEERS = 8, ROWS = 100, HANGS = -1, KILLED = -2 };

/* What one side does. */
struct task {
    char endpoint[400];
    struct dpf_endpoint_options options;
    int close_fd;     /* a pipe's other end, or 0 */
    uint64_t batches; /* writing: of ROWS records each, numbered from `base` */
    int64_t base;
    unsigned pause_ms;  /* writing: between batches; reading: after the first one */
    uint64_t end_after; /* after so many batches: */
    int end_signal;     /* this signal, or 0: let go without finishing */
};

/* What became of it. */
struct outcome {
    int status; /* HANGS until it is known */
    bool consequence;
    char message[480];
    uint64_t batches, records;
    int64_t sum;
    uint64_t ahead; /* reading: batches its writer had sent at the end of the pause */
    double seconds;
};

static struct outcome *outcomes; /* shared, one for each peer */
static pid_t peers[PEERS];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static void begin(void)
{
    folder_begin();
    outcomes = mmap(NULL, PEERS * sizeof *outcomes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CU_ASSERT_FATAL(outcomes != MAP_FAILED);
    for (int i = 0; i < PEERS; i++)
        outcomes[i].status = HANGS;
}

static void end(void)
{
    for (int i = 0; i < PEERS; i++)
        if (peers[i]) {
            kill(peers[i], SIGKILL);
            waitpid(peers[i], NULL, 0);
            peers[i] = 0;
        }
    munmap(outcomes, PEERS * sizeof *outcomes);
    folder_end();
}

static struct dpf_header number_header(void)
{
    struct dpf_header h = {0};
    struct dpf_shape scalar = {0};
    dpf_header_add_field(&h, "n", DPF_I64, &scalar);
    return h;
}

static void leave(const struct task *t)
{
    if (t->end_signal)
        raise(t->end_signal);
}

static enum dpf_status write_batches(const struct task *t, struct outcome *o,
                                     struct dpf_stream_writer *w, struct dpf_error *e)
{
    struct dpf_header h = number_header();
    struct dpf_batch b;
    enum dpf_status status = dpf_batch_init(&b, &h, ROWS, e);
    if (status == DPF_OK)
        status = dpf_stream_write_header(w, &h, e);
    for (uint64_t i = 0; status == DPF_OK && i < t->batches; i++) {
        for (int k = 0; k < ROWS; k++)
            ((int64_t *)b.tensor[0].data)[k] = t->base + (int64_t)i * ROWS + k;
        status = dpf_stream_write_batch(w, &b, e);
        if (status == DPF_OK)
            o->batches = i + 1;
        if (t->pause_ms)
            sleep_ms(t->pause_ms);
        if (t->end_after == i + 1) {
            leave(t);
            dpf_batch_release(&b);
            return DPF_OK;
        }
    }
    dpf_batch_release(&b);
    return status == DPF_OK ? dpf_stream_writer_finish(w, e) : status;
}

static enum dpf_status run_writer(const struct task *t, struct outcome *o,
                                  struct dpf_error *e)
{
    struct dpf_stream_writer w;
    struct dpf_channel **channels = dpf_calloc(1, sizeof *channels);
    enum dpf_status status =
        dpf_channel_open(t->endpoint, DPF_WRITE, &t->options, &channels[0], e);
    if (status != DPF_OK) {
        free(channels);
        return status;
    }
    status = dpf_stream_writer_init(&w, channels, 1, e);
    if (status == DPF_OK)
        status = write_batches(t, o, &w, e);
    dpf_stream_writer_release(&w);
    return status;
}

static void take_batch(const struct task *t, struct outcome *o, const struct dpf_batch *b)
{
    const int64_t *n = b->tensor[0].data;
    for (uint64_t i = 0; i < b->rows; i++)
        o->sum += n[i];
    o->batches++;
    o->records += b->rows;
    if (o->batches == 1 && t->pause_ms) {
        sleep_ms(t->pause_ms);
        o->ahead = o == outcomes ? outcomes[1].batches : outcomes[0].batches;
    }
    if (t->end_after && o->batches == t->end_after)
        leave(t);
}

static enum dpf_status run_reader(const struct task *t, struct outcome *o,
                                  struct dpf_error *e)
{
    struct dpf_channel *c;
    struct dpf_stream_reader r;
    enum dpf_item item = DPF_ITEM_BATCH;
    enum dpf_status status = dpf_channel_open(t->endpoint, DPF_READ, &t->options, &c, e);
    if (status == DPF_OK)
        status = dpf_stream_reader_open(&r, c, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    while (status == DPF_OK && item != DPF_ITEM_END) {
        status = dpf_stream_reader_next(&r, &item, e);
        if (status == DPF_OK && item == DPF_ITEM_BATCH)
            take_batch(t, o, &r.batch);
    }
    dpf_stream_reader_release(&r);
    return status;
}

/* Start peer `i`. It does not outlive 15 seconds, whatever happens to us. */
static void start(int i, enum dpf_direction direction, const struct task *t)
{
    fflush(stdout);
    peers[i] = fork();
    CU_ASSERT_FATAL(peers[i] >= 0);
    if (peers[i] > 0)
        return;
    struct dpf_error e = {0};
    double from = now();
    alarm(15);
    signal(SIGPIPE, SIG_IGN);
    if (t->close_fd)
        close(t->close_fd);
    struct outcome *o = &outcomes[i];
    enum dpf_status status =
        direction == DPF_READ ? run_reader(t, o, &e) : run_writer(t, o, &e);
    o->seconds = now() - from;
    o->consequence = e.consequence;
    if (status != DPF_OK)
        snprintf(o->message, sizeof o->message, "%s", e.message);
    o->status = (int)status;
    _exit(0);
}

/* Wait for peer `i` for so many seconds; then it hangs, and is ended. */
static struct outcome *finish(int i, double seconds)
{
    double deadline = now() + seconds;
    int status = 0;
    pid_t done = 0;
    while ((done = waitpid(peers[i], &status, WNOHANG)) == 0 && now() < deadline)
        sleep_ms(5);
    if (done == 0) {
        kill(peers[i], SIGKILL);
        waitpid(peers[i], &status, 0);
    } else if (WIFSIGNALED(status)) {
        outcomes[i].status = KILLED;
    }
    peers[i] = 0;
    return &outcomes[i];
}

static bool ended(const struct outcome *o, int status, const char *text)
{
    bool good = o->status == status && strstr(o->message, text) != NULL;
    if (!good)
        printf("    %d '%s', not %d '%s'\n", o->status, o->message, status, text);
    return good;
}

static int64_t sum_to(int64_t base, uint64_t batches)
{
    int64_t n = (int64_t)batches * ROWS;
    return base * n + n * (n - 1) / 2;
}

static bool got_all(const struct outcome *o, uint64_t batches)
{
    return ended(o, DPF_OK, "") && o->records == batches * ROWS &&
           o->sum == sum_to(0, batches);
}

static struct task task_at(const char *format, const char *where, uint64_t batches)
{
    struct task t = {.batches = batches, .options = {.connect_seconds = 5}};
    int n = snprintf(t.endpoint, sizeof t.endpoint, "%s%s", format, where);
    CU_ASSERT_FATAL(n > 0 && n < (int)sizeof t.endpoint);
    return t;
}

/* "127.0.0.1:PORT" with a port that was free a moment ago. */
static const char *free_port(const char *host)
{
    static char text[64];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_FATAL(fd >= 0 && bind(fd, (struct sockaddr *)&a, size) == 0);
    CU_ASSERT_FATAL(getsockname(fd, (struct sockaddr *)&a, &size) == 0);
    close(fd);
    snprintf(text, sizeof text, "%s:%d", host, ntohs(a.sin_port));
    return text;
}

/* ---- descriptors ---- */

static void pipe_tasks(struct task *reader, struct task *writer, uint64_t batches)
{
    int ends[2];
    char number[16];
    CU_ASSERT_FATAL(pipe(ends) == 0);
    snprintf(number, sizeof number, "%d", ends[0]);
    *reader = task_at("fd:", number, batches);
    reader->close_fd = ends[1];
    snprintf(number, sizeof number, "%d", ends[1]);
    *writer = task_at("fd:", number, batches);
    writer->close_fd = ends[0];
}

static void start_pipe(const struct task *reader, const struct task *writer)
{
    start(0, DPF_READ, reader);
    start(1, DPF_WRITE, writer);
    close(reader->close_fd);
    close(writer->close_fd);
}

static void test_pipe(void)
{
    struct task reader, writer;
    begin();
    pipe_tasks(&reader, &writer, 3000); /* more than a pipe holds */
    start_pipe(&reader, &writer);
    CU_ASSERT(got_all(finish(0, 8), 3000));
    CU_ASSERT(ended(finish(1, 2), DPF_OK, ""));
    end();
}

static void test_pipe_writer_dies(void)
{
    struct task reader, writer;
    begin();
    pipe_tasks(&reader, &writer, 50);
    writer.end_after = 3;
    writer.end_signal = SIGKILL;
    start_pipe(&reader, &writer);
    struct outcome *o = finish(0, 5);
    CU_ASSERT(ended(o, DPF_BAD_STREAM, "stream ended before its trailer"));
    CU_ASSERT(o->consequence && o->records == 3 * ROWS);
    CU_ASSERT(finish(1, 1)->status == KILLED);
    end();
}

static void test_pipe_reader_dies(void)
{
    struct task reader, writer;
    begin();
    pipe_tasks(&reader, &writer, 100000);
    reader.end_after = 2;
    reader.end_signal = SIGKILL;
    start_pipe(&reader, &writer);
    struct outcome *o = finish(1, 5);
    CU_ASSERT(ended(o, DPF_SYSTEM, "its reader closed it") && o->consequence);
    CU_ASSERT(finish(0, 1)->status == KILLED);
    end();
}

static void test_descriptors_refused(void)
{
    struct dpf_channel *c;
    struct dpf_error e = {0};
    static const char *const bad[] = {"fd:", "fd:x", "fd:-1", "fd:3x", "fd:99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(refused(dpf_channel_open(bad[i], DPF_READ, NULL, &c, &e), DPF_USAGE, &e,
                          "names no descriptor"));
    CU_ASSERT(refused(dpf_channel_open("", DPF_READ, NULL, &c, &e), DPF_USAGE, &e,
                      "an endpoint is empty"));
    CU_ASSERT(refused(dpf_channel_open("udp://x", DPF_READ, NULL, &c, &e), DPF_USAGE, &e,
                      "endpoint 'udp://x' has an unknown scheme"));
    CU_ASSERT(refused(dpf_channel_open("follow:x", DPF_WRITE, NULL, &c, &e), DPF_USAGE,
                      &e, "can only be read"));
    CU_ASSERT(c == NULL);
}

static void count_plugin(void *context, const struct dpf_plugin *plugin)
{
    const struct dpf_plugin *again = NULL;
    struct dpf_error e = {0};
    CU_ASSERT(strcmp(plugin->kind, DPF_TRANSPORT_KIND) == 0);
    CU_ASSERT(dpf_plugin_find(DPF_TRANSPORT_KIND, plugin->name, &again, &e) == DPF_OK);
    CU_ASSERT(again == plugin);
    CU_ASSERT(refused(dpf_plugin_find("backend", plugin->name, &again, &e),
                      DPF_UNAVAILABLE, &e, "is a transport, not a backend"));
    ++*(size_t *)context;
}

static void no_plugin(void *context, const struct dpf_plugin *plugin)
{
    (void)context;
    (void)plugin;
    CU_FAIL("there is no plug-in of this kind");
}

/* tests/e2e/plugins.test makes plug-ins of all sorts. */
static void test_plugins(void)
{
    const struct dpf_plugin *found = NULL;
    struct dpf_error e = {0};
    size_t count = 0;
    dpf_plugin_each(DPF_TRANSPORT_KIND, count_plugin, &count);
    CU_ASSERT(count == dpf_plugin_exists("mpi"));
    dpf_plugin_each("nothing", no_plugin, NULL);
    static const char *const absent[] = {"", "nowhere", "../libexec/dpflow/x", "MPI"};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        CU_ASSERT(refused(dpf_plugin_find(DPF_TRANSPORT_KIND, absent[i], &found, &e),
                          DPF_UNAVAILABLE, &e, "is not beside the stages"));
    CU_ASSERT(!found && !dpf_endpoint_has_scheme("a:b"));
    CU_ASSERT(dpf_endpoint_has_scheme("mpi:b") && !dpf_endpoint_has_scheme("./mpi:b"));
}

/* A preamble that promises gigabytes gets memory only as bytes arrive. */
static void test_lying_size(void)
{
    static const unsigned char lie[] = {0x81, 0xa5, 'b', 'y', 't', 'e', 's', 0xcf, 0,
                                        0,    0,    1,   0,   0,   0,   0,   'x'};
    struct dpf_error e = {0};
    struct dpf_channel *c;
    struct dpf_stream_reader r;
    begin();
    CU_ASSERT_FATAL(dpf_write_file(in_folder("lie"), lie, sizeof lie, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_channel_open(in_folder("lie"), DPF_READ, NULL, &c, &e) == DPF_OK);
    CU_ASSERT(refused(dpf_stream_reader_open(&r, c, dpf_ledger_merge, &e), DPF_BAD_STREAM,
                      &e, "stream ended before its trailer"));
    end();
}

/* ---- files ---- */

static void test_file(void)
{
    struct task t;
    struct dpf_error e = {0};
    struct outcome o = {0};
    begin();
    const char *path = in_folder("s.mp"), *part = in_folder("s.mp.part");
    t = task_at("", path, 20);
    CU_ASSERT(run_writer(&t, &o, &e) == DPF_OK && there(path) && !there(part));
    o = (struct outcome){0};
    CU_ASSERT(run_reader(&t, &o, &e) == DPF_OK);
    CU_ASSERT(o.records == 20 * ROWS && o.sum == sum_to(0, 20));
    FILE *f = fopen(path, "ab");
    CU_ASSERT_FATAL(f != NULL);
    fputc('x', f);
    fclose(f);
    CU_ASSERT(
        refused(run_reader(&t, &o, &e), DPF_BAD_STREAM, &e, "data follows the trailer"));
    t = task_at("", in_folder("absent"), 1);
    CU_ASSERT(refused(run_reader(&t, &o, &e), DPF_SYSTEM, &e, "absent'"));
    t = task_at("", in_folder("no/file"), 1);
    CU_ASSERT(refused(run_writer(&t, &o, &e), DPF_SYSTEM, &e, "no/file"));
    end();
}

/* Nothing stands under the final name before everything is written. */
static void test_file_whole_or_absent(void)
{
    struct dpf_error e = {0};
    struct dpf_header h = number_header();
    struct dpf_batch b;
    begin();
    const char *path = in_folder("s.mp"), *part = in_folder("s.mp.part");
    CU_ASSERT_FATAL(dpf_batch_init(&b, &h, ROWS, &e) == DPF_OK);
    memset(b.tensor[0].data, 0, b.tensor[0].bytes);
    for (int whole = 0; whole < 3; whole++) { /* 0: withdrawn, 1: failed, 2: finished */
        struct dpf_stream_writer w;
        struct dpf_channel **c = dpf_calloc(1, sizeof *c);
        CU_ASSERT_FATAL(c != NULL);
        CU_ASSERT_FATAL(dpf_channel_open(path, DPF_WRITE, NULL, c, &e) == DPF_OK);
        CU_ASSERT_FATAL(dpf_stream_writer_init(&w, c, 1, &e) == DPF_OK);
        CU_ASSERT(dpf_stream_write_header(&w, &h, &e) == DPF_OK);
        CU_ASSERT(dpf_stream_write_batch(&w, &b, &e) == DPF_OK);
        CU_ASSERT(there(part) && !there(path));
        if (whole == 1)
            dpf_stream_writer_fail(&w);
        if (whole == 2)
            CU_ASSERT(dpf_stream_writer_finish(&w, &e) == DPF_OK);
        dpf_stream_writer_release(&w);
        CU_ASSERT(!there(part) && there(path) == (whole == 2));
    }
    dpf_batch_release(&b);
    dpf_header_release(&h);
    end();
}

static void test_follow(void)
{
    struct task writer, reader;
    begin();
    writer = task_at("", in_folder("s.mp"), 20);
    writer.pause_ms = 20;
    reader = task_at("follow:", in_folder("s.mp"), 0);
    start(0, DPF_READ, &reader); /* before there is anything */
    sleep_ms(50);
    start(1, DPF_WRITE, &writer);
    struct outcome *o = finish(0, 8);
    CU_ASSERT(got_all(o, 20));
    CU_ASSERT(ended(finish(1, 2), DPF_OK, ""));
    start(2, DPF_READ, &reader); /* and when it is whole */
    CU_ASSERT(got_all(finish(2, 8), 20));
    end();
}

static void test_follow_vanishes(void)
{
    struct task writer, reader;
    begin();
    writer = task_at("", in_folder("s.mp"), 20);
    writer.pause_ms = 30;
    writer.end_after = 5; /* then withdraws it */
    reader = task_at("follow:", in_folder("s.mp"), 0);
    start(1, DPF_WRITE, &writer);
    start(0, DPF_READ, &reader);
    struct outcome *o = finish(0, 5);
    CU_ASSERT(ended(o, DPF_BAD_STREAM, "stream ended before its trailer"));
    CU_ASSERT(o->consequence && o->records <= 5 * ROWS);
    CU_ASSERT(!there(in_folder("s.mp")) && !there(in_folder("s.mp.part")));
    end();
}

/* A followed file ends with its trailer like any other. */
static void test_follow_extra(void)
{
    struct task t;
    struct dpf_error e = {0};
    struct outcome o = {0};
    begin();
    t = task_at("", in_folder("s.mp"), 2);
    CU_ASSERT(run_writer(&t, &o, &e) == DPF_OK);
    FILE *f = fopen(in_folder("s.mp"), "ab");
    CU_ASSERT_FATAL(f != NULL);
    fputs("something behind the trailer", f);
    fclose(f);
    t = task_at("follow:", in_folder("s.mp"), 2);
    CU_ASSERT(
        refused(run_reader(&t, &o, &e), DPF_BAD_STREAM, &e, "data follows the trailer"));
    end();
}

/* ---- ZeroMQ ---- */

/* Both kinds of address, one after the other. */
static const char *address(int kind)
{
    static char text[400];
    if (kind == 0)
        snprintf(text, sizeof text, "ipc://%s/socket", fixture_folder);
    else
        snprintf(text, sizeof text, "tcp://%s", free_port("127.0.0.1"));
    return text;
}

static void test_zmq_one_to_one(void)
{
    for (int kind = 0; kind < 2; kind++) {
        begin();
        struct task t = task_at(address(kind), "", 300);
        start(1, DPF_WRITE, &t); /* waits for its reader */
        sleep_ms(50);
        start(0, DPF_READ, &t);
        CU_ASSERT(got_all(finish(0, 8), 300));
        CU_ASSERT(ended(finish(1, 8), DPF_OK, ""));
        end();
    }
}

static void test_zmq_many_to_one(void)
{
    for (int kind = 0; kind < 2; kind++) {
        begin();
        const char *where = address(kind);
        struct task reader = task_at(where, ",peers=4", 0),
                    writer = task_at(where, "", 50);
        start(0, DPF_READ, &reader);
        for (int i = 1; i <= 4; i++) {
            writer.base = i * 1000000;
            start(i, DPF_WRITE, &writer);
        }
        struct outcome *o = finish(0, 8);
        int64_t due = 0;
        for (int i = 1; i <= 4; i++) {
            due += sum_to(i * 1000000, 50);
            CU_ASSERT(ended(finish(i, 8), DPF_OK, ""));
        }
        CU_ASSERT(ended(o, DPF_OK, "") && o->records == 4 * 50 * ROWS && o->sum == due);
        end();
    }
}

static void test_zmq_one_to_many(void)
{
    for (int kind = 0; kind < 2; kind++) {
        begin();
        const char *where = address(kind);
        struct task writer = task_at(where, ",bind,peers=3", 100);
        struct task reader = task_at(where, ",connect", 0);
        start(0, DPF_WRITE, &writer);
        for (int i = 1; i <= 3; i++)
            start(i, DPF_READ, &reader);
        for (int i = 1; i <= 3; i++)
            CU_ASSERT(got_all(finish(i, 8), 100)); /* each of them gets everything */
        CU_ASSERT(ended(finish(0, 8), DPF_OK, ""));
        end();
    }
}

static void test_zmq_slow_reader(void)
{
    for (int kind = 0; kind < 2; kind++) {
        begin();
        struct task reader = task_at(address(kind), "", 0), writer = reader;
        reader.pause_ms = 800;
        writer.batches = 2000;
        start(0, DPF_READ, &reader);
        start(1, DPF_WRITE, &writer);
        struct outcome *o = finish(0, 8);
        CU_ASSERT(got_all(o, 2000));
        if (o->ahead > 20 || o->ahead == 0)
            printf("    the writer was %llu batches ahead\n",
                   (unsigned long long)o->ahead);
        CU_ASSERT(o->ahead >= 1 && o->ahead <= 20);
        CU_ASSERT(ended(finish(1, 8), DPF_OK, ""));
        end();
    }
}

/* Killed or frozen: the reader knows within seconds, and does not take what came for the
 * whole. */
static void check_writer_ends(int kind, int signal_number, double limit)
{
    begin();
    struct task reader = task_at(address(kind), "", 0), writer = reader;
    writer.batches = 50;
    writer.pause_ms = 20;
    writer.end_after = 5;
    writer.end_signal = signal_number;
    start(0, DPF_READ, &reader);
    start(1, DPF_WRITE, &writer);
    struct outcome *o = finish(0, 9);
    CU_ASSERT(ended(o, DPF_BAD_STREAM, "stream ended before its trailer"));
    CU_ASSERT(o->consequence && o->records == 5 * ROWS && o->seconds < limit);
    end();
}

static void test_zmq_writer_killed(void)
{
    check_writer_ends(0, SIGKILL, 6);
    check_writer_ends(1, SIGKILL, 6);
}

static void test_zmq_writer_frozen(void)
{
    check_writer_ends(1, SIGSTOP, 8);
}

/* One of several writers dies: the others' data does not make up for it. */
static void test_zmq_one_of_many_killed(void)
{
    begin();
    const char *where = address(1);
    struct task reader = task_at(where, ",peers=3", 0), writer = task_at(where, "", 20);
    writer.pause_ms = 10;
    start(0, DPF_READ, &reader);
    start(1, DPF_WRITE, &writer);
    start(2, DPF_WRITE, &writer);
    writer.end_after = 5;
    writer.end_signal = SIGKILL;
    start(3, DPF_WRITE, &writer);
    struct outcome *o = finish(0, 7);
    CU_ASSERT(ended(o, DPF_BAD_STREAM, "stream ended before its trailer"));
    CU_ASSERT(o->consequence);
    end();
}

static void test_zmq_reader_killed(void)
{
    begin();
    struct task reader = task_at(address(1), "", 0), writer = reader;
    reader.end_after = 3;
    reader.end_signal = SIGKILL;
    writer.batches = 100000;
    start(0, DPF_READ, &reader);
    start(1, DPF_WRITE, &writer);
    struct outcome *o = finish(1, 7);
    CU_ASSERT(ended(o, DPF_SYSTEM, "its reader is gone") && o->consequence);
    end();
}

static void test_zmq_withdrawn(void)
{
    begin();
    struct task reader = task_at(address(0), "", 0), writer = reader;
    writer.batches = 50;
    writer.end_after = 5; /* lets go without finishing */
    start(0, DPF_READ, &reader);
    start(1, DPF_WRITE, &writer);
    CU_ASSERT(ended(finish(0, 7), DPF_BAD_STREAM, "stream ended before its trailer"));
    end();
}

static void test_zmq_uninvited(void)
{
    begin();
    struct task reader = task_at(address(1), "", 0), writer = reader;
    writer.batches = 30;
    writer.pause_ms = 30;
    start(0, DPF_READ, &reader);
    start(1, DPF_WRITE, &writer);
    sleep_ms(400);
    writer.base = 1;
    start(2, DPF_WRITE, &writer); /* one too many */
    CU_ASSERT(ended(finish(2, 7), DPF_UNAVAILABLE, "takes no more peers"));
    CU_ASSERT(got_all(finish(0, 5), 30)); /* and the others do not notice */
    CU_ASSERT(ended(finish(1, 2), DPF_OK, ""));
    end();
}

static void test_zmq_wrong_way(void)
{
    begin();
    const char *where = address(1);
    struct task one = task_at(where, "", 0), two = task_at(where, ",connect", 0);
    start(0, DPF_READ, &one);
    start(1, DPF_READ, &two); /* two readers have nothing to say */
    CU_ASSERT(ended(finish(1, 7), DPF_UNAVAILABLE, "no dpflow stream in this direction"));
    end();
}

static void test_zmq_nobody(void)
{
    begin();
    struct task t = task_at(address(1), "", 1);
    struct dpf_error e = {0};
    struct dpf_channel *c;
    t.options.connect_seconds = 0.5;
    start(0, DPF_WRITE, &t);
    struct outcome *o = finish(0, 5);
    CU_ASSERT(ended(o, DPF_UNAVAILABLE, "nobody answers at 'tcp://127.0.0.1:"));
    CU_ASSERT(o->seconds > 0.3 && o->seconds < 3);
    const char *where = address(1);
    CU_ASSERT_FATAL(dpf_channel_open(where, DPF_READ, NULL, &c, &e) == DPF_OK);
    struct dpf_channel *again;
    CU_ASSERT(refused(dpf_channel_open(where, DPF_READ, NULL, &again, &e), DPF_SYSTEM, &e,
                      "cannot bind 'tcp://127.0.0.1:"));
    CU_ASSERT(strstr(e.message, "in use") != NULL && again == NULL);
    dpf_channel_destroy(&c);
    end();
}

static void check_endpoint(const char *endpoint, enum dpf_direction direction,
                           enum dpf_status status, const char *text)
{
    struct dpf_endpoint_options o = {.connect_seconds = 0.5};
    struct dpf_channel *c;
    struct dpf_error e = {0};
    enum dpf_status got = dpf_channel_open(endpoint, direction, &o, &c, &e);
    if (got == DPF_OK)
        dpf_channel_destroy(&c);
    CU_ASSERT(refused(got, status, &e, text));
}

static void test_zmq_endpoints_refused(void)
{
    check_endpoint("tcp://127.0.0.1:1,peers=0", DPF_READ, DPF_USAGE, "'peers=0' is not");
    check_endpoint("tcp://127.0.0.1:1,peers=9999", DPF_READ, DPF_USAGE, "is not bind");
    check_endpoint("tcp://127.0.0.1:1,peers=x", DPF_READ, DPF_USAGE, "'peers=x' is not");
    check_endpoint("tcp://127.0.0.1:1,quick", DPF_READ, DPF_USAGE, "'quick' is not bind");
    check_endpoint("tcp://127.0.0.1:1,", DPF_READ, DPF_USAGE, "'' is not bind");
    check_endpoint("tcp://127.0.0.1:1,peers=2", DPF_WRITE, DPF_USAGE,
                   "connects to one peer: peers=N goes with bind");
    check_endpoint("tcp://127.0.0.1", DPF_WRITE, DPF_USAGE, "is not tcp://HOST:PORT");
    check_endpoint("ipc:///no/such/folder/socket", DPF_READ, DPF_SYSTEM, "cannot bind");
}

/* A port that does not exist is not taken for another one (99999999 mod 65536). */
static void test_zmq_port_too_large(void)
{
    struct dpf_endpoint_options o = {.connect_seconds = 0.5};
    struct dpf_channel *c;
    struct dpf_error e = {0};
    CU_ASSERT(dpf_channel_open("tcp://127.0.0.1:99999999", DPF_READ, &o, &c, &e) !=
              DPF_OK);
    dpf_channel_destroy(&c);
    CU_ASSERT(dpf_channel_open("tcp://127.0.0.1:65536", DPF_READ, &o, &c, &e) != DPF_OK);
    dpf_channel_destroy(&c);
}

/* ---- CURVE ---- */

static void make_keys(void)
{
    static const char *const names[] = {"server", "client", "other"};
    struct dpf_error e = {0};
    for (int i = 0; i < 3; i++)
        CU_ASSERT_FATAL(dpf_curve_generate(in_folder(names[i]), &e) == DPF_OK);
}

/* A reader with server.key that admits client.pub, and a writer with these keys (or
 * none). */
static void check_curve(const char *own, const char *peer, bool works, const char *text)
{
    begin();
    make_keys();
    static char paths[4][400];
    static const char *client_pub[1], *writer_pub[1];
    snprintf(paths[0], sizeof paths[0], "%s/server.key", fixture_folder);
    snprintf(paths[1], sizeof paths[1], "%s/client.pub", fixture_folder);
    snprintf(paths[2], sizeof paths[2], "%s/%s", fixture_folder, own ? own : "");
    snprintf(paths[3], sizeof paths[3], "%s/%s", fixture_folder, peer ? peer : "");
    client_pub[0] = paths[1];
    writer_pub[0] = paths[3];
    struct task reader = task_at(address(1), "", 0), writer = reader;
    reader.options = (struct dpf_endpoint_options){
        .key_file = paths[0], .peer_keys = client_pub, .peer_key_count = 1};
    writer.options.connect_seconds = 2;
    if (own) {
        writer.options.key_file = paths[2];
        writer.options.peer_keys = writer_pub;
        writer.options.peer_key_count = 1;
    }
    writer.batches = 30;
    start(0, DPF_READ, &reader);
    start(1, DPF_WRITE, &writer);
    struct outcome *o = finish(1, 6);
    if (works) {
        CU_ASSERT(ended(o, DPF_OK, ""));
        CU_ASSERT(got_all(finish(0, 8), 30));
    } else {
        CU_ASSERT(o->status == DPF_SYSTEM || o->status == DPF_UNAVAILABLE);
        CU_ASSERT(ended(o, o->status, text) && o->batches == 0);
        CU_ASSERT(finish(0, 0.2)->batches == 0);
    }
    end();
}

static void test_curve_good(void)
{
    check_curve("client.key", "server.pub", true, "");
}

static void test_curve_wrong_client(void)
{
    check_curve("other.key", "server.pub", false, "does not accept our key");
}

static void test_curve_wrong_server(void)
{
    check_curve("client.key", "other.pub", false, "tcp://127.0.0.1:");
}

static void test_curve_without_keys(void)
{
    check_curve(NULL, NULL, false, "tcp://127.0.0.1:");
}

/* Streams leave this machine encrypted, or because someone said that they may. */
static void test_cleartext(void)
{
    static const char *const far[] = {
        "tcp://0.0.0.0:5", "tcp://*:5",    "tcp://192.0.2.1:5", "tcp://example.org:5",
        "tcp://[::]:5",    "tcp://eth0:5", "tcp://1270.0.0.1:5"};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        check_endpoint(far[i], DPF_READ, DPF_USAGE, "leaves this machine unencrypted");
        check_endpoint(far[i], DPF_WRITE, DPF_USAGE, "leaves this machine unencrypted");
    }
    struct dpf_endpoint_options o = {.cleartext = true};
    struct dpf_channel *c;
    struct dpf_error e = {0};
    char endpoint[80];
    snprintf(endpoint, sizeof endpoint, "tcp://%s", free_port("0.0.0.0"));
    CU_ASSERT_FATAL(dpf_channel_open(endpoint, DPF_READ, &o, &c, &e) == DPF_OK);
    dpf_channel_destroy(&c);
    begin();
    make_keys();
    const char *keys[] = {in_folder("client.pub"), in_folder("other.pub")};
    o = (struct dpf_endpoint_options){.key_file = in_folder("server.key")};
    CU_ASSERT(refused(dpf_channel_open("tcp://127.0.0.1:5", DPF_READ, &o, &c, &e),
                      DPF_USAGE, &e, "CURVE needs both --key and --peer-key"));
    o = (struct dpf_endpoint_options){.peer_keys = keys, .peer_key_count = 1};
    CU_ASSERT(refused(dpf_channel_open("tcp://127.0.0.1:5", DPF_READ, &o, &c, &e),
                      DPF_USAGE, &e, "CURVE needs both"));
    o = (struct dpf_endpoint_options){
        .key_file = in_folder("server.key"), .peer_keys = keys, .peer_key_count = 2};
    CU_ASSERT(refused(dpf_channel_open("tcp://127.0.0.1:5", DPF_WRITE, &o, &c, &e),
                      DPF_USAGE, &e, "give one --peer-key"));
    o.key_file = keys[1];
    CU_ASSERT(refused(dpf_channel_open("tcp://127.0.0.1:5", DPF_READ, &o, &c, &e),
                      DPF_USAGE, &e, "other.pub' holds no secret key"));
    end();
}

/* A name that begins like a loopback address is a name, and may be anywhere. */
static void test_cleartext_disguised(void)
{
    check_endpoint("tcp://127.example.org:5", DPF_WRITE, DPF_USAGE,
                   "leaves this machine unencrypted");
    check_endpoint("tcp://127.0.0.1.example.org:5", DPF_WRITE, DPF_USAGE,
                   "leaves this machine unencrypted");
    check_endpoint("tcp://127.0.0.1:0;192.0.2.1:5", DPF_WRITE, DPF_USAGE,
                   "is not tcp://HOST:PORT");
}

static void test_key_files(void)
{
    struct dpf_error e = {0};
    struct dpf_curve_key key, public_key;
    struct stat s;
    begin();
    mode_t old = umask(0);
    CU_ASSERT_FATAL(dpf_curve_generate(in_folder("k"), &e) == DPF_OK);
    umask(old);
    CU_ASSERT(stat(in_folder("k.key"), &s) == 0 && (s.st_mode & 07777) == 0600);
    CU_ASSERT_FATAL(dpf_curve_read(in_folder("k.key"), 1, &key, &e) == DPF_OK);
    CU_ASSERT_FATAL(dpf_curve_read(in_folder("k.pub"), 0, &public_key, &e) == DPF_OK);
    CU_ASSERT(strlen(key.public_text) == 40 && strlen(key.secret_text) == 40);
    CU_ASSERT_STRING_EQUAL(key.public_text, public_key.public_text);
    CU_ASSERT(public_key.secret_text[0] == '\0');
    char *text;
    CU_ASSERT_FATAL(dpf_read_file(in_folder("k.pub"), 4096, &text, NULL, &e) == DPF_OK);
    CU_ASSERT(strstr(text, key.secret_text) == NULL);
    free(text);
    CU_ASSERT(refused(dpf_curve_generate(in_folder("k"), &e), DPF_SYSTEM, &e, "k.key'"));
    struct dpf_curve_key again;
    CU_ASSERT(dpf_curve_read(in_folder("k.key"), 1, &again, &e) == DPF_OK);
    CU_ASSERT(memcmp(&key, &again, sizeof key) == 0); /* not overwritten */
    CU_ASSERT_FATAL(unlink(in_folder("k.key")) == 0);
    CU_ASSERT(refused(dpf_curve_generate(in_folder("k"), &e), DPF_SYSTEM, &e, "k.pub'"));
    CU_ASSERT(!there(in_folder("k.key"))); /* and not half a pair */
    CU_ASSERT(refused(dpf_curve_read(in_folder("k.pub"), 1, &key, &e), DPF_USAGE, &e,
                      "k.pub' holds no secret key"));
    static const char *const bad[] = {
        "",
        "public\n",
        "public short\n",
        "secret 0123456789012345678901234567890123456789\n",
        "public 012345678901234567890123456789012345678 \n",
        "public 01234567890123456789012345678901234567890\n",
        "public \"'`;,\\|~ 123456789012345678901234567890\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CU_ASSERT_FATAL(dpf_write_file(in_folder("bad"), bad[i], strlen(bad[i]), &e) ==
                        DPF_OK);
        CU_ASSERT(refused(dpf_curve_read(in_folder("bad"), 0, &key, &e), DPF_USAGE, &e,
                          "bad' is not a dpflow key file"));
    }
    CU_ASSERT(dpf_curve_read(in_folder("absent"), 0, &key, &e) == DPF_SYSTEM);
    end();
}

const char dpf_suite[] = "transport";

const struct dpf_test dpf_tests[] = {
    {"a stream over a pipe", test_pipe},
    {"pipe: the writer dies", test_pipe_writer_dies},
    {"pipe: the reader dies", test_pipe_reader_dies},
    {"descriptors and schemes refused", test_descriptors_refused},
    {"plug-ins that are there, and that are not", test_plugins},
    {"a frame that lies about its size", test_lying_size},
    {"a stream in a file", test_file},
    {"files are whole or absent", test_file_whole_or_absent},
    {"follow: a growing file", test_follow},
    {"follow: the file is withdrawn", test_follow_vanishes},
    {"follow: data behind the trailer", test_follow_extra},
    {"zmq: one writer, one reader", test_zmq_one_to_one},
    {"zmq: four writers, one reader", test_zmq_many_to_one},
    {"zmq: one writer, three readers", test_zmq_one_to_many},
    {"zmq: a slow reader holds its writer", test_zmq_slow_reader},
    {"zmq: the writer is killed", test_zmq_writer_killed},
    {"zmq: the writer freezes", test_zmq_writer_frozen},
    {"zmq: one of three writers is killed", test_zmq_one_of_many_killed},
    {"zmq: the reader is killed", test_zmq_reader_killed},
    {"zmq: the writer gives up", test_zmq_withdrawn},
    {"zmq: a writer too many", test_zmq_uninvited},
    {"zmq: two readers", test_zmq_wrong_way},
    {"zmq: nobody there, or somebody already", test_zmq_nobody},
    {"zmq: endpoints refused", test_zmq_endpoints_refused},
    {"zmq: ports above 65535", test_zmq_port_too_large},
    {"CURVE: good keys", test_curve_good},
    {"CURVE: a client that is not known", test_curve_wrong_client},
    {"CURVE: a server that is another", test_curve_wrong_server},
    {"CURVE: a client without keys", test_curve_without_keys},
    {"no cleartext beyond this machine", test_cleartext},
    {"no cleartext by a disguised address", test_cleartext_disguised},
    {"key files", test_key_files},
    {0},
};
