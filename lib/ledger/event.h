/* The vocabulary of ledgers: what an event can be, how it is written, how it is read.
 *
 * An event says what was done to the data of a stream, as far as privacy or the question
 * "whose records are these?" depends on it. Every kind has one row in the table of
 * event.c and one writer here. Stages fill in a struct and write it; whoever reads a
 * ledger gets a struct back. Nobody else packs or searches events. FORMAT.md has the
 * keys. */
#ifndef DPF_LEDGER_EVENT_H
#define DPF_LEDGER_EVENT_H

#include "privacy/spending.h"
#include "wire/header.h"

enum dpf_event_kind {
    DPF_EVENT_MECHANISM,    /* something was released with noise */
    DPF_EVENT_NONE,         /* private data were used without a mechanism */
    DPF_EVENT_SEED,         /* draws came from a seed that someone chose */
    DPF_EVENT_SOURCE,       /* what was loaded */
    DPF_EVENT_SELECTION,    /* some records were kept */
    DPF_EVENT_PARTITION,    /* one of several parts was kept */
    DPF_EVENT_AUGMENTATION, /* several records were made of each */
    DPF_EVENT_WINDOWS,      /* windows were made of a table of people and times */
    DPF_EVENT_MIXING,       /* protected records were computed with each other */
    DPF_EVENT_RANDOMISED,   /* records got noise that spends nothing */
    DPF_EVENT_MODEL,        /* a model made from other records was used */
    DPF_EVENT_MERGE,        /* streams were read as one */
    DPF_EVENT_TEACHERS,     /* teachers answered, each trained on records of its own */
    DPF_EVENT_KINDS,
};

enum dpf_relation {
    DPF_ADD_REMOVE,  /* one record is there or not */
    DPF_REPLACE_ONE, /* one record has another value */
    DPF_LOCAL,       /* any two values of one person's record, seen by nobody else */
};
extern const char *const dpf_relation_words[]; /* ended by NULL */

/* Whether the data of a stream may be seen. */
enum dpf_standing {
    DPF_PRIVATE,   /* by their owner alone */
    DPF_PROTECTED, /* by whom the cost of the mechanisms allows it */
    DPF_PUBLIC,    /* by everyone */
};
/* A mechanism stands before private data now: what follows came out of it. */
void dpf_standing_protect(struct dpf_header *h);
/* Whether answers of teachers stand there that were not aggregated. One teacher has as
 * many records there as queries, and the events name it: only `aggregate` may make a
 * release of them. DPF_PRIVACY if so. */
enum dpf_status dpf_ledger_refuse_answers(const struct dpf_values *events,
                                          struct dpf_error *e);
/* Data of both: as private as the more private of the two. */
void dpf_standing_join(struct dpf_header *into, const struct dpf_header *other);

/* Somebody's word on the cost. epsilon is infinite where nothing is promised. */
struct dpf_guarantee {
    double epsilon, delta;
    const char *source; /* claimed: the paper; proven: the theorem */
};

/* In how many records two data sets differ after a step if they differed in one before:
 * counted as records added and removed if they were neighbours by add-remove, as records
 * replaced if by replace-one. 0: there is no such number. */
struct dpf_stability {
    uint64_t add_remove, replace_one;
};
enum { DPF_MAX_STABILITY = 1000000 };
enum { DPF_RELEASE_NAME = 32 }; /* characters of a release's name: 128 random bits */

/* ------------------------------------------------------------------------- writing */

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
    bool shows_place;  /* a message depends on where its record stands, in public */
    bool tells_count;  /* the number of records can be worked out from the event */
    const char *clear; /* a field that left as it was beside it, or NULL */
    /* Names this one draw of noise: however often the event comes back, through a model
     * and through what it computed, the draw is counted once. Random, or NULL. */
    const char *release;
    const double *moments; /* [2]: means of the cosine of a message with the truth, and of
                            * its square, for whoever aggregates; or NULL */
};
void dpf_ledger_add_mechanism(struct dpf_values *events, const char *stage,
                              const struct dpf_mechanism_event *m);

