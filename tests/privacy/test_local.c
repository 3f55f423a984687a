/* Local privacy from outside: rates of single bits, what strings of them cost, messages
 * about directions, ledgers of many owners.
 *
 * What is due is computed here: by enumeration of all inputs and outputs where that is
 * possible, else from samples. A rate is in doubt if Chernoff's bound gives what was seen
 * a probability below 1e-6; the bound is cautious, so a doubt is a real one. The
 * falsifier works as in test_falsify.c: events are chosen on one half of the samples and
 * judged on the other. Seeds are fixed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/ledger.h"
#include "harness.h"
#include "nn/expected_bits.h"
#include "privacy/response.h"
#include "privacy/sampled_bit.h"
#include "privacy/sphere.h"
#include "random/bernoulli.h"
#include "wire/decode.h"

#include "base/banned.h"

#if defined(__SANITIZE_ADDRESS__)
enum { FEWER = 5 };
#else
enum { FEWER = 1 };
#endif

static const double level = 1e-6;

/* ------------------------------------------------------------------- bounds of rates */

/* n times the divergence of a coin that showed k of n from one of rate p. */
static double surprise(double k, double n, double p)
{
    double a = k > 0 ? k * log(k / (n * p)) : 0;
    double b = k < n ? (n - k) * (log((n - k) / n) - log1p(-p)) : 0;
    return a + b;
}

static bool plausible(double k, double n, double p)
{
    if (p <= 0 || p >= 1)
        return k == n * p;
    return surprise(k, n, p) <= log(2 / level);
}

/* The rate is not below (above) this, with confidence 1 - alpha. */
static double rate_bound(double k, double n, double alpha, bool above)
{
    double inside = k / n, outside = above ? 1 : 0;
    if (inside == outside)
        return inside;
    for (int i = 0; i < 100; i++) {
        double middle = (inside + outside) / 2;
        if (surprise(k, n, middle) <= log(1 / alpha))
            inside = middle;
        else
            outside = middle;
    }
    return outside;
}

static void test_bounds(void)
{
    CU_ASSERT(plausible(500, 1000, 0.5) && plausible(570, 1000, 0.5));
    CU_ASSERT(!plausible(600, 1000, 0.5) && !plausible(400, 1000, 0.5));
    CU_ASSERT(plausible(0, 1e6, 1e-9) && !plausible(10, 1e6, 1e-9));
    CU_ASSERT(plausible(0, 9, 0) && !plausible(1, 9, 0) && !plausible(8, 9, 1));
    CU_ASSERT(rate_bound(500, 1000, 1e-6, false) < 0.43);
    CU_ASSERT(rate_bound(500, 1000, 1e-6, false) > 0.40);
    CU_ASSERT(rate_bound(0, 1000, 1e-6, true) > 0.013);
    CU_ASSERT(rate_bound(0, 1000, 1e-6, false) == 0);
}

/* ---------------------------------------------------------------------- four rates */

/* Inputs with all pairs of bits at neighbouring places. */
static void fill_bits(uint64_t *words, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        words[i] = seed ^ seed >> 29;
    }
}

static void choose(const double p[2][2], uint64_t seed, uint64_t *words, size_t count)
{
    struct dpf_bernoulli_choice c;
    struct dpf_random r;
    dpf_bernoulli_choice_init(&c, p);
    dpf_random_init_insecure(&r, "test-local", seed, 0);
    dpf_bernoulli_choose(&c, &r, words, count);
}

enum { WORDS = 20000 };

static void check_rates(const double p[2][2], size_t count, uint64_t seed)
{
    static uint64_t in[WORDS + 1], out[WORDS + 1];
    double seen[2][2] = {{0}}, ones[2][2] = {{0}};
    fill_bits(in, count + 1, seed);
    memcpy(out, in, sizeof in);
    choose(p, seed, out, count);
    CU_ASSERT(out[count] == in[count]); /* nothing behind the end */
    for (size_t i = 0; i < count * 64; i++) {
        int bit = (int)(in[i / 64] >> i % 64 & 1);
        seen[i % 2][bit]++;
        ones[i % 2][bit] += (double)(out[i / 64] >> i % 64 & 1);
    }
    for (int odd = 0; odd < 2; odd++)
        for (int bit = 0; bit < 2; bit++) {
            bool good = plausible(ones[odd][bit], seen[odd][bit], p[odd][bit]);
            if (!good)
                printf("    rate %g: %g of %g\n", p[odd][bit], ones[odd][bit],
                       seen[odd][bit]);
            CU_ASSERT(good);
        }
}

/* Rates whose digits start, end and run in every way around the eighth. */
static const double odd_rates[] = {
    0,         1,       0.5,         1e-9,    0x1p-70,    1 - 0x1p-53, 1 - 1e-9, 0.3,
    1.0 / 3,   2.0 / 3, 0x1p-8,      0x1p-9,  255. / 256, 257. / 512,  0x1p-7,   0.875,
    1.0 / 344, 0.125,   127.0 / 128, 0x1p-64, 0x1p-300,   5e-324,      0x1.8p-8, 0.999};
enum { ODD_RATES = sizeof odd_rates / sizeof *odd_rates };

static void test_rates(void)
{
    for (size_t i = 0; i < ODD_RATES; i++) {
        const double p[2][2] = {
            {odd_rates[i], odd_rates[(i + 1) % ODD_RATES]},
            {odd_rates[(i * 7 + 3) % ODD_RATES], odd_rates[(i * 5 + 2) % ODD_RATES]}};
        check_rates(p, (WORDS - i) / FEWER, i);
    }
    const double p[2][2] = {{0.2, 0.9}, {0.01, 0.6}};
    for (size_t count = 0; count <= 40; count++) /* too few to see much, but the ends */
        check_rates(p, count, 100 + count);
    const double outside[2][2] = {{-0.5, 1.5}, {NAN, INFINITY}};
    uint64_t words[3] = {0x5555555555555555, 0, ~(uint64_t)0};
    choose(outside, 1, words, 3); /* below 0 and NaN: never; above 1: always */
    CU_ASSERT(words[0] == 0x5555555555555555 && words[1] == 0 && ~words[2] == 0);
}

/* Digit `k` behind the point of p in (0, 1), by doubling, which is exact. */
static int digit(double p, int k)
{
    int d = 0;
    for (int i = 0; i <= k; i++) {
        p *= 2;
        d = p >= 1;
        p -= d;
    }
    return d;
}

/* What one lane becomes if the digits of its U are known. The generator's store is
 * replaced: first eight words for each of the first digits, then 64 digits at a time for
 * the one lane that these leave open; all other lanes differ in the first digit. */
