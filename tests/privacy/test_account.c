/* Accountants: published values, the truth by quadrature and by exact sums, monotony,
 * inverses, and input that nobody should give. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "account/compose.h"
#include "account/pld.h"
#include "account/privacy_loss.h"
#include "account/rdp.h"
#include "harness.h"
#include "privacy/tradeoff.h"
#include "stream_fixture.h"
#include "told.h"

#include "base/banned.h"

typedef long double real; /* the truth has more digits than what is tested */

static struct dpf_spending gaussian(double sigma, double rate, uint64_t count)
{
    return (struct dpf_spending){&dpf_spending_gaussian, sigma, 0, rate, count};
}

static struct dpf_spending laplace(double scale, double rate, uint64_t count)
{
    return (struct dpf_spending){&dpf_spending_laplace, scale, 0, rate, count};
}

static struct dpf_spending response(double epsilon, uint64_t choices, uint64_t count)
{
    return (struct dpf_spending){&dpf_spending_response, epsilon, choices, 1, count};
}

static struct dpf_spending pure(double epsilon, uint64_t count)
{
    return (struct dpf_spending){&dpf_spending_pure, epsilon, 2, 1, count};
}

static double cost_of(enum dpf_method method, const struct dpf_spending *list,
                      size_t count, double delta)
{
    double epsilon = NAN;
    struct dpf_error e = {0};
    enum dpf_status status =
        dpf_compose_epsilon(method, list, count, delta, &epsilon, NULL, &e);
    CU_ASSERT(status == DPF_OK);
    if (status != DPF_OK)
        printf("    %s: %s\n", dpf_methods[method].name, e.message);
    return epsilon;
}

static double cost(enum dpf_method method, struct dpf_spending s, double delta)
{
    return cost_of(method, &s, 1, delta);
}

/* ------------------------------------------------------------------ published values */

