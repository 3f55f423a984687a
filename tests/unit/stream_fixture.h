/* What several unit tests need: a folder of their own, a check of refusals, streams
 * built frame by frame, and children that may crash or hang without taking the test
 * program with them. */
#ifndef DPF_TESTS_STREAM_FIXTURE_H
#define DPF_TESTS_STREAM_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/digest.h"
#include "base/file.h"
#include "harness.h"
#include "ledger/merge.h"
#include "transport/transport.h"
#include "wire/stream.h"

/* ---- a folder ---- */

static char fixture_folder[256];

static inline void folder_begin(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(fixture_folder, sizeof fixture_folder, "%s/dpf-%s-XXXXXX",
             base ? base : "/tmp", dpf_suite);
    CU_ASSERT_FATAL(mkdtemp(fixture_folder) != NULL);
}

static inline void folder_end(void)
{
    dpf_remove_tree(fixture_folder);
}

/* The path of a file in the folder; up to eight live at a time. */
static inline const char *in_folder(const char *name)
{
    static char paths[8][400];
    static int turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", fixture_folder, name);
    return path;
}

static inline bool there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* ---- refusals ---- */

static inline bool refused(enum dpf_status got, enum dpf_status due,
                           const struct dpf_error *e, const char *text)
{
    bool good = got == due && e->status == due && strstr(e->message, text) != NULL;
    if (!good)
        printf("    %d '%s', not %d '%s'\n", got, e->message, due, text);
    return good;
}

/* ---- children ---- */

/* Run `run` in a child for at most `ms` milliseconds: its result (0 to 127), 128 and the
 * signal that ended it, or -1. */
static inline int in_child(int (*run)(void *context), void *context, long ms)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct itimerval limit = {.it_value = {ms / 1000, ms % 1000 * 1000}};
        setitimer(ITIMER_REAL, &limit, NULL);
        _exit(run(context));
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- streams by hand ---- */

struct maker {
    struct dpf_buffer out;
    struct dpf_encoder enc;
    unsigned frames;
};

/* Put what the encoder holds behind the frames that are there. */
static inline void maker_frame(struct maker *m)
{
    struct iovec *parts;
    int count;
    size_t total;
    CU_ASSERT_FATAL(dpf_encoder_end(&m->enc, &parts, &count, &total, NULL) == DPF_OK);
    for (int i = 0; i < count; i++)
        dpf_buffer_append(&m->out, parts[i].iov_base, parts[i].iov_len);
    CU_ASSERT_FATAL(dpf_buffer_ok(&m->out));
    m->frames++;
}

static inline void maker_header(struct maker *m, const struct dpf_header *h)
{
    CU_ASSERT_FATAL(dpf_header_encode(&m->enc, h, NULL) == DPF_OK);
    maker_frame(m);
}

static inline void maker_batch(struct maker *m, const struct dpf_header *h,
                               const struct dpf_batch *b, uint64_t sequence)
{
    CU_ASSERT_FATAL(dpf_batch_encode(&m->enc, h, b, sequence, NULL) == DPF_OK);
    maker_frame(m);
}

/* A trailer with the checksum of all that stands in front of it. */
static inline void maker_trailer(struct maker *m, uint64_t records, const char *status)
{
    char digest[DPF_CHECKSUM_TEXT];
    struct dpf_checksum *c = dpf_checksum_new();
    CU_ASSERT_FATAL(c != NULL);
    dpf_checksum_update(c, m->out.data, m->out.size);
    dpf_checksum_text(c, digest);
    dpf_checksum_destroy(&c);
    unsigned frames = m->frames;
    dpf_encoder_begin(&m->enc, "trailer", 4);
    dpf_encode_key(&m->enc, "records");
    dpf_encode_uint(&m->enc, records);
    dpf_encode_key(&m->enc, "frames");
    dpf_encode_uint(&m->enc, frames);
    dpf_encode_key(&m->enc, "digest");
    dpf_encode_string(&m->enc, digest);
    dpf_encode_key(&m->enc, "status");
    dpf_encode_string(&m->enc, status);
    maker_frame(m);
}

static inline void maker_release(struct maker *m)
{
    dpf_buffer_release(&m->out);
    dpf_encoder_release(&m->enc);
    *m = (struct maker){0};
}

/* Read bytes as a stream to its end. */
static inline enum dpf_status read_bytes(const void *data, size_t size, uint64_t *records,
                                         struct dpf_error *e)
{
    struct dpf_channel *channel;
    struct dpf_stream_reader r;
    enum dpf_item item = DPF_ITEM_BATCH;
    *records = 0;
    CU_ASSERT_FATAL(dpf_channel_from_memory(data, size, &channel, NULL) == DPF_OK);
    enum dpf_status status = dpf_stream_reader_open(&r, channel, dpf_ledger_merge, e);
    if (status != DPF_OK)
        return status;
    while (status == DPF_OK && item != DPF_ITEM_END)
        status = dpf_stream_reader_next(&r, &item, e);
    *records = r.records;
    dpf_stream_reader_release(&r);
    return status;
}

static inline enum dpf_status read_made(const struct maker *m, struct dpf_error *e)
{
    uint64_t records;
    return read_bytes(m->out.data, m->out.size, &records, e);
}

#endif
