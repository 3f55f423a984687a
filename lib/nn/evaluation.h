/* A model held against targets: outputs of the engine into scores, batch by batch. */
#ifndef DPF_NN_EVALUATION_H
#define DPF_NN_EVALUATION_H

#include "nn/engine.h"
#include "nn/score.h"
#include "nn/windows.h"
#include "wire/encode.h"

struct dpf_evaluation {
    struct dpf_engine *engine; /* borrowed */
    struct dpf_windows
        *windows;            /* borrowed, or NULL: records are as large as the input */
    struct dpf_model scores; /* with windows: reads scores of whole records, for their */
    struct dpf_engine measure; /* losses */
    const struct dpf_loss *loss;
    bool labelled; /* scores; else only the loss */
    struct dpf_score score;
    uint64_t examples;
    double loss_sum;
    uint32_t *rows;
    float *outputs, *turned;
    double *losses;
    size_t rows_capacity, outputs_capacity, losses_capacity, turned_capacity;
};

/* With `windows` of the network's output, or NULL, records may be larger than its input.
 */
enum dpf_status dpf_evaluation_init(struct dpf_evaluation *v, struct dpf_engine *engine,
                                    struct dpf_windows *windows,
                                    const struct dpf_loss *loss, struct dpf_error *e);
void dpf_evaluation_release(struct dpf_evaluation *v);
/* Score all examples of a data set. */
enum dpf_status dpf_evaluation_add(struct dpf_evaluation *v, const struct dpf_dataset *d,
                                   struct dpf_error *e);
/* The result. After the last example. */
void dpf_evaluation_report(struct dpf_evaluation *v, struct dpf_findings *f);

#endif
