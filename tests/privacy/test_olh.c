/* Optimal local hashing from outside, found by its name: the probabilities of all
 * messages by enumeration of all hash functions and answers, what two classes' ratios
 * come to, the same probabilities in samples, counts estimated as from any other unary
 * encoding.
 *
 * A rate is in doubt if Chernoff's bound gives what was seen a probability below 1e-6.
 * Seeds are fixed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "harness.h"
#include "privacy/randomiser.h"

#include "base/banned.h"

#if defined(__SANITIZE_ADDRESS__)
enum { DRAWS = 60000 };
#else
enum { DRAWS = 300000 };
#endif

/* An open method. */
struct opened {
    const struct dpf_randomiser *is;
    void *state;
    struct dpf_randomiser_facts facts;
    struct dpf_random random;
};

static enum dpf_status open_method(struct opened *m, const char *name, double epsilon,
                                   uint64_t classes)
{
    const struct dpf_randomiser_row *row = DPF_FIND(dpf_randomisers, name);
    struct dpf_randomiser_setup setup = {
        .name = name, .epsilon = epsilon, .values = classes};
    struct dpf_error e = {0};
    *m = (struct opened){.is = row ? row->is : NULL};
    CU_ASSERT_FATAL(row != NULL);
    dpf_random_init_insecure(&m->random, "test-olh", 1, 0);
    return m->is->open(&setup, &m->state, &m->facts, &e);
}

static void close_method(struct opened *m)
{
    if (m->state && m->is->release)
        m->is->release(m->state);
    else
        free(m->state);
    dpf_random_release(&m->random);
}

static void draw(struct opened *m, uint64_t value, uint8_t *bits)
{
    struct dpf_randomiser_record record = {.value = value};
    struct dpf_randomiser_message message = {.data = bits};
    m->is->draw(m->state, &m->random, &record, &message);
}

static bool plausible(double k, double n, double p)
{
    double a = k > 0 ? k * log(k / (n * p)) : 0;
    double b = k < n ? (n - k) * (log((n - k) / n) - log1p(-p)) : 0;
    bool good = a + b <= log(2 / 1e-6);
    if (!good)
        printf("    %g of %g, not at a rate of %g\n", k, n, p);
    return good;
}

/* --------------------------------------------------------------------- enumeration */

enum { MOST = 4 };

/* Pr[message | class] over all functions of `classes` classes into g buckets and all
 * answers, the truth being told with probability p. */
static void enumerate(int classes, int g, long double p, int truth,
                      long double out[1 << MOST])
{
    int hash[MOST] = {0};
    long double each = powl((long double)g, -classes);
    memset(out, 0, sizeof(long double) << MOST);
    for (;;) {
        for (int told = 0; told < g; told++) {
            unsigned message = 0;
            for (int u = 0; u < classes; u++)
                message |= (unsigned)(hash[u] == told) << u;
            out[message] += each * (hash[truth] == told ? p : (1 - p) / (g - 1));
        }
        int u = 0;
        while (u < classes && ++hash[u] == g)
            hash[u++] = 0;
        if (u == classes)
            return;
    }
}

/* The largest ratio of two classes' probabilities of one message. */
static double largest_loss(int classes, int g, long double p)
{
    long double one[1 << MOST], other[1 << MOST], most = 0;
    for (int v = 0; v < classes; v++)
        for (int w = 0; w < classes; w++) {
            enumerate(classes, g, p, v, one);
            enumerate(classes, g, p, w, other);
            for (unsigned m = 0; m < 1u << classes; m++)
                most = fmaxl(most, logl(one[m] / other[m]));
        }
    return (double)most;
}

static void test_ratio(void)
{
    static const double epsilons[] = {1e-3, 0.3, 0.7, 1, 2, 2.7};
    for (int i = 0; i < 6; i++)
        for (int classes = 2; classes <= MOST; classes++) {
            struct opened m;
            double epsilon = epsilons[i], g = round(exp(epsilon) + 1);
            CU_ASSERT_FATAL(open_method(&m, "olh", epsilon, (uint64_t)classes) == DPF_OK);
            CU_ASSERT(m.facts.probability_count == 2 && !m.facts.has_moments);
            CU_ASSERT_DOUBLE_EQUAL(m.facts.probabilities[0],
                                   exp(epsilon) / (exp(epsilon) + g - 1), 1e-14);
            CU_ASSERT_DOUBLE_EQUAL(m.facts.probabilities[1], 1 / g, 1e-16);
            double due =
                largest_loss(classes, (int)g, (long double)m.facts.probabilities[0]);
            CU_ASSERT(m.facts.epsilon <= epsilon);
            CU_ASSERT(m.facts.epsilon >= due - 1e-15);
            CU_ASSERT_DOUBLE_EQUAL(m.facts.epsilon, due, 1e-11);
            close_method(&m);
        }
}

/* Bits are independent: p for the true one, 1/g for the others. */
static void test_rates_by_enumeration(void)
{
    for (int g = 2; g < 8; g++)
        for (int classes = 2; classes <= MOST; classes++) {
            long double all[1 << MOST], p = 0.613L, q = 1 / (long double)g;
            enumerate(classes, g, p, 1, all);
            for (unsigned m = 0; m < 1u << classes; m++) {
                long double due = m >> 1 & 1 ? p : 1 - p;
                for (int u = 0; u < classes; u++)
                    due *= u == 1 ? 1 : m >> u & 1 ? q : 1 - q;
                CU_ASSERT(fabsl(all[m] - due) < 1e-15L);
            }
        }
}

