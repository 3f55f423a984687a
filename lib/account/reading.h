/* A ledger as lists of what was spent. Inside lib/account.
 *
 * Claim. If the events of a ledger are true, all that a stream reveals about which of two
 * neighbouring data sets was used comes from the mechanisms of one path, each with its
 * entry's spending for a group of entry.group records under the entry's relation,
 * composed.
 *
 * Proof. Events are read in order, and a context is carried along: for neighbours at the
 * source by add-remove, and for those by replace-one, the number of steps of the same
 * relation in which the data differ at this point, or that there is none. It is 1 at the
 * source. A selection, partition or augmentation of stability k makes k of each step
 * (event.h), so numbers multiply, and one without k leaves none: a mechanism under that
 * relation is then unbounded. Noise on records that differ in g steps is what group
 * privacy says for g. `local` asks for as much as replace-one: that a record is there is
 * seen, so it must not depend on what the record says.
 *   Of streams that were merged, a record may be in each: mechanisms of all branches
 * compose, each in its own context, and what follows sees the sum of the branches' steps.
 * Where branches are parts without a common record (ledger/source.h), made while the
 * number of steps was 1 and disjoint under the relation, the one step between neighbours
 * is in one branch, and in the others both data sets are the same: what those release
 * tells nothing. So the branches are alternatives, one path each, and what follows sees
 * the largest number. That asks for the relation of every mechanism in the branches: by
 * content a replaced record may leave one part and enter another, and in order every part
 * changes when a record is removed, so there they compose. It holds for add-remove as it
 * stands only, not where its mechanisms are converted to replace-one, since a replaced
 * record is two steps, which may be in two parts. A branch that used a model of records
 * that are not public is never apart from the others. Owners are apart if their curator
 * says so, which is an assumption.
 *   One draw of noise can reach a ledger on several ways: the features that a model made
 * of what was released, and the model, both tell of it. Events with the same release name
 * (128 random bits, drawn with the noise) and the same numbers are that draw, so each
 * path has it once, in the context with the larger group: composition is about draws.
 *   Teachers answer for their records: what follows their event depends on private
 * records through the answers alone, and a mechanism behind it counts answers of teachers
 * as its records. Where the teachers' records are apart, neighbours at the source differ
 * in the records of one teacher, and so in one teacher's answers, whatever was done to
 * the records in between: the number of steps is 1 again. Else it is the number of
 * teachers. What teachers spent among themselves was not released here.
 *
 * The claim is about persons where a ledger has windows: neighbours then differ in all
 * rows of one person, and one step of theirs became as many windows as the event says.
 * All that stands before it has to map persons' rows one by one, so (unless parts are by
 * person, which leave whole persons) a choice of rows (which one person's may change for
 * others), copies and windows of windows leave no stability, and a mechanism that saw
 * rows has no bound, since a person has any number of them. For the same reason there is
 * no bound where one mechanism saw windows and another one, of the same ledger, of a
 * model or of teachers, saw records that are none: they may be rows of the same people,
 * of whom windows say that they have many. Parts of rows are not apart, as a person has
 * rows in each. Under the unit `window` a step is one window of that event instead,
 * whatever came before: what a paper states that takes a window for a record. It bounds
 * what is told of a window, not of a person. */
#ifndef DPF_ACCOUNT_READING_H
#define DPF_ACCOUNT_READING_H

#include "account/ledger.h"

enum { DPF_MAX_PATHS = 4096 };

/* What neighbours differ in, where there are windows of people; a record where not. */
enum dpf_account_unit { DPF_UNIT_PERSON, DPF_UNIT_WINDOW };

/* One mechanism as it reaches the records of the source. */
struct dpf_ledger_entry {
    struct dpf_spending spending;
    enum dpf_relation relation;
    uint64_t group; /* records of this stage that one record of the source became */
    double claimed_epsilon, claimed_delta, proven_delta;
    char release[DPF_RELEASE_NAME + 1]; /* or empty */
};

struct dpf_ledger_path {
    struct dpf_ledger_entry *entries;
    size_t count, capacity;
};

struct dpf_reading {
    struct dpf_ledger_path *paths;
    size_t path_count, path_capacity;
    struct dpf_account *account; /* borrowed: counts and sentences go there */
    enum dpf_account_unit unit;
    bool unbounded, memory_failed;
    bool replaces;     /* add-remove is taken for two steps of a replaced record */
    bool used_windows; /* a mechanism saw windows of people's rows */
    bool from_ledger;  /* of data, not of numbers that somebody gave */
    bool tells_apart;  /* something beside the mechanisms tells whose message is whose */
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
/* Whether one record, under this relation, changes the answers of one teacher alone, as
 * far as an event of teachers says. */
bool dpf_reading_teachers_apart(const struct dpf_event *v, enum dpf_relation relation);

#endif
