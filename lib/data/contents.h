/* What a data source holds, told by content: a digest of every file, whatever it is
 * called and however it is packed, so that the same records are recognised again. */
#ifndef DPF_DATA_CONTENTS_H
#define DPF_DATA_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DPF_CONTENT_BYTES = 64, DPF_CONTENT_NAME = 64 };

/* Zero-initialise. */
struct dpf_contents {
    bool unknown; /* a pipe or a device is among it, which can be read only once */
    /* A piece each: 'x' is a file of records, 'y' one of labels or masks, 'g' describes
     * what a generator makes or the program brings along. */
    char *roles;
    unsigned char (*digests)[DPF_CONTENT_BYTES]; /* BLAKE2b-512 */
    size_t count, role_capacity, digest_capacity;
    /* Published, embedded or generated: the set ("mnist", "synth-digits seed 0") and the
     * part of it ("train", "test", "all"); "" otherwise. Different parts of one set have
     * no record in common, but for those of `all`. */
    char set[DPF_CONTENT_NAME], part[DPF_CONTENT_NAME];
};

/* Add a file, unpacked. What cannot be read twice makes the contents unknown. If sha256
 * is given: *genuine is whether the file, as it is or unpacked, has this SHA-256 (hex).
 */
enum dpf_status dpf_contents_add_file(struct dpf_contents *c, char role, const char *path,
                                      const char *sha256, bool *genuine,
                                      struct dpf_error *e);
enum dpf_status dpf_contents_add_text(struct dpf_contents *c, const char *text,
                                      struct dpf_error *e);
/* How often the most frequent file of records is among them: 1 if all differ. */
uint64_t dpf_contents_copies(const struct dpf_contents *c);
void dpf_contents_release(struct dpf_contents *c);

#endif
