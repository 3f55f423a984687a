/* Privacy of shuffled messages, held against the exact divergence of the simplest
 * shuffled mechanism: how many of n people said 1. */
#include <math.h>
#include <stdbool.h>

#include "account/shuffle.h"
#include "harness.h"

#include "base/banned.h"

const char dpf_suite[] = "shuffle";

/* log of Pr[k of n are 1] for bits that are 1 with probability q. */
static double log_binomial(double n, double k, double q)
{
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(q) +
           (n - k) * log1p(-q);
}

/* Pr[k ones] if one person has 1 (or 0) and n - 1 others have 0, all by randomised
 * response of epsilon e0. */
static double count_probability(int n, int k, bool has_one, double e0)
{
    double flip = 1 / (1 + exp(e0)), one = has_one ? 1 - flip : flip, sum = 0;
    if (k > 0)
        sum += one * exp(log_binomial(n - 1, k - 1, flip));
    if (k < n)
        sum += (1 - one) * exp(log_binomial(n - 1, k, flip));
    return sum;
}

static double divergence(int n, double e0, double epsilon, bool reversed)
{
    double sum = 0;
    for (int k = 0; k <= n; k++) {
        double p = count_probability(n, k, !reversed, e0);
        double q = count_probability(n, k, reversed, e0);
        sum += fmax(p - exp(epsilon) * q, 0);
    }
    return sum;
}

/* Whatever is stated holds for shuffled randomised response, both ways round. */
static void test_holds(void)
{
    static const double locals[] = {0.1, 0.5, 1, 2, 3};
    static const double deltas[] = {1e-2, 1e-5, 1e-8};
    static const int counts[] = {50, 500, 5000, 20000};
    int smaller = 0;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 4; k++) {
                double e =
                    dpf_shuffled_epsilon(locals[i], (uint64_t)counts[k], deltas[j]);
                CU_ASSERT(e <= locals[i]);
                CU_ASSERT(divergence(counts[k], locals[i], e, false) <= deltas[j]);
                CU_ASSERT(divergence(counts[k], locals[i], e, true) <= deltas[j]);
                smaller += e < locals[i];
            }
    CU_ASSERT(smaller >= 15); /* and it is worth something */
}

/* The formula of the theorem, once by hand: e0 = 1, n = 60,000, delta = 1e-6. */
static void test_value(void)
{
    double e = exp(1.), clones = 8 * sqrt(e * log(4e6)) / sqrt(60000.) + 8 * e / 60000;
    double due = log(1 + (e - 1) / (e + 1) * clones);
    CU_ASSERT_DOUBLE_EQUAL(dpf_shuffled_epsilon(1, 60000, 1e-6), due, 1e-12);
    CU_ASSERT(dpf_shuffled_epsilon(1, 60000, 1e-6) >= due);
}

/* Outside the theorem nothing is gained and nothing is claimed. */
static void test_outside(void)
{
    CU_ASSERT(dpf_shuffled_epsilon(8, 60000, 1e-6) == 8);
    CU_ASSERT(dpf_shuffled_epsilon(1, 10, 1e-6) == 1);
    CU_ASSERT(dpf_shuffled_epsilon(1, 60000, 0) == 1);
    CU_ASSERT(isinf(dpf_shuffled_epsilon(INFINITY, 60000, 1e-6)));
}

const struct dpf_test dpf_tests[] = {
    {"what is stated holds for shuffled randomised response", test_holds},
    {"the theorem's value", test_value},
    {"outside the theorem the local epsilon stands", test_outside},
    {NULL, NULL}};
