/* Teachers: models that are asked, not shown. Each was trained on records of its own; one
 * stream holds one (`train`) or many (`train --teachers K`), a folder holds streams. */
#ifndef DPF_EXCHANGE_TEACHERS_H
#define DPF_EXCHANGE_TEACHERS_H

#include "exchange/model_stream.h"

struct dpf_teacher {
    char *name;  /* for people: the part of the records, or the file without folders */
    uint64_t id; /* of its records and weights: the same teacher twice has one id */
    struct dpf_model model;
    float *parameters; /* [model.span] */
};

struct dpf_teachers {
    struct dpf_teacher *list;
    size_t count, capacity;
    struct dpf_values branches; /* the events of each teacher's records, in their order */
    struct dpf_values provenance; /* of the first stream, for people */
    bool is_public;               /* all of them are of public records */
};

/* Add the teachers of a stream, or of every stream (.mp) in a folder, in the order of
 * their names. A stream without a model is DPF_BAD_STREAM. */
enum dpf_status dpf_teachers_read(struct dpf_teachers *t, const char *place,
                                  struct dpf_error *e);
void dpf_teachers_release(struct dpf_teachers *t);
/* The event of a stream of their answers, and its standing. */
enum dpf_status dpf_teachers_describe(const struct dpf_teachers *t, struct dpf_stage *s,
                                      struct dpf_error *e);

/* Names of `count` teachers of one training, by part; free with dpf_names_free(). NULL
 * when out of memory. */
char **dpf_part_names(size_t count);

#endif