static void reference_table(void)
{
    static const struct {
        double sigma, rate;
        uint64_t steps;
        double moments, rdp, pld;
    } rows[] = {{4, 0.01, 10000, 1.258575, 1.035490, 0.9469},
                {1.5, 0.04, 2250, 8.0738, 7.32911117, 6.7688},
                {1.1, 256. / 60000, 14062, 3.0083, 2.5966, 2.3816}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct dpf_spending s = gaussian(rows[i].sigma, rows[i].rate, rows[i].steps);
        double pld = cost(DPF_METHOD_PLD, s, 1e-5);
        NEAR("moments", cost(DPF_METHOD_MOMENTS, s, 1e-5), rows[i].moments, 1e-4);
        NEAR("rdp", cost(DPF_METHOD_RDP, s, 1e-5), rows[i].rdp, 1e-4);
        ABOVE("pld", pld, rows[i].pld - 0.00005); /* rounded to four digits */
        BELOW("pld", pld, rows[i].pld * 1.005);
        BELOW("best", cost(DPF_METHOD_BEST, s, 1e-5), pld * (1 + 1e-12));
    }
    double epsilon, order;
    struct dpf_spending s = gaussian(4, 0.01, 10000);
    CU_ASSERT(dpf_rdp_epsilon(&s, 1, 1e-5, &epsilon, &order, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(order, 17, 0);
    NEAR("linear", dpf_strong_linear_epsilon(&s, 1e-5), 9.34, 2e-3);
}

static void reference_rdp(void)
{
    static const double whole[][2] = {
        {5, 2.18075656e-3}, {50, 2.38460375e-2}, {100, 167.416308}};
    /* dp-accounting interpolates between whole orders: an upper bound; the truth is by
     * quadrature with 40 digits */
    static const double fractional[][3] = {{1.5, 6.50070897188e-4, 6.70579741e-4},
                                           {2.5, 1.08541805692e-3, 1.08548710e-3}};
    struct dpf_spending s = gaussian(2.5, 0.01, 50);
    double r;
    for (size_t i = 0; i < COUNT(whole); i++) {
        CU_ASSERT(dpf_rdp_divergence(&s, 1, whole[i][0], &r, NULL) == DPF_OK);
        NEAR("whole order", r, whole[i][1], 4e-9);
    }
    for (size_t i = 0; i < COUNT(fractional); i++) {
        CU_ASSERT(dpf_rdp_divergence(&s, 1, fractional[i][0], &r, NULL) == DPF_OK);
        NEAR("fractional order", r, fractional[i][1], 1e-9);
        BELOW("fractional order", r, fractional[i][2]);
    }
}

static void reference_gaussian(void)
{
    struct dpf_spending s = gaussian(4.530877117, 1, 1);
    CU_ASSERT_DOUBLE_EQUAL(cost(DPF_METHOD_RDP, s, 1e-6), 1, 1e-6);
    double exact = cost(DPF_METHOD_GDP, s, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(exact, 0.92739233799744, 1e-11);
    CU_ASSERT_DOUBLE_EQUAL(cost(DPF_METHOD_BEST, s, 1e-6), exact, 0);
    NEAR("mu", dpf_gdp_mu(exact, 1e-6), 1 / 4.530877117, 1e-10);
}

static void reference_inverse(void)
{
    struct dpf_spending s = gaussian(1, 0.04, 2000);
    CU_ASSERT(dpf_solve_parameter(DPF_METHOD_RDP, &s, 1, 0, 8, 1e-5, NULL) == DPF_OK);
    NEAR("sigma by rdp", s.parameter, 1.3562, 1e-4);
    BELOW("rdp there", cost(DPF_METHOD_RDP, s, 1e-5), 8);
    CU_ASSERT(dpf_solve_parameter(DPF_METHOD_PLD, &s, 1, 0, 8, 1e-5, NULL) == DPF_OK);
    BELOW("sigma by pld", s.parameter, 1.2915);
    ABOVE("sigma by pld", s.parameter, 1.2915 * 0.995);
    BELOW("pld there", cost(DPF_METHOD_PLD, s, 1e-5), 8);
}

/* The second is 0.15594 by dp-accounting, whose grid is coarser: the truth is by
 * quadrature (see below). */
static void reference_deltas(void)
{
    static const struct {
        double sigma, rate, truth, published;
    } rows[] = {{1.7320508075688772, 1, 0.1269355, 0.126936},
                {0.5, 0.2, 0.155932775, 0.15594}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        double delta;
        struct dpf_spending s = gaussian(rows[i].sigma, rows[i].rate, 3);
        CU_ASSERT(dpf_pld_delta(&s, 1, 1, &delta, NULL) == DPF_OK);
        ABOVE("delta", delta, rows[i].truth);
        BELOW("delta", delta, rows[i].published * 1.001);
    }
}

/* --------------------------------------------------------------------------- the truth
 */

static real normal_cdf(real x)
{
    return erfcl(-x * sqrtl(0.5L)) / 2;
}

/* The hockey-stick divergence of P1 from Q at any real e, without sampling. */
static real base_delta(const struct dpf_spending *s, real e)
{
    real c = s->parameter;
    if (s->kind == &dpf_spending_gaussian)
        return fmaxl(
            normal_cdf(-e * c + 0.5L / c) - expl(e) * normal_cdf(-e * c - 0.5L / c), 0);
    if (s->kind == &dpf_spending_laplace)
        return e >= 1 / c ? 0 : e <= -1 / c ? -expm1l(e) : -expm1l((e - 1 / c) / 2);
    real answers = s->kind == &dpf_spending_pure ? 2 : (real)s->choices;
    real truth = 1 / (1 + (answers - 1) * expl(-c)), lie = truth * expl(-c);
    return fmaxl(truth - expl(e) * lie, 0) + fmaxl(lie - expl(e) * truth, 0) +
           (answers - 2) * fmaxl(-expm1l(e), 0) * lie;
}

/* The same with sampling, for a record that is removed (mixture against base) or added
 * (base against mixture). */
static real one_delta(const struct dpf_spending *s, bool added, real e)
{
    real q = s->rate;
    if (q == 1)
        return base_delta(s, e);
    if (!added) {
        real excess = expm1l(e) + q; /* q e^v, v the loss without sampling */
        return excess <= 0 ? -expm1l(e) : q * base_delta(s, logl(excess / q));
    }
    real left = -expm1l(e + log1pl(-q)); /* 1 - e^e (1 - q) */
    return left <= 0 ? 0 : left * base_delta(s, e + logl(q / left));
}

static real sampled_loss(real v, real q)
{
    return v > 40 ? v + logl(q + (1 - q) * expl(-v)) : log1pl(q * expm1l(v));
}

/* Gauss and Legendre's nodes and weights on [-1, 1]. */
enum { NODES = 16 };
static real node[NODES], weight[NODES];

static void find_nodes(void)
{
    for (int i = 0; i < NODES; i++) {
        real x = cosl(acosl(-1) * (i + 0.75L) / (NODES + 0.5L)), slope = 1;
        for (int turn = 0; turn < 50; turn++) {
            real p0 = 1, p1 = x;
            for (int k = 2; k <= NODES; k++) {
                real p2 = ((2 * k - 1) * x * p1 - (k - 1) * p0) / k;
                p0 = p1;
                p1 = p2;
            }
            slope = NODES * (x * p1 - p0) / (x * x - 1);
            x -= p1 / slope;
        }
        node[i] = x;
        weight[i] = 2 / ((1 - x * x) * slope * slope);
    }
}

static real all_delta(const struct dpf_spending *list, size_t n, bool added, real e,
                      int fine);

/* The mechanism list[n - 1] has come out with the base loss v; of mass w in this
 * direction. What the others add. */
static real outcome(const struct dpf_spending *list, size_t n, bool added, real e, real v,
                    real p1, real q0, int fine)
{
    real q = list[n - 1].rate, loss = sampled_loss(v, q);
    real mass = added ? q0 : q * p1 + (1 - q) * q0;
    return mass <= 0
               ? 0
               : mass * all_delta(list, n - 1, added, added ? e + loss : e - loss, fine);
}

/* Gauss's rule on panels that grow away from `from`, where the integrand may be sharp. */
static real over_panels(const struct dpf_spending *list, size_t n, bool added, real e,
                        int fine, real from, real to, bool sharp)
{
    real s = list[n - 1].parameter, sum = 0, unit = 1 / (s * sqrtl(2 * acosl(-1)));
    real most = fminl(s, 4 * s * s) / fine, width = sharp ? most * 0x1p-18L : most;
    real sign = to > from ? 1 : -1, left = fabsl(to - from);
    for (real x0 = from; left > 0; left -= width, width = fminl(2 * width, most)) {
        width = fminl(width, left);
        for (int i = 0; i < NODES; i++) {
            real x = x0 + sign * width * (1 + node[i]) / 2;
            real w = weight[i] * width / 2 * unit;
            sum += outcome(list, n, added, e, (2 * x - 1) / (2 * s * s),
                           w * expl(-(x - 1) * (x - 1) / (2 * s * s)),
                           w * expl(-x * x / (2 * s * s)), fine);
        }
        x0 += sign * width;
    }
    return sum;
}

/* What is left for the others is sharp where it passes their least (or largest) loss. */
static real over_gaussian(const struct dpf_spending *list, size_t n, bool added, real e,
                          int fine)
{
    const struct dpf_spending *t = &list[n - 1];
    real s = t->parameter, from = -12 * s, to = 12 * s + 1, least = 0;
    bool sharp = true;
    for (size_t i = 0; i + 1 < n; i++) {
        sharp = sharp && list[i].rate < 1;
        least += sharp ? log1pl(-(real)list[i].rate) : 0;
    }
    real mine = added ? -least - e : e - least;
    real excess = (expm1l(mine) + t->rate) / t->rate;
    real cut = excess > 0 ? (2 * s * s * logl(excess) + 1) / 2 : from;
    cut = fminl(fmaxl(cut, from), to);
    return over_panels(list, n, added, e, fine, cut, from, sharp) +
           over_panels(list, n, added, e, fine, cut, to, sharp);
}

/* Where the outcome makes the last one, list[0], start or stop to matter: x in (0, 1), or
 * outside. */
static real corner(const struct dpf_spending *list, size_t n, bool added, real e, int end)
{
    const struct dpf_spending *s = &list[0], *t = &list[n - 1];
    real top = s->kind == &dpf_spending_laplace ? 1 / (real)s->parameter : s->parameter;
    real loss = sampled_loss(end ? top : -top, s->rate);
    real mine = added ? -loss - e : e - loss;
    real v = logl(fmaxl((expm1l(mine) + t->rate) / t->rate, 1e-300L));
    return (v * t->parameter + 1) / 2;
}

static real over_laplace(const struct dpf_spending *list, size_t n, bool added, real e,
                         int fine)
{
    real b = list[n - 1].parameter, sum = 0, small = expl(-1 / b);
    real cuts[4] = {0, 0, 0, 1};
    bool smooth = list[0].kind == &dpf_spending_gaussian;
    for (int end = 0; end < 2; end++) {
        real x = smooth ? 0.5L : corner(list, n, added, e, end);
        cuts[1 + end] = fminl(fmaxl(x, 0), 1);
    }
    if (cuts[1] > cuts[2]) {
        real x = cuts[1];
        cuts[1] = cuts[2];
        cuts[2] = x;
    }
    for (int piece = 0; piece < 3; piece++)
        for (int part = 0; part < 2 * fine; part++) {
            real width = (cuts[piece + 1] - cuts[piece]) / (2 * fine);
            real middle = cuts[piece] + width * (part + 0.5L);
            for (int i = 0; width > 0 && i < NODES; i++) {
                real x = middle + width / 2 * node[i];
                real unit = width / 2 * weight[i] / (2 * b);
                sum += outcome(list, n, added, e, (2 * x - 1) / b,
                               unit * expl(-(1 - x) / b), unit * expl(-x / b), fine);
            }
        }
    return sum + outcome(list, n, added, e, 1 / b, 0.5L, small / 2, fine) +
           outcome(list, n, added, e, -1 / b, small / 2, 0.5L, fine);
}

static real over_response(const struct dpf_spending *list, size_t n, bool added, real e,
                          int fine)
{
    const struct dpf_spending *s = &list[n - 1];
    real answers = s->kind == &dpf_spending_pure ? 2 : (real)s->choices, c = s->parameter;
    real truth = 1 / (1 + (answers - 1) * expl(-c)), lie = truth * expl(-c);
    return outcome(list, n, added, e, c, truth, lie, fine) +
           outcome(list, n, added, e, -c, lie, truth, fine) +
           outcome(list, n, added, e, 0, (answers - 2) * lie, (answers - 2) * lie, fine);
}

/* Of one use of each of the list together: nested integrals over the outputs of all but
 * the first. */
static real all_delta(const struct dpf_spending *list, size_t n, bool added, real e,
                      int fine)
{
    return n == 1 ? one_delta(list, added, e)
           : list[n - 1].kind == &dpf_spending_gaussian
               ? over_gaussian(list, n, added, e, fine)
           : list[n - 1].kind == &dpf_spending_laplace
               ? over_laplace(list, n, added, e, fine)
               : over_response(list, n, added, e, fine);
}

/* Both directions; the quadrature is checked against a finer one. */
static double true_delta(const struct dpf_spending *list, size_t n, double e)
{
    real most = 0;
    for (int added = 0; added < 2; added++) {
        real delta = all_delta(list, n, added, e, 2);
        if (n == 2)
            CU_ASSERT(fabsl(delta - all_delta(list, n, added, e, 3)) < 1e-13L);
        most = fmaxl(most, delta);
    }
    return (double)most;
}

/* Neither below the truth nor much above it, in delta and in epsilon. `loose` is how much
 * larger delta may be. */
static void compare(const char *what, const struct dpf_spending *list, size_t n, double e,
                    double loose)
{
    bool bounded = true;
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        bounded = bounded && list[i].kind != &dpf_spending_gaussian;
        sum += dpf_spending_pure_epsilon(&list[i]);
    }
    double truth = true_delta(list, n, e), delta, epsilon;
    CU_ASSERT(dpf_pld_delta(list, n, e, &delta, NULL) == DPF_OK);
    ABOVE(what, delta, truth - 1e-12);
    ABOVE(what, delta, truth * (1 - 1e-9));
    BELOW(what, delta, truth * loose + 1e-12);
    if (truth < 1e-12 || truth > 0.3)
        return;
    CU_ASSERT(dpf_pld_epsilon(list, n, truth, &epsilon, NULL) == DPF_OK);
    ABOVE(what, epsilon, e * (1 - 1e-9));
    BELOW(what, epsilon, bounded ? sum * (1 + 1e-9) : e * 1.02);
    BELOW(what, true_delta(list, n, epsilon), truth * (1 + 1e-9));
}

static void pld_of_one_gaussian(void)
{
    static const double sigmas[] = {0.3, 1, 2.5, 10, 200};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (int j = 1; j <= 8; j++) {
            struct dpf_spending s = gaussian(sigmas[i], 1, 1);
            double mean = 0.5 / (sigmas[i] * sigmas[i]), delta, epsilon;
            double e = mean + j / sigmas[i], exact = dpf_gdp_delta(1 / sigmas[i], e);
            CU_ASSERT(dpf_pld_delta(&s, 1, e, &delta, NULL) == DPF_OK);
            ABOVE("delta", delta, exact * (1 - 1e-9));
            BELOW("delta", delta, exact * 1.002);
            CU_ASSERT(dpf_pld_epsilon(&s, 1, exact, &epsilon, NULL) == DPF_OK);
            ABOVE("epsilon", epsilon, e * (1 - 1e-9));
            BELOW("epsilon", epsilon, e * 1.001);
            /* a composition of Gaussians is a Gaussian */
            struct dpf_spending nine = gaussian(3 * sigmas[i], 1, 9);
            CU_ASSERT(dpf_pld_epsilon(&nine, 1, exact, &epsilon, NULL) == DPF_OK);
            ABOVE("nine", epsilon, e * (1 - 1e-9));
            BELOW("nine", epsilon, e * 1.001);
        }
}

/* The formula of the trade-off function itself, with more digits. */
static void tradeoff_formula(void)
{
    for (int i = -8; i <= 6; i++)
        for (int j = 0; j <= 30; j++) {
            double mu = pow(2, i), e = mu * mu / 2 + mu * (j / 3. - 3);
            struct dpf_spending s = gaussian(1 / mu, 1, 1);
            double truth = (double)base_delta(&s, e), delta = dpf_gdp_delta(mu, e);
            if (e < 0)
                continue;
            ABOVE("delta", delta, truth * (1 - 1e-10));
            BELOW("delta", delta, truth * (1 + 1e-9) + 1e-14);
            if (truth > 1e-30 && truth < 0.9) {
                double epsilon = dpf_gdp_epsilon(mu, truth);
                ABOVE("epsilon", epsilon, e * (1 - 1e-9) - 1e-9 * mu);
                BELOW("mu", dpf_gdp_mu(e, truth), mu * (1 + 1e-12));
            }
        }
}

/* Sampling of one use has a closed form: loose by no more than the grid. */
static void pld_of_one_sampled(void)
{
    static const double sigmas[] = {0.5, 1, 4}, rates[] = {0.9, 0.1, 0.003},
                        deltas[] = {1e-3, 1e-6, 1e-12};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (size_t j = 0; j < COUNT(rates); j++)
            for (size_t k = 0; k < COUNT(deltas); k++) {
                struct dpf_spending s = gaussian(sigmas[i], rates[j], 1);
                double e = cost(DPF_METHOD_PLD, s, deltas[k]);
                BELOW("delta at epsilon", true_delta(&s, 1, e), deltas[k] * (1 + 1e-9));
                BELOW("basic is exact", cost(DPF_METHOD_BASIC, s, deltas[k]), e);
            }
}

static void pld_of_two_gaussians(void)
{
    static const struct {
        double s0, q0, s1, q1, epsilon;
    } sets[] = {{1, 1, 2, 0.1, 2},         {0.7, 0.2, 0.7, 0.2, 1.5},
                {1, 0.5, 3, 0.01, 1},      {5, 1, 5, 1, 0.3},
                {0.5, 0.05, 0.5, 0.05, 2}, {1.1, 0.01, 1.1, 0.01, 0.2},
                {10, 0.3, 2, 0.02, 0.2},   {0.4, 0.9, 4, 0.001, 6},
                {2, 1, 1, 1, 4},           {1.5, 0.5, 0.6, 0.03, 1}};
    for (size_t i = 0; i < COUNT(sets); i++) {
        char what[32];
        snprintf(what, sizeof what, "set %zu", i);
        struct dpf_spending list[] = {gaussian(sets[i].s0, sets[i].q0, 1),
                                      gaussian(sets[i].s1, sets[i].q1, 1)};
        compare(what, list, 2, sets[i].epsilon, 1.004);
        if (sets[i].s0 == sets[i].s1 && sets[i].q0 == sets[i].q1) {
            double one, two;
            struct dpf_spending twice = list[0];
            twice.count = 2;
            CU_ASSERT(dpf_pld_delta(list, 2, sets[i].epsilon, &one, NULL) == DPF_OK);
            CU_ASSERT(dpf_pld_delta(&twice, 1, sets[i].epsilon, &two, NULL) == DPF_OK);
            NEAR("twice or two", one, two, 1e-6);
        }
    }
}

static void pld_of_three_gaussians(void)
{
    const struct {
        struct dpf_spending list[3];
        double epsilon;
    } sets[] = {
        {{gaussian(0.5, 0.2, 1), gaussian(0.5, 0.2, 1), gaussian(0.5, 0.2, 1)}, 1},
        {{gaussian(1.5, 1, 1), gaussian(2, 0.5, 1), gaussian(1, 0.1, 1)}, 1.2},
        {{gaussian(2, 0.3, 1), gaussian(3, 0.2, 1), gaussian(4, 0.1, 1)}, 0.5}};
    for (size_t i = 0; i < COUNT(sets); i++) {
        double truth = 0, delta;
        for (int added = 0; added < 2; added++)
            truth = fmax(truth,
                         (double)all_delta(sets[i].list, 3, added, sets[i].epsilon, 1));
        CU_ASSERT(dpf_pld_delta(sets[i].list, 3, sets[i].epsilon, &delta, NULL) ==
                  DPF_OK);
        ABOVE("delta", delta, truth - 1e-12);
        BELOW("delta", delta, truth * 1.002);
        if (i == 0)
            CU_ASSERT_DOUBLE_EQUAL(truth, 0.155932775918, 1e-11);
    }
}

/* Below the mean of the loss, where delta is large. */
static void pld_at_small_epsilon(void)
{
    static const double sigmas[] = {0.5, 1, 3}, epsilons[] = {0, 0.01, 0.05};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (size_t j = 0; j < COUNT(epsilons); j++) {
            struct dpf_spending s = gaussian(sigmas[i], 1, 1);
            double delta, exact = dpf_gdp_delta(1 / sigmas[i], epsilons[j]);
            CU_ASSERT(dpf_pld_delta(&s, 1, epsilons[j], &delta, NULL) == DPF_OK);
            ABOVE("delta", delta, exact * (1 - 1e-9));
            BELOW("delta", delta, exact * 1.002);
        }
}

/* Laplace noise once, at the round parameters that people use: a closed form. */
static void pld_of_laplace(void)
{
    static const double scales[] = {0.2, 0.5, 1, 1.25, 4. / 3, 1.5, 2,
                                    2.5, 3,   5, 10,   20,     78,  100},
                        deltas[] = {1e-2, 1e-3, 1e-5, 1e-6, 1e-9, 1e-12},
                        rates[] = {1, 0.5, 0.05, 0.001};
    for (size_t i = 0; i < COUNT(scales); i++)
        for (size_t j = 0; j < COUNT(deltas); j++)
            for (size_t k = 0; k < COUNT(rates); k++) {
                struct dpf_spending s = laplace(scales[i], rates[k], 1);
                double top = dpf_spending_pure_epsilon(&s);
                double e = cost(DPF_METHOD_PLD, s, deltas[j]);
                BELOW("delta at epsilon", true_delta(&s, 1, e), deltas[j] * (1 + 1e-6));
                BELOW("epsilon", e, top * 1.1);
                BELOW("best", cost(DPF_METHOD_BEST, s, deltas[j]), top * (1 + 1e-12));
            }
    /* the answer lies a little below the largest loss, which is likely */
    static const double near[][2] = {{0.1053880250142633, 0.014143556246693348},
                                     {0.24381390693755062, 0.0057934541651211147},
                                     {0.4940853471585171, 0.0036823232950553664},
                                     {0.189588, 0.007136}};
    for (size_t i = 0; i < COUNT(near); i++) {
        struct dpf_spending s = laplace(near[i][0], 1, 1);
        double e = cost(DPF_METHOD_PLD, s, near[i][1]);
        BELOW("near the top", true_delta(&s, 1, e), near[i][1] * (1 + 1e-9));
    }
    const struct {
        struct dpf_spending list[2];
        double epsilon;
    } sets[] = {{{laplace(2, 1, 1), laplace(2, 1, 1)}, 0.6},
                {{laplace(1, 1, 1), laplace(1, 0.3, 1)}, 1},
                {{laplace(5, 0.5, 1), laplace(3, 0.1, 1)}, 0.1},
                {{laplace(0.5, 1, 1), laplace(10, 1, 1)}, 1.9}};
    for (size_t i = 0; i < COUNT(sets); i++)
        compare("two", sets[i].list, 2, sets[i].epsilon, 1.02);
}

static void pld_of_mixed_lists(void)
{
    struct dpf_spending two[] = {gaussian(1, 1, 1), laplace(2, 1, 1)};
    compare("gaussian, laplace", two, 2, 2, 1.002);
    struct dpf_spending sampled[] = {gaussian(0.8, 0.2, 1), laplace(0.7, 0.3, 1)};
    compare("sampled", sampled, 2, 1.5, 1.005);
    struct dpf_spending answers[] = {gaussian(1.5, 1, 1), response(1.2, 3, 1)};
    compare("gaussian, response", answers, 2, 1.7, 1.002);
    struct dpf_spending three[] = {gaussian(0.8, 0.2, 1), laplace(2, 1, 1),
                                   response(1.2, 3, 1)};
    compare("three", three, 3, 2, 1.005);
    struct dpf_spending four[] = {gaussian(2, 1, 1), pure(0.3, 1), laplace(3, 0.5, 1),
                                  response(0.5, 4, 1)};
    compare("four", four, 4, 1.2, 1.005);
    /* the order of a list does not matter */
    struct dpf_spending turned[] = {three[2], three[0], three[1]};
    double one, other;
    CU_ASSERT(dpf_pld_epsilon(three, 3, 1e-6, &one, NULL) == DPF_OK);
    CU_ASSERT(dpf_pld_epsilon(turned, 3, 1e-6, &other, NULL) == DPF_OK);
    NEAR("order", one, other, 1e-9);
}

/* n uses of randomised response among M answers: a sum over how many were true and how
 * many were the other record's. */
static double response_delta(double e0, unsigned answers, unsigned n, double e)
{
    real truth = 1 / (1 + (answers - 1) * expl(-(real)e0)), lie = truth * expl(-(real)e0);
    real sum = 0;
    for (unsigned k = 0; k <= n; k++)
        for (unsigned m = 0; m + k <= n; m++) {
            real loss = ((real)k - m) * e0;
            if (loss <= e || (answers == 2 && k + m < n))
                continue;
            real ways =
                lgammal(n + 1) - lgammal(k + 1) - lgammal(m + 1) - lgammal(n - k - m + 1);
            real rest = n - k - m ? (n - k - m) * logl((answers - 2) * lie) : 0;
            sum +=
                expl(ways + k * logl(truth) + m * logl(lie) + rest) * -expm1l(e - loss);
        }
    return (double)sum;
}

static void pld_of_responses(void)
{
    static const double epsilons[] = {0.01, 0.03, 0.05, 0.1, 0.2, 0.4, 0.7,
                                      0.75, 0.8,  0.9,  1,   1.5, 2,   5},
                        deltas[] = {1e-2, 1e-5, 1e-9};
    static const unsigned counts[] = {1, 2, 5, 10, 50, 100}, answers[] = {2, 3, 10};
    unsigned low = 0;
    for (size_t i = 0; i < COUNT(epsilons); i++)
        for (size_t j = 0; j < COUNT(counts); j++)
            for (size_t k = 0; k < COUNT(deltas); k++)
                for (size_t m = 0; m < COUNT(answers); m++) {
                    double e0 = epsilons[i], delta = deltas[k], all = e0 * counts[j];
                    struct dpf_spending s = response(e0, answers[m], counts[j]);
                    double e = cost(DPF_METHOD_PLD, s, delta);
                    double there = response_delta(e0, answers[m], counts[j], e);
                    if (there > delta * (1 + 1e-9) && low++ < 5)
                        printf("    %g among %u, %u times, delta %g: epsilon %g, but its "
                               "delta is %g\n",
                               e0, answers[m], counts[j], delta, e, there);
                    BELOW("epsilon", e, all * 1.06 + 1e-9);
                    if (counts[j] >= 10 && e > all / 10 && e < all * 0.9)
                        ABOVE("tight", response_delta(e0, answers[m], counts[j], e * 0.9),
                              delta);
                    if (answers[m] == 2) /* any pure mechanism is dominated by it */
                        NEAR("pure", cost(DPF_METHOD_PLD, pure(e0, counts[j]), delta), e,
                             1e-9);
                }
    CU_ASSERT_EQUAL(low, 0);
}

/* What a row says of its kind agrees with its functions, and no word is used twice. */
static void rows_of_kinds(void)
{
    for (int i = 0; dpf_spending_kinds[i]; i++) {
        const struct dpf_spending_kind *kind = dpf_spending_kinds[i];
        for (double c = 0.2; c < 20; c *= 1.7) {
            struct dpf_spending s = {kind, c, 4, 1, 1}, more = s;
            double top = kind->largest_loss(&s, 0);
            CU_ASSERT(isinf(top) ? kind->is_unbounded : top > 0 && !kind->is_unbounded);
            CU_ASSERT(isfinite(kind->largest_loss(&s, 1e-15)));
            CU_ASSERT(dpf_spending_pure_epsilon(&s) >= top);
            more.parameter *= 1.1;
            CU_ASSERT((kind->loss_scale(&more) < kind->loss_scale(&s)) == kind->is_noise);
            if (kind->for_group) { /* two records cost more than one, less than no bound
                                    */
                struct dpf_spending two = s;
                kind->for_group(&two, 2);
                CU_ASSERT(dpf_spending_pure_epsilon(&two) >= top);
                CU_ASSERT(cost(DPF_METHOD_PLD, two, 1e-5) >
                          cost(DPF_METHOD_PLD, s, 1e-5));
            }
        }
        for (int j = 0; j < i; j++) {
            CU_ASSERT(strcmp(kind->name, dpf_spending_kinds[j]->name) != 0);
            CU_ASSERT(strcmp(kind->question.option,
                             dpf_spending_kinds[j]->question.option) != 0);
        }
    }
    CU_ASSERT(dpf_spending_kinds[DPF_SPENDING_KIND_COUNT] == NULL);
}

/* What a kind leaves out is refused with its name; it never makes a cost smaller. */
static void what_a_kind_leaves_out(void)
{
    static const enum dpf_method all[] = {DPF_METHOD_BASIC,   DPF_METHOD_STRONG,
                                          DPF_METHOD_MOMENTS, DPF_METHOD_RDP,
                                          DPF_METHOD_PLD,     DPF_METHOD_GDP};
    struct dpf_spending_kind bare = dpf_spending_gaussian;
    struct dpf_spending s = {&bare, 1, 2, 1, 1}, none = {NULL, 1, 2, 1, 1};
    struct dpf_error e;
    double epsilon;
    bare.name = "bare";
    bare.masses = NULL, bare.epsilon = NULL, bare.log_moment = NULL;
    bare.gaussian_variance = NULL;
    for (size_t m = 0; m < COUNT(all); m++) {
        CU_ASSERT(dpf_compose_epsilon(all[m], &s, 1, 1e-5, &epsilon, NULL, &e) ==
                  DPF_USAGE);
        CU_ASSERT(all[m] == DPF_METHOD_GDP || strstr(e.message, "'bare'") != NULL);
        CU_ASSERT(dpf_compose_epsilon(all[m], &none, 1, 1e-5, &epsilon, NULL, &e) ==
                  DPF_USAGE);
    }
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_BEST, &s, 1, 1e-5, &epsilon, NULL, &e) !=
                  DPF_OK ||
              isinf(epsilon));
    CU_ASSERT(dpf_compose_delta(&s, 1, 1, &epsilon, &e) == DPF_USAGE);
    CU_ASSERT(dpf_rdp_divergence(&s, 1, 2, &epsilon, &e) == DPF_USAGE);
    bare.masses = dpf_spending_gaussian.masses; /* a tail is left out of its moments */
    CU_ASSERT(dpf_rdp_divergence(&s, 1, 2, &epsilon, &e) == DPF_USAGE);
    CU_ASSERT(cost(DPF_METHOD_PLD, s, 1e-5) ==
              cost(DPF_METHOD_PLD, gaussian(1, 1, 1), 1e-5));
}

