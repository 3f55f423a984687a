/* Randomness for mechanisms: a ChaCha20 stream keyed by the operating system.
 *
 * One struct a thread. Each refill takes its first 32 bytes as the key of the next one
 * and forgets the old key, so whoever reads the memory later cannot compute what was
 * drawn before the last refill (4 KiB at most). A process that forked draws a new key
 * before it draws anything else: parent and child never share noise.
 *
 * The words of a refill are ChaCha20's, in the order in which sixteen blocks side by side
 * produce them (all first words, then all second words, ...): vector code then needs no
 * transposition. dpf_chacha20_words() says exactly which word stands where. */
#ifndef DPF_RANDOM_SECURE_H
#define DPF_RANDOM_SECURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { DPF_RANDOM_BLOCKS = 16, DPF_RANDOM_REFILL = 4 * DPF_RANDOM_BLOCKS * 64 };

struct dpf_random {
    unsigned char bytes[DPF_RANDOM_REFILL]; /* first: as aligned as the struct */
    unsigned char key[32];
    uint64_t refills;
    uint64_t forks; /* how often the process had forked when the key was drawn */
    size_t used;    /* of bytes */
    bool seeded;    /* drawn from a seed that someone chose: no protection */
};

/* A key from the operating system. DPF_SYSTEM if there is none to be had. */
enum dpf_status dpf_random_init(struct dpf_random *r, struct dpf_error *e);
/* For experiments and tests: the same purpose, seed and index give the same draws. The
 * ledger of whatever uses it has to say so. */
void dpf_random_init_insecure(struct dpf_random *r, const char *purpose, uint64_t seed,
                              uint64_t index);
/* Forget key and draws. */
void dpf_random_release(struct dpf_random *r);

/* Every call minds forks: a child that was given a copy of the stream draws a new key,
 * also if bytes of the old one are left. */
uint64_t dpf_random_u64(struct dpf_random *r);
void dpf_random_bytes(struct dpf_random *r, void *out, size_t size);
/* The next `size` bytes, at most 512, where they lie; valid until the next draw. What is
 * left of a refill that is too short is passed over. */
const unsigned char *dpf_random_take(struct dpf_random *r, size_t size);
/* Uniform in [0, n) without bias; n > 0. */
uint64_t dpf_random_below(struct dpf_random *r, uint64_t n);

/* 16 ChaCha20 blocks from counter `first` on: out[w * 16 + b] is word w of block
 * first + b. The key is 32 bytes; the nonce is 64 bits. */
void dpf_chacha20_words(const unsigned char key[32], uint64_t nonce, uint64_t first,
                        uint32_t out[256]);

#endif
