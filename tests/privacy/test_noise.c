/* Integer noise: are the integers those that the digits stand for, and have they the
 * distribution that proofs assume? Digits by MPFR are the judge of the first; exact
 * probabilities and a sampler that knows no real numbers are the judges of the second.
 * Seeds are fixed and every statistical level is 1e-6, so a test that passes once passes
 * always. */
#include "random/noise.h"

#include <math.h>
#include <mpfr.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

/* A second copy of the sampler under other names: its versions for other machines are
 * static, and this machine would otherwise run only one of them. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#define dpf_noise_gaussian          copy_gaussian
#define dpf_noise_laplace           copy_laplace
#define dpf_noise_laplace_each      copy_laplace_each
#define dpf_noise_geometric         copy_geometric
#define dpf_noise_fast_normals      copy_fast_normals
#define dpf_noise_fast_exponentials copy_fast_exponentials
#include "random/noise.c"
#undef dpf_noise_gaussian
#undef dpf_noise_laplace
#undef dpf_noise_laplace_each
#undef dpf_noise_geometric
#undef dpf_noise_fast_normals
#undef dpf_noise_fast_exponentials
#pragma GCC diagnostic pop

#include "base/banned.h"

#if defined(__SANITIZE_ADDRESS__)
enum { FEWER = 20 };
#else
enum { FEWER = 1 };
#endif
enum { CALL = 1 << 16, DRAWS = 153 * CALL / FEWER }; /* 10^7 */

static const double z_level = 4.8916;  /* two-sided normal, 1e-6 */
static const double ks_level = 2.6934; /* sqrt(ln(2 / 1e-6) / 2) */
static const double level = 1e-6;

/* ---------------------------------------------------------------------- statistics */

