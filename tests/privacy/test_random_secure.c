/* The stream that protects people: ChaCha20 word for word, keys that are forgotten, forks
 * that go their own way, and exact draws on top of it. Where a test is statistical its
 * seed is fixed and its level is 1e-6; where a stream's bytes are set by hand the answer
 * is known exactly. */
#include "random/secure.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "random/bernoulli.h"

/* A second copy of the cipher under another name: its versions for other machines are
 * static, and this machine would otherwise run only one of them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define dpf_chacha20_words chacha_copy_words
#include "random/chacha.c"
#undef dpf_chacha20_words
#pragma GCC diagnostic pop

#include "base/banned.h"

static const double z_level = 4.8916; /* two-sided normal, 1e-6 */

/* Upper quantile of chi-square at 1e-6 (Wilson and Hilferty). */
static double chi_level(double freedom)
{
    double a = 2 / (9 * freedom);
    return freedom * pow(1 - a + 4.7534 * sqrt(a), 3);
}

static bool all_zero(const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++)
        if (p[i])
            return false;
    return true;
}

/* A stream whose next draws are these words; zero or more of chance follow. */
static void set_words(struct dpf_random *r, const uint64_t *list, size_t count)
{
    dpf_random_init_insecure(r, "by hand", 0, 0);
    r->used = sizeof r->bytes - count * sizeof *list;
    memcpy(r->bytes + r->used, list, count * sizeof *list);
}

static size_t words_left(const struct dpf_random *r)
{
    return (sizeof r->bytes - r->used) / sizeof(uint64_t);
}

/* -------------------------------------------------------------------------- cipher */

typedef void words_function(const unsigned char key[32], uint64_t nonce, uint64_t first,
                            uint32_t *out);

static const uint64_t nonces[] = {0, 1, 0x0123456789abcdef, ~(uint64_t)0};
static const uint64_t counters[] = {0,
                                    1,
                                    48,
                                    1000,
                                    0xfffffff0,
                                    0xfffffff1,
                                    0xfffffff8,
                                    0xffffffff,
                                    0x100000000,
                                    0x7ffffffffffffff8,
                                    0xfffffffefffffff9,
                                    0xfffffffffffffff0};

static void fill_key(unsigned char key[32], int which)
{
    for (int i = 0; i < 32; i++)
        key[i] = (unsigned char)(which == 0   ? 0
                                 : which == 1 ? 0xff
                                 : which == 2 ? i
                                              : i * 197 * which + which * 59);
}

/* How many words differ from libsodium's. */
static size_t against_sodium(words_function *words_of)
{
    static const unsigned char zeros[1024];
    size_t wrong = 0;
    for (int which = 0; which < 8; which++)
        for (size_t n = 0; n < sizeof nonces / sizeof *nonces; n++)
            for (size_t c = 0; c < sizeof counters / sizeof *counters; c++) {
                unsigned char key[32], stream[1024], nonce[8];
                uint32_t room[257], *out = room + 1, due; /* one off: no alignment */
                fill_key(key, which);
                memcpy(nonce, &nonces[n], 8);
                crypto_stream_chacha20_xor_ic(stream, zeros, sizeof stream, nonce,
                                              counters[c], key);
                room[0] = 0xabcdef01;
                words_of(key, nonces[n], counters[c], out);
                for (int b = 0; b < 16; b++)
                    for (int w = 0; w < 16; w++) {
                        memcpy(&due, stream + 64 * b + 4 * w, 4);
                        wrong += out[w * 16 + b] != due;
                    }
                wrong += room[0] != 0xabcdef01;
            }
    return wrong;
}

static void test_cipher(void)
{
    /* the first block of key 0, nonce 0 (Strombergson's test vectors, TC1) */
    static const unsigned char known[64] = {
        0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53,
        0x86, 0xbd, 0x28, 0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36,
        0xef, 0xcc, 0x8b, 0x77, 0x0d, 0xc7, 0xda, 0x41, 0x59, 0x7c, 0x51, 0x57, 0x48,
        0x8d, 0x77, 0x24, 0xe0, 0x3f, 0xb8, 0xd8, 0x4a, 0x37, 0x6a, 0x43, 0xb8, 0xf4,
        0x15, 0x18, 0xa1, 0x1c, 0xc3, 0x87, 0xb6, 0x69, 0xb2, 0xee, 0x65, 0x86};
    unsigned char key[32] = {0};
    uint32_t out[256], due;
    dpf_chacha20_words(key, 0, 0, out);
    for (int w = 0; w < 16; w++) {
        memcpy(&due, known + 4 * w, 4);
        CU_ASSERT(out[w * 16] == due);
    }
    CU_ASSERT(against_sodium(dpf_chacha20_words) == 0);
}

