/* Functions of one value as polynomials on [-1, 1]: Chebyshev series, Maclaurin series,
 * and the two others that papers on the functional mechanism compare with them.
 *
 * A polynomial of degree n is n + 1 coefficients, of 1, x, ..., x^n. */
#ifndef DPF_KERNELS_EXPANSION_H
#define DPF_KERNELS_EXPANSION_H

#include "base/status.h"

/* Above this, coefficients of powers lose all their digits. */
enum { DPF_EXPANSION_MOST = 30 };

struct dpf_function {
    const char *name;
    double (*value)(double x);
    /* c[0..degree] of the Maclaurin series; NULL: there is none. */
    void (*maclaurin)(int degree, double *c);
};
extern const struct dpf_function dpf_functions[]; /* ended by a row without a name */

enum dpf_expansion_kind {
    DPF_EXPAND_CHEBYSHEV, /* the series, truncated */
    DPF_EXPAND_PAPER,     /* pCDBN's "degree 7": the flattest step from 0 to 1 */
    DPF_EXPAND_TAYLOR,
    DPF_EXPAND_PIECEWISE, /* one piece: the line through both ends */
};
struct dpf_expansion_choice {
    const char *name;
    enum dpf_expansion_kind kind;
};
extern const struct dpf_expansion_choice dpf_expansion_choices[]; /* ended the same way */

/* a[0..degree] with f = sum of a[k] T_k: a[0] is the mean, half of what is often called
 * A_0. */
enum dpf_status dpf_chebyshev_series(const struct dpf_function *f, int degree, double *a,
                                     struct dpf_error *e);
/* The same polynomial in powers, and back. */
void dpf_chebyshev_to_powers(int degree, const double *a, double *c);
void dpf_powers_to_chebyshev(int degree, const double *c, double *a);

/* The polynomial c[0..degree]. DPF_USAGE: a degree outside [0, DPF_EXPANSION_MOST], or a
 * function without this expansion: `taylor` of softsign, whose second derivative jumps at
 * 0; `paper` of anything but the sigmoid, which it is meant to be near. Even degrees of
 * `paper` are those below; all of `piecewise` are 1. */
enum dpf_status dpf_expand(const struct dpf_function *f, enum dpf_expansion_kind kind,
                           int degree, double *c, struct dpf_error *e);

double dpf_polynomial_at(int degree, const double *c, double x);

/* How far a truncated Chebyshev series is from its function on [-1, 1], as pCDBN's
 * Lemma 3 has it, for one hidden unit. `U` is the error of the best polynomial of this
 * degree, `S` that of the series; both are maxima of |f - p|, no sums of squares.
 *
 * As printed: U >= pi/4 |A_(L+1)|, S < (4 + 4/pi^2 log L) U; in its text the first is
 * called the upper bound of the error. For odd functions and odd L it says U >= 0.
 *
 * As it should read: U falls with the degree, so U >= pi/4 |A_k| for every k > L, and
 * S <= the sum of |A_k| over k > L. */
struct dpf_expansion_bounds {
    double printed; /* pi/4 |A_(L+1)| */
    double least;   /* of U: pi/4 max |A_k|, k > L */
    double most;    /* of S, and so of U: sum of |A_k|, k > L */
    double ratio; /* of S to U, at most: 4 + 4/pi^2 log L; 0 for L = 0, which has none */
};
enum dpf_status dpf_expansion_error(const struct dpf_function *f, int degree,
                                    struct dpf_expansion_bounds *b, struct dpf_error *e);

#endif