static int lane_with(double p, int lane, int word, const int *u)
{
    struct dpf_bernoulli_choice c;
    struct dpf_random r;
    const double rates[2][2] = {{p, p}, {p, p}};
    uint64_t words[8] = {0}, store[DPF_RANDOM_REFILL / 8] = {0};
    size_t at = 4; /* the first 32 bytes of a store are a key */
    for (int k = 0; k < DPF_BERNOULLI_DIGITS; k++)
        for (int i = 0; i < 8; i++, at++) {
            uint64_t own = (uint64_t)1 << lane, other = digit(p, k) ? 0 : ~(uint64_t)0;
            store[at] = i == word ? (other & ~own) | (u[k] ? own : 0) : other;
        }
    for (int k = DPF_BERNOULLI_DIGITS; k < 1200; k++)
        store[at + (size_t)(k - DPF_BERNOULLI_DIGITS) / 64] |=
            (uint64_t)u[k] << (63 - (k - DPF_BERNOULLI_DIGITS) % 64);
    dpf_bernoulli_choice_init(&c, rates);
    dpf_random_init_insecure(&r, "test-local", 0, 0);
    memcpy(r.bytes, store, sizeof r.bytes);
    r.used = 32;
    dpf_bernoulli_choose(&c, &r, words, 8);
    return (int)(words[word] >> lane & 1);
}

/* The draw is U < p to the last digit: U just below p, p itself, just above. */
static void test_exact(void)
{
    for (size_t i = 0; i < ODD_RATES; i++) {
        double p = odd_rates[i];
        int u[1200], last = 0, lane = (int)(i * 11 % 64), word = (int)i % 8;
        if (p <= 0 || p >= 1)
            continue;
        for (int k = 0; k < 1200; k++) {
            u[k] = digit(p, k);
            last = u[k] ? k : last;
        }
        CU_ASSERT(lane_with(p, lane, word, u) == 0); /* U = p */
        u[last] = 0;
        for (int k = last + 1; k < 1200; k++)
            u[k] = 1;
        CU_ASSERT(lane_with(p, lane, word, u) == 1);
        for (int k = last + 1; k < 1200; k++)
            u[k] = k == last + 130;
        u[last] = 1;
        CU_ASSERT(lane_with(p, lane, word, u) == 0);
    }
}

/* Neighbours in a word, in words side by side and in groups of them are independent, and
 * a lane does not hear of its neighbour's input. */
static void test_independence(void)
{
    static uint64_t in[WORDS], out[WORDS];
    static const size_t gaps[] = {1, 2, 3, 32, 63, 64, 128, 512};
    const double p[2][2] = {{0.3, 0.75}, {0.45, 0.6}};
    fill_bits(in, WORDS, 5);
    memcpy(out, in, sizeof in);
    choose(p, 9, out, WORDS);
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++)
        for (int kind = 0; kind < 8; kind++) { /* parity, own bit, the other's bit */
            int odd = kind & 1, own = kind >> 1 & 1, other = kind >> 2;
            double n = 0, both = 0, first = 0;
            size_t gap = gaps[g];
            for (size_t i = 0; i + gap < WORDS * (size_t)64; i++) {
                size_t j = i + gap;
                if (i / gap % 2 || i % 2 != (size_t)odd) /* each place in one pair */
                    continue;
                if ((int)(in[i / 64] >> i % 64 & 1) != own ||
                    (int)(in[j / 64] >> j % 64 & 1) != other)
                    continue;
                int a = (int)(out[i / 64] >> i % 64 & 1);
                n++;
                first += a;
                both += a & (int)(out[j / 64] >> j % 64 & 1);
            }
            double pa = p[odd][own], pb = p[(odd + gap) % 2][other];
            if (n == 0 && gap == 1 && odd)
                continue; /* pairs of gap 1 start at even places */
            CU_ASSERT(n > 1000);
            CU_ASSERT(plausible(first, n, pa) && plausible(both, n, pa * pb));
        }
}

static void test_same_seed(void)
{
    static uint64_t a[1003], b[1003], c[1003];
    const double p[2][2] = {{0.3, 0.7}, {1e-3, 0.999}};
    fill_bits(a, 1003, 3);
    memcpy(b, a, sizeof a);
    memcpy(c, a, sizeof a);
    choose(p, 17, a, 1003);
    choose(p, 17, b, 1003);
    choose(p, 18, c, 1003);
    CU_ASSERT(memcmp(a, b, sizeof a) == 0);
    CU_ASSERT(memcmp(a, c, sizeof a) != 0);
}

/* ------------------------------------------------------------- what strings of bits cost
 */

/* ln Pr[out | in] of a string whose places have these rates. */
static long double log_probability(const struct dpf_bit_rates rates[2], int bits,
                                   unsigned in, unsigned out)
{
    long double sum = 0;
    for (int i = 0; i < bits; i++) {
        const struct dpf_bit_rates *r = &rates[i % 2];
        long double one = (long double)(in >> i & 1 ? r->one : r->zero);
        sum += out >> i & 1 ? logl(one) : log1pl(-one);
    }
    return sum;
}

/* The largest ln ratio over all outputs and all pairs of inputs; one-hot ones only, or
 * those that differ in bits of `mask` only. */
static double brute(const struct dpf_bit_rates rates[2], int bits, bool one_hot,
                    unsigned mask)
{
    long double most = 0;
    for (unsigned a = 0; a < 1u << bits; a++)
        for (unsigned b = 0; b < 1u << bits; b++) {
            bool hot = __builtin_popcount(a) == 1 && __builtin_popcount(b) == 1;
            if ((one_hot && !hot) || ((a ^ b) & ~mask))
                continue;
            for (unsigned out = 0; out < 1u << bits; out++)
                most = fmaxl(most, log_probability(rates, bits, a, out) -
                                       log_probability(rates, bits, b, out));
        }
    return (double)most;
}

static void check_cost(double told, double due)
{
    bool good = told >= due && told <= due * (1 + 1e-9) + 1e-11;
    if (!good)
        printf("    epsilon %.17g, by enumeration %.17g\n", told, due);
    CU_ASSERT(good);
}

static double largest(double a, double b)
{
    return a > b ? a : b;
}

/* The rates, as the LATENT notes have them. */
static void check_formulas(enum dpf_bit_method method, double epsilon, uint64_t bits,
                           double alpha, const struct dpf_bit_rates rates[2])
{
    long double t = (long double)epsilon / (long double)bits, a = (long double)alpha;
    long double one[2] = {0}, zero = 0;
    switch (method) {
    case DPF_BITS_UE:
        t = (long double)epsilon / 2;
        /* fallthrough */
    case DPF_BITS_RR:
        one[0] = one[1] = expl(t) / (1 + expl(t));
        zero = 1 - one[0];
        break;
    case DPF_BITS_OUE:
        one[0] = one[1] = 0.5L;
        zero = 1 / (1 + expl((long double)epsilon));
        break;
    case DPF_BITS_MOUE:
        one[0] = one[1] = 1 / (1 + a);
        zero = 1 / (1 + a * expl(t));
        break;
    case DPF_BITS_UER:
        one[0] = a / (1 + a);
        one[1] = 1 / (1 + a * a * a);
        zero = 1 - a * expl(t) / (1 + a * expl(t));
        break;
    }
    for (int odd = 0; odd < 2; odd++) {
        CU_ASSERT_DOUBLE_EQUAL(rates[odd].one, (double)one[odd], 1e-14);
        CU_ASSERT_DOUBLE_EQUAL(rates[odd].zero, (double)zero, 1e-14);
    }
}