/* Data were read without a mechanism, so what depends on them has no finite epsilon.
 * `why` is for people. */
void dpf_ledger_add_none(struct dpf_values *events, const char *stage, const char *why);
/* Draws came from a seed that the user chose. */
void dpf_ledger_add_seed(struct dpf_values *events, const char *stage);
/* Protected records were computed with each other: they are as protected as before, but
 * none stands for itself any more, and a shuffler comes too late. `by` is what decides
 * who meets whom. */
void dpf_ledger_add_mixing(struct dpf_values *events, const char *stage, const char *by);
/* Records that are not private got noise by `method`. */
void dpf_ledger_add_randomised(struct dpf_values *events, const char *stage,
                               const char *method);

/* What was loaded: see ledger/source.h. */
struct dpf_source_event {
    const char *name;       /* for people: data set, or file names without folders */
    const char *digest;     /* equal for equal content; NULL: the content is unknown */
    const char *set, *part; /* the catalogue knows the content; or NULL */
};
void dpf_ledger_add_source(struct dpf_values *events, const char *stage,
                           const struct dpf_source_event *s);

struct dpf_selection_event {
    const char *by;   /* "order", "content", "label", "mean of all" */
    const char *rule; /* which ones, completely: "first 100" */
    struct dpf_stability stability;
    bool count_private; /* how many are left depends on what records say */
};
void dpf_ledger_add_selection(struct dpf_values *events, const char *stage,
                              const struct dpf_selection_event *s);

/* A partition into parts, or into a share of the records and the rest of them. */
struct dpf_partition_event {
    uint64_t parts, part;
    const char *by; /* "index", "order", "content" */
    uint64_t seed;
    double share; /* of part 0, if `parts` is 2 and they are not equal; else 0 */
    struct dpf_stability stability;
    enum dpf_relation disjoint_under; /* neighbours by it differ in one part only */
    bool count_private;
};
/* `of` is what is divided: equal parts of equal sources are recognised by it. */
void dpf_ledger_add_partition(struct dpf_values *events, const char *stage,
                              const struct dpf_partition_event *p,
                              const struct dpf_header *of);

/* Each record became `copies`. `by` is what decides how a copy differs. */
void dpf_ledger_add_augmentation(struct dpf_values *events, const char *stage,
                                 uint64_t copies, const char *by,
                                 struct dpf_stability stability);
/* Rows of people at times became windows. From here on one step between neighbours is one
 * person with all her rows, whatever number of rows that is, and not one record of the
 * source: the stability counts from a person, so a ledger that chose rows before has
 * none. A kind of its own, and no augmentation, so that readers who do not know of people
 * refuse it instead of taking a row for a person. */
struct dpf_windows_event {
    int64_t first, last; /* times at which windows end */
    uint64_t ends;       /* windows of one person */
    uint64_t friends;    /* other people in whose windows one person is, at most */
    struct dpf_stability stability;
    bool count_private; /* how many windows there are depends on what rows say */
};
void dpf_ledger_add_windows(struct dpf_values *events, const char *stage,
                            const struct dpf_windows_event *w);
/* A model with this header was used. */
void dpf_ledger_add_model(struct dpf_values *events, const char *stage,
                          const struct dpf_header *model);

/* What follows is made of answers of teachers alone, one for each branch, beside data
 * that stood in the stream before. A mechanism behind it is about the teachers: its
 * neighbours differ in all that one of them says. */
struct dpf_teachers_event {
    const struct dpf_values *branches; /* lists of events: each teacher's records */
    /* In the order of the branches; NULL in a release, which names nobody. */
    const char *const *names;
    const uint64_t *ids;
    bool distinct_owners; /* no person has records with two of them: an assumption */
};
void dpf_ledger_add_teachers(struct dpf_values *events, const char *stage,
                             const struct dpf_teachers_event *t);

/* ------------------------------------------------------------------------- reading */

