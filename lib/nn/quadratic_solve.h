/* Minimising a quadratic form whose coefficients carry noise: post-processing, it costs
 * nothing, but the noisy gram matrix may have directions in which the form has no
 * minimum.
 *
 * Symmetric noise of deviation s on an n x n matrix has eigenvalues up to about
 * 2 s sqrt(n) (Wigner). A ridge of that size puts the noise's own directions back above
 * 0; those that are below 0 even so are dropped. */
#ifndef DPF_NN_QUADRATIC_SOLVE_H
#define DPF_NN_QUADRATIC_SOLVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct dpf_quadratic_form {
    size_t n, outputs;
    const double *a, *b; /* [n, n] symmetric, [n, outputs]: minimise wAw - 2bw */
    double noise_stddev; /* of an off-diagonal entry of a */
};

struct dpf_quadratic_repair {
    bool none;    /* solve as it is, also if there is no minimum */
    double ridge; /* in units of the noise's spectral edge */
};

struct dpf_quadratic_outcome {
    double smallest; /* eigenvalue, before any repair */
    double ridge;    /* that was added */
    size_t dropped;  /* directions */
};

/* w is [n, outputs]. DPF_SYSTEM if LAPACK gives up. */
enum dpf_status dpf_quadratic_solve(const struct dpf_quadratic_form *form,
                                    const struct dpf_quadratic_repair *repair, double *w,
                                    struct dpf_quadratic_outcome *outcome,
                                    struct dpf_error *e);

#endif