static void test_costs(void)
{
    static const double epsilons[] = {1e-3, 0.1, 0.5, 3, 12},
                        alphas[] = {0.3, 1, 2, 7, 40};
    static const enum dpf_bit_method strings[] = {DPF_BITS_RR, DPF_BITS_MOUE,
                                                  DPF_BITS_UER};
    struct dpf_bit_rates rates[2];
    for (int m = 0; m < 3; m++)
        for (int i = 0; i < 25; i++)
            for (int bits = 1; bits <= 4; bits++) {
                double epsilon = epsilons[i / 5], alpha = alphas[i % 5];
                CU_ASSERT_FATAL(dpf_bits_rates(strings[m], epsilon, (uint64_t)bits, alpha,
                                               rates, NULL) == DPF_OK);
                check_formulas(strings[m], epsilon, (uint64_t)bits, alpha, rates);
                uint64_t odd = (uint64_t)bits / 2, even = (uint64_t)bits - odd;
                double due = brute(rates, bits, false, ~0u);
                check_cost(dpf_bits_epsilon(rates, even, odd), due);
                if (m == 0)
                    CU_ASSERT_DOUBLE_EQUAL(due, epsilon, 1e-9);
                /* some bits only can differ */
                check_cost(dpf_bits_epsilon(rates, 1, 0), brute(rates, bits, false, 1));
                if (bits > 3)
                    check_cost(dpf_bits_epsilon(rates, 1, 2),
                               brute(rates, bits, false, 14));
                check_cost(dpf_bit_epsilon(&rates[0]), brute(rates, 1, false, 1));
            }
}

static void test_one_hot_costs(void)
{
    static const double epsilons[] = {1e-3, 0.1, 0.5, 3, 12, 25};
    struct dpf_bit_rates rates[2];
    for (int i = 0; i < 6; i++)
        for (int classes = 2; classes <= 6; classes++)
            for (int m = 0; m < 2; m++) {
                enum dpf_bit_method method = m ? DPF_BITS_OUE : DPF_BITS_UE;
                CU_ASSERT_FATAL(dpf_bits_rates(method, epsilons[i], (uint64_t)classes, 0,
                                               rates, NULL) == DPF_OK);
                check_formulas(method, epsilons[i], (uint64_t)classes, 0, rates);
                double due = brute(rates, classes, true, ~0u);
                check_cost(dpf_one_hot_epsilon(rates), due);
                CU_ASSERT_DOUBLE_EQUAL(due, epsilons[i], 1e-4);
            }
    /* any rates at all, the strange ones too */
    static const double some[] = {1e-9, 0.01, 0.3, 0.5, 0.8, 1 - 1e-12};
    for (int i = 0; i < 36; i++) {
        struct dpf_bit_rates any[2] = {{some[i / 6], some[i % 6]},
                                       {some[i % 6], some[i / 6]}};
        struct dpf_bit_rates alike[2] = {any[0], any[0]};
        check_cost(dpf_one_hot_epsilon(any), brute(alike, 3, true, ~0u));
        check_cost(dpf_bits_epsilon(any, 2, 1), brute(any, 3, false, ~0u));
    }
    struct dpf_bit_rates sure = {1, 0.5}, never = {0.5, 0}, same = {0.3, 0.3};
    CU_ASSERT(isinf(dpf_bit_epsilon(&sure)) && isinf(dpf_bit_epsilon(&never)));
    CU_ASSERT(isinf(dpf_one_hot_epsilon(&sure)) && isinf(dpf_one_hot_epsilon(&never)));
    CU_ASSERT(dpf_bit_epsilon(&same) == 0 && dpf_one_hot_epsilon(&same) == 0);
}

/* The paper's own setting: claimed 0.5. */
static void test_paper(void)
{
    struct dpf_bit_rates rates[2];
    CU_ASSERT_FATAL(dpf_bits_rates(DPF_BITS_UER, 0.5, 92160, 7, rates, NULL) == DPF_OK);
    double told = dpf_bits_epsilon(rates, 46080, 46080), due = 0;
    CU_ASSERT_DOUBLE_EQUAL(told, 262983.64, 0.01);
    for (int odd = 0; odd < 2; odd++) {
        double p = odd ? 1.0 / 344 : 7.0 / 8, q = 1 / (1 + 7 * exp(0.5 / 92160));
        due += 46080 * largest(fabs(log(p / q)), fabs(log((1 - p) / (1 - q))));
    }
    CU_ASSERT(told >= due * (1 - 1e-12) && told <= due * (1 + 1e-12));
}

static void test_impossible(void)
{
    struct dpf_bit_rates rates[2];
    struct dpf_error e = {0};
    static const double bad[] = {0, -1, NAN, INFINITY};
    for (int i = 0; i < 4; i++) {
        CU_ASSERT(dpf_bits_rates(DPF_BITS_RR, bad[i], 8, 0, rates, &e) == DPF_USAGE);
        CU_ASSERT(dpf_bits_rates(DPF_BITS_UER, 1, 8, bad[i], rates, &e) == DPF_USAGE);
        CU_ASSERT(dpf_bits_rates(DPF_BITS_MOUE, 1, 8, bad[i], rates, &e) == DPF_USAGE);
    }
    CU_ASSERT(dpf_bits_rates(DPF_BITS_RR, 1, 0, 0, rates, &e) == DPF_USAGE);
    struct dpf_sampled_bit s;
    CU_ASSERT(dpf_sampled_bit_init(&s, 1, 0, &e) == DPF_USAGE);
    CU_ASSERT(dpf_sampled_bit_init(&s, 0, 8, &e) == DPF_USAGE);
    static const struct dpf_sphere_plan plans[] = {
        {1, 0, 16, 0, 0, 1},     {4097, 0, 16, 0, 0, 1}, {4, 1, 16, 0, 0, 1},
        {4, 65537, 16, 0, 0, 1}, {4, 0, 1, 0, 0, 1},     {4, 0, 1 << 21, 0, 0, 1},
        {4, 0, 16, 0, 0, 0},     {4, 0, 16, 0, 0, 31},   {4, 0, 16, 0, 0, NAN}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct dpf_sphere m = {0};
        CU_ASSERT(dpf_sphere_init(&m, &plans[i], &e) == DPF_USAGE);
    }
}

