#include "data/contents.h"

#include <fcntl.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/bytes.h"

#include "base/banned.h"

enum { BLOCK = 1 << 18, SHA256_HEX = 2 * crypto_hash_sha256_BYTES };

static bool grow(struct dpf_contents *c)
{
    size_t n = c->count + 1;
    bool good = dpf_grow(&c->roles, &c->role_capacity, n, sizeof *c->roles) &&
                dpf_grow(&c->digests, &c->digest_capacity, n, sizeof *c->digests) &&
                dpf_grow(&c->files, &c->file_capacity, n, sizeof *c->files);
    if (good)
        c->files[c->count] = (struct dpf_content_file){.path = NULL};
    return good;
}

enum dpf_status dpf_contents_add_file(struct dpf_contents *c, char role, const char *path,
                                      const char *sha256, struct dpf_error *e)
{
    struct stat st;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        c->unknown = true; /* a file that is not there is the reader's to report */
        return DPF_OK;
    }
    char *copy = grow(c) ? dpf_strdup(path) : NULL;
    if (!copy)
        return dpf_fail_memory(e);
    c->roles[c->count] = role;
    c->files[c->count++] =
        (struct dpf_content_file){.path = copy, .sha256 = sha256, .found = st};
    return DPF_OK;
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

/* -------------------------------------------------------------------------- reading */

static bool has_sum(crypto_hash_sha256_state *state, const char *sha256)
{
    unsigned char raw[crypto_hash_sha256_BYTES];
    char hex[SHA256_HEX + 1];
    crypto_hash_sha256_final(state, raw);
    sodium_bin2hex(hex, sizeof hex, raw, sizeof raw);
    return strcmp(hex, sha256) == 0;
}

/* The file as it lies there. */
static enum dpf_status check_packed(struct dpf_content_file *file, unsigned char *block,
                                    struct dpf_error *e)
{
    crypto_hash_sha256_state state;
    int fd = open(file->path, O_RDONLY | O_CLOEXEC);
    long long n = fd < 0 ? -1 : 1;
    crypto_hash_sha256_init(&state);
    while (n > 0) {
        n = dpf_read_full(fd, block, BLOCK);
        if (n > 0)
            crypto_hash_sha256_update(&state, block, (unsigned long long)n);
    }
    enum dpf_status status =
        n < 0 ? dpf_fail_errno(e, "cannot read '%s'", file->path) : DPF_OK;
    if (fd >= 0)
        close(fd);
    file->genuine = status == DPF_OK && has_sum(&state, file->sha256);
    return status;
}

static enum dpf_status read_file(struct dpf_content_file *file,
                                 unsigned char out[DPF_CONTENT_BYTES],
                                 struct dpf_error *e)
{
    crypto_generichash_state state;
    crypto_hash_sha256_state sum;
    struct dpf_bytes *bytes = NULL;
    unsigned char *block = malloc(BLOCK);
    size_t got = 1;
    enum dpf_status status =
        block ? dpf_bytes_open(file->path, &bytes, e) : dpf_fail_memory(e);
    if (status == DPF_OK && file->sha256)
        status = check_packed(file, block, e);
    bool unpacked = file->sha256 && !file->genuine;
    crypto_generichash_init(&state, NULL, 0, DPF_CONTENT_BYTES);
    if (status == DPF_OK && file->genuine) { /* its sum says all: no need to unpack it */
        crypto_generichash_update(&state, (const unsigned char *)file->sha256,
                                  SHA256_HEX);
        got = 0;
    }
    crypto_hash_sha256_init(&sum);
    while (status == DPF_OK && got > 0) {
        status = dpf_bytes_read(bytes, block, BLOCK, &got, e);
        if (status == DPF_OK)
            crypto_generichash_update(&state, block, got);
        if (status == DPF_OK && unpacked)
            crypto_hash_sha256_update(&sum, block, got);
    }
    crypto_generichash_final(&state, out, DPF_CONTENT_BYTES);
    if (unpacked)
        file->genuine = has_sum(&sum, file->sha256);
    dpf_bytes_destroy(&bytes);
    free(block);
    return status;
}

struct reading {
    struct dpf_contents *c;
    atomic_size_t next;
    pthread_mutex_t lock;
    struct dpf_error first; /* of the file that was named first */
    size_t first_index;
};

static void read_some(void *context, int number)
{
    struct reading *r = context;
    (void)number;
    for (size_t i; (i = atomic_fetch_add(&r->next, 1)) < r->c->count;) {
        struct dpf_error own = {.status = DPF_OK};
        if (!r->c->files[i].path)
            continue;
        own.status = read_file(&r->c->files[i], r->c->digests[i], &own);
        pthread_mutex_lock(&r->lock);
        if (own.status != DPF_OK && (r->first.status == DPF_OK || i < r->first_index)) {
            r->first = own;
            r->first_index = i;
        }
        pthread_mutex_unlock(&r->lock);
    }
}

enum dpf_status dpf_contents_read(struct dpf_contents *c, struct dpf_error *e)
{
    struct reading r = {.c = c, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct dpf_thread_pool pool;
    size_t most = (size_t)dpf_processors();
    int threads = (int)(c->count < most ? c->count : most);
    if (threads > 1 && dpf_thread_pool_init(&pool, threads, NULL) == DPF_OK) {
        dpf_thread_pool_run(&pool, read_some, &r);
        dpf_thread_pool_release(&pool);
    }
    read_some(&r, 0); /* what is left: all of it, without threads */
    if (r.first.status != DPF_OK && e)
        *e = r.first;
    return r.first.status;
}

/* ------------------------------------------------------------------------ questions */

bool dpf_contents_genuine(const struct dpf_contents *c)
{
    bool all = !c->unknown;
    for (size_t i = 0; i < c->count; i++)
        all = all && (!c->files[i].path || c->files[i].genuine);
    return all;
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

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

enum dpf_status dpf_contents_unchanged(const struct dpf_contents *c, struct dpf_error *e)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct stat *was = &c->files[i].found;
        struct stat is;
        if (c->files[i].path &&
            (stat(c->files[i].path, &is) != 0 || is.st_dev != was->st_dev ||
             is.st_ino != was->st_ino || is.st_size != was->st_size ||
             !same_time(&is.st_mtim, &was->st_mtim) ||
             !same_time(&is.st_ctim, &was->st_ctim)))
            return dpf_fail(e, DPF_SYSTEM, "'%s' was changed while it was read",
                            c->files[i].path);
    }
    return DPF_OK;
}

void dpf_contents_release(struct dpf_contents *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->files[i].path);
    free(c->files);
    free(c->roles);
    free(c->digests);
    *c = (struct dpf_contents){.unknown = false};
}