/* "Both keep their mass": whatever the step, and above all if losses lie on the grid. */
static void losses_keep_their_mass(void)
{
    unsigned lost = 0;
    for (int i = 1; i <= 400; i++)
        for (int kind = 0; dpf_spending_kinds[kind]; kind++) {
            double c = 0.01 * i;
            bool noise = dpf_spending_kinds[kind]->is_noise;
            struct dpf_spending s = {dpf_spending_kinds[kind], noise ? c + 0.1 : c, 4,
                                     i % 2 ? 1 : 0.1, 1};
            struct dpf_privacy_loss l;
            double p = 0, q = 0, step = dpf_spending_scale(&s) / (i % 3 ? 20 : 1000);
            double centre = i % 5 * step * 3;
            CU_ASSERT_FATAL(dpf_privacy_loss_init(&l, &s, step, centre, 1e-15, NULL) ==
                            DPF_OK);
            for (size_t j = 0; j < l.count; j++) {
                p += l.points[j].p;
                q += l.points[j].q;
            }
            if ((fabs(p - 1) > 1e-9 || fabs(q - 1) > 1e-9) && lost++ < 5)
                printf("    %s, parameter %.17g, step %.17g: %g and %g\n", s.kind->name,
                       s.parameter, step, p, q);
            dpf_privacy_loss_release(&l);
        }
    CU_ASSERT_EQUAL(lost, 0);
}

