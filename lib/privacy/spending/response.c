/* Randomised response, and mechanisms of which only an epsilon is known.
 *
 * Claim.
 * - response: M-ary randomised response of epsilon e. Exact: the pair is that of two
 *   truths, e^e / (e^e + M - 1) for one's own answer and 1 / (e^e + M - 1) for another.
 * - pure: any e-DP mechanism; randomised response of two answers dominates it (Kairouz,
 *   Oh and Viswanath 2015, Theorem 3.3 and its proof).
 * For k records at once both are (k e)-DP, and nothing more is known of them. */
#include <math.h>

#include "privacy/spending.h"

#include "base/banned.h"

static enum dpf_status check_choices(const struct dpf_spending *s, struct dpf_error *e)
{
    return s->choices < 2
               ? dpf_fail(e, DPF_USAGE, "randomised response has at least 2 answers")
               : DPF_OK;
}

static double largest_loss(const struct dpf_spending *s, double tail)
{
    (void)tail; /* it is an atom */
    return s->parameter;
}

static double loss_scale(const struct dpf_spending *s)
{
    return s->parameter;
}

/* Atoms at e, -e and, for what neither truth is, 0. */
static void answer_masses(double top, double answers, double from, double to, double *p,
                          double *q)
{
    double truth = 1 / (1 + (answers - 1) * exp(-top)); /* e^e / (e^e + M - 1) */
    double low = exp(-top) * truth;
    *p = *q = 0;
    if (from < top && top <= to)
        *p += truth, *q += low;
    if (from < -top && -top <= to)
        *p += low, *q += truth;
    if (from < 0 && 0 <= to)
        *p += (answers - 2) * low, *q += (answers - 2) * low;
}

static void response_masses(const struct dpf_spending *s, double from, double to,
                            double *p, double *q)
{
    answer_masses(s->parameter, (double)s->choices, from, to, p, q);
}

static void pure_masses(const struct dpf_spending *s, double from, double to, double *p,
                        double *q)
{
    answer_masses(s->parameter, 2, from, to, p, q);
}

static void for_group(struct dpf_spending *s, double k)
{
    s->kind = &dpf_spending_pure;
    s->parameter *= k;
}

const struct dpf_spending_kind dpf_spending_response = {
    .name = "response",
    .key = "epsilon",
    .parameter = "epsilon",
    .least = 1e-9,
    .has_choices = true,
    .is_local = true,
    .question = {"rr", "epsilon=E[,choices=M][,q=Q][,count=T]",
                 "randomised response among M answers (2)", "epsilon"},
    .check = check_choices,
    .largest_loss = largest_loss,
    .loss_scale = loss_scale,
    .masses = response_masses,
    .for_group = for_group,
};

const struct dpf_spending_kind dpf_spending_pure = {
    .name = "pure",
    .key = "epsilon",
    .parameter = "epsilon",
    .least = 1e-9,
    .question = {"pure", "epsilon=E[,q=Q][,count=T]", "any mechanism that is E-DP",
                 "epsilon"},
    .largest_loss = largest_loss,
    .loss_scale = loss_scale,
    .masses = pure_masses,
    .for_group = for_group,
};