static void test_cipher_versions(void)
{
    CU_ASSERT(against_sodium(chacha_copy_words) == 0);
    CU_ASSERT(against_sodium(words_anywhere) == 0);
#if defined(__x86_64__)
    __builtin_cpu_init();
    CU_ASSERT(!__builtin_cpu_supports("avx2") || against_sodium(words_avx2) == 0);
    CU_ASSERT(!__builtin_cpu_supports("avx512f") || against_sodium(words_avx512) == 0);
#endif
}

/* ------------------------------------------------------------------------- streams */

/* A whole refill, by libsodium: all first words of sixteen blocks, then all second ones,
 * four times; its first 32 bytes are the next key. */
static void refill_by_sodium(const unsigned char key[32], unsigned char *bytes)
{
    static const unsigned char zeros[DPF_RANDOM_REFILL], nonce[8];
    unsigned char stream[DPF_RANDOM_REFILL];
    crypto_stream_chacha20_xor_ic(stream, zeros, sizeof stream, nonce, 0, key);
    for (int group = 0; group < 4; group++)
        for (int b = 0; b < 16; b++)
            for (int w = 0; w < 16; w++)
                memcpy(bytes + 1024 * group + 4 * (16 * w + b),
                       stream + 1024 * group + 64 * b + 4 * w, 4);
}

static void test_key_erasure(void)
{
    enum { WORDS = (DPF_RANDOM_REFILL - 32) / 8 };
    struct dpf_random r;
    unsigned char key[32], due[DPF_RANDOM_REFILL];
    for (int os = 0; os < 2; os++) {
        dpf_random_init_insecure(&r, "erasure", 3, 4);
        if (os) {
            CU_ASSERT_FATAL(dpf_random_init(&r, NULL) == DPF_OK);
        }
        CU_ASSERT(r.seeded == !os);
        for (int refill = 0; refill < 5; refill++) {
            memcpy(key, r.key, 32);
            refill_by_sodium(key, due);
            for (int i = 0; i < WORDS; i++) {
                uint64_t x = dpf_random_u64(&r), y;
                memcpy(&y, due + 32 + 8 * i, 8);
                CU_ASSERT(x == y);
                if (i == 0) {
                    CU_ASSERT(r.refills == (uint64_t)refill + 1);
                    CU_ASSERT(memcmp(r.key, due, 32) == 0);
                    CU_ASSERT(all_zero(r.bytes, 32));
                    /* neither the old key nor a copy of the new one is about */
                    CU_ASSERT(memmem(&r, sizeof r, key, 32) == NULL);
                    CU_ASSERT(memmem(r.bytes, sizeof r.bytes, due, 32) == NULL);
                }
            }
        }
    }
    /* what is left after the end */
    dpf_random_release(&r);
    CU_ASSERT(all_zero(r.bytes, sizeof r.bytes));
    CU_ASSERT(all_zero(r.key, sizeof r.key));
}

/* Equal words at any place of two lists; chance alone makes none. */
static size_t equal_words(const uint64_t *a, const uint64_t *b, size_t count)
{
    size_t equal = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            equal += a[i] == b[j];
    return equal;
}

static void test_inits_differ(void)
{
    enum { STREAMS = 6, COUNT = 600 };
    static uint64_t drawn[STREAMS][COUNT];
    struct dpf_random r;
    for (int s = 0; s < STREAMS; s++) {
        memset(&r, 0, sizeof r);
        CU_ASSERT_FATAL(dpf_random_init(&r, NULL) == DPF_OK);
        CU_ASSERT(!r.seeded);
        dpf_random_bytes(&r, drawn[s], sizeof drawn[s]);
    }
    for (int s = 0; s < STREAMS; s++)
        for (int t = s + 1; t < STREAMS; t++)
            CU_ASSERT(equal_words(drawn[s], drawn[t], COUNT) == 0);
    double ones = 0, bits = sizeof drawn * 8.0;
    for (size_t i = 0; i < STREAMS * COUNT; i++)
        ones += __builtin_popcountll(drawn[i / COUNT][i % COUNT]);
    /* not seeded: a wide bound, 12 deviations */
    CU_ASSERT(fabs(ones - bits / 2) < 12 * sqrt(bits) / 2);
}

