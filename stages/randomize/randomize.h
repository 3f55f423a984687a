/* What the parts of `randomize` share: what the user asked for, the fields it found, the
 * open mechanisms of the record and of its label. */
#ifndef DPF_RANDOMIZE_RANDOMIZE_H
#define DPF_RANDOMIZE_RANDOMIZE_H

#include "memory.h"
#include "privacy/randomiser.h"
#include "privacy/response.h"
#include "stage/stage.h"

/* What happens to the labels of the records. */
enum dpf_labels {
    DPF_LABELS_NONE,     /* there are none */
    DPF_LABELS_CLEAR,    /* as they are: not protected, and the ledger says so */
    DPF_LABELS_RESPONSE, /* M-ary randomised response, with an epsilon of its own */
    DPF_LABELS_JOINT,    /* one message about the record and its label */
    DPF_LABELS_DROP,
};
struct dpf_labels_row {
    const char *name;
    enum dpf_labels is;
};
extern const struct dpf_labels_row dpf_labels_rows[];

struct dpf_randomize {
    /* what the user asked for */
    const char *method_word, *labels_word, *field, *label, *remember;
    double epsilon, alpha, label_epsilon; /* 0: not given */
    int64_t codebook, public_seed, owner;
    int64_t seed; /* below 0: the operating system's randomness */
    /* what it takes */
    const struct dpf_randomiser *method;
    enum dpf_labels labels;
    int x, y; /* numbers of the fields that came; y -1: none */
    uint64_t values;
    struct dpf_random random;
    void *mechanism; /* the method's own */
    struct dpf_randomiser_facts facts;
    struct dpf_response label_response;
    struct dpf_release_memory memory;
    uint64_t records; /* so far */
};

/* Take the words of the options for what they stand for; refuse what does not go
 * together.
 */
enum dpf_status dpf_randomize_choose(struct dpf_stage *s, struct dpf_error *e);
/* Help about the methods; it lives as long as `text`. */
const char *dpf_randomize_describe(struct dpf_text *text);
/* Find the record and its label in what came. */
enum dpf_status dpf_randomize_find_fields(struct dpf_randomize *j, struct dpf_header *h,
                                          struct dpf_error *e);
/* Declare what leaves: the randomised field, the label if it is wanted, and no other. */
enum dpf_status dpf_randomize_declare(const struct dpf_randomize *j, struct dpf_stage *s,
                                      struct dpf_error *e);
/* Write the events of private records. */
void dpf_randomize_add_events(const struct dpf_randomize *j, struct dpf_stage *s);
/* The message of record `row` of a batch, into the same row of what leaves. */
void dpf_randomize_record(struct dpf_randomize *j, const struct dpf_batch *b,
                          uint64_t row, struct dpf_batch *out);

#endif
