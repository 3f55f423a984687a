/* Records, or a teacher's part of them, with copies that are a little shifted and turned:
 * what `augment` does, after the part was taken, so that all copies of a record are in
 * one part; volumes with their masks. */
#ifndef DPF_STAGE_TRAIN_COPIES_H
#define DPF_STAGE_TRAIN_COPIES_H

#include "nn/dataset.h"
#include "random/seeded.h"

struct dpf_copies {
    int64_t copies; /* of each record, besides itself */
    double shift;   /* up to this fraction of height and width */
    double degrees; /* up to this angle either way */
    bool flip;      /* mirror, with probability 1/2 */
};

/* Whether examples of this network can be turned: pictures with a label each. */
enum dpf_status dpf_copies_check(const struct dpf_dataset *d, const struct dpf_model *m,
                                 struct dpf_error *e);
/* One picture, changed at random, into `to`. */
void dpf_copies_change(const struct dpf_copies *c, const struct dpf_model *m,
                       enum dpf_dtype dtype, struct dpf_seeded *r,
                       const unsigned char *from, unsigned char *to);
/* The examples `rows` of `d` and their copies, as a data set of its own. */
enum dpf_status dpf_copies_make(const struct dpf_copies *c, const struct dpf_dataset *d,
                                const struct dpf_model *m, const uint32_t *rows,
                                int64_t count, uint64_t seed, struct dpf_dataset *out,
                                struct dpf_error *e);

#endif