/* ------------------------------------------------------------------------- samples */

/* Every message of few classes is as frequent as the enumeration says. */
static void test_messages(void)
{
    static const double epsilons[] = {0.2, 1, 2.7};
    for (int i = 0; i < 3; i++)
        for (int v = 0; v < 3; v++) {
            struct opened m;
            long double due[1 << MOST];
            double seen[1 << 3] = {0};
            CU_ASSERT_FATAL(open_method(&m, "olh", epsilons[i], 3) == DPF_OK);
            enumerate(3, (int)round(exp(epsilons[i]) + 1),
                      (long double)m.facts.probabilities[0], v, due);
            for (int k = 0; k < DRAWS; k++) {
                uint8_t bits = 0xff;
                draw(&m, (uint64_t)v, &bits);
                CU_ASSERT_FATAL(bits < 8);
                seen[bits]++;
            }
            for (int k = 0; k < 8; k++)
                CU_ASSERT(plausible(seen[k], DRAWS, (double)due[k]));
            close_method(&m);
        }
}

/* Many classes, in several bytes: each bit at its rate, nothing behind the end. */
static void test_many_classes(void)
{
    enum { CLASSES = 21, BYTES = 3 };
    struct opened m;
    double ones[CLASSES] = {0};
    CU_ASSERT_FATAL(open_method(&m, "olh", 3, CLASSES) == DPF_OK);
    for (int k = 0; k < DRAWS / 4; k++) {
        uint8_t bits[BYTES + 1];
        memset(bits, 0xff, sizeof bits);
        draw(&m, 17, bits);
        CU_ASSERT_FATAL(bits[BYTES] == 0xff && bits[2] >> 5 == 0);
        for (int u = 0; u < CLASSES; u++)
            ones[u] += bits[u / 8] >> u % 8 & 1;
    }
    for (int u = 0; u < CLASSES; u++)
        CU_ASSERT(plausible(ones[u], DRAWS / 4, m.facts.probabilities[u != 17]));
    close_method(&m);
}

/* Counts of classes from the messages and the two probabilities in the ledger: one
 * estimator for every unary encoding. Off by at most 5 of its deviations. */
static void check_counts(const char *name)
{
    enum { CLASSES = 10 };
    struct opened m;
    double ones[CLASSES] = {0}, truth[CLASSES] = {0};
    CU_ASSERT_FATAL(open_method(&m, name, 1.5, CLASSES) == DPF_OK);
    CU_ASSERT(m.is->reads == DPF_MESSAGE_CLASS && m.is->writes == DPF_MESSAGE_BITS);
    double p = m.facts.probabilities[0], q = m.facts.probabilities[1];
    for (int k = 0; k < DRAWS / 4; k++) {
        uint8_t bits[2];
        uint64_t v = (uint64_t)(k % 4 ? k % CLASSES : 3);
        draw(&m, v, bits);
        truth[v]++;
        for (int u = 0; u < CLASSES; u++)
            ones[u] += bits[u / 8] >> u % 8 & 1;
    }
    for (int u = 0; u < CLASSES; u++) {
        double n = DRAWS / 4, estimate = (ones[u] - n * q) / (p - q);
        double variance =
            (truth[u] * p * (1 - p) + (n - truth[u]) * q * (1 - q)) / ((p - q) * (p - q));
        CU_ASSERT(fabs(estimate - truth[u]) <= 5 * sqrt(variance));
    }
    /* near the least variance there is: 4 e^e / (e^e - 1)^2 a record */
    double least = 4 * exp(1.5) / pow(exp(1.5) - 1, 2);
    CU_ASSERT(q * (1 - q) / ((p - q) * (p - q)) < 1.02 * least);
    close_method(&m);
}

static void test_counts(void)
{
    check_counts("oue");
    check_counts("olh");
}

static void test_ends(void)
{
    static const double good[] = {1e-9, 36}, bad[] = {0, 1e-10, 36.1, 1e6, NAN};
    struct opened m;
    for (int i = 0; i < 2; i++) {
        uint8_t bits[2];
        CU_ASSERT(open_method(&m, "olh", good[i], 10) == DPF_OK);
        CU_ASSERT(m.facts.epsilon > 0 && m.facts.epsilon <= good[i]);
        draw(&m, 9, bits);
        CU_ASSERT(bits[1] < 4);
        close_method(&m);
    }
    for (int i = 0; i < 5; i++) {
        CU_ASSERT(open_method(&m, "olh", bad[i], 10) == DPF_USAGE);
        close_method(&m);
    }
}

const char dpf_suite[] = "olh";
const struct dpf_test dpf_tests[] = {
    {"the largest ratio, by enumeration", test_ratio},
    {"independent bits, by enumeration", test_rates_by_enumeration},
    {"every message at its probability", test_messages},
    {"many classes, and nothing behind the end", test_many_classes},
    {"counts, as from optimised unary encoding", test_counts},
    {"the ends of epsilon's range", test_ends},
    {NULL, NULL},
};
