/* Everything between the options of `randomize` and what leaves an owner: the method and
 * its probabilities, the label's share, the events, the records. */
#ifndef DPF_STAGE_RANDOMIZE_JOB_H
#define DPF_STAGE_RANDOMIZE_JOB_H

#include "account/ledger.h"
#include "memory.h"
#include "privacy/sampled_bit.h"
#include "privacy/sphere.h"
#include "stage/stage.h"

extern const char *const dpf_randomize_words[]; /* "rr", "ue", "oue", ... */
extern const char *const dpf_labels_words[];    /* "clear", "response", "joint", "drop" */

enum dpf_randomize_method {
    DPF_RANDOMIZE_RR,
    DPF_RANDOMIZE_UE,
    DPF_RANDOMIZE_OUE,
    DPF_RANDOMIZE_MOUE,
    DPF_RANDOMIZE_UER,
    DPF_RANDOMIZE_RESPONSE,
    DPF_RANDOMIZE_SAMPLED_BIT,
    DPF_RANDOMIZE_PRIVUNIT,
};

enum dpf_labels {
    DPF_LABELS_CLEAR,    /* as they are: not protected, and the ledger says so */
    DPF_LABELS_RESPONSE, /* M-ary randomised response, with an epsilon of its own */
    DPF_LABELS_JOINT,    /* privunit: one mechanism for the record and its label */
    DPF_LABELS_DROP,
    DPF_LABELS_NONE, /* there are none */
};

struct dpf_randomize_job {
    /* what the user asked for */
    const char *method_word, *labels_word, *field, *label, *remember;
    double epsilon, alpha, label_epsilon; /* 0: not given */
    int64_t codebook;                     /* privunit: directions to choose among */
    int64_t public_seed;                  /* of what all owners share */
    int64_t owner;                        /* a public number of this one's */
    int64_t seed;                         /* below 0: the operating system's randomness */
    /* what it takes */
    enum dpf_randomize_method method;
    enum dpf_labels labels;
    int x, y; /* numbers of the fields that came; y -1: none */
    uint64_t values;
    struct dpf_random random;
    struct dpf_bit_randomiser bits;
    struct dpf_response response, label_response;
    struct dpf_sampled_bit sampled;
    struct dpf_sphere sphere;
    struct dpf_release_memory memory;
    uint64_t records; /* so far */
    uint64_t *words;  /* room for one record's bits */
    double proven, probabilities[4], moments[2];
    size_t probability_count;
};

enum dpf_status dpf_randomize_job_check(struct dpf_randomize_job *j,
                                        const struct dpf_stage *s, struct dpf_error *e);
/* Find the fields, work out the probabilities, write the events and the fields that
 * leave: the randomised one, the label if it is wanted, and no other. */
enum dpf_status dpf_randomize_job_open(struct dpf_randomize_job *j, struct dpf_stage *s,
                                       struct dpf_error *e);
/* Replace a batch by what leaves of it. */
enum dpf_status dpf_randomize_job_take(struct dpf_randomize_job *j, struct dpf_stage *s,
                                       struct dpf_batch *b, struct dpf_error *e);
void dpf_randomize_job_release(struct dpf_randomize_job *j);

#endif