static void test_insecure(void)
{
    static const struct {
        const char *purpose;
        uint64_t seed, index;
    } streams[] = {{"a", 1, 0},          {"b", 1, 0},          {"a", 2, 0},
                   {"a", 1, 1},          {"", 1, 0},           {"a", 1ull << 63, 0},
                   {"a", 1, 1ull << 63}, {"a", 1ull << 32, 0}, {"a", 0, 1},
                   {"aa", 1, 0},         {"a\1", 1, 0},        {"a", 0, 0}};
    enum { COUNT = sizeof streams / sizeof *streams, LENGTH = 600 };
    static uint64_t values[COUNT][LENGTH], again[LENGTH];
    struct dpf_random r;
    for (int s = 0; s < COUNT; s++) {
        memset(&r, s, sizeof r); /* what stood there before does not matter */
        dpf_random_init_insecure(&r, streams[s].purpose, streams[s].seed,
                                 streams[s].index);
        CU_ASSERT(r.seeded);
        dpf_random_bytes(&r, values[s], sizeof values[s]);
        memset(&r, 0x5a, sizeof r);
        dpf_random_init_insecure(&r, streams[s].purpose, streams[s].seed,
                                 streams[s].index);
        for (int i = 0; i < LENGTH; i++)
            again[i] = dpf_random_u64(&r);
        CU_ASSERT(memcmp(again, values[s], sizeof again) == 0);
    }
    for (int s = 0; s < COUNT; s++)
        for (int t = s + 1; t < COUNT; t++) {
            double same = 0, bits = 64.0 * LENGTH;
            CU_ASSERT(equal_words(values[s], values[t], LENGTH) == 0);
            for (int i = 0; i < LENGTH; i++)
                same += __builtin_popcountll(~(values[s][i] ^ values[t][i]));
            CU_ASSERT(fabs(same - bits / 2) < (z_level + 1) * sqrt(bits) / 2);
        }
}

static void test_bytes_order(void)
{
    enum { COUNT = 20000 };
    static const size_t sizes[] = {1,  3,    7,    8,    13,   0,    5,     4095,
                                   31, 4096, 4097, 9001, 4063, 4065, 12289, 2};
    static uint64_t by_word[COUNT];
    static unsigned char by_byte[sizeof by_word];
    struct dpf_random r;
    dpf_random_init_insecure(&r, "order", 1, 2);
    for (int i = 0; i < COUNT; i++)
        by_word[i] = dpf_random_u64(&r);
    dpf_random_init_insecure(&r, "order", 1, 2);
    size_t at = 0;
    for (int i = 0; at < sizeof by_byte; i++) {
        size_t size = sizes[i % 16], left = sizeof by_byte - at;
        size = size < left ? size : left;
        dpf_random_bytes(&r, by_byte + at, size);
        at += size;
    }
    CU_ASSERT(memcmp(by_word, by_byte, sizeof by_byte) == 0);
    /* a word after an odd number of bytes never reads beyond the buffer nor twice */
    dpf_random_init_insecure(&r, "order", 1, 2);
    unsigned char odd[5];
    dpf_random_bytes(&r, odd, 5);
    for (int i = 0; i < 3000; i++) {
        size_t before = r.used;
        uint64_t refills = r.refills;
        dpf_random_u64(&r);
        CU_ASSERT(r.used <= sizeof r.bytes);
        CU_ASSERT(r.refills == refills ? r.used == before + 8 : r.used == 40);
    }
}

