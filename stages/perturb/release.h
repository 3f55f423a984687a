/* The releases of `perturb` behind one interface: each is a row in releases.c with its
 * options and the functions that do its work. The stage takes the options, finds the
 * field, and calls the row; formulas and proofs are in lib/privacy. */
#ifndef DPF_PERTURB_RELEASE_H
#define DPF_PERTURB_RELEASE_H

#include "privacy/record_bounds.h"
#include "random/secure.h"
#include "stage/stage.h"

struct dpf_release;

struct dpf_perturb {
    /* what the user asked for; NULL or 0: not given */
    const char *release_word, *mechanism, *variant, *relation, *field, *target;
    double epsilon, share, delta, clip_l1, clip_l2;
    bool only, no_intercept, non_private;
    int64_t seed; /* below 0: the operating system's randomness */
    const char *relevance, *draw, *coefficients;
    double label_epsilon, label_share, limit, neurons;
    int64_t lot, hidden;
    const char *loss;                                    /* quadratic */
    const char *unit;                                    /* quadratic, energy */
    const char *kernel, *picture, *function, *expansion; /* energy */
    int64_t stride, degree;
    double scale;
    /* what it takes */
    const struct dpf_release *release;
    bool paper, plain, gaussian; /* of the variant; of variant or mechanism */
    int x;                       /* the number of the field */
    struct dpf_random random;
    uint64_t records;
    void *own; /* the release's, release->own_bytes zeros before it is opened */
};

struct dpf_release {
    /* Options beyond those that all have, ended by NULL. */
    const char *const *needs, *const *may;
    const char *const *variants; /* those it has; NULL: it has a mechanism instead */
    size_t own_bytes;
    bool sums; /* all records come together in integers, which hold only so many */
    /* What options cannot go together; or NULL. */
    enum dpf_status (*check)(const struct dpf_perturb *p, const struct dpf_stage *s,
                             struct dpf_error *e);
    /* Work out sensitivity and noise from what the header declares; declare what leaves;
     * write the events. */
    enum dpf_status (*open)(struct dpf_perturb *p, struct dpf_stage *s,
                            struct dpf_error *e);
    enum dpf_status (*take)(struct dpf_perturb *p, struct dpf_batch *b,
                            struct dpf_error *e);
    /* Release what was gathered; or NULL. */
    enum dpf_status (*finish)(struct dpf_perturb *p, struct dpf_stage *s,
                              struct dpf_error *e);
    uint64_t (*clipped)(const struct dpf_perturb *p); /* values or records, so far */
    void (*release)(struct dpf_perturb *p);           /* what it holds */
};
/* The table. */
struct dpf_release_row {
    const char *name;
    const struct dpf_release *is;
};
extern const struct dpf_release_row dpf_releases[];

/* Words of options. */
extern const char *const dpf_variant_words[], *const dpf_central_words[];
extern const char *const dpf_draw_words[],
    *const dpf_coefficient_words[], *const dpf_form_losses[], *const dpf_unit_words[];

/* Take the options for what they stand for; refuse what does not go together. */
enum dpf_status dpf_perturb_check(struct dpf_stage *s, struct dpf_error *e);

/* --------------------------------------------------------------- what several need */

/* What bounds a record of the field: a norm that the user chose or that the header
 * declares for Gaussian noise, else the declared bounds, a pair for each value. */
enum dpf_status dpf_perturb_bounds(const struct dpf_perturb *p, const struct dpf_field *f,
                                   struct dpf_record_bounds *b, struct dpf_error *e);
/* The number of the field with the target. */
enum dpf_status dpf_perturb_target(const struct dpf_perturb *p, struct dpf_header *h,
                                   int *number, struct dpf_error *e);
/* How many records `epsilon` is for: with '--unit person' the windows that one person
 * changes, else 1. DPF_PRIVACY if there is no such number: of records that are no windows
 * a person may have any. */
enum dpf_status dpf_perturb_group(const struct dpf_perturb *p, const struct dpf_stage *s,
                                  uint64_t *group, struct dpf_error *e);
/* The numbers of one record where `epsilon` is for a group of them: what events state and
 * accountants count from. Group privacy makes of them no more than `epsilon` again. */
double dpf_perturb_record_multiplier(double multiplier, uint64_t group);
/* What noise is made for. Of Laplace noise for a group a record's share of `epsilon` is
 * stated, rounded down so that the shares of all come to no more than was asked for: by
 * at most 3 roundings of 2^-53. So noise is for less by 1e-15, 9 of them, which the share
 * of a record is above. */
double dpf_perturb_group_epsilon(const struct dpf_perturb *p, uint64_t group);
double dpf_perturb_record_epsilon(const struct dpf_perturb *p, double multiplier,
                                  uint64_t group);
/* What one release of a whole data set spends: `parameter` is that of the kind. */
struct dpf_spending dpf_perturb_spending(const struct dpf_spending_kind *kind,
                                         double parameter);
/* The event of a release, with that of the seed if there is one. */
void dpf_perturb_add_event(const struct dpf_perturb *p, struct dpf_stage *s,
                           const struct dpf_mechanism_event *m);

#endif
