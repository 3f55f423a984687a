#include "kernels/expansion.h"

#include <fftw3.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/words.h"

#include "base/banned.h"

/* Points on the half circle. Chebyshev coefficients of softsign, the roughest row, fall
 * with the third power of their number: what is folded back from 2^17 on is below 1e-14.
 */
enum { POINTS = 1 << 16 };
/* Coefficients below this are rounding. */
static const double rounding = 1e-16;

/* ------------------------------------------------------------------------- functions */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* s' = s - s^2. */
static void sigmoid_series(int degree, double *c)
{
    c[0] = 0.5;
    for (int n = 0; n < degree; n++) {
        double square = 0;
        for (int i = 0; i <= n; i++)
            square += c[i] * c[n - i];
        c[n + 1] = (c[n] - square) / (n + 1);
    }
}

/* t' = 1 - t^2. */
static void tanh_series(int degree, double *c)
{
    c[0] = 0;
    for (int n = 0; n < degree; n++) {
        double square = 0;
        for (int i = 0; i <= n; i++)
            square += c[i] * c[n - i];
        c[n + 1] = ((n == 0) - square) / (n + 1);
    }
}

static void arctan_series(int degree, double *c)
{
    for (int n = 0; n <= degree; n++)
        c[n] = n % 2 ? (n % 4 == 1 ? 1.0 : -1.0) / n : 0;
}

static double softsign(double x)
{
    return x / (1 + fabs(x));
}

static void sine_series(int degree, double *c)
{
    double factorial = 1;
    for (int n = 0; n <= degree; n++) {
        factorial *= n ? n : 1;
        c[n] = n % 2 ? (n % 4 == 1 ? 1 : -1) / factorial : 0;
    }
}

static double sinc(double x)
{
    return x == 0 ? 1 : sin(x) / x;
}

static void sinc_series(int degree, double *c)
{
    double factorial = 1;
    for (int n = 0; n <= degree; n++) {
        factorial *= n + 1;
        c[n] = n % 2 ? 0 : (n % 4 == 0 ? 1 : -1) / factorial;
    }
}

static double gaussian(double x)
{
    return exp(-x * x);
}

static void gaussian_series(int degree, double *c)
{
    double factorial = 1;
    for (int n = 0; n <= degree; n++) {
        factorial *= n && n % 2 == 0 ? n / 2 : 1;
        c[n] = n % 2 ? 0 : (n % 4 == 0 ? 1 : -1) / factorial;
    }
}

const struct dpf_function dpf_functions[] = {
    {"sigmoid", sigmoid, sigmoid_series},
    {"tanh", tanh, tanh_series},
    {"arctan", atan, arctan_series},
    {"softsign", softsign, NULL},
    {"sine", sin, sine_series},
    {"sinc", sinc, sinc_series},
    {"gaussian", gaussian, gaussian_series},
    {NULL, NULL, NULL},
};

const struct dpf_expansion_choice dpf_expansion_choices[] = {
    {"chebyshev", DPF_EXPAND_CHEBYSHEV}, {"paper", DPF_EXPAND_PAPER},
    {"taylor", DPF_EXPAND_TAYLOR},       {"piecewise", DPF_EXPAND_PIECEWISE},
    {NULL, DPF_EXPAND_CHEBYSHEV},
};

/* ---------------------------------------------------------------------------- series */

static enum dpf_status check(int degree, struct dpf_error *e)
{
    return degree < 0 || degree > DPF_EXPANSION_MOST
               ? dpf_fail(e, DPF_USAGE, "a polynomial of degree %d: 0 to %d are possible",
                          degree, (int)DPF_EXPANSION_MOST)
               : DPF_OK;
}

/* The first POINTS coefficients, by the midpoint rule on the half circle; NULL: no
 * memory. */
static double *transform(const struct dpf_function *f)
{
    double *x = fftw_alloc_real(POINTS);
    fftw_plan plan =
        x ? fftw_plan_r2r_1d(POINTS, x, x, FFTW_REDFT10, FFTW_ESTIMATE) : NULL;
    if (!plan) {
        fftw_free(x);
        return NULL;
    }
    for (int i = 0; i < POINTS; i++)
        x[i] = f->value(cos(M_PI * (i + 0.5) / POINTS));
    fftw_execute(plan);
    fftw_destroy_plan(plan);
    for (int k = 0; k < POINTS; k++)
        x[k] /= k ? POINTS : 2.0 * POINTS;
    return x;
}

enum dpf_status dpf_chebyshev_series(const struct dpf_function *f, int degree, double *a,
                                     struct dpf_error *e)
{
    enum dpf_status status = check(degree, e);
    double *all = status == DPF_OK ? transform(f) : NULL;
    if (status == DPF_OK && !all)
        status = dpf_fail_memory(e);
    if (status == DPF_OK)
        memcpy(a, all, (size_t)(degree + 1) * sizeof *a);
    fftw_free(all);
    return status;
}

