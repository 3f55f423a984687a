/* Local randomisers behind one interface: a record goes in, a message leaves, and the
 * probabilities of the message are known. `randomize`, its help and its tests find a
 * method by its name in one table and need to know nothing else about it.
 *
 * Claim. A randomiser that is opened states `epsilon`, and for any two records (and, with
 * setup.labels > 0, their labels) every message has probabilities within a factor of
 * e^epsilon: epsilon-local differential privacy. Each file in randomisers/ holds its own
 * proof or points at the header that does. The place of a record is public.
 *
 * To add a method: one file in randomisers/ with its claim, its arithmetic and its row,
 * one line in randomisers.c, one test. Whoever reads messages goes by their form and by
 * the numbers in the ledger (wire/FORMAT.md), not by the method's name. */
#ifndef DPF_PRIVACY_RANDOMISER_H
#define DPF_PRIVACY_RANDOMISER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "random/secure.h"

/* The forms of a record and of a message. */
enum dpf_message_form {
    DPF_MESSAGE_BITS,    /* packed: bit i is bit i % 8 of byte i / 8 */
    DPF_MESSAGE_CLASS,   /* one class out of several */
    DPF_MESSAGE_NUMBERS, /* f32 */
};

/* What a mechanism is opened with; all of it public. */
struct dpf_randomiser_setup {
    const char *name; /* of the method, for messages */
    double epsilon;   /* asked for */
    double alpha;     /* 0: not given */
    size_t codebook;  /* directions to choose among */
    uint64_t seed;    /* of what all owners share */
    uint64_t owner;   /* a number of this one's */
    uint64_t values;  /* bits, classes or numbers of a record */
    uint64_t labels;  /* classes of the label in the message; 0: none is */
};

/* What is known of an open mechanism: for the ledger, and so for whoever reads messages.
 * The number of probabilities says what they are: 4 are those of a 1 from a 1 and from a
 * 0 at even places, then at odd ones; 2 the same for all places; 1 that of the truth. */
struct dpf_randomiser_facts {
    double epsilon; /* proven for any two records */
    double probabilities[4];
    size_t probability_count;
    double moments[2]; /* means of the cosine of a message with its record, and of its
                        * square */
    bool has_moments;
    bool is_response; /* M-ary randomised response: its losses are known exactly */
};

struct dpf_randomiser_record {
    uint64_t place;   /* its number in the stream */
    const void *data; /* bits or numbers */
    uint64_t value;   /* a class */
    uint64_t label;   /* if setup.labels > 0 */
};
struct dpf_randomiser_message {
    void *data;     /* room for bits or numbers: as many as setup.values */
    uint64_t value; /* a class: written here */
    float *code;    /* room for setup.labels numbers about the label */
};

struct dpf_randomiser {
    const char *summary; /* a line of help */
    enum dpf_message_form reads, writes;
    const char *const *needs, *const *may; /* names of options beyond those that all have,
                                            * ended by NULL; or NULL */
    bool takes_label;             /* one message can be about the record and its label */
    bool shows_place;             /* a message depends on the record's place */
    const char *source, *theorem; /* of the claimed epsilon; of the proven one */
    const char *why;              /* why these may differ; or NULL */
    /* The mechanism's state, from the heap, and what is known of it. */
    enum dpf_status (*open)(const struct dpf_randomiser_setup *setup, void **state,
                            struct dpf_randomiser_facts *facts, struct dpf_error *e);
    void (*draw)(void *state, struct dpf_random *r,
                 const struct dpf_randomiser_record *record,
                 struct dpf_randomiser_message *message);
    void (*release)(void *state); /* NULL: free() is enough */
};

/* The methods: a table of base/words.h. */
struct dpf_randomiser_row {
    const char *name;
    const struct dpf_randomiser *is;
};
extern const struct dpf_randomiser_row dpf_randomisers[];

/* Whether the method can, or must, be given this option. */
bool dpf_randomiser_takes(const struct dpf_randomiser *m, const char *option);
bool dpf_randomiser_needs(const struct dpf_randomiser *m, const char *option);

#endif
