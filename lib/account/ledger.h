/* The composed privacy cost of a ledger.
 *
 * Every mechanism leaves an event with its parameters and two statements, what its paper
 * claims and what is proven. The account is made from the parameters, not from the
 * statements: composing statements would be loose, and a statement may be wrong. */
#ifndef DPF_ACCOUNT_LEDGER_H
#define DPF_ACCOUNT_LEDGER_H

#include "account/compose.h"
#include "base/findings.h"
#include "ledger/event.h"

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
    /* Of windows of people (FORMAT.md): `proven` is about a person with all her rows, and
     * `per_window` about one window, as papers count that take a window for a record.
     * False if mechanisms saw records that are no windows, and none saw windows. */
    bool has_windows, has_friends, has_records; /* has_records: others were used, too */
    struct dpf_guarantee per_window;            /* its source: why, as of `proven` */
    enum dpf_method window_method;
    struct dpf_text window_why;
    uint64_t mechanisms;     /* events that spend */
    struct dpf_text source;  /* of the claim */
    struct dpf_text why;     /* what the proven epsilon rests on, or why it is infinite */
    struct dpf_text assumes; /* what the epsilon takes for granted, a line each */
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

/* Rows and members, for whoever finds out more than this. */
void dpf_account_report(const struct dpf_account *a, const struct dpf_values *events,
                        struct dpf_findings *f);
/* The same alone. For people, and {"epsilon", "delta", "method", "relation", "claimed":
 * {...}, "proven":
 * {...}, "events": [...]}; events may be NULL. The table's numbers are rounded up. */
void dpf_account_table(const struct dpf_account *a, struct dpf_text *out);
void dpf_account_json(const struct dpf_account *a, const struct dpf_values *events,
                      struct dpf_text *out);
/* epsilon with four decimals, up; "unbounded" if it is. */
void dpf_text_add_epsilon(struct dpf_text *t, double epsilon);

#endif