/* ------------------------------------------------------------------------ Renyi, moments
 */

/* The divergence of order alpha in one direction, by the trapezoid rule. */
static double true_divergence(double sigma, double rate, double alpha, bool added)
{
    real s = sigma, q = rate, sum = 0, step = fminl(s / 20, s * s / 6);
    for (real x = -40 * s - alpha; x <= alpha + 40 * s; x += step) {
        real loss = sampled_loss((2 * x - 1) / (2 * s * s), q);
        sum += expl((added ? 1 - (real)alpha : (real)alpha) * loss - x * x / (2 * s * s));
    }
    return (double)(logl(sum * step / (s * sqrtl(2 * acosl(-1)))) / (alpha - 1));
}

static void renyi_divergences(void)
{
    static const double sigmas[] = {0.6, 1, 4, 30}, rates[] = {0.5, 0.01, 1e-4},
                        orders[] = {1.1, 1.7, 2, 3.3, 8, 10.9, 20};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (size_t j = 0; j < COUNT(rates); j++)
            for (size_t k = 0; k < COUNT(orders); k++) {
                struct dpf_spending s = gaussian(sigmas[i], rates[j], 1);
                double r = 0, alpha = orders[k];
                double truth = fmax(true_divergence(sigmas[i], rates[j], alpha, false),
                                    true_divergence(sigmas[i], rates[j], alpha, true));
                CU_ASSERT(dpf_rdp_divergence(&s, 1, alpha, &r, NULL) == DPF_OK);
                CU_ASSERT(
                    told(fabs(r - truth) <= 1e-9 * truth + 1e-13, "gaussian", r, truth));
            }
    for (size_t k = 0; k < COUNT(orders); k++)
        for (double c = 0.05; c < 8; c *= 1.7) {
            double a = orders[k], b = 1 / c, r, p = 1 / (1 + exp(-c)), q = exp(-c) * p;
            double truth = log(a / (2 * a - 1) * exp((a - 1) / b) +
                               (a - 1) / (2 * a - 1) * exp(-a / b)) /
                           (a - 1);
            struct dpf_spending s = laplace(b, 1, 3), t = pure(c, 3);
            CU_ASSERT(dpf_rdp_divergence(&s, 1, a, &r, NULL) == DPF_OK);
            ABOVE("laplace", r, 3 * truth * (1 - 1e-9));
            BELOW("laplace", r, 3 * truth * 1.001);
            truth = log(pow(p, a) * pow(q, 1 - a) + pow(q, a) * pow(p, 1 - a)) / (a - 1);
            CU_ASSERT(dpf_rdp_divergence(&t, 1, a, &r, NULL) == DPF_OK);
            ABOVE("pure", r, 3 * truth * (1 - 1e-9));
            BELOW("pure", r, 3 * truth * 1.001);
        }
}

