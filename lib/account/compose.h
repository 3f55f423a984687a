/* All accountants behind one call: a list of what was spent, a delta, a method.
 *
 * Claims, beside those of account/pld.h, rdp.h and privacy/tradeoff.h:
 * - basic: epsilons and deltas add up (Dwork et al. 2006). A Gaussian has its share of
 *   delta, delta / uses each, sampling amplified exactly: (epsilon, delta) becomes
 *   (ln(1 + q (e^epsilon - 1)), q delta) (Li, Qardaji and Su 2012).
 * - strong: k uses of (e, d)-DP are (e sqrt(2k ln(1/d')) + k e (e^e - 1), kd + d')-DP
 *   (Dwork, Rothblum and Vadhan 2010), for lists of one mechanism; the better of several
 *   divisions of delta between d and d'. */
#ifndef DPF_ACCOUNT_COMPOSE_H
#define DPF_ACCOUNT_COMPOSE_H

#include "privacy/spending.h"

enum dpf_method {
    DPF_METHOD_BASIC,
    DPF_METHOD_STRONG,
    DPF_METHOD_MOMENTS,
    DPF_METHOD_RDP,
    DPF_METHOD_PLD,
    DPF_METHOD_GDP,
    DPF_METHOD_BEST, /* GDP where it is exact; else the smallest of PLD and basic, and of
                      * RDP where PLD cannot be had or is coarse */
};
struct dpf_method_row {
    const char *name;
    /* DPF_USAGE says why it does not apply to a mechanism. */
    enum dpf_status (*check)(const struct dpf_spending *s, struct dpf_error *e);
    enum dpf_status (*epsilon)(const struct dpf_spending *list, size_t count,
                               double delta, double *epsilon, struct dpf_error *e);
};
extern const struct dpf_method_row dpf_methods[]; /* ended by a row without a name */

/* DPF_USAGE says why a method does not apply to a list. `delta` may be 0 for basic. */
enum dpf_status dpf_method_check(enum dpf_method method, const struct dpf_spending *list,
                                 size_t count, double delta, struct dpf_error *e);
/* The epsilon by a method; *used, if not NULL, says which one was best. A method that
 * does not apply is DPF_USAGE. An empty list costs nothing. */
enum dpf_status dpf_compose_epsilon(enum dpf_method method,
                                    const struct dpf_spending *list, size_t count,
                                    double delta, double *epsilon, enum dpf_method *used,
                                    struct dpf_error *e);
/* The delta at an epsilon by the tightest method that can tell (GDP, PLD, pure). */
enum dpf_status dpf_compose_delta(const struct dpf_spending *list, size_t count,
                                  double epsilon, double *delta, struct dpf_error *e);
/* The figure that Abadi et al. compare with: strong composition with the sampling
 * amplified linearly, epsilon to q epsilon. No valid bound; NaN where it does not apply.
 */
double dpf_strong_linear_epsilon(const struct dpf_spending *s, double delta);

/* Inverses: the parameter of list[which] at which the whole list costs at most epsilon by
 * `method`, all else given. sigma: the least noise parameter. steps: the largest count.
 * rate: the largest sampling rate. DPF_PRIVACY if there is none. */
enum dpf_status dpf_solve_parameter(enum dpf_method method, struct dpf_spending *list,
                                    size_t count, size_t which, double epsilon,
                                    double delta, struct dpf_error *e);
enum dpf_status dpf_solve_count(enum dpf_method method, struct dpf_spending *list,
                                size_t count, size_t which, double epsilon, double delta,
                                struct dpf_error *e);
enum dpf_status dpf_solve_rate(enum dpf_method method, struct dpf_spending *list,
                               size_t count, size_t which, double epsilon, double delta,
                               struct dpf_error *e);

#endif