/* -------------------------------------------------------------------------- falsifier */

enum { HALF = 100000, KINDS = 512 };

/* One message, numbered below KINDS, about input 0 or 1. */
typedef unsigned mechanism(void *context, struct dpf_random *r, int input);

/* The epsilon that the mechanism has at least. Events: each message by itself. */
static double falsify(mechanism *draw, void *context)
{
    static double first[2][KINDS], second[2][KINDS];
    double best = -INFINITY, epsilon = 0;
    memset(first, 0, sizeof first);
    memset(second, 0, sizeof second);
    for (int input = 0; input < 2; input++) {
        struct dpf_random r;
        dpf_random_init_insecure(&r, "test-local-falsify", 1, (uint64_t)input);
        for (int i = 0; i < 2 * HALF; i++) {
            unsigned kind = draw(context, &r, input);
            CU_ASSERT_FATAL(kind < KINDS);
            (i < HALF ? first : second)[input][kind]++;
        }
    }
    unsigned chosen = 0;
    int more = 0;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (int input = 0; input < 2; input++) {
            double a = first[input][kind], b = first[!input][kind];
            double score = log(largest(a - 5 * sqrt(a), 1e-9) / (b + 5 * sqrt(b) + 14));
            if (score > best) {
                best = score;
                chosen = kind;
                more = input;
            }
        }
    double low = rate_bound(second[more][chosen], HALF, level / 2, false);
    double high = rate_bound(second[!more][chosen], HALF, level / 2, true);
    if (low > 0)
        epsilon = largest(0, log(low / high));
    return epsilon;
}

static void check_stands(mechanism *draw, void *context, double proven, double awake,
                         const char *what)
{
    double found = falsify(draw, context);
    if (!(found <= proven) || !(found >= awake * proven))
        printf("    %s: found epsilon %g, proven %g\n", what, found, proven);
    CU_ASSERT(found <= proven);
    CU_ASSERT(found >= awake * proven); /* else the falsifier slept */
}

static void check_falls(mechanism *draw, void *context, double claimed, const char *what)
{
    double found = falsify(draw, context);
    if (!(found > claimed * 1.05))
        printf("    %s: found epsilon %g, claimed %g\n", what, found, claimed);
    CU_ASSERT(found > claimed * 1.05);
}

struct bits_case {
    struct dpf_bit_randomiser m;
    unsigned mask, input[2];
};

static unsigned draw_bits(void *context, struct dpf_random *r, int input)
{
    /* 512 bits come at a price: a word serves as well */
    struct bits_case *c = context;
    uint64_t word = c->input[input];
    dpf_bits_randomise(&c->m, r, &word, 1);
    return (unsigned)word & c->mask;
}

static void set_bits_case(struct bits_case *c, enum dpf_bit_method method, double epsilon,
                          int bits, double alpha, struct dpf_bit_rates rates[2])
{
    CU_ASSERT_FATAL(dpf_bits_rates(method, epsilon, (uint64_t)bits, alpha, rates, NULL) ==
                    DPF_OK);
    dpf_bit_randomiser_init(&c->m, rates);
    c->mask = (1u << bits) - 1;
    c->input[0] = 0;
    c->input[1] = c->mask;
}

static void test_falsify_bits(void)
{
    struct dpf_bit_rates rates[2];
    struct bits_case c;
    for (int bits = 1; bits <= 4; bits++) {
        double even = (bits + 1) / 2, odd = bits / 2, e = exp(0.5 / bits);
        /* the paper's probabilities, by hand */
        double proven = even * log(7 / 8.0 * (1 + 7 * e)) + odd * log(344 / (1 + 7 * e));
        set_bits_case(&c, DPF_BITS_UER, 0.5, bits, 7, rates);
        check_falls(draw_bits, &c, 0.5, "uer as claimed");
        check_stands(draw_bits, &c, proven, bits < 3 ? 0.8 : 0.2, "uer as proven");
        set_bits_case(&c, DPF_BITS_RR, 1.5, bits, 0, rates);
        check_stands(draw_bits, &c, 1.5, 0.8, "rr");
        check_falls(draw_bits, &c, 1.2, "rr, understated");
    }
    /* every single odd bit is beyond the whole string's claim */
    set_bits_case(&c, DPF_BITS_UER, 0.5, 8, 7, rates);
    c.input[1] = 2;
    c.mask = 2;
    check_falls(draw_bits, &c, 0.5, "uer, one odd bit");
    /* one-hot classes */
    set_bits_case(&c, DPF_BITS_OUE, 2, 4, 0, rates);
    c.input[0] = 1;
    c.input[1] = 8;
    check_stands(draw_bits, &c, 2, 0.8, "oue");
    check_falls(draw_bits, &c, 1.6, "oue, understated");
    set_bits_case(&c, DPF_BITS_UE, 2, 4, 0, rates);
    c.input[0] = 2;
    c.input[1] = 4;
    check_stands(draw_bits, &c, 2, 0.8, "ue");
    check_falls(draw_bits, &c, 1.6, "ue, understated");
}

struct sampled_case {
    struct dpf_sampled_bit m;
    uint8_t input[2][2];
};

static unsigned draw_sampled(void *context, struct dpf_random *r, int input)
{
    struct sampled_case *c = context;
    uint64_t place;
    bool answer;
    dpf_sampled_bit_draw(&c->m, r, c->input[input], &place, &answer);
    return (unsigned)place * 2 + answer;
}

static void test_sampled_bit(void)
{
    struct sampled_case c = {.input = {{0, 0}, {0xff, 0xff}}};
    CU_ASSERT_FATAL(dpf_sampled_bit_init(&c.m, 1.5, 11, NULL) == DPF_OK);
    CU_ASSERT(c.m.response.epsilon <= 1.5);
    check_stands(draw_sampled, &c, 1.5, 0.8, "sampled bit, all differ");
    check_falls(draw_sampled, &c, 1.2, "sampled bit, understated");
    c.input[1][0] = 0;
    c.input[1][1] = 4;
    check_stands(draw_sampled, &c, 1.5, 0.8, "sampled bit, the last differs");
    /* all messages: a uniform place, the answer kept with e^e / (1 + e^e) */
    static const uint8_t string[2] = {0xa6, 0x05};
    double seen[22] = {0}, keep = exp(1.5) / (1 + exp(1.5)), mean[11] = {0};
    struct dpf_random r;
    int n = 400000 / FEWER;
    dpf_random_init_insecure(&r, "test-local", 4, 0);
    for (int i = 0; i < n; i++) {
        uint64_t place;
        bool answer;
        dpf_sampled_bit_draw(&c.m, &r, string, &place, &answer);
        CU_ASSERT_FATAL(place < 11);
        seen[2 * place + answer]++;
        mean[place] += dpf_sampled_bit_estimate(&c.m, answer) / n;
    }
    for (int i = 0; i < 22; i++) {
        bool kept = (string[i / 2 / 8] >> i / 2 % 8 & 1) == i % 2;
        CU_ASSERT(plausible(seen[i], n, (kept ? keep : 1 - keep) / 11));
    }
    double one = 11 / (2 * keep - 1); /* of the estimate, at one place in 11 */
    for (int i = 0; i < 11; i++)
        CU_ASSERT_DOUBLE_EQUAL(mean[i], string[i / 8] >> i % 8 & 1 ? 1 : -1,
                               5.5 * one / sqrt(11.0 * n));
}

