/* What a mechanism spends: the few numbers that decide its privacy, apart from what it
 * was used for. Accountants work on lists of these, all under one neighbouring relation.
 *
 * A kind of mechanism is one row: its words (in events, in messages, in the options of
 * `account`) and its privacy loss. All that depends on the kind is asked of the row;
 * ledger, accountants and stages know no kind by name. What a row leaves out is refused
 * with the kind named, or has a bound that holds for every kind, as said below.
 *
 * Claim. Each kind names a pair of distributions (P1, Q) that dominates the mechanism's
 * outputs on neighbours (Zhu, Dong and Wang 2022, Definition 7): for every epsilon the
 * hockey-stick divergence of the pair is at least that of the mechanism. The files of
 * spending/ have the pairs, each with its Claim.
 * With Poisson sampling of rate q under add-remove, (1 - q) Q + q P1 and Q dominate
 * removal, and the reversed pair addition (Zhu, Dong and Wang 2022, Theorem 11). */
#ifndef DPF_PRIVACY_SPENDING_H
#define DPF_PRIVACY_SPENDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct dpf_spending {
    const struct dpf_spending_kind *kind;
    double parameter; /* what it is, the kind says: a noise multiplier, an epsilon */
    uint64_t choices; /* of kinds that have them: at least 2 */
    double rate;      /* Poisson sampling; 1: everyone takes part */
    uint64_t count;   /* how often, adaptively */
};

/* The loss is ln(P1(o) / Q(o)) at an output o. The functions are about one use of the
 * pair without sampling, unless they say otherwise. */
struct dpf_spending_kind {
    const char *name;      /* in an event */
    const char *key;       /* the parameter's in an event */
    const char *parameter; /* what messages call it */
    double least;          /* the smallest parameter */
    bool is_noise;         /* more of the parameter costs less; else it is an epsilon */
    bool has_choices;      /* events and questions give their number */
    bool is_local;         /* of one person's record, if everyone takes part */
    bool is_unbounded;     /* there is no largest loss: a delta above 0 is needed */
    bool is_rounded;       /* largest_loss() may be below the true one by a rounding */
    struct {
        const char *option, *argument, *help, *key; /* key: the parameter's */
    } question;                                     /* that `account` is asked about it */

    /* More that has to hold of the numbers; NULL: nothing. */
    enum dpf_status (*check)(const struct dpf_spending *s, struct dpf_error *e);
    /* Losses beyond it, to either side, have less than `tail` of P1 and of Q. With a tail
     * of 0: the largest loss. Every kind has this. */
    double (*largest_loss)(const struct dpf_spending *s, double tail);
    /* About how far losses spread. */
    double (*loss_scale)(const struct dpf_spending *s);
    /* The masses of P1 and Q where the loss lies in (from, to]. NULL: there is no privacy
     * loss distribution, and methods that need it are refused. */
    void (*masses)(const struct dpf_spending *s, double from, double to, double *p,
                   double *q);
    /* The least epsilon at a delta, where there is no largest loss. NULL: methods that
     * need it are refused. */
    double (*epsilon)(const struct dpf_spending *s, double delta);
    /* (alpha - 1) times the Renyi divergence of order alpha > 1, with sampling, in the
     * worse direction. NULL: that of the discretised pair, if losses have a largest. */
    double (*log_moment)(const struct dpf_spending *s, double alpha);
    /* v where the pair is exactly that of N(1, v) and N(0, v); NULL: it is not. */
    double (*gaussian_variance)(const struct dpf_spending *s);
    /* Make s what k records at once cost. NULL: group privacy bounds it. */
    void (*for_group)(struct dpf_spending *s, double k);
};

/* The kinds: a line for each, and its row in spending/. */
#define DPF_SPENDING_KINDS(X)                                                            \
    X(gaussian)                                                                          \
    X(laplace)                                                                           \
    X(response)                                                                          \
    X(pure)

#define DPF_SPENDING_DECLARE(row)                                                        \
    extern const struct dpf_spending_kind dpf_spending_##row;
DPF_SPENDING_KINDS(DPF_SPENDING_DECLARE)
#define DPF_SPENDING_ONE(row) +1
enum { DPF_SPENDING_KIND_COUNT = 0 DPF_SPENDING_KINDS(DPF_SPENDING_ONE) };
extern const struct dpf_spending_kind *const dpf_spending_kinds[]; /* ended by NULL */

/* DPF_USAGE names the number that is out of range. */
enum dpf_status dpf_spending_check(const struct dpf_spending *s, struct dpf_error *e);
/* The epsilon of one use without delta, with sampling; infinity if losses are unbounded.
 */
double dpf_spending_pure_epsilon(const struct dpf_spending *s);
/* About how far the losses of one use spread, with sampling: a scale to choose a step by.
 */
double dpf_spending_scale(const struct dpf_spending *s);

#endif
