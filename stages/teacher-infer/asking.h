/* Asking many teachers about the inputs of one stream. */
#ifndef DPF_STAGE_ASKING_H
#define DPF_STAGE_ASKING_H

#include "exchange/batch_lot.h"
#include "exchange/model_stream.h"
#include "exchange/teachers.h"
#include "nn/windows.h"

/* Networks of one text share an engine: teachers differ in their weights. */
struct dpf_shared_engine {
    const struct dpf_model *model; /* borrowed from the first teacher that has it */
    struct dpf_engine engine;
    struct dpf_windows windows; /* with --window */
};

/* What makes a code of a teacher's scores. */
struct dpf_encoder_net {
    struct dpf_model_stream source;
    struct dpf_engine engine;
    size_t node;
    uint64_t values; /* of a code */
    uint32_t *rows;  /* 0, 1, 2, ... */
    size_t capacity;
};

struct dpf_asking {
    /* what the user asked for, then what it takes */
    const char *field, *backend, *encoder_stream, *node;
    bool scores_as_code, window;
    double norm;
    struct dpf_list models;
    int64_t threads;
    const struct dpf_kernels *kernels;
    struct dpf_teachers teachers;
    struct dpf_batch_lot lots;
    struct dpf_shared_engine *engines;
    size_t engine_count, *engine_of; /* of each teacher */
    uint64_t asked;                  /* queries so far */
    uint64_t classes, places;        /* that have a score for each class: 1, or voxels */
    int at;                          /* number of the field that is read */
    float *scores;                   /* of a batch, [rows, classes, places] */
    size_t scores_capacity;
    struct dpf_encoder_net encoder;
};

/* The callbacks. Open: read the teachers and check what they know against the inputs. */
enum dpf_status dpf_asking_options(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_asking_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_asking_batch(struct dpf_stage *s, struct dpf_batch *b,
                                 struct dpf_error *e);
void dpf_asking_release(struct dpf_stage *s);

#endif
