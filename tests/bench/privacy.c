/* Speed of the privacy core: one line of JSON a measurement, the best of several rounds.
 *
 *   privacy noise COUNT THREADS     Gaussian noise for COUNT parameters, in milliseconds
 *   privacy random                  the generator on one thread, beside libsodium's
 *   privacy bernoulli               bits of given probability on one thread
 *   privacy latent                  one MNIST record of LATENT encoded and randomised
 *   privacy privunit                one message about 64 values and a label
 *   privacy account SIGMA Q STEPS DELTA    one epsilon by PLD, without starting a program
 */
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/compose.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/number.h"
#include "data/binary.h"
#include "privacy/gaussian.h"
#include "privacy/response.h"
#include "privacy/sphere.h"
#include "random/bernoulli.h"
#include "random/noise.h"

#include "base/banned.h"

enum { ROUNDS = 15 };

/* A thread's part of the noise: what a training step does with it, without the sums. */
struct part {
    struct dpf_random random;
    const struct dpf_gaussian *mechanism;
    int64_t *sums;
    size_t count;
};

static void *draw(void *argument)
{
    struct part *p = argument;
    dpf_gaussian_add(p->mechanism, &p->random, 1, p->sums, p->count);
    return NULL;
}

static int bench_noise(int64_t count, int64_t threads)
{
    struct dpf_gaussian mechanism;
    struct dpf_gaussian_query query = {
        .sensitivity_l2 = 1, .values = (size_t)count, .parts = 1};
    struct part *parts = dpf_calloc((size_t)threads, sizeof *parts);
    pthread_t *others = dpf_calloc((size_t)threads, sizeof *others);
    int64_t *sums = dpf_calloc((size_t)count, sizeof *sums), share = count / threads;
    double best = 1e9;
    if (!parts || !others || !sums ||
        dpf_gaussian_init(&mechanism, &query, 1, NULL) != DPF_OK)
        return 1;
    for (int64_t i = 0; i < threads; i++) {
        parts[i].mechanism = &mechanism;
        parts[i].sums = sums + i * share;
        parts[i].count = (size_t)(i == threads - 1 ? count - i * share : share);
        if (dpf_random_init(&parts[i].random, NULL) != DPF_OK)
            return 1;
    }
    for (int round = 0; round < ROUNDS; round++) {
        double began = dpf_clock_seconds();
        for (int64_t i = 1; i < threads; i++)
            if (pthread_create(&others[i], NULL, draw, &parts[i]) != 0)
                return 1;
        draw(&parts[0]);
        for (int64_t i = 1; i < threads; i++)
            pthread_join(others[i], NULL);
        double took = dpf_clock_seconds() - began;
        best = took < best ? took : best;
    }
    printf("{\"what\": \"noise\", \"count\": %lld, \"threads\": %lld, \"ms\": %.3f, "
           "\"ns_each\": %.3f}\n",
           (long long)count, (long long)threads, best * 1e3, best * 1e9 / (double)count);
    free(parts);
    free(others);
    free(sums);
    return 0;
}

static int bench_random(void)
{
    enum { SIZE = 1 << 20, REPEAT = 200 };
    static unsigned char bytes[SIZE];
    struct dpf_random r;
    unsigned char key[32] = {1}, nonce[8] = {2};
    double ours = 1e9, theirs = 1e9;
    if (dpf_random_init(&r, NULL) != DPF_OK)
        return 1;
    for (int round = 0; round < ROUNDS; round++) {
        double began = dpf_clock_seconds();
        for (int i = 0; i < REPEAT; i++)
            dpf_random_bytes(&r, bytes, SIZE);
        double middle = dpf_clock_seconds();
        for (int i = 0; i < REPEAT; i++)
            crypto_stream_chacha20(bytes, SIZE, nonce, key);
        double end = dpf_clock_seconds();
        ours = middle - began < ours ? middle - began : ours;
        theirs = end - middle < theirs ? end - middle : theirs;
    }
    double bytes_all = (double)SIZE * REPEAT / 1e9;
    printf("{\"what\": \"random\", \"gb_per_s\": %.2f, \"libsodium_gb_per_s\": %.2f, "
           "\"ratio\": %.2f}\n",
           bytes_all / ours, bytes_all / theirs, theirs / ours);
    return 0;
}

static int bench_bernoulli(void)
{
    enum { WORDS = 1 << 18 };
    static uint64_t words[WORDS];
    const double rates[] = {0.5, 0.3, 0.7310585786300049, 0.01};
    struct dpf_random r;
    double slowest = 1e9;
    if (dpf_random_init(&r, NULL) != DPF_OK)
        return 1;
    for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
        double best = 1e9;
        for (int round = 0; round < ROUNDS; round++) {
            double began = dpf_clock_seconds();
            dpf_bernoulli_words(&r, rates[k], words, WORDS);
            double took = dpf_clock_seconds() - began;
            best = took < best ? took : best;
        }
        double rate = 64. * WORDS / best / 1e9;
        slowest = rate < slowest ? rate : slowest;
    }
    printf("{\"what\": \"bernoulli\", \"gbit_per_s\": %.2f}\n", slowest);
    return 0;
}

static double best_of(double best, double began)
{
    double took = dpf_clock_seconds() - began;
    return took < best ? took : best;
}