/* Taken bytes are those of the stream; what is left of a refill is passed over. */
static void test_take(void)
{
    struct dpf_random r, copy;
    unsigned char due[64];
    dpf_random_init_insecure(&r, "take", 1, 2);
    for (int i = 0; i < 5000; i++) {
        size_t size = (size_t)(i * 7 % 64) + 1;
        copy = r;
        const unsigned char *got = dpf_random_take(&r, size);
        if (copy.used + size > sizeof copy.bytes)
            copy.used = sizeof copy.bytes;
        dpf_random_bytes(&copy, due, size);
        CU_ASSERT(memcmp(got, due, size) == 0);
        CU_ASSERT(got >= r.bytes + sizeof r.key && got + size <= r.bytes + r.used);
        CU_ASSERT(r.used == copy.used && r.refills == copy.refills);
    }
}

/* --------------------------------------------------------------------------- forks */

enum { FORK_WORDS = 64 };
enum { BY_WORD, BY_BYTES, BY_TAKING, WAYS };

/* What a child draws from its copy; `grand` lets the child's own child draw. */
static void draw_in_child(struct dpf_random *r, int way, bool grand, uint64_t *out)
{
    int ends[2], status = 0;
    CU_ASSERT_FATAL(pipe(ends) == 0);
    pid_t pid = fork();
    CU_ASSERT_FATAL(pid >= 0);
    if (pid == 0) {
        uint64_t drawn[FORK_WORDS];
        if (grand) {
            pid_t inner = fork();
            if (inner != 0) {
                int code;
                _exit(inner < 0 || waitpid(inner, &code, 0) != inner || code);
            }
        }
        if (way == BY_BYTES)
            dpf_random_bytes(r, drawn, sizeof drawn);
        for (int i = 0; i < FORK_WORDS; i++)
            if (way == BY_WORD)
                drawn[i] = dpf_random_u64(r);
            else if (way == BY_TAKING)
                memcpy(&drawn[i], dpf_random_take(r, 8), 8);
        _exit(write(ends[1], drawn, sizeof drawn) != (ssize_t)sizeof drawn);
    }
    close(ends[1]);
    size_t size = FORK_WORDS * sizeof *out;
    CU_ASSERT(read(ends[0], out, size) == (ssize_t)size);
    close(ends[0]);
    CU_ASSERT(waitpid(pid, &status, 0) == pid && status == 0);
}

/* `before`: bytes that the parent drew first. Nothing, a few, all but a word, all. */
static void check_fork(size_t before, bool seeded, int way)
{
    static unsigned char start[DPF_RANDOM_REFILL];
    uint64_t drawn[4][FORK_WORDS];
    struct dpf_random r;
    dpf_random_init_insecure(&r, "fork", 5, 6);
    if (!seeded) {
        CU_ASSERT_FATAL(dpf_random_init(&r, NULL) == DPF_OK);
    }
    dpf_random_bytes(&r, start, before);
    memset(drawn, 0, sizeof drawn);
    draw_in_child(&r, way, false, drawn[0]);
    draw_in_child(&r, way, false, drawn[1]);
    draw_in_child(&r, way, true, drawn[2]);
    dpf_random_bytes(&r, drawn[3], sizeof drawn[3]);
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++)
            CU_ASSERT(seeded ? memcmp(drawn[i], drawn[j], sizeof drawn[i]) == 0
                             : equal_words(drawn[i], drawn[j], FORK_WORDS) == 0);
}

static void test_forks(void)
{
    static const size_t before[] = {0, 80, DPF_RANDOM_REFILL - 32 - 8,
                                    DPF_RANDOM_REFILL - 32};
    for (int b = 0; b < 4; b++)
        for (int way = 0; way < WAYS; way++)
            check_fork(before[b], false, way);
}

static void test_forks_seeded(void)
{
    static const size_t before[] = {0, 80, DPF_RANDOM_REFILL - 32 - 8,
                                    DPF_RANDOM_REFILL - 32};
    for (int b = 0; b < 4; b++)
        for (int way = 0; way < WAYS; way++)
            check_fork(before[b], true, way);
}

/* The key of a child is not one that the parent could compute: neither the copied key nor
 * the copied bytes lead to it. And a child's second fork starts anew as well. */
