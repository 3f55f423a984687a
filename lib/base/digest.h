/* Two digests with two jobs.
 *
 * dpf_checksum (XXH3, 128 bits) stands in the trailer of every stream: it finds every
 * accident (flipped bits, lost or doubled blocks) at memory speed. It is not a signature:
 * someone who can rewrite a stream can rewrite its checksum. Authentication on the way is
 * CURVE's job.
 *
 * dpf_fingerprint (BLAKE2b, 256 bits) names content for the reuse of finished streams,
 * where a collision would silently give a wrong result. */
#ifndef DPF_BASE_DIGEST_H
#define DPF_BASE_DIGEST_H

#include <stddef.h>

#include "base/status.h"

enum { DPF_CHECKSUM_TEXT = 40, DPF_FINGERPRINT_HEX = 64 };

struct dpf_checksum; /* heap, because its state is large and aligned */
struct dpf_checksum *dpf_checksum_new(void);
void dpf_checksum_reset(struct dpf_checksum *c);
void dpf_checksum_update(struct dpf_checksum *c, const void *data, size_t size);
/* "xxh128:" and 32 hexadecimal digits (canonical, big-endian) of everything so far; may
 * be called more than once. */
void dpf_checksum_text(const struct dpf_checksum *c, char out[DPF_CHECKSUM_TEXT]);
void dpf_checksum_destroy(struct dpf_checksum **c);

struct dpf_fingerprint {
    _Alignas(64) unsigned char state[384];
};
void dpf_fingerprint_init(struct dpf_fingerprint *f);
void dpf_fingerprint_add(struct dpf_fingerprint *f, const void *data, size_t size);
/* A string with its length, so that "ab","c" and "a","bc" differ. */
void dpf_fingerprint_add_string(struct dpf_fingerprint *f, const char *string);
/* BLAKE2b-256 of a file's content, as `b2sum -l 256` prints it. */
enum dpf_status dpf_fingerprint_file(const char *path, char out[DPF_FINGERPRINT_HEX + 1],
                                     struct dpf_error *e);
enum dpf_status dpf_fingerprint_add_file(struct dpf_fingerprint *f, const char *path,
                                         struct dpf_error *e);
void dpf_fingerprint_hex(struct dpf_fingerprint *f, char out[DPF_FINGERPRINT_HEX + 1]);

#endif
