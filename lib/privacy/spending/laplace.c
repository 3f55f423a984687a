/* Laplace noise on one number.
 *
 * Claim. Lap(1, b) and Lap(0, b), b = scale / L1 sensitivity, dominate the mechanism. It
 * is exact for continuous noise on one number. It does not hold for the discrete Laplace,
 * which has a little more mass at its largest loss (1 / (1 + e^(-1/t)) instead of 1/2):
 * perturb enters that as pure. For k records at once the sensitivity is k times as large.
 */
#include <math.h>

#include "privacy/spending.h"

#include "base/banned.h"

static double largest_loss(const struct dpf_spending *s, double tail)
{
    (void)tail; /* it is an atom */
    return 1 / s->parameter;
}

static double loss_scale(const struct dpf_spending *s)
{
    return 1 / s->parameter;
}

/* Lap(0, b) between two points. */
static double laplace_mass(double from, double to, double b)
{
    if (from >= 0)
        return 0.5 * exp(-from / b) * -expm1(-(to - from) / b);
    if (to <= 0)
        return 0.5 * exp(to / b) * -expm1(-(to - from) / b);
    return 1 - 0.5 * exp(from / b) - 0.5 * exp(-to / b);
}

/* The loss is (2x - 1) / b for x in (0, 1), with atoms outside. */
static void masses(const struct dpf_spending *s, double from, double to, double *p,
                   double *q)
{
    double c = s->parameter, top = 1 / c;
    double x0 = fmax((from * c + 1) / 2, 0), x1 = fmin((to * c + 1) / 2, 1);
    *p = *q = 0;
    if (x1 > x0) {
        *q = laplace_mass(x0, x1, c);
        *p = laplace_mass(x0 - 1, x1 - 1, c);
    }
    if (from < -top && -top <= to) {
        *q += 0.5;
        *p += 0.5 * exp(-top);
    }
    if (from < top && top <= to) {
        *q += 0.5 * exp(-top);
        *p += 0.5;
    }
}

static void for_group(struct dpf_spending *s, double k)
{
    s->parameter /= k;
}

const struct dpf_spending_kind dpf_spending_laplace = {
    .name = "laplace",
    .key = "scale",
    .parameter = "Laplace scale",
    .least = 1e-4,
    .is_noise = true,
    .is_rounded = true,
    .question = {"laplace", "scale=B[,q=Q][,count=T]",
                 "Laplace noise of scale B sensitivities", "scale"},
    .largest_loss = largest_loss,
    .loss_scale = loss_scale,
    .masses = masses,
    .for_group = for_group,
};
