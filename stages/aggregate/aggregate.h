/* Two kinds of aggregation: messages that owners randomised, and answers of teachers. The
 * fields of the stream say which it is. */
#ifndef DPF_STAGE_AGGREGATE_H
#define DPF_STAGE_AGGREGATE_H

#include "base/text.h"
#include "exchange/answer_stream.h"
#include "exchange/report_stream.h"
#include "nn/report_form.h"
#include "once.h"
#include "privacy/code_mean.h"
#include "privacy/vote.h"
#include "tallies.h"

struct dpf_aggregate {
    /* what the user asked for: of messages */
    const char *field, *label, *known_stream;
    double known_weight;
    /* of answers */
    const char *vote, *inputs, *calibration;
    bool codes, blank;
    double norm, noise, threshold, threshold_noise, epsilon, delta;
    double cost_order, cost_smoothness, cost_noise;
    int64_t teachers, most_answers, seed;
    bool distinct_owners, private_cost, publish_cost;
    /* what it takes: messages */
    struct dpf_report_form form;
    struct dpf_report_stream reports;
    struct dpf_known_records known;
    uint64_t left_out;
    /* answers */
    bool of_answers;
    struct dpf_answers answers;
    struct dpf_tallies tallies;
    struct dpf_once once;
    struct dpf_text said;      /* lines about what was drawn, told when it has left */
    struct dpf_code_mean mean; /* of codes: how they are cut */
};

/* Before anything is read: do the options go together? And when the stream is known. */
enum dpf_status dpf_aggregate_options(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_aggregate_check_kind(struct dpf_stage *s, struct dpf_error *e);

/* The callbacks of each kind. */
enum dpf_status dpf_messages_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_messages_batch(struct dpf_stage *s, struct dpf_batch *b,
                                   struct dpf_error *e);
enum dpf_status dpf_messages_close(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_answers_open(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_answers_batch(struct dpf_stage *s, struct dpf_batch *b,
                                  struct dpf_error *e);
/* Everyone has answered everything, or DPF_BAD_STREAM. */
enum dpf_status dpf_answers_complete(struct dpf_aggregate *v, struct dpf_error *e);
/* Everything was read: release votes, or means of codes. */
enum dpf_status dpf_codes_release(struct dpf_stage *s, struct dpf_error *e);
enum dpf_status dpf_votes_release(struct dpf_stage *s, struct dpf_error *e);

#endif
