/* Examples in memory: what a stream brought, in the dtype it brought it (bits stay
 * packed, bytes stay bytes), ready to be picked in any order. */
#ifndef DPF_NN_DATASET_H
#define DPF_NN_DATASET_H

#include "base/digest.h"
#include "kernels/loss.h"
#include "nn/model.h"
#include "wire/batch.h"

struct dpf_dataset {
    enum dpf_dtype dtype; /* of x */
    size_t record_bytes;  /* of x */
    uint64_t record;      /* elements of x */
    uint64_t one_hot;     /* classes, if x is labels that are read as one-hot; else 0 */
    uint64_t rows, capacity;
    unsigned char *x;
    int32_t *labels;    /* [rows, positions], or NULL */
    float *values;      /* [rows, positions], or NULL */
    uint64_t positions; /* labels or values of one example */
    uint64_t classes;
    bool first_only; /* coefficients: the stream has c1 alone, c2 is 1/8 */
    uint64_t turn;   /* channels of targets that come channels first; 0: as they are */
};

/* What a network and a loss need of a stream. */
struct dpf_dataset_need {
    const struct dpf_model *model;
    const char *x, *y; /* names of fields; y NULL: no targets */
    const struct dpf_loss *loss;
};

/* Check a header against the network: the field's record has as many values as the
 * network's input (a picture may lack its channel), or is labels for which the input has
 * a channel a class; packed bits go with packed bits, and targets fit the output. What
 * does not is DPF_USAGE and names both sides. */
enum dpf_status dpf_dataset_init(struct dpf_dataset *d, struct dpf_header *h,
                                 const struct dpf_dataset_need *need,
                                 struct dpf_error *e);
void dpf_dataset_release(struct dpf_dataset *d);
/* Append a batch of that header's. A label outside the classes is DPF_BAD_STREAM. */
enum dpf_status dpf_dataset_add(struct dpf_dataset *d, struct dpf_header *h,
                                struct dpf_batch *b, const struct dpf_dataset_need *need,
                                struct dpf_error *e);
/* Forget the examples, keep the memory. */
void dpf_dataset_clear(struct dpf_dataset *d);
/* The x of n examples, as a network reads it: floats, or packed bits. */
void dpf_dataset_gather(const struct dpf_dataset *d, const uint32_t *rows, int64_t n,
                        void *out);
/* The target of one example. */
struct dpf_loss_target dpf_dataset_target(const struct dpf_dataset *d, uint32_t row);
/* The targets of n examples, one behind the other: `positions` labels or values each. */
void dpf_dataset_targets(const struct dpf_dataset *d, const uint32_t *rows, int64_t n,
                         void *out);
/* A digest of all examples and targets. */
void dpf_dataset_fingerprint(const struct dpf_dataset *d, struct dpf_fingerprint *f);

/* A number for each example that is a function of its content and, among equal ones, of
 * how many stand before it: the same whatever else is there. False when out of memory. */
bool dpf_dataset_identities(const struct dpf_dataset *d, uint64_t *identities);

#endif
