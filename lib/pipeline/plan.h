/* From statements to processes: which streams can be reused, which process reads and
 * writes where, with which arguments.
 *
 * Every named stream is a file in the run directory's store, named by a fingerprint of
 * all that makes it (programs, options, data files, input streams): if it is there, it
 * need not be made. A stream with exactly one reader, as its standard input, also flows
 * there directly; any other reader follows the growing file. Direct edges thus never
 * fan out, so bounded buffers cannot deadlock, whatever order a stage reads its inputs
 * in. */
#ifndef DPF_PIPELINE_PLAN_H
#define DPF_PIPELINE_PLAN_H

#include <stdint.h>

#include "base/digest.h"
#include "pipeline/parse.h"

enum dpf_plumbing { DPF_PLUMB_PIPE, DPF_PLUMB_ZMQ, DPF_PLUMB_MPI };

struct dpf_plan_stream {
    char key[DPF_FINGERPRINT_HEX + 1];
    bool text;         /* a sink's text, not a stream */
    bool side_effects; /* also writes files of its own: never reused */
    uint64_t once;     /* then: what makes its key another one in every run */
    bool reused;
    bool twin; /* the same as an earlier one of this plan, which makes it */
    bool has_twin;
    bool direct;   /* has one reader, which it feeds without the file */
    char *stored;  /* path in the store */
    char *path;    /* path under its name */
    unsigned edge; /* of a direct stream */
};

/* One end of an edge that a process holds. */
struct dpf_plan_process {
    size_t statement, command;
    const char *stage;
    int line;
    char **argv; /* NULL-terminated; argv[0] is the program's path */
    size_t argc, argv_capacity;
    int stdin_fd, stdout_fd; /* pipes, or -1 */
    int *more_fds;           /* further pipe ends, named fd:N in argv */
    size_t more_count;
    char *status_path, *log_path;
};

struct dpf_plan {
    const struct dpf_pipeline *pipeline;
    enum dpf_plumbing plumbing;
    char *run_dir, *store, *work;    /* work: status files, logs, sockets */
    char *sockets;                   /* short private folder for ipc:// */
    struct dpf_plan_stream *streams; /* one a statement */
    struct dpf_plan_process *processes;
    size_t process_count, process_capacity;
    unsigned edge_count;
};

enum dpf_plan_mode {
    DPF_PLAN_REAL,
    DPF_PLAN_DRY,       /* only to be looked at */
    DPF_PLAN_DRY_FRESH, /* likewise, as if the store were empty */
};

/* Work everything out; nothing is started. `store` is shared by the points of a sweep.
 * A dry plan makes no folders. A stage that refuses its arguments says so here, with the
 * line of the pipeline file. */
enum dpf_status dpf_plan_make(struct dpf_plan *plan, const struct dpf_pipeline *pipeline,
                              enum dpf_plumbing plumbing, const char *run_dir,
                              const char *store, enum dpf_plan_mode mode,
                              struct dpf_error *e);
/* After a run: fail if a file that a stage reads has changed since the plan was made, for
 * then nobody knows what streams were made of. All of this run leave the store. */
enum dpf_status dpf_plan_verify(struct dpf_plan *plan, struct dpf_error *e);
/* Remove what this run has made from the store. */
void dpf_plan_discard(const struct dpf_plan *plan);
/* Close what is left open and remove the sockets; logs stay in the work folder. */
void dpf_plan_release(struct dpf_plan *plan);
/* "first-look.pipe:4: 'bits': normalize" for messages. heap. */
char *dpf_plan_process_name(const struct dpf_plan *plan,
                            const struct dpf_plan_process *process);

#endif
