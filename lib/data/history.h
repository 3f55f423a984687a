/* A table of people and times, and the windows of it that a model of behaviour is trained
 * on: what a person did at the last N points, what she does now, and how much her friends
 * move her (data/influence.h). All rows are kept in memory, since they may come in any
 * order; DPF_HISTORY_MAX_BYTES is the bound.
 *
 * The record of such a table is not what has to be protected: a person is, with all her
 * rows, and each of them is in many windows, her own and her friends'.
 *
 * Claim. Let two tables differ in the rows of one person u: in one of them she has none
 * (add-remove); or she has at least one in both, and everyone else has the same rows in
 * both (replace-one: who is in the table is public, what they did is not). Let M be the
 * number of window ends, F the bound on friends; times, options, links and their order
 * are public. Then the windows, as multisets, differ
 * - under add-remove in at most M + 2 F M windows added and removed;
 * - under replace-one in at most M + F M windows replaced, if days that are missing are
 *   filled in; in no number of replaced windows if windows with missing days are dropped,
 *   since there may be more of them in one table than in the other.
 *
 * Proof. make_window() for a person w and an end t reads the rows of w and, by
 * influence(), those of the people in w's list of friends, and nothing else of the table:
 * find() looks at rows of w or of one friend only, and the sums go
 * over the list in its own order, so floats are the same to the last bit if the rows are.
 * choose_links() makes the lists from the links alone, whoever is in the table: a friend
 * without rows counts with psi = 1/2. A link is used only while both its ends have fewer
 * than F, so u is in the lists of at most F others. So at most M windows of u and F M of
 * others can differ, and all other windows are in both multisets. Under add-remove those
 * of u are there or not, M at most; a window of another is one window removed and one
 * added. (If windows are dropped: a missing day of w drops windows of w alone, so the
 * others' are there in both.) Under replace-one with days filled in, everyone who has a
 * row has M windows in both tables, so all that differ are replaced, one by one. The
 * numbers are reached: tests/privacy/test_history.c.
 *   Rows must not have been chosen before, by position or content: a row more of u would
 * change which rows of others are left. `window` looks at the ledger for that.
 *   Both are tables that can be read: values are finite, labels 0 or 1, and nobody has
 * two rows at one time. Another table is refused, whoever's rows they are, and that
 * nothing comes out tells that it is one: check a table before a release depends on it.
 */
#ifndef DPF_DATA_HISTORY_H
#define DPF_DATA_HISTORY_H

#include "base/status.h"
#include "tensor/tensor.h"

#define DPF_HISTORY_MAX_BYTES (4ull << 30)
enum {
    DPF_HISTORY_MAX_ENDS = 1000000,
    DPF_HISTORY_MAX_LENGTH = 4096,
    DPF_HISTORY_MAX_VALUES = 1 << 20, /* of a window */
};

enum dpf_history_missing {
    DPF_MISSING_PREVIOUS, /* as at the last point before; 0 if there is none */
    DPF_MISSING_ZERO,
    DPF_MISSING_DROP, /* no window */
};

struct dpf_history_rule {
    size_t length;              /* N */
    int64_t first, last, every; /* window ends */
    /* The label is of t + 1, and the N points are t-N+1 .. t. Else it is of t, and the
     * points are t-N .. t-1, so that neither they nor the influence contain it. */
    bool next;
    enum dpf_history_missing missing;
    uint64_t friends;  /* F; 0: links are not used */
    size_t attributes; /* d */
    int64_t rise; /* the label is that this attribute is larger than at the time before,
                   * missing times being no rise; below 0: labels are given */
};

/* Window ends, M; and the values of a window: d N by attribute, oldest first, d at t, 1.
 */
uint64_t dpf_history_ends(const struct dpf_history_rule *rule);
size_t dpf_history_values(const struct dpf_history_rule *rule);

/* The numbers of the claim; 0: there is none. */
struct dpf_history_keeps {
    uint64_t add_remove, replace_one;
};
struct dpf_history_keeps dpf_history_keeps(const struct dpf_history_rule *rule);

struct dpf_history;

/* The rule is copied. DPF_SYSTEM when out of memory. */
enum dpf_status dpf_history_new(const struct dpf_history_rule *rule,
                                struct dpf_history **take, struct dpf_error *e);
void dpf_history_destroy(struct dpf_history **h);
/* Whole numbers of any dtype that has them as element i. False for others. */
bool dpf_history_whole(const struct dpf_tensor *t, uint64_t i, int64_t *value);
/* Rows of a batch: person, time and y are whole numbers, one a row, y 0 or 1, or NULL if
 * the rule makes it. A value of x that is not finite is DPF_BAD_STREAM, which does not
 * say where it is. */
enum dpf_status dpf_history_add(struct dpf_history *h, const struct dpf_tensor *person,
                                const struct dpf_tensor *time, const struct dpf_tensor *x,
                                const struct dpf_tensor *y, struct dpf_error *e);
/* A link between two people, in public order. */
enum dpf_status dpf_history_link(struct dpf_history *h, int64_t a, int64_t b,
                                 struct dpf_error *e);
/* All rows and links are there. Two rows of a person at one time, a link to oneself or
 * one that is there twice are DPF_BAD_STREAM. */
enum dpf_status dpf_history_close(struct dpf_history *h, struct dpf_error *e);
/* The next window, by person and end: x has room for dpf_history_values(). False at the
 * end. */
bool dpf_history_window(struct dpf_history *h, float *x, uint8_t *y);

/* What was met so far. It tells of the people: for public tables only. */
struct dpf_history_counts {
    uint64_t people, points, missing, dropped; /* points and labels of windows; windows */
};
struct dpf_history_counts dpf_history_count(const struct dpf_history *h);

#endif