/* T_(k+1) = 2 x T_k - T_(k-1), in powers; the numbers are whole and below 2^53. */
void dpf_chebyshev_to_powers(int degree, const double *a, double *c)
{
    double now[DPF_EXPANSION_MOST + 1] = {1}, before[DPF_EXPANSION_MOST + 1] = {0};
    long double sum[DPF_EXPANSION_MOST + 1] = {0};
    for (int k = 0; k <= degree; k++) {
        for (int i = 0; i <= k; i++)
            sum[i] += (long double)a[k] * (long double)now[i];
        double twice = k ? 2 : 1;
        for (int i = degree; i >= 0; i--) { /* downwards: now[i - 1] is still T_k's */
            double next = (i ? twice * now[i - 1] : 0) - before[i];
            before[i] = now[i];
            now[i] = next;
        }
    }
    for (int i = 0; i <= degree; i++)
        c[i] = (double)sum[i];
}

/* x^n = 2^(1-n) times the sum of n-over-j T_(n-2j), half of it for T_0. */
void dpf_powers_to_chebyshev(int degree, const double *c, double *a)
{
    long double sum[DPF_EXPANSION_MOST + 1] = {0};
    for (int n = 0; n <= degree; n++) {
        long double choose = 1;
        for (int j = 0; 2 * j <= n; j++) {
            long double share = ldexpl(choose, n ? 1 - n : 0);
            sum[n - 2 * j] += (long double)c[n] * (n && n == 2 * j ? share / 2 : share);
            choose = choose * (n - j) / (j + 1);
        }
    }
    for (int i = 0; i <= degree; i++)
        a[i] = (double)sum[i];
}

/* Half and an odd polynomial whose slope is that of (1 - x^2)^m: it goes from 0 to 1, as
 * flat as can be at both ends. With m = 3: (16 + 35 x - 35 x^3 + 21 x^5 - 5 x^7) / 32. */
static void flattest_step(int degree, double *c)
{
    int m = (degree - 1) / 2;
    double choose = 1, whole = 0;
    memset(c, 0, (size_t)(degree + 1) * sizeof *c);
    for (int j = 0; degree > 0 && j <= m; j++) {
        c[2 * j + 1] = (j % 2 ? -choose : choose) / (2 * j + 1);
        whole += c[2 * j + 1];
        choose = choose * (m - j) / (j + 1);
    }
    for (int i = 1; i <= degree; i++)
        c[i] /= 2 * whole;
    c[0] = 0.5;
}

enum dpf_status dpf_expand(const struct dpf_function *f, enum dpf_expansion_kind kind,
                           int degree, double *c, struct dpf_error *e)
{
    double a[DPF_EXPANSION_MOST + 1];
    enum dpf_status status = check(degree, e);
    if (status != DPF_OK)
        return status;
    switch (kind) {
    case DPF_EXPAND_CHEBYSHEV:
        status = dpf_chebyshev_series(f, degree, a, e);
        if (status == DPF_OK)
            dpf_chebyshev_to_powers(degree, a, c);
        return status;
    case DPF_EXPAND_PAPER:
        if (f->value != sigmoid)
            return dpf_fail(e, DPF_USAGE,
                            "the expansion 'paper' is of the sigmoid, not of '%s'",
                            f->name);
        flattest_step(degree, c);
        return DPF_OK;
    case DPF_EXPAND_TAYLOR:
        if (!f->maclaurin)
            return dpf_fail(e, DPF_USAGE, "'%s' has no Taylor series at 0", f->name);
        f->maclaurin(degree, c);
        return DPF_OK;
    case DPF_EXPAND_PIECEWISE:
        memset(c, 0, (size_t)(degree + 1) * sizeof *c);
        c[0] = (f->value(1) + f->value(-1)) / 2;
        if (degree > 0)
            c[1] = (f->value(1) - f->value(-1)) / 2;
        return DPF_OK;
    }
    return DPF_OK;
}

double dpf_polynomial_at(int degree, const double *c, double x)
{
    double value = 0;
    for (int i = degree; i >= 0; i--)
        value = value * x + c[i];
    return value;
}

enum dpf_status dpf_expansion_error(const struct dpf_function *f, int degree,
                                    struct dpf_expansion_bounds *b, struct dpf_error *e)
{
    enum dpf_status status = check(degree, e);
    double *a = status == DPF_OK ? transform(f) : NULL;
    if (status == DPF_OK && !a)
        status = dpf_fail_memory(e);
    if (status != DPF_OK)
        return status;
    *b = (struct dpf_expansion_bounds){0};
    for (int k = degree + 1; k < POINTS / 2; k++) {
        double size = fabs(a[k]) > rounding ? fabs(a[k]) : 0;
        if (k == degree + 1)
            b->printed = M_PI / 4 * size;
        b->least = fmax(b->least, M_PI / 4 * size);
        b->most += size;
    }
    b->ratio = degree ? 4 + 4 / (M_PI * M_PI) * log(degree) : 0;
    fftw_free(a);
    return DPF_OK;
}
