/* A curator: from many owners' streams to one of all their records. Whose streams are
 * expected, which have come, and where they are kept. Streams are randomised records; or
 * answers of teachers without noise, which the curator is trusted to keep for itself.
 *
 * An owner's stream counts whole or not at all: it grows in a file of its own, is checked
 * when its trailer has come, and gets its name when it is on the disk. Then, and only
 * then, the owner is told. So no record is lost or doubled whoever dies when, and a
 * curator that is started again goes on where it was. */
#ifndef DPF_STAGE_COLLECT_H
#define DPF_STAGE_COLLECT_H

#include "stage/stage.h"
#include "transport/collector.h"

struct dpf_curator_owner {
    char *path, *part; /* where its stream is kept, and where it grows */
    int fd;            /* of `part`; -1: not open */
    uint64_t bytes;
    bool done;
    bool heard; /* in this run */
};

/* A teacher whose answers are kept, and whose key they came with. */
struct dpf_curator_teacher {
    uint64_t id;
    size_t owner;
};

struct dpf_curator {
    /* what the user asked for */
    const char *endpoint, *store, *owner_keys;
    int64_t enough;      /* owners; 0: all */
    double until;        /* seconds; 0: for ever */
    int64_t owner_bytes; /* most that one owner may send */
    bool hear_all;       /* wait also for those whose streams are kept from before */
    bool answers;        /* of teachers, instead of randomised records */
    /* what it takes */
    const char **keys; /* files, in the owners' order */
    size_t key_count, key_capacity, done, heard;
    char **found; /* names of files in owner_keys, owned */
    size_t found_count;
    int store_fd; /* the folder, locked */
    bool store_open;
    struct dpf_collector *collector;
    struct dpf_curator_owner *owners;
    struct dpf_header like; /* of the first stream: all others have to be like it */
    bool has_like;
    struct dpf_curator_teacher *teachers; /* of all streams that are kept */
    size_t teacher_count, teacher_capacity;
    struct dpf_stream_reader reader; /* of the owner whose records are passed on */
    bool reading;
    size_t next;
};

/* Wait for the owners' streams. */
enum dpf_status dpf_curator_gather(struct dpf_curator *c, struct dpf_stage *s,
                                   struct dpf_error *e);
/* Give up what an owner has sent so far. */
void dpf_curator_forget_part(struct dpf_curator_owner *o);
/* The ledgers are put together by the one who knows that owners are different people: the
 * rest of a header. */
enum dpf_status dpf_curator_merge_provenance(struct dpf_header *into,
                                             const struct dpf_header *other,
                                             struct dpf_error *e);

/* Whether a stream with this header may be here at all; DPF_PRIVACY if not. */
enum dpf_status dpf_curator_check_header(const struct dpf_curator *c,
                                         const struct dpf_header *h, struct dpf_error *e);
/* Answers of teachers: whether they are to the queries of those that are kept. */
enum dpf_status dpf_curator_check_asked(const struct dpf_curator *c,
                                        const struct dpf_header *h, struct dpf_error *e);
/* Whether those of this owner can stand beside the others'. */
enum dpf_status dpf_curator_check_teachers(const struct dpf_curator *c, size_t owner,
                                           const struct dpf_header *h,
                                           struct dpf_error *e);
/* They are kept: remember whose they are. */
enum dpf_status dpf_curator_keep_teachers(struct dpf_curator *c, size_t owner,
                                          const struct dpf_header *h,
                                          struct dpf_error *e);
/* A folder that nobody else can enter: made so, or refused with DPF_PRIVACY. */
enum dpf_status dpf_curator_close_folder(const char *path, struct dpf_error *e);

/* Wait for the streams; then the header of all of them together, into s->out. */
enum dpf_status dpf_collect_open(struct dpf_stage *s, struct dpf_error *e);
/* The next batch, in the order of the keys; an empty one at the end. */
enum dpf_status dpf_collect_produce(struct dpf_stage *s, struct dpf_batch *b,
                                    struct dpf_error *e);
void dpf_collect_release(struct dpf_stage *s);

#endif