/* rdp.h: over lambda = 1 .. 255 and tenths below 10. */
static void moments_has_255_orders(void)
{
    struct dpf_spending s = gaussian(100, 1, 1);
    double least = INFINITY;
    for (int lambda = 1; lambda <= 255; lambda++)
        least = fmin(least, (lambda + 1) / (2. * 100 * 100) + log(1e5) / lambda);
    NEAR("moments", cost(DPF_METHOD_MOMENTS, s, 1e-5), least, 1e-9);
}

/* -------------------------------------------------------------------- simple composition
 */

static void basic_and_strong(void)
{
    struct dpf_spending p = pure(0.1, 50);
    NEAR("basic", cost(DPF_METHOD_BASIC, p, 1e-6), 5, 1e-12);
    NEAR("basic", cost(DPF_METHOD_BASIC, p, 0), 5, 1e-12);
    double k = 50, e = 0.1;
    NEAR("strong", cost(DPF_METHOD_STRONG, p, 1e-6),
         e * sqrt(2 * k * log(1e6)) + k * e * expm1(e), 1e-9);
    struct dpf_spending s = gaussian(3, 0.1, 20);
    double share = 1e-6 / 20, one = dpf_gdp_epsilon(1 / 3., share / 0.1);
    NEAR("gaussian", cost(DPF_METHOD_BASIC, s, 1e-6), 20 * log1p(0.1 * expm1(one)), 1e-9);
    /* all are upper bounds of the same thing */
    double pld = cost(DPF_METHOD_PLD, s, 1e-6);
    for (int m = DPF_METHOD_BASIC; m <= DPF_METHOD_RDP; m++)
        ABOVE(dpf_methods[m].name, cost((enum dpf_method)m, s, 1e-6), pld * 0.999);
    /* two mechanisms: not for strong, nor sampling for gdp */
    struct dpf_spending two[] = {p, s};
    CU_ASSERT(dpf_method_check(DPF_METHOD_STRONG, two, 2, 1e-6, NULL) != DPF_OK);
    CU_ASSERT(dpf_method_check(DPF_METHOD_GDP, &s, 1, 1e-6, NULL) != DPF_OK);
    CU_ASSERT(dpf_method_check(DPF_METHOD_GDP, &p, 1, 1e-6, NULL) != DPF_OK);
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_STRONG, two, 2, 1e-6, &e, NULL, NULL) ==
              DPF_USAGE);
    CU_ASSERT_DOUBLE_EQUAL(cost_of(DPF_METHOD_BEST, NULL, 0, 1e-6), 0, 0);
    CU_ASSERT_DOUBLE_EQUAL(cost_of(DPF_METHOD_PLD, NULL, 0, 0), 0, 0);
}

/* compose.h: "the smallest of those that are valid". */
static void best_is_the_smallest(void)
{
    const struct dpf_spending list[] = {gaussian(4, 0.01, 10000),
                                        gaussian(1, 1, 10),
                                        gaussian(0.05, 0.01, 1),
                                        gaussian(1, 1e-9, 1),
                                        gaussian(1, 1e-6, 10000000000),
                                        gaussian(0.05, 1e-9, 1000000000),
                                        laplace(2, 1, 5),
                                        laplace(0.01, 0.001, 3),
                                        pure(0.01, 1000000),
                                        response(3, 10, 7)};
    static const double deltas[] = {1e-5, 1e-100};
    for (size_t i = 0; i < COUNT(list); i++)
        for (size_t j = 0; j < COUNT(deltas); j++) {
            double least = INFINITY, one,
                   best = cost(DPF_METHOD_BEST, list[i], deltas[j]);
            int which = 0;
            for (int m = 0; m < DPF_METHOD_BEST; m++)
                if (dpf_method_check((enum dpf_method)m, &list[i], 1, deltas[j], NULL) ==
                        DPF_OK &&
                    dpf_compose_epsilon((enum dpf_method)m, &list[i], 1, deltas[j], &one,
                                        NULL, NULL) == DPF_OK &&
                    one < least) {
                    least = one;
                    which = m;
                }
            CU_ASSERT(
                told(best <= least * (1 + 1e-9), dpf_methods[which].name, best, least));
        }
}

