/* Trying to prove the mechanisms wrong.
 *
 * The falsifier draws a mechanism's output on two neighbouring inputs. On a first half of
 * the samples it looks for events that tell the inputs apart; on the second half it
 * computes, for the few most promising ones, what epsilon is at least needed:
 *   ln((lower bound of p1 - delta) / upper bound of p2),
 * with Clopper and Pearson's exact bounds. With probability 1 - 1e-6 over the samples
 * (the bounds share it among the events tried) the mechanism has no smaller epsilon.
 * Correct mechanisms have to stay below what is proven for them; the broken ones here
 * have to be caught, or the falsifier is worth nothing. Seeds are fixed.
 *
 * Beside it: exact probabilities of small cases, norms after clipping, known values of
 * the Gaussian trade-off, refusals. */
#include <float.h>
#include <math.h>
#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "privacy/clip.h"
#include "privacy/code_mean.h"
#include "privacy/gaussian.h"
#include "privacy/grid.h"
#include "privacy/laplace.h"
#include "privacy/response.h"
#include "privacy/selection.h"
#include "privacy/tradeoff.h"
#include "privacy/vote.h"

#include "base/banned.h"

#if defined(__SANITIZE_ADDRESS__)
enum { FEWER = 5 };
#else
enum { FEWER = 1 };
#endif

static const double level = 1e-6;

/* Upper quantile of chi-square at 1e-6 (Wilson and Hilferty). */
static double chi_level(double freedom)
{
    double a = 2 / (9 * freedom);
    return freedom * pow(1 - a + 4.7534 * sqrt(a), 3);
}

static double chi_square(const double *counts, const double *rates, int bins,
                         double draws)
{
    double chi = 0;
    for (int i = 0; i < bins; i++) {
        double due = rates[i] * draws;
        chi += (counts[i] - due) * (counts[i] - due) / due;
    }
    return chi;
}

/* -------------------------------------------------------------------- exact bounds */

/* The regularised incomplete beta function, by its continued fraction (Lentz). */
static double beta_fraction(double a, double b, double x)
{
    double c = 1, d = 1 - (a + b) * x / (a + 1), h;
    d = 1 / d;
    h = d;
    for (int m = 1; m < 20000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        h *= c * d;
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        h *= c * d;
        if (fabs(c * d - 1) < 1e-14)
            break;
    }
    return h;
}

