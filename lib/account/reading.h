/* A ledger as lists of what was spent. Inside lib/account.
 *
 * Parts that share no record are alternatives, so a ledger with them has several lists,
 * paths, and the dearest one counts. */
#ifndef DPF_ACCOUNT_READING_H
#define DPF_ACCOUNT_READING_H

#include "account/ledger.h"

enum { DPF_MAX_PATHS = 4096 };

/* One mechanism as it reaches the records of the source. */
struct dpf_ledger_entry {
    struct dpf_spending spending;
    enum dpf_relation relation;
    uint64_t group; /* records of this stage that one record of the source became */
    double claimed_epsilon, claimed_delta, proven_delta;
};

struct dpf_ledger_path {
    struct dpf_ledger_entry *entries;
    size_t count, capacity;
};

struct dpf_reading {
    struct dpf_ledger_path *paths;
    size_t path_count, path_capacity;
    struct dpf_account *account; /* borrowed: counts and sentences go there */
    bool unbounded, memory_failed;
    bool from_ledger; /* of data, not of numbers that somebody gave */
    bool tells_apart; /* something beside the mechanisms tells whose message is whose */
};

/* One empty path; false when out of memory. */
bool dpf_reading_begin(struct dpf_reading *r);
/* Read a header's events into r, which was begun. What is unknown or malformed
 * is DPF_PRIVACY. */
enum dpf_status dpf_reading_take(struct dpf_reading *r, const struct dpf_values *events,
                                 struct dpf_error *e);
void dpf_reading_add(struct dpf_reading *r, struct dpf_ledger_path *p,
                     const struct dpf_ledger_entry *entry);
/* Nothing is promised, for this reason. */
void dpf_reading_unbounded(struct dpf_reading *r, const char *why, size_t size);
/* The epsilon holds if this does; what it takes to do without, in brackets. */
void dpf_reading_assume(struct dpf_reading *r, const char *what, size_t size);
void dpf_reading_release(struct dpf_reading *r);

#endif
