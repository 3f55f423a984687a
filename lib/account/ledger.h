/* The ledger: mechanisms written into it, and what all of it comes to.
 *
 * Every mechanism leaves an event with its parameters and two statements, what its paper
 * claims and what is proven. The account is made from the parameters, not from the
 * statements: composing statements would be loose, and believing them would be unwise. */
#ifndef DPF_ACCOUNT_LEDGER_H
#define DPF_ACCOUNT_LEDGER_H

#include "account/compose.h"
#include "base/text.h"
#include "wire/header.h"

enum dpf_relation {
    DPF_ADD_REMOVE,  /* one record is there or not */
    DPF_REPLACE_ONE, /* one record has another value */
    DPF_LOCAL,       /* any two values of one person's record, seen by nobody else */
};
extern const char *const dpf_relation_words[]; /* ended by NULL */
/* What an event calls the kinds of account/spending.h, and their parameters. */
extern const char *const dpf_mechanism_words[], *const dpf_mechanism_parameters[];

/* Somebody's word on the cost. epsilon is infinite where nothing is promised. */
struct dpf_guarantee {
    double epsilon, delta;
    const char *source; /* claimed: the paper; proven: the theorem */
};

struct dpf_mechanism_event {
    struct dpf_spending spending;
    const char *sampling; /* "none", "poisson", "shuffle" */
    const char *norm;     /* of the sensitivity: "l1", "l2"; NULL: not one of these */
    double sensitivity;
    enum dpf_relation relation;
    const char *assumes; /* what the proof takes for granted, or NULL */
    const char *why;     /* why the proven epsilon is not the claimed one, or NULL */
    struct dpf_guarantee claimed, proven;
    /* What it was made of, so that anyone can work the epsilon out again. */
    const char *method;          /* "uer", or NULL */
    uint64_t units;              /* bits, classes or values it works on; 0: not told */
    const double *probabilities; /* those it draws with, as the method lists them */
    size_t probability_count;
    bool shows_place;      /* a message depends on where its record stands, in public */
    const char *clear;     /* a field that left as it was beside it, or NULL */
    const double *moments; /* [2]: means of the cosine of a message with the truth, and of
                            * its square, for whoever aggregates; or NULL */
};

void dpf_ledger_add_mechanism(struct dpf_values *events, const char *stage,
                              const struct dpf_mechanism_event *m);

/* Numbers of a mechanism that are public ("probabilities", "moments"), from the events of
 * these methods (ended by NULL), in the branches of merged streams, too. */
enum dpf_found {
    DPF_NOT_FOUND,
    DPF_FOUND,
    DPF_FOUND_DIFFERENT, /* several, and they do not agree */
};
enum dpf_found dpf_ledger_find(const struct dpf_values *events,
                               const char *const *methods, const char *key,
                               double *numbers, size_t count);

/* ------------------------------------------------------------------------ the account */

struct dpf_account_request {
    enum dpf_method method;
    double delta; /* NaN: the sum of what the events state */
    bool convert; /* take everything under `relation` */
    enum dpf_relation relation;
};

struct dpf_account {
    struct dpf_guarantee claimed, proven; /* sources point into the texts below */
    bool has_claim;
    bool alike; /* every record passed through the same local randomiser, and nothing that
                 * leaves tells which record it is of: messages may hide among others */
    enum dpf_relation relation;
    enum dpf_method method;
    uint64_t mechanisms;     /* events that spend */
    struct dpf_text source;  /* of the claim */
    struct dpf_text why;     /* what the proven epsilon rests on, or why it is infinite */
    struct dpf_text assumes; /* what the proofs take for granted */
};

/* What a stream with this standing and these events has cost. An event that is not known
 * or is malformed, and neighbouring relations that do not go together, are DPF_PRIVACY:
 * no epsilon can be stated. */
enum dpf_status dpf_account_ledger(struct dpf_account *a, const struct dpf_header *h,
                                   const struct dpf_account_request *request,
                                   struct dpf_error *e);
/* What a list of spendings costs, without a ledger. */
enum dpf_status dpf_account_list(struct dpf_account *a, const struct dpf_spending *list,
                                 size_t count, enum dpf_relation relation,
                                 const struct dpf_account_request *request,
                                 struct dpf_error *e);
void dpf_account_release(struct dpf_account *a);

/* May a stream with this header leave its owner? It has to be public, or to have come out
 * of mechanisms with a finite proven epsilon, within `budget` (NULL: any). Else
 * DPF_PRIVACY. */
enum dpf_status dpf_account_check_release(const struct dpf_header *h,
                                          const struct dpf_guarantee *budget,
                                          struct dpf_error *e);

/* For people, and {"epsilon", "delta", "method", "relation", "claimed": {...}, "proven":
 * {...}, "events": [...]}; events may be NULL. The table's numbers are rounded up. */
void dpf_account_table(const struct dpf_account *a, struct dpf_text *out);
void dpf_account_json(const struct dpf_account *a, const struct dpf_values *events,
                      struct dpf_text *out);
/* epsilon with four decimals, up; "unbounded" if it is. */
void dpf_text_add_epsilon(struct dpf_text *t, double epsilon);

#endif
