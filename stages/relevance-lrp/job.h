/* Everything between the options of `relevance-lrp` and the relevances. */
#ifndef DPF_STAGE_RELEVANCE_JOB_H
#define DPF_STAGE_RELEVANCE_JOB_H

#include "exchange/model_reader.h"
#include "nn/relevance.h"

extern const char *const dpf_bias_words[];      /* "absorb", "spread" */
extern const char *const dpf_onto_unit_words[]; /* "unit", "none" */

struct dpf_relevance_job {
    /* what the user asked for */
    const char *model, *x, *y, *node, *rule, *from, *bias, *scale, *backend;
    double mu, alpha;
    int64_t threads;
    bool average;
    /* what it takes */
    struct dpf_model_reader reader;
    struct dpf_engine_relevance relevance;
    struct dpf_relevance_plan plan;
    int at; /* number of the field that is read */
    size_t record;
    double *sums; /* --average */
    uint64_t records;
};

enum dpf_status dpf_relevance_job_check(struct dpf_relevance_job *j,
                                        const struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_relevance_job_open(struct dpf_relevance_job *j, struct dpf_stage *s,
                                       struct dpf_error *e);
/* Relevance takes the input's place; or is added up, and nothing leaves yet. */
enum dpf_status dpf_relevance_job_take(struct dpf_relevance_job *j, struct dpf_stage *s,
                                       struct dpf_batch *b, struct dpf_error *e);
/* Send the mean, if that is what leaves. */
enum dpf_status dpf_relevance_job_finish(struct dpf_relevance_job *j, struct dpf_stage *s,
                                         struct dpf_error *e);
void dpf_relevance_job_release(struct dpf_relevance_job *j);

#endif
