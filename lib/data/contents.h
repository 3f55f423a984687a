/* What a data source holds, told by content: a digest of every file, whatever it is
 * called and however it is packed, so that the same records are recognised again. */
#ifndef DPF_DATA_CONTENTS_H
#define DPF_DATA_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/status.h"

enum { DPF_CONTENT_BYTES = 64, DPF_CONTENT_NAME = 64 };

struct dpf_content_file {
    char *path; /* NULL: not a file */
    const char *sha256;
    bool genuine; /* it has the sum that was published */
    struct stat found;
};

/* Zero-initialise. */
struct dpf_contents {
    bool unknown; /* a pipe or a device is among it, which can be read only once */
    /* A piece each: 'x' is a file of records, 'y' one of labels or masks, 'g' describes
     * what a generator makes or the program brings along. */
    char *roles;
    unsigned char (
        *digests)[DPF_CONTENT_BYTES]; /* BLAKE2b-512 of unpacked bytes, or of
                                       * the published sum of a file that has it */
    struct dpf_content_file *files;
    size_t count, role_capacity, digest_capacity, file_capacity;
    /* Published, embedded or generated: the set ("mnist", "synth-digits seed 0") and the
     * part of it ("train", "test", "all"); "" otherwise. Different parts of one set have
     * no record in common, but for those of `all`. */
    char set[DPF_CONTENT_NAME], part[DPF_CONTENT_NAME];
};

/* Add a file. What cannot be read twice makes the contents unknown. `sha256`: what was
 * published of it, as it is or unpacked (hex; borrowed), or NULL. */
enum dpf_status dpf_contents_add_file(struct dpf_contents *c, char role, const char *path,
                                      const char *sha256, struct dpf_error *e);
enum dpf_status dpf_contents_add_text(struct dpf_contents *c, const char *text,
                                      struct dpf_error *e);
/* Read all files that were added, several at a time, and fill in their digests. */
enum dpf_status dpf_contents_read(struct dpf_contents *c, struct dpf_error *e);
/* Whether each file is what was published. */
bool dpf_contents_genuine(const struct dpf_contents *c);
/* How often the most frequent file of records is among them: 1 if all differ. */
uint64_t dpf_contents_copies(const struct dpf_contents *c);
/* DPF_SYSTEM if a file is not the one any more that the digest is of. */
enum dpf_status dpf_contents_unchanged(const struct dpf_contents *c, struct dpf_error *e);
void dpf_contents_release(struct dpf_contents *c);

#endif