/* -------------------------------------------------------------------------- Laplace
 * splits
 */

/* spending.h: a product of Laplace pairs with shifts a_i that add up to 1 is dominated by
 * one pair with the shift 1. */
static void laplace_splits_are_dominated(void)
{
    static const double scales[] = {0.1, 0.3, 1, 3, 10, 50},
                        splits[][3] = {{0.5, 0.5, 0},
                                       {0.3, 0.7, 0},
                                       {0.05, 0.95, 0},
                                       {1 / 3., 1 / 3., 1 / 3.},
                                       {0.6, 0.3, 0.1}};
    for (size_t i = 0; i < COUNT(scales); i++)
        for (size_t j = 0; j < COUNT(splits); j++)
            for (int k = 0; k < 20; k++) {
                struct dpf_spending list[3], whole = laplace(scales[i], 1, 1);
                size_t n = splits[j][2] > 0 ? 3 : 2;
                double e = (k + 0.5) / 20 / scales[i];
                for (size_t m = 0; m < n; m++)
                    list[m] = laplace(scales[i] / splits[j][m], 1, 1);
                real apart = all_delta(list, n, false, e, 2);
                BELOW("split", (double)apart, (double)base_delta(&whole, e) + 1e-9);
                ABOVE("split", (double)apart, 0); /* something was computed */
            }
}

/* Discrete Laplace noise Z of scale t, moved by a whole shift: P(Z >= k). */
static double geometric_tail(double k, double t)
{
    double r = exp(-1 / t);
    return k > 0 ? exp(-k / t) / (1 + r) : 1 - exp(-(1 - k) / t) / (1 + r);
}

/* spending.h: the continuous pair does not dominate it, the pure one does. On the grids
 * that are in use the difference is small. */
static void discrete_laplace(void)
{
    static const double shifts[] = {1, 2, 7, 4096, 1 << 30};
    for (size_t i = 0; i < COUNT(shifts); i++)
        for (double b = 0.2; b < 20; b *= 3)
            for (int k = 0; k < 20; k++) {
                double shift = shifts[i], t = b * shift, e = k / (20 * b);
                double from = floor((e * t + shift) / 2) + 1; /* losses above e */
                double delta =
                    geometric_tail(from - shift, t) - exp(e) * geometric_tail(from, t);
                struct dpf_spending s = laplace(b, 1, 1), p = pure(1 / b, 1);
                BELOW("pure", delta, (double)base_delta(&p, e) + 1e-13);
                double excess = delta / (double)base_delta(&s, e) - 1;
                BELOW("grid", excess, 10 / (b * shift) + 1e-7);
                if (shift == 1)
                    ABOVE("coarse", excess, 0.01 / b);
            }
}

/* --------------------------------------------------------------------------- monotony */

static uint64_t seed;

static double uniform(double lo, double hi)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return lo + (hi - lo) * (double)(seed >> 11) * 0x1p-53;
}

static double between(double lo, double hi)
{
    return exp(uniform(log(lo), log(hi)));
}

/* 200 points and four neighbours of each that are less private: less noise, a larger
 * rate, more steps, a smaller delta. */
static void costs_are_monotone(void)
{
    enum { PLD, RDP, METHODS = 4 };
    static const enum dpf_method methods[METHODS] = {DPF_METHOD_PLD, DPF_METHOD_RDP,
                                                     DPF_METHOD_MOMENTS, DPF_METHOD_BEST};
    seed = 20240607;
    for (int i = 0; i < 200; i++) {
        struct dpf_spending here = gaussian(between(0.4, 30), fmin(between(1e-4, 4), 1),
                                            (uint64_t)between(1, 1e5));
        double delta = between(1e-10, 1e-2), base[METHODS], e[METHODS];
        for (int way = -1; way < 4; way++) {
            struct dpf_spending s = here;
            double less = between(1.2, 5), d = way == 3 ? delta / less : delta;
            if (way == 0)
                s.parameter /= fmin(less, 1.5);
            else if (way == 1)
                s.rate = fmin(s.rate * less, 1);
            else if (way == 2)
                s.count = (uint64_t)ceil((double)s.count * less);
            for (int m = 0; m < METHODS; m++) {
                e[m] = cost(methods[m], s, d);
                if (way < 0)
                    base[m] = e[m];
                ABOVE(dpf_methods[methods[m]].name, e[m], base[m] * (1 - 1e-6));
            }
            BELOW("pld, rdp", e[PLD], e[RDP] * (1 + 1e-3));
        }
    }
}

/* Bounded losses, at any parameters: never below the truth (of one use, for Laplace), nor
 * above the sum. */
static void bounded_losses(void)
{
    unsigned low = 0;
    seed = 5;
    for (int i = 0; i < 400; i++) {
        double e0 = between(0.003, 6), delta = between(1e-12, 0.1);
        unsigned count = (unsigned)between(1, 300);
        bool noise = i % 2;
        struct dpf_spending s = noise ? laplace(1 / e0, 1, count) : pure(e0, count);
        double e = cost(DPF_METHOD_BEST, s, delta);
        double there = noise ? true_delta(&s, 1, e) : response_delta(e0, 2, count, e);
        if (there > delta * (1 + 1e-6) && low++ < 5)
            printf("    %s %.17g, %u times, delta %g: epsilon %g, but its delta is %g\n",
                   noise ? "laplace" : "pure", s.parameter, count, delta, e, there);
        BELOW("basic", e, e0 * count * (1 + 1e-9));
    }
    CU_ASSERT_EQUAL(low, 0);
}

/* ----------------------------------------------------------------------------- inverses
 */

static void solutions_are_tight(void)
{
    static const enum dpf_method methods[] = {DPF_METHOD_PLD, DPF_METHOD_RDP,
                                              DPF_METHOD_BEST, DPF_METHOD_BASIC};
    static const double targets[] = {0.3, 1, 8};
    for (size_t m = 0; m < COUNT(methods); m++)
        for (size_t i = 0; i < COUNT(targets); i++) {
            enum dpf_method method = methods[m];
            double e = targets[i], delta = 1e-5;
            struct dpf_spending s = gaussian(1, 0.01, 1000);
            CU_ASSERT(dpf_solve_parameter(method, &s, 1, 0, e, delta, NULL) == DPF_OK);
            BELOW("sigma: cost", cost(method, s, delta), e);
            double found = s.parameter;
            s.parameter *= 1 - 1e-3;
            ABOVE("sigma: tight", cost(method, s, delta), e);
            /* forth and back */
            s.parameter = found * 1.3;
            double there = cost(method, s, delta);
            CU_ASSERT(dpf_solve_parameter(method, &s, 1, 0, there, delta, NULL) ==
                      DPF_OK);
            NEAR("sigma: round trip", s.parameter, found * 1.3, 1e-3);

            s = gaussian(method == DPF_METHOD_BASIC ? 40 : 4, 0.01, 1);
            if (cost(method, s, delta) < e) {
                CU_ASSERT(dpf_solve_count(method, &s, 1, 0, e, delta, NULL) == DPF_OK);
                BELOW("steps: cost", cost(method, s, delta), e);
                s.count += 1 + s.count / 1000;
                ABOVE("steps: tight", cost(method, s, delta), e);
            }
            s = gaussian(2, 0.5, 300);
            CU_ASSERT(dpf_solve_rate(method, &s, 1, 0, e, delta, NULL) == DPF_OK);
            BELOW("rate: cost", cost(method, s, delta), e);
            s.rate = fmin(s.rate * (1 + 1e-3), 1);
            ABOVE("rate: tight", cost(method, s, delta), e * (s.rate < 1 ? 1 : 0));
        }
}

