/* What an owner has released before: for every record the very bits that left, so that a
 * record that has to be sent again is sent as it was. Randomising it anew would be a
 * second release, and cost as much again.
 *
 * The memory is a file that grows by chunks. A chunk is on the disk before any of it
 * leaves the process; one that was cut off when the process died never left, so it is
 * dropped. Anything else that is wrong (a disk that lost power in the middle of a write
 * may leave zeros) stops the owner: what has left is then not known. Beside what left,
 * each record's input is remembered as a digest, and a record that is not the one of
 * before is refused. The file is as private as the records (mode 0600). */
#ifndef DPF_STAGE_RELEASE_MEMORY_H
#define DPF_STAGE_RELEASE_MEMORY_H

#include "base/digest.h"
#include "stage/stage.h"

struct dpf_release_memory {
    int fd;
    bool open;
    const char *path; /* borrowed */
    size_t row_bytes; /* of what left for one record, all fields */
    uint64_t *offsets;
    size_t count, capacity; /* records in the file */
    uint64_t next;          /* the record to come */
    uint64_t pending_rows;
    struct dpf_buffer pending; /* the chunk in the making */
    unsigned char *row;        /* room for one entry */
    struct dpf_checksum *checksum;
};

/* Open or make the file for what the stage's options and output header describe. A memory
 * of something else is DPF_PRIVACY, one in use by another process DPF_SYSTEM, a damaged
 * one DPF_BAD_STREAM. */
enum dpf_status dpf_release_memory_open(struct dpf_release_memory *m, const char *path,
                                        const struct dpf_stage *s, struct dpf_error *e);
/* If record `row` of `in`, the next one, has left before: what left, into the same row of
 * `out`. DPF_PRIVACY if another record stood in its place. */
enum dpf_status dpf_release_memory_recall(struct dpf_release_memory *m,
                                          const struct dpf_batch *in, uint64_t row,
                                          struct dpf_batch *out, bool *known,
                                          struct dpf_error *e);
/* It has not: remember what is to leave. */
enum dpf_status dpf_release_memory_add(struct dpf_release_memory *m,
                                       const struct dpf_batch *in, uint64_t row,
                                       const struct dpf_batch *out, struct dpf_error *e);
/* All of it on the disk: it may leave now. */
enum dpf_status dpf_release_memory_sync(struct dpf_release_memory *m,
                                        struct dpf_error *e);
void dpf_release_memory_release(struct dpf_release_memory *m);

#endif