/* ----------------------------------------------------------------------------- sphere */

enum { VALUES = 4, MOST_LABELS = 4 };

/* Messages at one place, numbered as they are first seen. */
struct sphere_case {
    struct dpf_sphere m;
    uint64_t place;
    float record[2][VALUES];
    uint64_t label[2];
    unsigned count;
    float seen[KINDS][VALUES + MOST_LABELS];
};

static void sphere_begin(struct sphere_case *c, size_t directions, size_t labels,
                         double epsilon)
{
    static const float records[2][VALUES] = {{1, -2, 0.5f, 3}, {-2, 1, 1, -1}};
    struct dpf_sphere_plan plan = {VALUES, labels, directions, 7, 3, epsilon};
    memset(c, 0, sizeof *c);
    memcpy(c->record, records, sizeof records);
    c->place = 13;
    c->label[1] = labels ? 1 : 0;
    CU_ASSERT_FATAL(dpf_sphere_init(&c->m, &plan, NULL) == DPF_OK);
}

static unsigned draw_sphere(void *context, struct dpf_random *r, int input)
{
    struct sphere_case *c = context;
    float message[VALUES + MOST_LABELS] = {0};
    dpf_sphere_draw(&c->m, r, c->place, c->record[input], c->label[input], message,
                    c->m.plan.labels ? message + VALUES : NULL);
    for (unsigned i = 0; i < c->count; i++)
        if (memcmp(c->seen[i], message, sizeof message) == 0)
            return i;
    CU_ASSERT_FATAL(c->count < KINDS);
    memcpy(c->seen[c->count], message, sizeof message);
    return c->count++;
}

static double dot(const float *a, const float *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The two levels: t messages with e^e / D, all others with 1 / D, and no others. */
static void check_levels(struct sphere_case *c, int input, bool ranked)
{
    static double counts[KINDS];
    struct dpf_random r;
    size_t k = c->m.plan.directions, labels = c->m.plan.labels;
    double all = (double)(c->m.tells_label ? k * labels : k), t = (double)c->m.region;
    double e = exp(c->m.plan.epsilon), d = t * e + all - t;
    double n = floor(300 * d / FEWER), inside = 0, lowest = INFINITY, highest = -INFINITY;
    if (n > 150000)
        n = 150000;
    memset(counts, 0, sizeof counts);
    dpf_random_init_insecure(&r, "test-local-levels", (uint64_t)input, 0);
    for (double i = 0; i < n; i++)
        counts[draw_sphere(c, &r, input)]++;
    CU_ASSERT((double)c->m.messages == all && (double)c->count <= all);
    for (unsigned i = 0; i < c->count; i++) {
        bool near = counts[i] > n / d * sqrt(e); /* between the two, in ratio */
        inside += near;
        bool good = plausible(counts[i], n, (near ? e : 1) / d);
        if (!good)
            printf("    a message came %g times of %g, levels %g and %g\n", counts[i], n,
                   n * e / d, n / d);
        CU_ASSERT(good);
        double own = dot(c->seen[i], c->record[input], VALUES);
        if (!c->m.tells_label && labels)
            own *= (double)c->seen[i][VALUES + c->label[input]]; /* the public sign */
        bool told = !c->m.tells_label || c->seen[i][VALUES + c->label[input]] == 1;
        CU_ASSERT(told || !near);
        if (near)
            lowest = own < lowest ? own : lowest;
        else if (told)
            highest = own > highest ? own : highest;
    }
    CU_ASSERT(inside == t);
    if (ranked) /* the region is the best t, but for rounding */
        CU_ASSERT(lowest >= highest - 1e-5);
}

static void test_levels(void)
{
    static struct sphere_case c;
    static const struct {
        size_t directions, labels;
        double epsilon;
    } plans[] = {{16, 0, 1}, {16, 0, 3}, {2, 0, 2},  {33, 0, 0.7},
                 {16, 3, 1}, {16, 2, 1}, {12, 4, 5}, {9, 3, 6}};
    bool ways[2] = {false};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        sphere_begin(&c, plans[i].directions, plans[i].labels, plans[i].epsilon);
        CU_ASSERT(c.m.region >= 1 && c.m.region < plans[i].directions);
        CU_ASSERT(c.m.epsilon <= plans[i].epsilon);
        CU_ASSERT(c.m.epsilon >= plans[i].epsilon * (1 - 1e-9));
        check_levels(&c, 0, true);
        check_levels(&c, 1, true);
        if (plans[i].labels)
            ways[c.m.tells_label] = true;
        dpf_sphere_release(&c.m);
    }
    CU_ASSERT(ways[0] && ways[1]); /* both were tried */
}

static void test_falsify_sphere(void)
{
    static struct sphere_case c;
    static const struct {
        size_t directions, labels;
        double epsilon, awake;
    } plans[] = {{16, 0, 1, 0.8}, {16, 0, 4, 0.5}, {16, 3, 1, 0.8},
                 {16, 2, 2, 0.8}, {16, 3, 4, 0.5}, {8, 4, 8, 0.2}};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        double epsilon = plans[i].epsilon;
        char what[80];
        snprintf(what, sizeof what, "privunit %zu, %zu labels, epsilon %g",
                 plans[i].directions, plans[i].labels, epsilon);
        sphere_begin(&c, plans[i].directions, plans[i].labels, epsilon);
        check_stands(draw_sphere, &c, epsilon, plans[i].awake, what);
        if (plans[i].labels) { /* the same record: only the label differs */
            memcpy(c.record[1], c.record[0], sizeof c.record[0]);
            check_stands(draw_sphere, &c, epsilon, 0, what);
        }
        dpf_sphere_release(&c.m);
    }
}