static void solutions_of_other_kinds(void)
{
    struct dpf_spending s = laplace(1, 1, 20);
    CU_ASSERT(dpf_solve_parameter(DPF_METHOD_BEST, &s, 1, 0, 2, 1e-6, NULL) == DPF_OK);
    BELOW("laplace", cost(DPF_METHOD_BEST, s, 1e-6), 2);
    s.parameter *= 0.98;
    ABOVE("laplace", cost(DPF_METHOD_BEST, s, 1e-6), 2);
    s = pure(1, 4);
    CU_ASSERT(dpf_solve_parameter(DPF_METHOD_BASIC, &s, 1, 0, 2, 0, NULL) == DPF_OK);
    NEAR("pure", s.parameter, 0.5, 1e-4);
    BELOW("pure", s.parameter, 0.5);
    s = pure(0.25, 1);
    CU_ASSERT(dpf_solve_count(DPF_METHOD_BASIC, &s, 1, 0, 2.1, 0, NULL) == DPF_OK);
    CU_ASSERT_EQUAL(s.count, 8);
    /* what is left beside another mechanism */
    struct dpf_spending list[] = {gaussian(3, 1, 1), gaussian(1, 0.02, 500)};
    CU_ASSERT(dpf_solve_parameter(DPF_METHOD_PLD, list, 2, 1, 2, 1e-5, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(list[0].parameter, 3, 0);
    BELOW("two", cost_of(DPF_METHOD_PLD, list, 2, 1e-5), 2);
    list[1].parameter *= 0.999;
    ABOVE("two", cost_of(DPF_METHOD_PLD, list, 2, 1e-5), 2);
    /* all of the range is good enough */
    s = gaussian(100, 0.5, 1);
    CU_ASSERT(dpf_solve_rate(DPF_METHOD_PLD, &s, 1, 0, 5, 1e-5, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(s.rate, 1, 0);
}

static void unsolvable_targets(void)
{
    struct dpf_error e = {0};
    struct dpf_spending list[] = {gaussian(1, 1, 10), gaussian(1, 0.02, 500)};
    CU_ASSERT(dpf_solve_parameter(DPF_METHOD_PLD, list, 2, 1, 1, 1e-5, &e) ==
              DPF_PRIVACY);
    CU_ASSERT(e.message[0] != '\0');
    list[1] = gaussian(1, 0.02, 500);
    CU_ASSERT(dpf_solve_rate(DPF_METHOD_PLD, list, 2, 1, 1, 1e-5, NULL) == DPF_PRIVACY);
    list[1] = gaussian(1, 0.02, 500);
    CU_ASSERT(dpf_solve_count(DPF_METHOD_PLD, list, 2, 1, 1, 1e-5, NULL) == DPF_PRIVACY);
    struct dpf_spending s = pure(1, 10);
    CU_ASSERT(dpf_solve_count(DPF_METHOD_BASIC, &s, 1, 0, 0.5, 0, NULL) == DPF_PRIVACY);
    static const double bad[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < COUNT(bad); i++) {
        s = gaussian(1, 0.02, 500);
        CU_ASSERT(dpf_solve_parameter(DPF_METHOD_PLD, &s, 1, 0, bad[i], 1e-5, NULL) ==
                  DPF_USAGE);
    }
    static const double deltas[] = {0, 1, -1e-5, NAN, INFINITY};
    for (size_t i = 0; i < COUNT(deltas); i++) {
        s = gaussian(1, 0.02, 500);
        CU_ASSERT(dpf_solve_parameter(DPF_METHOD_PLD, &s, 1, 0, 1, deltas[i], NULL) ==
                  DPF_USAGE);
    }
}

/* A list that is out of range is wrong, not merely too dear. */
static void bad_lists_are_not_solved(void)
{
    static const double rates[] = {2, 0, NAN};
    struct dpf_spending s;
    for (size_t i = 0; i < COUNT(rates); i++) {
        s = gaussian(1, rates[i], 500);
        CU_ASSERT(dpf_solve_parameter(DPF_METHOD_PLD, &s, 1, 0, 1, 1e-5, NULL) ==
                  DPF_USAGE);
    }
    s = gaussian(NAN, 0.5, 1);
    CU_ASSERT(dpf_solve_count(DPF_METHOD_PLD, &s, 1, 0, 1, 1e-5, NULL) == DPF_USAGE);
    s = gaussian(-1, 0.5, 1);
    CU_ASSERT(dpf_solve_rate(DPF_METHOD_PLD, &s, 1, 0, 1, 1e-5, NULL) == DPF_USAGE);
}

/* ---------------------------------------------------------------------------- bad input
 */

static void bad_input_is_refused(void)
{
    static const double parameters[] = {NAN, 0, -1, INFINITY, -INFINITY, 1e-10, 1e10},
                        rates[] = {NAN, 0, -0.5, 1.0000001, INFINITY},
                        deltas[] = {NAN, 1, 1.5, -1e-9, INFINITY};
    struct dpf_error e;
    double epsilon;
    for (int m = 0; m <= DPF_METHOD_BEST; m++)
        for (int kind = 0; dpf_spending_kinds[kind]; kind++) {
            enum dpf_method method = (enum dpf_method)m;
            struct dpf_spending good = {dpf_spending_kinds[kind], 1, 2, 1, 1};
            for (size_t i = 0; i < COUNT(parameters); i++) {
                struct dpf_spending s = good;
                s.parameter = parameters[i];
                CU_ASSERT(dpf_compose_epsilon(method, &s, 1, 1e-5, &epsilon, NULL, &e) ==
                          DPF_USAGE);
                CU_ASSERT(dpf_spending_check(&s, NULL) == DPF_USAGE);
                CU_ASSERT(dpf_compose_delta(&s, 1, 1, &epsilon, NULL) == DPF_USAGE);
            }
            for (size_t i = 0; i < COUNT(rates); i++) {
                struct dpf_spending s = good;
                s.rate = rates[i];
                CU_ASSERT(dpf_compose_epsilon(method, &s, 1, 1e-5, &epsilon, NULL, &e) ==
                          DPF_USAGE);
            }
            for (size_t i = 0; i < COUNT(deltas); i++)
                CU_ASSERT(dpf_compose_epsilon(method, &good, 1, deltas[i], &epsilon, NULL,
                                              &e) == DPF_USAGE);
            struct dpf_spending never = good;
            never.count = 0;
            CU_ASSERT(dpf_compose_epsilon(method, &never, 1, 1e-5, &epsilon, NULL, &e) ==
                      DPF_USAGE);
            never.count = UINT64_MAX;
            CU_ASSERT(dpf_compose_epsilon(method, &never, 1, 1e-5, &epsilon, NULL, &e) ==
                      DPF_USAGE);
            /* without a delta, only what is pure, and only by adding up */
            bool free_of_delta =
                !dpf_spending_kinds[kind]->is_unbounded &&
                (method == DPF_METHOD_BASIC || method == DPF_METHOD_BEST);
            CU_ASSERT(dpf_compose_epsilon(method, &good, 1, 0, &epsilon, NULL, &e) ==
                      (free_of_delta ? DPF_OK : DPF_USAGE));
        }
    struct dpf_spending few = response(1, 1, 1);
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_PLD, &few, 1, 1e-5, &epsilon, NULL, &e) ==
              DPF_USAGE);
    struct dpf_spending s = gaussian(1, 0.5, 1);
    CU_ASSERT(dpf_compose_delta(&s, 1, NAN, &epsilon, NULL) == DPF_USAGE);
    CU_ASSERT(dpf_compose_delta(&s, 1, -1, &epsilon, NULL) == DPF_USAGE);
}

/* No delta is left at an epsilon without end. */
static void infinite_epsilon(void)
{
    const struct dpf_spending list[] = {gaussian(1, 1, 1), gaussian(1, 0.1, 5),
                                        laplace(1, 1, 5), pure(1, 5)};
    for (size_t i = 0; i < COUNT(list); i++) {
        double delta = NAN;
        enum dpf_status status = dpf_compose_delta(&list[i], 1, INFINITY, &delta, NULL);
        CU_ASSERT(status == DPF_USAGE ||
                  told(delta >= 0 && delta < 1e-300, "delta", delta, 0));
    }
}

/* ---------------------------------------------------------------------------- extremes
 */

struct call {
    enum dpf_method method;
    struct dpf_spending s;
    double delta;
};

static int run_call(void *context)
{
    const struct call *c = context;
    double epsilon = NAN;
    enum dpf_method used;
    enum dpf_status status =
        dpf_compose_epsilon(c->method, &c->s, 1, c->delta, &epsilon, &used, NULL);
    return status == DPF_USAGE ? 0 : status != DPF_OK ? 1 : epsilon >= 0 ? 0 : 2;
}

static void extremes_end(void)
{
    static const double sigmas[] = {0.05, 1, 1e6}, rates[] = {1e-9, 0.01, 1},
                        deltas[] = {1e-5, 1e-100, 0.5};
    static const uint64_t counts[] = {1, 1000000000};
    static const enum dpf_method methods[] = {DPF_METHOD_BASIC, DPF_METHOD_MOMENTS,
                                              DPF_METHOD_RDP, DPF_METHOD_PLD,
                                              DPF_METHOD_BEST};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (size_t j = 0; j < COUNT(rates); j++)
            for (size_t k = 0; k < COUNT(counts); k++)
                for (size_t d = 0; d < COUNT(deltas); d++)
                    for (size_t m = 0; m < COUNT(methods); m++) {
                        struct call c = {methods[m],
                                         gaussian(sigmas[i], rates[j], counts[k]),
                                         deltas[d]};
                        clock_t start = clock();
                        CU_ASSERT_EQUAL(run_call(&c), 0);
                        double took = (double)(clock() - start) / CLOCKS_PER_SEC;
                        BELOW("seconds", took, 1.);
                    }
    /* one use: the truth is known */
    struct dpf_spending s = gaussian(0.05, 0.01, 1);
    NEAR("small sigma", cost(DPF_METHOD_BEST, s, 1e-5), 256.2701601, 1e-6);
    s = gaussian(1e6, 1, 1);
    NEAR("large sigma", cost(DPF_METHOD_BEST, s, 1e-100), 2.0468473e-05, 1e-6);
    CU_ASSERT_DOUBLE_EQUAL(cost(DPF_METHOD_BEST, s, 1e-5), 0, 0);
}

/* What dpf_spending_check() lets through has to end. */
static void small_noise_ends(void)
{
    static const enum dpf_method methods[] = {DPF_METHOD_RDP, DPF_METHOD_MOMENTS,
                                              DPF_METHOD_PLD, DPF_METHOD_BEST};
    for (size_t m = 0; m < COUNT(methods); m++) {
        struct call c = {methods[m], gaussian(0.001, 0.5, 1), 1e-5};
        CU_ASSERT(
            told(in_child(run_call, &c, 4000) == 0, dpf_methods[methods[m]].name, 1, 0));
    }
}

/* Rare losses, far up: never below what one use costs. */
static void pld_of_rare_losses(void)
{
    static const double sigmas[] = {0.1, 0.3, 1, 30, 1000, 1e6},
                        rates[] = {1e-3, 1e-6, 1e-9},
                        deltas[] = {1e-4, 1e-8, 1e-14, 1e-30};
    for (size_t i = 0; i < COUNT(sigmas); i++)
        for (size_t j = 0; j < COUNT(rates); j++)
            for (size_t k = 0; k < COUNT(deltas); k++)
                for (uint64_t count = 1; count <= 100; count *= 10) {
                    struct dpf_spending s = gaussian(sigmas[i], rates[j], count);
                    double e;
                    if (dpf_pld_epsilon(&s, 1, deltas[k], &e, NULL) != DPF_OK)
                        continue;
                    double there = true_delta(&s, 1, e);
                    if (e > 1e-9 && !told(there <= deltas[k] * (1 + 1e-6),
                                          "delta at epsilon", there, deltas[k])) {
                        printf("    sigma %g rate %g count %d: epsilon %g\n", sigmas[i],
                               rates[j], (int)count, e);
                        CU_FAIL("below the truth");
                    }
                }
}

static void huge_pure_epsilons(void)
{
    struct dpf_spending s = pure(262984, 1);
    double epsilon;
    enum dpf_method used;
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_BEST, &s, 1, 1e-5, &epsilon, &used, NULL) ==
              DPF_OK);
    CU_ASSERT(used == DPF_METHOD_BASIC);
    NEAR("huge", epsilon, 262984., 1e-9);
    ABOVE("huge", epsilon, 262984.);
    struct dpf_spending list[] = {s, gaussian(1, 0.1, 10), laplace(0.0001, 1, 2)};
    CU_ASSERT(dpf_compose_epsilon(DPF_METHOD_BEST, list, 3, 1e-5, &epsilon, &used,
                                  NULL) == DPF_OK);
    CU_ASSERT(used == DPF_METHOD_BASIC);
    ABOVE("with others", epsilon, 282984.);
    BELOW("with others", epsilon, 283100.);
    static const enum dpf_method methods[] = {DPF_METHOD_PLD, DPF_METHOD_RDP,
                                              DPF_METHOD_MOMENTS};
    for (size_t m = 0; m < COUNT(methods); m++)
        CU_ASSERT(dpf_compose_epsilon(methods[m], &s, 1, 1e-5, &epsilon, NULL, NULL) ==
                  DPF_USAGE);
}

