/* Many models of one network, one by one and together: what teachers can do before any
 * noise. Together they give the mean of their probabilities. */
#ifndef DPF_STAGE_ENSEMBLE_H
#define DPF_STAGE_ENSEMBLE_H

#include "exchange/teachers.h"
#include "nn/evaluation.h"

/* Zero-initialise. */
struct dpf_ensemble {
    struct dpf_teachers teachers;
    struct dpf_evaluation *single; /* of each */
    struct dpf_score together;
    bool scoring;
    uint64_t classes;
    float *sum;    /* of probabilities, channels first as networks give them */
    float *scores; /* of one example, classes last */
    size_t sum_capacity, scores_capacity;
};

/* Read the models; they must have one text. */
enum dpf_status dpf_ensemble_read(struct dpf_ensemble *t, const char *place,
                                  struct dpf_error *e);
/* Start: the engine is of their network, and so are the windows, or NULL. The loss must
 * be of labels. */
enum dpf_status dpf_ensemble_open(struct dpf_ensemble *t, struct dpf_engine *engine,
                                  struct dpf_windows *windows,
                                  const struct dpf_loss *loss, struct dpf_error *e);
void dpf_ensemble_release(struct dpf_ensemble *t);
enum dpf_status dpf_ensemble_add(struct dpf_ensemble *t, struct dpf_engine *engine,
                                 const struct dpf_dataset *d, struct dpf_error *e);
/* Single models as mean, deviation, least and most; then all figures of the ensemble. */
void dpf_ensemble_report(struct dpf_ensemble *t, struct dpf_findings *f);

#endif
