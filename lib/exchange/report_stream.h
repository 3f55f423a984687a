/* Messages of owners as a stream: what `randomize --method privunit` wrote, with the
 * means that its ledger tells, whether one owner sent it or many were merged. */
#ifndef DPF_EXCHANGE_REPORT_STREAM_H
#define DPF_EXCHANGE_REPORT_STREAM_H

#include "stage/stage.h"

struct dpf_report_stream {
    int x, y;
    size_t values, outputs;
    bool classes;      /* y holds classes, not codes */
    double moments[2]; /* means of the cosine and of its square */
    float *codes;      /* of the batch at hand, [rows, outputs] */
    size_t capacity;
};

/* Find the fields, and the means in the ledger. Messages of different settings in one
 * stream, or none, are DPF_BAD_STREAM. */
enum dpf_status dpf_report_stream_open(struct dpf_report_stream *r, struct dpf_stage *s,
                                       const char *field, const char *label,
                                       struct dpf_error *e);
/* Fill r->codes from a batch; its x becomes f32. */
enum dpf_status dpf_report_stream_take(struct dpf_report_stream *r, struct dpf_batch *b,
                                       struct dpf_error *e);
/* Keep what can be a message: a vector of the one length that all have, and numbers as
 * its code. Others (of a broken or hostile owner) are left out, in b->tensor[x] and
 * r->codes; returns how many are left. After dpf_report_stream_take(). */
uint64_t dpf_report_stream_sift(const struct dpf_report_stream *r, struct dpf_batch *b);

/* Public, labelled records as directions of length 1 with their codes, all in memory. */
struct dpf_known_records {
    const struct dpf_report_stream *like; /* borrowed: what they have to fit to */
    struct dpf_stage *stage;              /* borrowed: takes over their provenance */
    float *x, *codes;
    size_t count, x_capacity, codes_capacity;
    struct dpf_report_stream own;
};
/* DPF_PRIVACY unless they are public. Fields have the names of the messages'. */
enum dpf_status dpf_known_records_read(struct dpf_known_records *k, const char *endpoint,
                                       const char *field, const char *label,
                                       struct dpf_error *e);
void dpf_known_records_release(struct dpf_known_records *k);

void dpf_report_stream_release(struct dpf_report_stream *r);

#endif