/* 9,216 values, 92,160 bits, by UER as the paper has it; RECORDS one after the other. */
static int bench_latent(void)
{
    enum { VALUES = 9216, BITS = 10 * VALUES, WORDS = BITS / 64, RECORDS = 64 };
    static float x[RECORDS][VALUES];
    static uint64_t words[RECORDS][WORDS];
    /* as many as are drawn, but for the few lanes that need more digits */
    static unsigned char bytes[BITS / 8 * DPF_BERNOULLI_DIGITS];
    const struct dpf_binary code = {4, 5};
    struct dpf_bit_rates rates[2];
    struct dpf_bit_randomiser m;
    struct dpf_random r;
    double encode = 1e9, randomise = 1e9, generate = 1e9, both = 1e9;
    if (dpf_random_init(&r, NULL) != DPF_OK ||
        dpf_bits_rates(DPF_BITS_UER, 0.5, BITS, 7, rates, NULL) != DPF_OK)
        return 1;
    dpf_bit_randomiser_init(&m, rates);
    for (int i = 0; i < RECORDS; i++)
        for (int k = 0; k < VALUES; k++)
            x[i][k] = (float)((double)(dpf_random_u64(&r) >> 11) * 0x1p-52 - 1) * 3;
    for (int round = 0; round < ROUNDS; round++) {
        double whole = dpf_clock_seconds(), began = whole;
        for (int i = 0; i < RECORDS; i++)
            dpf_binary_encode(&code, x[i], VALUES, (uint8_t *)words[i]);
        encode = best_of(encode, began);
        began = dpf_clock_seconds();
        for (int i = 0; i < RECORDS; i++)
            dpf_bits_randomise(&m, &r, words[i], WORDS);
        randomise = best_of(randomise, began);
        both = best_of(both, whole);
        began = dpf_clock_seconds();
        for (int i = 0; i < RECORDS; i++)
            dpf_random_bytes(&r, bytes, sizeof bytes);
        generate = best_of(generate, began);
    }
    double us = 1e6 / RECORDS;
    printf("{\"what\": \"latent\", \"us\": %.1f, \"encode_us\": %.1f, "
           "\"randomise_us\": %.1f, \"generator_us\": %.1f, \"generator_share\": %.2f}\n",
           both * us, encode * us, randomise * us, generate * us, generate / both);
    return 0;
}

static int bench_privunit(void)
{
    enum { VALUES = 64, LABELS = 10, RECORDS = 500 };
    struct dpf_sphere_plan plan = {
        .values = VALUES, .labels = LABELS, .directions = 4096, .epsilon = 8};
    struct dpf_sphere m;
    struct dpf_random r;
    float x[VALUES], out[VALUES], message[LABELS];
    double best = 1e9;
    if (dpf_random_init(&r, NULL) != DPF_OK || dpf_sphere_init(&m, &plan, NULL) != DPF_OK)
        return 1;
    for (int k = 0; k < VALUES; k++)
        x[k] = (float)((double)(dpf_random_u64(&r) >> 11) * 0x1p-52 - 1);
    for (int round = 0; round < ROUNDS; round++) {
        double began = dpf_clock_seconds();
        for (uint64_t i = 0; i < RECORDS; i++)
            dpf_sphere_draw(&m, &r, i, x, i % LABELS, out, message);
        best = best_of(best, began);
    }
    dpf_sphere_release(&m);
    printf("{\"what\": \"privunit\", \"us\": %.1f}\n", best * 1e6 / RECORDS);
    return 0;
}

static int bench_account(char **arguments)
{
    struct dpf_spending s = {.kind = &dpf_spending_gaussian};
    double delta, epsilon, best = 1e9;
    int64_t steps;
    if (!dpf_parse_real(arguments[0], &s.parameter) ||
        !dpf_parse_real(arguments[1], &s.rate) || !dpf_parse_int(arguments[2], &steps) ||
        !dpf_parse_real(arguments[3], &delta))
        return 2;
    s.count = (uint64_t)steps;
    for (int round = 0; round < ROUNDS; round++) {
        double began = dpf_clock_seconds();
        if (dpf_compose_epsilon(DPF_METHOD_PLD, &s, 1, delta, &epsilon, NULL, NULL) !=
            DPF_OK)
            return 1;
        double took = dpf_clock_seconds() - began;
        best = took < best ? took : best;
    }
    printf("{\"what\": \"account\", \"epsilon\": %.6f, \"ms\": %.2f}\n", epsilon,
           best * 1e3);
    return 0;
}

int main(int argc, char **argv)
{
    int64_t count, threads;
    if (argc == 4 && strcmp(argv[1], "noise") == 0 && dpf_parse_int(argv[2], &count) &&
        dpf_parse_int(argv[3], &threads) && count > 0 && threads > 0)
        return bench_noise(count, threads);
    if (argc == 2 && strcmp(argv[1], "random") == 0)
        return bench_random();
    if (argc == 2 && strcmp(argv[1], "bernoulli") == 0)
        return bench_bernoulli();
    if (argc == 2 && strcmp(argv[1], "latent") == 0)
        return bench_latent();
    if (argc == 2 && strcmp(argv[1], "privunit") == 0)
        return bench_privunit();
    if (argc == 6 && strcmp(argv[1], "account") == 0)
        return bench_account(argv + 2);
    fprintf(stderr, "usage: privacy noise COUNT THREADS | random | bernoulli | latent | "
                    "privunit | account "
                    "SIGMA Q STEPS DELTA\n");
    return 2;
}
