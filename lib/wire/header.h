/* The header of a stream: what its records look like, where they come from, and what
 * privacy has been spent on them. */
#ifndef DPF_WIRE_HEADER_H
#define DPF_WIRE_HEADER_H

#include "base/status.h"
#include "tensor/tensor.h"
#include "wire/decode.h"
#include "wire/encode.h"

enum { DPF_MAX_FIELDS = 32, DPF_FORMAT_VERSION = 1, DPF_NAME_BYTES = 48 };

/* Declared, public bounds: one pair for all values of a field, or one pair a feature. */
struct dpf_bounds {
    size_t count; /* 0: none declared */
    double *lo, *hi;
};

struct dpf_field {
    char name[DPF_NAME_BYTES];
    enum dpf_dtype dtype;
    struct dpf_shape shape; /* of one record */
    uint64_t classes;       /* values are labels 0 .. classes-1; 0: not labels */
    double norm_l2;         /* each record lies in this L2 ball; 0: not declared */
    struct dpf_bounds bounds;
    char **features; /* names of the features (NULL, or one for each element) */
    size_t feature_count;
};

struct dpf_header {
    struct dpf_field fields[DPF_MAX_FIELDS];
    int field_count;
    bool has_records;
    uint64_t records;
    struct dpf_values provenance; /* one map a stage */
    bool is_private;              /* the records describe people who did not agree */
    bool is_protected;            /* all of it came out of the mechanisms in `events` */
    struct dpf_values events;     /* the ledger so far */
    struct dpf_values branches;   /* ledgers of merged streams, while they are merged */
};

void dpf_header_release(struct dpf_header *h);
enum dpf_status dpf_header_copy(struct dpf_header *to, const struct dpf_header *from,
                                struct dpf_error *e);
/* Append a field; NULL when full or when the name is bad or taken. */
struct dpf_field *dpf_header_add_field(struct dpf_header *h, const char *name,
                                       enum dpf_dtype dtype,
                                       const struct dpf_shape *record_shape);
struct dpf_field *dpf_header_field(struct dpf_header *h, const char *name);
/* Forget the fields and the number of records: what follows is no record. */
void dpf_header_drop_fields(struct dpf_header *h);
/* Forget all fields but one. */
void dpf_header_keep_field(struct dpf_header *h, int number);
/* Another kind of record in a field: what was declared of the old one is forgotten. */
void dpf_field_redefine(struct dpf_field *f, enum dpf_dtype dtype,
                        const struct dpf_shape *record_shape);
/* Declare one pair of bounds for all values (copies nothing else). */
enum dpf_status dpf_field_set_bounds(struct dpf_field *f, double lo, double hi,
                                     struct dpf_error *e);
void dpf_field_clear_bounds(struct dpf_field *f);
/* Room for `count` features, in place of what was declared of them: bounds of 0 to be
 * filled in, and names to be given one after the other. */
enum dpf_status dpf_field_declare_features(struct dpf_field *f, size_t count,
                                           struct dpf_error *e);
enum dpf_status dpf_field_name_feature(struct dpf_field *f, const char *name,
                                       struct dpf_error *e);
/* Same names, dtypes and shapes in the same order; the difference goes into `e`. */
enum dpf_status dpf_header_same_fields(const struct dpf_header *a,
                                       const struct dpf_header *b, struct dpf_error *e);

/* Make the declarations of `into` hold for the records of `other` too: the wider bounds,
 * the larger norm, none where one of them has none. Different class counts are
 * DPF_BAD_STREAM: they would mean different things by the same label. */
enum dpf_status dpf_field_merge(struct dpf_field *into, const struct dpf_field *other,
                                struct dpf_error *e);

/* "private", "protected" or "public". */
const char *dpf_header_standing(const struct dpf_header *h);

enum dpf_status dpf_header_encode(struct dpf_encoder *enc, const struct dpf_header *h,
                                  struct dpf_error *e);
enum dpf_status dpf_header_decode(const msgpack_object *root, struct dpf_header *h,
                                  struct dpf_error *e);

#endif