static void test_fork_key(void)
{
    struct dpf_random r, copy;
    uint64_t child[FORK_WORDS], follow[FORK_WORDS];
    CU_ASSERT_FATAL(dpf_random_init(&r, NULL) == DPF_OK);
    dpf_random_u64(&r);
    copy = r;
    draw_in_child(&r, BY_WORD, false, child);
    for (int refill = 0; refill < 20; refill++) { /* all that the parent's state gives */
        dpf_random_bytes(&copy, follow, sizeof follow);
        CU_ASSERT(equal_words(child, follow, FORK_WORDS) == 0);
    }
    /* the parent goes on with its own stream: a fork costs it nothing */
    copy = r;
    draw_in_child(&r, BY_WORD, false, child);
    CU_ASSERT(dpf_random_u64(&r) == dpf_random_u64(&copy));
}

/* --------------------------------------------------------------------------- below */

static void check_below(uint64_t n)
{
    static uint64_t counts[1000];
    enum { DRAWS = 3000000 };
    struct dpf_random r;
    double expected = DRAWS / (double)n, chi = 0;
    memset(counts, 0, sizeof counts);
    dpf_random_init_insecure(&r, "below", n, 0);
    for (int i = 0; i < DRAWS; i++) {
        uint64_t x = dpf_random_below(&r, n);
        CU_ASSERT_FATAL(x < n);
        counts[x]++;
    }
    for (uint64_t i = 0; i < n; i++)
        chi += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
    CU_ASSERT(chi < chi_level((double)n - 1));
}

/* Thirds of the range, and the share of words that had to be redrawn. */
static void check_below_large(uint64_t n)
{
    enum { DRAWS = 300000 };
    struct dpf_random r;
    double counts[3] = {0}, chi = 0, words_used = 0;
    dpf_random_init_insecure(&r, "below", n, 1);
    for (int i = 0; i < DRAWS; i++) {
        size_t before = words_left(&r);
        uint64_t refills = r.refills;
        uint64_t x = dpf_random_below(&r, n);
        CU_ASSERT_FATAL(x < n);
        counts[x / (n / 3 + 1)]++;
        words_used += (double)before + 508.0 * (double)(r.refills - refills) -
                      (double)words_left(&r);
    }
    double size = (double)n, part = (double)(n / 3 + 1);
    for (int i = 0; i < 3; i++) {
        double p = (i < 2 ? part : size - 2 * part) / size, expected = p * DRAWS;
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
    CU_ASSERT(chi < chi_level(2));
    /* 2^64 mod n of 2^64 words are redrawn: a geometric number of words for each draw */
    double q = (double)((0 - n) % n) * 0x1p-64, mean = 1 / (1 - q);
    CU_ASSERT(fabs(words_used / DRAWS - mean) <=
              z_level * sqrt(q) / (1 - q) / sqrt(DRAWS) + 1e-12);
}

static void test_below(void)
{
    check_below(2);
    check_below(3);
    check_below(10);
    check_below(1000);
    check_below_large(((uint64_t)1 << 63) + 1);
    check_below_large((uint64_t)1 << 63);
    check_below_large(((uint64_t)1 << 63) - 1);
    check_below_large((uint64_t)3 << 62);
    check_below_large(~(uint64_t)0);
}

/* Around the edge, word by word: exactly the lowest 2^64 mod n words are redrawn, so what
 * is kept is a whole number of times n long, and n is taken from it by remainder. */
static void test_below_rejection(void)
{
    const uint64_t half = (uint64_t)1 << 63;
    const uint64_t sizes[] = {1,        2,        3,        10,
                              1000,     half - 1, half,     half + 1,
                              half + 2, ~0ul,     ~0ul - 1, (uint64_t)3 << 62};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t n = sizes[s];
        uint64_t rest = (~(uint64_t)0 % n + 1) % n;
        struct dpf_random r;
        uint64_t kept[] = {rest, rest + 1, ~(uint64_t)0};
        for (int i = 0; i < 3; i++) {
            if (kept[i] < rest)
                continue;
            set_words(&r, &kept[i], 1);
            CU_ASSERT(dpf_random_below(&r, n) == kept[i] % n);
            CU_ASSERT(words_left(&r) == 0 && r.refills == 0);
        }
        uint64_t redrawn[] = {0, rest - 1, rest / 2, ~(uint64_t)0};
        if (rest == 0)
            continue;
        set_words(&r, redrawn, 4);
        CU_ASSERT(dpf_random_below(&r, n) == ~(uint64_t)0 % n);
        CU_ASSERT(words_left(&r) == 0 && r.refills == 0);
    }
}