static void pld_is_quick(void)
{
    const struct dpf_spending list[] = {gaussian(1.1, 256. / 60000, 14062),
                                        gaussian(0.6, 0.001, 1000000),
                                        laplace(3, 0.1, 5000),
                                        response(0.5, 10, 300),
                                        gaussian(20, 1, 1000),
                                        pure(0.01, 100000)};
    double epsilon, rough;
    for (size_t i = 0; i < COUNT(list); i++) {
        clock_t start = clock();
        CU_ASSERT(dpf_pld_epsilon(&list[i], 1, 1e-6, &epsilon, NULL) == DPF_OK);
        BELOW("seconds", (double)(clock() - start) / CLOCKS_PER_SEC, 1.);
        CU_ASSERT(dpf_pld_epsilon_roughly(&list[i], 1, 1e-6, &rough, NULL) == DPF_OK);
        ABOVE("roughly", rough, epsilon * 0.99);
        BELOW("roughly", rough, epsilon * 2);
    }
    clock_t start = clock();
    CU_ASSERT(dpf_pld_epsilon(list, COUNT(list), 1e-6, &epsilon, NULL) == DPF_OK);
    BELOW("seconds", (double)(clock() - start) / CLOCKS_PER_SEC, 1.);
}

static void with_nodes(void)
{
    find_nodes();
    real sum = 0, square = 0;
    for (int i = 0; i < NODES; i++) {
        sum += weight[i];
        square += weight[i] * node[i] * node[i];
    }
    CU_ASSERT(fabsl(sum - 2) < 1e-15L && fabsl(square - 2 / 3.L) < 1e-15L);
}

const char dpf_suite[] = "account";
const struct dpf_test dpf_tests[] = {
    {"quadrature", with_nodes},
    {"published: moments, Renyi and PLD", reference_table},
    {"published: Renyi divergences", reference_rdp},
    {"published: a Gaussian without sampling", reference_gaussian},
    {"published: the noise for an epsilon", reference_inverse},
    {"published: deltas", reference_deltas},
    {"the Gaussian trade-off function", tradeoff_formula},
    {"PLD of one Gaussian", pld_of_one_gaussian},
    {"PLD of one sampled Gaussian", pld_of_one_sampled},
    {"PLD of two Gaussians against quadrature", pld_of_two_gaussians},
    {"PLD of three Gaussians against quadrature", pld_of_three_gaussians},
    {"PLD at an epsilon below the mean loss is tight", pld_at_small_epsilon},
    {"PLD of Laplace noise against the truth", pld_of_laplace},
    {"PLD of mixed lists against quadrature", pld_of_mixed_lists},
    {"PLD of randomised response against exact sums", pld_of_responses},
    {"PLD of rare losses", pld_of_rare_losses},
    {"rows of the kinds of mechanisms", rows_of_kinds},
    {"what a kind leaves out is refused by name", what_a_kind_leaves_out},
    {"discretised losses keep their mass", losses_keep_their_mass},
    {"Renyi divergences against quadrature", renyi_divergences},
    {"moments: lambda up to 255", moments_has_255_orders},
    {"basic and strong composition", basic_and_strong},
    {"the best is the smallest that is valid", best_is_the_smallest},
    {"splits of a Laplace shift are dominated", laplace_splits_are_dominated},
    {"discrete Laplace noise", discrete_laplace},
    {"less noise, more data, more steps cost more", costs_are_monotone},
    {"bounded losses are never below the truth", bounded_losses},
    {"solutions keep the target and are tight", solutions_are_tight},
    {"solutions for other mechanisms", solutions_of_other_kinds},
    {"targets that cannot be kept", unsolvable_targets},
    {"nothing is solved for a list out of range", bad_lists_are_not_solved},
    {"bad input is refused", bad_input_is_refused},
    {"delta at an infinite epsilon", infinite_epsilon},
    {"extreme parameters end with numbers", extremes_end},
    {"very little noise ends", small_noise_ends},
    {"huge pure epsilons are added up", huge_pure_epsilons},
    {"PLD is quick", pld_is_quick},
    {NULL, NULL},
};