/* Text in a stream, not ended by NUL, of a stranger. text is NULL if there is none. */
struct dpf_span {
    const char *text;
    size_t size;
};
bool dpf_span_is(struct dpf_span s, const char *word);
/* Both are there, and equal. */
bool dpf_span_same(struct dpf_span a, struct dpf_span b);

/* One event. Which members mean something, its kind says. */
struct dpf_event {
    enum dpf_event_kind kind;
    struct dpf_span why; /* none, seed: why nothing is promised */
    /* mechanism */
    struct dpf_spending spending;
    enum dpf_relation relation;
    bool poisson, shows_place, tells_count, clear;
    double claimed_epsilon, claimed_delta, proven_delta; /* NaN, NaN, 0: not stated */
    struct dpf_span claim, assumes, differs; /* its source; its proof's; why not equal */
    struct dpf_span method;                  /* randomised, too */
    struct dpf_span release;                 /* DPF_RELEASE_NAME characters, or none */
    const char *mechanism;
    /* source */
    struct dpf_span name, digest, set, part_name;
    uint64_t ends, friends; /* windows */
    double first, last;     /* windows: times; NaN: not told */
    /* selection, partition, augmentation, windows */
    struct dpf_stability stability;
    bool count_private;
    uint64_t copies; /* 0: not an augmentation */
    uint64_t parts, part;
    bool by_person;      /* all rows of a person are in one part */
    struct dpf_span cut; /* equal for parts of one partition of one source */
    bool disjoint[2];    /* under add-remove, under replace-one and local */
    /* model: the ledger of its records; merge, teachers: lists of events */
    enum dpf_standing data;
    const msgpack_object *events, *branches;
    const msgpack_object *names, *ids; /* teachers: one for each branch, or both NULL */
    bool distinct_owners;
};
/* What a kind is called. */
const char *dpf_event_word(enum dpf_event_kind kind);
/* An event that is not known by name, or lacks what its kind needs, is DPF_PRIVACY: no
 * epsilon can be stated. */
enum dpf_status dpf_event_read(const msgpack_object *o, struct dpf_event *event,
                               struct dpf_error *e);

/* The events of a header as one array, to be read like those of a branch. */
struct dpf_event_list {
    msgpack_zone *zone;
    msgpack_object array;
};
enum dpf_status dpf_event_list_init(struct dpf_event_list *l, const struct dpf_values *v,
                                    struct dpf_error *e);
void dpf_event_list_release(struct dpf_event_list *l);
enum { DPF_MAX_EVENT_DEPTH = 16 }; /* of branches in branches */

/* ----------------------------------------------------------------------- questions */

/* Numbers of a mechanism that are public ("probabilities", "moments"), from the events
 * that tell so many of them, in the branches of merged streams, too; of these methods
 * (ended by NULL), or of any method (NULL): how many probabilities there are says what
 * they are (wire/FORMAT.md). */
enum dpf_found {
    DPF_NOT_FOUND,
    DPF_FOUND,
    DPF_FOUND_DIFFERENT, /* several, and they do not agree */
};
enum dpf_found dpf_ledger_find(const struct dpf_values *events,
                               const char *const *methods, const char *key,
                               double *numbers, size_t count);

/* How many windows of the stream one person changes, under this relation: the product of
 * the stabilities from the event of windows on, as account/reading.h has it. 0: there is
 * no such number, as where no windows were made (of plain records a person may have any
 * number), or rows were not whole before; or it takes branches to tell. Fails closed. */
uint64_t dpf_ledger_group(const struct dpf_values *events, enum dpf_relation relation);

/* Whether rows are as they were loaded: none chosen, copied or made windows of, and
 * nothing spent on them. Then all rows of a person are there, and what is said of her is
 * about them alone. With by_person,
 * whole persons may have been left out, by their numbers. Fails closed. */
bool dpf_ledger_rows_are_whole(const struct dpf_values *events, bool by_person);

/* Whether the number of records tells what private records say: somebody chose them by
 * label or content. Then it must not leave without noise. Fails closed. */
bool dpf_ledger_count_is_private(const struct dpf_values *events);

#endif