/* The regularised upper incomplete gamma function: a series or a continued fraction. */
static double gamma_q(double a, double x)
{
    double front = exp(a * log(x) - x - lgamma(a));
    if (x < a + 1) {
        double sum = 1 / a, term = 1 / a;
        for (int n = 1; n < 100000 && term > 1e-16 * sum; n++)
            sum += term *= x / (a + n);
        return 1 - front * sum;
    }
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, change = 0;
    for (int n = 1; n < 100000 && fabs(change - 1) > 1e-15; n++) {
        double an = -n * (n - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        change = c * d;
        h *= change;
    }
    return front * h;
}

/* The probability of a chi-square as large as this one or larger. */
static double chi_p(double chi, double freedom)
{
    return chi <= 0 ? 1 : gamma_q(freedom / 2, chi / 2);
}

static void test_helpers(void)
{
    CU_ASSERT_DOUBLE_EQUAL(chi_p(3.841458820694124, 1), 0.05, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(chi_p(10, 2), exp(-5), 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(chi_p(0.2, 4), exp(-0.1) * 1.1, 1e-14);
    CU_ASSERT_DOUBLE_EQUAL(chi_p(1118.9480663, 1000), 0.005, 1e-9);
}

enum law { GAUSSIAN, LAPLACE, GEOMETRIC };

/* Pr[X <= k]. */
static double cdf(enum law law, double scale, double k)
{
    double ratio = exp(-1 / scale);
    switch (law) {
    case GAUSSIAN:
        return 0.5 * erfc(-(k + 0.5) / scale * M_SQRT1_2);
    case LAPLACE:
        return k < 0 ? exp(k / scale) / (1 + ratio)
                     : 1 - exp(-(k + 1) / scale) / (1 + ratio);
    case GEOMETRIC:
        return k < 0 ? 0 : -expm1(-(k + 1) / scale);
    }
    return NAN;
}

/* The first eight moments of X / scale. */
static void moments_of(enum law law, double scale, double *m)
{
    memset(m, 0, 9 * sizeof *m);
    if (law == GAUSSIAN && scale > 2000) { /* Sheppard: uniform noise of width 1 on top */
        double q = 1 / (scale * scale);
        m[2] = 1 + q / 12, m[4] = 3 + q / 2 + q * q / 80, m[6] = 15, m[8] = 105;
        return;
    }
    if (law == GAUSSIAN) {
        for (double k = 1; k < 14 * scale + 3; k++) {
            double p = 0.5 * (erfc((k - 0.5) / scale * M_SQRT1_2) -
                              erfc((k + 0.5) / scale * M_SQRT1_2));
            for (int n = 2; n <= 8; n += 2)
                m[n] += 2 * p * pow(k / scale, n);
        }
        return;
    }
    /* sum of k^n a^k is a A_n(a) / (1 - a)^(n + 1) with Euler's polynomials A_n */
    double a = exp(-1 / scale), rest = -expm1(-1 / scale), row[9] = {1};
    for (int n = 1; n <= 8; n++) {
        double sum = 0;
        for (int i = n - 1; i > 0 && n > 1; i--)
            row[i] = (i + 1) * row[i] + (n - i) * row[i - 1];
        for (int i = 0; i < n; i++)
            sum += row[i] * pow(a, i + 1);
        m[n] = sum / pow(rest * scale, n);
        if (law == LAPLACE)
            m[n] = n % 2 ? 0 : m[n] * 2 / (1 + a);
    }
}

enum { BINS = 4096 };

struct tally {
    enum law law;
    double scale;
    int64_t width, low; /* bin i holds low + i width .. low + (i + 1) width - 1 */
    double counts[BINS], draws, powers[5];
    double bits[256]; /* the last eight bits */
};

static void tally_begin(struct tally *t, enum law law, double scale)
{
    memset(t, 0, sizeof *t);
    t->law = law;
    t->scale = scale;
    t->width = (int64_t)ceil(32 * scale / BINS);
    t->low = law == GEOMETRIC ? 0 : -t->width * (BINS / 2);
}

static void tally_add(struct tally *t, const int64_t *values, size_t count)
{
    double inverse = 1 / t->scale;
    for (size_t i = 0; i < count; i++) {
        int64_t bin = (values[i] - t->low) / t->width;
        t->counts[values[i] < t->low ? 0 : bin >= BINS ? BINS - 1 : bin]++;
        t->bits[values[i] & 255]++;
        double x = (double)values[i] * inverse;
        t->powers[1] += x;
        t->powers[2] += x * x;
        t->powers[3] += x * x * x;
        t->powers[4] += x * x * x * x;
    }
    t->draws += (double)count;
}

/* The distribution function at the upper end of bin i. */
static double tally_cdf(const struct tally *t, int bin)
{
    double last = (double)(t->low + (bin + 1) * t->width - 1);
    return bin == BINS - 1 ? 1 : cdf(t->law, t->scale, last);
}

static void tally_check(const struct tally *t)
{
    double chi = 0, freedom = -1, seen = 0, due = 0, before = 0, distance = 0, all = 0;
    for (int i = 0; i < BINS; i++) {
        double up_to = tally_cdf(t, i), expected = (up_to - before) * t->draws;
        before = up_to;
        seen += t->counts[i];
        due += expected;
        all += t->counts[i];
        distance = fmax(distance, fabs(all / t->draws - up_to));
        if (due < 20 || (1 - up_to) * t->draws < 20) /* wait for more; all ends in one */
            continue;
        chi += (seen - due) * (seen - due) / due;
        freedom++;
        seen = due = 0;
    }
    if (due > 0) {
        chi += (seen - due) * (seen - due) / due;
        freedom++;
    }
    double p = freedom > 0 ? chi_p(chi, freedom) : 1;
    double ks = distance * sqrt(t->draws), m[9], worst = 0;
    moments_of(t->law, t->scale, m);
    for (int n = 1; n <= 4; n++) {
        double deviation = sqrt((m[2 * n] - m[n] * m[n]) / t->draws);
        worst = fmax(worst, fabs(t->powers[n] / t->draws - m[n]) / deviation);
    }
    if (!(p > level) || !(ks < ks_level) || !(worst < z_level))
        printf("    law %d scale %g: chi-square %g of %g (p %g), KS %g, moments %g\n",
               t->law, t->scale, chi, freedom, p, ks, worst);
    CU_ASSERT(p > level);
    CU_ASSERT(ks < ks_level);
    CU_ASSERT(worst < z_level);
    if (t->scale < 900) /* with more the last bits are uniform to 1e-100 */
        return;
    double flat = 0, each = t->draws / 256;
    for (int i = 0; i < 256; i++)
        flat += (t->bits[i] - each) * (t->bits[i] - each) / each;
    if (t->law == GAUSSIAN || t->scale > 1e5) /* exponential tails: flat to (256 / t)^2 */
        CU_ASSERT(chi_p(flat, 255) > level);
}

static struct tally tally;
static int64_t drawn[CALL];

static void check_law(enum law law, double scale, int64_t draws)
{
    struct dpf_random r;
    dpf_random_init_insecure(&r, "noise test", (uint64_t)law, (uint64_t)(scale * 1000));
    tally_begin(&tally, law, scale);
    for (int64_t done = 0; done < draws; done += CALL) {
        size_t count = draws - done < CALL ? (size_t)(draws - done) : CALL;
        if (law == GAUSSIAN)
            dpf_noise_gaussian(&r, scale, drawn, count);
        else if (law == LAPLACE)
            dpf_noise_laplace(&r, scale, drawn, count);
        else
            for (size_t i = 0; i < count; i++)
                drawn[i] = dpf_noise_geometric(&r, scale);
        tally_add(&tally, drawn, count);
    }
    tally_check(&tally);
}

static void test_gaussian(void)
{
    check_law(GAUSSIAN, 0.3, DRAWS);
    check_law(GAUSSIAN, 1, DRAWS);
    check_law(GAUSSIAN, 7.5, DRAWS);
    check_law(GAUSSIAN, 1000, DRAWS);
    check_law(GAUSSIAN, 0x1p24, DRAWS);
    check_law(GAUSSIAN, 0.05, DRAWS / 10); /* all but never anything but 0 */
}

static void test_laplace(void)
{
    check_law(LAPLACE, 0.2, DRAWS);
    check_law(LAPLACE, 1, DRAWS);
    check_law(LAPLACE, 30, DRAWS);
    check_law(LAPLACE, 1e6, DRAWS);
    check_law(LAPLACE, 0x1p30, DRAWS / 20); /* what the mechanism uses */
}

static void test_geometric(void)
{
    check_law(GEOMETRIC, 0.2, DRAWS);
    check_law(GEOMETRIC, 1, DRAWS);
    check_law(GEOMETRIC, 30, DRAWS);
    check_law(GEOMETRIC, 1e6, DRAWS);
}

/* The smallest scales do not hang, and the largest have their deviation. */
static void test_extreme_scales(void)
{
    const double scales[] = {1e-3, 1e-6, 1e-30, 1e-200, 5e-324};
    struct dpf_random r;
    int64_t sum = 0;
    dpf_random_init_insecure(&r, "extreme", 0, 0);
    for (int i = 0; i < 5; i++) {
        dpf_noise_gaussian(&r, scales[i], drawn, 256);
        for (int k = 0; k < 256; k++)
            sum += llabs(drawn[k]);
        dpf_noise_laplace(&r, scales[i], drawn, 20);
        for (int k = 0; k < 20; k++)
            sum += llabs(drawn[k]) + dpf_noise_geometric(&r, scales[i]);
    }
    CU_ASSERT(sum == 0);
}

/* ----------------------------------------------------------------- digits, by MPFR */

enum { PRECISION = 200 };

/* A uniform real of which 64 or 128 digits are known. */
struct real {
    uint64_t first, second;
    int words;
};

static void real_ends(const struct real *u, mpfr_t lo, mpfr_t hi)
{
    mpfr_set_ui_2exp(lo, u->first, -64, MPFR_RNDN);
    mpfr_set_ui_2exp(hi, u->words > 1 ? u->second : 0, -128, MPFR_RNDN);
    mpfr_add(lo, lo, hi, MPFR_RNDN); /* all of it exact: 128 digits in 200 */
    mpfr_set_ui_2exp(hi, 1, -64 * u->words, MPFR_RNDN);
    mpfr_add(hi, hi, lo, MPFR_RNDN);
}

/* [lo, hi] around -ln U. */
static void judge_exponential(const struct real *u, mpfr_t lo, mpfr_t hi)
{
    real_ends(u, hi, lo);
    mpfr_log(hi, hi, MPFR_RNDD);
    mpfr_log(lo, lo, MPFR_RNDU);
    mpfr_neg(hi, hi, MPFR_RNDN);
    mpfr_neg(lo, lo, MPFR_RNDN);
}

/* [lo[0], hi[0]] around the cosine's value, [lo[1], hi[1]] around the sine's: all four
 * corners, and 2^-110 for a maximum between them. */
static void judge_pair(const struct real *u, const struct real *turn, mpfr_t *lo,
                       mpfr_t *hi)
{
    static mpfr_t radius[2], angle[2], pi, value;
    static bool ready;
    if (!ready) {
        mpfr_inits2(PRECISION, radius[0], radius[1], angle[0], angle[1], pi, value,
                    (mpfr_ptr)0);
        ready = true;
    }
    mpfr_const_pi(pi, MPFR_RNDN);
    mpfr_mul_2ui(pi, pi, 1, MPFR_RNDN);
    judge_exponential(u, radius[0], radius[1]);
    real_ends(turn, angle[0], angle[1]);
    for (int i = 0; i < 2; i++) {
        mpfr_mul_2ui(radius[i], radius[i], 1, MPFR_RNDN);
        mpfr_sqrt(radius[i], radius[i], MPFR_RNDN);
        mpfr_mul(angle[i], angle[i], pi, MPFR_RNDN);
    }
    for (int wave = 0; wave < 2; wave++) {
        for (int corner = 0; corner < 4; corner++) {
            if (corner % 2 == 0)
                (wave ? mpfr_sin : mpfr_cos)(pi, angle[corner / 2], MPFR_RNDN);
            mpfr_mul(value, pi, radius[corner % 2], MPFR_RNDN);
            if (corner == 0 || mpfr_less_p(value, lo[wave]))
                mpfr_set(lo[wave], value, MPFR_RNDN);
            if (corner == 0 || mpfr_greater_p(value, hi[wave]))
                mpfr_set(hi[wave], value, MPFR_RNDN);
        }
        mpfr_sub_d(lo[wave], lo[wave], 0x1p-110, MPFR_RNDD);
        mpfr_add_d(hi[wave], hi[wave], 0x1p-110, MPFR_RNDU);
    }
}

/* How far a double is from the farther end. */
static double distance_to(double x, mpfr_t lo, mpfr_t hi)
{
    mpfr_t difference;
    mpfr_init2(difference, PRECISION);
    mpfr_sub_d(difference, lo, x, MPFR_RNDN);
    double a = fabs(mpfr_get_d(difference, MPFR_RNDA));
    mpfr_sub_d(difference, hi, x, MPFR_RNDN);
    double b = fabs(mpfr_get_d(difference, MPFR_RNDA));
    mpfr_clear(difference);
    return fmax(a, b);
}

/* The integers that s times the ends, less shift, round to; whether it is one. */
static bool rounded(mpfr_t lo, mpfr_t hi, double s, double shift, int64_t *ends)
{
    mpfr_t x;
    mpfr_init2(x, PRECISION + 60);
    for (int end = 0; end < 2; end++) {
        mpfr_mul_d(x, end ? hi : lo, s, MPFR_RNDN);
        mpfr_sub_d(x, x, shift, MPFR_RNDN);
        mpfr_round(x, x);
        ends[end] = mpfr_get_sj(x, MPFR_RNDN);
    }
    mpfr_clear(x);
    return ends[0] == ends[1];
}

/* Where errors are worst: the ends of the range, the folds of the logarithm and of the
 * waves, and digits half-way between two doubles. */
static uint64_t hard_radius(struct dpf_random *r)
{
    static const uint64_t places[] = {
        (uint64_t)1 << 48,  (uint64_t)1 << 49,  (uint64_t)1 << 50,
        (uint64_t)1 << 56,  (uint64_t)1 << 62,  (uint64_t)1 << 63,
        0xb504f333f9de6485, 0x5a827999fcef3242, 0xfffffe0000000000 /* 1 - 2^-23 */,
        0xffffff0000000000, 0xffffff8000000000, 0x2d413cccfe779921,
        0x8000000000000400};
    static const uint64_t low[] = {0, 1, 0x3ff, 0x400, 0x401, 0x7ff, 0xbff, 0xc00};
    uint64_t x = places[dpf_random_below(r, sizeof places / sizeof *places)];
    x += (dpf_random_u64(r) >> dpf_random_below(r, 64)) *
         (dpf_random_u64(r) & 1 ? 1 : ~(uint64_t)0);
    if (dpf_random_u64(r) & 1)
        x = (x & ~(uint64_t)0x7ff) | low[dpf_random_below(r, 8)];
    if (dpf_random_below(r, 4) == 0) /* right at the upper end */
        x = (~(uint64_t)0 << 39) - 1 - (dpf_random_below(r, 1000) << 11);
    return x;
}

static uint64_t hard_angle(struct dpf_random *r)
{
    uint64_t x = dpf_random_below(r, 16) << 60;
    uint64_t off = dpf_random_u64(r) >> dpf_random_below(r, 64);
    x += dpf_random_u64(r) & 1 ? off : 0 - off;
    return dpf_random_u64(r) & 1 ? x | 0x7ff : x;
}

static bool in_range(uint64_t digits)
{
    return digits >= (uint64_t)1 << 48 && digits < ~(uint64_t)0 << 39;
}

/* The sampler may trust its doubles to DPF_NOISE_ERROR; they are to be four times as good
 * (and a thousandth: at U = 1 - 2^-25 the last digit of U alone makes a quarter). */
static const double allowed = DPF_NOISE_ERROR / 4 * 1.001;

static void test_fast_normals(void)
{
    enum { COUNT = 100000 / FEWER, HARD = 40000 / FEWER };
    static uint64_t radius[COUNT + HARD], angle[COUNT + HARD];
    static double cosines[COUNT + HARD], sines[COUNT + HARD];
    struct dpf_random r;
    mpfr_t lo[2], hi[2];
    mpfr_inits2(PRECISION, lo[0], lo[1], hi[0], hi[1], (mpfr_ptr)0);
    dpf_random_init_insecure(&r, "fast normals", 0, 0);
    for (int i = 0; i < COUNT + HARD; i++) {
        do
            radius[i] = i < COUNT ? dpf_random_u64(&r) : hard_radius(&r);
        while (!in_range(radius[i]));
        angle[i] = i < COUNT || i % 3 == 0 ? dpf_random_u64(&r) : hard_angle(&r);
    }
    radius[0] = (uint64_t)1 << 48, radius[1] = (~(uint64_t)0 << 39) - 1;
    radius[2] = radius[1] - 0x3ff, radius[3] = radius[1] - 0x400;
    for (int i = 0; i < 4; i++)
        angle[i] = 0;
    dpf_noise_fast_normals(radius, angle, COUNT + HARD, cosines, sines);
    double worst = 0;
    for (int i = 0; i < COUNT + HARD; i++) {
        struct real u = {radius[i], 0, 1}, turn = {angle[i], 0, 1};
        judge_pair(&u, &turn, lo, hi);
        double error = fmax(distance_to(cosines[i], lo[0], hi[0]),
                            distance_to(sines[i], lo[1], hi[1]));
        if (!(error <= allowed) && !(error <= worst))
            printf("    radius %016lx angle %016lx: error %g of %g\n", radius[i],
                   angle[i], error, DPF_NOISE_ERROR);
        worst = error <= worst ? worst : error;
    }
    CU_ASSERT(worst <= allowed);
    CU_ASSERT(worst > DPF_NOISE_ERROR / 64); /* the hard ones were found */
    mpfr_clears(lo[0], lo[1], hi[0], hi[1], (mpfr_ptr)0);
}

static void test_fast_exponentials(void)
{
    enum { COUNT = 200000 / FEWER, HARD = 50000 / FEWER };
    static uint64_t digits[COUNT + HARD];
    static double fast[COUNT + HARD];
    struct dpf_random r;
    mpfr_t lo, hi;
    mpfr_inits2(PRECISION, lo, hi, (mpfr_ptr)0);
    dpf_random_init_insecure(&r, "fast exponentials", 0, 0);
    for (int i = 0; i < COUNT + HARD; i++)
        do
            digits[i] = i < COUNT ? dpf_random_u64(&r) : hard_radius(&r);
        while (!in_range(digits[i]));
    digits[0] = (uint64_t)1 << 48, digits[1] = (~(uint64_t)0 << 39) - 1;
    dpf_noise_fast_exponentials(digits, COUNT + HARD, fast);
    double worst = 0;
    for (int i = 0; i < COUNT + HARD; i++) {
        struct real u = {digits[i], 0, 1};
        judge_exponential(&u, lo, hi);
        double error = distance_to(fast[i], lo, hi);
        worst = error <= worst ? worst : error;
    }
    CU_ASSERT(worst < DPF_NOISE_ERROR / 4);
    CU_ASSERT(worst > 0x1p-53);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
}

/* ----------------------------------------------------- integers of the very digits */

/* Every block of 256: the first half cosines, the second sines, of the words that the
 * stream gives. Where 64 digits leave two integers open, the answer is one of them. */
static void check_gaussian_digits(double s, int blocks)
{
    struct dpf_random r, copy;
    int64_t out[256], ends[2];
    uint64_t words[256], open = 0, wrong = 0;
    mpfr_t lo[2], hi[2];
    mpfr_inits2(PRECISION, lo[0], lo[1], hi[0], hi[1], (mpfr_ptr)0);
    dpf_random_init_insecure(&r, "digits", 1, (uint64_t)(s * 16));
    for (int b = 0; b < blocks; b++) {
        copy = r;
        dpf_random_bytes(&copy, words, sizeof words);
        dpf_noise_gaussian(&r, s, out, 256);
        for (int i = 0; i < 128; i++) {
            struct real u = {words[i], 0, 1}, turn = {words[128 + i], 0, 1};
            judge_pair(&u, &turn, lo, hi);
            for (int wave = 0; wave < 2; wave++) {
                int64_t got = out[i + 128 * wave];
                if (rounded(lo[wave], hi[wave], s, 0, ends))
                    wrong += got != ends[0];
                else {
                    open++;
                    wrong += got < ends[0] || got > ends[1];
                }
            }
        }
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(open <= 1); /* 2^-64 s of all, or a radius at the ends */
    mpfr_clears(lo[0], lo[1], hi[0], hi[1], (mpfr_ptr)0);
}

static void test_gaussian_digits(void)
{
    enum { BLOCKS = FEWER > 1 ? 4 : 20 };
    check_gaussian_digits(0.3, BLOCKS);
    check_gaussian_digits(1, BLOCKS);
    check_gaussian_digits(1000.7, BLOCKS);
    check_gaussian_digits(0x1.921fbp24, BLOCKS);
    check_gaussian_digits(0x1p30, BLOCKS);
    check_gaussian_digits(0x1.fffffp35, 2 * BLOCKS);
    check_gaussian_digits(0x1p36, 2 * BLOCKS);
}

static void check_geometric_digits(double t, int draws)
{
    struct dpf_random r, copy;
    int64_t ends[2];
    int wrong = 0, open = 0;
    mpfr_t lo, hi;
    mpfr_inits2(PRECISION, lo, hi, (mpfr_ptr)0);
    dpf_random_init_insecure(&r, "digits", 2, (uint64_t)(t * 16));
    for (int i = 0; i < draws; i++) {
        copy = r;
        struct real u = {dpf_random_u64(&copy), 0, 1};
        int64_t got = dpf_noise_geometric(&r, t);
        judge_exponential(&u, lo, hi);
        if (rounded(lo, hi, t, 0.5, ends))
            wrong += got != ends[0];
        else {
            open++;
            wrong += got < ends[0] || got > ends[1];
        }
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(open <= 1);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
}

/* Sizes and signs; "minus 0" is drawn again. Number i has scale t[i % period]. */
static void check_laplace_digits(const double *t, size_t period, int blocks)
{
    struct dpf_random r, copy;
    int64_t out[512], ends[2];
    uint64_t words[2][256 + 4];
    int wrong = 0, checked = 0;
    mpfr_t lo, hi;
    mpfr_inits2(PRECISION, lo, hi, (mpfr_ptr)0);
    dpf_random_init_insecure(&r, "digits", 3, (uint64_t)(t[0] * 16));
    for (int b = 0; b < blocks; b++) {
        copy = r;
        dpf_random_bytes(&copy, words, sizeof words);
        if (period == 1)
            dpf_noise_laplace(&r, t[0], out, 512);
        else
            dpf_noise_laplace_each(&r, t, period, out, 512);
        /* what more is drawn in the first block moves the words of the second */
        bool second = copy.used == r.used && copy.refills == r.refills;
        for (int i = 0; i < (second ? 512 : 256); i++) {
            const uint64_t *own = words[i / 256];
            struct real u = {own[i % 256], 0, 1};
            int64_t sign = own[256 + i % 256 / 64] >> (i % 64) & 1 ? -1 : 1;
            judge_exponential(&u, lo, hi);
            if (!rounded(lo, hi, t[(size_t)i % period], 0.5, ends) ||
                (sign < 0 && ends[0] == 0))
                continue;
            wrong += out[i] != sign * ends[0];
            checked++;
        }
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(checked >= 256 * blocks / 3);
    mpfr_clears(lo, hi, (mpfr_ptr)0);
}

static void test_exponential_digits(void)
{
    enum { MANY = FEWER > 1 ? 1000 : 8000 };
    check_geometric_digits(0.2, MANY);
    check_geometric_digits(1, MANY);
    check_geometric_digits(1e6, MANY);
    check_geometric_digits(0x1p30, MANY);
    check_geometric_digits(0x1p36, 2 * MANY);
    static const double scales[] = {0.2, 30, 1e6, 0x1p24, 7.5};
    for (int i = 0; i < 5; i++)
        check_laplace_digits(scales + i, 1, MANY / 500);
    check_laplace_digits(scales, 5, MANY / 500);
    check_laplace_digits(scales + 1, 3, MANY / 500);
}

/* The same on every machine: all versions mark the same draws and give the same ones. */
static void test_versions(void)
{
#if defined(__x86_64__)
    static const double scales[] = {1e-3, 0.3, 1, 77.7, 0x1p23, 1e9, 0x1p36};
    struct dpf_random r;
    bool wide = __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"),
         fused = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    dpf_random_init_insecure(&r, "versions", 0, 0);
    int differ = 0;
    for (int round = 0; round < 2000; round++)
        for (int s = 0; s < 7; s++) {
            uint64_t digits[256 + 4];
            double each[256];
            int64_t out[3][256];
            uint8_t open[3][256];
            for (int i = 0; i < 256; i++)
                each[i] = scales[s];
            dpf_random_bytes(&r, digits, sizeof digits);
            for (int i = 0; round % 2 && i < 256; i++)
                digits[i] = i < 128 ? hard_radius(&r) : hard_angle(&r);
            for (int law = 0; law < 2; law++) {
                (law ? laplace_block_anywhere : gaussian_block_anywhere)(digits, each,
                                                                         out[0], open[0]);
                if (fused)
                    (law ? laplace_block_avx2 : gaussian_block_avx2)(digits, each, out[1],
                                                                     open[1]);
                if (wide)
                    (law ? laplace_block_avx512 : gaussian_block_avx512)(digits, each,
                                                                         out[2], open[2]);
                for (int v = 1; v < 3; v++)
                    for (int i = 0; i < 256 && (v == 1 ? fused : wide); i++)
                        differ += open[v][i] != open[0][i] ||
                                  (!open[0][i] && out[v][i] != out[0][i]);
            }
        }
    CU_ASSERT(differ == 0);
    if (!fused)
        dpf_test_skip("a machine without vectors");
#else
    dpf_test_skip("one version here");
#endif
}

/* ------------------------------------------------------------- streams set by hand */

/* A stream whose next draws are these words, the rest of the refill whatever the seed
 * made it. */
static void set_words(struct dpf_random *r, const uint64_t *list, size_t count)
{
    dpf_random_init_insecure(r, "by hand", 0, 0);
    dpf_random_u64(r);
    r->used = sizeof r->key;
    memcpy(r->bytes + r->used, list, count * sizeof *list);
}

/* The first 128 digits of exp(-x), x as a quotient, plus `more` at the last one. */
static struct real digits_of_exp(double numerator, double denominator, bool half_square,
                                 int more)
{
    mpfr_t x;
    mpz_t all;
    struct real u = {.words = 2};
    mpfr_init2(x, 400);
    mpz_init(all);
    mpfr_set_d(x, numerator, MPFR_RNDN);
    mpfr_div_d(x, x, denominator, MPFR_RNDN);
    if (half_square) {
        mpfr_sqr(x, x, MPFR_RNDN);
        mpfr_div_2ui(x, x, 1, MPFR_RNDN);
    }
    mpfr_neg(x, x, MPFR_RNDN);
    mpfr_exp(x, x, MPFR_RNDN);
    mpfr_mul_2ui(x, x, 128, MPFR_RNDN);
    mpfr_get_z(all, x, MPFR_RNDD);
    more < 0 ? mpz_sub_ui(all, all, (unsigned)-more)
             : mpz_add_ui(all, all, (unsigned)more);
    u.second = mpz_get_ui(all);
    mpz_fdiv_q_2exp(all, all, 64);
    u.first = mpz_get_ui(all);
    mpfr_clear(x);
    mpz_clear(all);
    return u;
}

/* U one digit of 2^-128 to either side of where the integer changes: the first word says
 * nothing, the fast way must see that, and the second word decides. */
static void test_edges(void)
{
    static const double scales[] = {0.3, 1, 7.5, 30, 1000.5, 0x1p20};
    struct dpf_random r;
    int wrong = 0;
    for (int s = 0; s < 6; s++)
        for (int k = 1; k < 40 && k / scales[s] < 40; k++)
            for (int side = -1; side < 2; side += 2) {
                /* e^(-k / t): floor(tE) is k or more for U up to there */
                struct real u = digits_of_exp(k, scales[s], false, side);
                uint64_t list[260] = {u.first, u.second};
                set_words(&r, list, 2);
                wrong += dpf_noise_geometric(&r, scales[s]) != (side < 0 ? k : k - 1);
                wrong += r.used != sizeof r.key + 16;
                if ((k - 0.5) / scales[s] > 8)
                    continue;
                /* s r = k - 1/2 with the angle 0, a quarter turn and a half turn; the
                 * angle is 0 to 128 digits, then */
                u = digits_of_exp(k - 0.5, scales[s], true, side);
                for (int turn = 0; turn < 4; turn++) {
                    int64_t out[256], due = side < 0 ? k : k - 1;
                    for (int i = 0; i < 128; i++) {
                        list[i] = (uint64_t)1 << 63 | 12345;
                        list[i + 128] = (uint64_t)1 << 60 | 54321;
                    }
                    list[0] = u.first;
                    list[128] = (uint64_t)turn << 62;
                    list[256] = u.second;
                    list[257] = 0;
                    set_words(&r, list, 258);
                    dpf_noise_gaussian(&r, scales[s], out, 256);
                    int64_t cosine = turn % 2 ? 0 : turn ? -due : due;
                    int64_t sine_due = turn % 2 == 0 ? 0 : turn == 1 ? due : -due;
                    wrong += out[0] != cosine || out[128] != sine_due;
                    for (int i = 1; i < 128; i++) /* the others stay what they were */
                        wrong += out[i] != out[1] || out[128 + i] != out[129];
                }
            }
    CU_ASSERT(wrong == 0);
}

/* The same for the angle: s r cos x is half-way where the 128 digits of the turn end, and
 * what they leave open is not decided before the third word is there. */
static void test_edges_of_angle(void)
{
    struct dpf_random r;
    mpfr_t radius, turn, pi;
    int wrong = 0, tried = 0;
    mpfr_inits2(500, radius, turn, pi, (mpfr_ptr)0);
    mpfr_const_pi(pi, MPFR_RNDN);
    for (int k = 1; k < 60; k++) {
        const uint64_t first = 0x6123456789abcdef, second = 0xfedcba9876543210;
        const double s = 50;
        uint64_t list[264], digits[3];
        /* U: two words, and half a unit of the second */
        mpfr_set_ui(radius, first, MPFR_RNDN);
        mpfr_mul_2ui(radius, radius, 64, MPFR_RNDN);
        mpfr_add_ui(radius, radius, second, MPFR_RNDN);
        mpfr_add_d(radius, radius, 0.5, MPFR_RNDN);
        mpfr_div_2ui(radius, radius, 128, MPFR_RNDN);
        mpfr_log(radius, radius, MPFR_RNDN);
        mpfr_mul_si(radius, radius, -2, MPFR_RNDN);
        mpfr_sqrt(radius, radius, MPFR_RNDN);
        mpfr_mul_d(radius, radius, s, MPFR_RNDN);
        mpfr_d_div(turn, k - 0.5, radius, MPFR_RNDN);
        CU_ASSERT_FATAL(mpfr_cmp_d(turn, 0.999) < 0);
        mpfr_acos(turn, turn, MPFR_RNDN);
        mpfr_div(turn, turn, pi, MPFR_RNDN);
        mpfr_div_2ui(turn, turn, 1, MPFR_RNDN);
        for (int w = 0; w < 3; w++) { /* word by word */
            mpfr_mul_2ui(turn, turn, 64, MPFR_RNDN);
            digits[w] = mpfr_get_uj(turn, MPFR_RNDZ);
            mpfr_frac(turn, turn, MPFR_RNDN);
        }
        if (digits[2] >> 62 == 0 || digits[2] >> 62 == 3)
            continue; /* room for the third word on either side */
        tried++;
        for (int side = -1; side < 2; side += 2) {
            int64_t out[256];
            for (int i = 0; i < 128; i++) {
                list[i] = (uint64_t)1 << 63 | 12345;
                list[i + 128] = (uint64_t)1 << 60 | 54321;
            }
            list[0] = first, list[128] = digits[0];
            list[256] = second, list[257] = digits[1];
            list[258] = (uint64_t)1 << 63, list[259] = 0;
            list[260] = digits[2] + ((uint64_t)1 << 50) * (uint64_t)side, list[261] = 0;
            set_words(&r, list, 262);
            dpf_noise_gaussian(&r, s, out, 256);
            wrong += out[0] != (side < 0 ? k : k - 1);
            wrong += r.used != sizeof r.key + 262 * sizeof *list;
        }
    }
    CU_ASSERT(wrong == 0);
    CU_ASSERT(tried > 10);
    mpfr_clears(radius, turn, pi, (mpfr_ptr)0);
}

/* U all zeros or all ones for two words and chance from there on. */
static void test_far_ends(void)
{
    static const uint64_t all = ~(uint64_t)0;
    const uint64_t firsts[] = {0,
                               1,
                               ((uint64_t)1 << 48) - 1,
                               all,
                               all - 1,
                               all << 39,
                               all << 39 | 0x400,
                               all << 30 | 0x400,
                               all << 25 | 0x400,
                               all << 20 | 0x400,
                               all << 12};
    struct dpf_random r;
    int64_t out[256], ends[2];
    uint64_t list[260];
    mpfr_t lo[2], hi[2];
    mpfr_inits2(PRECISION, lo[0], lo[1], hi[0], hi[1], (mpfr_ptr)0);
    for (size_t f = 0; f < sizeof firsts / sizeof *firsts; f++) {
        struct real u = {firsts[f], 0x123456789abcdef0, 2},
                    turn = {0x1122334455667788, 0x99aabbccddeeff00, 2};
        for (int s = 0; s < 3; s++) {
            double scale = s == 0 ? 1 : s == 1 ? 1000.3 : 0x1p36;
            for (int i = 0; i < 128; i++) {
                list[i] = (uint64_t)1 << 63 | 12345;
                list[i + 128] = (uint64_t)1 << 60 | 54321;
            }
            list[0] = u.first, list[128] = turn.first;
            list[256] = u.second, list[257] = turn.second;
            set_words(&r, list, 258);
            dpf_noise_gaussian(&r, scale, out, 256);
            judge_pair(&u, &turn, lo, hi);
            CU_ASSERT(rounded(lo[0], hi[0], scale, 0, ends) && out[0] == ends[0]);
            CU_ASSERT(rounded(lo[1], hi[1], scale, 0, ends) && out[128] == ends[0]);
            uint64_t two[] = {u.first, u.second};
            set_words(&r, two, 2);
            judge_exponential(&u, lo[0], hi[0]);
            CU_ASSERT(rounded(lo[0], hi[0], scale, 0.5, ends) &&
                      dpf_noise_geometric(&r, scale) == ends[0]);
        }
    }
    /* 128 zeros in front: E in [128 ln 2, 192 ln 2 and a little] */
    memset(list, 0, sizeof list);
    set_words(&r, list, 2);
    double tail = (double)dpf_noise_geometric(&r, 1e6) / 1e6;
    CU_ASSERT(tail >= 128 * M_LN2 - 1e-6 && tail < 170 * M_LN2);
    for (int i = 0; i < 128; i++) {
        list[i] = (uint64_t)1 << 63 | 12345;
        list[i + 128] = (uint64_t)1 << 60 | 54321;
    }
    list[0] = list[256] = 0;
    set_words(&r, list, 257);
    dpf_noise_gaussian(&r, 0x1p20, out, 256);
    double x = (double)out[0] * 0x1p-20, y = (double)out[128] * 0x1p-20;
    CU_ASSERT(x * x + y * y >= 2 * 128 * M_LN2 - 1e-3);
    CU_ASSERT(x * x + y * y < 2 * 170 * M_LN2);
    /* 192 ones in front: nothing is left, and the sampler ends */
    for (int i = 0; i < 260; i++)
        list[i] = ~(uint64_t)0;
    set_words(&r, list, 3);
    CU_ASSERT(dpf_noise_geometric(&r, 0x1p36) == 0);
    set_words(&r, list, 3);
    CU_ASSERT(dpf_noise_geometric(&r, 1e-3) == 0);
    mpfr_clears(lo[0], lo[1], hi[0], hi[1], (mpfr_ptr)0);
}

/* ----------------------------------------------------------- another exact sampler */

/* Canonne, Kamath and Steinke (2020), Algorithms 1 and 2: the discrete Laplace with the
 * scale n / d from uniform integers alone. */
static bool bernoulli_exp(struct dpf_random *r, uint64_t numerator, uint64_t denominator)
{
    uint64_t k = 1; /* e^(-x), x = numerator / denominator in [0, 1] */
    while (dpf_random_below(r, denominator * k) < numerator)
        k++;
    return k % 2;
}

static int64_t integer_laplace(struct dpf_random *r, uint64_t n, uint64_t d)
{
    for (;;) {
        uint64_t u = dpf_random_below(r, n), v = 0;
        if (!bernoulli_exp(r, u, n))
            continue;
        while (bernoulli_exp(r, 1, 1))
            v++;
        uint64_t size = (u + n * v) / d;
        bool negative = dpf_random_below(r, 2);
        if (!negative || size)
            return negative ? -(int64_t)size : (int64_t)size;
    }
}

/* Two samples, the same bins: their chi-square. */
static double two_samples(const double *a, const double *b, int bins, double *freedom)
{
    double chi = 0, all_a = 0, all_b = 0;
    *freedom = -1;
    for (int i = 0; i < bins; i++)
        all_a += a[i], all_b += b[i];
    for (int i = 0; i < bins; i++) {
        double sa = a[i], sb = b[i];
        for (; sa + sb < 40 && i + 1 < bins; i++)
            sa += a[i + 1], sb += b[i + 1];
        if (sa + sb < 1)
            continue;
        double w = sa * sqrt(all_b / all_a) - sb * sqrt(all_a / all_b);
        chi += w * w / (sa + sb);
        (*freedom)++;
    }
    return chi;
}

static void check_integer_laplace(uint64_t n, uint64_t d)
{
    enum { COUNT = 1000000 / FEWER, RANGE = 512 };
    static double theirs[2 * RANGE + 1], ours[2 * RANGE + 1];
    double t = (double)n / (double)d, freedom;
    struct dpf_random r;
    memset(theirs, 0, sizeof theirs);
    memset(ours, 0, sizeof ours);
    dpf_random_init_insecure(&r, "integers only", n, d);
    for (int i = 0; i < COUNT; i++) {
        int64_t k = integer_laplace(&r, n, d);
        theirs[k < -RANGE ? 0 : k > RANGE ? 2 * RANGE : k + RANGE]++;
    }
    dpf_random_init_insecure(&r, "reals", n, d);
    for (int done = 0; done < COUNT; done += CALL) {
        int count = COUNT - done < CALL ? COUNT - done : CALL;
        dpf_noise_laplace(&r, t, drawn, (size_t)count);
        for (int i = 0; i < count; i++)
            ours[drawn[i] < -RANGE  ? 0
                 : drawn[i] > RANGE ? 2 * RANGE
                                    : drawn[i] + RANGE]++;
    }
    double chi = two_samples(theirs, ours, 2 * RANGE + 1, &freedom);
    CU_ASSERT(freedom > 2);
    CU_ASSERT(chi_p(chi, freedom) > level);
}

static void test_integer_sampler(void)
{
    check_integer_laplace(1, 2);
    check_integer_laplace(5, 2);
    check_integer_laplace(30, 1);
    check_integer_laplace(220, 7);
}

/* ---------------------------------------------------------- slow and fast together */

/* With s = 2^36 every fourth pair goes the slow way, with 2^20 hardly any: in units of s
 * they are the same. */
static void test_slow(void)
{
    enum { COUNT = 300000 / FEWER, SIDE = 200 };
    static double slow[2 * SIDE], fast[2 * SIDE];
    double freedom, chi;
    struct dpf_random r;
    memset(slow, 0, sizeof slow);
    memset(fast, 0, sizeof fast);
    for (int which = 0; which < 2; which++) {
        double s = which ? 0x1p20 : 0x1p36;
        dpf_random_init_insecure(&r, "slow", (uint64_t)which, 0);
        for (int done = 0; done < COUNT; done += CALL) {
            int count = COUNT - done < CALL ? COUNT - done : CALL;
            dpf_noise_gaussian(&r, s, drawn, (size_t)count);
            for (int i = 0; i < count; i++) {
                double bin = floor((double)drawn[i] / s * 40) + SIDE;
                bin = fmin(fmax(bin, 0), 2 * SIDE - 1);
                (which ? fast : slow)[(int)bin]++;
            }
        }
    }
    chi = two_samples(slow, fast, 2 * SIDE, &freedom);
    CU_ASSERT(chi_p(chi, freedom) > level);
    check_law(GAUSSIAN, 0x1p36, COUNT);
    check_law(GAUSSIAN, 0x1.ffffffp35, COUNT / 4);
    check_law(LAPLACE, 0x1p36, COUNT / 4);
    check_law(GEOMETRIC, 0x1p36, COUNT / 4);
}

/* --------------------------------------------------------------------------- pairs */

static void test_pairs(void)
{
    enum { COUNT = DRAWS / 4, GRID = 8 };
    double scale = 1000, product = 0, squares = 0, lag = 0, sizes = 0;
    static double joint[GRID * GRID];
    struct dpf_random r;
    double edges[GRID - 1] = {
        -1.1503493803760079, -0.67448975019608171, -0.31863936396437514, 0,
        0.31863936396437514, 0.67448975019608171,  1.1503493803760079};
    dpf_random_init_insecure(&r, "pairs", 0, 0);
    memset(joint, 0, sizeof joint);
    double last = 0, pairs = 0;
    for (int done = 0; done < COUNT; done += CALL) {
        dpf_noise_gaussian(&r, scale, drawn, CALL);
        for (int i = 0; i < CALL; i += 256)
            for (int k = 0; k < 128; k++, pairs++) {
                double x = (double)drawn[i + k] / scale,
                       y = (double)drawn[i + 128 + k] / scale;
                int a = 0, b = 0;
                product += x * y;
                squares += (x * x - 1) * (y * y - 1);
                sizes += (fabs(x) - 0.79788456) * (fabs(y) - 0.79788456);
                lag += x * last;
                last = x;
                for (int e = 0; e < GRID - 1; e++)
                    a += x > edges[e], b += y > edges[e];
                joint[a * GRID + b]++;
            }
    }
    CU_ASSERT(fabs(product) < z_level * sqrt(pairs));
    CU_ASSERT(fabs(lag) < z_level * sqrt(pairs));
    CU_ASSERT(fabs(squares) < z_level * 2 * sqrt(pairs));
    CU_ASSERT(fabs(sizes) < z_level * (1 - M_2_PI) * sqrt(pairs));
    /* cells of the joint distribution from its own margins: (GRID - 1)^2 left free */
    double rows[GRID] = {0}, columns[GRID] = {0}, chi = 0;
    for (int i = 0; i < GRID * GRID; i++)
        rows[i / GRID] += joint[i], columns[i % GRID] += joint[i];
    for (int i = 0; i < GRID * GRID; i++) {
        double due = rows[i / GRID] * columns[i % GRID] / pairs;
        chi += (joint[i] - due) * (joint[i] - due) / due;
    }
    CU_ASSERT(chi_p(chi, (GRID - 1) * (GRID - 1)) > level);
}

/* --------------------------------------------------------------------- determinism */

static void test_deterministic(void)
{
    enum { COUNT = 256 * 64 };
    static int64_t once[COUNT], again[COUNT];
    static const double scales[] = {0.3, 30, 0x1p23, 0x1p36};
    struct dpf_random r;
    for (int s = 0; s < 4; s++)
        for (int law = 0; law < 2; law++) {
            void (*draw)(struct dpf_random *, double, int64_t *, size_t) =
                law ? dpf_noise_laplace : dpf_noise_gaussian;
            int count = s == 3 ? 2048 : COUNT;
            dpf_random_init_insecure(&r, "again", 7, (uint64_t)s);
            draw(&r, scales[s], once, (size_t)count);
            uint64_t next = dpf_random_u64(&r);
            dpf_random_init_insecure(&r, "again", 7, (uint64_t)s);
            draw(&r, scales[s], again, (size_t)count);
            CU_ASSERT(memcmp(once, again, (size_t)count * sizeof *once) == 0);
            CU_ASSERT(dpf_random_u64(&r) == next);
            /* in calls of 256, 512, 768, ... */
            dpf_random_init_insecure(&r, "again", 7, (uint64_t)s);
            memset(again, 0, sizeof again);
            for (int done = 0, part = 256; done < count; done += part, part += 256) {
                part = part < count - done ? part : count - done;
                draw(&r, scales[s], again + done, (size_t)part);
            }
            CU_ASSERT(memcmp(once, again, (size_t)count * sizeof *once) == 0);
            CU_ASSERT(dpf_random_u64(&r) == next);
            /* part of a block is the beginning of it, and nothing behind is touched */
            dpf_random_init_insecure(&r, "again", 7, (uint64_t)s);
            memset(again, 0x77, sizeof again);
            draw(&r, scales[s], again, 300);
            CU_ASSERT(memcmp(once, again, 300 * sizeof *once) == 0);
            CU_ASSERT(again[300] == 0x7777777777777777);
            /* another index is another sample */
            int equal = 0;
            dpf_random_init_insecure(&r, "again", 7, 100 + (uint64_t)s);
            draw(&r, scales[s], again, (size_t)count);
            for (int i = 0; i < count; i++)
                equal += once[i] == again[i];
            CU_ASSERT(s < 2 ? equal < count : equal < 3);
            draw(&r, scales[s], again, 0);
        }
}

const char dpf_suite[] = "noise";

const struct dpf_test dpf_tests[] = {
    {"the test's own p-values", test_helpers},
    {"fast normals are within a quarter of their error", test_fast_normals},
    {"fast exponentials are within a quarter of their error", test_fast_exponentials},
    {"Gaussian integers are those of their digits", test_gaussian_digits},
    {"exponential integers are those of their digits", test_exponential_digits},
    {"every version gives the same integers", test_versions},
    {"one digit in 2^128 decides at an edge", test_edges},
    {"so does the angle's third word", test_edges_of_angle},
    {"digits of all zeros and all ones", test_far_ends},
    {"Gaussian: chi-square, KS, moments", test_gaussian},
    {"Laplace: chi-square, KS, moments", test_laplace},
    {"geometric: chi-square, KS, moments", test_geometric},
    {"scales next to nothing give 0", test_extreme_scales},
    {"Laplace is that of a sampler of integers alone", test_integer_sampler},
    {"slow draws are distributed as fast ones", test_slow},
    {"cosine and sine know nothing of each other", test_pairs},
    {"the same seed gives the same integers in any blocks", test_deterministic},
    {0},
};