/* ----------------------------------------------------------------------- Bernoulli */

static const double tiny = 0x1p-70, almost = 1 - 0x1p-53;

static void check_share(double p, double ones, double draws)
{
    CU_ASSERT(fabs(ones - p * draws) <= z_level * sqrt(draws * p * (1 - p)) + 1e-6);
}

static void test_bernoulli_share(void)
{
    enum { COUNT = 200000, DRAWS = 4000000 };
    static uint64_t list[COUNT];
    const double rates[] = {0.5, 0.3, 1e-3, 0.999, 0.75, 1. / 3, tiny, almost};
    struct dpf_random r;
    for (size_t p = 0; p < sizeof rates / sizeof *rates; p++) {
        double ones = 0;
        dpf_random_init_insecure(&r, "bernoulli words", p, 0);
        dpf_bernoulli_words(&r, rates[p], list, COUNT);
        for (int i = 0; i < COUNT; i++)
            ones += __builtin_popcountll(list[i]);
        /* the smallest is never and the largest always, but with probability 1e-9 */
        check_share(rates[p], ones, 64.0 * COUNT);
        dpf_random_init_insecure(&r, "bernoulli", p, 0);
        ones = 0;
        for (int i = 0; i < DRAWS; i++)
            ones += dpf_bernoulli(&r, rates[p]);
        check_share(rates[p], ones, DRAWS);
    }
}

static void test_bernoulli_ends(void)
{
    const double never[] = {0, -0.0, -1, -INFINITY, NAN},
                 always[] = {1, 1 + 0x1p-52, 7, INFINITY};
    uint64_t list[70];
    struct dpf_random r;
    dpf_random_init_insecure(&r, "ends", 0, 0);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        memset(list, 0xa5, sizeof list);
        dpf_bernoulli_words(&r, never[i], list, 69);
        CU_ASSERT(all_zero(list, 69 * sizeof *list));
        CU_ASSERT(list[69] == 0xa5a5a5a5a5a5a5a5);
        CU_ASSERT(!dpf_bernoulli(&r, never[i]));
    }
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        memset(list, 0xa5, sizeof list);
        dpf_bernoulli_words(&r, always[i], list, 69);
        for (int w = 0; w < 69; w++)
            CU_ASSERT(list[w] == ~(uint64_t)0);
        CU_ASSERT(list[69] == 0xa5a5a5a5a5a5a5a5);
        CU_ASSERT(dpf_bernoulli(&r, always[i]));
    }
    dpf_bernoulli_words(&r, 0.5, list, 0);
    CU_ASSERT(list[0] == ~(uint64_t)0);
}

/* Digit i after the binary point, i from 1. */
static int digit(double p, int i)
{
    return (int)fmod(floor(ldexp(p, i)), 2);
}

static const double exact_rates[] = {
    0.5,      0.3,          1e-3,      0.75,         1. / 3,  0.9999,
    0x1p-70,  1 - 0x1p-53,  0x1p-1,    0x1p-2,       0x3p-60, 0x1.fffffffffffffp-1,
    0x1p-100, 0x1.8p-1,     5e-324,    1e-310,       0x1p-63, 0x1p-64,
    0x1p-65,  0x1.0001p-11, 0x1p-1022, 0.5 + 0x1p-53};

enum { GROUP_WORDS = 8 }; /* that are drawn together, a digit of each of their lanes */

/* Each lane is U < p for the very digits that were drawn: exact, lane by lane. In every
 * second round U begins with 64 zeros, where small p are decided. */
