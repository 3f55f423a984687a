/* A stream with one record: how relevant each feature is. `relevance-lrp --average`
 * writes it for public records, `perturb --release relevance` for private ones;
 * mechanisms and scales follow it. */
#ifndef DPF_EXCHANGE_RELEVANCE_STREAM_H
#define DPF_EXCHANGE_RELEVANCE_STREAM_H

#include "stage/stage.h"

/* Read `values` numbers, on the heap, and take over the stream's ledger. A stream of
 * private records is DPF_PRIVACY. */
enum dpf_status dpf_relevance_read(struct dpf_stage *s, const char *endpoint,
                                   size_t values, double **take_numbers,
                                   struct dpf_error *e);

#endif
