/* Functions as polynomials: against quadrature of the integrals that define Chebyshev
 * coefficients, against exact values and against the functions themselves. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"
#include "harness.h"
#include "kernels/expansion.h"

#include "base/banned.h"

const char dpf_suite[] = "expansion";

enum { DEGREE = 12 };

/* Gauss-Legendre of five points on `panels` pieces of [from, to], of f(cos t) cos(k t).
 */
static long double integral(const struct dpf_function *f, int k, long double from,
                            long double to, int panels)
{
    static const long double at[] = {0, 0.538469310105683091036314420700208805L,
                                     0.906179845938663992797626878299392965L};
    static const long double weight[] = {0.568888888888888888888888888888888889L,
                                         0.478628670499366468041291514835638193L,
                                         0.236926885056189087514264040719917363L};
    long double sum = 0, half = (to - from) / (2 * panels);
    for (int p = 0; p < panels; p++)
        for (int i = -2; i <= 2; i++) {
            long double middle = from + (2 * p + 1) * half;
            long double t = middle + half * (i < 0 ? -at[-i] : at[i]);
            sum += half * weight[abs(i)] * (long double)f->value((double)cosl(t)) *
                   cosl(k * t);
        }
    return sum;
}

/* The row with a kink has it at 0, in the middle of the half circle. */
static void test_series(void)
{
    const long double pi = acosl(-1);
    for (const struct dpf_function *f = dpf_functions; f->name; f++) {
        double a[DEGREE + 1];
        CU_ASSERT_FATAL(dpf_chebyshev_series(f, DEGREE, a, NULL) == DPF_OK);
        for (int k = 0; k <= DEGREE; k++) {
            long double due =
                integral(f, k, 0, pi / 2, 200) + integral(f, k, pi / 2, pi, 200);
            due *= (k ? 2 : 1) / pi;
            CU_ASSERT_DOUBLE_EQUAL(a[k], (double)due, 1e-13);
        }
    }
}

/* Numbers of the notes on the paper, to their printed digits. */
static void test_sigmoid(void)
{
    static const double due[] = {0.5, 0.24999941, 0, -0.02082532,
                                 0,   0.00205376, 0, -0.00016933};
    double c[8], worst = 0;
    const struct dpf_function *f = DPF_FIND(dpf_functions, "sigmoid");
    CU_ASSERT_FATAL(dpf_expand(f, DPF_EXPAND_CHEBYSHEV, 7, c, NULL) == DPF_OK);
    for (int i = 0; i <= 7; i++)
        CU_ASSERT_DOUBLE_EQUAL(c[i], due[i], 6e-9);
    for (int i = -1000; i <= 1000; i++)
        worst =
            fmax(worst, fabs(dpf_polynomial_at(7, c, i / 1000.0) - f->value(i / 1000.0)));
    CU_ASSERT_DOUBLE_EQUAL(worst, 6.5e-8, 0.05e-8);
}

/* The paper's example is no Chebyshev series of the sigmoid: it is 0 and 1 at the ends,
 * with three derivatives, and 0.27 away from it there; what it is near to is a step. */
