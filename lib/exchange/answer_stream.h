/* Answers of teachers as a stream: a record for each query and teacher. The stream is
 * private until it was aggregated.
 *
 * Fields: `query`, two i64: its number, from 0, and a digest of its input, by which
 * answers to other inputs are noticed; `teacher`, an i64: its id; `vote`, a class, or
 * `code`, a vector of f32. */
#ifndef DPF_EXCHANGE_ANSWER_STREAM_H
#define DPF_EXCHANGE_ANSWER_STREAM_H

#include "ledger/event.h"
#include "wire/batch.h"

enum dpf_answer_field {
    DPF_ANSWER_QUERY,
    DPF_ANSWER_TEACHER,
    DPF_ANSWER_VALUE, /* vote or code */
    DPF_ANSWER_FIELDS,
};

/* The digest of an input: of its bytes as they stand in the stream. */
int64_t dpf_query_digest(const void *record, size_t bytes);

/* Make `h`, which describes queries, the header of their answers: votes among `classes`,
 * or codes of `values` numbers. */
enum dpf_status dpf_answers_declare(struct dpf_header *h, uint64_t teachers,
                                    uint64_t classes, uint64_t values,
                                    struct dpf_error *e);

/* What a header of answers says; of several streams that were merged, too. */
struct dpf_answer_teacher {
    char *name;
    uint64_t id;
};
struct dpf_answers {
    bool votes;
    uint64_t values; /* classes, or numbers of a code */
    int at[DPF_ANSWER_FIELDS];
    struct dpf_answer_teacher *teachers;
    size_t count, capacity;
    struct dpf_values branches; /* events of each teacher's records */
    struct dpf_values asked;    /* events of the queries, the same in all streams */
    bool asked_known;
};
/* Whether a header is of answers at all. */
bool dpf_answers_is(const struct dpf_header *h);
/* DPF_BAD_STREAM if it is malformed. Release after success only. */
enum dpf_status dpf_answers_read(struct dpf_answers *a, const struct dpf_header *h,
                                 struct dpf_error *e);
/* The same for a stream that is to leave the teachers' machine, without noise: it has to
 * hold answers and no other field. Else DPF_PRIVACY. */
enum dpf_status dpf_answers_read_alone(struct dpf_answers *a, const struct dpf_header *h,
                                       struct dpf_error *e);
void dpf_answers_release(struct dpf_answers *a);
/* The number of the teacher with this id; a->count if there is none. */
size_t dpf_answers_find(const struct dpf_answers *a, uint64_t id);

#endif
