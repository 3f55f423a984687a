#include "random/secure.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "base/banned.h"

static atomic_uint_fast64_t forks;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int sodium_state = -1;

static void count_fork(void)
{
    atomic_fetch_add(&forks, 1);
}

static void prepare(void)
{
    sodium_state = sodium_init();
    pthread_atfork(NULL, NULL, count_fork);
}

enum dpf_status dpf_random_init(struct dpf_random *r, struct dpf_error *e)
{
    pthread_once(&once, prepare);
    if (sodium_state < 0)
        return dpf_fail(e, DPF_SYSTEM, "the operating system gives no random numbers");
    r->refills = 0;
    r->seeded = false;
    r->used = sizeof r->bytes;
    r->forks = atomic_load(&forks);
    randombytes_buf(r->key, sizeof r->key);
    return DPF_OK;
}

void dpf_random_init_insecure(struct dpf_random *r, const char *purpose, uint64_t seed,
                              uint64_t index)
{
    unsigned char all[32 + 2 * sizeof seed];
    pthread_once(&once, prepare);
    crypto_generichash(all, 32, (const unsigned char *)purpose, strlen(purpose), NULL, 0);
    memcpy(all + 32, &seed, sizeof seed);
    memcpy(all + 32 + sizeof seed, &index, sizeof index);
    r->refills = 0;
    r->seeded = true;
    r->used = sizeof r->bytes;
    r->forks = atomic_load(&forks);
    crypto_generichash(r->key, sizeof r->key, all, sizeof all, NULL, 0);
}

void dpf_random_release(struct dpf_random *r)
{
    sodium_memzero(r, sizeof *r);
    r->used = sizeof r->bytes;
    r->forks = ~(uint64_t)0; /* whoever draws all the same gets a new key, not this one */
}

static void refill(struct dpf_random *r)
{
    uint32_t *out = (uint32_t *)(void *)r->bytes;
    const size_t words = (size_t)DPF_RANDOM_BLOCKS * 16;
    for (size_t at = 0; at < sizeof r->bytes / sizeof *out; at += words)
        dpf_chacha20_words(r->key, 0, at / 16, out + at);
    memcpy(r->key, r->bytes, sizeof r->key);
    memset(r->bytes, 0, sizeof r->key);
    r->used = sizeof r->key;
    r->refills++;
}

/* A copy of the stream in a forked process goes its own way. A seeded one stays what its
 * seed makes it. */
static inline void mind_forks(struct dpf_random *r)
{
    uint64_t now = atomic_load_explicit(&forks, memory_order_relaxed);
    if (r->forks == now)
        return;
    r->forks = now;
    if (r->seeded)
        return;
    randombytes_buf(r->key, sizeof r->key);
    r->used = sizeof r->bytes;
}

uint64_t dpf_random_u64(struct dpf_random *r)
{
    uint64_t value;
    mind_forks(r);
    if (r->used + sizeof value > sizeof r->bytes)
        refill(r);
    memcpy(&value, r->bytes + r->used, sizeof value);
    r->used += sizeof value;
    return value;
}

void dpf_random_bytes(struct dpf_random *r, void *out, size_t size)
{
    unsigned char *to = out;
    mind_forks(r);
    while (size > 0) {
        if (r->used == sizeof r->bytes)
            refill(r);
        size_t part = sizeof r->bytes - r->used;
        part = part < size ? part : size;
        memcpy(to, r->bytes + r->used, part);
        r->used += part;
        to += part;
        size -= part;
    }
}

const unsigned char *dpf_random_take(struct dpf_random *r, size_t size)
{
    mind_forks(r);
    if (r->used + size > sizeof r->bytes)
        refill(r);
    r->used += size;
    return r->bytes + r->used - size;
}

uint64_t dpf_random_below(struct dpf_random *r, uint64_t n)
{
    uint64_t reject = (0 - n) % n, draw; /* 2^64 mod n values at the bottom are redrawn */
    do
        draw = dpf_random_u64(r);
    while (draw < reject);
    return draw % n;
}