static void test_paper(void)
{
    static const double due[] = {16, 35, 0, -35, 0, 21, 0, -5};
    double c[8], lower[7], worst = 0;
    const struct dpf_function *f = DPF_FIND(dpf_functions, "sigmoid");
    CU_ASSERT_FATAL(dpf_expand(f, DPF_EXPAND_PAPER, 7, c, NULL) == DPF_OK);
    for (int i = 0; i <= 7; i++)
        CU_ASSERT_DOUBLE_EQUAL(c[i], due[i] / 32, 1e-15);
    for (int side = -1; side <= 1; side += 2) {
        double d[8];
        memcpy(d, c, sizeof d);
        CU_ASSERT_DOUBLE_EQUAL(dpf_polynomial_at(7, c, side), (side + 1) / 2.0, 1e-14);
        for (int order = 1; order <= 3; order++) {
            for (int i = 0; i < 7; i++)
                d[i] = d[i + 1] * (i + 1);
            d[7] = 0;
            CU_ASSERT_DOUBLE_EQUAL(dpf_polynomial_at(7, d, side), 0, 1e-13);
        }
    }
    for (int i = -1000; i <= 1000; i++)
        worst =
            fmax(worst, fabs(dpf_polynomial_at(7, c, i / 1000.0) - f->value(i / 1000.0)));
    CU_ASSERT_DOUBLE_EQUAL(worst, 0.32, 0.005);
    CU_ASSERT_FATAL(dpf_expand(f, DPF_EXPAND_PAPER, 6, lower, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(lower[1], 15.0 / 16, 1e-15); /* (8 + 15x - 10x^3 + 3x^5)/16 */
    CU_ASSERT_DOUBLE_EQUAL(lower[5], 3.0 / 16, 1e-15);
    CU_ASSERT(lower[6] == 0);
}

/* Taylor: the remainder falls as it has to, near 0. */
static void test_taylor(void)
{
    double c[DEGREE + 1];
    for (const struct dpf_function *f = dpf_functions; f->name; f++) {
        struct dpf_error e = {0};
        enum dpf_status status = dpf_expand(f, DPF_EXPAND_TAYLOR, DEGREE, c, &e);
        if (!strcmp(f->name, "softsign")) {
            CU_ASSERT(status == DPF_USAGE && strstr(e.message, "softsign") != NULL);
            continue;
        }
        CU_ASSERT_FATAL(status == DPF_OK);
        for (int i = -4; i <= 4; i++)
            CU_ASSERT_DOUBLE_EQUAL(dpf_polynomial_at(DEGREE, c, i / 64.0),
                                   f->value(i / 64.0), 2e-15);
    }
    const struct dpf_function *f = DPF_FIND(dpf_functions, "tanh");
    CU_ASSERT_FATAL(dpf_expand(f, DPF_EXPAND_TAYLOR, 5, c, NULL) == DPF_OK);
    CU_ASSERT_DOUBLE_EQUAL(c[3], -1.0 / 3, 1e-15); /* as the paper has it */
    CU_ASSERT_DOUBLE_EQUAL(c[5], 2.0 / 15, 1e-15);
}

static void test_piecewise(void)
{
    for (const struct dpf_function *f = dpf_functions; f->name; f++) {
        double c[4];
        CU_ASSERT_FATAL(dpf_expand(f, DPF_EXPAND_PIECEWISE, 3, c, NULL) == DPF_OK);
        CU_ASSERT_DOUBLE_EQUAL(dpf_polynomial_at(3, c, 1), f->value(1), 1e-15);
        CU_ASSERT_DOUBLE_EQUAL(dpf_polynomial_at(3, c, -1), f->value(-1), 1e-15);
        CU_ASSERT(c[2] == 0 && c[3] == 0);
    }
}

/* T_k at cos t is cos(k t); there and back gives what there was. */
static void test_powers(void)
{
    double a[DPF_EXPANSION_MOST + 1], c[DPF_EXPANSION_MOST + 1];
    double back[DPF_EXPANSION_MOST + 1];
    for (int k = 0; k <= 20; k++) {
        memset(a, 0, sizeof a);
        a[k] = 1;
        dpf_chebyshev_to_powers(20, a, c);
        for (int i = 0; i <= 30; i++) {
            double t = M_PI * i / 30;
            CU_ASSERT_DOUBLE_EQUAL(dpf_polynomial_at(20, c, cos(t)), cos(k * t), 1e-8);
        }
    }
    for (int degree = 0; degree <= DPF_EXPANSION_MOST; degree++) {
        for (int k = 0; k <= degree; k++)
            a[k] = sin(17.0 * k + degree) / (1 << (k < 20 ? k : 20));
        dpf_chebyshev_to_powers(degree, a, c);
        dpf_powers_to_chebyshev(degree, c, back);
        for (int k = 0; k <= degree; k++)
            CU_ASSERT_DOUBLE_EQUAL(back[k], a[k], 1e-12);
    }
}

/* The error of the series, on a grid, against the bounds; that of the best polynomial is
 * between `least` and it. */
static void test_bounds(void)
{
    for (const struct dpf_function *f = dpf_functions; f->name; f++)
        for (int degree = 0; degree <= DEGREE; degree++) {
            struct dpf_expansion_bounds b;
            double c[DEGREE + 1], worst = 0;
            CU_ASSERT_FATAL(dpf_expansion_error(f, degree, &b, NULL) == DPF_OK);
            CU_ASSERT_FATAL(dpf_expand(f, DPF_EXPAND_CHEBYSHEV, degree, c, NULL) ==
                            DPF_OK);
            for (int i = 0; i <= 4000; i++) {
                double x = cos(M_PI * i / 4000);
                worst = fmax(worst, fabs(dpf_polynomial_at(degree, c, x) - f->value(x)));
            }
            CU_ASSERT(worst <= b.most + 1e-13);
            CU_ASSERT(worst >= b.least - 1e-13);
            CU_ASSERT(b.printed <= b.least);
            CU_ASSERT(degree == 0 || b.most <= 20 * b.least + 1e-13);
        }
    /* what the paper calls the upper bound is 0 for its own example */
    struct dpf_expansion_bounds b;
    CU_ASSERT(dpf_expansion_error(DPF_FIND(dpf_functions, "sigmoid"), 7, &b, NULL) ==
              DPF_OK);
    CU_ASSERT(b.printed == 0);
    CU_ASSERT(b.least > 4e-8 && b.most < 6.6e-8);
    CU_ASSERT_DOUBLE_EQUAL(b.ratio, 4 + 4 / (M_PI * M_PI) * log(7), 1e-12);
}

static void test_refusals(void)
{
    double c[4];
    struct dpf_error e = {0};
    const struct dpf_function *tangent = DPF_FIND(dpf_functions, "tanh");
    CU_ASSERT(dpf_expand(tangent, DPF_EXPAND_CHEBYSHEV, -1, c, &e) == DPF_USAGE);
    CU_ASSERT(dpf_expand(tangent, DPF_EXPAND_TAYLOR, DPF_EXPANSION_MOST + 1, c, &e) ==
              DPF_USAGE);
    CU_ASSERT(strstr(e.message, "0 to 30") != NULL);
    CU_ASSERT(dpf_expand(tangent, DPF_EXPAND_PAPER, 3, c, &e) == DPF_USAGE);
    CU_ASSERT(strstr(e.message, "'tanh'") != NULL);
}

const struct dpf_test dpf_tests[] = {
    {"Chebyshev coefficients against quadrature", test_series},
    {"the sigmoid's, to the digits of the notes", test_sigmoid},
    {"the paper's degree 7 is the flattest step", test_paper},
    {"Taylor polynomials", test_taylor},
    {"one linear piece meets both ends", test_piecewise},
    {"to powers and back", test_powers},
    {"error bounds hold, and the printed one is void for odd degrees", test_bounds},
    {"impossible degrees and expansions are refused", test_refusals},
    {NULL, NULL},
};
