/* The members of a zip archive, of which a .npz file is one. NumPy's arrays and the
 * container they are shipped in are two formats by two authors; here is the container, so
 * that npy.c is only about arrays. Nothing is unpacked here: a member becomes a part of
 * the file that data/bytes.h streams and checks.
 *
 * The central directory at the end of the file is what counts, with the 64-bit numbers of
 * archives over 4 GiB; every offset and size is checked against the file before it is
 * used. Not read are encrypted members, methods other than stored and deflated, and
 * archives in several files. */
#ifndef DPF_DATA_ZIP_H
#define DPF_DATA_ZIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/bytes.h"

struct dpf_zip;

/* An entry of the directory, as the archive tells it. */
struct dpf_zip_member {
    const unsigned char *name; /* any bytes, not terminated; owned by the archive */
    size_t name_size;
    bool readable;              /* not encrypted, and stored or deflated */
    struct dpf_bytes_part part; /* its offset is that of the member's local header */
};

/* Open an archive. *take is NULL, without failure, if the file does not start like one.
 * DPF_BAD_STREAM "'FILE' is a damaged zip" if it starts like one and has no directory;
 * DPF_SYSTEM if it cannot be read. `path` is borrowed and must outlive the archive, which
 * is ended by dpf_zip_destroy(). */
enum dpf_status dpf_zip_open(const char *path, struct dpf_zip **take,
                             struct dpf_error *e);
/* The number of members that the archive claims. Only dpf_zip_next() allocates anything
 * for the directory, so a count can be refused first. */
uint64_t dpf_zip_count(const struct dpf_zip *z);
/* The next entry of the directory; to be called dpf_zip_count() times at most.
 * DPF_BAD_STREAM if the directory is damaged or larger than 1 MiB. */
enum dpf_status dpf_zip_next(struct dpf_zip *z, struct dpf_zip_member *m,
                             struct dpf_error *e);
/* The content of a member. Messages call it 'FILE:NAME'; `name` is copied. *take is the
 * caller's and may outlive the archive. DPF_BAD_STREAM if the member is not readable or
 * does not lie within the file. */
enum dpf_status dpf_zip_open_member(const struct dpf_zip *z,
                                    const struct dpf_zip_member *m, const char *name,
                                    struct dpf_bytes **take, struct dpf_error *e);
/* Close. NULL inside is fine. */
void dpf_zip_destroy(struct dpf_zip **z);

#endif