static void test_bernoulli_lanes(void)
{
    struct dpf_random r, copy;
    dpf_random_init_insecure(&r, "lanes", 0, 0);
    for (size_t p = 0; p < sizeof exact_rates / sizeof *exact_rates; p++)
        for (int round = 0; round < 100; round++) {
            uint64_t result[GROUP_WORDS], drawn[GROUP_WORDS];
            uint64_t less[GROUP_WORDS] = {0}, open[GROUP_WORDS], digits = 0, any = 0;
            memset(open, 0xff, sizeof open);
            if (round % 2) {
                memset(r.bytes, 0, sizeof r.bytes);
                r.used = 0;
            }
            copy = r;
            dpf_bernoulli_words(&r, exact_rates[p], result, GROUP_WORDS);
            while (copy.used != r.used || copy.refills != r.refills) {
                uint64_t one = digit(exact_rates[p], (int)++digits);
                memcpy(drawn, dpf_random_take(&copy, sizeof drawn), sizeof drawn);
                for (int w = 0; w < GROUP_WORDS; w++) {
                    less[w] |= one ? open[w] & ~drawn[w] : 0;
                    open[w] &= one ? drawn[w] : ~drawn[w];
                }
                CU_ASSERT_FATAL(digits < 1100);
            }
            for (int w = 0; w < GROUP_WORDS; w++) {
                CU_ASSERT(result[w] == less[w]);
                any |= open[w];
            }
            if (any) { /* undecided only if p has no further digits */
                double more = ldexp(exact_rates[p], (int)digits);
                CU_ASSERT(more == floor(more));
            }
        }
}

/* Digits by hand: lane 0 follows p to its end (U >= p), lane k leaves it at digit k by
 * being smaller where p has a 1 or larger where it has a 0. */
static void test_bernoulli_by_hand(void)
{
    enum { MOST = DPF_RANDOM_REFILL / 8 / GROUP_WORDS };
    for (size_t p = 0; p < sizeof exact_rates / sizeof *exact_rates; p++) {
        int zeros = 0, digits = 0;
        uint64_t one[MOST + 64] = {0}, list[MOST * GROUP_WORDS], due = 0;
        uint64_t result[GROUP_WORDS + 1];
        struct dpf_random r;
        while (!digit(exact_rates[p], zeros + 1))
            zeros++;
        for (int i = 1; i <= 64 + zeros && i <= MOST + 64; i++)
            if (digit(exact_rates[p], i)) {
                one[i - 1] = ~(uint64_t)0;
                digits = i;
            }
        if (zeros >= MOST || digits > MOST)
            continue; /* more words than a refill holds: see the lanes above */
        for (int lane = 1; lane < 63 && zeros + lane <= digits; lane++) {
            one[zeros + lane - 1] ^= (uint64_t)1 << lane;
            if (digit(exact_rates[p], zeros + lane))
                due |= (uint64_t)1 << lane;
        }
        /* lane 63 has a 1 in front of p's first digit, and is smaller from there on */
        if (zeros) {
            one[zeros - 1] |= (uint64_t)1 << 63;
            one[zeros] &= ~((uint64_t)1 << 63);
        }
        for (int i = 0; i < digits * GROUP_WORDS; i++)
            list[i] = one[i / GROUP_WORDS];
        for (size_t count = 1; count <= GROUP_WORDS; count++) { /* part of a group */
            set_words(&r, list, (size_t)digits * GROUP_WORDS);
            memset(result, 0x33, sizeof result);
            dpf_bernoulli_words(&r, exact_rates[p], result, count);
            for (size_t w = 0; w < count; w++)
                CU_ASSERT(result[w] == due);
            CU_ASSERT(result[count] == 0x3333333333333333);
            CU_ASSERT(r.refills == 0);
        }
    }
    /* one draw at a time: below p's 64 digits, and not from there on */
    for (size_t p = 0; p < sizeof exact_rates / sizeof *exact_rates; p++) {
        int zeros = 0;
        uint64_t list[512] = {0}, first = 0;
        struct dpf_random r;
        while (!digit(exact_rates[p], zeros + 1))
            zeros++;
        if (zeros > 400)
            continue;
        for (int i = 1; i <= 64; i++)
            first = first << 1 | (uint64_t)digit(exact_rates[p], zeros + i);
        for (int i = 0; i < zeros; i++)
            list[i] = ~(uint64_t)0 >> 1;
        list[zeros] = first - 1;
        set_words(&r, list, (size_t)zeros + 1);
        CU_ASSERT(dpf_bernoulli(&r, exact_rates[p]));
        list[zeros] = first;
        set_words(&r, list, (size_t)zeros + 1);
        CU_ASSERT(!dpf_bernoulli(&r, exact_rates[p]));
        for (int i = 0; i < zeros; i++) {
            uint64_t was = list[i];
            list[zeros] = 0;
            list[i] = (uint64_t)1 << 63;
            set_words(&r, list, (size_t)zeros + 1);
            CU_ASSERT(!dpf_bernoulli(&r, exact_rates[p]));
            list[i] = was;
        }
    }
}

