#include "base/digest.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/file.h"
#include "base/memory.h"

#include "base/banned.h"

struct dpf_checksum {
    XXH3_state_t *state;
};

struct dpf_checksum *dpf_checksum_new(void)
{
    struct dpf_checksum *c = dpf_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->state = XXH3_createState();
    if (!c->state) {
        free(c);
        return NULL;
    }
    dpf_checksum_reset(c);
    return c;
}

void dpf_checksum_reset(struct dpf_checksum *c)
{
    XXH3_128bits_reset(c->state);
}

void dpf_checksum_update(struct dpf_checksum *c, const void *data, size_t size)
{
    if (size)
        XXH3_128bits_update(c->state, data, size);
}

void dpf_checksum_text(const struct dpf_checksum *c, char out[DPF_CHECKSUM_TEXT])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(c->state));
    memcpy(out, "xxh128:", 7);
    sodium_bin2hex(out + 7, DPF_CHECKSUM_TEXT - 7, canonical.digest,
                   sizeof canonical.digest);
}

void dpf_checksum_destroy(struct dpf_checksum **c)
{
    if (!*c)
        return;
    XXH3_freeState((*c)->state);
    free(*c);
    *c = NULL;
}

_Static_assert(sizeof(crypto_generichash_state) <= sizeof(struct dpf_fingerprint),
               "libsodium's BLAKE2b state fits");

void dpf_fingerprint_init(struct dpf_fingerprint *f)
{
    crypto_generichash_init((crypto_generichash_state *)(void *)f->state, NULL, 0,
                            DPF_FINGERPRINT_HEX / 2);
}

void dpf_fingerprint_add(struct dpf_fingerprint *f, const void *data, size_t size)
{
    crypto_generichash_update((crypto_generichash_state *)(void *)f->state, data, size);
}

void dpf_fingerprint_add_string(struct dpf_fingerprint *f, const char *string)
{
    uint64_t size = strlen(string);
    dpf_fingerprint_add(f, &size, sizeof size);
    dpf_fingerprint_add(f, string, size);
}

enum dpf_status dpf_fingerprint_file(const char *path, char out[DPF_FINGERPRINT_HEX + 1],
                                     struct dpf_error *e)
{
    enum { BLOCK = 1 << 18 };
    struct dpf_fingerprint f;
    dpf_fingerprint_init(&f);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return dpf_fail_errno(e, "cannot read '%s'", path);
    enum dpf_status status = DPF_OK;
    unsigned char *block = malloc(BLOCK);
    long long n = block ? 1 : 0;
    if (!block)
        status = dpf_fail_memory(e);
    while (n > 0) {
        n = dpf_read_full(fd, block, BLOCK);
        if (n < 0)
            status = dpf_fail_errno(e, "cannot read '%s'", path);
        else
            dpf_fingerprint_add(&f, block, (size_t)n);
    }
    dpf_fingerprint_hex(&f, out);
    free(block);
    close(fd);
    return status;
}

enum dpf_status dpf_fingerprint_add_file(struct dpf_fingerprint *f, const char *path,
                                         struct dpf_error *e)
{
    char hex[DPF_FINGERPRINT_HEX + 1];
    enum dpf_status status = dpf_fingerprint_file(path, hex, e);
    if (status == DPF_OK)
        dpf_fingerprint_add_string(f, hex);
    return status;
}

void dpf_fingerprint_hex(struct dpf_fingerprint *f, char out[DPF_FINGERPRINT_HEX + 1])
{
    unsigned char raw[DPF_FINGERPRINT_HEX / 2];
    crypto_generichash_final((crypto_generichash_state *)(void *)f->state, raw,
                             sizeof raw);
    sodium_bin2hex(out, DPF_FINGERPRINT_HEX + 1, raw, sizeof raw);
}