/* Records that have no direction, or one that many directions agree with alike. */
static void test_strange_records(void)
{
    static struct sphere_case c;
    static const float strange[][VALUES] = {
        {0, 0, 0, 0},
        {NAN, 1, 2, 3},
        {1, INFINITY, 0, 0},
        {-INFINITY, INFINITY, NAN, 0},
        {3e38f, -3e38f, 3e38f, 3e38f},
        {1e-45f, 0, 0, 0},
        {1e-45f, -1e-45f, 1e-45f, 3e38f},
        {-0.0f, -0.0f, -0.0f, -0.0f},
        {0, 0, 0, 1},
        {1, 1, 1, 1},
    };
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++)
        for (int way = 0; way < 2; way++) {
            sphere_begin(&c, 9, 3, way ? 6 : 1);
            struct dpf_random r;
            dpf_random_init_insecure(&r, "test-local", 8, 0);
            for (int k = 0; k < 20000 / FEWER; k++) /* the messages that there are */
                draw_sphere(&c, &r, k % 2);
            memcpy(c.record[0], strange[i], sizeof strange[i]);
            check_levels(&c, 0, false);
            dpf_sphere_release(&c.m);
        }
    /* a codebook of corners: along an axis half of them agree alike */
    for (size_t axis = 0; axis < VALUES; axis++) {
        sphere_begin(&c, 16, 0, 1);
        for (size_t i = 0; i < VALUES; i++)
            for (size_t j = 0; j < 16; j++)
                c.m.codebook[i * 16 + j] = j >> i & 1 ? 0.5f : -0.5f;
        for (size_t i = 0; i < VALUES; i++)
            c.record[0][i] = i == axis;
        for (uint64_t t = 1; t < 16; t += 3) { /* the edge falls among equals */
            c.m.region = t;
            c.m.inside = (double)t * exp(1) / ((double)t * exp(1) + 16 - (double)t);
            check_levels(&c, 0, true);
        }
        dpf_sphere_release(&c.m);
    }
}

/* Over many places, the mean message is the record's direction, and the moments that the
 * ledger tells are those of the messages. */
static void test_direction(void)
{
    enum { D = 8 };
    static const float records[][D] = {{1, -2, 0.5f, 3, 0, 0, -1, 1},
                                       {0, 0, 0, 0, 5, 0, 0, 0},
                                       {1, 1, 1, 1, -1, -1, 1, 1}};
    for (size_t k = 0; k < 3; k++)
        for (int high = 0; high < 2; high++) {
            struct dpf_sphere m;
            struct dpf_sphere_plan plan = {D, 0, 512, 1, 0, high ? 5 : 2};
            CU_ASSERT_FATAL(dpf_sphere_init(&m, &plan, NULL) == DPF_OK);
            struct dpf_random r;
            double mean[D] = {0}, cosine = 0, square = 0, off = 0, along = 0;
            double length = sqrt(dot(records[k], records[k], D)), scale = m.cosine;
            int n = 30000 / FEWER;
            dpf_random_init_insecure(&r, "test-local", k, 0);
            for (int i = 0; i < n; i++) {
                float out[D];
                dpf_sphere_draw(&m, &r, (uint64_t)i, records[k], 0, out, NULL);
                double c = dot(out, records[k], D) / length * scale;
                cosine += c / n;
                square += c * c / n;
                for (int j = 0; j < D; j++)
                    mean[j] += (double)out[j] / n;
                CU_ASSERT(fabs(sqrt(dot(out, out, D)) * scale - 1) < 1e-5);
            }
            for (int j = 0; j < D; j++) {
                double u = (double)records[k][j] / length;
                along += mean[j] * u;
            }
            for (int j = 0; j < D; j++)
                off += pow(mean[j] - along * (double)records[k][j] / length, 2);
            /* a message's length is 1 / cosine: what n of them leave aside */
            double noise = 5.5 / (scale * sqrt(n));
            bool good = fabs(along - 1) < 0.08 + noise && sqrt(off) < 0.05 + noise &&
                        fabs(cosine / m.cosine - 1) < 0.08 + noise &&
                        fabs(square / m.square - 1) < 0.08 + noise;
            if (!good)
                printf("    along %g, aside %g; cosine %g, told %g; square %g, told %g\n",
                       along, sqrt(off), cosine, m.cosine, square, m.square);
            CU_ASSERT(good);
            dpf_sphere_release(&m);
        }
}

/* Messages times codes, summed, show each class's sum of directions. */
static void test_class_sums(void)
{
    enum { D = 8, M = 3 };
    static const float centre[M][D] = {
        {3, 0, 0, 1, 0, 0, -2, 0}, {-1, 3, 0, 0, 2, 0, 0, 0}, {0, 0, -3, 0, 0, 2, 0, 1}};
    bool ways[2] = {false};
    for (int high = 0; high < 2; high++) {
        struct dpf_sphere m;
        struct dpf_sphere_plan plan = {D, M, 512, 5, 1, high ? 8 : 1};
        CU_ASSERT_FATAL(dpf_sphere_init(&m, &plan, NULL) == DPF_OK);
        ways[m.tells_label] = true;
        double truth[M][D] = {{0}}, told[M][D] = {{0}}, with = 0, of = 0, rest = 0;
        int n = 60000 / FEWER;
        struct dpf_random r, data;
        dpf_random_init_insecure(&r, "test-local", 21, 0);
        dpf_random_init_insecure(&data, "test-local", 22, 0);
        for (int i = 0; i < n; i++) {
            float x[D], out[D], code[M];
            int label = i % 4 < 2 ? 0 : i % 4 - 1; /* classes of different size */
            for (int j = 0; j < D; j++)
                x[j] = centre[label][j] + (float)dpf_random_below(&data, 2001) / 1000 - 1;
            double length = sqrt(dot(x, x, D));
            dpf_sphere_draw(&m, &r, (uint64_t)i, x, (uint64_t)label, out, code);
            for (int j = 0; j < D; j++) {
                truth[label][j] += (double)x[j] / length / n;
                for (int c = 0; c < M; c++)
                    told[c][j] += (double)out[j] * (double)code[c] / n;
            }
        }
        for (int j = 0; j < D; j++) { /* up to a vector common to all columns */
            double a = 0, b = 0;
            for (int c = 0; c < M; c++) {
                a += truth[c][j] / M;
                b += told[c][j] / M;
            }
            for (int c = 0; c < M; c++) {
                truth[c][j] -= a;
                told[c][j] -= b;
                with += truth[c][j] * told[c][j];
                of += truth[c][j] * truth[c][j];
            }
        }
        for (int c = 0; c < M; c++)
            for (int j = 0; j < D; j++)
                rest += pow(told[c][j] - with / of * truth[c][j], 2);
        /* signs of three labels, two against one, have a mean product of -1/3 */
        double constant = m.tells_label ? 1 : 4.0 / 3;
        double noise = 6 * sqrt(M) / (m.cosine * sqrt(n));
        bool good = fabs(with / of / constant - 1) < 0.08 + noise / sqrt(of) &&
                    sqrt(rest) < 0.05 * sqrt(of) * constant + noise;
        if (!good)
            printf("    epsilon %g: factor %g, not %g; rest %g of %g\n", plan.epsilon,
                   with / of, constant, sqrt(rest), sqrt(of));
        CU_ASSERT(good);
        dpf_sphere_release(&m);
    }
    CU_ASSERT(ways[0] && ways[1]);
}