enum { PLANE = 1 << 12, LANE_WORDS = PLANE * 64 };

/* Lane i of all words, packed. */
static void make_planes(const uint64_t *list, uint64_t planes[64][PLANE])
{
    memset(planes, 0, 64 * sizeof planes[0]);
    for (int i = 0; i < LANE_WORDS; i++)
        for (int lane = 0; lane < 64; lane++)
            planes[lane][i / 64] |= (list[i] >> lane & 1) << i % 64;
}

/* The covariance of two planes in its deviations under independence, p known. */
static double dependence(const uint64_t *a, const uint64_t *b, double p)
{
    double both = 0, ones_a = 0, ones_b = 0, n = LANE_WORDS;
    for (int i = 0; i < PLANE; i++) {
        both += __builtin_popcountll(a[i] & b[i]);
        ones_a += __builtin_popcountll(a[i]);
        ones_b += __builtin_popcountll(b[i]);
    }
    return (both - p * ones_a - p * ones_b + p * p * n) / (sqrt(n) * p * (1 - p));
}

static void check_independence(double p, uint64_t seed)
{
    static uint64_t list[LANE_WORDS + 1], here[64][PLANE], next[64][PLANE];
    struct dpf_random r;
    dpf_random_init_insecure(&r, "independence", seed, 0);
    dpf_bernoulli_words(&r, p, list, LANE_WORDS + 1);
    make_planes(list, here);
    make_planes(list + 1, next);
    double among = 0, across = 0, worst = 0;
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 64; j++) {
            double z = dependence(here[i], next[j], p);
            across += z * z;
            worst = fmax(worst, fabs(z));
            if (j <= i)
                continue;
            z = dependence(here[i], here[j], p);
            among += z * z;
            worst = fmax(worst, fabs(z));
        }
    CU_ASSERT(among < chi_level(64 * 63 / 2));
    CU_ASSERT(across < chi_level(64 * 64));
    CU_ASSERT(worst < 6.4);        /* 1e-6 over 6112 pairs */
    for (int i = 0; i < 64; i++) { /* each lane has its share, too */
        double ones = 0;
        for (int w = 0; w < PLANE; w++)
            ones += __builtin_popcountll(here[i][w]);
        CU_ASSERT(fabs(ones - p * LANE_WORDS) <
                  5.7 * sqrt(LANE_WORDS * p * (1 - p))); /* 1e-6 over 64 lanes */
    }
}

static void test_bernoulli_independence(void)
{
    check_independence(0.5, 1);
    check_independence(0.3, 2);
    check_independence(0.05, 3);
}

const char dpf_suite[] = "random secure";

const struct dpf_test dpf_tests[] = {
    {"ChaCha20 is libsodium's, word by word", test_cipher},
    {"so are its versions for other machines", test_cipher_versions},
    {"a refill is ChaCha20 and forgets its key", test_key_erasure},
    {"two streams of the system differ", test_inits_differ},
    {"a seeded stream is its purpose, seed and index", test_insecure},
    {"bytes of any number come in the order of words", test_bytes_order},
    {"bytes are taken where they lie", test_take},
    {"parent, children and grandchildren share no draw", test_forks},
    {"forks of a seeded stream stay what its seed makes them", test_forks_seeded},
    {"a fork's key cannot be computed from the parent's", test_fork_key},
    {"below is uniform", test_below},
    {"below redraws exactly 2^64 mod n words", test_below_rejection},
    {"Bernoulli: the share of ones", test_bernoulli_share},
    {"Bernoulli: never, always, no number", test_bernoulli_ends},
    {"Bernoulli: each lane compares its own digits", test_bernoulli_lanes},
    {"Bernoulli: digits by hand", test_bernoulli_by_hand},
    {"Bernoulli: lanes and words are independent", test_bernoulli_independence},
    {0},
};
