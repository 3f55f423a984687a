#include "data/contents.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "data/bytes.h"

#include "base/banned.h"

enum { BLOCK = 1 << 18, SHA256_HEX = 2 * crypto_hash_sha256_BYTES };

static bool grow(struct dpf_contents *c)
{
    return dpf_grow(&c->roles, &c->role_capacity, c->count + 1, sizeof *c->roles) &&
           dpf_grow(&c->digests, &c->digest_capacity, c->count + 1, sizeof *c->digests);
}

static bool has_sum(crypto_hash_sha256_state *state, const char *sha256)
{
    unsigned char raw[crypto_hash_sha256_BYTES];
    char hex[SHA256_HEX + 1];
    crypto_hash_sha256_final(state, raw);
    sodium_bin2hex(hex, sizeof hex, raw, sizeof raw);
    return strcmp(hex, sha256) == 0;
}

/* The file as it lies there. */
static enum dpf_status has_sum_packed(const char *path, const char *sha256,
                                      unsigned char *block, bool *genuine,
                                      struct dpf_error *e)
{
    crypto_hash_sha256_state state;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    long long n = fd < 0 ? -1 : 1;
    crypto_hash_sha256_init(&state);
    while (n > 0) {
        n = dpf_read_full(fd, block, BLOCK);
        if (n > 0)
            crypto_hash_sha256_update(&state, block, (unsigned long long)n);
    }
    enum dpf_status status = n < 0 ? dpf_fail_errno(e, "cannot read '%s'", path) : DPF_OK;
    if (fd >= 0)
        close(fd);
    *genuine = has_sum(&state, sha256) && status == DPF_OK;
    return status;
}

static enum dpf_status digest_file(const char *path, const char *sha256,
                                   unsigned char out[DPF_CONTENT_BYTES], bool *genuine,
                                   struct dpf_error *e)
{
    crypto_generichash_state state;
    crypto_hash_sha256_state sum;
    struct dpf_bytes *bytes = NULL;
    unsigned char *block = malloc(BLOCK);
    size_t got = 1;
    enum dpf_status status = block ? dpf_bytes_open(path, &bytes, e) : dpf_fail_memory(e);
    bool packed_genuine = false;
    if (status == DPF_OK && sha256) /* first: it costs less than to unpack */
        status = has_sum_packed(path, sha256, block, &packed_genuine, e);
    crypto_generichash_init(&state, NULL, 0, DPF_CONTENT_BYTES);
    crypto_hash_sha256_init(&sum);
    while (status == DPF_OK && got > 0) {
        status = dpf_bytes_read(bytes, block, BLOCK, &got, e);
        if (status == DPF_OK)
            crypto_generichash_update(&state, block, got);
        if (status == DPF_OK && sha256 && !packed_genuine)
            crypto_hash_sha256_update(&sum, block, got);
    }
    crypto_generichash_final(&state, out, DPF_CONTENT_BYTES);
    if (genuine)
        *genuine = sha256 && (packed_genuine || has_sum(&sum, sha256));
    dpf_bytes_destroy(&bytes);
    free(block);
    return status;
}

enum dpf_status dpf_contents_add_file(struct dpf_contents *c, char role, const char *path,
                                      const char *sha256, bool *genuine,
                                      struct dpf_error *e)
{
    struct stat st;
    if (genuine)
        *genuine = false;
    if (!grow(c))
        return dpf_fail_memory(e);
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        c->unknown = true; /* a file that is not there is the reader's to report */
        return DPF_OK;
    }
    c->roles[c->count] = role;
    return digest_file(path, sha256, c->digests[c->count++], genuine, e);
}

enum dpf_status dpf_contents_add_text(struct dpf_contents *c, const char *text,
                                      struct dpf_error *e)
{
    if (!grow(c))
        return dpf_fail_memory(e);
    c->roles[c->count] = 'g';
    crypto_generichash(c->digests[c->count++], DPF_CONTENT_BYTES,
                       (const unsigned char *)text, strlen(text), NULL, 0);
    return DPF_OK;
}

uint64_t dpf_contents_copies(const struct dpf_contents *c)
{
    uint64_t most = 1;
    for (size_t i = 0; i < c->count; i++) {
        uint64_t same = 0;
        for (size_t k = 0; c->roles[i] == 'x' && k < c->count; k++)
            same += c->roles[k] == 'x' &&
                    memcmp(c->digests[i], c->digests[k], DPF_CONTENT_BYTES) == 0;
        most = same > most ? same : most;
    }
    return most;
}

void dpf_contents_release(struct dpf_contents *c)
{
    free(c->roles);
    free(c->digests);
    *c = (struct dpf_contents){.unknown = false};
}
