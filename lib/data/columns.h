/* The public description of a table: what its columns mean and how far their values go.
 *
 * Bounds, categories and missing-value tokens must not be learnt from private data, so
 * they are written down by someone who knows the table, one line a column:
 *
 *     header none                   # or: header skip (a first line that says nothing)
 *     separator ;                   # , ; tab space
 *     missing ?                     # may stand several times
 *     shape 28 28                   # of the feature vector
 *     other drop                    # columns that are not mentioned are left out
 *     age      int 17 90 default 38
 *     hours    real 0 99
 *     sex      category Female Male # one feature each: sex=Female, sex=Male
 *     rank     code low mid high    # one feature: 0, 1, 2
 *     income   target 0 200000      # field "y", f32
 *     class    label 0..9           # field "y", class numbers
 *     id       drop
 *     user     person               # field "person": whose row it is (data/day.h)
 *     date     day MM/DD/YYYY from 2016-04-12  # field "time": the days since then
 *
 * Two columns of the kind person, and no others, make links: field "link".
 *
 * Names and values may stand in double quotes ("" inside is one quote); a quoted word is
 * never a keyword. A..B stands for the whole numbers from A to B. */
#ifndef DPF_DATA_COLUMNS_H
#define DPF_DATA_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "data/day.h"
#include "tensor/tensor.h"

enum dpf_column_kind {
    DPF_COLUMN_REAL,
    DPF_COLUMN_INT,
    DPF_COLUMN_CATEGORY,
    DPF_COLUMN_CODE,
    DPF_COLUMN_TARGET,
    DPF_COLUMN_LABEL,
    DPF_COLUMN_DROP,
    DPF_COLUMN_PERSON,
    DPF_COLUMN_DAY,
};

struct dpf_column {
    char *name;
    enum dpf_column_kind kind;
    enum dpf_day_format day;
    int64_t day_from; /* time 0 */
    double lo, hi;    /* real, int, target */
    char **values;    /* category, code, label */
    size_t value_count, value_capacity;
    uint32_t *slots; /* hash table over values; see dpf_column_find() */
    size_t slot_count;
    bool has_default;
    double default_number;
    size_t default_value;
};

enum dpf_header_line { DPF_HEADER_NAMES, DPF_HEADER_NONE, DPF_HEADER_SKIP };

struct dpf_columns {
    char *name; /* for messages */
    struct dpf_column *columns;
    size_t count, capacity;
    enum dpf_header_line header;
    char separator;
    char **missing;
    size_t missing_count, missing_capacity;
    bool drop_others;
    bool has_shape;
    struct dpf_shape shape;
    size_t features; /* length of the feature vector */
    size_t persons;  /* columns of that kind; 2: links */
};

/* Read or parse a description. On success *c is the caller's to release; on failure
 * there is nothing to release. What is wrong is DPF_USAGE "'FILE' line 3: ...". */
enum dpf_status dpf_columns_read(const char *path, struct dpf_columns *c,
                                 struct dpf_error *e);
enum dpf_status dpf_columns_parse(const char *text, size_t size, const char *name,
                                  struct dpf_columns *c, struct dpf_error *e);
void dpf_columns_release(struct dpf_columns *c);

/* Features that a column contributes to the vector. */
size_t dpf_column_features(const struct dpf_column *c);
/* The number of a declared value; false if it is not declared. */
bool dpf_column_find(const struct dpf_column *c, const char *text, size_t size,
                     size_t *value);

#endif