/* ---------------------------------------------------------------------- labels by
 * response */

static void test_response(void)
{
    static const uint64_t choices[] = {2, 3, 10};
    static const double epsilons[] = {0.01, 1, 5};
    for (int i = 0; i < 9; i++) {
        struct dpf_response m;
        uint64_t classes = choices[i / 3];
        double epsilon = epsilons[i % 3], seen[10] = {0}, n = 100000 / FEWER;
        struct dpf_random r;
        CU_ASSERT_FATAL(dpf_response_init(&m, epsilon, classes, NULL) == DPF_OK);
        dpf_random_init_insecure(&r, "test-local", 30, (uint64_t)i);
        for (int k = 0; k < (int)n; k++) {
            uint64_t answer = dpf_response_draw(&m, &r, classes - 1);
            CU_ASSERT_FATAL(answer < classes);
            seen[answer]++;
        }
        double d = exp(epsilon) + (double)classes - 1;
        for (uint64_t k = 0; k < classes; k++)
            CU_ASSERT(plausible(seen[k], n, (k == classes - 1 ? exp(epsilon) : 1) / d));
        CU_ASSERT(m.epsilon <= epsilon && m.epsilon >= epsilon * (1 - 1e-9));
    }
}

/* ------------------------------------------------------------------- a folded first
 * layer */

/* What the first layer makes of clean bits with folded weights is the mean of what it
 * makes of randomised ones with the weights as they were. */
static void test_expected_bits(void)
{
    enum { BITS = 13, UNITS = 3, DRAWS = 200000 };
    static const char text[] = "input x 13 bits\nh = dense x out=3\nr = relu h\n"
                               "y = dense r out=2\noutput y\n";
    struct dpf_model m;
    struct dpf_error e = {0};
    CU_ASSERT_FATAL(dpf_model_parse(&m, text, sizeof text - 1, "test", &e) == DPF_OK);
    const struct dpf_node *h = dpf_model_find(&m, "h");
    float *plain = calloc(m.span, sizeof *plain), *folded = calloc(m.span, sizeof *plain);
    CU_ASSERT_FATAL(plain && folded);
    for (size_t i = 0; i < m.span; i++)
        plain[i] = folded[i] = (float)(i * 37 % 17) / 8 - 1;
    const double rates[4] = {0.875, 0.124, 1.0 / 344, 0.124};
    CU_ASSERT_FATAL(dpf_expect_bits(&m, rates, folded, &e) == DPF_OK);
    for (size_t i = 0; i < m.span; i++) { /* the first layer's, and no others */
        bool first = (i >= h->offset[0] && i < h->offset[0] + BITS * UNITS) ||
                     (i >= h->offset[1] && i < h->offset[1] + UNITS);
        CU_ASSERT(first || folded[i] == plain[i]);
    }
    uint64_t state = 12345;
    const unsigned record = 0x1a35;
    double mean[UNITS] = {0}, square[UNITS] = {0};
    int n = DRAWS / FEWER;
    for (int k = 0; k < n; k++) {
        double value[UNITS];
        for (int u = 0; u < UNITS; u++)
            value[u] = (double)plain[h->offset[1] + (size_t)u];
        for (int i = 0; i < BITS; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            double uniform = (double)(state >> 11) * 0x1p-53;
            if (uniform < rates[2 * (i % 2) + !(record >> i & 1)])
                for (int u = 0; u < UNITS; u++)
                    value[u] += (double)plain[h->offset[0] + (size_t)(i * UNITS + u)];
        }
        for (int u = 0; u < UNITS; u++) {
            mean[u] += value[u] / n;
            square[u] += value[u] * value[u] / n;
        }
    }
    for (int u = 0; u < UNITS; u++) {
        double value = (double)folded[h->offset[1] + (size_t)u];
        for (int i = 0; i < BITS; i++)
            if (record >> i & 1)
                value += (double)folded[h->offset[0] + (size_t)(i * UNITS + u)];
        double noise = sqrt((square[u] - mean[u] * mean[u]) / n);
        CU_ASSERT(noise > 0 && fabs(value - mean[u]) < 5.5 * noise);
    }
    dpf_model_release(&m);
    static const char *const others[] = {
        "input x 13\nh = dense x out=3\noutput h\n",
        "input x 13 bits\nh = dense x out=3 bias=0\noutput h\n",
        "input x 13 bits\na = dense x out=3\nb = dense x out=3\nh = concat a b\n"
        "output h\n"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CU_ASSERT_FATAL(dpf_model_parse(&m, others[i], strlen(others[i]), "test", &e) ==
                        DPF_OK);
        float *room = calloc(m.span, sizeof *room);
        CU_ASSERT(room && dpf_expect_bits(&m, rates, room, &e) == DPF_USAGE);
        free(room);
        dpf_model_release(&m);
    }
    free(plain);
    free(folded);
}

/* ---------------------------------------------------------------------------- many
 * owners */

static void add_local(struct dpf_values *v, double epsilon, const char *method,
                      const double *probabilities, size_t count)
{
    struct dpf_mechanism_event event = {
        .spending = {&dpf_spending_pure, epsilon, 2, 1, 1},
        .sampling = "none",
        .relation = DPF_LOCAL,
        .claimed = {epsilon / 2, 0, "a paper"},
        .proven = {epsilon, 0, "a theorem"},
        .method = method,
        .probabilities = probabilities,
        .probability_count = count};
    dpf_ledger_add_mechanism(v, "test", &event);
}

/* A merge of `owners` ledgers; owner i spends base + i step. */
static void make_merge(struct dpf_header *h, uint32_t owners, double base, double step,
                       int distinct)
{
    *h = (struct dpf_header){.is_protected = true};
    msgpack_packer p = dpf_values_packer(&h->events);
    msgpack_pack_map(&p, distinct < 0 ? 2 : 3);
    dpf_pack_string(&p, "event");
    dpf_pack_string(&p, "merge");
    if (distinct >= 0) {
        dpf_pack_string(&p, "distinct_owners");
        if (distinct == 2)
            msgpack_pack_uint64(&p, 1); /* no truth value */
        else if (distinct)
            msgpack_pack_true(&p);
        else
            msgpack_pack_false(&p);
    }
    dpf_pack_string(&p, "branches");
    msgpack_pack_array(&p, owners);
    for (uint32_t i = 0; i < owners; i++) {
        struct dpf_values one = {0};
        add_local(&one, base + i * step, "rr", NULL, 0);
        msgpack_pack_array(&p, one.count);
        dpf_buffer_append(&h->events.bytes, one.bytes.data, one.bytes.size);
        dpf_values_release(&one);
    }
    h->events.count = 1;
}

