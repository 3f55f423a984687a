/* Measuring: the callbacks of `evaluate`. */
#ifndef DPF_STAGE_EVALUATE_H
#define DPF_STAGE_EVALUATE_H

#include "ensemble.h"
#include "exchange/model_stream.h"
#include "nn/evaluation.h"

struct dpf_measurement {
    /* what the user asked for, then what it takes */
    const char *model, *x, *y, *loss, *backend, *json, *table;
    int64_t threads;
    bool expected, teachers, window;
    const struct dpf_kernels *kernels; /* of the backend */
    struct dpf_model_stream source;
    struct dpf_dataset data;
    struct dpf_dataset_need need;
    struct dpf_engine engine;
    struct dpf_windows windows;
    struct dpf_evaluation evaluation;
    struct dpf_ensemble ensemble; /* instead of source and evaluation */
};

enum dpf_status dpf_measurement_options(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_measurement_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_measurement_batch(struct dpf_stage *s, struct dpf_batch *b,
                                      struct dpf_error *e);
enum dpf_status dpf_measurement_close(struct dpf_stage *s, struct dpf_error *e);
void dpf_measurement_release(struct dpf_stage *s);

#endif
