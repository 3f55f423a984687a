/* Bytes of a file in order, whether it is stored plain, as gzip or as xz.
 *
 * Data sets come compressed, and readers should not care. The packing is told by content,
 * not by name. Unpacked bytes go straight into the caller's memory, and nothing is held
 * but one input buffer, so a reader costs about what zcat costs. What a file says about
 * its own size is never believed: dpf_bytes_can_hold() tells a reader whether a claim is
 * possible before anything is allocated for it. */
#ifndef DPF_DATA_BYTES_H
#define DPF_DATA_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Records of one field larger than this are refused by every reader. */
#define DPF_MAX_RECORD_BYTES (256ull << 20)

struct dpf_bytes;

/* A member of an archive: `size` bytes of the file from `offset` on, stored or deflated,
 * that unpack to `unpacked` bytes with this CRC-32. */
struct dpf_bytes_part {
    uint64_t offset;
    uint64_t size;
    bool deflated;
    uint64_t unpacked;
    uint32_t crc;
};

/* Open a file: plain, gzip (several members allowed) or xz. DPF_SYSTEM if it cannot be
 * opened or read. */
enum dpf_status dpf_bytes_open(const char *path, struct dpf_bytes **take,
                               struct dpf_error *e);
/* The same over memory, which is borrowed and must outlive the bytes. `name` is for
 * messages and is copied. */
enum dpf_status dpf_bytes_open_memory(const void *data, size_t size, const char *name,
                                      struct dpf_bytes **take, struct dpf_error *e);
/* One member of an archive. `name` is for messages and is copied. */
enum dpf_status dpf_bytes_open_part(const char *path, const char *name,
                                    const struct dpf_bytes_part *part,
                                    struct dpf_bytes **take, struct dpf_error *e);

/* Up to `size` bytes into `buffer`; *got is less only at the end. A compressed file that
 * stops before its own end is DPF_BAD_STREAM "'FILE' ends early", one whose check fails
 * "'FILE' is damaged". */
enum dpf_status dpf_bytes_read(struct dpf_bytes *b, void *buffer, size_t size,
                               size_t *got, struct dpf_error *e);
/* Exactly `size` bytes; "'FILE' ends early, in its WHAT" if there are fewer. */
enum dpf_status dpf_bytes_read_exact(struct dpf_bytes *b, void *buffer, size_t size,
                                     const char *what, struct dpf_error *e);
/* Read and drop exactly `size` bytes. */
enum dpf_status dpf_bytes_skip(struct dpf_bytes *b, uint64_t size, const char *what,
                               struct dpf_error *e);
/* Whether nothing is left. Finding the end also verifies the checks that stand there. */
enum dpf_status dpf_bytes_at_end(struct dpf_bytes *b, bool *end, struct dpf_error *e);
/* DPF_BAD_STREAM unless nothing is left. */
enum dpf_status dpf_bytes_expect_end(struct dpf_bytes *b, struct dpf_error *e);

/* Whether the whole source could unpack to `size` bytes: exact for plain files, by the
 * largest ratio of the compressor otherwise. Pipes could hold anything. */
bool dpf_bytes_can_hold(const struct dpf_bytes *b, uint64_t size);
/* The number of bytes where it is known without reading: plain files and memory. */
bool dpf_bytes_known_size(const struct dpf_bytes *b, uint64_t *size);
/* The name for messages. Owned by b. */
const char *dpf_bytes_name(const struct dpf_bytes *b);
/* Close. NULL inside is fine. */
void dpf_bytes_destroy(struct dpf_bytes **b);

#endif