static void check_merge(uint32_t owners, double base, double step, int distinct,
                        double due, double claimed)
{
    struct dpf_header h;
    struct dpf_account a;
    struct dpf_error e = {0};
    const struct dpf_account_request request = {.method = DPF_METHOD_BASIC, .delta = 0};
    make_merge(&h, owners, base, step, distinct);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &request, &e) == DPF_OK);
    bool good = a.proven.epsilon >= due * (1 - 1e-12) &&
                a.proven.epsilon <= due * (1 + 1e-9) && a.relation == DPF_LOCAL;
    good = good && fabs(a.claimed.epsilon - claimed) < 1e-9 * claimed;
    if (!good)
        printf("    %u owners: epsilon %g, not %g; claimed %g, not %g\n", owners,
               a.proven.epsilon, due, a.claimed.epsilon, claimed);
    CU_ASSERT(good);
    CU_ASSERT((strstr(dpf_text_get(&a.assumes), "two owners") != NULL) ==
              (distinct == 1));
    dpf_account_release(&a);
    dpf_header_release(&h);
}

static void test_owners(void)
{
    check_merge(1, 2, 0, 1, 2, 1);
    check_merge(2, 2, 0, 1, 2, 1);
    check_merge(2, 2, 1, 1, 3, 1.5);
    check_merge(64, 2, 0.01, 1, 2.63, 1.315);
    check_merge(65, 2, 0, 1, 2, 1);
    check_merge(1000, 2, 0, 1, 2, 1);
    /* nobody says that they are different people: all of it adds up */
    check_merge(2, 2, 1, 0, 5, 2.5);
    check_merge(2, 2, 1, -1, 5, 2.5);
    check_merge(2, 2, 1, 2, 5, 2.5);
    check_merge(100, 2, 0, 0, 200, 100);
}

/* Owners choose for themselves: as many costs as there are owners. */
static void test_owners_all_different(void)
{
    check_merge(65, 2, 0.01, 1, 2.64, 1.32);
    check_merge(1000, 1, 0.001, 1, 1.999, 0.9995);
}

/* What everyone did after the merge comes on top; one owner without protection is enough
 * for no bound at all. */
static void test_owners_and_more(void)
{
    struct dpf_header h;
    struct dpf_account a;
    const struct dpf_account_request request = {.method = DPF_METHOD_BASIC, .delta = 0};
    make_merge(&h, 100, 2, 0, 1);
    add_local(&h.events, 0.5, "rr", NULL, 0);
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &request, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(a.proven.epsilon, 2.5, 1e-9);
    dpf_account_release(&a);
    dpf_header_release(&h);
    h = (struct dpf_header){.is_protected = true};
    msgpack_packer p = dpf_values_packer(&h.events);
    msgpack_pack_map(&p, 3);
    dpf_pack_string(&p, "event");
    dpf_pack_string(&p, "merge");
    dpf_pack_string(&p, "distinct_owners");
    msgpack_pack_true(&p);
    dpf_pack_string(&p, "branches");
    msgpack_pack_array(&p, 2);
    struct dpf_values one = {0};
    add_local(&one, 1, "rr", NULL, 0);
    msgpack_pack_array(&p, 1);
    dpf_buffer_append(&h.events.bytes, one.bytes.data, one.bytes.size);
    msgpack_pack_array(&p, 1);
    msgpack_pack_map(&p, 1);
    dpf_pack_string(&p, "event");
    dpf_pack_string(&p, "insecure-seed");
    h.events.count = 1;
    CU_ASSERT_FATAL(dpf_account_ledger(&a, &h, &request, NULL) == DPF_OK);
    CU_ASSERT(isinf(a.proven.epsilon));
    dpf_account_release(&a);
    dpf_values_release(&one);
    dpf_header_release(&h);
}

static void test_find(void)
{
    static const double four[4] = {0.875, 0.125, 0.003, 0.125}, other[4] = {0.5, 0.1};
    static const char *const uer[] = {"uer", NULL}, *const both[] = {"moue", "uer", NULL};
    struct dpf_values v = {0};
    double found[4] = {0};
    CU_ASSERT(dpf_ledger_find(&v, uer, "probabilities", found, 4) == DPF_NOT_FOUND);
    add_local(&v, 1, "rr", other, 4);
    CU_ASSERT(dpf_ledger_find(&v, uer, "probabilities", found, 4) == DPF_NOT_FOUND);
    add_local(&v, 1, "uer", four, 4);
    add_local(&v, 2, "uer", four, 4);
    CU_ASSERT(dpf_ledger_find(&v, both, "probabilities", found, 4) == DPF_FOUND);
    CU_ASSERT(memcmp(found, four, sizeof four) == 0);
    CU_ASSERT(dpf_ledger_find(&v, uer, "moments", found, 2) == DPF_NOT_FOUND);
    CU_ASSERT(dpf_ledger_find(&v, uer, "probabilities", found, 3) != DPF_FOUND);
    add_local(&v, 1, "moue", other, 4);
    CU_ASSERT(dpf_ledger_find(&v, uer, "probabilities", found, 4) == DPF_FOUND);
    CU_ASSERT(dpf_ledger_find(&v, both, "probabilities", found, 4) ==
              DPF_FOUND_DIFFERENT);
    dpf_values_release(&v);
}

const char dpf_suite[] = "local";

const struct dpf_test dpf_tests[] = {
    {"bounds of rates", test_bounds},
    {"four rates, any number of words", test_rates},
    {"draws are exact to the last digit", test_exact},
    {"lanes are independent", test_independence},
    {"the same seed, the same bits", test_same_seed},
    {"cost of strings, by enumeration", test_costs},
    {"cost of one-hot inputs, by enumeration", test_one_hot_costs},
    {"UER's cost in the paper's setting", test_paper},
    {"impossible parameters", test_impossible},
    {"falsifier: bits; UER's claim falls", test_falsify_bits},
    {"falsifier: a sampled bit, and its estimate", test_sampled_bit},
    {"privunit: two levels, exactly t inside", test_levels},
    {"falsifier: privunit with and without labels", test_falsify_sphere},
    {"privunit: ties, zeros, NaN, infinity", test_strange_records},
    {"privunit: means and moments", test_direction},
    {"privunit: class sums, both ways", test_class_sums},
    {"labels by response", test_response},
    {"a first layer folded for clean bits", test_expected_bits},
    {"many owners cost what one does", test_owners},
    {"many owners, each with an epsilon of its own", test_owners_all_different},
    {"owners and what follows", test_owners_and_more},
    {"public numbers of a ledger", test_find},
    {0},
};