static double beta_cdf(double a, double b, double x)
{
    if (x <= 0 || x >= 1)
        return x >= 1;
    double front =
        exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* The x with beta_cdf(a, b, x) = p. */
static double beta_quantile(double a, double b, double p)
{
    double lo = 0, hi = 1;
    for (int i = 0; i < 60; i++) {
        double middle = (lo + hi) / 2;
        if (beta_cdf(a, b, middle) < p)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

/* Clopper and Pearson: the rate of an event that was seen k times in n is not below
 * (above) this, with confidence 1 - alpha. */
static double lower_bound(double k, double n, double alpha)
{
    return k <= 0 ? 0 : beta_quantile(k, n - k + 1, alpha);
}

static double upper_bound(double k, double n, double alpha)
{
    return k >= n ? 1 : 1 - beta_quantile(n - k, k + 1, alpha);
}

static void test_bounds(void)
{
    CU_ASSERT_DOUBLE_EQUAL(lower_bound(5, 10, 0.025), 0.18708602844739855, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(upper_bound(5, 10, 0.025), 0.81291397155260145, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(upper_bound(0, 1000, 1e-6), 1 - pow(1e-6, 1e-3), 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(lower_bound(1000, 1000, 1e-6), pow(1e-6, 1e-3), 1e-9);
    CU_ASSERT(lower_bound(0, 10, 0.1) == 0 && upper_bound(10, 10, 0.1) == 1);
    double p = lower_bound(100000, 250000, 1e-7), sd = sqrt(0.24 / 250000);
    CU_ASSERT(p < 0.4 - 5.1 * sd && p > 0.4 - 5.4 * sd);
}

/* ----------------------------------------------------------------------- falsifier */

enum { HALF = 250000, TRIED = 4 };

/* Draw `count` outputs for one of two neighbouring inputs. Integers below 2^53 are
 * doubles, too. */
typedef void mechanism(const void *context, struct dpf_random *r, int input, double *out,
                       size_t count);

enum event_kind { AT_MOST, ABOVE, EQUAL, FINE };
struct event {
    enum event_kind kind;
    double at;
    int first;    /* the input under which it is more likely */
    double score; /* on the first half */
};

/* The exponent of the last binary digit that is not 0: what a sum of doubles leaves of
 * the finer digits of its terms. */
static double grain(double x)
{
    int exponent;
    double m = frexp(x, &exponent);
    if (x == 0 || !isfinite(x))
        return 5000;
    int64_t digits = (int64_t)ldexp(m, 53);
    return exponent - 53 + __builtin_ctzll((unsigned long long)digits);
}

static bool happens(const struct event *v, double x)
{
    switch (v->kind) {
    case AT_MOST:
        return x <= v->at;
    case ABOVE:
        return x > v->at;
    case EQUAL:
        return x == v->at;
    case FINE:
        return grain(x) <= v->at;
    }
    return false;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* How many of a sorted list are at most x. */
static double rank(const double *sorted, size_t count, double x)
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (sorted[middle] <= x)
            lo = middle + 1;
        else
            hi = middle;
    }
    return (double)lo;
}

static double count_of(const struct event *v, const double *sorted, const double *grains)
{
    double up_to = rank(sorted, HALF, v->at);
    switch (v->kind) {
    case AT_MOST:
        return up_to;
    case ABOVE:
        return HALF - up_to;
    case EQUAL:
        return up_to - rank(sorted, HALF, nextafter(v->at, -INFINITY));
    case FINE:
        return rank(grains, HALF, v->at);
    }
    return 0;
}

/* A cautious guess of what an event shows, to rank events by. */
static double promise(double k1, double k2, double delta)
{
    double p1 = (k1 - 4.5 * sqrt(k1)) / HALF - delta;
    double p2 = (k2 + 4.5 * sqrt(k2) + 12) / HALF;
    return p1 > 0 ? log(p1 / p2) : -INFINITY;
}

struct search {
    double *sorted[2], *grains[2];
    double delta;
    struct event best[TRIED];
};

static void consider(struct search *s, enum event_kind kind, double at)
{
    for (int first = 0; first < 2; first++) {
        struct event v = {kind, at, first, 0};
        double k1 = count_of(&v, s->sorted[first], s->grains[first]);
        double k2 = count_of(&v, s->sorted[!first], s->grains[!first]);
        v.score = promise(k1, k2, s->delta);
        for (int i = 0; i < TRIED; i++)
            if (v.score > s->best[i].score) {
                struct event out = s->best[i];
                s->best[i] = v;
                v = out;
            }
    }
}

/* Thresholds at quantiles of either sample, values that come often, and fine grains. */
static void find_events(struct search *s)
{
    static const double shares[] = {0, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02};
    for (int i = 0; i < TRIED; i++)
        s->best[i].score = -INFINITY;
    for (int input = 0; input < 2; input++) {
        const double *x = s->sorted[input];
        for (int q = 0; q < 9 + 31 + 9; q++) {
            double share = q < 9    ? shares[q]
                           : q < 40 ? (q - 8) / 32.0
                                    : 1 - shares[q - 40];
            double at = x[(size_t)fmin(share * HALF, HALF - 1)];
            consider(s, AT_MOST, at);
            consider(s, ABOVE, at);
            consider(s, ABOVE, nextafter(at, -INFINITY));
        }
        int often = 0;
        for (size_t i = 0, run; i < HALF && often < 64; i += run) {
            for (run = 1; i + run < HALF && x[i + run] == x[i];)
                run++;
            if (run >= HALF / 2000) {
                consider(s, EQUAL, x[i]);
                often++;
            }
        }
        const double *g = s->grains[input];
        for (size_t i = 0; i < HALF;) {
            consider(s, FINE, g[i]);
            i = (size_t)rank(g, HALF, g[i]);
        }
    }
}

/* The epsilon that a mechanism has at least, given delta. */
static double falsify(mechanism *draw, const void *context, double delta,
                      const char *purpose, uint64_t seed)
{
    static double room[4][HALF];
    struct search s = {{room[0], room[1]}, {room[2], room[3]}, delta, {{0}}};
    struct dpf_random r[2];
    for (int input = 0; input < 2; input++) {
        dpf_random_init_insecure(&r[input], purpose, seed, (uint64_t)input);
        draw(context, &r[input], input, s.sorted[input], HALF);
        for (size_t i = 0; i < HALF; i++)
            s.grains[input][i] = grain(s.sorted[input][i]);
        qsort(s.sorted[input], HALF, sizeof(double), compare);
        qsort(s.grains[input], HALF, sizeof(double), compare);
    }
    find_events(&s);
    /* the second half, and nothing but the events chosen before */
    double seen[TRIED][2] = {{0}}, epsilon = 0, alpha = level / (2 * TRIED);
    for (int input = 0; input < 2; input++) {
        draw(context, &r[input], input, s.sorted[0], HALF);
        for (int v = 0; v < TRIED; v++)
            for (size_t i = 0; i < HALF; i++)
                seen[v][input] += happens(&s.best[v], s.sorted[0][i]);
    }
    for (int v = 0; v < TRIED; v++) {
        int first = s.best[v].first;
        double p1 = lower_bound(seen[v][first], HALF, alpha) - delta;
        double p2 = upper_bound(seen[v][!first], HALF, alpha);
        if (s.best[v].score > -INFINITY && p1 > 0)
            epsilon = fmax(epsilon, log(p1 / p2));
    }
    return epsilon;
}

/* Below the proven epsilon, and not by so much that the falsifier must have slept. */
static void check_stands(mechanism *draw, const void *context, double delta,
                         double proven, double awake, const char *purpose)
{
    double found = falsify(draw, context, delta, purpose, 1);
    if (!(found <= proven) || !(found >= awake * proven))
        printf("    %s: found epsilon %g, proven %g\n", purpose, found, proven);
    CU_ASSERT(found <= proven);
    CU_ASSERT(found >= awake * proven);
}

static void check_falls(mechanism *draw, const void *context, double delta,
                        double claimed, const char *purpose)
{
    double found = falsify(draw, context, delta, purpose, 1);
    if (!(found > claimed * 1.05))
        printf("    %s: found epsilon %g, claimed %g\n", purpose, found, claimed);
    CU_ASSERT(found > claimed * 1.05);
}

/* ------------------------------------------------------------- additive mechanisms */

/* parts 0: the values are multiples of step. */
static struct dpf_gaussian_query by_l2(double sensitivity, int values, unsigned parts,
                                       double step)
{
    return (struct dpf_gaussian_query){.sensitivity_l2 = sensitivity,
                                       .values = (size_t)values,
                                       .parts = parts,
                                       .exact_step = step};
}

static struct dpf_laplace_query by_l1(double sensitivity, int values, unsigned parts,
                                      double step)
{
    return (struct dpf_laplace_query){.sensitivity_l1 = sensitivity,
                                      .values = (size_t)values,
                                      .parts = parts,
                                      .exact_step = step};
}

/* Sums of `values` numbers before[i] or after[i]; the release is their sum. */
struct additive {
    struct dpf_gaussian gaussian;
    struct dpf_laplace laplace;
    int values;
    double sums[2][4];
    double scale; /* of the noise: 1 unless the mechanism is broken on purpose */
    double clamp; /* of the noise, in scales; 0 for none */
};

static void draw_additive(const struct additive *a, bool laplace, struct dpf_random *r,
                          int input, double *out, size_t count)
{
    enum { AT_ONCE = 1024 };
    double step = laplace ? a->laplace.step : a->gaussian.step;
    struct dpf_gaussian g = a->gaussian;
    struct dpf_laplace l = a->laplace;
    g.noise_stddev *= a->scale;
    l.scale *= a->scale;
    int64_t limit = (int64_t)(a->clamp * l.scale / l.step), noise[AT_ONCE * 4];
    for (size_t done = 0; done < count; done += AT_ONCE) {
        size_t left = count - done < AT_ONCE ? count - done : AT_ONCE;
        size_t all = left * (size_t)a->values;
        memset(noise, 0, sizeof noise);
        if (laplace)
            dpf_laplace_add(&l, r, noise, all);
        else
            dpf_gaussian_add(&g, r, 1, noise, all);
        for (size_t i = 0; i < left; i++) {
            int64_t sum = 0;
            for (size_t k = 0; k < (size_t)a->values; k++) {
                int64_t z = noise[i * (size_t)a->values + k];
                if (a->clamp > 0)
                    z = z > limit ? limit : z < -limit ? -limit : z;
                sum += dpf_grid_round(a->sums[input][k], step) + z;
            }
            out[done + i] = (double)sum * step;
        }
    }
}

static void draw_gaussian(const void *context, struct dpf_random *r, int input,
                          double *out, size_t count)
{
    draw_additive(context, false, r, input, out, count);
}

static void draw_laplace(const void *context, struct dpf_random *r, int input,
                         double *out, size_t count)
{
    draw_additive(context, true, r, input, out, count);
}

/* (1, 10^-3) with sensitivity 1; `declared` is what the mechanism is told. */
static struct additive gaussian_of(double declared, unsigned parts, int values)
{
    struct additive a = {.values = values, .scale = 1};
    struct dpf_gaussian_query query = by_l2(declared, values, parts, 0.25);
    CU_ASSERT_FATAL(dpf_gaussian_init_epsilon(&a.gaussian, &query, 1, 1e-3, NULL) ==
                    DPF_OK);
    for (int i = 0; i < values; i++)
        a.sums[1][i] = 1 / sqrt(values);
    a.laplace = (struct dpf_laplace){.scale = 1, .step = 1};
    return a;
}

static struct additive laplace_of(double epsilon, unsigned parts, int values)
{
    struct additive a = {.values = values, .scale = 1};
    struct dpf_laplace_query query = by_l1(1, values, parts, 0.25);
    CU_ASSERT_FATAL(dpf_laplace_init(&a.laplace, &query, epsilon, NULL) == DPF_OK);
    for (int i = 0; i < values; i++)
        a.sums[1][i] = 1.0 / values;
    a.gaussian = (struct dpf_gaussian){.noise_stddev = 1, .step = 1};
    return a;
}

static void test_gaussian_stands(void)
{
    struct additive a = gaussian_of(1, 1, 1);
    check_stands(draw_gaussian, &a, 1e-3, 1, 0.45, "gaussian");
    a = gaussian_of(1, 0, 1); /* a coarse grid */
    check_stands(draw_gaussian, &a, 1e-3, 1, 0.45, "gaussian quarter steps");
    a = gaussian_of(1, 1, 4); /* all of a vector's length in one direction */
    check_stands(draw_gaussian, &a, 1e-3, 1, 0.45, "gaussian vector");
    a = gaussian_of(1, 1, 1);
    a.sums[0][0] = 0.3, a.sums[1][0] = -0.7;
    check_stands(draw_gaussian, &a, 1e-3, 1, 0.45, "gaussian between steps");
}

static void test_laplace_stands(void)
{
    struct additive a = laplace_of(1, 1, 1);
    check_stands(draw_laplace, &a, 0, 1, 0.9, "laplace");
    a = laplace_of(1, 0, 1);
    check_stands(draw_laplace, &a, 0, 1, 0.9, "laplace quarter steps");
    a = laplace_of(1, 1, 4);
    check_stands(draw_laplace, &a, 0, 1, 0.2, "laplace vector");
    a = laplace_of(0.1, 1, 1);
    check_stands(draw_laplace, &a, 0, 0.1, 0.5, "laplace little epsilon");
    a = laplace_of(4, 1, 1);
    a.sums[0][0] = 0.3, a.sums[1][0] = -0.7;
    check_stands(draw_laplace, &a, 0, 4, 0.9, "laplace between steps");
}

static void test_additive_falls(void)
{
    struct additive a = laplace_of(1, 1, 1);
    a.scale = 0.5;
    check_falls(draw_laplace, &a, 0, 1, "laplace of half its scale");
    a = gaussian_of(0.5, 1, 1);
    check_falls(draw_gaussian, &a, 1e-3, 1, "gaussian of half its sensitivity");
    a = gaussian_of(0.7, 1, 1);
    check_falls(draw_gaussian, &a, 1e-3, 1, "gaussian of 0.7 of its sensitivity");
    a = laplace_of(1, 1, 1);
    a.clamp = 3; /* never more than 3 scales from the true value */
    check_falls(draw_laplace, &a, 0, 1, "laplace within limits of its input");
    a = laplace_of(1, 1, 1);
    a.sums[1][0] = 1.3;
    check_falls(draw_laplace, &a, 0, 1, "laplace of a larger difference");
}

/* Rounding does what the proofs allow for: values just below and just above half-way
 * differ by a whole step, in every coordinate of every part. */
static void test_rounded_sensitivity(void)
{
    enum { VALUES = 1000, PARTS = 3 };
    struct dpf_laplace l;
    struct dpf_gaussian g;
    struct dpf_laplace_query lq = by_l1(1, VALUES, PARTS, 0);
    struct dpf_gaussian_query gq = by_l2(1, VALUES, PARTS, 0);
    CU_ASSERT_FATAL(dpf_laplace_init(&l, &lq, 1, NULL) == DPF_OK);
    CU_ASSERT_FATAL(dpf_gaussian_init(&g, &gq, 1, NULL) == DPF_OK);
    for (int which = 0; which < 2; which++) {
        double step = which ? g.step : l.step;
        double each = (which ? 1 / sqrt(VALUES) : 1.0 / VALUES) / PARTS;
        double l1 = 0, l2 = 0;
        for (int i = 0; i < VALUES; i++) {
            int64_t difference = 0;
            for (int p = 0; p < PARTS; p++) {
                double low = (i * 7 + p + 0.5 - 1e-4) * step, high = low + each;
                difference += dpf_grid_round(high, step) - dpf_grid_round(low, step);
            }
            l1 += (double)difference;
            l2 += (double)difference * (double)difference;
        }
        CU_ASSERT(which ? sqrt(l2) * step <= g.sensitivity_l2
                        : l1 * step <= l.sensitivity_l1);
        /* more than without rounding: the allowance is needed */
        CU_ASSERT((which ? sqrt(l2) : l1) * step > 1);
    }
    /* the noise is as large as was promised */
    CU_ASSERT(l.scale >= l.sensitivity_l1 / 1 && l.epsilon <= 1);
    CU_ASSERT(l.sensitivity_l1 / l.scale <= l.epsilon);
    CU_ASSERT(g.noise_stddev >= g.sensitivity_l2);
}

/* ----------------------------------------------------------------------- teachers */

/* Votes on one query, before and after one teacher changed its vote, and what is left of
 * each kind of noise: 1 unless the mechanism is broken on purpose. */
struct ballot {
    struct dpf_vote_plan plan;
    int classes;
    int32_t counts[2][3];
    double of_answer, of_test;
};

/* The class, or -1 where the test fails. */
static void draw_ballot(const void *context, struct dpf_random *r, int input, double *out,
                        size_t count)
{
    const struct ballot *b = context;
    const int32_t *counts = b->counts[input];
    struct dpf_vote v;
    CU_ASSERT_FATAL(dpf_vote_init(&v, &b->plan, (size_t)b->classes, NULL) == DPF_OK);
    v.maximum.noise_stddev *= b->of_answer;
    v.laplace.scale *= b->of_answer;
    v.test.noise_stddev *= b->of_test;
    for (size_t i = 0; i < count; i++)
        out[i] =
            dpf_vote_passes(&v, r, counts) ? (double)dpf_vote_answer(&v, r, counts) : -1;
    dpf_vote_release(&v);
}

/* What is proven of one query (privacy/vote.h). */
static double ballot_epsilon(const struct dpf_vote_plan *plan, double delta)
{
    double test = plan->kind == DPF_VOTE_CONFIDENT ? 1 / plan->threshold_noise : 0;
    return plan->kind == DPF_VOTE_LNMAX
               ? 2 / plan->noise
               : dpf_gdp_epsilon(hypot(M_SQRT2 / plan->noise, test), delta);
}

/* Counts, or a threshold, for which the answer shows much of what the noise lets through;
 * with half of the noise that is elsewhere. */
static const struct ballot sound_ballots[] = {
    {{DPF_VOTE_GNMAX, 1.5, 0, 0}, 2, {{0, 7}, {1, 6}}, 1, 1},
    {{DPF_VOTE_LNMAX, 2, 0, 0}, 3, {{0, 12, 0}, {1, 11, 0}}, 1, 1},
    {{DPF_VOTE_CONFIDENT, 20, 8.4, 1}, 3, {{5, 1, 0}, {6, 0, 0}}, 1, 1},
};
static const struct ballot broken_ballots[] = {
    {{DPF_VOTE_GNMAX, 1.5, 0, 0}, 2, {{0, 4}, {1, 3}}, 0.5, 1},
    {{DPF_VOTE_LNMAX, 2, 0, 0}, 3, {{0, 6, 0}, {1, 5, 0}}, 0.5, 1},
    {{DPF_VOTE_CONFIDENT, 20, 6.9, 1}, 3, {{5, 1, 0}, {6, 0, 0}}, 1, 0.5},
    /* a teacher whose vote weighs three */
    {{DPF_VOTE_GNMAX, 1.5, 0, 0}, 2, {{0, 7}, {3, 4}}, 1, 1},
};

static void test_votes_stand(void)
{
    for (size_t i = 0; i < sizeof sound_ballots / sizeof *sound_ballots; i++) {
        const struct ballot *b = &sound_ballots[i];
        double delta = b->plan.kind == DPF_VOTE_LNMAX ? 0 : 1e-3;
        check_stands(draw_ballot, b, delta, ballot_epsilon(&b->plan, delta), 0.4,
                     "votes");
    }
}

static void test_votes_fall(void)
{
    for (size_t i = 0; i < sizeof broken_ballots / sizeof *broken_ballots; i++) {
        const struct ballot *b = &broken_ballots[i];
        double delta = b->plan.kind == DPF_VOTE_LNMAX ? 0 : 1e-3;
        check_falls(draw_ballot, b, delta, ballot_epsilon(&b->plan, delta),
                    "votes with too little noise");
    }
}

/* One of three teachers says one thing or its opposite; both are longer than the radius.
 */
struct codes {
    double multiplier;
    double share; /* of the noise */
    bool uncut;
};

static void draw_codes(const void *context, struct dpf_random *r, int input, double *out,
                       size_t count)
{
    const struct codes *c = context;
    const float code[2] = {input ? 2.4F : -2.4F, input ? -1.8F : 1.8F};
    struct dpf_code_mean m;
    CU_ASSERT_FATAL(dpf_code_mean_init(&m, 2, 3, 1, c->multiplier, NULL) == DPF_OK);
    m.noise.noise_stddev *= c->share;
    for (size_t i = 0; i < count; i++) {
        int64_t sums[2] = {0};
        float mean[2];
        dpf_code_add(&m, (const float[]){0.5F, 0.5F}, sums);
        dpf_code_add(&m, (const float[]){-3.0F, 0}, sums);
        if (c->uncut) {
            for (int k = 0; k < 2; k++)
                sums[k] += dpf_grid_round((double)code[k], m.noise.step);
        } else {
            dpf_code_add(&m, code, sums);
        }
        dpf_code_release(&m, r, sums, mean);
        out[i] = 0.8 * (double)mean[0] - 0.6 * (double)mean[1];
    }
}

static void test_codes(void)
{
    struct codes c = {1, 1, false};
    double proven = dpf_gdp_epsilon(1 / c.multiplier, 1e-3);
    check_stands(draw_codes, &c, 1e-3, proven, 0.45, "mean of codes");
    c.share = 0.5;
    check_falls(draw_codes, &c, 1e-3, proven, "mean of codes with half of the noise");
    c = (struct codes){1, 1, true};
    check_falls(draw_codes, &c, 1e-3, proven, "mean of codes that are not cut");
}

/* ------------------------------------------------------------------ floating point */

/* What everyone writes first (Mironov 2012). */
static double naive_laplace(struct dpf_random *r)
{
    uint64_t word = dpf_random_u64(r);
    double u = (double)((word >> 11) + 1) * 0x1p-53;
    return word & 1 ? log(u) : -log(u);
}

static void draw_naive(const void *context, struct dpf_random *r, int input, double *out,
                       size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++)
        out[i] = input + naive_laplace(r);
}

/* The same attack, once on doubles and once on the library's grid. */
static void test_low_order_bits(void)
{
    struct additive a = laplace_of(1, 1, 1);
    double found = falsify(draw_naive, NULL, 0, "naive doubles", 1);
    CU_ASSERT(found > 5); /* not 1: it finds bits that only one input has */
    check_stands(draw_laplace, &a, 0, 1, 0.9, "grid under the same attack");
}

/* Whether naive noise alone, without a value, could be this double. */
static bool reachable(double x)
{
    double u = exp(-fabs(x)) * 0x1p53;
    for (int i = -4; i <= 4; i++) {
        double candidate = rint(u) + i;
        if (candidate >= 1 && candidate <= 0x1p53 && -log(candidate * 0x1p-53) == fabs(x))
            return true;
    }
    return false;
}

static void test_membership(void)
{
    enum { COUNT = 100000 / FEWER };
    struct dpf_random r;
    double missing[2] = {0};
    dpf_random_init_insecure(&r, "membership", 0, 0);
    for (int input = 0; input < 2; input++)
        for (int i = 0; i < COUNT; i++)
            missing[input] += !reachable(input + naive_laplace(&r));
    CU_ASSERT(missing[0] == 0);
    CU_ASSERT(log(lower_bound(missing[1], COUNT, level / 2) /
                  upper_bound(missing[0], COUNT, level / 2)) > 3);
    /* on the grid every integer is reachable from both: ends of the range in reach, and
     * each residue as often under one input as under the other */
    struct additive a = laplace_of(1, 1, 1);
    static double out[2][COUNT];
    double counts[2][256] = {{0}}, chi = 0;
    for (int input = 0; input < 2; input++) {
        draw_laplace(&a, &r, input, out[input], COUNT);
        for (int i = 0; i < COUNT; i++) {
            double steps = out[input][i] / a.laplace.step;
            CU_ASSERT_FATAL(steps == floor(steps));
            counts[input][(int64_t)steps & 255]++;
        }
    }
    for (int i = 0; i < 256; i++) {
        double both = counts[0][i] + counts[1][i],
               difference = counts[0][i] - counts[1][i];
        chi += difference * difference / both;
    }
    CU_ASSERT(chi < chi_level(256));
}

/* ------------------------------------------------------------- randomised response */

static void draw_response(const void *context, struct dpf_random *r, int input,
                          double *out, size_t count)
{
    const struct dpf_response *m = context;
    for (size_t i = 0; i < count; i++)
        out[i] = (double)dpf_response_draw(m, r, input ? m->choices - 1 : 0);
}

static void test_response_stands(void)
{
    const uint64_t choices[] = {2, 3, 10};
    struct dpf_response m;
    for (int i = 0; i < 3; i++) {
        CU_ASSERT_FATAL(dpf_response_init(&m, 1, choices[i], NULL) == DPF_OK);
        check_stands(draw_response, &m, 0, m.epsilon, 0.8, "response");
        CU_ASSERT_FATAL(dpf_response_init(&m, 2, choices[i], NULL) == DPF_OK);
        check_falls(draw_response, &m, 0, 1, "response of 2 where 1 is claimed");
    }
}

/* Each answer as often as it should, from every truth. */
static void test_response_distribution(void)
{
    enum { DRAWS = 200000 / FEWER };
    struct dpf_response m;
    struct dpf_random r;
    dpf_random_init_insecure(&r, "response", 0, 0);
    for (uint64_t choices = 2; choices <= 7; choices++) {
        CU_ASSERT_FATAL(dpf_response_init(&m, 0.7, choices, NULL) == DPF_OK);
        for (uint64_t truth = 0; truth < choices; truth++) {
            double counts[7] = {0}, rates[7];
            for (uint64_t i = 0; i < choices; i++)
                rates[i] = i == truth ? m.keep : (1 - m.keep) / (double)(choices - 1);
            for (int i = 0; i < DRAWS; i++) {
                uint64_t answer = dpf_response_draw(&m, &r, truth);
                CU_ASSERT_FATAL(answer < choices);
                counts[answer]++;
            }
            CU_ASSERT(chi_square(counts, rates, (int)choices, DRAWS) <
                      chi_level((double)choices - 1));
        }
    }
}

/* ln(p (M - 1) / (1 - p)) of a double p, to 60 digits, less a double. */
static double response_epsilon_less(double keep, uint64_t choices, double less)
{
    mpfr_t p, rest;
    mpfr_inits2(300, p, rest, (mpfr_ptr)0);
    mpfr_set_d(p, keep, MPFR_RNDN);
    mpfr_ui_sub(rest, 1, p, MPFR_RNDN);
    mpfr_mul_ui(p, p, choices - 1, MPFR_RNDN);
    mpfr_div(p, p, rest, MPFR_RNDN);
    mpfr_log(p, p, MPFR_RNDN);
    mpfr_sub_d(p, p, less, MPFR_RNDN);
    double result = mpfr_get_d(p, MPFR_RNDA);
    mpfr_clears(p, rest, (mpfr_ptr)0);
    return result;
}

static const uint64_t many_choices[] = {
    2, 3, 10, 1000, 1000003, (uint64_t)1 << 40, ((uint64_t)1 << 60) + 1, ~(uint64_t)0};

static void test_response_keep(void)
{
    for (double epsilon = 0.001; epsilon <= 36; epsilon *= 1.13)
        for (int i = 0; i < 8; i++) {
            struct dpf_response m;
            CU_ASSERT_FATAL(dpf_response_init(&m, epsilon, many_choices[i], NULL) ==
                            DPF_OK);
            double off = response_epsilon_less(m.keep, many_choices[i], epsilon);
            CU_ASSERT(off <= 0);
            /* near 1 a double leaves little room for p: less is kept, none is lost */
            CU_ASSERT(epsilon > 12 || off > -1e-9);
            CU_ASSERT(m.epsilon <= epsilon);
            CU_ASSERT(fabs(response_epsilon_less(m.keep, many_choices[i], m.epsilon)) <
                      1e-13);
        }
}

/* "epsilon: of this p, rounded up". */
static void test_response_rounded_up(void)
{
    int below = 0, all = 0;
    for (double epsilon = 0.001; epsilon <= 36; epsilon *= 1.13)
        for (int i = 0; i < 8; i++, all++) {
            struct dpf_response m;
            CU_ASSERT_FATAL(dpf_response_init(&m, epsilon, many_choices[i], NULL) ==
                            DPF_OK);
            below += response_epsilon_less(m.keep, many_choices[i], m.epsilon) > 0;
        }
    if (below)
        printf("    %d of %d are smaller than the truth\n", below, all);
    CU_ASSERT(below == 0);
}

/* An epsilon next to nothing: refused, or no more than that is lost and no less said. */
static void test_response_little_epsilon(void)
{
    const double little[] = {1e-300, 1e-20, 1e-17, 1e-16, 1e-15};
    int lost = 0, said = 0;
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < 4; i++) {
            struct dpf_response m = {0};
            if (dpf_response_init(&m, little[k], many_choices[i], NULL) == DPF_USAGE)
                continue;
            double truth = fabs(response_epsilon_less(m.keep, many_choices[i], 0));
            lost += truth > little[k];
            said += m.epsilon < truth;
            if (k == 2 && i == 0 && (lost || said))
                printf("    asked for %g: says %g, is %g\n", little[k], m.epsilon, truth);
        }
    CU_ASSERT(lost == 0);
    CU_ASSERT(said == 0);
}

/* ---------------------------------------------------------------------------- bits */

struct bits {
    struct dpf_bit_rates rates[2];
    int count;
    uint64_t input[2];
};

/* Sixteen strings of up to four bits a word, all at even positions. */
static void draw_bits(const void *context, struct dpf_random *r, int input, double *out,
                      size_t count)
{
    enum { AT_ONCE = 100 };
    const struct bits *b = context;
    uint64_t words[AT_ONCE], full = 0, mask = ((uint64_t)1 << b->count) - 1;
    struct dpf_bit_randomiser m;
    dpf_bit_randomiser_init(&m, b->rates);
    for (int i = 0; i < 64; i += 4)
        full |= b->input[input] << i;
    for (size_t done = 0; done < count;) {
        for (int i = 0; i < AT_ONCE; i++)
            words[i] = full;
        dpf_bits_randomise(&m, r, words, AT_ONCE);
        for (int i = 0; i < AT_ONCE * 16 && done < count; i++)
            out[done++] = (double)(words[i / 16] >> i % 16 * 4 & mask);
    }
}

static const char *const method_names[] = {"rr", "ue", "oue", "moue", "uer"};
enum { METHODS = 5 };

static struct bits bits_of(int method, double epsilon, uint64_t length, double alpha,
                           int count, uint64_t one, uint64_t other)
{
    struct bits b = {.count = count, .input = {one, other}};
    CU_ASSERT_FATAL(dpf_bits_rates((enum dpf_bit_method)method, epsilon, length, alpha,
                                   b.rates, NULL) == DPF_OK);
    return b;
}

static void test_bits_stand(void)
{
    for (int method = 0; method < METHODS; method++) {
        struct bits b = bits_of(method, 1, 1, 2, 1, 0, 1); /* one bit, at even places */
        check_stands(draw_bits, &b, 0, dpf_bits_epsilon(b.rates, 1, 0), 0.6,
                     method_names[method]);
        b = bits_of(method, 1, 4, 2, 2, 0, 2); /* one bit, at odd places */
        check_stands(draw_bits, &b, 0, dpf_bits_epsilon(b.rates, 0, 1), 0.6,
                     method_names[method]);
        b = bits_of(method, 2, 4, 2, 4, 0, 15);
        check_stands(draw_bits, &b, 0, dpf_bits_epsilon(b.rates, 2, 2), 0.5,
                     method_names[method]);
        b = bits_of(method, 2, 4, 2, 4, 5, 10);
        check_stands(draw_bits, &b, 0, dpf_bits_epsilon(b.rates, 2, 2), 0.2,
                     method_names[method]);
    }
    /* for one-hot inputs, what the papers say */
    struct bits b = bits_of(DPF_BITS_UE, 1, 4, 1, 4, 1, 2);
    check_stands(draw_bits, &b, 0, 1, 0.7, "ue, one-hot");
    b = bits_of(DPF_BITS_OUE, 1, 4, 1, 4, 4, 2);
    check_stands(draw_bits, &b, 0, 1, 0.7, "oue, one-hot");
    b = bits_of(DPF_BITS_RR, 1, 4, 1, 4, 3, 12); /* all bits may differ */
    check_stands(draw_bits, &b, 0, 1, 0.7, "rr, any string");
}

static void test_bits_fall(void)
{
    struct bits b = bits_of(DPF_BITS_UER, 0.5, 4, 7, 4, 0, 15);
    check_falls(draw_bits, &b, 0, 0.5, "uer, alpha 7, of claimed epsilon 0.5");
    b = bits_of(DPF_BITS_RR, 2, 4, 1, 4, 0, 15);
    check_falls(draw_bits, &b, 0, 1, "rr of 2 where 1 is claimed");
    b = bits_of(DPF_BITS_OUE, 1, 4, 1, 4, 0, 15); /* any string, not one-hot */
    check_falls(draw_bits, &b, 0, 1, "oue for what is not one-hot");
}

/* The worst ratio over all inputs that differ in given bits, and over all outputs. */
static void test_bits_enumerated(void)
{
    for (int method = 0; method < METHODS; method++)
        for (int length = 1; length <= 6; length++)
            for (int a = 0; a < 3; a++) {
                double alpha = a == 0 ? 0.5 : a == 1 ? 2 : 7;
                struct bits b = bits_of(method, 1.5, (uint64_t)length, alpha, 1, 0, 1);
                int all = 1 << length;
                static long double chance[64][64]; /* of an output, given an input */
                for (int x = 0; x < all; x++)
                    for (int y = 0; y < all; y++) {
                        chance[x][y] = 1;
                        for (int i = 0; i < length; i++) {
                            long double one =
                                x >> i & 1 ? b.rates[i % 2].one : b.rates[i % 2].zero;
                            chance[x][y] *= y >> i & 1 ? one : 1 - one;
                        }
                    }
                for (int differ = 0; differ < all; differ++) {
                    long double worst = 1;
                    for (int x = 0; x < all; x++)
                        for (int y = 0; y < all; y++)
                            worst = fmaxl(worst, chance[x][y] / chance[x ^ differ][y]);
                    double due = (double)logl(worst);
                    double got = dpf_bits_epsilon(
                        b.rates, (uint64_t)__builtin_popcount((unsigned)differ & 0x55),
                        (uint64_t)__builtin_popcount((unsigned)differ & 0xaa));
                    CU_ASSERT(got >= due);
                    CU_ASSERT(got <= due + 1e-12);
                }
                CU_ASSERT(dpf_bits_epsilon(b.rates, 1, 0) >= dpf_bit_epsilon(b.rates));
            }
}

/* Each bit has its own rate, in every word and at every place. */
static void test_bits_rates(void)
{
    enum { WORDS = 131, ROUNDS = 3000 / FEWER };
    static uint64_t words[WORDS];
    struct dpf_random r;
    dpf_random_init_insecure(&r, "bits", 0, 0);
    for (int method = 0; method < METHODS; method++) {
        struct bits b = bits_of(method, 3, 6, 1.5, 1, 0, 1);
        double chi = 0, ones[64][2] = {{0}}, by_word[WORDS] = {0}, due = 0, spread = 0;
        struct dpf_bit_randomiser m;
        dpf_bit_randomiser_init(&m, b.rates);
        for (int round = 0; round < ROUNDS; round++) {
            for (int w = 0; w < WORDS; w++)
                words[w] = w % 2 ? 0x0123456789abcdef : ~(uint64_t)0x0123456789abcdef;
            dpf_bits_randomise(&m, &r, words, WORDS);
            for (int w = 0; w < WORDS; w++) {
                by_word[w] += __builtin_popcountll(words[w]);
                for (int i = 0; i < 64; i++)
                    ones[i][w % 2] += (double)(words[w] >> i & 1);
            }
        }
        for (int i = 0; i < 64; i++)
            for (int odd = 0; odd < 2; odd++) {
                bool was = (0x0123456789abcdef >> i & 1) == odd;
                double p = was ? b.rates[i % 2].one : b.rates[i % 2].zero;
                double n = (double)ROUNDS * (odd ? WORDS / 2 : WORDS - WORDS / 2);
                double z = (ones[i][odd] - n * p) / sqrt(n * p * (1 - p));
                chi += z * z;
                due += p / 2;
                spread += p * (1 - p) / 2;
            }
        CU_ASSERT(chi < chi_level(128));
        chi = 0; /* 0123.. and its complement have as many ones, at either parity */
        for (int w = 0; w < WORDS; w++)
            chi += (by_word[w] - due * ROUNDS) * (by_word[w] - due * ROUNDS) /
                   (spread * ROUNDS);
        CU_ASSERT(chi < chi_level(WORDS));
    }
}

static void test_bit_epsilon(void)
{
    struct dpf_bit_rates none = {0.3, 0.3}, sure[] = {{1, 0.5}, {0.5, 0}, {0, 0.5},
                                                      {0.5, 1}, {1, 0},   {0, 1}};
    CU_ASSERT(dpf_bit_epsilon(&none) == 0);
    for (int i = 0; i < 6; i++)
        CU_ASSERT(dpf_bit_epsilon(&sure[i]) == INFINITY);
    struct dpf_bit_rates rates[2] = {{0.75, 0.25}, {0.5, 0.5}};
    CU_ASSERT_DOUBLE_EQUAL(dpf_bits_epsilon(rates, 3, 5), 3 * log(3), 1e-12);
    CU_ASSERT(dpf_bits_epsilon(rates, 3, 5) >= 3 * log(3));
    CU_ASSERT(dpf_bits_epsilon(rates, 0, 5) == 0);
    /* methods never cost less than nothing, and those with a paper's claim keep it */
    for (double epsilon = 0.01; epsilon < 30; epsilon *= 1.7) {
        struct bits b = bits_of(DPF_BITS_RR, epsilon, 8, 1, 1, 0, 1);
        CU_ASSERT_DOUBLE_EQUAL(dpf_bits_epsilon(b.rates, 4, 4), epsilon, 1e-8);
        b = bits_of(DPF_BITS_UE, epsilon, 8, 1, 1, 0, 1);
        CU_ASSERT_DOUBLE_EQUAL(dpf_bits_epsilon(b.rates, 1, 1), epsilon, 1e-8);
    }
}

/* "What one bit costs, rounded up". */
static void test_bit_epsilon_rounded_up(void)
{
    struct dpf_random r;
    int below = 0, all = 0;
    double worst = 0;
    dpf_random_init_insecure(&r, "rates", 0, 0);
    for (int i = 0; i < 100000; i++) {
        double u = (double)(dpf_random_u64(&r) >> 11) * 0x1p-53,
               v = (double)(dpf_random_u64(&r) >> 11) * 0x1p-53;
        if (i % 4 == 1) /* both near 1, both near 0, both alike */
            u = 1 - u * 1e-14, v = 1 - v * 1e-14;
        if (i % 4 == 2)
            u *= 1e-30, v *= 1e-30;
        if (i % 4 == 3)
            v = u + (i % 64) * 0x1p-53;
        if (!(u > 0) || !(v > 0) || !(u < 1) || !(v < 1) || u == v)
            continue;
        struct dpf_bit_rates rates = {u, v};
        long double p = u, q = v;
        long double truth = fmaxl(fabsl(logl(p / q)), fabsl(log1pl((q - p) / (1 - q))));
        double got = dpf_bit_epsilon(&rates);
        all++;
        below += (long double)got < truth * (1 - 0x1p-60L);
        worst = fmax(worst, (double)(truth - got));
        CU_ASSERT(fabsl(got - truth) < 1e-13L * (1 + truth));
    }
    if (below)
        printf("    %d of %d are smaller than the truth, by up to %g\n", below, all,
               worst);
    CU_ASSERT(below == 0);
}

/* ----------------------------------------------------------------------- selection */

struct choice {
    struct dpf_selection selection;
    int64_t scores[2][4];
    size_t count;
    bool noisy_max;
};

static void draw_choice(const void *context, struct dpf_random *r, int input, double *out,
                        size_t count)
{
    const struct choice *c = context;
    for (size_t i = 0; i < count; i++)
        out[i] = (double)(c->noisy_max ? dpf_select_noisy_max : dpf_select_exponential)(
            &c->selection, r, c->scores[input], c->count);
}

static void test_selection_stands(void)
{
    for (int noisy = 0; noisy < 2; noisy++) {
        const char *name = noisy ? "noisy max" : "exponential";
        struct choice c = {.scores = {{0, 6}, {1, 5}}, .count = 2, .noisy_max = noisy};
        CU_ASSERT_FATAL(dpf_selection_init(&c.selection, 1, 1, false, NULL) == DPF_OK);
        check_stands(draw_choice, &c, 0, 1, 0.6, name);
        /* an end of the scores in any units */
        struct choice d = {
            .scores = {{-7000, -1000, 0, -1000}, {-6000, -2000, -1000, -2000}},
            .count = 4,
            .noisy_max = noisy};
        CU_ASSERT_FATAL(dpf_selection_init(&d.selection, 1, 1000, false, NULL) == DPF_OK);
        check_stands(draw_choice, &d, 0, 1, 0.4, name);
        struct choice m = {
            .scores = {{0, 4, 4}, {1, 4, 4}}, .count = 3, .noisy_max = noisy};
        CU_ASSERT_FATAL(dpf_selection_init(&m.selection, 1, 1, true, NULL) == DPF_OK);
        check_stands(draw_choice, &m, 0, 1, 0.6, name);
        /* monotone where scores move both ways: half of the noise, and it shows */
        struct choice w = {.scores = {{0, 3}, {1, 2}}, .count = 2, .noisy_max = noisy};
        CU_ASSERT_FATAL(dpf_selection_init(&w.selection, 1, 1, true, NULL) == DPF_OK);
        check_falls(draw_choice, &w, 0, 1, "monotone scores that are not");
    }
}

/* Probabilities of permute-and-flip: over all orders, the first that is kept. */
static void permute_and_flip(const double *keep, size_t count, double *rates)
{
    size_t order[4], orders = 1;
    for (size_t i = 2; i <= count; i++)
        orders *= i;
    for (size_t i = 0; i < count; i++)
        rates[i] = 0;
    for (size_t number = 0; number < orders; number++) {
        size_t rest = number, left = count;
        bool taken[4] = {false};
        for (size_t i = 0; i < count; i++, left--) {
            size_t skip = rest % left, k = 0;
            rest /= left;
            while (taken[k] || skip--)
                k++;
            taken[k] = true;
            order[i] = k;
        }
        double reach = 1.0 / (double)orders;
        for (size_t i = 0; i < count; i++) {
            rates[order[i]] += reach * keep[order[i]];
            reach *= 1 - keep[order[i]];
        }
    }
}

/* The largest of score + tE, E exponential: by inclusion and exclusion. */
static void largest_of_noisy(const double *keep, size_t count, double *rates)
{
    for (size_t i = 0; i < count; i++) {
        rates[i] = 0;
        for (unsigned set = 0; set < 1u << count; set++) {
            if (set >> i & 1)
                continue;
            double product = __builtin_popcount(set) % 2 ? -1 : 1;
            for (size_t j = 0; j < count; j++)
                product *= set >> j & 1 ? keep[j] : 1;
            rates[i] += product / (1 + __builtin_popcount(set));
        }
        rates[i] *= keep[i];
    }
}

static void test_selection_distribution(void)
{
    enum { DRAWS = 400000 / FEWER };
    static const int64_t scores[][4] = {{0, 1, 2, 3},
                                        {5, 5, 5, 5},
                                        {-3, 0, 0, -1},
                                        {7, -2, 6, 6},
                                        {2, 0, 1, 0},
                                        {(int64_t)1 << 60, ((int64_t)1 << 60) - 2,
                                         ((int64_t)1 << 60) - 1, -((int64_t)1 << 60)}};
    static const double scales[] = {2, 1, 0.7, 5.5};
    struct dpf_random r;
    dpf_random_init_insecure(&r, "selection", 0, 0);
    for (int s = 0; s < 6; s++)
        for (size_t count = 3; count <= 4; count++)
            for (int noisy = 0; noisy < 2; noisy++) {
                struct dpf_selection m = {1, scales[s % 4]};
                double keep[4], rates[4], same[4], counts[4] = {0}, sum = 0;
                int64_t largest = INT64_MIN;
                for (size_t i = 0; i < count; i++)
                    largest = scores[s][i] > largest ? scores[s][i] : largest;
                for (size_t i = 0; i < count; i++)
                    sum += keep[i] = exp((double)(scores[s][i] - largest) / m.scale);
                for (size_t i = 0; i < count; i++)
                    rates[i] = keep[i] / sum;
                if (noisy) {
                    permute_and_flip(keep, count, rates);
                    largest_of_noisy(keep, count, same);
                    for (size_t i = 0; i < count; i++)
                        CU_ASSERT_DOUBLE_EQUAL(rates[i], same[i], 1e-14);
                }
                for (int i = 0; i < DRAWS; i++) {
                    size_t chosen =
                        (noisy ? dpf_select_noisy_max
                               : dpf_select_exponential)(&m, &r, scores[s], count);
                    CU_ASSERT_FATAL(chosen < count);
                    counts[chosen]++;
                }
                double chi = 0, freedom = -1;
                for (size_t i = 0; i < count; i++) {
                    double due = rates[i] * DRAWS;
                    CU_ASSERT(due >= 10 || counts[i] < 40);
                    if (due >= 10) {
                        chi += (counts[i] - due) * (counts[i] - due) / due;
                        freedom++;
                    }
                }
                CU_ASSERT(chi < chi_level(freedom));
            }
    /* one candidate, and more than the list on the stack holds */
    int64_t many[300] = {0};
    struct dpf_selection m = {1, 2};
    CU_ASSERT(dpf_select_exponential(&m, &r, many, 1) == 0);
    CU_ASSERT(dpf_select_noisy_max(&m, &r, many, 1) == 0);
    double counts[300] = {0}, rates[300];
    for (int i = 0; i < 300; i++)
        rates[i] = 1. / 300;
    for (int i = 0; i < DRAWS; i++)
        counts[dpf_select_noisy_max(&m, &r, many, 300)]++;
    CU_ASSERT(chi_square(counts, rates, 300, DRAWS) < chi_level(299));
    /* all but certain: 100 scales ahead, first and last of 65 and of 300 */
    for (size_t count = 64; count <= 300; count += count == 64 ? 1 : 235)
        for (int last = 0; last < 2; last++) {
            size_t best = last ? count - 1 : 0;
            many[best] = 200;
            for (int i = 0; i < 50; i++) {
                CU_ASSERT(dpf_select_noisy_max(&m, &r, many, count) == best);
                CU_ASSERT(dpf_select_exponential(&m, &r, many, count) == best);
            }
            many[best] = 0;
        }
}

/* ------------------------------------------------------------------------ clipping */

enum { LONGEST = 20000 };

/* Whether the norm, to 60 digits, is above the bound; how far in *over, relative. */
static bool above(enum dpf_norm norm, double bound, const double *x, size_t count,
                  double *over)
{
    mpfr_t sum, term;
    mpfr_inits2(300, sum, term, (mpfr_ptr)0);
    mpfr_set_zero(sum, 1);
    for (size_t i = 0; i < count; i++) {
        mpfr_set_d(term, fabs(x[i]), MPFR_RNDN);
        if (norm == DPF_NORM_L2)
            mpfr_sqr(term, term, MPFR_RNDN);
        if (norm != DPF_NORM_MAX)
            mpfr_add(sum, sum, term, MPFR_RNDN);
        else if (mpfr_greater_p(term, sum))
            mpfr_set(sum, term, MPFR_RNDN);
    }
    if (norm == DPF_NORM_L2)
        mpfr_sqrt(sum, sum, MPFR_RNDN);
    bool result = !(mpfr_cmp_d(sum, bound) <= 0);
    mpfr_div_d(sum, sum, bound, MPFR_RNDN);
    double relative = mpfr_get_d(sum, MPFR_RNDA) - 1;
    *over = relative > *over ? relative : *over;
    mpfr_clears(sum, term, (mpfr_ptr)0);
    return result;
}

static double wide(struct dpf_random *r, double exponents)
{
    double x = (double)(int64_t)dpf_random_u64(r) * 0x1p-63;
    double e = ((double)(int64_t)dpf_random_u64(r) * 0x1p-63) * exponents;
    return ldexp(x, (int)e);
}

static void test_clip(void)
{
    static double x[LONGEST], was[LONGEST];
    static const size_t counts[] = {1, 2, 3, 10, 100, 5000, LONGEST};
    struct dpf_random r;
    double over = -1;
    int wrong = 0;
    dpf_random_init_insecure(&r, "clip", 0, 0);
    for (int round = 0; round < 700; round++)
        for (int n = 0; n < 3; n++) {
            enum dpf_norm norm = (enum dpf_norm)n;
            size_t count = counts[round % (round < 70 ? 7 : 5)];
            /* values of one size or of all, around 1 or anywhere, and bounds near 1 */
            double size = ldexp(1, (int)(wide(&r, 0) * (round % 2 ? 20 : 900)));
            double bound = ldexp(1.5, (int)(wide(&r, 0) * 60));
            for (size_t i = 0; i < count; i++)
                was[i] = x[i] = wide(&r, round % 3 ? 4 : 60) * size;
            if (round % 5 == 0) { /* a norm right at the bound, from either side */
                double exact = dpf_norm_of(norm, x, count);
                bound = round % 10 ? nextafter(exact, 0) : nextafter(exact, INFINITY);
            }
            double before = dpf_norm_of(norm, x, count), ignore = 0;
            bool inside = !above(norm, bound * (1 - 1e-9), x, count, &ignore);
            bool cut = dpf_clip(norm, bound, x, count);
            wrong += above(norm, bound, x, count, &over);
            if (inside)
                wrong += cut || memcmp(x, was, count * sizeof *x);
            wrong += cut != (before > bound);
            for (size_t i = 0; i < count; i++) {
                wrong += fabs(x[i]) > fabs(was[i]) || x[i] * was[i] < 0;
                if (norm == DPF_NORM_MAX)
                    wrong += x[i] != fmin(fmax(was[i], -bound), bound);
            }
            /* and no more than need be: the norm comes out at the bound */
            if (cut && norm != DPF_NORM_MAX)
                wrong += dpf_norm_of(norm, x, count) < bound * (1 - 1e-9);
        }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(over <= 0 && over > -1e-9);
}

static void test_clip_not_finite(void)
{
    const double bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int n = 0; n < 3; n++)
        for (int b = 0; b < 4; b++)
            for (int at = 0; at < 5; at++) {
                double x[5] = {1, -2, 0.5, 1e300, 0};
                x[at] = bad[b];
                CU_ASSERT(!isfinite(dpf_norm_of((enum dpf_norm)n, x, 5)));
                CU_ASSERT(dpf_clip((enum dpf_norm)n, 1, x, 5));
                for (int i = 0; i < 5; i++)
                    CU_ASSERT(x[i] == 0);
            }
    /* finite, with a norm that is not: the result is within the bound all the same */
    for (int n = 0; n < 3; n++) {
        double x[3] = {DBL_MAX, -DBL_MAX, DBL_MAX}, over = -1;
        CU_ASSERT(dpf_clip((enum dpf_norm)n, 1, x, 3));
        CU_ASSERT(!above((enum dpf_norm)n, 1, x, 3, &over));
    }
    double nothing[3] = {0, -0.0, 0};
    for (int n = 0; n < 3; n++) {
        CU_ASSERT(!dpf_clip((enum dpf_norm)n, 1, nothing, 3));
        CU_ASSERT(!dpf_clip((enum dpf_norm)n, 1, nothing, 0));
        CU_ASSERT(dpf_norm_of((enum dpf_norm)n, nothing, 3) == 0);
    }
}

static void test_norms(void)
{
    double x[] = {3, -4, 0, 12}, tiny[] = {3e-200, -4e-200, 0, 12e-200},
           huge[] = {3e200, -4e200, 0, 12e200};
    CU_ASSERT(dpf_norm_of(DPF_NORM_L1, x, 4) == 19);
    CU_ASSERT(dpf_norm_of(DPF_NORM_L2, x, 4) == 13);
    CU_ASSERT(dpf_norm_of(DPF_NORM_MAX, x, 4) == 12);
    CU_ASSERT_DOUBLE_EQUAL(dpf_norm_of(DPF_NORM_L2, tiny, 4) / 1e-200, 13, 1e-13);
    CU_ASSERT_DOUBLE_EQUAL(dpf_norm_of(DPF_NORM_L2, huge, 4) / 1e200, 13, 1e-13);
}

/* Values so far above the bound that their quotient leaves the normal doubles. */
static void test_clip_far_above(void)
{
    const double bounds[] = {1, 1e-3, 1e-4, 1e-6, 1e-10, 1e-14, 3e-16, 1e-200, 1e-300};
    for (int n = 0; n < 3; n++) {
        double over = -1;
        for (int b = 0; b < 9; b++)
            for (int i = 0; i < 200; i++) {
                double top = i % 2 ? 1.7e308 : 1.7e308 * bounds[b];
                double x[3] = {top * (1 - i * 1e-3) / 2, top / 9, -top / 11};
                dpf_clip((enum dpf_norm)n, bounds[b], x, 3);
                above((enum dpf_norm)n, bounds[b], x, 3, &over);
            }
        if (over > 0)
            printf("    norm %d: above the bound by %g of it\n", n, over);
        CU_ASSERT(over <= 0);
    }
}

/* -------------------------------------------------------------- Gaussian trade-off */

/* delta of mu and epsilon to 60 digits and more. */
static void judge_delta(mpfr_t out, double mu, double epsilon)
{
    mpfr_t m, q, x, root;
    mpfr_inits2(mpfr_get_prec(out), m, q, x, root, (mpfr_ptr)0);
    mpfr_sqrt_ui(root, 2, MPFR_RNDN);
    mpfr_set_d(m, mu, MPFR_RNDN);
    mpfr_set_d(q, epsilon, MPFR_RNDN);
    mpfr_div(q, q, m, MPFR_RNDN);
    mpfr_div_2ui(m, m, 1, MPFR_RNDN);
    mpfr_sub(x, q, m, MPFR_RNDN);
    mpfr_div(x, x, root, MPFR_RNDN);
    mpfr_erfc(out, x, MPFR_RNDN);
    mpfr_add(x, q, m, MPFR_RNDN);
    mpfr_div(x, x, root, MPFR_RNDN);
    mpfr_erfc(x, x, MPFR_RNDN);
    mpfr_set_d(m, epsilon, MPFR_RNDN);
    mpfr_exp(m, m, MPFR_RNDN);
    mpfr_mul(x, x, m, MPFR_RNDN);
    mpfr_sub(out, out, x, MPFR_RNDN);
    mpfr_div_2ui(out, out, 1, MPFR_RNDN);
    mpfr_clears(m, q, x, root, (mpfr_ptr)0);
}

static void test_tradeoff_known(void)
{
    CU_ASSERT_DOUBLE_EQUAL(dpf_gdp_delta(1, 1), 0.12693673750664397, 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(dpf_gdp_delta(1, 0), 0.38292492254802621, 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(dpf_gdp_epsilon(1 / 4.2246788893, 1e-6), 1, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(1 / dpf_gdp_mu(1, 1e-6), 4.2246788893, 1e-9);
    CU_ASSERT_DOUBLE_EQUAL(dpf_log_normal_cdf(0), -M_LN2, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(dpf_log_normal_cdf(-1.959963984540054), log(0.025), 1e-13);
    /* the curve over many decades, close to the truth */
    mpfr_t truth;
    double worst = 0;
    mpfr_init2(truth, 300);
    for (double mu = 1e-3; mu < 30; mu *= 1.7)
        for (double k = -2; k < 8; k += 0.31) {
            double epsilon = mu * k + mu * mu / 2;
            if (epsilon < 0)
                continue;
            judge_delta(truth, mu, epsilon);
            double due = mpfr_get_d(truth, MPFR_RNDN);
            if (due > 1e-20)
                worst = fmax(worst, fabs(dpf_gdp_delta(mu, epsilon) / due - 1));
        }
    mpfr_clear(truth);
    CU_ASSERT(worst < 1e-8); /* for little mu, two like numbers cancel */
}

static void test_tradeoff_inverses(void)
{
    int wrong = 0;
    for (double mu = 1e-4; mu < 50; mu *= 1.9)
        for (double delta = 1e-14; delta < 0.9; delta *= 7) {
            double epsilon = dpf_gdp_epsilon(mu, delta);
            wrong += !(dpf_gdp_delta(mu, epsilon) <= delta);
            if (epsilon > 0) { /* and no smaller one would do */
                wrong += !(dpf_gdp_delta(mu, epsilon * (1 - 1e-7)) > delta);
                double back = dpf_gdp_mu(epsilon, delta);
                wrong += !(back >= mu * (1 - 1e-10)); /* epsilon was rounded up */
                wrong += !(back < mu * (1 + 1e-6));
                wrong += !(dpf_gdp_delta(back, epsilon) <= delta);
                wrong += !(dpf_gdp_epsilon(back, delta) <= epsilon * (1 + 1e-10));
            }
        }
    CU_ASSERT(wrong == 0);
    for (double epsilon = 0.01; epsilon < 100; epsilon *= 3) /* monotone */
        for (double mu = 0.01; mu < 10; mu *= 2) {
            CU_ASSERT(dpf_gdp_delta(mu, epsilon) <= dpf_gdp_delta(mu * 1.01, epsilon));
            CU_ASSERT(dpf_gdp_delta(mu, epsilon) >= dpf_gdp_delta(mu, epsilon * 1.01));
        }
}

static void test_tradeoff_extremes(void)
{
    CU_ASSERT(dpf_gdp_delta(0, 1) == 0);
    CU_ASSERT(dpf_gdp_delta(INFINITY, 1) == 1);
    CU_ASSERT(dpf_gdp_delta(1e308, 1) == 1);
    CU_ASSERT(dpf_gdp_delta(1e-300, 1) < 1e-300);
    CU_ASSERT(dpf_gdp_delta(1, 1e308) < 1e-300);
    CU_ASSERT(dpf_gdp_delta(1e-3, 0) > 0);
    CU_ASSERT(dpf_gdp_epsilon(0, 0.1) == 0);
    CU_ASSERT(dpf_gdp_epsilon(1e-12, 1e-6) == 0);
    CU_ASSERT(dpf_gdp_epsilon(INFINITY, 0.1) == INFINITY);
    CU_ASSERT(dpf_gdp_epsilon(1, 1) == 0);
    CU_ASSERT(dpf_gdp_epsilon(1, 0) == INFINITY);
    CU_ASSERT(dpf_gdp_epsilon(NAN, 0.1) == INFINITY);
    CU_ASSERT(dpf_gdp_epsilon(1, NAN) == INFINITY);
    CU_ASSERT(dpf_gdp_epsilon(1, 1e-300) > 37 && dpf_gdp_epsilon(1, 1e-300) < 38);
    CU_ASSERT(dpf_gdp_epsilon(1e5, 1e-5) > 5e9 && dpf_gdp_epsilon(1e5, 1e-5) < 5.01e9);
    /* no guarantee was asked for in numbers: none is promised */
    CU_ASSERT(dpf_gdp_mu(NAN, 0.1) < 1e-299);
    CU_ASSERT(dpf_gdp_mu(1, NAN) < 1e-299);
    CU_ASSERT(dpf_gdp_mu(1, 0) < 1e-299);
    CU_ASSERT(dpf_gdp_mu(0, 0.1) > 0.25 && dpf_gdp_mu(0, 0.1) < 0.2514);
    CU_ASSERT(dpf_gdp_mu(1e6, 0.1) > 1412 && dpf_gdp_mu(1e6, 0.1) < 1415);
}

/* What any epsilon will do for: delta is a number, and next to 0. */
static void test_tradeoff_infinite_epsilon(void)
{
    CU_ASSERT(dpf_gdp_delta(1, INFINITY) < 1e-300);
    CU_ASSERT(dpf_gdp_delta(0, INFINITY) == 0);
}

/* "Values are rounded to the safe side: delta and epsilon up, mu down." */
static void test_tradeoff_safe_side(void)
{
    struct dpf_random r;
    mpfr_t truth;
    int below[3] = {0}, all = 0;
    double worst[3] = {0};
    mpfr_init2(truth, 300);
    dpf_random_init_insecure(&r, "trade-off", 0, 0);
    for (int i = 0; i < 2000 / FEWER; i++) {
        double u = (double)(dpf_random_u64(&r) >> 11) * 0x1p-53,
               v = (double)(dpf_random_u64(&r) >> 11) * 0x1p-53;
        double mu = 0.01 * pow(10000, u), epsilon = mu * (10 * v - 3) + mu * mu / 2;
        if (epsilon < 0)
            continue;
        judge_delta(truth, mu, epsilon);
        double due = mpfr_get_d(truth, MPFR_RNDU), delta = due;
        if (due < 1e-15)
            continue;
        all++;
        for (int way = 0; way < 3; way++) {
            double m = way == 2 ? dpf_gdp_mu(epsilon, delta) : mu;
            double e = way == 1 ? dpf_gdp_epsilon(mu, delta) : epsilon;
            double d = way == 0 ? dpf_gdp_delta(mu, epsilon) : delta;
            judge_delta(truth, m, e);
            mpfr_sub_d(truth, truth, d, MPFR_RNDN);
            double lack = mpfr_get_d(truth, MPFR_RNDA) / due;
            below[way] += lack > 0;
            worst[way] = fmax(worst[way], lack);
        }
    }
    if (below[0] + below[1] + below[2])
        printf("    of %d: delta %d (by %.1e of it), epsilon %d (%.1e), mu %d (%.1e)\n",
               all, below[0], worst[0], below[1], worst[1], below[2], worst[2]);
    CU_ASSERT(below[0] == 0);
    CU_ASSERT(below[1] == 0);
    CU_ASSERT(below[2] == 0);
    mpfr_clear(truth);
}

/* ln Phi far in the tail, to 1e-12 as tradeoff.c says. */
static void test_log_normal_cdf(void)
{
    mpfr_t x, root;
    double worst = 0;
    mpfr_inits2(300, x, root, (mpfr_ptr)0);
    mpfr_sqrt_ui(root, 2, MPFR_RNDN);
    for (double at = 8; at > -200; at -= 0.173) {
        mpfr_set_d(x, -at, MPFR_RNDN);
        mpfr_div(x, x, root, MPFR_RNDN);
        mpfr_erfc(x, x, MPFR_RNDN);
        mpfr_div_2ui(x, x, 1, MPFR_RNDN);
        mpfr_log(x, x, MPFR_RNDN);
        mpfr_sub_d(x, x, dpf_log_normal_cdf(at), MPFR_RNDN);
        worst = fmax(worst, fabs(mpfr_get_d(x, MPFR_RNDN)) / fmax(1, at * at / 300));
    }
    if (!(worst < 1e-12))
        printf("    off by %g\n", worst);
    CU_ASSERT(worst < 1e-12);
    mpfr_clears(x, root, (mpfr_ptr)0);
}

/* ------------------------------------------------------------------------ refusals */

static const double no_parameter[] = {NAN, 0, -0.0, -1, INFINITY, -INFINITY};
enum { BAD = 6 };

static void test_refusals(void)
{
    struct dpf_error e;
    struct dpf_gaussian g;
    struct dpf_laplace l;
    struct dpf_response m;
    struct dpf_selection s;
    struct dpf_bit_rates rates[2];
    struct dpf_gaussian_query gq = by_l2(1, 1, 1, 0);
    struct dpf_laplace_query lq = by_l1(1, 1, 1, 0);
    CU_ASSERT(dpf_gaussian_init(&g, &gq, 1, &e) == DPF_OK);
    CU_ASSERT(dpf_laplace_init(&l, &lq, 1, &e) == DPF_OK);
    for (int i = 0; i < BAD; i++) {
        double bad = no_parameter[i];
        CU_ASSERT(dpf_gaussian_init(&g, &gq, bad, &e) == DPF_USAGE);
        CU_ASSERT(dpf_gaussian_init_epsilon(&g, &gq, bad, 1e-5, &e) == DPF_USAGE);
        CU_ASSERT(dpf_gaussian_init_epsilon(&g, &gq, 1, bad, &e) == DPF_USAGE);
        CU_ASSERT(dpf_laplace_init(&l, &lq, bad, &e) == DPF_USAGE);
        CU_ASSERT(dpf_response_init(&m, bad, 2, &e) == DPF_USAGE);
        CU_ASSERT(dpf_selection_init(&s, bad, 1, false, &e) == DPF_USAGE);
        CU_ASSERT(dpf_selection_init(&s, 1, bad, true, &e) == DPF_USAGE);
        for (int method = 0; method < METHODS; method++) {
            enum dpf_bit_method which = (enum dpf_bit_method)method;
            CU_ASSERT(dpf_bits_rates(which, bad, 4, 1, rates, &e) == DPF_USAGE);
            if (method >= DPF_BITS_MOUE) {
                CU_ASSERT(dpf_bits_rates(which, 1, 4, bad, rates, &e) == DPF_USAGE);
            }
        }
        for (unsigned parts = 0; parts < 2; parts++) {
            struct dpf_gaussian_query gb = by_l2(bad, 1, parts, 1);
            struct dpf_laplace_query lb = by_l1(bad, 1, parts, 1);
            CU_ASSERT(dpf_gaussian_init(&g, &gb, 1, &e) == DPF_USAGE);
            CU_ASSERT(dpf_gaussian_init_epsilon(&g, &gb, 1, 1e-5, &e) == DPF_USAGE);
            CU_ASSERT(dpf_laplace_init(&l, &lb, 1, &e) == DPF_USAGE);
        }
    }
    CU_ASSERT(dpf_gaussian_init_epsilon(&g, &gq, 1, 1, &e) == DPF_USAGE);
    CU_ASSERT(dpf_gaussian_init_epsilon(&g, &gq, 1, 1.5, &e) == DPF_USAGE);
    CU_ASSERT(dpf_response_init(&m, 36.1, 2, &e) == DPF_USAGE);
    CU_ASSERT(dpf_response_init(&m, 1, 0, &e) == DPF_USAGE);
    CU_ASSERT(dpf_response_init(&m, 1, 1, &e) == DPF_USAGE);
    CU_ASSERT(dpf_bits_rates(DPF_BITS_RR, 1, 0, 1, rates, &e) == DPF_USAGE);
    /* noise that leaves the grid's range, in either direction */
    CU_ASSERT(dpf_gaussian_init(&g, &gq, 1e308, &e) == DPF_USAGE ||
              isfinite(g.noise_stddev));
    gq = by_l2(1e300, 1, 1, 0);
    CU_ASSERT(dpf_gaussian_init(&g, &gq, 1e10, &e) == DPF_USAGE);
    gq = by_l2(1e-300, 1, 1, 0);
    CU_ASSERT(dpf_gaussian_init(&g, &gq, 1e-10, &e) == DPF_USAGE);
    gq = by_l2(1, 1, 0, 0x1p-37);
    CU_ASSERT(dpf_gaussian_init(&g, &gq, 1, &e) == DPF_USAGE);
    lq = by_l1(1, 1, 0, 0x1p-37);
    CU_ASSERT(dpf_laplace_init(&l, &lq, 1, &e) == DPF_USAGE);
    lq = by_l1(1, 1, 0, 2); /* less than a step: nothing differs */
    CU_ASSERT(dpf_laplace_init(&l, &lq, 1, &e) == DPF_USAGE);
    CU_ASSERT(dpf_selection_init(&s, 1, 1e11, false, &e) == DPF_USAGE);
    CU_ASSERT(dpf_selection_init(&s, 1e7, 1, false, &e) == DPF_USAGE);
}

/* A step is a parameter as well. */
static void test_refused_steps(void)
{
    struct dpf_gaussian g;
    struct dpf_laplace l;
    struct dpf_error e;
    for (int i = 0; i < BAD; i++) {
        struct dpf_gaussian_query gq = by_l2(1, 1, 0, no_parameter[i]);
        struct dpf_laplace_query lq = by_l1(1, 1, 0, no_parameter[i]);
        enum dpf_status by_gaussian = dpf_gaussian_init(&g, &gq, 1, &e);
        enum dpf_status by_epsilon = dpf_gaussian_init_epsilon(&g, &gq, 1, 1e-5, &e);
        enum dpf_status by_laplace = dpf_laplace_init(&l, &lq, 1, &e);
        if (!by_gaussian || !by_epsilon || !by_laplace)
            printf("    step %g: gaussian %d, by epsilon %d, laplace %d\n",
                   no_parameter[i], by_gaussian, by_epsilon, by_laplace);
        CU_ASSERT(by_gaussian == DPF_USAGE);
        CU_ASSERT(by_epsilon == DPF_USAGE);
        CU_ASSERT(by_laplace == DPF_USAGE);
    }
    /* the least step: refused as well, or the noise is a number of steps all the same */
    for (int i = 0; i < BAD; i++) {
        struct dpf_gaussian_query gq = by_l2(1, 1, 1, 0);
        struct dpf_laplace_query lq = by_l1(1, 1, 1, 0);
        gq.least_step = lq.least_step = no_parameter[i];
        CU_ASSERT(dpf_gaussian_init(&g, &gq, 1, &e) == DPF_USAGE ||
                  (g.noise_stddev >= 1 && g.noise_stddev / g.step > 0 &&
                   isfinite(g.noise_stddev)));
        CU_ASSERT(dpf_laplace_init(&l, &lq, 1, &e) == DPF_USAGE ||
                  (l.scale >= 1 && l.scale / l.step > 0 && isfinite(l.scale)));
    }
    /* and one that is coarse is paid for by the sensitivity */
    struct dpf_gaussian_query gq = by_l2(1, 4, 3, 0);
    struct dpf_laplace_query lq = by_l1(1, 4, 3, 0);
    gq.least_step = lq.least_step = 0.25;
    CU_ASSERT(dpf_gaussian_init(&g, &gq, 2, &e) == DPF_OK);
    CU_ASSERT(dpf_laplace_init(&l, &lq, 0.5, &e) == DPF_OK);
    CU_ASSERT(g.step == 0.25 && l.step == 0.25);
    CU_ASSERT(g.sensitivity_l2 >= 1 + 3 * 2 * 0.25 && g.noise_stddev >= 2 * 2.5);
    CU_ASSERT(l.sensitivity_l1 >= 1 + 3 * 4 * 0.25 && l.scale >= 2 * 4);
}

const char dpf_suite[] = "falsify";

const struct dpf_test dpf_tests[] = {
    {"Clopper and Pearson's bounds", test_bounds},
    {"the Gaussian mechanism stands", test_gaussian_stands},
    {"the Laplace mechanism stands", test_laplace_stands},
    {"too little noise and clamped noise fall", test_additive_falls},
    {"rounding adds what the proofs allow", test_rounded_sensitivity},
    {"votes of teachers stand", test_votes_stand},
    {"votes with too little noise fall", test_votes_fall},
    {"a mean of codes stands, and falls where it should", test_codes},
    {"low-order bits betray doubles, not the grid", test_low_order_bits},
    {"membership betrays doubles, not the grid", test_membership},
    {"randomised response stands, and falls where it should", test_response_stands},
    {"randomised response: each answer's share", test_response_distribution},
    {"randomised response: the rate has its epsilon", test_response_keep},
    {"randomised response: its epsilon is rounded up", test_response_rounded_up},
    {"randomised response: an epsilon of almost 0", test_response_little_epsilon},
    {"bits of every method stand", test_bits_stand},
    {"bits with another epsilon than claimed fall", test_bits_fall},
    {"bits: all inputs and outputs of short strings", test_bits_enumerated},
    {"bits: each has its rate", test_bits_rates},
    {"bits: what one costs", test_bit_epsilon},
    {"bits: what one costs is rounded up", test_bit_epsilon_rounded_up},
    {"selection stands", test_selection_stands},
    {"selection: exact probabilities", test_selection_distribution},
    {"clipping: no norm above its bound", test_clip},
    {"clipping: what is not finite becomes 0", test_clip_not_finite},
    {"clipping: norms", test_norms},
    {"clipping: far above the bound", test_clip_far_above},
    {"trade-off: known values", test_tradeoff_known},
    {"trade-off: inverses", test_tradeoff_inverses},
    {"trade-off: extremes", test_tradeoff_extremes},
    {"trade-off: an epsilon without end", test_tradeoff_infinite_epsilon},
    {"trade-off: rounded to the safe side", test_tradeoff_safe_side},
    {"trade-off: the logarithm of the normal tail", test_log_normal_cdf},
    {"parameters that are none are refused", test_refusals},
    {"steps that are none are refused", test_refused_steps},
    {0},
};
